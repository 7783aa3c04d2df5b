"""Other tools' names of measures, and what they are here.

A table for each tool, a line for each meaning. In a name, `#` stands for a number: `rbp.#` is ranx's `rbp.95`. A name
without `#` may have parameters and a cutoff after it, in any tool's way: `AP(rel=2)@10`, `P_10`, `ndcg_cut.5,10`,
`map@100-l2`. The spelling is exact: `hits` counts, `hit` does not. Where tools mean different things by one name, it
has the meaning of trec_eval and ir_measures, and what the other tool does is said beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rankledger.metrics.registry import METRICS

__all__ = ["ALIASES", "TOOLS", "Alias", "Tool", "translate"]


@dataclass(frozen=True)
class Alias:
    """What a name is here.

    Attributes:
        ours: our measures, none where the name is refused. `#` is the number in the name, `√#` its square root.
        said: why the name is refused, or where the tool's own definition differs; `@#` is the cutoff that was written.
        renamed: the tool's names of parameters to ours, where they differ.
    """

    ours: tuple[str, ...]
    said: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """The names of one tool, or of tools that share theirs.

    Attributes:
        title: what it is called.
        versions: those whose names these are.
        names: each name, as it is written there.
    """

    title: str
    versions: str
    names: Mapping[str, Alias]


def _is(*ours: str, said: str = "", **renamed: str) -> Alias:
    return Alias(ours, said, renamed)


def _no(reason: str) -> Alias:
    return Alias((), reason)


def _all(names: str, alias: Alias) -> Mapping[str, Alias]:
    """Several names of one meaning."""
    return dict.fromkeys(names.split(), alias)


_RANKS = "5,10,15,20,30,100,200,500,1000"
_IPREC = tuple(f"iprec(recall={recall})" for recall in ("0", *(f"0.{tenth}" for tenth in range(1, 10)), "1"))
_RPREC_MULT = tuple(f"rprec_mult(factor={n / 5:g})" for n in range(1, 11))
_OFFICIAL = ("num_ret", "num_rel", "tp", "ap", "gmap", "rprec", "bpref", "rr", *_IPREC, f"p@{_RANKS}")
_SET = ("utility", "p", "r", "relative_p", "set_map", "f1")
_ALL_TREC = (
    *_OFFICIAL,
    *(f"r@{_RANKS}", "infap", "gm_bpref", *_RPREC_MULT, "utility", "ap11", "bing", "g", "ndcg", "ndcg_rel", "rndcg"),
    *(f"ndcg@{_RANKS}", f"ap@{_RANKS}", f"relative_p@{_RANKS}", "success@1,5,10"),
    *("p", "relative_p", "r", "set_map", "f1", "num_nonrel_judged_ret"),
)

_AUC = "it needs a score for every document of the catalogue; bpref compares the judged ones that were retrieved"
_CATEGORIES = "it is of the categories of a list, which no file here names; entropy@# is of documents"
_CLUSTERS = "it needs groups of queries or documents, which no file here names; leave it out"
_CURVE = "it is a curve; iprec(recall=0.5) is a point of it, and ap11 its mean"
_FALL_OUT = "it divides by the non-relevant documents of the catalogue; fp@# and tn@# are its parts"
_GAINS = "grades are gains here; write the gains into the judgments as grades, and the measure without them"
_LEVEL_GAINS = "there the level takes gains away, which rel does not do here; set those grades to 0 in the judgments"
_GROUPS = "it needs several judgments of one document, and judgments here have one; leave it out"
_NUMBERED_ERR = "it is no normalised err but a relative of it; nerr@# is err over its greatest value"
_PREFERENCES = "it needs preferences between documents, and judgments here are grades; leave it out"
_PROBABILITIES = "it needs probabilities of clicks, which no file here holds; leave it out"
_FEATURES = "it takes features of documents for subtopics; strec@# takes judgments by subtopic"
_READ = "of 1,000 ranks, as cwl_eval reads them; T is t here, and max_rel is max_grade"
_SCALE = "max_rel is max_grade here"
_PER_TREC = "the mean over queries, where trec_eval's last line has the sum"
_BINARY = "there every relevant document gains 1, as in `ndcg(gain=binary)@10`"
_ILD = "it is diversity here; name the column of the documents that it compares, as in diversity(feature=genre)@#"
_INTERACTIONS = "there a query counts as often as it consumed the document"
_COUNT = "a count there, the share of it here"
_UNCUT = "over all ranks; the MRR of MS MARCO is `rr@10`"
_DISCOUNTED = "it discounts novelty by rank and relevance; novelty@# does not"

_TREC_EVAL = {
    "official": _is(*_OFFICIAL, said="without `runid` and `num_q`, which are no measures"),
    "all_trec": _is(*_ALL_TREC, said="those of version 9; without `runid`, `num_q` and `relstring`, no measures"),
    "set": _is("num_ret", "num_rel", "tp", *_SET, said="without `runid` and `num_q`, which are no measures"),
    **_all("prefs all_prefs", _no(_PREFERENCES)),
    "qrels_jg": _no(_GROUPS),
    "runid": _no("it is the name of the output and no measure; leave it out"),
    "num_q": _no("it is no measure: n_queries stands beside every figure of the summary; leave it out"),
    "num_ret": _is("num_ret"),
    "num_rel": _is("num_rel"),
    "num_rel_ret": _is("tp", said=_PER_TREC),
    "map": _is("ap"),
    "gm_map": _is("gmap"),
    "Rprec": _is("rprec"),
    "bpref": _is("bpref"),
    "recip_rank": _is("rr", said=_UNCUT),
    "iprec_at_recall": _is(*_IPREC),
    "iprec_at_recall_#": _is("iprec(recall=#)"),
    "P": _is(f"p@{_RANKS}"),
    "relstring": _no("it is a text and no measure; `rankledger explain` shows the grades by rank"),
    "recall": _is(f"r@{_RANKS}"),
    "infAP": _is("infap"),
    "gm_bpref": _is("gm_bpref"),
    "Rprec_mult": _is(*_RPREC_MULT),
    "Rprec_mult_#": _is("rprec_mult(factor=#)"),
    "utility": _is("utility"),
    "utility_#,#,#,#": _is("utility(a=#,b=#,c=#,d=#)"),
    "utility_#": _no("it takes four numbers, such as utility.1,-1,0,0; write them all"),
    "11pt_avg": _is("ap11"),
    "11pt_avg_#": _no("ap11 has the eleven points 0, 0.1 … 1; write iprec(recall=…) for points of your own"),
    "binG": _is("bing"),
    "G": _is("g"),
    "G.#=#": _no(_GAINS),
    "dcg": _is("dcg"),
    "ideal_dcg": _no("it is what ndcg divides by, a figure of the judgments alone; `rankledger explain` shows it"),
    "ndcg": _is("ndcg"),
    "ndcg.#=#": _no(_GAINS),
    "ndcg_rel": _is("ndcg_rel"),
    "ndcg_rel.#=#": _no(_GAINS),
    "Rndcg": _is("rndcg"),
    "Rndcg.#=#": _no(_GAINS),
    "ndcg_cut": _is(f"ndcg@{_RANKS}"),
    "map_cut": _is(f"ap@{_RANKS}"),
    "relative_P": _is(f"relative_p@{_RANKS}"),
    "success": _is("success", said="alone it counts all ranks here; trec_eval's three are `success@1,5,10`"),
    "set_P": _is("p"),
    "set_relative_P": _is("relative_p"),
    "set_recall": _is("r"),
    "set_map": _is("set_map"),
    "set_F": _is("f1"),
    "set_F_#": _is("f(beta=√#)", said="the number there is beta squared"),
    "num_nonrel_judged_ret": _is("num_nonrel_judged_ret"),
    "rbp": _is("rbp", said="trec_eval 10's p is 0.9 by default"),
    "rbp.p=#": _is("rbp(p=#)"),
    "rbp_resid": _is("rbp_resid"),
    "rbp_resid.p=#": _is("rbp_resid(p=#)"),
    "unj": _is("unjudged@5,10,20"),
    "yaap": _no("there is no smoothed average precision here; ap and gmap are nearest"),
    **_all("map_avgjg P_avgjg Rprec_mult_avgjg", _no(_GROUPS)),
    "prefs_*": _no(_PREFERENCES),
    "mrt": _no("it is the time of a query, which no file here holds; log it as a metric of the MLflow run"),
}

_IR_MEASURES = {
    **_all("AP MAP", _is("ap")),
    **_all("nDCG NDCG", _is("ndcg")),
    **_all("nDCG(dcg=log2) NDCG(dcg=log2)", _is("ndcg(gain=linear)")),
    **_all("nDCG(dcg=exp-log2) NDCG(dcg=exp-log2)", _is("ndcg(gain=exponential)")),
    **_all("nDCG(gains=#) NDCG(gains=#)", _no(_GAINS)),
    "P": _is(f"p@{_RANKS}"),
    "Precision": _is("p"),
    **_all("R Recall", _is("r")),
    **_all("RR MRR", _is("rr", said=_UNCUT)),
    **_all("Rprec RPrec", _is("rprec")),
    **_all("Bpref BPref", _is("bpref")),
    "Success": _is("success"),
    "Judged": _is("judged"),
    "IPrec": _is("iprec"),
    "IPrec@#": _is("iprec(recall=#)"),
    "infAP": _is("infap"),
    **_all("SetP SetP(relative=False)", _is("p")),
    **_all("SetP(relative=True) SetRelP", _is("relative_p")),
    "SetR": _is("r"),
    "SetF": _is("f1"),
    "SetF(beta=#)": _is("f(beta=√#)", said="the number there is beta squared"),
    "SetAP": _is("set_map"),
    "NumRet": _is("num_ret", said="the mean over queries, where ir_measures has the sum"),
    "NumRet(rel=#)": _is("tp(rel=#)", said="the mean over queries, where ir_measures has the sum"),
    "NumRelRet": _is("tp", said="the mean over queries, where ir_measures has the sum"),
    "NumRel": _is("num_rel", said="the mean over queries, where ir_measures has the sum"),
    "NumQ": _no("it is no measure: n_queries stands beside every figure of the summary; leave it out"),
    "RBP": _is("rbp", said="without `rel` its gains are the raw grades; `rbp(gain=graded)` divides by the greatest"),
    "ERR": _is("err(max_grade=4)", said="it is gdeval's, whose greatest grade is 4"),
    **_all("Compat Compat(normalize=True)", _is("compat")),
    "Compat(normalize=False)": _no("compat is over its greatest value, and there is no other; leave normalize out"),
    **_all("alpha_nDCG α_nDCG", _is("alpha_ndcg")),
    "ERR_IA": _is("err_ia"),
    **_all("alpha_DCG α_DCG", _no("alpha_ndcg@# divides it by its greatest value; write that")),
    "nERR_IA": _is("nerr_ia"),
    "NRBP": _is("nrbp"),
    "StRecall": _is("strec"),
    "nNRBP": _is("nnrbp"),
    **_all("AP_IA MAP_IA", _is("ap_ia")),
    "P_IA": _is("p_ia@5,10,20"),
    "INST": _is("inst@1000", said=_READ, T="t", max_rel="max_grade"),
    "INSQ": _is("insq@1000", said=_READ, T="t", max_rel="max_grade"),
    "BPM": _is("bpm@1000", said=_READ, T="t", max_rel="max_grade"),
    "SDCG": _is("sdcg@10", said=_SCALE, max_rel="max_grade"),
    **_all("NERR8 NERR9 NERR10 NERR11", _no(_NUMBERED_ERR)),
    "Accuracy": _no(
        "tools mean three things: in BEIR it is success@#, in ir_measures the share of pairs in order, "
        "in RecTools (tp + tn) / documents; write the measures meant"
    ),
}

_NDEVAL = {
    "alpha-nDCG": _is("alpha_ndcg"),
    "ERR-IA": _is("err_ia"),
    "alpha-DCG": _no("alpha_ndcg@# divides it by its greatest value; write that"),
    "nERR-IA": _is("nerr_ia"),
    "NRBP": _is("nrbp"),
    "strec": _is("strec"),
    "nNRBP": _is("nnrbp"),
    "MAP-IA": _is("ap_ia"),
    "P-IA": _is("p_ia@5,10,20"),
}

_RANX = {
    "hits": _is("tp", said="a count"),
    "hit_rate": _is("success"),
    "precision": _is("p"),
    "recall": _is(f"r@{_RANKS}", said="alone it is trec_eval's here; ranx's, over all ranks, is `r`"),
    "f1": _is("f1"),
    **_all("r-precision r_precision", _is("rprec")),
    "bpref": _is("bpref"),
    "rbp.#": _is("rbp(p=0.#)", said="the gain is 1 for a relevant document; ranx multiplies by its grade"),
    "mrr": _is("rr", said=_UNCUT),
    "map": _is("ap"),
    "dcg": _is("dcg"),
    "dcg-l#": _no(_LEVEL_GAINS),
    "dcg_burges": _is("dcg(gain=exponential)"),
    "dcg_burges-l#": _no(_LEVEL_GAINS),
    "ndcg": _is("ndcg"),
    "ndcg-l#": _no(_LEVEL_GAINS),
    "ndcg_burges": _is("ndcg(gain=exponential)"),
    "ndcg_burges-l#": _no(_LEVEL_GAINS),
    "Hits": _no("ranx's hits@# counts, and is tp@# here; in link prediction it is success@#; write the one meant"),
}

_HOLE = "it counts documents that no query's judgments name; unjudged@# counts those that the query's own do not name"
_BEIR = {
    "NDCG": _is("ndcg"),
    "MAP": _is("ap"),
    "Recall": _is("r"),
    "P": _is(f"p@{_RANKS}"),
    **_all("MRR mrr_cut", _is("rr")),
    **_all("R_cap r_cap recall_cap", _is("r(denominator=cutoff)")),
    **_all("Hole hole", _no(_HOLE)),
    **_all("top_k_accuracy top_k_acc acc", _is("success")),
    "Accuracy": _no("tools mean three things: see ir_measures"),
}

_MTEB = {
    "ndcg_at_#": _is("ndcg@#"),
    "map_at_#": _is("ap@#"),
    "recall_at_#": _is("r@#"),
    "precision_at_#": _is("p@#"),
    "mrr_at_#": _is("rr@#"),
    "hit_rate_at_#": _is("success@#"),
    "R_cap_at_#": _is("r(denominator=cutoff)@#"),
    "Hole_at_#": _no(_HOLE),
    "accuracy": _no("in MTEB's retrieval tasks it is r@1, elsewhere something else; write what is meant"),
    **_all("nauc_* nAUC_*", _no("it needs a confidence for every query, which no file here holds; leave it out")),
    "max_over_subqueries_*": _no("merge the rankings of a query's parts first, and evaluate what comes of it"),
    "p-MRR": _no("it compares with the output under the original instruction; name it: p_mrr(model={model}-og)"),
    "robustness_at_#": _is("robustness@#"),
    "paired_accuracy": _is("paired_accuracy"),
}

_SENTENCES = {
    f"{score}_{name}": alias
    for score in ("cosine", "dot", "euclidean", "manhattan")
    for name, alias in {
        "accuracy": _is("success"),
        "precision": _is("p"),
        "recall": _is("r"),
        "ndcg": _is("ndcg(gain=binary)"),
        "mrr": _is("rr"),
        "map": _is("ap(denominator=cutoff)"),
    }.items()
}

_ERRORS = {
    "mean_absolute_error": _is("mae"),
    "mean_squared_error": _is("mse"),
    "root_mean_squared_error": _is("rmse"),
    "r2_score": _is("r2"),
    "max_error": _no("there is no measure of the greatest error here; rmse is nearest"),
}

_MLFLOW = {
    "ndcg_at_#": _is("ndcg@#", said="MLflow's own ideal list holds only as many documents as were retrieved"),
    "precision_at_#": _is("p@#", said="over min(k, retrieved) there: `p(denominator=retrieved)@10`"),
    "recall_at_#": _is("r@#"),
    "mae": _is("mae"),
    "mse": _is("mse"),
    "rmse": _is("rmse"),
    **_ERRORS,
    **_all("mape mean_absolute_percentage_error", _no("there is no error relative to the rating here; mae is nearest")),
}

_SKLEARN = {
    "dcg_score": _is("dcg"),
    "ndcg_score": _is("ndcg"),
    "average_precision_score": _is("ap", said="documents with equal scores are one step there"),
    "label_ranking_average_precision_score": _is("ap", said="the worst order of equal scores there"),
    "top_k_accuracy_score": _is("success"),
    **_ERRORS,
    "explained_variance_score": _is("explained_variance"),
    "roc_auc_score": _no(_AUC),
    "coverage_error": _no("it is the depth at which all relevant documents were seen; leave it out"),
    "label_ranking_loss": _no("it is a share of pairs in the wrong order; kendall_distance@# counts them"),
}

_TORCHMETRICS = {
    **_all("RetrievalMAP retrieval_average_precision", _is("ap(denominator=hits)")),
    **_all("RetrievalMRR retrieval_reciprocal_rank", _is("rr")),
    **_all("RetrievalNormalizedDCG retrieval_normalized_dcg", _is("ndcg")),
    **_all("RetrievalPrecision RetrievalPrecision(adaptive_k=False)", _is("p")),
    **_all("retrieval_precision retrieval_precision(adaptive_k=False)", _is("p")),
    "RetrievalPrecision(adaptive_k=True)": _is("p(denominator=retrieved)"),
    "retrieval_precision(adaptive_k=True)": _is("p(denominator=retrieved)"),
    **_all("RetrievalRecall retrieval_recall", _is("r")),
    **_all("RetrievalHitRate retrieval_hit_rate", _is("success")),
    **_all("RetrievalRPrecision retrieval_r_precision", _is("rprec")),
    **_all("RetrievalFallOut retrieval_fall_out", _no(_FALL_OUT)),
    **_all("RetrievalAUROC retrieval_auroc", _no(_AUC)),
    **_all("RetrievalPrecisionRecallCurve retrieval_precision_recall_curve", _no(_CURVE)),
    "RetrievalRecallAtFixedPrecision": _no("it is a point of a curve; iprec(recall=0.5) is one the other way round"),
}

_KAGGLE = {
    **_all("apk mapk", _is("ap(denominator=cutoff)")),
    "MAP": _is("ap", said="over min(R, k) there: `ap(denominator=cutoff)@10`"),
}

_RECBOLE = {
    **_all("Hit hit", _is("success")),
    **_all("MRR mrr", _is("rr")),
    **_all("MAP map", _is("ap", said="over min(R, k) there: `ap(denominator=cutoff)@10`")),
    "Recall": _is("r"),
    "recall": _is(f"r@{_RANKS}"),
    **_all("NDCG ndcg", _is("ndcg", said=_BINARY)),
    **_all("Precision precision", _is("p")),
    **_all("MAE mae", _is("mae")),
    **_all("RMSE rmse", _is("rmse")),
    **_all("ItemCoverage itemcoverage", _is("item_coverage")),
    **_all("AveragePopularity averagepopularity", _is("popularity", said=_INTERACTIONS)),
    **_all("GiniIndex giniindex", _is("gini")),
    "ShannonEntropy": _no("RecBole divides it by the documents recommended, WarpRec does not; entropy@# is in bits"),
    "shannonentropy": _no("RecBole divides it by the documents recommended; entropy@# is itself, in bits"),
    **_all("TailPercentage tailpercentage", _is("tail_share(tail=0.1,of=documents)")),
    **_all("AUC auc GAUC gauc", _no(_AUC)),
    **_all("LogLoss logloss", _no(_PROBABILITIES)),
}

_CORNAC = {
    "NDCG": _is("ndcg", said=_BINARY),
    "MRR": _is("rr"),
    "MAP": _is("ap"),
    "HitRatio": _is("success"),
    "Precision": _is("p"),
    "Recall": _is("r"),
    **_all("F1 FMeasure", _is("f1")),
    "MAE": _is("mae"),
    "MSE": _is("mse"),
    "RMSE": _is("rmse"),
    "AUC": _no(_AUC),
    "NCRR": _no("it sums 1 / rank over all relevant documents; rr@# takes the first, ndcg@# discounts less"),
}

_LENSKIT = {
    "NDCG": _is("ndcg", said=_BINARY),
    "DCG": _is("dcg", said="there every relevant document gains 1, as in `dcg(gain=binary)@10`"),
    "Hit": _is("success"),
    "Precision": _is("p", said="over min(k, retrieved) there: `p(denominator=retrieved)@10`"),
    "Recall": _is("r", said="over min(R, k) there: `r(denominator=cutoff)@10`"),
    "RecipRank": _is("rr"),
    "AveragePrecision": _no("there over min(R, k, retrieved); ap(denominator=cutoff)@# is the same for full lists"),
    "RBP": _is("rbp", said="p is 0.85 there by default: `rbp(p=0.85)@10`"),
    "RBP(patience=#)": _is("rbp(p=#)"),
    "MAE": _is("mae", said="each user's own is reported beside it: `mae(average=query)`"),
    "RMSE": _is("rmse", said="each user's own is reported beside it: `rmse(average=query)`"),
    **_all("ListLength N", _is("num_ret")),
    "TestItemCount": _is("num_rel"),
    "ListGini": _is("gini"),
    "ExposureGini": _no("it weighs documents by their ranks; gini@# counts each alike"),
    "UniqueItemCount": _no("it counts the documents recommended; item_coverage@# is their share of the catalogue"),
    "MeanPopRank": _no("it is a mean of popularity quantiles; popularity@# is the mean popularity itself"),
    **_all("Entropy RankBiasedEntropy RBEntropy", _no(_CATEGORIES)),
    "ILS": _no("it is 1 minus our diversity; name the column of the categories in diversity(feature=genre)@#"),
    "rank_biased_overlap": _no("what is below its depth counts nothing there; rbo(model=bm25)@# extrapolates"),
    "least_item_promoted": _no("it compares two outputs by one document; rbo compares them whole"),
}

_RECTOOLS = {
    **_all("Precision Precision(r_precision=False)", _is("p")),
    "Precision(r_precision=True)": _is("r(denominator=cutoff)"),
    "Recall": _is("r"),
    "F1Beta": _is("f1"),
    "F1Beta(beta=#)": _is("f(beta=#)"),
    "HitRate": _is("success"),
    "MRR": _is("rr"),
    "MAP": _is("ap"),
    "MAP(divide_by_k=False)": _is("ap(denominator=relevant)"),
    "MAP(divide_by_k=True)": _no("a query with fewer than k relevant documents cannot reach 1; ap@# is over all of R"),
    "NDCG": _is("ndcg", said="binary gain there, and an ideal list of k relevant documents: see below"),
    "NDCG(divide_by_achievable=True)": _is("ndcg(gain=binary)"),
    "NDCG(divide_by_achievable=False)": _no("its ideal list has k relevant documents; ndcg@# has the judged ones"),
    "NDCG(log_base=#)": _is("ndcg", said="the base cancels out"),
    **_all("CoveredUsers CoveredUsers@# CoveredUsers(k=#)", _is("user_coverage")),
    "CatalogCoverage": _no("it is a count unless normalize=True; item_coverage@# is the share of the catalogue"),
    "CatalogCoverage(normalize=True)": _is("item_coverage"),
    "MeanInvUserFreq": _is("novelty(share=queries)"),
    "AvgRecPopularity": _is("popularity", said=_INTERACTIONS),
    "AvgRecPopularity(normalize=False)": _is("popularity"),
    "AvgRecPopularity(normalize=True)": _no("popularity@# is a number of queries, and no share; leave normalize out"),
    "IntraListDiversity": _no(
        "its distance is a program; diversity(feature=genre)@# is 1 minus the cosine of a column"
    ),
    "Serendipity": _is("serendipity"),
    "Accuracy": _no("tools mean three things: see ir_measures"),
    "MCC": _no("there is no correlation of decisions here; tp@#, fp@#, fn@# and tn@# are its parts"),
    **_all("PartialAUC PAP", _no(_AUC)),
    "Intersection": _no("it compares two outputs; rbo does so with weights that fall with the rank"),
    "SufficientReco": _no("it is the share of full lists; num_ret is the length of each"),
    "UnrepeatedReco": _no("a document twice in a list is refused when it is read; leave it out"),
}

_ELLIOT_AND_WARPREC = {  # of Elliot and its successor WarpRec
    "nDCGRendle2020": _is("ndcg(gain=binary)"),
    "Precision": _is("p"),
    "Recall": _is("r"),
    "MRR": _is("rr"),
    "MAR": _no("it is the mean of r@1 … r@k; write the cutoffs that matter, such as r@1,5,10"),
    **_all("AUC GAUC LAUC", _no(_AUC)),
    "ItemCoverage": _is("item_coverage", said=_COUNT),
    "UserCoverage": _is("user_coverage", said=_COUNT),
    "UserCoverageAtN": _no("it counts the queries with full lists; num_ret is the length of each"),
    "NumRetrieved": _is("num_ret", said="of the whole list, and without a cutoff"),
    "Gini": _no("of n documents WarpRec has n / (n - 1) times gini@#, Elliot 1 minus that; write gini@#"),
    "SRecall": _no(_FEATURES),
    "ARP": _is("popularity"),
    "APLT": _is("tail_share(tail=0.2,of=interactions)"),
    "ACLT": _no("it counts documents of the long tail; tail_share@# is their share of the list"),
    **_all("EFD EPC", _no(_DISCOUNTED)),
}

_ELLIOT = {
    **_ELLIOT_AND_WARPREC,
    "nDCG": _is("ndcg", said="exponential gain there, of the grade less the threshold plus 1"),
    "HR": _is("success"),
    "MAP": _is("ap", said="there it is the mean of `p@1` … `p@k`, which is not here"),
    **_all("F1 DSC", _is("f1")),
    "DSC(beta=#)": _is("f(beta=#)"),
    "ExtendedF1": _no("it is the harmonic mean of two measures; f1@# is that of p@# and r@#"),
    "MAE": _is("mae", said="there over relevant pairs alone"),
    "MSE": _is("mse", said="there over relevant pairs alone"),
    "RMSE": _is("rmse", said="there over relevant pairs alone"),
    "SEntropy": _no("there each list counts alike, however short; entropy@# is the same where all are as long"),
    **_all("ExtendedEFD ExtendedEPC", _no(_DISCOUNTED)),
    **_all(
        "PopRSP PopREO ExtendedPopRSP ExtendedPopREO RSP REO UserMADrating ItemMADrating UserMADranking "
        "ItemMADranking BiasDisparityBR BiasDisparityBS BiasDisparityBD",
        _no(_CLUSTERS),
    ),
}

_WARPREC = {
    **_ELLIOT_AND_WARPREC,
    "nDCG": _is("ndcg", said="exponential gain there, of the grade plus 1"),
    "HitRate": _is("success"),
    "MAP": _is("ap", said="over min(R, k) there: `ap(denominator=cutoff)@10`"),
    "F1": _is("f1"),
    "F1[*": _no("it is the harmonic mean of two measures; f1@# is that of p@# and r@#"),
    "MAE": _is("mae", said="each user's own there: `mae(average=query)`"),
    "MSE": _is("mse", said="each user's own there: `mse(average=query)`"),
    "RMSE": _is("rmse", said="each user's own there: `rmse(average=query)`"),
    "ShannonEntropy": _RECBOLE["ShannonEntropy"],
    "EPC": _ELLIOT["EPC"],
    "APLT[*": _no("it is tail_share with the share of interactions of the tail, such as tail_share(tail=0.1)@10"),
    **_all("EFD[* EPC[*", _no(_DISCOUNTED)),
    "ACLT[*": _ELLIOT_AND_WARPREC["ACLT"],
    **_all(
        "PopRSP PopRSP[* PopREO PopREO[* RSP REO UserMADRating ItemMADRating UserMADRanking ItemMADRanking "
        "BiasDisparityBR BiasDisparityBS BiasDisparityBD",
        _no(_CLUSTERS),
    ),
    **_all("EucDistance Hypervolume", _no("it joins several measures into one; compare them one by one")),
}

_PROSE = {
    **_all("average_precision mean_average_precision", _is("ap")),
    **_all("reciprocal_rank mean_reciprocal_rank", _is("rr", said=_UNCUT)),
    **_all("prec PREC", _is("p")),
    **_all("hr hitrate hit_ratio", _is("success")),
    "f1_score": _is("f1"),
    "f_beta": _no("say how many times as important recall is: f(beta=2)@#"),
    "f_beta(beta=#)": _is("f(beta=#)"),
    "nERR": _is("nerr"),
    "Q_measure": _is("q_measure"),
    "O_measure": _is("o_measure"),
    "P_measure": _is("p_measure"),
    **_all("P_plus P+ Pplus", _is("p_plus")),
    **_all("NCU NCUrb,BR", _is("ncu")),
    "NCUrb,P": _is("ncu(beta=0)"),
    "NCUgu,BR": _is("ncu(stop=graded)"),
    "NCUgu,P": _is("ncu(beta=0,stop=graded)"),
    "RBO": _is("rbo"),
    "ERR-IA": _is("err_ia"),
    "tau_ap": _is("ap_corr"),
    **_all("kendall tau", _is("kendall_tau")),
    "coverage": _no("of the catalogue it is item_coverage@#, of queries user_coverage; write the one meant"),
    **_all("catalog_coverage catalogue_coverage", _is("item_coverage")),
    **_all("ild ILD intra_list_diversity intra_list_distance", _no(_ILD)),
}

TOOLS = (
    Tool("trec_eval, pytrec_eval, PyTerrier", "trec_eval 9.0.4 and 10.0-rc3", _TREC_EVAL),
    Tool("ir_measures, PyTerrier", "ir_measures 0.4.3", _IR_MEASURES),
    Tool("ndeval", "pyndeval 0.0.8", _NDEVAL),
    Tool("ranx", "ranx 0.3.21", _RANX),
    Tool("BEIR", "beir 2.2", _BEIR),
    Tool("MTEB", "mteb 2.26", _MTEB),
    Tool("sentence-transformers", "sentence-transformers 5.2", _SENTENCES),
    Tool("MLflow", "mlflow 3.17", _MLFLOW),
    Tool("scikit-learn", "scikit-learn 1.9", _SKLEARN),
    Tool("torchmetrics", "torchmetrics 1.9", _TORCHMETRICS),
    Tool("Kaggle", "ml_metrics 0.1.4", _KAGGLE),
    Tool("RecBole", "recbole 1.2.1", _RECBOLE),
    Tool("Cornac", "cornac 2.6", _CORNAC),
    Tool("LensKit", "lenskit 2026", _LENSKIT),
    Tool("RecTools", "rectools 0.17", _RECTOOLS),
    Tool("Elliot", "elliot 0.3.1", _ELLIOT),
    Tool("WarpRec", "warprec 1.4", _WARPREC),
    Tool("In words", "no tool in particular", _PROSE),
)

ALIASES: Mapping[str, Alias] = MappingProxyType(
    {name: alias for tool in reversed(TOOLS) for name, alias in tool.names.items()}
)
"""Every name once; where several tools have it, they are of one mind about `ours`, and the first one's words stand."""

_TEXT = re.compile(
    r"(?P<name>[^\s(@]+?)\s*(\((?P<parameters>.*)\))?\s*(@\s*(?P<cutoff>[^()@]*?))?(-l(?P<level>\d+))?(?P<mean>/mean)?",
    re.ASCII,
)
_NUMBERED = re.compile(r"(.+?)([._])(-?\.?\d[\d.,-]*)", re.ASCII)  # P_10, set_F.1.0, utility.1,-1,0,0
_PAIRED = re.compile(r"(.+?)[._](\w+)=(.+)", re.ASCII)  # rbp.p=0.9, ndcg.1=3.5,2=9
_ITEMS = re.compile(r",(?![^\[{]*[\]}])")  # commas outside brackets and braces
_MEASURE = re.compile(r"(\w+)(?:\((.*)\))?(@.*)?")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CUTOFFS = frozenset({"cutoff", "k", "n", "top_k"})
_JUDGED_ONLY = Alias((), "to leave unjudged documents out, write conventions: {unjudged_documents: condensed} instead")


@dataclass(frozen=True)
class _Reading:
    """One way to read a text: the key among the aliases, the bare name, and what was written after it."""

    key: str
    name: str
    cutoff: str | None = None
    number: str | None = None


def translate(text: str) -> tuple[str, ...]:
    """The measures that a name of another tool stands for, as we write them; `text` itself where it is ours or unknown.

    Raises:
        ValueError: the name means what is not here; the message says so, and what to write instead.
    """
    written = text.strip()
    found = _TEXT.fullmatch(written)
    if found and found["name"] in METRICS and not (found["level"] or found["mean"]):
        return (text,)
    for key, alias in ALIASES.items():
        if key.endswith("*") and written.startswith(key[:-1]):
            raise _refusal(written, alias, None)
    if found is None:
        return (text,)
    parameters = [*_parameters(found["parameters"]), *([("rel", found["level"])] if found["level"] else [])]
    readings = _readings(found["name"], found["cutoff"], found["level"])
    reading = next((reading for reading in readings if reading.key in ALIASES), None)
    return (text,) if reading is None else _ours(written, reading, parameters)


def _readings(name: str, cutoff: str | None, level: str | None) -> Iterator[_Reading]:
    """All ways to read a name, the likeliest first."""
    if level:
        yield _Reading(f"{name}-l#", name, cutoff)
    if cutoff is not None:
        yield _Reading(f"{name}@#", name, number=cutoff)
    yield _Reading(name, name, cutoff)
    if (numbered := _NUMBERED.fullmatch(name)) and cutoff is None:
        stem, mark, number = numbered.groups()
        for sign in dict.fromkeys([mark, "_"]):
            yield _Reading(f"{stem}{sign}{re.sub('[^,]+', '#', number)}", stem, number=number)
            yield _Reading(f"{stem}{sign}#", stem, number=number)
        yield _Reading(stem, stem, number)
    if paired := _PAIRED.fullmatch(name):
        stem, key, number = paired.groups()
        yield _Reading(f"{stem}.{'#' if key.isdecimal() else key}=#", stem, cutoff, number)


def _parameters(text: str | None) -> Iterator[tuple[str, str]]:
    """The parameters that were written, their values without Python's quotes."""
    for item in _ITEMS.split(text) if text and text.strip() else ():
        name, _, value = (part.strip() for part in item.partition("="))
        yield name, value.strip("'\"")


def _ours(text: str, reading: _Reading, parameters: list[tuple[str, str]]) -> tuple[str, ...]:
    """Our measures, with the parameters that were written and are not part of the name."""
    alias, number, cutoff = ALIASES[reading.key], reading.number, reading.cutoff
    kept = []
    for name, value in parameters:
        special = ALIASES.get(f"{reading.name}({name}={value})") or ALIASES.get(f"{reading.name}({name}=#)")
        if name == "judged_only":
            special = _JUDGED_ONLY if value == "True" else ALIASES[reading.key]
        if special is None and name in _CUTOFFS:
            cutoff = cutoff or value
        elif special is None:
            ours = alias.renamed.get(name, name)
            kept.append(f"{ours}={value}" if value else ours)
        elif special.ours != ALIASES[reading.key].ours:
            alias, number = special, value
    if not alias.ours:
        raise _refusal(text, alias, cutoff or number)
    return tuple(_written(measure, kept, cutoff) for measure in _numbered(text, alias.ours, number))


def _written(measure: str, parameters: list[str], cutoff: str | None) -> str:
    """One of our measures with these parameters in place of its own, and this cutoff in place of the usual ones."""
    metric, fixed, usual = _MEASURE.fullmatch(measure).groups(default="")  # type: ignore[union-attr]
    names = {item.partition("=")[0] for item in parameters}
    items = [item for item in fixed.split(",") if item and item.partition("=")[0] not in names] + parameters
    at = usual if cutoff is None else "" if cutoff == "-1" else f"@{cutoff}"  # Cornac's -1 is no cutoff
    return f"{metric}({','.join(items)}){at}" if items else f"{metric}{at}"


def _numbered(text: str, templates: tuple[str, ...], written: str | None) -> Iterator[str]:
    """The templates with what was written for `#`: once for each number, unless a template takes several."""
    for template in templates:
        if written is None or "#" not in template:
            yield template
        elif template.count("#") > 1:
            for number in written.split(","):
                template = template.replace("#", _number(number), 1)
            yield template
        else:
            for number in written.split(","):
                fill = _root(text, number) if "√#" in template else number if "0.#" in template else _number(number)
                yield template.replace("√", "").replace("#", fill)


def _number(text: str) -> str:
    """A number as we write it: `0.1` for `0.10`, `1` for `1.0`; anything else as it is, for the parser to refuse."""
    if not _FLOAT.fullmatch(text) or math.isinf(number := float(text)):
        return text
    return str(int(number) if number.is_integer() else number)


def _root(text: str, number: str) -> str:
    if not _FLOAT.fullmatch(number) or float(number) < 0:
        raise ValueError(f"'{text}': the square of beta is a number of at least 0, found '{number}'")
    return _number(str(math.sqrt(float(number))))


def _refusal(text: str, alias: Alias, cutoff: str | None) -> ValueError:
    return ValueError(f"'{text}': {alias.said.replace('@#', f'@{cutoff}' if cutoff else '')}")
