"""What one evaluation measured, what of it lies on disk, and what a config comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from pipeline.tables.joined import Quality
from pipeline.tables.scores import Estimate, Scores
from pipeline.verdicts import Comparison, Verdict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DataWarning", "Evaluation", "Failure", "Record", "Validation", "definitions_on"]


@dataclass(frozen=True)
class DataWarning:
    """What is likely wrong with the inputs, though nothing had to be refused.

    Attributes:
        dataset: the dataset's name.
        model: the model whose output it is of; empty where it is of the dataset itself.
        warning: one line.
    """

    dataset: str
    model: str
    warning: str

    def __str__(self) -> str:
        """The line with what it is of."""
        return f"{self.model} on {self.dataset}: {self.warning}" if self.model else f"{self.dataset}: {self.warning}"


@dataclass(frozen=True)
class Failure:
    """A model output that is missing or was refused.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        reason: one line: file, row, what was found, what to do.
    """

    dataset: str
    model: str
    reason: str


class Record:
    """A finished record as it lies on disk.

    A table is had when it is first asked for: those of a large evaluation take seconds to read, and whoever wants the
    scores of a record, or to know whether it is whole, needs none.

    Attributes:
        path: its folder.
        manifest: what `manifest.json` holds.
    """

    def __init__(
        self,
        path: Path,
        manifest: Mapping[str, Any],
        *,
        summary: Callable[[], tuple[Estimate, ...]] = tuple,
        comparisons: Callable[[], tuple[Comparison, ...]] = tuple,
        verdicts: Callable[[], tuple[Verdict, ...]] = tuple,
    ) -> None:
        """Know where the record is, and how each of its tables is had."""
        self.path = path
        self.manifest = manifest
        self._summary = summary
        self._comparisons = comparisons
        self._verdicts = verdicts

    def __eq__(self, other: object) -> bool:
        """Whether that is a record, written or read, that holds the same."""
        return isinstance(other, Record) and self._contents == other._contents

    __hash__ = None  # type: ignore[assignment]  # it holds tables

    @cached_property
    def summary(self) -> tuple[Estimate, ...]:
        """The lines of `summary.csv`.

        Raises:
            InputError: it is not what was written.
        """
        return self._summary()

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Those of `comparisons.csv`; none if it has none. Errors are those of `summary`."""
        return self._comparisons()

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those of `gates.json`; none if it has none. Errors are those of `summary`."""
        return self._verdicts()

    @property
    def _contents(self) -> tuple[object, ...]:
        return self.path, self.manifest, self.summary, self.comparisons, self.verdicts


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What one evaluation measured.

    Attributes:
        evaluation_id: `<UTC>-<name>-<8 hex>`.
        name: the config's name.
        directions: whether higher or lower is better, by measure.
        results: one `Scores` per dataset and model, in the config's order; none where it was read from its record.
        estimates: the lines of the summary.
        quality: what the join found, by (dataset, model).
        failures: the model outputs that were missing or refused.
        record: the record's folder; None where no model output was evaluated, of which `evaluate` writes none.
        store: the MLflow store that holds it too; None where it was not tracked.
        untracked: why it was not tracked though it should have been.
        unsaved: why the record is not where records are kept, but in the runs folder alone.
        delivery: the command that delivers it later.
        warnings: what is worth knowing and stopped nothing, a line each.
        data_warnings: what is likely wrong with the inputs.
        comparison_lines: the paired comparisons.
        verdicts: what the gates say.
        confidence: of the intervals; what is left to 1 is the level of the tests.
        lead: by dataset, the measure that the plan leads with.
    """

    evaluation_id: str
    name: str
    directions: Mapping[str, str]
    results: tuple[Scores, ...]
    estimates: tuple[Estimate, ...]
    quality: Mapping[tuple[str, str], Quality]
    failures: tuple[Failure, ...]
    record: Path | None
    store: str | None = None
    untracked: str | None = None
    unsaved: str | None = None
    delivery: str = "rankledger sync"
    warnings: tuple[str, ...] = ()
    data_warnings: tuple[DataWarning, ...] = ()
    comparison_lines: tuple[Comparison, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    confidence: float = 0.95
    lead: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Which one it is and where: all of its fields would be as long as the record."""
        return f"<Evaluation {self.evaluation_id} in {self.record}>"

    @cached_property
    def leading(self) -> Mapping[str, str]:
        """By dataset with a figure, the measure that leads on every surface: the plan's.

        The mean of all datasets, `*`, leads with the first of their measures that it has.
        """
        measures: dict[str, dict[str, None]] = {}
        for line in self.estimates:
            measures.setdefault(line.dataset, {})[line.measure] = None
        return {
            dataset: next(lead for lead in (self.lead.get(dataset, ""), *self.lead.values(), *own) if lead in own)
            for dataset, own in measures.items()
        }

    @cached_property
    def leading_difference(self) -> Mapping[str, str]:
        """By dataset, the measure whose differences lead: the leading one.

        Where models are compared by others alone, it is the first of those.
        """
        compared: dict[str, dict[str, None]] = {}
        for line in self.comparison_lines:
            compared.setdefault(line.dataset, {})[line.measure] = None
        return {
            dataset: lead if lead in (own := compared.get(dataset, {lead: None})) else next(iter(own))
            for dataset, lead in self.leading.items()
        }

    @property
    def summary(self) -> pd.DataFrame:
        """A row per dataset, model, slice and measure, with the columns of `Estimate`; NaN where there is no figure."""
        return _frame(Estimate, self.estimates)

    @property
    def comparisons(self) -> pd.DataFrame:
        """A row per pair, measure and slice, with the columns of `Comparison`; NaN where there is no figure."""
        return _frame(Comparison, self.comparison_lines)

    @property
    def gates(self) -> pd.DataFrame:
        """A row per verdict, with the columns of `Verdict`; NaN where there is no figure."""
        return _frame(Verdict, self.verdicts)

    @property
    def scores(self) -> pd.DataFrame:
        """A row per dataset, model and query, and a column per measure; NaN where undefined or not measured there."""
        import pandas as pd

        tables = [
            pd.DataFrame(
                {"dataset": result.dataset, "model": result.model, "query_id": result.query_ids}
                | {str(measure): row for measure, row in zip(result.measures, result.values, strict=True)}
            )
            for result in self.results
        ]
        if not tables:
            return pd.DataFrame(columns=["dataset", "model", "query_id"])
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, eq=False)
class Validation:
    """What a config comes to and what its inputs hold, with nothing computed.

    Attributes:
        n_queries: judged queries, by dataset.
        n_measures: distinct measures, by dataset.
        models: the models, in order.
        quality: what the join found, by (dataset, model).
        failures: the model outputs that are missing or refused.
        warnings: what is allowed but hardly meant, a line each.
    """

    n_queries: Mapping[str, int]
    n_measures: Mapping[str, int]
    models: tuple[str, ...]
    quality: Mapping[tuple[str, str], Quality]
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...] = ()


def definitions_on(manifest: Mapping[str, Any], dataset: str) -> Mapping[str, Any]:
    """What a manifest says of measures, by name, as the dataset defines them; of other datasets, as most do."""
    own = manifest["datasets"].get(dataset, {}).get("definitions", {}) if "datasets" in manifest else {}
    return {**manifest["definitions"], **own}


def _frame(kind: type[Estimate] | type[Comparison] | type[Verdict], lines: Sequence[object]) -> pd.DataFrame:
    """A row per line and a column per field; figures that may be missing are doubles."""
    import pandas as pd

    types = get_type_hints(kind)
    columns = {field.name: [getattr(line, field.name) for line in lines] for field in fields(kind)}
    figures = [name for name, type_ in types.items() if type_ in (float | None, int | None)]
    return pd.DataFrame(columns | {name: np.array(columns[name], dtype=np.float64) for name in figures})
