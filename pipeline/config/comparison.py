"""The section that says which models are compared, and by which test."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from pipeline.config.fields import Name, OneOrMore, Whole
from pipeline.config.section import Section

__all__ = ["Comparison", "Correction", "Test"]

Test: TypeAlias = Literal["randomization", "t", "bootstrap"]
Correction: TypeAlias = Literal["maxt", "holm", "bh", "none"]


class Comparison(Section):
    """Which models are compared query by query, and how the differences are tested."""

    baseline: Name
    """The model that all others are compared with; `all_pairs` compares each with each, of which the first by
    name is the baseline."""

    measures: OneOrMore | None = None
    """What they are compared by; every measure of queries that the dataset has unless given."""

    test: Test = "randomization"
    """What the p-value is of: signs of the differences flipped at random, Student's t, or the bootstrap."""

    permutations: Whole = Field(10_000, ge=100, le=1_000_000)
    """Times the signs are flipped, at most 1,000,000."""

    correction: Correction | None = None
    """How p-values are corrected for the number of tests on a dataset: `maxt` (Westfall and Young) unless given, or
    `holm` where the test is `t`, which `maxt` cannot correct; `bh` controls the false discovery rate instead."""

    @property
    def chosen_correction(self) -> Correction:
        """The correction that is written, or the test's own."""
        return self.correction or ("holm" if self.test == "t" else "maxt")

    @model_validator(mode="after")
    def _holds_together(self) -> Comparison:
        if self.test == "t" and self.correction == "maxt":
            raise ValueError("maxt needs resamples, which the test t does not make; choose holm, bh or none")
        return self
