"""An evaluation in the text format of Prometheus, for the textfile collector of its node exporter.

Reference:
    Prometheus, exposition formats, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import get_args

from rankledger.pipeline.gates.verdicts import Effect
from rankledger.pipeline.inference.tables import ALL, Estimate
from rankledger.pipeline.record.evaluation import Evaluation, State, find_state
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.report.text_table import printable

_Sample = tuple[Mapping[str, str], float]


def metrics_text(evaluation: Evaluation, manifest: Manifest) -> str:
    """Return the figures on all queries with their intervals, the state, the verdicts by gate, and the times.

    Names and labels stay the same from night to night: a gate has a series for each effect, an evaluation for each
    state. Undefined figures have none.
    """
    own = {"evaluation": evaluation.name}
    figures = [line for line in evaluation.estimates if line.slice == ALL]
    found = find_state(evaluation.verdicts, evaluation.failures, evaluation.data_warnings)
    states = [({**own, "state": state}, float(state == found)) for state in get_args(State)]
    began = datetime.fromisoformat(f"{manifest.date}T00:00:00+00:00")
    finished = datetime.fromisoformat(manifest.finished).astimezone(UTC)
    families = (
        ("rankledger_estimate", "Figure over all queries.", _figures(own, figures, "estimate")),
        ("rankledger_estimate_ci_low", "Lower end of its confidence interval.", _figures(own, figures, "ci_low")),
        ("rankledger_estimate_ci_high", "Upper end of its confidence interval.", _figures(own, figures, "ci_high")),
        ("rankledger_state", "1 for the state of the last night, 0 for the others.", states),
        ("rankledger_gate_verdicts", "Verdicts of each gate, by effect.", _gates(own, evaluation)),
        ("rankledger_failed_outputs", "Model outputs missing or refused.", [(own, len(evaluation.failures))]),
        ("rankledger_night_timestamp_seconds", "Start of the last night's day in UTC.", [(own, began.timestamp())]),
        ("rankledger_finished_timestamp_seconds", "When its evaluation ended.", [(own, finished.timestamp())]),
    )
    return "".join(line for name, text, samples in families for line in _family(name, text, samples))


def _figures(own: Mapping[str, str], lines: Iterable[Estimate], field: str) -> Iterator[_Sample]:
    for line in lines:
        value: float | None = getattr(line, field)
        if value is not None:
            yield {**own, "dataset": line.dataset, "model": line.model, "measure": line.measure}, value


def _gates(own: Mapping[str, str], evaluation: Evaluation) -> Iterator[_Sample]:
    counts = Counter((line.gate, line.effect) for line in evaluation.verdicts)
    for gate in dict.fromkeys(line.gate for line in evaluation.verdicts):
        for effect in get_args(Effect):
            yield {**own, "gate": gate, "effect": effect}, counts[gate, effect]


def _family(name: str, text: str, samples: Iterable[_Sample]) -> Iterator[str]:
    lines = [f"{name}{{{_labels(labels)}}} {float(value)!r}\n" for labels, value in samples]
    return iter([f"# HELP {name} {text}\n", f"# TYPE {name} gauge\n", *lines] if lines else [])


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())


def _escaped(value: str) -> str:
    return printable(value).replace("\\", "\\\\").replace('"', '\\"')
