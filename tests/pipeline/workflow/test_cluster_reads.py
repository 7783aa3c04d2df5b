"""Outputs that a cluster reads in ranges, without a cluster: calls and their results are pickled, as they would travel.

tests/system/test_dask.py has a real scheduler and real workers.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

import rankledger
from rankledger.pipeline.data import digests
from rankledger.pipeline.support.cluster import Cluster, ClusterResults, Killed
from rankledger.pipeline.types.results import Evaluation
from rankledger.pipeline.workflow import cluster_reads
from tests.support.generated_data import Row, rows, search_collection, write_config, write_table
from tests.support.records import manifest_of
from tests.support.same_records import NOT_COMPARED, differences

WEB = search_collection(30, 20)


@dataclass
class Calls:
    """What was called on the cluster.

    Attributes:
        made: the name of each function, and its arguments.
        sizes: bytes of each call and of each result.
        before: what happens before a call, by its place; what it gives stands for the result.
    """

    made: list[tuple[str, Sequence[Any]]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    before: dict[int, Callable[[], Any]] = field(default_factory=dict)

    def run(self, _cluster: Any, _title: str, function: Any, calls: Sequence[Any], *, unit: str) -> ClusterResults[Any]:
        """As `Cluster.run`: the last call is made first."""
        assert unit in ("outputs", "ranges")
        results = {place: self._result(function, calls[place]) for place in reversed(range(len(calls)))}
        return ClusterResults([results[place] for place in range(len(calls))], 0)

    def _result(self, function: Any, call: Sequence[Any]) -> Any:
        instead = self.before.get(len(self.made), lambda: None)()
        self.made.append((call[0].__name__, call[1:]))
        sent = pickle.dumps(call)
        result = pickle.dumps(instead or function(*pickle.loads(sent)))
        self.sizes += [len(sent), len(result)]
        return pickle.loads(result)

    @property
    def names(self) -> list[str]:
        """The names of the functions."""
        return [name for name, _ in self.made]

    @property
    def ranges(self) -> list[Any]:
        """The ranges that were read."""
        return [arguments[2] for name, arguments in self.made if name == "_read_range"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """A cluster that is this process, and ranges of about 50 rows."""
    made = Calls()
    monkeypatch.setattr(Cluster, "run", lambda *arguments, **options: made.run(*arguments, **options))
    monkeypatch.setattr(cluster_reads, "PART_ROWS", 50)
    return made


def spread(config: Path, runs: str = "spread") -> Evaluation:
    """Evaluated with a cluster."""
    return rankledger.evaluate(config, scheduler="tcp://x:1", tracking=False, runs_dir=config.parent / runs)


def unlike(config: Path, found: Evaluation) -> list[str]:
    """What differs from the record of one process, but for ids, times and command."""
    alone = rankledger.evaluate(config, tracking=False, runs_dir=config.parent / "alone")
    names = {path.name for record in (alone.record, found.record) for path in record.iterdir()} - NOT_COMPARED
    assert {"scores.parquet", "summary.csv", "manifest.json"} <= names
    return [line for name in sorted(names) for line in differences(alone.record / name, found.record / name)]


def written(folder: Path, ending: str = ".txt", models: Sequence[str] = ()) -> Path:
    return write_config(folder, {"web": WEB}, {"search": ["ndcg@10", "ap"]}, ending=ending, models=models, report=False)


def write_groups(path: Path, found: Sequence[Row], group: int) -> None:
    """Parquet with row groups of so many rows, and a column that nobody asks for."""
    queries, documents, scores = zip(*found, strict=True)
    columns = {"query_id": queries, "notes": [f"{n:0400}" for n in range(len(found))], "doc_id": documents}
    parquet.write_table(pa.table(columns | {"score": pa.array(scores, pa.float64())}), path, row_group_size=group)


@pytest.mark.parametrize(("ending", "large"), [(".tsv", False), (".jsonl", False), (".txt", True), (".parquet", True)])
def test_ranges_of_an_output_give_the_record_of_one_process(tmp_path, monkeypatch, calls, ending, large):
    """In any order of calls, with the digest that the file has anywhere; no call or result takes 10 KB."""
    if large:
        monkeypatch.setattr(digests, "_LARGEST", 1_000)
        monkeypatch.setattr(digests, "_RANGE", 1_500)
    config = written(tmp_path, ending)
    for model, output in WEB.outputs.items() if ending == ".parquet" else ():
        write_groups(tmp_path / "web" / f"{model}.parquet", rows(output), 40)

    assert unlike(config, spread(config)) == []
    assert calls.names[:2] == ["_begin"] * 2
    assert {*calls.names[2:]} == {"_read_range"}
    assert len([each for each in calls.ranges if each.is_parsed]) > 8
    assert max(calls.sizes) < 10_000


def layouts(found: Sequence[Row]) -> dict[str, bytes]:
    """The rows as other tools name their columns, and as lines without a header, by the file's ending."""
    ranked = [(query, doc, place) for place, (query, doc, _) in enumerate(found, 1)]
    queries, documents, scores = zip(*found, strict=True)
    sink = pa.BufferOutputStream()
    table = pa.table({"q_id": queries, "doc_id": documents, "score": pa.array(scores, pa.float64())})
    parquet.write_table(table, sink, row_group_size=40)
    objects = (json.dumps({"qid": query, "docno": doc, "rank": rank}) for query, doc, rank in ranked)
    return {
        ".parquet": sink.getvalue().to_pybytes(),
        ".tsv": "".join(f"{q}\t{d}\t{s}\n" for q, d, s in [("q_id", "doc_id", "score"), *found]).encode(),
        ".jsonl": "\n".join(objects).encode(),
        ".txt": "".join(f"{query}::{doc}::{score!r}\n" for query, doc, score in found).encode(),
    }


@pytest.mark.parametrize(
    ("ending", "taken_for"),
    [
        (".parquet", "read as files of ranx: columns: {query_id: q_id}"),
        (".tsv", "read as files of ranx: columns: {query_id: q_id}"),
        (".jsonl", "read as files of PyTerrier and by rank: columns: {query_id: qid, doc_id: docno, rank: rank}"),
        (".txt", "read as lines without a header: columns: {query_id: 1, doc_id: 2, score: 3}"),
    ],
)
def test_each_range_has_the_layout_of_the_file(tmp_path, calls, ending, taken_for):
    """Columns of other tools, ranks for scores, `::` between fields: record and remark are those of one process."""
    config = written(tmp_path, ending, models=["bm25"])
    path = tmp_path / f"web/bm25{ending}"
    path.write_bytes(layouts(rows(WEB.outputs["bm25"]))[ending])
    evaluation = spread(config)

    assert unlike(config, evaluation) == []
    assert {*calls.names[1:]} == {"_read_range"}
    assert len([each for each in calls.ranges if each.is_parsed]) > 4
    assert [line for line in evaluation.warnings if line.endswith(f"{taken_for} (such as {path})")]


def test_documents_are_left_out_of_each_range(tmp_path, calls):
    """Counts are those of the whole file; ranges in the cache that leave nothing out are not used."""
    config = written(tmp_path, models=["bm25"])
    output = WEB.outputs["bm25"]
    own = [row for query, values in output.items() for row in rows({query: {query: 0.5, **values}})]
    write_table(tmp_path / "web/bm25.txt", own, "score")
    spread(config)
    calls.made.clear()
    excluding = tmp_path / "excluding.yaml"
    text = yaml.safe_load(config.read_text())
    text["datasets"]["web"]["exclude_self"] = True
    excluding.write_text(yaml.safe_dump(text))
    evaluation = spread(excluding)

    assert unlike(excluding, evaluation) == []
    assert calls.names[0] == "_begin"
    assert {*calls.names[1:]} == {"_read_range"}
    (found,) = manifest_of(evaluation.record)["outputs"]
    judged = {*output} & {*WEB.judged}
    counts = [found["quality"][name] for name in ("n_rows", "n_excluded", "n_excluded_queries")]
    assert counts == [len(own), len(judged), len(judged)]


def test_a_folder_of_files_is_a_call_for_each_file_at_least(tmp_path, calls):
    """The compressed file and the one with quotation marks are not cut; a query straddles the first two."""
    config = written(tmp_path, models=["bm25"])
    found = rows(WEB.outputs["bm25"])
    (tmp_path / "web/bm25.txt").unlink()
    for name, own in (("1.tsv", found[:230]), ("2.tsv.gz", found[230:300]), ("3.csv", found[300:])):
        write_table(tmp_path / "web/bm25.txt" / name, own, "score")

    assert unlike(config, spread(config)) == []
    names = [Path(each.path).name for each in calls.ranges if each.is_parsed]
    assert sorted({*names}) == ["1.tsv", "2.tsv.gz", "3.csv"]
    assert (names.count("1.tsv") > 1, names.count("2.tsv.gz"), names.count("3.csv")) == (True, 1, 1)


def test_what_was_hashed_is_what_was_parsed(tmp_path, calls):
    """A score that changes in ranges that were read is noticed by their digests, and the output is read again."""
    config = written(tmp_path, models=["bm25"])
    path = tmp_path / "web/bm25.txt"
    text = path.read_text()
    first = text.splitlines(keepends=True)[1]
    changed = first.replace(" " + first.split()[4] + " ", " 9" + first.split()[4][1:] + " ", 1)
    assert len(changed) == len(first)
    assert changed != first
    calls.before[3] = lambda: path.write_text(text.replace(first, changed, 1)) and None

    evaluation = spread(config)
    assert calls.names[0] == "_begin"
    assert calls.names[-1] == "_read"
    (output,) = manifest_of(evaluation.record)["outputs"]
    assert output["files"][0]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert unlike(config, evaluation) == []


def test_scattered_rows_are_read_as_a_whole(tmp_path, calls):
    """Two ranges show it; then one call reads the output, with the remark of one process."""
    config = write_config(
        tmp_path, {"web": WEB}, {"search": ["ap"]}, rng=np.random.default_rng(1), models=["bm25"], report=False
    )
    evaluation = spread(config)

    assert calls.names == ["_begin", "_read_range", "_read_range", "_read"]
    assert unlike(config, evaluation) == []


@pytest.mark.parametrize("bad", ["q0 Q0 d1\n", "q0 Q0 d 1 2 t\n" * 2])
def test_what_is_wrong_with_a_range_is_said_as_by_one_process(tmp_path, calls, bad):
    """A line that is none and a document that is ranked twice, at the end: the same line is named."""
    config = written(tmp_path)
    with (tmp_path / "web/bm25.txt").open("a") as file:
        file.write(bad)
    evaluation = spread(config)

    assert [failure.model for failure in evaluation.failures] == ["bm25"]
    assert unlike(config, evaluation) == []
    assert calls.names[-1] == "_read"


def test_a_range_that_kills_its_workers_is_named(tmp_path, calls):
    """The failure says which bytes of which file; the other model has its figures."""
    config = written(tmp_path)
    calls.before[5] = lambda: Killed(4, "tcp://w:1")  # one of the first two ranges of the first output
    evaluation = spread(config)

    (failure,) = evaluation.failures
    wanted = calls.ranges[3]
    begin, end = wanted.place.begin, wanted.place.spans[-1][1]
    assert failure.reason == (
        f"{wanted.path}: reading bytes {begin + 1:,} to {end:,} ended 4 worker processes, the last at tcp://w:1; "
        "check their logs and their memory"
    )
    assert {result.model for result in evaluation.results} == {*WEB.outputs} - {failure.model}


def test_ranges_that_were_read_before_are_not_parsed_again(tmp_path, monkeypatch, calls):
    """Where the cache has an output's ranges alone, as after a lost scheduler, they are hashed and not parsed."""
    config = written(tmp_path)
    spread(config)
    for path in (tmp_path / "spread/cache").rglob("*.hits"):
        path.unlink()
    monkeypatch.setattr(cluster_reads, "take_ranking", None)

    assert unlike(config, spread(config)) == []
    assert "_read" not in calls.names


def test_a_range_that_the_cache_has_lost_is_made_up_for(tmp_path, calls):
    """What a range put there is deleted before the caller takes it: one call reads the whole output."""
    config = written(tmp_path, models=["bm25"])
    calls.before[2] = lambda: [path.unlink() for path in (tmp_path / "spread/cache").rglob("*.ranges")] and None

    assert unlike(config, spread(config)) == []
    assert calls.names == ["_begin", "_read_range", "_read_range", "_read"]


def test_an_output_in_the_cache_is_hashed_alone(tmp_path, calls):
    """A call for each output: it is not cut."""
    config = written(tmp_path)
    spread(config)
    calls.made.clear()
    evaluation = spread(config)

    assert calls.names == ["_begin"] * 2
    assert any(
        warning.endswith("cluster tcp://x:1: 0; found in the output cache: 2") for warning in evaluation.warnings
    )
