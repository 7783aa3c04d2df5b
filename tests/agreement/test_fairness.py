"""Exposure and parity of groups against the programs of TREC Fair Ranking, expeval, FairRankTune, Elliot and fairlearn.

What they gave is in `tests/golden/tools/fairness.json`.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from rankledger.metrics.catalogue import CatalogueBlock
from rankledger.metrics.exposure import awrf, ee_d, ee_l, ee_r, exposure_ratio, pop_reo, pop_rsp, reo, rsp
from tests.agreement.cases import assert_within
from tests.agreement.recorded_tool import FAIRNESS
from tests.support.blocks import PlainCatalogue, recommended_block

N_GROUPS = 4
EXPOSURES = ("ee_l(feature=category)", "ee_d(feature=category)", "ee_r(feature=category)")
TREC, EXPEVAL, ELLIOT = "TREC 2022 Fair Ranking", "expeval ba07124", "Elliot 0.3.1"
FAIRRANKTUNE, FAIRLEARN = "FairRankTune 9dd1550", "fairlearn 0.15.0"


@dataclass(frozen=True)
class Case:
    plain: PlainCatalogue

    @property
    def block(self) -> CatalogueBlock:
        return recommended_block(self.plain)

    @property
    def lists(self) -> list[list[int]]:
        return [*map(list, self.plain.lists)]

    @property
    def judged(self) -> list[dict[str, float]]:
        return [{str(document): grade for document, grade in grades.items()} for grades in self.plain.grades]

    @property
    def relevant(self) -> list[list[int]]:
        return [[document for document, grade in grades.items() if grade >= 1] for grades in self.plain.grades]

    @property
    def group(self) -> list[int]:
        return [groups[0] for groups in self.plain.categories]

    @property
    def shares(self) -> np.ndarray:
        """(D, G): the documents' shares by group."""
        found = np.zeros((self.plain.n_documents, N_GROUPS))
        for document, groups in enumerate(self.plain.categories):
            found[document, groups] = 1 / len(groups)
        return found

    @property
    def targets(self) -> np.ndarray:
        """(Q, G): the mean shares of each query's relevant documents."""
        return np.array([self.shares[documents].mean(axis=0) for documents in self.relevant])


def case(
    seed: int, n_queries: int = 30, *, most_groups: int = 1, length: int = 8, n_relevant: int = 3, n_consumed: int = 0
) -> Case:
    rng = np.random.default_rng(seed)
    n_documents = int(rng.integers(20, 40))
    first = rng.permutation(np.arange(n_documents) % N_GROUPS)  # no group is empty
    further = [rng.permutation(N_GROUPS)[: rng.integers(0, most_groups)] for _ in range(n_documents)]
    popularity = 10 * rng.permutation(n_documents)  # no two alike, whatever these queries consumed
    drawn = [rng.permutation(n_documents).tolist() for _ in range(n_queries)]
    judged = [rng.permutation(n_documents)[:12].tolist() for _ in range(n_queries)]
    own = [
        tuple([document for document in order[length:] if document not in documents][:n_consumed])
        for order, documents in zip(drawn, judged, strict=True)
    ]
    others = [tuple(np.flatnonzero(popularity > consumer).tolist()) for consumer in range(10 * n_documents)]
    grades = [
        {document: float(rng.integers(1 if place < n_relevant else 0, 4)) for place, document in enumerate(documents)}
        for documents in judged
    ]
    return Case(
        PlainCatalogue(
            lists=tuple(tuple(order[:length]) for order in drawn),
            n_documents=n_documents,
            consumed=(*own, *others),
            grades=tuple(grades),
            categories=tuple(tuple({int(one), *map(int, more)}) for one, more in zip(first, further, strict=True)),
            vectors=((),) * n_documents,
        )
    )


def test_awrf_of_trec():
    for seed in range(10):
        found = case(seed, most_groups=3)
        theirs = FAIRNESS("trec_awrf", found.lists, found.shares, found.targets)

        assert_within(TREC, "awrf(feature=category)", awrf(found.block, feature="category"), np.array(theirs), 1e-6)


@pytest.mark.parametrize("documents", ["relevant", "all"])
def test_expected_exposure_of_trec(documents):
    """300 lists of five documents, to 1e-5 in single precision; five or more are relevant, as in each topic there.

    Its target is a distribution of all attention that there is, which that many relevant documents can fill.
    """
    for seed in range(10):
        found = case(100 + seed, most_groups=3, length=5, n_relevant=5)
        arguments = (found.lists, found.relevant, found.shares, found.targets, documents == "relevant")
        theirs = np.array(FAIRNESS("trec_ee", *arguments))

        of = {"feature": "category", "k": 5, "attention": "jarvelin", "documents": documents}
        ours = [ee_l(found.block, gain="binary", **of), ee_d(found.block, **of), ee_r(found.block, gain="binary", **of)]
        if documents == "all":  # the program gives no exposure to a list without a relevant document
            hit = np.array([bool({*shown} & {*own}) for shown, own in zip(found.lists, found.relevant, strict=True)])
            ours, theirs = np.array(ours)[:, hit], theirs[hit]
        for name, own, other in zip(EXPOSURES, ours, np.transpose(theirs), strict=True):
            assert_within(TREC, name, own, other, 1e-5)


@pytest.mark.parametrize("p", [0.5, 0.9])
@pytest.mark.parametrize("by_group", [True, False], ids=["groups", "documents"])
def test_expected_exposure_of_its_authors(by_group, p):
    for seed in range(10):
        found = case(200 + seed)
        groups = [[own] for own in found.group]
        theirs = FAIRNESS("expected_exposure", found.lists, found.judged, groups, p, by_group)

        plain = found.plain if by_group else alone(found.plain)
        of = {"feature": "category", "p": p, "documents": "relevant" if by_group else "all"}
        block = recommended_block(plain)
        ours = [ee_l(block, **of), ee_d(block, **of), ee_r(block, **of)]
        for name, own, other in zip(EXPOSURES, ours, np.transpose(theirs), strict=True):
            assert_within(EXPEVAL, name, own, other)


def alone(plain: PlainCatalogue) -> PlainCatalogue:
    categories = tuple((document,) for document in range(plain.n_documents))
    return replace(plain, categories=categories)


@pytest.mark.parametrize("by_relevance", [False, True])
def test_exposure_ratio_of_fairranktune(by_relevance):
    for seed in range(300):
        found = case(300 + seed, 3, length=40)
        theirs = FAIRNESS("fairranktune_exposure", found.lists, found.relevant, found.group, by_relevance)

        ours = exposure_ratio(found.block, feature="category", per="relevant" if by_relevance else "document")
        assert_within(FAIRRANKTUNE, "exposure_ratio(feature=category)", ours, theirs)


def test_parity_of_elliot():
    for seed in range(300):
        found = case(1000 + seed, 8, n_consumed=3)
        block = found.block
        head = np.flatnonzero(pop_tail(found) == 0).tolist()
        for k in (3, 8):
            consumed = [*map(list, found.plain.consumed[:8])]
            theirs = FAIRNESS("elliot", found.lists, found.relevant, consumed, found.group, head, k)

            assert_within(ELLIOT, "reo(feature=category)", reo(block, feature="category", k=k), theirs["reo"])
            assert_within(ELLIOT, "rsp(feature=category)", rsp(block, feature="category", k=k), theirs["rsp"])
            assert_within(ELLIOT, "pop_reo", pop_reo(block, k=k), theirs["pop_reo"])
            assert_within(ELLIOT, "pop_rsp", pop_rsp(block, k=k), theirs["pop_rsp"])


def pop_tail(found: Case) -> np.ndarray:
    """(D,): 1 for each document of the tail: the fewest most popular ones with 80% of the interactions are the head."""
    times = np.array([found.plain.times.get(document, 0) for document in range(found.plain.n_documents)])
    order = np.argsort(-times)
    before = np.concatenate([[0], np.cumsum(times[order])[:-1]])
    tail = np.empty(len(times), dtype=int)
    tail[order] = before >= 0.8 * times.sum()
    return tail


def test_rates_of_fairlearn():
    for seed in range(300):
        found = case(2000 + seed, 4)
        theirs = FAIRNESS("fairlearn_rates", found.lists, found.relevant, found.group)

        block, of = found.block, {"feature": "category"}
        ratio = exposure_ratio(block, **of, attention="uniform")
        assert_within(FAIRLEARN, "reo(feature=category)", reo(block, **of), theirs["true_positive_rate"])
        assert_within(FAIRLEARN, "rsp(feature=category)", rsp(block, **of), theirs["selection_rate"])
        assert_within(FAIRLEARN, "exposure_ratio(feature=category)", ratio, theirs["ratio"])
