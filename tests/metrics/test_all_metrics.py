"""What holds for every metric: agreement with the loops, ranges, bits, promotions, relations."""

import itertools
import typing
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from rankledger.metrics.agreement import ap_corr, compat, kendall_distance, kendall_tau
from rankledger.metrics.block import MANY_ROWS, Floats, JudgedBlock
from rankledger.metrics.gain import ncu, o_measure, q_measure
from rankledger.metrics.ranking import ap, ap11, avg_rp, rr
from rankledger.metrics.reading import insq, inst, rbp, rbp_resid
from rankledger.metrics.registry import METRICS
from rankledger.metrics.sets import fn, fp, tn, tp
from tests.metrics.variants import JUDGED_VARIANTS, VARIANTS, over, parsed
from tests.oracle import (
    CATALOGUE_ORACLE,
    CONFIDENCE_ORACLE,
    LOGS_ORACLE,
    ORACLE,
    OUTPUTS_ORACLE,
    RANKINGS_ORACLE,
    RATINGS_ORACLE,
)
from tests.support.blocks import (
    ARRAYS,
    PlainQuery,
    columns,
    deeper_block,
    plain_block,
    random_ratings,
    ranked,
    ratings_block,
)
from tests.support.each import each

GREATEST = 4.0


EVERY_JUDGED_VARIANT = over(JUDGED_VARIANTS)
CUT_WITHIN = over([text for text in JUDGED_VARIANTS if not text.endswith(("@1", "@1000"))])  # or nowhere


def scores(text: str, block: JudgedBlock) -> Floats:
    measure = parsed(text)
    return measure.metric.function(block, **measure.arguments(max_grade=GREATEST))


def without(*names: str) -> list[str]:
    return [text for text in JUDGED_VARIANTS if parsed(text).metric.name not in names]


@pytest.fixture(scope="module")
def queries_of(
    graded_queries: list[PlainQuery], probability_queries: list[PlainQuery]
) -> Callable[[str], list[PlainQuery]]:
    return lambda text: probability_queries if "probability" in text else graded_queries


@pytest.fixture(scope="module")
def block_of(graded_block: JudgedBlock, probability_block: JudgedBlock) -> Callable[[str], JudgedBlock]:
    return lambda text: probability_block if "probability" in text else graded_block


@pytest.fixture(scope="module")
def scored(block_of: Callable[[str], JudgedBlock]) -> Callable[[str], Floats]:
    @cache
    def of(text: str) -> Floats:
        values = scores(text, block_of(text))
        values.flags.writeable = False
        return values

    return of


Make = Callable[[list[PlainQuery]], typing.Any]


@pytest.fixture(scope="module")
def made(graded_queries: list[PlainQuery], probability_queries: list[PlainQuery]) -> Callable[[str, Make], typing.Any]:
    @cache
    def of(are_probabilities: bool, make: Make) -> typing.Any:
        return make(probability_queries if are_probabilities else graded_queries)

    return lambda text, make: of("probability" in text, make)


@each("name", [*METRICS])
def test_every_metric_has_an_oracle(name):
    oracles = {"judged": ORACLE, "catalogue": CATALOGUE_ORACLE, "ratings": RATINGS_ORACLE}
    oracles |= {"rankings": RANKINGS_ORACLE, "outputs": OUTPUTS_ORACLE, "logs": LOGS_ORACLE}
    oracles |= {"confidence": CONFIDENCE_ORACLE}

    assert name in oracles[METRICS[name].input]


@each("name", [*METRICS])
def test_every_variant_is_exercised(name):
    metric = METRICS[name]
    measures = [parsed(text) for text in VARIANTS[name]]
    given = {pair for measure in measures for pair in measure.given}
    words = {
        (parameter.name, word)
        for parameter in metric.parameters.values()
        if typing.get_origin(parameter.type) is typing.Literal
        for word in typing.get_args(parameter.type)
    }

    assert {parameter for parameter, _ in given} == set(metric.parameters)
    assert words <= given
    assert {measure.k is not None for measure in measures} == {
        "refused": {False},
        "required": {True},
        "optional": {False, True},
    }[metric.cutoff]


@EVERY_JUDGED_VARIANT
def test_judged_metrics_agree_with_the_oracle(texts, queries_of, block_of):
    for text in texts:
        queries = queries_of(text)
        block = block_of(text)
        measure = parsed(text)
        arguments = measure.arguments(max_grade=GREATEST)
        expected = [ORACLE[measure.metric.name](query, **arguments) for query in queries]

        np.testing.assert_allclose(scores(text, block), expected, rtol=1e-12, atol=1e-12, equal_nan=True, err_msg=text)


@EVERY_JUDGED_VARIANT
def test_scores_are_one_float_per_query_within_the_range(texts, block_of, scored):
    for text in texts:
        block = block_of(text)
        least, greatest = parsed(text).metric.range
        values = scored(text)

        assert values.shape == block.query_ids.shape, text
        assert values.dtype == np.float64, text
        assert np.all(np.isnan(values) | ((values >= least) & (values <= greatest))), text


@CUT_WITHIN
def test_permuting_queries_permutes_scores(texts, queries_of, block_of, scored):
    for text in texts:
        queries = queries_of(text)
        block = block_of(text)
        order = np.random.default_rng(3).permutation(len(queries))

        np.testing.assert_array_equal(scores(text, columns(block, order)), scored(text)[order], err_msg=text)


def in_parts(queries: list[PlainQuery]) -> dict[int, list[JudgedBlock]]:
    block = plain_block(queries)
    return {w: [columns(block, range(start, start + w)) for start in range(0, 28, w)] for w in (1, 2, 7)}


@CUT_WITHIN
def test_neighbours_change_no_bit(texts, scored, made):
    for text in texts:
        expected = scored(text)[:28]
        for width, parts in made(text, in_parts).items():
            found = np.concatenate([scores(text, part) for part in parts])
            np.testing.assert_array_equal(found, expected, f"{text} in blocks of {width}")


def padded(queries: list[PlainQuery]) -> JudgedBlock:
    return plain_block(queries, padding=40)


def unpadded(queries: list[PlainQuery]) -> list[JudgedBlock]:
    return [plain_block([query]) for query in queries[:20]]


@CUT_WITHIN
def test_padding_changes_no_bit(texts, scored, made):
    for text in texts:
        expected = scored(text)

        np.testing.assert_array_equal(scores(text, made(text, padded)), expected, err_msg=text)
        alone = np.concatenate([scores(text, part) for part in made(text, unpadded)])
        np.testing.assert_array_equal(alone, expected[: len(alone)], err_msg=text)


def test_memory_layout_changes_no_bit(graded_block, probability_block):
    changed = []
    blocks = [
        (block, JudgedBlock(**{name: np.asfortranarray(getattr(block, name)) for name in ARRAYS}))
        for block in (graded_block, probability_block)
    ]
    for text in JUDGED_VARIANTS:
        block, laid_out = blocks["probability" in text]
        if not np.array_equal(scores(text, laid_out), scores(text, block), equal_nan=True):
            changed.append(text)

    assert changed == []


@CUT_WITHIN
def test_memory_maps_change_no_bit(texts, scored, mapped):
    for text in texts:
        values = scores(text, mapped["probability" in text])

        assert type(values) is np.ndarray, text
        np.testing.assert_array_equal(values, scored(text), err_msg=text)


@pytest.fixture(scope="module")
def mapped(
    graded_block: JudgedBlock, probability_block: JudgedBlock, tmp_path_factory: pytest.TempPathFactory
) -> dict[bool, JudgedBlock]:
    found = {}
    for are_probabilities, block in ((False, graded_block), (True, probability_block)):
        folder = tmp_path_factory.mktemp("mapped")
        parts = {}
        for name in ARRAYS:
            parts[name] = getattr(block, name)
            if name != "query_ids":
                np.save(folder / name, parts[name])
                parts[name] = np.load(folder / f"{name}.npy", mmap_mode="r")
        found[are_probabilities] = JudgedBlock(**parts)
    return found


COUNT_THE_LIST = (
    *("p", "f1", "f", "fp", "tn", "fallout", "judged", "user_coverage"),
    *("relative_p", "set_map", "utility", "num_ret", "unjudged", "rndcg", "rbp_resid"),
)


@over([text for text in without(*COUNT_THE_LIST) if text not in VARIANTS["compat"] or "@" in text])
def test_unjudged_documents_below_all_others_change_nothing(texts, scored, made):
    for text in texts:
        np.testing.assert_array_equal(scores(text, made(text, longer)), scored(text), err_msg=text)


def longer(queries: list[PlainQuery]) -> JudgedBlock:
    return plain_block([PlainQuery((*query.ranking, None, None), query.missed, query.n_documents) for query in queries])


@cache
def promotion(rel: float) -> Make:
    return lambda queries: tuple(map(plain_block, promotions(queries, rel)))


def promotions(queries: list[PlainQuery], rel: float) -> tuple[list[PlainQuery], list[PlainQuery]]:
    before, after = [], []
    for query in queries:
        for rank in range(1, min(len(query.ranking), 15)):
            above, below = query.ranking[rank - 1 : rank + 1]
            if below is not None and below >= rel and (above is None or above < below):
                ranking = (*query.ranking[: rank - 1], below, above, *query.ranking[rank + 1 :])
                before.append(query)
                after.append(PlainQuery(ranking, query.missed, query.n_documents))
    return before, after


def promotion_may_hurt(text: str) -> bool:
    measure = parsed(text)
    over_hits = measure.parameters.get("denominator") == "hits"
    at_the_cutoff = measure.k is not None and (over_hits or measure.metric.name.startswith(("kendall", "ap_corr")))
    in_proportion = measure.parameters.get("stop") == "graded"
    return at_the_cutoff or in_proportion or measure.metric.name in {"g", "infap", "bpm", "p_measure", "p_plus"}


@over([text for text in without("judged", "unjudged") if not promotion_may_hurt(text)])
def test_promoting_a_relevant_document_never_hurts(texts, made):
    for text in texts:
        measure = parsed(text)
        before, after = made(text, promotion(float(measure.parameters.get("rel", 1))))
        gained = scores(text, after) - scores(text, before)
        gained = -gained if measure.metric.direction == "lower" else gained

        assert len(gained) > 100, text
        assert np.nan_to_num(gained).min() > -1e-12, text


SMOOTHED = (1 + 1e-5) / (1 + 2e-5)  # the share relevant of those judged above, in infap
HURT = [  # measure, grades before and after a promotion, scores
    # The reader who stops at the best document has then seen less, 3/5 of what could be seen.
    ("p_measure", (None, 1, 2), (None, 2, 1), 5 / 6, 3 / 5),
    ("p_plus", (None, 1, 2), (None, 2, 1), (2 / 5 + 5 / 6) / 2, 3 / 5),
    ("ncu(stop=graded)", (None, 1, 2), (None, 2, 1), (2 / 5 + 2 * 5 / 6) / 3, (2 * 3 / 5 + 5 / 6) / 3),
    # The reader who wants 1 stops at rank 3 with 7/4 of 3 documents, or at 2 with 1 of 2.
    ("bpm@3", (None, 3, 4), (None, 4, 3), 7 / 4 / 3, 1 / 2),
    # A hit of a lower precision, and an inversion, enter the first three.
    ("ap(denominator=hits)@3", (1, 0, None, 1), (1, 0, 1, None), 1, (1 + 2 / 3) / 2),
    ("kendall_distance@3", (1, 0, None, 1), (1, 0, 1, None), 0, 1),
    ("kendall_tau@3", (1, 0, None, 1), (1, 0, 1, None), 1, 0),
    ("ap_corr@3", (1, 0, None, 1), (1, 0, 1, None), 1, (1 - 1 / 2) / 2),
    # Short by 8 - 3 and 9 - 7; turned round, by 8 - 4 and 9 - 7.
    ("g", (0, 0, 3, 4), (0, 0, 4, 3), (3 / np.log2(7) + 4 / 2) / 7, (4 / np.log2(6) + 3 / 2) / 7),
    # Of three documents above the last, two are in the pool; promoted, one of two.
    (
        *("infap", (1, None, -1, 1), (1, None, 1, -1)),
        *((1 + 1 / 4 + 3 / 4 * 2 / 3 * SMOOTHED) / 2, (1 + 1 / 3 + 2 / 3 * 1 / 2 * SMOOTHED) / 2),
    ),
]


@pytest.mark.parametrize(("text", "before", "after", "score", "promoted"), HURT)
def test_promotion_may_hurt(text, before, after, score, promoted):
    found = scores(text, plain_block([ranked(*before), ranked(*after)]))

    assert promotion_may_hurt(text)
    assert found == pytest.approx([score, promoted], rel=1e-12, abs=1e-12)
    assert promoted > score if text.startswith("kendall_distance") else promoted < score


NORMALISED = (
    *("r", "r(rel=2)", "r(denominator=cutoff)@3", "success@1", "rr", "rr(rel=2)@1", "ap", "ap(rel=2)"),
    *("ap(denominator=cutoff)@3", "ap(denominator=hits)@3", "rprec", "rprec(rel=2)", "rp@5", "avg_rp", "bpref"),
    *("gmap", "gm_bpref", "bing", "rprec_mult(factor=0.2)", "rprec_mult(factor=1)", "relative_p", "relative_p@3"),
    *("rndcg", "rndcg(gain=exponential)", "ndcg_rel", "ndcg_rel(gain=exponential)"),
    *("iprec(recall=0)", "iprec(recall=0.7)", "iprec(recall=1)", "ap11", "ap11(recall_points=ceil)"),
    *("ndcg", "ndcg@3", "ndcg(gain=exponential)@10", "ndcg(discount=jarvelin)", "rankscore", "rankscore(rel=2)@3"),
    *("q_measure", "q_measure(gain=exponential)@3", "nerr", "nerr(max_grade=5)@3", "compat", "compat(p=0.5)@3"),
    *("alpha_ndcg", "alpha_ndcg(alpha=0.3)@3", "nerr_ia", "nnrbp@3", "ap_ia", "strec", "strec@1"),
    *("kilt_rprec", "kilt_r", "robustness", "robustness@3"),
    *("o_measure", "p_measure@3", "p_plus(gain=exponential)", "ncu", "ncu(beta=0,stop=graded)"),
)


@over(NORMALISED)
def test_the_ideal_ranking_scores_1(texts, block_of):
    for text in texts:
        block = block_of(text)
        values = scores(text, block.ideal())

        assert np.isfinite(values).sum() > 150, text
        np.testing.assert_allclose(values[~np.isnan(values)], 1.0, rtol=1e-12, err_msg=text)


# The ideal list has another length, which may count, and holds more equal grades.
COMPARE_WHAT_WAS_RETRIEVED = ("kendall_tau", "ap_corr")


@over([text for text in without(*COUNT_THE_LIST, *COMPARE_WHAT_WAS_RETRIEVED) if not promotion_may_hurt(text)])
def test_nothing_beats_the_ideal_ranking(texts, block_of, scored):
    for text in texts:
        block = block_of(text)
        better = scored(text) - scores(text, block.ideal())
        better = -better if parsed(text).metric.direction == "lower" else better

        assert np.nan_to_num(better).max() < 1e-12, text


UNDEFINED_WITHOUT_RELEVANT = {
    *("r", "f1", "f", "mar", "success", "rr", "ap", "rprec", "rp", "avg_rp", "iprec", "ap11", "bpref", "ndcg"),
    "rankscore",
    *("gmap", "gm_bpref", "infap", "bing", "rprec_mult", "relative_p", "set_map", "rndcg", "ndcg_rel", "g"),
    *("q_measure", "o_measure", "p_measure", "p_plus", "ncu", "nerr", "compat"),
    *("alpha_ndcg", "err_ia", "nrbp", "nerr_ia", "nnrbp", "ap_ia", "p_ia", "strec", "kilt_rprec", "kilt_r"),
    *("robustness", "paired_accuracy", "snips_dcg", "snips_rbp"),
}
DO_NOT_LOOK_FOR_RELEVANT = (
    *("fp", "tn", "fallout", "judged", "user_coverage", "kendall_distance", "kendall_tau", "ap_corr"),
    *("utility", "num_ret", "num_nonrel_judged_ret", "unjudged", "rbp_resid"),
)


@over(without(*DO_NOT_LOOK_FOR_RELEVANT))
def test_no_relevant_documents(texts):
    for text in texts:
        values = scores(text, plain_block([ranked(0, None, -1, 0, missed=[0]), ranked(missed=[0])]))
        undefined = parsed(text).metric.name in UNDEFINED_WITHOUT_RELEVANT

        np.testing.assert_array_equal(values, [np.nan if undefined else 0] * 2, err_msg=text)


@EVERY_JUDGED_VARIANT
def test_nothing_retrieved(texts):
    for text in texts:
        relevant = 1 if "probability" in text else 4
        value = scores(text, plain_block([ranked(missed=[relevant, 0], n_documents=10)]))[0]
        other = dict.fromkeys(["judged", "kendall_distance", "kendall_tau", "ap_corr"], np.nan)
        other |= {"fn": 1.0, "tn": 9.0, "num_rel": 1.0, "yaap": -np.log(2)}
        measure = parsed(text)
        if measure.metric.name == "utility":
            other["utility"] = measure.parameters["c"] + 9 * measure.parameters["d"]
        if measure.parameters.get("below") == "counted":
            other["rbp_resid"] = 1.0
        if measure.parameters.get("empty") == "zero":
            other["judged"] = 0.0

        np.testing.assert_equal(value, other.get(measure.metric.name, 0.0), err_msg=text)


@over([text for text in JUDGED_VARIANTS if parsed(text).k == 3])
def test_a_cutoff_below_1_is_refused(texts):
    """A function called with k = 0 or k = -1 says that ranks count from 1."""
    for text in texts:
        measure = parsed(text)
        for k in (0, -1):
            with pytest.raises(ValueError, match=f"a cutoff counts ranks from 1, found {k}"):
                measure.metric.function(plain_block([ranked(1)]), **measure.arguments(max_grade=1) | {"k": k})


HAVE_A_THRESHOLD = [text for text in JUDGED_VARIANTS if "rel" in parsed(text).parameters and "gain=graded" not in text]


@over(HAVE_A_THRESHOLD)
def test_rel_must_be_above_0(texts):
    """Documents graded 0 are judged not relevant, so that no threshold may make them relevant."""
    for text in texts:
        measure = parsed(text)
        for rel in (0, -1):
            with pytest.raises(ValueError, match=f"rel must be above 0, found {rel}"):
                measure.metric.function(plain_block([ranked(0)]), **measure.arguments(max_grade=1) | {"rel": rel})


@pytest.mark.parametrize(
    "text", [text for name, texts in VARIANTS.items() for text in texts if METRICS[name].input == "ratings"]
)
def test_rating_metrics_agree_with_the_oracle(text):
    measure = parsed(text)
    users = random_ratings(np.random.default_rng(5), 300)
    if "rel" in measure.parameters:  # probabilities, many of them equal
        users = [(ratings, [round(prediction / 6, 1) for prediction in predictions]) for ratings, predictions in users]
    block = ratings_block([ratings for ratings, _ in users], [predictions for _, predictions in users])
    arguments = measure.arguments(max_grade=1)
    expected = [RATINGS_ORACLE[measure.metric.name](ratings, guesses, **arguments) for ratings, guesses in users]

    values = measure.metric.function(block, **arguments)

    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("k", [None, 1, 3, 50])
def test_confusion_counts_add_up(graded_block, k):
    positives = tp(graded_block, k=k) + fp(graded_block, k=k)
    relevant = tp(graded_block, k=k) + fn(graded_block, k=k)

    np.testing.assert_array_equal(positives, np.minimum(graded_block.n_retrieved, k or np.inf))
    np.testing.assert_array_equal(relevant, graded_block.n_relevant(1))
    np.testing.assert_array_equal(positives + fn(graded_block, k=k) + tn(graded_block, k=k), graded_block.n_documents)


def test_rbp_and_its_residual_weigh_at_most_all_ranks(graded_block):
    residual = rbp_resid(graded_block, p=0.9)

    assert (rbp(graded_block, p=0.9) + residual).max() <= 1 + 1e-12
    assert (residual >= 0).all()


def test_inst_without_gains_is_a_walk_like_insq():
    block = plain_block([ranked(*[None] * 39, 1)])

    assert inst(block, k=40, max_grade=1) == pytest.approx(insq(block, k=40, max_grade=1), rel=1e-12)


@pytest.mark.parametrize(
    ("blended", "plain"),
    [
        (lambda block: o_measure(block, beta=0), lambda block: rr(block, rel=1e-9)),
        (lambda block: ncu(block, gamma=1), lambda block: q_measure(block, denominator="relevant")),
        (lambda block: q_measure(block, beta=0, denominator="relevant"), lambda block: ap(block, rel=1e-9)),
    ],
)
def test_blended_ratios_without_gains_are_plain_metrics(graded_block, blended, plain):
    np.testing.assert_allclose(blended(graded_block), plain(graded_block), rtol=1e-12)


@pytest.mark.parametrize("score", [ap11, lambda block: avg_rp(block, cutoffs=range(1, 14))])
def test_one_document_alone_keeps_its_bits(score):
    for above in range(12):
        query = ranked(*[None] * above, 1, missed=[1] * (above % 3))
        alone, beside, padded = plain_block([query]), plain_block([query, query]), plain_block([query], padding=3)

        assert score(alone).tolist() == score(beside)[:1].tolist() == score(padded).tolist()


def test_a_perfect_and_a_reversed_order_have_tau_1():
    sizes = range(2, 41)
    perfect = plain_block([ranked(*range(size, 0, -1)) for size in sizes])
    reverse = plain_block([ranked(*range(1, size + 1)) for size in sizes])

    assert kendall_distance(perfect).tolist() == [0] * len(sizes)
    assert kendall_distance(reverse).tolist() == [size * (size - 1) / 2 for size in sizes]
    assert kendall_tau(perfect).tolist() == [1] * len(sizes)
    assert kendall_tau(reverse).tolist() == [-1] * len(sizes)


def test_distance_is_half_the_pairs_tau_leaves():
    """Where no grades tie, tau = 1 - 2 · distance / pairs."""
    rng = np.random.default_rng(8)
    sizes = range(2, 30)
    block = plain_block([ranked(*rng.permutation(size).astype(float)) for size in sizes])
    n_pairs = np.array([size * (size - 1) / 2 for size in sizes])

    np.testing.assert_allclose(kendall_tau(block), 1 - 2 * kendall_distance(block) / n_pairs, rtol=1e-12, atol=1e-12)


def test_equal_grades_are_the_mean_over_their_orders():
    rng = np.random.default_rng(12)
    for _ in range(60):
        grades = [int(grade) for grade in rng.integers(0, 3, size=rng.integers(2, 7))]
        orders = {
            order
            for order in itertools.permutations(range(len(grades)))
            if [*map(grades.__getitem__, order)] == sorted(grades)
        }
        values = ap_corr(plain_block([ranked(*np.argsort(order).astype(float)) for order in orders]))
        expected = values.mean() if len(set(grades)) > 1 else np.nan

        np.testing.assert_allclose(ap_corr(plain_block([ranked(*grades)])), [expected], atol=1e-12)


@pytest.mark.parametrize("metric", [kendall_distance, kendall_tau, ap_corr, compat])
@pytest.mark.parametrize("k", [None, 5])
def test_counting_by_grade_and_by_row_agree(metric, k, graded_block):
    long = deeper_block(graded_block, 500)

    assert len(graded_block.ranks) <= MANY_ROWS * len(np.unique(graded_block.judged_grades)) < len(long.ranks)
    np.testing.assert_array_equal(metric(long, k=k), metric(graded_block, k=k))
