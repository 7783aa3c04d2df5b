"""Memory: the limit, what fits into it, and what the machine and its control groups allow."""

import math

import pytest

from rankledger.pipeline.support import environment
from rankledger.pipeline.support.environment import MemoryLimit, format_bytes, physical_memory

GIB = 1 << 30


@pytest.mark.parametrize(
    ("limit", "base", "peak", "most", "expected"),
    [
        (2000, 200, 300, 10, 6),
        (2000, 200, 300, 4, 4),
        (2000, 200, 1800, 4, 1),
        (2000, 200, 1801, 4, 1),
        (100, 200, 10, 4, 1),
        (2000, 200, 0, 4, 4),
        (math.inf, 200, 300, 4, 4),
    ],
)
def test_as_many_tasks_as_fit(limit, base, peak, most, expected):
    """Of 2,000 bytes 1,800 are free: six tasks of 300. One runs in any case."""
    assert MemoryLimit(limit, base, is_set=True).count(peak, most) == expected


def test_a_task_that_fits_exactly():
    """A task of 1,800 bytes fits beside 200 into 2,000; one of 1,801 does not."""
    limit = MemoryLimit(2000, 200, is_set=True)

    assert limit.holds(1800)
    assert not limit.holds(1801)


def test_half_of_the_memory_is_the_limit():
    assert (MemoryLimit.of(2 * GIB).limit, MemoryLimit.of(2 * GIB).is_set) == (2 * GIB, True)
    assert (MemoryLimit.of(None).limit, MemoryLimit.of(None).is_set) == (physical_memory() / 2, False)
    assert 10e6 < MemoryLimit.of(None).base < physical_memory()


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (1, "1B"),
        (2048, "2KiB"),
        (2 * GIB, "2GiB"),
        (2 * GIB + 1, "2.1GiB"),
        (1.5 * GIB, "1.5GiB"),
        (GIB - 1, "1024MiB"),
    ],
)
def test_bytes_in_the_greatest_unit(n_bytes, text):
    assert format_bytes(n_bytes) == text


def test_control_groups_limit_the_memory(tmp_path, monkeypatch):
    """The least of the own group's limit and those around it; `max` is none, a group without a file neither."""
    own = tmp_path / "cgroup"
    own.write_text("12:cpu:/elsewhere\n0::/jobs/night\n")
    (tmp_path / "groups/jobs/night").mkdir(parents=True)
    monkeypatch.setattr(environment, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(environment, "_GROUP", own)

    machine = physical_memory()
    (tmp_path / "groups/jobs/night/memory.max").write_text("max\n")
    assert physical_memory() == machine
    (tmp_path / "groups/jobs/memory.max").write_text("3000000\n")
    assert physical_memory() == 3_000_000
    (tmp_path / "groups/memory.max").write_text("2000000\n")
    assert physical_memory() == 2_000_000
    monkeypatch.setattr(environment, "_GROUP", tmp_path / "nowhere")
    assert physical_memory() == machine
