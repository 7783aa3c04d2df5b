"""From a published figure to the records that it may come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pipeline.errors import InputError, likely
from pipeline.ledger import Figure, Found
from pipeline.record import open_records
from pipeline.record.browsing import Entry, browse
from pipeline.tables import definitions_on

__all__ = ["find"]

_FARTHEST = 400  # powers of ten: doubles end before


def find(
    published: str, *, measure: str, name: str | None = None, runs_dir: str | Path = "runs", records: str | None = None
) -> Found:
    """The figures of all records that round to a published one, to as many digits as it has.

    Args:
        published: such as `0.4312`, or `43.12%`.
        measure: as it is written in the summary, such as `ndcg@10`.
        name: the evaluations to look through; all unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.

    Raises:
        InputError: it is no number, there is no evaluation of the name, or no record has the measure.
        OSError: the place of records cannot be reached.
    """
    low, high = _range(published)
    kept = open_records(Path(runs_dir), records)
    browsed = browse(kept, name, lambda entry: (_measures(entry), tuple(_figures(entry, measure, low, high))))
    known = [*dict.fromkeys(found for measures, _ in browsed.found for found in measures)]
    if measure not in known:
        raise InputError(_nothing(kept.place, measure, known))
    figures = tuple(figure for _, found in browsed.found for figure in found)
    return Found(published, measure, len(browsed.found), figures, browsed.remarks)


def _nothing(place: str, measure: str, known: Sequence[str]) -> str:
    """That there is no such measure, and which there are."""
    if not known:
        return f"{place}: there is no record; mend --runs-dir or --records"
    return f"{place}: no record has {measure!r}; they have {', '.join(known)}{likely(measure, known)}"


def _range(published: str) -> tuple[Decimal, Decimal]:
    """What rounds to the figure: half a unit of its last digit on either side, ends included.

    Raises:
        InputError: it is no number.
    """
    text = published.strip()
    try:
        value = Decimal(text.removesuffix("%"))
    except InvalidOperation:
        value = Decimal("NaN")
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(value.adjusted()) > _FARTHEST or abs(exponent) > _FARTHEST:
        raise InputError(f"{published!r} is not a number; write a figure such as 0.4312 or 43.12%")
    half = Decimal(5).scaleb(exponent - 1)
    share = Decimal(100) if text.endswith("%") else Decimal(1)
    return (value - half) / share, (value + half) / share


def _measures(entry: Entry) -> tuple[str, ...]:
    return tuple(entry.manifest["definitions"])


def _figures(entry: Entry, measure: str, low: Decimal, high: Decimal) -> Iterator[Figure]:
    for line in entry.lines(measure):
        if line.estimate is not None and low <= Decimal(repr(line.estimate)) <= high:
            yield Figure(
                evaluation_id=entry.evaluation_id,
                date=entry.date,
                dataset=line.dataset,
                model=line.model,
                slice=line.slice,
                measure=measure,
                estimate=line.estimate,
                ci_low=line.ci_low,
                ci_high=line.ci_high,
                fingerprint=definitions_on(entry.manifest, line.dataset).get(measure, {}).get("fingerprint", ""),
            )
