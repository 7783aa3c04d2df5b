"""Clusters and slices: every format of the queries table gives the same, and what cannot be grouped by is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.dataset import group_queries
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.data.readers import read_queries
from tests.support.data_files import compress, json_lines, refusal, table_bytes, write

pytestmark = pytest.mark.usefixtures("folder")

QUERIES = ["q1", "q2", "q3", "q4"]


def groups(name: str, data: bytes | str, *, cluster: str | None = None, slices: tuple[str, ...] = ()) -> Groups:
    further = [*dict.fromkeys(column for column in (cluster, *slices) if column is not None)]
    table = read_queries(write(Path(name), data), further=further)
    return group_queries(QUERIES, table, cluster, slices)


def members(found: Groups) -> dict[str, list[str]]:
    return {name: [QUERIES[place] for place in np.flatnonzero(rows)] for name, rows in found.slices.items()}


def parquet(markets: Any, users: Any) -> bytes:
    ids = pa.array([f"q{place + 1}" for place in range(len(markets))])
    return table_bytes([ids, pa.array(markets), pa.array(users)], ["query_id", "market", "user"])


SHUFFLED = [("q4", "us", "u2"), ("q9", "fr", ""), ("q1", "de", "u2"), ("q3", "", "u1"), ("q2", "de", "u10")]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", "query_id\tmarket\tuser\n" + "".join("\t".join(row) + "\n" for row in SHUFFLED)),
        ("a.csv", "user,query_id,market\n" + "".join(f'"{u}",{q},{m}\n' for q, m, u in SHUFFLED)),
        ("a.csv.gz", compress(b"query_id,market,user\nq1,de,u2\nq2,de,u10\nq3,  ,u1\nq4,us,u2\n", ".gz")),
        ("a.jsonl", json_lines(*[{"query_id": q, "market": m or None, "user": u} for q, m, u in SHUFFLED])),
        ("b.jsonl", json_lines(*[{"query_id": q, "user": u} | ({"market": m} if m else {}) for q, m, u in SHUFFLED])),
        ("a.parquet", parquet(["de", "de", None, "us"], ["u2", "u10", "u1", "u2"])),
        ("b.parquet", parquet(pa.array(["de", "de", None, "us"]).dictionary_encode(), ["u2", "u10", "u1", "u2"])),
    ],
    ids=["tsv", "csv", "gzip", "jsonl", "jsonl without null", "parquet", "dictionary"],
)
def test_every_format_gives_the_same_groups(name, data):
    found = groups(name, data, cluster="user", slices=("market",))

    assert members(found) == {"market=de": ["q1", "q2"], "market=us": ["q4"]}
    assert found.clusters.tolist() == [2, 1, 0, 2]


def test_slices_stand_in_the_order_of_the_config_and_of_their_bytes():
    data = "query_id\tlength\tmarket\nq1\tlong\tä\nq2\ta=b\ta\nq3\tlong\tZ\nq4\t new york \ta\n"

    found = groups("a.tsv", data, slices=("market", "length"))

    assert list(found.slices) == ["market=Z", "market=a", "market=ä", "length= new york ", "length=a=b", "length=long"]
    assert members(found)["length=a=b"] == ["q2"]
    assert found.clusters is None


def test_a_column_may_be_cluster_and_slice():
    found = groups("a.tsv", "query_id\tuser\nq1\tv\nq2\tu\nq3\tv\nq4\tu\n", cluster="user", slices=("user",))

    assert members(found) == {"user=u": ["q2", "q4"], "user=v": ["q1", "q3"]}
    assert found.clusters.tolist() == [1, 0, 1, 0]


def test_texts_of_text_files_keep_their_spelling():
    """01 is not 1, nor is 1.0."""
    found = groups("a.csv", "query_id,n\nq1,01\nq2,1\nq3,1.0\nq4,nan\n", slices=("n",))

    assert members(found) == {"n=01": ["q1"], "n=1": ["q2"], "n=1.0": ["q3"], "n=nan": ["q4"]}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 3, 4, None], {"n=3": ["q1", "q2"], "n=4": ["q3"]}),
        ([3.0, 0.5, 1e300, float("nan")], {"n=0.5": ["q2"], f"n={int(1e300)}": ["q3"], "n=3": ["q1"]}),
        ([True, False, True, None], {"n=false": ["q2"], "n=true": ["q1", "q3"]}),
    ],
)
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_numbers_as_text(values, expected, format):
    """A whole number has no decimals, whether its column knows so or not; NaN and null are no text."""
    if format == "jsonl":
        data = json_lines(*[{"query_id": query, "n": value} for query, value in zip(QUERIES, values, strict=True)])
    else:
        data = table_bytes([pa.array(QUERIES), pa.array(values)], ["query_id", "n"])

    assert members(groups(f"a.{format}", data, slices=("n",))) == expected


def test_a_table_of_parts_with_mapped_columns():
    write(Path("queries/0.tsv"), "id\tland\nq1\tde\nq2\tus\n")
    write(Path("queries/1.csv"), "land,id\nus,q4\nde,q3\n")

    table = read_queries(Source("queries", columns={"query_id": "id", "market": "land"}), further=["market"])

    found = members(group_queries(QUERIES, table, None, ["market"]))
    assert found == {"market=de": ["q1", "q3"], "market=us": ["q2", "q4"]}


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tsv", "query_id\tmarkt\nq1\tx\n", "no column 'market' among query_id, markt; did you mean 'markt'?"),
        ("a.csv", "query_id,x\nq1,x\n", "no column 'market' among query_id, x; fix its name"),
        ("b.csv", "query_id,market,market\nq1,x,y\n", "column 'market' occurs twice; name each column once"),
        ("a.jsonl", '{"query_id": "q1"}\n', "no column 'market' among query_id; fix its name"),
        ("b.jsonl", '{"query_id": "q1", "market": ["x"]}\n', "'market' holds a list (line 1); write a text or a"),
        ("c.jsonl", '{"query_id": "q1", "market": {"x": 1}}\n', "'market' holds a mapping (line 1); write a text or a"),
        ("a.parquet", parquet([["x"]], ["u"]), "'market' holds a list (row 1); write a text or a number"),
        ("b.parquet", table_bytes([pa.array(["q1"])], ["query_id"]), "no column 'market' among query_id; fix"),
    ],
)
def test_what_is_no_column_of_texts_is_refused(name, data, message):
    write(Path(name), data)

    assert (
        refusal(read_queries, name, further=["market"]).removeprefix(name).removeprefix(":1").startswith(f": {message}")
    )


@pytest.mark.parametrize(
    ("name", "data", "place"),
    [
        ("a.tsv", "query_id\tuser\nq9\t\nq1\tu\n\nq2\t\nq3\tu\nq4\tu\n", "line 5"),
        ("a.jsonl", json_lines(*[{"query_id": q, "user": None if q == "q2" else "u"} for q in QUERIES]), "line 2"),
        ("a.parquet", parquet(["m"] * 4, ["u", None, "u", None]), "row 2"),
    ],
)
def test_a_query_without_cluster_is_refused(name, data, place):
    assert refusal(groups, name, data, cluster="user") == (
        f"{name}: query 'q2' has no user ({place}), the cluster column; fill it"
    )


@pytest.mark.parametrize("n_values", [50, 51])
def test_fifty_slices_of_a_column_are_the_most(n_values):
    query_ids = [f"q{place}" for place in range(n_values)]
    data = "query_id\thour\n" + "".join(f"{query}\t{query}h\n" for query in [*query_ids, "other", "one more"])
    table = read_queries(write(Path("a.tsv"), data), further=["hour"])

    if n_values == 50:
        assert len(group_queries(query_ids, table, None, ["hour"]).slices) == 50
    else:
        assert refusal(group_queries, query_ids, table, None, ["hour"]) == (
            "a.tsv: 'hour' has 51 values, and at most 50 make slices; bin them into a column of their own"
        )


def test_two_slices_of_one_name_are_refused():
    """The column `a` with the text `b=c` and the column `a=b` with `c` both make `a=b=c`: one would hide the other."""
    table = read_queries(write(Path("table.csv"), "query_id,a,a=b\nq1,b=c,x\nq2,y,c\n"), further=["a", "a=b"])

    assert refusal(group_queries, ["q1", "q2"], table, None, ["a", "a=b"]) == (
        "table.csv: 'a=b' has a slice 'a=b=c', as has another column; rename one of them"
    )


def test_other_columns_are_read_where_they_are_asked_for():
    rows = [{"query_id": "q1", "user": "u", "length": 3, "tags": ["a"], "market": "de", "half": "x"}]
    write(Path("t/a.jsonl"), json_lines(*rows))
    more = [{"query_id": q, "user": "u", "length": 4.5, "tags": None, "market": None} for q in QUERIES[1:]]
    write(Path("t/b.jsonl"), json_lines(*more))

    table = read_queries("t/*.jsonl", further=["user"], others=True)
    found = group_queries(QUERIES, table, "user", ())

    assert found.columns == {"length": ["3", "4.5", "4.5", "4.5"], "market": ["de", None, None, None]}
    assert group_queries(QUERIES, read_queries("t/*.jsonl", further=["user"]), "user", ()).columns == {}
