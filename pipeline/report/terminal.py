"""Leaderboards, differences and plans for a terminal, and evaluations as data."""

from __future__ import annotations

import importlib.util
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from textwrap import wrap
from typing import Any

from rankledger.pipeline.data.inputs import Validation
from rankledger.pipeline.inference.tables import ALL, Comparison
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.effects import p_value_notes
from rankledger.pipeline.report.headline import headline_of
from rankledger.pipeline.report.messages import dataset_counts, failures, legend, notes
from rankledger.pipeline.report.tables import (
    FEWEST_CELLS,
    LETTERS,
    MOST_CELLS,
    NAME,
    RANK,
    Interval,
    Leaderboard,
    MeasureColumn,
    board_table,
    difference_rows,
    difference_table,
    leaderboards,
    scale_header,
    shared_baseline,
)
from rankledger.pipeline.report.text_table import TerminalText, TextTable, frame_width, short_text
from rankledger.pipeline.support.text import counted, queries, visible

NO_RECORD = "record: none, because no model output was evaluated"

_NARROWEST = 15  # columns of a name on a narrow terminal, with its frame
_OUTPUTS = 30  # with a line of their own
_PAIRS = 45  # of a table: all pairs of ten models
_PAGE = "report.html"
_NOTE = 2_000  # characters


def leaderboard(evaluation: Evaluation, *, width: int, colour: bool) -> str:
    """Write a table per dataset, the best model first, then notes. Measures and intervals are shown if they fit."""
    text = TerminalText(width=width, colour=colour)
    boards = [_FittedLeaderboard.fit(board, width) for board in leaderboards(evaluation)]
    for board in boards:
        text.add_table(board.table())
        text.add(*wrap(board.omitted, width, break_on_hyphens=False, break_long_words=False))
    lead = [interval for board in boards for interval in board.intervals]
    signs = legend(
        evaluation,
        intervals=any(interval.low is not None for interval in lead),
        drawn=any(board.n_cells for board in boards),
        bold=colour and bool(boards),
        letters=any(board.board.columns[0].letters for board in boards),
    )
    for line in (*filter(None, [signs]), *_notes(evaluation), *failures(evaluation.failures)):
        text.add(short_text(line, _NOTE))
    return str(text)


def differences(lines: Sequence[Comparison], measures: Mapping[str, str], *, width: int, colour: bool) -> str:
    """Write the comparisons on all queries by each primary measure, and count the others."""
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
    """Return an evaluation as JSON can hold it."""
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
    """Write the plan: a line per model, a column per dataset, and counts of each output."""
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
    text.add(*validation.gate_notes)
    return str(text)


def _state(validation: Validation, task: tuple[str, str], n_failed: int) -> str:
    if task not in validation.quality:
        return "failed" if n_failed else "-"
    n_ready = len(validation.replicates.get(task, ()))
    return f"{n_ready} of {n_ready + n_failed} ready" if n_failed else "ready"


def closing(evaluation: Evaluation) -> list[str]:
    """Return the headline, MLflow's store, the page, and on the last line the record."""
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
    if store.startswith(("http", "databricks")):
        return store
    install = "" if importlib.util.find_spec("flask") else " (install it with: pip install 'rankledger[ui]')"
    return f"mlflow ui --backend-store-uri {shlex.quote(store)}{install}"


def _notes(evaluation: Evaluation) -> list[str]:
    lines = list(notes(evaluation))  # a line for each output comes first
    n_left = len(evaluation.quality) - _OUTPUTS
    if n_left > 0:
        lines[_OUTPUTS : _OUTPUTS + n_left] = [f"{counted(n_left, 'more output')} in manifest.json"]
    return lines


@dataclass(frozen=True)
class _FittedLeaderboard:
    board: Leaderboard
    width: int
    n_measures: int = 1  # that fit
    ends: bool = True  # whether measures beside the first have their intervals
    ranks: bool = True  # whether those by the first measure fit
    n_cells: int = 0  # the width of the interval bars of the first measure; 0 if they are not drawn

    @classmethod
    def fit(cls, board: Leaderboard, width: int) -> _FittedLeaderboard:
        own = cls(board, width, ranks=bool(board.columns[0].ranks))
        own = replace(own, ranks=own.ranks and own._least_width <= width)
        lead, room = board.columns[0], width - own._names_width
        ends = own._others_width(len(board.columns)) <= room - _width(lead)
        fitting = (replace(own, n_measures=n, ends=ends) for n in range(len(board.columns), 1, -1))
        own = next((one for one in fitting if one._others_width(one.n_measures) <= room - _width(lead)), own)
        if len(board.models) > 1 and any(line.ci_low is not None for line in lead.estimates.values()):
            left = room - _width(lead) - own._others_width(own.n_measures) - frame_width([""])
            own = replace(
                own, n_cells=min(left, MOST_CELLS) if left >= len(scale_header(lead.scale, FEWEST_CELLS)) else 0
            )
        return own

    @property
    def intervals(self) -> Iterator[Interval]:
        return map(Interval.of, self.board.columns[0].estimates.values())

    @property
    def omitted(self) -> str:
        needed = self._names_width + sum(map(_width, self.board.columns))
        others, left = self.board.measures[1 : self.n_measures], self.board.measures[self.n_measures :]
        parts = [f"intervals of {', '.join(others)}"] if others and not self.ends else []
        parts += [f"{counted(len(left), 'more measure')}: {', '.join(left)}"] if left else []
        return f"{'; '.join(parts)} (COLUMNS={needed} shows all, summary.csv has all)" if parts else ""

    def table(self) -> TextTable:
        return board_table(self.board, self.n_measures, ends=self.ends, ranks=self.ranks, n_cells=self.n_cells)

    def _others_width(self, n_measures: int) -> int:
        return sum(_width(column, ends=self.ends) for column in self.board.columns[1:n_measures])

    @property
    def _names_width(self) -> int:
        names = min(frame_width(["model", *map(short_text, self.board.models, repeat(NAME))]), self.width // 2)
        return 1 + names + self._beside_width(())

    @property
    def _least_width(self) -> int:
        lead = self.board.columns[0]
        names = min(frame_width(["model", *map(short_text, self.board.models, repeat(NAME))]), _NARROWEST)
        return 1 + names + _width(lead) + self._beside_width(lead.letters.values())

    def _beside_width(self, letters: Iterable[str]) -> int:
        lead = self.board.columns[0]
        ranks = frame_width([RANK, *lead.ranks.values()]) if self.ranks else 0
        return ranks + (frame_width([LETTERS, *letters]) if lead.letters else 0)


def _width(column: MeasureColumn, *, ends: bool = True) -> int:
    return frame_width([column.measure, *(column.text(model, ends=ends) for model in column.estimates)])
