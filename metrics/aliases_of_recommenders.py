"""Names of measures in tools for recommenders and for machine learning."""

from __future__ import annotations

from rankledger.metrics.alias import RANKS
from rankledger.metrics.alias import means as _is
from rankledger.metrics.alias import refused as _no
from rankledger.metrics.alias import several as _all

__all__ = [
    "CORNAC",
    "ELLIOT",
    "KAGGLE",
    "LENSKIT",
    "MLFLOW",
    "OBP",
    "RECBOLE",
    "RECTOOLS",
    "SKLEARN",
    "TORCHMETRICS",
    "WARPREC",
]

_ALL_RANKS = "over the discounts of all k ranks there, however short the list"
_AREA_OF_USERS = "over the whole catalogue there, and with one negative too many: `auc(average=%s)`"
_AUC = "it needs a score for every document of the catalogue; bpref compares the judged ones that were retrieved"
_CATEGORIES = "it is of the categories of a list, which no file here names; entropy@# is of documents"
_CLUSTERS = "it needs groups of queries or documents, which no file here names; leave it out"
_CURVE = "it is a curve; iprec(recall=0.5) is a point of it, and ap11 its mean"
_FALL_OUT = "there a share of the documents with a target, here of the catalogue"
_FEATURES = "it takes features of documents for subtopics; strec@# takes judgments by subtopic"
_BINARY = "there every relevant document gains 1, as in `ndcg(gain=binary)@10`"
_INTERACTIONS = "there a query counts as often as it consumed the document"
_COUNT = "a count there, the share of it here"
_DISCOUNTED = "there the gain of a relevant document weighs; efd@# and epc@# count all that are relevant alike"

_ERRORS = {
    "mean_absolute_error": _is("mae"),
    "mean_squared_error": _is("mse"),
    "root_mean_squared_error": _is("rmse"),
    "r2_score": _is("r2"),
    "max_error": _no("there is no measure of the greatest error here; rmse is nearest"),
}

MLFLOW = {
    "ndcg_at_#": _is("ndcg@#", said="MLflow's own ideal list holds only as many documents as were retrieved"),
    "precision_at_#": _is("p@#", said="over min(k, retrieved) there: `p(denominator=retrieved)@10`"),
    "recall_at_#": _is("r@#"),
    "mae": _is("mae"),
    "mse": _is("mse"),
    "rmse": _is("rmse"),
    **_ERRORS,
    **_all("mape mean_absolute_percentage_error", _no("there is no error relative to the rating here; mae is nearest")),
}

SKLEARN = {
    "dcg_score": _is("dcg"),
    "ndcg_score": _is("ndcg"),
    "average_precision_score": _is("ap", said="equal scores are one step there, as in `pr_auc` of labels"),
    "label_ranking_average_precision_score": _is("ap", said="the worst order of equal scores there"),
    "top_k_accuracy_score": _is("success"),
    **_ERRORS,
    "explained_variance_score": _is("explained_variance"),
    "roc_auc_score": _is("auc"),
    "log_loss": _is("log_loss"),
    "brier_score_loss": _is("brier"),
    "coverage_error": _no("it is the depth at which all relevant documents were seen; leave it out"),
    "label_ranking_loss": _no("it is a share of pairs in the wrong order; kendall_distance@# counts them"),
}

TORCHMETRICS = {
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
    **_all("RetrievalFallOut retrieval_fall_out", _is("fallout", said=_FALL_OUT)),
    **_all("RetrievalAUROC retrieval_auroc", _is("auc(average=query)", said="0 there for a query without positives")),
    **_all("BinaryAUROC binary_auroc", _is("auc")),
    **_all("BinaryAveragePrecision binary_average_precision", _is("pr_auc")),
    **_all(
        "BinaryCalibrationError binary_calibration_error",
        _is("calibration_error", said="there a bin has its lower end, not its upper one", n_bins="bins"),
    ),
    **_all("RetrievalPrecisionRecallCurve retrieval_precision_recall_curve", _no(_CURVE)),
    "RetrievalRecallAtFixedPrecision": _no("it is a point of a curve; iprec(recall=0.5) is one the other way round"),
}

KAGGLE = {
    **_all("apk mapk", _is("ap(denominator=cutoff)")),
    "MAP": _is("ap", said="over min(R, k) there: `ap(denominator=cutoff)@10`"),
}

RECBOLE = {
    **_all("Hit hit", _is("success")),
    **_all("MRR mrr", _is("rr")),
    **_all("MAP map", _is("ap", said="over min(R, k) there: `ap(denominator=cutoff)@10`")),
    "Recall": _is("r"),
    "recall": _is(f"r@{RANKS}"),
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
    **_all("AUC auc", _is("auc")),
    **_all("GAUC gauc", _is("auc(average=impressions)", said="weighted by positives there: `auc(average=positives)`")),
    **_all("LogLoss logloss", _is("log_loss")),
}

CORNAC = {
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
    "AUC": _is("auc", said="of each user over the whole catalogue there: `auc(average=query)`"),
    "NCRR": _no("it sums 1 / rank over all relevant documents; rr@# takes the first, ndcg@# discounts less"),
}

LENSKIT = {
    **{
        name: _is(
            ours, said=f"binary gain there, and rank 2 not discounted: `{ours}(gain=binary,discount=jarvelin)@10`"
        )
        for name, ours in (("NDCG", "ndcg"), ("DCG", "dcg"))
    },
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

RECTOOLS = {
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
    "MAR": _is("mar@10"),
    "AUC": _is("auc", said=_AREA_OF_USERS % "positives"),
    "GAUC": _is("auc(average=impressions)", said=_AREA_OF_USERS % "query"),
    "LAUC": _is(
        "lauc@10",
        said="there positives below rank k gain nothing, it divides by min(P, k), and counts one negative too many",
    ),
    "ItemCoverage": _is("item_coverage", said=_COUNT),
    "UserCoverage": _is("user_coverage", said=_COUNT),
    "UserCoverageAtN": _no("it counts the queries with full lists; num_ret is the length of each"),
    "NumRetrieved": _is("num_ret", said="of the whole list, and without a cutoff"),
    "Gini": _no("of n documents WarpRec has n / (n - 1) times gini@#, Elliot 1 minus that; write gini@#"),
    "SRecall": _no(_FEATURES),
    "ARP": _is("popularity"),
    "APLT": _is("tail_share(tail=0.2,of=interactions)"),
    "ACLT": _no("it counts documents of the long tail; tail_share@# is their share of the list"),
    "EFD": _is("efd"),
    "EPC": _is("epc"),
    "PopREO": _no("Elliot counts what is found, as pop_reo@# does, WarpRec all that is shown; write pop_reo@#"),
    "PopRSP": _no("Elliot leaves out what was consumed, as pop_rsp@# does, WarpRec does not; write pop_rsp@#"),
    "REO": _no("it needs a column of the documents with their groups; write reo(feature=…)@#"),
    "RSP": _no("it needs a column of the documents with their groups; write rsp(feature=…)@#"),
}

ELLIOT = {
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
    "ExtendedPopRSP": _no("it is pop_rsp with the share of interactions of the tail, such as pop_rsp(tail=0.1)@#"),
    "ExtendedPopREO": _no("it is pop_reo with the share of interactions of the tail, such as pop_reo(tail=0.1)@#"),
    **_all(
        "UserMADrating ItemMADrating UserMADranking ItemMADranking BiasDisparityBR BiasDisparityBS BiasDisparityBD",
        _no(_CLUSTERS),
    ),
}

WARPREC = {
    **_ELLIOT_AND_WARPREC,
    "nDCG": _is("ndcg", said="exponential gain there, of the grade plus 1"),
    "HitRate": _is("success"),
    "MAP": _is("ap", said="over min(R, k) there: `ap(denominator=cutoff)@10`"),
    "F1": _is("f1"),
    "F1[*": _no("it is the harmonic mean of two measures; f1@# is that of p@# and r@#"),
    "MAE": _is("mae", said="each user's own there: `mae(average=query)`"),
    "MSE": _is("mse", said="each user's own there: `mse(average=query)`"),
    "RMSE": _is("rmse", said="each user's own there: `rmse(average=query)`"),
    "ShannonEntropy": RECBOLE["ShannonEntropy"],
    "MAR": _is("mar@10", said="there the recall at the ranks of hits alone: `mar(at=hits)@10`"),
    "UserCoverage": _is("user_coverage", said="there a count of the users with a relevant document, given or not"),
    "EFD": _is("efd", said=_ALL_RANKS),
    "EPC": _is("epc", said=f"{_ALL_RANKS}, and a document that nobody consumed counts as consumed once"),
    "APLT[*": _no("it is tail_share with the share of interactions of the tail, such as tail_share(tail=0.1)@10"),
    **_all("EFD[* EPC[*", _no(_DISCOUNTED)),
    "ACLT[*": _ELLIOT_AND_WARPREC["ACLT"],
    "PopREO[*": _ELLIOT_AND_WARPREC["PopREO"],
    "PopRSP[*": _ELLIOT_AND_WARPREC["PopRSP"],
    **_all(
        "UserMADRating ItemMADRating UserMADRanking ItemMADRanking BiasDisparityBR BiasDisparityBS BiasDisparityBD",
        _no(_CLUSTERS),
    ),
    **_all("EucDistance Hypervolume", _no("it joins several measures into one; compare them one by one")),
}

OBP = {
    **_all("ipw InverseProbabilityWeighting", _is("ips", lambda_="clip")),
    **_all("snipw SelfNormalizedInverseProbabilityWeighting", _is("snips", said="never clipped there")),
    **_all("dr DoublyRobust", _is("dr", lambda_="clip")),
    "rm": _no("take snips, and give a weight of 1 to rows whose document the ranker would show as well, 0 to others"),
    "dm": _no("it is the reward model alone; dr corrects it where it errs"),
    **_all("sndr switch-dr dr-os sg-ipw sg-dr", _no("large weights can only be clipped here, as in dr(clip=5)")),
}
