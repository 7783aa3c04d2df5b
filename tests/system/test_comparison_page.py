"""The page of what changed since the night before, and the index of nights, in a real browser."""

from contextlib import chdir
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement

import rankledger
from tests.support import sample_evaluations
from tests.system.report import Report

LOOKS = [(width, scheme) for width in (1440, 375) for scheme in ("light", "dark")]
_OPEN = "document.querySelectorAll('details').forEach(details => { details.open = true; })"


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights")
    config = sample_evaluations.hostile(folder)
    with chdir(folder):
        first = rankledger.evaluate_config(config, date="2026-11-19", tracking=False)
        for model, other in (("script", "image"), ("image", "script")):
            (folder / f"{model}.parquet").rename(folder / f"{other}.kept")
        for model in ("script", "image"):
            (folder / f"{model}.kept").rename(folder / f"{model}.parquet")
        second = rankledger.evaluate_config(config, date="2026-11-20", tracking=False)
        text = rankledger.report(first.evaluation_id, second.evaluation_id, output="index.html")
        (folder / "index.html").write_text(text, encoding="utf-8")
        (folder / "changes.html").symlink_to((second.record / "changes.html").absolute())
        (folder / "report.html").symlink_to((second.record / "report.html").absolute())
    return folder


@pytest.mark.parametrize(("name", "looks"), [("changes.html", LOOKS[::3]), ("index.html", LOOKS[1:3])])
def test_accessible(opened, nights, name, looks):
    page = opened(nights / name)
    page.driver.execute_script(_OPEN)
    for width, scheme in looks:
        page.see(width, scheme)
        assert page.violations() == []
        assert page.overhang() == 0


@pytest.mark.parametrize("name", ["changes.html", "index.html"])
def test_hostile_names_are_text(opened, nights, name):
    page = opened(nights / name)
    page.driver.execute_script(_OPEN)
    code = "return [...document.querySelectorAll('body *')].map(element => element.localName)"
    elements = {*page.driver.execute_script(code)}

    assert elements & {"script", "img", "em", "i", "u", "s", "h6", "iframe", "object"} == set()
    assert page.all("[onload], [onerror], [onclick], a[href^='javascript']") == []
    if name == "changes.html":
        text = page.driver.execute_script("return document.body.textContent")
        assert sample_evaluations.HOSTILE_TEXT in text
        assert sample_evaluations.HOSTILE_TITLE in text


def test_the_address_opens_a_query(opened, nights):
    """`#query=ID` opens the query whose id it is, however hostile; a second one opens another, and one that is not on
    the page nothing.
    """
    page = opened(nights / "changes.html")
    ids = [*dict.fromkeys(_queries(page))]
    assert any("<" in query for query in ids)
    for query in ids[:3]:
        page.driver.execute_script("location.hash = 'query=' + encodeURIComponent(arguments[0])", query)
        page.wait("the query", lambda query=query: query in _open_queries(page))
    n_open = len(_open_queries(page))
    page.driver.execute_script("location.hash = 'query=%E0%A4%A'")
    page.driver.execute_script("location.hash = 'query=none'")
    assert len(_open_queries(page)) == n_open


def test_a_click_on_a_point_opens_its_query(opened, nights):
    page = opened(nights / "changes.html")
    figure = page.all("figure[data-points]")[0]
    svg = figure.find_element("css selector", "svg")
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", svg)
    x, y = _place(page, figure)
    middle = svg.size["width"] / 2, svg.size["height"] / 2
    ActionChains(page.driver).move_to_element_with_offset(svg, x - middle[0], y - middle[1]).click().perform()
    (query,) = page.wait("the query", lambda: _open_queries(page))

    assert page.driver.execute_script("return decodeURIComponent(location.hash)") == f"#query={query}"
    assert all(table.is_displayed() for table in page.all("details[data-query][open] table"))


def test_an_index_leads_to_its_pages(chromium_on_files, nights):
    page = chromium_on_files
    page.load(nights / "index.html")
    links = [link.get_attribute("href") for link in page.all("#evaluations a")]

    assert len(links) == 3
    for link in links:
        page.driver.get(link)
        assert page.all("main h2")


def _queries(page: Report) -> list[str]:
    found: list[str] = page.driver.execute_script(
        "return [...document.querySelectorAll('details[data-query]')].map(details => details.dataset.query)"
    )
    return found


def _open_queries(page: Report) -> list[str]:
    found: list[str] = page.driver.execute_script(
        "return [...document.querySelectorAll('details[data-query][open]')].map(details => details.dataset.query)"
    )
    return found


def _place(page: Report, figure: WebElement) -> tuple[float, float]:
    code = """
        const svg = arguments[0].querySelector("svg");
        const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
        const [left, top, width, height, low, high] = arguments[0].dataset.points.split(" ").map(Number);
        const title = document.querySelector("details[data-query] summary").textContent;
        const [before, after] = /([\\d.]+) → ([\\d.]+)/.exec(title).slice(1).map(Number);
        return [left + (before - low) / (high - low) * width, top + height - (after - low) / (high - low) * height]
            .map(pixels => pixels * scale);
    """
    x, y = page.driver.execute_script(code, figure)
    return float(x), float(y)
