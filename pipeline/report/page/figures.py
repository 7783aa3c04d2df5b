"""The figures of a page, found by what they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pipeline.pages import Page
from pipeline.report.boards import ALL, Board, ranked
from pipeline.report.letters import letters_of
from pipeline.tables import Estimate
from pipeline.verdicts import Comparison

__all__ = ["Figures", "Key", "figures_of"]

Key: TypeAlias = tuple[str, str, str]
"""Dataset, slice and measure."""


@dataclass(frozen=True)
class Figures:
    """What is shown of a page again and again.

    Attributes:
        page: whose figures they are.
        estimates: the lines of the summary, by model.
        comparisons: the paired differences.
        leading: by dataset, the measure that leads.
        leading_difference: by dataset, the measure whose differences lead.
        matters: by measure, the least difference that matters.
        all_pairs: whether each model was compared with each, and not all with one.
        alpha: the level of the tests.
    """

    page: Page
    estimates: Mapping[Key, Mapping[str, Estimate]]
    comparisons: Mapping[Key, Sequence[Comparison]]
    leading: Mapping[str, str]
    leading_difference: Mapping[str, str]
    matters: Mapping[str, float]
    all_pairs: bool
    alpha: float

    def keys(self, dataset: str) -> list[Key]:
        """The keys of a dataset's estimates: all queries, then slice by slice; the leading measure first."""
        found = [key for key in self.estimates if key[0] == dataset]
        slices = list(dict.fromkeys(part for _, part, _ in found))
        lead = self.leading[dataset]
        return sorted(found, key=lambda key: (key[1] != ALL, slices.index(key[1]), key[2] != lead))

    def ranked(self, key: Key) -> list[str]:
        """The models, the best first; those without a figure last."""
        return ranked(self.page.evaluation, self.board(key), key[2])

    def best_first(self, dataset: str) -> list[str]:
        """The models by the leading measure of a dataset: their order, and so their colours, in all of its charts."""
        return self.ranked((dataset, ALL, self.leading[dataset]))

    def board(self, key: Key) -> Board:
        """The lines of a key as a board of one measure."""
        return {model: {key[2]: line} for model, line in self.estimates[key].items()}

    def on_all(self, dataset: str) -> Sequence[Comparison]:
        """A dataset's leading comparisons on all queries."""
        return self.comparisons.get((dataset, ALL, self.leading_difference[dataset]), ())

    def sliced(self, dataset: str) -> list[Comparison]:
        """Its comparisons by the same measure on all queries and in every slice."""
        measure = self.leading_difference[dataset]
        own = (lines for key, lines in self.comparisons.items() if (key[0], key[2]) == (dataset, measure))
        return [line for lines in own for line in lines]

    def by_model(self, key: Key) -> Mapping[str, Comparison]:
        """The comparisons with the one baseline; none where each was compared with each."""
        return {} if self.all_pairs else {line.model: line for line in self.comparisons.get(key, ())}

    def letters(self, key: Key) -> Mapping[str, str]:
        """The letters of the models, where all pairs of them were compared; they begin with the best."""
        return letters_of(self.ranked(key), self.comparisons.get(key, ()), self.alpha)

    def baseline(self, dataset: str) -> str | None:
        """The one model that all others of a dataset were compared with, where there is one."""
        if self.all_pairs:
            return None
        of_dataset = (lines for key, lines in self.comparisons.items() if key[0] == dataset)
        return next((line.baseline for lines in of_dataset for line in lines), None)


def figures_of(page: Page) -> Figures:
    """The figures of a page, in the order of its record."""
    estimates: dict[Key, dict[str, Estimate]] = {}
    for line in page.evaluation.estimates:
        estimates.setdefault((line.dataset, line.slice, line.measure), {})[line.model] = line
    comparisons: dict[Key, list[Comparison]] = {}
    for compared in page.evaluation.comparison_lines:
        comparisons.setdefault((compared.dataset, compared.slice, compared.measure), []).append(compared)
    return Figures(
        page=page,
        estimates=estimates,
        comparisons=comparisons,
        leading=page.evaluation.leading,
        leading_difference=page.evaluation.leading_difference,
        matters=page.matters,
        all_pairs=(page.manifest.get("comparison") or {}).get("baseline") == "all_pairs",
        alpha=1 - page.manifest["bootstrap"]["confidence"],
    )
