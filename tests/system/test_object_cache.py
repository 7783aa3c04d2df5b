"""The output cache in an object store: a real S3 server, which evaluations on several machines would share."""

import json
import logging
import re
from pathlib import Path

import pyarrow.fs
import pytest

import rankledger
from rankledger.pipeline.commands.evaluate import read_shard
from rankledger.pipeline.data.cache import OutputCache, judgments_key
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.support.errors import InputError
from tests.support.generated_data import search_collection, write_config

DATA = {"web": search_collection(20, n_queries=12), "news": search_collection(21, n_queries=8)}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, DATA, {"search": ["ndcg@10", "ap"]})


@pytest.fixture
def place(s3) -> str:
    return f"{s3.bucket()}/team/cache"


def evaluate(config: Path, machine: str, place: str, *overrides: str) -> Evaluation:
    overrides = ("report=false", "execution.jobs=1", f"execution.cache={place}", *overrides)
    return rankledger.evaluate_config(config, overrides=overrides, tracking=False, runs_dir=config.parent / machine)


def outcome(evaluation: Evaluation) -> tuple[set[bool], list[bytes]]:
    outputs = json.loads((evaluation.record / "manifest.json").read_text(encoding="utf-8"))["outputs"]
    files = [(evaluation.record / name).read_bytes() for name in ("scores.parquet", "summary.csv")]
    return {output["parsed"] for output in outputs}, files


def test_what_one_machine_read_no_other_parses(config, place):
    first, second = (outcome(evaluate(config, machine, place)) for machine in ("one", "two"))
    without = outcome(evaluate(config, "three", "false"))

    assert (first[0], second[0]) == ({True}, {False})
    assert first[1] == second[1] == without[1]
    assert {path.name for path in config.parent.glob("t*/*")} == {"records"}


def test_a_damaged_object_is_not_believed(config, place):
    first = outcome(evaluate(config, "one", place))
    filesystem, path = pyarrow.fs.FileSystem.from_uri(place)
    found = filesystem.get_file_info(pyarrow.fs.FileSelector(path, recursive=True))
    damaged = next(info.path for info in found if info.extension == "hits")
    with filesystem.open_input_file(damaged) as file:
        data = file.read()
    with filesystem.open_output_stream(damaged) as file:
        file.write(data[:-1])

    second = evaluate(config, "two", place)

    assert [remark.partition(", ")[0] for remark in second.warnings] == [f"s3://{damaged}: ignored"]
    assert outcome(second) == ({True, False}, first[1])
    assert outcome(evaluate(config, "three", place)) == ({False}, first[1])


def test_to_ask_whether_an_output_may_be_there_is_one_request(place, caplog):
    judgments = judgments_key({"files": (("a" * 64, "trec", ""),), "size": 100, "columns": ()})
    store = OutputCache(place)
    with caplog.at_level(logging.INFO, logger="werkzeug"):  # which the server logs requests to
        assert not store.may_hold(judgments, 200)

    (request,) = (line.getMessage() for line in caplog.records if line.name == "werkzeug")
    assert re.search(r"GET /eval-\d+\?.*prefix=team/cache/[0-9a-f]{32}/200/ ", request)


def test_shards_fill_the_bucket(config, place):
    for shard in ("1/2", "2/2"):
        found = read_shard(
            str(config), shard, overrides=[f"execution.cache={place}"], runs_dir=str(config.parent / shard[0])
        )
        assert (found["n_parsed"], found["folder"]) == (2, place)
    assert outcome(evaluate(config, "three", place))[0] == {False}


def test_a_bucket_that_is_not_there_costs_no_figure(config, s3):
    """An evaluation has all figures and one line; a shard, which would do nothing, is refused."""
    line = r"s3://nowhere/cache: the output cache cannot be written \(.*NO_SUCH_BUCKET.*\); make it writable"
    evaluation = evaluate(config, "one", "s3://nowhere/cache")

    with pytest.raises(InputError, match=line):
        read_shard(str(config), "1/2", overrides=["execution.cache=s3://nowhere/cache"])
    (remark,) = evaluation.warnings
    assert remark.startswith("s3://nowhere/cache: cannot be written (")
    assert outcome(evaluation)[1] == outcome(evaluate(config, "two", "false"))[1]
