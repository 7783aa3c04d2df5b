"""Every metric by name: its function, and what a reader of its figures must know."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from metrics import (
    cascade,
    catalogue,
    correlation,
    counts,
    diversity,
    gain,
    incomplete,
    overlap,
    ranking,
    rating,
    recommendation,
    sets,
)
from metrics.aggregation import GEOMETRIC_MEAN, MEAN, ROOT_MEAN_SQUARE, Aggregation
from metrics.block import JudgedBlock
from metrics.moments import EXPLAINED_VARIANCE, R_SQUARED, moments
from metrics.terms import Summed, Terms

__all__ = ["METRICS", "Metric", "Parameter"]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a metric.

    Attributes:
        name: as it is written in a measure.
        type: the annotation: float, a Literal of the words allowed, a sequence of integers.
        default: what holds when it is not given; `inspect.Parameter.empty` where it must be.
    """

    name: str
    type: Any
    default: Any

    @property
    def required(self) -> bool:
        """Whether a measure must name it."""
        return self.default is inspect.Parameter.empty


AVERAGE = Parameter("average", Literal["pooled", "query"], "pooled")


@dataclass(frozen=True)
class Metric:
    """A metric: a function of a block, and what its figures mean.

    Attributes:
        name: as it is written in a config.
        function: takes a block and keyword parameters; gives (Q,), or one figure where `per` is `dataset`.
        title: what it is called in prose.
        formula: in a line, with R relevant documents of the query, n retrieved, k the cutoff.
        range: the least and the greatest value.
        direction: whether a higher or a lower figure is better, or neither.
        reference: who defined it.
        input: which block it takes: `judged`, `catalogue`, `rankings` (those of other models too) or `ratings`.
        per: what has a value: each `query`, or the `dataset` alone, which then has one figure and no interval.
        needs: what the dataset must have beside its judgments of queries.
        aggregation: the scale on which queries are averaged; for ratings, on which pooled ones are.
        moments: gives the (S, Q) means of each query that a pooled figure is made of, where it is none of the queries'
            own figures; takes a block and the origins of all the dataset's.
        undefined: what an undefined query does to the mean: `convention` leaves it to the conventions, `skip` leaves it
            out, for a 0 would read as a perfect or a neutral score.
        additive: whether each document's term depends on its own rank and grade alone, and nothing that is added or
            divided by on any rank: the mean score over all orders of tied documents then is exact.
        monotone: whether no order of tied documents scores beyond those with the best grades first and last.
        conditions: parameters that have an effect only where another has a certain value: `(other, value)` by name.
        version: raised by every change that moves a score.
    """

    name: str
    function: Callable[..., Any]
    title: str
    formula: str
    range: tuple[float, float]
    reference: str
    direction: Literal["higher", "lower", "neither"] = "higher"
    input: Literal["judged", "catalogue", "rankings", "ratings"] = "judged"
    per: Literal["query", "dataset"] = "query"
    needs: tuple[Literal["documents", "interactions", "subtopics"], ...] = ()
    aggregation: Aggregation = MEAN
    moments: Callable[..., Any] | None = None
    undefined: Literal["convention", "skip"] = "convention"
    additive: bool = False
    monotone: bool = True
    conditions: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    version: int = 1

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters a measure may name, in the function's order; the cutoff `k` is not one of them."""
        found = {name: parameter for name, parameter in self._keywords.items() if name != "k"}
        return found | ({"average": AVERAGE} if self.input == "ratings" else {})

    def terms(self, block: JudgedBlock, **arguments: Any) -> Terms:
        """The score of a judged metric before its last sum."""
        if not isinstance(self.function, Summed):
            raise TypeError(f"{self.name} is no sum over judged documents")
        return self.function.terms(block, **arguments)

    @property
    def of_subtopics(self) -> bool:
        """Whether it is of documents that are judged by subtopic."""
        return "subtopics" in self.needs

    @property
    def cutoff(self) -> Literal["refused", "optional", "required"]:
        """Whether `@k` may or must be written."""
        if "k" not in self._keywords:
            return "refused"
        return "required" if self._keywords["k"].required else "optional"

    @cached_property
    def _keywords(self) -> Mapping[str, Parameter]:
        types = typing.get_type_hints(self.function)
        signature = inspect.signature(self.function)
        return {
            name: Parameter(name, types[name], parameter.default)
            for name, parameter in signature.parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }


INF = float("inf")
ABDOLLAHPOURI_2017 = "Abdollahpouri, Burke & Mobasher 2017, doi:10.1145/3109859.3109912"
BREESE_1998 = "Breese, Heckerman & Kadie 1998, arXiv:1301.7363"
BUCKLEY_2000 = "Buckley & Voorhees 2000, doi:10.1145/345508.345543"
BUCKLEY_2004 = "Buckley & Voorhees 2004, doi:10.1145/1008992.1009000"
CHAPELLE_2009 = "Chapelle et al. 2009, doi:10.1145/1645953.1646033"
CHAPELLE_2011 = "Chapelle et al. 2011, doi:10.1007/s10791-011-9167-7"
CLARKE_2008 = "Clarke et al. 2008, doi:10.1145/1390334.1390446"
CLARKE_2009 = "Clarke, Kolla & Vechtomova 2009, doi:10.1007/978-3-642-04417-5_17"
CLARKE_2021 = "Clarke, Vtyurina & Smucker 2021, doi:10.1145/3451161"
FLEDER_2009 = "Fleder & Hosanagar 2009, doi:10.1287/mnsc.1080.0974"
HERLOCKER_2004 = "Herlocker et al. 2004, doi:10.1145/963770.963772"
HULL_1998 = "Hull 1998, The TREC-7 filtering track: description and analysis"
IR_MEASURES = "MacAvaney et al. 2022, doi:10.1007/978-3-030-99739-7_38 (ir_measures, Judged@k)"
JARVELIN_2002 = "Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418"
KENDALL_1938 = "Kendall 1938, doi:10.1093/biomet/30.1-2.81"
KENDALL_1945 = "Kendall 1945, doi:10.1093/biomet/33.3.239"
MANNING_2008 = "Manning, Raghavan & Schütze 2008, Introduction to Information Retrieval, section 8.4"
MOFFAT_2008 = "Moffat & Zobel 2008, doi:10.1145/1416950.1416952"
MURAKAMI_2008 = "Murakami, Mori & Orihara 2008, doi:10.1007/978-3-540-78197-4_5"
RIJSBERGEN_1979 = "van Rijsbergen 1979, Information Retrieval, chapter 7"
ROBERTSON_2006 = "Robertson 2006, doi:10.1145/1183614.1183630"
SAKAI_2005 = "Sakai 2005, doi:10.1007/978-3-540-31871-2_22"
SAKAI_2011 = "Sakai & Song 2011, doi:10.1145/2009916.2010055"
SHANNON_1948 = "Shannon 1948, doi:10.1002/j.1538-7305.1948.tb01338.x"
SKLEARN = "scikit-learn 1.9, explained_variance_score"
STECK_2018 = "Steck 2018, doi:10.1145/3240323.3240372"
TREC_EVAL = "trec_eval 9.0.4, National Institute of Standards and Technology"
TREC_EVAL_10 = "trec_eval 10.0, National Institute of Standards and Technology"
VIDEOLECTURES_2011 = "VideoLectures.NET challenge, ECML/PKDD 2011, evaluation metrics"
VOORHEES_1999 = "Voorhees 1999, The TREC-8 question answering track report"
WEBBER_2010 = "Webber, Moffat & Zobel 2010, doi:10.1145/1852102.1852106"
WRIGHT_1921 = "Wright 1921, Correlation and causation, Journal of Agricultural Research 20"
YILMAZ_2006 = "Yilmaz & Aslam 2006, doi:10.1145/1183614.1183633"
YILMAZ_2008 = "Yilmaz, Aslam & Robertson 2008, doi:10.1145/1390334.1390435"
YIN_2012 = "Yin et al. 2012, arXiv:1205.6700"
ZHAI_2003 = "Zhai, Cohen & Lafferty 2003, doi:10.1145/860435.860440"
ZHOU_2010 = "Zhou et al. 2010, doi:10.1073/pnas.1000488107"
ZIEGLER_2005 = "Ziegler et al. 2005, doi:10.1145/1060745.1060754"

_TABLE = (
    Metric("p", sets.p, "Precision", "tp / k, or tp / n without k", (0, 1), RIJSBERGEN_1979, additive=True),
    Metric("r", sets.r, "Recall", "tp / R", (0, 1), RIJSBERGEN_1979, additive=True),
    Metric(
        "relative_p",
        sets.relative_p,
        "Relative precision",
        "tp / min(k, R), with n where there is no k",
        (0, 1),
        TREC_EVAL,
        additive=True,
    ),
    Metric("f1", sets.f1, "F1", "2 tp / (R + k), with n where there is no k", (0, 1), RIJSBERGEN_1979, additive=True),
    Metric(
        "f",
        sets.f,
        "F measure",
        "(1 + beta²) tp / (beta² R + k), with n where there is no k",
        (0, 1),
        RIJSBERGEN_1979,
        additive=True,
    ),
    Metric("set_map", sets.set_map, "Average precision of a set", "tp² / (n R)", (0, 1), TREC_EVAL),
    Metric("success", sets.success, "Success", "1 if tp > 0, else 0", (0, 1), TREC_EVAL),
    Metric("tp", counts.tp, "True positives", "relevant documents retrieved", (0, INF), RIJSBERGEN_1979, additive=True),
    Metric(
        "fp",
        counts.fp,
        "False positives",
        "min(k, n) - tp",
        (0, INF),
        RIJSBERGEN_1979,
        direction="lower",
        additive=True,
    ),
    Metric("fn", counts.fn, "False negatives", "R - tp", (0, INF), RIJSBERGEN_1979, direction="lower", additive=True),
    Metric(
        "tn",
        counts.tn,
        "True negatives",
        "documents - min(k, n) - fn",
        (0, INF),
        RIJSBERGEN_1979,
        needs=("documents",),
        additive=True,
    ),
    Metric(
        "utility",
        counts.utility,
        "Utility",
        "a tp + b (n - tp) + c (R - tp) + d (documents - n - R + tp)",
        (-INF, INF),
        HULL_1998,
        additive=True,
    ),
    Metric(
        "num_ret",
        counts.num_ret,
        "Documents retrieved",
        "n",
        (0, INF),
        TREC_EVAL,
        direction="neither",
        additive=True,
    ),
    Metric(
        "num_rel",
        counts.num_rel,
        "Relevant documents",
        "R",
        (0, INF),
        TREC_EVAL,
        direction="neither",
        additive=True,
    ),
    Metric(
        "num_nonrel_judged_ret",
        counts.num_nonrel_judged_ret,
        "Judged non-relevant documents retrieved",
        "documents retrieved with a grade from 0 to below rel",
        (0, INF),
        TREC_EVAL,
        direction="neither",
        additive=True,
        monotone=False,  # cut at a depth, what stands between the best and the worst grades counts
    ),
    Metric(
        "judged",
        sets.judged,
        "Judged share",
        "judged retrieved / min(k, n)",
        (0, 1),
        IR_MEASURES,
        direction="neither",
        undefined="skip",
        additive=True,
    ),
    Metric(
        "unjudged",
        sets.unjudged,
        "Unjudged share",
        "unjudged retrieved / k, or / n without k",
        (0, 1),
        TREC_EVAL_10,
        direction="neither",
        additive=True,
    ),
    Metric("rr", ranking.rr, "Reciprocal rank", "1 / rank of the first relevant document", (0, 1), VOORHEES_1999),
    Metric("ap", ranking.ap, "Average precision", "Σ p@rank of each relevant document / R", (0, 1), BUCKLEY_2000),
    Metric(
        "gmap",
        ranking.ap,
        "Geometric mean of average precision",
        "ap of a query; exp of the mean of log max(ap, 0.00001) over queries",
        (0, 1),
        ROBERTSON_2006,
        aggregation=GEOMETRIC_MEAN,
    ),
    Metric("rprec", ranking.rprec, "R-precision", "p@R", (0, 1), BUCKLEY_2000, additive=True),
    Metric(
        "rprec_mult",
        ranking.rprec_mult,
        "R-precision at a multiple of R",
        "p@int(factor R + 0.9)",
        (0, 1),
        TREC_EVAL,
        additive=True,
    ),
    Metric(
        "rp",
        ranking.rp,
        "Tie-aware R-precision",
        "|first k ∩ min(k, R) best and their ties| / min(k, R)",
        (0, 1),
        VIDEOLECTURES_2011,
        additive=True,
    ),
    Metric(
        "avg_rp",
        ranking.avg_rp,
        "Average tie-aware R-precision",
        "mean of rp@k, k in cutoffs",
        (0, 1),
        VIDEOLECTURES_2011,
        additive=True,
        version=2,
    ),
    Metric("iprec", ranking.iprec, "Interpolated precision", "max p@i where r@i ≥ recall", (0, 1), MANNING_2008),
    Metric(
        "ap11",
        ranking.ap11,
        "Eleven-point average precision",
        "mean of iprec at recall 0, 0.1 … 1",
        (0, 1),
        MANNING_2008,
        version=2,
    ),
    Metric(
        "bpref", incomplete.bpref, "Binary preference", "Σ (1 - min(n above, R) / min(N, R)) / R", (0, 1), BUCKLEY_2004
    ),
    Metric(
        "gm_bpref",
        incomplete.bpref,
        "Geometric mean of binary preference",
        "bpref of a query; exp of the mean of log max(bpref, 0.00001) over queries",
        (0, 1),
        BUCKLEY_2004,
        aggregation=GEOMETRIC_MEAN,
    ),
    Metric(
        "infap",
        incomplete.infap,
        "Inferred average precision",
        "Σ (1/i + (i - 1)/i · share pooled above · share relevant of those judged above) / R",
        (0, 1),
        YILMAZ_2006,
        monotone=False,
    ),
    Metric(
        "bing",
        ranking.bing,
        "Binary G",
        "Σ 1 / log2(2 + documents above that are not relevant) / R",
        (0, 1),
        TREC_EVAL,
    ),
    Metric(
        "cg",
        gain.cg,
        "Cumulative gain",
        "Σ gain",
        (0, INF),
        JARVELIN_2002,
        additive=True,
        conditions={"rel": ("gain", "binary")},
    ),
    Metric(
        "dcg",
        gain.dcg,
        "Discounted cumulative gain",
        "Σ gain / discount(rank)",
        (0, INF),
        JARVELIN_2002,
        conditions={"base": ("discount", "jarvelin"), "rel": ("gain", "binary")},
        additive=True,
    ),
    Metric(
        "ndcg",
        gain.ndcg,
        "nDCG",
        "dcg / dcg of all judged documents, best first",
        (0, 1),
        JARVELIN_2002,
        conditions={"base": ("discount", "jarvelin"), "rel": ("gain", "binary")},
        additive=True,
    ),
    Metric(
        "q_measure",
        gain.q_measure,
        "Q-measure",
        "Σ (C + beta cg) / (rank + beta ideal cg) of each document with gain, the C-th of them / min(k, their number)",
        (0, 1),
        SAKAI_2005,
    ),
    Metric(
        "rndcg",
        gain.rndcg,
        "nDCG at R levels",
        "mean of ndcg@(documents judged at each positive grade or above), and of ndcg where n is greater",
        (0, 1),
        TREC_EVAL,
        additive=True,
    ),
    Metric(
        "ndcg_rel",
        gain.ndcg_rel,
        "nDCG at documents with gain",
        "mean of ndcg@rank of each document with gain",
        (0, 1),
        TREC_EVAL,
    ),
    Metric(
        "g",
        gain.g,
        "Normalised gain G",
        "Σ gain / log2(2 + Σ_{j≤i} (max(ideal gain, 1) - gain)) / Σ gain of all judged documents",
        (0, 1),
        TREC_EVAL,
        monotone=False,
    ),
    Metric(
        "rbp",
        cascade.rbp,
        "Rank-biased precision",
        "(1 - p) Σ gain p^(rank - 1)",
        (0, 1),
        MOFFAT_2008,
        conditions={"rel": ("gain", "binary"), "max_grade": ("gain", "graded")},
        additive=True,
    ),
    Metric(
        "rbp_resid",
        cascade.rbp_resid,
        "Residual of rank-biased precision",
        "1 - (1 - p) Σ p^(rank - 1) of the judged documents",
        (0, 1),
        MOFFAT_2008,
        direction="lower",
    ),
    Metric(
        "err",
        cascade.err,
        "Expected reciprocal rank",
        "Σ 1/i · R_i · continuation^(i - 1) · Π_{j<i} (1 - R_j)",
        (0, 1),
        CHAPELLE_2009,
        conditions={"max_grade": ("grades", "exponential")},
    ),
    Metric(
        "nerr",
        cascade.nerr,
        "Normalised expected reciprocal rank",
        "err / err of all judged documents, best first",
        (0, 1),
        SAKAI_2011,
        conditions={"max_grade": ("grades", "exponential")},
    ),
    Metric(
        "rankscore",
        cascade.rankscore,
        "Rank score",
        "Σ 2^(-(rank - 1) / half_life) / its greatest value",
        (0, 1),
        BREESE_1998,
        additive=True,
    ),
    Metric(
        "kendall_distance",
        correlation.kendall_distance,
        "Kendall tau distance",
        "pairs whose more relevant document stands below",
        (0, INF),
        KENDALL_1938,
        direction="lower",
        undefined="skip",
        monotone=False,
    ),
    Metric(
        "kendall_tau",
        correlation.kendall_tau,
        "Kendall's tau-b",
        "(concordant - discordant) / √(pairs · pairs of unequal grade)",
        (-1, 1),
        KENDALL_1945,
        undefined="skip",
        monotone=False,
    ),
    Metric(
        "ap_corr",
        correlation.ap_corr,
        "AP correlation",
        "Σ_{i>1} (concordant - discordant above) / (i - 1) / (compared - 1)",
        (-1, 1),
        YILMAZ_2008,
        undefined="skip",
        monotone=False,
    ),
    Metric(
        "compat",
        overlap.compat,
        "Compatibility",
        "Σ p^(d - 1) |first d ∩ first d of the likest ideal| / d / its greatest value",
        (0, 1),
        CLARKE_2021,
    ),
    Metric(
        "rbo",
        overlap.rbo,
        "Rank-biased overlap",
        "(1 - p) Σ p^(d - 1) |first d ∩ first d of the other model| / d, extrapolated",
        (0, 1),
        WEBBER_2010,
        direction="neither",
        input="rankings",
        undefined="skip",
    ),
    Metric(
        "alpha_ndcg",
        diversity.alpha_ndcg,
        "Alpha-nDCG",
        "Σ gain / log2(rank + 1) / that of the greedy list, gain = Σ (1 - alpha)^(documents of the subtopic above)",
        (0, INF),
        CLARKE_2008,
        needs=("subtopics",),
        monotone=False,
    ),
    Metric(
        "err_ia",
        diversity.err_ia,
        "Intent-aware expected reciprocal rank",
        "Σ gain / rank / subtopics / Σ_{i≤k} 0.5^(i - 1) / i, gain as in alpha_ndcg",
        (0, 1),
        CHAPELLE_2011,
        needs=("subtopics",),
        monotone=False,
    ),
    Metric(
        "nrbp",
        diversity.nrbp,
        "Novelty- and rank-biased precision",
        "(1 - (1 - alpha) beta) Σ gain beta^(rank - 1) / subtopics, gain as in alpha_ndcg",
        (0, 1),
        CLARKE_2009,
        needs=("subtopics",),
        monotone=False,
    ),
    Metric(
        "strec",
        diversity.strec,
        "Subtopic recall",
        "subtopics of the retrieved documents / subtopics",
        (0, 1),
        ZHAI_2003,
        needs=("subtopics",),
        monotone=False,
    ),
    Metric(
        "user_coverage",
        counts.user_coverage,
        "User coverage",
        "1 if n > 0, else 0",
        (0, 1),
        HERLOCKER_2004,
        additive=True,
    ),
    Metric(
        "item_coverage",
        catalogue.item_coverage,
        "Item coverage",
        "documents in any first k / documents",
        (0, 1),
        HERLOCKER_2004,
        input="catalogue",
        per="dataset",
        needs=("documents",),
    ),
    Metric(
        "gini",
        catalogue.gini,
        "Gini index",
        "Σ (2i - n - 1) lists of the document that is i-th by them / (n Σ lists), n documents",
        (0, 1),
        FLEDER_2009,
        direction="lower",
        input="catalogue",
        per="dataset",
        needs=("documents",),
    ),
    Metric(
        "entropy",
        catalogue.entropy,
        "Shannon entropy",
        "-Σ p log2 p, p a document's share of all recommendations",
        (0, INF),
        SHANNON_1948,
        input="catalogue",
        per="dataset",
    ),
    Metric(
        "personalization",
        catalogue.personalization,
        "Personalization",
        "1 - mean |shared| / √(|one list| |the other|) over all pairs of lists",
        (0, 1),
        ZHOU_2010,
        input="catalogue",
        per="dataset",
    ),
    Metric(
        "novelty",
        recommendation.novelty,
        "Novelty",
        "mean log2(queries that consumed anything / queries that consumed the document)",
        (0, INF),
        ZHOU_2010,
        input="catalogue",
        needs=("interactions",),
        undefined="skip",
    ),
    Metric(
        "popularity",
        recommendation.popularity,
        "Popularity",
        "mean number of queries that consumed the document",
        (0, INF),
        YIN_2012,
        direction="neither",
        input="catalogue",
        needs=("interactions",),
        undefined="skip",
    ),
    Metric(
        "tail_share",
        recommendation.tail_share,
        "Tail share",
        "documents of the long tail / min(k, n)",
        (0, 1),
        ABDOLLAHPOURI_2017,
        input="catalogue",
        needs=("interactions",),
        undefined="skip",
    ),
    Metric(
        "serendipity",
        recommendation.serendipity,
        "Serendipity",
        "mean max(popularity rank - rank, 0) / documents where relevant, else 0",
        (0, 1),
        MURAKAMI_2008,
        input="catalogue",
        needs=("documents", "interactions"),
    ),
    Metric(
        "diversity",
        recommendation.diversity,
        "Intra-list diversity",
        "mean 1 - cosine of two documents' features",
        (0, 2),
        ZIEGLER_2005,
        input="catalogue",
        needs=("documents",),
        undefined="skip",
    ),
    Metric(
        "calibration",
        recommendation.calibration,
        "Calibration",
        "Σ p ln(p / ((1 - alpha) q + alpha p)), p categories consumed before, q recommended",
        (0, INF),
        STECK_2018,
        direction="lower",
        input="catalogue",
        needs=("documents", "interactions"),
        undefined="skip",
        conditions={"alpha": ("divergence", "kl")},
    ),
    Metric(
        "mae",
        rating.mae,
        "Mean absolute error",
        "mean |prediction - rating|",
        (0, INF),
        HERLOCKER_2004,
        direction="lower",
        input="ratings",
        undefined="skip",
    ),
    Metric(
        "mse",
        rating.mse,
        "Mean squared error",
        "mean (prediction - rating)²",
        (0, INF),
        HERLOCKER_2004,
        direction="lower",
        input="ratings",
        undefined="skip",
    ),
    Metric(
        "rmse",
        rating.rmse,
        "Root mean squared error",
        "√ mean (prediction - rating)²",
        (0, INF),
        HERLOCKER_2004,
        direction="lower",
        input="ratings",
        aggregation=ROOT_MEAN_SQUARE,
        undefined="skip",
    ),
    Metric(
        "r2",
        rating.r2,
        "Coefficient of determination",
        "1 - Σ (prediction - rating)² / Σ (rating - mean rating)²",
        (-INF, 1),
        WRIGHT_1921,
        input="ratings",
        aggregation=R_SQUARED,
        moments=moments,
        undefined="skip",
    ),
    Metric(
        "explained_variance",
        rating.explained_variance,
        "Explained variance",
        "1 - variance of (prediction - rating) / variance of the rating",
        (-INF, 1),
        SKLEARN,
        input="ratings",
        aggregation=EXPLAINED_VARIANCE,
        moments=moments,
        undefined="skip",
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _TABLE})
