"""From the section of comparisons to pairs of models and measures, dataset by dataset."""

from pathlib import Path

import pytest

from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.config.schema import load
from tests.support.data_files import findings, refusal

pytestmark = pytest.mark.usefixtures("folder")

CONFIG = """\
name: n
datasets: {web: {judgments: q}, shop: {judgments: q, suites: [short]}, answers: {scores: {faithfulness: }}}
models: {a: {outputs: "{dataset}/{model}"}, b: {outputs: "{dataset}/{model}"}, c: {outputs: {shop: x}}}
suites: {long: [ap, "ndcg@5,10", entropy@5], short: [ap]}
"""


def planned(section: str, config: str = CONFIG) -> Plan:
    Path("a.yaml").write_text(f"{config}comparison: {section}\n", encoding="utf-8")
    return plan(load("a.yaml", (), {}))


def test_every_other_model_is_compared_with_the_baseline():
    found = planned("{baseline: b}").comparison

    assert found is not None
    assert found.pairs == {"web": (("a", "b"),), "shop": (("a", "b"), ("c", "b")), "answers": (("a", "b"),)}
    assert {name: [*map(str, measures)] for name, measures in found.measures.items()} == {
        "web": ["ap", "ndcg@5", "ndcg@10"],
        "shop": ["ap"],
        "answers": ["faithfulness"],
    }
    assert (found.rules.test, found.rules.permutations, found.rules.chosen_correction) == (
        "randomization",
        10_000,
        "maxt",
    )


def test_all_pairs_take_the_one_listed_first_for_the_baseline():
    found = planned("{baseline: all_pairs}").comparison

    assert found is not None
    assert found.pairs["shop"] == (("b", "a"), ("c", "a"), ("c", "b"))
    assert found.pairs["web"] == (("b", "a"),)


def test_slices_are_searched_in_a_queries_table():
    with_table = CONFIG.replace("shop: {judgments: q, ", "shop: {judgments: q, queries: t, ")
    asked = planned("{baseline: a, search_slices: true}", with_table)

    assert asked.comparison is not None
    assert asked.comparison.rules.search_slices
    assert all(dataset.search_slices for dataset in asked.datasets)
    assert not any(dataset.search_slices for dataset in planned("{baseline: a}", with_table).datasets)
    assert findings(planned, "{baseline: a, search_slices: true}") == [
        "a.yaml:5: comparison.search_slices: slices are searched by the columns of a queries table, and no dataset has "
        "one; add `queries:`"
    ]


def test_measures_may_be_chosen():
    found = planned("{baseline: a, measures: ['ndcg@5,10', faithfulness]}").comparison

    assert found is not None
    assert {name: [*map(str, measures)] for name, measures in found.measures.items()} == {
        "web": ["ndcg@5", "ndcg@10"],
        "shop": [],
        "answers": ["faithfulness"],
    }


@pytest.mark.parametrize(
    ("section", "correction"),
    [
        ("{baseline: a, test: t}", "holm"),
        ("{baseline: a, test: t, correction: none}", "none"),
        ("{baseline: a, test: bootstrap}", "maxt"),
        ("{baseline: a, correction: bh}", "bh"),
    ],
)
def test_the_correction_goes_with_the_test(section, correction):
    found = planned(section).comparison

    assert found is not None
    assert found.rules.chosen_correction == correction


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{baseline: d}", ".baseline: unknown model 'd'; known: a, b, c, all_pairs"),
        ("{baseline: all-pairs}", ".baseline: unknown model 'all-pairs'; did you mean 'all_pairs'?"),
        (
            "{baseline: a, measures: [ap, p@5]}",
            ".measures[1]: p@5 is in no suite of the datasets; add it to one of them; known: ap, ndcg@5, ndcg@10, "
            "entropy@5, faithfulness",
        ),
        ("{baseline: a, measures: app}", ".measures: unknown measure 'app'; did you mean 'ap'?"),
        (
            "{baseline: a, measures: entropy@5}",
            ".measures: entropy@5 has no score per query, which is needed here; remove it",
        ),
    ],
)
def test_what_is_refused(section, message):
    assert refusal(planned, section) == f"a.yaml:5: comparison{message}"


@pytest.mark.parametrize(("n_models", "n_warnings"), [(10, 0), (11, 1)])
def test_many_pairs_are_warned_of(n_models, n_warnings):
    """Eleven models make 11 · 10 / 2 = 55 pairs; a baseline makes ten."""
    models = ", ".join(f"m{number}: {{outputs: '{{model}}'}}" for number in range(n_models))
    config = f"name: n\ndatasets: {{d: {{judgments: q}}}}\nsuites: {{s: [ap]}}\nmodels: {{{models}}}\n"

    warnings = planned("{baseline: all_pairs}", config).warnings

    assert [*warnings] == [
        "a.yaml:5: comparison.baseline: all pairs of 11 models are 55 comparisons, so the correction is strict; name a "
        "baseline instead"
    ][:n_warnings]
    assert planned("{baseline: m0}", config).warnings == ()


def matters(section: str) -> dict[str, float]:
    Path("a.yaml").write_text(f"{CONFIG}practical_difference: {section}\n", encoding="utf-8")
    return dict(plan(load("a.yaml", (), {})).practical_difference)


def test_practical_differences_of_measures():
    assert matters('{"ndcg@5,10": 0.005, faithfulness: 0.1}') == {
        "ndcg@5": 0.005,
        "ndcg@10": 0.005,
        "faithfulness": 0.1,
    }


@pytest.mark.parametrize(
    ("section", "finding"),
    [
        (
            "{ndcg@20: 0.1}",
            "a.yaml:5: practical_difference.ndcg@20: ndcg@20 is in no suite of the datasets; add it to one of them; "
            "did you mean 'ndcg@10'?",
        ),
        (
            "{entropy@5: 0.1}",
            "practical_difference.entropy@5: entropy@5 has no score per query, which is needed here; remove it",
        ),
        ("{ap: 0}", "a.yaml:5: practical_difference.ap: found 0; write a number above 0"),
        ("{ap: yes}", "a.yaml:5: practical_difference.ap: found true; write a number"),
        ("{ap: .inf}", "a.yaml:5: practical_difference.ap"),
    ],
)
def test_wrong_practical_differences(section, finding):
    assert finding in refusal(matters, section)


SPLIT = """\
name: n
datasets: {web: {judgments: q}, shop: {judgments: q}}
models: {a: {outputs: {web: x}}, b: {outputs: {web: y}}, c: {outputs: {shop: x}}, d: {outputs: {shop: y}}}
suites: {s: [ap]}
"""


def test_a_dataset_without_the_baseline_is_warned_of():
    found = planned("{baseline: a}", SPLIT)

    assert found.comparison is not None
    assert found.comparison.pairs == {"web": (("b", "a"),), "shop": ()}
    assert [*found.warnings] == [
        "a.yaml:5: comparison.baseline: a has no output on shop, so its 2 models are not compared. Set "
        "baseline: [a, c], or another model of shop"
    ]
    assert planned("{baseline: a}", SPLIT.replace(", d: {outputs: {shop: y}}", "")).warnings == ()


def test_each_dataset_has_the_first_baseline_with_an_output_there():
    found = planned("{baseline: [a, c]}", SPLIT)

    assert found.comparison is not None
    assert found.comparison.pairs == {"web": (("b", "a"),), "shop": (("d", "c"),)}
    assert found.warnings == ()
    assert refusal(planned, "{baseline: [a, e]}", SPLIT) == (
        "a.yaml:5: comparison.baseline: unknown model 'e'; known: a, b, c, d, all_pairs"
    )


@pytest.mark.parametrize(
    ("section", "has_primary"),
    [
        ("{baseline: a}", True),
        ("{baseline: a, family: measure}", True),
        ("{baseline: a, primary: false}", False),
        ("{baseline: a, test: t}", False),
        ("{baseline: a, test: randomization}", False),
        ("{baseline: a, correction: holm}", False),
    ],
)
def test_a_named_test_or_correction_leaves_no_primary_family(section, has_primary):
    found = planned(section).comparison

    assert found is not None
    assert found.rules.has_primary is has_primary
