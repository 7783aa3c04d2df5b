"""`make figures`: the comparison of two folders of records. The command itself takes minutes and is run by hand."""

import json
from math import nan
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.figures import compare


def write_tables(folder: Path, *, estimate: str, outcome: str, score: float) -> Path:
    name = f"20261120T020000Z-quickstart-{abs(hash(folder)) % 16**8:08x}"
    record = folder / "quickstart-1/records" / name
    record.mkdir(parents=True)
    (folder / "state").mkdir()
    (record / "summary.csv").write_text(f"model,estimate\nbm25,0.25\ndense,{estimate}\n", encoding="utf-8")
    (record / "gates.json").write_text(
        json.dumps({"verdicts": [{"outcome": outcome, "reason": f"see {name}"}]}), encoding="utf-8"
    )
    pq.write_table(pa.table({"query_id": ["q1", "q2"], "ap": [score, nan]}), record / "scores.parquet")
    return folder


def test_values_that_differ_are_named(tmp_path):
    before = write_tables(tmp_path / "before", estimate="0.5", outcome="pass", score=1.0)
    same = write_tables(tmp_path / "same", estimate="0.5", outcome="pass", score=1.0)
    after = write_tables(tmp_path / "after", estimate="0.75", outcome="fail", score=0.5)

    assert list(compare(before, same)) == []
    assert list(compare(before, after)) == [
        "quickstart-1/1/gates.json: outcome in 1 rows, such as 'pass' before, 'fail' after",
        "quickstart-1/1/scores.parquet: ap in 1 rows, such as 1.0 before, 0.5 after",
        "quickstart-1/1/summary.csv: estimate in 1 rows, such as '0.5' before, '0.75' after",
    ]


def test_missing_tables_are_differences(tmp_path):
    before = write_tables(tmp_path / "before", estimate="0.5", outcome="pass", score=1.0)
    after = write_tables(tmp_path / "after", estimate="0.5", outcome="pass", score=1.0)
    next(after.rglob("gates.json")).unlink()
    (tmp_path / "empty").mkdir()

    assert list(compare(before, after)) == ["quickstart-1/1/gates.json: only before"]
    assert list(compare(tmp_path / "empty", tmp_path / "empty")) == [f"{tmp_path}/empty: no tables"]
