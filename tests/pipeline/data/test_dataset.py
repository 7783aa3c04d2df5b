"""Datasets and their outputs, one query alone, and ids that do not fit together."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.checks import likely_cause, small_overlap
from rankledger.pipeline.data.dataset import DatasetInput, SingleQuery, read_dataset, read_output
from rankledger.pipeline.data.joined import HEAD, JoinStats, JudgedOutput
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import encode, refusal, write
from tests.support.generated_data import Collection, rating_collection, rows, search_collection, write_table

pytestmark = pytest.mark.usefixtures("folder")

JUDGED = [("q1", "a", 1.0), ("q2", "b", 2.0), ("q1", "c", -1.0)]
RANKED = [("q1", "a", 1.0), ("q1", "x", 3.0), ("q3", "a", 1.0)]

TREC_EVAL = PROFILES["trec_eval"].conventions


def source(name: str, data: bytes | str, **options) -> Source:
    return Source(write(Path(name), data), **options)


def dataset(conventions: Conventions = TREC_EVAL, **options) -> DatasetInput:
    judgments = options.pop("judgments", None) or source("qrels.tsv", encode(JUDGED, "tsv"))
    return read_dataset(PlannedDataset(judgments, **options), conventions)


def test_a_dataset_of_judgments_alone():
    found = dataset()

    data = encode(JUDGED, "tsv")
    assert found.kind == "rankings"
    assert found.catalogue.known.n_documents == 0
    assert found.judgments.query_ids.tolist() == ["q1", "q2"]
    assert list(found.files) == ["judgments"]
    ((file,),) = found.files.values()
    assert (file.path, file.size, file.sha256) == ("qrels.tsv", len(data), hashlib.sha256(data).hexdigest())


def test_a_dataset_of_everything():
    write(Path("queries/1.tsv"), "query_id\tlength\nq2\tlong\nq9\tshort\n")
    write(Path("queries/0.tsv"), "query_id\tlength\nq1\tshort\n")

    found = dataset(queries=Source("queries"), documents=source("documents.csv", "doc_id\na\nb\n"))

    assert {role: [file.path for file in files] for role, files in found.files.items()} == {
        "judgments": ["qrels.tsv"],
        "queries": ["queries/0.tsv", "queries/1.tsv"],
        "documents": ["documents.csv"],
    }
    assert found.catalogue.ids.to_pylist() == ["a", "b"]


def test_formats_and_columns_reach_the_readers():
    judgments = source("qrels", encode(JUDGED, "csv", names=("user", "item", "grade")), format="csv")
    judgments = Source(judgments.path, "csv", {"query_id": "user", "doc_id": "item", "relevance": "grade"})
    queries = source("queries", '{"id": "q1"}\n{"id": "q2"}\n', format="jsonl", columns={"query_id": "id"})
    documents = source("documents", "name\na\n", format="tsv", columns={"doc_id": "name"})
    output = source("out.txt", encode(RANKED, "jsonl", names=("q", "d", "s")), format="jsonl")
    output = Source(output.path, "jsonl", {"query_id": "q", "doc_id": "d", "score": "s"})

    found = dataset(judgments=judgments, queries=queries, documents=documents)
    joined = read_output(found, output, TREC_EVAL, with_catalogue=False)

    assert joined.blocks[0].ranks[:, 0].tolist() == [2.0]


def test_the_queries_table_groups_the_judged_queries():
    text = "query_id\tland\tuser\nq9\tfr\t\nq2\tde\tu\nq1\t\tu\n"
    queries = source("queries.tsv", text, columns={"market": "land"})

    grouped = dataset(queries=queries, cluster="user", slices=("market",)).groups

    assert grouped.clusters.tolist() == [0, 0]
    assert {name: rows.tolist() for name, rows in grouped.slices.items()} == {"market=de": [False, True]}
    for plain in (dataset(queries=queries).groups, dataset().groups):
        assert (plain.clusters, dict(plain.slices)) == (None, {})


def test_duplicate_judgments_are_kept_or_refused_as_the_config_says():
    judgments = source("qrels.tsv", encode([*JUDGED, ("q1", "a", 3.0)], "tsv"))

    assert "judges document 'a' twice (line 2 and line 5)" in refusal(dataset, judgments=judgments)
    output = source("out", encode(RANKED, "trec", "score"))
    joined = read_output(dataset(judgments=judgments, keep_first=True), output, TREC_EVAL, with_catalogue=False)
    assert joined.blocks[0].grades[:, 0].tolist() == [1.0]


def output_of(found: DatasetInput, *, with_catalogue: bool = False) -> JudgedOutput:
    return read_output(
        found, source("out.txt", encode(RANKED, "trec", "score")), TREC_EVAL, with_catalogue=with_catalogue
    )


def test_a_ranking_is_read_and_joined():
    """q1 ranks x before a; q2 is missing and q3 is not judged."""
    joined = output_of(dataset())

    (block,) = joined.blocks
    assert [file.path for file in joined.files] == ["out.txt"]
    np.testing.assert_array_equal(block.ranks, [[2.0, np.inf]])
    assert joined.missing.tolist() == [False, True]
    assert joined.quality.n_unjudged_queries == 1
    assert joined.catalogue is None
    assert np.isnan(block.n_documents).all()


def test_the_catalogue_gives_its_size_always_and_codes_where_asked():
    found = dataset(documents=source("documents.tsv", "doc_id\nb\na\nc\n"))
    without, asked, unknown = (
        output_of(found),
        output_of(found, with_catalogue=True),
        output_of(dataset(), with_catalogue=True),
    )

    assert without.blocks[0].n_documents.tolist() == asked.blocks[0].n_documents.tolist() == [3, 3]
    assert without.catalogue is None
    np.testing.assert_array_equal(asked.catalogue.codes, [[3, -1], [1, -1]])
    assert unknown.catalogue.n_documents == 0
    np.testing.assert_array_equal(np.sort(unknown.catalogue.codes, axis=0), [[0, -1], [1, -1]])


def test_an_output_of_unjudged_queries_alone():
    found = dataset(documents=source("documents.tsv", "doc_id\nb\n"))
    output = source("out.txt", "q9 Q0 b 1 1.0 t\n")
    joined = read_output(found, output, TREC_EVAL, with_catalogue=True, allow_no_overlap=True)

    assert joined.missing.all()
    assert (joined.catalogue.codes == -1).all()
    assert np.isinf(joined.blocks[0].ranks).all()


def test_ratings_and_predictions():
    ratings = source("ratings.tsv", encode([("u", "i", 4.0), ("u", "j", 2.0), ("v", "i", 1.0)], "tsv", "rating"))
    output = source("out.csv", encode([("u", "j", 2.5), ("w", "i", 1.0)], "csv", "prediction"))

    found = dataset(judgments=ratings, kind="ratings")
    joined = read_output(found, output, TREC_EVAL, with_catalogue=False)

    (block,) = joined.blocks
    assert list(found.files) == ["ratings"]
    assert [file.path for file in joined.files] == ["out.csv"]
    np.testing.assert_array_equal(block.ratings, [[2.0, np.nan]])
    np.testing.assert_array_equal(block.predictions, [[2.5, np.nan]])
    assert joined.quality.n_unpaired == 3


def test_tables_that_are_not_those_of_the_dataset_are_refused():
    lacking = source("queries.tsv", "query_id\nq3\nq1\n")
    assert refusal(dataset, queries=lacking) == (
        "queries.tsv: of the queries judged in qrels.tsv it lacks 1, such as 'q2'; complete it or leave it out"
    )
    for role in ("queries", "documents"):
        assert refusal(dataset, **{role: Source("nowhere.tsv")}) == "nowhere.tsv: file not found; check the path"
    assert "no column 'rating' among query_id, doc_id, relevance" in refusal(dataset, kind="ratings")


WEB = search_collection(70, n_queries=20, models=("m",))
STARS = rating_collection(71, models=("m",))
PER_QUERY = ("n_judged", "n_retrieved", "n_documents")
PER_ROW = ("ranks", "grades", "tie_first", "tie_last")


def opened(folder: Path, found: Collection, conventions: Conventions = TREC_EVAL) -> tuple[DatasetInput, Source]:
    column, value = ("rating", "prediction") if found.kind == "ratings" else ("relevance", "score")
    rng = np.random.default_rng(1)
    judged = write_table(folder / "judged.tsv", rows(found.judged, rng), column)
    output = write_table(folder / "m.tsv", rows(found.outputs["m"], rng), value)
    dataset = read_dataset(PlannedDataset(Source(str(judged)), found.kind), conventions)
    return dataset, Source(str(output))


def real(column: np.ndarray) -> list[float]:
    return [value for value in column.tolist() if np.isfinite(value)]


@pytest.mark.parametrize(
    ("ties", "precision"),
    [("doc_id_desc", "float32"), ("doc_id_asc", "float64"), ("input_order", "float32"), ("expected", "float64")],
)
def test_a_query_alone_has_the_block_that_it_has_among_all(tmp_path, ties, precision):
    conventions = Conventions(**vars(TREC_EVAL) | {"ties": ties, "score_precision": precision})
    dataset, output = opened(tmp_path, WEB)
    whole = read_output(dataset, output, conventions, with_catalogue=False)

    for column, query_id in enumerate(whole.query_ids):
        listed = SingleQuery(dataset, output, query_id, keep_first=False).listed(conventions)
        assert listed.max_grade == whole.max_grade
        assert listed.block.query_ids.tolist() == [query_id]
        for name in PER_ROW:
            assert real(getattr(listed.block, name)[:, 0]) == real(getattr(whole.blocks[0], name)[:, column])
        assert real(listed.block.judged_grades[:, 0]) == real(whole.blocks[0].judged_grades[:, column])
        for name in PER_QUERY:
            expected = getattr(whole.blocks[0], name)[[column]]
            np.testing.assert_array_equal(getattr(listed.block, name), expected)


@pytest.mark.parametrize("query_id", sorted(WEB.judged))
def test_documents_have_their_names(tmp_path, query_id):
    dataset, output = opened(tmp_path, WEB)
    listed = SingleQuery(dataset, output, query_id, keep_first=False).listed(TREC_EVAL)
    scores = {doc_id: np.float32(score) for doc_id, score in WEB.outputs["m"].get(query_id, {}).items()}

    by_rank = sorted(scores, key=lambda doc_id: (scores[doc_id], doc_id.encode()), reverse=True)
    assert listed.n_retrieved == len(by_rank)
    assert [*listed.retrieved] == by_rank[: HEAD + 1 + len(listed.judged)]  # enough for 20 that are not judged
    assert dict(zip(listed.judged, listed.grades, strict=True)) == WEB.judged[query_id]
    for rank, row in zip(listed.block.ranks[:, 0], listed.block.judgment_row[:, 0], strict=True):
        assert row == -1 or by_rank[int(rank) - 1] == listed.judged[row]
    for place, (first, last) in enumerate(listed.ties):
        alike = [rank for rank, doc_id in enumerate(by_rank, start=1) if scores[doc_id] == scores[by_rank[place]]]
        assert (first, last) == (alike[0], alike[-1])


@pytest.mark.parametrize("query_id", sorted(STARS.judged))
def test_pairs_of_ratings_have_their_names(tmp_path, query_id):
    dataset, output = opened(tmp_path, STARS)
    listed = SingleQuery(dataset, output, query_id, keep_first=False).listed(TREC_EVAL)
    rated, predicted = STARS.judged[query_id], STARS.outputs["m"].get(query_id, {})

    assert sorted(listed.retrieved) == sorted(rated.keys() & predicted.keys())
    assert real(listed.block.ratings[:, 0]) == [rated[doc_id] for doc_id in listed.retrieved]
    assert real(listed.block.predictions[:, 0]) == [predicted[doc_id] for doc_id in listed.retrieved]


def single(judged: str, output: str) -> SingleQuery:
    dataset = read_dataset(PlannedDataset(source("qrels.txt", judged)), TREC_EVAL)
    return SingleQuery(dataset, source("m.txt", output), "q", keep_first=False)


def test_the_rank_column_orders_where_it_is_to():
    alone = single("q 0 a 1\nq 0 b 0\n", "q Q0 a 2 9 m\nq Q0 b 1 1 m\n")

    assert alone.listed(TREC_EVAL).retrieved == ("a", "b")
    assert alone.listed(Conventions(**vars(TREC_EVAL) | {"ties": "rank_column"})).retrieved == ("b", "a")


def test_a_mistake_in_the_query_is_refused_at_its_place():
    twice = single("p 0 a 1\nq 0 a 1\n", "p Q0 a 1 3 m\nq Q0 a 1 2 m\np Q0 b 1 2 m\nq Q0 a 2 1 m\n")

    with pytest.raises(InputError, match=r"query 'q' ranks document 'a' twice \(line 2 and line 4\)"):
        twice.listed(TREC_EVAL)


NUMBERED = "q1 0 12 1\nq1 0 13 0\nq2 0 140 -1\n"
RATED = "query_id\tdoc_id\trating\nu1\t12\t4\nu2\t13\t5\n"


def numbered_dataset(judged: str = NUMBERED, *, documents: str = "", kind: str = "rankings") -> DatasetInput:
    path = write_here("judged.tsv" if kind == "ratings" else "judged.txt", judged)
    listed = write_here("documents.tsv", f"doc_id\n{documents}") if documents else None
    return read_dataset(PlannedDataset(path, kind, documents=listed), TREC_EVAL)


def write_here(name: str, text: str) -> Source:
    write(Path(name), text)
    return Source(name)


def joined(found: DatasetInput, *documents: str, query: str = "q1", **options: bool) -> JudgedOutput:
    rows = "".join(f"{query}\t{document}\t{-rank}\n" for rank, document in enumerate(documents))
    output = write_here("out.tsv", f"query_id\tdoc_id\tscore\n{rows}")
    return read_output(found, output, TREC_EVAL, with_catalogue=False, **options)


@pytest.mark.parametrize(
    ("ours", "theirs", "pair", "remedy"),
    [
        (["m10", "m12"], ["12", "9"], ("m12", "12"), "remove the prefix 'm'"),
        (["10", "12"], ["m9", "m12"], ("12", "m12"), "add the prefix 'm'"),
        (["12.0", "9.0"], ["12", "9"], ("12.0", "12"), "write ids as text (pandas made floats of them)"),
        (["12", "9"], ["12.0"], ("12", "12.0"), "write ids as text (pandas made floats of them)"),
        (["7", "12"], ["007", "012"], ("7", "007"), "write the leading zeros on both sides or on neither"),
        (["0", "7"], ["00"], ("0", "00"), "write the leading zeros on both sides or on neither"),
        (["doc-A"], ["DOC-a"], ("doc-A", "DOC-a"), "write the letters of both in the same case"),
        (["12 ", "9 "], ["9"], ("9 ", "9"), "remove the whitespace around ids"),
        (["1e+05", "7"], ["100000"], ("1e+05", "100000"), "write whole numbers without an exponent"),
        (["Cafe\u0301"], ["Caf\u00e9"], ("Cafe\u0301", "Caf\u00e9"), "write ids in one Unicode form (NFC)"),
    ],
)
def test_the_cause_is_the_way_of_writing_that_makes_ids_match(ours, theirs, pair, remedy):
    *likely_pair, cause = likely_cause(ours, theirs)
    assert (*likely_pair, cause.partition(" (R writes")[0]) == (*pair, remedy)


def test_an_unknown_cause_is_not_guessed_and_most_matches_decide():
    """Numbers that begin alike have no prefix, and long ids are not looked at. Without 'm1' one id would match."""
    for ours, theirs in ((["a", "b"], ["c", "d"]), (["100", "112"], ["00", "12"])):
        assert likely_cause(ours, theirs) is None
    for ours, theirs in ((["x" * 300], ["x" * 299]), (["é" * 40_000], ["é"])):
        assert likely_cause(ours, theirs) is None
    assert likely_cause(["m11", "m12", "m13"], ["11", "12", "13", "2"]) == ("m11", "11", "remove the prefix 'm'")


N_LIKE = [("{}.0", "pandas"), ("doc:{}", "prefix 'doc:'"), ("{} ", "whitespace")]


@pytest.mark.parametrize("n_rows", [3, 1000])
@pytest.mark.parametrize(("damage", "remedy"), N_LIKE)
def test_documents_that_are_damaged_in_part_are_warned_of_with_both_counts(damage, remedy, n_rows):
    """12 of 40 are damaged: 20 queries judge d1 or a damaged d2, so 28 match as they are. Cached or not."""
    found = numbered_dataset("".join(f"q{n}\t0\t{n}1\t1\nq{n}\t0\t{n}2\t1\n" for n in range(20)))
    ids = [(f"q{n}", f"{n}1") for n in range(20)] + [
        (f"q{n}", damage.format(f"{n}2") if n < 12 else f"{n}2") for n in range(20)
    ]
    rows = "".join(f"{query}\t{document}\t1\n{query}\tx{document}y\t0\n" for query, document in sorted(ids))
    output = write_here("out.tsv", f"query_id\tdoc_id\tscore\n{rows}")

    quality = read_output(found, output, TREC_EVAL, with_catalogue=False, n_rows=n_rows).quality

    assert quality.look_alikes.startswith(f"12 documents such as '{damage.format('02')}' look like judged ones")
    assert "such as '02' (28 match as they are). " in quality.look_alikes
    assert remedy in quality.look_alikes


@pytest.mark.parametrize("kind", ["rankings", "ratings"])
@pytest.mark.parametrize(("damage", "remedy"), N_LIKE)
def test_queries_that_are_damaged_in_part_are_warned_of(damage, remedy, kind):
    numbers = [f"{n}1" for n in range(20)]
    trec = "".join(f"{number}\t0\td\t1\n" for number in numbers)
    rated = "query_id\tdoc_id\trating\n" + "".join(f"{number}\td\t1\n" for number in numbers)
    value = "score" if kind == "rankings" else "prediction"
    rows = "".join(f"{damage.format(number) if n < 5 else number}\td\t1\n" for n, number in enumerate(numbers))
    output = write_here("out.tsv", f"query_id\tdoc_id\t{value}\n{rows}")
    found = numbered_dataset(trec if kind == "rankings" else rated, kind=kind)
    quality = read_output(found, output, TREC_EVAL, with_catalogue=False).quality

    damaged = damage.format("01")
    assert quality.look_alikes.startswith(f"5 queries such as '{damaged}' look like judged ones without output")
    assert "such as '01' (15 match as they are). " in quality.look_alikes
    assert remedy in quality.look_alikes


@pytest.mark.parametrize("documents", [["12", "99"], ["12", "M140", "x13"], ["12", "13", "013"], ["12", "a", "b:c"]])
def test_other_documents_are_not_taken_for_judged_ones(documents):
    assert joined(numbered_dataset(), *documents).quality.look_alikes == ""


def test_a_ranking_without_a_known_document_is_refused_with_an_id_of_each_side():
    unmatched = joined(numbered_dataset(), "m12", "m99").unmatched

    assert unmatched[0] == (
        "out.tsv: none of its 2 documents is judged, such as 'm12'; the judgments have '12': remove the prefix 'm', "
        "or accept it with outputs: {path: …, allow_no_overlap: true}"
    )
    assert unmatched[1].to_pylist() == ["m12", "m99"]


@pytest.mark.parametrize(("sign", "shown"), [("\u00a0", r"\xa0"), ("\u200b", r"\u200b"), ("\ufeff", r"\ufeff")])
def test_characters_that_cannot_be_seen_are_spelled_out_in_ids(sign, shown):
    message, _ = joined(numbered_dataset(), f"1{sign}2").unmatched

    assert f"such as '1{shown}2'; the judgments have '12'" in message


@pytest.mark.parametrize(
    ("found", "documents"),
    [
        ({}, ["12", "99"]),  # judged
        ({}, ["140", "99"]),  # for another query, and negative
        ({"documents": "98\n99\n"}, ["77", "99"]),  # in the catalogue
        ({"judged": "q1 0 12 -1\n"}, ["12"]),  # only negative grades
    ],
)
def test_known_documents_are_no_mismatch(found, documents):
    assert joined(numbered_dataset(**found), *documents).unmatched is None


def test_a_ranking_of_other_queries_is_refused():
    assert refusal(joined, numbered_dataset(), "12", query="Q1") == (
        "out.tsv: none of its queries is judged, such as 'Q1'; the judgments have 'q1': write the letters of both "
        "in the same case, or accept it with outputs: {path: …, allow_no_overlap: true}"
    )
    assert joined(numbered_dataset(), "12", query="Q1", allow_no_overlap=True).missing.all()
    assert joined(numbered_dataset(), "m12", allow_no_overlap=True).unmatched is None


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1\t12", "queries is rated, such as '1'; the ratings have 'u1': add the prefix 'u', or"),
        (
            "u1\t12.0",
            "none of its predictions has a rating, such as '12.0'; the ratings have '12': write ids as text (pandas",
        ),
        (
            "u1\t13",
            "none of its predictions has a rating: its queries and documents are rated, but not together; predict",
        ),
    ],
)
def test_predictions_without_a_rated_pair_are_refused(row, message):
    found = numbered_dataset(RATED, kind="ratings")
    output = write_here("out.tsv", f"query_id\tdoc_id\tprediction\n{row}\t3\n")

    assert message in refusal(read_output, found, output, TREC_EVAL, with_catalogue=False)
    read_output(found, output, TREC_EVAL, with_catalogue=False, allow_no_overlap=True)


@pytest.mark.parametrize(
    ("quality", "others", "n_judged", "warning"),
    [
        ((9, 0, 91, 0.5), [0.5], 9, "9 of the dataset's 100 queries are in the output"),
        ((10, 0, 90, 0.5), [0.5], 9, None),
        ((40, 400, 60, 0.5), [0.5], 9, "40 of the output's 440 queries are the dataset's"),
        ((60, 5_000, 40, 0.5), [0.5], 9, None),  # most queries of the dataset have output
        ((100, 0, 0, 0.009), [0.5, 0.09, 0.01], 9, "0.90% of the top 10 is judged, and 9.00% of the other models'"),
        ((100, 0, 0, 0.009), [0.5, 0.08, 0.01], 9, None),
        ((100, 0, 0, 0.01), [0.5], 9, None),
        ((100, 0, 0, 0.0), [0.0], 9, None),  # only negative grades, of all models
        ((100, 0, 0, 0.0), [], 0, "none of the documents retrieved is judged for its query"),
        ((100, 0, 0, None), [None], None, None),  # predictions
    ],
)
def test_a_small_overlap(quality, others, n_judged, warning):
    """Under 10% of the queries, or under 1% of the top 10 judged where the other models have ten times that."""
    n_rows, n_unjudged, n_missing, judged = quality
    beside = [JoinStats(1, 0, 0, judged_at_10=share) for share in others]

    found = small_overlap(100, JoinStats(n_rows, n_unjudged, n_missing, judged_at_10=judged), beside, n_judged=n_judged)

    assert found is None if warning is None else warning in found
