"""What to know beside the figures of an evaluation, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pipeline.report.boards import ALL, FLIPS, UNSURE, Board, best, boards, called, challengers, ranked
from pipeline.report.sheets import counted
from pipeline.tables import Estimate, Evaluation, Failure, Quality

__all__ = ["failures", "joined", "legend", "remarks"]

_NAMED = 3  # intervals with a mark, and failures for one reason, that are named
_ALIKE = 5  # failures for one reason that are all shown


def remarks(evaluation: Evaluation) -> Iterator[str]:
    """What the joins found, which inputs are likely wrong, which leads and intervals are unsure, and the slices."""
    n_queries = {line.dataset: line.n_queries for line in evaluation.estimates if line.slice == ALL}
    for (dataset, model), quality in evaluation.quality.items():
        yield f"{model} on {dataset}: {joined(quality, n_queries[dataset])}"
    yield from map(str, evaluation.data_warnings)
    for dataset, board in boards(evaluation).items():
        yield from _flips(evaluation, called(dataset), board)
        yield from _unsure(called(dataset), board)
    slices = dict.fromkeys(line.slice for line in evaluation.estimates if line.slice != ALL)
    if slices:
        yield f"{counted(len(slices), 'slice')} in summary.csv: {', '.join(slices)}"


def failures(found: Iterable[Failure], verb: str = " was not evaluated") -> Iterator[str]:
    """What was not evaluated, and why: of many for the same reason the first, and how many more there are.

    Reasons are the same but for the path that they begin with.
    """
    alike: dict[str, list[Failure]] = {}
    for failure in found:
        path, _, reason = failure.reason.partition(": ")
        alike.setdefault(reason or path, []).append(failure)
    for reason, same in alike.items():
        shown = same if len(same) <= _ALIKE else same[:_NAMED]
        for failure in shown:
            yield f"{failure.model} on {failure.dataset}{verb}: {failure.reason}"
        if len(shown) < len(same):
            yield f"and {len(same) - len(shown):,} more model outputs: {reason}"


def legend(evaluation: Evaluation, *, intervals: bool, drawn: bool, bold: bool, letters: bool) -> str:
    """What the signs of a leaderboard mean, those that it has; `~` and `†` are explained by the remarks.

    Args:
        evaluation: whose leaderboard it is.
        intervals: whether figures have them.
        drawn: whether those of the first measure are drawn.
        bold: whether the best figures are.
        letters: whether models have letters by the first measure.
    """
    said = []
    if intervals:
        where = ", drawn of the first measure" if drawn else ""
        said.append(f"[low, high]: {100 * evaluation.confidence:g}% intervals{where}")
    if bold:
        said.append("bold: the best")
    if letters:
        said.append("letters: models that share one are not distinguishable by the first measure")
    return "; ".join(said)


def joined(quality: Quality, n_queries: int) -> str:
    """What the join of one output found, in a line.

    Args:
        quality: what was found.
        n_queries: judged queries of the dataset.
    """
    found = [counted(quality.n_rows, "row")]
    if quality.n_missing_queries:
        of = counted(n_queries, "judged query", "judged queries")
        found.append(f"{quality.n_missing_queries:,} of {of} without output")
    if quality.n_unjudged_queries:
        found.append(f"{counted(quality.n_unjudged_queries, 'query', 'queries')} without judgments ignored")
    if quality.judged_at_10 is not None:
        found.append(f"{quality.judged_at_10:.1%} of the top 10 judged")
    if quality.n_tied:
        found.append(counted(quality.n_tied, "tied score"))
    if quality.n_unpaired:
        found.append(f"{counted(quality.n_unpaired, 'rating or prediction', 'ratings or predictions')} unpaired")
    return ", ".join(found)


def _flips(evaluation: Evaluation, dataset: str, board: Board) -> Iterator[str]:
    """The measures whose winner is decided by the order of tied documents."""
    for measure in next(iter(board.values())):
        leader = ranked(evaluation, board, measure)[0]
        if best(evaluation, board, measure) is None:
            continue
        others = challengers(evaluation, board, leader, measure)
        if others:
            spans = ", ".join(f"{model} {_span(board[model][measure])}" for model in (leader, *others))
            yield f"{FLIPS} {measure} on {dataset}: the order of tied documents decides who leads: {spans}"


def _unsure(dataset: str, board: Board) -> Iterator[str]:
    """The intervals that are not to be trusted, by what is wrong with them."""
    reasons = {
        "sparse": "fewer than 30 queries or clusters differ from the most frequent score",
        "degenerate": "all of them score alike",
    }
    for mark, reason in reasons.items():
        found = [
            f"{model} {name}"
            for model, lines in board.items()
            for name, line in lines.items()
            if line.mark == mark and line.estimate is not None
        ]
        if found:
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            yield f"{UNSURE} {mark} on {dataset} ({reason}): {', '.join(found[:_NAMED])}{more}"


def _span(line: Estimate) -> str:
    return f"{line.ties_least:.4f} to {line.ties_greatest:.4f}"
