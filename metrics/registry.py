"""Every metric by name: its function, and what a reader of its figures must know."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from metrics import cascade, catalogue, correlation, gain, ranking, rating, sets
from metrics.aggregation import MEAN, ROOT_MEAN_SQUARE, Aggregation

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
        function: takes a block and keyword parameters; gives (Q,), or one figure for `catalogue`.
        title: what it is called in prose.
        formula: in a line, with R relevant documents of the query, n retrieved, k the cutoff.
        range: the least and the greatest value.
        direction: whether a higher or a lower figure is better, or neither.
        reference: who defined it.
        input: which block it takes: `judged`, `catalogue` or `ratings`.
        pooled: the scale on which pooled ratings are averaged.
        undefined: what an undefined query does to the mean: `convention` leaves it to the conventions, `skip` leaves it
            out, for a 0 would read as a perfect or a neutral score.
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
    input: Literal["judged", "catalogue", "ratings"] = "judged"
    pooled: Aggregation = MEAN
    undefined: Literal["convention", "skip"] = "convention"
    conditions: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    version: int = 1

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters a measure may name, in the function's order; the cutoff `k` is not one of them."""
        found = {name: parameter for name, parameter in self._keywords.items() if name != "k"}
        return found | ({"average": AVERAGE} if self.input == "ratings" else {})

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
BREESE_1998 = "Breese, Heckerman & Kadie 1998, arXiv:1301.7363"
BUCKLEY_2000 = "Buckley & Voorhees 2000, doi:10.1145/345508.345543"
BUCKLEY_2004 = "Buckley & Voorhees 2004, doi:10.1145/1008992.1009000"
CHAPELLE_2009 = "Chapelle et al. 2009, doi:10.1145/1645953.1646033"
HERLOCKER_2004 = "Herlocker et al. 2004, doi:10.1145/963770.963772"
IR_MEASURES = "MacAvaney et al. 2022, doi:10.1007/978-3-030-99739-7_38 (ir_measures, Judged@k)"
JARVELIN_2002 = "Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418"
KENDALL_1938 = "Kendall 1938, doi:10.1093/biomet/30.1-2.81"
KENDALL_1945 = "Kendall 1945, doi:10.1093/biomet/33.3.239"
MANNING_2008 = "Manning, Raghavan & Schütze 2008, Introduction to Information Retrieval, section 8.4"
MOFFAT_2008 = "Moffat & Zobel 2008, doi:10.1145/1416950.1416952"
RIJSBERGEN_1979 = "van Rijsbergen 1979, Information Retrieval, chapter 7"
TREC_EVAL = "trec_eval 9.0.4, National Institute of Standards and Technology"
VIDEOLECTURES_2011 = "VideoLectures.NET challenge, ECML/PKDD 2011, evaluation metrics"
VOORHEES_1999 = "Voorhees 1999, The TREC-8 question answering track report"

_TABLE = (
    Metric("p", sets.p, "Precision", "tp / k, or tp / n without k", (0, 1), RIJSBERGEN_1979),
    Metric("r", sets.r, "Recall", "tp / R", (0, 1), RIJSBERGEN_1979),
    Metric("f1", sets.f1, "F1", "2 tp / (R + k), with n where there is no k", (0, 1), RIJSBERGEN_1979),
    Metric(
        "f", sets.f, "F measure", "(1 + beta²) tp / (beta² R + k), with n where there is no k", (0, 1), RIJSBERGEN_1979
    ),
    Metric("success", sets.success, "Success", "1 if tp > 0, else 0", (0, 1), TREC_EVAL),
    Metric("tp", sets.tp, "True positives", "relevant documents retrieved", (0, INF), RIJSBERGEN_1979),
    Metric("fp", sets.fp, "False positives", "min(k, n) - tp", (0, INF), RIJSBERGEN_1979, direction="lower"),
    Metric("fn", sets.fn, "False negatives", "R - tp", (0, INF), RIJSBERGEN_1979, direction="lower"),
    Metric("tn", sets.tn, "True negatives", "documents - min(k, n) - fn", (0, INF), RIJSBERGEN_1979),
    Metric(
        "judged",
        sets.judged,
        "Judged share",
        "judged retrieved / min(k, n)",
        (0, 1),
        IR_MEASURES,
        direction="neither",
        undefined="skip",
    ),
    Metric("rr", ranking.rr, "Reciprocal rank", "1 / rank of the first relevant document", (0, 1), VOORHEES_1999),
    Metric("ap", ranking.ap, "Average precision", "Σ p@rank of each relevant document / R", (0, 1), BUCKLEY_2000),
    Metric("rprec", ranking.rprec, "R-precision", "p@R", (0, 1), BUCKLEY_2000),
    Metric(
        "rp",
        ranking.rp,
        "Tie-aware R-precision",
        "|first k ∩ min(k, R) best and their ties| / min(k, R)",
        (0, 1),
        VIDEOLECTURES_2011,
    ),
    Metric(
        "avg_rp",
        ranking.avg_rp,
        "Average tie-aware R-precision",
        "mean of rp@k, k in cutoffs",
        (0, 1),
        VIDEOLECTURES_2011,
    ),
    Metric("iprec", ranking.iprec, "Interpolated precision", "max p@i where r@i ≥ recall", (0, 1), MANNING_2008),
    Metric(
        "ap11",
        ranking.ap11,
        "Eleven-point average precision",
        "mean of iprec at recall 0, 0.1 … 1",
        (0, 1),
        MANNING_2008,
    ),
    Metric(
        "bpref", ranking.bpref, "Binary preference", "Σ (1 - min(n above, R) / min(N, R)) / R", (0, 1), BUCKLEY_2004
    ),
    Metric("cg", gain.cg, "Cumulative gain", "Σ gain", (0, INF), JARVELIN_2002),
    Metric(
        "dcg",
        gain.dcg,
        "Discounted cumulative gain",
        "Σ gain / discount(rank)",
        (0, INF),
        JARVELIN_2002,
        conditions={"base": ("discount", "jarvelin")},
    ),
    Metric(
        "ndcg",
        gain.ndcg,
        "nDCG",
        "dcg / dcg of all judged documents, best first",
        (0, 1),
        JARVELIN_2002,
        conditions={"base": ("discount", "jarvelin")},
    ),
    Metric(
        "rbp",
        cascade.rbp,
        "Rank-biased precision",
        "(1 - p) Σ gain p^(rank - 1)",
        (0, 1),
        MOFFAT_2008,
        conditions={"rel": ("gain", "binary"), "max_grade": ("gain", "graded")},
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
        "rankscore",
        cascade.rankscore,
        "Rank score",
        "Σ 2^(-(rank - 1) / half_life) / its greatest value",
        (0, 1),
        BREESE_1998,
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
    ),
    Metric(
        "kendall_tau",
        correlation.kendall_tau,
        "Kendall's tau-b",
        "(concordant - discordant) / √(pairs · pairs of unequal grade)",
        (-1, 1),
        KENDALL_1945,
        undefined="skip",
    ),
    Metric("user_coverage", sets.user_coverage, "User coverage", "1 if n > 0, else 0", (0, 1), HERLOCKER_2004),
    Metric(
        "item_coverage",
        catalogue.item_coverage,
        "Item coverage",
        "documents in any first k / documents",
        (0, 1),
        HERLOCKER_2004,
        input="catalogue",
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
        pooled=ROOT_MEAN_SQUARE,
        undefined="skip",
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _TABLE})
