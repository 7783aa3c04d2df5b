"""What is said of a reproduction."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

from rankledger.pipeline.record.upkeep import ChangedInput, MovedFigure, Reproduction
from rankledger.pipeline.report.messages import reproduction_data, reproduction_lines

IDENTICAL = Reproduction(
    record=Path("runs/records/x"),
    verdict="identical",
    files=("summary.csv", "scores.parquet"),
    n_figures=0,
    moved=(),
    n_moved=0,
    n_found=0,
    inputs=(),
    versions=(),
    definitions=(),
    code=(),
    failures=(),
)
MOVED = MovedFigure("summary.csv", ("web", "bm25", "all", "ap"), "estimate", 0.25, 0.5)


def test_identical_is_a_word_and_the_record():
    """With what ran otherwise, where anything did."""
    assert reproduction_lines(IDENTICAL) == ["identical", "record: runs/records/x"]
    other = replace(IDENTICAL, versions=("numpy 2.4.6 → 2.3.5", "python 3.11.7 → 3.12.1"))
    assert reproduction_lines(other)[0] == "identical, with numpy 2.4.6 → 2.3.5, python 3.11.7 → 3.12.1"


def test_equal_says_to_what():
    """How many figures, and the tolerance."""
    found = replace(IDENTICAL, verdict="equal", n_figures=1_234, versions=("numpy 2.4.6 → 2.3.5",), n_found=2)

    assert reproduction_lines(found) == [
        "equal: all 1,234 figures are the same to 1e-12, with numpy 2.4.6 → 2.3.5",
        "2 files of the inputs moved, and were found",
        "record: runs/records/x",
    ]


def test_different_names_what_changed_and_what_moved():
    """An input with both hashes, a version, a definition, the code; then the first ten figures."""
    found = replace(
        IDENTICAL,
        verdict="different",
        n_figures=40,
        n_moved=12,
        moved=(MOVED,) * 12,
        inputs=(ChangedInput("judgments of web", "old/qrels.txt", "new/qrels.txt", "a" * 64, "b" * 64),),
        versions=("numpy 2.4.6 → 2.3.5",),
        definitions=("ap: the metric's version was 1 and is 2",),
        code=("commit aaaaaaaaaaaa → bbbbbbbbbbbb",),
    )

    lines = reproduction_lines(found)
    assert lines[:6] == [
        "different: 12 of 40 figures moved",
        "input: judgments of web: old/qrels.txt, now new/qrels.txt "
        "(sha256 aaaaaaaaaaaa… then, sha256 bbbbbbbbbbbb… now)",
        "version: numpy 2.4.6 → 2.3.5",
        "definition: ap: the metric's version was 1 and is 2",
        "code: commit aaaaaaaaaaaa → bbbbbbbbbbbb",
        "summary.csv web bm25 all ap estimate: 0.25 → 0.5",
    ]
    assert lines.count(lines[5]) == 10
    assert lines[-2] == "… and 2 more"


def test_different_for_no_known_reason_says_so():
    """So that nobody looks for it if it is not."""
    found = replace(IDENTICAL, verdict="different", n_figures=40, n_moved=1, moved=(MOVED,))

    assert any("nothing that the record knows of has changed" in line for line in reproduction_lines(found))


def test_each_failed_output_has_a_line():
    """An error may have several."""
    found = replace(IDENTICAL, verdict="different", failures=("a: is wrong\nb: is wrong, too",))

    assert reproduction_lines(found)[:3] == [
        "different: it cannot be evaluated as it was",
        "not evaluated: a: is wrong",
        "not evaluated: b: is wrong, too",
    ]


def test_programs_get_everything():
    """As strict JSON, whatever the figures are."""
    moved = (replace(MOVED, before=math.nan, after=None), replace(MOVED, before=0.1, after=math.inf))

    data = json.loads(json.dumps(reproduction_data(replace(IDENTICAL, moved=moved)), allow_nan=False))

    assert data["record"] == "runs/records/x"
    assert [(cell["before"], cell["after"]) for cell in data["moved"]] == [("nan", None), (0.1, "inf")]
