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
from rankledger.pipeline.history.changes import changed_queries, counted_scores, oriented
from rankledger.pipeline.history.details import ShownDataset, ShownOutput, query_details, recorded_output_of
from rankledger.pipeline.history.history import known_history
from rankledger.pipeline.history.views import History
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

_MOST_PAIRS = 8  # each with two charts and its queries: 65 kB of a page


@dataclass(frozen=True)
class _Pair:
    """Pair that a page may show. `record` is the baseline's, empty if it is this one."""

    dataset: str
    model: str
    baseline: str
    record: str = ""
    sha256: str = ""


def page_of(record: Evaluation, workspace: Workspace, *, with_history: bool = True) -> Page:
    """Make the page of a finished record, with the history known when it was written.

    Raises:
        OSError: The records location cannot be reached.
    """
    pager = _Pager(record, record.manifest, partial(read_column, record), workspace, with_history)
    return pager.page(pager.chosen(), record.curves, read_query_changes(record), read_query_details(record))


def new_page(
    evaluation: Evaluation, opened: Opened, inputs: Inputs, workspace: Workspace
) -> tuple[Page, tuple[QueryChange, ...]]:
    """Make the page of an unrecorded evaluation. Also return the queries on it that changed most."""
    scored = {(scores.dataset, scores.model): scores for scores in evaluation.results}
    pager = _Pager(evaluation, evaluation.manifest, partial(_column, scored), workspace)
    shown = pager.chosen()
    query_changes = tuple(_largest_changes(shown, inputs, evaluation.manifest))
    details = fitting_details(_details(shown, query_changes, opened, inputs, evaluation.manifest))
    return pager.page(shown, evaluation.curves, query_changes, details), query_changes


def _column(scored: Mapping[tuple[str, str], Scores], dataset: str, model: str, measure: str) -> Column | None:
    scores = scored.get((dataset, model))
    for row, own in enumerate(scores.measures if scores else ()):
        if scores and str(own) == measure:
            return scores.query_ids, scores.values[row], scores.missing
    return None


class _Pager:
    def __init__(
        self,
        evaluation: Evaluation,
        manifest: Manifest,
        column: Callable[[str, str, str], Column | None],
        workspace: Workspace,
        with_history: bool = True,
    ) -> None:
        self._leading = evaluation.leading_difference  # by dataset, the measure to look at queries by
        self.remarks: list[str] = []
        self._evaluation = evaluation
        self._manifest = manifest
        self._column = column
        self._known_history = partial(known_history, evaluation, manifest, workspace) if with_history else None
        self._pinned = cache(partial(_pinned, workspace))  # each is opened once: it may have as many lines as this one

    def chosen(self) -> list[ShownPair]:
        pairs = [
            list(dict.fromkeys((*self._against_records(dataset), *self._compared(dataset))))
            for dataset in self._leading
        ]
        n_each = max(1, _MOST_PAIRS // max(1, len([own for own in pairs if own])))
        chosen = [pair for own in pairs for pair in own[:n_each]][:_MOST_PAIRS]
        n_pairs = sum(map(len, pairs))
        if len(chosen) < n_pairs:
            cut = f"{len(chosen)} of {n_pairs} pairs are shown query by query"
            self.remarks.append(f"{cut}; `rankledger compare` shows any other")
        return [shown for pair in chosen if (shown := self._shown(pair)) is not None]

    def page(
        self,
        shown: Sequence[ShownPair],
        curves: Sequence[CurvePoint],
        query_changes: Sequence[QueryChange],
        details: Sequence[QueryDetail],
    ) -> Page:
        by_pair: dict[tuple[str, str, str], list[QueryChange]] = {}
        for query in query_changes:
            by_pair.setdefault((query.dataset, query.model, query.baseline), []).append(query)
        pairs = [scores for scores, _ in shown]
        own = [tuple(by_pair.get((pair.dataset, pair.model, pair.baseline), ())) for pair in pairs]
        history, lost = self._known_history() if self._known_history else ((), ())
        return Page(
            title=" ".join(filter(None, (self._evaluation.name, self._manifest.date))),
            evaluation=replace(self._evaluation, results=(), warnings=()),
            manifest=self._manifest,
            curves=tuple(curves),
            pairs=tuple(replace(pair, largest_changes=queries) for pair, queries in zip(pairs, own, strict=True)),
            remarks=(*self.remarks, *lost),
            history=history,
            details=tuple(details),
        )

    def _shown(self, pair: _Pair) -> ShownPair | None:
        measure = self._leading[pair.dataset]
        after = self._column(pair.dataset, pair.model, measure)
        if not pair.record:
            record, before = None, self._column(pair.dataset, pair.baseline, measure)
        else:
            baseline = self._baseline(pair, measure)
            if isinstance(baseline, str):
                self._leave_out(pair, baseline)
                return None
            name = baseline.manifest.name_then(pair.dataset, self._manifest.datasets[pair.dataset].was)
            record, before = baseline, read_column(baseline, name, pair.baseline, measure)
        if before is None or after is None:
            return None
        if before[0].tolist() != after[0].tolist():
            self._leave_out(pair, "the queries were others")
            return None
        rule = self._manifest.conventions.resolved.conventions.missing_queries
        old, new = (counted_scores(scores, missing, rule) for _, scores, missing in (before, after))
        change = oriented(old, new, self._evaluation.directions[measure])
        scores = PairedScores(pair.dataset, pair.model, _label(pair), measure, after[0], old, new, change)
        return replace(scores, record=pair.record, baseline_model=pair.baseline), record

    def _leave_out(self, pair: _Pair, reason: str) -> None:
        self.remarks.append(f"{pair.model} against {_label(pair)} is not shown on {pair.dataset}: {reason}")

    def _against_records(self, dataset: str) -> Iterator[_Pair]:
        for verdict in sorted(self._evaluation.verdicts, key=lambda verdict: verdict.outcome in ("pass", "not judged")):
            found = self._manifest.baselines.get(verdict.gate, {}).get(verdict.model)
            if verdict.dataset == dataset and found and found.record and dataset not in found.new_datasets:
                yield _Pair(dataset, verdict.model, found.model, found.record, str(found.manifest_sha256))

    def _compared(self, dataset: str) -> list[_Pair]:
        lines = [
            line
            for line in self._evaluation.comparison_lines
            if (line.dataset, line.slice, line.measure) == (dataset, ALL, self._leading[dataset])
        ]
        sign = 1 if self._evaluation.directions[self._leading[dataset]] == "lower" else -1
        lines.sort(key=lambda line: (line.estimate is None, sign * (line.estimate or 0.0)))
        return [_Pair(dataset, line.model, line.baseline) for line in lines]

    def _baseline(self, pair: _Pair, measure: str) -> Evaluation | str:
        record = self._pinned(pair.record, pair.sha256)
        if isinstance(record, str):
            return record
        name = record.manifest.name_then(pair.dataset, self._manifest.datasets[pair.dataset].was)
        then, now = record.manifest.comparability(name, measure), self._manifest.comparability(pair.dataset, measure)
        if kinds := [change.kind for change in then.differences(now) if change.kind != "queries"]:
            return f"the {' and the '.join(kinds)} of {measure} changed"
        return record


def _pinned(workspace: Workspace, evaluation_id: str, sha256: str) -> Evaluation | str:
    try:
        path = workspace.records.fetch(evaluation_id)
        if path is None or digest_of(path) != sha256:
            return "the record is not at hand"
        record = read_record(path)
    except (InputError, OSError):
        return "the record cannot be read"
    return "its files are not what was written" if any(damaged_files(record)) else record


def _label(pair: _Pair) -> str:
    return f"{pair.baseline} in {pair.record}" if pair.record else pair.baseline


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
        return recorded_output_of(recorded(record.path, scores.dataset), scores.baseline_model, scores.baseline)
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
