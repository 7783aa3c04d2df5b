"""An old output on new judgments: what a join of the output itself gives, or the reason why that cannot be known."""

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.pipeline.data.join import rejoin
from rankledger.pipeline.data.joined import JudgedOutput
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.rankings import join_ranking
from rankledger.pipeline.data.rows import Rows
from rankledger.pipeline.support.arrow import strings
from tests.support.data_files import refusal, rows_of

QUERIES = st.sampled_from(["q1", "q10", "Q", "é", "🦆"])
DOCUMENTS = st.sampled_from(["d1", "d10", "d2", "é", "文", "\uffff", "x"])
GRADES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0])
PAIRS = st.tuples(QUERIES, DOCUMENTS)
JUDGED = st.dictionaries(PAIRS, GRADES, min_size=1, max_size=30)
RANKED = st.dictionaries(PAIRS, st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 2.5, -3.0]), min_size=1, max_size=35)

Judged = dict[tuple[str, str], float]

TREC_EVAL = PROFILES["trec_eval"].conventions


def table(pairs: Judged) -> Rows:
    return rows_of([(*pair, value) for pair, value in pairs.items()])


def rejoined(then: Rows, now: Rows, ranking: Rows, conventions: Conventions = TREC_EVAL) -> JudgedOutput:
    hits = join_ranking(index_judgments(then), ranking, conventions).hits
    assert hits is not None
    return rejoin(then, hits, index_judgments(now), conventions, 9.0, path="out.tsv")


def unlike(found: JudgedOutput, expected: JudgedOutput) -> list[str]:
    pairs = {name: (getattr(found, name), getattr(expected, name)) for name in ("query_ids", "missing")}
    for place, blocks in enumerate(zip(found.blocks, expected.blocks, strict=True)):
        names = [field.name for field in dataclasses.fields(JudgedBlock)]
        pairs |= {f"{place}.{name}": tuple(getattr(block, name) for block in blocks) for name in names}
    arrays = [name for name, pair in pairs.items() if not _same(*pair)]
    return arrays + [name for name in ("max_grade", "quality") if getattr(found, name) != getattr(expected, name)]


def _same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


@given(JUDGED, RANKED, st.integers(0, 100), st.sampled_from(["doc_id_desc", "doc_id_asc", "input_order"]))
def test_fewer_and_other_judgments_give_what_a_join_gives(then, ranked, seed, ties):
    rng = random.Random(seed)
    kept = rng.sample(sorted(then), rng.randint(1, len(then)))
    now = {pair: rng.choice([then[pair], -1.0, 0.0, 2.0]) for pair in kept}
    conventions = dataclasses.replace(TREC_EVAL, ties=ties)

    found = rejoined(table(then), table(now), table(ranked), conventions)

    assert unlike(found, join_ranking(index_judgments(table(now)), table(ranked), conventions, n_documents=9.0)) == []


@given(JUDGED, JUDGED, RANKED)
def test_new_judgments_are_refused_or_give_what_a_join_gives(then, now, ranked):
    def unsure(query: str) -> bool:
        known = query in {name for name, _ in then}
        return not known or any(name == query and (name, document) not in then for name, document in ranked)

    new = [pair for pair in now if pair not in then and unsure(pair[0])]
    if new:
        hits = join_ranking(index_judgments(table(then)), table(ranked), TREC_EVAL).hits
        message = refusal(rejoin, table(then), hits, index_judgments(table(now)), TREC_EVAL, path="out.tsv")
        assert message.startswith(f"out.tsv: {len(new)} judged pair")
    else:
        found = rejoined(table(then), table(now), table(ranked))
        assert unlike(found, join_ranking(index_judgments(table(now)), table(ranked), TREC_EVAL, n_documents=9.0)) == []


def test_a_new_pair_is_named_with_what_to_do():
    then, now = table({("q1", "a"): 1.0}), table({("q1", "a"): 1.0, ("q1", "d7"): 2.0})
    hits = join_ranking(index_judgments(then), table({("q1", "a"): 2.0, ("q1", "x"): 1.0}), TREC_EVAL).hits

    assert refusal(rejoin, then, hits, index_judgments(now), TREC_EVAL, path="out.tsv") == (
        "out.tsv: 1 judged pair is new, such as query 'q1', document 'd7', and the output cache has no ranks of "
        "unjudged documents; restore it"
    )


def test_a_new_pair_of_a_query_whose_whole_ranking_is_known_was_not_retrieved():
    then = table({("q1", "a"): 1.0, ("q1", "b"): 0.0, ("q2", "a"): 1.0})
    now = table({("q1", "a"): 1.0, ("q1", "d7"): 2.0, ("q2", "d7"): 1.0})
    found = rejoined(then, now, table({("q1", "a"): 2.0, ("q1", "b"): 3.0}))

    (block,) = found.blocks
    np.testing.assert_array_equal(block.ranks, [[2.0, np.inf]])
    np.testing.assert_array_equal(block.judged_grades, [[2.0, 1.0], [1.0, np.nan]])


def test_subtopics_are_those_of_the_new_judgments():
    def judged(rows: list[tuple[str, str, str, float]]) -> Rows:
        plain = rows_of([(query, document, grade) for query, document, _, grade in rows])
        return dataclasses.replace(plain, subtopics=strings([subtopic for *_, subtopic, _ in rows]))

    then = judged([("q", "a", "1", 1.0), ("q", "b", "1", 0.0), ("q", "b", "2", 1.0)])
    now = judged([("q", "b", "2", 2.0), ("q", "a", "2", 1.0), ("q", "a", "3", 1.0)])
    ranking = table({("q", "x"): 3.0, ("q", "a"): 2.0, ("q", "b"): 1.0})

    assert (
        unlike(rejoined(then, now, ranking), join_ranking(index_judgments(now), ranking, TREC_EVAL, n_documents=9.0))
        == []
    )


def test_a_query_without_output_is_refused_where_that_is_an_error():
    judgments = table({("q1", "a"): 1.0, ("q2", "a"): 1.0})
    hits = join_ranking(index_judgments(judgments), table({("q1", "a"): 1.0}), TREC_EVAL).hits
    strict = dataclasses.replace(TREC_EVAL, missing_queries="error")

    assert refusal(rejoin, judgments, hits, index_judgments(judgments), strict, path="out.tsv") == (
        "out.tsv: 1 of 2 judged queries have no output, such as 'q2'; complete it, or say missing_queries: empty"
    )


@pytest.mark.parametrize("n_dropped", [0, 1])
def test_what_the_join_counted_is_counted_anew(n_dropped):
    then = {("q1", "a"): 1.0, ("q2", "a"): 1.0}
    now = dict(list(then.items())[: 2 - n_dropped])
    ranked = {("q1", "a"): 1.0, ("q2", "a"): 3.0, ("q2", "b"): 1.0, ("q3", "a"): 1.0}
    quality = rejoined(table(then), table(now), table(ranked)).quality

    assert quality.n_unjudged_queries == 1 + n_dropped
    assert quality.judged_at_10 == (1.0 if n_dropped else 2 / 3)
