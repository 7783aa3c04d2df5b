"""A dataset that two evaluations have: what can be compared on it, and how the two are unlike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from metrics.measure import Measure
from pipeline.comparison.definitions import redefined, unlike_definitions
from pipeline.config.plan import PlannedDataset
from pipeline.data import readers
from pipeline.data.contents import describe
from pipeline.data.groups import group_queries
from pipeline.errors import InputError
from pipeline.record import read_scores, refuse_changed
from pipeline.tables import Groups, InputFile, Record, Scores
from pipeline.workflow.reading import source_of
from pipeline.workflow.rescoring import Kept
from pipeline.workflow.sides import Sides
from pipeline.workflow.sources import Opened, refuse_foreign_servers

__all__ = ["Match", "match_datasets"]

Pair = tuple[str, str]  # the candidate's model, the base's


@dataclass(frozen=True, eq=False)
class Match:
    """A dataset on both sides.

    Attributes:
        before: as it was evaluated in the base.
        after: as it was in the candidate.
        scores: the base's scores and the candidate's as they are recorded, by pair of models, (candidate's, base's).
        measures: those that both have of every query, in the candidate's order.
    """

    before: Kept
    after: Kept
    scores: Mapping[Pair, tuple[Scores, Scores]]
    measures: tuple[Measure, ...]

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.after.planned.name

    @cached_property
    def query_ids(self) -> npt.NDArray[np.object_]:
        """The queries of both, in their order."""
        before, after = next(iter(self.scores.values()))
        known = set(before.query_ids.tolist())
        return np.array([query_id for query_id in after.query_ids.tolist() if query_id in known], dtype=object)

    @property
    def n_removed(self) -> int:
        """Queries of the base alone."""
        return len(next(iter(self.scores.values()))[0].query_ids) - len(self.query_ids)

    @property
    def n_added(self) -> int:
        """Queries of the candidate alone."""
        return len(next(iter(self.scores.values()))[1].query_ids) - len(self.query_ids)

    @property
    def rejudged(self) -> bool:
        """Whether the judgments are others, or are read otherwise."""
        if self.after.planned.kind == "scores":
            return False
        return self.before.store().judgments != self.after.store().judgments

    @property
    def redefined(self) -> tuple[str, ...]:
        """The measures that mean something else."""
        names = [str(measure) for measure in self.measures]
        return redefined(self.before.record.manifest, self.after.record.manifest, names, self.name)

    def relisted(self, measure: Measure) -> bool:
        """Whether the measure asks for documents or interactions, and these are others."""
        asked = {"documents"} if measure.parameters.get("d") else set(measure.metric.needs)
        before, after = (
            [file["sha256"] for file in side.record.manifest["datasets"][self.name]["inputs"] if file["role"] in asked]
            for side in (self.before, self.after)
        )
        return before != after

    def unlike(self) -> Iterator[str]:
        """How the two differ beside the outputs, a line each."""
        if self.rejudged:
            digests = [file.sha256[:12] for side in (self.before, self.after) for file in side.judged[:1]]
            yield f"{self.name}: the judgments differ (sha256 {'… and '.join(digests)}…)"
        if self.n_removed or self.n_added:
            yield f"{self.name}: the queries differ ({self.n_removed:,} are gone, {self.n_added:,} are new)"
        relisted = [str(measure) for measure in self.measures if self.relisted(measure)]
        if relisted:
            yield f"{self.name}: the documents or interactions differ, which count in {', '.join(relisted)}"
        names = [str(measure) for measure in self.measures]
        for line in unlike_definitions(self.before.record.manifest, self.after.record.manifest, names, self.name):
            yield f"{self.name}: the definitions differ: {line}"

    def shared(self, pair: Pair) -> tuple[Scores, Scores]:
        """The scores of the base and of the candidate on the queries of both, by the measures of both."""
        before, after = (_only(scores, self.query_ids, self.measures) for scores in self.scores[pair])
        return before, after

    def groups(self) -> Groups:
        """The clusters and slices of the queries of both, as the candidate's config has them.

        Raises:
            InputError: the queries table is gone, or is not the one that was evaluated.
        """
        planned = self.after.planned
        if planned.queries is None or not (planned.cluster or planned.slices):
            return Groups()
        refuse_foreign_servers(self.after.opened)
        queries = source_of(planned.queries)
        inputs = self.after.record.manifest["datasets"][self.name]["inputs"]
        recorded = [file for file in inputs if file["role"] == "queries"]
        refuse_changed([InputFile(file["path"], file["size"], file["sha256"]) for file in recorded], describe(queries))
        further = [*dict.fromkeys(column for column in (planned.cluster, *planned.slices) if column)]
        table = readers.read_queries(*queries.layout, further=further)
        return group_queries(self.query_ids, table, planned.cluster, planned.slices)


def match_datasets(sides: Sides) -> tuple[Match, ...]:
    """The datasets on which a pair of models was evaluated on both sides, with a query and a measure in common.

    Raises:
        InputError: there is none.
    """
    before = {dataset.name: dataset for dataset in sides.base.planned.datasets}
    found = [
        _match(_kept(sides.base, before[dataset.name]), _kept(sides.candidate, dataset), sides.pairs)
        for dataset in sides.candidate.planned.datasets
        if dataset.name in before
    ]
    matches = tuple(match for match in found if match.scores and match.measures and len(match.query_ids))
    if not matches:
        raise InputError("the two have no scores of the same dataset, query and measure; there is nothing to compare")
    return matches


def _kept(opened: Opened, planned: PlannedDataset) -> Kept:
    return Kept(_record_of(opened), opened, planned)


def _record_of(opened: Opened) -> Record:
    assert opened.record is not None, "what a reference means is a record"
    return opened.record


def _match(before: Kept, after: Kept, pairs: Sequence[Pair]) -> Match:
    asked = [measure for measure in after.planned.measures if measure.metric.per == "query"]
    scores: dict[Pair, tuple[Scores, Scores]] = {}
    for model, baseline in pairs:
        ours = read_scores(after.record, after.planned.name, model, asked)
        theirs = read_scores(before.record, before.planned.name, baseline, asked)
        if ours is not None and theirs is not None:
            scores[model, baseline] = (theirs, ours)
    measured = [set(side.measures) for both in scores.values() for side in both]
    return Match(before, after, scores, tuple(m for m in asked if all(m in found for found in measured)))


def _only(scores: Scores, query_ids: npt.NDArray[np.object_], measures: Sequence[Measure]) -> Scores:
    """The scores of these queries, all of which have some, by these measures."""
    places = {query_id: place for place, query_id in enumerate(scores.query_ids.tolist())}
    kept = np.array([places[query_id] for query_id in query_ids.tolist()], dtype=np.int64)
    rows = np.array([scores.measures.index(measure) for measure in measures], dtype=np.int64)
    return replace(
        scores,
        query_ids=query_ids,
        measures=tuple(measures),
        values=scores.values[np.ix_(rows, kept)],
        weights=scores.weights[np.ix_(rows, kept)],
        missing=scores.missing[kept],
        moments={measure: found[:, kept] for measure, found in scores.moments.items() if measure in measures},
    )
