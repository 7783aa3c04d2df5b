"""Which metrics are additive: each document's term depends on its own rank and grade alone."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from rankledger.metrics.block import JudgedBlock, Terms, from_terms
from rankledger.metrics.registry import METRICS
from tests.metrics.variants import JUDGED_VARIANTS, over, parsed

GREATEST = 4.0
N_MOVES = 8


def terms_of(text: str, block: JudgedBlock) -> Terms:
    measure = parsed(text)
    return measure.metric.function.terms(block, **measure.arguments(max_grade=GREATEST))


def numbered(block: JudgedBlock) -> JudgedBlock:
    rows = np.arange(len(block.ranks), dtype=np.int32)[:, np.newaxis]
    return replace(block, judgment_row=np.where(np.isfinite(block.ranks), rows, np.int32(-1)))


def moved(block: JudgedBlock, rng: np.random.Generator) -> tuple[JudgedBlock, np.ndarray]:
    ranks, chosen = block.ranks.copy(), np.full(len(block.query_ids), -1)
    for query in range(ranks.shape[1]):
        taken = ranks[np.isfinite(ranks[:, query]), query]
        free = np.setdiff1d(np.arange(1.0, block.n_retrieved[query] + 1), taken)
        if len(taken) and len(free):
            chosen[query] = rng.integers(len(taken))
            ranks[chosen[query], query] = rng.choice(free)
    order = np.argsort(ranks, axis=0, kind="stable")
    return replace(block, ranks=ranks, tie_first=ranks, tie_last=ranks).reordered(order), chosen


class Move(NamedTuple):
    before: JudgedBlock
    after: JudgedBlock
    chosen: np.ndarray
    hidden: JudgedBlock


def half_hidden(block: JudgedBlock, rng: np.random.Generator) -> JudgedBlock:
    kept = rng.random(block.ranks.shape) < 0.5
    return replace(
        block,
        ranks=np.where(kept, block.ranks, np.inf),
        grades=np.where(kept, block.grades, np.nan),
        tie_first=np.where(kept, block.tie_first, np.inf),
        tie_last=np.where(kept, block.tie_last, np.inf),
        judgment_row=np.where(kept, block.judgment_row, np.int32(-1)),
    )


def by_document(block: JudgedBlock, terms: Terms) -> np.ndarray:
    """(H, Q): the terms in the order of the documents' numbers, NaN if there is no document."""
    found = np.full(block.ranks.shape, np.nan)
    rows, queries = np.nonzero(block.judgment_row >= 0)
    found[block.judgment_row[rows, queries], queries] = terms.terms[rows, queries]
    return found


def only_its_own_term_changes(text: str, old: Terms, move: Move) -> bool:
    new = terms_of(text, move.after)
    others = np.arange(len(move.before.ranks))[:, np.newaxis] != move.chosen
    pairs = [
        (np.where(others, by_document(move.before, old), 0.0), np.where(others, by_document(move.after, new), 0.0)),
        *((getattr(old, name), getattr(new, name)) for name in ("rest", "scale", "divisor", "defined")),
    ]
    return all(
        (one is None and other is None) or np.array_equal(one, other, equal_nan=np.asarray(one).dtype != bool)
        for one, other in pairs
    )


@pytest.fixture(scope="module")
def moves(graded_block, probability_block) -> dict[bool, list[Move]]:
    rng, coin = np.random.default_rng(11), np.random.default_rng(12)
    found: dict[bool, list[Move]] = {}
    for are_probabilities, block in ((False, numbered(graded_block)), (True, numbered(probability_block))):
        found[are_probabilities] = [Move(block, *moved(block, rng), half_hidden(block, coin)) for _ in range(N_MOVES)]
    return found


def terms_stay(text: str, old: Terms, hidden: JudgedBlock) -> bool:
    shown = hidden.judgment_row >= 0
    return np.array_equal(old.terms[shown], terms_of(text, hidden).terms[shown])


def holds(text: str, moves: dict[bool, list[Move]]) -> bool:
    own = moves["probability" in text]
    old = terms_of(text, own[0].before)
    return all(only_its_own_term_changes(text, old, move) and terms_stay(text, old, move.hidden) for move in own)


ADDITIVE = [text for text in JUDGED_VARIANTS if parsed(text).metric.additive]
SUMMED = [name for name, metric in METRICS.items() if isinstance(metric.function, from_terms)]


@over(ADDITIVE)
def test_a_document_that_moves_changes_only_its_own_term(texts, moves):
    """309 queries, a judged document of each moved eight times: all else that is added or divided by keeps its bits.

    So does a term when any other documents are not there.
    """
    assert [text for text in texts if not holds(text, moves)] == []


# Of several evidence sets the best counts, and of the queries of a cluster the worst: there is one of each here.
OF_SEVERAL = ("kilt_rprec", "robustness", "paired_accuracy")


@pytest.mark.parametrize("name", [name for name in SUMMED if not METRICS[name].additive and name not in OF_SEVERAL])
def test_what_is_not_called_additive_is_not(name, moves):
    texts = [text for text in JUDGED_VARIANTS if parsed(text).metric.name == name]

    assert not all(holds(text, moves) for text in texts)


def test_moves_move(moves):
    for before, after, chosen, _ in moves[False]:
        assert (chosen >= 0).sum() > 100
        assert ((before.ranks != after.ranks).any(axis=0) == (chosen >= 0)).all()
