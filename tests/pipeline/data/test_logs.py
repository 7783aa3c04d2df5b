"""Logs: every format gives the same sums of a query, and what cannot stand in a log is refused with its row."""

from pathlib import Path

import numpy as np
import pytest

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.external_scores import odd_weights, read_log
from tests.support.data_files import json_lines, parquet_table, refusal, write

pytestmark = pytest.mark.usefixtures("folder")

ROWS = {
    "query_id": ["u2", "u1", "u2", "u1", "u1"],
    "impression_id": ["7", "7", "7", "8", "8"],
    "clicked": [1, 0, 0, 1, 1],
    "dwell": [40, 0, 0, 5.5, 60],
    "propensity": [0.5, 0.25, 0.5, 0.5, 1],
    "probability": [1, 0, 0.5, 0.25, 0.5],
    "team": [1, 0.5, 0, 1, 0],
}
TEXT = "\n".join(",".join(map(str, line)) for line in [[*ROWS], *zip(*ROWS.values(), strict=True)]) + "\n"
MEASURES = tuple(map(Measure.parse, ("ctr", "dwell", "ips", "snips", "interleaving", "ctr(average=query)")))


def refused(text: str, line: str = "ips", **options) -> str:
    return refusal(read_log, Source(write(Path("a.csv"), text), **options), [Measure.parse(line)])


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_gives_the_same_sums(ending):
    """Weights of u2 are 2 and 1, of u1 0, 0.5 and 0.5: (2 + 0) / 2 and 2 / 3; (0 + 0.5 + 0.5) / 3 and 1 / 1.

    The list 7 of u2 is not that of u1: u2 wins its one list, of u1's two one has no click, and in one both have one.
    """
    rows = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    data = {"csv": TEXT, "tsv": TEXT.replace(",", "\t"), "jsonl": json_lines(*rows), "parquet": parquet_table(**ROWS)}[
        ending
    ]

    found = read_log(Source(write(Path(f"a.{ending}"), data)), MEASURES)

    assert found.query_ids == ("u2", "u1")
    assert found.n_rows == 5
    expected = [[0.5, 2 / 3], [40, 32.75], [1, 1 / 3], [2 / 3, 1], [0.5, 0], [0.5, 2 / 3]]
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    np.testing.assert_array_equal(found.n_rows_of, [2, 3])
    np.testing.assert_allclose(found.moments[MEASURES[3]] * found.n_rows_of, [[2, 1], [3, 1]], rtol=1e-12)
    assert set(found.moments) == {MEASURES[1], MEASURES[3], MEASURES[4]}


def test_a_weight_comes_before_what_it_could_be_made_of():
    text = "query_id,clicked,weight,propensity,dwell\nq1,1,0.5,0,x\nq1,0,1.5,0,y\n"
    rows = {"query_id": ["q1", "q1"], "clicked": [1, 0], "weight": [0.5, 1.5], "propensity": ["x", "y"]}
    files = [write(Path("a.csv"), text), write(Path("a.parquet"), parquet_table(**rows))]
    files += [write(Path("a.tsv"), text.replace(",", "\t"))]

    assert [read_log(Source(file), [Measure.parse("snips")]).values.tolist() for file in files] == [[[0.25]]] * 3


def test_columns_are_mapped_and_files_are_one_log():
    for name in ("1", "2"):
        write(Path(f"log-{name}.csv"), f"session,y\ns1,{int(name) - 1}\ns{name},1\n")
    source = Source("log-*.csv", columns={"query_id": "session", "clicked": "y"})

    found = read_log(source, [Measure.parse("ctr")])

    assert found.query_ids == ("s1", "s2")
    np.testing.assert_allclose(found.values, [[2 / 3, 1]], rtol=1e-12)
    assert len(found.files) == 2


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("clicked", "2", "a.csv: clicked 2 (line 4) is outside 0 to 1; fix it, or remove the row"),
        ("clicked", "nan", "a.csv: clicked nan (line 4) is outside 0 to 1; fix it, or remove the row"),
        ("clicked", "yes", "a.csv:4: clicked 'yes' is not a number; fix it"),
        ("probability", "", "a.csv:4: probability '' is not a number; fix it"),
        ("propensity", "0", "a.csv: propensity 0 (line 4) is outside 1e-100 to 1; fix it, or remove the row"),
        ("probability", "1.5", "a.csv: probability 1.5 (line 4) is outside 0 to 1; fix it, or remove the row"),
        ("query_id", "", "a.csv: empty query_id (line 4); fill it"),
    ],
)
def test_a_cell_that_cannot_be_is_refused(column, value, problem):
    lines = TEXT.splitlines()
    cells = lines[3].split(",")
    cells[[*ROWS].index(column)] = value
    lines[3] = ",".join(cells)

    assert refused("\n".join(lines)) == problem


def test_a_column_that_is_missing_is_named():
    lacking = "no column 'weight', and no 'propensity' with 'probability' instead"
    assert refused("query_id,clicked\nq1,1\n") == f"a.csv: {lacking}; add them, or map them with `columns`"
    assert refused("query_id,clicked,propensity\nq1,1,1\n").startswith("a.csv:1: no column 'probability' among ")
    assert refused("query_id,clicked,weight\nq1,1,1\n", "interleaving").startswith("a.csv:1: no column 'impression_id'")
    assert refused("user,clicked\nq1,1\n", "ctr") == (
        "a.csv:1: no column 'query_id' among user, clicked; map it with columns: {query_id: user}"
    )


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_team_that_is_a_name_or_a_count_says_what_to_write(name):
    remedy = "write 1 where this model contributed the document, 0 where the other did, or the probability"
    for team, found in (("A", "a{}:{}: team 'A' is not a number; "), (2, "a{}: team 2 (line {}) is outside 0 to 1; ")):
        row = {"query_id": "u", "impression_id": "i", "clicked": 1, "team": team}
        text = json_lines(row) if name == "a.jsonl" else f"{','.join(row)}\n{','.join(map(str, row.values()))}\n"
        place = (name[1:], 1 if name == "a.jsonl" else 2)
        problem = refusal(read_log, Source(write(Path(name), text)), [Measure.parse("interleaving")])
        assert problem == found.format(*place) + remedy
    table = parquet_table(query_id=["u"], impression_id=["i"], clicked=[1], team=["A"])
    problem = refusal(read_log, Source(write(Path("a.parquet"), table)), [Measure.parse("interleaving")])
    assert problem == f"a.parquet: team is string; {remedy}"


def test_a_part_of_a_click_is_no_click_of_an_interleaved_list():
    """Rewards may be fractions in other measures of the same log; interleaving would count 0.1 as much as 1."""
    log = "query_id,impression_id,clicked,team\nu,i,1,1\nu,i,0.1,0\n"
    found = "a.csv: clicked 0.1 (line 3) is part of a click, and interleaving counts clicks"

    assert refused(log, "interleaving") == f"{found}. Use 1 or 0, or remove interleaving."
    source = Source(write(Path("a.csv"), log))
    assert read_log(source, [Measure.parse("ctr")]).values == pytest.approx(0.55)


def test_weights_whose_mean_cannot_be_1_are_warned_of():
    """Rows of 24 users weigh 0.2 and 0.4 by turns: the mean is 0.3, and the log of it far outside.

    In 12 households of two users the mean is exact, but these are too few.
    """
    users, n_rows = np.arange(24), np.full(24, 2.0)
    low, warning = np.where(users % 2, 0.2, 0.4), "the weights average 0.3, and 1 is expected if propensities are right"

    assert odd_weights(low, n_rows, None, ("p", "q")) == f"{warning}; check 'p' and 'q'"
    assert odd_weights(low, n_rows, users // 2, ("p",)) is None
    assert odd_weights(np.zeros(24), n_rows, None, ("p",)).startswith("the weights average 0, ")
    assert odd_weights(np.full(24, 0.995), n_rows, None, ("p",)) is None  # rounded propensities


def test_the_interval_of_the_mean_weight_is_that_of_clusters():
    """960 users in 24 households, of which all of 6 weigh 2.4 and the others 0.1: the mean is 0.675, its log -0.393.

    The variance of the households is (6 * 1.725² + 18 * 0.575²) / 23 = 1.035, so the error of the mean is 0.208 and of
    its log 0.308: 1.3 of these to 0. By users it is 0.032 and 0.048: 8.2 of these.
    """
    means = np.tile(np.where(np.arange(24) < 6, 2.4, 0.1), 40)
    of_household = np.tile(np.arange(24), 40)

    assert odd_weights(means, np.ones(960), None, ("p",)) is not None
    assert odd_weights(means, np.ones(960), of_household, ("p",)) is None


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.json", '{"u1": {"clicked": 1, "weight": 1}}', "one JSON object cannot hold query_id, clicked, weight"),
        ("a.json", '{"u1": 1}', "the value of 'u1' is 1"),
        ("a.txt", "u1 1 1\n", "no column 'weight', and no 'propensity'"),
    ],
)
def test_a_log_is_a_table_with_names(name, data, problem):
    assert problem in refusal(read_log, Source(write(Path(name), data)), [Measure.parse("ips")])


def test_a_log_has_rows_and_no_labels():
    assert refused("query_id,clicked\n", "ctr") == "a.csv: no rows; write the file again"
    assert refused(TEXT, "ctr", select={"task": "a"}) == "a.csv: `select` has no effect on logs; remove it"
