"""How many outputs and ranges are read at a time; files have the sizes that the cases say, and no bytes on disk."""

import shutil
from pathlib import Path

import pytest

from rankledger.pipeline.commands.evaluate import evaluate_config, validate
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.inputs import plan_reading
from rankledger.pipeline.record.workspace import workers_of
from rankledger.pipeline.support.environment import MemoryLimit
from rankledger.pipeline.support.parallel import Workers
from tests.support.data_files import refusal
from tests.support.generated_data import Collection, write_config

GIB = 1 << 30


def not_cached() -> bool:
    return False


def sparse(path: Path, size: int) -> Source:
    with path.open("wb") as file:
        file.truncate(size)
    return Source(str(path))


@pytest.mark.parametrize(
    ("n_outputs", "workers", "n_workers", "at_a_time"),
    [(1, 2, 1, 2), (10, 2, 2, 1), (2, 8, 2, 4), (1, 64, 1, 4), (3, 8, 3, 2), (0, 8, 1, 4)],
)
def test_ranges_have_the_workers_that_outputs_leave(tmp_path, n_outputs, workers, n_workers, at_a_time):
    """Small outputs: one per worker; two outputs at 8 workers have four ranges each, and no output has more."""
    outputs = [(sparse(tmp_path / f"{number}.txt", 1000), True, not_cached) for number in range(n_outputs)]

    planned, n_ranges = plan_reading(Workers(workers), outputs)
    assert (planned.jobs, n_ranges) == (n_workers, at_a_time)


@pytest.mark.parametrize("name", ["run.txt", "run.txt.gz", "run.parquet"])
def test_memory_limits_what_is_read_at_a_time(tmp_path, name):
    """A range takes 100 MB and twice its 64 MiB of text, however large its file: two in 600 MB, one in 300 MB."""
    outputs = [(sparse(tmp_path / name, 50 * GIB), True, not_cached)]
    base = int(MemoryLimit.of(None).base)

    assert plan_reading(Workers(8, memory=base + 600_000_000), outputs)[1] == 2
    assert plan_reading(Workers(8, memory=base + 600_000_000), outputs * 3)[0].jobs == 2
    assert plan_reading(Workers(8, memory=base + 300_000_000), outputs * 3)[0].jobs == 1
    assert plan_reading(Workers(8, memory=base + 8 * GIB), outputs)[1] == 4


@pytest.mark.parametrize(
    ("name", "in_ranges"), [("run.csv", True), ("run.parquet.gz", True), ("predictions.txt", False)]
)
def test_what_does_not_fit_is_refused_before_it_is_read(tmp_path, name, in_ranges):
    output = sparse(tmp_path / name, 5 * GIB)

    message = refusal(plan_reading, Workers(2, memory=2 * GIB), [(output, in_ranges, not_cached)])
    assert message.startswith(f"execution.memory: 2GiB, but reading {output.path} needs about ")
    needed = message.rpartition("set at least ")[2]
    assert float(needed.removesuffix("GiB")) > 5
    assert plan_reading(Workers(2, memory=64 * GIB), [(output, in_ranges, not_cached)])[0].jobs == 1
    assert plan_reading(Workers(2), [(output, in_ranges, not_cached)])[0].jobs == 1  # nobody has set a limit


def test_what_cannot_be_reached_takes_no_memory(tmp_path):
    outputs = [(Source(path), True, not_cached) for path in ("nowhere.txt", "nosuch://bucket/a.txt", str(tmp_path))]

    assert plan_reading(Workers(3), outputs)[0].jobs == 3


def test_what_the_cache_has_needs_no_memory(tmp_path):
    large, small = sparse(tmp_path / "large.csv", 5 * GIB), sparse(tmp_path / "small.csv", 1000)
    asked = []
    outputs = [(source, True, lambda source=source: asked.append(source) is None) for source in (large, small)]

    assert plan_reading(Workers(2, memory=2 * GIB), outputs)[0].jobs == 2
    assert asked == [large]
    unlike = [*outputs, (sparse(tmp_path / "other.csv", 5 * GIB), True, not_cached)]
    assert "other.csv" in refusal(plan_reading, Workers(2, memory=2 * GIB), unlike)


def test_a_config_sets_the_limit(tmp_path):
    """Python and 20 MB of text take more than 128 MiB; 4 GiB suffice, and so does what the output cache has."""
    data = {"web": Collection({"q": {"d": 1}}, {"m": {"q": {"d": 1.0}}})}
    config = write_config(tmp_path, data, {"s": ["ap"]}, execution={"memory": "128MiB"})
    output = Path(plan(load(config)).tasks[0].output.path)
    with output.open("a", encoding="utf-8") as file:
        file.writelines(f"q Q0 x{number:040} 1 0.5 {'t' * 90}\n" for number in range(100_000))

    refused = f"execution.memory: 128MiB, but reading {output} needs about "
    assert refusal(validate, config).startswith(refused)
    assert workers_of(load(config, ["execution.memory=4GiB"]).config).memory == 4 * GIB
    runs = tmp_path / "runs"
    once = evaluate_config(config, overrides=["execution.memory=4GiB"], runs_dir=runs, tracking=False)
    again = evaluate_config(config, runs_dir=runs, tracking=False)
    assert again.summary.equals(once.summary)
    shutil.rmtree(runs / "cache")
    assert refusal(evaluate_config, config, runs_dir=runs, tracking=False).startswith(refused)
