"""External scores with rows for all queries, and lines in the orders of other tools."""

import json
from pathlib import Path
from typing import Any

import pytest

from rankledger.metrics.measure import external_measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.external_scores import ExternalOutput, read_external_scores
from tests.support.data_files import write

VALUES = [0.1, 0.9, 0.2, 0.8, 0.5]
WIDE = "query_id,map\n" + "".join(f"q{number},{value}\n" for number, value in enumerate(VALUES))


def read(name: str, text: str, *scores: str, **options: Any) -> ExternalOutput:
    return read_external_scores(Source(write(Path(name), text), **options), [*map(external_measure, scores)])


@pytest.mark.parametrize(
    ("row", "is_query"),
    [
        *(("all", False), ("amean", False), ("Mean", False), ("AVG", False), ("macro avg", False), ("overall", False)),
        *(("q9", True), ("mean-7", True)),
    ],
)
def test_a_row_of_the_mean_is_no_query(folder, row, is_query):
    long = "query_id,measure,value\n" + WIDE.partition("\n")[2].replace(",", ",map,") + f"{row},map,0.5\n"
    wide = {name: {"map": float(value)} for name, value in (line.split(",") for line in WIDE.splitlines()[1:])}
    for name, text in (
        ("w.csv", f"{WIDE}{row},0.5\n"),
        ("l.csv", long),
        ("j.json", json.dumps({**wide, row: {"map": 0.5}})),
    ):
        output = read(name, text, "map")
        assert len(output.query_ids) == output.values.shape[1] == len(VALUES) + is_query
        assert output.remarks == (
            () if is_query else (f"{name}: the row of {row} was left out, because not a query but a summary. Check it",)
        )


def test_a_row_called_as_a_summary_that_is_none():
    output = read("w.csv", f"{WIDE}total,0.9\nstd,0.3\n", "map")

    assert output.query_ids[-2:] == ("total", "std")
    assert output.remarks == ("w.csv: the row of total, std was read as a query. Check it",)


@pytest.mark.parametrize("name", ["r.txt", "r.tsv"])
@pytest.mark.parametrize("score", ["nDCG@10", "P(rel=2)@5", "of_mine"])
def test_output_of_ir_measures(folder, name, score):
    output = read(name, f"q1\t{score}\t0.5000\nq2\t{score}\t1.0000\nall\t{score}\t0.7500\n", score)

    assert (output.query_ids, output.values.tolist()) == (("q1", "q2"), [[0.5, 1.0]])


def test_output_of_trec_eval_and_numbered_fields(folder):
    text = "map                   \tq1\t0.5\nmap                   \tq2\t1.0\nmap                   \tall\t0.75\n"
    own = "0.5 q1 mine\n1.0 q2 mine\n0.75 all mine\n"
    numbers = {"query_id": "2", "measure": "3", "value": "1"}

    for output in (read("t.txt", text, "map"), read("o.txt", own, "mine", columns=numbers)):
        assert (output.query_ids, output.values.tolist()) == (("q1", "q2"), [[0.5, 1.0]])
