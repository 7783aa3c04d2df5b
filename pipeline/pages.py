"""What a report shows of an evaluation: its figures, and query by query how pairs of models differ.

Differences are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from metrics.block import Floats
from pipeline.ledger import History
from pipeline.movement import MovedQuery
from pipeline.tables import Evaluation

__all__ = ["Curve", "CurvePoint", "Page", "PairedScores"]

Curve: TypeAlias = Literal["precision", "judged"]
"""`precision`: interpolated, by recall; `judged`: the share of the documents at a rank that are judged."""


@dataclass(frozen=True)
class CurvePoint:
    """A point of a model's curve on a dataset, a line of `curves.csv`; None where there is no figure.

    Attributes:
        dataset: the dataset's name.
        model: the model's.
        curve: what it is.
        at: where: the recall, in [0, 1], or the rank, from 1 on.
        estimate: the figure, in [0, 1].
        ci_low: lower end of its confidence interval; None for `judged`, which is no sample.
        ci_high: upper end.
        n_queries: queries that it rests on: the judged ones, or those that retrieve as many documents.
    """

    dataset: str
    model: str
    curve: Curve
    at: float
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    n_queries: int


@dataclass(frozen=True, eq=False)
class PairedScores:
    """The scores that two models have on the same queries by one measure.

    Attributes:
        dataset: the dataset's name.
        model: the model that is compared.
        baseline: the one that it is compared with; `bm25 in ID` where that is of another record.
        measure: by what.
        query_ids: (Q,) the queries, in the order of their ids.
        before: (Q,) the baseline's scores, NaN where undefined or left out of every mean.
        after: (Q,) the model's.
        change: (Q,) the second less the first, the other way round where lower is better.
        movers: the queries that moved most, the greatest change first.
    """

    dataset: str
    model: str
    baseline: str
    measure: str
    query_ids: npt.NDArray[np.object_]
    before: Floats
    after: Floats
    change: Floats
    movers: tuple[MovedQuery, ...] = ()


@dataclass(frozen=True, eq=False)
class Page:
    """All that a report shows of one evaluation.

    Attributes:
        title: what it is called: the evaluation's name, with the date where one was given; its id where a report shows
            several.
        evaluation: its figures, as `evaluation_of` gives them.
        manifest: what the record's `manifest.json` holds. The page that lies in the record shows nothing of it that
            differs each time: no id, time, user, host, platform or seconds.
        curves: the points of its curves.
        pairs: the pairs that are shown query by query.
        remarks: what is left out, and why, a line each.
        history: series of the evaluations of its name; none on the page that lies in the record.
    """

    title: str
    evaluation: Evaluation
    manifest: Mapping[str, Any]
    curves: tuple[CurvePoint, ...] = ()
    pairs: tuple[PairedScores, ...] = ()
    remarks: tuple[str, ...] = ()
    history: tuple[History, ...] = ()

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that a model was evaluated on, `*` for the mean of all, in the order of the summary."""
        return tuple(dict.fromkeys(line.dataset for line in self.evaluation.estimates))

    @property
    def matters(self) -> Mapping[str, float]:
        """By measure, the least difference that matters, where the config says."""
        found: Mapping[str, float] = self.manifest.get("matters") or {}
        return found
