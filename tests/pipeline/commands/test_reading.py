"""How outputs are read: in shards, within a limit of memory (files have no bytes on disk), on a cluster."""

import json
import shutil
import sys
from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.commands.evaluate import evaluate_config, read_shard, validate
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.inputs import plan_reading
from rankledger.pipeline.record.workspace import open_record, workers_of
from rankledger.pipeline.support.environment import MemoryLimit
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import DaskScheduler, Workers
from tests.support.data_files import refusal
from tests.support.generated_data import Collection, rating_collection, search_collection, write_config
from tests.support.records import manifest_of

DATA = {"web": search_collection(20, n_queries=12), "news": search_collection(21, n_queries=8)}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, DATA, {"search": ["ndcg@10", "ap"]})


def parsed(config: Path, runs: Path) -> tuple[list[bool], list[bytes]]:
    record = rankledger.evaluate_config(config, overrides=["report=false"], tracking=False, runs_dir=runs).record
    outputs = manifest_of(record)["outputs"]
    figures = [(record / name).read_bytes() for name in ("scores.parquet", "summary.csv")]
    return [output["parsed"] for output in outputs], figures


@pytest.mark.parametrize("order", [("3/3", "1/3", "3/3", "2/3", "1/3"), ("1/16", "2/16", "4/16", "3/16")])
def test_after_all_shards_an_evaluation_parses_nothing_and_has_the_same_bytes(config, tmp_path, order):
    runs = tmp_path / "shared"
    found = [read_shard(str(config), shard, runs_dir=str(runs)) for shard in order]
    assert sum(shard["n_parsed"] for shard in found) == 4  # two models on two datasets: what came twice was found

    after, figures = parsed(config, runs)
    alone, expected = parsed(config, tmp_path / "alone")
    assert (set(after), set(alone)) == ({False}, {True})
    assert figures == expected


def test_a_missing_output_is_named_and_the_others_are_kept(config, run_cli):
    missing = config.parent / "web" / "dense.txt"
    missing.unlink()
    done = run_cli("evaluate", config, "--shard", "1/1")
    assert done.code == 4
    assert "shard 1/1: 3 outputs read, 0 were in the cache" in done.out
    assert missing.name in done.out + done.err


def test_what_the_cache_cannot_hold_is_left_to_the_evaluation(tmp_path):
    data = {"web": DATA["web"], "films": rating_collection(3)}
    config = write_config(tmp_path, data, {"search": ["ndcg@10", "rbo(model=bm25)@5"], "ratings": ["rmse"]})
    found = read_shard(str(config), "1/1", runs_dir=str(tmp_path / "runs"))
    assert (found["n_parsed"], found["n_found"], found["n_left"]) == (0, 0, 4)
    assert found["remarks"] == (
        "4 outputs are left to the evaluation: the cache keeps rankings, and of these the judged documents alone",
    )


@pytest.mark.parametrize("shard", ["0/4", "5/4", "1/0", "a/b", ""])
def test_a_shard_that_is_none_is_refused(config, shard):
    with pytest.raises(InputError, match=r"--shard: found .*; write it as 3/16, from 1/16 to 16/16"):
        read_shard(str(config), shard)


def test_a_shard_needs_the_cache(config, tmp_path):
    """Without a cache, or with one that cannot be written, a shard would do nothing: it is refused."""
    with pytest.raises(InputError, match=r"execution\.cache is off"):
        read_shard(str(config), "1/2", overrides=["execution.cache=false"])
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "cache").write_text("a file")
    with pytest.raises(InputError, match=r"the output cache cannot be written .*execution\.cache"):
        read_shard(str(config), "1/2", runs_dir=str(runs))
    with pytest.raises(InputError, match=r"s4://eval/cache: .*; fix the URL"):
        read_shard(str(config), "1/2", overrides=["execution.cache=s4://eval/cache"])


@pytest.mark.parametrize("option", [["--markdown", "gates.md"], ["--require-tracking"]])
def test_what_a_shard_cannot_do_is_refused(config, option, run_cli):
    """A job that waits for gate verdicts or MLflow would wait in vain: a shard judges and logs nothing."""
    done = run_cli("evaluate", config, "--shard", "1/2", *option)
    assert done.code == 2
    assert f"--shard only reads outputs, so {option[0]} has no effect; remove one of them" in done.err


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


def test_scores_that_do_not_fit_are_refused_before_they_are_read(tmp_path):
    """Two tables of 8 MB take about 270 MB while one is read and 64 MB later: too much for 128 MiB."""
    for name in "ab":
        lines = (f"instance-{number:07},0.1234,0.5678,0.9012\n" for number in range(200_000))
        (tmp_path / f"{name}.csv").write_text("query_id,s,t,u\n" + "".join(lines))
    config = tmp_path / "c.yaml"
    scores = dict.fromkeys("stu", "higher")
    models = {name: {"outputs": f"{name}.csv"} for name in "ab"}
    written = {"name": "n", "datasets": {"d": {"scores": scores}}, "models": models, "execution": {"memory": "128MiB"}}
    config.write_text(json.dumps(written))

    message = refusal(rankledger.evaluate_config, config, runs_dir=tmp_path / "runs", tracking=False)
    assert message.startswith(f"execution.memory: 128MiB, but reading {tmp_path / 'a.csv'} needs about ")


def test_what_is_cached_or_cannot_be_reached_takes_no_memory(tmp_path):
    outputs = [(Source(path), True, not_cached) for path in ("nowhere.txt", "nosuch://bucket/a.txt", str(tmp_path))]
    assert plan_reading(Workers(3), outputs)[0].jobs == 3

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


ADDRESS = "tcp://10.0.0.5:8786"


def test_the_config_or_a_command_chooses_a_cluster(config):
    overrides = ["execution.scheduler=tcp://other:1", "execution.jobs=3", "execution.worker_timeout=2m"]
    assert workers_of(load(config, overrides).config, scheduler=ADDRESS) == Workers(
        3, dask=DaskScheduler(ADDRESS, 120.0)
    )

    loaded = load(config, ["execution.backend=dask", f"execution.scheduler={ADDRESS}"]).config
    assert workers_of(loaded).dask == DaskScheduler(ADDRESS, 60.0)
    assert workers_of(loaded, backend="threads") == Workers()
    assert workers_of(loaded, jobs=2, backend="processes") == Workers(2, "processes")
    assert workers_of(load(config, ["execution.jobs=3", "execution.backend=processes"]).config, jobs=2) == Workers(
        2, "processes"
    )
    assert workers_of(load(config, [f"execution.scheduler={ADDRESS}"]).config).dask is None


@pytest.mark.parametrize(
    ("overrides", "options", "message"),
    [
        ([], {"backend": "dask"}, "needs the address of a scheduler; add --scheduler"),
        (["execution.cache=false"], {"scheduler": ADDRESS}, "hands outputs over in the output cache"),
        ([], {"scheduler": ADDRESS, "backend": "processes"}, "found 'processes' with --scheduler"),
    ],
    ids=["no address", "no cache", "two backends"],
)
def test_a_cluster_that_cannot_be_used_is_refused(config, overrides, options, message):
    with pytest.raises(InputError, match=message):
        workers_of(load(config, overrides).config, **options)


def test_a_record_of_somebody_else_chooses_no_scheduler(config, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    overrides = [f"execution.scheduler={ADDRESS}"]
    record = rankledger.evaluate_config(config, tracking=False, overrides=overrides, runs_dir=tmp_path / "runs").record
    assert open_record(record).loaded.config.execution.scheduler == ADDRESS

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    copy = Path(shutil.copytree(record, tmp_path / "copy" / record.name))
    assert open_record(copy).loaded.config.execution.scheduler is None
    assert open_record(copy, overrides=overrides).loaded.config.execution.scheduler == ADDRESS


def test_without_distributed_the_error_names_the_extra(config, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        InputError, match=r"^--scheduler: distributed is not installed\. Use `pip install 'rankledger\[dask\]'`\.$"
    ):
        rankledger.evaluate_config(config, scheduler=ADDRESS, tracking=False, runs_dir=tmp_path / "runs")
