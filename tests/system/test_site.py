"""The site over all records in a real browser, from the disk, and over records in an object store."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from rankledger.pipeline.record.store import Records, open_records
from rankledger.pipeline.report.site import site
from tests.support import sample_evaluations
from tests.support.servers import S3
from tests.support.site_records import night
from tests.system.report import Report, page_of

LOOKS = [(1440, "light"), (1440, "dark"), (375, "light"), (375, "dark")]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for number, effect in enumerate(("pass", "fail", "fail", "pass", "fail")):
        night(folder / "runs/records", number, effect, estimate=0.4 + number / 50)
    for kind in ("various", "hostile"):
        (folder / kind).mkdir()
        page = page_of(getattr(sample_evaluations, kind)(folder / kind), folder / kind)
        shutil.copytree(page.parent, folder / "runs/records" / page.parent.name)
    site(folder / "site", runs_dir=folder / "runs")
    return folder / "site"


@pytest.fixture
def index(chromium_on_files: Report, published: Path) -> Iterator[Report]:
    chromium_on_files.see(1440)
    chromium_on_files.load(published / "index.html")
    yield chromium_on_files
    assert chromium_on_files.messages() == []
    asked = [url for url in chromium_on_files.requests() if not url.startswith(("about:", "data:"))]
    assert all(url.startswith(published.as_uri()) for url in asked)


def links(page: Report) -> set[str]:
    found = page.driver.execute_script("return [...document.querySelectorAll('a[href], link[href]')].map(a => a.href)")
    return {url.partition("#")[0] for url in found}


def search(page: Report, text: str) -> list[str]:
    field = page.driver.find_element(By.ID, "search")
    field.send_keys(Keys.CONTROL, "a", Keys.DELETE)
    field.send_keys(text)
    return page.texts(".search li")


def test_every_page_is_reached_by_links(index, published):
    reached, todo = set(), {(published / "index.html").as_uri()}
    while todo:
        url = todo.pop()
        reached.add(url)
        if url.endswith(".html") and "/records/" not in url:
            index.driver.get(url)
            todo |= links(index) - reached

    files = [path for path in published.rglob("*") if path.is_file() and path.name != "site-state.json"]
    assert reached == {path.as_uri() for path in files}


def test_a_record_leads_back_to_its_evaluation(index, published):
    (copy,) = (published / "records").glob("*-hostile-*.html")
    written = copy.stat().st_mtime_ns
    site(published, runs_dir=published.parent / "runs")
    index.driver.get(copy.as_uri())
    index.click(text="All nights")

    assert copy.stat().st_mtime_ns == written
    assert index.driver.current_url == next((published / "evaluations").glob("hostile*.html")).as_uri()


def test_what_is_searched_is_found(index):
    assert search(index, "search-team")[0].startswith("bm25 model")
    assert search(index, "news & more") == ["news & more dataset of generated"]
    found = [line.partition(",")[0] for line in search(index, "Nightly 2026-11-1")]
    assert found == ["nightly 2026-11-19 failed", "nightly 2026-11-18 passed"]
    assert len(search(index, "nightly failed")) == 4  # three nights, and the evaluation, which failed last
    assert search(index, "no such thing") == []
    assert index.texts(".search output") == ["0 found"]
    assert search(index, "") == []
    assert index.texts(".search output") == [""]
    search(index, "2026-11-20")
    (found,) = index.all(".search li a")
    found.click()
    index.wait(
        "the record's page", lambda: "/records/20261120T020000Z-nightly-00000002.html" in index.driver.current_url
    )


def test_hostile_names_are_text(index, published):
    name = sample_evaluations.HOSTILE["image"]
    (line,) = [line for line in search(index, "onerror") if " model" in line and name in line]
    assert line.startswith(name)
    for link in sorted(links(index) | {path.as_uri() for path in (published / "models").iterdir()}):
        if link.endswith(".html") and "/records/" not in link:
            index.driver.get(link)
            assert index.all("img, iframe, em, h1 i, a[href^='javascript']") == []


@pytest.mark.parametrize("start", ["index", "models", "evaluations/nightly", "evaluations/hostile", "models/bm25"])
def test_accessible(index, published, start):
    (page,) = published.glob(f"{start}*.html") if "/" in start else [published / f"{start}.html"]
    index.driver.get(page.as_uri())
    if start == "index":
        assert len(search(index, "nightly")) > 5
    for width, scheme in LOOKS:
        index.see(width, scheme)
        assert index.violations() == []
        assert index.overhang() == 0


def test_without_scripts_all_is_there(index, published):
    """Every evaluation and night is in view, and no field that would need a script."""
    index.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        index.driver.get((published / "index.html").as_uri())
        rows = index.all("tbody tr")
        assert len(rows) == 3
        assert all(row.is_displayed() for row in rows)
        assert not index.driver.find_element(By.ID, "search").is_displayed()
    finally:
        index.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_records_in_an_object_store(s3: S3, tmp_path):
    here = tmp_path / "here"
    paths = [night(here / "records", number, "pass") for number in range(3)]
    url = s3.bucket()
    far = Records(here / "records", open_records(tmp_path / "none", url).remote)
    for path in paths:
        far.keep(path)
    first = site(tmp_path / "far", runs_dir=tmp_path / "runs", records=url)
    site(tmp_path / "near", runs_dir=here)
    again = site(tmp_path / "far", runs_dir=tmp_path / "runs", records=url)
    far.delete(paths[0].name)
    after = site(tmp_path / "far", runs_dir=tmp_path / "runs", records=url)

    assert [(found.n_records, found.n_read) for found in (first, again, after)] == [(3, 3), (3, 0), (2, 0)]
    assert not (tmp_path / "runs/records").exists()
    assert not (tmp_path / "far/records" / f"{paths[0].name}.html").exists()
    shutil.rmtree(paths[0], ignore_errors=True)
    site(tmp_path / "near", runs_dir=here)
    for path in (tmp_path / "near").rglob("*.html"):
        assert (tmp_path / "far" / path.relative_to(tmp_path / "near")).read_bytes() == path.read_bytes()
