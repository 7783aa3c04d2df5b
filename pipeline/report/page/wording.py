"""Words and figures as the sections of a page share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from unicodedata import bidirectional

from pipeline.report.boards import UNSURE
from pipeline.report.differences import models
from pipeline.report.page.blocks import Tone, shown
from pipeline.report.readings import reading
from pipeline.report.sheets import counted
from pipeline.tables import Estimate
from pipeline.verdicts import Comparison, Verdict

__all__ = ["against", "interval", "isolated", "queries", "tone_of"]


def interval(line: Estimate | Comparison | Verdict, written: Callable[[float | None], str]) -> str:
    """An interval's ends in brackets, marked where it is not to be trusted; empty where it has none."""
    line = line.without_rounding() if isinstance(line, Comparison) else line
    if line.ci_low is None or line.ci_high is None:
        return ""
    return f"[{written(line.ci_low)}, {written(line.ci_high)}]{UNSURE if line.mark else ''}"


def queries(amount: int) -> str:
    """How many queries there are."""
    return counted(amount, "query", "queries")


def isolated(name: str) -> str:
    """A name within a sentence, which it cannot turn round: one with letters from right to left is set apart."""
    turns = any(bidirectional(letter) in ("R", "AL", "AN") for letter in name)
    return f"\u2068{name}\u2069" if turns else name


def against(model: str, baseline: str) -> str:
    """A pair of models, each cut to what can be read and in its own direction."""
    return models(isolated(shown(model)), isolated(shown(baseline)))


def tone_of(line: Comparison, matters: Mapping[str, float]) -> Tone:
    """How a difference is taken."""
    tones: Mapping[str, Tone] = {"better": "good", "worse": "bad"}
    return tones.get(reading(line, matters), "")
