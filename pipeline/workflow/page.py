"""From an evaluation to its page, at once or from its record: both are the same.

A page reads the evaluation and the records that its manifest pins, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.data.dataset import DatasetInput
from rankledger.pipeline.errors import InputError
from rankledger.pipeline.inference.changes import RetrievedRanks, changed_queries, counted_scores, oriented
from rankledger.pipeline.record.accepted import digest_of
from rankledger.pipeline.record.folder import read_curves, read_movers, read_record
from rankledger.pipeline.record.lookup import damage
from rankledger.pipeline.record.scores import read_column
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.types.changes import QueryChange
from rankledger.pipeline.types.manifest import Description
from rankledger.pipeline.types.results import ALL, Evaluation, Record
from rankledger.pipeline.types.views import CurvePoint, Page, PairedScores
from rankledger.pipeline.workflow.browse import evaluation_of
from rankledger.pipeline.workflow.inputs import Inputs
from rankledger.pipeline.workflow.rescoring import RecordedDataset, retrieved_ranks
from rankledger.pipeline.workflow.sources import open_record

__all__ = ["ShownPair", "largest_changes", "new_page", "page_of", "paired_scores"]

Column: TypeAlias = tuple[npt.NDArray[np.object_], Floats, Bools]
"""(Q,) ids of queries, what each scores by one measure, and whether it is without output."""

_MOST_PAIRS = 12  # each with two charts and its queries: 40 kB of a page


@dataclass(frozen=True, eq=False)
class ShownPair:
    """A pair that a page shows query by query.

    Attributes:
        scores: those of both, without the queries that moved most.
        baseline: the baseline's name in its record.
        record: the baseline's record; None where it was evaluated beside the model.
    """

    scores: PairedScores
    baseline: str
    record: Record | None


@dataclass(frozen=True)
class _Pair:
    """A pair that a page may show; the record is that of the baseline, empty where it is this one."""

    dataset: str
    model: str
    baseline: str
    record: str = ""
    sha256: str = ""


def new_page(
    evaluation: Evaluation,
    manifest: Description,
    *,
    curves: Sequence[CurvePoint],
    movers: Sequence[QueryChange],
    shown: Sequence[ShownPair],
    remarks: Sequence[str],
) -> Page:
    """The page of an evaluation.

    Args:
        evaluation: its figures.
        manifest: what the manifest says of it; what differs each time is not shown.
        curves: the points of its curves.
        movers: the queries that moved most.
        shown: the pairs, by `paired`.
        remarks: what is left out.
    """
    by_pair: dict[tuple[str, str, str], list[QueryChange]] = {}
    for query in movers:
        by_pair.setdefault((query.dataset, query.model, query.baseline), []).append(query)
    pairs = [
        replace(
            each.scores, movers=tuple(by_pair.get((each.scores.dataset, each.scores.model, each.scores.baseline), ()))
        )
        for each in shown
    ]
    return Page(
        title=" ".join(filter(None, (evaluation.name, manifest.date))),
        evaluation=replace(evaluation, results=(), warnings=()),
        manifest=manifest,
        curves=tuple(curves),
        pairs=tuple(pairs),
        remarks=tuple(remarks),
    )


def page_of(record: Record, records: Records) -> Page:
    """The page of a finished record.

    Args:
        record: the record.
        records: where those are that its models were held against.

    Raises:
        OSError: the place of records cannot be reached.
    """
    evaluation = evaluation_of(record)

    def column(dataset: str, model: str, measure: str) -> Column | None:
        return read_column(record, dataset, model, measure)

    shown, remarks = paired_scores(evaluation, record.manifest, column, records)
    return new_page(
        evaluation,
        record.manifest,
        curves=read_curves(record),
        movers=read_movers(record),
        shown=shown,
        remarks=remarks,
    )


def paired_scores(
    evaluation: Evaluation,
    manifest: Description,
    column: Callable[[str, str, str], Column | None],
    records: Records,
) -> tuple[list[ShownPair], list[str]]:
    """The pairs that the page of an evaluation shows, by each dataset's leading difference; and what it leaves out.

    Against records come first, for what has dropped since yesterday is asked first; then the best models against those
    that they were compared with.

    Args:
        evaluation: its figures.
        manifest: what the manifest says of it.
        column: gives what a model scores on a dataset by a measure, None where it was not measured query by query.
        records: where other records are.
    """
    pager = _Pager(evaluation, manifest, column, records)
    found = [pair for dataset in pager.leading for pair in pager.pairs(dataset)]
    n_each = max(1, _MOST_PAIRS // max(1, len({pair.dataset for pair in found})))
    chosen = [pair for dataset in pager.leading for pair in [p for p in found if p.dataset == dataset][:n_each]]
    chosen = chosen[:_MOST_PAIRS]
    if len(chosen) < len(found):
        cut = f"{len(chosen)} of {len(found)} pairs are shown query by query"
        pager.remarks.append(f"{cut}; `rankledger compare` shows any other")
    return [shown for pair in chosen if (shown := pager.shown(pair)) is not None], pager.remarks


class _Pager:
    """Finds the pairs of one evaluation and their scores.

    Attributes:
        leading: by dataset, the measure to look at queries by.
        remarks: what is left out, and why.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        manifest: Description,
        column: Callable[[str, str, str], Column | None],
        records: Records,
    ) -> None:
        self.leading = evaluation.leading_difference
        self.remarks: list[str] = []
        self._evaluation = evaluation
        self._manifest = manifest
        self._column = column
        self._pinned = cache(partial(_pinned, records))  # each is opened once: it has as many lines as tonight's

    def pairs(self, dataset: str) -> list[_Pair]:
        """The pairs of a dataset, those first that are to be shown first."""
        return list(dict.fromkeys((*self._held_against(dataset), *self._compared(dataset))))

    def shown(self, pair: _Pair) -> ShownPair | None:
        """A pair with its scores; None where no query has one, or they cannot be compared, which is remarked on."""
        measure = self.leading[pair.dataset]
        after = self._column(pair.dataset, pair.model, measure)
        if not pair.record:
            record, before = None, self._column(pair.dataset, pair.baseline, measure)
        else:
            found = self._baseline(pair, measure)
            if isinstance(found, str):
                self._leave_out(pair, found)
                return None
            record, before = found, read_column(found, pair.dataset, pair.baseline, measure)
        if before is None or after is None:
            return None
        if before[0].tolist() != after[0].tolist():
            self._leave_out(pair, "the queries were others")
            return None
        rule = self._manifest.conventions.missing_queries
        old, new = (counted_scores(scores, missing, rule) for _, scores, missing in (before, after))
        change = oriented(old, new, self._evaluation.directions[measure])
        scores = PairedScores(pair.dataset, pair.model, _label(pair), measure, after[0], old, new, change)
        return ShownPair(scores, pair.baseline, record)

    def _leave_out(self, pair: _Pair, reason: str) -> None:
        self.remarks.append(f"{pair.model} against {_label(pair)} is not shown on {pair.dataset}: {reason}")

    def _held_against(self, dataset: str) -> Iterator[_Pair]:
        """The models that a gate held against a record, those first that did not pass."""
        for verdict in sorted(self._evaluation.verdicts, key=lambda verdict: verdict.outcome == "pass"):
            found = self._manifest.baselines.get(verdict.gate, {}).get(verdict.model)
            if verdict.dataset == dataset and found and found.record and dataset not in found.new_datasets:
                yield _Pair(dataset, verdict.model, found.model, found.record, str(found.manifest_sha256))

    def _compared(self, dataset: str) -> list[_Pair]:
        """The models that were compared, the best first."""
        lines = [
            line
            for line in self._evaluation.comparison_lines
            if (line.dataset, line.slice, line.measure) == (dataset, ALL, self.leading[dataset])
        ]
        sign = 1 if self._evaluation.directions[self.leading[dataset]] == "lower" else -1
        lines.sort(key=lambda line: (line.estimate is None, sign * (line.estimate or 0.0)))
        return [_Pair(dataset, line.model, line.baseline) for line in lines]

    def _baseline(self, pair: _Pair, measure: str) -> Record | str:
        """The record that a model was held against; or why its scores cannot stand beside tonight's."""
        found = self._pinned(pair.record, pair.sha256)
        if isinstance(found, str):
            return found
        if _meaning(found.manifest, pair.dataset, measure) != _meaning(self._manifest, pair.dataset, measure):
            return f"the judgments, or the definition of {measure}, were others"
        return found


def _pinned(records: Records, evaluation_id: str, sha256: str) -> Record | str:
    """The record whose manifest has that hash; or why it is not to be had."""
    try:
        path = records.fetch(evaluation_id)
        if path is None or digest_of(path) != sha256:
            return "the record is not at hand"
        record = read_record(path)
    except (InputError, OSError):
        return "the record cannot be read"
    return "its files are not what was written" if damage(record) else record


def _meaning(manifest: Description, dataset: str, measure: str) -> tuple[str | None, str | None]:
    """What a score means: the digest of the judgments, and the fingerprint of the measure."""
    described = manifest.datasets.get(dataset)
    return described.reading if described else None, manifest.fingerprint(dataset, measure)


def _label(pair: _Pair) -> str:
    return f"{pair.baseline} in {pair.record}" if pair.record else pair.baseline


_MOST_QUERIES = 10
_MOST_DOCUMENTS = 20  # of one query: a pooled collection has hundreds of relevant ones


def largest_changes(shown: Sequence[ShownPair], inputs: Inputs) -> Iterator[QueryChange]:
    """The queries of each pair, the greatest change first; without documents where their ranks are not known.

    Args:
        shown: the pairs.
        inputs: everything that was read.
    """
    kept = cache(_kept)  # pairs share the judgments that their baselines had
    for each in shown:
        if np.nan_to_num(each.scores.change).any():
            yield from changed_queries(each.scores, _MOST_QUERIES, _ranked(each, inputs, kept), _MOST_DOCUMENTS)


def _ranked(
    shown: ShownPair, inputs: Inputs, kept: Callable[[Path, str], RecordedDataset]
) -> tuple[RetrievedRanks, RetrievedRanks] | None:
    """What the baseline and the model retrieved."""
    dataset = shown.scores.dataset
    after = _tonight(dataset, shown.scores.model, inputs)
    before = _tonight(dataset, shown.baseline, inputs) if shown.record is None else _then(shown, kept)
    return None if before is None or after is None else (before, after)


def _tonight(dataset: str, model: str, inputs: Inputs) -> RetrievedRanks | None:
    read, joined = inputs.datasets[dataset], inputs.joined.get((dataset, model))
    if joined is None or joined.hits is None or not isinstance(read, DatasetInput):
        return None
    return RetrievedRanks(read.judgments.rows, read.judgments.kept, joined.hits)


def _then(shown: ShownPair, kept: Callable[[Path, str], RecordedDataset]) -> RetrievedRanks | None:
    """What the baseline retrieved in its record, where the output cache or the output itself still tells."""
    assert shown.record is not None, "what is of this evaluation is looked up there"
    try:
        return retrieved_ranks(kept(shown.record.path, shown.scores.dataset), shown.baseline)
    except (InputError, OSError):
        return None


def _kept(path: Path, dataset: str) -> RecordedDataset:
    """A dataset of the record in that folder."""
    opened = open_record(path)
    assert opened.record is not None, "it was opened from its record"
    planned = next(found for found in opened.planned.datasets if found.name == dataset)
    return RecordedDataset(opened.record, opened, planned)
