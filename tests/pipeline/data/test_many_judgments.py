"""Judgments that are too many for one index: the join and its messages are those of a few."""

import pickle
from unittest.mock import patch

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.data import judgments
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.rankings import join_ranking
from rankledger.pipeline.data.readers import read_judgments
from tests.support.data_files import refusal, rows_of

TREC_EVAL = PROFILES["trec_eval"].conventions


def judged_and_ranked(seed):
    """30 queries that judge 1 to 9 of 12 documents, and retrieve some of them; grades that float32 has, or has not."""
    rng = np.random.default_rng([29, seed])
    judged, ranked = [], []
    for query in range(30):
        names = [f"d{number}" for number in rng.permutation(12)]
        grades = rng.integers(-1, 4, query % 9 + 1) + 0.1 * (seed % 2)
        judged += [(f"q{query}", name, float(grade)) for name, grade in zip(names, grades, strict=False)]
        ranked += [(f"q{query}", names[place], float(rng.integers(0, 6))) for place in rng.permutation(12)[:8]]
    return judged, ranked


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scattered", [False, True])
def test_an_index_per_part_finds_what_one_index_finds(seed, scattered):
    judged, ranked = judged_and_ranked(seed)
    if scattered:
        np.random.default_rng(seed).shuffle(judged)
    one = index_judgments(rows_of(judged))
    with patch.object(judgments, "MANY_ROWS", 5):
        many = index_judgments(rows_of(judged))

    found, expected = (join_ranking(own, rows_of(ranked), TREC_EVAL) for own in (many, one))

    assert many.index is None
    assert found.quality == expected.quality
    for block, other in zip(found.blocks, expected.blocks, strict=True):
        for name in ("ranks", "grades", "tie_first", "tie_last", "judgment_row", "judged_grades", "n_retrieved"):
            np.testing.assert_array_equal(getattr(block, name), getattr(other, name))


@pytest.mark.parametrize("scattered", [False, True])
def test_a_pair_that_is_judged_twice_is_refused_or_keeps_its_first_judgment(scattered):
    pairs = [(f"q{number}", "a", 1.0) for number in range(20)]
    pairs = [*pairs[1:], pairs[0], ("q7", "a", 3.0)] if scattered else [*pairs[:8], ("q7", "a", 3.0), *pairs[8:]]

    with patch.object(judgments, "MANY_ROWS", 4):
        kept = index_judgments(rows_of(pairs), keep_first=True)
        refused = refusal(index_judgments, rows_of(pairs))

    assert refused == refusal(index_judgments, rows_of(pairs))
    assert kept.grades_of(kept.query_ids.tolist().index("q7")) == {"a": 1.0}


def test_documents_on_disk_are_those_of_the_file(tmp_path):
    lines = [f"q{number // 3} 0 {'é' * (number % 5)}d{number} {number % 4}" for number in range(60)]
    path = tmp_path / "qrels.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    stored, plain = read_judgments(str(path), folder=tmp_path / "cache", _many=10), read_judgments(str(path))
    sent = pickle.loads(pickle.dumps(stored.chunks))

    for rows in (stored, plain):
        assert rows.doc_ids.to_pylist() == [line.split()[2] for line in lines]
        assert [rows.query_ids[code] for code in rows.query_codes] == [line.split()[0] for line in lines]
        assert rows.take_doc_ids(np.array([59, 0, 7])).to_pylist() == [lines[row].split()[2] for row in (59, 0, 7)]
        assert rows.place(7) == "line 8"
    assert [own.doc_ids.to_pylist() for own in sent] == [own.doc_ids.to_pylist() for own in stored.chunks]
    with patch.object(judgments, "MANY_ROWS", 10):
        indexed = index_judgments(stored)
    assert indexed.grades_of(0) == {"d0": 0.0, "éd1": 1.0, "ééd2": 2.0}
    assert list((tmp_path / "cache").iterdir()) == []
