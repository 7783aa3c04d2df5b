"""Every metric again, as plain loops written from the papers: slow, and independent of the kernels they check.

Each function takes one query as lists and gives one float, NaN where the metric is undefined. `ORACLE` names them.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tests.support.blocks import DiverseQuery, PlainCatalogue, PlainQuery

NAN = float("nan")


def _first(query: PlainQuery, k: int | None) -> list[float | None]:
    return list(query.ranking) if k is None else list(query.ranking)[:k]


def _is_relevant(grade: float | None, rel: float) -> bool:
    return grade is not None and grade >= rel


def _judgments(query: PlainQuery) -> list[float]:
    return sorted([grade for grade in query.ranking if grade is not None] + list(query.missed), reverse=True)


def _n_relevant(query: PlainQuery, rel: float) -> int:
    return sum(1 for grade in _judgments(query) if grade >= rel)


def _hit_ranks(query: PlainQuery, k: int | None, rel: float) -> list[int]:
    return [i for i, grade in enumerate(_first(query, k), start=1) if _is_relevant(grade, rel)]


def tp(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    return float(len(_hit_ranks(query, k, rel)))


def fp(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
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
    return f(query, beta=1, k=k, rel=rel)


def success(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    if _n_relevant(query, rel) == 0:
        return NAN
    return 1.0 if _hit_ranks(query, k, rel) else 0.0


def judged(query: PlainQuery, *, k: int | None = None, empty: str = "undefined") -> float:
    """The share of the retrieved that has a grade of at least 0."""
    seen = _first(query, k)
    if not seen:
        return 0.0 if empty == "zero" else NAN
    return sum(1 for grade in seen if grade is not None and grade >= 0) / len(seen)


def user_coverage(query: PlainQuery) -> float:
    return 1.0 if query.ranking else 0.0


def rr(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
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


def yaap(query: PlainQuery, *, rel: float = 1) -> float:
    """The odds of the sum of precisions, with one relevant document more on both sides."""
    n_relevant = _n_relevant(query, rel)
    summed = ap(query, rel=rel) * n_relevant if n_relevant else 0.0
    return math.log((1 + summed) / (1 + n_relevant - summed))


def mar(query: PlainQuery, *, k: int, rel: float = 1, at: str = "ranks") -> float:
    n_relevant = _n_relevant(query, rel)
    if not n_relevant:
        return NAN
    recalls = [r(query, k=rank, rel=rel) for rank in range(1, k + 1)]
    if at == "ranks":
        return sum(recalls) / k
    return sum(recalls[rank - 1] for rank in _hit_ranks(query, k, rel)) / min(n_relevant, k)


def fallout(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    others = math.nan if query.n_documents is None else query.n_documents - _n_relevant(query, rel)
    return fp(query, k=k, rel=rel) / others if others else NAN


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


def _gain(grade: float | None, gain: str, rel: float = 1) -> float:
    if grade is None or grade < 0:
        return 0.0
    if gain == "binary":
        return 1.0 if grade >= rel else 0.0
    return 2.0**grade - 1 if gain == "exponential" else float(grade)


def _discounted(grades: Sequence[float | None], gain: str, discount: str, base: float | None, rel: float = 1) -> float:
    total = 0.0
    for rank, grade in enumerate(grades, start=1):
        if discount == "log2":
            total += _gain(grade, gain, rel) / math.log2(rank + 1)
        else:
            total += _gain(grade, gain, rel) / max(1.0, math.log(rank) / math.log(base or 2))
    return total


def cg(query: PlainQuery, *, k: int | None = None, gain: str = "linear", rel: float = 1) -> float:
    return math.fsum(_gain(grade, gain, rel) for grade in _first(query, k))


def dcg(
    query: PlainQuery,
    *,
    k: int | None = None,
    gain: str = "linear",
    discount: str = "log2",
    base: float | None = None,
    rel: float = 1,
) -> float:
    return _discounted(_first(query, k), gain, discount, base, rel)


def ndcg(
    query: PlainQuery,
    *,
    k: int | None = None,
    gain: str = "linear",
    discount: str = "log2",
    base: float | None = None,
    rel: float = 1,
) -> float:
    best = _discounted(_judgments(query)[:k], gain, discount, base, rel)
    return dcg(query, k=k, gain=gain, discount=discount, base=base, rel=rel) / best if best > 0 else NAN


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
    grades = [grade for grade in _first(query, k) if grade is not None and grade >= 0]
    concordant = discordant = 0
    for i, above in enumerate(grades):
        for below in grades[i + 1 :]:
            concordant += above > below
            discordant += above < below
    return concordant, discordant, len(grades)


def kendall_distance(query: PlainQuery, *, k: int | None = None) -> float:
    _, discordant, n_compared = _pairs(query, k)
    return float(discordant) if n_compared > 1 else NAN


def kendall_tau(query: PlainQuery, *, k: int | None = None) -> float:
    """(C - D) / sqrt(pairs untied in the ranking · pairs untied in the grades)."""
    concordant, discordant, n_compared = _pairs(query, k)
    if concordant + discordant == 0:
        return NAN
    n_pairs = n_compared * (n_compared - 1) // 2
    return (concordant - discordant) / math.sqrt(n_pairs * (concordant + discordant))


def num_ret(query: PlainQuery) -> float:
    return float(len(query.ranking))


def num_rel(query: PlainQuery, *, rel: float = 1) -> float:
    return float(_n_relevant(query, rel))


def num_nonrel_judged_ret(query: PlainQuery, *, rel: float = 1) -> float:
    """Retrieved with a grade that is neither negative nor relevant."""
    return float(sum(1 for grade in query.ranking if grade is not None and 0 <= grade < rel))


def utility(query: PlainQuery, *, a: float = 1, b: float = -1, c: float = 0, d: float = 0, rel: float = 1) -> float:
    """The four cells of the contingency table, each times its worth."""
    total = a * tp(query, rel=rel) + b * fp(query, rel=rel) + c * fn(query, rel=rel)
    return total + d * tn(query, rel=rel) if d else total


def unjudged(query: PlainQuery, *, k: int | None = None) -> float:
    """Documents without a grade, or with a negative one, over k or over what was retrieved."""
    seen = _first(query, k)
    size = len(seen) if k is None else k
    return sum(1 for grade in seen if grade is None or grade < 0) / size if size else 0.0


def relative_p(query: PlainQuery, *, k: int | None = None, rel: float = 1) -> float:
    """Precision over that of a list as long, filled with relevant documents first."""
    n_relevant = _n_relevant(query, rel)
    size = len(query.ranking) if k is None else k
    if n_relevant == 0:
        return NAN
    return p(query, k=k, rel=rel) / (min(size, n_relevant) / size) if size else 0.0


def set_map(query: PlainQuery, *, rel: float = 1) -> float:
    return p(query, rel=rel) * r(query, rel=rel)


def rprec_mult(query: PlainQuery, *, factor: float, rel: float = 1) -> float:
    n_relevant = _n_relevant(query, rel)
    last = int(factor * n_relevant + 0.9)
    if n_relevant == 0:
        return NAN
    return len(_hit_ranks(query, last, rel)) / last if last else 0.0


def infap(query: PlainQuery, *, rel: float = 1) -> float:
    """Yilmaz & Aslam's estimate of the precision at each relevant document, walked down the list."""
    n_relevant = _n_relevant(query, rel)
    if n_relevant == 0:
        return NAN
    epsilon, total = 0.00001, 0.0
    n_found = n_other = n_sampled_out = 0
    for rank, grade in enumerate(query.ranking, start=1):
        if _is_relevant(grade, rel):
            total += 1 / rank
            if rank > 1:
                in_pool = (n_found + n_other + n_sampled_out) / (rank - 1)
                total += (rank - 1) / rank * in_pool * (n_found + epsilon) / (n_found + n_other + 2 * epsilon)
            n_found += 1
        elif grade is not None and grade >= 0:
            n_other += 1
        elif grade is not None:
            n_sampled_out += 1
    return total / n_relevant


def bing(query: PlainQuery, *, rel: float = 1) -> float:
    """Relevant documents discounted by how many others stand above them."""
    n_relevant = _n_relevant(query, rel)
    total, n_others = 0.0, 0
    for grade in query.ranking:
        if _is_relevant(grade, rel):
            total += 1 / math.log2(2 + n_others)
        else:
            n_others += 1
    return total / n_relevant if n_relevant else NAN


def rndcg(query: PlainQuery, *, gain: str = "linear", rel: float = 1) -> float:
    """nDCG at the rank after which each positive grade ends in the ideal list, and over the whole list if longer."""
    if _n_relevant(query, rel) == 0:
        return NAN
    grades = [grade for grade in _judgments(query) if grade > 0]
    points = [ndcg(query, k=sum(1 for other in grades if other >= grade), gain=gain) for grade in sorted(set(grades))]
    if len(query.ranking) > len(grades) + 1:
        points.append(ndcg(query, gain=gain))
    return sum(points) / len(points)


def ndcg_rel(query: PlainQuery, *, gain: str = "linear") -> float:
    """nDCG at the rank of each document with gain; at the end of the list for those that were missed."""
    n_gaining = sum(1 for grade in _judgments(query) if grade > 0)
    if n_gaining == 0:
        return NAN
    ranks = [rank for rank, grade in enumerate(query.ranking, start=1) if _gain(grade, gain) > 0]
    total = sum(ndcg(query, k=rank, gain=gain) for rank in ranks)
    return (total + (n_gaining - len(ranks)) * ndcg(query, gain=gain)) / n_gaining


def g(query: PlainQuery, *, gain: str = "linear") -> float:
    """Gains, each discounted by how far the list has fallen behind the ideal one, whose places cost 1 at least."""
    ideal = [_gain(grade, gain) for grade in _judgments(query)]
    if sum(ideal) == 0:
        return NAN
    total = got = cost = 0.0
    for place, grade in enumerate(query.ranking):
        got += _gain(grade, gain)
        cost += max(1.0, ideal[place]) if place < len(ideal) else 1.0
        total += _gain(grade, gain) / math.log2(2 + cost - got)
    return total / sum(ideal)


def rbp_resid(query: PlainQuery, *, p: float = 0.8, k: int | None = None, below: str = "counted") -> float:
    """The weight of the unjudged documents and of all ranks below the list."""
    seen = _first(query, k)
    unknown = [rank for rank, grade in enumerate(seen, start=1) if grade is None or grade < 0]
    if below == "if_unjudged" and not unknown:
        return 0.0
    return p ** len(seen) + (1 - p) * sum(p ** (rank - 1) for rank in unknown)


def _over(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else NAN


def snips_dcg(query: PlainQuery, *, k: int | None = None) -> float:
    """Each click at its rank, weighted by its grade, over the weights of all clicks."""
    return _over(dcg(query, k=k), sum(grade for grade in _judgments(query) if grade > 0))


def snips_rbp(query: PlainQuery, *, p: float = 0.8, k: int | None = None) -> float:
    """The same with the weights of RBP for ranks."""
    return _over(rbp(query, p=p, k=k, gain="graded", max_grade=1), sum(g for g in _judgments(query) if g > 0))


def mae(ratings: Sequence[float], predictions: Sequence[float]) -> float:
    errors = [abs(guess - truth) for truth, guess in zip(ratings, predictions, strict=True)]
    return sum(errors) / len(errors) if errors else NAN


def mse(ratings: Sequence[float], predictions: Sequence[float]) -> float:
    errors = [(guess - truth) ** 2 for truth, guess in zip(ratings, predictions, strict=True)]
    return sum(errors) / len(errors) if errors else NAN


def rmse(ratings: Sequence[float], predictions: Sequence[float]) -> float:
    return math.sqrt(mse(ratings, predictions)) if ratings else NAN


def _variance(values: Sequence[float]) -> float:
    middle = sum(values) / len(values)
    return sum((value - middle) ** 2 for value in values) / len(values)


def r2(ratings: Sequence[float], predictions: Sequence[float]) -> float:
    """1 minus the mean squared error over the variance of the ratings."""
    if len(set(ratings)) < 2:
        return NAN
    return 1 - mse(ratings, predictions) / _variance(ratings)


def explained_variance(ratings: Sequence[float], predictions: Sequence[float]) -> float:
    """1 minus the variance of the errors over the variance of the ratings."""
    if len(set(ratings)) < 2:
        return NAN
    return 1 - _variance([guess - truth for truth, guess in zip(ratings, predictions, strict=True)]) / _variance(
        ratings
    )


def auc(labels: Sequence[float], scores: Sequence[float], *, rel: float = 1) -> float:
    """The share of pairs of a positive and a negative that are in the right order; equal scores are half of one."""
    pairs = [
        1.0 if mine > other else 0.5 if mine == other else 0.0
        for mine, label in zip(scores, labels, strict=True)
        for other, none in zip(scores, labels, strict=True)
        if label >= rel > none
    ]
    return sum(pairs) / len(pairs) if pairs else NAN


def lauc(labels: Sequence[float], scores: Sequence[float], *, k: int, rel: float = 1) -> float:
    """The same where all that is not among the k highest scores is equal."""
    highest = sorted(scores, reverse=True)[:k]
    return auc(labels, [score if score in highest else -math.inf for score in scores], rel=rel)


def pr_auc(labels: Sequence[float], scores: Sequence[float], *, rel: float = 1) -> float:
    """The precision at each threshold times the recall that it adds."""
    n_positive, area, recall = sum(label >= rel for label in labels), 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True) if n_positive else ():
        found = [label >= rel for label, score in zip(labels, scores, strict=True) if score >= threshold]
        area += (sum(found) / n_positive - recall) * sum(found) / len(found)
        recall = sum(found) / n_positive
    return area if n_positive else NAN


def log_loss(labels: Sequence[float], scores: Sequence[float], *, rel: float = 1) -> float:
    """The mean of -ln of the probability that was given to what happened."""
    least = 2.0**-52
    likely = [min(max(score, least), 1 - least) for score in scores]
    losses = [-math.log(p if label >= rel else 1 - p) for label, p in zip(labels, likely, strict=True)]
    return sum(losses) / len(losses) if losses else NAN


def brier(labels: Sequence[float], scores: Sequence[float], *, rel: float = 1) -> float:
    """The mean squared error of the probability, which was to be 1 or 0."""
    return mse([float(label >= rel) for label in labels], scores)


def calibration_error(
    labels: Sequence[float], scores: Sequence[float], *, bins: int = 15, binning: str = "width", rel: float = 1
) -> float:
    """The distance of mean score and share of positives in each bin, weighted by its size."""
    together: dict[int, list[float]] = {}
    for label, score in zip(labels, scores, strict=True):
        if binning == "width":
            place = sum(score > edge / bins for edge in range(1, bins))
        else:
            below = sum(other < score for other in scores) + sum(other == score for other in scores) / 2
            place = math.floor(bins * below / len(scores))
        together.setdefault(place, []).append((label >= rel) - score)
    return sum(abs(sum(gaps)) for gaps in together.values()) / len(labels) if labels else NAN


def item_coverage(found: PlainCatalogue, *, k: int | None = None) -> float:
    """The share of the catalogue that stands in any list."""
    lists, n_documents = found.lists, found.n_documents
    shown = {document for column in lists for document in list(column)[:k] if document < n_documents}
    return len(shown) / n_documents if n_documents else NAN


def nerr(query: PlainQuery, *, k: int | None = None, **others: Any) -> float:
    best = err(PlainQuery(tuple(_judgments(query))), k=k, **others)
    return err(query, k=k, **others) / best if best > 0 else NAN


def q_measure(
    query: PlainQuery, *, k: int | None = None, beta: float = 1, gain: str = "linear", denominator: str = "cutoff"
) -> float:
    """Sakai's blended ratios at the documents with gain, over how many there are or could be within k."""
    ideal = [_gain(grade, gain) for grade in _judgments(query)]
    n_gaining = sum(1 for one in ideal if one > 0)
    if n_gaining == 0:
        return NAN
    total, found, so_far = 0.0, 0, 0.0
    for rank, grade in enumerate(_first(query, k), start=1):
        if _gain(grade, gain) > 0:
            found += 1
            so_far += _gain(grade, gain)
            total += (found + beta * so_far) / (rank + beta * sum(ideal[:rank]))
    return total / (min(n_gaining, k) if denominator == "cutoff" and k is not None else n_gaining)


def _ratios(query: PlainQuery, k: int | None, beta: float, gain: str) -> list[tuple[float, float]]:
    """The gain and the blended ratio of each document with gain, from the top."""
    ideal, found, so_far, ratios = [_gain(grade, gain) for grade in _judgments(query)], 0, 0.0, []
    for rank, grade in enumerate(_first(query, k), start=1):
        if _gain(grade, gain) > 0:
            found += 1
            so_far += _gain(grade, gain)
            ratios.append((_gain(grade, gain), (found + beta * so_far) / (rank + beta * sum(ideal[:rank]))))
    return ratios


def _gains_nothing(query: PlainQuery) -> bool:
    return all(grade <= 0 for grade in _judgments(query))


def o_measure(query: PlainQuery, *, k: int | None = None, beta: float = 1, gain: str = "linear") -> float:
    if _gains_nothing(query):
        return NAN
    return next((ratio for _, ratio in _ratios(query, k, beta, gain)), 0.0)


def p_measure(query: PlainQuery, *, k: int | None = None, beta: float = 1, gain: str = "linear") -> float:
    """The first ratio of a document that gains as much as any in the list."""
    ratios = _ratios(query, k, beta, gain)
    greatest = max((gained for gained, _ in ratios), default=0.0)
    if _gains_nothing(query):
        return NAN
    return next((ratio for gained, ratio in ratios if gained == greatest), 0.0)


def p_plus(query: PlainQuery, *, k: int | None = None, beta: float = 1, gain: str = "linear") -> float:
    """The mean of the ratios down to that of p_measure."""
    ratios = _ratios(query, k, beta, gain)
    if _gains_nothing(query):
        return NAN
    gained = [found for found, _ in ratios]
    read = ratios[: gained.index(max(gained)) + 1] if gained else []
    return sum(ratio for _, ratio in read) / len(read) if read else 0.0


def ncu(
    query: PlainQuery,
    *,
    k: int | None = None,
    beta: float = 1,
    stop: str = "rank_biased",
    gamma: float = 0.95,
    gain: str = "linear",
) -> float:
    """The ratios by how many readers stop there: gamma times as many at the next, or as many as it gains."""
    if _gains_nothing(query):
        return NAN
    ratios = _ratios(query, k, beta, gain)
    ideal = [_gain(grade, gain) for grade in _judgments(query) if grade > 0]
    if stop == "graded":
        return sum(gained * ratio for gained, ratio in ratios) / sum(ideal)
    shares = [gamma**place for place in range(len(ideal))]
    return sum(share * ratio for share, (_, ratio) in zip(shares, ratios, strict=False)) / sum(shares)


def _scaled(query: PlainQuery, k: int | None, max_grade: float | None) -> list[float]:
    return [_gain(grade, "linear") / (NAN if max_grade is None else max_grade) for grade in _first(query, k)]


def sdcg(query: PlainQuery, *, k: int, max_grade: float | None = None) -> float:
    gains = _scaled(query, k, max_grade)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, k + 1))
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1)) / best


_ENDLESS = 10_000  # ranks that are walked of a list without end; the rest is an integral


def _walked(gains: Sequence[float], wanted: Callable[[float], float], k: int | None) -> float:
    """The gains by the chances to read a rank, over the ranks read; each goes on with ((i + w) / (i + w + 1))²."""
    gained, weight, total, read = 0.0, 1.0, 0.0, 0.0
    for rank in range(1, (k or _ENDLESS) + 1):
        gain = gains[rank - 1] if rank <= len(gains) else 0.0
        total += weight * gain
        read += weight
        gained += gain
        place = rank + wanted(gained)
        weight *= (place / (place + 1)) ** 2
    return total / (read if k else read + weight * (place + 1) ** 2 / (place + 0.5))


def insq(query: PlainQuery, *, t: float = 1.0, k: int | None = None, max_grade: float | None = None) -> float:
    return _walked(_scaled(query, k, max_grade), lambda _: 2 * t - 1, k)


def inst(query: PlainQuery, *, t: float = 1.0, k: int | None = None, max_grade: float | None = None) -> float:
    """The reader walks on the less, the more was gained."""
    return _walked(_scaled(query, k, max_grade), lambda gained: 2 * t - 1 - gained, k)


def nearly_err(
    query: PlainQuery, *, k: int, discount: str = "none", p: float = 0.9, t: float = 1.0, max_grade: float | None = None
) -> float:
    """The reader goes on by a chance that the discount gives, where the document did not satisfy."""
    goes_on: Callable[[int], float] = {
        "none": lambda _: 1.0,
        "reciprocal": lambda rank: rank / (rank + 1),
        "geometric": lambda _: p,
        "inverse_square": lambda rank: ((rank + 2 * t - 1) / (rank + 2 * t)) ** 2,
    }[discount]
    gains = _scaled(query, k, max_grade)
    weight, total, read = 1.0, 0.0, 0.0
    for rank in range(1, k + 1):
        gain = gains[rank - 1] if rank <= len(gains) else 0.0
        total += weight * gain
        read += weight
        weight *= goes_on(rank) * (1 - gain)
    return total / read


def bpm(query: PlainQuery, *, k: int, t: float = 1.0, max_grade: float | None = None) -> float:
    """The reader reads until t is gained, or k documents are read, if there are so many or not."""
    total = 0.0
    for rank, gain in enumerate(_scaled(query, k, max_grade), start=1):
        total += gain
        if total >= t:
            return total / rank
    return total / k


def ap_corr(query: PlainQuery, *, k: int | None = None) -> float:
    """2 p - 1, p being the chance that of two documents, one drawn from above the other, the upper one is better.

    The lower one is drawn first, from all but the first; where the two have equal grades, chance decides.
    """
    grades = [grade for grade in _first(query, k) if grade is not None and grade >= 0]
    if len(set(grades)) < 2:
        return NAN
    chances = [
        sum(1.0 if above > grade else 0.5 if above == grade else 0.0 for above in grades[:place]) / place
        for place, grade in enumerate(grades)
        if place > 0
    ]
    return 2 * sum(chances) / len(chances) - 1


def overlap(one: Sequence[str], other: Sequence[str], depth: int, p: float) -> float:
    """Rank-biased overlap down to a depth, without the factor 1 - p: the shares in common of both heads, weighted."""
    total, seen, in_both = 0.0, set[str](), 0
    for place in range(depth):
        for ranking in (one, other):
            if place < len(ranking):
                in_both += ranking[place] in seen
                seen.add(ranking[place])
        total += p**place * in_both / (place + 1)
    return total


def compat(query: PlainQuery, *, k: int | None = None, p: float = 0.95) -> float:
    """The overlap with the best ranking that is most like it, over that of the best ranking with itself."""
    named = _diverse(query)
    places = {document: place for place, document in enumerate(named.ranking)}
    grades = {document: by_subtopic[0] for document, by_subtopic in named.judged.items() if by_subtopic[0] > 0}
    ideal = sorted(grades, key=lambda document: (-grades[document], places.get(document, math.inf)))
    if not ideal:
        return NAN
    depth = max(len(named.ranking), len(ideal)) if k is None else k
    return overlap(named.ranking, ideal, depth, p) / overlap(ideal, ideal, depth, p)


def _diverse(query: PlainQuery | DiverseQuery) -> DiverseQuery:
    """A query as it is judged by subtopic; a plain one has the subtopic 0."""
    if isinstance(query, DiverseQuery):
        return query
    ranking = tuple(f"retrieved {place}" for place in range(len(query.ranking)))
    grades = dict(zip(ranking, query.ranking, strict=True))
    grades |= {f"missed {place}": grade for place, grade in enumerate(query.missed)}
    return DiverseQuery(ranking, {document: {0: grade} for document, grade in grades.items() if grade is not None})


class _Reader:
    """Who has seen some documents, and gains less of a subtopic each time it is met."""

    def __init__(self, query: DiverseQuery, alpha: float, rel: float) -> None:
        self.topics = {
            document: [subtopic for subtopic, grade in sorted(judged.items()) if grade >= rel]
            for document, judged in query.judged.items()
        }
        self.worth = {subtopic: 1.0 for topics in self.topics.values() for subtopic in topics}
        self.alpha = alpha

    def gain(self, document: str) -> float:
        return sum(self.worth[subtopic] for subtopic in self.topics.get(document, []))

    def read(self, document: str) -> float:
        gained = self.gain(document)
        for subtopic in self.topics.get(document, []):
            self.worth[subtopic] *= 1 - self.alpha
        return gained


def alpha_ndcg(query: PlainQuery | DiverseQuery, *, k: int | None = None, alpha: float = 0.5, rel: float = 1) -> float:
    """Discounted gains over those of a list that takes the best document at each step, the greatest id of equals."""
    return _over_greedy(query, k, alpha, rel, lambda rank: math.log2(rank + 1))


def err_ia(query: PlainQuery | DiverseQuery, *, k: int | None = None, rel: float = 1) -> float:
    """The mean over subtopics of the binary ERR, over that of relevant documents only; both halve at every hit."""
    diverse = _diverse(query)
    subtopics = _Reader(diverse, 0.5, rel).worth
    if not subtopics:
        return NAN
    total = 0.0
    for subtopic in subtopics:
        still_reading = 1.0
        for rank, document in enumerate(diverse.ranking[:k], start=1):
            if diverse.judged.get(document, {}).get(subtopic, 0) >= rel:
                total += still_reading / 2 / rank
                still_reading /= 2
    flawless = math.log(2) if k is None else sum(0.5**rank / rank for rank in range(1, k + 1))
    return total / len(subtopics) / flawless


def nrbp(
    query: PlainQuery | DiverseQuery, *, k: int | None = None, alpha: float = 0.5, beta: float = 0.5, rel: float = 1
) -> float:
    """Gains read by one who goes on with the chance beta, over what documents of every subtopic would gain."""
    diverse = _diverse(query)
    reader = _Reader(diverse, alpha, rel)
    n_subtopics = len(reader.worth)
    total = sum(reader.read(document) * beta**place for place, document in enumerate(diverse.ranking[:k]))
    return (1 - (1 - alpha) * beta) * total / n_subtopics if n_subtopics else NAN


def _over_greedy(
    query: PlainQuery | DiverseQuery, k: int | None, alpha: float, rel: float, discount: Callable[[int], float]
) -> float:
    """Discounted gains over those of the greedy list, as alpha_ndcg has them."""
    diverse = _diverse(query)
    chooser, left, best = _Reader(diverse, alpha, rel), set(diverse.judged), 0.0
    for rank in range(1, len(left) + 1 if k is None else min(k, len(left)) + 1):
        chosen = max(left, key=lambda document: (chooser.gain(document), document))
        left.remove(chosen)
        best += chooser.read(chosen) / discount(rank)
    reader = _Reader(diverse, alpha, rel)
    found = sum(reader.read(document) / discount(rank) for rank, document in enumerate(diverse.ranking[:k], 1))
    return found / best if best > 0 else NAN


def nerr_ia(query: PlainQuery | DiverseQuery, *, k: int | None = None, rel: float = 1) -> float:
    return _over_greedy(query, k, 0.5, rel, float)


def nnrbp(
    query: PlainQuery | DiverseQuery, *, k: int | None = None, alpha: float = 0.5, beta: float = 0.5, rel: float = 1
) -> float:
    """Gains read by one who goes on with the chance beta."""
    return _over_greedy(query, k, alpha, rel, lambda rank: beta ** (1 - rank))


def ap_ia(query: PlainQuery | DiverseQuery, *, k: int | None = None, rel: float = 1) -> float:
    topics = _Reader(diverse := _diverse(query), 0, rel).topics
    subtopics = {subtopic for found in topics.values() for subtopic in found}
    total = 0.0
    for subtopic in subtopics:
        relevant = [subtopic in topics.get(document, []) for document in diverse.ranking[:k]]
        hits = [rank for rank, is_hit in enumerate(relevant, start=1) if is_hit]
        n_relevant = sum(1 for found in topics.values() if subtopic in found)
        total += sum(place / rank for place, rank in enumerate(hits, start=1)) / n_relevant
    return total / len(subtopics) if subtopics else NAN


def p_ia(query: PlainQuery | DiverseQuery, *, k: int, rel: float = 1) -> float:
    topics = _Reader(diverse := _diverse(query), 0, rel).topics
    subtopics = {subtopic for found in topics.values() for subtopic in found}
    if not subtopics:
        return NAN
    return sum(len(topics.get(document, [])) for document in diverse.ranking[:k]) / k / len(subtopics)


def strec(query: PlainQuery | DiverseQuery, *, k: int | None = None, rel: float = 1) -> float:
    """The share of the subtopics that the list covers."""
    diverse = _diverse(query)
    topics = _Reader(diverse, 0, rel).topics
    covered = {subtopic for document in diverse.ranking[:k] for subtopic in topics.get(document, [])}
    subtopics = {subtopic for found in topics.values() for subtopic in found}
    return len(covered) / len(subtopics) if subtopics else NAN


def _evidence_sets(diverse: DiverseQuery, rel: float) -> list[set[str]]:
    """The distinct evidence sets, in the order of the subtopics."""
    topics = _Reader(diverse, 0, rel).topics
    found: list[set[str]] = []
    for subtopic in sorted({subtopic for subtopics in topics.values() for subtopic in subtopics}):
        own = {document for document, subtopics in topics.items() if subtopic in subtopics}
        if own not in found:
            found.append(own)
    return found


def kilt_rprec(query: PlainQuery | DiverseQuery, *, rel: float = 1) -> float:
    """The best over the sets of the share that is found among as many documents."""
    sets = _evidence_sets(diverse := _diverse(query), rel)
    return max((len(own & {*diverse.ranking[: len(own)]}) / len(own) for own in sets), default=NAN)


def kilt_r(query: PlainQuery | DiverseQuery, *, k: int | None = None, rel: float = 1) -> float:
    """Entries are written one by one; one of a set is moved to the end as a further document of it comes."""
    sets = _evidence_sets(diverse := _diverse(query), rel)
    left = [{*own} for own in sets]
    entries: list[object] = []
    for document in diverse.ranking:
        of = [number for number, own in enumerate(sets) if document in own]
        for number in of:
            entries = [entry for entry in entries if entry != number]
            entries.append(number)
            left[number].remove(document)
        if not of:
            entries.append(document)
    return sum(not left[entry] for entry in entries[:k] if isinstance(entry, int)) / len(sets) if sets else NAN


def paired_accuracy(query: PlainQuery, *, rel: float = 1) -> float:
    """Of one query: whether the only relevant document is first."""
    relevant = [grade for grade in (*query.ranking, *query.missed) if grade is not None and grade >= rel]
    if not relevant:
        return NAN
    first = query.ranking[0] if query.ranking else None
    return float(len(relevant) == 1 and first is not None and first >= rel)


_JUDGED = (
    *(p, r, f1, f, success, tp, fp, fn, tn, judged, user_coverage, rr, ap, rprec, rp, avg_rp, iprec, ap11, bpref),
    *(yaap, mar, fallout, nearly_err),
    *(cg, dcg, ndcg, rbp, err, rankscore, kendall_distance, kendall_tau),
    *(num_ret, num_rel, num_nonrel_judged_ret, utility, unjudged, relative_p, set_map, rprec_mult, infap, bing),
    *(rndcg, ndcg_rel, g, rbp_resid, snips_dcg, snips_rbp),
    *(nerr, q_measure, o_measure, p_measure, p_plus, ncu, sdcg, insq, inst, bpm, ap_corr, compat),
    *(alpha_ndcg, err_ia, nrbp, nerr_ia, nnrbp, ap_ia, p_ia, strec, kilt_rprec, kilt_r),
    paired_accuracy,
)

ORACLE: Mapping[str, Callable[..., Any]] = {
    **{function.__name__: function for function in _JUDGED},
    "gmap": ap,  # of one query; what is geometric is the mean over queries
    "gm_bpref": bpref,
    "robustness": ndcg,  # of one query, as the worst of a cluster is taken afterwards
}


LogRows: TypeAlias = Sequence[Mapping[str, float]]


def ctr(rows: LogRows) -> float:
    return _over(sum(row["clicked"] for row in rows), len(rows))


def dwell(rows: LogRows) -> float:
    times = [row["dwell"] for row in rows if row["clicked"]]
    return _over(sum(times), len(times))


def satisfied(rows: LogRows, *, seconds: float = 30) -> float:
    times = [row["dwell"] for row in rows if row["clicked"]]
    return _over(sum(time >= seconds for time in times), len(times))


def _clipped(row: Mapping[str, float], clip: float | None) -> float:
    return row["weight"] if clip is None else min(row["weight"], clip)


def ips(rows: LogRows, *, clip: float | None = None) -> float:
    return _over(sum(_clipped(row, clip) * row["clicked"] for row in rows), len(rows))


def snips(rows: LogRows, *, clip: float | None = None) -> float:
    """Its SelfNormalizedInverseProbabilityWeighting: the mean of weighted clicks over the mean weight."""
    return _over(sum(_clipped(row, clip) * row["clicked"] for row in rows), sum(_clipped(row, clip) for row in rows))


def dr(rows: LogRows, *, clip: float | None = None) -> float:
    """Its DoublyRobust: the mean of what is expected, and of the weighted errors."""
    estimates = [row["expected"] + _clipped(row, clip) * (row["clicked"] - row["predicted"]) for row in rows]
    return _over(sum(estimates), len(estimates))


def ess(rows: LogRows, *, clip: float | None = None) -> float:
    weights = [_clipped(row, clip) for row in rows]
    return _over(sum(weights) ** 2, len(weights) * sum(weight**2 for weight in weights))


def interleaving(rows: LogRows, *, ties: str = "count") -> float:
    """All ways to credit the clicks of a list, each with its probability, as Hofmann et al. go through them."""
    lists: dict[float, list[float]] = {}
    for row in rows:
        lists.setdefault(row["list"], []).extend([row["team"]] if row["clicked"] else [])
    wins = losses = 0.0
    for team in lists.values():
        for given in itertools.product((1, 0), repeat=len(team)):
            chance = math.prod(p if mine else 1 - p for mine, p in zip(given, team, strict=True))
            wins += chance * (2 * sum(given) > len(team))
            losses += chance * (2 * sum(given) < len(team))
    return _over((wins - losses) / 2, len(lists) if ties == "count" else wins + losses)


LOGS_ORACLE: Mapping[str, Callable[..., Any]] = {
    function.__name__: function for function in (ctr, dwell, satisfied, ips, snips, dr, ess, interleaving)
}


def rbo(
    one: Sequence[str], other: Sequence[str], *, k: int | None = None, p: float = 0.9, form: str = "extrapolated"
) -> float:
    """Equation 32 of Webber, Moffat & Zobel as it is printed: S is the shorter list and L the longer one.

    Least and greatest are walked down the depths: of what is not seen, nothing or as much as there can be is shared.
    """
    short, long = sorted((one[:k], other[:k]), key=len)
    s, l = len(short), len(long)  # noqa: E741
    if s + l == 0:
        return NAN
    if form != "extrapolated":
        depths = range(1, 3_000)
        seen = [len(set(short[:depth]) & set(long[:depth])) for depth in depths]
        unseen = [max(depth - s, 0) + max(depth - l, 0) for depth in depths]
        shares = [
            [
                min(depth, found + (more if most else 0)) / depth
                for depth, found, more in zip(depths, seen, unseen, strict=True)
            ]
            for most in (False, True)
        ]
        least, greatest = (sum((1 - p) * p**i * share for i, share in enumerate(found)) for found in shares)
        return least if form == "minimum" else greatest - least
    if s == 0:
        return 0.0
    shared = [len(set(short[:depth]) & set(long[:depth])) for depth in range(l + 1)]
    agreed = sum(shared[d] / d * p**d for d in range(1, l + 1))
    assumed = sum(shared[s] * (d - s) / (s * d) * p**d for d in range(s + 1, l + 1))
    return (1 - p) / p * (agreed + assumed) + ((shared[l] - shared[s]) / l + shared[s] / s) * p**l


def p_mrr(documents: Sequence[str], changed: Sequence[str], original: Sequence[str]) -> float:
    """How far the documents fall, one by one; those not retrieved stand below the last one."""
    if not (documents and changed and original):
        return NAN
    falls = []
    for document in documents:
        now, before = (
            [*ranking].index(document) + 1 if document in ranking else len(ranking) + 1
            for ranking in (changed, original)
        )
        falls.append(now / before - 1 if now <= before else 1 - before / now)
    return sum(falls) / len(falls)


def nauc(answers: Sequence[tuple[float, Sequence[float]]], *, confidence: str = "max") -> float:
    """Equation by equation: mean scores of what is kept, trapezoids below them, between chance and the best."""
    found = [(_confidence(sorted(documents, reverse=True), confidence), score) for score, documents in answers]
    scores = [score for _, score in found]
    if len({*scores}) < 2:
        return NAN
    ours, best = (_kept_means(pairs) for pairs in (found, [(score, score) for score in scores]))
    area, greatest = (sum((low + high) / 20 for low, high in itertools.pairwise(curve)) for curve in (ours, best))
    flat = 0.9 * sum(scores) / len(scores)
    return (area - flat) / (greatest - flat)


def _confidence(documents: Sequence[float], kind: str) -> float:
    if not documents:
        return 0.0
    if kind == "std":
        return statistics.pstdev(documents)
    return documents[0] - (documents[:2][-1] if kind == "diff1" else 0.0)


def _kept_means(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """At 0, 10 … 90% abstained, the mean kept; if some of equal confidence are kept, each is in part."""
    means = []
    for tenths in range(10):
        share = tenths * 0.1  # mteb's 0.3, 0.6 and 0.7 are a bit above these: it rounds 10.5 of 15 queries up
        kept = room = len(pairs) - min(round(share * len(pairs)), len(pairs) - 1)
        total = 0.0
        for level in sorted({level for level, _ in pairs}, reverse=True):
            equal = [score for own, score in pairs if own == level]
            total += sum(equal) * min(room, len(equal)) / len(equal)
            room -= min(room, len(equal))
        means.append(total / kept)
    return means


RANKINGS_ORACLE: Mapping[str, Callable[..., Any]] = {"rbo": rbo}
OUTPUTS_ORACLE: Mapping[str, Callable[..., Any]] = {"p_mrr": p_mrr}
CONFIDENCE_ORACLE: Mapping[str, Callable[..., Any]] = {"nauc": nauc}
RATINGS_ORACLE: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(mae, mse, rmse, r2, explained_variance),
        *(auc, lauc, pr_auc, log_loss, brier, calibration_error),
    )
}


# Recommended lists: a set of lists gives one float, or a set of lists and the number of one of them does.


def gini(found: PlainCatalogue, *, k: int | None = None) -> float:
    """Half the relative mean absolute difference between the documents' numbers of lists."""
    lists, n_documents = found.lists, found.n_documents
    counts = [sum(document in list(column)[:k] for column in lists) for document in range(n_documents)]
    if not sum(counts):
        return NAN
    return sum(abs(a - b) for a in counts for b in counts) / (2 * n_documents * sum(counts))


def entropy(found: PlainCatalogue, *, k: int | None = None) -> float:
    """Minus the expected logarithm of a document's share of all places."""
    lists = found.lists
    places = [document for column in lists for document in list(column)[:k]]
    return -sum(math.log2(places.count(document) / len(places)) for document in places) / len(places) if places else NAN


def personalization(found: PlainCatalogue, *, k: int | None = None) -> float:
    """1 minus the mean cosine of two lists, taken pair by pair."""
    shown = [set(list(column)[:k]) for column in found.lists if column]
    pairs = [(one, other) for place, one in enumerate(shown) for other in shown[:place]]
    if not pairs:
        return NAN
    return 1 - sum(len(one & other) / math.sqrt(len(one) * len(other)) for one, other in pairs) / len(pairs)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else NAN


def _consumers(found: PlainCatalogue, document: int) -> int:
    return found.times.get(document, 0)


def novelty(found: PlainCatalogue, query: int, *, k: int | None = None, share: str = "queries") -> float:
    """The mean of -log2 of a document's popularity, at least 1, over all queries or all interactions."""
    sizes = [len(set(consumed)) for consumed in found.consumed if consumed]
    total = len(sizes) if share == "queries" else sum(sizes)
    return _mean([-math.log2(max(1, _consumers(found, document)) / total) for document in found.lists[query][:k]])


def _discovered(found: PlainCatalogue, query: int, k: int | None, rel: float, worths: Sequence[float]) -> float:
    shown = found.lists[query][:k]
    if not shown or not any(found.consumed):
        return NAN
    total = sum(
        worth / math.log2(rank + 1)
        for rank, (document, worth) in enumerate(zip(shown, worths, strict=True), start=1)
        if found.grades[query].get(document, 0) >= rel
    )
    return total / sum(1 / math.log2(rank + 1) for rank in range(1, len(shown) + 1))


def efd(found: PlainCatalogue, query: int, *, k: int | None = None, rel: float = 1) -> float:
    """Bits that an interaction with the document tells, where relevant."""
    total = sum(len(set(consumed)) for consumed in found.consumed)
    worths = (
        [math.log2(total / max(1, _consumers(found, document))) for document in found.lists[query][:k]] if total else []
    )
    return _discovered(found, query, k, rel, worths)


def epc(found: PlainCatalogue, query: int, *, k: int | None = None, rel: float = 1) -> float:
    """The share of the queries that do not know the document, where relevant."""
    total = sum(1 for consumed in found.consumed if consumed)
    worths = [1 - _consumers(found, document) / total for document in found.lists[query][:k]] if total else []
    return _discovered(found, query, k, rel, worths)


def popularity(found: PlainCatalogue, query: int, *, k: int | None = None) -> float:
    return _mean([float(_consumers(found, document)) for document in found.lists[query][:k]])


def tail_share(
    found: PlainCatalogue, query: int, *, k: int | None = None, tail: float = 0.2, of: str = "interactions"
) -> float:
    """The mean chance of a document to be in the tail, all orders of equally popular documents being alike."""
    documents = {document for consumed in found.consumed for document in consumed}
    levels = sorted((_consumers(found, document) for document in documents), reverse=True)
    if of == "documents":
        n_head = len(levels) - max(1, int(len(levels) * tail))
    else:
        n_head, left = 0, sum(levels)
        while left > tail * sum(levels) + 1e-9:
            left -= levels[n_head]
            n_head += 1
    chances = []
    for document in found.lists[query][:k]:
        places = [place for place, level in enumerate(levels) if level == _consumers(found, document)]
        chances.append(_mean([float(place >= n_head) for place in places]) if places else 1.0)
    return _mean(chances)


def serendipity(found: PlainCatalogue, query: int, *, k: int | None = None, rel: float = 1) -> float:
    """How much likelier this query gets each relevant document than anyone, the chances falling with ranks."""
    shown, n = found.lists[query][:k], found.n_documents
    levels = sorted({_consumers(found, document) for consumed in found.consumed for document in consumed}, reverse=True)
    gains = []
    for rank, document in enumerate(shown, start=1):
        times = _consumers(found, document)
        anyone = (n + 1 - (levels.index(times) + 1)) / n if times else 0.0
        is_relevant = found.grades[query].get(document, 0) >= rel
        gains.append(max((n + 1 - rank) / n - anyone, 0.0) if is_relevant else 0.0)
    return _mean(gains) if gains else 0.0


def diversity(found: PlainCatalogue, query: int, *, feature: str, k: int | None = None) -> float:
    """1 minus the cosine of each pair of documents with the feature."""
    vectors = [found.feature(feature, document) for document in found.lists[query][:k]]
    known = [vector for vector in vectors if any(vector.values())]
    distances = []
    for place, one in enumerate(known):
        for other in known[:place]:
            product = sum(value * other.get(column, 0) for column, value in one.items())
            lengths = math.sqrt(sum(x**2 for x in one.values()) * sum(x**2 for x in other.values()))
            distances.append(1 - product / lengths)
    return _mean(distances)


def calibration(
    found: PlainCatalogue,
    query: int,
    *,
    feature: str,
    k: int | None = None,
    divergence: str = "kl",
    alpha: float | None = None,
) -> float:
    """The divergence of the categories recommended from those consumed."""
    p = _categories(found, feature, sorted(set(found.consumed[query])))
    q = _categories(found, feature, found.lists[query][:k])
    if not p or not q:
        return NAN
    if divergence == "js":
        middle = {name: (p.get(name, 0) + q.get(name, 0)) / 2 for name in {*p, *q}}
        return (_kullback_leibler(p, middle) + _kullback_leibler(q, middle)) / 2
    mixed = 0.01 if alpha is None else alpha
    return _kullback_leibler(p, {name: (1 - mixed) * q.get(name, 0) + mixed * p[name] for name in p})


def _categories(found: PlainCatalogue, feature: str, documents: Sequence[int]) -> dict[int, float]:
    """The mean distribution of those documents that have a category."""
    known = [found.feature(feature, document) for document in documents if found.feature(feature, document)]
    shares: dict[int, float] = {}
    for categories in known:
        for name in categories:
            shares[name] = shares.get(name, 0) + 1 / len(categories) / len(known)
    return shares


def _kullback_leibler(p: Mapping[int, float], q: Mapping[int, float]) -> float:
    return sum(share * math.log(share / q[name]) for name, share in p.items() if share)


# Groups of documents


def _attention(rank: int, model: str, p: float) -> float:
    by_model = {"log2": 1 / math.log2(rank + 1), "jarvelin": 1 / math.log2(max(rank, 2)), "geometric": p ** (rank - 1)}
    return {**by_model, "reciprocal": 1 / rank, "uniform": 1.0}[model]


def _groups(found: PlainCatalogue, feature: str, document: int) -> dict[int, float]:
    """The document's groups, each with its part of the document."""
    groups = found.feature(feature, document)
    return {group: value / sum(groups.values()) for group, value in groups.items()}


def _group_sums(found: PlainCatalogue, feature: str, amounts: Iterable[tuple[int, float]]) -> dict[int, float]:
    """What each group gets of the amounts of documents."""
    sums: dict[int, float] = {}
    for document, amount in amounts:
        for group, part in _groups(found, feature, document).items():
            sums[group] = sums.get(group, 0) + part * amount
    return sums


def _relevant(found: PlainCatalogue, query: int, rel: float) -> list[int]:
    return [document for document, grade in found.grades[query].items() if grade >= rel]


def awrf(
    found: PlainCatalogue,
    query: int,
    *,
    feature: str,
    k: int | None = None,
    target: str = "relevant",
    attention: str = "jarvelin",
    p: float = 0.5,
    rel: float = 1,
) -> float:
    """1 minus the Jensen-Shannon divergence, as the entropy of the middle less the mean entropy."""
    shown = enumerate(found.lists[query][:k], start=1)
    given = _group_sums(found, feature, [(document, _attention(rank, attention, p)) for rank, document in shown])
    documents = _relevant(found, query, rel) if target == "relevant" else range(found.n_documents)
    fair = _group_sums(found, feature, [(document, 1.0) for document in documents])
    fair = dict.fromkeys(fair, 1.0) if target == "equal" else fair
    if not given or not fair:
        return NAN
    one, other = (
        {group: sums.get(group, 0.0) / sum(sums.values()) for group in {*given, *fair}} for sums in (given, fair)
    )
    middle = {group: (one[group] + other[group]) / 2 for group in one}
    return 1 - _entropy_in_nats(middle) + (_entropy_in_nats(one) + _entropy_in_nats(other)) / 2


def _entropy_in_nats(shares: Mapping[int, float]) -> float:
    return -sum(share * math.log(share) for share in shares.values() if share)


def _exposures(
    found: PlainCatalogue,
    query: int,
    *,
    feature: str,
    k: int | None = None,
    attention: str = "geometric",
    p: float = 0.5,
    documents: str = "relevant",
    gain: str = "graded",
    rel: float = 1,
) -> list[tuple[float, float]]:
    """By group the exposure, and the target: the mean of a document's attention over the ranks that its grade takes."""
    grades = found.grades[query]
    relevant = _relevant(found, query, rel)
    shown = [
        (document, _attention(rank, attention, p))
        for rank, document in enumerate(found.lists[query][:k], start=1)
        if documents == "all" or document in relevant
    ]
    level = {document: grades[document] if gain == "graded" else 1.0 for document in relevant}
    wanted = []
    for document in relevant:
        above = sum(level[other] > level[document] for other in relevant)
        beside = sum(level[other] == level[document] for other in relevant)
        ranks = [rank for rank in range(above + 1, above + beside + 1) if k is None or rank <= k]
        wanted.append((document, sum(_attention(rank, attention, p) for rank in ranks) / beside))
    given, fair = _group_sums(found, feature, shown), _group_sums(found, feature, wanted)
    return [(given.get(group, 0.0), fair.get(group, 0.0)) for group in {*given, *fair}] if fair else []


def ee_l(found: PlainCatalogue, query: int, **arguments: Any) -> float:
    pairs = _exposures(found, query, **arguments)
    return sum((given - fair) ** 2 for given, fair in pairs) if pairs else NAN


def ee_d(found: PlainCatalogue, query: int, **arguments: Any) -> float:
    pairs = _exposures(found, query, **arguments)
    return sum(given**2 for given, _ in pairs) if pairs else NAN


def ee_r(found: PlainCatalogue, query: int, **arguments: Any) -> float:
    pairs = _exposures(found, query, **arguments)
    return sum(given * fair for given, fair in pairs) if pairs else NAN


def exposure_ratio(
    found: PlainCatalogue,
    *,
    feature: str,
    k: int | None = None,
    per: str = "document",
    attention: str = "log2",
    p: float = 0.5,
    rel: float = 1,
) -> float:
    """The least exposure of a group over the greatest, each by what the group has."""
    shown = [
        (document, _attention(rank, attention, p))
        for column in found.lists
        for rank, document in enumerate(column[:k], start=1)
    ]
    relevant = [document for query in range(len(found.lists)) for document in _relevant(found, query, rel)]
    sizes = _group_sums(
        found, feature, [(d, 1.0) for d in (range(found.n_documents) if per == "document" else relevant)]
    )
    given = _group_sums(found, feature, shown)
    rates = [given.get(group, 0.0) / size for group, size in sizes.items()]
    return min(rates) / max(rates) if len(rates) > 1 and max(rates) else NAN


def _variation(rates: Sequence[float]) -> float:
    if len(rates) < 2 or not sum(rates):
        return NAN
    mean = sum(rates) / len(rates)
    return math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates)) / mean


Belongs = Callable[[int], Mapping[Any, float]]
"""The parts in which a document belongs to groups."""


def _chances(belongs: Belongs, found: Iterable[int], possible: Iterable[int]) -> list[float]:
    """Of each group, how many of the possible documents were found."""
    sums: list[dict[Any, float]] = [{}, {}]
    for own, documents in zip(sums, (found, possible), strict=True):
        for document in documents:
            for group, part in belongs(document).items():
                own[group] = own.get(group, 0) + part
    return [sums[0].get(group, 0.0) / size for group, size in sums[1].items() if size]


def _opportunity(found: PlainCatalogue, belongs: Belongs, k: int | None, rel: float) -> float:
    relevant = [_relevant(found, query, rel) for query in range(len(found.lists))]
    hits = [d for column, wanted in zip(found.lists, relevant, strict=True) for d in column[:k] if d in wanted]
    return _variation(_chances(belongs, hits, [d for wanted in relevant for d in wanted]))


def _parity(found: PlainCatalogue, belongs: Belongs, k: int | None) -> float:
    new = [d for query in range(len(found.lists)) for d in range(found.n_documents) if d not in found.consumed[query]]
    shown = [
        d
        for column, consumed in zip(found.lists, found.consumed, strict=False)
        for d in column[:k]
        if d < found.n_documents and d not in consumed
    ]
    return _variation(_chances(belongs, shown, new))


def reo(found: PlainCatalogue, *, feature: str, k: int | None = None, rel: float = 1) -> float:
    """How much the groups' recall varies, all queries' judgments taken together."""
    return _opportunity(found, lambda document: _groups(found, feature, document), k, rel)


def rsp(found: PlainCatalogue, *, feature: str, k: int | None = None) -> float:
    """How much the share of what could be recommended varies between groups."""
    return _parity(found, lambda document: _groups(found, feature, document), k)


def _by_popularity(found: PlainCatalogue, tail: float, of: str) -> Belongs:
    def belongs(document: int) -> Mapping[Any, float]:
        chance = tail_share(replace(found, lists=((document,),)), 0, tail=tail, of=of)
        return {"head": 1 - chance, "tail": chance}

    return belongs


def pop_reo(
    found: PlainCatalogue, *, k: int | None = None, tail: float = 0.2, of: str = "interactions", rel: float = 1
) -> float:
    return _opportunity(found, _by_popularity(found, tail, of), k, rel)


def pop_rsp(found: PlainCatalogue, *, k: int | None = None, tail: float = 0.2, of: str = "interactions") -> float:
    return _parity(found, _by_popularity(found, tail, of), k)


_OF_LISTS = (item_coverage, gini, entropy, personalization, exposure_ratio, reo, rsp, pop_reo, pop_rsp)
_OF_A_LIST = (
    *(novelty, efd, epc, popularity, tail_share, serendipity, diversity, calibration),
    *(awrf, ee_l, ee_d, ee_r),
)

CATALOGUE_ORACLE: Mapping[str, Callable[..., Any]] = {
    function.__name__: function for function in (*_OF_LISTS, *_OF_A_LIST)
}
