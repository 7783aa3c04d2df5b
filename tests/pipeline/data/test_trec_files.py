"""Qrels and a ranking as trec_eval takes them, and the name that the ranking gives its output."""

import gzip
import io
import sys

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.data import files
from rankledger.pipeline.data.formats.common import PAGE, Kind
from rankledger.pipeline.data.formats.delimited import last_fields
from rankledger.pipeline.data.joined import JudgedOutput
from rankledger.pipeline.data.rankings import join_groups, join_preferences, join_qrels
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import refusal

pytestmark = pytest.mark.usefixtures("folder")

CONVENTIONS = PROFILES["trec_eval"].conventions
QRELS = b"q1 0 a 1\nq1 0 b -1\nq2 0 a 0\n"
RANKING = b"q1 Q0 b 1 3.0 first\nq1 Q0 a 2 2.0 last\n"


def read(tmp_path, qrels: bytes = QRELS, ranking: bytes = RANKING, name: str = "ranking") -> tuple[JudgedOutput, str]:
    (tmp_path / "qrels").write_bytes(qrels)
    (tmp_path / name).write_bytes(ranking)
    return join_qrels("qrels", name, CONVENTIONS, n_documents=7)


def test_both_files_are_joined(tmp_path):
    joined, tag = read(tmp_path)
    (block,) = joined.blocks

    assert tag == "last"
    assert joined.query_ids.tolist() == ["q1", "q2"]
    assert joined.missing.tolist() == [False, True]
    np.testing.assert_array_equal(block.ranks, [[1, np.inf], [2, np.inf]])
    np.testing.assert_array_equal(block.grades, [[-1, np.nan], [1, np.nan]])
    assert block.n_documents.tolist() == [7, 7]


@pytest.mark.parametrize("name", ["ranking.csv", "ranking.parquet", "ranking.json", "ranking.run"])
def test_no_name_tells_another_format(tmp_path, name):
    assert read(tmp_path, name=name)[1] == "last"


def test_a_compressed_ranking_is_read(tmp_path):
    assert read(tmp_path, ranking=gzip.compress(RANKING), name="ranking.gz")[1] == "last"


def test_standard_input_is_read_once(tmp_path, monkeypatch):
    (tmp_path / "qrels").write_bytes(QRELS)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RANKING)))
    files._stream.cache_clear()
    joined, tag = join_qrels("qrels", "-", CONVENTIONS, n_documents=0)

    assert tag == "last"
    assert joined.quality.n_rows == 2


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        (b"a b c\nd e f\n", [b"d", b"e", b"f"]),
        (b"a b c\nd e f", [b"d", b"e", b"f"]),
        (b"a b c\r\nd e f\r\n", [b"d", b"e", b"f"]),
        (b"a\tb c\n\n  \n# d e f\n", [b"a", b"b c"]),
        (b"a b c\n" + b"#" * 3 * PAGE + b"\n", [b"a", b"b", b"c"]),
        (b"a b c\n" + b"# d\n" * PAGE, [b"a", b"b", b"c"]),
        (b"x" * PAGE + b" y\n", [b"x" * PAGE, b"y"]),
        (b"# a\n\n", []),
        (b"", []),
    ],
)
def test_the_fields_of_the_last_line(lines, fields):
    assert last_fields(memoryview(lines), Kind(("query_id", "doc_id"), None, ("query_id", "doc_id"))) == fields


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (b"q1 Q0 c 3 1.0\n", "ranking: the last line has no sixth field, the tag of the output; add it"),
        (
            b"q1 Q0 c 3 1.0",
            "ranking: its last line has 5 fields where the first has 6, and no end, so the file may be cut off",
        ),
    ],
)
def test_an_output_without_a_name_is_refused(tmp_path, last, message):
    with pytest.raises(InputError, match=f"^{message}"):
        read(tmp_path, ranking=RANKING + last)


def test_a_fraction_is_refused_with_its_line(tmp_path):
    """trec_eval reads 1.5 as 1 and says nothing."""
    said = "qrels: relevance 1.5 (line 3) is not a whole number, and trec_eval would truncate it; write whole grades"
    assert refusal(read, tmp_path, qrels=b"# comment\nq1 0 a 1.0\nq1 0 b 1.5\n") == said


def test_groups_of_judgments_are_joined_one_by_one(tmp_path):
    (tmp_path / "qrels").write_bytes(b"q1 y a 2\nq2 z a 1\nq1 x a 1\nq1 x b 0\n")
    (tmp_path / "ranking").write_bytes(RANKING)
    (first, second), tag = join_groups("qrels", "ranking", CONVENTIONS, n_documents=0)

    assert tag == "last"
    assert first.query_ids.tolist() == ["q1", "q2"]
    assert second.query_ids.tolist() == ["q1"]
    np.testing.assert_array_equal(first.blocks[0].judged_grades[:, 0], [1, 0])
    np.testing.assert_array_equal(second.blocks[0].judged_grades[:, 0], [2])


def test_preferences_number_documents_by_rank_and_those_that_were_missed_by_id(tmp_path):
    (tmp_path / "qrels").write_bytes(b"q1 j s d 1\nq1 j r a 1\nq1 j r b 2\nq1 k r c 3\nq2 k r a 1\n")
    (tmp_path / "ranking").write_bytes(RANKING)
    joined, (first, second), _ = join_preferences("qrels", "ranking", CONVENTIONS, subgroups=True)

    assert joined.missing.tolist() == [False, True]
    assert (first[1], second[1]) == (2, 0)
    nan = np.nan
    np.testing.assert_array_equal(first[0][0], [[2, 1, nan, nan], [nan, nan, nan, 1]])
    np.testing.assert_array_equal(first[0][1], [[nan, nan, 3, nan]])
