"""Pages of an evaluation, from its tables, the records that its manifest pins, and its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.data.dataset import DatasetInput
from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.history.changes import (
    ShownDataset,
    ShownOutput,
    changed_queries,
    counted_scores,
    oriented,
    query_details,
)
from rankledger.pipeline.history.history import History, known_history
from rankledger.pipeline.inference.tables import ALL, Comparison, CurvePoint, PairedScores, QueryChange
from rankledger.pipeline.record.evaluation import Evaluation, QueryDetail
from rankledger.pipeline.record.folder import read_query_changes, read_query_details, read_record
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.record.scores import read_column
from rankledger.pipeline.record.store import digest_of
from rankledger.pipeline.record.tables import damaged_files, fitting_details
from rankledger.pipeline.record.workspace import Opened, Workspace
from rankledger.pipeline.report.tables import Interval, Key, MeasureColumn, display_name, group_by_key, measure_columns
from rankledger.pipeline.support.errors import InputError

if TYPE_CHECKING:
    from rankledger.pipeline.history.baselines import RecordedDataset
Column: TypeAlias = tuple[npt.NDArray[np.object_], Floats, Bools]
"""(Q,) ids of queries, scores by one measure, and True for queries without output."""

ShownPair: TypeAlias = tuple[PairedScores, Evaluation | None]
"""Pair with its scores, and the record of the baseline if that is another one."""

_Pair: TypeAlias = tuple[str, str, str, str, str]
"""Dataset, model, baseline, and the record of the baseline with the digest of its manifest, empty if it is this one."""

_MOST_PAIRS = 8  # each with two charts and its queries: 65 kB of a page


def page_of(record: Evaluation, workspace: Workspace, *, with_history: bool = True) -> Page:
    """Make the page of a finished record, with the history known when it was written.

    Raises:
        OSError: The records location cannot be reached.
    """
    shown, remarks = _show_pairs(record, partial(read_column, record), workspace)
    page = _make_page(record, shown, remarks, read_query_changes(record), read_query_details(record))
    return _add_history(page, workspace) if with_history else page


def new_page(
    evaluation: Evaluation, opened: Opened, inputs: Inputs, workspace: Workspace
) -> tuple[Page, tuple[QueryChange, ...]]:
    """Make the page of an unrecorded evaluation. Also return the queries on it that changed most."""
    scored = {(scores.dataset, scores.model): scores for scores in evaluation.results}
    shown, remarks = _show_pairs(evaluation, partial(_column, scored), workspace)
    query_changes = tuple(_largest_changes(shown, inputs, evaluation.manifest))
    details = fitting_details(_details(shown, query_changes, opened, inputs, evaluation.manifest))
    return _add_history(_make_page(evaluation, shown, remarks, query_changes, details), workspace), query_changes


def _column(scored: Mapping[tuple[str, str], Scores], dataset: str, model: str, measure: str) -> Column | None:
    scores = scored.get((dataset, model))
    for row, own in enumerate(scores.measures if scores else ()):
        if scores and str(own) == measure:
            return scores.query_ids, scores.values[row], scores.missing
    return None


def _make_page(
    evaluation: Evaluation,
    shown: Sequence[ShownPair],
    remarks: Sequence[str],
    query_changes: Sequence[QueryChange],
    details: Sequence[QueryDetail],
) -> Page:
    by_pair: dict[tuple[str, str, str], list[QueryChange]] = {}
    for query in query_changes:
        by_pair.setdefault((query.dataset, query.model, query.baseline), []).append(query)
    pairs = (
        replace(pair, largest_changes=tuple(by_pair.get((pair.dataset, pair.model, pair.baseline), ())))
        for pair, _ in shown
    )
    return Page(
        title=" ".join(filter(None, (evaluation.name, evaluation.manifest.date))),
        evaluation=replace(evaluation, warnings=()),
        manifest=evaluation.manifest,
        curves=tuple(evaluation.curves),
        pairs=tuple(pairs),
        remarks=tuple(remarks),
        details=tuple(details),
    )


def _add_history(page: Page, workspace: Workspace) -> Page:
    history, remarks = known_history(page.evaluation, page.manifest, workspace)
    return replace(page, history=history, remarks=(*page.remarks, *remarks))


def _show_pairs(
    evaluation: Evaluation, read: Callable[[str, str, str], Column | None], workspace: Workspace
) -> tuple[list[ShownPair], list[str]]:
    """Return the pairs to show query by query, and remarks on the others."""
    pinned = cache(partial(_read_pinned, workspace))  # each is opened once: it may have as many lines as this one
    leading = evaluation.leading_difference
    pairs = [
        list(dict.fromkeys((*_against_records(evaluation, dataset), *_list_compared(evaluation, dataset))))
        for dataset in leading
    ]
    n_each = max(1, _MOST_PAIRS // max(1, len([own for own in pairs if own])))
    chosen = [pair for own in pairs for pair in own[:n_each]][:_MOST_PAIRS]
    n_pairs = sum(map(len, pairs))
    shown, remarks = list[ShownPair](), list[str]()
    if len(chosen) < n_pairs:
        cut = f"{len(chosen)} of {n_pairs} pairs are shown query by query"
        remarks.append(f"{cut}; `rankledger compare` shows any other")
    for dataset, model, baseline, evaluation_id, sha256 in chosen:
        measure = leading[dataset]
        label = f"{baseline} in {evaluation_id}" if evaluation_id else baseline
        record: Evaluation | None = None
        if evaluation_id:
            pin = pinned(evaluation_id, sha256)
            problem = pin if isinstance(pin, str) else _incomparable(pin, evaluation, dataset, measure)
            if isinstance(pin, str) or problem:
                remarks.append(f"{model} against {label} is not shown on {dataset}: {problem}")
                continue
            record, before = pin, read_column(pin, _name_then(pin, evaluation, dataset), baseline, measure)
        else:
            before = read(dataset, baseline, measure)
        after = read(dataset, model, measure)
        if before is None or after is None:
            continue
        if before[0].tolist() != after[0].tolist():
            remarks.append(f"{model} against {label} is not shown on {dataset}: the queries were others")
            continue
        rule = evaluation.manifest.conventions.resolved.conventions.missing_queries
        old, new = (counted_scores(scores, missing, rule) for _, scores, missing in (before, after))
        change = oriented(old, new, evaluation.directions[measure])
        scores = PairedScores(dataset, model, label, measure, after[0], old, new, change)
        shown.append((replace(scores, record=evaluation_id, baseline_model=baseline), record))
    return shown, remarks


def _against_records(evaluation: Evaluation, dataset: str) -> Iterator[_Pair]:
    for verdict in sorted(evaluation.verdicts, key=lambda verdict: verdict.outcome in ("pass", "not judged")):
        found = evaluation.manifest.baselines.get(verdict.gate, {}).get(verdict.model)
        if verdict.dataset == dataset and found and found.record and dataset not in found.new_datasets:
            yield dataset, verdict.model, found.model, found.record, str(found.manifest_sha256)


def _list_compared(evaluation: Evaluation, dataset: str) -> list[_Pair]:
    measure = evaluation.leading_difference[dataset]
    lines = [
        line
        for line in evaluation.comparison_lines
        if (line.dataset, line.slice, line.measure) == (dataset, ALL, measure)
    ]
    sign = 1 if evaluation.directions[measure] == "lower" else -1
    lines.sort(key=lambda line: (line.estimate is None, sign * (line.estimate or 0.0)))
    return [(dataset, line.model, line.baseline, "", "") for line in lines]


def _name_then(record: Evaluation, evaluation: Evaluation, dataset: str) -> str:
    return record.manifest.name_then(dataset, evaluation.manifest.datasets[dataset].was)


def _incomparable(record: Evaluation, evaluation: Evaluation, dataset: str, measure: str) -> str:
    then = record.manifest.comparability(_name_then(record, evaluation, dataset), measure)
    differences = then.differences(evaluation.manifest.comparability(dataset, measure))
    kinds = [change.kind for change in differences if change.kind != "queries"]
    return f"the {' and the '.join(kinds)} of {measure} changed" if kinds else ""


def _read_pinned(workspace: Workspace, evaluation_id: str, sha256: str) -> Evaluation | str:
    """Return a record, or the reason why there is none."""
    try:
        path = workspace.records.fetch(evaluation_id)
        if path is None or digest_of(path) != sha256:
            return "the record is not at hand"
        record = read_record(path)
    except (InputError, OSError):
        return "the record cannot be read"
    return "its files are not what was written" if any(damaged_files(record)) else record


_MOST_QUERIES = 10
_MOST_DOCUMENTS = 20  # of one query: a pooled collection has hundreds of relevant ones


def _largest_changes(shown: Sequence[ShownPair], inputs: Inputs, manifest: Manifest) -> Iterator[QueryChange]:
    recorded = cache(partial(_recorded_dataset, manifest))  # pairs share the judgments that their baselines had
    for scores, record in shown:
        if not np.nan_to_num(scores.change).any():
            continue
        before, after = None, inputs.ranks(scores.dataset, scores.model)
        if record is None:
            before = inputs.ranks(scores.dataset, scores.baseline_model)
        else:
            from rankledger.pipeline.history.baselines import retrieved_ranks

            with suppress(InputError, OSError):  # neither the output cache nor the output itself has it any more
                before = retrieved_ranks(recorded(record.path, scores.dataset), scores.baseline_model)
        ranked = None if before is None or after is None else (before, after)
        yield from changed_queries(scores, _MOST_QUERIES, ranked, _MOST_DOCUMENTS)


def _details(
    shown: Sequence[ShownPair], query_changes: Sequence[QueryChange], opened: Opened, inputs: Inputs, manifest: Manifest
) -> Iterator[QueryDetail]:
    conventions = opened.loaded.config.conventions.resolved.conventions
    recorded = cache(partial(_recorded_dataset, manifest))
    for planned in opened.planned.datasets:
        read, changes = inputs.datasets[planned.name], [own for own in query_changes if own.dataset == planned.name]
        dataset = ShownDataset(
            planned,
            read.query_ids,
            read.groups,
            read.files,
            read if isinstance(read, DatasetInput) and planned.kind == "rankings" else None,
            conventions,
        )
        wanted = []
        for scores, record in (own for own in shown if own[0].dataset == planned.name):
            names = scores.model, scores.baseline
            moved = [own.query_id for own in changes if (own.model, own.baseline) == names]
            if moved and dataset.read is not None:
                outputs = (
                    _current_output(planned.name, names[0], opened, inputs),
                    _baseline_output(scores, record, opened, inputs, recorded),
                )
                wanted += [(output, moved) for output in outputs if output is not None]
        query_ids = dict.fromkeys(own.query_id for own in changes)
        yield from query_details(dataset, [*query_ids], wanted)


def _current_output(dataset: str, model: str, opened: Opened, inputs: Inputs) -> ShownOutput | None:
    task = next((own for own in opened.planned.tasks if own.key == (dataset, model)), None)
    joined = inputs.joined.get((dataset, model))
    if task is None or joined is None:
        return None
    return ShownOutput(model, task.output.shown, joined.files, partial(inputs.ranks, dataset, model))


def _baseline_output(
    scores: PairedScores,
    record: Evaluation | None,
    opened: Opened,
    inputs: Inputs,
    recorded: Callable[[Path, str], RecordedDataset],
) -> ShownOutput | None:
    if record is None:
        return _current_output(scores.dataset, scores.baseline_model, opened, inputs)
    with suppress(InputError, OSError):
        return recorded(record.path, scores.dataset).shown_output(scores.baseline_model, scores.baseline)
    return None


def _recorded_dataset(manifest: Manifest, path: Path, name: str) -> RecordedDataset:
    from rankledger.pipeline.history.baselines import RecordedDataset

    return RecordedDataset.of(path, name, manifest.datasets[name].was)


@dataclass(frozen=True, eq=False)
class Page:
    """Contents of a report on one evaluation."""

    title: str  # name and date; the id if a report shows several
    evaluation: Evaluation
    manifest: Manifest
    curves: tuple[CurvePoint, ...] = ()
    pairs: tuple[PairedScores, ...] = ()
    remarks: tuple[str, ...] = ()
    history: tuple[History, ...] = ()
    details: tuple[QueryDetail, ...] = ()

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """Datasets that a model was evaluated on, `*` for the mean of all, in the order of the summary."""
        return tuple(dict.fromkeys(line.dataset for line in self.evaluation.estimates))

    @cached_property
    def columns(self) -> Mapping[Key, MeasureColumn]:
        return measure_columns(self.evaluation, self.evaluation.estimates)

    @cached_property
    def comparisons(self) -> Mapping[Key, Sequence[Comparison]]:
        return group_by_key(self.evaluation.comparison_lines)

    @property
    def leading(self) -> Mapping[str, str]:
        return self.evaluation.leading

    @property
    def leading_difference(self) -> Mapping[str, str]:
        return self.evaluation.leading_difference

    @property
    def practical_difference(self) -> Mapping[str, float]:
        return self.manifest.practical_difference

    @property
    def alpha(self) -> float:
        return 1 - self.evaluation.confidence

    @property
    def all_pairs(self) -> bool:
        comparison = self.manifest.comparison
        return comparison is not None and comparison.baseline == "all_pairs"

    def columns_of(self, dataset: str) -> list[MeasureColumn]:
        """Return a dataset's columns: all queries, then slice by slice, the primary measure first."""
        own = [column for key, column in self.columns.items() if key[0] == dataset]
        slices = {name: place for place, name in enumerate(dict.fromkeys(column.slice for column in own))}
        lead = self.leading[dataset]
        return sorted(own, key=lambda column: (column.slice != ALL, slices[column.slice], column.measure != lead))

    def best_first(self, dataset: str) -> list[str]:
        """Return the models by the primary measure, for their order and colors in charts."""
        return list(self.columns[dataset, ALL, self.leading[dataset]].estimates)

    def on_all(self, dataset: str) -> Sequence[Comparison]:
        return self.comparisons.get((dataset, ALL, self.leading_difference[dataset]), ())

    def by_model(self, column: MeasureColumn) -> Mapping[str, Comparison]:
        return {} if self.all_pairs else {line.model: line for line in column.comparisons}

    def baseline(self, dataset: str) -> str | None:
        """Return the common baseline of a dataset. None if there is none."""
        if self.all_pairs:
            return None
        own = (lines for key, lines in self.comparisons.items() if key[0] == dataset)
        return next((line.baseline for lines in own for line in lines), None)


def side_by_side(pages: Sequence[Page]) -> Iterator[tuple[str, str, dict[str, list[Interval | None]]]]:
    """Yield each dataset, its primary measure, and each model's estimate by evaluation, None without it."""
    for dataset, measure in shared_lead_measures(pages).items():
        own = [
            {
                line.model: Interval.of(line)
                for line in page.evaluation.estimates
                if (line.dataset, line.slice, line.measure) == (dataset, ALL, measure)
            }
            for page in pages
        ]
        names = dict.fromkeys(model for lines in own for model in lines)
        yield dataset, measure, {model: [lines.get(model) for lines in own] for model in names}


def shared_lead_measures(pages: Sequence[Page]) -> dict[str, str]:
    """Return the primary measure by dataset. If evaluations differ, the last one decides."""
    by_age = sorted(pages, key=lambda page: page.manifest.order)
    last = {dataset: measure for page in by_age for dataset, measure in page.evaluation.leading.items()}
    return {dataset: last[dataset] for page in pages for dataset in page.datasets}


def comparability_notes(pages: Sequence[Page]) -> Iterator[str]:
    """Yield reasons why primary estimates of the evaluations cannot be compared."""
    for dataset, measure in shared_lead_measures(pages).items():
        own = [page.manifest for page in pages if dataset in page.datasets]
        on = f"on {display_name(dataset)} in these evaluations: figures there cannot be compared"
        rests_on = [
            manifest.comparability(dataset, measure) for manifest in own if manifest.fingerprint(dataset, measure)
        ]
        kinds = dict.fromkeys(change.kind for one in rests_on[1:] for change in rests_on[0].differences(one))
        for kind in kinds:
            yield f"the {f'definitions of {measure}' if kind == 'definition' else kind} differ {on}"
