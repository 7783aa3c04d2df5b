"""Plans from records: worked by hand, at the level of the gates, for clusters and slices; and what is refused."""

import csv
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.commands.plan import notes
from rankledger.pipeline.history.comparison import PowerPlan
from rankledger.pipeline.inference.power import PowerLine
from rankledger.pipeline.support.errors import InputError
from tests.support.nights import write_config
from tests.support.terminal import table_rows

N = 200
SCORES = {"scores": {"faithful": {"range": [0, 1]}}}
ALTERNATING = [0.6, 0.4] * (N // 2)  # differences of +0.1 and -0.1 from 0.5: s² = 0.01 · 200 / 199


def evaluate(
    folder: Path, scores: Iterable[float] = ALTERNATING, queries: str = "", *, name: str = "made", **config: Any
) -> rankledger.Evaluation:
    """An evaluation of external scores: the baseline has 0.5 on every query, and `dense` has these."""
    folder.mkdir(parents=True, exist_ok=True)
    scores = list(scores)
    for model, own in (("base", [0.5] * len(scores)), ("dense", scores)):
        lines = [f"q{i:03},{value}\n" for i, value in enumerate(own)]
        (folder / f"{model}.csv").write_text("query_id,faithful\n" + "".join(lines), encoding="utf-8")
    dataset = dict(SCORES)
    if queries:
        (folder / "queries.csv").write_text(queries, encoding="utf-8")
        dataset["queries"] = "queries.csv"
    models = {model: {"outputs": f"{model}.csv"} for model in ("base", "dense")}
    sections = {"datasets": {"web": dataset}, "models": models, "suites": {}, "comparison": {"baseline": "base"}}
    path = write_config(folder, name=name, **sections | config)
    return rankledger.evaluate_config(path, tracking=False, runs_dir=folder / "runs")


def planned(evaluation: rankledger.Evaluation, margin: float = 0.02, **options: Any) -> PowerPlan:
    return rankledger.plan(evaluation.record, margin=margin, runs_dir=evaluation.record.parent.parent, **options)


def line_of(found: PowerPlan, slice: str = "all") -> PowerLine:
    (line,) = [line for line in found.lines if line.slice == slice]
    return line


def markets(n: int) -> str:
    return "query_id,market\n" + "".join(f"q{i:03},{'de' if i < n else 'us'}\n" for i in range(N))


@pytest.fixture(scope="module")
def alternating(tmp_path_factory) -> rankledger.Evaluation:
    return evaluate(tmp_path_factory.mktemp("alternating"))


def test_a_plan_worked_by_hand(alternating):
    """(2.8016 · 0.1 / 0.02)² = 196, with the t quantiles 198: as many as there are, so that their power is 80%."""
    line = line_of(planned(alternating))
    assert line.std_dev == pytest.approx(math.sqrt(0.01 * N / (N - 1)))
    assert line.kappa == pytest.approx(N)  # all are as far from their mean
    assert line.queries_needed == line.clusters_needed == pytest.approx(198, abs=2)
    assert line.power == pytest.approx(0.8, abs=0.01)
    assert line.detectable == pytest.approx(0.02, rel=0.01)
    assert line.mark == ""
    assert line.queries_low == line.queries_high == line.queries_needed  # all as large: s² has no error

    # A drop of 0.03 against a margin of 0.05 is as far from the limit as no change against 0.02.
    assert (
        line_of(planned(alternating, 0.05, change=-0.03)).queries_needed == line_of(planned(alternating)).queries_needed
    )

    found = planned(alternating)
    sizes = [point.n_queries for point in found.points]
    powers = [point.power for point in found.points if point.power is not None]
    assert sizes == [50, 100, 200, 500]
    assert powers == sorted(powers)
    assert found.curve["power"].to_list() == powers
    assert found.points[2].power == pytest.approx(0.8, abs=0.01)
    assert all(point.power_low <= point.power <= point.power_high for point in found.points)
    assert found.needed["queries_needed"].to_list() == [line_of(found).queries_needed]


def test_an_error_that_is_lower_is_better(tmp_path):
    losses = [0.8 if i % 10 == 0 else 0.48 for i in range(N)]
    higher = evaluate(tmp_path / "higher", [1 - value for value in losses])
    lower = {"web": {"scores": {"faithful": {"range": [0, 1], "direction": "lower"}}}}
    assert line_of(planned(evaluate(tmp_path / "lower", losses, datasets=lower))).queries_needed == pytest.approx(
        line_of(planned(higher)).queries_needed, abs=1
    )


@pytest.mark.parametrize("further", [{}, {"slices": ["market"]}, {"looks": {"changed_outputs": 90}}])
def test_the_level_is_that_at_which_gates_pass(tmp_path, further, run_cli):
    """The end that decides a pass is that of one line, with slices and looks, too: 198 queries as by hand."""
    datasets = {"web": {**SCORES, "queries": "queries.csv", "slices": ["market"]}}
    gate = {"name": "no-worse", "models": "dense", "measure": "faithful", "against": "base", "margin": 0.02}
    evaluation = evaluate(tmp_path, queries=markets(120), datasets=datasets, gates=[gate | further])
    found = planned(evaluation, slices=True)

    assert {verdict.confidence for verdict in evaluation.verdicts} == {0.95}
    assert [line.queries_needed for line in found.lines] == pytest.approx([198] * 3, rel=0.02)
    printed = " ".join(run_cli("plan", evaluation.record, "--margin", "0.02", "--slices").out.split())
    assert "level: 95%, bootstrap.confidence, at which a gate passes however many lines it has" in printed


def test_clusters_are_planned_and_their_queries_counted(tmp_path):
    """Two queries of each user score alike: as many clusters are needed as queries were, 198."""
    queries = "query_id,user\n" + "".join(f"q{i:03},u{i // 2}\n" for i in range(N))
    scores = [value for value in ALTERNATING[: N // 2] for _ in range(2)]
    dataset = {**SCORES, "queries": "queries.csv"}
    found = planned(evaluate(tmp_path, scores, queries, datasets={"web": dataset}, cluster="user"))
    line = line_of(found)

    assert (line.n_queries, line.n_clusters) == (N, N // 2)
    assert line.clusters_needed == pytest.approx(199, abs=3)
    assert line.queries_needed == 2 * line.clusters_needed
    assert all(point.n_queries == 2 * point.n_clusters for point in found.points)


def test_slices_that_are_too_small_are_named(tmp_path):
    """20 queries of one market are too few, the other 180 need as many as all do."""
    queries = markets(20)
    dataset = {**SCORES, "queries": "queries.csv", "slices": ["market"]}
    found = planned(evaluate(tmp_path, queries=queries, datasets={"web": dataset}), slices=True)
    few = line_of(found, "market=de")

    assert (few.mark, few.queries_needed) == ("few", None)
    assert few.reason == (
        "web, market=de: faithful of dense against base: 20 queries are too few to plan by; "
        "use a record with at least 30"
    )
    assert line_of(found, "market=us").mark == ""


def test_the_fewest_queries_are_said_to_be_the_fewest(alternating, run_cli):
    """30 pass any margin of 0.2: the number is that of the rule, and its interval has no width."""
    line = line_of(planned(alternating, 0.2))
    printed = run_cli("plan", alternating.record, "--margin", "0.2").out
    assert line.clusters_needed == line.queries_low == line.queries_high == 30
    assert "the fewest queries that are planned, whatever the margin" in printed


def test_two_records_are_compared(tmp_path):
    before = evaluate(tmp_path / "before", [0.5] * N)
    after = evaluate(tmp_path / "after")
    found = planned(after, against=str(before.record))

    assert [(line.model, line.baseline, line.mark) for line in found.lines] == [
        ("base", "base", "degenerate"),
        ("dense", "dense", ""),
    ]
    assert found.lines[1].queries_needed == pytest.approx(198, abs=2)
    ids = f"{after.evaluation_id} against {before.evaluation_id}"
    assert f"planned by {ids}; intervals are due to the variance being an estimate" in notes(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0.0}, "no number of queries passes it reliably"),
        ({"margin": 0.02, "change": -0.02}, "no number of queries passes it reliably"),
        ({"margin": math.nan}, "--margin: found nan; write a finite number"),
        ({"change": math.inf}, "--change: found inf; write a finite number"),
        ({"power": 80}, "--power: found 80; write a share from 0.5 to below 1"),
        ({"margin": 2.0}, "faithful is from 0 to 1; write both on its scale"),
        ({"measure": "faithfull"}, "does not have 'faithfull'; available: faithful; did you mean 'faithful'?"),
        ({"record": "last#base"}, "compares 'base' with no other model; name one by --against"),
    ],
)
def test_what_cannot_be_planned_is_refused(alternating, options, message):
    options = {"record": alternating.record, "margin": 0.02, "name": None} | options
    if options["record"] != alternating.record:
        options["name"] = "made"

    with pytest.raises(InputError) as error:
        rankledger.plan(runs_dir=alternating.record.parent.parent, **options)

    assert message in str(error.value)
    assert len(error.value.lines) == 1


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.5] * 198 + [1.0, 0.0], "the variance rests on about 2 of 200 queries, too few to plan by; use a record"),
        ([0.5] * N, "the scores are the same on all 200 queries, which plans nothing; use models that differ on some"),
        ([0.75] * N, "all 200 queries differ alike, which plans nothing; use models that differ on some"),
        (ALTERNATING[:29], "29 queries are too few to plan by; use a record with at least 30"),
    ],
)
def test_too_few_queries_that_differ_are_refused(tmp_path, scores, message):
    with pytest.raises(InputError) as error:
        planned(evaluate(tmp_path, scores))
    assert str(error.value).startswith("web: faithful of dense against base: ")
    assert message in str(error.value)


def test_records_without_common_queries_or_a_comparison_are_refused(tmp_path):
    before = evaluate(tmp_path / "before")
    other = {"other": SCORES}
    after = evaluate(tmp_path / "after", datasets=other)

    with pytest.raises(InputError, match="the two share no dataset, query and measure"):
        planned(after, against=before.record)

    with pytest.raises(InputError, match="its config compares no models; name what to compare with, as --against"):
        planned(evaluate(tmp_path, comparison=None))


def test_the_command_and_the_page_show_what_the_function_returns(alternating, run_cli):
    words = ["plan", alternating.record, "--margin", "0.02"]
    table, markdown, text = (
        run_cli(*words, *option).out for option in ([], ["--markdown"], ["--json", "--csv", "curve.csv"])
    )
    needed = str(line_of(planned(alternating)).queries_needed)

    assert table.startswith("faithful: margin 0.02, true change 0, power 0.8\n\nweb: queries needed\n")
    assert any(needed in row for row in table_rows(table))
    assert f"| {needed} |" in markdown
    assert json.loads(text)["needed"][0]["queries_needed"] == int(needed)
    rows = list(csv.DictReader(Path("curve.csv").read_text(encoding="utf-8").splitlines()))
    assert [float(row["power"]) for row in rows] == [point["power"] for point in json.loads(text)["curve"]]

    run_cli("plan", alternating.record, "--margin", "0.02", "--html", "plan.html")
    page = Path("plan.html").read_text(encoding="utf-8")
    assert f">{line_of(planned(alternating)).queries_needed}</td>" in page
    assert "<svg" in page
    assert "Power by number of queries on web" in page
    assert re.search(r"dense against base,200\.0,0\.80\d+,", page)

    # `2%` is what a gate may have, and what cannot be planned.
    code, _, err = run_cli("plan", alternating.record, "--margin", "2%")
    assert code == 2
    assert "relative margins cannot be planned; write one on the measure's scale, such as 0.01" in " ".join(err.split())
