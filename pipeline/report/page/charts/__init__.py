"""The charts of a page; None stands for one that has nothing to show.

A chart is as wide as its column, and drawn for one of 360 pixels. A model has its colour, dash and mark by its place in
`models`, so that it looks the same in all curves of a dataset that are given the same order.
"""

from pipeline.report.page.charts.chart import Chart
from pipeline.report.page.charts.curves import by_cutoff, judged_by_rank, precision_recall
from pipeline.report.page.charts.intervals import forest, slices
from pipeline.report.page.charts.nights import nights
from pipeline.report.page.charts.queries import distribution, scatter

__all__ = [
    "Chart",
    "by_cutoff",
    "distribution",
    "forest",
    "judged_by_rank",
    "nights",
    "precision_recall",
    "scatter",
    "slices",
]
