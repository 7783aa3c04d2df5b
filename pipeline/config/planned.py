"""What a config comes to: the tables of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from metrics.measure import Measure
from pipeline.config.comparison import Correction, Test
from pipeline.config.entries import File, Model, OutputFile
from pipeline.verdicts import PlannedGate

__all__ = ["Kind", "Plan", "PlannedComparison", "PlannedDataset", "Task", "kind_of"]

Kind: TypeAlias = Literal["rankings", "ratings", "scores"]


@dataclass(frozen=True)
class Task:
    """One model on one dataset."""

    dataset: str
    model: str
    output: OutputFile
    """Its path is absolute or a URL; its columns include the dataset's."""


@dataclass(frozen=True)
class PlannedDataset:
    """A dataset with its files found and its measures spelled out; files as in `Task`."""

    name: str
    kind: Kind
    judgments: File | None
    ratings: File | None
    queries: File | None
    documents: File | None
    interactions: File | None
    duplicates: Literal["refuse", "keep_first"]
    subtopics: bool
    suites: Mapping[str, tuple[Measure, ...]]
    """By name; scores that were made elsewhere are one suite, `scores`."""

    relevant: float | None = None
    """What `rel` is in measures that do not say; None where the dataset does not say either."""

    cluster: str | None = None
    """The column of the queries table whose queries of equal text are drawn as one; None where each is by itself."""

    slices: tuple[str, ...] = ()
    """The columns of the queries table each text of which makes a slice."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The distinct measures of all its suites, in their order."""
        return tuple(dict.fromkeys(measure for suite in self.suites.values() for measure in suite))

    def defined(self, measure: Measure) -> Measure:
        """The measure as the dataset defines it: with its `relevant` for a `rel` that the measure does not give."""
        if self.relevant is None or "rel" not in measure.parameters or "rel" in dict(measure.given):
            return measure
        return measure.with_default("rel", int(self.relevant) if self.relevant.is_integer() else self.relevant)

    @property
    def judged(self) -> File:
        """Its judgments, or its ratings: every dataset but one of scores has one of them."""
        file = self.judgments or self.ratings
        assert file is not None, "a dataset of scores is read otherwise, and any other is refused without"
        return file

    @property
    def files(self) -> tuple[File, ...]:
        """Its files, those it has."""
        files = (self.judgments, self.ratings, self.queries, self.documents, self.interactions)
        return tuple(file for file in files if file is not None)


@dataclass(frozen=True)
class PlannedComparison:
    """Which models are compared, and how.

    Attributes:
        pairs: the (model, baseline) that are compared, by dataset; models without output may be among them.
        measures: by what, by dataset.
        test: what the p-values are of.
        permutations: times signs are flipped.
        correction: how p-values are corrected.
    """

    pairs: Mapping[str, tuple[tuple[str, str], ...]]
    measures: Mapping[str, tuple[Measure, ...]]
    test: Test
    permutations: int
    correction: Correction


@dataclass(frozen=True)
class Plan:
    """Everything that will be evaluated, in the config's order."""

    date: str | None
    """What `{date}` stands for."""

    datasets: tuple[PlannedDataset, ...]
    models: Mapping[str, Model]
    """Every model by name, those that were searched for included."""

    tasks: tuple[Task, ...]
    """Dataset by dataset, the models in order."""

    extras: Mapping[str, File] = field(default_factory=dict)
    """The file of a model's numbers from outside, by model, of those that have one; paths as in `Task`."""

    comparison: PlannedComparison | None = None
    lead: Mapping[str, Measure] = field(default_factory=dict)
    """By dataset, the measure that leads on it everywhere."""

    matters: Mapping[str, float] = field(default_factory=dict)
    """By measure, the least difference that matters."""

    gates: tuple[PlannedGate, ...] = ()
    records: str | None = None
    """Where records are kept: a folder or the URL of one; None for the runs folder."""

    warnings: tuple[str, ...] = ()
    """What is allowed but hardly meant, a line each."""

    late: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Why an output is not to be read, by (dataset, model): it was waited for in vain. None unless a night waits."""


def kind_of(measure: Measure) -> Kind:
    """The kind of datasets that the measure is of."""
    return measure.metric.input if measure.metric.input in ("ratings", "scores") else "rankings"
