"""Writes samples of lm-eval as its dummy model makes them, into `tests/golden/scores/lm_eval`."""

import json
import os
import random
import shutil
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import lm_eval
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

FOLDER = Path(__file__).parent / "scores" / "lm_eval"
QUESTIONS = [
    {"question": f"{n} + {n}?", "options": [str(2 * n), str(n)], "answer": text}
    for n, text in enumerate(["lol", "4", "lol 6"], 1)
]
CHOICE = """task: choice
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{options}}"
doc_to_target: 0
metric_list: [{metric: acc}, {metric: acc_norm}]
"""
WRITTEN = """task: written
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["."]}
metric_list: [{metric: exact_match}]
filter_list:
  - {name: strict, filter: [{function: take_first}]}
  - {name: letters, filter: [{function: regex, regex_pattern: "([a-z]+)"}, {function: take_first}]}
"""


def run(folder: Path):
    data = folder / "questions.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in QUESTIONS))
    for name, text in (("choice", CHOICE), ("written", WRITTEN)):
        (folder / f"{name}.yaml").write_text(text.replace("DATA", str(data)))
    tasks = TaskManager(include_path=str(folder), include_defaults=False)
    results = lm_eval.simple_evaluate(
        "dummy", tasks=["choice", "written"], task_manager=tasks, log_samples=True, bootstrap_iters=0
    )
    tracker = EvaluationTracker(output_path=str(folder / "out"))
    tracker.general_config_tracker.log_experiment_args("dummy", "", "", None, "")
    tracker.date_id = "2026-11-24T00-00-00.000000"
    for task, samples in results["samples"].items():
        tracker.save_results_samples(task, samples)
    for file in (folder / "out").rglob("samples_*.jsonl"):
        shutil.copy(file, FOLDER / file.name)


if __name__ == "__main__":
    random.seed(0)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        run(Path(temporary))
