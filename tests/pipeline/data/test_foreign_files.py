"""Files as other tools leave them: ranx's and pytrec_eval's JSON, and BEIR's judgments."""

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.readers import read_documents, read_judgments, read_pairs, read_queries, read_ranking
from tests.support.data_files import compress, contents, refusal, write

pytestmark = pytest.mark.usefixtures("folder")

read_ratings = partial(read_pairs, value="rating")
read_predictions = partial(read_pairs, value="prediction")

SHAPES = "Use {query: {document: relevance}}, or a list of objects with query_id, doc_id, relevance."
IDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60)


def refused(text: str | bytes, name: str = "a.json") -> str:
    return refusal(read_judgments, write(Path(name), text if isinstance(text, bytes) else text.encode()))


# JSON.


@given(st.dictionaries(IDS, st.dictionaries(IDS, NUMBERS, max_size=5), min_size=1, max_size=5), st.booleans())
def test_json_gives_what_it_holds(tmp_path_factory, held, indented):
    """Queries and documents in their order, each number as a double, however the text is laid out."""
    path = write(tmp_path_factory.getbasetemp() / "a.json", json.dumps(held, indent=2 if indented else None).encode())
    rows = [(query, document, float(number)) for query, found in held.items() for document, number in found.items()]

    if rows:
        assert contents(read_judgments(path)) == rows
    else:
        assert refusal(read_judgments, path) == f"{path}: no rows; write the file again"


@pytest.mark.parametrize("reader", [read_judgments, read_ranking, read_ratings, read_predictions])
def test_json_holds_whatever_number_the_file_is_read_for(reader):
    path = write(Path("a.json"), b'{"q2": {"d1": 1, "d2": -0.5}, "q1": {"d1": 2e3}}')

    assert contents(reader(path)) == [("q2", "d1", 1.0), ("q2", "d2", -0.5), ("q1", "d1", 2000.0)]


@pytest.mark.parametrize(("name", "format"), [("a.json.gz", None), ("a.json.zst", None), ("a.qrels", "json")])
def test_json_by_its_ending_or_by_name(name, format):
    data = compress(b'\xef\xbb\xbf{"q": {"d": 3}}', Path(name).suffix if format is None else "")

    assert contents(read_judgments(Source(write(Path(name), data), format))) == [("q", "d", 3.0)]


def test_a_query_without_documents_has_no_row():
    rows = read_judgments(write(Path("a.json"), b'{"q1": {}, "q2": {"d": 1}, "q3": {}}'))

    assert contents(rows) == [("q2", "d", 1.0)]
    assert list(index_judgments(rows, keep_first=False).query_ids) == ["q2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"q": {"d": 1}, "q": {"e": 1}}', "a.json: query 'q' occurs twice; keep one"),
        ('{"q": {"d": 1, "e": 0, "d": 1}}', "a.json: query 'q': document 'd' occurs twice; keep one"),
        ('{"q": {"d": "1"}}', "a.json: query 'q', document 'd': relevance \"1\" is not a number. " + SHAPES),
        ('{"q": {"d": true}}', "a.json: query 'q', document 'd': relevance true is not a number. " + SHAPES),
        ('{"q": {"d": {}}}', "a.json: query 'q', document 'd': relevance {} is not a number. " + SHAPES),
        ('{"q": {"d": NaN}}', "a.json: relevance nan (query 'q', document 'd') is not a finite number; fix it"),
        (
            '{"q": {"c": 1, "d": 1e999}}',
            "a.json: relevance inf (query 'q', document 'd') is not a finite number; fix it",
        ),
        (
            '{"q": {"d": -1' + "0" * 400 + "}}",
            "a.json: relevance -inf (query 'q', document 'd') is not a finite number; fix it",
        ),
        ('{"q": {"": 1}}', "a.json: empty doc_id (query 'q', document ''); fill it"),
        ('{"q": {"c": 1}, "": {"d": 1}}', "a.json: empty query_id (query '', document 'd'); fill it"),
        ('{"q": "d"}', "a.json: the value of 'q' is \"d\". " + SHAPES),
        ("[1]", "a.json: found [1]. " + SHAPES),
        ('"q"', 'a.json: found "q". ' + SHAPES),
        ("{}", "a.json: no rows; write the file again"),
        (b'{"q\xe9": {"d": 1}}', "a.json: not UTF-8; convert the file"),
        ('{"q": {"d\\ud800": 1}}', "a.json: an id contains half of a surrogate pair, which is not UTF-8; fix it"),
    ],
)
def test_wrong_json_is_refused(text, message):
    assert refused(text) == message


FIX, CUT = "fix it", "the file may be cut off, so copy it again"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        *(("", CUT), ("{", CUT)),
        *((text, FIX) for text in ('{"q": {"d": 1}} x', '{"q": {"d": 1},}', '{"q": {"d": .5}}', "[" * 100_000)),
    ],
)
def test_what_is_not_json_is_refused(text, advice):
    message = refused(text)

    assert message.startswith("a.json: not JSON (")
    assert message.endswith(f"); {advice}")
    assert "\n" not in message


@pytest.mark.parametrize("reader", [read_queries, read_documents])
def test_tables_of_ids_have_no_json(reader):
    message = refusal(reader, write(Path("a.json"), b'{"q": {"d": 1}}'))

    assert message.startswith("a.json: one JSON object cannot hold ")
    assert message.endswith("; use tsv, csv, jsonl or parquet")


def test_ranks_are_not_read_from_json():
    message = refusal(read_ranking, write(Path("a.json"), b'{"q": {"d": 1}}'), by="rank")

    assert message == "a.json: one JSON object cannot hold query_id, doc_id, rank; use tsv, csv, jsonl or parquet"


def test_a_pair_in_two_parts_is_named_in_both():
    for name in ("a.json", "b.json"):
        write(Path("parts") / name, b'{"q": {"c": 1, "d": 1}}' if name == "a.json" else b'{"q": {"d": 2}}')

    message = refusal(index_judgments, read_judgments("parts"), keep_first=False)

    assert "query 'q' judges document 'd' twice" in message
    assert "query 'q', document 'd' of parts/a.json and query 'q', document 'd' of parts/b.json" in message


# BEIR.

BEIR = [("PLAIN-2", "MED-2427", 2.0), ("PLAIN-2", "MED-10", 1.0), ("PLAIN-12", "MED-2427", 0.0)]


def beir(layout: str) -> bytes:
    names = ["query-id", "corpus-id", "score"]
    if layout == "parquet":
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.table([pa.array(column) for column in zip(*BEIR, strict=True)], names=names), sink)
        return sink.getvalue().to_pybytes()
    if layout == "jsonl":
        return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in BEIR).encode()
    sign = {"tsv": "\t", "csv": ","}[layout]
    lines = [names, *([query, document, f"{grade:.0f}"] for query, document, grade in BEIR)]
    return "".join(sign.join(line) + "\n" for line in lines).encode()


@pytest.mark.parametrize("layout", ["tsv", "csv", "jsonl", "parquet"])
def test_beirs_columns_are_known(layout):
    assert contents(read_judgments(write(Path(f"test.{layout}"), beir(layout)))) == BEIR


def test_mapped_columns_and_our_own_come_before_beirs():
    """A config that says which column holds the relevance is believed, and so are our names."""
    mapped = write(Path("a.tsv"), b"query-id\tcorpus-id\tscore\tgrade\nq\td\t9\t1\n")
    own = write(Path("b.tsv"), b"query-id\tcorpus-id\tscore\trelevance\nq\td\t9\t1\n")

    assert contents(read_judgments(Source(mapped, columns={"relevance": "grade"}))) == [("q", "d", 1.0)]
    assert contents(read_judgments(own)) == [("q", "d", 1.0)]


@pytest.mark.parametrize("header", ["query_id\tdoc_id\tscore", "query-id\tdoc_id\tscore", "q\td\tscore"])
def test_a_score_is_no_relevance_elsewhere(header):
    """Judgments need their relevance: only beside BEIR's ids is `score` taken for it."""
    assert "no column '" in refused(f"{header}\nq\td\t1\n", "a.tsv")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "query-id\tcorpus-id\tscore\nq\tc\t1\nq\td\tx\n"),
        (
            "a.jsonl",
            '\n{"query-id": "q", "corpus-id": "c", "score": 1}\n{"query-id": "q", "corpus-id": "d", "score": "x"}\n',
        ),
    ],
)
def test_a_wrong_line_of_beirs_is_named(name, text):
    assert refused(text, name) == f"{name}:3: relevance 'x' is not a number; fix it"
