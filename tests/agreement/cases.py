"""Random cases for comparing us with other tools, and our figures of them under a profile.

One query is one random case: its own judgments and its own ranking, holding what tools disagree on. Hundreds of them
go through one evaluation.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pytest

import rankledger
from rankledger.metrics.measure import Measure
from tests.agreement.table import note
from tests.support.generated_data import Collection, write_config

Grades = dict[str, dict[str, int]]
Ranking = dict[str, dict[str, float]]
Figures = dict[str, dict[str, float]]
"""By query and measure, as the measure was asked for."""

NUMBERED = ("d{}", "D{}", "d-{}", "{}", "0{}", "doc_{}_long")
BEYOND_ASCII = ("é{}", "文{}", "𝄞{}", "e\u0301{}")
CLOSE = (1.0, 1.0 + 1e-9, 1.0 - 1e-9, 2.5, 2.5 + 1e-8)  # two scores in float32, five in float64


@dataclass(frozen=True)
class Case:
    """Judgments and a ranking: query, document, grade or score. The order of the documents is that of the files."""

    judgments: Grades
    ranking: Ranking

    @property
    def answered(self) -> list[str]:
        """The judged queries with output."""
        return [query_id for query_id in self.judgments if query_id in self.ranking]

    @property
    def answerable(self) -> list[str]:
        """The judged queries with a grade of at least 1."""
        return [query_id for query_id, grades in self.judgments.items() if max(grades.values()) >= 1]

    def only(self, query_ids: Sequence[str]) -> "Case":
        """The case of these queries alone."""
        return Case(
            {query_id: self.judgments[query_id] for query_id in query_ids if query_id in self.judgments},
            {query_id: self.ranking[query_id] for query_id in query_ids if query_id in self.ranking},
        )


class ByHand(NamedTuple):
    """A case worked by hand: the figures of a tool, ours under its profile, and ours by other keys of the config."""

    judgments: Grades
    ranking: Ranking
    theirs: Mapping[str, float]  # by the tool's measures
    ours: Mapping[str, float] = {}  # means by our measures; NaN queries count as the profile says
    keys: Mapping[str, str] = {}  # conventions, in place of those of the profile
    by_keys: Mapping[str, float] = {}

    def assert_ours(self, folder: Path, profile: str) -> None:
        """Refuse other figures of ours."""
        case = Case(self.judgments, self.ranking)
        for name, conventions, figures in (
            ("plain", profile, self.ours),
            ("keys", {"profile": profile, **self.keys}, self.by_keys),
        ):
            if figures:
                _, means = ours(folder / name, case, conventions, [*figures])
                assert means == pytest.approx(figures, abs=1e-12)


def random_case(
    seed: int,
    n_queries: int = 300,
    *,
    max_documents: int = 30,
    grades: Sequence[int] = (0, 0, 1, 2, 3, 4),
    negative: bool = False,
    ties: Literal["none", "exact", "float32"] = "float32",
    unjudged_documents: bool = True,
    undefined_queries: bool = True,
    missing_queries: bool = False,
    unjudged_queries: bool = False,
    beyond_ascii: bool = False,
) -> Case:
    """Judgments and a ranking of as many queries, from a seed."""
    rng = np.random.default_rng(seed)
    case = Case({}, {})
    for number in range(n_queries):
        query_id = str(number)
        pool = _documents(rng, max_documents, NUMBERED + BEYOND_ASCII if beyond_ascii else NUMBERED)
        judged = [str(doc_id) for doc_id in rng.permutation(pool)[: rng.integers(1, max_documents + 1)]]
        retrievable = pool if unjudged_documents else judged
        size = int(rng.choice([1, 2, 4, *rng.integers(1, len(retrievable) + 1, size=5)]))
        retrieved = [str(doc_id) for doc_id in rng.permutation(retrievable)[:size]]
        levels = [*grades, *((-1, -2) if negative else ())]
        undefined = undefined_queries and number % 10 == 3
        levels = [grade for grade in levels if grade < 1] if undefined else levels
        found = dict(zip(judged, rng.choice(levels, size=len(judged)).tolist(), strict=True))
        if undefined or max(found.values()) < 1:  # trec_eval's code crashes on a query whose grades are all negative
            found[judged[0]] = max(levels)
        case.judgments[query_id] = found
        if not (missing_queries and number % 10 == 7):
            case.ranking[query_id] = dict(zip(retrieved, _scores(rng, len(retrieved), ties), strict=True))
        if unjudged_queries and number % 10 == 5:
            case.ranking[str(1_000_000 + number)] = case.ranking[query_id]
    return case


def ours(
    folder: Path, case: Case, profile: str | Mapping[str, str], measures: Sequence[str], **keys: str | bool
) -> tuple[Figures, dict[str, float]]:
    """What we give under a profile: by query and measure the score, NaN where undefined; by measure the mean."""
    config = write_config(
        folder,
        {"case": Collection(case.judgments, {"tool": case.ranking})},
        {"compared": measures},
        ending=".parquet",
        conventions=profile,
        defaults={"dataset": keys},
        bootstrap={"resamples": 100},
        report=False,
    )
    evaluation = rankledger.evaluate_config(config, jobs=1, tracking=False, runs_dir=folder / "runs")
    assert not evaluation.failures, evaluation.failures
    (result,) = evaluation.results
    assert len(result.measures) == len(measures), f"asked for {measures}, found {[*map(str, result.measures)]}"
    scores = {
        query_id: dict(zip(measures, map(float, column), strict=True))
        for query_id, column in zip(result.query_ids, result.values.T, strict=True)
    }
    means = {
        text: math.nan if line.estimate is None else line.estimate
        for text, line in zip(measures, evaluation.estimates, strict=True)
    }
    return scores, means


def assert_agree(
    found: Figures, expected: Figures, *, within: float = 1e-9, at_least: int = 300, tool: str = ""
) -> None:
    """Refuse a difference of more than `within`, or fewer than `at_least` queries; note what was compared."""
    assert len(expected) >= at_least
    for query_id, figures in expected.items():
        for measure, value in figures.items():
            own = found[query_id][measure]
            if math.isnan(own):
                own = value if math.isnan(value) else 0.0
            difference = 0.0 if math.isnan(own) else abs(own - value)
            assert difference <= within, f"{query_id} {measure}: ours {own!r}, expected {value!r}"
            note(tool, measure, difference)


def assert_within(
    tool: str,
    measure: str,
    ours: float | np.ndarray,
    theirs: float | Sequence[float] | np.ndarray,
    within: float = 1e-9,
) -> None:
    """Refuse a difference of more than `within`; note what was compared."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=within)
    for difference in np.nan_to_num(np.abs(np.subtract(ours, theirs))).ravel().tolist():
        note(tool, measure, difference)


def reversed_rows(case: Case) -> Case:
    """The case with every query's ranking in the opposite order of rows."""
    return replace(
        case, ranking={query_id: dict(reversed(scores.items())) for query_id, scores in case.ranking.items()}
    )


def _documents(rng: np.random.Generator, n_documents: int, patterns: Sequence[str]) -> list[str]:
    return [pattern.format(number) for number, pattern in enumerate(rng.choice(patterns, size=n_documents), 1)]


def _scores(rng: np.random.Generator, size: int, ties: Literal["none", "exact", "float32"]) -> list[float]:
    if ties == "none":
        return [float(score) / 8 for score in rng.permutation(4 * size)[:size] - size]
    distinct = [float(score) / 8 for score in rng.integers(-40, 41, size=int(rng.choice([2, 30])))]
    special = CLOSE if ties == "float32" else (0.0, -0.0)
    return [float(score) for score in rng.choice([*distinct, *special], size=size)]


def translate(*names: str) -> dict[str, str]:
    """Our names by the tool's; a wrong alias would be found out by other figures."""
    return {theirs: str(Measure.parse(theirs)) for theirs in names}
