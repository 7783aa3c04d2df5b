"""Curves: interpolated precision by recall, and measures by their cutoff."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.report.boards import called
from pipeline.report.page import charts
from pipeline.report.page.blocks import Drawing, Drawings, Part, Section, shown
from pipeline.report.page.figures import Figures

__all__ = ["curves"]


def curves(figures: Figures) -> Section | None:
    """The curves of each dataset, the best models first; None where there are none."""
    parts = []
    for dataset in figures.leading:
        drawn = tuple(_drawings(figures, dataset))
        if drawn:
            parts.append(Part(shown(called(dataset)), (Drawings(drawn),)))
    return Section("curves", "Curves", tuple(parts)) if parts else None


def _drawings(figures: Figures, dataset: str) -> Iterator[Drawing]:
    models = figures.best_first(dataset)
    precision = charts.precision_recall(dataset, figures.page.curves, models)
    if precision:
        yield Drawing(f"precision-{shown(dataset)}", precision)
    for place, chart in enumerate(charts.by_cutoff(dataset, figures.page.evaluation.estimates, models), start=1):
        yield Drawing(f"cutoffs-{shown(dataset)}-{place}", chart)
