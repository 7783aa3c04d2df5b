"""Every metric in every variant: the measures that tests over all metrics run through."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["JUDGED_VARIANTS", "VARIANTS"]

_CUT = ("", "@1", "@3", "@10", "@1000")  # nothing cut, the top, the middle, deeper than any list


def _at(*texts: str, cutoffs: tuple[str, ...] = _CUT) -> tuple[str, ...]:
    return tuple(text + cutoff for text in texts for cutoff in cutoffs)


_GAINS = (
    *("", "(gain=exponential)", "(discount=jarvelin)", "(discount=jarvelin,base=10)"),
    *("(gain=linear,discount=log2)", "(gain=exponential,discount=jarvelin,base=1.5)"),
)
_RECALL_POINTS = ("", "recall_points=ceil", "recall_points=round", "rel=2,recall_points=truncate")

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "p": _at("p", "p(rel=2)", "p(denominator=retrieved)", "p(denominator=cutoff)"),
    "r": _at("r", "r(rel=2)", "r(denominator=cutoff)", "r(denominator=relevant)"),
    "f1": _at("f1", "f1(rel=1.5)"),
    "f": _at("f(beta=2)", "f(beta=0.5,rel=2)"),
    "success": _at("success", "success(rel=3)"),
    "tp": _at("tp", "tp(rel=2)"),
    "fp": _at("fp", "fp(rel=2)"),
    "fn": _at("fn", "fn(rel=2)"),
    "tn": _at("tn", "tn(rel=2)"),
    "judged": _at("judged"),
    "rr": _at("rr", "rr(rel=2)"),
    "ap": _at("ap", "ap(rel=2)", "ap(denominator=relevant)", "ap(denominator=cutoff)", "ap(denominator=hits)"),
    "rprec": ("rprec", "rprec(rel=2)", "rprec(rel=0.5)"),
    "rp": _at("rp", "rp(rel=2)", cutoffs=("@1", "@3", "@5", "@10", "@1000")),
    "avg_rp": ("avg_rp", "avg_rp(cutoffs=[1,2,7])", "avg_rp(cutoffs=[3],rel=2)"),
    "iprec": tuple(
        f"iprec(recall={level}{',' if words else ''}{words})"
        for level in ("0", "0.1", "0.33", "0.55", "0.7", "1")
        for words in _RECALL_POINTS
    ),
    "ap11": ("ap11", *(f"ap11({words})" for words in _RECALL_POINTS if words)),
    "bpref": ("bpref", "bpref(rel=2)", "bpref(rel=0.5)"),
    "cg": _at("cg", "cg(gain=linear)", "cg(gain=exponential)"),
    "dcg": _at(*(f"dcg{words}" for words in _GAINS)),
    "ndcg": _at(*(f"ndcg{words}" for words in _GAINS)),
    "rbp": _at(
        *("rbp", "rbp(p=0.5,rel=2)", "rbp(gain=binary)", "rbp(gain=graded)", "rbp(p=0.95,gain=graded,max_grade=5)")
    ),
    "err": _at(
        *("err", "err(max_grade=5)", "err(grades=exponential,continuation=0.9)"),
        *("err(grades=probability)", "err(grades=probability,continuation=0.5)"),
    ),
    "rankscore": _at("rankscore", "rankscore(half_life=1,rel=2)", "rankscore(half_life=0.3)"),
    "kendall_distance": _at("kendall_distance"),
    "kendall_tau": _at("kendall_tau"),
    "user_coverage": ("user_coverage",),
    "item_coverage": _at("item_coverage"),
    "mae": ("mae", "mae(average=pooled)", "mae(average=query)"),
    "mse": ("mse", "mse(average=pooled)", "mse(average=query)"),
    "rmse": ("rmse", "rmse(average=pooled)", "rmse(average=query)"),
}

_NOT_JUDGED = {"item_coverage", "mae", "mse", "rmse"}
JUDGED_VARIANTS = tuple(text for name, texts in VARIANTS.items() if name not in _NOT_JUDGED for text in texts)
