"""Every metric in every variant: the measures that tests over all metrics run through."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from rankledger.metrics.measure import Measure
from rankledger.metrics.registry import METRICS
from tests.support.each import each

_CUT = ("", "@1", "@3", "@10", "@1000")  # nothing cut, the top, the middle, deeper than any list


def _at(*texts: str, cutoffs: tuple[str, ...] = _CUT) -> tuple[str, ...]:
    return tuple(text + cutoff for text in texts for cutoff in cutoffs)


def _of_log(name: str, *words: str) -> tuple[str, ...]:
    return (name, *(f"{name}({own})" for own in (*words, "average=pooled", "average=query")))


_GAINS = (
    *("", "(gain=exponential)", "(discount=jarvelin)", "(discount=jarvelin,base=10)"),
    *(
        "(gain=linear,discount=log2)",
        "(gain=exponential,discount=jarvelin,base=1.5)",
        "(gain=binary)",
        "(gain=binary,rel=2)",
    ),
)
_RECALL_POINTS = ("", "recall_points=ceil", "recall_points=round", "rel=2,recall_points=truncate")

_EXPOSURES = (
    *("", ",documents=all", ",documents=relevant,rel=2", ",gain=binary", ",gain=graded", ",attention=geometric,p=0.8"),
    *(f",attention={model}" for model in ("log2", "jarvelin", "reciprocal", "uniform")),
)

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
    "fallout": _at("fallout", "fallout(rel=2)"),
    "mar": _at("mar", "mar(rel=2,at=ranks)", "mar(at=hits)", cutoffs=_CUT[1:]),
    "yaap": ("yaap", "yaap(rel=2)"),
    "judged": _at("judged", "judged(empty=undefined)", "judged(empty=zero)"),
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
    "gmap": _at(
        "gmap", "gmap(rel=2)", "gmap(denominator=relevant)", "gmap(denominator=cutoff)", "gmap(denominator=hits)"
    ),
    "gm_bpref": ("gm_bpref", "gm_bpref(rel=2)"),
    "infap": ("infap", "infap(rel=2)", "infap(rel=0.5)"),
    "bing": ("bing", "bing(rel=2)"),
    "rprec_mult": tuple(
        f"rprec_mult(factor={factor}{rel})" for factor in ("0.05", "0.2", "1", "1.4", "5") for rel in ("", ",rel=2")
    ),
    "relative_p": _at("relative_p", "relative_p(rel=2)"),
    "set_map": ("set_map", "set_map(rel=2)"),
    "utility": ("utility", "utility(a=2,b=-1,c=-3)", "utility(a=0.5,d=0.25)", "utility(a=1,b=0,c=0,d=1,rel=2)"),
    "num_ret": ("num_ret",),
    "num_rel": ("num_rel", "num_rel(rel=2)"),
    "num_nonrel_judged_ret": ("num_nonrel_judged_ret", "num_nonrel_judged_ret(rel=2)"),
    "unjudged": _at("unjudged"),
    "rndcg": ("rndcg", "rndcg(gain=linear,rel=2)", "rndcg(gain=exponential)"),
    "ndcg_rel": ("ndcg_rel", "ndcg_rel(gain=linear)", "ndcg_rel(gain=exponential)"),
    "g": ("g", "g(gain=linear)", "g(gain=exponential)"),
    "rbp_resid": _at(
        "rbp_resid", "rbp_resid(p=0.5)", "rbp_resid(below=counted)", "rbp_resid(p=0.95,below=if_unjudged)"
    ),
    "cg": _at("cg", "cg(gain=linear)", "cg(gain=exponential)", "cg(gain=binary,rel=2)"),
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
    "q_measure": _at(
        *("q_measure", "q_measure(beta=0,gain=linear)", "q_measure(beta=10,gain=exponential)"),
        *("q_measure(denominator=cutoff)", "q_measure(denominator=relevant)"),
    ),
    "o_measure": _at("o_measure", "o_measure(beta=0,gain=linear)", "o_measure(beta=10,gain=exponential)"),
    "p_measure": _at("p_measure", "p_measure(beta=0,gain=linear)", "p_measure(beta=10,gain=exponential)"),
    "p_plus": _at("p_plus", "p_plus(beta=0,gain=linear)", "p_plus(beta=10,gain=exponential)"),
    "ncu": _at(
        *("ncu", "ncu(beta=0,stop=rank_biased,gamma=0.5)", "ncu(beta=10,gamma=1,gain=exponential)"),
        *("ncu(stop=graded,gain=linear)", "ncu(beta=0,stop=graded,gain=exponential)"),
    ),
    "sdcg": _at("sdcg", "sdcg(max_grade=5)", cutoffs=_CUT[1:]),
    "insq": _at("insq", "insq(t=2.5)", "insq(t=1,max_grade=5)"),
    "inst": _at("inst", "inst(t=2.5)", "inst(t=1,max_grade=5)"),
    "nearly_err": _at(
        *("nearly_err", "nearly_err(discount=none,max_grade=5)", "nearly_err(discount=reciprocal)"),
        *("nearly_err(discount=geometric)", "nearly_err(discount=geometric,p=0.5)"),
        *("nearly_err(discount=inverse_square)", "nearly_err(discount=inverse_square,t=2.5)"),
        cutoffs=_CUT[1:],
    ),
    "bpm": _at("bpm", "bpm(t=0.4)", "bpm(t=3,max_grade=5)", cutoffs=_CUT[1:]),
    "nerr": _at(
        *("nerr", "nerr(max_grade=5)", "nerr(grades=exponential,continuation=0.9)"),
        *("nerr(grades=probability)", "nerr(grades=probability,continuation=0.5)"),
    ),
    "ap_corr": _at("ap_corr"),
    "compat": _at("compat", "compat(p=0.5)"),
    "alpha_ndcg": _at("alpha_ndcg", "alpha_ndcg(alpha=0)", "alpha_ndcg(alpha=1)", "alpha_ndcg(alpha=0.3,rel=2)"),
    "err_ia": _at("err_ia", "err_ia(rel=2)"),
    "nrbp": _at("nrbp", "nrbp(alpha=0,beta=0.8)", "nrbp(alpha=1,rel=2)"),
    "nerr_ia": _at("nerr_ia", "nerr_ia(rel=2)"),
    "nnrbp": _at("nnrbp", "nnrbp(alpha=0,beta=0.8)", "nnrbp(alpha=1,rel=2)"),
    "ap_ia": _at("ap_ia", "ap_ia(rel=2)"),
    "p_ia": _at("p_ia", "p_ia(rel=2)", cutoffs=_CUT[1:]),
    "strec": _at("strec", "strec(rel=2)"),
    "kilt_rprec": ("kilt_rprec", "kilt_rprec(rel=2)"),
    "kilt_r": _at("kilt_r", "kilt_r(rel=2)"),
    "robustness": _at("robustness"),
    "paired_accuracy": ("paired_accuracy", "paired_accuracy(rel=2)"),
    "p_mrr": ("p_mrr(model=bm25)", "p_mrr(model=bm25,rel=2)"),
    "rbo": _at(
        *("rbo(model=bm25)", "rbo(model=bm25,p=0.5)", "rbo(model=bm25,p=0.99,form=extrapolated)"),
        *(
            "rbo(model=bm25,form=minimum)",
            "rbo(model=bm25,p=0.5,form=residual)",
            "rbo(model=bm25,p=0.95,form=residual)",
        ),
    ),
    "nauc": (
        *("nauc", "nauc(of=ndcg,confidence=max)@3", "nauc(of=ap,confidence=std)", "nauc(of=rr,confidence=diff1)@10"),
        *("nauc(of=r,rel=2)@5", "nauc(of=p)@1"),
    ),
    "user_coverage": ("user_coverage",),
    "item_coverage": _at("item_coverage"),
    "gini": _at("gini"),
    "entropy": _at("entropy"),
    "personalization": _at("personalization"),
    "novelty": _at("novelty", "novelty(share=queries)", "novelty(share=interactions)"),
    "efd": _at("efd", "efd(rel=2)"),
    "epc": _at("epc", "epc(rel=2)"),
    "popularity": _at("popularity"),
    "tail_share": _at(
        *("tail_share", "tail_share(tail=0.5)", "tail_share(of=interactions)", "tail_share(tail=0.1,of=documents)")
    ),
    "serendipity": _at("serendipity", "serendipity(rel=2)"),
    "diversity": _at("diversity(feature=category)", "diversity(feature=vector)"),
    "calibration": _at(
        *("calibration(feature=category)", "calibration(feature=category,divergence=kl,alpha=0.2)"),
        "calibration(feature=category,divergence=js)",
    ),
    "awrf": (
        *_at("awrf(feature=category)"),
        "awrf(feature=category,target=relevant,attention=jarvelin,rel=2)@3",
        *("awrf(feature=category,target=catalogue,attention=log2)", "awrf(feature=category,target=equal)"),
        *("awrf(feature=category,attention=geometric,p=0.8)", "awrf(feature=category,attention=reciprocal)"),
        "awrf(feature=category,attention=uniform)",
    ),
    **{
        name: (f"{name}(feature=category)", *(f"{name}(feature=category{words})@3" for words in _EXPOSURES))
        for name in ("ee_l", "ee_r")
    },
    "ee_d": (
        "ee_d(feature=category)",
        *(f"ee_d(feature=category{words})@3" for words in _EXPOSURES if "gain" not in words),
    ),
    "exposure_ratio": (
        *(*_at("exposure_ratio(feature=category)"), "exposure_ratio(feature=category,per=document,attention=log2)"),
        *("exposure_ratio(feature=category,per=relevant,rel=2)", "exposure_ratio(feature=category,attention=jarvelin)"),
        *(f"exposure_ratio(feature=category,attention={words})" for words in ("geometric,p=0.8", "reciprocal")),
        "exposure_ratio(feature=category,attention=uniform)",
    ),
    "reo": _at("reo(feature=category)", "reo(feature=category,rel=2)"),
    "rsp": _at("rsp(feature=category)"),
    "pop_reo": _at("pop_reo", "pop_reo(tail=0.5,of=interactions)", "pop_reo(of=documents,rel=2)"),
    "pop_rsp": _at("pop_rsp", "pop_rsp(tail=0.5,of=interactions)", "pop_rsp(of=documents)"),
    "mae": ("mae", "mae(average=pooled)", "mae(average=query)"),
    "mse": ("mse", "mse(average=pooled)", "mse(average=query)"),
    "rmse": ("rmse", "rmse(average=pooled)", "rmse(average=query)"),
    "r2": ("r2", "r2(average=pooled)", "r2(average=query)"),
    "snips_dcg": _at("snips_dcg"),
    "snips_rbp": _at("snips_rbp", "snips_rbp(p=0.5)"),
    **{name: _of_log(name) for name in ("ctr", "dwell")},
    "satisfied": _of_log("satisfied", "seconds=10"),
    **{name: _of_log(name, "clip=1.5") for name in ("ips", "snips", "dr", "ess")},
    "interleaving": _of_log("interleaving", "ties=skip", "ties=count"),
    **{
        name: (name, *(f"{name}(rel=3,average={word})" for word in ("pooled", "query", "impressions", "positives")))
        for name in ("auc", "pr_auc")
    },
    "lauc": tuple(f"lauc(rel=3,average={word})@3" for word in ("query", "impressions", "positives")),
    **{
        name: (name, *(f"{name}(rel=3,average={word})" for word in ("pooled", "query")))
        for name in ("log_loss", "brier")
    },
    "calibration_error": (
        *("calibration_error", "calibration_error(bins=4,binning=width,rel=3,average=pooled)"),
        "calibration_error(bins=3,binning=mass,rel=3,average=query)",
    ),
    "explained_variance": tuple(f"explained_variance{words}" for words in ("", "(average=pooled)", "(average=query)")),
}

JUDGED_VARIANTS = tuple(text for name, texts in VARIANTS.items() if METRICS[name].input == "judged" for text in texts)
CATALOGUE_VARIANTS = tuple(
    text for name, texts in VARIANTS.items() if METRICS[name].input == "catalogue" for text in texts
)


parsed = cache(Measure.parse)
"""Measures by their text: each is parsed once."""


def over(texts: Iterable[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    families: dict[str, list[str]] = {}
    for text in texts:
        families.setdefault(parsed(text).metric.name, []).append(text)
    return each("texts", families)
