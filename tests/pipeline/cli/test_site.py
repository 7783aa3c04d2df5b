"""`site` as its users meet it: exit codes, what is on stdout and what is on stderr."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support.site_records import night

RECORDS = Path("runs/records")


def test_it_says_where_the_site_is_and_what_was_read(run_cli):
    """All records first, then the new one alone; one that cannot be read is named on stderr, and the exit code is 0."""
    night(RECORDS, 0)
    night(RECORDS, 0, name="weekly")
    first = run_cli("site", "--output", "out")
    cut = night(RECORDS, 1)
    (cut / "manifest.json").write_text("{", encoding="utf-8")
    second = run_cli("site", "--output", "out")

    assert first == (0, "site: out/index.html (2 evaluations, 2 records, 2 read)\n", "")
    assert second == (
        0,
        "site: out/index.html (2 evaluations, 2 records, 0 read)\n",
        f"{cut.name}: cannot be read as a record, left out\n",
    )


def test_what_is_wrong_is_said_in_a_line(run_cli):
    """2 without records or with a wrong URL, 75 if another process writes the site, 74 for the disk."""
    none = "runs/records: no records; run `rankledger evaluate`, or check --runs-dir and --records\n"
    assert run_cli("site", "--output", "out") == (2, "", none)
    night(RECORDS, 0)
    code, out, err = run_cli("site", "--output", "out", "--url", "eval")
    assert (code, out) == (2, "")
    assert err == "--url: found 'eval'; write where the site will be, such as https://eval.example.com/site/\n"
    Path("out").mkdir()
    with FileLock("out/.site.lock"):
        busy = run_cli("site", "--output", "out")
    assert busy == (75, "", "out: another process is writing this site; wait until it is done\n")
    Path("out/feed.xml").mkdir()
    code, out, err = run_cli("site", "--output", "out")
    assert (code, out) == (74, "")
    assert re.fullmatch(r"out/\S*feed.xml\S*: Is a directory; the site may be incomplete; run the command again\n", err)


@pytest.mark.parametrize("option", [["--output"], []])
def test_the_folder_is_required(run_cli, option):
    """There is no default that could be written over."""
    code, _, err = run_cli("site", *option)

    assert code == 2
    assert "--output" in err.splitlines()[-1]
