"""Metrics of a user who reads down the list and stops: by patience, or because a document satisfied the need.

Where grades become probabilities, `max_grade` is the grade of a perfect document. The evaluation passes the greatest
grade of the dataset's judgments (1 where none is above 0, for then nothing is gained) unless the measure names one, so
that it never depends on a block. A grade above it raises ValueError.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from rankledger.metrics.block import JudgedBlock, Terms, check_exponent, check_grades, cut, from_terms, greatest_grade

__all__ = ["err", "nerr", "rankscore", "rbp", "rbp_resid"]


@from_terms
def rbp(
    block: JudgedBlock,
    *,
    p: float = 0.8,
    k: int | None = None,
    gain: Literal["binary", "graded"] = "binary",
    rel: float = 1,
    max_grade: float | None = None,
) -> Terms:
    """Compute the rank-biased precision: (1 - p) Σ gain p**(rank - 1), not normalized by an ideal list.

    Formula: (1 - p) Σ gain p^(rank - 1).

    Args:
        p: Persistence, the probability of reading on, in (0, 1).
        k: Number of ranks to count. None counts all.
        gain: `binary` is 1 for a relevant document; `graded` is grade / max_grade.
        rel: Minimum grade of a relevant document, for the binary gain.
        max_grade: The grade that gains 1, for the graded gain; by default an evaluation's greatest.

    Returns:
        (Q,) scores in [0, 1], never NaN.

    Reference:
        Moffat & Zobel 2008, doi:10.1145/1416950.1416952; the graded form as in the TREC-COVID tables.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1, found {p:g}")
    if gain == "binary":
        gained = block.relevant(rel).astype(np.float64)
    else:
        gained = np.fmax(block.grades, 0.0) / check_grades(block, max_grade)
    gained = np.where(block.ranks <= cut(k), gained, 0.0)
    reached = p ** (block.ranks - 1)
    return Terms(gained * reached, {"gain": gained, "reached": reached}, scale=1 - p)


@from_terms
def rbp_resid(
    block: JudgedBlock, *, p: float = 0.8, k: int | None = None, below: Literal["counted", "if_unjudged"] = "counted"
) -> Terms:
    """Compute the residual of rank-biased precision: its rise if every unjudged document were relevant.

    Formula: 1 - (1 - p) Σ p^(rank - 1) of the judged documents.

    All ranks together weigh 1, and those below rank i weigh p**i. Nothing is known of the unjudged documents (negative
    grades included) nor of what would stand below the list: each judged document adds the weight of the ranks between
    the judged one before it and itself, and what is below the last of them is added in the end.

    Args:
        p: Persistence, the probability of reading on, in (0, 1).
        k: Number of ranks to count. None counts all.
        below: `counted` is the definition; `if_unjudged` is trec_eval 10's form, in which a list without unjudged
            documents has no residual, not even what would stand below it.

    Returns:
        (Q,) scores in [0, 1], never NaN; by definition 1 where nothing was retrieved.

    Reference:
        Moffat & Zobel 2008, doi:10.1145/1416950.1416952, section 5.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1, found {p:g}")
    known = (block.grades >= 0) & (block.ranks <= cut(k))
    last = np.maximum.accumulate(np.where(known, block.ranks, 0.0), axis=0)
    before = np.vstack([np.zeros((1, last.shape[1])), last[:-1]])
    counted = known.sum(axis=0) < np.minimum(block.n_retrieved, cut(k)) if below == "if_unjudged" else True
    terms = np.where(known & counted, p**before - p ** (block.ranks - 1), 0.0)
    factors = {"judged": known, "judged before": before}
    return Terms(terms, factors, rest=np.where(counted, p ** last[-1], 0.0))


@from_terms
def err(
    block: JudgedBlock,
    *,
    k: int | None = None,
    grades: Literal["exponential", "probability"] = "exponential",
    max_grade: float | None = None,
    continuation: float = 1.0,
) -> Terms:
    """Compute the expected reciprocal rank: 1 over the rank at which a reader is satisfied, on average.

    Formula: Σ 1/i · R_i · continuation^(i - 1) · Π_{j<i} (1 - R_j).

    The sum is over ranks i, R_i being the chance that the document at rank i satisfies.

    Args:
        k: Number of ranks to count. None counts all.
        grades: `exponential` makes R = (2**grade - 1) / 2**max_grade; `probability` takes grades in [0, 1] as they are.
        max_grade: The maximum grade, for `exponential`; by default an evaluation's greatest.
        continuation: The chance that an unsatisfied reader goes on, in (0, 1]; 1 is the usual ERR.

    Returns:
        (Q,) scores in [0, 1], never NaN.

    Reference:
        Chapelle et al. 2009, doi:10.1145/1645953.1646033; gdeval takes max_grade 4.
    """
    if not 0 < continuation <= 1:
        raise ValueError(f"continuation must be above 0 and at most 1, found {continuation:g}")
    graded = np.fmax(block.grades, 0.0)
    if grades == "probability":
        if greatest_grade(block) > 1:
            raise ValueError(f"a judgment has grade {greatest_grade(block):g}, not a probability; rescale the grades")
        satisfied = graded
    else:
        greatest = check_grades(block, max_grade)
        check_exponent(greatest)
        satisfied = (np.exp2(graded) - 1.0) / np.exp2(greatest)
    unsatisfied = (1.0 - satisfied).cumprod(axis=0)
    reached = np.vstack([np.ones((1, satisfied.shape[1])), unsatisfied[:-1]])
    terms = satisfied * reached / block.ranks * continuation ** (block.ranks - 1)
    return Terms(np.where(block.ranks <= cut(k), terms, 0.0), {"satisfied": satisfied, "reached": reached})


@from_terms
def nerr(
    block: JudgedBlock,
    *,
    k: int | None = None,
    grades: Literal["exponential", "probability"] = "exponential",
    max_grade: float | None = None,
    continuation: float = 1.0,
) -> Terms:
    """Compute the normalized expected reciprocal rank: ERR over the ERR of the ideal list.

    Formula: err / err of all judged documents, best first.

    Args:
        k: Ranks to count in both lists; None counts all.
        grades: `exponential` makes R = (2**grade - 1) / 2**max_grade; `probability` takes grades in [0, 1] as they are.
        max_grade: The maximum grade, for `exponential`; by default an evaluation's greatest.
        continuation: The chance that an unsatisfied reader goes on, in (0, 1].

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no judged document with a grade above 0.

    Reference:
        Sakai & Song 2011, doi:10.1145/2009916.2010055, nERR of NTCIREVAL. The measures that ir_measures calls NERR8 to
        NERR11 are others.
    """
    ideal = err.terms(block.ideal(), k=k, grades=grades, max_grade=max_grade, continuation=continuation)
    found = err.terms(block, k=k, grades=grades, max_grade=max_grade, continuation=continuation)
    return replace(found, divisor=ideal.total(), ideal=ideal)


@from_terms
def rankscore(block: JudgedBlock, *, half_life: float = 5.0, k: int | None = None, rel: float = 1) -> Terms:
    """Compute Breese's half-life utility: relevant documents weighted by 2**(-(rank - 1) / half_life), over the ideal.

    Formula: Σ 2^(-(rank - 1) / half_life) / its greatest value.

    Args:
        half_life: The ranks by which the weight halves, above 0.
        k: Ranks to count in the list and in the best possible one; None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        Breese, Heckerman & Kadie 1998, arXiv:1301.7363, with (rank - 1) / half_life in the exponent where the paper has
        (rank - 1) / (half_life - 1).
    """
    if not half_life > 0:
        raise ValueError(f"half_life must be above 0, found {half_life:g}")
    ideal = _utility(block.ideal(), half_life, k, rel)
    return replace(_utility(block, half_life, k, rel), divisor=ideal.total(), ideal=ideal)


def _utility(block: JudgedBlock, half_life: float, k: int | None, rel: float) -> Terms:
    hit = block.relevant(rel) & (block.ranks <= cut(k))
    weight = np.exp2(-(block.ranks - 1) / half_life)
    return Terms(np.where(hit, weight, 0.0), {"relevant": hit, "weight": weight})
