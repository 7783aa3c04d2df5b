"""One row per query with its documents as a list, in the form that tools write; each says where its form comes from."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.dataset import read_dataset, read_output
from rankledger.pipeline.data.formats.memory import hold
from rankledger.pipeline.data.readers import RankingRanges, read_judgments, read_pairs, read_ranking
from rankledger.pipeline.data.rows import Rows
from tests.support.data_files import contents, json_lines, parquet_table, refusal, table_bytes, write

pytestmark = pytest.mark.usefixtures("folder")

read_ratings = partial(read_pairs, value="rating")

TREC_EVAL = PROFILES["trec_eval"].conventions
Read = Callable[[str | Source], Rows]
Triples = list[tuple[str, str, float]]


def ranked(**documents: str) -> Triples:
    return [(query, doc, -float(rank)) for query, own in documents.items() for rank, doc in enumerate(own.split(), 1)]


def graded(**documents: str) -> Triples:
    return [(query, doc, 1.0) for query, own in documents.items() for doc in own.split()]


# Kaggle's submissions: H&M, OTTO (its truth has the same form), Expedia, Outbrain and Santander.
KAGGLE = (
    *("customer_id,prediction", "session_type,labels", "id,hotel_cluster", "display_id,ad_id"),
    "ncodpers,added_products",
)
SUBMITTED = "\n42_clicks,0706016001 12 7\n42_carts,12\n42_orders,\n"
# DataFrame.to_csv(index=False) of a column with lists.
PANDAS = pandas.DataFrame({"user_id": ["u1", "u2"], "recommendations": [["i3", "i1"], ["i2"]]}).to_csv(index=False)
PANDAS_INT = pandas.DataFrame({"user_id": [7, 8], "recs": [[3, 1], []]}).to_csv(index=False)
# LensKit's ItemListCollection.save_parquet in its native layout (lenskit/data/_collection/_base.py): the fields of the
# key, and `items` with item_id, rank of an ordered list, and further fields.
LENSKIT_ITEM = pa.struct([("item_id", pa.int64()), ("rank", pa.int32()), ("score", pa.float32())])
LENSKIT = parquet_table(
    user_id=[1, 2],
    items=pa.array(
        [[{"item_id": 10, "rank": 1, "score": 4.5}, {"item_id": 11, "rank": 2, "score": 3.0}], []],
        pa.list_(LENSKIT_ITEM),
    ),
)
LENSKIT_TEST = parquet_table(
    user_id=[1, 2], items=[[{"item_id": 10, "rating": 4.5}, {"item_id": 11, "rating": 2.0}], []]
)
LENSKIT_ORDER = parquet_table(user_id=[1], items=[[{"item_id": 10, "rank": 2}, {"item_id": 11, "rank": 1}]])
# Spark: ALSModel.recommendForAllUsers gives (userCol, recommendations), an array of (itemCol, rating).
SPARK = parquet_table(
    userId=pa.array([3], pa.int32()),
    recommendations=[[{"movieId": 10, "rating": 4.5}, {"movieId": 11, "rating": 3.25}]],
)
# Amazon Personalize: the output of a batch inference job with a USER_PERSONALIZATION recipe.
PERSONALIZE = json_lines(
    {
        "input": {"userId": "4638"},
        "output": {"recommendedItems": ["63992", "115149"], "scores": [0.0152238, 0.0069081]},
        "error": None,
    }
)
# Ragas' SingleTurnSample: retrieved_context_ids and reference_context_ids, beside texts.
RAGAS = json_lines(
    {"id": "q1", "user_input": "Why?", "retrieved_context_ids": ["c3", "c1"], "reference_context_ids": ["c1"]}
)
PLAIN = json_lines(
    {"query_id": "q1", "predictions": ["d3", "d1"]},
    {"query_id": "q2", "predictions": []},
    {"query_id": "q3", "predictions": None},
    {"query_id": "q4", "predictions": ["d1"]},
)
SCORED = json_lines({"user_id": 7, "recommendations": [3, 1], "scores": [0.75, 0.5]})
OBJECTS = json_lines({"qid": "q", "results": [{"id": "d2", "score": 2, "text": "…"}, {"id": "d1", "score": 1}]})
BY_RANK = "as a list per query, in order of rank"
GRADE_1 = "as a list per query, of grade 1"
LISTS = "as a list per query"
FILES: list[tuple[str, str | bytes, Read, Triples, str, str]] = [
    *(
        (
            *("s.csv", header + SUBMITTED, read_ranking, ranked(**{"42_clicks": "0706016001 12 7", "42_carts": "12"})),
            *(BY_RANK, "query_id: {}, doc_id: {}".format(*header.split(","))),
        )
        for header in KAGGLE
    ),
    (
        *("truth.csv", KAGGLE[1] + SUBMITTED, read_judgments),
        *(
            graded(**{"42_clicks": "0706016001 12 7", "42_carts": "12"}),
            GRADE_1,
            "query_id: session_type, doc_id: labels",
        ),
    ),
    (
        *("r.tsv", "user_id\trecs\nu\ta b\n", read_ranking, ranked(u="a b")),
        *(BY_RANK, "query_id: user_id, doc_id: recs"),
    ),
    (
        *("r.csv", PANDAS, read_ranking, ranked(u1="i3 i1", u2="i2")),
        *(BY_RANK, "query_id: user_id, doc_id: recommendations"),
    ),
    (*("r.csv", PANDAS_INT, read_ranking, ranked(**{"7": "3 1"})), *(BY_RANK, "query_id: user_id, doc_id: recs")),
    (
        *("r.parquet", LENSKIT, read_ranking, [("1", "10", 4.5), ("1", "11", 3.0)]),
        *(LISTS, "query_id: user_id, doc_id: items.item_id, score: items.score"),
    ),
    (
        *("r.parquet", LENSKIT_ORDER, read_ranking, [("1", "10", -2.0), ("1", "11", -1.0)]),
        *(BY_RANK, "query_id: user_id, doc_id: items.item_id, rank: items.rank"),
    ),
    (
        *("t.parquet", LENSKIT_TEST, read_judgments, [("1", "10", 4.5), ("1", "11", 2.0)]),
        *(LISTS, "query_id: user_id, doc_id: items.item_id, relevance: items.rating"),
    ),
    (
        *("t.parquet", LENSKIT_TEST, read_ratings, [("1", "10", 4.5), ("1", "11", 2.0)]),
        *(LISTS, "query_id: user_id, doc_id: items.item_id, rating: items.rating"),
    ),
    (
        *("t.parquet", LENSKIT_TEST, read_pairs, [("1", "10", 0.0), ("1", "11", 0.0)]),
        *(LISTS, "query_id: user_id, doc_id: items.item_id"),
    ),
    (
        *("r.parquet", SPARK, read_ranking, [("3", "10", 4.5), ("3", "11", 3.25)]),
        *(LISTS, "query_id: userId, doc_id: recommendations.movieId, score: recommendations.rating"),
    ),
    (
        *("out.jsonl", PERSONALIZE, read_ranking, [("4638", "63992", 0.0152238), ("4638", "115149", 0.0069081)]),
        *(LISTS, "query_id: input.userId, doc_id: output.recommendedItems, score: output.scores"),
    ),
    (*("r.jsonl", RAGAS, read_ranking, ranked(q1="c3 c1")), *(BY_RANK, "query_id: id, doc_id: retrieved_context_ids")),
    (*("r.jsonl", RAGAS, read_judgments, graded(q1="c1")), *(GRADE_1, "query_id: id, doc_id: reference_context_ids")),
    (*("r.jsonl", PLAIN, read_ranking, ranked(q1="d3 d1", q4="d1")), *(BY_RANK, "doc_id: predictions")),
    (
        *("r.jsonl", SCORED, read_ranking, [("7", "3", 0.75), ("7", "1", 0.5)]),
        *(LISTS, "query_id: user_id, doc_id: recommendations, score: scores"),
    ),
    (
        *("r.jsonl", OBJECTS, read_ranking, [("q", "d2", 2.0), ("q", "d1", 1.0)]),
        *(LISTS, "query_id: qid, doc_id: results.id, score: results.score"),
    ),
    (
        *("t.parquet", parquet_table(query_id=["a", "b"], relevant_docs=[["x", "y"], ["z"]]), read_judgments),
        *(graded(a="x y", b="z"), GRADE_1, "doc_id: relevant_docs"),
    ),
]


@pytest.mark.parametrize(("path", "data", "read", "rows", "what", "line"), FILES)
def test_lists_are_recognised(path, data, read, rows, what, line):
    found = read(write(Path(path), data))
    pasted = read(Source(path, columns=dict(pair.split(": ") for pair in line.split(", "))))

    assert contents(found) == contents(pasted) == rows
    assert found.remarks == (f"read {what}: columns: {{{line}}} (such as {path})",)
    assert pasted.remarks == ()


def test_our_own_column_names_need_no_remark():
    """`doc_id` with a list in each row says what it is."""
    for value, read, rows in (("score", read_ranking, [3.0, 2.0]), ("relevance", read_judgments, [2.0, 0.0])):
        data = parquet_table(query_id=["q"], doc_id=[["a", "b"]], **{value: [rows]})
        found = read(write(Path("a.parquet"), data))
        assert (contents(found), found.remarks) == ([("q", "a", rows[0]), ("q", "b", rows[1])], ())


@pytest.mark.parametrize(
    "kind", [pa.list_, pa.large_list, lambda kind: pa.list_(kind, 2)], ids=["list", "large", "fixed"]
)
@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.int32(), pa.dictionary(pa.int32(), pa.string())])
def test_every_list_of_arrow_is_read(kind, type):
    values = [1, 2, 3, 1] if pa.types.is_integer(type) else ["1", "2", "3", "1"]
    empty = [] if isinstance(kind(type), pa.FixedSizeListType) else [None]  # which Arrow cannot read again
    lists = pa.array([values[:2], values[2:], *empty], kind(type))
    data = parquet_table(query_id=["a", "b", "c"][: len(lists)], doc_id=lists)

    assert contents(read_ranking(write(Path("a.parquet"), data))) == ranked(a="1 2", b="3 1")


@pytest.mark.parametrize(
    ("path", "data", "read", "message"),
    [
        (
            *("a.jsonl", PLAIN, read_judgments),
            "predictions looks like lists; if they are the documents of each query, say columns: {query_id: "
            "query_id, doc_id: …}",
        ),
        (
            *("a.jsonl", json_lines({"user": "u", "session": 1, "recs": ["a"]}), read_ranking),
            "recs looks like lists; if they are the documents of each query, say columns: {query_id: …, doc_id: recs}",
        ),
        (
            *("a.jsonl", json_lines({"user": "u", "recs": ["a"], "hits": ["b"]}), read_ranking),
            "recs and hits look like lists; if they are the documents of each query, say columns: {query_id: "
            "user, doc_id: …}",
        ),
        (
            *("a.csv", "id,foo\n1,a b\n", read_ranking),
            "foo looks like lists; if they are the documents of each query, say columns: {query_id: id, doc_id: …}",
        ),
        (
            *("a.jsonl", json_lines({"user": "u", "recs": [{"a": "x", "b": "y"}]}), read_ranking),
            "recs.a and recs.b look like lists; if they are the documents of each query, say columns: "
            "{query_id: user, doc_id: …}",
        ),
        (
            *("a.jsonl", json_lines({"user": "u", "recs": [{"id": "x", "similarity": 1, "pred": 1}]}), read_ranking),
            "score may be recs.similarity or recs.pred; say columns: {query_id: user, doc_id: recs.id, score: "
            "recs.similarity}, or another of them",
        ),
        (
            *("a.jsonl", json_lines({"id": "q", "output": [{"answer": "Rome", "of": [{"page": "d1"}]}]}), read_ranking),
            "output looks like lists; if they are the documents of each query, say columns: {query_id: id, doc_id: …}",
        ),
        (
            *("a.parquet", parquet_table(query_id=["q"], ids=[["a"]], distances=[[0.5]]), read_ranking),
            "distances and ids look like lists; if they are the documents of each query, say columns: "
            "{query_id: query_id, doc_id: …}",
        ),
        (
            *("a.parquet", parquet_table(query_id=["q"], doc_id=[["a", "b"]], relevance=[1]), read_judgments),
            "relevance is one number for all documents of a list; write a list of them",
        ),
        (
            *("a.jsonl", json_lines({"query_id": "q", "predictions": ["a"], "score": 0.5}), read_ranking),
            "score is one number for all documents of a list; write a list of them",
        ),
        (
            *("a.jsonl", json_lines({"query_id": "q", "predictions": ["a", "b"], "scores": [1]}), read_ranking),
            "the lists differ in length: 1 of score for 2 of doc_id (line 1); write one for each document",
        ),
        (
            *("a.parquet", parquet_table(query_id=["p", "q"], doc_id=[["a"], ["a", None]]), read_ranking),
            "a doc_id is null (row 2); fill it or remove it",
        ),
        (
            *("a.parquet", parquet_table(query_id=["p", "q"], doc_id=[["a"], ["a", ""]]), read_ranking),
            "empty doc_id (row 2); fill it",
        ),
        (
            *("a.parquet", parquet_table(query_id=["p", None], doc_id=[["a"], ["a"]]), read_ranking),
            "query_id is null (row 2); fill it or remove the row",
        ),
        (
            *("a.parquet", parquet_table(query_id=["q"], doc_id=[[1.5]]), read_ranking),
            "doc_id is double; write ids as strings or whole numbers",
        ),
        (
            *("a.parquet", parquet_table(query_id=["q"], doc_id=[["a"]], score=[["x"]]), read_ranking),
            "score is string; write numbers",
        ),
        (
            *(
                "a.parquet",
                parquet_table(query_id=["p", "q"], doc_id=[["a"], ["a"]], score=[[1], [None]]),
                read_ranking,
            ),
            "a score is null (row 2); fill it",
        ),
        (
            *("a.parquet", parquet_table(query_id=["q"], doc_id=[["a", "b"]], score=[[1, float("nan")]]), read_ranking),
            "score nan (row 1) is not a finite number; fix it",
        ),
        (
            *("a.csv", f'user_id,recs\nu,"{"[" + "1 2" + "]"}"\n', read_ranking),
            "the list [1 2] cannot be read; write ids with blanks between, or as ['d1', 'd2']",
        ),
        ("a.parquet", parquet_table(user_id=[1], items=[[{"item_id": 1}]]), read_ratings, "no list of ratings next to"),
    ],
)
def test_lists_that_may_mean_two_things_or_are_wrong_are_refused(path, data, read, message):
    """Each with the place, and what to do; what is ambiguous with a line to paste."""
    assert refusal(read, write(Path(path), data)).startswith(f"{path}: {message}")


def test_a_line_with_another_number_of_fields_is_named():
    assert refusal(read_ranking, write(Path("a.csv"), "user_id,recs\nu,\nv,a b\nx\n")) == (
        "a.csv:4: 1 fields found where the header has 2; fix the line"
    )


def test_the_id_of_a_query_is_told_from_its_text():
    both = json_lines({"id": "q1", "query": "Why?", "retrieved": ["a"]})
    alone = json_lines({"query": "q1", "retrieved": ["a"], "k": 1})

    assert contents(read_ranking(write(Path("a.jsonl"), both))) == ranked(q1="a")
    assert contents(read_ranking(write(Path("b.jsonl"), alone))) == ranked(q1="a")


@pytest.mark.parametrize("cell", ["7", "null", "1.5", "true", '{"a": 1}', '["a"]'])
def test_wrong_ids_in_json_lines_are_refused_by_line(cell):
    text = f'{{"query_id": "p", "doc_id": ["a"]}}\n{{"query_id": "q", "doc_id": ["a", {cell}]}}\n'
    path = write(Path("a.jsonl"), text)
    if cell == "7":
        assert contents(read_ranking(path)) == ranked(p="a", q="a 7")
    else:
        assert refusal(read_ranking, path).startswith(("a.jsonl:2: doc_id is ", "a.jsonl: a doc_id is null (line 2)"))


def test_an_order_that_is_not_that_of_the_scores_is_refused_until_the_config_says_which():
    """Distances rise down a list: read as scores, the last document would be the first."""
    path = write(Path("a.jsonl"), json_lines({"query_id": "q", "predictions": ["a", "b"], "scores": [0.1, 0.9]}))
    by_score = {"query_id": "query_id", "doc_id": "predictions", "score": "scores"}
    by_order = {"query_id": "query_id", "doc_id": "predictions", "rank": "predictions"}

    assert refusal(read_ranking, path) == (
        "a.jsonl: scores rise within a list (line 1), so its order is not that of the scores; say columns: {query_id: "
        "query_id, doc_id: predictions, score: scores} if the highest score is first, or columns: {query_id: query_id, "
        "doc_id: predictions, rank: predictions} for the order"
    )
    assert contents(read_ranking(Source(path, columns=by_score))) == [("q", "a", 0.1), ("q", "b", 0.9)]
    assert contents(read_ranking(Source(path, columns=by_order))) == ranked(q="a b")


@pytest.mark.parametrize("n_rows", [1, 2, 10**6])
@pytest.mark.parametrize("path", ["a.jsonl", "a.parquet", "a.csv", "a.tsv"])
def test_a_query_with_two_lists_is_refused(path, n_rows):
    rows = [(f"q{number}", [f"d{number}", "d"]) for number in (0, 1, 2, 3, 1)]
    message = refusal(list, RankingRanges(write_lists(path, rows), n_rows=n_rows))

    assert message.startswith(f"{path}: query 'q1' has two lists")
    assert message.endswith(
        "; write all of its documents in one row, or a row per document with a score, rank or relevance"
    )


def write_lists(path: str, rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    if path.endswith("parquet"):
        columns = [pa.array([query for query, _ in rows]), pa.array([list(own) for _, own in rows])]
        return write(Path(path), table_bytes(columns, ["user_id", "recs"], row_group_size=1))
    if path.endswith("jsonl"):
        return write(Path(path), json_lines(*({"user_id": query, "recs": list(own)} for query, own in rows)))
    sign = "\t" if path.endswith("tsv") else ","
    return write(Path(path), f"user_id{sign}recs\n" + "".join(f"{q}{sign}{' '.join(own)}\n" for q, own in rows))


LIST = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=5)


@given(
    lists=st.dictionaries(st.sampled_from(["q1", "q2", "q3", "q4", "é"]), LIST, min_size=1), n_rows=st.integers(1, 9)
)
@pytest.mark.parametrize("path", ["a.jsonl", "a.parquet", "a.csv", "a.tsv"])
def test_lists_give_the_rows_of_a_file_with_a_row_per_document(path, lists, n_rows):
    if not any(len(own) > 1 for own in lists.values()):
        return  # nothing tells it from a file of pairs
    ranges = RankingRanges(write_lists(path, [*lists.items()]), n_rows=n_rows)
    rows = [(query, doc, -float(rank)) for query, own in lists.items() for rank, doc in enumerate(own, 1)]

    assert [row for part in ranges for row in contents(part)] == rows


@pytest.mark.parametrize("path", ["a.jsonl", "a.parquet", "a.csv", "a.tsv"])
def test_the_rank_of_a_document_is_placed_in_its_row(path):
    judged = write(Path("qrels.txt"), "q2 0 d 1\n")
    dataset = read_dataset(PlannedDataset(Source(judged)), TREC_EVAL)
    run = write_lists(path, [("q1", ["a", "b"]), ("q2", ["d", "e", "d"]), ("q3", ["a"])])
    where = "row 2" if path.endswith("parquet") else "line 2" if path.endswith("jsonl") else "line 3"

    for n_rows in (1, 10**6):
        message = refusal(read_output, dataset, Source(run), TREC_EVAL, with_catalogue=False, n_rows=n_rows)
        assert message == f"{path}: query 'q2' ranks document 'd' twice ({where} and {where}); keep one"


def test_lists_by_their_order_where_a_profile_ranks_by_rank():
    ordered = write(Path("a.jsonl"), json_lines({"query_id": "q", "predictions": ["a", "b"], "scores": [1, 2]}))
    objects = write(
        Path("b.jsonl"), json_lines({"query_id": "q", "results": [{"id": "a", "rank": 2}, {"id": "b", "rank": 1}]})
    )

    assert contents(read_ranking(ordered, by="rank")) == ranked(q="a b")
    assert contents(read_ranking(objects, by="rank")) == [("q", "a", -2.0), ("q", "b", -1.0)]


@pytest.mark.parametrize("of", [pandas.DataFrame, pa.table])
def test_lists_in_memory_are_recognised_as_those_of_files(of):
    table = of({"user_id": ["u", "v"], "recs": [["a", "b"], ["c"]], "scores": [[2.0, 1.0], [0.5]]})
    held = hold("outputs['als']", table, ("query_id", "doc_id", "score"))
    found = read_ranking(Source("outputs['als']", held=held))

    assert contents(found) == [("u", "a", 2.0), ("u", "b", 1.0), ("v", "c", 0.5)]
    assert found.remarks[0].startswith(
        "read as a list per query: columns: {query_id: user_id, doc_id: recs, score: scores}"
    )


def test_single_documents_are_lists_if_the_config_says_so():
    """A submission at most one id long has no blanks by which it would be known; a query that returns is no list."""
    columns = {"query_id": "row_id", "doc_id": "place_id"}
    single = write(Path("a.csv"), "row_id,place_id\n0,8523065625\n1,1757726713\n")
    pairs = write(Path("b.csv"), "row_id,place_id\n0,8523065625\n0,1757726713\n")

    assert contents(read_ranking(Source(single, columns=columns))) == ranked(**{"0": "8523065625", "1": "1757726713"})
    assert contents(read_judgments(Source(single, columns=columns))) == graded(**{"0": "8523065625", "1": "1757726713"})
    assert "no column 'score' among row_id, place_id" in refusal(read_ranking, Source(pairs, columns=columns))


def test_a_name_of_the_config_that_is_not_there_is_refused_as_any_other():
    path = write(Path("a.jsonl"), SCORED)

    assert refusal(read_ranking, Source(path, columns={"doc_id": "recommendation"})).startswith(
        "a.jsonl:1: no 'query_id' among user_id, recommendations, scores"
    )
    empty = json_lines({"user_id": "u", "recs": []}, {"user_id": "v", "recs": [{"item": "a", "score": 1}]})
    columns = {"query_id": "user_id", "doc_id": "recs.item", "score": "recs.score"}
    assert contents(read_ranking(Source(write(Path("b.jsonl"), empty), columns=columns))) == [("v", "a", 1.0)]


def test_texts_and_features_are_no_lists():
    assert "no column 'doc_id'" in refusal(read_ranking, write(Path("a.csv"), "query_id,text\nq,why is that\n"))
    labelled = write(Path("a.jsonl"), json_lines({"text": "why is that", "labels": ["question"]}))
    assert refusal(read_judgments, labelled).startswith("a.jsonl: labels looks like lists; if they are the")
    pairs = parquet_table(query_id=["q"], doc_id=["d"], score=[1.5], predictions=[["x"]])
    assert contents(read_ranking(write(Path("a.parquet"), pairs))) == [("q", "d", 1.5)]


def test_a_list_within_a_list_is_refused_by_name():
    """KILT's guesses hold pages of each answer; no other column is offered in their place."""
    data = json_lines({"id": "q1", "output": [{"answer": "Rome", "provenance": [{"wikipedia_id": "d1"}]}]})
    columns = {"query_id": "id", "doc_id": "output.provenance.wikipedia_id"}

    message = refusal(read_ranking, Source(write(Path("guess.jsonl"), data), columns=columns))
    assert message.startswith("guess.jsonl:1: no 'output.provenance.wikipedia_id' among id, output")


@pytest.mark.parametrize("sign", [",", ";", "|", ", ", " ,", " ; ", " | ", " > ", " -> "])
@pytest.mark.parametrize("names", [{}, {"doc_id": "predictions"}])
@pytest.mark.parametrize("name", ["r.csv", "r.tsv"])
def test_ids_between_other_signs_than_blanks_are_refused(sign, names, name):
    """Either `d2,d1` is one id or two: no value may come of a guess. The message says how to write both."""
    tab = "," if name == "r.csv" else "\t"
    path = write(
        Path(name), f'query_id{tab}predictions\nq0{tab}d0\nq1{tab}"d2{sign}d1"\n'.replace('"', '"' * (tab == ","))
    )
    message = refusal(read_ranking, Source(path, columns=names))

    assert message.startswith(f"{name}: 'd2{sign}d1' in predictions may be one id or several. Use blanks")


def test_an_id_with_a_sign_stands_between_blanks_or_in_quotation_marks():
    quoted = "query_id,predictions\nq1,\"['d,2', 'd1']\"\nq2,\"['d,3']\"\n"
    plain = "query_id,predictions\nq1,en|2 en|1\nq2,en|3\n"

    assert contents(read_ranking(write(Path("r.csv"), quoted))) == ranked(q1="d,2 d1", q2="d,3")
    assert contents(read_ranking(write(Path("p.csv"), plain))) == ranked(q1="en|2 en|1", q2="en|3")


@pytest.mark.parametrize("word", ["nan", "NaN", "None", "null", "NaT"])
@pytest.mark.parametrize("cells", ["['d0']\nq1,\"['d2', {}, 'd1']\"", "d0 d9\nq1,d2 {} d1"])
def test_a_missing_id_in_a_cell_is_refused(word, cells):
    path = write(Path("r.csv"), f"query_id,predictions\nq0,{cells.format(word)}\n")

    assert refusal(read_ranking, path) == "r.csv: a doc_id is null (line 3); fill it or remove it"


def test_the_text_nan_in_quotation_marks_is_an_id():
    path = write(Path("r.csv"), "query_id,predictions\nq1,\"['nan', 'd1']\"\n")

    assert contents(read_ranking(path)) == ranked(q1="nan d1")
