"""What is said of a pruning."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rankledger.pipeline.record.upkeep import PrunedRecord, PruneResult
from rankledger.pipeline.report.messages import pruning_lines

BEFORE = datetime(2026, 8, 23, 12, tzinfo=UTC)


def lines(**parts: Any) -> list[str]:
    plain = PruneResult(BEFORE, done=False, records=(), n_cached=0, n_cached_bytes=0, stays={})
    return [*pruning_lines(replace(plain, **parts))]


def going(evaluation_id: str, size: int, n_runs: int) -> PrunedRecord:
    return PrunedRecord(evaluation_id, size, ("run",) * n_runs)


def test_each_record_has_a_line_and_all_have_a_sum():
    """1.2 MB and 300 kB are 1.5 MB."""
    assert lines(records=(going("a", 1_200_000, 21), going("b", 300_000, 1)), n_cached=1, n_cached_bytes=999) == [
        "a  1.2 MB, 21 runs",
        "b  300.0 kB, 1 run",
        "would delete 2 records from before 2026-08-23 12:00 UTC, 1.5 MB, 22 runs",
        "would delete 1 file of the output cache not used since, 999 B",
        "nothing is deleted yet; add --yes",
    ]


def test_records_that_stay_are_counted_by_reason():
    """One stays, two stay."""
    assert lines(stays={"accepted": 1, "not delivered yet": 2})[2:] == [
        "1 older record stays: accepted",
        "2 older records stay: not delivered yet",
    ]


def test_afterwards_it_says_that_it_did():
    """And does not ask for --yes."""
    assert lines(done=True, records=(going("a", 1, 0),))[1] == (
        "deleted 1 record from before 2026-08-23 12:00 UTC, 1 B, 0 runs"
    )
    assert "--yes" not in "".join(lines(done=True, records=(going("a", 1, 0),)))


@pytest.mark.parametrize(
    ("n_bytes", "text"), [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (10**12, "1.0 TB"), (10**16, "10000.0 TB")]
)
def test_sizes_are_in_the_unit_that_makes_them_readable(n_bytes, text):
    """Powers of a thousand; nothing is greater than a terabyte."""
    assert lines(n_cached_bytes=n_bytes)[1].endswith(f", {text}")
