"""The site over all records: incremental as from scratch, whole at any time, and harmless whatever names say."""

import datetime
import errno
import json
import os
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rankledger.pipeline.inference.tables import ChangeSince
from rankledger.pipeline.report.site import SiteResult, site
from rankledger.pipeline.support.errors import InputError
from tests.support.manifests import forge
from tests.support.page_reader import Table, read_page
from tests.support.site_records import night

STATE = "site-state.json"
MARKUP = "</script><img src=x onerror=alert(1)>\"'&amp;{{7*7}}"


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "runs/records"
    for number, effect in enumerate(("pass", "fail", "pass")):
        night(folder, number, effect)
    night(folder, 0, None, name="weekly")
    return folder


def written(output: Path, **options: str) -> SiteResult:
    return site(output, runs_dir=output.parent / "runs", **options)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def table(page: Path, name: str) -> Table:
    return next(own for own in read_page(page.read_text(encoding="utf-8")).tables if own.name == name)


def page_of(output: Path, folder: str, name: str) -> Path:
    (found,) = (output / folder).glob(f"{name}-*.html")
    return found


class Links(HTMLParser):
    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.found += [value or "" for name, value in attrs if name in ("href", "src")]


def test_an_incremental_site_has_the_bytes_of_one_from_scratch(records, tmp_path):
    written(tmp_path / "grown")
    first = min(records.glob("*-nightly-*"))
    shutil.rmtree(first)
    night(records, 3, "fail", estimate=0.2)
    night(records, 2, "fail", again=5)
    night(records, 0, name="other", models=("new",))
    found = written(tmp_path / "grown")
    written(tmp_path / "fresh")

    assert (found.n_records, found.n_read) == (6, 3)
    assert tree(tmp_path / "grown") == tree(tmp_path / "fresh")
    assert not list((tmp_path / "grown").rglob(f"*{first.name}*"))


def test_what_vanished_is_deleted_and_nothing_else(records, tmp_path):
    gone = night(records, 1, name="gone", models=("lost",))
    output = tmp_path / "site"
    written(output)
    others = [output / name for name in ("CNAME", "records/notes.html", "models/own.html")]
    for other in others:
        other.write_text("mine", encoding="utf-8")
    assert len([*output.rglob("*gone*"), *output.rglob("lost-*")]) == 3
    shutil.rmtree(gone)
    written(output)

    assert [*output.rglob("*gone*"), *output.rglob("lost-*")] == []
    assert [other.read_text(encoding="utf-8") for other in others] == ["mine"] * 3


def test_a_known_record_is_not_read_again(records, tmp_path):
    output = tmp_path / "site"
    assert written(output).n_read == 4
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    damaged = max(records.glob("*-nightly-*"))
    (damaged / "summary.csv").write_text("damaged", encoding="utf-8")
    found = written(output)

    assert (found.n_records, found.n_read, found.remarks) == (4, 0, ())
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*") if path.is_file()} == {
        path: time for path, time in before.items() if path.is_file()
    }
    found = written(tmp_path / "fresh")
    (remark,) = found.remarks
    assert found.n_records == 3
    assert remark.startswith(f"{damaged.name}: cannot be read as a record, left out: {damaged / 'summary.csv'}: has")


@pytest.mark.parametrize("n_left", [0, 1])
def test_records_that_go_meanwhile_are_left_out_in_silence(records, tmp_path, monkeypatch, n_left):
    read = Path.read_bytes

    def delete_first(self: Path) -> bytes:
        for gone in [*records.iterdir()][n_left:] if self.is_relative_to(records) else ():
            shutil.rmtree(gone)
        return read(self)

    monkeypatch.setattr(Path, "read_bytes", delete_first)
    if n_left:
        assert (written(tmp_path / "site").n_records, written(tmp_path / "site").remarks) == (1, ())
    else:
        with pytest.raises(InputError, match="no record can be read any more"):
            written(tmp_path / "site")


def test_a_record_that_was_replaced_is_read_again(records, tmp_path):
    written(tmp_path / "site")
    record = max(records.glob("*-nightly-*"))
    summary = (record / "summary.csv").read_text(encoding="utf-8")
    forge(record, "summary.csv", summary.replace("0.4,", "0.125,").encode())
    os.utime(record / "manifest.json", (1, 1))

    assert written(tmp_path / "site").n_read == 1
    written(tmp_path / "fresh")
    assert tree(tmp_path / "site") == tree(tmp_path / "fresh")
    assert table(page_of(tmp_path / "site", "evaluations", "nightly"), "models-web").groups[0].rows[0][2] == "0.1250"


def test_a_state_that_is_lost_or_was_changed_costs_only_time(records, tmp_path):
    output = tmp_path / "site"
    written(output)
    before, text = tree(output), (output / STATE).read_text(encoding="utf-8")
    changes = [("+00:00", ""), ('"passed"', '"good"'), ('"stamp"', '"other"'), ("0.3", '"0.3"')]
    changed = [text.replace(*change).encode() for change in changes]
    for state in (None, b"[]", b'{"writer": "another", "records": {}}', b"\xff", b"[" * 9999, *changed):
        (output / STATE).unlink()
        if state is not None:
            (output / STATE).write_bytes(state)

        assert tree(output) != before
        assert written(output).n_read == 4
        assert tree(output) == before


def test_a_page_that_is_gone_or_cut_is_copied_again(records, tmp_path):
    output = tmp_path / "site"
    written(output)
    before = tree(output)
    one, other, *_ = sorted((output / "records").iterdir())
    one.unlink()
    other.write_bytes(other.read_bytes()[:10])

    assert written(output).n_read == 0
    assert tree(output) == before


def test_an_error_at_any_file_leaves_whole_pages(records, tmp_path, monkeypatch):
    written(tmp_path / "old")
    shutil.rmtree(min(records.glob("*-nightly-*")))
    night(records, 3, "fail", models=("bm25", "fresh"))
    written(tmp_path / "fresh")
    replace, left = Path.replace, 0

    def refusing(self: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refusing)
    n_refused = 0
    for n_refused in range(100):
        output = Path(shutil.copytree(tmp_path / "old", tmp_path / f"site-{n_refused}"))
        left = n_refused + 1
        try:
            written(output)
            break
        except OSError:
            assert all(is_whole(path) for path in output.rglob("*") if path.is_file())
            assert all((output / link).is_file() for link in Links(output / "index.html").found if link[0] != "#")
            left = 0
            written(output)
            assert tree(output) == tree(tmp_path / "fresh")

    assert n_refused == len(tree(tmp_path / "fresh").items() - tree(tmp_path / "old").items())


def is_whole(path: Path) -> bool:
    ends = {".html": "</html>\n", ".xml": "</feed>\n", ".json": "}}]"}
    is_copy = path.parent.name == "records"
    return path.read_text(encoding="utf-8").endswith("</title>" if is_copy else ends[path.suffix])


def test_all_links_lead_to_files_of_the_site(records, tmp_path):
    output = tmp_path / "site"
    night(records, 1, name="without-page", page=None)
    written(output)
    reached, todo = set(), [output / "index.html"]
    while todo:
        page = todo.pop()
        reached.add(page)
        if page.suffix == ".html" and page.parent.name != "records":
            linked = {(page.parent / link.partition("#")[0]).resolve() for link in Links(page).found if link[0] != "#"}
            assert [path for path in linked if not (path.is_file() and path.is_relative_to(output))] == []
            todo += linked - reached

    assert reached == {path for path in output.rglob("*") if path.is_file()} - {output / STATE}
    last = max(record.name for record in records.glob("*-nightly-*"))
    assert f"../records/{last}.html" in Links(page_of(output, "evaluations", "nightly")).found[:6]


def test_the_index_says_what_broke_since_when_and_whose_it_is(tmp_path):
    folder = tmp_path / "runs/records"
    for number, effect in enumerate(("pass", "fail", "fail")):
        night(folder, number, effect)
    night(folder, 2, "pass", name="a-good-one")
    written(tmp_path / "site")
    failed, passed = table(tmp_path / "site/index.html", "evaluations").groups[0].rows
    days = (datetime.datetime.now(datetime.UTC).date() - datetime.date(2026, 11, 20)).days

    assert failed[:2] + failed[3:] == [
        *("nightly", "FAIL", "2026-11-19", f"2026-11-20, {days} days ago", "3", "bm25 (search-team)")
    ]
    assert failed[2] == "FAIL floor: 0.4 is below 0.5. Owner: search-team."
    assert passed[:2] + passed[3:] == ["a-good-one", "PASS", "2026-11-20", f"2026-11-20, {days} days ago", "1", ""]


def test_the_headline_of_a_record_is_on_every_surface(tmp_path):
    change = ChangeSince(
        *("web", "bm25", "ndcg@10", "previous", "20261119T020000Z-nightly-00000001", "2026-11-19"),
        before=0.5,
        after=0.433,
        difference=-0.067,
        ci_low=-0.08,
        ci_high=-0.05,
        decision="worse",
        n_queries=300,
        n_clusters=300,
        slice="family=internet",
        slice_queries=59,
        slice_before=0.543,
        slice_after=0.163,
        slice_share=1.0,
        first_seen="2026-11-20",
        owner="search-team",
    )
    folder = tmp_path / "runs/records"
    for number, (effect, changes) in enumerate((("pass", ()), ("pass", ()), ("fail", (change,)))):
        night(folder, number, effect, changes=changes)
    written(tmp_path / "site")
    page = page_of(tmp_path / "site", "evaluations", "nightly")
    says = "FAIL floor: 0.4 is below 0.5. Since 20 Nov. Owner: search-team."

    assert table(tmp_path / "site/index.html", "evaluations").groups[0].rows[0][2] == says
    assert f"2026-11-20: {says}" in read_page(page.read_text(encoding="utf-8")).text["verdict"]
    assert table(page, "nights").groups[0].rows[0][3] == says
    summary = ElementTree.parse(tmp_path / "site/feed.xml").findtext(".//{http://www.w3.org/2005/Atom}summary")
    assert summary == f"{says} Not passed: bm25 (search-team). The night before, 2026-11-19: passed."


@pytest.mark.parametrize(
    ("effect", "manifest", "state"),
    [
        ("warn", {}, "PASS"),
        ("stop", {}, "INCONCLUSIVE"),
        (None, {}, "no gates"),
        ("stop", {"failed": ["other"]}, "INCOMPLETE"),
        ("fail", {"failed": ["other"]}, "FAIL"),
    ],
)
def test_a_verdict_is_that_of_the_exit_code(tmp_path, effect, manifest, state):
    night(tmp_path / "runs/records", 0, effect, **manifest)
    written(tmp_path / "site")
    assert table(tmp_path / "site/index.html", "evaluations").groups[0].rows[0][1] == state


def test_of_several_records_of_a_night_the_last_counts(tmp_path):
    folder = tmp_path / "runs/records"
    night(folder, 0, "pass", estimate=0.1)
    first = night(folder, 1, "fail", estimate=0.2)
    night(folder, 1, "pass", estimate=0.3, again=3)
    night(folder, 5, "fail", estimate=0.4, repeats=first.name)
    written(tmp_path / "site")
    page = page_of(tmp_path / "site", "evaluations", "nightly")

    rows = table(page, "nights").groups[0].rows
    assert [(row[0], row[1], row[4]) for row in rows] == [
        ("2026-11-23", "FAIL", "repeats another"),
        ("2026-11-19", "PASS", ""),
        ("2026-11-19", "FAIL", "evaluated again"),
        ("2026-11-18", "PASS", ""),
    ]
    assert [row[2] for row in table(page, "nights-web").groups[0].rows] == ["0.3000", "0.1000"]
    (model,) = [row for row in table(page, "models-web").groups[0].rows if row[0] == "bm25"]
    assert model[1:5] == ["search-team", "0.3000", "[0.3000, 0.6000]", "+0.2000"]
    assert list(ElementTree.parse(tmp_path / "site/feed.xml").iter("{http://www.w3.org/2005/Atom}entry")) == []


def test_a_model_has_its_nights_in_every_evaluation(records, tmp_path):
    written(tmp_path / "site")
    page = read_page(page_of(tmp_path / "site", "models", "bm25").read_text(encoding="utf-8"))
    models = table(tmp_path / "site/models.html", "models").groups[0].rows

    assert [own.caption for own in page.tables] == ["bm25 in nightly", "bm25 in weekly"]
    assert [chart.title for chart in page.charts] == [
        "ndcg@10 of bm25 on web, 3 nights",
        "ndcg@10 of bm25 on web, 1 night",
    ]
    assert [row["night"] for row in page.charts[0].rows] == ["2026-11-18", "2026-11-19", "2026-11-20"]
    assert models == [["bm25", "search-team", "2", "1", "2026-11-20"], ["dense", "", "2", "1", "2026-11-20"]]


def test_another_site_is_not_written_over_nor_one_without_records(records, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.html").write_text("<title>mine</title>", encoding="utf-8")
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match=r"docs/index.html: is not a page of `rankledger site`; name another folder"):
        written(tmp_path / "docs")
    with pytest.raises(InputError, match="file: is a file; name a folder with --output"):
        written(tmp_path / "file")
    assert [path.name for path in (tmp_path / "docs").iterdir()] == ["index.html"]

    output = tmp_path / "site"
    written(output)
    before = tree(output)

    with pytest.raises(InputError, match=r"elsewhere/records: no records; run `rankledger evaluate`, or check"):
        site(output, runs_dir=tmp_path / "elsewhere")
    for record in records.iterdir():
        (record / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="no record can be read, such as 2026"):
        site(output, runs_dir=tmp_path / "runs")
    assert tree(output) == before


@pytest.mark.parametrize("url", ["ftp://a/b", "https://", "https://u:p@a/", "https://a/?q", "https://a b/"])
def test_a_url_that_is_none_is_refused(records, tmp_path, url):
    with pytest.raises(InputError, match="--url: found "):
        written(tmp_path / "site", url=url)
    assert not (tmp_path / "site").exists()


HOSTILE = (
    *(MARKUP, "../../escape", "BM25", "bm25", "a/b\\c?d#e", "\u202eevil", "W" * 250, "مرحبا", "..", "con", "\u0001nul"),
)


def test_no_name_chooses_a_path(tmp_path):
    night(tmp_path / "runs/records", 0, "fail", models=HOSTILE)
    night(tmp_path / "runs/records", 0, "fail", name="..")
    night(tmp_path / "runs/records", 0, "fail", name="Nightly")
    written(tmp_path / "site")
    models, evaluations = (
        [path.name for path in (tmp_path / "site" / part).iterdir()] for part in ("models", "evaluations")
    )

    assert len({name.lower() for name in models}) == len(HOSTILE) + 1  # and dense
    assert len({name.lower() for name in evaluations}) == 3
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.") for name in models + evaluations)
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "site"}


def test_no_name_becomes_markup(tmp_path):
    folder = tmp_path / "runs/records"
    night(folder, 0, "pass", models=HOSTILE, owner=MARKUP)
    night(folder, 1, "fail", models=HOSTILE, owner=MARKUP, date=f"{MARKUP}\u202e")
    written(tmp_path / "site")
    pages = [path for path in (tmp_path / "site").rglob("*.html") if path.parent.name != "records"]

    assert len(pages) == len(HOSTILE) + 3
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert read_page(text).tags.isdisjoint({"img", "iframe", "base", "form", "object"})
        assert not any(link.startswith(("javascript", "data", "http", "//")) for link in Links(page).found)
        assert text.count("<script") == text.count("</script>") == (2 if page.name == "index.html" else 1)
        assert "\u202e" not in text
    index = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    found = json.loads(index.partition('<script type="application/json">')[2].partition("</script>")[0])
    assert [MARKUP[:80], "\\u202eevil"] == [text for text, _, _ in found if text in (MARKUP, "\\u202eevil")]
    assert {href.partition("/")[0] for _, href, _ in found} == {"evaluations", "models", "records"}
    feed = ElementTree.parse(tmp_path / "site/feed.xml")
    assert {element.tag.partition("}")[2] for element in feed.iter()} == {
        *("feed", "id", "title", "updated", "author", "name", "link", "entry", "summary")
    }
