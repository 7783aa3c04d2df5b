"""Scores of one model on one dataset, queries by measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools

if TYPE_CHECKING:
    pass
from dataclasses import replace
from typing import TYPE_CHECKING

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.sources import OutputKey, Replicate

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class RecordedModel:
    """A model of an earlier evaluation, which stands among the models of this one.

    Attributes:
        model: its name there.
        manifest_sha256: the hash of the record's manifest.
    """

    model: str
    manifest_sha256: str


ModelKey: TypeAlias = str | RecordedModel


"""What the scores of a model are found by: a model of this evaluation by its name."""


@dataclass(frozen=True, eq=False)
class Scores:
    """One model's scores on one dataset: a row per judged query, in the order of their ids as UTF-8 bytes.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        query_ids: (Q,) ids.
        measures: the M measures of the rows of `values`.
        values: (M, Q) scores, NaN where undefined.
        weights: (M, Q) what each query weighs in the mean: 1, or its pairs where the measure is pooled.
        figures: the measures that have one figure per dataset and none per query.
        missing: (Q,) whether the query is without output.
        tie_bounds: (3, M, Q) the least, mean and greatest score over all orders of tied documents, where asked for;
            NaN where undefined, and for measures that rank nothing.
        moments: by measure the (S, Q) means that its figure is made of, where that is none of its scores.
        figure_errors: the jackknife standard error of each of `figures`, NaN where it is undefined.
        record: the hash of the record's manifest that the scores are of; None for scores of this evaluation.
        replicates: the scores of each replicate, whose means these are; empty for a model with one output.
        replicate: the name of the replicate; empty for a model's own scores.
        shared_seeds: whether replicates of the same name have the same seed as those of other models that say so.
        failed: by measure of the user's own that failed, why; its scores are NaN, and count as nothing.
        unscored: (Q,) whether an external score that had to be given is undefined; False of other scores.
        n_gone: by measure, queries that a record scored and that the dataset no longer has, if no table names them.
    """

    dataset: str
    model: str
    query_ids: npt.NDArray[np.object_]
    measures: tuple[Measure, ...]
    values: Floats
    weights: Floats
    figures: Mapping[Measure, float]
    missing: Bools
    tie_bounds: Floats | None = None
    moments: Mapping[Measure, Floats] = field(default_factory=dict)
    figure_errors: Mapping[Measure, float] = field(default_factory=dict)
    record: str | None = None
    replicates: tuple[Scores, ...] = ()
    replicate: str = ""
    shared_seeds: bool = False
    failed: Mapping[Measure, str] = field(default_factory=dict)
    unscored: Bools = field(default_factory=lambda: np.array(False))
    n_gone: Mapping[Measure, int] = field(default_factory=dict)

    def renamed(self, ids: Mapping[str, str]) -> Scores:
        """Return the same scores with other ids of some queries."""
        query_ids = np.array([ids.get(query_id, query_id) for query_id in self.query_ids.tolist()], dtype=object)
        return replace(self, query_ids=query_ids, replicates=tuple(own.renamed(ids) for own in self.replicates))

    @property
    def key(self) -> ModelKey:
        """What they are found by among the scores of a dataset."""
        return self.model if self.record is None else RecordedModel(self.model, self.record)

    @property
    def output(self) -> OutputKey:
        """The output that they are of."""
        return self.dataset, Replicate(self.model, self.replicate) if self.replicate else self.model
