"""Every metric again, as plain loops written from the papers: slow, and independent of the kernels they check.

Each function takes one query as lists and gives one float, NaN where the metric is undefined. `ORACLE` names them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.blocks import PlainQuery

__all__ = ["CATALOGUE_ORACLE", "ORACLE", "RATINGS_ORACLE"]

NAN = float("nan")


def _first(query: PlainQuery, k: int | None) -> list[float | None]:
    return list(query.ranking) if k is None else list(query.ranking)[:k]


def _is_relevant(grade: float | None, rel: float) -> bool:
    return grade is not None and grade >= rel


def _judgments(query: PlainQuery) -> list[float]:
    """All grades judged, the best first."""
    return sorted([grade for grade in query.ranking if grade is not None] + list(query.missed), reverse=True)


def _n_relevant(query: PlainQuery, rel: float) -> int:
    return sum(1 for grade in _judgments(query) if grade >= rel)


def _hit_ranks(query: PlainQuery, k: int | None, rel: float) -> list[int]:
    return [i for i, grade in enumerate(_first(query, k), start=1) if _is_relevant(grade, rel)]


def tp(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    """Relevant and retrieved."""
    return float(len(_hit_ranks(query, k, rel)))


def fp(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    """Retrieved and not relevant."""
    return float(sum(1 for grade in _first(query, k) if not _is_relevant(grade, rel)))


def fn(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    """Relevant and not retrieved: below the cutoff, or missed altogether."""
    below = [] if k is None else list(query.ranking)[k:]
    return float(sum(1 for grade in [*below, *query.missed] if _is_relevant(grade, rel)))


def tn(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    """Neither retrieved nor relevant: what the other three counts leave of the catalogue."""
    if query.n_documents is None:
        return NAN
    return query.n_documents - tp(query, k=k, rel=rel) - fp(query, k=k, rel=rel) - fn(query, k=k, rel=rel)


def p(query: PlainQuery, *, k: int | None = None, rel: float = 1, denominator: str = "cutoff") -> float:
    """Hits over k, or over what was retrieved; nothing retrieved is 0."""
    size = len(_first(query, k)) if k is None or denominator == "retrieved" else k
    return len(_hit_ranks(query, k, rel)) / size if size else 0.0


def r(query: PlainQuery, *, k: int | None = None, rel: float = 1, denominator: str = "relevant") -> float:
    """Hits over the relevant documents, or over as many of them as fit into k."""
    size = _n_relevant(query, rel)
    if denominator == "cutoff" and k is not None and k < size:
        size = k
    return len(_hit_ranks(query, k, rel)) / size if size else NAN


def f(query: PlainQuery, *, beta: float, k: int | None = None, rel: float = 1) -> float:
    """(1 + beta²) P R / (beta² P + R), and 0 where both are 0."""
    recall = r(query, k=k, rel=rel)
    precision = p(query, k=k, rel=rel)
    if math.isnan(recall):
        return NAN
    if precision + recall == 0:
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def f1(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    """2 P R / (P + R)."""
    return f(query, beta=1, k=k, rel=rel)


def success(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    """1 if anything relevant was found."""
    if _n_relevant(query, rel) == 0:
        return NAN
    return 1.0 if _hit_ranks(query, k, rel) else 0.0


def judged(query: PlainQuery, *, k: int | None = None) -> float:
    """The share of the retrieved that has a grade of at least 0."""
    seen = _first(query, k)
    return sum(1 for grade in seen if grade is not None and grade >= 0) / len(seen) if seen else NAN


def user_coverage(query: PlainQuery) -> float:
    """1 if anything was retrieved."""
    return 1.0 if query.ranking else 0.0


def rr(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    """One over the rank of the first hit."""
    if _n_relevant(query, rel) == 0:
        return NAN
    for rank in _hit_ranks(query, k, rel):
        return 1 / rank
    return 0.0


def ap(query: PlainQuery, *, k: int | None = None, rel: float = 1, denominator: str = "relevant") -> float:
    """The precisions at the hits, summed, over one of three denominators."""
    n_relevant = _n_relevant(query, rel)
    if n_relevant == 0:
        return NAN
    hits = _hit_ranks(query, k, rel)
    total = sum(n_found / rank for n_found, rank in enumerate(hits, start=1))
    if denominator == "hits":
        return total / len(hits) if hits else 0.0
    if denominator == "cutoff" and k is not None:
        return total / min(n_relevant, k)
    return total / n_relevant


def rprec(query: PlainQuery, *, rel: float = 1) -> float:
    """Precision at rank R."""
    n_relevant = _n_relevant(query, rel)
    return len(_hit_ranks(query, n_relevant, rel)) / n_relevant if n_relevant else NAN


def rp(query: PlainQuery, *, k: int, rel: float = 1) -> float:
    """The first k against the solution's k best, with all that tie with the last of them."""
    solution = [grade for grade in _judgments(query) if grade >= rel]
    if not solution:
        return NAN
    size = min(len(solution), k)
    n_wanted = sum(1 for grade in _first(query, k) if _is_relevant(grade, solution[size - 1]))
    return n_wanted / size


def avg_rp(query: PlainQuery, *, cutoffs: Sequence[int] = (5, 10), rel: float = 1) -> float:
    """The mean of `rp` over the cutoffs."""
    return sum(rp(query, k=k, rel=rel) for k in cutoffs) / len(cutoffs)


def iprec(query: PlainQuery, *, recall: float, rel: float = 1, recall_points: str = "truncate") -> float:
    """The highest precision at a rank, or any deeper one, where enough relevant documents have been found."""
    n_relevant = _n_relevant(query, rel)
    if n_relevant == 0:
        return NAN
    needed = {
        "truncate": int(recall * n_relevant + 0.9),
        "ceil": math.ceil(round(recall * n_relevant, 9)),
        "round": int(recall * n_relevant + 0.5),
    }[recall_points]
    best, n_found = 0.0, 0
    for rank, grade in enumerate(query.ranking, start=1):
        n_found += _is_relevant(grade, rel)
        if n_found >= needed:
            best = max(best, n_found / rank)
    return best


def ap11(query: PlainQuery, *, rel: float = 1, recall_points: str = "truncate") -> float:
    """The mean of `iprec` at 0.0, 0.1 … 1.0."""
    levels = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    return sum(iprec(query, recall=level, rel=rel, recall_points=recall_points) for level in levels) / 11


def bpref(query: PlainQuery, *, rel: float = 1) -> float:
    """Each relevant document's preference over the judged non-relevant ones, capped at R of them."""
    n_relevant = _n_relevant(query, rel)
    n_non_relevant = sum(1 for grade in _judgments(query) if 0 <= grade < rel)
    if n_relevant == 0:
        return NAN
    total, n_above = 0.0, 0
    for grade in query.ranking:
        if grade is None or grade < 0:
            continue
        if grade < rel:
            n_above += 1
        elif n_above == 0:
            total += 1
        else:
            total += 1 - min(n_above, n_relevant) / min(n_non_relevant, n_relevant)
    return total / n_relevant


def _gain(grade: float | None, gain: str) -> float:
    if grade is None or grade < 0:
        return 0.0
    return 2.0**grade - 1 if gain == "exponential" else float(grade)


def _discounted(grades: Sequence[float | None], gain: str, discount: str, base: float | None) -> float:
    total = 0.0
    for rank, grade in enumerate(grades, start=1):
        if discount == "log2":
            total += _gain(grade, gain) / math.log2(rank + 1)
        else:
            total += _gain(grade, gain) / max(1.0, math.log(rank) / math.log(base or 2))
    return total


def cg(query: PlainQuery, *, k: int | None = None, gain: str = "linear") -> float:
    """The sum of the gains."""
    return math.fsum(_gain(grade, gain) for grade in _first(query, k))


def dcg(
    query: PlainQuery, *, k: int | None = None, gain: str = "linear", discount: str = "log2", base: float | None = None
) -> float:
    """The sum of the discounted gains."""
    return _discounted(_first(query, k), gain, discount, base)


def ndcg(
    query: PlainQuery, *, k: int | None = None, gain: str = "linear", discount: str = "log2", base: float | None = None
) -> float:
    """DCG over that of all judgments, best first."""
    best = _discounted(_judgments(query)[:k], gain, discount, base)
    return dcg(query, k=k, gain=gain, discount=discount, base=base) / best if best > 0 else NAN


def rbp(
    query: PlainQuery,
    *,
    p: float = 0.8,
    k: int | None = None,
    gain: str = "binary",
    rel: float = 1,
    max_grade: float | None = None,
) -> float:
    """(1 - p) times the sum of what is gained at each rank by a reader who goes on with probability p."""
    total = 0.0
    for rank, grade in enumerate(_first(query, k), start=1):
        if gain == "graded":
            total += _gain(grade, "linear") / (max_grade or NAN) * p ** (rank - 1)
        elif _is_relevant(grade, rel):
            total += p ** (rank - 1)
    return (1 - p) * total


def err(
    query: PlainQuery,
    *,
    k: int | None = None,
    grades: str = "exponential",
    max_grade: float | None = None,
    continuation: float = 1.0,
) -> float:
    """The cascade, walked: at each rank the reader is satisfied, goes on, or gives up."""
    total, still_reading = 0.0, 1.0
    for rank, grade in enumerate(_first(query, k), start=1):
        chance = _gain(grade, "linear")
        if grades == "exponential":
            chance = _gain(grade, "exponential") / 2.0 ** (NAN if max_grade is None else max_grade)
        total += still_reading * chance / rank
        still_reading *= (1 - chance) * continuation
    return total


def rankscore(query: PlainQuery, *, half_life: float = 5.0, k: int | None = None, rel: float = 1) -> float:
    """Half-life utility of the hits over that of all relevant documents at the top."""
    n_relevant = _n_relevant(query, rel)
    if n_relevant == 0:
        return NAN
    n_best = n_relevant if k is None else min(n_relevant, k)
    got = sum(2 ** (-(rank - 1) / half_life) for rank in _hit_ranks(query, k, rel))
    return got / sum(2 ** (-place / half_life) for place in range(n_best))


def _pairs(query: PlainQuery, k: int | None) -> tuple[int, int, int]:
    """Concordant pairs, discordant pairs, documents compared."""
    grades = [grade for grade in _first(query, k) if grade is not None and grade >= 0]
    concordant = discordant = 0
    for i, above in enumerate(grades):
        for below in grades[i + 1 :]:
            concordant += above > below
            discordant += above < below
    return concordant, discordant, len(grades)


def kendall_distance(query: PlainQuery, *, k: int | None = None) -> float:
    """Inversions."""
    _, discordant, n_compared = _pairs(query, k)
    return float(discordant) if n_compared > 1 else NAN


def kendall_tau(query: PlainQuery, *, k: int | None = None) -> float:
    """(C - D) / sqrt(pairs untied in the ranking · pairs untied in the grades)."""
    concordant, discordant, n_compared = _pairs(query, k)
    if concordant + discordant == 0:
        return NAN
    n_pairs = n_compared * (n_compared - 1) // 2
    return (concordant - discordant) / math.sqrt(n_pairs * (concordant + discordant))


def mae(ratings: Sequence[float], predictions: Sequence[float]) -> float:
    """The mean of |prediction - rating|."""
    errors = [abs(guess - truth) for truth, guess in zip(ratings, predictions, strict=True)]
    return sum(errors) / len(errors) if errors else NAN


def mse(ratings: Sequence[float], predictions: Sequence[float]) -> float:
    """The mean of (prediction - rating)²."""
    errors = [(guess - truth) ** 2 for truth, guess in zip(ratings, predictions, strict=True)]
    return sum(errors) / len(errors) if errors else NAN


def rmse(ratings: Sequence[float], predictions: Sequence[float]) -> float:
    """The root of the mean squared error."""
    return math.sqrt(mse(ratings, predictions)) if ratings else NAN


def item_coverage(lists: Sequence[Sequence[int]], n_documents: int, *, k: int | None = None) -> float:
    """The share of the catalogue that stands in any list."""
    shown = {document for column in lists for document in list(column)[:k] if document >= 0}
    return len(shown) / n_documents if n_documents else NAN


_JUDGED = (
    *(p, r, f1, f, success, tp, fp, fn, tn, judged, user_coverage, rr, ap, rprec, rp, avg_rp, iprec, ap11, bpref),
    *(cg, dcg, ndcg, rbp, err, rankscore, kendall_distance, kendall_tau),
)

ORACLE: Mapping[str, Callable[..., Any]] = {function.__name__: function for function in _JUDGED}
RATINGS_ORACLE: Mapping[str, Callable[..., Any]] = {function.__name__: function for function in (mae, mse, rmse)}
CATALOGUE_ORACLE: Mapping[str, Callable[..., Any]] = {"item_coverage": item_coverage}
