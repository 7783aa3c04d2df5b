"""References to a model of this evaluation or of a record, and the words that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.config.paths import parse_reference, split_reference
from tests.support.data_files import refusal

ID = "20261120T020000Z-nightly.web-1f0c9a2b"


@pytest.mark.parametrize(
    ("text", "record", "model"),
    [
        ("last", "last", None),
        ("last_passed", "last_passed", None),
        ("self@last_passed", "last_passed", None),
        ("accepted#bm25", "accepted", "bm25"),
        (ID, ID, None),
        (f"{ID}#bm25", ID, "bm25"),
        ("self@" + ID, ID, None),
        ("mlflow:0123abcd", "mlflow:0123abcd", None),
        ("runs/records/x", "runs/records/x", None),
        ("./x#y#org/m", "./x#y", "org/m"),
        ("self@../x", "../x", None),
        ("bm25", None, "bm25"),
        ("org/m", None, "org/m"),
        ("a#b", None, "a#b"),
    ],
)
def test_what_is_written(text, record, model):
    found = parse_reference(text, ["bm25", "org/m", "a#b"])

    assert (found.text, found.record, found.model) == (text, record, model)


NO = "is not a model, an evaluation id or a path (with a slash)"
BOTH = "names the same model and another one; write"
LACKS = "lacks a record or a model; write it as in accepted#bm25"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acepted", f"'acepted' {NO}; did you mean 'accepted'?"),
        ("bm52", f"'bm52' {NO}; did you mean 'bm25'?"),
        ("self@xyz", f"'xyz' {NO}; known: last, last_passed, previous, accepted, bm25"),
        (
            "20261120T020000Z-nightly",
            f"'20261120T020000Z-nightly' {NO}; known: last, last_passed, previous, accepted, bm25",
        ),
        ("mlflow:", f"'mlflow:' {NO}; known: last, last_passed, previous, accepted, bm25"),
        ("self@last_passed#bm25", f"'self@last_passed#bm25' {BOTH} 'last_passed#bm25' or 'self@accepted'"),
        ("self@bm25", f"'self@bm25' {BOTH} 'bm25' or 'self@accepted'"),
        ("self@", f"'self@' {LACKS}"),
        ("last_passed#", f"'last_passed#' {LACKS}"),
        ("#bm25", f"'#bm25' {LACKS}"),
        ("", f"'' {LACKS}"),
    ],
)
def test_what_is_refused(text, message):
    assert refusal(parse_reference, text, ["bm25"]) == message


@given(st.text(st.sampled_from("self@#a/"), max_size=12))
def test_the_parts_are_the_text(text):
    assert "".join(split_reference(text)) == text
