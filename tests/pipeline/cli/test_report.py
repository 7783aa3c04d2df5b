"""`report` as its users meet it: what goes to stdout, what to a file, and what is refused before anything is read."""

import sys
from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.commands.report import report
from tests.support.commands import Command
from tests.support.generated_data import search_collection, write_config


@pytest.fixture
def reference(run_cli: Command, tmp_path: Path) -> str:
    collection = search_collection(73, n_queries=8, models=("bm25", "密集"))
    config = write_config(tmp_path / "configs", {"web": collection}, {"search": ["ap"]}, report=False)
    return rankledger.evaluate_config(config.relative_to(tmp_path), tracking=False).evaluation_id


@pytest.mark.parametrize("words", [[], ["--format", "csv"]])
def test_without_a_file_it_goes_to_stdout(run_cli, reference, words):
    expected = report(reference, form=words[-1] if words else "html")

    assert run_cli("report", reference, *words) == (0, expected, "")
    assert "密集" in expected


@pytest.mark.parametrize(
    ("file", "form"), [("a.html", "html"), ("a.md", "markdown"), ("a.TEX", "latex"), ("a.b.csv", "csv")]
)
def test_the_ending_of_the_file_says_what_is_made(run_cli, reference, tmp_path, file, form):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / file).write_text("old")

    assert run_cli("report", reference, "--output", f"out/{file}") == (0, "", "")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [file]
    assert (tmp_path / "out" / file).read_bytes() == report(reference, form=form).encode()


def test_the_form_asked_for_comes_before_the_ending(run_cli, reference, tmp_path):
    assert run_cli("report", reference, "--format", "md", "--output", "a.txt") == (0, "", "")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == report(reference, form="markdown")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--output", "a.txt"], "a.txt: unknown file type; add --format, or let the name end in .html"),
        (["--output", "gone/a.md"], "gone/a.md: folder not found; create it or check --output"),
        (
            ["--format", "pdf"],
            "Invalid value for '--format': 'pdf' is not one of 'html', 'markdown', 'latex', 'csv', 'md'.",
        ),
        (["--last", "0"], "Invalid value for '--last': 0 is not in the range x>=1."),
        (["--open", "--format", "markdown"], "--open needs an HTML page; remove --format or set it to html"),
        (["--open", "--output", "a.md"], "--open needs an HTML page; remove --format or set it to html"),
    ],
)
def test_what_cannot_be_made_is_refused(run_cli, reference, arguments, said):
    code, out, err = run_cli("report", "./no-record", *arguments)

    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == f"Error: {said}"


def test_what_is_not_there_is_refused_in_a_line(run_cli, reference):
    for arguments, said in [
        (["./no-record"], "./no-record: record not found, neither at that path nor in runs/records\n"),
        (["last", "--name", "x"], "runs/records: no evaluation is called 'x'\n"),
        ([reference, "--measure", "app"], f"runs/records/{reference}: has no measure 'app'; available: ap; "),
    ]:
        code, out, err = run_cli("report", *arguments, "--output", "a.md")

        assert (code, out) == (2, "")
        assert err.startswith(said)
        assert err.count("\n") == 1
        assert not Path("a.md").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_reported_in_a_line(run_cli, reference):
    """Exit 74; nothing is said of records, for this command writes none."""
    assert run_cli("report", reference, "--output", "/dev/full", "--format", "csv") == (
        74,
        "",
        "disk: No space left on device; the report is not written\n",
    )


def test_a_page_is_not_written_on_a_terminal(run_cli, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    code, out, err = run_cli("report", "./no-record")

    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith(
        "Error: an HTML page cannot be shown in a terminal; add --open, --output FILE"
    )
    assert "record not found" in run_cli("report", "./no-record", "--format", "markdown")[2]


def test_a_page_is_opened_in_the_browser(run_cli, reference, tmp_path, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)

    assert run_cli("report", "--open") == (0, "report: runs/report.html\n", "")
    assert (tmp_path / "runs/report.html").read_text(encoding="utf-8") == report(reference)
    assert run_cli("report", "--open", "--output", "a b.html") == (0, "report: a b.html\n", "")
    assert opened == [(tmp_path / name).as_uri() for name in ("runs/report.html", "a b.html")]


def test_without_a_browser_the_page_is_named(run_cli, reference, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda _: False)

    code, _, err = run_cli("report", "--open")
    assert (code, err) == (0, "no browser found; open runs/report.html in one\n")
