"""The list of evaluations and the figures found, as people read them."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from rankledger.pipeline.record.upkeep import FigureMatch, RecordedFigure, RecordList, RecordSummary
from rankledger.pipeline.report.changes import figure_matches, record_list

ID = "20261120T020000Z-nightly-1f0c9a2b"
ENTRY = RecordSummary(ID, "nightly", "2026-11-20", None, 40, 6, 0, "pass", None, wanted=True, size=1_234_567)


def cells(text: str) -> list[list[str]]:
    """The rows of the table, cell by cell."""
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line[:1] == "│"]


def figure(number: int, fingerprint: str = "f0") -> RecordedFigure:
    return RecordedFigure(
        f"{ID[:-8]}{number:08x}", "2026-11-20", "web", "bm25", "all", "ap", 0.43117, 0.4, 0.46, fingerprint
    )


def row(**changes: object) -> list[str]:
    """The row of an evaluation that differs in these."""
    (only,) = cells(record_list(RecordList("runs/records", (RecordSummary(**{**vars(ENTRY), **changes}),)), width=120))
    return only


def test_an_evaluation_is_a_row():
    """Its id, night, counts, gates, delivery and size; nothing where nothing failed."""
    assert row() == [ID, "2026-11-20", "40", "6", "pass", "", "not yet", "1.2 MB"]
    assert row(n_failures=3, gates="fail")[4:6] == ["fail", "3"]
    assert row(repeats=ID)[1] == "2026-11-20 again"


@pytest.mark.parametrize(
    ("delivered", "wanted", "said"),
    [("2026-11-20T02:03Z", True, "delivered"), (None, True, "not yet"), (None, False, "")],
)
def test_whether_mlflow_has_it(delivered, wanted, said):
    """Delivered, not yet, or not to be delivered at all."""
    assert row(delivered=delivered, wanted=wanted)[6] == said


@pytest.mark.parametrize(("size", "said"), [(999, "999 B"), (1_000, "1.0 kB"), (7_500_000_000, "7.5 GB")])
def test_sizes_are_in_powers_of_a_thousand(size, said):
    """With one decimal, from a kilobyte on."""
    assert row(size=size)[7] == said


def test_ids_stand_whole_on_a_narrow_terminal():
    """The table is rather wider than a line that nobody can copy."""
    assert ID in record_list(RecordList("runs/records", (ENTRY,)), width=40)
    assert figure(1).evaluation_id in figure_matches(FigureMatch("0.4312", "ap", 1, (figure(1),)), width=40)


def test_what_was_passed_over_is_said():
    """Below the table; with nothing found, too."""
    assert record_list(RecordList("s3://eval/records", (), ("x: left out",)), width=80).endswith("\nx: left out\n")
    assert figure_matches(FigureMatch("1", "ap", 2, (), ("x: left out",)), width=80).splitlines() == [
        "no figure by ap in 2 records rounds to 1",
        "x: left out",
    ]


def test_a_figure_is_a_row():
    """With six decimals, which tell it from its neighbours."""
    text = figure_matches(FigureMatch("0.4312", "ap", 2, (figure(1),)), width=120)

    assert text.startswith("ap that rounds to 0.4312: 1 in 2 records\n")
    assert cells(text) == [
        [figure(1).evaluation_id, "2026-11-20", "web", "bm25", "all", "0.431170", "[0.4000, 0.4600]"]
    ]


def test_the_same_figure_of_several_evaluations_is_one_row():
    """That of the last one, and how many earlier ones have it; JSON has all."""
    match = FigureMatch("0.4312", "ap", 3, (figure(3), figure(2), figure(1, "f1"), figure(0)))
    rows = cells(figure_matches(match, width=160))

    assert [(cells_[0], cells_[-1]) for cells_ in rows] == [
        (figure(3).evaluation_id, "2 earlier"),
        (figure(1).evaluation_id, ""),
    ]
    assert len(asdict(match)["figures"]) == 4


def test_of_too_many_figures_the_last_are_shown():
    """Fifty, and how many more there are; JSON has all."""
    many = FigureMatch("0.4", "ap", 60, tuple(figure(number, f"f{number}") for number in range(60)))

    assert len(cells(figure_matches(many, width=120))) == 50
    assert "10 more; --json has all" in figure_matches(many, width=120)
    assert len(json.loads(json.dumps(asdict(many)))["figures"]) == 60


def test_unlike_definitions_are_said():
    """The same name may mean two things in two records."""
    assert "ap has 2 definitions in these records: f0, f1" in figure_matches(
        FigureMatch("0.43", "ap", 2, (figure(1), figure(2, "f1"))), width=120
    )
