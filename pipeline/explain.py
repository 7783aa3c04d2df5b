"""Explanation of one score by its documents, and of the effect of another profile's conventions."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from rankledger.metrics import conventional_scores
from rankledger.metrics.block import Floats, JudgedBlock, Terms
from rankledger.metrics.conventions import Conventions, Profile
from rankledger.metrics.measure import Measure
from rankledger.metrics.ratings import RatingsBlock, absolute_errors, log_losses, squared_errors, squared_gaps
from rankledger.pipeline.config.sources import Replicate
from rankledger.pipeline.data.joined import HEAD, QueryList
from rankledger.pipeline.support.errors import InputError


@dataclass(frozen=True)
class ScoreTerm:
    """One document and its contribution to a score. None if a value does not exist.

    Attributes:
        rank: Rank in the list, from 1. None if all orders of equal scores count.
        ties: First and last rank of the documents with the same score. None if the score is unique.
        doc_id: Document. None in an ideal list that is not ordered by grade.
        grade: Grade. None for an unjudged document.
        factors: Factors of the term by name.
        term: Contribution to the sum. None for an unjudged document.
        running: Sum down to this document.
        found_at: First and last possible rank in the ranking, for a document of an ideal list. None if it was not
            retrieved.
    """

    rank: int | None
    ties: tuple[int, int] | None
    doc_id: str | None
    grade: float | None
    factors: Mapping[str, float | bool | None]
    term: float | None
    running: float | None
    found_at: tuple[int, int] | None = None

    @property
    def place(self) -> int:
        """Rank, or the first rank of the tied documents. 0 without a rank."""
        return self.rank or (self.ties or (0, 0))[0]


@dataclass(frozen=True)
class ScoreTotal:
    """The last step: the score is `scale (rest + total) / divisor`, or the square root of it.

    Attributes:
        total: Sum of all terms.
        rest: Addend that does not depend on ranks. None if there is none.
        scale: Factor of the sum.
        divisor: Divisor of the sum. None if there is none.
        root: True if the square root is taken.
    """

    total: float
    rest: float | None
    scale: float
    divisor: float | None
    root: bool = False


@dataclass(frozen=True)
class Outcome:
    """A query's score and its value in the mean.

    Attributes:
        value: Score. None if it is undefined.
        counts_as: Value in the mean. None if the query is left out.
        refused: Reason why there is no score at all. None if there is one.
    """

    value: float | None
    counts_as: float | None
    refused: str | None = None

    def same_as(self, other: Outcome) -> bool:
        """Return whether both outcomes are equal up to rounding errors."""
        figures = ((self.value, other.value), (self.counts_as, other.counts_as))
        return self.refused == other.refused and all(
            one == another or (one is not None and another is not None and math.isclose(one, another, rel_tol=1e-12))
            for one, another in figures
        )


@dataclass(frozen=True)
class ConventionChoice:
    """One choice on which two profiles differ.

    Attributes:
        name: Convention, or parameter of the metric.
        own: Choice of the evaluation.
        other: Choice of the other profile.
        alone: Outcome with only this choice of the other profile.
        all_others: Outcome with all choices of the other profile but this one.
        because: Reason, with the name of the profile that gives it.
    """

    name: str
    own: str
    other: str
    alone: Outcome
    all_others: Outcome
    because: str


@dataclass(frozen=True)
class ProfileComparison:
    """The score under another profile.

    Attributes:
        profile: Other profile.
        outcome: Outcome under it.
        choices: Choices that change the score, alone or together with the others.
        idle: Choices that do not change it.
    """

    profile: Profile
    outcome: Outcome
    choices: tuple[ConventionChoice, ...]
    idle: tuple[ConventionChoice, ...]


@dataclass(frozen=True)
class RecordedScore:
    """Comparison of a score with a record.

    Attributes:
        evaluation_id: Evaluation of the record.
        measured: True if the record has the measure.
        same_definition: True if the measure's fingerprint has not changed since.
    """

    evaluation_id: str
    measured: bool
    same_definition: bool


@dataclass(frozen=True)
class Explanation:
    """One score with its contributions.

    Attributes:
        dataset: Name of the dataset.
        model: Name of the model.
        query_id: Id of the query.
        measure: Explained measure.
        profile: Profile of the evaluation.
        outcome: Score, and its value in the mean.
        why: Reason why the score is undefined. None if it is defined.
        documents: Every judged document of the list, and the others at its head, by rank.
        n_retrieved: Number of documents in the list.
        n_condensed: Number of unjudged documents that were removed from it.
        ideal: Perfect ranking, if its sum is the divisor.
        sum: Last step.
        comparison: Score under another profile, if requested.
        recorded: Comparison with a record, if the source is one.
        replicate: Replicate. Empty for a model of one output.
        n_excluded: Number of documents that the dataset excluded from the list.
        n_seen: Number of documents of the list that the user consumed in training.
        against: Score of another model on the same query, if requested.
    """

    dataset: str
    model: str
    query_id: str
    measure: Measure
    profile: Profile
    outcome: Outcome
    why: str | None
    documents: tuple[ScoreTerm, ...]
    n_retrieved: int
    n_condensed: int
    ideal: tuple[ScoreTerm, ...] | None
    sum: ScoreTotal
    comparison: ProfileComparison | None = None
    recorded: RecordedScore | None = None
    replicate: str = ""
    n_excluded: int = 0
    n_seen: int = 0
    against: Explanation | None = None

    @property
    def subject(self) -> str:
        """Model, dataset and query, such as `dense (replicate 3) on web, query q1`."""
        name = Replicate(self.model, self.replicate) if self.replicate else self.model
        return f"{name} on {self.dataset}, query {self.query_id}"

    def __repr__(self) -> str:
        value = self.outcome.value
        score = self.outcome.refused or self.why or "undefined" if value is None else f"{value:.4f}"
        lines = [f"<Explanation {self.measure} of {self.subject}: {score}>"]
        for line in self.documents:
            grade = "not judged" if line.grade is None else f"grade {line.grade:g}"
            term = "" if line.term is None else f", adds {line.term:.4f}"
            lines.append(f"  {line.rank or '-'} {line.doc_id}: {grade}{term}")
        return "\n".join([*lines, *([] if self.against is None else [repr(self.against)])])


PAIR_TERMS: Mapping[str, Callable[..., Floats]] = MappingProxyType(
    {
        "mae": absolute_errors,
        "mse": squared_errors,
        "rmse": squared_errors,
        "log_loss": log_losses,
        "brier": squared_gaps,
    }
)
"""The metrics that are a mean over the pairs of a query, and what each pair adds to it."""


def explain(query: QueryList, measure: Measure, profile: Profile, *, dataset: str, model: str) -> Explanation:
    """Take the score of a query apart into what each document adds.

    Raises:
        InputError: If the measure refuses the grades, such as one above its `max_grade`.
    """
    try:
        found = outcome(query, measure, profile)
        parts = (
            _explain_ratings(query, measure) if isinstance(query.block, RatingsBlock) else _of(query, measure, profile)
        )
    except ValueError as error:
        raise InputError(f"{dataset}: {measure}: {error}") from None
    return Explanation(
        dataset=dataset,
        model=model,
        query_id=str(query.block.query_ids[0]),
        measure=measure,
        profile=profile,
        outcome=found,
        why=_why(query, measure) if found.value is None else None,
        n_excluded=query.n_excluded,
        n_seen=query.n_seen,
        **parts,
    )


def outcome(query: QueryList, measure: Measure, profile: Profile) -> Outcome:
    """Score a query and say what it counts in the mean."""
    block, conventions = query.block, profile.conventions_of(measure.metric.name)
    if isinstance(block, RatingsBlock):
        (value,) = measure.metric.function(block, **measure.arguments(query.max_grade))
        missing = False  # one without pairs is undefined, and left out for that
    else:
        ruled = conventional_scores.apply_conventions(block, conventions)
        (value,) = conventional_scores.score(measure, ruled, conventions, max_grade=query.max_grade)
        missing = not query.n_retrieved
    left_out = missing and conventions.missing_queries == "skip"
    if not math.isnan(value):
        return Outcome(float(value), None if left_out else float(value))
    zero = measure.metric.undefined == "convention" and conventions.undefined_queries == "zero"
    return Outcome(None, 0.0 if zero and not left_out else None)


def _of(query: QueryList, measure: Measure, profile: Profile) -> dict[str, Any]:
    assert isinstance(query.block, JudgedBlock)
    conventions = profile.conventions_of(measure.metric.name)
    block = conventional_scores.apply_conventions(query.block, conventions)
    terms = conventional_scores.terms(measure, block, conventions, max_grade=query.max_grade)
    judged = list(_judged_lines(query, block, terms, any_order=conventions.ties == "expected"))
    condensed = conventions.unjudged_documents == "condensed"
    others = [] if condensed else _unjudged_lines(query, conventions, min(HEAD, measure.k or HEAD))
    n_listed = min(query.n_retrieved, conventions.depth or query.n_retrieved)
    n_retrieved = int(block.n_retrieved[0])
    divided = not (isinstance(terms.divisor, float) and terms.divisor == 1)
    ideal = None
    if terms.ideal is not None:  # of subtopics it is ordered by what each document adds to those above it
        ideal = tuple(_ideal_lines(query, terms.ideal, judged, named="subtopics" not in measure.metric.needs))
    return {
        "documents": tuple(sorted([*judged, *others], key=lambda line: line.place)),
        "n_retrieved": n_retrieved,
        "n_condensed": n_listed - n_retrieved if condensed else 0,
        "ideal": ideal,
        "sum": ScoreTotal(
            total=float(terms.terms.cumsum(axis=0)[-1, 0]),
            rest=None if terms.rest is None else _plain(terms.rest[0]),
            scale=float(terms.scale),
            divisor=float(np.broadcast_to(terms.divisor, 1)[0]) if divided else None,
        ),
    }


def _judged_lines(query: QueryList, block: JudgedBlock, terms: Terms, *, any_order: bool) -> Iterator[ScoreTerm]:
    """Yield the judged documents that were retrieved. With `any_order` a tied document has no rank."""
    for row in np.flatnonzero(np.isfinite(block.ranks[:, 0])):
        ties = _ties(int(block.tie_first[row, 0]), int(block.tie_last[row, 0]))
        yield _term(
            terms,
            int(row),
            rank=None if any_order and ties else int(block.ranks[row, 0]),
            ties=ties,
            doc_id=query.judged[block.judgment_row[row, 0]],
            grade=query.grades[block.judgment_row[row, 0]],
        )


def _term(terms: Terms, row: int, **line: Any) -> ScoreTerm:
    factors = {name: _plain(values[row, 0]) for name, values in terms.factors.items()}
    running = float(terms.terms[: row + 1, 0].cumsum()[-1])
    return ScoreTerm(factors=factors, term=float(terms.terms[row, 0]), running=running, **line)


def _unjudged_lines(query: QueryList, conventions: Conventions, depth: int) -> Iterator[ScoreTerm]:
    assert isinstance(query.block, JudgedBlock)
    uncut = replace(conventions, depth=None, unjudged_documents="non_relevant")
    block = conventional_scores.apply_conventions(query.block, uncut)
    taken = {int(rank) for rank in block.ranks[:, 0] if np.isfinite(rank)}
    known = {query.judged[row] for row in block.judgment_row[:, 0] if row >= 0}
    places = (rank for rank in range(1, query.n_retrieved + 1) if rank not in taken)
    others = ((doc, ties) for doc, ties in zip(query.retrieved, query.ties, strict=True) if doc not in known)
    for rank, (doc_id, (first, last)) in zip(places, others, strict=True):
        if rank > min(depth, conventions.depth or depth):
            return
        ties = _ties(first, last)
        shown = None if ties and conventions.ties == "expected" else rank
        yield ScoreTerm(shown, ties, doc_id, grade=None, factors={}, term=None, running=None)


def _ideal_lines(query: QueryList, terms: Terms, judged: Sequence[ScoreTerm], *, named: bool) -> Iterator[ScoreTerm]:
    """Yield the perfect ranking down to the last document that adds to it.

    Documents of equal grade keep the order of the ranking. Those that were not retrieved follow by id.
    """
    found = {line.doc_id: (line.rank, line.rank) if line.rank else line.ties or (0, 0) for line in judged}
    documents = sorted(
        ((query.judged[row], query.grades[row]) for row in query.kept),
        key=lambda document: (-document[1], found.get(document[0], (math.inf, math.inf)), document[0].encode()),
    )
    adding = np.flatnonzero(terms.terms[:, 0])
    for place in range(int(adding[-1]) + 1 if adding.size else 0):
        doc_id, grade = documents[place] if named else (None, None)
        yield _term(terms, place, rank=place + 1, ties=None, doc_id=doc_id, grade=grade, found_at=found.get(doc_id))


def _explain_ratings(query: QueryList, measure: Measure) -> dict[str, Any]:
    block, n_pairs, arguments = query.block, query.n_retrieved, measure.arguments(query.max_grade)
    assert isinstance(block, RatingsBlock)
    factors = {"rating": block.ratings, "prediction": block.predictions, "error": block.predictions - block.ratings}
    if "rel" in arguments:
        factors = {"label": (block.ratings >= arguments["rel"]).astype(np.float64), "prediction": block.predictions}
    if block.weights is not None:
        factors |= {"weight": block.weights}
    added = PAIR_TERMS[measure.metric.name](block, **arguments) * block.pair_weights
    terms = Terms(added[:n_pairs], {name: values[:n_pairs] for name, values in factors.items()})
    return {
        "documents": tuple(
            _term(terms, row, rank=None, ties=None, doc_id=doc_id, grade=None)
            for row, doc_id in enumerate(query.retrieved)
        ),
        "n_retrieved": n_pairs,
        "n_condensed": 0,
        "ideal": None,
        "sum": ScoreTotal(
            total=float(terms.terms.cumsum()[-1]) if n_pairs else 0.0,
            rest=None,
            scale=1.0,
            divisor=float(block.weight[0]),
            root=measure.metric.name == "rmse",
        ),
    }


def _why(query: QueryList, measure: Measure) -> str:
    if isinstance(query.block, RatingsBlock):
        return "where no document has both a rating and a prediction"
    documented = " ".join((inspect.getdoc(measure.metric.function) or "").split())
    stated = re.search(r"NaN (?:if|where) (.+?)[.;]", documented)
    reason = f"where {stated[1]}" if stated else "where the query has no relevant document and such are skipped"
    grades = [query.grades[row] for row in query.kept]
    return f"{reason} ({len(grades)} judged, the greatest grade {max(grades):g}; {query.n_retrieved} retrieved)"


def _ties(first: int, last: int) -> tuple[int, int] | None:
    return (first, last) if last > first else None


def _plain(value: Any) -> float | bool | None:
    if isinstance(value, np.bool_):
        return bool(value)
    return float(value) if math.isfinite(value) else None


Listed: TypeAlias = Callable[[Conventions], QueryList]
Definition: TypeAlias = tuple[Measure, Profile]
Difference: TypeAlias = tuple[str, object, object, str, Callable[[Definition], Definition]]
"""Name, choice of the evaluation, choice of the other profile, reason, and the change from one to the other."""


def compare(listed: Listed, measure: Measure, own: Profile, other: Profile) -> ProfileComparison:
    """Compare the score of a query with its score under another profile, choice by choice."""
    listed = cache(listed)
    differences = [*_list_differences(measure, own, other)]
    changes = [change for *_, change in differences]
    before, after = (_score_changed(listed, measure, own, made) for made in ([], changes))
    choices = [
        ConventionChoice(
            name=name,
            own="all" if ours is None else str(ours),
            other="all" if theirs is None else str(theirs),
            alone=_score_changed(listed, measure, own, [change]),
            all_others=_score_changed(listed, measure, own, [one for one in changes if one is not change]),
            because=because,
        )
        for name, ours, theirs, because, change in differences
    ]
    idle = [choice for choice in choices if choice.alone.same_as(before) and choice.all_others.same_as(after)]
    return ProfileComparison(other, after, tuple(choice for choice in choices if choice not in idle), tuple(idle))


def _list_differences(measure: Measure, own: Profile, other: Profile) -> Iterator[Difference]:
    def explain_choice(choice: str) -> str:
        profile = other if choice in other.because else own
        return f"{profile.name}: {profile.because.get(choice, 'as the metric has it')}"

    def change_convention(name: str, definition: Definition) -> Definition:
        measure, profile = definition
        if name != "ties":
            return measure, profile.with_conventions(**{name: getattr(other.conventions_of(metric), name)})
        conventions = replace(profile.conventions, ties=other.conventions.ties)
        return measure, replace(profile, conventions=conventions, ties=other.ties)

    def change_default(name: str, definition: Definition) -> Definition:
        return definition[0].with_default(name, defaults[1].get(name)), definition[1]

    metric = measure.metric.name
    for name in (field.name for field in fields(Conventions)):
        ours, theirs = (getattr(profile.conventions_of(metric), name) for profile in (own, other))
        if ours != theirs:
            because = explain_choice(metric if name == "ties" and metric in other.ties else name)
            yield name, ours, theirs, because, partial(change_convention, name)
    defaults = [profile.defaults.get(metric, {}) for profile in (own, other)]
    for name, parameter in measure.metric.parameters.items():
        ours, theirs = (values.get(name, parameter.default) for values in defaults)
        if name not in dict(measure.given) and ours != theirs:
            yield name, ours, theirs, explain_choice(metric), partial(change_default, name)


def _score_changed(
    listed: Listed, measure: Measure, own: Profile, changes: Sequence[Callable[[Definition], Definition]]
) -> Outcome:
    definition = (measure, own)
    try:
        for change in changes:
            definition = change(definition)
        conventions = definition[1].conventions
        query = listed(replace(conventions, missing_queries="empty"))
        if conventions.missing_queries == "error" and not query.n_retrieved:
            return Outcome(None, None, "a query without output")
        if conventions.negative_grades == "error" and min(query.grades[row] for row in query.kept) < 0:
            return Outcome(None, None, "a negative grade")
        return outcome(query, *definition)
    except (InputError, ValueError) as error:
        return Outcome(None, None, str(error))
