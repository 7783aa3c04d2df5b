"""Ids that match nothing: the likely cause, an id of each side, and what is no mismatch."""

from pathlib import Path

import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.checks import likely_cause, small_overlap
from rankledger.pipeline.data.dataset import DatasetInput, read_dataset, read_output
from rankledger.pipeline.data.joined import JoinStats, JudgedOutput
from tests.support.data_files import refusal, write

pytestmark = pytest.mark.usefixtures("folder")

TREC_EVAL = PROFILES["trec_eval"].conventions
JUDGED = "q1 0 12 1\nq1 0 13 0\nq2 0 140 -1\n"
RATED = "query_id\tdoc_id\trating\nu1\t12\t4\nu2\t13\t5\n"


def dataset(judged: str = JUDGED, *, documents: str = "", kind: str = "rankings") -> DatasetInput:
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
        (["Cafe\u0301"], ["Caf\u00e9"], ("Cafe\u0301", "Caf\u00e9"), "write ids in one Unicode form (NFC)"),
    ],
)
def test_the_cause_is_the_way_of_writing_that_makes_ids_match(ours, theirs, pair, remedy):
    assert likely_cause(ours, theirs) == (*pair, remedy)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["a", "b"], ["c", "d"]),
        (["100", "112"], ["00", "12"]),  # numbers that begin alike: no prefix
        (["x" * 300], ["x" * 299]),  # too long to look at
        (["é" * 40_000], ["é"]),
    ],
)
def test_an_unknown_cause_is_not_guessed(ours, theirs):
    assert likely_cause(ours, theirs) is None


def test_most_matches_decide():
    assert likely_cause(["m11", "m12", "m13"], ["11", "12", "13", "2"]) == ("m11", "11", "remove the prefix 'm'")


N_LIKE = [("{}.0", "pandas"), ("doc:{}", "prefix 'doc:'"), ("{} ", "whitespace")]


@pytest.mark.parametrize("n_rows", [3, 1000])
@pytest.mark.parametrize(("damage", "remedy"), N_LIKE)
def test_documents_that_are_damaged_in_part_are_warned_of_with_both_counts(damage, remedy, n_rows):
    """12 of 40 are damaged: 20 queries judge d1 or a damaged d2, so 28 match as they are. Cached or not."""
    found = dataset("".join(f"q{n}\t0\t{n}1\t1\nq{n}\t0\t{n}2\t1\n" for n in range(20)))
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
    lines = "".join(
        f"{n}1\t{0 if kind == 'rankings' else 'd'}\t{'d' if kind == 'rankings' else 1}\t1\n" for n in range(20)
    )
    judged = lines if kind == "rankings" else "query_id\tdoc_id\trating\n" + "".join(f"{n}1\td\t1\n" for n in range(20))
    value = "score" if kind == "rankings" else "prediction"
    rows = "".join(f"{damage.format(f'{n}1') if n < 5 else f'{n}1'}\td\t1\n" for n in range(20))
    output = write_here("out.tsv", f"query_id\tdoc_id\t{value}\n{rows}")

    quality = read_output(dataset(judged, kind=kind), output, TREC_EVAL, with_catalogue=False).quality

    assert quality.look_alikes.startswith(
        f"5 queries such as '{damage.format('01')}' look like judged ones without output"
    )
    assert "such as '01' (15 match as they are). " in quality.look_alikes
    assert remedy in quality.look_alikes


@pytest.mark.parametrize("documents", [["12", "99"], ["12", "M140", "x13"], ["12", "13", "013"], ["12", "a", "b:c"]])
def test_other_documents_are_not_taken_for_judged_ones(documents):
    assert joined(dataset(), *documents).quality.look_alikes == ""


def test_a_ranking_without_a_known_document_is_refused_with_an_id_of_each_side():
    unmatched = joined(dataset(), "m12", "m99").unmatched

    assert unmatched[0] == (
        "out.tsv: none of its 2 documents is judged, such as 'm12'; the judgments have '12': remove the prefix 'm', "
        "or accept it with outputs: {path: …, allow_no_overlap: true}"
    )
    assert unmatched[1].to_pylist() == ["m12", "m99"]


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
    assert joined(dataset(**found), *documents).unmatched is None


def test_a_ranking_of_other_queries_is_refused():
    assert refusal(joined, dataset(), "12", query="Q1") == (
        "out.tsv: none of its queries is judged, such as 'Q1'; the judgments have 'q1': write the letters of both "
        "in the same case, or accept it with outputs: {path: …, allow_no_overlap: true}"
    )
    assert joined(dataset(), "12", query="Q1", allow_no_overlap=True).missing.all()
    assert joined(dataset(), "m12", allow_no_overlap=True).unmatched is None


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
    found = dataset(RATED, kind="ratings")
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
