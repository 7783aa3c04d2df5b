"""RecBole 1.2's metrics of recommended lists against ours, and five documents for each difference in definition.

RecBole's classes take a matrix of items, a row per user and all rows equally long, the number of items, and a count of
each item's interactions in training. What they gave is in `tests/golden/tools/recbole.json`.
"""

from collections.abc import Iterable
from math import log

import numpy as np
import numpy.typing as npt
import pytest

from rankledger.metrics.catalogue import CatalogueBlock, entropy, gini, item_coverage
from rankledger.metrics.recommendation import popularity, tail_share
from tests.agreement.cases import Figures, assert_agree
from tests.agreement.recorded_tool import RECBOLE

TOOL = "RecBole 1.2.1"

CUTOFFS = (1, 2, 5, 10)
RANKS = range(1, 11)

Items = npt.NDArray[np.int64]


def block(items: Items, n_items: int, counts: npt.ArrayLike) -> CatalogueBlock:
    codes = np.ascontiguousarray(items.T, dtype=np.int32)
    return CatalogueBlock(codes, n_items, popularity=np.asarray(counts, dtype=np.float64), n_consumers=100)


def by_rank(metric: str, columns: Iterable[npt.ArrayLike]) -> Figures:
    rows = np.transpose([*columns]).tolist()
    return {
        str(user): {f"{metric}@{k}": value for k, value in zip(RANKS, row, strict=True)}
        for user, row in enumerate(rows)
    }


def random_lists(rng: np.random.Generator, n_users: int) -> tuple[Items, int, Items]:
    n_items = int(rng.integers(12, 41))
    odds = rng.random(n_items) ** 3 + 1e-3
    items = np.array([rng.choice(n_items, size=10, replace=False, p=odds / odds.sum()) for _ in range(n_users)])
    return items, n_items, rng.integers(0, 30, size=n_items)


def test_figures_of_all_lists():
    rng = np.random.default_rng(41)
    found, expected = {}, {}
    for case in map(str, range(300)):
        lists = random_lists(rng, int(rng.integers(1, 30)))
        ours = block(*lists)
        theirs = RECBOLE("of_lists", ["itemcoverage", "giniindex", "averagepopularity"], CUTOFFS, *lists)
        names = {"item_coverage": "itemcoverage", "gini": "giniindex", "popularity": "averagepopularity"}
        expected[case] = {f"{name}@{k}": theirs[f"{names[name]}@{k}"] for name in names for k in CUTOFFS}
        functions = {"item_coverage": item_coverage, "gini": gini, "popularity": popularity}
        found[case] = {
            f"{name}@{k}": float(np.mean(function(ours, k=k))) for name, function in functions.items() for k in CUTOFFS
        }

    assert_agree(found, expected)


def test_entropy_of_all_lists():
    rng = np.random.default_rng(42)
    found, expected = {}, {}
    for case in map(str, range(300)):
        items, n_items, counts = random_lists(rng, int(rng.integers(1, 30)))
        theirs = RECBOLE("of_lists", ["shannonentropy"], CUTOFFS, items, n_items, counts)
        n_recommended = {k: len(np.unique(items[:, :k])) for k in CUTOFFS}
        found[case] = {f"entropy@{k}": entropy(block(items, n_items, counts), k=k) for k in CUTOFFS}
        expected[case] = {f"entropy@{k}": theirs[f"shannonentropy@{k}"] * n_recommended[k] / log(2) for k in CUTOFFS}

    assert_agree(found, expected)


def test_popularity_of_each_list():
    lists = random_lists(np.random.default_rng(43), 330)
    theirs = np.array(RECBOLE("popularity_of_each", *lists))

    assert_agree(
        by_rank("popularity", [popularity(block(*lists), k=k) for k in RANKS]), by_rank("popularity", theirs.T)
    )


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.8])
def test_tail_share_of_each_list(share):
    rng = np.random.default_rng(44)
    items, n_items, _ = random_lists(rng, 330)
    counts = rng.permutation(100)[:n_items] + 1
    theirs = np.array(RECBOLE("tail_of_each", items, n_items, counts, share))

    ours = [tail_share(block(items, n_items, counts), k=k, tail=share, of="documents") for k in RANKS]
    assert_agree(by_rank("tail_share", ours), by_rank("tail_share", theirs.T))


def test_entropy_is_not_divided_by_the_documents_recommended():
    """Lists 0 1 and 0 2: shares 1/2 1/4 1/4, 1.5 bits. RecBole: 1.5 ln 2 / 3, less the more documents are shown."""
    items = np.array([[0, 1], [0, 2]])
    theirs = RECBOLE("of_lists", ["shannonentropy"], [2], items, 3, [])

    assert entropy(block(items, 3, [])) == pytest.approx(1.5)
    assert theirs["shannonentropy@2"] == pytest.approx(1.5 * log(2) / 3)


def test_equally_popular_documents_share_the_tail():
    """Items 0 1 2 were consumed 2 1 1 times, a third of them is the tail: RecBole takes item 1 for it, for its number.

    Ours takes half of item 1 and half of item 2.
    """
    lists = np.array([[0], [1], [2]]), 3, [2, 1, 1]

    assert RECBOLE("tail_of_each", *lists, 0.34) == [[0], [1], [0]]
    assert tail_share(block(*lists), tail=0.34, of="documents").tolist() == [0, 0.5, 0.5]


def test_what_nobody_consumed_is_tail():
    """Items 0 1 were consumed 2 1 times, item 2 never: half of those consumed is the tail, item 1.

    RecBole counts none but consumed items, and says that a list of item 2 has nothing of the tail.
    """
    lists = np.array([[0], [1], [2]]), 3, [2, 1, 0]

    assert RECBOLE("tail_of_each", *lists, 0.5) == [[0], [1], [0]]
    assert tail_share(block(*lists), tail=0.5, of="documents").tolist() == [0, 1, 1]


def test_padding_is_no_document():
    """RecBole's number of items counts its padding, item 0: all of four items recommended cover four fifths of five.

    Likewise its Gini index is of one more item, that is recommended to nobody.
    """
    items = np.array([[1, 2], [3, 4]])
    theirs = RECBOLE("of_lists", ["itemcoverage", "giniindex"], [2], items, 5, [])
    ours = block(items - 1, 4, [])

    assert theirs["itemcoverage@2"] == pytest.approx(4 / 5)
    assert theirs["giniindex@2"] == pytest.approx(1 / 5)
    assert (item_coverage(ours), gini(ours)) == (1, 0)
