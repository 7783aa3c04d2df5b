"""Writes logs of Inspect as its mock model makes them, into `tests/golden/scores/inspect`."""

import shutil
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import INCORRECT, PARTIAL, Score, includes, mean, scorer
from inspect_ai.solver import generate

FOLDER = Path(__file__).parent / "scores" / "inspect"


@scorer(metrics={"brief": [mean()], "polite": [mean()]})
def style():
    async def score(state, target):
        return Score(value={"brief": 1 / len(state.output.completion), "polite": "please" in state.output.completion})

    return score


@scorer(metrics=[mean()])
def close():
    async def score(state, target):
        missed = abs(int(state.output.completion.split()[0]) - int(target.text))
        return Score(value={0: "C", 1: PARTIAL}.get(missed, INCORRECT))

    return score


def model(name, answers):
    given = iter(answers)

    def answer(*_):
        text = next(given)
        if text == "fail":
            raise RuntimeError("the mock model failed")
        found = ModelOutput.from_content(name, text)
        found.usage = ModelUsage(input_tokens=5, output_tokens=1, total_tokens=6)  # else it downloads a tokenizer
        return found

    return get_model(f"mockllm/{name}", custom_outputs=answer)


def run(name, form, answers, epochs=1):
    samples = [Sample(id=name, input=f"{n} + {n}?", target=str(2 * n)) for n, name in enumerate([1, 2, 3, "last"], 1)]
    (log,) = evaluate(
        Task(samples, name="sums", solver=generate(), scorer=[includes(), close(), style()]),
        model=model(name, answers),
        epochs=epochs,
        fail_on_error=False,
        max_samples=1,
        max_connections=1,
        log_format=form,
        log_dir=str(FOLDER / "logs"),
        log_model_api=False,
        log_realtime=False,
        display="none",
    )
    made = read_eval_log(log.location)
    for sample in made.samples:
        sample.events = []  # large, and with the paths of this machine, as is the traceback
        if sample.error:
            sample.error.traceback = sample.error.traceback_ansi = ""
    write_eval_log(made, str(FOLDER / f"{name}.{form}"))


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    run("small", "json", ["2", "4", "7 please", "9"])
    run("large", "eval", ["2 please", "4", "6", "fail"])
    run("twice", "eval", ["2", "4", "5", "8", "2", "3", "6", "1"], epochs=2)
    shutil.rmtree(FOLDER / "logs")
