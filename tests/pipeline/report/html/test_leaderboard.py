"""The leaderboards: which columns and rows there are, who leads, and which letters models share."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from rankledger.pipeline.report.html.blocks import Cell, PagePart, Table, Words
from rankledger.pipeline.report.html.summary import leaderboard
from rankledger.pipeline.report.tables import page_figures
from tests.support.sample_page import compared, estimate, page

ALL_PAIRS = {"comparison": {"baseline": "all_pairs", "test": "randomization", "correction": "maxt"}}


def table(found) -> Table:
    """The table of the one dataset."""
    (part,) = (block for block in leaderboard(page_figures(found)).blocks if isinstance(block, PagePart))
    (made,) = part.blocks
    assert isinstance(made, Table)
    return made


def texts(rows) -> list[list[str]]:
    """What the cells of some rows say."""
    return [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in rows]


def test_models_stand_best_first_beside_their_baseline():
    """The best figure stands out, the baseline has no difference, and conclusions colour the others."""
    group = table(page()).groups[0]

    assert texts(group.rows) == [
        ["hybrid", "0.5500", "[0.5300, 0.5700]", "+0.0500", "[+0.0300, +0.0700]", "0.0200"],
        ["bm25", "0.5000", "[0.4800, 0.5200]", "", "", ""],
        ["dense", "0.4700", "[0.4500, 0.4900]", "-0.0300", "[-0.0500, -0.0100]", "0.0200"],
    ]
    assert [row[1].strong for row in group.rows if isinstance(row[1], Cell)] == [True]
    assert [getattr(row[3], "tone", "") for row in group.rows] == ["good", "", ""]


def test_where_lower_is_better_the_lowest_leads():
    """And the title says so."""
    group = table(page(directions={"ndcg@10": "lower", "ap": "higher"})).groups[0]

    assert [row[0] for row in texts(group.rows)] == ["dense", "bm25", "hybrid"]
    assert group.title == "ndcg@10, lower is better, all: 100 queries"


def test_one_group_is_open():
    """That of the leading measure on all queries; each measure and slice has one, and titles tell them apart."""
    groups = table(page()).groups

    assert [(group.measure, group.slice, group.open) for group in groups] == [
        ("ndcg@10", "all", True),
        ("ap", "all", False),
        ("ndcg@10", "market=de", False),
    ]
    assert groups[2].title == "ndcg@10, market=de: 40 queries"


def test_a_slice_of_few_clusters_is_shown_and_not_judged():
    """Under 30 clusters the title says so."""
    lines = (estimate("bm25", 0.5), estimate("bm25", 0.4, slice="market=de", n_queries=40, n_clusters=29))

    assert (
        table(page(estimates=lines)).groups[1].title.endswith("40 queries, under 30 to judge by: shown but not judged")
    )


def test_a_lead_that_ties_could_change_is_marked():
    """The leader's least figure, 0.54, is below the greatest of the second, 0.545: both bounds are shown."""
    lines = (
        estimate("hybrid", 0.55, ties_least=0.54, ties_greatest=0.56),
        estimate("bm25", 0.5, ties_least=0.5, ties_greatest=0.545),
    )
    made = table(page(estimates=lines))

    assert made.columns[-1].title == "over orders of ties"
    assert [row[-1] for row in texts(made.groups[0].rows)] == ["0.5400 to 0.5600", "0.5000 to 0.5450"]
    assert texts(made.groups[0].rows)[0][1] == "0.5500†"


def test_ranks_stand_beside_the_models():
    """In slices they are empty; a line names the models that may be first by the lead measure."""
    lines = (
        estimate("hybrid", 0.55, rank_low=1, rank_high=2),
        estimate("bm25", 0.5, rank_low=1, rank_high=2),
        estimate("dense", 0.2, rank_low=3, rank_high=3),
        estimate("dense", 0.2, slice="market=de"),
    )
    part = leaderboard(page_figures(page(estimates=lines, comparison_lines=()))).blocks[0]
    made, note = part.blocks

    assert [column.title for column in made.columns][:3] == ["model", "rank", "figure"]
    assert [[row[1] for row in group.rows] for group in made.groups] == [["1–2", "1–2", "3"], [""]]
    assert note.text == "ranks by ndcg@10 on web: simultaneous 95% intervals; may be the best: hybrid, bm25."


def test_letters_stand_where_each_was_compared_with_each():
    """hybrid and bm25 are not parted, nor are bm25 and dense; hybrid and dense are."""
    p_values = {("bm25", "dense"): 0.2, ("bm25", "hybrid"): 0.2, ("dense", "hybrid"): 0.01}
    lines = tuple(
        compared(model, 0.1, baseline=baseline, p_corrected=p_values[baseline, model])
        for baseline, model in combinations(("bm25", "dense", "hybrid"), 2)
    )
    made = table(page(ALL_PAIRS, comparison_lines=lines))

    assert [row[-1] for row in texts(made.groups[0].rows)] == ["a", "ab", "b"]
    assert "difference from bm25" not in {column.title for column in made.columns}


def test_without_all_pairs_there_are_no_letters():
    """One pair that was not compared leaves it open who is like whom."""
    lines = (compared("dense", 0.1), compared("hybrid", 0.1))

    assert [row[-1] for row in texts(table(page(ALL_PAIRS, comparison_lines=lines)).groups[0].rows)] == ["", "", ""]


def test_beyond_2000_rows_slices_are_by_the_leading_measure_alone():
    """Every measure is shown on all queries, and the page says where the others are."""
    own = page().evaluation.estimates
    many = tuple(replace(own[0], slice=f"market={number}", measure="ap") for number in range(2_000))
    found = page_figures(page(estimates=(*own, *many)))

    said, part, *_ = leaderboard(found).blocks
    assert isinstance(said, Words)
    assert said.text == "Slices by other measures: summary.csv."
    assert len(part.blocks[0].groups) == 3


def test_marks_are_explained_once_for_all_datasets():
    """Below the last table, those that one of them has; nothing if there are none."""
    lines = [estimate("bm25", 0.5, dataset=name, mark="sparse") for name in ("web", "news")]
    blocks = leaderboard(page_figures(page(estimates=tuple(lines), comparison_lines=()))).blocks
    plain = leaderboard(page_figures(page(estimates=(estimate("bm25", 0.5),), comparison_lines=()))).blocks

    assert [type(block) for block in blocks] == [PagePart, PagePart, Words]
    assert blocks[-1].text.startswith("~ an interval that is not reliable")
    assert [type(block) for block in plain] == [PagePart]


def test_a_figure_that_is_undefined_stands_last():
    """Without an interval it has no bar."""
    lines = (estimate("bm25", None), estimate("dense", 0.4))

    assert texts(table(page(estimates=lines, comparison_lines=())).groups[0].rows) == [
        ["dense", "0.4000", "[0.3800, 0.4200]"],
        ["bm25", "undefined", ""],
    ]
