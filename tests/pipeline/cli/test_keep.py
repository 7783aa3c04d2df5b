"""`report`, `verify`, `reproduce`, `prune`, `export` and `site`: exit codes, and what is on stdout and on stderr."""

import json
import re
import sys
from pathlib import Path

import pytest
from filelock import FileLock

import rankledger
from tests.support.commands import Command
from tests.support.generated_data import search_collection, write_config
from tests.support.site_records import night

ROOT = Path(__file__).parents[3]
ID = re.compile(r"\d{8}T\d{6}Z-[\w.-]+-[0-9a-f]{8}")


@pytest.fixture
def evaluation(run_cli: Command, tmp_path: Path) -> rankledger.Evaluation:
    config = write_config(tmp_path / "configs", {"web": search_collection(72, n_queries=8)}, {"search": ["ap"]})
    return rankledger.evaluate_config(config.relative_to(tmp_path), tracking=False)


def test_verify_exits_with_0_or_with_2(run_cli, evaluation):
    found = evaluation.evaluation_id

    assert run_cli("verify", found, "--no-tracking") == (
        0,
        f"runs/records/{found}: all 6 files are as the manifest says; there is no receipt and no run of MLflow to "
        "compare the manifest with\n",
        "",
    )
    code, out, err = run_cli("verify", found)
    assert (code, out.startswith(f"runs/records/{found}: all ")) == (0, True)
    assert re.fullmatch(r"not compared with MLflow: .*mlflow.db: no MLflow store found\n", err)
    (evaluation.record / "summary.csv").unlink()
    (evaluation.record / "scores.parquet").unlink()
    code, out, err = run_cli("verify", found, "--no-tracking")
    assert (code, out, len(err.splitlines())) == (2, "", 2)


def test_reproduce_exits_with_0_with_1_or_with_2(run_cli, evaluation, tmp_path):
    found = evaluation.evaluation_id
    judged = tmp_path / "configs/web/judged.txt"

    assert run_cli("reproduce", found) == (0, f"identical\nrecord: runs/records/{found}\n", "")
    judged.write_text(judged.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    code, out, err = run_cli("reproduce", found, "--json")
    assert (code, json.loads(out)["verdict"], err) == (1, "different", "")
    judged.unlink()
    code, out, err = run_cli("reproduce", found)
    assert (code, out) == (2, "")
    assert err.startswith("judgments of web: configs/web/judged.txt (")


def test_prune_says_and_does(run_cli, evaluation):
    again = rankledger.evaluate_config(evaluation.record / "config.yaml", tracking=False)
    old = evaluation.record.rename(evaluation.record.with_name(f"20200101T000000Z-generated-{'0' * 8}"))
    manifest = (old / "manifest.json").read_text(encoding="utf-8").replace(evaluation.evaluation_id, old.name)
    (old / "manifest.json").write_text(manifest, encoding="utf-8")

    code, out, err = run_cli("prune", "--keep-days", "90")
    assert (code, err, out.splitlines()[-1]) == (0, "", "nothing is deleted yet; add --yes")
    code, out, err = run_cli("prune", "--keep-days", "90", "--yes")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("20200101T000000Z-generated-00000000  ")
    assert [path.name for path in evaluation.record.parent.iterdir()] == [again.evaluation_id]


def test_what_the_guide_shows_is_what_is_printed(run_cli, tmp_path):
    page = (ROOT / "docs/records.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```text\n\$ rankledger (\w+) \S+\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "configs/quickstart").mkdir(parents=True)
    for path in (ROOT / "configs").rglob("quickstart*/*.tsv"):
        (tmp_path / path.relative_to(ROOT)).write_bytes(path.read_bytes())
    (tmp_path / "configs/quickstart.yaml").write_bytes((ROOT / "configs/quickstart.yaml").read_bytes())
    record = rankledger.evaluate_config("configs/quickstart.yaml", tracking=False).evaluation_id
    qrels = tmp_path / "configs/quickstart/qrels.tsv"
    assert [command for command, _ in shown] == ["verify", "reproduce", "reproduce"]

    verified = run_cli("verify", record, "--no-tracking")[1]
    assert plain(shown[0][1]).partition(";")[0] == plain(verified).partition(";")[0]
    assert plain(run_cli("reproduce", record)[1]) == plain(shown[1][1])
    qrels.write_bytes(qrels.read_bytes().replace(b"\t2\n", b"\t1\n", 1))
    printed = plain(run_cli("reproduce", record)[1])
    assert printed.startswith(plain(shown[2][1]))


def plain(text: str) -> str:
    return ID.sub("ID", text)


def test_the_files_are_printed(run_cli, tmp_path):
    config = write_config(
        tmp_path, {"web": search_collection(60, n_queries=5, models=("bm25",))}, {"main": ["rr"]}, report=False
    )
    rankledger.evaluate_config(config, tracking=False)

    code, out, err = run_cli("export", "--output", "shared")
    files = [Path(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [path.suffix for path in files] == [".jsonl", ".json"]
    assert {path.parent for path in files} == {Path("shared/data") / "generated" / "unknown" / "bm25"}
    assert all(path.is_file() for path in files)

    code, out, err = run_cli("export", "20260101T000000Z-web-00000000", "--output", "shared")
    assert (code, out) == (2, "")
    assert err.startswith("20260101T000000Z-web-00000000: record not found, neither at that path nor in ")


RECORDS = Path("runs/records")


def test_it_says_where_the_site_is_and_what_was_read(run_cli):
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
        f"{cut.name}: cannot be read as a record, left out: {RECORDS / cut.name}/manifest.json: Invalid JSON: "
        "EOF while parsing an object at line 1 column 1; restore the record\n",
    )


def test_what_is_wrong_is_said_in_a_line(run_cli):
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


@pytest.fixture
def reference(run_cli: Command, tmp_path: Path) -> str:
    collection = search_collection(73, n_queries=8, models=("bm25", "密集"))
    config = write_config(tmp_path / "configs", {"web": collection}, {"search": ["ap"]}, report=False)
    return rankledger.evaluate_config(config.relative_to(tmp_path), tracking=False).evaluation_id


@pytest.mark.parametrize("words", [[], ["--format", "csv"]])
def test_without_a_file_it_goes_to_stdout(run_cli, reference, words):
    expected = rankledger.report(reference, form=words[-1] if words else "html")
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
    assert (tmp_path / "out" / file).read_bytes() == rankledger.report(reference, form=form).encode()


def test_the_form_asked_for_comes_before_the_ending(run_cli, reference, tmp_path):
    assert run_cli("report", reference, "--format", "md", "--output", "a.txt") == (0, "", "")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == rankledger.report(reference, form="markdown")

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
    assert (tmp_path / "runs/report.html").read_text(encoding="utf-8") == rankledger.report(reference)
    assert run_cli("report", "--open", "--output", "a b.html") == (0, "report: a b.html\n", "")
    assert opened == [(tmp_path / name).as_uri() for name in ("runs/report.html", "a b.html")]

    monkeypatch.setattr("webbrowser.open", lambda _: False)

    code, _, err = run_cli("report", "--open")
    assert (code, err) == (0, "no browser found; open runs/report.html in one\n")
