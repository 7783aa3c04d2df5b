"""Names of measures in tools for search."""

from __future__ import annotations

from rankledger.metrics.alias import RANKS, UNCUT
from rankledger.metrics.alias import means as _is
from rankledger.metrics.alias import refused as _no
from rankledger.metrics.alias import several as _all

__all__ = ["BEIR", "IR_MEASURES", "MTEB", "NDEVAL", "NTCIREVAL", "RANX", "SENTENCES", "TREC_EVAL"]

_IPREC = tuple(f"iprec(recall={recall})" for recall in ("0", *(f"0.{tenth}" for tenth in range(1, 10)), "1"))
_RPREC_MULT = tuple(f"rprec_mult(factor={n / 5:g})" for n in range(1, 11))
_OFFICIAL = ("num_ret", "num_rel", "tp", "ap", "gmap", "rprec", "bpref", "rr", *_IPREC, f"p@{RANKS}")
_SET = ("utility", "p", "r", "relative_p", "set_map", "f1")
_ALL_TREC = (
    *_OFFICIAL,
    *(f"r@{RANKS}", "infap", "gm_bpref", *_RPREC_MULT, "utility", "ap11", "bing", "g", "ndcg", "ndcg_rel", "rndcg"),
    *(f"ndcg@{RANKS}", f"ap@{RANKS}", f"relative_p@{RANKS}", "success@1,5,10"),
    *("p", "relative_p", "r", "set_map", "f1", "num_nonrel_judged_ret"),
)
_GAINS = "grades are gains here; write the gains into the judgments as grades, and the measure without them"
_LEVEL_GAINS = "there the level takes gains away, which rel does not do here; set those grades to 0 in the judgments"
_GROUPS = "it needs several judgments of one document; `rankledger trec_eval -R qrels_jg` prints it"
_PREFERENCES = "it needs preferences, and judgments here are grades; `rankledger trec_eval -R prefs` prints it"
_READ = "of 1,000 ranks, as cwl_eval reads them; T is t here, and max_rel is max_grade"
_SCALE = "max_rel is max_grade here"
_PER_TREC = "the mean over queries, where trec_eval's last line has the sum"

TREC_EVAL = {
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
    "recip_rank": _is("rr", said=UNCUT),
    "iprec_at_recall": _is(*_IPREC),
    "iprec_at_recall_#": _is("iprec(recall=#)"),
    "P": _is(f"p@{RANKS}"),
    "relstring": _no("it is a text and no measure; `rankledger explain` shows the grades by rank"),
    "recall": _is(f"r@{RANKS}"),
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
    "ndcg_cut": _is(f"ndcg@{RANKS}"),
    "map_cut": _is(f"ap@{RANKS}"),
    "relative_P": _is(f"relative_p@{RANKS}"),
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
    "yaap": _is("yaap"),
    **_all("map_avgjg P_avgjg Rprec_mult_avgjg", _no(_GROUPS)),
    "prefs_*": _no(_PREFERENCES),
    "mrt": _no("it is the time of a query, which no file here holds; log it as a metric of the MLflow run"),
}

IR_MEASURES = {
    **_all("AP MAP", _is("ap")),
    **_all("nDCG NDCG", _is("ndcg")),
    **_all("nDCG(dcg=log2) NDCG(dcg=log2)", _is("ndcg(gain=linear)")),
    **_all("nDCG(dcg=exp-log2) NDCG(dcg=exp-log2)", _is("ndcg(gain=exponential)")),
    **_all("nDCG(gains=#) NDCG(gains=#)", _no(_GAINS)),
    "P": _is(f"p@{RANKS}"),
    "Precision": _is("p"),
    **_all("R Recall", _is("r")),
    **_all("RR MRR", _is("rr", said=UNCUT)),
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
    "NERR8": _is("nearly_err@10", said=_SCALE, max_rel="max_grade"),
    "NERR9": _is("nearly_err(discount=reciprocal)@10", said=_SCALE, max_rel="max_grade"),
    "NERR10": _is("nearly_err(discount=geometric)@1000", said=_READ, max_rel="max_grade"),
    "NERR11": _is("nearly_err(discount=inverse_square)@1000", said=_READ, T="t", max_rel="max_grade"),
    "Accuracy": _no(
        "tools mean three things: in BEIR it is success@#, in ir_measures the share of pairs in order, "
        "in RecTools (tp + tn) / documents; write the measures meant"
    ),
}

NDEVAL = {
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

NTCIREVAL = {
    "Hit": _is("success"),
    "Precision": _is("p"),
    "RR": _is("rr"),
    "AP": _is("ap"),
    "nDCG": _is("ndcg", said="the discount of the paper there: `ndcg(discount=jarvelin)@10`"),
    "MSnDCG": _is("ndcg"),
    "RBP": _is("rbp", said="its gains are grades over the greatest there: `rbp(gain=graded)`"),
    "ERR": _is("err(max_grade=4)", said="the greatest grade there is that of the gains given: `err@10`"),
    "nERR": _is("nerr"),
    **_all("QMeasure Q-measure Q_measure", _is("q_measure")),
    **_all("OMeasure O-measure O_measure", _is("o_measure")),
    **_all("PMeasure P-measure P_measure", _is("p_measure")),
    **_all("PPlusMeasure P-plus P_plus P+ Pplus", _is("p_plus")),
    **_all("NCU NCUrbBR NCUrb,BR", _is("ncu")),
    **_all("NCUrbP NCUrb,P", _is("ncu(beta=0)")),
    **_all("NCUguBR NCUgu,BR", _is("ncu(stop=graded)")),
    **_all("NCUguP NCUgu,P", _is("ncu(beta=0,stop=graded)")),
}

RANX = {
    "hits": _is("tp", said="a count"),
    "hit_rate": _is("success"),
    "precision": _is("p"),
    "recall": _is(f"r@{RANKS}", said="alone it is trec_eval's here; ranx's, over all ranks, is `r`"),
    "f1": _is("f1"),
    **_all("r-precision r_precision", _is("rprec")),
    "bpref": _is("bpref"),
    "rbp.#": _is("rbp(p=0.#)", said="the gain is 1 for a relevant document; ranx multiplies by its grade"),
    "mrr": _is("rr", said=UNCUT),
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
BEIR = {
    "NDCG": _is("ndcg"),
    "MAP": _is("ap"),
    "Recall": _is("r"),
    "P": _is(f"p@{RANKS}"),
    **_all("MRR mrr_cut", _is("rr")),
    **_all("R_cap r_cap recall_cap", _is("r(denominator=cutoff)")),
    **_all("Hole hole", _no(_HOLE)),
    **_all("top_k_accuracy top_k_acc acc", _is("success")),
    "Accuracy": _no("tools mean three things: see ir_measures"),
}

MTEB = {
    "ndcg_at_#": _is("ndcg@#"),
    "map_at_#": _is("ap@#"),
    "recall_at_#": _is("r@#"),
    "precision_at_#": _is("p@#"),
    "mrr_at_#": _is("rr@#"),
    "hit_rate_at_#": _is("success@#"),
    "R_cap_at_#": _is("r(denominator=cutoff)@#"),
    "Hole_at_#": _no(_HOLE),
    "accuracy": _no("in MTEB's retrieval tasks it is r@1, elsewhere something else; write what is meant"),
    **{
        f"nauc_{theirs}_at_#_{confidence}": _is(f"nauc(of={ours},confidence={confidence})@#")
        for theirs, ours in {"ndcg": "ndcg", "map": "ap", "recall": "r", "precision": "p", "mrr": "rr"}.items()
        for confidence in ("max", "std", "diff1")
    },
    "nAUC_*": _no("write it as MTEB's results do, such as nauc_ndcg_at_10_max"),
    "max_over_subqueries_*": _no("merge the rankings of a query's parts first, and evaluate what comes of it"),
    "p-MRR": _no("it compares with the output under the original instruction; name it: p_mrr(model={model}-og)"),
    "robustness_at_#": _is("robustness@#"),
    "paired_accuracy": _is("paired_accuracy"),
}

SENTENCES = {
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
