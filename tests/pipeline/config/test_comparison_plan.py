"""Comparisons of a config, and the measure that leads each dataset."""

from pathlib import Path

import pytest

from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.planned import Plan, PlannedComparison
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


def compared(section: str, config: str = CONFIG) -> PlannedComparison:
    found = planned(section, config).comparison
    assert found is not None
    return found


def test_every_other_model_is_compared_with_the_baseline():
    found = compared("{baseline: b}")

    assert found.pairs == {"web": (("a", "b"),), "shop": (("a", "b"), ("c", "b")), "answers": (("a", "b"),)}
    assert measures_of(found) == {"web": ["ap", "ndcg@5", "ndcg@10"], "shop": ["ap"], "answers": ["faithfulness"]}
    rules = found.rules
    assert (rules.test, rules.permutations, rules.chosen_correction) == ("randomization", 10_000, "maxt")
    every = compared("{baseline: all_pairs}").pairs
    assert (every["shop"], every["web"]) == ((("b", "a"), ("c", "a"), ("c", "b")), (("b", "a"),))
    chosen = compared("{baseline: a, measures: ['ndcg@5,10', faithfulness]}")
    assert measures_of(chosen) == {"web": ["ndcg@5", "ndcg@10"], "shop": [], "answers": ["faithfulness"]}


def measures_of(found: PlannedComparison) -> dict[str, list[str]]:
    return {name: [*map(str, measures)] for name, measures in found.measures.items()}


@pytest.mark.parametrize(
    ("section", "correction", "has_primary"),
    [
        ("{baseline: a}", "maxt", True),
        ("{baseline: a, family: measure}", "maxt", True),
        ("{baseline: a, primary: false}", "maxt", False),
        ("{baseline: a, test: t}", "holm", False),
        ("{baseline: a, test: t, correction: none}", "none", False),
        ("{baseline: a, test: bootstrap}", "maxt", False),
        ("{baseline: a, test: randomization}", "maxt", False),
        ("{baseline: a, correction: bh}", "bh", False),
        ("{baseline: a, correction: holm}", "holm", False),
    ],
)
def test_the_correction_goes_with_the_test_and_a_named_one_leaves_no_primary_family(section, correction, has_primary):
    rules = compared(section).rules

    assert (rules.chosen_correction, rules.has_primary) == (correction, has_primary)


def test_slices_are_searched_in_a_queries_table():
    with_table = CONFIG.replace("shop: {judgments: q, ", "shop: {judgments: q, queries: t, ")
    asked = planned("{baseline: a, search_slices: true}", with_table)

    assert asked.comparison.rules.search_slices
    assert all(dataset.search_slices for dataset in asked.datasets)
    assert not any(dataset.search_slices for dataset in planned("{baseline: a}", with_table).datasets)
    assert findings(planned, "{baseline: a, search_slices: true}") == [
        "a.yaml:5: comparison.search_slices: slices are searched by the columns of a queries table, and no dataset has "
        "one; add `queries:`"
    ]


IN_NO_SUITE = "is in no suite of the datasets; add it to one of them"
NO_SCORES = "entropy@5 has no score per query, which is needed here; remove it"
KNOWN = "known: ap, ndcg@5, ndcg@10, entropy@5, faithfulness"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{baseline: d}", ".baseline: unknown model 'd'; known: a, b, c, all_pairs"),
        ("{baseline: all-pairs}", ".baseline: unknown model 'all-pairs'; did you mean 'all_pairs'?"),
        ("{baseline: a, measures: [ap, p@5]}", f".measures[1]: p@5 {IN_NO_SUITE}; {KNOWN}"),
        ("{baseline: a, measures: app}", ".measures: unknown measure 'app'; did you mean 'ap'?"),
        ("{baseline: a, measures: entropy@5}", f".measures: {NO_SCORES}"),
    ],
)
def test_what_is_refused(section, message):
    assert refusal(planned, section) == f"a.yaml:5: comparison{message}"


def test_practical_differences_of_measures():
    differences = matters('{"ndcg@5,10": 0.005, faithfulness: 0.1}')

    assert differences == {"ndcg@5": 0.005, "ndcg@10": 0.005, "faithfulness": 0.1}


@pytest.mark.parametrize(
    ("section", "finding"),
    [
        ("{ndcg@20: 0.1}", f"ndcg@20: ndcg@20 {IN_NO_SUITE}; did you mean 'ndcg@10'?"),
        ("{entropy@5: 0.1}", f"entropy@5: {NO_SCORES}"),
        ("{ap: 0}", "ap: found 0; write a number above 0"),
        ("{ap: yes}", "ap: found true; write a number"),
        ("{ap: .inf}", "ap"),
    ],
)
def test_wrong_practical_differences(section, finding):
    assert refusal(matters, section).startswith(f"a.yaml:5: practical_difference.{finding}")


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


SPLIT = """\
name: n
datasets: {web: {judgments: q}, shop: {judgments: q}}
models: {a: {outputs: {web: x}}, b: {outputs: {web: y}}, c: {outputs: {shop: x}}, d: {outputs: {shop: y}}}
suites: {s: [ap]}
"""


def test_a_dataset_without_the_baseline_is_warned_of():
    found = planned("{baseline: a}", SPLIT)

    assert found.comparison.pairs == {"web": (("b", "a"),), "shop": ()}
    assert [*found.warnings] == [
        "a.yaml:5: comparison.baseline: a has no output on shop, so its 2 models are not compared. Set "
        "baseline: [a, c], or another model of shop"
    ]
    assert planned("{baseline: a}", SPLIT.replace(", d: {outputs: {shop: y}}", "")).warnings == ()


def test_each_dataset_has_the_first_baseline_with_an_output_there():
    found = planned("{baseline: [a, c]}", SPLIT)

    assert found.comparison.pairs == {"web": (("b", "a"),), "shop": (("d", "c"),)}
    assert found.warnings == ()
    assert refusal(planned, "{baseline: [a, e]}", SPLIT) == (
        "a.yaml:5: comparison.baseline: unknown model 'e'; known: a, b, c, d, all_pairs"
    )


LEADING = """\
name: n
datasets: {web: {judgments: q}, shop: {judgments: q, suites: [short]}, stars: {ratings: q}, answers: {scores: {care: }}}
models: {a: {outputs: "{dataset}/a"}, b: {outputs: "{dataset}/b"}}
suites: {long: ["ndcg@5,10", rr, item_coverage@10], short: [ap, rr], errors: [rmse]}
practical_difference: {ndcg@10: 0.02}
"""


def lead(*sections: str, config: str = LEADING, overrides: tuple[str, ...] = ()) -> dict[str, str]:
    text = config.replace("judgments: q,", "judgments: q, documents: q,").replace(
        "judgments: q}", "judgments: q, documents: q}"
    )
    Path("a.yaml").write_text("\n".join([text.rstrip(), *sections, ""]), encoding="utf-8")
    return {name: str(measure) for name, measure in plan(load("a.yaml", overrides, {})).lead.items()}


FIRST = {"web": "ndcg@5", "shop": "ap", "stars": "rmse", "answers": "care"}


def test_the_lead_is_the_first_measure_or_the_one_named_where_it_is_measured():
    assert lead() == FIRST
    for written, led in (
        ("ndcg@10", {"web": "ndcg@10"}),
        ("nDCG@10", {"web": "ndcg@10"}),
        ("recip_rank", {"web": "rr", "shop": "rr"}),
        ("item_coverage@10", {"web": "item_coverage@10"}),
        ("rmse", {}),
        ("care", {}),
    ):
        assert lead(f"lead: {written}") == FIRST | led
    assert lead("lead: rr", overrides=("lead=ndcg@10",))["web"] == "ndcg@10"
    assert lead("lead: rr", overrides=("lead=",))["web"] == "ndcg@5"


@pytest.mark.parametrize(
    ("written", "finding"),
    [
        ("ndgc@10", "unknown measure 'ndgc@10'; did you mean 'ndcg@10'?"),
        ("ndcg@20", f"ndcg@20 {IN_NO_SUITE}; did you mean 'ndcg@10'?"),
        ("'ndcg@5,10'", "ndcg@5,10 is 2 measures: ndcg@5, ndcg@10; write one"),
        ("[rr]", "found a list; write a text"),
    ],
)
def test_wrong_leads(written, finding):
    assert refusal(lead, f"lead: {written}").startswith(f"a.yaml:6: lead: {finding}")


def test_without_scores_an_unknown_measure_is_corrected_too():
    without_scores = LEADING.replace(", answers: {scores: {care: }}", "")
    found = refusal(lead, "lead: ndgc@10", config=without_scores)
    assert found == "a.yaml:6: lead: unknown metric 'ndgc@10'; did you mean 'ndcg@10'?"


def test_models_that_are_compared_by_others_alone_are_warned_of():
    compared = "comparison: {baseline: a, measures: [rr, ap]}"
    lead(compared, "lead: ndcg@10")

    assert plan(load("a.yaml", (), {})).warnings == (
        "a.yaml:7: lead: models are not compared by ndcg@10 on web, and differences lead with another measure; add it "
        "to `comparison.measures`",
    )
    lead(compared)
    assert plan(load("a.yaml", (), {})).warnings == ()
