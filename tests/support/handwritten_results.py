"""Pages of evaluations that are written by hand: figures, comparisons and what a manifest says of them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankledger.pipeline.data.joined import Failure, JoinStats
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import Comparison, Estimate
from rankledger.pipeline.report.page import Page
from tests.support.manifests import make_evaluation, whole
from tests.support.sample_page import compared

ID = "20261120T020000Z-nightly-1f0c9a2b"
COMPARED = {"baseline": "bm25", "test": "randomization", "correction": "maxt"}

Figures = Mapping[str, Mapping[str, float | None]]
"""By model and measure; an interval is a tenth wider on either side."""


def estimates(dataset: str, figures: Figures, slice: str = "all", n_queries: int = 300) -> list[Estimate]:
    return [
        Estimate(dataset, model, slice, measure, value, *_ends(value), 0.01, n_queries, 0, 0, n_queries)
        for model, own in figures.items()
        for measure, value in own.items()
    ]


def _ends(value: float | None) -> tuple[float | None, float | None]:
    return (None, None) if value is None else (value - 0.1, value + 0.1)


def comparison(model: str, difference: float, p_corrected: float, **changes: Any) -> Comparison:
    """A comparison with bm25 on web by ap, whose interval is 0.02 wide."""
    line = compared(
        model,
        difference,
        measure="ap",
        estimate=0.4 + difference,
        baseline_estimate=0.4,
        ci_low=difference - 0.01,
        ci_high=difference + 0.01,
        std_error=0.005,
        p_value=p_corrected / 2,
        p_corrected=p_corrected,
        effect_size=0.1,
        wins=20,
        ties=270,
        minimum_detectable_difference=0.02,
        n_queries=300,
        n_clusters=300,
    )
    return replace(line, **changes)


def page(
    lines: Sequence[Estimate],
    comparisons: Sequence[Comparison] = (),
    verdicts: Sequence[Verdict] = (),
    failures: Sequence[Failure] = (),
    *,
    directions: Mapping[str, str] | None = None,
    evaluation_id: str = ID,
    lead: Mapping[str, str] | None = None,
    **manifest: Any,
) -> Page:
    models = [*(line.model for line in lines), *(failure.model for failure in failures)]
    measures = dict.fromkeys(line.measure for line in lines)
    datasets = dict.fromkeys(line.dataset for line in lines)
    said = {
        "command": "rankledger evaluate nightly.yaml --jobs 2",
        "comparison": COMPARED if comparisons else None,
        "definitions": {
            measure: {"fingerprint": hashlib.sha256(measure.encode()).hexdigest()[:16]} for measure in measures
        },
        "datasets": {dataset: {"digests": {"judgments": f"r-{dataset}"}} for dataset in datasets},
        "models": {model: {"owner": None} for model in dict.fromkeys(models)},
    }
    evaluation = make_evaluation(
        evaluation_id=evaluation_id,
        directions=dict.fromkeys(measures, "higher") | dict(directions or {}),
        results=(),
        estimates=tuple(lines),
        quality={(line.dataset, line.model): JoinStats(5_000, 0, 0, 0.125) for line in lines if line.dataset != "*"},
        failures=tuple(failures),
        record=Path("runs/records") / evaluation_id,
        comparison_lines=tuple(comparisons),
        verdicts=tuple(verdicts),
        lead=lead or {},
    )
    return Page("nightly", evaluation, whole(said | manifest))
