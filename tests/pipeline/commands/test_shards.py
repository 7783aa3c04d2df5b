"""Shards of an evaluation: in any order and any number, they leave what one evaluation would have read."""

from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.commands.evaluate import read_shard
from rankledger.pipeline.support.errors import InputError
from tests.support.generated_data import rating_collection, search_collection, write_config
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
    assert sum(shard.n_parsed for shard in found) == 4  # two models on two datasets: what came twice was found

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
    assert (found.n_parsed, found.n_found, found.n_left) == (0, 0, 4)
    assert found.remarks == (
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
