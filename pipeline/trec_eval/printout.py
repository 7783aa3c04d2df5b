"""The lines that trec_eval prints, from the scores of their measures.

Queries stand in the order of their ids as bytes. Their values are added in that order, one after the other, so that a
mean that lies between two figures of four decimals is rounded to the same one as there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from metrics import scoring
from metrics.aggregation import MEAN, Aggregation, contributions
from metrics.block import Bools, Floats, JudgedBlock
from metrics.conventions import Conventions
from metrics.measure import Measure
from pipeline.tables import Estimate, Joined, Scores
from pipeline.trec_eval.names import Line

__all__ = ["Printout", "relevance_strings"]

_FORMATS = {"relevance": "'%s'", "sum": "%d", "mean": "%6.4f"}


@dataclass(frozen=True, eq=False)
class Printout:
    """The lines and what they hold.

    Attributes:
        lines: what is printed, in order.
        scores: of the lines' measures, for every judged query.
        relevance: the queries' strings, where a line asks for them.
        complete: whether all judged queries count (`-c`), or those with output alone.
        shows_missing: whether with `-c` a query without output is one like any other, as in version 10; in version 9 it
            has no lines of its own and adds 0 to a mean, whatever an empty ranking scores.
    """

    lines: tuple[Line, ...]
    scores: Scores
    relevance: Sequence[str]
    complete: bool
    shows_missing: bool

    @cached_property
    def counted(self) -> Bools:
        """(Q,): the queries that means are of."""
        return np.ones(len(self.scores.missing), dtype=bool) if self.complete else ~self.scores.missing

    @cached_property
    def _rows(self) -> Mapping[Measure, Floats]:
        return dict(zip(self.scores.measures, self.scores.values, strict=True))

    def _values(self, line: Line) -> Floats:
        """(Q,): the line's values, NaN where undefined."""
        values = line.combine([self._rows[measure] for measure in line.measures])
        return values if self.shows_missing or line.kind == "sum" else np.where(self.scores.missing, 0.0, values)

    def averaged(self) -> Scores:
        """The scores of the lines that have a mean, for the queries that count: what intervals are of."""
        means = [line for line in self.lines if line.kind == "mean"]
        shape = (len(means), int(self.counted.sum()))
        values = [self._values(line)[self.counted] for line in means]
        return replace(
            self.scores,
            query_ids=self.scores.query_ids[self.counted],
            measures=tuple(line.measures[0] for line in means),
            values=np.array(values).reshape(shape),
            weights=np.ones(shape),
            figures={},
            missing=self.scores.missing[self.counted],
        )

    def of_each(self) -> Iterator[str]:
        """The lines of each query, a query at a time."""
        shown = self.counted if self.shows_missing else ~self.scores.missing
        lines = [line for line in self.lines if line.of_each]
        columns = [
            [self.relevance[query] for query in np.flatnonzero(shown).tolist()]
            if line.kind == "relevance"
            else _summands(MEAN, self._values(line)[shown]).tolist()
            for line in lines
        ]
        template = "".join(f"{line.name:<22}\t\0\t{_FORMATS[line.kind]}\n" for line in lines)
        for query_id, *values in zip(self.scores.query_ids[shown], *columns, strict=True):
            yield template.replace("\0", query_id.replace("%", "%%")) % tuple(values)

    def of_all(self, tag: str, intervals: Sequence[Estimate] = ()) -> Iterator[str]:
        """The lines of all queries together.

        Args:
            tag: the name of the output.
            intervals: those of the lines that have a mean, which then have two columns more.
        """
        ends = iter([f"\t{interval.ci_low:6.4f}\t{interval.ci_high:6.4f}" for interval in intervals])
        for line in self.lines:
            if line.kind != "relevance":
                beside = next(ends, "") if line.kind == "mean" else ""
                yield f"{line.name:<22}\tall\t{self._total(line, tag)}{beside}\n"

    def _total(self, line: Line, tag: str) -> str:
        n_queries = int(self.counted.sum())
        if line.kind in ("tag", "queries"):
            return tag if line.kind == "tag" else str(n_queries)
        if line.kind == "sum":
            measure = line.of_all if line.of_all is not None and self.complete else line.measures[0]
            return f"{self._rows[measure][self.counted].sum():.0f}"
        total = np.cumsum(_summands(line.aggregation, self._values(line)[self.counted]))[-1]
        return f"{line.aggregation.backward(total / n_queries):6.4f}"


def relevance_strings(joined: Joined, conventions: Conventions, length: int) -> list[str]:
    """What each query's first documents are judged, a sign each: `-` not, `.` negative, `>` above 9."""
    found = []
    blocks = (block for block in joined.blocks if isinstance(block, JudgedBlock))
    for block in (scoring.ruled(block, conventions) for block in blocks):
        for query, n_retrieved in enumerate(block.n_retrieved):
            signs = ["-"] * min(length, int(n_retrieved))
            for rank, grade in zip(block.ranks[:, query], block.grades[:, query], strict=True):
                if rank <= len(signs):
                    signs[int(rank) - 1] = "." if grade < 0 else ">" if grade > 9 else f"{grade:.0f}"
            found.append("".join(signs))
    return found


def _summands(aggregation: Aggregation, values: Floats) -> Floats:
    """(Q,): what each value adds to the sum that is divided by the number of queries; undefined counts as 0."""
    added, _ = contributions(aggregation, values, np.ones(len(values)), undefined_is_zero=True)
    return added + 0.0  # -0.0 + 0.0 is 0.0, and C would print the sign
