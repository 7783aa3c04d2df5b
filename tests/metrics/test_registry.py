"""The registry: what it says of each metric is complete, and true of the metric's function."""

import inspect
import re
import typing
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from rankledger.metrics.aggregation import (
    CALIBRATION_ERROR,
    EFFECTIVE_SHARE,
    EXPLAINED_VARIANCE,
    GEOMETRIC_MEAN,
    LINEARISED,
    MEAN,
    R_SQUARED,
    RATIO,
    ROOT_MEAN_SQUARE,
)
from rankledger.metrics.block import Floats, JudgedBlock, Terms, from_terms
from rankledger.metrics.logged import from_rows
from rankledger.metrics.metric import Metric
from rankledger.metrics.registry import METRICS
from tests.support.each import each

LABELLED = ("auc", "lauc", "pr_auc", "log_loss", "brier", "calibration_error")
EVERY_METRIC = each("metric", METRICS)


def test_the_registry_holds_what_was_asked_for():
    asked = """
        p r f1 f success tp fp fn tn rr ap rprec rp avg_rp iprec ap11 cg dcg ndcg rbp err rankscore kendall_distance
        kendall_tau judged bpref mae mse rmse user_coverage item_coverage
        gmap gm_bpref infap g bing rndcg ndcg_rel relative_p set_map utility rprec_mult num_ret num_rel
        num_nonrel_judged_ret rbp_resid unjudged
        q_measure nerr ap_corr compat rbo alpha_ndcg err_ia nrbp strec
        o_measure p_measure p_plus ncu sdcg insq inst bpm nerr_ia nnrbp ap_ia p_ia kilt_rprec kilt_r
        robustness paired_accuracy p_mrr nearly_err fallout mar yaap epc efd nauc
        awrf ee_l ee_d ee_r exposure_ratio reo rsp pop_reo pop_rsp
    """
    assert set(asked.split()) <= set(METRICS)


def test_the_registry_cannot_be_changed():
    with pytest.raises(TypeError):
        METRICS["new"] = METRICS["ap"]
    with pytest.raises(FrozenInstanceError):
        METRICS["ap"].version = 2


def test_every_public_metric_function_is_registered():
    exported = {
        getattr(module, name)
        for module in {inspect.getmodule(metric.function) for metric in METRICS.values()}
        for name in module.__all__
        if inspect.isfunction(getattr(module, name)) or isinstance(getattr(module, name), from_terms | from_rows)
    }

    assert exported == {metric.function for metric in METRICS.values()}


@EVERY_METRIC
def test_names_are_keys_and_function_names(metric):
    assert METRICS[metric.name] is metric
    assert metric.function.__name__ == metric.name
    assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)


@EVERY_METRIC
def test_every_metric_is_described(metric):
    assert metric.title
    assert metric.formula
    assert len(metric.reference) > 10
    assert metric.range[0] < metric.range[1]
    assert metric.version >= 1
    assert "\n" not in metric.title + metric.formula + metric.reference


@EVERY_METRIC
def test_docstrings_name_every_parameter(metric):
    text = inspect.getdoc(metric.function)
    described = re.findall(r"^    (\w+):", text.partition("Args:\n")[2].partition("\n\n")[0], flags=re.MULTILINE)
    options = [name for name in inspect.signature(metric.function).parameters if name != "block"]

    assert described in (options, ["block", *options])
    assert "Returns:\n" in text
    assert "Reference:\n" in text


@EVERY_METRIC
def test_options_are_keyword_only(metric):
    block, *options = inspect.signature(metric.function).parameters.values()

    assert block.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)


@EVERY_METRIC
def test_signatures_say_what_a_call_gives(metric):
    """(Q,) floats, or one figure of a whole dataset; only `terms` gives terms."""
    of_call = typing.get_type_hints(metric.function)["return"]

    assert of_call == (float if metric.per == "dataset" else Floats)
    if isinstance(metric.function, from_terms):
        assert inspect.signature(metric.function).return_annotation == Floats
        assert typing.get_type_hints(metric.function.terms)["return"] is Terms


@EVERY_METRIC
def test_parameters_are_those_of_the_function(metric):
    signature = inspect.signature(metric.function).parameters
    expected = [name for name in signature if name not in {"block", "k"}]
    defaults = {name: metric.parameters[name].default for name in expected}

    assert list(metric.parameters) == expected + (["average"] if metric.input in ("ratings", "logs") else [])
    assert defaults == {name: signature[name].default for name in expected}


@EVERY_METRIC
def test_cutoffs_follow_the_function(metric):
    k = inspect.signature(metric.function).parameters.get("k")
    expected = "refused" if k is None else "required" if k.default is inspect.Parameter.empty else "optional"

    assert metric.cutoff == expected


OF_GROUPS = ("awrf", "ee_l", "ee_d", "ee_r", "exposure_ratio", "reo", "rsp")
NAMED = {
    ("rbo", "model"),
    ("p_mrr", "model"),
    *((name, "feature") for name in ("diversity", "calibration", *OF_GROUPS)),
}


def test_which_cutoffs_and_parameters_are_required():
    required = {
        (name, parameter.name)
        for name, metric in METRICS.items()
        for parameter in metric.parameters.values()
        if parameter.required
    }

    assert {name for name, metric in METRICS.items() if metric.cutoff == "required"} == {
        *("rp", "sdcg", "bpm", "p_ia", "mar", "nearly_err", "lauc")
    }
    assert required == {("f", "beta"), ("iprec", "recall"), ("rprec_mult", "factor"), *NAMED}


DEFAULTS = """
    p(denominator=cutoff) r(denominator=relevant) mar(at=ranks) utility(a=1,b=-1,c=0,d=0) judged(empty=undefined)
    ap(denominator=relevant) gmap(denominator=relevant) avg_rp(cutoffs=(5,10)) iprec(recall_points=truncate)
    ap11(recall_points=truncate) cg(gain=linear) dcg(gain=linear,discount=log2,base=2)
    ndcg(gain=linear,discount=log2,base=2) q_measure(beta=1,gain=linear,denominator=cutoff)
    o_measure(beta=1,gain=linear) p_measure(beta=1,gain=linear) p_plus(beta=1,gain=linear)
    ncu(beta=1,stop=rank_biased,gamma=0.95,gain=linear) rndcg(gain=linear) ndcg_rel(gain=linear) g(gain=linear)
    rbp(p=0.8,gain=binary,max_grade=None) rbp_resid(p=0.8,below=counted)
    err(grades=exponential,max_grade=None,continuation=1.0) nerr(grades=exponential,max_grade=None,continuation=1.0)
    sdcg(max_grade=None) insq(t=1.0,max_grade=None) inst(t=1.0,max_grade=None)
    nearly_err(discount=none,p=0.9,t=1.0,max_grade=None) bpm(t=1.0,max_grade=None) snips_rbp(p=0.8)
    rankscore(half_life=5.0) compat(p=0.95) rbo(p=0.9,form=extrapolated) alpha_ndcg(alpha=0.5)
    nrbp(alpha=0.5,beta=0.5) nnrbp(alpha=0.5,beta=0.5) nauc(of=ndcg,confidence=max) novelty(share=queries)
    tail_share(tail=0.2,of=interactions) calibration(divergence=kl,alpha=0.01)
    awrf(target=relevant,attention=jarvelin,p=0.5) ee_l(attention=geometric,p=0.5,documents=relevant,gain=graded)
    ee_d(attention=geometric,p=0.5,documents=relevant) ee_r(attention=geometric,p=0.5,documents=relevant,gain=graded)
    exposure_ratio(per=document,attention=log2,p=0.5) pop_reo(tail=0.2,of=interactions)
    pop_rsp(tail=0.2,of=interactions) mae(average=pooled) mse(average=pooled) rmse(average=pooled) r2(average=pooled)
    explained_variance(average=pooled) ctr(average=pooled) dwell(average=pooled) satisfied(seconds=30,average=pooled)
    ips(clip=None,average=pooled) snips(clip=None,average=pooled) dr(clip=None,average=pooled)
    ess(clip=None,average=pooled) interleaving(ties=count,average=pooled) auc(average=pooled) lauc(average=query)
    pr_auc(average=pooled) log_loss(average=pooled) brier(average=pooled)
    calibration_error(bins=15,binning=width,average=pooled)
"""


def test_defaults_that_hold_unless_a_measure_says_otherwise():
    found = {
        name: [
            f"{parameter.name}={parameter.default}".replace(" ", "")
            for parameter in metric.parameters.values()
            if not parameter.required and parameter.name != "rel"
        ]
        for name, metric in METRICS.items()
    }

    assert [f"{name}({','.join(own)})" for name, own in found.items() if own] == DEFAULTS.split()


def test_a_document_is_relevant_from_grade_1_by_default():
    with_threshold = {name for name, metric in METRICS.items() if "rel" in metric.parameters}

    assert all(METRICS[name].parameters["rel"].default == 1 for name in with_threshold)
    assert with_threshold == {
        *("p", "r", "f1", "f", "success", "tp", "fp", "fn", "tn", "rr", "ap", "rprec", "rp", "avg_rp", "iprec", "ap11"),
        *("bpref", "rbp", "rankscore"),
        *("gmap", "gm_bpref", "infap", "bing", "rprec_mult", "relative_p", "set_map", "utility", "num_rel", "rndcg"),
        *("num_nonrel_judged_ret", "alpha_ndcg", "err_ia", "nrbp", "strec", "serendipity", "cg", "dcg", "ndcg"),
        *("nerr_ia", "nnrbp", "ap_ia", "p_ia", "kilt_rprec", "kilt_r", "paired_accuracy", "p_mrr"),
        *("mar", "fallout", "yaap", "epc", "efd", "nauc"),
        *("awrf", "ee_l", "ee_d", "ee_r", "exposure_ratio", "reo", "pop_reo"),
        *LABELLED,
    }


def test_directions():
    directions = {name: metric.direction for name, metric in METRICS.items() if metric.direction != "higher"}

    assert directions == {
        **dict.fromkeys(["fp", "fn", "kendall_distance", "mae", "mse", "rmse"], "lower"),
        **dict.fromkeys(["rbp_resid", "gini", "calibration", "fallout"], "lower"),
        **dict.fromkeys(["ee_l", "ee_d", "reo", "rsp", "pop_reo", "pop_rsp"], "lower"),
        **dict.fromkeys(["log_loss", "brier", "calibration_error"], "lower"),
        **dict.fromkeys(["judged", "unjudged", "num_ret", "num_rel", "num_nonrel_judged_ret"], "neither"),
        **dict.fromkeys(["rbo", "popularity", "ess"], "neither"),
    }


def test_inputs():
    inputs = {name: metric.input for name, metric in METRICS.items() if metric.input != "judged"}

    assert inputs == {
        **dict.fromkeys(["mae", "mse", "rmse", "r2", "explained_variance", *LABELLED], "ratings"),
        **dict.fromkeys(["item_coverage", "gini", "entropy", "personalization", "novelty", "popularity"], "catalogue"),
        **dict.fromkeys(["tail_share", "serendipity", "diversity", "calibration", "epc", "efd"], "catalogue"),
        **dict.fromkeys([*OF_GROUPS, "pop_reo", "pop_rsp"], "catalogue"),
        "rbo": "rankings",
        "p_mrr": "outputs",
        "nauc": "confidence",
        **dict.fromkeys(["ctr", "dwell", "satisfied", "ips", "snips", "dr", "ess", "interleaving"], "logs"),
    }


def test_scales_of_aggregation():
    scales = {"rmse": ROOT_MEAN_SQUARE, "gmap": GEOMETRIC_MEAN, "gm_bpref": GEOMETRIC_MEAN}
    of_logs = {**dict.fromkeys(["dwell", "satisfied", "snips", "interleaving"], RATIO), "ess": EFFECTIVE_SHARE}
    of_labels = {"auc": LINEARISED, "pr_auc": LINEARISED, "calibration_error": CALIBRATION_ERROR}
    several = {"r2": R_SQUARED, "explained_variance": EXPLAINED_VARIANCE, **of_logs, **of_labels}
    scales |= several

    for name, metric in METRICS.items():
        assert metric.aggregation is scales.get(name, MEAN)
        assert (metric.moments is not None) == (name in several)


def test_what_a_0_would_flatter_is_skipped():
    """Counted as 0, an undefined distance or error would be perfect, a tau neutral, a judged share a poor pool; and the
    queries of a cluster but the first have no score."""
    skipped = {name for name, metric in METRICS.items() if metric.undefined == "skip"}

    assert skipped == {
        *("fallout", "judged", "kendall_distance", "kendall_tau", "ap_corr", "rbo", "mae", "mse", "rmse", "r2"),
        "explained_variance",
        *("novelty", "popularity", "tail_share", "diversity", "calibration", "snips_dcg", "snips_rbp"),
        *("ctr", "dwell", "satisfied", "ips", "snips", "dr", "ess", "interleaving"),
        *("robustness", "paired_accuracy", "p_mrr"),
        *("awrf", "ee_l", "ee_d", "ee_r", "reo", "rsp", "pop_reo", "pop_rsp"),
        *LABELLED,
    }


def test_a_lower_metric_never_turns_undefined_into_0_without_reason():
    """Where lower is better and undefined counts by the convention, the metric is never undefined."""
    by_convention = {
        name for name, metric in METRICS.items() if metric.direction == "lower" and metric.undefined == "convention"
    }

    assert by_convention == {"fp", "fn", "rbp_resid", "gini"}


@EVERY_METRIC
def test_literal_defaults_are_among_the_words(metric):
    for parameter in metric.parameters.values():
        if typing.get_origin(parameter.type) is typing.Literal:
            assert parameter.default in typing.get_args(parameter.type)


def test_a_metric_is_a_plain_value():
    def depth(block: JudgedBlock, *, k: int | None = None, scale: float = 2.0) -> Floats:
        """Nothing.

        Formula: 0 k,
        of the query.

        Args:
            block: what.

        Reference:
            Doe 2020, doi:10.1/2.3, section 5; Roe 2021.
        """
        return np.zeros(1)

    metric = Metric("depth", depth, "Depth")

    assert (metric.formula, metric.reference) == ("0 k, of the query", "Doe 2020, doi:10.1/2.3")
    assert (metric.direction, metric.input, metric.undefined, metric.version) == ("higher", "judged", "convention", 1)
    assert metric.cutoff == "optional"
    assert {name: parameter.default for name, parameter in metric.parameters.items()} == {"scale": 2.0}
