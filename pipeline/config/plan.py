"""Plan of a config: datasets, models, tasks, comparison, gates and tracking."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal, TypeAlias

from rankledger.metrics.aliases import translate
from rankledger.metrics.measure import Measure
from rankledger.metrics.metric import Metric
from rankledger.pipeline.config.gates import PlannedGate
from rankledger.pipeline.config.loader import FILES
from rankledger.pipeline.config.messages import suggestion
from rankledger.pipeline.config.paths import absolute, fill, has_placeholder, search
from rankledger.pipeline.config.planned import (
    EVERYTHING,
    Plan,
    PlannedComparison,
    Planning,
    Task,
    choose_measures,
    choose_one_line,
    kind_of,
    planned_measures,
)
from rankledger.pipeline.config.schema import EXISTS, STABLE, Loaded
from rankledger.pipeline.config.sources import (
    Dataset,
    File,
    InMemory,
    Kind,
    Model,
    OutputFile,
    OutputKey,
    PlannedDataset,
    Replicate,
    Source,
    model_of,
)
from rankledger.pipeline.config.values import is_printable
from rankledger.pipeline.config.yaml import KeyPath

_AS_WRITTEN = PlannedDataset.__dataclass_fields__.keys() & Dataset.model_fields.keys() - {
    *FILES,
    "cluster",
    "slices",
    "suites",
}
_MOST_MEASURES = 1000  # of a suite
_ALL_PAIRS = "all_pairs"
_MANY = 10  # models, each with each: beyond, the correction for 55 pairs and more hides most differences
_ADD = {  # what is said to a measure whose input is not there
    "documents": "the whole catalogue is needed; add `documents:`, the file of all documents, or remove the measure",
    "features": "features of documents are needed; add `documents:`, a file with them, or remove the measure",
    "interactions": "earlier interactions are needed; add `interactions:`, those of training, or remove the measure",
    "subtopics": "subtopics are needed; add `subtopics: true` if the judgments have them, or remove the measure",
    "cluster": "clusters are needed; add `cluster:`, their column of the queries table, or remove the measure",
}


def _plan_datasets(planning: Planning) -> tuple[PlannedDataset, ...]:
    suites = {name: _measures(planning, ("suites", name), lines) for name, lines in planning.config.suites.items()}
    datasets = tuple(_dataset(planning, name, dataset, suites) for name, dataset in planning.config.datasets.items())
    _check_scores(planning, datasets)
    _warn_of_pooled(planning, datasets)
    return datasets


def _measures(planning: Planning, at: KeyPath, lines: Sequence[str], *, of_logs: bool = False) -> tuple[Measure, ...]:
    measures: dict[Measure, str] = {}
    for position, line in enumerate(lines):
        path = (*at, position)
        for measure in planning.measures(path, line):
            first = next(iter(measures), measure)
            if (kind_of(measure) == "logs") != of_logs:
                remedy = "put it in a suite" if of_logs else "write it under `logs` of a dataset"
                planning.find(path, f"{measure} is for {kind_of(measure)}; {remedy}")
            elif measure in measures:
                first_line = measures[measure]
                renamed = first_line != line and any(translate(each) != (each,) for each in (first_line, line))
                alike = f"'{first_line}' and '{line}' are one measure, {measure}"
                planning.find(path, f"{alike if renamed else f'{measure} is in the suite twice'}; keep one")
            elif kind_of(measure) != kind_of(first):
                kinds = f"{measure} is for {kind_of(measure)} and {first} for {kind_of(first)}"
                planning.find(path, f"{kinds}; put them in two suites")
            else:
                measures[measure] = line
        if len(measures) > _MOST_MEASURES:
            planning.find(path, f"the suite has more than {_MOST_MEASURES:,} measures by here; leave some out")
            break
    return tuple(measures)


def _dataset(
    planning: Planning, name: str, dataset: Dataset, suites: Mapping[str, tuple[Measure, ...]]
) -> PlannedDataset:
    files: dict[str, Any] = {}
    for key in FILES[:-2]:  # those of datasets
        file = getattr(dataset, key)
        path = ("datasets", name, key)
        files[key] = file and planning.source(path, file, planning.words(name), dataset.columns)
    if dataset.scores:
        suites_of = {"scores": tuple(score.measure(key) for key, score in dataset.scores.items())}
    elif dataset.logs:
        suites_of = {"logs": _measures(planning, ("datasets", name, "logs"), dataset.logs, of_logs=True)}
    else:
        suites_of = _choose_suites(planning, name, dataset, suites)
    measures = [measure for suite in suites_of.values() for measure in suite]
    ratings, judgments = files.pop("ratings"), files.pop("judgments")
    if judgments:
        for role, table in planning.tables(name, judgments).items():
            if files[role] is None and (role == "queries" or any(role in measure.metric.needs for measure in measures)):
                files[role] = table
    cluster = dataset.cluster or planning.config.cluster
    cluster = None if cluster == "query_id" else cluster  # each query is a cluster by itself
    slices = planning.config.slices if dataset.slices is None else dataset.slices
    if files["queries"] is None and cluster:
        _refuse_ungrouped(planning, name, "cluster", cluster)
    if files["queries"] is None and slices:
        _refuse_ungrouped(planning, name, "slices", slices[0])
    if dataset.was == name:
        planning.find(("datasets", name, "was"), "`was` is the old name of the dataset; write another name")
    planned = PlannedDataset(
        name=name,
        kind=dataset.kind,
        judgments=judgments or ratings,
        **files,
        **{key: getattr(dataset, key) for key in _AS_WRITTEN},
        keep_first=dataset.duplicates == "keep_first",
        suites=suites_of,
        cluster=cluster,
        slices=slices,
        search_slices=planning.config.comparison is not None and planning.config.comparison.search_slices,
    )
    _check_needs(planning, planned)
    defined = {suite: tuple(map(planned.defined, measures)) for suite, measures in planned.suites.items()}
    return planned.with_suites(defined)


def _choose_suites(
    planning: Planning, name: str, dataset: Dataset, suites: Mapping[str, tuple[Measure, ...]]
) -> dict[str, tuple[Measure, ...]]:
    of_kind = {
        suite: measures for suite, measures in suites.items() if measures and kind_of(measures[0]) == dataset.kind
    }
    for position, suite in enumerate(dataset.suites or ()):
        path = ("datasets", name, "suites", position)
        if suite not in suites:
            planning.find(path, f"unknown suite {suite!r}{suggestion(suite, of_kind)}")
        elif suite not in of_kind and suites[suite]:
            kind = kind_of(suites[suite][0])
            planning.find(path, f"the suite {suite!r} is for {kind}, and the dataset has {dataset.kind}; name another")
    if not of_kind and planning.knows_suites:
        message = f"no suite is for {dataset.kind}, which the dataset has; add one under `suites`"
        planning.find(("datasets", name), message)
    named = of_kind if dataset.suites is None else dataset.suites
    return {suite: of_kind[suite] for suite in named if suite in of_kind}


def _refuse_ungrouped(planning: Planning, name: str, key: Literal["cluster", "slices"], column: str) -> None:
    path: KeyPath = ("datasets", name, key) if getattr(planning.config.datasets[name], key) else ("datasets", name)
    made, instead = ("clusters", "cluster: query_id") if key == "cluster" else ("slices", "slices: []")
    planning.find(path, f"{made} by {column!r} need a queries table; add `queries:`, or write `{instead}`")


def _check_needs(planning: Planning, planned: PlannedDataset) -> None:
    lacking: dict[str, list[str]] = {}
    for measure in planned.measures:
        for need in measure.metric.needs:
            if not getattr(planned, need):
                of_features = need == "documents" and "feature" in measure.parameters
                lacking.setdefault(_ADD["features" if of_features else need], []).append(str(measure))
    for message, measures in lacking.items():
        planning.find(("datasets", planned.name), f"{', '.join(measures)}: {message}")


def _check_scores(planning: Planning, datasets: Sequence[PlannedDataset]) -> None:
    """Find scores with the name of another measure, because tables and MLflow know measures by name."""
    first_of: dict[str, tuple[Measure, str]] = {}
    pooled = dict.fromkeys(measure for dataset in datasets for measure in dataset.measures if measure.weighted)
    for dataset in sorted(datasets, key=lambda dataset: dataset.kind == "scores"):
        for measure in dataset.measures:
            key = ("logs",) if kind_of(measure) == "logs" else ("scores", str(measure))
            first, dataset_name = first_of.setdefault(measure.key, (measure, dataset.name))
            if first != measure and dataset.kind == "scores":
                message = (
                    f"has the name of another measure, {first} of the dataset {dataset_name!r}; choose another name"
                )
                planning.find(("datasets", dataset.name, *key), message)
            for other in pooled if kind_of(measure) == "scores" else ():
                if str(measure).startswith(f"{other}."):
                    message = f"is the name of a sum for {other}; choose another name"
                    planning.find(("datasets", dataset.name, *key), message)


def _warn_of_pooled(planning: Planning, datasets: Sequence[PlannedDataset]) -> None:
    """Warn of measures without a mean over datasets, because datasets define them by another `relevant`."""
    if planning.config.pooled:
        measures_of: dict[str, set[Measure]] = {}
        for measure in (measure for dataset in datasets for measure in dataset.measures):
            measures_of.setdefault(str(measure), set()).add(measure)
        unlike = [name for name, measures in measures_of.items() if len(measures) > 1]
        if unlike:
            listed = ", ".join(unlike)
            planning.warn(("pooled",), f"{listed}: not pooled, as datasets differ in `relevant`; write rel=… to pool")


_Outputs: TypeAlias = Mapping[str, Mapping[str, Source]]
"""Outputs of a model by dataset and replicate. The replicate is empty for a model of one output."""

_MOST_TASKS = 100_000
_KINDS: tuple[Kind, ...] = ("rankings", "ratings", "scores")


def _plan_models(
    planning: Planning, datasets: Sequence[PlannedDataset]
) -> tuple[Mapping[str, Model], tuple[Task, ...]]:
    entries = planning.config.models
    if len(entries) * len(datasets) > _MOST_TASKS:
        n_tasks = f"{len(entries):,} models on {len(datasets):,} datasets"
        planning.find(("models",), f"{n_tasks} are more than {_MOST_TASKS:,} evaluations; split the config")
        planning.refuse()
    listed = {name: _outputs(planning, name, name) for name in entries if name != EVERYTHING}
    searched = _search(planning, datasets, listed) if EVERYTHING in entries else {}
    outputs = listed | searched
    models: dict[str, Model] = {}
    for name, model in entries.items():
        _check_entry(planning, name, model)
        models |= dict.fromkeys(searched if name == EVERYTHING else [name], model)
    allowed = {
        (entry, dataset)
        for entry in entries
        for dataset, _, _, file in _templates(planning, entry)
        if file.allow_no_overlap
    }
    tasks = tuple(
        Task(dataset.name, model, output, replicate, (_entry(planning, model), dataset.name) in allowed)
        for dataset in datasets
        for model in models
        for replicate, output in outputs[model].get(dataset.name, {}).items()
    )
    _check_doubles(planning, tasks)
    _check_compared(planning, datasets, outputs)
    return models, tasks


def _plan_external_metrics(planning: Planning, models: Mapping[str, Model]) -> Mapping[str, Source]:
    external_metrics: dict[str, Source] = {}
    for name, model in models.items():
        if model.extra:
            entry = _entry(planning, name)
            words = {"date": planning.date, **model.keys, "model": name}
            file = planning.source(("models", entry, "extra"), model.extra, words)
            external_metrics |= {name: file} if file else {}
    return external_metrics


def _entry(planning: Planning, model: str) -> str:
    return model if model in planning.config.models else EVERYTHING


def _check_entry(planning: Planning, entry: str, model: Model) -> None:
    outputs = model.outputs
    datasets = planning.config.datasets
    if not outputs:
        message = "the model has no outputs; add `outputs:` to it or to `defaults: {model: …}`"
        planning.find(("models", entry), message)
    elif isinstance(outputs, dict):
        for dataset in [name for name in outputs if name not in datasets]:
            message = f"unknown dataset {dataset!r}{suggestion(dataset, datasets)}"
            planning.find(("models", entry, "outputs", dataset), message)
    if model.was is not None and entry in (EVERYTHING, model.was):
        message = "`was` is the old name of one model; write it under that model's new name"
        planning.find(("models", entry, "was"), message)
    for key in ("model_id", "model_uri"):
        if entry == EVERYTHING and getattr(model, key) is not None:
            planning.find(("models", entry, key), "it names one logged model, not every model; list that model by name")


def _check_doubles(planning: Planning, tasks: Sequence[Task]) -> None:
    readers: dict[tuple[str, str], str] = {}
    for task in tasks:
        output = replace(task.output, held=None)
        first = readers.setdefault((task.dataset, repr(output)), task.model)
        if first != task.model:
            path = ("models", _entry(planning, task.model), "outputs")
            message = f"the model reads the same output as {first!r}"
            planning.find(path, f"{message}; use a file for each, as with {{model}} in the path")


def _check_compared(planning: Planning, datasets: Sequence[PlannedDataset], outputs: Mapping[str, _Outputs]) -> None:
    for dataset in datasets:
        present = {model: files[dataset.name] for model, files in outputs.items() if dataset.name in files}
        families = [model for model, files in present.items() if any(files)]
        for measure in dataset.measures:
            message = ""
            if measure.metric.input in ("rankings", "outputs"):
                named = str(measure.parameters["model"])
                named_here = [
                    model
                    for model in {named.replace("{model}", candidate): "" for candidate in present}
                    if model in present
                ]
                compares = f"{measure} compares with {named!r}"
                if not named_here:
                    message = f"{compares}, but no model here has that name{suggestion(named, present)}"
                elif any(model in families for model in named_here):
                    message = f"{compares}, which has replicates; name a model with one output"
            if not message and families and measure.moments is not None:
                message = f"{measure} cannot be averaged over the replicates of {families[0]!r}; remove one of them"
            if message:
                planning.find(("datasets", dataset.name), message)


def _templates(planning: Planning, entry: str) -> Iterator[tuple[str, Dataset, KeyPath, OutputFile]]:
    outputs = planning.config.models[entry].outputs
    for name, dataset in planning.config.datasets.items():
        if isinstance(outputs, File):
            yield name, dataset, ("models", entry, "outputs"), outputs
        elif outputs and name in outputs:
            yield name, dataset, ("models", entry, "outputs", name), outputs[name]


def _outputs(planning: Planning, entry: str, model: str, kinds: Container[Kind] = _KINDS) -> _Outputs:
    outputs = {}
    for name, dataset, path, file in _templates(planning, entry):
        words = {**planning.words(name, entry), "replicate": "*", "model": model}
        replicates = _replicates(planning, (name, model), path, file, words) or [""]
        filled = {
            replicate: planning.source(path, file, {**words, "replicate": replicate or "*"}, dataset.output_columns)
            for replicate in replicates
        }
        outputs_here = {replicate: output for replicate, output in filled.items() if output}
        if file.select and dataset.kind != "scores":
            planning.find((*path, "select"), f"`select` has no effect on {dataset.kind}; remove it")
        if outputs_here and dataset.kind in kinds:
            outputs[name] = outputs_here
    return outputs


def _is_family(file: OutputFile) -> bool:
    return any(has_placeholder(text, "replicate") for text in (file.path, *file.select.values()))


def _replicates(
    planning: Planning, task: tuple[str, str], path: KeyPath, file: OutputFile, words: Mapping[str, str | None]
) -> list[str]:
    entry = planning.config.models[str(path[1])]
    if not _is_family(file):
        if entry.replicates is not None or entry.shared_seeds:
            key = "replicates" if entry.replicates is not None else "shared_seeds"
            planning.find(
                (*path[:2], key), f"`outputs` has no {{replicate}}; write it into the path, or remove `{key}`"
            )
        return []
    if entry.replicates is not None:
        return [*entry.replicates]
    if not has_placeholder(file.path, "replicate"):
        message = "`select` has {replicate}, and files do not tell which there are; add replicates: [1, 2, 3]"
        planning.find((*path, "select"), message)
        return []
    if planning.recorded is not None:
        recorded = [model for dataset, model in planning.recorded if model_of((dataset, model)) == task]
        return [model.name for model in recorded if isinstance(model, Replicate)]
    try:
        return [name for name, _ in search(file.path, words, planning.directory(path), "replicate")]
    except ValueError as error:
        planning.find((*path, "path"), str(error))
        return []


def _search(
    planning: Planning, datasets: Sequence[PlannedDataset], listed: Mapping[str, _Outputs]
) -> dict[str, _Outputs]:
    """Return the outputs of searched models, expected on every dataset of a kind with one output."""
    n_findings = len(planning.findings)
    tables = {file.path for dataset in datasets for file in dataset.files}
    matches = [match for match in _matches(planning) if match[2] not in tables]
    templates = [planning.directory(path) / file.path for _, _, path, file in _templates(planning, EVERYTHING)]
    if templates and not matches and len(planning.findings) == n_findings:
        searched = ", ".join(dict.fromkeys(map(str, templates)))
        planning.find(("models", EVERYTHING), f"no file matches {searched}; fix the path or list the models")
    outputs = {file.path for files in listed.values() for replicates in files.values() for file in replicates.values()}
    kinds: dict[str, set[Kind]] = {}
    for kind, model, file in matches:
        if model not in listed and file not in outputs:
            kinds.setdefault(model, set()).add(kind)
    return {model: _outputs(planning, EVERYTHING, model, kinds[model]) for model in sorted(kinds)}


def _matches(planning: Planning) -> Iterator[tuple[Kind, str, str]]:
    for name, dataset, path, file in _templates(planning, EVERYTHING):
        words = planning.words(name, EVERYTHING)
        if planning.recorded is not None:
            for model in [model_of(key)[1] for key in planning.recorded if key[0] == name]:
                output = planning.source(path, file, {"replicate": "*", **words, "model": model})
                if output:
                    yield dataset.kind, model, output.path
            continue
        try:
            for model, path_found in search(file.path, words, planning.directory(path)):
                if not is_printable(model):
                    raise ValueError(f"found {path_found!r}, a model whose name cannot be printed; rename the file")
                yield dataset.kind, model, path_found
        except ValueError as error:
            planning.find((*path, "path"), str(error))


def _plan_comparison(
    planning: Planning, datasets: Sequence[PlannedDataset], models: Mapping[str, Model], tasks: Sequence[Task]
) -> PlannedComparison | None:
    section = planning.config.comparison
    if section is None:
        return None
    baselines, is_all_pairs = section.baselines, section.baseline == _ALL_PAIRS
    for name in baselines:
        if name not in models and not is_all_pairs:
            hint = suggestion(name, [*models, _ALL_PAIRS])
            planning.find(("comparison", "baseline"), f"unknown model {name!r}{hint}")
    if is_all_pairs and len(models) > _MANY:
        pairs = f"all pairs of {len(models)} models are {len(models) * (len(models) - 1) // 2} comparisons"
        planning.warn(("comparison", "baseline"), f"{pairs}, so the correction is strict; name a baseline instead")
    if section.search_slices and not any(dataset.queries for dataset in datasets):
        message = "slices are searched by the columns of a queries table, and no dataset has one; add `queries:`"
        planning.find(("comparison", "search_slices"), message)
    lines = section.measures
    every = [measure for dataset in datasets for measure in dataset.measures if measure.metric.per == "query"]
    chosen = every if lines is None else choose_measures(planning, ("comparison", "measures"), lines, datasets)
    models_of = {
        dataset.name: [*dict.fromkeys(task.model for task in tasks if task.dataset == dataset.name)]
        for dataset in datasets
    }
    for dataset, names in models_of.items():
        if len(names) > 1 and not is_all_pairs and not set(baselines).intersection(names):
            message = f"{', '.join(baselines)} has no output on {dataset}, so its {len(names)} models are not compared"
            listed = ", ".join([*baselines, names[0]])
            planning.warn(
                ("comparison", "baseline"), f"{message}. Set baseline: [{listed}], or another model of {dataset}"
            )
    return PlannedComparison(
        pairs={name: _pairs(baselines, names) for name, names in models_of.items()},
        measures={
            dataset.name: tuple(measure for measure in dataset.measures if measure in chosen) for dataset in datasets
        },
        rules=section,
    )


def _pairs(baselines: Sequence[str], models: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of model and baseline on one dataset. For all pairs the first by name is the baseline."""
    if baselines == (_ALL_PAIRS,):
        return tuple((second, first) for first, second in combinations(sorted(models), 2))
    baseline = next((name for name in baselines if name in models), None)
    return tuple((model, baseline) for model in models if baseline is not None and model != baseline)


def _plan_lead(
    planning: Planning, datasets: Sequence[PlannedDataset], comparison: PlannedComparison | None
) -> dict[str, Measure]:
    line = planning.config.lead
    there = [*dict.fromkeys(measure for dataset in datasets for measure in dataset.measures)]
    chosen = [] if line is None else planned_measures(planning, ("lead",), line, there)
    if len(chosen) > 1:
        planning.find(("lead",), f"{line} is {len(chosen)} measures: {', '.join(map(str, chosen))}; write one")
    for measure in chosen if comparison else ():
        with_measure = [dataset.name for dataset in datasets if measure in dataset.measures]
        lacking = [
            name
            for name in with_measure
            if comparison and comparison.pairs[name] and measure not in comparison.measures[name]
        ]
        if lacking:
            on = f"models are not compared by {measure} on {', '.join(lacking)}"
            message = f"{on}, and differences lead with another measure; add it to `comparison.measures`"
            planning.warn(("lead",), message)
    return {
        dataset.name: next((measure for measure in chosen if measure in dataset.measures), dataset.measures[0])
        for dataset in datasets
        if dataset.measures
    }


def markers(loaded: Loaded, planned: Plan) -> Mapping[OutputKey, str]:
    """Return the name of each output's marker file. Empty if there are none."""
    config = loaded.config
    if config.nightly.ready in (EXISTS, STABLE):
        return {}
    paths = {}
    for task in planned.tasks:
        variables = {**config.datasets[task.dataset].keys, **planned.models[task.model].keys}
        words = {"dataset": task.dataset, "date": planned.date, **variables, "model": task.model}
        words |= {"replicate": task.replicate} if task.replicate else {}
        try:
            paths[task.key] = fill(config.nightly.ready, words)
        except ValueError as error:
            loaded.document.refuse([(("nightly", "ready"), str(error))])
    return paths


def unlisted_replicates(loaded: Loaded) -> list[tuple[KeyPath, str]]:
    """Return the models with unlisted replicates, which `nightly` cannot wait for."""
    message = "`{replicate}` without a list, so `nightly` cannot know what to wait for; add replicates: [1, 2, 3]"
    return [
        (("models", entry, "outputs"), message)
        for entry, model in loaded.config.models.items()
        if model.replicates is None
        and any(map(_is_family, [model.outputs] if isinstance(model.outputs, File) else (model.outputs or {}).values()))
    ]


def unpaired_gates(loaded: Loaded, planned: Plan) -> Iterator[tuple[KeyPath, str]]:
    """Yield the models that a gate compares with earlier records without pairing replicates by seed."""
    families = dict.fromkeys(task.model for task in planned.tasks if task.replicate)
    for gate in planned.gates:
        if gate.against is None or gate.against.record is None or gate.against.model is not None:
            continue
        for model in dict.fromkeys(model for _, model in gate.tasks):
            if model in families and not planned.models[model].shared_seeds:
                entry = model if model in loaded.config.models else EVERYTHING
                message = f"gate {gate.name} compares other replicates of {model}, not pairs of the same seed"
                yield ("models", entry), f"{message}; if their seeds are the same, add shared_seeds: true"


def unmatched_searches(loaded: Loaded, date: str | None) -> tuple[str, ...]:
    """Return the patterns of outputs if models are searched for and none exists yet."""
    if EVERYTHING not in loaded.config.models:
        return ()
    planning = Planning(loaded, date)
    tables = {file.path for dataset in _plan_datasets(planning) for file in dataset.files}
    if any(match[2] not in tables for match in _matches(planning)) or planning.findings:  # a wrong search is refused
        return ()
    patterns = []
    for name, _, path, file in _templates(planning, EVERYTHING):
        words = {"replicate": "*", **planning.words(name, EVERYTHING), "model": "*"}
        patterns.append(absolute(fill(file.path, words), planning.directory(path)))
    return tuple(dict.fromkeys(patterns))


def plan(
    loaded: Loaded,
    date: str | None = None,
    recorded: Sequence[OutputKey] | None = None,
    metrics: Mapping[str, Metric] | None = None,
    roles: Mapping[str, Collection[str]] | None = None,
    given: Mapping[str, Metric] | None = None,
    held: Mapping[str, InMemory] | None = None,
) -> Plan:
    """Return the plan of a config.

    Args:
        loaded: Config and its origins.
        date: Value of `{date}` in paths.
        recorded: Outputs of an earlier evaluation, taken in place of searched ones. They need not exist.
        metrics: Custom metrics of an earlier evaluation. None loads and runs the config's.
        roles: Roles of the files of each dataset of an earlier evaluation. None looks into folders.
        given: Metrics in memory by name.
        held: Inputs in memory by their paths in the config.

    Raises:
        InputError: All findings at once, one line each.
    """
    planning = Planning(loaded, date, recorded, metrics, roles, given, held)
    datasets = _plan_datasets(planning)
    models, tasks = _plan_models(planning, datasets)
    external_metrics = _plan_external_metrics(planning, models)
    comparison = _plan_comparison(planning, datasets, models, tasks)
    there = [*dict.fromkeys(measure for dataset in datasets for measure in dataset.measures)]
    unlike: dict[str, list[str]] = {}
    for measure in there:
        text = planning.config.conventions.resolved.describe_difference(measure.metric.name, str(measure))
        unlike.setdefault(text, []).append(str(measure))
    for text, measures in unlike.items():
        if text:
            planning.warn(("conventions",), f"{', '.join(measures)}: {text}")
    practical_difference = {
        str(measure): margin
        for line, margin in planning.config.practical_difference.items()
        for measure in choose_one_line(planning, ("practical_difference", line), line, there)
    }
    gates: tuple[PlannedGate, ...] = ()
    if planning.config.gates:
        from rankledger.pipeline.config.plan_gates import plan_gates

        gates = plan_gates(planning, datasets, models, tasks, external_metrics)
    lead = _plan_lead(planning, datasets, comparison)
    if any(model.promote for model in planning.config.models.values()):
        from rankledger.pipeline.config.plan_gates import check_promotions

        check_promotions(planning, tasks, gates)
    planning.refuse()
    return Plan(
        date,
        datasets,
        models,
        tasks,
        external_metrics,
        comparison,
        lead,
        practical_difference,
        gates,
        records=planning.records(),
        cache=planning.cache(),
        warnings=tuple(planning.warnings),
        places=planning.places,
        metrics=planning.metrics,
    )
