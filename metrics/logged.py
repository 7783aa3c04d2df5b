"""Measures of logs: actions of users on shown documents, and estimates of their actions with another ranker.

A log has a row for each document shown. Every value is made of means over rows: a click rate of one, a self-normalised
estimate of two, whose ratio it is. A query is what is resampled (a search, a session or a user), so that rows of
one user stay together. A query weighs its number of rows, for any weights of these, and two rankers are
compared over the same queries.

The weight of a row is the probability that the evaluated ranker shows its document over the propensity, the
probability with which it was shown. `snips_dcg` and `snips_rbp` take rankings instead: the relevance of a clicked
document is 1 / propensity.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Concatenate, Generic, Literal, ParamSpec

import numpy as np
import numpy.typing as npt

from rankledger.metrics.aggregation import EFFECTIVE_SHARE, MEAN, RATIO, Aggregation
from rankledger.metrics.block import Floats, JudgedBlock, Terms, cut, divide, from_terms, sum_down
from rankledger.metrics.gain import dcg

__all__ = [
    "LogBlock",
    "ctr",
    "dr",
    "dwell",
    "ess",
    "from_rows",
    "interleaving",
    "ips",
    "satisfied",
    "snips",
    "snips_dcg",
    "snips_rbp",
]

P = ParamSpec("P")


@dataclass(frozen=True, eq=False)
class LogBlock:
    """The N rows that were logged of Q queries.

    Attributes:
        n_queries: Q.
        queries: (N,) the query of each row, from 0 on.
        columns: (N,) each, by name: `clicked`, `dwell`, `weight`, `expected`, `predicted`, `team`.
        impressions: (N,) the list that each row was shown in, from 0 on; empty if no measure asks.
    """

    n_queries: int
    queries: npt.NDArray[np.int64]
    columns: Mapping[str, Floats]
    impressions: npt.NDArray[np.int64]

    @property
    def n_rows(self) -> Floats:
        """Numbers of rows, (Q,)."""
        return np.bincount(self.queries, minlength=self.n_queries).astype(np.float64)

    def means(self, rows: Floats) -> Floats:
        """Return the (S, Q) means of S numbers per row, (S, N), added up in the order of the rows."""
        sums = [np.bincount(self.queries, row, self.n_queries) for row in rows]
        return divide(np.array(sums, dtype=np.float64), self.n_rows)


class from_rows(Generic[P]):  # noqa: N801
    """Decorate what gives S numbers of each row, (S, N): a call gives (Q,) scores, `means` what they are made of."""

    __qualname__: str

    def __init__(self, rows: Callable[Concatenate[LogBlock, P], Floats], aggregation: Aggregation = MEAN) -> None:
        """Decorate a function of rows. `aggregation` makes one estimate of the S means."""
        self.rows = rows
        self.aggregation = aggregation
        functools.update_wrapper(self, rows)
        self.__signature__ = inspect.signature(rows)

    def __call__(self, block: LogBlock, *args: P.args, **parameters: P.kwargs) -> Floats:
        """Return the (Q,) scores."""
        scores: Floats = self.aggregation.backward(self.means(block, *args, **parameters))[0]
        return scores

    def means(self, block: LogBlock, *args: P.args, **parameters: P.kwargs) -> Floats:
        """Return the (S, Q) means over each query's rows, NaN if it has none."""
        return block.means(self.rows(block, *args, **parameters))

    def __reduce__(self) -> str:
        """Pickle by name, as functions are."""
        return self.__qualname__


_of_ratio = functools.partial(from_rows, aggregation=RATIO)
_of_share = functools.partial(from_rows, aggregation=EFFECTIVE_SHARE)


@from_rows
def ctr(block: LogBlock) -> Floats:
    """Compute the click-through rate: clicks over the rows that were shown.

    Formula: Σ clicked / rows.

    Returns:
        (Q,) scores in [0, 1]. NaN if a query has no row.

    Reference:
        Richardson, Dominowska & Ragno 2007, doi:10.1145/1242572.1242643.
    """
    return block.columns["clicked"][np.newaxis]


@_of_ratio
def dwell(block: LogBlock) -> Floats:
    """Compute the dwell time: mean seconds after a click.

    Formula: Σ clicked dwell / Σ clicked.

    Returns:
        (Q,), 0 or more. NaN if a query has no click.

    Reference:
        Fox et al. 2005, doi:10.1145/1059981.1059982.
    """
    clicked = block.columns["clicked"]
    return np.stack([clicked * block.columns["dwell"], clicked])


@_of_ratio
def satisfied(block: LogBlock, *, seconds: float = 30) -> Floats:
    """Compute the share of satisfied clicks, which have a minimum dwell time.

    Formula: Σ clicked [dwell ≥ seconds] / Σ clicked.

    Args:
        seconds: The minimum dwell time of a satisfied click.

    Returns:
        (Q,) scores in [0, 1]. NaN if a query has no click.

    Reference:
        Fox et al. 2005, doi:10.1145/1059981.1059982, with their 30 seconds.
    """
    clicked = block.columns["clicked"]
    return np.stack([clicked * (block.columns["dwell"] >= seconds), clicked])


@from_rows
def ips(block: LogBlock, *, clip: float | None = None) -> Floats:
    """Compute the inverse propensity score: the evaluated ranker's estimated click rate, by weighted rows.

    Formula: Σ min(weight, clip) clicked / rows.

    Args:
        clip: The maximum weight that counts in full, above 0; None for any. Clipped, the estimate is too low, and
            varies less.

    Returns:
        (Q,), 0 or more, above 1 where weights are large. NaN if a query has no row. Without `clip` it is unbiased
        if every document that the ranker may show had a chance to be shown.

    Reference:
        Horvitz & Thompson 1952, doi:10.1080/01621459.1952.10483446; clipped as by Ionides 2008,
        doi:10.1198/106186008X320456, and `lambda_` of Open Bandit Pipeline.
    """
    return (_weights(block, clip) * block.columns["clicked"])[np.newaxis]


@_of_ratio
def snips(block: LogBlock, *, clip: float | None = None) -> Floats:
    """Compute the self-normalized inverse propensity score: weighted clicks over the sum of weights.

    Formula: Σ w clicked / Σ w, w = min(weight, clip).

    Args:
        clip: The maximum weight that counts in full, above 0; None for any.

    Returns:
        (Q,) scores in [0, 1]. NaN if no row of a query has a weight. Consistent, though not unbiased; it usually varies
        less than `ips`, and does not move if all weights are twice as large.

    Reference:
        Swaminathan & Joachims 2015, The self-normalized estimator for counterfactual learning, NIPS.
    """
    weights = _weights(block, clip)
    return np.stack([weights * block.columns["clicked"], weights])


@from_rows
def dr(block: LogBlock, *, clip: float | None = None) -> Floats:
    """Compute the doubly robust click rate: a reward model's prediction plus its weighted errors on the log.

    Formula: Σ (expected + min(weight, clip) (clicked - predicted)) / rows.

    `predicted` is the model's click rate of the document that was shown, `expected` its mean over the documents that
    the evaluated ranker may show, by their probabilities.

    Args:
        clip: The maximum weight that counts in full, above 0; None for any.

    Returns:
        (Q,), near [0, 1] but not bound to it. NaN if a query has no row. Unbiased if the propensities are right or
        the reward model is.

    Reference:
        Dudík, Langford & Li 2011, arXiv:1103.4601.
    """
    errors = block.columns["clicked"] - block.columns["predicted"]
    return (block.columns["expected"] + _weights(block, clip) * errors)[np.newaxis]


@_of_share
def ess(block: LogBlock, *, clip: float | None = None) -> Floats:
    """Compute the effective sample size: the equally weighted rows that tell as much, as a share of the rows.

    Formula: (Σ w)² / (rows Σ w²), w = min(weight, clip).

    Args:
        clip: The maximum weight that counts in full, above 0; None for any.

    Returns:
        (Q,), in [0, 1]: 1 if all weights are equal. NaN if no row of a query has a weight. Times the rows it is
        the size itself.

    Reference:
        Kish 1965, Survey Sampling, section 11.7; Owen 2013, Monte Carlo theory, methods and examples, chapter 9.
    """
    weights = _weights(block, clip)
    return np.stack([weights, weights**2])


@_of_ratio
def interleaving(block: LogBlock, *, ties: Literal["count", "skip"] = "count") -> Floats:
    """Compute the interleaving preference: half the surplus of lists that the ranker wins by clicks.

    Formula: (wins - losses) / (2 lists).

    The ranker is credited with each clicked document with the probability `team`: 1 or 0 in team-draft interleaving;
    in between if either ranker may have contributed it, as in probabilistic interleaving. Who has more credit wins the
    list; wins and losses are the chances of that, over all ways to credit the clicks. A list without clicks is a tie.
    A reward between 0 and 1 is no click that one ranker can be credited with.

    Args:
        ties: `count` divides by all lists, as Chapelle et al. do; `skip` by the lists that somebody won.

    Returns:
        (Q,) scores in [-0.5, 0.5], above 0 if the ranker is preferred to the other. NaN if a query has no list that
        counts.

    Reference:
        Radlinski, Kurup & Joachims 2008, doi:10.1145/1458082.1458092, team draft; Hofmann, Whiteson & de Rijke 2011,
        doi:10.1145/2063576.2063618, probabilistic; Chapelle et al. 2012, doi:10.1145/2094072.2094078, the preference.
    """
    lists, first = np.unique(block.impressions, return_index=True)
    clicked = block.columns["clicked"] == 1
    if not np.all(clicked | (block.columns["clicked"] == 0)):
        raise ValueError("clicked must be 0 or 1")
    wins, losses = _wins(block.impressions[clicked], block.columns["team"][clicked], len(lists))
    rows = np.zeros((2, len(block.queries)))  # each list stands in its first row
    rows[0, first] = (wins - losses) / 2
    rows[1, first] = 1.0 if ties == "count" else wins + losses
    return rows


def _weights(block: LogBlock, clip: float | None) -> Floats:
    if clip is not None and not clip > 0:
        raise ValueError(f"clip must be above 0, found {clip:g}")
    return block.columns["weight"] if clip is None else np.minimum(block.columns["weight"], clip)


def _wins(lists: npt.NDArray[np.int64], team: Floats, n_lists: int) -> tuple[Floats, Floats]:
    """Return (L,) probabilities that most clicks of a list are credited to the ranker, and to the other one.

    The number of credits has a Poisson binomial distribution, which grows click by click; lists with as many clicks
    are counted together.
    """
    counts = np.bincount(lists, minlength=n_lists)
    team = team[np.argsort(lists, kind="stable")]
    begins = np.cumsum(counts) - counts
    wins, losses = np.zeros(n_lists), np.zeros(n_lists)
    for n_clicks in np.unique(counts[counts > 0]).tolist():
        rows = np.flatnonzero(counts == n_clicks)
        chances = np.ones((1, len(rows)))  # of 0 credits
        for click in range(n_clicks):
            credited = team[begins[rows] + click]
            none = np.zeros((1, len(rows)))
            chances = np.concatenate([chances * (1 - credited), none]) + np.concatenate([none, chances * credited])
        lead = 2 * np.arange(n_clicks + 1) - n_clicks
        wins[rows], losses[rows] = sum_down(chances[lead > 0]), sum_down(chances[lead < 0])
    return wins, losses


@from_terms
def snips_dcg(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """Compute DCG of clicked documents, weighted by their inverse propensities and normalised by the sum of these.

    Formula: Σ grade / log2(rank + 1) / Σ grade of all judged; the grade of a click is 1 / propensity.

    Args:
        k: Number of ranks to count. None counts all.

    Returns:
        (Q,) scores in [0, 1], which all clicked documents at rank 1 would score. NaN if a query has no click.

    Reference:
        Yang et al. 2018, doi:10.1145/3240323.3240355, with the discount of DCG; the weights as by Joachims,
        Swaminathan & Schnabel 2017, doi:10.1145/3018661.3018699.
    """
    return replace(dcg.terms(block, k=k), divisor=_all_grades(block))


@from_terms
def snips_rbp(block: JudgedBlock, *, p: float = 0.8, k: int | None = None) -> Terms:
    """Compute RBP of clicked documents, weighted by their inverse propensities and normalised by the sum of these.

    Formula: (1 - p) Σ grade p^(rank - 1) / Σ grade of all judged; the grade of a click is 1 / propensity.

    Args:
        p: Persistence, the probability of reading on, in (0, 1).
        k: Number of ranks to count. None counts all.

    Returns:
        (Q,) scores in [0, 1]. NaN if a query has no click.

    Reference:
        Yang et al. 2018, doi:10.1145/3240323.3240355, with the weights of Moffat & Zobel 2008,
        doi:10.1145/1416950.1416952, for ranks.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1, found {p:g}")
    gained = np.where(block.ranks <= cut(k), np.fmax(block.grades, 0.0), 0.0)
    reached = p ** (block.ranks - 1)
    return Terms(gained * reached, {"gain": gained, "reached": reached}, scale=1 - p, divisor=_all_grades(block))


def _all_grades(block: JudgedBlock) -> Floats:
    """Return (Q,) sums of the positive grades of all judgments."""
    return sum_down(np.fmax(block.judged_grades, 0.0))
