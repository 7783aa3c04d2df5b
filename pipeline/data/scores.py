"""Scores of one model on one dataset, queries by measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.sources import OutputKey, Replicate


@dataclass(frozen=True)
class RecordedModel:
    """Model of an earlier evaluation that is compared with the models of this one."""

    model: str
    manifest_sha256: str


ModelKey: TypeAlias = str | RecordedModel  # the name of a model of this evaluation, or an earlier one


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of one model on one dataset: M measures of Q queries, in the order of their ids as UTF-8 bytes.

    Attributes:
        dataset: Dataset name.
        model: Model name.
        query_ids: (Q,) ids.
        measures: Measures of the rows of `values`.
        values: (M, Q) scores, NaN if undefined.
        weights: (M, Q) weight of each query in the mean: 1, or its pairs if the measure is pooled.
        figures: Values of measures that have one per dataset and none per query.
        missing: (Q,) True for a query without output.
        tie_bounds: (3, M, Q) minimum, mean and maximum score over all orders of tied documents. NaN if undefined.
        moments: (S, Q) means that a figure is made of, by measure, if it is not made of scores.
        figure_errors: Jackknife standard errors of `figures`, NaN if undefined.
        record: Hash of the manifest of an earlier evaluation. None for this one.
        replicates: Scores of each replicate, whose means these are. Empty for a model with one output.
        replicate: Name of the replicate. Empty for a model's own scores.
        shared_seeds: True if replicates of the same name have the same seed as in other such models.
        failed: Reason by custom measure that failed, whose scores are NaN.
        unscored: (Q,) True if a required external score is undefined.
        n_gone: Queries by measure that a record scored and the dataset no longer has, if no table names them.
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
        """Return the scores with other ids of some queries."""
        query_ids = np.array([ids.get(query_id, query_id) for query_id in self.query_ids.tolist()], dtype=object)
        return replace(self, query_ids=query_ids, replicates=tuple(own.renamed(ids) for own in self.replicates))

    @property
    def key(self) -> ModelKey:
        """Key among the scores of a dataset."""
        return self.model if self.record is None else RecordedModel(self.model, self.record)

    @property
    def output(self) -> OutputKey:
        """Output that was scored."""
        return self.dataset, Replicate(self.model, self.replicate) if self.replicate else self.model
