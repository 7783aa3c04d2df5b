"""Scores and numbers that were made elsewhere: tables of them, JSON, and the rows of means that tools add."""

import gzip
import hashlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import external_measure
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.external_scores import ExternalOutput, external_dataset, read_external_scores
from rankledger.pipeline.data.readers import read_external_metrics
from tests.support.data_files import json_lines, parquet_table, refusal, write

pytestmark = pytest.mark.usefixtures("folder")

CONVENTIONS = PROFILES["trec_eval"].conventions
FAITHFUL = external_measure("faithful", "higher", (0, 1))
COST = external_measure("cost", "lower")
NAN = float("nan")
EXPECTED = {"q2": (0.25, -3.0), "q1": (1.0, NAN), "q3": (NAN, 2.5)}  # faithful, cost; in the order of the files


def read(name: str, data: bytes | str, **options: Any) -> ExternalOutput:
    return read_external_scores(Source(write(Path(name), data), **options), [FAITHFUL, COST])


def by_query(found: ExternalOutput) -> dict[str, tuple[float, ...]]:
    return dict(zip(found.query_ids, map(tuple, found.values.T.tolist()), strict=True))


WIDE = "query_id\tmodel\tfaithful\tcost\nq2\tx\t0.25\t-3\nq1\tx\t1\t\nq3\tx\tNaN\t2.5\n"
LONG = [("faithful", "q2", "0.25"), ("cost", "q2", "-3"), ("faithful", "q1", "1"), ("cost", "q3", "2.5")]
PRINTED = "".join("{:<22}\t{}\t{}\n".format(*row) for row in LONG)
MEANS = "runid                 \tall\tSTANDARD\nfaithful              \tall\t0.9\ncost                  \tall\tbroken\n"


WHOLE = {"query_id": ["q2", "q1", "q3"], "faithful": [0.25, 1.0, None], "cost": [-3.0, NAN, 2.5]}
LISTED = {"measure": [row[0] for row in LONG], "query_id": [row[1] for row in LONG]}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", WIDE),
        ("a.csv", WIDE.replace("\t", ",")),
        ("b.csv", '"cost","faithful","query_id"\n-3, 0.25 ,q2\n,1e0,q1\n2.5,  ,q3\n'),
        (
            "a.jsonl",
            json_lines(
                {"query_id": "q2", "faithful": 0.25, "cost": -3},
                {"query_id": "q1", "faithful": 1},
                {"query_id": "q3", "faithful": None, "cost": 2.5},
            ),
        ),
        ("a.json", '{"q2": {"faithful": 0.25, "cost": -3}, "q1": {"faithful": 1}, "q3": {"cost": 2.5, "x": "y"}}'),
        ("a.parquet", parquet_table(**WHOLE)),
        ("b.parquet", parquet_table(**WHOLE | {"cost": [Decimal("-3.0"), None, Decimal("2.5")]})),
        ("c.parquet", parquet_table(**WHOLE | {"faithful": pa.array([0.25, 1, None], pa.float32())})),
        ("long.tsv", "measure\tquery_id\tvalue\n" + "".join("\t".join(row) + "\n" for row in LONG)),
        (
            "long.jsonl",
            json_lines(
                *({"query_id": query, "value": float(value), "measure": name} for name, query, value in LONG),
                {"query_id": "q1", "measure": "other", "value": "text"},
            ),
        ),
        ("long.parquet", parquet_table(**LISTED, value=[float(row[2]) for row in LONG])),
        ("printed.eval", PRINTED),
        ("means.eval", PRINTED + MEANS),
        ("windows.txt", ("# judge v2\n" + MEANS + PRINTED).replace("\n", "\r\n")),
        ("other.eval", "relstring q2 '101'\n" + PRINTED + "relstring all '101'\n"),
    ],
)
def test_every_layout_gives_the_same_scores(name, data):
    found = read(name, data)

    assert list(found.query_ids) == list(EXPECTED)
    np.testing.assert_array_equal(found.values.T, list(EXPECTED.values()))


def test_the_files_are_described():
    data = [
        b"query_id,faithful,cost\nq2,0.25,-3\n",
        b'{"query_id": 7, "faithful": 0.5}\n{"query_id": "q1", "cost": 0}\n',
    ]
    write(Path("scores/0.csv"), data[0])
    write(Path("scores/1.jsonl"), data[1])

    found = read_external_scores(Source("scores"), [FAITHFUL, COST])

    assert [(file.path, file.size, file.sha256) for file in found.files] == [
        ("scores/0.csv", len(data[0]), hashlib.sha256(data[0]).hexdigest()),
        ("scores/1.jsonl", len(data[1]), hashlib.sha256(data[1]).hexdigest()),
    ]
    assert found.n_rows == 3
    np.testing.assert_equal(by_query(found), {"q2": (0.25, -3), "7": (0.5, NAN), "q1": (NAN, 0)})


def test_columns_are_mapped():
    names = {"query_id": "id", "faithful": "Faithful?", "measure": "name", "value": "score"}

    wide = read("wide.csv", "id,Faithful?,cost\nq1,0.5,2\n", columns=names)
    long = read("long.csv", "id,name,score\nq1,faithful,0.5\nq1,cost,2\n", columns=names)

    assert by_query(wide) == by_query(long) == {"q1": (0.5, 2)}


def test_a_wide_file_may_have_scores_called_measure_and_value():
    source = Source(write(Path("a.csv"), "query_id,measure,value\nq1,1,2\nq2,3,4\n"))

    found = read_external_scores(source, [external_measure("value"), external_measure("measure")])

    assert by_query(found) == {"q1": (2, 1), "q2": (4, 3)}


def test_a_query_called_all_is_one_like_any_other():
    assert by_query(read("a.csv", "query_id,faithful,cost\nall,1,2\n")) == {"all": (1, 2)}


def test_scores_of_the_queries_of_the_dataset():
    found = read("a.tsv", WIDE)
    take, missing, quality = found.of(np.array(["q0", "q1", "q2"], dtype=object), CONVENTIONS)

    np.testing.assert_array_equal(take(found.values), [[NAN, 1, 0.25], [NAN, NAN, -3]])
    assert missing.tolist() == [True, False, False]
    assert (quality.n_rows, quality.n_missing_queries, quality.n_unjudged_queries) == (3, 1, 1)
    assert quality.judged_at_10 is None


def test_a_missing_query_is_refused_where_that_is_an_error():
    conventions = PROFILES["trec_eval"].with_conventions(missing_queries="error").conventions
    found = read("a.tsv", WIDE)

    assert not found.of(np.array(["q1", "q3"], dtype=object), conventions)[1].any()
    assert refusal(found.of, np.array(["q0", "q1"], dtype=object), conventions) == (
        "a.tsv: 1 of 2 queries are without scores, such as 'q0'; complete it, or say missing_queries: skip"
    )


def test_the_queries_are_those_of_the_table():
    queries = Source(write(Path("queries.tsv"), "query_id\tuser\tmarket\nq3\tu\tde\nq10\tv\tus\nq9\tu\tus\n"))

    found = external_dataset(
        [read("a.tsv", WIDE)], PlannedDataset(None, "scores", queries, cluster="user", slices=("market",))
    )

    assert found.query_ids.tolist() == ["q10", "q3", "q9"]
    assert found.groups.clusters.tolist() == [1, 0, 0]
    assert {name: rows.tolist() for name, rows in found.groups.slices.items()} == {
        "market=de": [False, True, False],
        "market=us": [True, False, True],
    }
    assert {role: [file.path for file in files] for role, files in found.files.items()} == {"queries": ["queries.tsv"]}


def test_without_a_table_the_queries_are_those_of_all_outputs():
    outputs = [read("a.tsv", WIDE), read("b.csv", "query_id,faithful,cost\nq0,1,1\nq1,1,1\n")]

    found = external_dataset(outputs, PlannedDataset(None, "scores"))

    assert found.query_ids.tolist() == ["q0", "q1", "q2", "q3"]
    assert [file.path for file in found.files["scores"]] == ["a.tsv", "b.csv"]
    assert found.groups.clusters is None


HEAD = "query_id\tfaithful\tcost\n"
WORDS = "write a number, true, false, yes or no, or nothing if there is no score"
NO_NUMBER = f"is not a number; {WORDS}"
NOT_FINITE = f"is not a finite number; {WORDS}"
OUTSIDE = "is outside 0 to 1; fix it, or the range in the config"


def one(query_id: object = "q1", faithful: object = 1, cost: object = 1) -> str:
    return json_lines({"query_id": query_id, "faithful": faithful, "cost": cost})


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tsv", HEAD + "q1\thigh\t1\n", f"faithful 'high' of query 'q1' (line 2) {NO_NUMBER}"),
        ("b.tsv", HEAD + "q1\t1_0\t1\n", f"faithful '1_0' of query 'q1' (line 2) {NO_NUMBER}"),
        ("c.tsv", HEAD + "q1\t1\t-inf\n", f"cost '-inf' of query 'q1' (line 2) {NOT_FINITE}"),
        ("d.tsv", HEAD + "q1\t1\t1e999\n", f"cost '1e999' of query 'q1' (line 2) {NOT_FINITE}"),
        ("e.tsv", HEAD + "q1\t\t\nq2\t1.01\t\n", f"faithful '1.01' of query 'q2' (line 3) {OUTSIDE}"),
        (
            "f.tsv",
            HEAD + "q1\t1\t1\nq2\t1\t1\nq1\t1\t1\n",
            "query 'q1' has faithful twice (line 2 and line 4); keep one",
        ),
        (
            "g.tsv",
            "query_id\tfaithfull\tcost\nq1\t1\t1\n",
            "no column 'faithful' among query_id, faithfull, cost; did you mean 'faithfull'?",
        ),
        (
            "h.tsv",
            "id\tfaithful\tcost\nq1\t1\t1\n",
            "no column 'query_id' among id, faithful, cost; map it with columns: {query_id: id}",
        ),
        ("i.tsv", HEAD + "\t1\t1\n", "empty query_id (line 2); fill it"),
        ("j.tsv", HEAD, "no rows; write the file again"),
        ("a.jsonl", one(faithful="maybe"), f"faithful 'maybe' of query 'q1' (line 1) {NO_NUMBER}"),
        ("b.jsonl", one(faithful=[1]), f"faithful [1] of query 'q1' (line 1) {NO_NUMBER}"),
        ("c.jsonl", one(cost=10**400), f"cost 1{'0' * 198}… of query 'q1' (line 1) {NOT_FINITE}"),
        ("d.jsonl", one(query_id=0.5), "query_id 0.5 (line 1) is not an id; write a string or a whole number"),
        ("e.jsonl", one(query_id=None), "empty query_id (line 1); fill it"),
        ("a.json", '{"q1": {"faithful": "x", "cost": 1}}', f"faithful 'x' of query 'q1' (object 1) {NO_NUMBER}"),
        ("b.json", '{"q1": {"faithful": 1}}', "no score 'cost' among faithful; fix its name"),
        ("c.json", '{"q1": {"cost": 1, "cost": 2}}', "query 'q1': measure 'cost' occurs twice; keep one"),
        (
            "d.json",
            '{"q1": 3}',
            "the value of 'q1' is 3. Use {query: {measure: value}}, or a list of objects with query_id, measure, "
            "value.",
        ),
        (
            "a.parquet",
            parquet_table(query_id=["q1"], faithful=[2.0], cost=[1]),
            f"faithful 2.0 of query 'q1' (row 1) {OUTSIDE}",
        ),
        ("a.eval", PRINTED + "cost q2 1\n", "query 'q2' has cost twice (line 2 and line 5); keep one"),
        ("b.eval", "faithful q1 1\ncosts q1 1\n", "no score 'cost' among costs, faithful; did you mean 'costs'?"),
        ("c.eval", MEANS, "only lines for all queries together; print each query too, with -q"),
        (
            "long.csv",
            "query_id,measure,value\nq1,faithful,1\nq2,cost,x\n",
            f"cost 'x' of query 'q2' (line 3) {NO_NUMBER}",
        ),
    ],
)
def test_what_is_no_score_is_refused(name, data, message):
    source = Source(write(Path(name), data))

    refused = refusal(read_external_scores, source, [FAITHFUL, COST])
    assert refused.removeprefix(name).removeprefix(":1") == f": {message}"


def test_a_short_line_and_a_score_in_two_parts_are_refused():
    short = refusal(read, "a.csv", "query_id,faithful,cost\nq1,1\n")
    assert short == "a.csv:2: 2 fields found where the header has 3; fix the line"
    short = refusal(read, "a.eval", "faithful q1\n")
    assert short == "a.eval:1: 2 fields found where measure, query_id, value are expected; fix the line"

    write(Path("scores/0.csv"), "query_id,faithful,cost\nq1,1,1\n")
    write(Path("scores/1.csv"), "query_id,faithful,cost\nq2,1,1\nq1,1,1\n")
    assert refusal(read_external_scores, Source("scores"), [FAITHFUL, COST]) == (
        "scores: query 'q1' has faithful twice (line 2 of scores/0.csv and line 3 of scores/1.csv); keep one"
    )


def test_numbers_are_read_with_the_hash_of_their_file():
    text = '{"latency_p95_ms": 120, "dollars": 2.5e-3, "ü": -1}'.encode()
    extra = read_external_metrics(write(Path("costs.json"), text))

    assert list(extra.numbers.items()) == [("latency_p95_ms", 120.0), ("dollars", 0.0025), ("ü", -1.0)]
    assert (extra.file.sha256, extra.file.size) == (hashlib.sha256(text).hexdigest(), len(text))
    assert read_external_metrics(write(Path("costs.json.gz"), gzip.compress(text))).numbers == extra.numbers
    assert "matches 2 files; name one" in refusal(read_external_metrics, "costs.*")
    assert "file not found" in refusal(read_external_metrics, "none.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ('{"a": 1', "is not JSON"),
        ('{"a": 1, "a": 9}', "is not JSON ('a' occurs twice); write an object of numbers"),
        pytest.param("[" * 100_000, "is not JSON (", id="nested too deeply"),
        ("[1]", "found list; write an object of numbers"),
    ],
)
def test_what_is_no_object_of_numbers_is_refused(text, message):
    assert refusal(read_external_metrics, write(Path("costs.json"), text)).startswith(f"costs.json: {message}")


def test_only_finite_numbers_are_read_and_those_in_objects_have_dotted_names():
    """Results of lm_eval and dvc have strings, null and NaN beside the numbers: of eight entries, three are numbers."""
    text = '{"p95": 110.5, "model": "bm25", "ok": true, "cost": null, "loss": NaN, "far": 1e999, "eval": %s, "l": [1]}'
    path = write(Path("results.json"), text % '{"arc": {"acc,none": 0.25, "alias": "arc"}, "n": 3}')

    assert read_external_metrics(path).numbers == {"p95": 110.5, "eval.arc.acc,none": 0.25, "eval.n": 3.0}


VALUES = [0.1, 0.9, 0.2, 0.8, 0.5]
WITHOUT_MEAN = "query_id,map\n" + "".join(f"q{number},{value}\n" for number, value in enumerate(VALUES))


def read_measures(name: str, text: str, *scores: str, **options: Any) -> ExternalOutput:
    return read_external_scores(Source(write(Path(name), text), **options), [*map(external_measure, scores)])


@pytest.mark.parametrize(
    ("row", "is_query"),
    [
        *(("all", False), ("amean", False), ("Mean", False), ("AVG", False), ("macro avg", False), ("overall", False)),
        *(("q9", True), ("mean-7", True)),
    ],
)
def test_a_row_of_the_mean_is_no_query(folder, row, is_query):
    long = "query_id,measure,value\n" + WITHOUT_MEAN.partition("\n")[2].replace(",", ",map,") + f"{row},map,0.5\n"
    wide = {name: {"map": float(value)} for name, value in (line.split(",") for line in WITHOUT_MEAN.splitlines()[1:])}
    for name, text in (
        ("w.csv", f"{WITHOUT_MEAN}{row},0.5\n"),
        ("l.csv", long),
        ("j.json", json.dumps({**wide, row: {"map": 0.5}})),
    ):
        output = read_measures(name, text, "map")
        assert len(output.query_ids) == output.values.shape[1] == len(VALUES) + is_query
        assert output.remarks == (
            () if is_query else (f"{name}: the row of {row} was left out, because not a query but a summary. Check it",)
        )


def test_a_row_called_as_a_summary_that_is_none():
    output = read_measures("w.csv", f"{WITHOUT_MEAN}total,0.9\nstd,0.3\n", "map")

    assert output.query_ids[-2:] == ("total", "std")
    assert output.remarks == ("w.csv: the row of total, std was read as a query. Check it",)


@pytest.mark.parametrize("name", ["r.txt", "r.tsv"])
@pytest.mark.parametrize("score", ["nDCG@10", "P(rel=2)@5", "of_mine"])
def test_output_of_ir_measures(folder, name, score):
    output = read_measures(name, f"q1\t{score}\t0.5000\nq2\t{score}\t1.0000\nall\t{score}\t0.7500\n", score)

    assert (output.query_ids, output.values.tolist()) == (("q1", "q2"), [[0.5, 1.0]])


def test_output_of_trec_eval_and_numbered_fields(folder):
    text = "map                   \tq1\t0.5\nmap                   \tq2\t1.0\nmap                   \tall\t0.75\n"
    own = "0.5 q1 mine\n1.0 q2 mine\n0.75 all mine\n"
    numbers = {"query_id": "2", "measure": "3", "value": "1"}

    for output in (read_measures("t.txt", text, "map"), read_measures("o.txt", own, "mine", columns=numbers)):
        assert (output.query_ids, output.values.tolist()) == (("q1", "q2"), [[0.5, 1.0]])
