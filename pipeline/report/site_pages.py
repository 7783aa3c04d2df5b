"""What the site over all records shows: of each record its verdict and its lead figures, and their history.

Paths within the site are made of ids, and of slugs with a digest: a name may be anything, and chooses no path.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise

from pydantic import AwareDatetime

from rankledger.pipeline.history.views import History, Series
from rankledger.pipeline.record.evaluation import State
from rankledger.pipeline.record.manifest_parts import Comparability

FEED = "feed.xml"


def evaluation_path(name: str) -> str:
    """The page of an evaluation."""
    return f"evaluations/{_slug(name)}.html"


def model_path(name: str) -> str:
    """The page of a model."""
    return f"models/{_slug(name)}.html"


def record_path(evaluation_id: str) -> str:
    """The page of a record."""
    return f"records/{evaluation_id}.html"


def _slug(name: str) -> str:
    """Letters and digits of a name for the reader, and a digest, which tells `BM25` from `bm25` on any disk."""
    plain = re.sub("[^a-z0-9]+", "-", name.lower())[:40].strip("-")
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{plain}-{digest}" if plain else digest


@dataclass(frozen=True)
class SiteDataset:
    """How a dataset was measured.

    Attributes:
        measure: its lead measure.
        direction: of the measure.
        rests_on: Everything besides outputs that the scores rest on.
    """

    measure: str
    direction: str
    rests_on: Comparability


@dataclass(frozen=True)
class SiteFigure:
    """The figure of a model on a dataset by its lead measure; None if there is none.

    Attributes:
        dataset: the dataset; `*` for the mean of all datasets.
        model: the model.
        estimate: the figure.
        ci_low: lower end of its confidence interval.
        ci_high: upper end.
        std_error: its standard deviation over the resamples.
        n_queries: judged queries.
        mark: why the interval is not to be trusted, or empty.
        failure: why the output was not evaluated; empty if it was.
    """

    dataset: str
    model: str
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    std_error: float | None = None
    n_queries: int = 0
    mark: str = ""
    failure: str = ""


@dataclass(frozen=True)
class SiteRecord:
    """What the site needs of a record.

    Attributes:
        evaluation_id: its id.
        name: the evaluation's name.
        date: its night.
        created: when it began, in UTC.
        repeats: whether an earlier evaluation was repeated, which is no new night.
        state: what it came to.
        has_gates: whether anything was judged.
        headline: what happened, in a few short sentences.
        failing: the models with a verdict that stops the release, with their owners, such as `bm25 (search-team)`.
        version: of rankledger; None if unknown.
        commit: of the config's repository; None outside one.
        page_size: bytes of its page; None if it has none.
        owners: who answers for each model that has an owner.
        datasets: by name, how they were measured; `*` is the mean of all.
        figures: the lead figures, by dataset and model.
    """

    evaluation_id: str
    name: str
    date: str
    created: AwareDatetime
    repeats: bool
    state: State
    has_gates: bool
    headline: str
    failing: tuple[str, ...] = ()
    version: str | None = None
    commit: str | None = None
    page_size: int | None = None
    owners: dict[str, str] = field(default_factory=dict)
    datasets: dict[str, SiteDataset] = field(default_factory=dict)
    figures: tuple[SiteFigure, ...] = ()

    @property
    def path(self) -> str:
        """The page to link to: the record's own, or that of its evaluation."""
        return evaluation_path(self.name) if self.page_size is None else record_path(self.evaluation_id)


@dataclass(frozen=True)
class SiteEvaluation:
    """The records of a name.

    Attributes:
        records: all of them, most recent first; at least one.
        nights: the last record of each date, repetitions apart, oldest first.
        histories: the lead measures of the last night, with their series.
    """

    records: tuple[SiteRecord, ...]
    nights: tuple[SiteRecord, ...]
    histories: tuple[History, ...] = ()

    @property
    def name(self) -> str:
        """The evaluation's name."""
        return self.records[0].name

    @property
    def last(self) -> SiteRecord:
        """The last night; the last record if all repeat records that are gone."""
        return (self.nights or self.records[:1])[-1]

    @property
    def changes(self) -> tuple[tuple[SiteRecord, SiteRecord], ...]:
        """The nights whose verdict is not that of the night before, oldest first, each after that night.

        The first night of all is no change: it is the first only because older records were deleted, or never were.
        """
        return tuple((before, night) for before, night in pairwise(self.nights) if night.state != before.state)

    @property
    def since(self) -> SiteRecord:
        """The night from which on the verdict is what it is now."""
        changes = self.changes
        return changes[-1][1] if changes else (self.nights or self.records[-1:])[0]


@dataclass(frozen=True)
class SiteSeries:
    """The nights of a model on a dataset in an evaluation.

    Attributes:
        evaluation: the evaluation.
        measure: the measure.
        series: the nights.
    """

    evaluation: SiteEvaluation
    measure: str
    series: Series


@dataclass(frozen=True)
class Site:
    """All that the site shows.

    Attributes:
        evaluations: by name.
        identity: what tells its feed from others: the URL that it is published at, or that of the records.
        url: where it is published, with a `/` at its end; empty if that is not known.
    """

    evaluations: tuple[SiteEvaluation, ...]
    identity: str = ""
    url: str = ""

    @cached_property
    def models(self) -> dict[str, tuple[SiteSeries, ...]]:
        """The series of each model, by its name."""
        found = sorted(self._series(), key=lambda one: one.series.model)
        return {name: tuple(own) for name, own in groupby(found, key=lambda one: one.series.model)}

    def _series(self) -> Iterator[SiteSeries]:
        for evaluation in self.evaluations:
            for history in evaluation.histories:
                for series in history.series:
                    yield SiteSeries(evaluation, history.measure, series)
