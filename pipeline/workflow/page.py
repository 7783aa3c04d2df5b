"""From an evaluation to its page, at once or from its record: both are the same.

A page reads the evaluation, the records that its manifest pins, and the figures of those before it: nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.config.planned import PlannedDataset
from rankledger.pipeline.data.dataset import DatasetInput
from rankledger.pipeline.data.details import read_titles, top_documents
from rankledger.pipeline.inference.changes import RetrievedRanks, changed_queries, counted_scores, oriented
from rankledger.pipeline.record.folder import read_query_changes, read_query_details, read_record
from rankledger.pipeline.record.scores import read_column
from rankledger.pipeline.record.store import digest_of
from rankledger.pipeline.record.tables import damaged_files, fitting_details
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.types.inputs import InputFile, Source
from rankledger.pipeline.types.joined import Groups
from rankledger.pipeline.types.manifest import Description
from rankledger.pipeline.types.results import ALL, Evaluation, Record, Scores
from rankledger.pipeline.types.tables import CurvePoint
from rankledger.pipeline.types.views import ListedDocument, Page, PairedScores, QueryChange, QueryDetail
from rankledger.pipeline.workflow.evaluation import evaluation_of
from rankledger.pipeline.workflow.history import known_history
from rankledger.pipeline.workflow.inputs import Inputs
from rankledger.pipeline.workflow.outputs import source_of
from rankledger.pipeline.workflow.workspace import Workspace, refuse_foreign_inputs

if TYPE_CHECKING:
    from rankledger.pipeline.workflow.baselines import RecordedDataset
    from rankledger.pipeline.workflow.evaluate import Computed

Column: TypeAlias = tuple[npt.NDArray[np.object_], Floats, Bools]
"""(Q,) ids of queries, what each scores by one measure, and whether it is without output."""

ShownPair: TypeAlias = tuple[PairedScores, Record | None]
"""A pair with its scores, and the record of the baseline if that is another one."""

_MOST_PAIRS = 8  # each with two charts and its queries: 65 kB of a page


@dataclass(frozen=True)
class _Pair:
    """A pair that a page may show; the record is that of the baseline, empty where it is this one."""

    dataset: str
    model: str
    baseline: str
    record: str = ""
    sha256: str = ""


def page_of(record: Record, workspace: Workspace, *, with_history: bool = True) -> Page:
    """The page of a finished record.

    Args:
        record: the record.
        workspace: where those are that its models were compared with, and those before it.
        with_history: whether it has the history that was known when the record was written.

    Raises:
        OSError: the place of records cannot be reached.
    """
    pager = _Pager(evaluation_of(record), record.manifest, partial(read_column, record), workspace, with_history)
    return pager.page(pager.chosen(), record.curves, read_query_changes(record), read_query_details(record))


def new_page(
    evaluation: Evaluation, manifest: Description, computed: Computed, workspace: Workspace
) -> tuple[Page, tuple[QueryChange, ...]]:
    """The page of an evaluation that has no record yet; and the queries on it that changed most.

    Args:
        evaluation: its figures, and the scores of its queries.
        manifest: what the manifest says of it; what differs each time is not shown.
        computed: what it was made of.
        workspace: where other records are.
    """
    scored = {(scores.dataset, scores.model): scores for scores in evaluation.results}
    pager = _Pager(evaluation, manifest, partial(_column, scored), workspace)
    shown = pager.chosen()
    query_changes = tuple(_largest_changes(shown, computed.inputs))
    details = fitting_details(_details(shown, query_changes, computed))
    return pager.page(shown, computed.inferred.tables.curves, query_changes, details), query_changes


def _column(scored: Mapping[tuple[str, str], Scores], dataset: str, model: str, measure: str) -> Column | None:
    """What `read_column` will read of the record."""
    scores = scored.get((dataset, model))
    for row, own in enumerate(scores.measures if scores else ()):
        if scores and str(own) == measure:
            return scores.query_ids, scores.values[row], scores.missing
    return None


class _Pager:
    """Finds the pairs of one evaluation and their scores; `remarks` say what is left out, and why."""

    def __init__(
        self,
        evaluation: Evaluation,
        manifest: Description,
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
        """The pairs to show, by each dataset's leading difference.

        Against records come first, for what has dropped since yesterday is asked first; then the best models against
        those that they were compared with.
        """
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
        """The page with these pairs, curves, largest changes and what is known of their queries."""
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
        """A pair with its scores; None if no query has one, or they cannot be compared, which is remarked on."""
        measure = self._leading[pair.dataset]
        after = self._column(pair.dataset, pair.model, measure)
        if not pair.record:
            record, before = None, self._column(pair.dataset, pair.baseline, measure)
        else:
            baseline = self._baseline(pair, measure)
            if isinstance(baseline, str):
                self._leave_out(pair, baseline)
                return None
            record, before = baseline, read_column(baseline, pair.dataset, pair.baseline, measure)
        if before is None or after is None:
            return None
        if before[0].tolist() != after[0].tolist():
            self._leave_out(pair, "the queries were others")
            return None
        rule = self._manifest.conventions.missing_queries
        old, new = (counted_scores(scores, missing, rule) for _, scores, missing in (before, after))
        change = oriented(old, new, self._evaluation.directions[measure])
        scores = PairedScores(pair.dataset, pair.model, _label(pair), measure, after[0], old, new, change)
        return replace(scores, record=pair.record, baseline_model=pair.baseline), record

    def _leave_out(self, pair: _Pair, reason: str) -> None:
        self.remarks.append(f"{pair.model} against {_label(pair)} is not shown on {pair.dataset}: {reason}")

    def _against_records(self, dataset: str) -> Iterator[_Pair]:
        """The models that a gate compared with a record, those first that did not pass."""
        for verdict in sorted(self._evaluation.verdicts, key=lambda verdict: verdict.outcome in ("pass", "not judged")):
            found = self._manifest.baselines.get(verdict.gate, {}).get(verdict.model)
            if verdict.dataset == dataset and found and found.record and dataset not in found.new_datasets:
                yield _Pair(dataset, verdict.model, found.model, found.record, str(found.manifest_sha256))

    def _compared(self, dataset: str) -> list[_Pair]:
        """The models that were compared, the best first."""
        lines = [
            line
            for line in self._evaluation.comparison_lines
            if (line.dataset, line.slice, line.measure) == (dataset, ALL, self._leading[dataset])
        ]
        sign = 1 if self._evaluation.directions[self._leading[dataset]] == "lower" else -1
        lines.sort(key=lambda line: (line.estimate is None, sign * (line.estimate or 0.0)))
        return [_Pair(dataset, line.model, line.baseline) for line in lines]

    def _baseline(self, pair: _Pair, measure: str) -> Record | str:
        """The record that a model was compared with; or why its scores cannot stand beside the current ones."""
        record = self._pinned(pair.record, pair.sha256)
        if isinstance(record, str):
            return record
        then, now = (own.comparability(pair.dataset, measure) for own in (record.manifest, self._manifest))
        if kinds := [change.kind for change in then.differences(now) if change.kind != "queries"]:
            return f"the {' and the '.join(kinds)} of {measure} changed"
        return record


def _pinned(workspace: Workspace, evaluation_id: str, sha256: str) -> Record | str:
    """The record whose manifest has that hash; or why it is not to be had."""
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


def _largest_changes(shown: Sequence[ShownPair], inputs: Inputs) -> Iterator[QueryChange]:
    """The queries of each pair, the greatest change first; without documents where their ranks are not known."""
    recorded = cache(_recorded_dataset)  # pairs share the judgments that their baselines had
    for scores, record in shown:
        if not np.nan_to_num(scores.change).any():
            continue
        before, after = None, inputs.ranks(scores.dataset, scores.model)
        if record is None:
            before = inputs.ranks(scores.dataset, scores.baseline_model)
        else:
            from rankledger.pipeline.workflow.baselines import retrieved_ranks

            with suppress(InputError, OSError):  # neither the output cache nor the output itself has it any more
                before = retrieved_ranks(recorded(record.path, scores.dataset), scores.baseline_model)
        ranked = None if before is None or after is None else (before, after)
        yield from changed_queries(scores, _MOST_QUERIES, ranked, _MOST_DOCUMENTS)


def _details(
    shown: Sequence[ShownPair], query_changes: Sequence[QueryChange], computed: Computed
) -> Iterator[QueryDetail]:
    opened, inputs = computed.opened, computed.inputs
    conventions = opened.loaded.config.conventions.resolved.conventions
    recorded = cache(_recorded_dataset)
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
                    _current_output(planned.name, names[0], computed),
                    _baseline_output(scores, record, computed, recorded),
                )
                wanted += [(output, moved) for output in outputs if output is not None]
        query_ids = dict.fromkeys(own.query_id for own in changes)
        yield from query_details(dataset, [*query_ids], wanted)


def _current_output(dataset: str, model: str, computed: Computed) -> ShownOutput | None:
    """A model's output; None if it has several, or none that was read."""
    inputs = computed.inputs
    task = next((own for own in computed.opened.planned.tasks if own.key == (dataset, model)), None)
    if task is None or task.key not in inputs.joined:
        return None
    return ShownOutput(model, source_of(task.output), inputs.files[task.key], partial(inputs.ranks, dataset, model))


def _baseline_output(
    scores: PairedScores, record: Record | None, computed: Computed, recorded: Callable[[Path, str], RecordedDataset]
) -> ShownOutput | None:
    if record is None:
        return _current_output(scores.dataset, scores.baseline_model, computed)
    with suppress(InputError, OSError):
        return recorded_output_of(recorded(record.path, scores.dataset), scores.baseline_model, scores.baseline)
    return None


def _recorded_dataset(path: Path, name: str) -> RecordedDataset:
    from rankledger.pipeline.workflow.baselines import RecordedDataset

    return RecordedDataset.of(path, name)


DEPTH = 10
_TITLE = 160  # characters
_TEXT = 500


@dataclass(frozen=True, eq=False)
class ShownDataset:
    """A dataset, some of whose queries are shown.

    Attributes:
        planned: the dataset.
        query_ids: (Q,) its queries.
        groups: the slices of these.
        files: its files by role.
        read: its judgments, and the documents that are left out of rankings; None if it is not of rankings.
        conventions: say what orders the documents of a ranking.
    """

    planned: PlannedDataset
    query_ids: npt.NDArray[np.object_]
    groups: Groups
    files: Mapping[str, Sequence[InputFile]]
    read: DatasetInput | None
    conventions: Conventions

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each query."""
        return {query_id: place for place, query_id in enumerate(self.query_ids.tolist())}

    def slices(self, query_id: str) -> tuple[str, ...]:
        """The slices that a query is in."""
        place = self.places[query_id]
        return tuple(name for name, members in self.groups.slices.items() if members[place])


@dataclass(frozen=True, eq=False)
class ShownOutput:
    """A model's rankings, whose first documents are shown.

    Attributes:
        name: the model; `bm25 in ID` for a model of another record.
        source: the rankings.
        files: those that were evaluated.
        ranks: gives the ranks of judged documents, None if they are not known; asked if the rankings cannot be read.
    """

    name: str
    source: Source
    files: tuple[InputFile, ...]
    ranks: Callable[[], RetrievedRanks | None]


def recorded_output_of(kept: RecordedDataset, model: str, name: str) -> ShownOutput:
    """A model's output in a record, under a name.

    Raises:
        InputError: it has several, or none that was evaluated; or the record is somebody else's, and names a server.
    """
    from rankledger.pipeline.workflow.baselines import retrieved_ranks

    task, files = kept.output(model)
    refuse_foreign_inputs(kept.opened)

    def ranks() -> RetrievedRanks | None:
        with suppress(InputError, OSError):
            return retrieved_ranks(kept, model)
        return None

    return ShownOutput(name, source_of(task.output), files, ranks)


def query_details(
    dataset: ShownDataset, query_ids: Sequence[str], wanted: Iterable[tuple[ShownOutput, Collection[str]]]
) -> list[QueryDetail]:
    """What is known of queries.

    Args:
        dataset: the dataset.
        query_ids: the queries.
        wanted: outputs, and those of the queries whose first documents are shown; an output may occur several times.
    """
    asked: dict[str, tuple[ShownOutput, dict[str, None]]] = {}
    for output, own in wanted:
        asked.setdefault(output.name, (output, {}))[1].update(dict.fromkeys(own))
    lists: dict[str, dict[str, tuple[ListedDocument, ...]]] = {}
    for output, own in asked.values():
        for query_id, listed in _lists(dataset, output, own):
            lists.setdefault(query_id, {})[output.name] = listed
    documents, queries, titles, texts = dataset.planned.documents, dataset.planned.queries, {}, {}
    if documents is not None:
        names = {each.doc_id for own in lists.values() for listed in own.values() for each in listed if each.doc_id}
        titles = read_titles(source_of(documents), dataset.files.get("documents", ()), "doc_id", names)
    if queries is not None:
        texts = read_titles(source_of(queries), dataset.files.get("queries", ()), "query_id", query_ids)

    def titled(document: ListedDocument) -> ListedDocument:
        return replace(document, title=shorten(titles.get(document.doc_id or "", ""), _TITLE))

    return [
        QueryDetail(
            dataset.planned.name,
            query_id,
            shorten(texts.get(query_id, ""), _TEXT),
            dataset.slices(query_id),
            {name: tuple(map(titled, listed)) for name, listed in lists.get(query_id, {}).items()},
        )
        for query_id in query_ids
    ]


def _lists(
    dataset: ShownDataset, output: ShownOutput, query_ids: Collection[str]
) -> Iterator[tuple[str, tuple[ListedDocument, ...]]]:
    """The first documents of each query; of an output that cannot be read again, those that are judged."""
    if dataset.read is None:
        return
    judgments = dataset.read.judgments
    found = top_documents(dataset.read, output.source, output.files, query_ids, dataset.conventions, DEPTH)
    ranks = output.ranks() if found is None else None
    for query_id in query_ids:
        grades = judgments.grades_of(int(judgments.find([query_id])[0]))
        if found is not None:
            documents = enumerate(found.get(query_id, ()), start=1)
            yield query_id, tuple(ListedDocument(rank, name, grades.get(name)) for rank, name in documents)
        elif ranks is not None:
            yield query_id, tuple(_judged(ranks.ranks(query_id), grades))


def _judged(ranks: Mapping[str, int], grades: Mapping[str, float]) -> Iterator[ListedDocument]:
    """The judged documents of the first ranks, and empty places for the others down to the last of them."""
    known = {rank: name for name, rank in ranks.items() if rank <= DEPTH}
    for rank in range(1, max(known, default=0) + 1):
        name = known.get(rank)
        yield ListedDocument(rank, name, None if name is None else grades.get(name))
