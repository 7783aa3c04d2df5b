"""Programs that have a measure or a few of ours, and no profile here: what they gave is in tests/golden/tools.

SciPy alone runs here.
"""

from collections.abc import Sequence
from math import log
from typing import Any

import numpy as np
import pytest
import scipy
from scipy import stats
from scipy.spatial.distance import jensenshannon

from rankledger.metrics.agreement import Ranked, RankingsBlock, ap_corr, kendall_tau, rbo
from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.measure import Measure
from rankledger.metrics.ratings import RatingsBlock, auc, lauc
from rankledger.metrics.recommendation import calibration
from rankledger.metrics.sets import user_coverage
from tests.agreement.cases import assert_within
from tests.agreement.recorded_tool import PROGRAMS
from tests.support.blocks import PlainCatalogue, plain_block, ranked, ratings_block, recommended_block

SCIPY, PYIRCOR, IMPLICIT = f"SciPy {scipy.__version__}", "pyircor 0.2.0", "implicit 0.7.3"
RBO, RBO_SCRIPT = "rbo 0.1.3", "dlukes/rbo 620b84e"
ELLIOT, WARPREC, LENSKIT = "Elliot 0.3.1", "WarpRec 1.4.6", "LensKit 2025.8.1"
NOTEBOOK = "ethen8181/machine-learning 1dcc979"
N_DOCUMENTS = 30
SEEDS = range(10)
CUTOFFS = (3, 8)
OF_BOTH = {  # Elliot's and WarpRec's names, and ours
    "nDCGRendle2020": "ndcg(gain=binary)",
    "Precision": "p",
    "Recall": "r",
    "F1": "f1",
    "MRR": "rr",
    "EFD": "efd",
    "EPC": "epc",
    "ARP": "popularity",
}
OF_ELLIOT = OF_BOTH | {"HR": "success", "MAR": "mar"}
OF_WARPREC = OF_BOTH | {"HitRate": "success", "MAR": "mar(at=hits)", "MAP": "ap(denominator=cutoff)"}
OF_LENSKIT = {
    "NDCG": "ndcg(gain=binary,discount=jarvelin)",
    "DCG": "dcg(gain=binary,discount=jarvelin)",
    "Hit": "success",
    "Precision": "p(denominator=retrieved)",
    "Recall": "r(denominator=cutoff)",
    "RecipRank": "rr",
    "RBP": "rbp(p=0.85)",
}


def graded(seed: int, n_grades: int, most: int) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, n_grades, rng.integers(2, most + 1)).astype(float) for _ in range(300)]
    return [[*own[:-1].tolist(), float((own[0] + 1) % n_grades)] for own in drawn]


def test_kendall_tau_of_scipy():
    grades = graded(1, 5, 40)
    theirs = [stats.kendalltau(-np.arange(len(own)), own).statistic for own in grades]

    assert_within(SCIPY, "kendall_tau", kendall_tau(plain_block([ranked(*own) for own in grades])), theirs)


@pytest.mark.parametrize("equal", [False, True])
def test_ap_correlation_of_pyircor(equal):
    rng = np.random.default_rng(2)
    differing = [rng.permutation(size).astype(float).tolist() for size in rng.integers(2, 30, 300)]
    grades = graded(3, 3, 6) if equal else differing

    assert_within(
        PYIRCOR, "ap_corr", ap_corr(plain_block([ranked(*own) for own in grades])), PROGRAMS("tau_ap", grades)
    )


def rankings(lists: Sequence[Sequence[int]]) -> Ranked:
    rows = [(1000 * query + own, query, rank) for query, found in enumerate(lists) for rank, own in enumerate(found, 1)]
    documents, queries, ranks = np.array(sorted(rows)).T
    n_retrieved = np.array([float(len(found)) for found in lists])
    return Ranked(documents.astype(np.uint64), queries, ranks, scores=-ranks.astype(float), n_retrieved=n_retrieved)


def overlap(ones: Sequence[Sequence[int]], others: Sequence[Sequence[int]], **parameters: Any) -> np.ndarray:
    return rbo(RankingsBlock(rankings(ones), {"other": rankings(others)}), model="other", **parameters)


def test_overlap_of_two_programs():
    """300 pairs of lists: extrapolated by the package, of any two lengths; all forms by the script, of one length, as
    it scales agreement by the lengths where they differ.
    """
    rng = np.random.default_rng(4)
    ones, others = ([rng.permutation(25)[:size].tolist() for size in rng.integers(1, 20, 300)] for _ in range(2))
    theirs = PROGRAMS("package_rbo", ones, others, 0.9)
    assert_within(RBO, "rbo(model=other)", overlap(ones, others), theirs)

    level = [rng.permutation(25)[: len(one)].tolist() for one in ones]
    theirs = np.transpose(PROGRAMS("script_rbo", ones, level, 0.8))
    for form, values in zip(("minimum", "residual", "extrapolated"), theirs, strict=True):
        assert_within(RBO_SCRIPT, "rbo(model=other)", overlap(ones, level, p=0.8, form=form), values)


def recommended(seed: int, n_unknown: int = 0) -> PlainCatalogue:
    rng = np.random.default_rng(seed)
    consumed = [tuple((1 + rng.permutation(N_DOCUMENTS - 1 - n_unknown)[:10]).tolist()) for _ in range(30)]
    judged = [rng.permutation(N_DOCUMENTS)[:12].tolist() for _ in range(30)]
    return PlainCatalogue(
        lists=tuple(tuple(rng.permutation(N_DOCUMENTS)[:8].tolist()) for _ in range(30)),
        n_documents=N_DOCUMENTS,
        consumed=(*consumed, (0,)),
        grades=tuple(
            {document: float(rng.integers(not place, 4)) for place, document in enumerate(own)} for own in judged
        ),
        categories=tuple(tuple(rng.permutation(4)[: rng.integers(1, 3)].tolist()) for _ in range(N_DOCUMENTS)),
        vectors=((),) * N_DOCUMENTS,
    )


def judged(found: PlainCatalogue) -> JudgedBlock:
    pairs = zip(found.lists, found.grades, strict=True)
    return plain_block(
        [
            ranked(*map(grades.get, own), missed=[grades[document] for document in grades if document not in own])
            for own, grades in pairs
        ]
    )


def assert_scores(
    tool: str,
    found: PlainCatalogue,
    k: int,
    theirs: dict[str, list[float]],
    names: dict[str, str],
    within: float = 1e-9,
) -> None:
    assert theirs.keys() == names.keys()
    for name, values in theirs.items():
        measure = Measure.parse(f"{names[name]}@{k}")
        block = recommended_block(found) if measure.metric.input == "catalogue" else judged(found)
        assert_within(
            tool, str(measure), measure.metric.function(block, **measure.arguments(max_grade=3)), values, within
        )


def test_elliot():
    for seed in SEEDS:
        found, k = recommended(seed, n_unknown=3), CUTOFFS[seed % 2]
        theirs = PROGRAMS("elliot", [*OF_ELLIOT], found.lists, found.grades, found.consumed, k)

        assert_scores(ELLIOT, found, k, theirs, OF_ELLIOT)


def test_user_coverage_of_elliot():
    rng = np.random.default_rng(5)
    sets = [[[1] * int(size) for size in rng.integers(0, 3, 5)] for _ in range(300)]

    ours = [user_coverage(plain_block([ranked(*own) for own in lists])).sum() for lists in sets]
    assert_within(ELLIOT, "user_coverage", ours, PROGRAMS("elliot_user_coverage", sets))


def test_warprec():
    for seed in SEEDS:
        found, k = recommended(100 + seed), CUTOFFS[seed % 2]
        times = [found.times.get(document, 0) for document in range(N_DOCUMENTS)]
        theirs = PROGRAMS("warprec", [*OF_WARPREC], found.lists, found.grades, times, len(found.consumed), k)

        assert min(times) > 0
        assert_scores(WARPREC, found, k, theirs, OF_WARPREC, 2e-6)


def test_lenskit():
    for seed in SEEDS:
        found, k, half_life = recommended(200 + seed), CUTOFFS[seed % 2], 2.0 + seed
        theirs = PROGRAMS("lenskit", [*OF_LENSKIT], found.lists, found.grades, k, half_life)

        own = {"cg": "cg", "rankscore": f"rankscore(half_life={half_life:g})"}
        assert_scores(LENSKIT, found, k, theirs, OF_LENSKIT | own)


def labelled(seed: int) -> tuple[list[list[int]], list[list[int]], RatingsBlock]:
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(N_DOCUMENTS).tolist() for _ in range(100)]
    relevant = [rng.permutation(N_DOCUMENTS)[: rng.integers(1, 12)].tolist() for _ in lists]
    labels = [[float(document in own) for document in found] for found, own in zip(lists, relevant, strict=True)]
    return lists, relevant, ratings_block(labels, [list(range(N_DOCUMENTS, 0, -1))] * len(lists))


@pytest.mark.parametrize("k", [1, 3, 10])
def test_limited_area_of_implicit(k):
    lists, relevant, block = labelled(k)

    assert_within(IMPLICIT, f"lauc@{k}", lauc(block, k=k), PROGRAMS("limited_auc", lists, relevant, N_DOCUMENTS, k))


@pytest.mark.parametrize("k", [1, 3, 10])
def test_areas_of_warprec_count_one_negative_too_many(k):
    """GAUC takes 1 - negatives above / (N + 1) for each positive, which is (N · area + 1) / (N + 1) of our area; LAUC
    adds up those of the top k alone and divides by min(P, k).
    """
    lists, relevant, block = labelled(100 + k)
    judged = [dict.fromkeys(own, 1.0) for own in relevant]
    theirs = PROGRAMS("warprec", ["GAUC", "LAUC"], lists, judged, [1] * N_DOCUMENTS, len(lists), k)

    positive = np.array([*map(len, relevant)])
    n_levels = N_DOCUMENTS - positive + 1
    assert_within(WARPREC, "auc", ((n_levels - 1) * auc(block) + 1) / n_levels, theirs["GAUC"], 1e-6)
    gains = block.ratings * (1 - (1 - block.ratings).cumsum(axis=0) / n_levels)
    np.testing.assert_allclose(gains[:k].sum(axis=0) / np.minimum(positive, k), theirs["LAUC"], rtol=0, atol=1e-6)


def test_calibration_of_a_notebook():
    for seed in SEEDS:
        found = recommended(300 + seed)
        lists, consumed = [own[:5] for own in found.lists], found.consumed[: len(found.lists)]
        theirs = np.multiply(PROGRAMS("miscalibration", lists, consumed, found.categories), log(2))

        ours = calibration(recommended_block(found), feature="category", k=5)
        assert_within(NOTEBOOK, "calibration(feature=category)", ours, theirs)


def test_calibration_by_the_distance_of_scipy():
    for seed in SEEDS:
        found = recommended(400 + seed)
        shares = np.zeros((N_DOCUMENTS, 4))
        for document, categories in enumerate(found.categories):
            shares[document, categories] = 1 / len(categories)
        before, now = (
            [shares[list(own)].mean(axis=0) for own in lists]
            for lists in (found.consumed[: len(found.lists)], found.lists)
        )

        ours = calibration(recommended_block(found), feature="category", divergence="js")
        assert_within(SCIPY, "calibration(feature=category)", ours, jensenshannon(before, now, axis=1) ** 2)
