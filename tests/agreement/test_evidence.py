"""Nuggets and citations of answers against nuggetizer and Open RAG Eval, and evidence sets against KILT.

What they gave is in `tests/golden/tools/evidence.json`.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from rankledger.metrics.diversity import kilt_r, kilt_rprec
from rankledger.metrics.language_models import citation_scores, nugget_scores
from tests.agreement.cases import assert_within
from tests.agreement.recorded_tool import EVIDENCE
from tests.support.blocks import diverse_block, random_diverse_query

NUGGETIZER, OPEN_RAG_EVAL, KILT = "nuggetizer 0.0.5", "Open RAG Eval 0.3.0", "KILT 2664322"
ASSIGNMENTS = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
LABELS = {"full_support": 1.0, "partial_support": 0.5, "no_support": 0.0, None: np.nan}
N_CASES = 300


def nuggets_of_answers(*sure: str) -> list[list[tuple[str, str]]]:
    rng = np.random.default_rng(1)
    drawn = [[*sure, *rng.choice(["vital", "okay"], size=int(rng.integers(1, 9))).tolist()] for _ in range(N_CASES)]
    return [[(importance, str(rng.choice([*ASSIGNMENTS]))) for importance in own] for own in drawn]


def our_nuggets(answers: list[list[tuple[str, str]]]) -> dict[str, np.ndarray]:
    found = [
        nugget_scores(
            np.array([importance == "vital" for importance, _ in own]),
            np.array([ASSIGNMENTS[assignment] for _, assignment in own]),
        )
        for own in answers
    ]
    return {name: np.array([own[name] for own in found]) for name in found[0]}


def test_nuggets_of_autonuggetizer():
    answers = nuggets_of_answers()
    for name, theirs in EVIDENCE("nuggetizer_scores", answers).items():
        ours = our_nuggets(answers)[name]
        assert np.isnan(ours).any() == ("vital" in name)
        assert_within(NUGGETIZER, name, np.nan_to_num(ours), theirs)


def test_weighted_nuggets_of_open_rag_eval():
    answers = nuggets_of_answers("vital", "okay")
    for name, theirs in EVIDENCE("open_rag_eval_nuggets", answers).items():
        scope, *strict = name.lower().split()
        own = f"{'strict_' if strict else ''}{scope}_score"
        assert_within(OPEN_RAG_EVAL, own, our_nuggets(answers)[own], theirs)


@pytest.mark.parametrize("strict", ["", "strict_"])
def test_citations_of_open_rag_eval(strict):
    rng = np.random.default_rng(2)
    answers = [rng.choice([*LABELS], size=int(rng.integers(1, 9))).tolist() for _ in range(N_CASES)]
    judged = [
        ["no_support" if strict and label == "partial_support" else label for label in labels] for labels in answers
    ]
    theirs = EVIDENCE("open_rag_eval_citations", judged)

    found = [citation_scores(np.arange(len(own)), np.array([LABELS[label] for label in own])) for own in answers]
    for name in ("precision", "recall"):
        own = np.array([scores[f"{strict}citation_{name}"] for scores in found])
        assert_within(OPEN_RAG_EVAL, f"{strict}citation_{name}", np.nan_to_num(own), theirs[f"weighted_{name}"])


def test_evidence_sets_of_kilt():
    rng = np.random.default_rng(3)
    queries = [random_diverse_query(rng) for _ in range(450)]
    queries[::2] = [replace(query, judged=twice(query.judged)) for query in queries[::2]]
    sets = [evidence_sets(query.judged) for query in queries]
    kept = [place for place, query in enumerate(queries) if sets[place] and query.ranking][:N_CASES]
    ks = (1, 2, 3, 5, 10)
    theirs = EVIDENCE("kilt_scores", [queries[place].ranking for place in kept], [sets[place] for place in kept], ks)

    assert len(kept) == N_CASES
    block = diverse_block([queries[place] for place in kept])
    assert_within(KILT, "kilt_rprec", kilt_rprec(block), theirs["Rprec"])
    for k in ks:
        assert_within(KILT, "kilt_r", kilt_r(block, k=k), theirs[f"recall@{k}"])


def twice(judged: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    return {page: {**grades, **({9: grades[0]} if 0 in grades else {})} for page, grades in judged.items()}


def evidence_sets(judged: Mapping[str, Mapping[int, float]]) -> list[list[str]]:
    found: dict[int, list[str]] = {}
    for page, grades in judged.items():
        for subtopic, grade in grades.items():
            if grade >= 1:
                found.setdefault(subtopic, []).append(page)
    return [found[subtopic] for subtopic in sorted(found)]
