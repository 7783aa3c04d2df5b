"""Converts the logs of Inspect and lm-eval beside it to Every Eval Ever, into `tests/golden/scores/every_eval_ever`."""

import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from every_eval_ever.converters.lm_eval.instance_level_adapter import LMEvalInstanceLevelAdapter
from inspect_ai.log import read_eval_log, write_eval_log

SCORES = Path(__file__).parent / "scores"
FOLDER = SCORES / "every_eval_ever"


def of_inspect(name, folder: Path):
    log = read_eval_log(str(SCORES / "inspect" / name))
    model = log.eval.model.replace("mockllm/", "openai/")
    log.eval.model = model
    log.stats.model_usage = {}
    for sample in log.samples:
        sample.output.model, sample.model_usage = model, {}
    renamed = folder / f"{Path(name).stem}.json"
    write_eval_log(log, str(renamed))
    command = [sys.executable, "-m", "every_eval_ever", "convert", "inspect", "--log_path", str(renamed)]
    subprocess.run([*command, "--output_dir", str(folder / "out"), "--source_organization_name", "sums"], check=True)
    (made,) = (folder / "out").rglob("*_samples.jsonl")
    shutil.move(made, FOLDER / f"inspect_{Path(name).stem}_samples.jsonl")


def of_lm_eval(task, folder: Path):
    (samples,) = (SCORES / "lm_eval").glob(f"samples_{task}_*.jsonl")
    LMEvalInstanceLevelAdapter().transform_and_save(
        samples, f"{task}/org/dummy/1", "org/dummy", task, folder, str(uuid.uuid4()), "sums"
    )
    (made,) = folder.glob("*_samples.jsonl")
    shutil.move(made, FOLDER / f"lm_eval_{task}_samples.jsonl")


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for convert, source in ((of_inspect, "large.eval"), (of_inspect, "twice.eval"), (of_lm_eval, "written")):
        with tempfile.TemporaryDirectory() as temporary:
            convert(source, Path(temporary))
