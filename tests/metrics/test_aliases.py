"""Other tools' names: what each is here, and that every name a tool offers has an answer."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.aliases import read_aliases, read_tools, translate
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.metrics.registry import METRICS
from tests.metrics.variants import VARIANTS
from tests.support.blocks import PlainQuery, plain_block
from tests.support.each import each

ALIASES = read_aliases()
TREC_RANKS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
TENTHS = ("0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1")

NAMES_OF_TOOLS = yaml.safe_load(Path(__file__).with_name("names.yaml").read_text(encoding="utf-8"))
MEANINGS = {name: ours for names in NAMES_OF_TOOLS["meanings"].values() for name, ours in names.items()}
REFUSED, SUGGESTIONS = NAMES_OF_TOOLS["refused"], NAMES_OF_TOOLS["suggestions"]


def answer(text: str) -> str:
    try:
        return " ".join(measure.metric.name for measure in Measure.expand(text))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("tool", NAMES_OF_TOOLS["official"])
def test_every_name_of_every_tool_has_an_answer(tool):
    for name in NAMES_OF_TOOLS["official"][tool].split():
        found = answer(name)

        assert found.startswith(f"'{name}': ") or found.split()[0] in METRICS
        assert "\n" not in found


@each("text", [*MEANINGS])
def test_names_are_what_their_tools_mean(text):
    assert " ".join(map(str, Measure.expand(text))) == MEANINGS[text]


def test_official_is_what_trec_eval_prints_by_default():
    expected = ["num_ret", "num_rel", "tp", "ap", "gmap", "rprec", "bpref", "rr"]
    expected += [f"iprec(recall={tenth})" for tenth in TENTHS] + [f"p@{k}" for k in TREC_RANKS]

    assert [str(measure) for measure in Measure.expand("official")] == expected


ALL_TREC = """
    runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P relstring recall infAP
    gm_bpref Rprec_mult utility 11pt_avg binG G ndcg ndcg_rel Rndcg ndcg_cut map_cut relative_P success_1,5,10 set_P
    set_relative_P set_recall set_map set_F num_nonrel_judged_ret
"""
SET = "runid num_q num_ret num_rel num_rel_ret utility set_P set_recall set_relative_P set_map set_F"


@pytest.mark.parametrize(("group", "names"), [("all_trec", ALL_TREC), ("set", SET)])
def test_groups_are_their_names_one_by_one(group, names):
    no_measures = {"runid", "num_q", "relstring"}
    measures = [measure for name in names.split() if name not in no_measures for measure in Measure.expand(name)]

    assert [*Measure.expand(group)] == measures
    for name in no_measures:
        with pytest.raises(ValueError, match=f"'{name}': "):
            translate(name)


@pytest.mark.parametrize("x", [0.25, 1, 2, 9])
def test_their_beta_is_squared(x):
    precision, recall = 2 / 5, 2 / 3
    block = plain_block([PlainQuery(ranking=(1, 0, 1, None, 0), missed=(1,))])

    for text in (f"set_F.{x}", f"SetF(beta={x})"):
        measure = Measure.parse(text)
        found = measure.metric.function(block, **measure.arguments(max_grade=1))
        assert found == pytest.approx((x + 1) * precision * recall / (recall + x * precision))


@each("text", [*REFUSED])
def test_other_definitions_are_refused_with_the_reason(text):
    with pytest.raises(ValueError, match="^" + re.escape(f"'{text}': ")) as caught:
        Measure.expand(text)

    assert REFUSED[text] in str(caught.value)
    assert "\n" not in str(caught.value)


@each("name", [name for name, alias in ALIASES.items() if not alias.measures])
def test_what_a_refusal_recommends_can_be_written(name):
    note = ALIASES[name].note.replace("@#", "@10")

    for text in re.findall(r"\b[a-z_0-9]+(?:\([a-z_]+=[\w.]+\)(?:@[\d,]*\d)?|@[\d,]*\d)", note):
        assert Measure.expand(text)
    assert re.fullmatch(r"[^;]+\. (Set|Use|Add|Remove|Check) [^;]+\.", note)
    assert "\n" not in note


@each("name", [name for name, alias in ALIASES.items() if alias.measures])
def test_every_target_is_a_measure(name):
    """With a number in place of `#`, each is one, written as we write it; only a parameter may be left to be named."""
    for template in ALIASES[name].measures:
        text = re.sub("√?#", "0.5", template.replace("0.#", "0.5").replace("@#", "@10"))
        metric = METRICS[re.split(r"\W", text)[0]]
        missing = [parameter.name for parameter in metric.parameters.values() if parameter.required]
        if all(f"{parameter}=" in text for parameter in missing):
            measures = Measure.expand(text)
            assert {str(measure).partition("@")[0] for measure in measures} == {text.partition("@")[0]}


def test_one_name_has_one_meaning():
    for tool in read_tools():
        for alias in tool.aliases:
            for name in alias.names:
                assert alias.measures == ALIASES[name].measures, f"{tool.title}: {name}"


@each("name", [*VARIANTS])
def test_our_own_spellings_pass_untouched(name):
    for text in VARIANTS[name]:
        assert translate(text) == (text,)
        assert translate(f" {text} ") == (f" {text} ",)


def test_translations_are_our_own_spellings():
    for ours in (ours for text in MEANINGS for ours in translate(text)):
        assert translate(ours) == (ours,)


@pytest.mark.parametrize("text", ["", "qqq", "ndcg at 10", "@10", "P@5@10", "unknown(rel=2)@10", "ndcg@x"])
def test_what_nobody_knows_passes_untouched(text):
    assert translate(text) == (text,)


@pytest.mark.parametrize(("text", "message"), NAMES_OF_TOOLS["mistakes"].items())
def test_mistakes_after_a_known_name_are_answered_by_the_parser(text, message):
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        Measure.expand(text)


def test_a_group_is_no_single_measure():
    with pytest.raises(ValueError, match=r"^'official' is 28 measures"):
        Measure.parse("official")


def test_a_profile_settles_what_a_name_leaves_open():
    profile = replace(PROFILES["trec_eval"], defaults={"ap": {"denominator": "cutoff"}})

    assert str(Measure.parse("MAP@10", profile)) == "ap@10"
    assert Measure.parse("MAP@10", profile).parameters["denominator"] == "cutoff"
    assert Measure.parse("MAP@10").parameters["denominator"] == "relevant"


def test_a_spelling_of_one_tool_keeps_its_definition_under_any_profile():
    profile = replace(PROFILES["trec_eval"], defaults={"ap": {"denominator": "relevant"}})

    assert Measure.parse("mapk@10", profile).parameters["denominator"] == "cutoff"


@each("text", [*SUGGESTIONS])
def test_suggestions_keep_parameters_and_cutoffs(text):
    with pytest.raises(ValueError, match="'") as caught:
        Measure.expand(text)

    if SUGGESTIONS[text]:
        assert str(caught.value) == f"unknown metric '{text}'; did you mean '{SUGGESTIONS[text]}'?"
        assert Measure.expand(SUGGESTIONS[text])
    else:
        assert "did you mean" not in str(caught.value)


NAMES = st.sampled_from(sorted({*ALIASES, *METRICS})).map(lambda name: name.replace("#", "2").replace("*", "x"))
TAILS = st.sampled_from(
    ["", "@10", "@", "_5", ".5,10", "@-1", "-l2", "@5-l2", "(", "(rel=2)", "(beta=x)", "()@5", "/mean"]
)


@given(NAMES, TAILS | st.text(max_size=8))
def test_any_text_is_a_measure_or_refused_in_one_line(name, tail):
    try:
        measures = Measure.expand(name + tail)
    except ValueError:
        return

    assert measures
    assert all(Measure.parse(str(measure)) == measure for measure in measures)
