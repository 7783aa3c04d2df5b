"""One query's score, taken apart: what each document adds, and what another profile would make of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rankledger.metrics.conventions import Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.types.joined import Replicate

HEAD = 20  # ranks down to which every document is named, judged or not


@dataclass(frozen=True)
class ScoreTerm:
    """One document and what it adds; None if there is no such thing.

    Attributes:
        rank: its place in the list, from 1; None where all orders of equal scores count.
        ties: the first and the last rank of its group of equal scores; None where its score is its own.
        doc_id: the document; None in an ideal list that is not ordered by grade.
        grade: its relevance as it was judged; None for a document without judgment.
        factors: what its term is made of, by name.
        term: what it adds to the sum; None for a document without judgment.
        running: the sum down to it.
        found_at: of a document of an ideal list, the first and the last rank that it may have in the ranking; None
            where it was not retrieved.
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
        """Where the line stands: at its rank, or at the first of its group of equal scores; 0 without a rank."""
        return self.rank or (self.ties or (0, 0))[0]


@dataclass(frozen=True)
class ScoreTotal:
    """The last line: the score is `scale (rest + total) / divisor`, or the square root of that.

    Attributes:
        total: the sum of all terms.
        rest: what is added whatever the places of the documents; None where nothing is.
        scale: what the sum is multiplied by.
        divisor: what it is divided by; None if it is not.
        root: whether the square root is taken.
    """

    total: float
    rest: float | None
    scale: float
    divisor: float | None
    root: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a query scores and what it is in the mean.

    Attributes:
        value: the score; None where it is undefined.
        counts_as: what enters the mean; None where the query is left out of it.
        refused: what is refused, so that there is no score at all; None where there is one.
    """

    value: float | None
    counts_as: float | None
    refused: str | None = None

    def same_as(self, other: Outcome) -> bool:
        """Whether it is the same but for the rounding of the last digits, which no choice is meant to make."""
        figures = ((self.value, other.value), (self.counts_as, other.counts_as))
        return self.refused == other.refused and all(
            one == another or (one is not None and another is not None and math.isclose(one, another, rel_tol=1e-12))
            for one, another in figures
        )


@dataclass(frozen=True)
class ConventionChoice:
    """One choice on which two profiles differ.

    Attributes:
        name: the convention, or the parameter of the metric.
        own: what holds in the evaluation.
        other: what holds under the other profile.
        alone: with this choice of the other profile, and everything else as in the evaluation.
        all_others: with every other choice of the other profile, and this one as in the evaluation.
        because: who does what, with the name of the profile that says so.
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
        profile: the other profile.
        outcome: under it.
        choices: those that make a difference, alone or to the others together.
        idle: those that make none.
    """

    profile: Profile
    outcome: Outcome
    choices: tuple[ConventionChoice, ...]
    idle: tuple[ConventionChoice, ...]


@dataclass(frozen=True)
class RecordedScore:
    """What a record says of a score; where it has the score, it is the same one.

    Attributes:
        evaluation_id: the record's.
        measured: whether it has the measure.
        same_definition: whether the measure had the fingerprint then that it has now.
    """

    evaluation_id: str
    measured: bool
    same_definition: bool


@dataclass(frozen=True)
class Explanation:
    """One score, taken apart.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        query_id: the query.
        measure: what is measured.
        profile: the evaluation's.
        outcome: the score, and what it is in the mean.
        why: why the score is undefined; None if it is not.
        documents: every judged document of the list, and the others at its head, by rank.
        n_retrieved: how many documents the list has.
        n_condensed: how many documents were taken out of it for want of a judgment.
        ideal: the perfect ranking, where its sum is the divisor.
        sum: the last line.
        comparison: the score under another profile, if one was asked for.
        recorded: what the record says of the score, if one was asked about.
        replicate: the replicate of the model; empty for a model of one output.
        n_excluded: how many documents the dataset left out of the list.
        n_seen: how many documents of the list the user consumed in training.
        against: the score of another model on the same query, if one was asked for.
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
        """Whose score it is, such as `dense (replicate 3) on web, query q1`."""
        name = Replicate(self.model, self.replicate) if self.replicate else self.model
        return f"{name} on {self.dataset}, query {self.query_id}"

    def __repr__(self) -> str:
        """The score, and a line per document."""
        value = self.outcome.value
        score = self.outcome.refused or self.why or "undefined" if value is None else f"{value:.4f}"
        lines = [f"<Explanation {self.measure} of {self.subject}: {score}>"]
        for line in self.documents:
            grade = "not judged" if line.grade is None else f"grade {line.grade:g}"
            term = "" if line.term is None else f", adds {line.term:.4f}"
            lines.append(f"  {line.rank or '-'} {line.doc_id}: {grade}{term}")
        return "\n".join([*lines, *([] if self.against is None else [repr(self.against)])])
