"""The page of a comparison, made by hand: its title, the parts of a change, what is folded, and hostile names."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rankledger.pipeline.history.comparison import (
    ChangePart,
    ChangeSplit,
    ComparisonReport,
    DatasetFigure,
    RecordPair,
    Side,
    night_label,
)
from rankledger.pipeline.inference.tables import SliceChange
from rankledger.pipeline.record.evaluation import ListedDocument, QueryDetail
from rankledger.pipeline.report.html.comparisons import comparison_html, comparison_title, index_html
from tests.pipeline.report.html.test_render import MARKUP, Elements, marked
from tests.support.page_reader import Table, read_page
from tests.support.sample_page import compared, page

BASE = Side("previous", "ID-A", Path("a"), "2026-11-19T02:00:00+00:00", "abc", False, "nightly", "2026-11-19")
CANDIDATE = replace(BASE, evaluation_id="ID-B", created="2026-11-20T02:05:00+00:00", night="2026-11-20")


def comparison(**changes: Any) -> ComparisonReport:
    lists = {
        "dense on Thu 19 Nov": (ListedDocument(1, "d1", 2.0, "First"),),
        "dense": (ListedDocument(1, "x", None, "Other"), ListedDocument(2, None, None)),
    }
    own = {"baseline": "dense"}
    where = SliceChange(
        "web", "dense", "dense", "ndcg@10", "market=de", 40, 100, 0.5, 0.25, -0.25, 1.0, 0.5, 0.4, -6.0, 0.001
    )
    pair = replace(page().pairs[0], baseline="dense on Thu 19 Nov", record="ID-A", baseline_model="dense")
    plain = ComparisonReport(
        records=(RecordPair(BASE, CANDIDATE, (("dense", "dense"), ("bm25", "bm25"))),),
        unlike=("web: the judgments differ (sha256 a and sha256 b)",),
        moved=True,
        comparisons=(
            compared("dense", -0.1, **own),
            compared("dense", -0.25, slice="market=de", n_queries=40, n_clusters=40, **own),
            compared("dense", 0.05, slice="market=us", n_queries=20, n_clusters=20, **own),
            compared("bm25", 0.0, mark="degenerate"),
        ),
        leading={"web": "ndcg@10"},
        slice_changes=(where,),
        largest_changes=pair.largest_changes,
        figures=(DatasetFigure("web", "dense", "dense", "item_coverage@10", 0.5, 0.25),),
        splits=(ChangeSplit("web", "dense", "dense", "ndcg@10", 0.5, 0.4, -0.1, (ChangePart(("judgments",), -0.1),)),),
        confidence=0.95,
        remarks=("a remark",),
        unchanged={"web": (("bm25", "bm25"),)},
        scores=(pair,),
        details=(QueryDetail("web", "q1", "what is it?", ("market=de",), lists),),
        kinds={"web": "rankings"},
        practical_difference={"ndcg@10": 0.01},
    )
    return replace(plain, **changes)


def tables(text: str) -> dict[str, Table]:
    return {table.name: table for table in read_page(text).tables}


@pytest.mark.parametrize(
    ("night", "label"),
    [("2026-11-20", "Fri 20 Nov"), ("20261101", "Sun 1 Nov"), ("release-7", "release-7"), (None, "")],
)
def test_nights_are_named_as_people_do(night, label):
    assert night_label(night) == label


@pytest.mark.parametrize(
    ("base", "candidate", "title"),
    [
        ({}, {}, "nightly: Fri 20 Nov against Thu 19 Nov"),
        ({"night": "2025-11-20"}, {}, "nightly: Fri 20 Nov 2026 against Thu 20 Nov 2025"),
        ({"night": "2026-11-20"}, {}, "nightly: Fri 20 Nov 02:05 against Fri 20 Nov 02:00"),
        ({"night": None}, {"night": "release-7"}, "nightly: release-7 against Thu 19 Nov"),
        ({"name": "weekly"}, {}, "nightly and weekly: Fri 20 Nov against Thu 19 Nov"),
        ({}, {"evaluation_id": "ID-A"}, "nightly: dense against bm25"),
    ],
)
def test_the_title_says_what_is_compared(base, candidate, title):
    sides = replace(BASE, **base), replace(CANDIDATE, **candidate)

    assert comparison_title(comparison(records=(RecordPair(*sides, (("dense", "bm25"),)),))) == title


def test_slices_by_their_part_of_the_change():
    """market=de: 40 queries by -0.25 are -10, which is all of 100 by -0.1; market=us: 20 by +0.05 are +1, a tenth the
    other way, and too few to judge.
    """
    table = tables(comparison_html(comparison()))["slices-web"]
    (group,) = table.groups

    assert [(row["slice"], row["of the change"], row["note"]) for row in table.cells(group)] == [
        ("market=de", "+100%", ""),
        ("market=us", "-10%", "under 30, not judged"),
    ]


def test_slices_by_evidence():
    """A total of +0.0001 is no measure of them: p = 0.001 is surer than 0.2; then 0.03 is six errors, 0.09 three."""
    own = {"baseline": "dense", "n_queries": 40, "n_clusters": 40}
    lines = (
        compared("dense", 0.0001, baseline="dense", ci_low=-0.02, ci_high=0.02),
        compared("dense", 0.2, slice="market=doubtful", p_value=0.2, std_error=0.15, **own),
        compared("dense", -0.09, slice="market=sure", p_value=0.001, std_error=0.03, **own),
        compared("dense", 0.03, slice="market=surest", p_value=0.001, std_error=0.005, **own),
        compared("dense", -0.5, slice="market=few", p_value=None, std_error=0.1, **own | {"n_clusters": 29}),
    )
    (group,) = (table := tables(comparison_html(comparison(comparisons=lines)))["slices-web"]).groups

    assert [(row["slice"].removeprefix("market="), row["of the change"]) for row in table.cells(group)] == [
        ("surest", ""),
        ("sure", ""),
        ("doubtful", ""),
        ("few", ""),
    ]


def test_what_did_not_change_is_folded():
    text = comparison_html(comparison())
    (group,) = tables(text)["differences-web"].groups

    assert [row[0] for row in group.rows] == ["dense"]
    assert "<summary><bdi>1 unchanged</bdi>: the same score on every query</summary>" in text
    none = comparison(moved=False, comparisons=(), scores=(), figures=(), slice_changes=(), unlike=(), splits=())
    assert "SAME Every query has the same score." in comparison_html(none)


def test_sections_stand_in_their_order():
    every = ["changes", "figures", "slices", "queries", "causes", "provenance"]

    assert [key for key in read_page(comparison_html(comparison())).text if key] == every
    assert "causes" not in read_page(comparison_html(comparison(splits=()))).text


def test_a_query_has_its_lists_and_the_commands_of_both_records():
    text = comparison_html(comparison())
    inside = comparison_html(comparison(), in_record=True)
    asked = "--dataset web --measure ndcg@10 --query q1"

    assert [row for group in tables(text)["lists-1-1"].groups for row in group.rows] == [
        ["1", "d1: First", "2", "x: Other", "–"],
        ["2", "", "", "not judged", ""],
    ]
    assert f"rankledger explain ID-B --model dense {asked}" in text
    assert f"rankledger explain ID-A --model dense {asked}" in text
    assert f"rankledger explain . --model dense {asked}" in inside
    assert "ID-B" not in inside
    assert "02:05" not in inside


def test_no_name_becomes_markup():
    hostile = marked(comparison())
    (pair,) = hostile.records
    sides = (replace(side, created=BASE.created) for side in (pair.base, pair.candidate))
    hostile = replace(hostile, records=(RecordPair(*sides, pair.models),))
    pages = [replace(marked(page()), manifest=page().manifest), page()]
    for text in (
        comparison_html(hostile),
        index_html(pages, {own.evaluation.evaluation_id: (f"../{MARKUP}", "") for own in pages}),
    ):
        found = Elements(text)
        assert "hostile" not in {name for name, _ in found.found}
        assert found.every("onload") == []
        assert text.count("<script>") == 1
        assert MARKUP not in text
