"""What moved, as it is printed: which tables there are, what stands in a row, and what a name cannot do."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rankledger.pipeline.history.comparison import (
    ChangePart,
    ChangeSplit,
    ComparisonReport,
    DatasetFigure,
    RecordPair,
    Side,
)
from rankledger.pipeline.inference.tables import QueryChange, RankedDocument, SliceChange
from rankledger.pipeline.report.changes import comparison_data, comparison_markdown, comparison_screen
from tests.support.sample_page import compared
from tests.support.terminal import table_rows

LINE = compared(
    "bm25",
    -0.05,
    measure="rr",
    ci_low=-0.08,
    ci_high=-0.02,
    std_error=0.015,
    p_value=0.00004,
    p_corrected=0.0123,
    family="1 pair",
    effect_size=-0.2,
    wins=1_000,
    ties=20,
    losses=3,
    minimum_detectable_difference=0.04,
    n_queries=1_023,
    n_clusters=1_023,
)
DOCUMENTS = (
    RankedDocument("same", 1.0, 2, 2),
    RankedDocument("d4", 2.0, 3, 17),
    RankedDocument("new", 0.5, None, 1),
    RankedDocument("gone", 1.0, 4, None),
    RankedDocument("fourth", 1.0, 5, 6),
    RankedDocument("never", 1.0, None, None),
)
QUERY = QueryChange("web", "bm25", "bm25", "rr", "q1", 1.0, 0.25, -0.75, DOCUMENTS)
SIDE = Side("last_passed", "20261120T020000Z-nightly-1f0c9a2b", Path("runs"), "2026-11-20T03:00:00+01:00", "abc", False)
CANDIDATE = replace(SIDE, evaluation_id="20261121T020000Z-nightly-2f0c9a2b", commit="f" * 40, dirty=True)


def pairs(*models: tuple[str, str]) -> tuple[RecordPair, ...]:
    return (RecordPair(SIDE, CANDIDATE, models),)


def movement(**changes: object) -> ComparisonReport:
    plain = ComparisonReport(
        records=pairs(("bm25", "bm25")),
        unlike=(),
        moved=True,
        comparisons=(LINE,),
        leading={"web": "rr"},
        largest_changes=(QUERY,),
        figures=(),
        splits=(),
        confidence=0.9,
        remarks=(),
        slice_changes=(),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def shown(found: ComparisonReport, *, width: int = 200) -> str:
    return comparison_screen(found, width=width, colour=False, everything=True)


def screen(found: ComparisonReport, *, width: int = 100) -> str:
    return comparison_screen(found, width=width, colour=False)


def row(text: str, *cells: str) -> list[str]:
    (found,) = [cells_found for cells_found in table_rows(text) if set(cells) <= set(cells_found)]
    return found


def test_a_difference_in_its_row():
    assert row(shown(movement()), "rr") == [
        *("rr", "0.500", "0.450", "-0.050 [-0.080, -0.020]", "0.0123", "1,000 / 20 / 3")
    ]


def test_documents_that_moved_are_named_and_the_rest_is_counted():
    cells = row(shown(movement()), "q1")

    assert cells[-1] == (
        "d4 (grade 2): 3 → 17, new (grade 0.5): not retrieved → 1, gone (grade 1): 4 → not retrieved, 1 more"
    )


def test_slices_in_which_it_changed_come_first():
    where = SliceChange("web", "bm25", "bm25", "rr", "family=internet", 59, 300, 0.543, 0.163, -0.38, 1.12,
                        0.5, 0.433, -6.1, 0.00049975, 0.000249875)  # fmt: skip
    said = "family=internet, 59 of 300 queries, 0.5430 → 0.1630, accounts for 112% of the drop (p 0.0005)"
    found = movement(slice_changes=(where,))
    least = movement(slice_changes=(replace(where, p_least=where.p_value),))
    several = replace(found, records=pairs(("bm25", "bm25"), ("dense", "bm25")), leading={"web": "rr", "shop": "rr"})

    for text in (shown(found), screen(found, width=200), comparison_markdown(found)):
        assert text.index("WORSE") < text.index(f"where rr changed: {said}") < text.index("BASE")
    assert f"where rr of bm25 on web changed: {said}" in shown(several)
    assert "of the drop (p ≤.0005)" in shown(least)


@pytest.mark.parametrize(("documents", "said"), [(None, ""), ((), "none"), (DOCUMENTS[:1], "at the ranks they had")])
def test_documents_that_did_not_move(documents, said):
    ranked = replace(QUERY, query_id="q2")

    assert row(shown(movement(largest_changes=(replace(QUERY, documents=documents), ranked))), "q1")[-1] == said


def test_models_are_named_where_there_are_several_pairs():
    other = replace(LINE, model="dense", measure="ap")
    text = shown(movement(records=pairs(("bm25", "bm25"), ("dense", "bm25")), comparisons=(LINE, other)))

    assert row(text, "rr")[0] == "bm25"
    assert row(text, "ap")[0] == "dense against bm25"


def test_models_that_did_not_move_are_named_below_and_have_no_rows():
    still = replace(LINE, model="dense", difference=0.0, mark="degenerate")
    both = pairs(("bm25", "bm25"), ("dense", "dense"))
    text = shown(movement(records=both, comparisons=(LINE, still), unchanged={"web": (("dense", "dense"),)}))

    assert text.splitlines()[:2] == ["WORSE  1 of 1 by rr: bm25", "SAME   dense: the same score on every query"]
    assert row(text, "rr")[0] == "bm25"
    assert not any(line.startswith(" dense") for line in text.splitlines())


def test_slices_of_the_leading_measure_by_their_evidence():
    slices = (
        replace(LINE, slice="market=de", difference=0.01),
        replace(LINE, slice="market=se", difference=-0.2, n_clusters=29, mark="sparse"),
        replace(LINE, slice="market=us", difference=0.0),
        replace(LINE, slice="market=de", measure="ap"),
    )
    text = shown(movement(comparisons=(LINE, *slices)))

    lines = [line for line in text.splitlines() if "market=" in line]
    assert ["market=se" in line for line in lines] == [False, True]
    assert row(text, "market=se")[-1] == "few decide, under 30, not judged"
    assert row(text, "market=de")[-1] == ""


def test_an_end_that_is_but_rounding_is_0_and_counts_as_neither():
    """What is left of 0.1 + 0.2 - 0.3 has a sign, and is no difference."""
    lines = (
        replace(LINE, difference=0.05, ci_low=1.2e-15, ci_high=0.08, p_corrected=0.2),
        replace(LINE, measure="ap", ci_high=-1.2e-15, p_corrected=0.2),
        replace(LINE, measure="p@1", difference=1e-16, ci_low=-1.2e-15, ci_high=1.2e-15),
    )
    text = shown(movement(comparisons=lines))

    assert text.startswith("UNCLEAR  1 of 1 by rr: bm25\n")
    assert row(text, "rr")[3] == "+0.050 [0.000, +0.080]"
    assert row(text, "ap")[3] == "-0.050 [-0.080, 0.000]"
    assert row(text, "p@1")[3] == "0.000 [0.000, 0.000]"


def test_the_verdict_counts_by_the_corrected_p_value():
    """At 0.1 it counts 0.0123, marked or not, and whatever the interval; 0.1 itself and 0.3 are not below it."""
    lines = (
        LINE,
        replace(LINE, model="sparse", baseline="sparse", mark="sparse"),
        replace(LINE, model="wide", baseline="wide", ci_high=0.01),
        replace(LINE, model="edge", baseline="edge", p_corrected=0.1),
        replace(LINE, model="unclear", baseline="unclear", difference=0.05, p_corrected=0.3),
        replace(LINE, model="up", baseline="up", difference=0.05, p_corrected=0.02),
    )

    lines_of = screen(movement(comparisons=lines, records=pairs(*((line.model, line.model) for line in lines))))

    assert lines_of.splitlines()[:3] == [
        "WORSE    3 of 6 by rr: bm25, sparse, wide",
        "BETTER   1 of 6 by rr: up",
        "UNCLEAR  2 of 6 by rr: edge, unclear",
    ]


def test_a_screen_has_eight_differences_five_queries_and_counts_the_rest():
    lines = [replace(LINE, model=f"m{n}", baseline=f"m{n}", p_corrected=0.001 * n) for n in range(12)]
    others = [replace(lines[0], measure="ap"), replace(lines[0], slice="market=de")]
    changes = tuple(replace(QUERY, query_id=f"q{n}", change=-n / 10, documents=None) for n in range(8))
    records = pairs(*((line.model, line.model) for line in lines))
    text = screen(movement(comparisons=(*lines, *others), largest_changes=changes, records=records), width=80)

    assert len(text.splitlines()) <= 26
    assert max(map(len, text.splitlines())) <= 80
    assert [cells[0] for cells in table_rows(text)][:8] == [f"m{n}" for n in range(8)]
    assert [cells[1] for cells in table_rows(text)][8:] == ["q7", "q6", "q5", "q4", "q3"]
    assert text.endswith("More  5 differences, 1 slice, 3 queries: --all, or --output changes.html\n")


def test_each_side_has_id_time_and_commit():
    text = shown(movement())

    assert "BASE   20261120T020000Z-nightly-1f0c9a2b of 2026-11-20 02:00 UTC, commit abc\n" in text
    assert "commit ffffffffffff with changes\n" in text


def test_a_side_with_a_date_is_named_by_its_night():
    pair = RecordPair(replace(SIDE, night="2026-11-19"), CANDIDATE, (("bm25", "bm25"),))

    text = shown(movement(records=(pair,)))

    assert "BASE   night 2026-11-19, 20261120T020000Z-nightly-1f0c9a2b of 2026-11-20 02:00 UTC, commit abc\n" in text
    assert "NEW    20261121T020000Z" in text


def test_parts_stand_below_their_change():
    parts = (ChangePart(("judgments",), 0.25), ChangePart(("queries added", "output"), -0.5, "a rank is not known"))
    split = ChangeSplit("web", "bm25", "bm25", "rr", 0.5, 0.25, -0.25, parts)

    text = shown(movement(splits=(split,), unlike=("web: the judgments differ",)))

    (title,) = [place for place, line in enumerate(text.splitlines()) if line == "web: what the change is due to"]
    table = "\n".join(text.splitlines()[title:])
    assert row(table, "all of it") == ["rr", "0.5000", "0.2500", "-0.2500", "all of it"]
    assert row(table, "judgments") == ["", "", "", "+0.2500", "judgments"]
    assert row(table, "queries added and output") == ["", "", "", "-0.5000", "queries added and output"]
    assert "parts that cannot be separated: a rank is not known" in text
    assert "are the same" not in text


def test_figures_that_moved_in_no_part_are_counted():
    moves = {
        "still": (ChangePart(("judgments",), 0.0), ChangePart(("output",), 1e-17)),
        "cancels": (ChangePart(("judgments",), 0.25), ChangePart(("output",), -0.25)),
        "shares": (ChangePart(("judgments", "output"), 0.0, "a rank is not known"),),
    }
    splits = tuple(ChangeSplit("web", "bm25", "bm25", name, 0.5, 0.5, 0.0, parts) for name, parts in moves.items())

    text = shown(movement(splits=splits, unlike=("web: the judgments differ",)))

    assert re.findall(r"^ (\w+) .* all of it", text, re.MULTILINE) == ["cancels", "shares"]
    assert "no part changed: 1 figure\n" in text
    assert "what the change is due to" not in shown(movement(splits=splits[:1]))


def test_where_nothing_moved_no_table_is_shown():
    text = shown(movement(moved=False))

    assert text.startswith("SAME  Every query has the same score.\n")
    assert table_rows(text) == []


@pytest.mark.parametrize("show", [shown, comparison_markdown])
def test_no_name_steers_a_terminal(show):
    hostile = "a\x1b[31m\nb\u202ec"
    documents = (RankedDocument(hostile, 1.0, 1, 2),)
    found = movement(
        largest_changes=(replace(QUERY, query_id=hostile, documents=documents),),
        figures=(DatasetFigure("web", hostile, hostile, "item_coverage@10", 0.5, None),),
        records=pairs((hostile, hostile), ("bm25", "bm25")),
        remarks=(f"left out: {hostile}",),
    )

    text = show(found)

    assert not {"\x1b", "\u202e"} & set(text)
    assert "\nb" not in text
    assert "undefined" in text


def test_json_has_no_nan_and_all_slices():
    lines = (replace(LINE, effect_size=float("nan")), replace(LINE, slice="market=de", measure="ap"))
    data = json.loads(json.dumps(comparison_data(movement(comparisons=lines)), allow_nan=False))

    assert data["differences"][0]["effect_size"] is None
    assert [line["measure"] for line in data["slices"]] == ["ap"]
    assert data["queries"][0]["documents"][2] == {"doc_id": "new", "grade": 0.5, "before": None, "after": 1}
    assert data["records"][0]["base"]["record"] == "runs"
