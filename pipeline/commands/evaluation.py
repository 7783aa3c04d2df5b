"""The evaluation that functions return, new or read from a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.record import evaluation as results
from rankledger.pipeline.record.workspace import Opened
from rankledger.pipeline.run import write_temporary_record
from rankledger.pipeline.support.errors import InputError

if TYPE_CHECKING:
    from rankledger.pipeline.data.joined import RetrievedRanks
    from rankledger.pipeline.explain import Explanation
    from rankledger.pipeline.history.baselines import RecordedDataset
    from rankledger.pipeline.history.comparison import ComparisonReport
    from rankledger.pipeline.report.forms import Fit, Form, TableStyle


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(results.Evaluation):
    """A complete evaluation, new or read from a record."""

    _read: tuple[Opened, Inputs] | None = None

    @classmethod
    def from_results(cls, evaluation: results.Evaluation, read: tuple[Opened, Inputs] | None = None) -> Evaluation:
        """Return the evaluation for users, with its config and inputs if they are in memory only."""
        values = {field.name: getattr(evaluation, field.name) for field in fields(results.Evaluation)}
        return cls(**values, _read=read)

    @property
    def headline(self) -> str:
        """Sentences on what failed, where, since when, and who owns it, or that nothing did."""
        from rankledger.pipeline.report.headline import headline_of

        return headline_of(self)

    def compare(self, base: str, candidate: str, *, measure: str | None = None, top: int = 10) -> ComparisonReport:
        """Compare two models query by query.

        Args:
            base: Model to compare with.
            candidate: Model to compare.
            measure: Measure that orders the queries. By default the primary measure.
            top: Number of queries to list on each dataset.

        Raises:
            InputError: The model or the measure does not exist.
        """
        from rankledger.pipeline.history.baselines import retrieved_ranks
        from rankledger.pipeline.history.compare import compare_sides
        from rankledger.pipeline.history.references import open_sides
        from rankledger.pipeline.record.workspace import Workspace

        def ranks(kept: RecordedDataset, of: str) -> RetrievedRanks:
            known = self._read[1].ranks(kept.planned.name, of) if self._read else None
            return known or retrieved_ranks(kept, of)

        with self._record() as path:
            texts = f"{path}#{base}", f"{path}#{candidate}"
            sides = open_sides(*texts, name=None, workspace=Workspace.open("runs"))
            return compare_sides(sides, texts, ranks, measure=measure, top=top)

    def explain(
        self, model: str, query: str | int, measure: str | None = None, *, dataset: str | None = None
    ) -> Explanation:
        """Explain the score of one query by its documents.

        Args:
            model: Model to explain.
            query: Query to explain.
            measure: Measure, computed or not. By default the primary measure.
            dataset: Dataset. By default the one that judges the query.

        Raises:
            InputError: A name is unknown, or a file has changed.
        """
        from rankledger.pipeline.commands import explain

        if self._read is not None:
            opened, _ = self._read
            return explain.explain_opened(opened, model=model, query=str(query), measure=measure, dataset=dataset)
        with self._record() as path:
            return explain.explain(str(path), model=model, query=str(query), measure=measure, dataset=dataset)

    def to_latex(
        self,
        measures: Sequence[str] = (),
        *,
        intervals: bool = False,
        sort: bool = False,
        arrows: bool = False,
        caption: str = "",
        headers: Mapping[str, str] | None = None,
        fit: Fit = "column",
    ) -> str:
        """Write a LaTeX table per dataset, of all measures that fit by default. See `TableStyle`."""
        from rankledger.pipeline.report.forms import TableStyle

        return self._report("latex", measures, TableStyle(intervals, sort, arrows, caption, headers or {}, fit))

    def to_markdown(self, measures: Sequence[str] = ()) -> str:
        """Write a summary for a pull request, by default of all measures that fit."""
        return self._report("markdown", measures)

    def report(self, path: str | Path, measures: Sequence[str] = ()) -> None:
        """Write a report. The path ends in .html, .md, .tex or .csv.

        Raises:
            InputError: The path has another ending, or the measure does not exist.
            OSError: The file cannot be written.
        """
        from rankledger.pipeline.report.forms import ENDINGS
        from rankledger.pipeline.report.verdicts import write_text

        form = ENDINGS.get(Path(path).suffix.lower())
        if form is None:
            raise InputError(f"{path}: unknown file type; let the name end in {', '.join(ENDINGS)}")
        write_text(Path(path), self._report(form, measures))

    def _report(self, form: Form, measures: Sequence[str], style: TableStyle | None = None) -> str:
        from rankledger.pipeline.commands.report import report

        with self._record() as path:
            chosen = [measures] if isinstance(measures, str) else measures
            return report(str(path), form=form, measures=chosen, style=style)

    @contextmanager
    def _record(self) -> Iterator[Path]:
        if self.record is not None:
            yield self.record.absolute()
        elif self._read is None or not self.results:
            raise InputError("no model output was evaluated, so there is nothing to show; see `failures`")
        else:
            with write_temporary_record(self, *self._read) as path:
                try:
                    yield path
                except InputError as error:  # nobody knows the folder
                    raise InputError(*(line.replace(str(path), self.evaluation_id) for line in error.lines)) from None

    def __str__(self) -> str:
        from rankledger.pipeline.report.terminal import leaderboard

        return leaderboard(self, width=get_terminal_size(fallback=(120, 24)).columns, colour=False).rstrip()

    def _repr_html_(self) -> str:
        from rankledger.pipeline.report.notebook import leaderboard

        return leaderboard(self)
