"""Other tools' names: what each is here, and that every name a tool offers has an answer."""

import re
from dataclasses import replace

import pytest
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

# Each tool's names, from its own documentation or table of measures, written as its users write them.

TREC_EVAL_MEASURES = """
    runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P relstring recall infAP
    gm_bpref Rprec_mult utility 11pt_avg binG G dcg ideal_dcg ndcg ndcg_rel Rndcg ndcg_cut map_cut relative_P success
    set_P set_relative_P set_recall set_map set_F num_nonrel_judged_ret prefs_num_prefs_poss prefs_num_prefs_ful
    prefs_num_prefs_ful_ret prefs_simp prefs_pair prefs_avgjg prefs_avgjg_Rnonrel prefs_simp_ret prefs_pair_ret
    prefs_avgjg_ret prefs_avgjg_Rnonrel_ret prefs_simp_imp prefs_pair_imp prefs_avgjg_imp map_avgjg P_avgjg
    Rprec_mult_avgjg yaap rbp rbp_resid unj
"""
TREC_EVAL_PARAMETERS = """
    P.50 P.5,10,15,20,30,100,200,500,1000 recall.5 map_cut.5,10 ndcg_cut.5,10 success.1,5,10 relative_P.5 unj.5,10,20
    iprec_at_recall.0,.1,.2,.3,.4,.5,.6,.7,.8,.9,1 Rprec_mult.0.2,0.4,0.6,0.8,1.0,1.2,1.4,1.6,1.8,2.0 set_F.1.0
    utility.1.0,-1.0,0.0,0.0 11pt_avg.0.2,0.5,0.8 ndcg.1=3.5,2=9.0,4=7.0 Rndcg.1=3.5 G.1=3.5,2=9.0,4=7.0 rbp.p=0.95
    rbp_resid.p=0.8 ndcg_rel.1=2
"""
TREC_EVAL_OUTPUT = """
    P_5 P_1000 recall_5 map_cut_10 ndcg_cut_10 success_1 relative_P_5 unj_20 iprec_at_recall_0.00 iprec_at_recall_1.00
    Rprec_mult_0.20 Rprec_mult_2.00 set_F_4 utility_1,0,0,0 rbp_p=0.5 11pt_avg_0.2,0.5
"""
TREC_EVAL_GROUPS = "official set all_trec all_prefs prefs qrels_jg"
IR_MEASURES = """
    AP AP@10 AP(rel=2) AP(judged_only=True) AP_IA Accuracy@10 BPM(T=1.0,max_rel=2)@10 BPref Bpref Compat(p=0.8) ERR@20
    ERR_IA@20 INSQ(max_rel=2) INST(max_rel=2) IPrec@0.1 Judged@10 MAP MAP_IA MRR MRR@10 NDCG@10 NERR10(max_rel=2)
    NERR11(max_rel=2) NERR8(max_rel=2)@10 NERR9(max_rel=2)@10 NRBP(alpha=0.5,beta=0.5) NumQ NumRel NumRelRet NumRet
    NumRet(rel=2) P@5 P_IA@5 Precision@5 R@1000 RBP RBP(p=0.9) RBP(rel=1) RPrec RR RR@10 RR(rel=2) Recall@5 Rprec
    SDCG(max_rel=2)@10 SetAP SetF SetF(beta=2.) SetP SetP(relative=True) SetR SetRelP StRecall@10 Success@5
    alpha_DCG@20 alpha_nDCG(alpha=0.5)@20 infAP nDCG nDCG@10 nDCG(dcg='exp-log2')@10 nDCG(gains={0:0,1:1,2:4})@10
    nDCG(judged_only=False)@10 nERR_IA@20 nNRBP α_DCG@20 α_nDCG@20
"""
NDEVAL = "ERR-IA@5 nERR-IA@5 alpha-DCG@5 alpha-nDCG@5 NRBP nNRBP MAP-IA P-IA@5 strec@5"
RANX = """
    hits hits@5 hit_rate hit_rate@5 precision precision@5 recall recall@5 f1 f1@5 r_precision r-precision bpref rbp.95
    rbp.5 mrr mrr@10 map map@100 dcg dcg@10 dcg_burges dcg_burges@10 ndcg ndcg@10 ndcg_burges ndcg_burges@10
    map@100-l2 mrr-l2 rbp.95-l2 ndcg@10-l2 ndcg_burges-l2 dcg-l2 dcg_burges@5-l2 precision@5-l3 bpref-l2 f1@5-l2
"""
BEIR = """
    NDCG@10 MAP@10 Recall@100 P@1 MRR@10 R_cap@100 Hole@10 Accuracy@5 mrr@10 mrr_cut@10 recall_cap@10 r_cap@10 hole@10
    acc@5 top_k_acc@5 top_k_accuracy@5 accuracy
"""
MTEB = """
    ndcg_at_1 ndcg_at_10 ndcg_at_1000 map_at_5 recall_at_100 precision_at_1 mrr_at_10 hit_rate_at_5 accuracy
    nauc_ndcg_at_10_max nauc_mrr_at_1_diff1 nAUC_NDCG@10_std R_cap_at_10 Hole_at_10 p-MRR robustness_at_10
    paired_accuracy max_over_subqueries_map_at_1000
"""
SENTENCE_TRANSFORMERS = """
    cosine_accuracy@1 cosine_precision@3 cosine_recall@10 cosine_ndcg@10 cosine_mrr@10 cosine_map@100 dot_ndcg@10
    euclidean_map@100 manhattan_accuracy@5
"""
MLFLOW = """
    precision_at_3 recall_at_3 ndcg_at_3 precision_at_3/mean recall_at_3/mean ndcg_at_3/mean mae mse rmse r2_score
    max_error mape mean_absolute_error mean_squared_error root_mean_squared_error mean_absolute_percentage_error
"""
SKLEARN = """
    dcg_score(k=10) ndcg_score(k=10) average_precision_score label_ranking_average_precision_score
    top_k_accuracy_score(k=5) mean_absolute_error mean_squared_error root_mean_squared_error r2_score
    explained_variance_score roc_auc_score coverage_error label_ranking_loss max_error log_loss brier_score_loss
"""
TORCHMETRICS = """
    RetrievalMAP RetrievalMAP(top_k=10) RetrievalMRR RetrievalNormalizedDCG(top_k=10) RetrievalPrecision(top_k=5)
    RetrievalPrecision(top_k=5,adaptive_k=True) RetrievalRecall(top_k=5) RetrievalHitRate(top_k=5) RetrievalFallOut
    RetrievalRPrecision RetrievalAUROC RetrievalPrecisionRecallCurve RetrievalRecallAtFixedPrecision
    retrieval_average_precision(top_k=10) retrieval_reciprocal_rank retrieval_normalized_dcg(top_k=10)
    retrieval_precision(top_k=5,adaptive_k=True) retrieval_recall(top_k=5) retrieval_hit_rate(top_k=5)
    retrieval_r_precision retrieval_fall_out retrieval_auroc retrieval_precision_recall_curve BinaryAUROC
    BinaryAveragePrecision BinaryCalibrationError(n_bins=10) binary_auroc binary_average_precision
    binary_calibration_error
"""
KAGGLE = "MAP@7 apk@10 mapk@12 mapk(k=12)"
GDEVAL = "ndcg@20 err@20"  # the columns that it prints
# The 16 classes of `recbole.evaluator.metrics` in 1.2.1, and as configs write them.
RECBOLE = """
    Recall@10 MRR@10 NDCG@10 Hit@10 MAP@10 Precision@10 GAUC ItemCoverage@10 AveragePopularity@10 GiniIndex@10
    ShannonEntropy@10 TailPercentage@10 AUC LogLoss MAE RMSE recall@10 mrr@10 ndcg@10 hit@10 map@10 precision@10 gauc
    itemcoverage@10 averagepopularity@10 giniindex@10 shannonentropy@10 tailpercentage@10 auc logloss mae rmse
"""
CORNAC = """
    NDCG@10 NDCG@-1 NCRR@10 MRR HitRatio@10 Precision@10 Recall@10 Recall@-1 F1@10 F1@-1 FMeasure AUC MAP MAE RMSE MSE
"""
LENSKIT = """
    NDCG NDCG@10 DCG@10 RBP@10 RBP(patience=0.5) Hit@10 Precision@10 Recall@10 RecipRank@10 AveragePrecision@10
    Entropy(genre)@10 RBEntropy(genre)@10 RankBiasedEntropy ILS(genre)@10 ListGini@10 ExposureGini@10 MeanPopRank@10
    N ListLength TestItemCount UniqueItemCount MAE RMSE least_item_promoted rank_biased_overlap
"""
RECTOOLS = """
    Precision(k=10) Precision(k=10,r_precision=True) Recall(k=10) F1Beta(k=10) F1Beta(k=10,beta=2) Accuracy(k=10)
    MCC(k=10) HitRate(k=10) MAP(k=10) MAP(k=10,divide_by_k=True) NDCG(k=10) NDCG(k=10,log_base=3)
    NDCG(k=10,divide_by_achievable=True) MRR(k=10) PartialAUC(k=10) PAP(k=10) CatalogCoverage(k=10)
    CatalogCoverage(k=10,normalize=True) MeanInvUserFreq(k=10) IntraListDiversity(k=10) AvgRecPopularity(k=10)
    AvgRecPopularity(k=10,normalize=True) Serendipity(k=10) Intersection(k=10) SufficientReco(k=10)
    UnrepeatedReco(k=10) CoveredUsers(k=10) NDCG@10 MAP@10
"""
ELLIOT = """
    nDCG nDCGRendle2020 Precision Recall HR MRR MAP MAR F1 ExtendedF1 DSC LAUC GAUC AUC ItemCoverage UserCoverage
    UserCoverageAtN NumRetrieved Gini SEntropy EFD ExtendedEFD EPC ExtendedEPC MAE MSE RMSE UserMADrating ItemMADrating
    UserMADranking ItemMADranking BiasDisparityBR BiasDisparityBS BiasDisparityBD SRecall ARP APLT ACLT PopRSP PopREO
    ExtendedPopRSP ExtendedPopREO RSP REO
"""
# The 40 that 1.4.6 registers, and names that they take with parameters.
WARPREC = """
    ACLT APLT AUC BiasDisparityBS GAUC Gini ItemCoverage LAUC MAP MAR NumRetrieved PopREO PopRSP Recall SRecall
    ShannonEntropy UserCoverage nDCG BiasDisparityBR EFD EPC ItemMADRanking ItemMADRating REO RSP UserMADRanking
    UserMADRating nDCGRendle2020 MSE RMSE EucDistance Hypervolume MAE ARP BiasDisparityBD F1 HitRate MRR Precision
    UserCoverageAtN EFD[discounted] APLT[Pop70%] PopRSP[Pop70%]
"""
OBP = "ipw ipw(lambda_=5) snipw dr rm dm sndr switch-dr dr-os sg-ipw sg-dr"
OFFICIAL_NAMES = {
    "trec_eval": TREC_EVAL_MEASURES + TREC_EVAL_PARAMETERS + TREC_EVAL_OUTPUT + TREC_EVAL_GROUPS,
    "ir_measures": IR_MEASURES,
    "PyTerrier": "map recip_rank ndcg ndcg_cut_5 num_q num_ret num_rel num_rel_ret iprec_at_recall P_5 recall mrt",
    "ndeval": NDEVAL,
    "ranx": RANX,
    "BEIR": BEIR,
    "MTEB": MTEB,
    "sentence-transformers": SENTENCE_TRANSFORMERS,
    "MLflow": MLFLOW,
    "scikit-learn": SKLEARN,
    "torchmetrics": TORCHMETRICS,
    "Kaggle": KAGGLE,
    "gdeval": GDEVAL,
    "RecBole": RECBOLE,
    "Cornac": CORNAC,
    "LensKit": LENSKIT,
    "RecTools": RECTOOLS,
    "Elliot": ELLIOT,
    "WarpRec": WARPREC + "F1[Recall,Precision]",
    "Open Bandit Pipeline": OBP,
}


def answer(text: str) -> str:
    try:
        return " ".join(measure.metric.name for measure in Measure.expand(text))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("tool", OFFICIAL_NAMES)
def test_every_name_of_every_tool_has_an_answer(tool):
    for name in OFFICIAL_NAMES[tool].split():
        found = answer(name)

        assert found.startswith(f"'{name}': ") or found.split()[0] in METRICS
        assert "\n" not in found


# What each is, by the tool's own definition.

EXPECTED = {
    # trec_eval: m_*.c, the values of measures.c
    "map": "ap",
    "gm_map": "gmap",
    "Rprec": "rprec",
    "bpref": "bpref",
    "recip_rank": "rr",
    "infAP": "infap",
    "binG": "bing",
    "G": "g",
    "Rndcg": "rndcg",
    "11pt_avg": "ap11",
    "num_rel_ret": "tp",
    "P_10": "p@10",
    "P.10": "p@10",
    "P_5,10": "p@5 p@10",
    "recall_1000": "r@1000",
    "ndcg_cut_10": "ndcg@10",
    "ndcg_cut.5,10": "ndcg@5 ndcg@10",
    "map_cut_100": "ap@100",
    "success_5": "success@5",
    "relative_P_15": "relative_p@15",
    "unj_10": "unjudged@10",
    "yaap": "yaap",
    "iprec_at_recall_0.10": "iprec(recall=0.1)",
    "iprec_at_recall_1.00": "iprec(recall=1)",
    "iprec_at_recall.0.1,0.25": "iprec(recall=0.1) iprec(recall=0.25)",
    "iprec_at_recall.0,.1": "iprec(recall=0) iprec(recall=0.1)",
    "Rprec_mult_0.20": "rprec_mult(factor=0.2)",
    "Rprec_mult_2.00": "rprec_mult(factor=2)",
    "set_P": "p",
    "set_relative_P": "relative_p",
    "set_recall": "r",
    "set_map": "set_map",
    "set_F": "f1",
    "set_F.4": "f(beta=2)",
    "set_F_0.25": "f(beta=0.5)",
    "utility.1,-1,0,0": "utility(a=1,b=-1,c=0,d=0)",
    "utility_1.5,0,-0.5,0": "utility(a=1.5,b=0,c=-0.5,d=0)",
    "rbp.p=0.95": "rbp(p=0.95)",
    "rbp_p=0.5": "rbp(p=0.5)",
    "P": " ".join(f"p@{k}" for k in TREC_RANKS),
    "recall": " ".join(f"r@{k}" for k in TREC_RANKS),
    "map_cut": " ".join(f"ap@{k}" for k in TREC_RANKS),
    "unj": "unjudged@5 unjudged@10 unjudged@20",
    "iprec_at_recall": " ".join(f"iprec(recall={tenth})" for tenth in TENTHS),
    # ir_measures: measures/*.py
    "AP": "ap",
    "AP(rel=2)@100": "ap(rel=2)@100",
    "AP(cutoff=100)": "ap@100",
    "MAP@10": "ap@10",
    "nDCG@10": "ndcg@10",
    "NDCG@10": "ndcg@10",
    " nDCG @ 10 ": "ndcg@10",
    "nDCG(dcg='exp-log2')@10": "ndcg(gain=exponential)@10",
    'NDCG( dcg = "exp-log2" )': "ndcg(gain=exponential)",
    "nDCG(dcg='log2')@10": "ndcg(gain=linear)@10",
    "nDCG(judged_only=False)@10": "ndcg@10",
    "P@5,10": "p@5 p@10",
    "R@1000": "r@1000",
    "RR@10": "rr@10",
    "MRR(rel=2)@10": "rr(rel=2)@10",
    "Bpref(rel=2)": "bpref(rel=2)",
    "Success@5": "success@5",
    "Judged@10": "judged@10",
    "IPrec@0.1": "iprec(recall=0.1)",
    "IPrec(rel=2)@0.1": "iprec(recall=0.1,rel=2)",
    "IPrec(recall=0.1)": "iprec(recall=0.1)",
    "SetP": "p",
    "SetP(rel=2)": "p(rel=2)",
    "SetP(relative=True,rel=2)": "relative_p(rel=2)",
    "SetRelP": "relative_p",
    "SetR": "r",
    "SetF": "f1",
    "SetF(beta=2)": "f(beta=1.4142135623730951)",
    "SetF(rel=2,beta=0.25)": "f(beta=0.5,rel=2)",
    "SetAP": "set_map",
    "NumRet": "num_ret",
    "NumRet(rel=2)": "tp(rel=2)",
    "NumRelRet": "tp",
    "NumRel": "num_rel",
    "RBP(p=0.9)": "rbp(p=0.9)",
    "RBP(p=0.9,rel=1)": "rbp(p=0.9,rel=1)",
    "ERR@20": "err(max_grade=4)@20",
    "ERR(max_grade=3)@20": "err(max_grade=3)@20",
    "Compat(p=0.8)": "compat(p=0.8)",
    "Compat(p=0.8,normalize=True)": "compat(p=0.8)",
    "ERR_IA@20": "err_ia@20",
    "alpha_nDCG(alpha=0.3)@20": "alpha_ndcg(alpha=0.3)@20",
    "α_nDCG@20": "alpha_ndcg@20",
    "NRBP(alpha=0.3,beta=0.7)": "nrbp(alpha=0.3,beta=0.7)",
    "StRecall@10": "strec@10",
    "nERR_IA@5": "nerr_ia@5",
    "nNRBP": "nnrbp",
    "AP_IA": "ap_ia",
    "MAP_IA": "ap_ia",
    "P_IA@5": "p_ia@5",
    "INST(T=2,max_rel=3)": "inst(t=2,max_grade=3)@1000",
    "INSQ(max_rel=2)": "insq(max_grade=2)@1000",
    "BPM(T=1.0,max_rel=2)@10": "bpm(t=1,max_grade=2)@10",
    "SDCG(max_rel=2)@10": "sdcg(max_grade=2)@10",
    "NERR8(max_rel=2)@10": "nearly_err(max_grade=2)@10",
    "NERR9(max_rel=2)@10": "nearly_err(discount=reciprocal,max_grade=2)@10",
    "NERR10(p=0.8,max_rel=2)": "nearly_err(discount=geometric,p=0.8,max_grade=2)@1000",
    "NERR11(T=2,max_rel=2)": "nearly_err(discount=inverse_square,t=2,max_grade=2)@1000",
    # NTCIREVAL
    "Q-measure@10": "q_measure@10",
    "MSnDCG@10": "ndcg@10",
    "NCUgu,P": "ncu(beta=0,stop=graded)",
    # ndeval
    "nERR-IA@5": "nerr_ia@5",
    "MAP-IA": "ap_ia",
    "P-IA@5": "p_ia@5",
    "alpha-nDCG@20": "alpha_ndcg@20",
    "ERR-IA@20": "err_ia@20",
    "strec@10": "strec@10",
    # ranx: meta/evaluate.py, metrics/__init__.py
    "hits@5": "tp@5",
    "hit_rate@5": "success@5",
    "precision@5": "p@5",
    "precision": "p",
    "recall@100": "r@100",
    "r-precision": "rprec",
    "r_precision": "rprec",
    "mrr@10": "rr@10",
    "mrr": "rr",
    "map@100-l2": "ap(rel=2)@100",
    "map-l2": "ap(rel=2)",
    "f1@10-l2": "f1(rel=2)@10",
    "bpref-l2": "bpref(rel=2)",
    "dcg_burges@10": "dcg(gain=exponential)@10",
    "ndcg_burges@10": "ndcg(gain=exponential)@10",
    "rbp.95": "rbp(p=0.95)",
    "rbp.05": "rbp(p=0.05)",
    "rbp.5-l2": "rbp(p=0.5,rel=2)",
    # BEIR, MTEB, MLflow
    "Recall@100": "r@100",
    "MRR@10": "rr@10",
    "R_cap@100": "r(denominator=cutoff)@100",
    "recall_cap@100": "r(denominator=cutoff)@100",
    "top_k_accuracy@5": "success@5",
    "ndcg_at_10": "ndcg@10",
    "ndcg_at_5,10": "ndcg@5 ndcg@10",
    "map_at_1000": "ap@1000",
    "recall_at_100": "r@100",
    "robustness_at_10": "robustness@10",
    "precision_at_1": "p@1",
    "mrr_at_10": "rr@10",
    "hit_rate_at_5": "success@5",
    "nauc_ndcg_at_10_max": "nauc(of=ndcg,confidence=max)@10",
    "nauc_precision_at_1000_std": "nauc(of=p,confidence=std)@1000",
    "R_cap_at_10": "r(denominator=cutoff)@10",
    "ndcg_at_10/mean": "ndcg@10",
    "rmse/mean": "rmse",
    # sentence-transformers: InformationRetrievalEvaluator.compute_metrics
    "cosine_accuracy@1": "success@1",
    "cosine_ndcg@10": "ndcg(gain=binary)@10",
    "dot_map@100": "ap(denominator=cutoff)@100",
    # scikit-learn, torchmetrics, Kaggle
    "ndcg_score(k=10)": "ndcg@10",
    "top_k_accuracy_score(k=5)": "success@5",
    "root_mean_squared_error": "rmse",
    "r2_score": "r2",
    "explained_variance_score": "explained_variance",
    "RetrievalMAP(top_k=10)": "ap(denominator=hits)@10",
    "RetrievalPrecision(top_k=5)": "p@5",
    "RetrievalPrecision(top_k=5,adaptive_k=True)": "p(denominator=retrieved)@5",
    "RetrievalNormalizedDCG(top_k=10)": "ndcg@10",
    "retrieval_average_precision(top_k=10)": "ap(denominator=hits)@10",
    "retrieval_precision(top_k=5,adaptive_k=True)": "p(denominator=retrieved)@5",
    "retrieval_r_precision": "rprec",
    "RetrievalFallOut(top_k=5)": "fallout@5",
    "mapk@12": "ap(denominator=cutoff)@12",
    # RecBole, Cornac, LensKit, RecTools, Elliot, WarpRec
    "Hit@10": "success@10",
    "hit@10": "success@10",
    "itemcoverage@10": "item_coverage@10",
    "AveragePopularity@10": "popularity@10",
    "GiniIndex@10": "gini@10",
    "TailPercentage@10": "tail_share(tail=0.1,of=documents)@10",
    "NDCG@-1": "ndcg",
    "HitRatio@10": "success@10",
    "F1@-1": "f1",
    "FMeasure@10": "f1@10",
    "RecipRank@10": "rr@10",
    "RBP(patience=0.5)@10": "rbp(p=0.5)@10",
    "ListGini@10": "gini@10",
    "TestItemCount": "num_rel",
    "N": "num_ret",
    "Precision(k=10)": "p@10",
    "Precision(k=10,r_precision=True)": "r(denominator=cutoff)@10",
    "Precision(k=10,r_precision=False)": "p@10",
    "F1Beta(k=10)": "f1@10",
    "F1Beta(beta=2)@10": "f(beta=2)@10",
    "MAP(k=10,divide_by_k=False)": "ap(denominator=relevant)@10",
    "NDCG(k=10,divide_by_achievable=True)": "ndcg(gain=binary)@10",
    "NDCG(k=10,log_base=3)": "ndcg@10",
    "NDCG(k=10,divide_by_achievable=True,log_base=3)": "ndcg(gain=binary)@10",
    "nDCGRendle2020@10": "ndcg(gain=binary)@10",
    "CatalogCoverage(k=10,normalize=True)": "item_coverage@10",
    "CoveredUsers(k=10)": "user_coverage",
    "CoveredUsers@10": "user_coverage",
    "MeanInvUserFreq(k=10)": "novelty(share=queries)@10",
    "Serendipity@10": "serendipity@10",
    "HR@10": "success@10",
    "DSC@10": "f1@10",
    "DSC(beta=2)@10": "f(beta=2)@10",
    "ARP@10": "popularity@10",
    "APLT@10": "tail_share(tail=0.2,of=interactions)@10",
    "HitRate@10": "success@10",
    "MAR@10": "mar@10",
    "EFD@10": "efd@10",
    "EPC@10": "epc@10",
    # Open Bandit Pipeline
    "ipw(lambda_=5)": "ips(clip=5)",
    "snipw": "snips",
    "DoublyRobust(lambda_=2)": "dr(clip=2)",
    # In words
    "mean_average_precision": "ap",
    "f_beta(beta=2)@5": "f(beta=2)@5",
    "ECE(bins=10)": "calibration_error(bins=10)",
    # With parameters of ours
    "recall(rel=2,denominator=cutoff)@10": "r(rel=2,denominator=cutoff)@10",
    "nDCG(gain=exponential)@10": "ndcg(gain=exponential)@10",
}


@each("text", [*EXPECTED])
def test_names_are_what_their_tools_mean(text):
    assert " ".join(map(str, Measure.expand(text))) == EXPECTED[text]


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


# What is refused.

REFUSED = {
    "runid": "Remove the name",
    "num_q": "n_queries",
    "relstring": "explain",
    "ideal_dcg": "explain",
    "ild@10": "diversity(feature=genre)@10",
    "prefs_simp": "`rankledger trec_eval -R prefs`",
    "map_avgjg": "`rankledger trec_eval -R qrels_jg`",
    "11pt_avg.0.2,0.5,0.8": "iprec(recall=…)",
    "ndcg.1=3.5,2=9.0": "as grades",
    "utility.1,-1": "utility.1,-1,0,0",
    "nDCG(gains={0:0,1:3})@10": "as grades",
    "AP(judged_only=True)@10": "conventions: {unjudged_documents: condensed}",
    "NumQ": "n_queries",
    "Accuracy@10": "success@10",
    "alpha_DCG@20": "alpha_ndcg@20",
    "Compat(normalize=False)": "compat",
    "ndcg@10-l2": "in the judgments",
    "dcg_burges-l2": "in the judgments",
    "Hits@10": "success@10",
    "accuracy": "r@1",
    "p-MRR": "p_mrr(model={model}-og)",
    "Hole@10": "unjudged@10",
    "Hole_at_10": "unjudged@10",
    "nAUC_NDCG@10_std": "nauc_ndcg_at_10_max",
    "PartialAUC": "bpref",
    "ShannonEntropy@10": "entropy@10",
    "Gini@10": "gini@10",
    "NCRR@10": "rr@10",
    "AveragePrecision@10": "ap(denominator=cutoff)@10",
    "Entropy(genre)@10": "entropy@10",
    "ILS(genre)@10": "diversity(feature=genre)@10",
    "UniqueItemCount": "item_coverage",
    "rank_biased_overlap": "rbo(model=bm25)",
    "MAP(k=10,divide_by_k=True)": "ap@10",
    "NDCG(divide_by_achievable=False)@10": "ndcg@10",
    "CatalogCoverage(k=10)": "item_coverage@10",
    "MCC(k=10)": "tn@10",
    "EFD[discounted]": "efd",
    "ACLT@10": "tail_share@10",
    "F1[Recall, Precision]": "f1",
    "f_beta@5": "f(beta=2)@5",
    "mrt": "MLflow",
    "TBG": "reading time",
    "nsDCG@10": "dcg@10",
    "set_F.-1": "at least 0",
    "SetF(beta=x)": "found 'x'",
    "SetF(beta=nan)": "found 'nan'",
    "SetF(beta=1_0)": "found '1_0'",
}


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


# The table.


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
    for ours in (ours for text in EXPECTED for ours in translate(text)):
        assert translate(ours) == (ours,)


@pytest.mark.parametrize("text", ["", "qqq", "ndcg at 10", "@10", "P@5@10", "unknown(rel=2)@10", "ndcg@x"])
def test_what_nobody_knows_passes_untouched(text):
    assert translate(text) == (text,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MAP@0", "ap: cutoffs are whole numbers from 1, found '@0'"),
        ("MAP@", "ap: cutoffs are whole numbers from 1, found '@'"),
        ("P_5.5", "p: cutoffs are whole numbers from 1, found '@5.5'"),
        ("r-precision@10", "rprec takes no cutoff, found '@10'; write rprec"),
        ("AP(rel=high)", "ap: rel is a number, found 'high'"),
        ("AP(rel=1,rel=2)", "ap: parameter 'rel' is given twice"),
        ("AP(rel=)", "ap: parameter 'rel' needs a value: rel=…"),
        ("iprec_at_recall_1.5", "recall must be in [0, 1], found 1.5"),
        ("IPrec@0.1_0", "iprec: recall is a number, found '0.1_0'"),
        ("IPrec@٠", "iprec: recall is a number, found '٠'"),
        ("IPrec@1e400", "iprec: recall is a number, found '1e400'"),
        ("SetF(beta=1e400)", "f: beta is a number, found 'inf'"),
        ("SetF(beta=0)", "beta must be above 0, found 0"),
        ("IPrec", "iprec needs the parameter 'recall': iprec(recall=…)"),
        ("rbp.0", "p must be between 0 and 1, found 0"),
        ("official@10", "num_ret takes no cutoff, found '@10'; write num_ret"),
    ],
)
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


SUGGESTIONS = {
    "Map@10": "ap@10",
    "Ndcg(gain=exponential)@5,10": "ndcg(gain=exponential)@5,10",
    "ndgc_cut_10": "ndcg@10",
    "ndgc_cut.5,10": "ndcg@5,10",
    "recal_100": "r@100",
    "rr_10": "rr@10",
    "recal(rel=2)@5,10": "r(rel=2)@5,10",
    "hit-rates@10": "success@10",
    "precison_at_5": "p@5",
    "iprec_at_recal_0.10": "iprec(recall=0.1)",
    "bprf@10": "bpref",
    "oficial": "official",
    "nDCG(dcg='exp-log2'": None,
    "qqqqq@10": None,
    "AUCC": "auc",
    "PartialAUCC": None,
}


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
