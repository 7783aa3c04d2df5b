"""For a terminal: leaderboards, differences and the matrix of what would be evaluated; and the evaluation as data."""

from __future__ import annotations

import importlib.util
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rankledger.pipeline.report.effects import p_value_notes
from rankledger.pipeline.report.headline import headline_of
from rankledger.pipeline.report.messages import dataset_counts, failures, legend, notes
from rankledger.pipeline.report.tables import (
    FEWEST_CELLS,
    MOST_CELLS,
    Interval,
    Leaderboard,
    MeasureColumn,
    difference_rows,
    difference_table,
    interval_bar,
    leaderboards,
    scale_header,
    shared_baseline,
)
from rankledger.pipeline.report.text_table import TerminalText, counted, frame_width, queries, short_text
from rankledger.pipeline.support.escaping import visible
from rankledger.pipeline.types.results import ALL, Comparison, Evaluation, Validation

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["NO_RECORD", "as_data", "closing", "differences", "leaderboard", "matrix"]

NO_RECORD = "record: none, because no model output was evaluated"

_LETTERS = "letters"
_RANK = "rank"
_MEASURES = 2  # shown before the intervals of the first are drawn
_NARROWEST = 15  # columns of a name on a narrow terminal, with its frame
_OUTPUTS = 30  # with a line of their own
_PAIRS = 45  # of a table: all pairs of ten models
_PAGE = "report.html"
_NAME = 400  # characters of a name, which may have 10,000
_NOTE = 2_000  # characters


def leaderboard(evaluation: Evaluation, *, width: int, colour: bool) -> str:
    """A table per dataset, models by the lead measure, best first; then notes on the data.

    Args:
        evaluation: what to show.
        width: columns of the terminal; as many measures are shown as fit, and the intervals of the first drawn.
        colour: whether to write the terminal's colours.
    """
    text = TerminalText(width=width, colour=colour)
    boards = [_FittedLeaderboard.fit(board, width) for board in leaderboards(evaluation)]
    for board in boards:
        text.add_table(board.table(width))
        if omitted := board.board.measures[len(board.columns) :]:
            line = f"{counted(len(omitted), 'more measure')} in summary.csv: {', '.join(omitted)}"
            text.add(*wrap(line, width, break_on_hyphens=False))
    lead = [interval for board in boards for interval in board.intervals]
    signs = legend(
        evaluation,
        intervals=any(interval.low is not None for interval in lead),
        drawn=any(board.n_cells for board in boards),
        bold=colour and bool(boards),
        letters=any(board.columns[0].letters for board in boards),
    )
    for line in (*filter(None, [signs]), *_notes(evaluation), *failures(evaluation.failures)):
        text.add(short_text(line, _NOTE))
    return str(text)


def differences(lines: Sequence[Comparison], measures: Mapping[str, str], *, width: int, colour: bool) -> str:
    """By dataset, the comparisons on all queries by the leading measure, and where the others are.

    Args:
        lines: in the order of `comparisons.csv`.
        measures: by dataset, the measure that leads.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    text = TerminalText(width=width, colour=colour)
    for dataset in dict.fromkeys(line.dataset for line in lines):
        measure = measures[dataset]
        own = [line for line in lines if line.dataset == dataset]
        leading = [line for line in own if line.slice == ALL and line.measure == measure]
        baseline = shared_baseline(leading)
        title = f"{dataset}: {measure}{f' against {baseline}' if baseline else ''}"
        text.add_table(difference_table(title, difference_rows(leading[:_PAIRS]), pairs=not baseline))
        notes = p_value_notes(own)
        if len(leading) > _PAIRS:
            notes.append(f"{len(leading) - _PAIRS:,} more by {measure} in comparisons.csv")
        if len(own) > len(leading):
            notes.append(f"{len(own) - len(leading):,} more in comparisons.csv, by other measures and slices")
        text.add("; ".join(notes))
    return str(text)


def as_data(evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation as JSON can hold it: id, headline, record, lead, the lines of its tables, quality, failures."""
    return {
        "evaluation_id": evaluation.evaluation_id,
        "headline": headline_of(evaluation),
        "record": None if evaluation.record is None else str(evaluation.record),
        "store": evaluation.store,
        "untracked": evaluation.untracked,
        "unsent": list(evaluation.unsent),
        "promotions": list(evaluation.promotions),
        "unpromoted": evaluation.unpromoted,
        "lead": dict(evaluation.leading),
        "estimates": [asdict(line) for line in evaluation.estimates],
        "agreement": [asdict(line) for line in evaluation.agreement],
        "replicates": [asdict(line) for line in evaluation.replicates],
        "variance_components": [asdict(line) for line in evaluation.components],
        "comparisons": [asdict(line) for line in evaluation.comparison_lines],
        "slice_changes": [asdict(line) for line in evaluation.slice_changes],
        "changes": [asdict(line) for line in evaluation.changes],
        "gates": [asdict(verdict) for verdict in evaluation.verdicts],
        "warnings": [asdict(warning) for warning in evaluation.data_warnings],
        "quality": [
            {"dataset": dataset, "model": model, **asdict(quality)}
            for (dataset, model), quality in evaluation.quality.items()
        ],
        "failures": [asdict(failure) for failure in evaluation.failures],
    }


def matrix(validation: Validation, *, width: int) -> str:
    """What would be evaluated: a line per model, a column per dataset, and what is known of each output."""
    from rich.table import Table
    from rich.text import Text

    counts = (counted(len(validation.models), "model"), counted(len(validation.n_queries), "dataset"))
    table = Table(title=" on ".join(counts), title_justify="left")
    table.add_column("model", overflow="fold")
    for dataset, n_queries in validation.n_queries.items():
        header = f"{visible(dataset)}\n{queries(n_queries)}, {counted(validation.n_measures[dataset], 'measure')}"
        table.add_column(Text(header, overflow="fold"), overflow="fold")
    failed = Counter((failure.dataset, failure.model) for failure in validation.failures)
    for model in validation.models:
        tasks = [(dataset, model) for dataset in validation.n_queries]
        table.add_row(Text(visible(model)), *(_state(validation, task, failed[task]) for task in tasks))
    text = TerminalText(width=width)
    text.add_table(table)
    for (dataset, model), quality in validation.quality.items():
        names = validation.replicates.get((dataset, model), ())
        found = f"{counted(len(names), 'replicate')} ({', '.join(names)}), " if names else ""
        text.add(f"{model} on {dataset}: {found}{dataset_counts(quality, validation.n_queries[dataset])}")
    text.add(*failures(validation.failures, verb=""))
    if validation.false_alarms:
        text.add(validation.false_alarms)
    return str(text)


def _state(validation: Validation, task: tuple[str, str], n_failed: int) -> str:
    """The state of a model's output on a dataset; if some replicates failed, how many are ready."""
    if task not in validation.quality:
        return "failed" if n_failed else "-"
    n_ready = len(validation.replicates.get(task, ()))
    return f"{n_ready} of {n_ready + n_failed} ready" if n_failed else "ready"


def closing(evaluation: Evaluation) -> list[str]:
    """The headline, and where the evaluation is: the MLflow store, the page, and on the last line the record."""
    lines = ["", *filter(None, [headline_of(evaluation)])]
    if evaluation.record is None:
        return [*lines, NO_RECORD]
    if evaluation.store:
        lines.append(f"MLflow: {_opened(evaluation.store)}")
    lines += evaluation.promotions
    if (evaluation.record / _PAGE).is_file():
        lines.append(f"report: {evaluation.record / _PAGE}")
    return [*lines, f"record: {evaluation.record}"]


def _opened(store: str) -> str:
    """The address of a server, or the command that shows a database; its server needs more than to log does."""
    if store.startswith(("http", "databricks")):
        return store
    install = "" if importlib.util.find_spec("flask") else " (install it with: pip install 'rankledger[ui]')"
    return f"mlflow ui --backend-store-uri {shlex.quote(store)}{install}"


def _notes(evaluation: Evaluation) -> list[str]:
    """Notes on the data; of very many outputs on the first alone."""
    lines = list(notes(evaluation))  # a line for each output comes first
    n_left = len(evaluation.quality) - _OUTPUTS
    if n_left > 0:
        lines[_OUTPUTS : _OUTPUTS + n_left] = [f"{counted(n_left, 'more output')} in manifest.json"]
    return lines


@dataclass(frozen=True)
class _FittedLeaderboard:
    """A leaderboard cut to the width of the terminal."""

    board: Leaderboard
    columns: tuple[MeasureColumn, ...]  # that fit; always the first
    ranks: Mapping[str, str]  # by the first measure; empty if they do not fit
    n_cells: int  # the width of the interval bars of the first measure; 0 if they are not drawn

    @classmethod
    def fit(cls, board: Leaderboard, width: int) -> _FittedLeaderboard:
        """As much as fits beside the names; long names are folded, and bars take the place of a third measure."""
        lead = board.columns[0]
        ranks = lead.ranks if cls(board, board.columns[:1], lead.ranks, 0)._least_width <= width else {}
        names = min(frame_width(["model", *map(_short_name, board.models)]), width // 2)
        room = width - 1 - names - _width_of_ranks(ranks) - (frame_width([_LETTERS]) if lead.letters else 0)
        ends = list(accumulate(map(_width, board.columns)))
        n_measures = max(1, sum(end <= room for end in ends))
        n_cells = 0
        if len(board.models) > 1 and any(line.ci_low is not None for line in lead.estimates.values()):
            if n_measures > _MEASURES and room - ends[n_measures - 1] < frame_width(["." * FEWEST_CELLS]):
                n_measures -= 1
            fits = min(room - ends[n_measures - 1] - frame_width([""]), MOST_CELLS)
            n_cells = fits if fits >= len(scale_header(lead.scale, FEWEST_CELLS)) else 0
        return cls(board, board.columns[:n_measures], ranks, n_cells)

    @property
    def intervals(self) -> Iterator[Interval]:
        """The intervals of the lead measure."""
        return map(Interval.of, self.columns[0].estimates.values())

    def table(self, width: int) -> Table:
        """The table: as wide as `width` allows, but wider if figures would be cut."""
        from rich.table import Table
        from rich.text import Text

        lead, *others = self.columns
        least = self._least_width
        title = Text(self.board.title)
        table = Table(title=title, title_justify="left", width=least if least > width else None)
        table.add_column("model", overflow="fold")
        if self.ranks:
            table.add_column(_RANK, justify="right", no_wrap=True)
        table.add_column(Text(lead.measure), justify="right", no_wrap=True)
        if lead.letters:
            table.add_column(_LETTERS)
        if self.n_cells:
            table.add_column(scale_header(lead.scale, self.n_cells), no_wrap=True)
        for column in others:
            table.add_column(Text(column.measure), justify="right", no_wrap=True)
        for model, line in lead.estimates.items():
            first, *rest = (Text(c.text(model), style="bold" if c.is_best(model) else "") for c in self.columns)
            ranks = [Text(self.ranks[model])] if self.ranks else []
            beside = [Text(lead.letters[model])] if lead.letters else []
            beside += [Text(interval_bar(Interval.of(line), lead.scale, self.n_cells))] if self.n_cells else []
            table.add_row(Text(_short_name(model)), *ranks, first, *beside, *rest)
        return table

    @property
    def _least_width(self) -> int:
        """The columns of the terminal below which the first measure would be cut."""
        lead = self.columns[0]
        names = min(frame_width(["model", *map(_short_name, self.board.models)]), _NARROWEST)
        names += _width_of_ranks(self.ranks)
        return 1 + names + _width(lead) + (frame_width([_LETTERS, *lead.letters.values()]) if lead.letters else 0)


def _short_name(name: str) -> str:
    return short_text(name, _NAME)


def _width_of_ranks(ranks: Mapping[str, str]) -> int:
    """The columns of the terminal that the ranks take; none if there are none."""
    return frame_width([_RANK, *ranks.values()]) if ranks else 0


def _width(column: MeasureColumn) -> int:
    """The columns of the terminal that a measure takes."""
    return frame_width([column.measure, *map(column.text, column.estimates)])
