"""Lines beside the tables."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rankledger.pipeline.commands.prune import PruneResult, pruning_lines
from rankledger.pipeline.commands.reproduce import Reproduction, reproduction_data, reproduction_lines
from rankledger.pipeline.report.messages import rerun_command
from rankledger.pipeline.report.page import comparability_notes, shared_lead_measures
from tests.support.handwritten_results import estimates, page
from tests.support.manifests import whole

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
MOVED = {"file": "summary.csv", "row": ("web", "bm25", "all", "ap"), "column": "estimate", "before": 0.25, "after": 0.5}
CHANGED = {
    "what": "judgments of web",
    "recorded": "old/qrels.txt",
    "found": "new/qrels.txt",
    "recorded_digest": "a" * 64,
    "found_digest": "b" * 64,
}


def test_identical_is_a_word_and_the_record():
    assert reproduction_lines(IDENTICAL) == ["identical", "record: runs/records/x"]
    other = replace(IDENTICAL, versions=("numpy 2.4.6 → 2.3.5", "python 3.11.7 → 3.12.1"))
    assert reproduction_lines(other)[0] == "identical, with numpy 2.4.6 → 2.3.5, python 3.11.7 → 3.12.1"


def test_equal_says_to_what():
    found = replace(IDENTICAL, verdict="equal", n_figures=1_234, versions=("numpy 2.4.6 → 2.3.5",), n_found=2)

    assert reproduction_lines(found) == [
        "equal: all 1,234 figures are the same to 1e-12, with numpy 2.4.6 → 2.3.5",
        "2 files of the inputs moved, and were found",
        "record: runs/records/x",
    ]


def test_different_names_what_changed_and_what_moved():
    found = replace(
        IDENTICAL,
        verdict="different",
        n_figures=40,
        n_moved=12,
        moved=(MOVED,) * 12,
        inputs=(CHANGED,),
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
    found = replace(IDENTICAL, verdict="different", n_figures=40, n_moved=1, moved=(MOVED,))

    assert any("nothing that the record knows of has changed" in line for line in reproduction_lines(found))


def test_each_failed_output_has_a_line():
    found = replace(IDENTICAL, verdict="different", failures=("a: is wrong\nb: is wrong, too",))

    assert reproduction_lines(found)[:3] == [
        "different: it cannot be evaluated as it was",
        "not evaluated: a: is wrong",
        "not evaluated: b: is wrong, too",
    ]


def test_programs_get_everything():
    moved = (MOVED | {"before": math.nan, "after": None}, MOVED | {"before": 0.1, "after": math.inf})

    data = json.loads(json.dumps(reproduction_data(replace(IDENTICAL, moved=moved)), allow_nan=False))

    assert data["record"] == "runs/records/x"
    assert [(cell["before"], cell["after"]) for cell in data["moved"]] == [("nan", None), (0.1, "inf")]


BEFORE = datetime(2026, 8, 23, 12, tzinfo=UTC)


def lines(**parts: Any) -> list[str]:
    plain = PruneResult(BEFORE, done=False, records=(), n_cached=0, n_cached_bytes=0, stays={})
    return [*pruning_lines(replace(plain, **parts))]


def going(evaluation_id: str, size: int, n_runs: int) -> dict[str, Any]:
    return {"evaluation_id": evaluation_id, "size": size, "run_ids": ("run",) * n_runs}


def test_each_record_has_a_line_and_all_have_a_sum():
    assert lines(records=(going("a", 1_200_000, 21), going("b", 300_000, 1)), n_cached=1, n_cached_bytes=999) == [
        "a  1.2 MB, 21 runs",
        "b  300.0 kB, 1 run",
        "would delete 2 records from before 2026-08-23 12:00 UTC, 1.5 MB, 22 runs",
        "would delete 1 file of the output cache not used since, 999 B",
        "nothing is deleted yet; add --yes",
    ]


def test_records_that_stay_are_counted_by_reason():
    assert lines(stays={"accepted": 1, "not delivered yet": 2})[2:] == [
        "1 older record stays: accepted",
        "2 older records stay: not delivered yet",
    ]


def test_afterwards_it_says_that_it_did():
    assert lines(done=True, records=(going("a", 1, 0),))[1] == (
        "deleted 1 record from before 2026-08-23 12:00 UTC, 1 B, 0 runs"
    )
    assert "--yes" not in "".join(lines(done=True, records=(going("a", 1, 0),)))


@pytest.mark.parametrize(
    ("n_bytes", "text"), [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (10**12, "1.0 TB"), (10**16, "10000.0 TB")]
)
def test_sizes_are_in_the_unit_that_makes_them_readable(n_bytes, text):
    assert lines(n_cached_bytes=n_bytes)[1].endswith(f", {text}")


WEB = estimates("web", {"bm25": {"ap": 0.4, "rr": 0.5}})
NEWS = estimates("news", {"bm25": {"rr": 0.5}})


def test_each_dataset_leads_as_in_the_last_evaluation_that_has_it():
    """web leads by ap on the 20th and by rr on the 21st, in whatever order they are named; news is in one alone."""
    old = page([*NEWS, *WEB], lead={"web": "ap", "news": "rr"}, created="2026-11-20T02:00:00+00:00")
    new = page(WEB, lead={"web": "rr"}, created="2026-11-21T02:00:00+00:00")

    assert shared_lead_measures([new, old]) == shared_lead_measures([old, new]) == {"web": "rr", "news": "rr"}
    assert list(shared_lead_measures([old, new])) == ["news", "web"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"datasets": {"web": {"digests": {"judgments": "new"}}}}, ["the judgments differ on web"]),
        ({"definitions": {"ap": {"fingerprint": "0000000000000000"}}}, ["the definitions of ap differ on web"]),
        ({"definitions": {"rr": {"fingerprint": "0000000000000000"}}}, []),  # is not shown side by side
    ],
)
def test_what_keeps_figures_from_being_compared_is_said(changes, said):
    found = list(comparability_notes([page(WEB), page(WEB, **changes), page(NEWS)]))

    assert [line.partition(" in these evaluations")[0] for line in found] == said
    assert all(line.endswith("figures there cannot be compared") for line in found)


EARLIER = "20261119T020000Z-nightly-1f0c9a2b"
MANIFEST = {"config": "a b.yaml", "date": None, "repeats": None}


@pytest.mark.parametrize(
    ("command", "changes", "asked"),
    [
        (
            "rankledger evaluate --jobs 2 'a b.yaml' --set 'x=[1, 2]' --runs-dir r --set=y=3 --json",
            {},
            "rankledger evaluate 'a b.yaml' --set 'x=[1, 2]' --set y=3",
        ),
        ("rankledger nightly 'a b.yaml'", {"date": "2026-11-20"}, "rankledger nightly 'a b.yaml' --date 2026-11-20"),
        (
            "rankledger evaluate r/20-x --set=seed=1",
            {"repeats": EARLIER},
            f"rankledger evaluate {EARLIER} --set seed=1",
        ),
        ('rankledger.evaluate("it\'s.yaml")', {}, 'rankledger.evaluate("it\'s.yaml")'),
        ("rankledger evaluate a.yaml --jobs 2", {"config": ""}, "rankledger evaluate a.yaml --jobs 2"),
    ],
)
def test_what_changes_no_figure_is_left_out(command, changes, asked):
    assert rerun_command(whole(MANIFEST | {"command": command} | changes)) == asked
