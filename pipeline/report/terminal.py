"""The leaderboard and the matrix of what would be evaluated, for a terminal; and the evaluation as data."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from rankledger.pipeline.report.messages import dataset_counts, failures, legend, notes
from rankledger.pipeline.report.tables import (
    FEWEST_CELLS,
    MOST_CELLS,
    Leaderboard,
    cell,
    display_name,
    leaderboards,
    lettered,
    marked,
    ranked,
    text_scale,
)
from rankledger.pipeline.report.text_table import TerminalText, clipped, counted
from rankledger.pipeline.support.escaping import visible
from rankledger.pipeline.types.results import Estimate, Evaluation, Validation

__all__ = ["NO_RECORD", "as_data", "closing", "leaderboard", "matrix"]

NO_RECORD = "record: none, for no model output was evaluated"

_LETTERS = "letters"
_BESIDE = 2  # measures that are rather shown than the intervals of the first drawn
_FRAME = 3  # a line and a blank on either side
_NARROWEST = 12  # what is left of a name on a narrow terminal
_OUTPUTS = 30  # that have a line of their own
_PAGE = "report.html"
_NAME = 400  # letters of a name, of which there may be 10,000
_LINE = 2_000  # letters of a remark


def leaderboard(evaluation: Evaluation, *, width: int, colour: bool) -> str:
    """A table per dataset, models by the leading measure, best first; then what to know about the data.

    Args:
        evaluation: what to show.
        width: columns of the terminal; as many measures are shown as fit, and the intervals of the first drawn.
        colour: whether to write the terminal's colours.
    """
    screen = TerminalText(width=width, colour=colour)
    shown = [_Shown.fitting(evaluation, dataset, board, width) for dataset, board in leaderboards(evaluation).items()]
    for each in shown:
        screen.draw(each.table(width))
        if each.left:
            left = f"{counted(len(each.left), 'more measure')} in summary.csv: {', '.join(each.left)}"
            screen.say(*wrap(left, width, break_on_hyphens=False))
    for line in (*_legend(evaluation, shown, colour), *_remarks(evaluation), *failures(evaluation.failures)):
        screen.say(clipped(visible(line), _LINE))
    return str(screen)


def as_data(evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation as JSON can hold it: id, record, what leads, estimates, comparisons, gates, quality, failures."""
    return {
        "evaluation_id": evaluation.evaluation_id,
        "record": None if evaluation.record is None else str(evaluation.record),
        "store": evaluation.store,
        "untracked": evaluation.untracked,
        "lead": dict(evaluation.leading),
        "estimates": [asdict(line) for line in evaluation.estimates],
        "comparisons": [asdict(line) for line in evaluation.comparison_lines],
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
    counts = (counted(len(validation.models), "model"), counted(len(validation.n_queries), "dataset"))
    table = Table(title=" on ".join(counts), title_justify="left")
    table.add_column("model", overflow="fold")
    for dataset, n_queries in validation.n_queries.items():
        measures = counted(validation.n_measures[dataset], "measure")
        header = f"{visible(dataset)}\n{counted(n_queries, 'query', 'queries')}, {measures}"
        table.add_column(Text(header, overflow="fold"), overflow="fold")
    failed = {(failure.dataset, failure.model) for failure in validation.failures}
    for model in validation.models:
        tasks = [(dataset, model) for dataset in validation.n_queries]
        states = ["failed" if t in failed else "ready" if t in validation.quality else "-" for t in tasks]
        table.add_row(Text(visible(model)), *states)
    screen = TerminalText(width=width)
    screen.draw(table)
    for (dataset, model), quality in validation.quality.items():
        screen.say(f"{model} on {dataset}: {dataset_counts(quality, validation.n_queries[dataset])}")
    for line in failures(validation.failures, verb=""):
        screen.say(line)
    return str(screen)


def closing(evaluation: Evaluation) -> list[str]:
    """Where the evaluation is: the MLflow store, if one has it, the page, and on the last line the record."""
    if evaluation.record is None:
        return ["", NO_RECORD]
    lines = [""]
    if evaluation.store:
        server = evaluation.store.startswith(("http", "databricks"))
        opened = evaluation.store if server else f"mlflow ui --backend-store-uri {shlex.quote(evaluation.store)}"
        lines.append(f"MLflow: {opened}")
    if (evaluation.record / _PAGE).is_file():
        lines.append(f"report: {evaluation.record / _PAGE}")
    return [*lines, f"record: {evaluation.record}"]


def _remarks(evaluation: Evaluation) -> list[str]:
    """What to know about the data; of very many outputs the first are told of."""
    found = list(notes(evaluation))  # a line for each output comes first
    n_left = len(evaluation.quality) - _OUTPUTS
    if n_left > 0:
        found[_OUTPUTS : _OUTPUTS + n_left] = [f"{counted(n_left, 'more output')} in manifest.json"]
    return found


@dataclass(frozen=True)
class _Shown:
    """What is shown of a board.

    Attributes:
        evaluation: whose board it is.
        dataset: of which dataset.
        board: its figures.
        measures: those that fit, the first of all for certain.
        left: the others.
        letters: of the models by the first measure; none where not each was compared with each.
        n_cells: the width in which the intervals of the first measure are drawn; 0 where they are not.
    """

    evaluation: Evaluation
    dataset: str
    board: Leaderboard
    measures: tuple[str, ...]
    left: tuple[str, ...]
    letters: Mapping[str, str]
    n_cells: int

    @classmethod
    def fitting(cls, evaluation: Evaluation, dataset: str, board: Leaderboard, width: int) -> _Shown:
        """As much as fits beside names, of which long ones are folded; a drawing takes the place of a third measure."""
        measures = tuple(next(iter(board.values())))
        letters = lettered(evaluation, dataset, board, measures[0])
        names = min(_wide(["model", *map(_named, board)]), width // 2)
        room = width - 1 - names - (_wide([_LETTERS]) if letters else 0)
        ends = [*accumulate(_wide([measure, *map(cell, _column(board, measure))]) for measure in measures)]
        n_shown = max(1, sum(end <= room for end in ends))
        n_cells = 0
        if len(board) > 1 and any(line.ci_low is not None for line in _column(board, measures[0])):
            if n_shown > _BESIDE and room - ends[n_shown - 1] < _wide(["." * FEWEST_CELLS]):
                n_shown -= 1
            fits = min(room - ends[n_shown - 1] - _wide([""]), MOST_CELLS)
            n_cells = fits if fits >= len(text_scale(_column(board, measures[0]), FEWEST_CELLS).header) else 0
        return cls(evaluation, dataset, board, measures[:n_shown], measures[n_shown:], letters, n_cells)

    def table(self, width: int) -> Table:
        """The table, as rich prints it: as wide as `width` allows, and wider rather than with figures cut."""
        n_queries = next(iter(_column(self.board, self.measures[0]))).n_queries
        title = Text(f"{_named(display_name(self.dataset))} ({counted(n_queries, 'query', 'queries')})")
        least = self._least_width
        table = Table(title=title, title_justify="left", width=least if least > width else None)
        scale = text_scale(_column(self.board, self.measures[0]), self.n_cells)
        table.add_column("model", overflow="fold")
        for place, measure in enumerate(self.measures):
            table.add_column(Text(measure), justify="right", no_wrap=True)
            if self.letters and not place:
                table.add_column(_LETTERS)
            if self.n_cells and not place:
                table.add_column(scale.header, no_wrap=True)
        for model in ranked(self.evaluation, self.board, self.measures[0]):
            figures = (marked(self.evaluation, self.board, model, measure) for measure in self.measures)
            first, *others = (Text(text, style="bold" if leads else "") for text, leads in figures)
            beside = [Text(self.letters[model])] if self.letters else []
            beside += [Text(scale.draw(self.board[model][self.measures[0]]))] if self.n_cells else []
            table.add_row(Text(_named(model)), first, *beside, *others)
        return table

    @property
    def _least_width(self) -> int:
        """The columns of the terminal without which the first measure would be cut."""
        names = min(_wide(["model", *map(_named, self.board)]), _NARROWEST + _FRAME)
        figures = _wide([self.measures[0], *map(cell, _column(self.board, self.measures[0]))])
        return 1 + names + figures + (_wide([_LETTERS, *self.letters.values()]) if self.letters else 0)


def _named(name: str) -> str:
    """A name as a table has it."""
    return clipped(visible(name), _NAME)


def _column(board: Leaderboard, measure: str) -> list[Estimate]:
    """The lines of a measure."""
    return [lines[measure] for lines in board.values()]


def _wide(cells: Iterable[str]) -> int:
    """The columns of the terminal that cells below one another take with their frame."""
    return max(map(cell_len, cells)) + _FRAME


def _legend(evaluation: Evaluation, shown: Sequence[_Shown], colour: bool) -> Iterator[str]:
    firsts = [line for each in shown for line in _column(each.board, each.measures[0])]
    said = legend(
        evaluation,
        intervals=any(line.ci_low is not None for line in firsts),
        drawn=any(each.n_cells for each in shown),
        bold=colour and bool(shown),
        letters=any(each.letters for each in shown),
    )
    if said:
        yield said
