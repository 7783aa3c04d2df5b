"""Files whose layout misleads: what is read is right, and what is refused is refused with its cause."""

import itertools
import json
from pathlib import Path

import pandas
import pytest

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.checks import rating_like_relevance
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.locate import find_files
from rankledger.pipeline.data.readers import (
    RankingRanges,
    read_documents,
    read_judgments,
    read_pairs,
    read_queries,
    read_ranking,
)
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import contents, json_lines, refusal, write

pytestmark = pytest.mark.usefixtures("folder")


PAIRS = [("u1", "a", 1.0), ("u2", "b", 1.0)]


@pytest.mark.parametrize(
    ("path", "data", "ids"),
    [
        ("a.inter", "user_id:token\titem_id:token\ttimestamp:float\nu1\ta\t9e8\nu2\tb\t9e8\n", "user_id:token"),
        ("a.csv", "user,item,date\nu1,a,2024-01-02\nu2,b,2024-01-03\n", "user"),
        ("a.csv", "query_id,doc_id\nu1,a\nu2,b\n", "query_id"),
        ("a.csv", "customer id,product id\nu1,a\nu2,b\n", "customer id"),
        ("a.jsonl", json_lines({"query-id": "u1", "corpus-id": "a"}, {"query-id": "u2", "corpus-id": "b"}), "query-id"),
    ],
)
def test_pairs_without_any_grade_have_grade_1(path, data, ids):
    rows = read_judgments(write(Path(path), data))

    assert contents(rows) == PAIRS
    assert rows.remarks[0].startswith("read as pairs of grade 1: columns: {query_id: ")
    assert ids in rows.remarks[0]


@pytest.mark.parametrize(
    ("path", "data", "said"),
    [
        ("a.csv", "user,item,amount\nu1,a,0\n", "map it with columns: {relevance: …}"),
        ("a.csv", "user,item,seconds_watched,timestamp\nu1,a,0,9\n", "map it with columns: {relevance: …}"),
        (
            *("a.jsonl", '{"query_id": "u1", "doc_id": "a"}\n{"query_id": "u1", "doc_id": "b", "relevance": 0}\n'),
            "relevance",
        ),
    ],
)
def test_pairs_with_something_that_may_be_a_grade_have_none(path, data, said):
    assert said in refusal(read_judgments, write(Path(path), data))


def test_a_label_of_recbole_is_a_grade():
    data = "user_id:token\titem_id:token\tlabel:float\nu1\ta\t1.0\nu1\tx\t0.0\n"

    assert contents(read_judgments(write(Path("a.inter"), data))) == [("u1", "a", 1.0), ("u1", "x", 0.0)]


def test_grades_that_are_times_are_warned_of():
    for grade, warns in ((964982703, True), (1704067200000, True), (2_000_000, True), (90_000, False)):
        judged = index_judgments(read_judgments(write(Path("a.txt"), f"u1 0 a {grade}\nu1 0 b 0\n")))
        found = rating_like_relevance(judged, [Measure.parse("ndcg@10")], None)
        assert (found is not None and f"{grade:,}" in found) == warns


HEADED = "query_id{0}doc_id{0}score\nq1{0}d2{0}2.5\n"


@pytest.mark.parametrize(
    ("path", "data", "cause"),
    [
        ("a.csv", HEADED.format(";"), "its fields are separated by semicolons; write commas (and decimal points)"),
        ("a.csv", HEADED.format(";").replace(".", ","), "its fields are separated by semicolons; write commas"),
        ("a.tsv", HEADED.format(";"), "its fields are separated by semicolons"),
        ("a.csv", HEADED.format(", "), "blanks stand next to its separators; remove them"),
        ("a.csv", HEADED.format("|"), "its fields are separated by bars; write commas"),
        ("a.csv", HEADED.format("\t"), "its fields are separated by tabs; set format: tsv"),
        ("a.tsv", HEADED.format(","), "its fields are separated by commas; set format: csv"),
        ("a.csv", "u1;d1;2.5\nu1;d2;1.5\n", "its fields are separated by semicolons"),
        ("a.txt", "u1;d1;2.5\nu1;d2;1.5\n", "its fields are separated by semicolons"),
        ("a.txt", "u1,d1,2.5\nu1,d2,1.5\n", "its fields are separated by commas; set format: csv"),
        ("a.csv", "q1 Q0 d1 1 2.5 t\n", "looks like TREC text; set format: trec"),
        ("a.csv", "A39,02,5.0,1369\n", "its first line is no header; add one of 4 names, or write columns: "),
    ],
)
def test_a_delimiter_or_a_header_that_the_format_does_not_have_is_named(path, data, cause):
    message = refusal(read_ranking, write(Path(path), data))

    assert cause in message
    assert "map it with" not in message


STARS = "A39HT,0205616461,5.0,1369699200\nA39HT,0558925278,3.0,1355443200\nA00XX,0733001998,4.0,1382572800\n"


@pytest.mark.parametrize("n_rows", [1, 2, 1000])
@pytest.mark.parametrize(("path", "sign"), [("a.csv", ","), ("a.tsv", "\t")])
def test_fields_of_a_table_without_a_header_are_named_by_number(path, sign, n_rows):
    write(Path(path), STARS.replace(",", sign))
    rated = read_pairs(Source(path, columns={"query_id": "1", "doc_id": "2", "rating": "3"}), "rating")
    ranked = RankingRanges(Source(path, columns={"query_id": "1", "doc_id": "2", "score": "3"}), n_rows=n_rows)

    rows = [("A39HT", "0205616461", 5.0), ("A39HT", "0558925278", 3.0), ("A00XX", "0733001998", 4.0)]
    assert contents(rated) == rows
    assert rated.place(2) == "line 3"
    assert [row for part in ranked for row in contents(part)] == rows


def test_names_that_are_numbers_are_names():
    named = Source(write(Path("a.csv"), "0,1,2,3\n9,q,d,0.5\n"), columns={"query_id": "1", "doc_id": "2", "score": "3"})
    rows = Source(write(Path("b.csv"), "1,2,3\n1,3,2\n"), columns={"query_id": "1", "doc_id": "2", "score": "3"})

    assert contents(read_ranking(named)) == [("q", "d", 0.5)]
    assert contents(read_ranking(rows)) == [("1", "2", 3.0), ("1", "3", 2.0)]


COLBERT = "1\t31\t1\t28.5\n1\t30\t2\t27.5\n2\t40\t1\t19.25\n"


@pytest.mark.parametrize("path", ["ranking.tsv", "ranking.txt"])
@pytest.mark.parametrize("first", [0, 1])
def test_query_document_rank_and_score_are_a_ranking(path, first):
    lines = [line.split("\t") for line in COLBERT.splitlines()]
    text = "".join(f"{q}\t{d}\t{int(rank) - 1 + first}\t{score}\n" for q, d, rank, score in lines)
    write(Path(path), text)

    assert contents(read_ranking(path)) == [("1", "31", 28.5), ("1", "30", 27.5), ("2", "40", 19.25)]
    by_rank = contents(read_ranking(path, by="rank"))
    assert by_rank == [("1", "31", -first), ("1", "30", -first - 1), ("2", "40", -first)]
    assert refusal(read_judgments, path) == (
        f"{path}: looks like a ranking, with ranks in its third field; name the judgments"
    )


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_judgments, "0 10 11 12\n1 13 14 15\n2 16 17 18\n"),
        (read_judgments, "0 10 11 12 19\n1 13 14 15\n"),
        (read_ranking, "0 10 11 12 19 20\n1 13 14 15 21 22\n"),
    ],
)
def test_a_user_and_items_in_each_line_are_no_trec_text(read, text):
    """LightGCN's `train.txt` and `test.txt`: the third item would be the grade, and the fourth the score."""
    assert refusal(read, write(Path("test.txt"), text)).startswith(
        "test.txt: looks like a user and items in each line."
    )


@pytest.mark.parametrize(
    "text",
    [
        "1 0 31 12\n2 0 40 11\n",  # one iteration, grades above 10
        "1 1 31 2\n1 2 40 1\n",  # rounds of judging, as in TREC-COVID
    ],
)
def test_judgments_of_numbers_are_judgments(text):
    assert [row[2] for row in contents(read_judgments(write(Path("q.txt"), text)))] == [
        float(line.split()[3]) for line in text.splitlines()
    ]


def test_a_folder_of_datasets_is_no_dataset():
    """BEIR's `cqadupstack` holds one for each forum."""
    for forum in ("android", "english"):
        Path(f"cqa/{forum}/qrels").mkdir(parents=True)
        write(Path(f"cqa/{forum}/qrels/test.tsv"), "query-id\tcorpus-id\tscore\n1\td1\t1\n")
        write(Path(f"cqa/{forum}/corpus.jsonl"), '{"_id":"d1"}\n')

    with pytest.raises(InputError, match="cqa: holds folders of datasets; name one, such as cqa/android"):
        find_files("cqa")
    assert contents(read_judgments("cqa/android")) == [("1", "d1", 1.0)]


@pytest.mark.parametrize("sign", ["Q0", "q0"])
@pytest.mark.parametrize("number", ["2.5", "1"])
def test_a_ranking_of_four_fields_is_called_one(sign, number):
    """Its second field is Q0, by TREC's definition of a ranking; the columns that the message names read it."""
    path = write(Path("run.txt"), f"q {sign} a {number}\n")

    assert refusal(read_ranking, path) == (
        "run.txt: 4 fields found in the first line: query_id, Q0, doc_id, and a number. "
        "Set format: trec, columns: {query_id: 1, doc_id: 3, score: 4}, or rank: 4 if 1 is the best."
    )
    source = Source(path, "trec", columns={"query_id": "1", "doc_id": "3", "score": "4"})
    assert contents(read_ranking(source)) == [("q", "a", float(number))]


@pytest.mark.parametrize("read", [read_judgments, read_ranking, read_pairs, read_queries, read_documents])
def test_json_lists_in_json_lines_are_called_so_by_every_reader(read):
    row = {"query_id": "q", "doc_id": "a", "relevance": 1, "score": 1}
    for begin, indent in itertools.product(("", "\n", "\ufeff"), (None, 1)):
        path = write(Path("a.jsonl"), begin + json.dumps([row], indent=indent))
        message = refusal(read, path)
        assert message.startswith(f"a.jsonl:{1 + begin.count(chr(10))}: expected one object a line, found [")
        assert message.endswith("; fix the line, or set format: json")
        assert read(Source(path, "json")) is not None
    if read is not read_documents:
        path = write(Path("a.jsonl"), '["q", "a", 1]\n["q", "b", 2]\n')
        said = 'expected one object a line, found ["q", "a", 1]; fix the line, or set format: json'
        assert refusal(read, path) == f"a.jsonl:1: {said}"


@pytest.mark.parametrize("further", ["", ",time"])
@pytest.mark.parametrize("ids", ["query_id,doc_id", "user_id,item_id"])
def test_several_ids_in_a_cell_of_pairs(ids, further):
    end = further and ",7"
    several = write(Path("a.csv"), f'{ids}{further}\nq,"a b c"{end}\nr,a{end}\n')
    signed = write(Path("b.csv"), f"{ids}{further}\nq,a|b{end}\nr,a{end}\n")
    repeated = write(Path("c.csv"), f"{ids}{further}\nq,The Matrix{end}\nq,a{end}\n")

    assert contents(read_pairs(several)) == [("q", "a", 0.0), ("q", "b", 0.0), ("q", "c", 0.0), ("r", "a", 0.0)]
    assert "'a|b' in " in refusal(read_pairs, signed)
    assert refusal(read_pairs, repeated) == (
        "c.csv: query 'q' has two lists (line 2 and line 3); write all of its documents in one row, or a row per "
        "document as JSON lines"
    )


def test_a_column_of_pairs_that_the_config_names_may_have_a_row_per_document():
    rows = [(f"u{number}", "a", 0.0) for number in range(150)] + [("u0", "b", 0.0)]
    text = "u,i,title\n" + "".join(f"{user},{item},The Matrix\n" for user, item, _ in rows)

    found = contents(read_pairs(Source(write(Path("a.csv"), text), columns={"query_id": "u", "doc_id": "i"})))

    assert sorted(found) == sorted(rows)


SHAPES = "Use {query: {document: score}}, or a list of objects with query_id, doc_id, score."
MAPPED = {"query_id": "a", "doc_id": "b", "score": "c"}


@pytest.mark.parametrize("orient", ["index", "columns", "list"])
def test_a_table_of_pandas_with_names_that_mean_nothing(orient):
    frame = pandas.DataFrame({"a": ["q", "r", "s"], "b": ["x", "y", "x"], "c": [0.5, 1.5, 0.25]})
    path = write(
        Path("a.json"), json.dumps(json.loads(frame.to_json()) if orient == "columns" else frame.to_dict(orient))
    )

    message = refusal(read_ranking, path)
    assert "no 'query_id' among a, b, c" in message or message.endswith(f"is not a number. {SHAPES}")
    found = contents(read_ranking(Source(path, columns=MAPPED)))
    assert found == [("q", "x", 0.5), ("r", "y", 1.5), ("s", "x", 0.25)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([["q", "a", 1.0]], 'found [["q", "a", 1.0]]'),  # orient="values"
        (
            {"meta": {"model": "x"}, "default": {"test": {"q": {"d": 1.0}}}},
            "rankings are nested deeper, below 'default.test'",
        ),
        ({"q": {"a": {"text": "x"}}}, "query 'q', document 'a': score {\"text\": \"x\"} is not a number"),
        ({"q": {"a": {"score": 0.5}}}, "query 'q', document 'a': score {\"score\": 0.5} is not a number"),
        ({"model": "x", "q": {"a": 1}}, "the value of 'model' is \"x\""),
        ({"q": "a b"}, "the value of 'q' is \"a b\""),
        (3.5, "found 3.5"),
    ],
)
def test_what_is_found_in_place_of_numbers_by_document(content, problem):
    assert refusal(read_ranking, write(Path("a.json"), json.dumps(content))) == f"a.json: {problem}. {SHAPES}"
    for good in ({"q": {"a": 0.5}}, [{"query_id": "q", "doc_id": "a", "score": 0.5}]):
        assert contents(read_ranking(write(Path("b.json"), json.dumps(good)))) == [("q", "a", 0.5)]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ({"q": [{"node": {"id_": "a", "text": "x"}, "score": 0.8}]}, [("q", "a", -1.0)]),
        ({"q": {"nodes": [{"id": "a", "score": 0.8}, {"id": "b", "score": 0.5}]}}, [("q", "a", 0.8), ("q", "b", 0.5)]),
        ([{"query": "q", "source_nodes": [{"node": {"id_": "a"}, "score": 0.8}]}], [("q", "a", -1.0)]),
        ({"results": [{"query_id": "q", "doc_id": "a", "score": 0.8}]}, [("q", "a", 0.8)]),
    ],
)
def test_results_of_llama_index(content, rows):
    """`NodeWithScore` has its node's id below `node`, beside which no number is, so the order counts: rank 1 is -1."""
    assert contents(read_ranking(write(Path("a.json"), json.dumps(content)))) == rows
