"""Which measure leads on each dataset: the config's, or the first of the dataset's own first suite."""

from pathlib import Path

import pytest

from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import load
from tests.support.data_files import refusal

pytestmark = pytest.mark.usefixtures("folder")

CONFIG = """\
name: n
datasets: {web: {judgments: q}, shop: {judgments: q, suites: [short]}, stars: {ratings: q}, answers: {scores: {care: }}}
models: {a: {outputs: "{dataset}/a"}, b: {outputs: "{dataset}/b"}}
suites: {long: ["ndcg@5,10", rr, item_coverage@10], short: [ap, rr], errors: [rmse]}
practical_difference: {ndcg@10: 0.02}
"""


def lead(*sections: str, config: str = CONFIG, overrides: tuple[str, ...] = ()) -> dict[str, str]:
    text = config.replace("judgments: q,", "judgments: q, documents: q,").replace(
        "judgments: q}", "judgments: q, documents: q}"
    )
    Path("a.yaml").write_text("\n".join([text.rstrip(), *sections, ""]), encoding="utf-8")
    return {name: str(measure) for name, measure in plan(load("a.yaml", overrides, {})).lead.items()}


def test_by_default_the_first_measure_leads():
    assert lead() == {"web": "ndcg@5", "shop": "ap", "stars": "rmse", "answers": "care"}


@pytest.mark.parametrize(
    ("written", "led"),
    [
        ("ndcg@10", {"web": "ndcg@10"}),
        ("nDCG@10", {"web": "ndcg@10"}),
        ("recip_rank", {"web": "rr", "shop": "rr"}),
        ("item_coverage@10", {"web": "item_coverage@10"}),
        ("rmse", {}),
        ("care", {}),
    ],
)
def test_the_lead_is_of_the_datasets_that_measure_it(written, led):
    assert lead(f"lead: {written}") == {"web": "ndcg@5", "shop": "ap", "stars": "rmse", "answers": "care"} | led


def test_an_override_names_the_lead():
    assert lead("lead: rr", overrides=("lead=ndcg@10",))["web"] == "ndcg@10"
    assert lead("lead: rr", overrides=("lead=",))["web"] == "ndcg@5"


@pytest.mark.parametrize(
    ("written", "finding"),
    [
        ("ndgc@10", "a.yaml:6: lead: unknown measure 'ndgc@10'; did you mean 'ndcg@10'?"),
        (
            "ndcg@20",
            "a.yaml:6: lead: ndcg@20 is in no suite of the datasets; add it to one of them; did you mean 'ndcg@10'?",
        ),
        ("'ndcg@5,10'", "a.yaml:6: lead: ndcg@5,10 is 2 measures: ndcg@5, ndcg@10; write one"),
        ("[rr]", "a.yaml:6: lead: found a list; write a text"),
    ],
)
def test_wrong_leads(written, finding):
    assert refusal(lead, f"lead: {written}").startswith(finding)


def test_without_scores_an_unknown_measure_is_corrected_too():
    found = refusal(lead, "lead: ndgc@10", config=CONFIG.replace(", answers: {scores: {care: }}", ""))

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
