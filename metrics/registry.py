"""Registry of all metrics, one line each: function, title, and how to read the scores.

Input and parameters are read from the function's signature, formula and reference from its docstring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import log
from types import MappingProxyType
from typing import Literal

from rankledger.metrics import (
    agreement,
    catalogue,
    diversity,
    exposure,
    gain,
    language_models,
    logged,
    ranking,
    ratings,
    reading,
    recommendation,
    sets,
)
from rankledger.metrics.aggregation import (
    CALIBRATION_ERROR,
    EXPLAINED_VARIANCE,
    GEOMETRIC_MEAN,
    LINEARISED,
    MEAN,
    MOMENTS,
    R_SQUARED,
    ROOT_MEAN_SQUARE,
    pooled_auc,
    pooled_calibration_error,
    pooled_moments,
    pooled_pr_auc,
)
from rankledger.metrics.metric import Metric, Need

__all__ = ["METRICS"]

INF = float("inf")
COUNT = (0, INF)

BINARY = {"rel": ("gain", "binary")}
DISCOUNT = {"base": ("discount", "jarvelin")} | BINARY
GRADED = BINARY | {"max_grade": ("gain", "graded")}
EXPONENTIAL = {"max_grade": ("grades", "exponential")}
PATIENCE = {"p": ("discount", "geometric"), "t": ("discount", "inverse_square")}
STOPPING = {"gamma": ("stop", "rank_biased")}
SMOOTHED = {"alpha": ("divergence", "kl")}
PATIENT = {"p": ("attention", "geometric")}
CONSUMED: tuple[Need, ...] = ("documents", "interactions")
WEIGHTED = ("clicked", "weight")
TEAMS = ("clicked", "team", "impression_id")
PER_QUERY = ("query", "impressions", "positives")

_number = partial(Metric, range=COUNT, direction="neither", additive=True)
_error = partial(Metric, range=COUNT, direction="lower", undefined="skip")
_loss = partial(_error, of_probabilities=True)
_fit = partial(Metric, range=(-INF, 1), moments=pooled_moments, sums=MOMENTS, undefined="skip")
_area = partial(Metric, averages=("pooled", *PER_QUERY), aggregation=LINEARISED, undefined="skip")
_of_cluster = partial(Metric, needs=("cluster",), undefined="skip")
_consumption = partial(Metric, needs=("interactions",), undefined="skip")


def _log(
    name: str,
    function: logged.from_rows[...],
    title: str,
    columns: tuple[str, ...],
    range: tuple[float, float] = (0, 1),
    direction: Literal["higher", "neither"] = "higher",
) -> Metric:
    aggregation = function.aggregation
    plain = Metric(name, function, title, range, direction, columns=columns, aggregation=aggregation, undefined="skip")
    if aggregation is MEAN:
        return plain
    return replace(plain, moments=function.means, sums=("numerator", "normaliser"))


_TABLE = (
    Metric("p", sets.p, "Precision", additive=True),
    Metric("r", sets.r, "Recall", additive=True),
    Metric("relative_p", sets.relative_p, "Relative precision", additive=True),
    Metric("f1", sets.f1, "F1", additive=True),
    Metric("f", sets.f, "F measure", additive=True),
    Metric("set_map", sets.set_map, "Average precision of a set"),
    Metric("mar", sets.mar, "Mean average recall"),
    Metric("success", sets.success, "Success"),
    Metric("tp", sets.tp, "True positives", COUNT, additive=True),
    Metric("fp", sets.fp, "False positives", COUNT, direction="lower", additive=True),
    Metric("fn", sets.fn, "False negatives", COUNT, direction="lower", additive=True),
    Metric("tn", sets.tn, "True negatives", COUNT, needs=("documents",), additive=True),
    Metric(
        "fallout", sets.fallout, "Fall-out", direction="lower", needs=("documents",), undefined="skip", additive=True
    ),
    Metric("utility", sets.utility, "Utility", (-INF, INF), additive=True),
    _number("num_ret", sets.num_ret, "Documents retrieved"),
    _number("num_rel", sets.num_rel, "Relevant documents"),
    # Cut at a depth, what stands between the best and the worst grades sets.
    _number(
        "num_nonrel_judged_ret", sets.num_nonrel_judged_ret, "Judged non-relevant documents retrieved", monotone=False
    ),
    Metric("judged", sets.judged, "Judged share", direction="neither", undefined="skip", additive=True),
    Metric("unjudged", sets.unjudged, "Unjudged share", direction="neither", additive=True),
    Metric("rr", ranking.rr, "Reciprocal rank"),
    Metric("ap", ranking.ap, "Average precision"),
    Metric("gmap", ranking.gmap, "Geometric mean of average precision", aggregation=GEOMETRIC_MEAN),
    Metric("yaap", ranking.yaap, "Smoothed average precision", (-INF, INF)),
    Metric("rprec", ranking.rprec, "R-precision", additive=True),
    Metric("rprec_mult", ranking.rprec_mult, "R-precision at a multiple of R", additive=True),
    Metric("rp", ranking.rp, "Tie-aware R-precision", additive=True),
    Metric("avg_rp", ranking.avg_rp, "Average tie-aware R-precision", additive=True, version=2),
    Metric("iprec", ranking.iprec, "Interpolated precision"),
    Metric("ap11", ranking.ap11, "Eleven-point average precision", version=2),
    Metric("bpref", ranking.bpref, "Binary preference"),
    Metric("gm_bpref", ranking.gm_bpref, "Geometric mean of binary preference", aggregation=GEOMETRIC_MEAN),
    Metric("infap", ranking.infap, "Inferred average precision", monotone=False),
    Metric("bing", gain.bing, "Binary G"),
    Metric("cg", gain.cg, "Cumulative gain", COUNT, additive=True, conditions=BINARY),
    Metric("dcg", gain.dcg, "Discounted cumulative gain", COUNT, additive=True, conditions=DISCOUNT),
    Metric("ndcg", gain.ndcg, "nDCG", additive=True, conditions=DISCOUNT),
    Metric("q_measure", gain.q_measure, "Q-measure"),
    Metric("o_measure", gain.o_measure, "O-measure"),
    Metric("p_measure", gain.p_measure, "P-measure", monotone=False),
    Metric("p_plus", gain.p_plus, "P-plus", monotone=False),
    Metric("ncu", gain.ncu, "Normalised cumulative utility", conditions=STOPPING, monotone=False),
    Metric("rndcg", gain.rndcg, "nDCG at R levels", additive=True),
    Metric("ndcg_rel", gain.ndcg_rel, "nDCG at documents with gain"),
    Metric("g", gain.g, "Normalised gain G", monotone=False),
    Metric("rbp", reading.rbp, "Rank-biased precision", additive=True, conditions=GRADED),
    Metric("rbp_resid", reading.rbp_resid, "Residual of rank-biased precision", direction="lower"),
    Metric("err", reading.err, "Expected reciprocal rank", conditions=EXPONENTIAL),
    Metric("nerr", reading.nerr, "Normalised expected reciprocal rank", conditions=EXPONENTIAL),
    Metric("sdcg", reading.sdcg, "Scaled DCG", additive=True),
    Metric("insq", reading.insq, "INSQ", additive=True),
    Metric("inst", reading.inst, "INST", monotone=False),
    Metric("nearly_err", reading.nearly_err, "Not (but nearly) ERR", conditions=PATIENCE, monotone=False),
    Metric("bpm", reading.bpm, "Bejeweled player model", monotone=False),
    Metric("snips_dcg", logged.snips_dcg, "Propensity-weighted DCG", undefined="skip", additive=True),
    Metric("snips_rbp", logged.snips_rbp, "Propensity-weighted RBP", undefined="skip", additive=True),
    Metric("rankscore", reading.rankscore, "Rank score", additive=True),
    _error("kendall_distance", agreement.kendall_distance, "Kendall tau distance", monotone=False),
    Metric("kendall_tau", agreement.kendall_tau, "Kendall's tau-b", (-1, 1), undefined="skip", monotone=False),
    Metric("ap_corr", agreement.ap_corr, "AP correlation", (-1, 1), undefined="skip", monotone=False),
    Metric("compat", agreement.compat, "Compatibility"),
    Metric("rbo", agreement.rbo, "Rank-biased overlap", direction="neither", undefined="skip"),
    Metric("alpha_ndcg", diversity.alpha_ndcg, "Alpha-nDCG", COUNT, needs=("subtopics",), monotone=False),
    Metric("err_ia", diversity.err_ia, "Intent-aware expected reciprocal rank", needs=("subtopics",), monotone=False),
    Metric("nrbp", diversity.nrbp, "Novelty- and rank-biased precision", needs=("subtopics",), monotone=False),
    Metric(
        "nerr_ia",
        diversity.nerr_ia,
        "Normalised intent-aware expected reciprocal rank",
        COUNT,
        needs=("subtopics",),
        monotone=False,
    ),
    Metric(
        "nnrbp",
        diversity.nnrbp,
        "Normalised novelty- and rank-biased precision",
        COUNT,
        needs=("subtopics",),
        monotone=False,
    ),
    Metric("ap_ia", diversity.ap_ia, "Intent-aware average precision", needs=("subtopics",), monotone=False),
    Metric("p_ia", diversity.p_ia, "Intent-aware precision", needs=("subtopics",), additive=True),
    Metric("strec", diversity.strec, "Subtopic recall", needs=("subtopics",), monotone=False),
    Metric("kilt_rprec", diversity.kilt_rprec, "R-precision of evidence sets", needs=("subtopics",), monotone=False),
    Metric("kilt_r", diversity.kilt_r, "Recall of evidence sets", needs=("subtopics",), monotone=False),
    _of_cluster("robustness", language_models.robustness, "Robustness"),
    _of_cluster("paired_accuracy", language_models.paired_accuracy, "Paired accuracy"),
    Metric("p_mrr", language_models.p_mrr, "p-MRR", (-1, 1), undefined="skip", monotone=False),
    Metric("nauc", language_models.nauc, "nAUC of abstention", (-INF, 1)),
    Metric("user_coverage", sets.user_coverage, "User coverage", additive=True),
    Metric("item_coverage", catalogue.item_coverage, "Item coverage", needs=("documents",)),
    Metric("gini", catalogue.gini, "Gini index", direction="lower", needs=("documents",)),
    Metric("entropy", catalogue.entropy, "Shannon entropy", COUNT),
    Metric("personalization", catalogue.personalization, "Personalization"),
    _consumption("novelty", recommendation.novelty, "Novelty", COUNT),
    Metric("efd", recommendation.efd, "Expected free discovery", COUNT, needs=("interactions",)),
    Metric("epc", recommendation.epc, "Expected popularity complement", needs=("interactions",)),
    _consumption("popularity", recommendation.popularity, "Popularity", COUNT, direction="neither"),
    _consumption("tail_share", recommendation.tail_share, "Tail share"),
    Metric("serendipity", recommendation.serendipity, "Serendipity", needs=CONSUMED),
    Metric(
        "diversity", recommendation.diversity, "Intra-list diversity", (0, 2), needs=("documents",), undefined="skip"
    ),
    _error("calibration", recommendation.calibration, "Calibration", needs=CONSUMED, conditions=SMOOTHED),
    Metric(
        "awrf",
        exposure.awrf,
        "Attention-weighted rank fairness",
        (1 - log(2), 1),
        needs=("documents",),
        undefined="skip",
        conditions=PATIENT | {"rel": ("target", "relevant")},
    ),
    _error("ee_l", exposure.ee_l, "Expected exposure loss", needs=("documents",), conditions=PATIENT),
    _error("ee_d", exposure.ee_d, "Expected exposure disparity", needs=("documents",), conditions=PATIENT),
    _error(
        "ee_r",
        exposure.ee_r,
        "Expected exposure relevance",
        direction="higher",
        needs=("documents",),
        conditions=PATIENT,
    ),
    Metric(
        "exposure_ratio",
        exposure.exposure_ratio,
        "Exposure ratio",
        needs=("documents",),
        conditions=PATIENT | {"rel": ("per", "relevant")},
    ),
    _error("reo", exposure.reo, "Ranking-based equal opportunity", needs=("documents",)),
    _error("rsp", exposure.rsp, "Ranking-based statistical parity", needs=CONSUMED, version=2),
    _error("pop_reo", exposure.pop_reo, "Popularity-based equal opportunity", range=(0, 1), needs=("interactions",)),
    _error("pop_rsp", exposure.pop_rsp, "Popularity-based statistical parity", range=(0, 1), needs=CONSUMED, version=2),
    _error("mae", ratings.mae, "Mean absolute error"),
    _error("mse", ratings.mse, "Mean squared error"),
    _error("rmse", ratings.rmse, "Root mean squared error", aggregation=ROOT_MEAN_SQUARE),
    _fit("r2", ratings.r2, "Coefficient of determination", aggregation=R_SQUARED),
    _fit("explained_variance", ratings.explained_variance, "Explained variance", aggregation=EXPLAINED_VARIANCE),
    _log("ctr", logged.ctr, "Click-through rate", ("clicked",)),
    _log("dwell", logged.dwell, "Dwell time per click", ("clicked", "dwell"), COUNT),
    _log("satisfied", logged.satisfied, "Satisfied clicks", ("clicked", "dwell")),
    _log("ips", logged.ips, "Inverse propensity score", WEIGHTED, COUNT),
    _log("snips", logged.snips, "Self-normalised inverse propensity score", WEIGHTED),
    _log("dr", logged.dr, "Doubly robust estimate", (*WEIGHTED, "expected", "predicted"), (-INF, INF)),
    _log("ess", logged.ess, "Effective share of the sample", ("weight",), direction="neither"),
    _log("interleaving", logged.interleaving, "Interleaving preference", TEAMS, (-0.5, 0.5)),
    _area("auc", ratings.auc, "Area under the ROC curve", moments=pooled_auc),
    Metric("lauc", ratings.lauc, "Limited area under the ROC curve", averages=PER_QUERY, undefined="skip"),
    _area("pr_auc", ratings.pr_auc, "Area under the precision-recall curve", moments=pooled_pr_auc),
    _loss("log_loss", ratings.log_loss, "Logarithmic loss"),
    _loss("brier", ratings.brier, "Brier score", range=(0, 1)),
    _loss(
        "calibration_error",
        ratings.calibration_error,
        "Expected calibration error",
        range=(0, 1),
        aggregation=CALIBRATION_ERROR,
        moments=pooled_calibration_error,
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _TABLE})
