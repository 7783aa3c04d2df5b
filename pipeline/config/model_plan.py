"""Planning models: their outputs on every dataset, and those that are searched for.

Whether files exist is not asked here, except where models are searched for: a missing output is one model's failure.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from pipeline.config.entries import Dataset, File, Model, OutputFile
from pipeline.config.fields import is_printable
from pipeline.config.mistakes import suggestion
from pipeline.config.paths import absolute, fill, search
from pipeline.config.planned import Kind, PlannedDataset, Task
from pipeline.config.planning import EVERYTHING, Planning
from pipeline.config.source import KeyPath

__all__ = ["finds_models", "plan_extras", "plan_models", "search_patterns"]

_MOST_TASKS = 100_000
_KINDS: tuple[Kind, ...] = ("rankings", "ratings", "scores")


def plan_models(planning: Planning, datasets: Sequence[PlannedDataset]) -> tuple[Mapping[str, Model], tuple[Task, ...]]:
    """Every model, and its tasks dataset by dataset."""
    entries = planning.config.models
    if len(entries) * len(datasets) > _MOST_TASKS:
        n_tasks = f"{len(entries):,} models on {len(datasets):,} datasets"
        planning.find(("models",), f"{n_tasks} are more than {_MOST_TASKS:,} evaluations; make several configs of it")
        planning.refuse()
    listed = {name: _outputs(planning, name, name) for name in entries if name != EVERYTHING}
    found = _search(planning, datasets, listed) if EVERYTHING in entries else {}
    outputs = listed | found
    models: dict[str, Model] = {}
    for name, model in entries.items():
        _check_entry(planning, name, model)
        models |= dict.fromkeys(found if name == EVERYTHING else [name], model)
    tasks = tuple(
        Task(dataset.name, model, outputs[model][dataset.name])
        for dataset in datasets
        for model in models
        if dataset.name in outputs[model]
    )
    _check_doubles(planning, tasks)
    _check_compared(planning, datasets, outputs)
    return models, tasks


def finds_models(planning: Planning, datasets: Sequence[PlannedDataset]) -> bool:
    """Whether there is an output of any model that is searched for; also where the search itself is found wrong."""
    tables = {file.path for dataset in datasets for file in dataset.files}
    return any(file not in tables for _, _, file in _matches(planning)) or bool(planning.findings)


def search_patterns(planning: Planning) -> tuple[str, ...]:
    """Where models are searched for, as patterns of a shell, by their absolute paths."""
    found = {
        absolute(fill(file.path, {**planning.words(name, EVERYTHING), "model": "*"}), planning.directory(path)): None
        for name, _, path, file in _templates(planning, EVERYTHING)
    }
    return tuple(found)


def plan_extras(planning: Planning, models: Mapping[str, Model]) -> Mapping[str, File]:
    """The file of each model's numbers from outside, of those that have one."""
    extras: dict[str, File] = {}
    for name, model in models.items():
        if model.extra:
            entry = _entry(planning, name)
            file = planning.filled(("models", entry, "extra"), model.extra, planning.words_of_model(entry, name))
            extras |= {name: file} if file else {}
    return extras


def _entry(planning: Planning, model: str) -> str:
    """The key of `models` that describes a model."""
    return model if model in planning.config.models else EVERYTHING


def _check_entry(planning: Planning, entry: str, model: Model) -> None:
    outputs = model.outputs
    datasets = planning.config.datasets
    if not outputs:
        message = "the model has no outputs; add `outputs:` to it or to `defaults: {model: …}`"
        planning.find(("models", entry), message)
    elif isinstance(outputs, dict):
        for dataset in [name for name in outputs if name not in datasets]:
            message = f"there is no dataset {dataset!r}{suggestion(dataset, datasets)}"
            planning.find(("models", entry, "outputs", dataset), message)
    if model.was is not None and entry in (EVERYTHING, model.was):
        message = "one model was called that before; write it at the model that has a new name, and its old name"
        planning.find(("models", entry, "was"), message)
    for key in ("model_id", "model_uri"):
        if entry == EVERYTHING and getattr(model, key) is not None:
            planning.find(("models", entry, key), "one logged model is not every model; list that model by its name")


def _check_doubles(planning: Planning, tasks: Sequence[Task]) -> None:
    readers: dict[tuple[str, str], str] = {}
    for task in tasks:
        first = readers.setdefault(
            (task.dataset, task.output.model_dump_json(exclude={"allow_no_overlap"})), task.model
        )
        if first != task.model:
            path = ("models", _entry(planning, task.model), "outputs")
            message = f"the model reads the same output as {first!r}; tell them apart, as by {{model}} in the path"
            planning.find(path, message)


def _check_compared(
    planning: Planning, datasets: Sequence[PlannedDataset], outputs: Mapping[str, Mapping[str, OutputFile]]
) -> None:
    """Find measures that compare with a model of which there is no output on the dataset."""
    for dataset in datasets:
        here = [model for model, files in outputs.items() if dataset.name in files]
        for measure in dataset.measures:
            model = str(measure.parameters.get("model", ""))
            if measure.metric.input == "rankings" and model not in here:
                message = f"{measure} compares with {model!r}, which no model is called here{suggestion(model, here)}"
                planning.find(("datasets", dataset.name), message)


def _templates(planning: Planning, entry: str) -> Iterator[tuple[str, Dataset, KeyPath, OutputFile]]:
    """Dataset by dataset, where an entry of `models` names its output, and the file with placeholders."""
    outputs = planning.config.models[entry].outputs
    for name, dataset in planning.config.datasets.items():
        if isinstance(outputs, File):
            yield name, dataset, ("models", entry, "outputs"), outputs
        elif outputs and name in outputs:
            yield name, dataset, ("models", entry, "outputs", name), outputs[name]


def _outputs(planning: Planning, entry: str, model: str, kinds: Container[Kind] = _KINDS) -> dict[str, OutputFile]:
    """By dataset, the outputs of a model that `entry` describes, where it is evaluated."""
    outputs = {}
    for name, dataset, path, file in _templates(planning, entry):
        words = {**planning.words(name, entry), "model": model}
        filled = planning.filled(path, file, words, dataset.columns)
        if filled and dataset.kind in kinds:
            outputs[name] = filled
    return outputs


def _search(
    planning: Planning, datasets: Sequence[PlannedDataset], listed: Mapping[str, Mapping[str, OutputFile]]
) -> dict[str, dict[str, OutputFile]]:
    """The outputs of the models that are found: each is expected on every dataset of a kind where it has one.

    A file that a dataset or a listed model names is not the output of another model.
    """
    n_findings = len(planning.findings)
    tables = {file.path for dataset in datasets for file in dataset.files}
    matches = [match for match in _matches(planning) if match[2] not in tables]
    templates = [planning.directory(path) / file.path for _, _, path, file in _templates(planning, EVERYTHING)]
    if templates and not matches and len(planning.findings) == n_findings:
        searched = ", ".join(dict.fromkeys(map(str, templates)))
        planning.find(("models", EVERYTHING), f"no file matches {searched}; mend the path or list the models")
    outputs = {file.path for files in listed.values() for file in files.values()}
    kinds: dict[str, set[Kind]] = {}
    for kind, model, file in matches:
        if model not in listed and file not in outputs:
            kinds.setdefault(model, set()).add(kind)
    return {model: _outputs(planning, EVERYTHING, model, kinds[model]) for model in sorted(kinds)}


def _matches(planning: Planning) -> Iterator[tuple[Kind, str, str]]:
    """The kind, the model and the file of every output that is there; or that was, where it is known what was found."""
    for name, dataset, path, file in _templates(planning, EVERYTHING):
        words = planning.words(name, EVERYTHING)
        if planning.recorded is not None:
            for model in [model for found, model in planning.recorded if found == name]:
                output = planning.filled(path, file, {**words, "model": model})
                if output:
                    yield dataset.kind, model, output.path
            continue
        try:
            for model, where in search(file.path, words, planning.directory(path)):
                if not is_printable(model):
                    raise ValueError(f"found {where!r}, a model whose name cannot be printed; rename the file")
                yield dataset.kind, model, where
        except ValueError as error:
            planning.find((*path, "path"), str(error))
