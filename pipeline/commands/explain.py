"""Explanation of one score of a config or record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rankledger.metrics.conventions import PROFILES, Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.commands.reproduce import locate
from rankledger.pipeline.config.messages import suggestion
from rankledger.pipeline.config.paths import WORDS
from rankledger.pipeline.config.planned import Plan, Task, kind_of
from rankledger.pipeline.config.sources import PlannedDataset
from rankledger.pipeline.data.dataset import DatasetInput, SingleQuery, read_dataset
from rankledger.pipeline.data.outputs import refuse_changed
from rankledger.pipeline.explain import PAIR_TERMS, Explanation, RecordedScore, compare
from rankledger.pipeline.explain import explain as take_apart
from rankledger.pipeline.history.references import source_of_reference
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.scores import read_score
from rankledger.pipeline.record.workspace import Opened, Workspace, evaluated_inputs, open_source
from rankledger.pipeline.support.errors import InputError, likely


def explain(
    source: str | Path,
    *,
    model: str,
    query: str,
    against: str | None = None,
    measure: str | None = None,
    dataset: str | None = None,
    replicate: str | None = None,
    under: str | None = None,
    name: str | None = None,
    overrides: Sequence[str] = (),
    date: str | None = None,
    inputs: str | Path | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
) -> Explanation:
    """Explain the score of one query by its documents.

    Only the judgments and the outputs of the named models on that dataset are read.

    Args:
        source: Config, or a record whose inputs have not changed: its path or id, `last`, `last_passed`, `previous` or
            `accepted`.
        model: Model to explain.
        query: Query to explain.
        against: Second model whose score of the query is explained, too.
        measure: Measure, in a suite or not. By default the dataset's primary measure.
        dataset: Dataset. By default the one that judges the query.
        replicate: Replicate. Required if the model has several.
        under: Profile under which the score is shown, too.
        name: Evaluation that the words refer to. Optional if only one has records.
        overrides: `key.path=value` texts that set keys of the config.
        date: Value of `{date}` in the config's paths.
        inputs: Folder that the inputs of a record moved to. They are found by size and digest.
        runs_dir: Runs folder.
        records: Records location, by default as in the evaluated config.

    Raises:
        InputError: A name is unknown, an input is wrong or has changed, or the record has another score.
    """
    workspace = Workspace.open(runs_dir, records, wanted=name or str(source))
    source = source_of_reference(f"{source}#{model}" if source in WORDS else source, name, workspace)
    if (overrides or date) and workspace.records.find(str(source)):
        raise InputError(f"{source}: a record is explained as it was evaluated; remove --set and --date")
    opened = open_source(source, workspace, overrides=overrides, date=date, tracking=False)
    if inputs and opened.record is None:
        raise InputError("--inputs is for records; a config names its inputs itself, remove it")
    return explain_opened(
        opened,
        model=model,
        query=query,
        against=against,
        measure=measure,
        dataset=dataset,
        replicate=replicate,
        under=under,
        inputs=inputs,
    )


def explain_opened(
    opened: Opened, *, model: str, against: str | None = None, replicate: str | None = None, **choices: Any
) -> Explanation:
    """Explain a score of an opened config or record. See `explain`."""
    if against == model:
        raise InputError(f"--model: {model!r} is named twice; name another one to compare it with")
    found = _explain_output(opened, model, replicate, **choices)
    if against is None:
        return found
    if not any(task.replicate for task in opened.planned.tasks if task.model == against):
        replicate = None
    other = _explain_output(opened, against, replicate, **{**choices, "dataset": found.dataset})
    return replace(found, against=other)


def _keep_replicate(planned: Plan, model: str, dataset: str | None, replicate: str | None) -> Plan:
    """Return the plan with one output of the model."""
    own = [task for task in planned.tasks if task.model == model and dataset in (None, task.dataset)]
    known = [*dict.fromkeys(task.replicate for task in own if task.replicate)]
    if replicate is None and len(known) == 1:
        replicate = known[0]
    if replicate is None and known:
        listed = ", ".join(known)
        raise InputError(f"--replicate: {model!r} has the replicates {listed}, each with its own scores; name one")
    if replicate is not None and own and replicate not in known:
        refused = f"has no replicate {replicate!r}{suggestion(replicate, known)}" if known else "has no replicates"
        raise InputError(f"--replicate: {model!r} {refused}")
    tasks = [task for task in planned.tasks if task not in own or task.replicate in ("", replicate)]
    return replace(planned, tasks=tuple(tasks))


@contextmanager
def _locate_inputs(opened: Opened, model: str, dataset: str | None, inputs: str | Path | None) -> Iterator[Plan]:
    if opened.record is None:
        yield opened.planned
        return
    datasets = tuple(found for found in opened.planned.datasets if dataset in (None, found.name))
    tasks = tuple(task for task in opened.planned.tasks if task.model == model and dataset in (None, task.dataset))
    own = replace(opened.planned, datasets=datasets, tasks=tasks, external_metrics={})
    folder = Path(inputs) if inputs else None
    with TemporaryDirectory(prefix="rankledger-") as scratch:
        find = partial(locate, own, opened.record, folder=folder, scratch=Path(scratch))
        try:
            yield find()[0] if inputs else opened.planned
        except InputError:
            if not inputs:
                find()
            raise


def _explain_output(
    opened: Opened,
    model: str,
    replicate: str | None,
    *,
    query: str,
    measure: str | None = None,
    dataset: str | None = None,
    under: str | None = None,
    inputs: str | Path | None = None,
) -> Explanation:
    opened = replace(opened, planned=_keep_replicate(opened.planned, model, dataset, replicate))
    with _locate_inputs(opened, model, dataset, inputs) as planned:
        record = opened.record
        profile = opened.loaded.config.conventions.resolved
        wanted = _choose_measure(planned, measure or _lead(planned, dataset), dataset, profile)
        other = None if under is None else _choose_profile(under, wanted)
        tasks = _choose_tasks(planned, wanted, model, dataset)
        single, task = _find(query, tasks, wanted, profile, record)
        if record is not None:
            before = evaluated_inputs(record).outputs.get(task.key, ())
            if not before:
                refused = f"{task.model!r} was not evaluated on {task.dataset!r}, for its output was refused"
                raise InputError(f"{record.path}: {refused}")
            refuse_changed(before, single.files(profile.conventions))
        relevant = next(found.relevant for found, _ in tasks if found.name == task.dataset)
        wanted = wanted if relevant is None else wanted.with_default("rel", relevant)
        listed = single.listed(profile.conventions)
        found = take_apart(listed, wanted, profile, dataset=task.dataset, model=model)
        return replace(
            found,
            replicate=task.replicate,
            comparison=None if other is None else compare(single.listed, wanted, profile, other),
            recorded=None if record is None else _read_recorded(record, found, task.replicate),
        )


def _lead(planned: Plan, dataset: str | None) -> str:
    lead = {name: str(measure) for name, measure in planned.lead.items()}
    lead = {name: measure for name, measure in lead.items() if name == dataset} or lead
    if len(set(lead.values())) != 1:
        listed = ", ".join(f"{measure} on {name}" for name, measure in lead.items()) or "none"
        raise InputError(f"several lead measures ({listed}); name one with --measure")
    return next(iter(lead.values()))


def _find(
    query: str,
    tasks: Sequence[tuple[PlannedDataset, Task]],
    measure: Measure,
    profile: Profile,
    record: Evaluation | None,
) -> tuple[SingleQuery, Task]:
    found: list[tuple[SingleQuery, Task]] = []
    known: list[str] = []
    for dataset, task in tasks:
        read = _read(dataset, measure, profile, record)
        known += read.judgments.query_ids.tolist()
        if query in read.judgments.query_ids:
            found.append((SingleQuery(read, task.output.shown, query, dataset.keep_first), task))
    names = ", ".join(task.dataset for _, task in (found or tasks))
    if not found:
        raise InputError(f"the query {query!r} is not judged in {names}{likely(query, known)}")
    if len(found) > 1:
        raise InputError(f"the query {query!r} is judged in {names}; name one with --dataset")
    return found[0]


def _read(dataset: PlannedDataset, measure: Measure, profile: Profile, record: Evaluation | None) -> DatasetInput:
    counting = "documents" in measure.metric.needs or measure.parameters.get("d")  # d of utility: what is left alone
    documents = dataset.documents if counting else None
    interactions = dataset.interactions if dataset.kind == "rankings" else None  # what was seen may be left out
    needed = replace(dataset, queries=None, interactions=interactions, documents=documents).with_suites({})
    read = read_dataset(needed.shown, profile.conventions)
    if record is not None:
        evaluated_inputs(record).refuse_other_files(dataset.name, read.files)
    return read


def _read_recorded(record: Evaluation, found: Explanation, replicate: str) -> RecordedScore:
    name = str(found.measure)
    stored = read_score(record, found.dataset, found.model, found.query_id, name, replicate)
    definition = record.manifest.fingerprint(found.dataset, name)
    same = definition == found.measure.fingerprint(found.profile)
    value = math.nan if found.outcome.value is None else found.outcome.value
    if stored is not None and not np.isclose(stored, value, rtol=1e-12, atol=1e-12, equal_nan=True):
        why = "of the same definition" if same else "the definition has changed since"
        raise InputError(
            f"{record.path}: {name} of query {found.query_id!r} is {stored!r} in scores.parquet and comes to {value!r} "
            f"now, {why}; explain {record.path / 'config.yaml'} to see it as it is now"
        )
    return RecordedScore(record.manifest.evaluation_id, measured=stored is not None, same_definition=same)


def _choose_measure(planned: Plan, text: str, dataset: str | None, profile: Profile) -> Measure:
    for found in planned.datasets:
        if found.kind == "scores" and dataset in (None, found.name) and text in map(str, found.measures):
            what = "a measure of logs" if "logs" in found.suites else "an external score"
            refused = f"{text} of {found.name!r} is {what}, which cannot be explained"
            raise InputError(f"{refused}; name a measure of rankings or ratings")
    try:
        measure = Measure.parse(text, profile, planned.metrics)
    except ValueError as error:
        raise InputError(str(error)) from None
    if measure.metric.per == "dataset":
        raise InputError(f"{measure} is one figure of the whole dataset; there is no score of a query to explain")
    if measure.metric.input in ("catalogue", "rankings", "outputs") or "cluster" in measure.metric.needs:
        raise InputError(f"{measure} uses more than judgments and ranks; it cannot be explained")
    if measure.metric.code and not (measure.metric.input == "judged" and measure.metric.has_terms):
        raise InputError(f"{measure} has no terms to explain: its function is not made with from_terms")
    if measure.metric.input == "ratings" and measure.metric.name not in PAIR_TERMS:
        raise InputError(f"{measure} is not a sum over the pairs of a query; explain {', '.join(PAIR_TERMS)}")
    return measure


def _choose_profile(name: str, measure: Measure) -> Profile:
    if name not in PROFILES:
        raise InputError(f"unknown profile {name!r}{suggestion(name, PROFILES)}")
    if measure.metric.input == "ratings":
        raise InputError(f"{measure} is for ratings, which no convention changes; remove --under")
    return PROFILES[name]


def _choose_tasks(
    planned: Plan, measure: Measure, model: str, dataset: str | None
) -> list[tuple[PlannedDataset, Task]]:
    datasets = {found.name: found for found in planned.datasets}
    if model not in planned.models:
        raise InputError(f"unknown model {model!r}{suggestion(model, planned.models)}")
    if dataset is not None and dataset not in datasets:
        raise InputError(f"unknown dataset {dataset!r}{suggestion(dataset, datasets)}")
    tasks = [task for task in planned.tasks if task.model == model and dataset in (None, task.dataset)]
    if not tasks:
        raise InputError(f"the model {model!r} is not evaluated on {dataset or 'any dataset'}; name another")
    lacking = [(datasets[task.dataset], task, _find_lack(datasets[task.dataset], measure)) for task in tasks]
    found = [(planned_dataset, task) for planned_dataset, task, reason in lacking if reason is None]
    if not found:
        raise InputError(f"{lacking[0][2]}; name another measure or dataset")
    return found


def _find_lack(dataset: PlannedDataset, measure: Measure) -> str | None:
    """Return the reason why the measure cannot be computed on the dataset. None if it can."""
    metric = measure.metric
    if kind_of(measure) != dataset.kind:
        return f"{measure} is for {kind_of(measure)}, and the dataset {dataset.name!r} has {dataset.kind}"
    lacking = [need for need in metric.needs if not getattr(dataset, need)]
    return f"{measure} needs {lacking[0]}, and the dataset {dataset.name!r} has none" if lacking else None
