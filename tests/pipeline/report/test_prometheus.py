"""The text file for Prometheus, read by the parser of its own client."""

import re
from datetime import datetime
from itertools import pairwise
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.report.exports import metrics_text
from tests.support.handwritten_results import estimates, page

HOSTILE = 'a"b\\c{d}=e,\nf # HELP \\n é'


def families(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def text_of(model: str = "bm25", gate: str = "floor") -> str:
    lines = [
        *estimates("web", {model: {"ap": 0.5, "rr": None}}),
        *estimates("web", {model: {"ap": 0.1}}, slice="lang=de"),
    ]
    verdicts = [
        Verdict(gate, "web", model, "ap", "all", "fail", "fail", "it fell"),
        Verdict(gate, "web", model, "rr", "all", "pass", "pass", ""),
    ]
    found = page(lines, (), verdicts, [Failure("web", "lost", "gone")])
    return metrics_text(found.evaluation, found.manifest.model_copy(update={"date": "2026-11-20"}))


def test_its_samples_are_the_figures_and_verdicts():
    found = families(text_of())
    own = {"evaluation": "nightly"}
    figure = {**own, "dataset": "web", "model": "bm25", "measure": "ap"}

    def samples(name: str) -> list[tuple[dict[str, str], float]]:
        return [(sample.labels, sample.value) for sample in found[name].samples]

    assert samples("rankledger_estimate") == [(figure, 0.5)]
    assert samples("rankledger_estimate_ci_low") == [(figure, 0.4)]
    assert samples("rankledger_estimate_ci_high") == [(figure, 0.6)]
    assert samples("rankledger_failed_outputs") == [(own, 1)]
    assert {labels["state"]: value for labels, value in samples("rankledger_state")} == {
        "passed": 0, "failed": 1, "inconclusive": 0, "incomplete": 0,
    }  # fmt: skip
    assert {labels["effect"]: value for labels, value in samples("rankledger_gate_verdicts")} == {
        "pass": 1, "warn": 0, "stop": 0, "fail": 1,
    }  # fmt: skip
    assert samples("rankledger_night_timestamp_seconds") == [
        (own, datetime.fromisoformat("2026-11-20T00:00:00+00:00").timestamp())
    ]


def test_it_is_what_promtool_asks_for():
    text = text_of()
    lines = text.splitlines()
    names = [re.split(r"[{ ]", line.removeprefix("# HELP ").removeprefix("# TYPE "))[0] for line in lines]
    series = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]

    assert text.endswith("\n")
    assert [name for name, following in pairwise(names) if name != following] + names[-1:] == [*dict.fromkeys(names)]
    for name in dict.fromkeys(names):
        own = [line for line, of in zip(lines, names, strict=True) if of == name]
        assert own[0].startswith(f"# HELP {name} ")
        assert own[1] == f"# TYPE {name} gauge"
        assert sum(line.startswith("#") for line in own) == 2
        assert re.fullmatch("rankledger_[a-z_]+", name)
        assert not name.endswith(("_total", "_count", "_sum", "_bucket", "_info"))
    assert len(series) == len({*series})


def test_labels_are_escaped():
    text = text_of(HOSTILE, HOSTILE)
    found = families(text)
    model = found["rankledger_estimate"].samples[0].labels["model"]

    assert model == 'a"b\\c{d}=e,\\nf # HELP \\n é'
    assert {sample.labels["gate"] for sample in found["rankledger_gate_verdicts"].samples} == {model}


def test_an_evaluation_without_gates_has_no_metric_of_them():
    found = page(estimates("web", {"bm25": {"ap": 0.5}}))

    assert "gate" not in metrics_text(found.evaluation, found.manifest.model_copy(update={"date": "2026-11-20"}))
