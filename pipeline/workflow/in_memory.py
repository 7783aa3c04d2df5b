"""Judgments and outputs that were given in memory, as the config and the plan that files of them would have."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.inputs import File, HeldFile
from rankledger.pipeline.config.loader import given
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.planned import Plan, kind_of
from rankledger.pipeline.config.schema import checked
from rankledger.pipeline.config.yaml import KeyPath, Value, dotted
from rankledger.pipeline.data.formats.memory import hold
from rankledger.pipeline.data.overlap import ALLOW_NO_OVERLAP
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.types.inputs import IN_MEMORY, Given, GivenPairs, InMemory
from rankledger.pipeline.types.results import Failure
from rankledger.pipeline.workflow.workspace import Opened

__all__ = ["in_python", "open_given"]

_VALUES = {"judgments": "relevance", "ratings": "rating", "rankings": "score", "predictions": "prediction"}
_TABLES = {
    "queries": ("query_id",),
    "documents": ("doc_id",),
    "interactions": ("query_id", "doc_id"),
    "exclude": ("query_id", "doc_id"),
}


def open_given(
    judgments: Given,
    outputs: Mapping[str, Given],
    measures: str | Sequence[str | Measure],
    *,
    baseline: str | None,
    tables: Mapping[str, Given | GivenPairs | None],
    settings: Mapping[str, bool | str | None],
    name: str,
    dataset: str,
    overrides: Sequence[str],
    recorded: bool,
) -> Opened:
    """What the arguments of `evaluate` come to.

    Args:
        judgments: judgments, or ratings if the first measure is for ratings.
        outputs: the models' outputs, by model.
        measures: the measures.
        baseline: the model that the others are compared with.
        tables: the queries, documents, interactions and excluded documents of the dataset, by those names.
        settings: its other keys; those that are None are left out.
        name: the evaluation's name.
        dataset: the dataset's name.
        overrides: `key.path=value` texts that win over everything.
        recorded: whether a record will be written.

    Raises:
        InputError: an argument is of the wrong type, or what it says is wrong.
    """
    lines = _lines(measures)
    _check(outputs)
    of_ratings = _is_of_ratings(lines[0])
    role, kind = ("ratings", "predictions") if of_ratings else ("judgments", "rankings")
    roles = {role: ("judgments", judgments)} | {key: (key, data) for key, data in tables.items() if data is not None}
    arguments: dict[KeyPath, str] = {
        ("suites", "measures"): "measures",
        ("comparison", "baseline"): "baseline",
        ("name",): "name",
        **{("datasets", dataset, key): key for key in settings},
    }
    held: dict[str, InMemory] = {}

    def file(key: KeyPath, argument: str, url: str, data: object, columns: Sequence[str]) -> dict[str, Value]:
        arguments.update({key: argument, (*key, "path"): argument})
        if isinstance(data, str | os.PathLike):
            return {"path": os.fspath(data).replace("{", "{{").replace("}", "}}")}
        held[url] = hold(argument, data, columns, recorded=recorded)
        return {"path": url.replace("{", "{{").replace("}", "}}")}

    config: dict[str, Any] = {
        "name": name,
        "datasets": {
            dataset: {
                key: file(("datasets", dataset, key), argument, f"{IN_MEMORY}{argument}", data, _columns_of(key))
                for key, (argument, data) in roles.items()
            }
            | {key: value for key, value in settings.items() if value is not None}
        },
        "models": {
            model: {
                "outputs": file(
                    ("models", model, "outputs"),
                    f"outputs[{model!r}]",
                    f"{IN_MEMORY}outputs/{model}",
                    data,
                    _columns_of(kind),
                )
            }
            for model, data in outputs.items()
        },
        "suites": {"measures": lines},
        "execution": {"cache": False},
    }
    if baseline is not None:
        config["comparison"] = {"baseline": baseline}
    loaded = checked(given(config, arguments, overrides), will_plan=True)
    return Opened(Path(), loaded, _with(plan(loaded), held), None)


def in_python(failure: Failure) -> Failure:
    """The failure with the advice that a call can follow, in the place of that for a config."""
    key = dotted(("models", failure.model, "outputs", "allow_no_overlap"))
    advice = f"or accept it with overrides=[{f'{key}=true'!r}]"
    return replace(failure, reason=failure.reason.replace(ALLOW_NO_OVERLAP, advice))


def _lines(measures: str | Sequence[str | Measure]) -> list[str]:
    lines = [measures] if isinstance(measures, str | Measure) else measures
    if not isinstance(lines, Sequence) or not lines or not all(isinstance(line, str | Measure) for line in lines):
        raise InputError(f"measures: found {shorten(repr(measures))}; give names, such as ['ndcg@10', 'ap']")
    return [str(line) for line in lines]


def _check(outputs: object) -> None:
    """Refuse what is not outputs by model: a run by itself is a mapping, too."""
    if not isinstance(outputs, Mapping) or not outputs:
        found = "none" if isinstance(outputs, Mapping) else f"a {type(outputs).__name__}"
        raise InputError(f"outputs: found {found}; give the models' outputs by name, such as {{'bm25': run}}")
    for model in outputs:
        if not isinstance(model, str):
            raise InputError(f"outputs: found the key {shorten(repr(model))}; give the models' names as keys")


def _is_of_ratings(line: str) -> bool:
    """Whether the first measure is for ratings; one that is unknown is refused later, with its line."""
    try:
        return kind_of(Measure.expand(line)[0]) == "ratings"
    except ValueError:
        return False


def _columns_of(role: str) -> tuple[str, ...]:
    return _TABLES.get(role) or ("query_id", "doc_id", _VALUES[role])


def _with(planned: Plan, held: Mapping[str, InMemory]) -> Plan:
    """The plan with what was given in memory in the place of its files."""

    def filled(file: Any) -> Any:
        found = None if file is None else held.get(file.path)
        return file if found is None else _held_file(file, found)

    datasets = [
        replace(dataset, **{role: filled(getattr(dataset, role)) for role in ("judgments", "ratings", *_TABLES)})
        for dataset in planned.datasets
    ]
    tasks = [replace(task, output=filled(task.output)) for task in planned.tasks]
    return replace(planned, datasets=tuple(datasets), tasks=tuple(tasks))


def _held_file(file: File, held: InMemory) -> HeldFile:
    return HeldFile(**{name: getattr(file, name) for name in type(file).model_fields}, held=held)
