"""The history of a figure as people read it."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from rich.cells import cell_len

from rankledger.pipeline.commands.browse import FigureMatch, RecordList, figure_matches, record_list
from rankledger.pipeline.history.history import History, Night, Series
from rankledger.pipeline.inference.changepoints import FalseSteps, LevelChange
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.record.manifest_parts import InputChange
from rankledger.pipeline.report.changes import history_data, history_markdown, history_tables
from tests.support.terminal import table_rows

RATES = (
    FalseSteps("independent nights", 60, 0.021, 0.05, 0.0),
    FalseSteps("heavy tails", 60, 0.013, 0.034, 0.0),
    FalseSteps("correlation 0.3", 60, 0.054, 0.447, 0.3),
    FalseSteps("correlation 0.9", 60, 0.148, 1.0, 0.9),
)
HOSTILE = "[red]a|b[/red] *x*\x1b[2J"


def night(number: int, estimate: float | None = 0.4, **changes: Any) -> Night:
    low, high = (None, None) if estimate is None else (estimate - 0.1, estimate + 0.1)
    plain = Night(
        f"2026-01-{number:02}", f"id-{number}", estimate, low, high, 0.05, 1_200, "", None, "", "c0ffee1234567"
    )
    return replace(plain, **changes)


def history(*nights: Night, direction: str = "higher", model: str = "bm25", **changes: Any) -> History:
    series = Series((), 0.25, 0.01, RATES, dataset="web", model=model, nights=nights)
    return History("nightly", "ap", direction, (replace(series, **changes),))


def shown(found: History, *, last: int | None = None, width: int = 120) -> str:
    return history_tables(found, last=last, width=width, colour=False)


def rows(text: str) -> list[list[str]]:
    return [row for row in table_rows(text) if row[0].startswith("2026")]


def bars(text: str) -> list[str]:
    header, *lines = (line for line in text.splitlines() if line.startswith((" night", " 2026")))
    begin = header.index("value") + len("value") + 2
    return [line[begin : begin + 24] for line in lines]


def test_a_row_has_the_night_its_figure_and_what_happened():
    second = night(
        2,
        0.45,
        change=0.05,
        gates="fail",
        mark="sparse",
        commit="deadbeef1234",
        breaks=(InputChange("definition", "f", "g"),),
    )
    found = rows(shown(history(night(1), second), width=200))

    assert [row[:2] + row[3:] for row in found] == [
        ["2026-01-01", "0.4000", "", "1,200", "", ""],
        ["2026-01-02", "0.4500", "+0.0500", "1,200", "fail", "definition changed, sparse, commit deadbeef"],
    ]


def test_all_that_changed_is_named_in_the_night():
    second = night(2, breaks=(InputChange("judgments", None, "j1"), InputChange("rankledger", "0.1.0", "0.2.0")))
    (_, found) = rows(shown(history(night(1), second), width=200))

    assert found[-1] == "judgments changed, rankledger 0.1.0 → 0.2.0"


def test_bars_are_drawn_on_one_scale():
    """The least end stands at the left edge and the greatest at the right; a figure in the middle of both is half-way.

    From 0.3 to 0.7 in 24 cells: 0.4 is at 23 · 0.1 / 0.4 = 5.75, the 7th cell; 0.5 at 11.5, rounded to even, the 13th.
    """
    first, second = bars(shown(history(night(1, 0.4), night(2, 0.6))))

    assert first == "├─────●─────┤           "
    assert second == "            ├────●─────┤"
    assert "0.3000            0.7000" in shown(history(night(1, 0.4), night(2, 0.6)))


def test_a_figure_without_interval_is_a_point():
    (bar,) = bars(shown(history(night(1, ci_low=None, ci_high=None))))

    assert bar.strip() == "●"
    assert bar.index("●") == 12


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_tables_fit_the_terminal(width):
    marked = night(2, 0.45, change=-0.05, gates="fail", breaks=(InputChange("rankledger", "0.1.0", "0.2.0"),))

    assert max(cell_len(line) for line in shown(history(night(1), marked), width=width).splitlines()[:8]) <= width


@pytest.mark.parametrize(
    ("direction", "said"),
    [("higher", ", worse, for 7 nights"), ("lower", ", better, for 7 nights"), ("neither", "0.0010), for 7 nights")],
)
def test_steps_have_bounds_and_a_direction(direction, said):
    step = LevelChange("2026-01-02", "2026-01-01", "2026-01-03", 7, 0.41, 0.40, 0.001)
    found = history(*(night(number) for number in range(1, 9)), direction=direction, steps=(step,))
    line = "step 2026-01-02 (2026-01-01 to 2026-01-03): 0.4100 → 0.4000 (-0.0100, standard error 0.0010)"

    assert [row[-1] for row in rows(shown(found))][:3] == ["", "step -0.0100", ""]
    (step,) = (text for text in shown(found, last=2).splitlines() if text.startswith("step "))
    assert step.startswith(line)
    assert step.endswith(said)
    assert "1 step; nights differ by 0.25 standard errors of a figure, correlated by 0.01" in shown(found)


def test_a_step_that_may_be_drift_is_named_so():
    drift = LevelChange("2026-01-02", "2026-01-01", "2026-01-03", 7, 0.41, 0.40, 0.001, "step or drift")
    found = history(*(night(number) for number in range(1, 9)), steps=(drift,))

    assert rows(shown(found))[1][-1] == "step or drift -0.0100"
    assert "step or drift 2026-01-02 (2026-01-01 to 2026-01-03): 0.4100 → 0.4000" in shown(found)
    assert "0 steps and 1 step or drift; nights differ by" in shown(found)
    assert history_data(found, last=None)["series"][0]["steps"][0]["tier"] == "step or drift"


def test_the_rates_of_false_steps_stand_beside_them():
    step = LevelChange("2026-01-02", "2026-01-01", "2026-01-03", 7, 0.41, 0.40, 0.001)
    found = history(night(1), steps=(step,))
    said = "in 60 nights, step / step or drift: 2% / 5% (independent nights), 1% / 3% (heavy tails)"

    assert f"false alarms {said}" in shown(found, width=200)
    assert said in history_markdown(found, last=None).replace("\\", "")
    assert [rate["step"] for rate in history_data(found, last=None)["series"][0]["false_steps"]] == [
        0.021,
        0.013,
        0.054,
        0.148,
    ]
    walk = replace(found, series=(replace(found.series[0], correlation=0.99),))
    assert "in 60 nights, step / step or drift: 15% / 100% (correlation 0.9)\n" in shown(walk, width=200)
    assert "false alarms" not in shown(history(night(1)))


def test_an_isolated_night_is_marked():
    there = LevelChange("2026-01-02", "2026-01-02", "2026-01-02", 1, 0.4, 0.9, 0.001)
    back = LevelChange("2026-01-03", "2026-01-03", "2026-01-03", 5, 0.9, 0.4, 0.001)
    found = history(*(night(number) for number in range(1, 8)), steps=(there, back))

    assert [row[-1] for row in rows(shown(found))][:3] == ["", "step +0.5000 for 1 night", "step -0.5000"]
    first, second = (line for line in shown(found).splitlines() if line.startswith("step "))
    assert first.endswith(", better, for 1 night")
    assert second.endswith(", worse, for 5 nights")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"noise": None, "n_different": 2}, "steps need at least 8 nights whose figures differ; there are 2"),
        ({"noise": None, "n_different": 1}, "steps need at least 8 nights whose figures differ; there is 1"),
        ({"noise": 0.0}, "0 steps: most nights repeat the figure before, and every change is a step"),
        ({"correlation": 0.314}, "correlated by 0.31"),
    ],
)
def test_what_steps_rest_on_is_said(changes, said):
    assert said in shown(history(night(1), **changes))
    assert said in history_markdown(history(night(1), **changes), last=None).replace("\\", "")


def test_a_night_without_output_says_why():
    missing = night(2, None, failure="bm25.tsv: there is file not found; check the path", n_queries=0)
    text = shown(history(night(1), missing))

    assert rows(text)[1][:2] + rows(text)[1][3:] == ["2026-01-02", "", "", "", "", "not evaluated"]
    assert "2026-01-02 was not evaluated: bm25.tsv: there is file not found; check the path" in text.splitlines()


def test_the_last_nights_are_shown_and_all_are_counted():
    found = history(*(night(number) for number in range(1, 8)))

    assert [row[0] for row in rows(shown(found, last=2))] == ["2026-01-06", "2026-01-07"]
    assert "2 of 7 nights" in shown(found, last=2)
    data = history_data(found, last=2)["series"][0]
    assert (data["n_nights"], [row["date"] for row in data["nights"]]) == (7, ["2026-01-06", "2026-01-07"])
    assert json.loads(json.dumps(data)) == json.loads(json.dumps(data, allow_nan=False))


def test_hostile_names_stand_as_they_are():
    found = history(night(1), model=HOSTILE)

    assert "[red]a|b[/red] *x*\\x1b[2J on web" in shown(found)
    assert "\\[red\\]a\\|b\\[/red\\] \\*x\\*" in history_markdown(found, last=None)


ID = "20261120T020000Z-nightly-1f0c9a2b"
ENTRY = {
    "evaluation_id": ID,
    "name": "nightly",
    "date": "2026-11-20",
    "repeats": None,
    "n_models": 40,
    "n_datasets": 6,
    "n_failures": 0,
    "gates": "pass",
    "delivered": None,
    "wanted": True,
    "size": 1_234_567,
}


def figure(number: int, fingerprint: str = "f0") -> dict[str, Any]:
    line = Estimate("web", "bm25", "all", "ap", 0.43117, 0.4, 0.46, None, 7, 0, 0)
    where = {"evaluation_id": f"{ID[:-8]}{number:08x}", "date": "2026-11-20", "fingerprint": fingerprint}
    return vars(line) | where


def row(**changes: object) -> list[str]:
    (only,) = table_rows(record_list(RecordList("runs/records", (ENTRY | changes,)), width=120))
    return only


def test_an_evaluation_is_a_row():
    assert row() == [ID, "2026-11-20", "40", "6", "pass", "", "not yet", "1.2 MB"]
    assert row(n_failures=3, gates="fail")[4:6] == ["fail", "3"]
    assert row(repeats=ID)[1] == "2026-11-20 again"


@pytest.mark.parametrize(
    ("delivered", "wanted", "said"),
    [("2026-11-20T02:03Z", True, "delivered"), (None, True, "not yet"), (None, False, "")],
)
def test_whether_mlflow_has_it(delivered, wanted, said):
    assert row(delivered=delivered, wanted=wanted)[6] == said


@pytest.mark.parametrize(("size", "said"), [(999, "999 B"), (1_000, "1.0 kB"), (7_500_000_000, "7.5 GB")])
def test_sizes_are_in_powers_of_a_thousand(size, said):
    assert row(size=size)[7] == said


def test_ids_stand_whole_on_a_narrow_terminal():
    assert ID in record_list(RecordList("runs/records", (ENTRY,)), width=40)
    assert figure(1)["evaluation_id"] in figure_matches(FigureMatch("0.4312", "ap", 1, (figure(1),)), width=40)


def test_what_was_passed_over_is_said():
    assert record_list(RecordList("s3://eval/records", (), ("x: left out",)), width=80).endswith("\nx: left out\n")
    assert figure_matches(FigureMatch("1", "ap", 2, (), ("x: left out",)), width=80).splitlines() == [
        "no figure by ap in 2 records rounds to 1",
        "x: left out",
    ]


def test_a_figure_is_a_row():
    text = figure_matches(FigureMatch("0.4312", "ap", 2, (figure(1),)), width=120)

    assert text.startswith("ap that rounds to 0.4312: 1 in 2 records\n")
    assert table_rows(text) == [
        [figure(1)["evaluation_id"], "2026-11-20", "web", "bm25", "all", "0.431170", "[0.4000, 0.4600]"]
    ]


def test_the_same_figure_of_several_evaluations_is_one_row():
    match = FigureMatch("0.4312", "ap", 3, (figure(3), figure(2), figure(1, "f1"), figure(0)))
    rows = table_rows(figure_matches(match, width=160))

    assert [(cells_[0], cells_[-1]) for cells_ in rows] == [
        (figure(3)["evaluation_id"], "2 earlier"),
        (figure(1)["evaluation_id"], ""),
    ]
    assert len(asdict(match)["figures"]) == 4


def test_of_too_many_figures_the_last_are_shown():
    many = FigureMatch("0.4", "ap", 60, tuple(figure(number, f"f{number}") for number in range(60)))

    assert len(table_rows(figure_matches(many, width=120))) == 50
    assert "10 more; --json has all" in figure_matches(many, width=120)
    assert len(json.loads(json.dumps(asdict(many)))["figures"]) == 60


def test_unlike_definitions_are_said():
    assert "ap has 2 definitions in these records: f0, f1" in figure_matches(
        FigureMatch("0.43", "ap", 2, (figure(1), figure(2, "f1"))), width=120
    )
