"""Verdicts in words, and views."""

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.history.history import History, Night, Series
from rankledger.pipeline.report.verdicts import cause_table, count_gates, group_by_cause, junit, markdown, not_judged

HOSTILE = "<b>&\"' ]]> | a|b\n`z` [red]x[/red] \x00\x1b[31m \ud800 \ufffe \u202e *y*"
PASS = Verdict("floor", "web", "dense", "rr@10", "all", "pass", "pass", "rr@10 of dense is 0.3127")
FAIL = replace(PASS, gate="no-drop", measure="ndcg@10", outcome="fail", effect="fail", reason="ndcg@10 dropped by 0.02")
SLICE = replace(FAIL, slice="market=de", effect="warn", reason="failed, evaluation 1 of 2")
OPEN = replace(PASS, gate="beats", outcome="inconclusive", effect="stop", reason="about 2,300 queries would settle it")
ALL = [PASS, SLICE, OPEN, FAIL]


def rows(text):
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(text)
    found = []
    for before, token in pairwise(tokens):
        if before.type == "tr_open":
            found.append([])
        if before.type == "td_open":
            found[-1].append(token.content)
    return [row for row in found if row]


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (ALL, "1 of 3 gates (floor)"),
        ([PASS, replace(PASS, model="sparse")], "1 of 1 gate (floor)"),
        ([PASS, replace(PASS, model="sparse", outcome="fail", effect="fail")], ""),
        ([replace(PASS, gate=f"g{n}") for n in range(7)], "7 of 7 gates (g0, g1, g2, g3, g4 and 2 more)"),
        ([PASS, SLICE], "1 of 2 gates (floor)"),
        ([], ""),
    ],
)
def test_gates_that_pass_are_counted_and_named(verdicts, said):
    assert count_gates(verdicts) == said


GONE = replace(FAIL, gate="complete", measure="", estimate=None, reason="out/web/dense.tsv: file not found")
LOST = replace(GONE, gate="no-drop", measure="ap", outcome="not evaluated", effect="warn")
FELL = replace(FAIL, estimate=-0.02, limit=-0.005)
OTHER = replace(OPEN, estimate=None, outcome="not comparable", reason="the judgments changed: 1,517 pairs are new")


@pytest.mark.parametrize(
    ("verdicts", "cells"),
    [
        (
            [GONE, *(replace(LOST, gate=gate, reason=f"gate 'complete' failed: {GONE.reason}") for gate in "abcdefg")],
            ["dense", "FAIL", "complete, a, b and 5 more", "web", f"{GONE.reason} (and 7 more verdicts)"],
        ),
        (
            [GONE, replace(GONE, model="bm25", dataset="shop", reason="out/shop/bm25.tsv: file not found")],
            ["dense, bm25", "FAIL", "complete", "web, shop", f"{GONE.reason} (and 1 more verdict)"],
        ),
        (
            [replace(OTHER, model=model, slice=name) for model in ("dense", "bm25") for name in ("all", "m=de")],
            ["dense, bm25", "INCONCLUSIVE: not comparable", "beats", "web", f"{OTHER.reason} (and 3 more verdicts)"],
        ),
        (
            [
                FELL,
                replace(FELL, measure="ap", estimate=-0.01, gate="floor"),
                replace(FELL, slice="m=de", estimate=0.0),
            ],
            [*("dense", "FAIL", "no-drop, floor", "web"), f"{FELL.reason} (and 2 more verdicts: ap, ndcg@10 on m=de)"],
        ),
    ],
)
def test_verdicts_of_one_cause_are_one_row(verdicts, cells):
    assert rows(markdown(verdicts, name="n"))[0] == [cell.replace("_", r"\_") for cell in cells]
    assert [[str(cell) for cell in row] for row in cause_table(group_by_cause(verdicts)).rows] == [cells]


@pytest.mark.parametrize(
    "other",
    [
        replace(FELL, model="bm25"),
        replace(FELL, dataset="shop"),
        replace(FELL, effect="warn"),
        replace(FELL, estimate=None, reason="undefined"),
        GONE,
    ],
)
def test_other_causes_are_other_rows(other):
    assert len(group_by_cause([FELL, other])) == 2


def test_every_verdict_of_a_cause_is_printed_in_full():
    lines = [FELL, replace(FELL, slice="m=de", reason="other", details="interval of 95%"), replace(FELL, slice="m=fr")]

    ((*_, reason),) = cause_table(group_by_cause(lines), every=True).rows
    assert [str(reason).count(part) for part in (FELL.reason, "other", "interval of 95%")] == [1, 1, 1]


def test_details_stand_apart_from_the_reason():
    line = replace(OPEN, details="interval of 97.5%, for 2 lines")

    shown, _, folded = markdown([line], name="n").partition("<details><summary>Details</summary>")
    assert line.reason in shown
    assert line.details in folded.replace("\\", "")
    failure = ElementTree.fromstring(junit([line], name="n").encode()).find(".//failure")
    assert failure.get("message") == f"{line.reason}; {line.details}"


def test_slices_that_are_not_judged_are_named():
    small = [
        replace(PASS, slice=name, outcome="not judged", reason=f"{n} queries, fewer than 30")
        for name, n in (("market=de", 15), ("market=fr", 12))
    ]
    both = [PASS, *small, *(replace(line, model="other") for line in small)]
    line = "2 slices are too small to judge by floor: market=de, market=fr"

    assert not_judged(both) == line
    assert line in markdown(both, name="n").split("<details>")[0]
    assert "<summary>1 pass</summary>" in markdown(both, name="n")
    root = ElementTree.fromstring(junit(both, name="n").encode())
    assert (root.get("tests"), root.get("skipped"), root.get("failures")) == ("5", "4", "0")
    assert root.find(".//skipped").get("message") == "NOT JUDGED: 15 queries, fewer than 30"
    several = [*small, replace(small[0], dataset="shop")]
    assert "market=de on web, " in not_judged(several)
    many = [replace(small[0], slice=f"market={number}") for number in range(7)]
    assert not_judged(many).endswith(" and 2 more in gates.json")


def test_markdown_has_the_verdict_first_and_the_passing_folded():
    text = markdown(ALL, name="nightly", headline="FAIL no-drop: ndcg@10 fell.")
    above, folded = text.split("<details>")

    assert above.startswith("**FAIL no-drop: ndcg@10 fell.**\n\n### nightly\n\n| model")
    assert "\nPASS 1 of 3 gates (floor).\n" in above
    assert [row[:3] for row in rows(above)] == [
        ["dense", "FAIL", "no-drop"],
        ["dense", "INCONCLUSIVE", "beats"],
        ["dense", "WARN", "no-drop"],
    ]
    assert folded.startswith("<summary>1 pass</summary>\n\n|")
    assert [row[-1] for row in rows(folded)] == [PASS.reason]
    assert folded.endswith("</details>\n")


def test_markdown_of_passes_alone_has_no_other_table():
    assert rows(markdown([PASS], name="n").split("<details>")[0]) == []


def test_markdown_shows_hostile_names_as_they_are():
    hostile = replace(FAIL, gate=HOSTILE, model=HOSTILE, reason=HOSTILE)
    text = markdown([hostile], name=HOSTILE)

    text.encode("utf-8")
    ((model, _, gate, _, reason),) = rows(text)
    assert model == gate == reason
    assert "<b>" not in MarkdownIt("commonmark").enable("table").render(text)
    assert r"\\ud800" in text


def test_markdown_fits_into_a_comment():
    many = [replace(FAIL, model=f"m{i}", estimate=0.0, reason="ö|" * 2000) for i in range(3000)]
    text = markdown([*many, *[PASS] * 3000], name="nightly")
    (raised, passed) = (int(n.replace(",", "")) for n in re.findall(r"^([\d,]+) more in gates\.json\.$", text, re.M))

    assert 30_000 < len(text.encode()) < 60_000
    assert len(rows(text.split("<details>")[0])) == 3000 - raised
    assert passed + len(rows(text.split("<details>")[1])) == 3000
    assert all(len(row[-1]) < 1000 for row in rows(text))


def test_junit_has_a_suite_per_gate_and_a_case_per_line():
    root = ElementTree.fromstring(junit(ALL, name="nightly", headline="bm25 fell.").encode())
    suites = {suite.get("name"): suite.findall("testcase") for suite in root}

    assert {found.get("value") for found in root.iter("property")} == {"bm25 fell."}
    assert (root.tag, root.get("name")) == ("testsuites", "nightly")
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "2",
        "errors": "0",
        "skipped": "1",
    }
    assert list(suites) == ["floor", "no-drop", "beats"]
    assert [case.get("name") for case in suites["no-drop"]] == [
        "web / dense / ndcg@10 / market=de",
        "web / dense / ndcg@10",
    ]
    assert suites["no-drop"][0].find("skipped").get("message") == f"WARN: {SLICE.reason}"
    assert suites["no-drop"][1].find("failure").attrib == {"message": FAIL.reason, "type": "fail"}
    assert suites["beats"][0].find("failure").get("type") == "inconclusive"
    assert suites["floor"][0].find("system-out").text == PASS.reason


def test_junit_survives_hostile_names():
    hostile = replace(FAIL, gate=HOSTILE, dataset=HOSTILE, model=HOSTILE, slice=HOSTILE, reason=HOSTILE)
    root = ElementTree.fromstring(junit([hostile], name=HOSTILE).encode("utf-8"))
    kept = "<b>&\"' ]]> | a|b\\n`z` [red]x[/red] \\x00\\x1b[31m \\ud800 \\ufffe \\u202e *y*"

    assert root.get("name") == root[0].get("name") == root[0][0].get("classname") == kept
    assert root[0][0][0].text == kept


def test_a_history_prints_a_line_per_night():
    def night(date: str, estimate: float | None, gates: str, failure: str = "") -> Night:
        return Night(date, "id", estimate, None, None, None, 40, "", None, gates, None, failure=failure)

    nights = (night("2026-11-20", 0.5, "pass"), night("2026-11-21", None, ""), night("2026-11-22", None, "", "gone"))
    history = History(
        "nightly", "ap", "higher", (Series((), None, None, dataset="web", model="bm25", nights=nights),), ("a remark",)
    )

    assert str(history).splitlines() == [
        "<History of ap in nightly: 1 series>",
        "bm25 on web:",
        "  2026-11-20 0.5000 pass",
        "  2026-11-21 undefined",
        "  2026-11-22 gone",
        "a remark",
    ]
    assert repr(history) == str(history)
