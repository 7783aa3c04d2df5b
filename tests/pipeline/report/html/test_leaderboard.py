"""The leaderboards: which columns and rows there are, who leads, and which letters models share."""

from dataclasses import replace

from rankledger.pipeline.report.html.blocks import Section, Words
from rankledger.pipeline.report.html.summary import leaderboard
from rankledger.pipeline.report.text_table import Cell, Table
from tests.support.sample_page import compared, estimate, page

ALL_PAIRS = {"comparison": {"baseline": "all_pairs", "test": "randomization", "correction": "maxt"}}


def blocks_of(found) -> tuple:
    (part,) = (block for block in leaderboard(found).blocks if isinstance(block, Section))
    return part.blocks


def table(found) -> Table:
    (made,) = (block for block in blocks_of(found) if isinstance(block, Table))
    return made


def texts(rows) -> list[list[str]]:
    return [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in rows]


def test_models_by_measures():
    made = table(page())
    group = made.groups[0]

    assert [column.title for column in made.columns] == ["model", "ndcg@10", "difference from bm25", "ap"]
    assert texts(group.rows) == [
        ["hybrid", "0.5500", "+0.0500", "0.2750"],
        ["bm25", "0.5000", "", "0.2500"],
        ["dense", "0.4700", "-0.0300", "0.2350"],
    ]
    assert [[cell.strong for cell in (row[1], row[3])] for row in group.rows] == [[True, True], *[[False, False]] * 2]
    assert [cell.small for cell in group.rows[0][1:]] == ["[0.5300, 0.5700]", "[+0.0300, +0.0700]", "[0.2550, 0.2950]"]
    assert [row[2].tone for row in group.rows] == ["good", "", "bad"]  # both have a corrected p of 0.02


def test_a_figure_is_tinted_by_its_distance():
    apart = table(page(estimates=tuple(map(estimate, "abc", (0.5, 0.42, 0.3))), comparison_lines=()))
    close = table(page(estimates=tuple(map(estimate, "ab", (0.5, 0.492))), comparison_lines=()))

    assert [row[1].tint for row in apart.groups[0].rows] == [5, 3, 0]
    assert [row[1].tint for row in close.groups[0].rows] == [5, 4]


def test_where_lower_is_better_the_lowest_leads():
    found = page(directions={"ndcg@10": "lower", "ap": "higher"})

    assert [row[0] for row in texts(table(found).groups[0].rows)] == ["dense", "bm25", "hybrid"]
    assert [column.lower for column in table(found).columns] == [False, True, False, False]
    words = [block.text for block in leaderboard(found).blocks if isinstance(block, Words)]
    assert words[0] == "Lower is better: ndcg@10."


def test_one_group_is_open():
    groups = table(page()).groups

    assert [(group.slice, group.open) for group in groups] == [("all", True), ("market=de", False)]
    assert groups[1].title == "market=de: 40 queries"


def test_a_slice_of_few_clusters_is_shown_and_not_judged():
    lines = (estimate("bm25", 0.5), estimate("bm25", 0.4, slice="market=de", n_queries=40, n_clusters=29))

    assert (
        table(page(estimates=lines)).groups[1].title.endswith("40 queries, under 30 to judge by: shown but not judged")
    )


def test_a_lead_that_ties_could_change_is_marked():
    lines = (
        estimate("hybrid", 0.55, ties_least=0.54, ties_greatest=0.56),
        estimate("bm25", 0.5, ties_least=0.5, ties_greatest=0.545),
    )
    found = [row[1] for row in table(page(estimates=lines)).groups[0].rows]

    assert [cell.text for cell in found] == ["0.5500†", "0.5000"]
    assert [cell.small.partition("; ")[2] for cell in found] == ["ties 0.5400 to 0.5600", "ties 0.5000 to 0.5450"]


def test_ranks_stand_beside_the_models():
    lines = (
        estimate("hybrid", 0.55, rank_low=1, rank_high=2),
        estimate("bm25", 0.5, rank_low=1, rank_high=2),
        estimate("dense", 0.2, rank_low=3, rank_high=3),
        estimate("dense", 0.2, slice="market=de"),
    )
    made, note, *_ = blocks_of(page(estimates=lines, comparison_lines=()))

    assert [column.title for column in made.columns] == ["model", "rank", "ndcg@10"]
    assert [[row[1] for row in group.rows] for group in made.groups] == [["1–2", "1–2", "3"], [""]]
    assert note.text == "ranks by ndcg@10 on web: simultaneous 95% intervals; may be the best: hybrid, bm25."


def test_without_all_pairs_there_are_no_letters():
    lines = (compared("dense", 0.1), compared("hybrid", 0.1))

    assert [row[2] for row in texts(table(page(ALL_PAIRS, comparison_lines=lines)).groups[0].rows)] == ["", "", ""]


def test_beyond_6000_figures_slices_are_by_the_leading_measure_alone():
    own = page().evaluation.estimates
    many = tuple(replace(own[0], slice=f"market={number}", measure="ap") for number in range(6_000))
    part, *words = leaderboard(page(estimates=(*own, *many))).blocks

    assert words[0].text == "Slices by other measures: summary.csv."
    assert [(group.slice, len(group.rows[0])) for group in part.blocks[0].groups] == [("all", 4), ("market=de", 3)]


def test_marks_are_explained_once_for_all_datasets():
    lines = [estimate("bm25", 0.5, dataset=name, mark="sparse") for name in ("web", "news")]
    blocks = leaderboard(page(estimates=tuple(lines), comparison_lines=())).blocks
    plain = leaderboard(page(estimates=(estimate("bm25", 0.5),), comparison_lines=())).blocks

    assert [type(block) for block in blocks] == [Section, Section, Words]
    assert blocks[-1].text.startswith("~ an interval that is not reliable")
    assert [type(block) for block in plain] == [Section]


def test_conclusions_are_explained():
    words = [block.text for block in leaderboard(page()).blocks if isinstance(block, Words)]

    assert any(
        "if the whole interval lies between −0.01 and +0.01, better or worse if the corrected p" in text
        for text in words
    )


def test_a_figure_that_is_undefined_stands_last():
    lines = (estimate("bm25", None), estimate("dense", 0.4))
    rows = table(page(estimates=lines, comparison_lines=())).groups[0].rows

    assert texts(rows) == [["dense", "0.4000"], ["bm25", "undefined"]]
    assert (rows[1][1].small, rows[1][1].tint) == ("", 0)
