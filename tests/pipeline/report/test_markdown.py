"""Markdown for pull requests: what stands in it, in which order, whatever the names, and never beyond 60 kB."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.history.history import History, Night, Series
from rankledger.pipeline.inference.changepoints import LevelChange
from rankledger.pipeline.inference.tables import PairedScores, QueryChange, RankedDocument
from rankledger.pipeline.report.markdown import markdown
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.support.text import visible
from tests.support.handwritten_results import comparison, estimates, page

FIGURES = {"bm25": {"ap": 0.4, "rr": 0.5}, "dense": {"ap": 0.45, "rr": 0.52}, "random": {"ap": 0.01, "rr": None}}
VERDICT = Verdict("no-drop", "web", "dense", "ap", "all", "fail", "fail", "ap of dense dropped by 0.05")
READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def tables(text: str) -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    for before, token in pairwise(READER.parse(text)):
        if before.type == "table_open":
            found.append([])
        if before.type == "tr_open":
            found[-1].append([])
        if before.type in ("th_open", "td_open"):
            found[-1][-1].append("".join(part.content for part in token.children or ()))
    return found


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", text, re.MULTILINE)


def moved(model: str, **changes: str) -> PairedScores:
    scores = np.array([1.0, 0.5])
    query = QueryChange("web", model, "bm25", "ap", "q7", 1.0, 0.5, -0.5, (RankedDocument("d1", 2.0, 1, 2),))
    ids = np.array(["q7", "q8"], dtype=object)
    return PairedScores("web", model, "bm25", "ap", ids, scores, scores / 2, -scores / 2, (replace(query, **changes),))


def test_the_verdict_comes_first_and_the_command_last():
    failure = Failure("web", "late", "late.tsv: file not found; check the path")
    found = page(estimates("web", FIGURES), [comparison("dense", 0.05, 0.03)], [VERDICT], [failure])
    text = markdown([found])
    said = [
        "## nightly",
        "**FAIL ",
        "BEST dense: ap = 0.450",
        "**Incomplete:** 3 models on 1 dataset; 1 model output missing or refused.",
        "- late on web was not evaluated: late.tsv: file not found; check the path",
        "### web: 300 queries, 3 models, 95% intervals",
        "| dense | 0.450 ",
        "Differences, web: ap against bm25:",
        "### What to know",
        "- bm25 on web: 5,000 rows",
        "Reproduce with:",
        "rankledger evaluate nightly.yaml\n",
    ]

    assert [text.index(part) for part in said] == sorted(text.index(part) for part in said)
    assert text.startswith(said[0])
    assert text.endswith("```\nrankledger evaluate nightly.yaml\n```\n")


def test_ranks_stand_beside_the_models():
    ranks = {"bm25": (1, 2), "dense": (1, 2), "random": (3, 3)}
    lines = [
        replace(line, rank_low=ranks[line.model][0], rank_high=ranks[line.model][1])
        for line in estimates("web", FIGURES)
    ]
    text = markdown([page(lines)])

    assert [row[:2] for row in tables(text)[0]] == [
        *(["model", "rank"], ["dense", "1–2"], ["bm25", "1–2"], ["random", "3"])
    ]
    assert "- ranks by ap on web: simultaneous 95% intervals; may be the best: dense, bm25\n" in text


def test_tables_written_by_hand():
    compared = [comparison("dense", 0.05, 0.03), comparison("random", 0.001, 0.5)]
    board, differences = tables(
        markdown([page(estimates("web", FIGURES), compared, practical_difference={"ap": 0.02})])
    )

    assert board == [
        ["model", "ap", "rr"],
        ["dense", "0.450 [0.350,\u00a00.550]", "0.520 [0.420,\u00a00.620]"],
        ["bm25", "0.400 [0.300,\u00a00.500]", "0.500 [0.400,\u00a00.600]"],
        ["random", "0.010 [-0.090,\u00a00.110]", "undefined"],
    ]
    assert [(row[0], row[3], row[-1]) for row in differences[1:]] == [
        ("dense", "+0.050 [+0.040, +0.060]", "better"),
        ("random", "+0.001 [-0.009, +0.011]", "no practical difference"),
    ]


def test_the_worst_slices_are_folded_away():
    lines = [
        comparison("dense", 0.05, 0.03),
        comparison("dense", 0.02, 0.5, slice="market=de"),
        comparison("dense", -0.03, 0.5, slice="market=fr"),
        comparison("dense", -0.3, 0.5, slice="market=jp", n_clusters=29),
    ]
    compared = tables(markdown([page(estimates("web", FIGURES), lines)]))[-1]
    sliced = [*estimates("web", FIGURES), *estimates("web", {"bm25": {"ap": 0.3}, "dense": {"ap": 0.2}}, "market=de")]
    figures = markdown([page(sliced)])

    assert [row[1] for row in compared[1:]] == ["market=fr", "market=jp", "market=de"]
    assert [row[-1] for row in compared[1:]] == ["", "under 30, not judged", ""]
    assert "<details><summary>Worst slices by ap</summary>" in figures
    assert [row[:2] for row in tables(figures)[-1][1:]] == [["dense", "market=de"], ["bm25", "market=de"]]
    lower = tables(markdown([page(sliced, directions={"ap": "lower"})]))[-1]
    assert [row[0] for row in lower[1:]] == ["bm25", "dense"]


def test_the_largest_changes_are_folded_away():
    text = markdown([replace(page(estimates("web", FIGURES)), pairs=(moved("dense"),))])

    assert "<details><summary>dense against bm25: largest changes by ap</summary>" in text
    assert tables(text)[-1][1] == ["q7", "1.0000", "0.5000", "-0.5000", "d1 (grade 2): 1 → 2"]


def test_a_history_is_a_line_per_series():
    night = Night("2026-11-19", "a", 0.4, 0.3, 0.5, 0.01, 300, "", None, "", None)
    later = replace(night, date="2026-11-20", estimate=0.45, change=0.05)
    step = LevelChange("2026-11-20", "2026-11-20", "2026-11-20", 1, 0.4, 0.45, 0.001)
    series = Series((step,), 1.0, None, dataset="web", model="dense", nights=(night, later))
    history = History("nightly", "ap", "higher", (series,), ("left out: 1 evaluation that repeats an earlier one",))
    text = markdown([replace(page(estimates("web", FIGURES)), history=(history,))])

    assert tables(text)[-1][1] == ["web", "dense", "2", "0.4000 → 0.4500", "+0.0500", "step 2026-11-20: +0.0500"]
    assert "- left out: 1 evaluation that repeats an earlier one" in text


def test_several_evaluations_stand_side_by_side_first():
    one = replace(page(estimates("web", FIGURES)), title="one")
    other = page(
        estimates("web", {"dense": {"ap": 0.5}, "new": {"ap": 0.6}}),
        definitions={"ap": {"fingerprint": "0" * 16}},
        datasets={"web": {"digests": {"judgments": "other"}}},
    )
    text = markdown([one, replace(other, title="other")])

    assert [(row[0], row[1][:6], row[2][:6]) for row in tables(text)[0]] == [
        ("model", "one", "other"),
        ("bm25", "0.4000", ""),
        ("dense", "0.4500", "0.5000"),
        ("random", "0.0100", ""),
        ("new", "", "0.6000"),
    ]
    assert headings(text)[:2] == ["2 evaluations", "one"]
    assert "- the judgments differ on web in these evaluations: figures there cannot be compared" in text
    assert "- the definitions of ap differ on web in these evaluations: figures there cannot be compared" in text
    assert "cannot be compared" not in markdown([one, one])


def test_what_is_left_out_is_counted():
    measures = [f"p@{cutoff}" for cutoff in range(1, 8)]
    found = page(estimates("web", {f"m{number}": dict.fromkeys(measures, number / 100) for number in range(50)}))
    text = markdown([found])

    assert len(tables(text)[0]) == 21
    assert tables(text)[0][0] == ["model", *measures[:5]]
    assert "\n30 more in summary.csv.\n" in text
    assert "\n2 more measures in summary.csv.\n" in text
    assert tables(markdown([found], n_measures=7))[0][0] == ["model", *measures]


ALLOWED = {"h2", "h3", "p", "strong", "details", "summary", "ul", "li", "pre", "code"} | {
    *("table", "thead", "tbody", "tr", "th", "td")
}
HOSTILE = st.text(min_size=1, max_size=60) | st.sampled_from(
    [
        *(
            "<script>alert(1)</script>",
            "a|b",
            "[x](http://y)",
            "![x](y)",
            "`z` ```",
            "$m$",
            "</details>",
            "# h",
            "&lt;",
        ),
        *("- l\n- k", "1. one", "2) two", "+ x", "    code", "**b** _i_ ~~s~~", "http://x.example", "\u202eback"),
        *(
            "@octocat",
            "cc @team/search, ann@x.example",
            "www.x.example",
            "#1",
            "GH-2 HTTPS://x.example",
            "rr(rel=2)@10",
        ),
    ]
)
LINKED = r"(?<!\w)@\w|@[\w-]+\.\w|(?:https?|ftp)://|www\.|#\d|gh-\d"  # by GitHub, in the text of what was rendered


@given(HOSTILE, HOSTILE)
def test_names_of_any_letters_are_shown_as_they_are(model, dataset):
    line = comparison(model, 0.05, 0.03, dataset=dataset, baseline="bm25!")
    found = page(
        estimates(dataset, {model: {"ap": 0.4}, "bm25!": {"ap": 0.3}}),
        [line, replace(line, slice=f"market={model}")],
        [replace(VERDICT, gate=model, model=model, dataset=dataset, reason=model)],
        [Failure(dataset, model, model)],
    )
    text = markdown([replace(found, title=dataset, pairs=(moved(model, query_id=model),), remarks=(model,))])
    html = READER.render(text)
    gates, board, differences, slices = tables(text)[:4]
    model, dataset = visible(model), visible(dataset)

    assert set(re.findall(r"</?([a-z0-9]+)", html)) <= ALLOWED
    assert re.findall(LINKED, re.sub("<pre>.*?</pre>|&#?\\w+;", "", html, flags=re.DOTALL), re.IGNORECASE) == []
    assert (html.count("<strong>"), html.count("<ul>"), html.count("<li>")) == (2, 2, 1 + 2 + 1)
    assert alike([gates[1][column] for column in (0, 2, 3, 4)], [model, model, dataset, model])
    assert alike([row[0] for row in board[1:]], [model, "bm25!"])
    assert alike(differences[1][:1], [model])
    assert alike(slices[1][:2], [f"{model} against bm25!", f"market={model}"])


def alike(cells: list[str], expected: list[str]) -> bool:
    return [cell.replace("\u200b", "").split() for cell in cells] == [text.split() for text in expected]


@st.composite
def pages(draw: st.DrawFn) -> Page:
    letter = draw(st.sampled_from(["m", "文", "|", "<"]))
    names = [f"{letter * draw(st.sampled_from([1, 30, 10_000]))}{number}" for number in range(draw(st.integers(1, 40)))]
    datasets = [f"{number}{letter * 20}" for number in range(draw(st.integers(1, 5)))]
    measures = [f"p@{cutoff}" for cutoff in range(1, draw(st.integers(2, 9)))]
    figures = {name: dict.fromkeys(measures, 0.5) for name in names}
    compared = [comparison(name, 0.1, 0.5, dataset=dataset, measure="p@1") for dataset in datasets for name in names]
    verdicts = [replace(VERDICT, reason=letter * 900, effect=effect) for effect in ("fail", "pass") for _ in names * 5]
    failures = [Failure(dataset, name, letter * 900) for dataset in datasets for name in names[:20]]
    lines = [line for dataset in datasets for line in estimates(dataset, figures)]
    sliced = [replace(line, slice="market=de") for line in compared]
    found = page(lines, compared + sliced, verdicts if draw(st.booleans()) else [], failures)
    return replace(found, pairs=tuple(moved(name, query_id=name) for name in names), title=names[0])


@settings(max_examples=12)
@given(st.lists(pages(), min_size=1, max_size=4))
def test_it_is_under_60_kb_and_whole(found):
    text = markdown(found)
    shown = [line for line in text.splitlines() if line.startswith("|")]

    assert len(text.encode()) < 60_000
    assert text.count("<details>") == text.count("</details>")
    assert all(line.endswith("|") for line in shown)
    assert text.count("\nrankledger evaluate nightly.yaml\n") == len(found)
    assert len(headings(text)) >= len(found)


def test_verdicts_leave_room_for_figures():
    verdicts = [replace(VERDICT, model=f"m{number}", estimate=-1.0, reason="x" * 500) for number in range(3_000)]
    text = markdown([page(estimates("web", FIGURES), [], verdicts)])
    (left,) = re.findall(r"^([\d,]+) more in gates\.json\.$", text, re.MULTILINE)

    assert len(tables(text)[0]) - 1 + int(left.replace(",", "")) == 3_000
    assert text.index("**FAIL ") < text.index("| dense | 0.450 ")


def test_long_names_are_cut():
    """Of a name of 250 letters a table, which they would blow up, shows 80, wherever it stands."""
    long = "W" * 250
    found = page(
        estimates("web", {long: {"ap": 0.4}}),
        [comparison(long, 0.1, 0.01), comparison(long, 0.1, 0.01, slice="market=de")],
        [replace(VERDICT, model=long)],
    )
    cells = [
        cell
        for table in tables(markdown([replace(found, pairs=(moved(long, query_id=long),))]))
        for row in table
        for cell in row
    ]

    assert max(map(len, re.findall("W+…?", " ".join(cells)))) == 80
    assert len(re.findall("W{79}…", " ".join(cells))) == 5
