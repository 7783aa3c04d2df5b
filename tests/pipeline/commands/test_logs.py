"""Measures of logs, from the config to the record: figures are ratios of sums over all rows, and sessions are drawn."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankledger
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.support.errors import InputError
from tests.oracle import LOGS_ORACLE
from tests.support.nights import write_config

MEASURES = (
    *("ctr", "ips", "ips(clip=2)", "snips", "dr", "ess", "dwell", "satisfied", "interleaving"),
    "ctr(average=query)",
)
COLUMNS = ("clicked", "dwell", "weight", "expected", "predicted", "team")
Log = dict[str, list[dict[str, float]]]


pytestmark = pytest.mark.usefixtures("folder")


def logged(seed: int, n_users: int = 40) -> Log:
    """By user, one to nine rows; the first user's have no weight."""
    rng = np.random.default_rng([seed])
    users: Log = {}
    for user in range(n_users):
        for row in range(int(np.random.default_rng(user).integers(1, 10))):
            clicked = float(rng.random() < 0.3)
            values = (clicked, clicked * rng.exponential(30), rng.exponential() * (user > 0), *rng.random(2), row % 2)
            users.setdefault(f"u{user}", []).append({"list": row // 3, **dict(zip(COLUMNS, values, strict=True))})
    return users


def written(logs: dict[str, Log], measures: tuple[str, ...] = MEASURES, **config: Any) -> Path:
    for model, log in logs.items():
        lines = [",".join(("query_id", "impression_id", *COLUMNS))]
        for user, rows in log.items():
            lines += [
                ",".join([user, f"i{row['list']}", *(repr(float(row[name])) for name in COLUMNS)]) for row in rows
            ]
        Path(f"{model}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    datasets = {"week": {"logs": [*measures], **config.pop("dataset", {})}}
    models = {model: {"outputs": f"{model}.csv"} for model in logs}
    return write_config(**{"name": "online", "datasets": datasets, "models": models, "suites": {}, **config})


def evaluate(config: Path) -> rankledger.Evaluation:
    return rankledger.evaluate_config(config, tracking=False)


def estimates(found: rankledger.Evaluation, model: str = "new") -> dict[str, Estimate]:
    return {line.measure: line for line in found.estimates if line.model == model and line.slice == "all"}


def oracle(text: str, rows: list[dict[str, float]]) -> float:
    name, _, rest = text.partition("(")
    return LOGS_ORACLE[name](rows, **({"clip": 2} if rest == "clip=2)" else {}))


def test_figures_are_of_all_rows_whoever_they_are_of():
    log = logged(1)
    every = [{**row, "list": 100 * number + row["list"]} for number, rows in enumerate(log.values()) for row in rows]

    found = estimates(evaluate(written({"new": log})))

    for text in MEASURES[:-1]:
        assert found[text].estimate == pytest.approx(oracle(text, every), rel=1e-9), text
        assert found[text].ci_low < found[text].estimate < found[text].ci_high, text
    own = [LOGS_ORACLE["ctr"](rows) for rows in log.values()]
    assert found["ctr(average=query)"].estimate == pytest.approx(np.mean(own), rel=1e-9)
    assert found["snips"].n_queries == len(log)


def test_the_spread_is_that_of_users():
    """The standard error of SNIPS is that of a ratio, by its linear part: √(n / (n - 1) Σ (a - θ b)²) / Σ b."""
    log = logged(2, n_users=300)
    tops = np.array([sum(row["weight"] * row["clicked"] for row in rows) for rows in log.values()])
    weights = np.array([sum(row["weight"] for row in rows) for rows in log.values()])
    apart = tops - tops.sum() / weights.sum() * weights
    found = estimates(evaluate(written({"new": log}, ("snips",), bootstrap={"resamples": 4000})))
    assert found["snips"].std_error == pytest.approx(np.sqrt(300 / 299 * (apart**2).sum()) / weights.sum(), rel=0.06)


@pytest.mark.parametrize(("measure", "times", "n_warnings"), [("ips", 3, 1), ("ips", 1, 0), ("ctr", 3, 0)])
def test_propensities_that_are_three_times_too_large_are_warned_of(measure, times, n_warnings):
    log = logged(2, n_users=300)
    for row in (row for rows in log.values() for row in rows):
        row["weight"] /= times

    found = evaluate(written({"new": log}, (measure,)))

    warnings = [str(warning) for warning in found.data_warnings]
    assert len(warnings) == n_warnings
    assert all(
        line.startswith("new on week: the weights average 0.3") and line.endswith("check 'weight'") for line in warnings
    )
    recorded = json.loads((found.record / "manifest.json").read_text(encoding="utf-8"))["warnings"]
    assert [f"{line['model']} on {line['dataset']}: {line['warning']}" for line in recorded] == warnings


def test_two_rankers_are_compared_over_the_rows_of_all_users():
    old, new = logged(3), logged(3)
    for row in old["u5"]:
        row["weight"] = 0.0

    found = evaluate(written({"old": old, "new": new}, comparison={"baseline": "old"}))

    (line,) = [line for line in found.comparison_lines if line.measure == "snips"]
    assert (line.estimate, line.baseline_estimate) == (
        estimates(found)["snips"].estimate,
        estimates(found, "old")["snips"].estimate,
    )


def test_a_session_table_slices_and_clusters_logs():
    log = logged(4)
    table = "query_id\tcountry\thousehold\n" + "".join(
        f"u{n}\t{'at' if n < 10 else 'de'}\th{n // 2}\n" for n in range(40)
    )
    Path("users.tsv").write_text(table, encoding="utf-8")
    dataset = {"queries": "users.tsv", "slices": ["country"], "cluster": "household"}

    found = evaluate(written({"new": log}, ("snips",), dataset=dataset))

    lines = {line.slice: line for line in found.estimates}
    rows = [row for user, own in log.items() if int(user[1:]) < 10 for row in own]
    assert lines["country=at"].estimate == pytest.approx(oracle("snips", rows), rel=1e-9)
    assert (lines["all"].n_queries, lines["all"].n_clusters) == (40, 20)


def test_a_gate_holds_a_log_against_an_earlier_record():
    """The sums are taken from the record: against itself, the night's log differs by exactly nothing."""
    log = logged(5)
    gate = {"models": "new", "against": "self@last_passed", "margin": 0.2}
    gates = [{"name": text, "measure": text, **gate} for text in ("ips", "snips", "interleaving")]
    _, found = [evaluate(written({"new": log}, gates=gates)) for _ in range(2)]
    assert [(verdict.outcome, verdict.estimate) for verdict in found.verdicts] == [("pass", 0)] * 3


def test_a_log_that_changed_differs_from_its_record_by_the_figures():
    evaluate(written({"new": logged(6)}))
    before = estimates(evaluate(written({"new": logged(6)})))["snips"].estimate
    after = estimates(evaluate(written({"new": logged(7)})))["snips"].estimate
    comparison = rankledger.compare("previous", "last", name="online")
    (line,) = [line for line in comparison.comparisons if line.measure == "snips"]
    assert line.difference == pytest.approx(after - before, rel=1e-9)


def test_the_same_rates_of_other_numbers_of_rows_have_changed():
    """Both nights u1 clicked half of what was shown and u2 nothing; of 2 + 2 and then 4 + 2 rows: 1/4 and 2/6."""
    click, none = ({"list": 0, **dict.fromkeys(COLUMNS, clicked)} for clicked in (1.0, 0.0))
    nights = [
        evaluate(written({"new": {"u1": [click, none] * n_times, "u2": [none, none]}}, ("ctr",)))
        for n_times in (1, 2, 2)
    ]
    reports = [rankledger.compare(f"{one.record}", f"{other.record}") for one, other in pairwise(nights)]

    assert [estimates(night)["ctr"].estimate for night in nights] == pytest.approx([1 / 4, 1 / 3, 1 / 3])
    assert [report.unchanged["week"] for report in reports] == [(), (("new", "new"),)]


def test_measures_of_logs_stand_with_the_dataset_and_have_no_documents_to_explain():
    """A suite cannot have them, `logs` no others."""
    path = written({"new": logged(1, 3)}, ("ctr", "rmse"))
    with pytest.raises(InputError, match=r"datasets\.week\.logs\[1\]: rmse is for ratings; put it in a suite"):
        rankledger.validate(path)
    path = written({"new": logged(1, 3)}, suites={"s": ["ctr"]})
    with pytest.raises(InputError, match=r"suites\.s\[0\]: ctr is for logs; write it under `logs` of a dataset"):
        rankledger.validate(path)

    # As no row says where a document would stand.
    with pytest.raises(InputError, match="ctr of 'week' is a measure of logs, which cannot be explained"):
        rankledger.explain(written({"new": logged(1, 3)}), model="new", query="u1", measure="ctr")
