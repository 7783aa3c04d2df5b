"""The choices on which evaluation tools disagree, and the profiles that fix them.

A profile is a complete set of conventions and the defaults of measure parameters that go with them, as one tool has
them. Each exists because a test compares it with that tool's own output. `trec_eval` holds the rules behind the field's
published tables: trec_eval 9.0.4 with `-c`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

__all__ = ["PROFILES", "Conventions", "Profile", "Ties"]

Ties: TypeAlias = Literal[
    "doc_id_desc", "doc_id_asc", "input_order", "rank_column", "optimistic", "pessimistic", "expected"
]


@dataclass(frozen=True)
class Conventions:
    """Conventions for all measures of an evaluation.

    Attributes:
        ties: the order of documents with equal scores. `doc_id_desc` and `doc_id_asc`: by id as UTF-8 bytes;
            `input_order`: as the rows stand in the file; `rank_column`: by the file's own rank; `optimistic` and
            `pessimistic`: the best grade first, or last; `expected`: all orders alike, and the score is their mean.
        score_precision: what scores are rounded to before they are compared.
        missing_queries: what a judged query without output is. `empty`: a query with an empty ranking; `skip`: left
            out of every mean; `error`: the output is refused.
        undefined_queries: what a query counts as whose score is undefined for want of relevant documents. `zero`: it
            scores 0; `skip`: left out of the mean.
        negative_grades: what a negative grade means. `unjudged`: as if the document had not been judged;
            `non_relevant`: a grade of 0; `error`: the judgments are refused.
        unjudged_documents: what a document without judgment is. `non_relevant`: not relevant, and it keeps its rank;
            `condensed`: taken out of the ranking, so that what stands below moves up.
        depth: how many documents of each ranking are looked at; None looks at all.
    """

    ties: Ties
    score_precision: Literal["float32", "float64"]
    missing_queries: Literal["empty", "skip", "error"]
    undefined_queries: Literal["zero", "skip"]
    negative_grades: Literal["unjudged", "non_relevant", "error"]
    unjudged_documents: Literal["non_relevant", "condensed"]
    depth: int | None

    def __post_init__(self) -> None:
        """Refuse what has no meaning together."""
        if self.depth is not None and self.depth < 1:
            raise ValueError(f"depth counts ranks from 1, found {self.depth}")
        if self.ties == "expected" and self.depth is not None and self.unjudged_documents == "condensed":
            raise ValueError(
                "ties: expected cannot be condensed at a depth, as the cut would depend on the order; "
                "choose other ties, or remove the depth"
            )


@dataclass(frozen=True)
class Profile:
    """Conventions and defaults of one tool.

    Attributes:
        name: as written in a config.
        tool: what it stands for, with the version that the tests compare it with.
        conventions: what holds of every measure.
        defaults: by metric, the parameters whose default is not that of our function.
        ties: by metric, the order of tied documents where a metric has one of its own.
        because: who does what, in a sentence for each choice, by convention or metric.
        differs: by metric, the conventions by which the tool has it where these are not the profile's; none if no
            convention gives the tool's value. After a space follows what the written measure holds, such as `rr @`.
    """

    name: str
    tool: str
    conventions: Conventions
    defaults: Mapping[str, Mapping[str, float | int | str]] = field(default_factory=dict)
    ties: Mapping[str, Ties] = field(default_factory=dict)
    because: Mapping[str, str] = field(default_factory=dict)
    differs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def conventions_of(self, metric: str) -> Conventions:
        """Return the conventions for a metric."""
        if metric not in self.ties:
            return self.conventions
        return replace(self.conventions, ties=self.ties[metric])

    def describe_difference(self, metric: str, measure: str) -> str:
        """Return the settings for the tool's own value of a measure, empty if the profile has them."""
        for key, conventions in self.differs.items():
            name, _, part = key.partition(" ")
            unlike = {word: choice for word, choice in conventions.items() if getattr(self.conventions, word) != choice}
            if name == metric and part in measure and (unlike or not conventions):
                if not conventions:
                    return f"{self.name} gives another figure: {self.because[metric]}. Check how far that matters"
                keys = ", ".join(f"{word}: {choice}" for word, choice in unlike.items())
                return f"{self.name} has other conventions here. Set {keys} to reproduce its figures"
        return ""

    def with_conventions(self, **chosen: object) -> Profile:
        """Return the profile with other conventions. A chosen order of ties applies to every metric.

        Raises:
            ValueError: If they have no meaning together, or with the order of ties that a metric has of its own.
        """
        conventions = replace(self.conventions, **chosen)  # type: ignore[arg-type]
        profile = replace(self, conventions=conventions, ties={} if "ties" in chosen else self.ties)
        for metric in profile.ties:
            profile.conventions_of(metric)
        return profile


_TREC_EVAL = Conventions(
    ties="doc_id_desc",
    score_precision="float32",
    missing_queries="empty",
    undefined_queries="zero",
    negative_grades="unjudged",
    unjudged_documents="non_relevant",
    depth=None,
)

_BECAUSE = {
    "ties": "form_res_rels.c sorts by score, then by document id, both descending",
    "score_precision": "scores are kept as C floats",
    "missing_queries": "-c averages over all judged queries; one without output scores 0",
    "undefined_queries": "every measure is initialised with 0",
    "negative_grades": "a negative grade puts a document in the pool without a judgment; infAP reads it",
    "unjudged_documents": "all documents keep their ranks unless -J is given",
    "depth": "all documents unless -M is given",
}

_DOUBLES = {"score_precision": "float64"}
_ASCENDING = {"ties": "doc_id_asc", **_DOUBLES}
_IN_ORDER = {"ties": "input_order", **_DOUBLES}
_COUNTED = {**_IN_ORDER, "missing_queries": "empty"}

_TABLE = (
    Profile(name="trec_eval", tool="trec_eval 9.0.4 with -c", conventions=_TREC_EVAL, because=_BECAUSE),
    Profile(
        name="trec_eval_10",
        tool="trec_eval 10.0 with -c",
        conventions=replace(_TREC_EVAL, score_precision="float64"),
        defaults={
            "iprec": {"recall_points": "round"},
            "ap11": {"recall_points": "round"},
            "rbp": {"p": 0.9},
            "rbp_resid": {"p": 0.9, "below": "if_unjudged"},
        },
        because=_BECAUSE
        | {
            "score_precision": "scores are kept as doubles, where version 9 has floats",
            "missing_queries": "-c counts every judged query and prints it with -q; without -c the first one stops it",
            "undefined_queries": "every measure is set to 0 before a query",
            "iprec": "lround(p R) relevant documents reach recall p, where version 9 has int(p R + 0.9)",
            "ap11": "lround(p R) relevant documents reach recall p, where version 9 has int(p R + 0.9)",
            "rbp": "p is 0.9; grades above 1 are scaled by uninitialised memory; only binary grades are reliable",
            "rbp_resid": "p is 0.9; what stands below the list counts only where the list has an unjudged document",
        },
        differs={"rbp": {}},
    ),
    Profile(
        name="ir_measures",
        tool="ir_measures 0.4.3 with pytrec-eval-terrier 0.5.11",
        conventions=_TREC_EVAL,
        defaults={"err": {"max_grade": 4}, "judged": {"empty": "zero"}},
        because={
            "ties": "trec_eval's code: document id, descending; RR@k, Judged, Compat have it ascending, RBP the rows",
            "score_precision": "trec_eval's code keeps scores as floats; RR@k, Judged, Compat, RBP, ERR have doubles",
            "missing_queries": "a judged query that a provider leaves out gets the measure's default, which is 0",
            "undefined_queries": "trec_eval's code gives 0, and what gdeval leaves out gets 0",
            "negative_grades": "trec_eval's code: not judged; Judged counts them as judged",
            "unjudged_documents": "all documents keep their ranks unless judged_only is given",
            "depth": "all documents",
            "err": "gdeval.pl computes it, whose greatest grade is 4",
            "judged": "a query without output counts 0",
            "compat": "documents of one grade are in the ideal list by score, 0 for one that was not retrieved",
        },
        differs={
            **dict.fromkeys(("rr @", "compat"), _ASCENDING),
            "judged": {**_ASCENDING, "negative_grades": "non_relevant"},
            **dict.fromkeys(("err", "ndcg gain=exponential"), _DOUBLES),
            **dict.fromkeys(("rbp", "inst", "insq", "bpm", "sdcg", "nearly_err"), _IN_ORDER),
        },
    ),
    Profile(
        name="ranx",
        tool="ranx 0.3.21: evaluate(Qrels, Run)",
        conventions=replace(
            _TREC_EVAL,
            ties="input_order",
            score_precision="float64",
            missing_queries="error",
            negative_grades="non_relevant",
        ),
        because={
            "ties": "argsort of the negated scores keeps the order of up to 15 documents; of more, it keeps none",
            "score_precision": "scores are held as doubles",
            "missing_queries": "query ids that differ raise; make_comparable=True takes missing ones for empty lists",
            "undefined_queries": "every measure returns 0 where no document is relevant",
            "negative_grades": "bpref counts what is below the level as judged and not relevant, negative grades too",
            "unjudged_documents": "all documents keep their ranks",
            "depth": "all documents",
            "rbp": "the gain of a relevant document is its grade, so that only grades 0 and 1 agree",
        },
        differs={"rbp": {}},
    ),
    Profile(
        name="beir",
        tool="BEIR 2.2.0 with pytrec-eval-terrier 0.5.11",
        conventions=replace(_TREC_EVAL, missing_queries="skip"),
        because={
            "ties": "NDCG, MAP, Recall and P are trec_eval's code; MRR, R_cap and Accuracy keep the results' order",
            "score_precision": "trec_eval's code keeps scores as floats; MRR, R_cap and Accuracy compare doubles",
            "missing_queries": "NDCG, MAP, Recall and P divide by the queries answered; MRR, R_cap and Accuracy by all",
            "undefined_queries": "trec_eval's code gives 0; R_cap divides by zero",
            "negative_grades": "trec_eval's code: not judged",
            "unjudged_documents": "all documents keep their ranks, but one that has the query's id is taken out",
            "depth": "all documents",
        },
        differs=dict.fromkeys(("rr", "r denominator=cutoff", "success"), _COUNTED),
    ),
    Profile(
        name="mteb",
        tool="MTEB 2.19.5 (18 August 2026) to 2.26.24, with pytrec-eval-terrier",
        conventions=replace(_TREC_EVAL, missing_queries="skip"),
        because={
            "ties": "trec_eval's code: document id, descending; MRR has it since 2.18.19, p-MRR since 2.19.5",
            "score_precision": "trec_eval's code keeps scores as floats; MRR and p-MRR compare doubles",
            "missing_queries": "all means are over the queries answered",
            "undefined_queries": "trec_eval's code gives 0, and so does MRR",
            "negative_grades": "trec_eval's code: not judged",
            "unjudged_documents": "all documents keep their ranks",
            "depth": "all documents that the task keeps: top_k, by default 1000",
        },
        differs=dict.fromkeys(("rr", "p_mrr"), _DOUBLES),
    ),
    Profile(
        name="gdeval",
        tool="gdeval.pl 1.2a and 1.3",
        conventions=replace(_TREC_EVAL, score_precision="float64", missing_queries="skip", undefined_queries="skip"),
        defaults={"dcg": {"gain": "exponential"}, "ndcg": {"gain": "exponential"}, "err": {"max_grade": 4}},
        because={
            "ties": "runOrder sorts by score, then by document id as bytes, both descending",
            "score_precision": "Perl compares doubles",
            "missing_queries": "the mean is over the queries answered; with -c over all that have a relevant document",
            "undefined_queries": "a query without a positive grade is left out of every mean, with -c too",
            "negative_grades": "only positive grades are read",
            "unjudged_documents": "a document without a positive grade gains 0 and keeps its rank",
            "depth": "all documents down to k, which is 20 unless -k says otherwise: write ndcg@20",
            "ndcg": "dcg adds 2**grade - 1 over log2(rank + 1), in the ranking and in the ideal list",
            "dcg": "dcg adds 2**grade - 1 over log2(rank + 1)",
            "err": "MAX_JUDGMENT is 4, and a greater grade is refused",
        },
    ),
    Profile(
        name="sklearn",
        tool="scikit-learn 1.9: dcg_score, ndcg_score, average_precision_score and sets as multilabel rows",
        conventions=replace(_TREC_EVAL, score_precision="float64", missing_queries="error", negative_grades="error"),
        ties={"dcg": "expected", "ndcg": "expected", "kendall_distance": "pessimistic"},
        because={
            "ties": "top_k_accuracy_score takes the last of equal columns first; columns stand by id",
            "score_precision": "scores are compared as doubles",
            "missing_queries": "a row of grades without a row of scores raises",
            "undefined_queries": "ndcg_score, average_precision_score and zero_division=0 give 0",
            "negative_grades": "ndcg_score raises for a negative grade; dcg_score subtracts it",
            "unjudged_documents": "every column has a grade, and what is not relevant has 0",
            "depth": "all columns",
            "dcg": "dcg_score averages over all orders of equal scores (McSherry & Najork 2008)",
            "ndcg": "ndcg_score averages over all orders of equal scores (McSherry & Najork 2008)",
            "ap": "average_precision_score gives equal scores one precision, that at their end, as no order does",
            "kendall_distance": "label_ranking_loss takes a pair of equal scores for one in the wrong order",
        },
        differs={"ap": {}},
    ),
    Profile(
        name="torchmetrics",
        tool="torchmetrics 1.9, the retrieval metrics",
        conventions=replace(_TREC_EVAL, ties="input_order", missing_queries="skip", negative_grades="error"),
        defaults={"ap": {"denominator": "hits"}},
        ties={"ndcg": "expected"},
        because={
            "ties": "torch.topk and torch.argsort promise no order of equal scores; that of the rows stands in for it",
            "score_precision": "scores are made float32 before anything else",
            "missing_queries": "a query is what stands in `indexes`, and no other is counted",
            "undefined_queries": "empty_target_action is 'neg', which counts 0",
            "negative_grades": "targets must be binary; nDCG alone takes other grades, and subtracts negative ones",
            "unjudged_documents": "every document has a target; ignore_index would take documents out of the ranking",
            "depth": "all documents",
            "ap": "the precisions at the hits among the first k are averaged over these hits",
            "ndcg": "gains are averaged over all orders of equal scores, as scikit-learn does",
        },
    ),
    Profile(
        name="recbole",
        tool="RecBole 1.2, full ranking",
        conventions=replace(_TREC_EVAL, ties="input_order", missing_queries="error", undefined_queries="skip"),
        defaults={
            "ap": {"denominator": "cutoff"},
            "cg": {"gain": "binary"},
            "dcg": {"gain": "binary"},
            "ndcg": {"gain": "binary"},
        },
        because={
            "ties": "torch.topk promises no order of equal scores; that of the rows stands in for it",
            "score_precision": "models score in float32",
            "missing_queries": "a model scores every item for every user of the test data",
            "undefined_queries": "users without test interactions are not evaluated; recall of one would be NaN",
            "negative_grades": "there are no grades: a test interaction is positive, and everything else is not",
            "unjudged_documents": "an item without a test interaction is not relevant",
            "depth": "all positive items of a user count, wherever they stand",
            "ap": "the precisions at the hits among the first k are divided by min(R, k)",
            "cg": "a test interaction gains 1",
            "dcg": "a test interaction gains 1",
            "ndcg": "a test interaction gains 1",
        },
    ),
    Profile(
        name="kaggle",
        tool="Kaggle's ml_metrics 0.1.4: apk and mapk",
        conventions=replace(_TREC_EVAL, ties="input_order", score_precision="float64"),
        defaults={"ap": {"denominator": "cutoff"}},
        because={
            "ties": "a submission is a list and has no scores",
            "score_precision": "a submission has no scores",
            "missing_queries": "an empty list scores 0",
            "undefined_queries": "apk gives 0 since 2015 in its repository, 1 in the release that pip installs",
            "negative_grades": "there are no grades: a document is in the list of relevant ones or it is not",
            "unjudged_documents": "a document that is not in the list of relevant ones is not relevant",
            "depth": "all documents; k is part of the measure",
            "ap": "apk divides by min(R, k); kdd_apk, with R, is the default of other profiles",
        },
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _TABLE})
