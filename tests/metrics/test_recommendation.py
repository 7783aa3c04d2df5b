"""Recommended lists beyond accuracy: worked by hand, at the edges, and against plain loops."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from rankledger.metrics.block import Floats
from rankledger.metrics.catalogue import CatalogueBlock, Sparse
from rankledger.metrics.recommendation import (
    calibration,
    diversity,
    efd,
    epc,
    novelty,
    popularity,
    serendipity,
    tail_share,
)
from tests.metrics.variants import CATALOGUE_VARIANTS, parsed
from tests.oracle import CATALOGUE_ORACLE
from tests.support.blocks import PlainCatalogue, catalogue_block, random_catalogue, recommended_block, sparse
from tests.support.each import each

LN2, NAN = math.log(2), math.nan

# Eight queries consumed something: all of them document 0, four document 1, one document 2, none document 3.
KNOWN = {"popularity": np.array([8.0, 4.0, 1.0, 0.0]), "n_consumers": 8}


def recommended(*lists: list[int], n_documents: int = 4, **known) -> CatalogueBlock:
    return catalogue_block(lists, n_documents, **(KNOWN | known))


def of_categories(*categories: list[int]) -> dict[str, Sparse]:
    return {"genre": sparse([dict.fromkeys(found, 1.0) for found in categories])}


def consumed(*documents: list[int]) -> Sparse:
    return sparse([dict.fromkeys(found, 1.0) for found in documents])


EACH = recommended([0], [1], [2], [3])
ALIKE = recommended([0], [1, 2], [3], popularity=np.ones(4))
GENRES = of_categories([0], [0, 1], [1], [])  # a, a b, b and none
VECTORS = {"embedding": sparse([{0: 1.0, 1: 0.0}, {0: 0.0, 1: 2.0}, {0: -3.0, 1: 0.0}])}
JUDGED = recommended([2, 1, 0], [3, 2], grades=np.array([[1.0, 2.0], [1.0, 0.0], [3.0, np.nan]]))
DISCOVERED = recommended([0, 1, 2], [3, 2, 1], [], grades=np.array([[0, 2, NAN], [1, NAN, NAN], [1, 0, NAN]]))
ONE, TWO = 1 / math.log2(3), 1 / 2  # the discounts of ranks 2 and 3
UNKNOWN = {"popularity": np.zeros(4), "n_consumers": 0}
HAND = [  # metric, lists, options, expected
    # Of 8 queries 8 4 1 know documents 0 1 2: 0, 1 and 3 bits; what nobody consumed counts as document 2 does.
    (novelty, recommended([0, 1, 2], [1, 2], [2], [3], [99]), {}, [4 / 3, 2, 3, 3, 3]),
    (novelty, recommended([0], [2]), {"share": "interactions"}, [math.log2(13 / 8), math.log2(13)]),
    *((novelty, recommended([0, 1], [], **UNKNOWN), {"share": of}, [NAN, NAN]) for of in ("queries", "interactions")),
    (popularity, recommended([0, 1], [2, 3], [9]), {}, [(8 + 4) / 2, (1 + 0) / 2, 0]),
    (popularity, recommended([0, 1], [2, 3], [9]), {"k": 1}, [8, 1, 0]),
    # Of 13 interactions the head 0 leaves 5, the head 0 1 leaves 1, the head 0 1 2 none; document 3 is always tail.
    *((tail_share, EACH, {"tail": tail}, [0, 0, 0, 1]) for tail in (0.05,)),
    *((tail_share, EACH, {"tail": tail}, [0, 0, 1, 1]) for tail in (1 / 13, 0.2)),
    *((tail_share, EACH, {"tail": tail}, [0, 1, 1, 1]) for tail in (5 / 13, 0.9)),
    # Of three documents consumed the tail is 0.9, 2.1 and 2.97 rounded down, but at least one: 2; 1 2; 1 2.
    (tail_share, EACH, {"tail": 0.3, "of": "documents"}, [0, 0, 1, 1]),
    *((tail_share, EACH, {"tail": tail, "of": "documents"}, [0, 1, 1, 1]) for tail in (0.7, 0.99)),
    # Of four documents consumed once the head needs three to leave a quarter: each is tail to a quarter.
    *((tail_share, ALIKE, {"tail": 0.25, "of": of}, [0.25] * 3) for of in ("interactions", "documents")),
    *((tail_share, recommended([0, 1], **UNKNOWN), {"of": of}, [1]) for of in ("interactions", "documents")),
    # Popularity ranks 1 2 3 of documents 0 1 2, and 5 of document 3. List 2 1 0: (3 - 1) / 4, 2 - 2, and 1 - 3 is 0.
    # List 3 2: (5 - 1) / 4 at rank 1; document 2 is not relevant.
    (serendipity, JUDGED, {}, [1 / 2 / 3, 1 / 2]),
    (serendipity, JUDGED, {"k": 1}, [1 / 2, 1]),
    (serendipity, JUDGED, {"k": 1, "rel": 2}, [0, 1]),
    # Popularity 5 5 1: documents 0 and 1 are first, document 2 second, (2 - 1) / 3 ahead.
    (
        serendipity,
        recommended([1], [2], n_documents=3, popularity=np.array([5.0, 5.0, 1.0]), grades=np.ones((1, 2))),
        {},
        [0, 1 / 3],
    ),
    (serendipity, recommended([], grades=np.full((1, 1), NAN)), {}, [0]),
    (serendipity, recommended([0], n_documents=0, grades=np.ones((1, 1))), {}, [NAN]),
    # Cosines 1/√2, 0 and 1/√2 of the pairs 0 1, 0 2, 1 2.
    (
        diversity,
        recommended([0, 1, 2], [0, 2], [1, 0], features=GENRES),
        {"feature": "genre"},
        [1 - math.sqrt(2) / 3, 1, 1 - 1 / math.sqrt(2)],
    ),
    (diversity, recommended([0, 1, 2], features=GENRES), {"feature": "genre", "k": 2}, [1 - 1 / math.sqrt(2)]),
    # Alike to the last bit, however many.
    (diversity, recommended([0, 1], features=of_categories([0, 1], [0, 1])), {"feature": "genre"}, [0]),
    (
        diversity,
        recommended([0, 1, 2], n_documents=3, features=of_categories(*[[0, 1, 2]] * 3)),
        {"feature": "genre"},
        [0],
    ),
    # (1, 0), (0, 2) and (-3, 0) are at 1, 2 and 1 of each other, however long they are.
    (
        diversity,
        recommended([0, 1], [0, 2], [0, 1, 2], n_documents=3, features=VECTORS),
        {"feature": "embedding"},
        [1, 2, 4 / 3],
    ),
    # Document 3 has no category, document 9 is in no catalogue.
    (diversity, recommended([0, 3, 9, 2], [3, 9], [0, 3], features=GENRES), {"feature": "genre"}, [1, NAN, NAN]),
    # Consumed a a b, recommended b: p = (2/3, 1/3), q = (0, 1), mixed 0.01 p into it; that is 2.706139.
    (
        calibration,
        recommended([2], history=consumed([0, 1, 2]), features=of_categories([0], [0], [1], [])),
        {"feature": "genre"},
        [2 / 3 * math.log(100) + math.log((1 / 3) / (0.99 + 0.01 / 3)) / 3],
    ),
    # Apart, equal, and a | a b.
    (
        calibration,
        recommended([2], [1], [1, 2], history=consumed([0], [0], [0]), features=of_categories([0], [0], [1], [])),
        {"feature": "genre", "divergence": "js"},
        [LN2, 0, (math.log(1 / 0.75) + math.log(0.5 / 0.75) / 2 + math.log(0.5 / 0.25) / 2) / 2],
    ),
    # Consumed a b, recommended a and b: (1/2, 1/2) both times.
    (calibration, recommended([0, 2], history=consumed([1]), features=GENRES), {"feature": "genre"}, [0]),
    # Nothing consumed; consumed without a category or outside the catalogue; nothing with a category recommended.
    *(
        (
            calibration,
            recommended([0], [0], [3, 7], history=consumed([], [3, 7], [0]), features=GENRES),
            {"feature": "genre", "divergence": divergence},
            [NAN, NAN, NAN],
        )
        for divergence in ("kl", "js")
    ),
    # Of 8 queries 4 know document 1 and 1 knows document 2, of 13 interactions; document 3 tells as much as 2.
    (epc, DISCOVERED, {}, [(ONE / 2 + TWO * 7 / 8) / (1 + ONE + TWO), 1 / (1 + ONE + TWO), NAN]),
    (epc, DISCOVERED, {"rel": 2}, [0, 1 / (1 + ONE + TWO), NAN]),
    (
        efd,
        DISCOVERED,
        {},
        [(ONE * math.log2(13 / 4) + TWO * math.log2(13)) / (1 + ONE + TWO), math.log2(13) / (1 + ONE + TWO), NAN],
    ),
    *((metric, recommended([0], **UNKNOWN, grades=np.ones((1, 1))), {}, [NAN]) for metric in (efd, epc)),
]


@pytest.mark.parametrize(("metric", "block", "options", "expected"), HAND)
def test_hand_worked_lists(metric, block, options, expected):
    np.testing.assert_allclose(metric(block, **options), expected, rtol=1e-12, atol=1e-15)


def test_a_share_of_documents_is_not_short_of_a_whole_number():
    """0.29 · 100 is 28.999999999999996 in doubles, and 29 documents."""
    lists = [[document] for document in range(100)]
    block = catalogue_block(lists, 100, popularity=np.arange(100.0, 0.0, -1.0), n_consumers=100)

    assert tail_share(block, tail=0.29, of="documents").sum() == 29


@pytest.mark.parametrize(("of", "tail", "n_head"), [("interactions", 0.3, 3), ("documents", 0.4, 3)])
def test_the_tail_is_the_mean_over_all_orders_of_equally_popular_documents(of, tail, n_head):
    """Documents of popularity 3 2 2 2 1 in each of the six orders of the middle ones: 3 of 10 or 5 · 0.4 are left."""
    block = recommended([1], [2], [3], n_documents=5, popularity=np.array([3.0, 2.0, 2.0, 2.0, 1.0]))
    in_tail = [
        [float(document not in [0, *middle, 4][:n_head]) for document in (1, 2, 3)]
        for middle in itertools.permutations([1, 2, 3])
    ]

    np.testing.assert_allclose(tail_share(block, tail=tail, of=of), np.mean(in_tail, axis=0))


@pytest.mark.parametrize(
    ("metric", "block", "options", "message"),
    [
        *((tail_share, EACH, {"tail": tail}, f"tail must be .* found {tail:g}") for tail in (0, 1, -0.1, 1.5)),
        *(
            (
                calibration,
                recommended([0], history=consumed([0])),
                {"feature": "genre", "alpha": alpha},
                f"alpha must be above 0 and below 1, found {alpha:g}",
            )
            for alpha in (0, 1, -0.5)
        ),
        (
            calibration,
            recommended([0], n_documents=1, history=consumed([0]), features={"v": sparse([{0: -1.0}])}),
            {"feature": "v"},
            "it needs categories, found vectors with negative numbers",
        ),
    ],
)
def test_what_no_list_can_have_is_refused(metric, block, options, message):
    with pytest.raises(ValueError, match=message):
        metric(block, **options)


# All of them

OF_EACH_LIST = [text for text in CATALOGUE_VARIANTS if parsed(text).metric.per == "query"]
EVERY_VARIANT = each("text", OF_EACH_LIST)


def scores(text: str, block: CatalogueBlock) -> Floats:
    measure = parsed(text)
    return measure.metric.function(block, **measure.arguments(max_grade=1))


@pytest.fixture(scope="module")
def found() -> list[PlainCatalogue]:
    rng = np.random.default_rng(10)
    return [random_catalogue(rng) for _ in range(30)]


@pytest.fixture(scope="module")
def blocks(found: list[PlainCatalogue]) -> list[CatalogueBlock]:
    return [recommended_block(plain) for plain in found]


@EVERY_VARIANT
def test_scores_agree_with_the_oracle(text, found, blocks):
    measure = parsed(text)
    low, high = measure.metric.range
    for plain, block in zip(found, blocks, strict=True):
        values = scores(text, block)
        expected = [
            CATALOGUE_ORACLE[measure.metric.name](plain, query, **measure.arguments(max_grade=1))
            for query in range(len(plain.lists))
        ]

        assert values.dtype == np.float64
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
        assert np.all(np.isnan(values) | ((values >= low) & (values <= high)))


@EVERY_VARIANT
@pytest.mark.parametrize("cells", [1, 30])
def test_parts_change_no_bit(text, cells, blocks):
    for block in blocks[:10]:
        parts = list(block.parts(_cells=cells))

        assert len(parts) > 1
        np.testing.assert_array_equal(np.concatenate([scores(text, part) for part in parts]), scores(text, block))


@EVERY_VARIANT
def test_deeper_lists_elsewhere_change_no_bit(text, blocks):
    block = blocks[0]
    deeper = dataclasses.replace(
        block,
        codes=np.concatenate([block.codes, np.full((20, block.codes.shape[1]), -1, dtype=np.int32)]),
        grades=np.concatenate([block.grades, np.full((20, block.codes.shape[1]), np.nan)]),
    )

    np.testing.assert_array_equal(scores(text, deeper), scores(text, block))


@EVERY_VARIANT
def test_an_empty_list_is_undefined_or_useless(text, blocks):
    block = dataclasses.replace(blocks[0], codes=np.full((3, 12), -1, dtype=np.int32))
    block = dataclasses.replace(block, grades=np.full((3, 12), np.nan))

    values = scores(text, block)
    if parsed(text).metric.name == "ee_l":
        assert np.nanmax(values) > 0  # all that was due is missing
    elif parsed(text).metric.name in ("ee_d", "ee_r"):
        assert np.nanmax(values) == 0
    else:
        np.testing.assert_array_equal(values, np.full(12, 0.0 if "serendipity" in text else np.nan))


@each("text", [text for text in OF_EACH_LIST if parsed(text).k is None and not text.startswith("ee_")])
def test_a_cutoff_is_a_shorter_list(text, found):
    measure = parsed(text)
    for plain in found[:10]:
        cut = dataclasses.replace(plain, lists=tuple(column[:4] for column in plain.lists))
        values = measure.metric.function(recommended_block(plain), **measure.arguments(1) | {"k": 4})

        np.testing.assert_array_equal(values, scores(text, recommended_block(cut)))


@EVERY_VARIANT
def test_what_is_not_known_is_said(text):
    with pytest.raises(ValueError, match="it needs"):
        scores(text, catalogue_block([[0]], 1))


@pytest.mark.parametrize("k", [0, -1])
@each("text", [text for text in OF_EACH_LIST if parsed(text).k == 3])
def test_a_cutoff_below_1_is_refused(text, k, found):
    measure = parsed(text)
    with pytest.raises(ValueError, match=f"a cutoff counts ranks from 1, found {k}"):
        measure.metric.function(recommended_block(found[0]), **measure.arguments(1) | {"k": k})


def test_a_less_popular_document_is_never_less_novel(found):
    for plain in found:
        block = recommended_block(plain)
        order = np.argsort(block.popularity, kind="stable").astype(np.int32)
        each = dataclasses.replace(block, codes=order[np.newaxis], grades=None, history=None)

        assert (np.diff(novelty(each)) <= 0).all()
        assert (np.diff(tail_share(each)) <= 0).all()
        assert (np.diff(popularity(each)) >= 0).all()


def test_a_list_like_the_history_is_calibrated(found):
    for plain in found[:10]:
        lists = tuple(tuple(dict.fromkeys(history)) for history in plain.consumed[: len(plain.lists)])
        block = recommended_block(dataclasses.replace(plain, lists=lists))
        for divergence in ("kl", "js"):
            values = calibration(block, feature="category", divergence=divergence)
            assert (np.isnan(values) | (values < 1e-12)).all()


@pytest.fixture(scope="module")
def others() -> list[CatalogueBlock]:
    return [recommended_block(random_catalogue(np.random.default_rng(seed))) for seed in range(50)]


@each("text", [text for text in OF_EACH_LIST if "feature" in text])
def test_few_and_many_columns_give_the_same_bits(text, others):
    for block in others:
        features = {
            name: Sparse(feature.starts, feature.columns * 100_000, feature.values)
            for name, feature in block.features.items()
        }
        np.testing.assert_array_equal(scores(text, dataclasses.replace(block, features=features)), scores(text, block))


@pytest.mark.parametrize("scale", [1e200, 1e-200, 2.0**-1060])
def test_the_length_of_vectors_does_not_matter(scale):
    """Vectors (1 0), (1 1) and (0 1): cosines 1/√2, 0 and 1/√2, even where squares would be infinite or vanish."""
    vectors = [{0: scale, 1: 0.0}, {0: 1.0, 1: 1.0}, {0: 0.0, 1: scale}]
    block = catalogue_block([[0, 1, 2]], 3, features={"vector": sparse(vectors)})

    assert diversity(block, feature="vector") == pytest.approx([1 - np.sqrt(2) / 3])
