"""Measures: written, read, written again; what mistakes are answered with; what fingerprints tell apart."""

import copy
import pickle
import re
import typing
from dataclasses import fields, replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.aggregation import GEOMETRIC_MEAN, LINEARISED, MEAN, ROOT_MEAN_SQUARE
from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.metrics.measure import Measure
from rankledger.metrics.metric import Metric
from rankledger.metrics.registry import METRICS
from tests.metrics.variants import VARIANTS
from tests.support.each import each

TREC_EVAL = PROFILES["trec_eval"]
TEXTS = yaml.safe_load(Path(__file__).with_name("measures.yaml").read_text(encoding="utf-8"))
EVERY_VARIANT = sorted({text for texts in VARIANTS.values() for text in texts})


def floats(least: float, greatest: float, **options: bool) -> st.SearchStrategy[float]:
    decimals = st.floats(least, greatest, allow_nan=False, **options)
    return decimals | st.integers(int(least) + 1, int(greatest)) if greatest - least > 1 else decimals


NUMBERS = {
    "rel": floats(0, 1e6, exclude_min=True),
    "beta": floats(0, 1e3, exclude_min=True),
    **dict.fromkeys(["nrbp.beta", "nnrbp.beta"], floats(0, 1, exclude_min=True, exclude_max=True)),
    "alpha": floats(0, 1, exclude_min=True, exclude_max=True),
    "model": st.sampled_from(["bm25", "org/dense-v2 tuned+rm3"]),
    "feature": st.sampled_from(["category", "vector 2"]),
    "tail": floats(0, 1, exclude_min=True, exclude_max=True),
    "factor": floats(0, 1e3, exclude_min=True),
    **dict.fromkeys("abcd", floats(-1e3, 1e3)),
    "recall": floats(0, 1),
    "p": floats(0, 1, exclude_min=True, exclude_max=True),
    "half_life": floats(0, 1e3, exclude_min=True),
    "continuation": floats(0, 1, exclude_min=True),
    "max_grade": floats(1, 100),
    "base": floats(1, 100, exclude_min=True),
    "bins": st.integers(1, 100),
    "gamma": floats(0, 1, exclude_min=True),
    "t": floats(1, 100),
    "clip": floats(0, 1e6, exclude_min=True),
    "seconds": floats(0, 1e6),
}


@st.composite
def measures(draw: st.DrawFn) -> str:
    metric: Metric = draw(st.sampled_from(sorted(METRICS.values(), key=lambda metric: metric.name)))
    items = {}
    for parameter in metric.parameters.values():
        if not parameter.required and draw(st.booleans()):
            continue
        if typing.get_origin(parameter.type) is typing.Literal:
            items[parameter.name] = draw(st.sampled_from(typing.get_args(parameter.type)))
        elif parameter.name == "cutoffs":
            cutoffs = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=4, unique=True))
            items[parameter.name] = str(cutoffs)
        else:
            items[parameter.name] = draw(NUMBERS.get(f"{metric.name}.{parameter.name}", NUMBERS.get(parameter.name)))
    for name, (other, value) in metric.conditions.items():
        if items.get(other, metric.parameters[other].default) != value:
            items.pop(name, None)  # without effect, and so refused
    names = draw(st.permutations(sorted(items)))
    wants_k = metric.cutoff == "required" or (metric.cutoff == "optional" and draw(st.booleans()))
    written = f"({', '.join(f'{name} = {items[name]}' for name in names)})" if names else ""
    return f"{metric.name}{written}{f'@{draw(st.integers(1, 10**6))}' if wants_k else ''}"


@given(measures())
def test_str_undoes_parse(text):
    measure = Measure.parse(text)

    assert Measure.parse(str(measure)) == measure
    assert str(Measure.parse(str(measure))) == str(measure)


@given(measures())
def test_parse_keeps_every_value(text):
    measure = Measure.parse(text)
    written = re.findall(r"(\w+) = (\[[^\]]*\]|[^,)]+)", text)
    given_values = dict(measure.given)

    assert set(given_values) == {name for name, _ in written}
    for name, value in written:
        found = given_values[name]
        if isinstance(found, tuple):
            assert str(list(found)) == value
        else:
            assert found == (value if isinstance(found, str) else float(value))
    for name, parameter in measure.metric.parameters.items():
        if name in measure.parameters and name not in given_values:
            assert measure.parameters[name] == parameter.default


def test_canonical_texts_are_kept():
    assert [str(Measure.parse(text)) for text in EVERY_VARIANT] == [*EVERY_VARIANT]


@pytest.mark.parametrize(("text", "canonical"), TEXTS["canonical"].items())
def test_texts_are_read_leniently_and_written_one_way(text, canonical):
    assert str(Measure.parse(text)) == canonical
    assert Measure.parse(text) == Measure.parse(canonical)


@pytest.mark.parametrize(("text", "expanded"), TEXTS["expanded"].items())
def test_expand_splits_cutoffs(text, expanded):
    assert [str(measure) for measure in Measure.expand(text)] == expanded


@each("text", [*TEXTS["errors"]])
def test_mistakes_are_answered_in_one_line(text):
    with pytest.raises(ValueError, match="^" + re.escape(TEXTS["errors"][text]) + "$"):
        Measure.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # A perfect document has a grade above 0; the message speaks of no judgment, for none has been read.
        *(
            (text, r"^max_grade (?!.*judgment)")
            for text in ("err(max_grade=-1)", "err(max_grade=0)", "rbp(gain=graded,max_grade=-2)")
        ),
        # A parameter that cannot move the figure beside the others written is a mistake.
        ("dcg(discount=log2,base=2)", "base"),
        ("rbp(max_grade=3)", "max_grade"),
        ("rbp(gain=graded,rel=2)", "rel"),
        ("err(grades=probability,max_grade=3)", "max_grade"),
        # Its square, or its product with a grade, might be infinite.
        *((text, "at most 1e9, found") for text in ("f(beta=1e10)", "f(beta=1e200)@10", "q_measure(beta=1e308)")),
        # Names of known measures that are not computed here, though some of ours are written alike.
        *(
            (text, "it is not computed here, so add its values as an external score")
            for text in ("infNDCG", "statAP", "ordered_pair_accuracy", "context_precision", "rmsle@5", "PFound")
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Measure.parse(text)


@pytest.mark.parametrize("text", ["ndcg_cut_10" + "_10" * 20_000, "p@" + "9," * 30_000, "x" * 70_000, "(" * 70_000])
def test_a_text_that_is_too_long_for_a_measure_is_refused_by_its_length(text):
    with pytest.raises(ValueError, match="characters; write a measure of at most 1,000") as error:
        Measure.parse(text)

    assert len(str(error.value)) < 200


def test_arguments_are_the_functions():
    assert Measure.parse("ap(rel=2)@10").arguments(max_grade=3) == {"rel": 2, "denominator": "relevant", "k": 10}
    assert Measure.parse("ap").arguments(max_grade=3) == {"rel": 1, "denominator": "relevant", "k": None}
    assert Measure.parse("avg_rp(cutoffs=[3])").arguments(max_grade=3) == {"cutoffs": (3,), "rel": 1}
    assert Measure.parse("item_coverage@5").arguments(max_grade=3) == {"k": 5}


def test_arguments_give_the_greatest_grade_where_none_is_named():
    assert Measure.parse("err").arguments(max_grade=3)["max_grade"] == 3
    assert Measure.parse("err(max_grade=4)").arguments(max_grade=3)["max_grade"] == 4
    assert Measure.parse("rbp(gain=graded)").arguments(max_grade=2)["max_grade"] == 2
    assert Measure.parse("rmse(average=query)").arguments(max_grade=5) == {}


@pytest.mark.parametrize(
    ("text", "weighted", "scale"),
    [
        *(("ap", False, MEAN), ("gmap@10", False, GEOMETRIC_MEAN), ("mae", True, MEAN)),
        *(("rmse", True, ROOT_MEAN_SQUARE), ("rmse(average=pooled)", True, ROOT_MEAN_SQUARE)),
        ("rmse(average=query)", False, MEAN),
        *(("auc", True, LINEARISED), ("auc(average=impressions)", True, MEAN), ("auc(average=query)", False, MEAN)),
        ("lauc@3", False, MEAN),
    ],
)
def test_weights_and_scale(text, weighted, scale):
    assert Measure.parse(text).weighted is weighted
    assert Measure.parse(text).aggregation is scale


@pytest.mark.parametrize(("text", "key"), TEXTS["keys"].items())
def test_keys(text, key):
    assert Measure.parse(text).key == key


@given(measures())
def test_keys_hold_only_what_mlflow_allows(text):
    assert re.fullmatch(r"[A-Za-z0-9_\-. /:]+", Measure.parse(text).key)


def test_keys_tell_measures_apart():
    texts = {
        *EVERY_VARIANT,
        *(f"rbp(p={p})" for p in ("0.1", "0.01", "0.001", "1e-5", "1e-05", "1e-15", "0.15", "0.11", "0.5", "0.05")),
        *(f"ap(rel={rel})@{k}" for rel in ("1", "2", "1.5", "15", "0.5", "5", "12", "1.2") for k in (1, 2, 5, 12, 21)),
        *("ap(rel=1e-7)", "ap(rel=1e+20)", "ap(rel=1e20)", "ap(rel=1.5e-20)", "ap(rel=1e-20)"),
        *(f"avg_rp(cutoffs={cutoffs})" for cutoffs in ("[1,2]", "[12]", "[1,2,1]", "[2,1]", "[11,2]", "[1,12]")),
        *(f"iprec(recall={tenths / 10})" for tenths in range(11)),
    }
    written = {str(Measure.parse(text)) for text in texts}

    assert len(written) > 300
    assert len({Measure.parse(text).key for text in written}) == len(written)


def fingerprint(text: str) -> str:
    return Measure.parse(text).fingerprint(TREC_EVAL)


def test_a_fingerprint_is_16_hex_digits():
    assert re.fullmatch("[0-9a-f]{16}", fingerprint("ndcg@10"))


@pytest.mark.parametrize(("one", "other"), TEXTS["same"])
def test_one_definition_written_two_ways_has_one_fingerprint(one, other):
    assert fingerprint(one) == fingerprint(other)


def test_every_variant_has_its_own_fingerprint():
    definitions = {}
    for text in EVERY_VARIANT:
        measure = Measure.parse(text)
        definition = (measure.metric.name, tuple(measure.parameters.items()), measure.k)
        definitions.setdefault(definition, set()).add(fingerprint(text))

    assert all(len(found) == 1 for found in definitions.values())
    assert len({found for (found,) in map(tuple, definitions.values())}) == len(definitions)


@pytest.mark.parametrize(("text", "other"), TEXTS["other"])
def test_any_parameter_changes_the_fingerprint(text, other):
    assert fingerprint(text) != fingerprint(other)


@each("name", [*METRICS])
def test_a_new_version_changes_the_fingerprint(name):
    measure = Measure.parse(VARIANTS[name][-1])
    raised = replace(measure, metric=replace(measure.metric, version=measure.metric.version + 1))

    assert raised.fingerprint(TREC_EVAL) != measure.fingerprint(TREC_EVAL)


OTHERWISE = {
    "ties": "doc_id_asc",
    "score_precision": "float64",
    "missing_queries": "skip",
    "undefined_queries": "skip",
    "negative_grades": "non_relevant",
    "unjudged_documents": "condensed",
    "depth": 5,
}


@pytest.mark.parametrize("convention", [field.name for field in fields(Conventions)])
def test_any_convention_changes_the_fingerprint_of_a_ranking_measure(convention):
    changed = TREC_EVAL.with_conventions(**{convention: OTHERWISE[convention]})
    ranking, rating = Measure.parse("ndcg@10"), Measure.parse("rmse")

    assert ranking.fingerprint(changed) != ranking.fingerprint(TREC_EVAL)
    assert rating.fingerprint(changed) == rating.fingerprint(TREC_EVAL)


def test_the_name_of_a_profile_is_not_in_a_fingerprint():
    twin = replace(TREC_EVAL, name="twin", tool="another tool", because={})

    assert Measure.parse("ndcg@10", twin).fingerprint(twin) == fingerprint("ndcg@10")


def test_a_default_of_the_profile_is_in_the_fingerprint():
    """`ndcg@10` under a profile that gains exponentially is what others write as ndcg(gain=exponential)@10."""
    exponential = replace(TREC_EVAL, defaults={"ndcg": {"gain": "exponential"}})
    measure = Measure.parse("ndcg@10", exponential)

    assert str(measure) == "ndcg@10"
    assert measure.parameters["gain"] == "exponential"
    assert measure.fingerprint(exponential) == fingerprint("ndcg(gain=exponential)@10")
    assert Measure.parse("ndcg(gain=linear)@10", exponential).fingerprint(exponential) == fingerprint("ndcg@10")


def test_measures_are_values():
    measure = Measure.parse("rbp(p=0.5,gain=graded,max_grade=2)@20")
    again = Measure.parse("rbp(max_grade=2,gain=graded,p=0.5)@20")
    sent = [Measure.parse(text) for text in EVERY_VARIANT]

    assert again == measure
    assert hash(again) == hash(measure)
    assert copy.copy(measure).fingerprint(TREC_EVAL) == again.fingerprint(TREC_EVAL)
    assert len({Measure.parse("ndcg@10"), Measure.parse(" ndcg @10"), Measure.parse("ndcg@5")}) == 2
    assert pickle.loads(pickle.dumps(sent)) == sent


@pytest.mark.parametrize("text", ["dcg(discount=jarvelin,base=1e20)", "rbp(gain=graded,max_grade=1e300)@10"])
def test_whole_numbers_too_great_for_integers_stay_doubles(text):
    measure = Measure.parse(text)

    assert Measure.parse(str(measure)) == measure
    assert len(str(measure)) < 50
