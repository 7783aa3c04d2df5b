"""The page of what changed since the night before, and the index of nights, in a real browser."""

from __future__ import annotations

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
    """The folder of two nights of hostile names, between which two models swapped their outputs, and their index."""
    folder = tmp_path_factory.mktemp("nights")
    config = sample_evaluations.hostile(folder)
    with chdir(folder):
        first = rankledger.evaluate(config, date="2026-11-19", tracking=False)
        for model, other in (("script", "image"), ("image", "script")):
            (folder / f"{model}.parquet").rename(folder / f"{other}.kept")
        for model in ("script", "image"):
            (folder / f"{model}.kept").rename(folder / f"{model}.parquet")
        second = rankledger.evaluate(config, date="2026-11-20", tracking=False)
        text = rankledger.report(first.evaluation_id, second.evaluation_id, output="index.html")
        (folder / "index.html").write_text(text, encoding="utf-8")
        (folder / "changes.html").symlink_to((second.record / "changes.html").absolute())
        (folder / "report.html").symlink_to((second.record / "report.html").absolute())
    return folder


@pytest.mark.parametrize("name", ["changes.html", "index.html"])
def test_accessible(opened, nights, name):
    """At 1440 and 375 pixels, light and dark, axe-core finds nothing serious, and the page does not scroll sideways."""
    page = opened(nights / name)
    page.driver.execute_script(_OPEN)
    for width, scheme in LOOKS:
        page.see(width, scheme)
        assert page.violations() == []
        assert page.overhang() == 0


@pytest.mark.parametrize("name", ["changes.html", "index.html"])
def test_hostile_names_are_text(opened, nights, name):
    """No name, text of a query or title of a document becomes an element or runs."""
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
    """The point of the query that fell most: its lists are opened below its own chart, and the address names it."""
    page = opened(nights / "changes.html")
    (query,) = _queries(page)[:1]
    figure = page.all("figure[data-points]")[0]
    x, y = _place(page, figure, query)
    svg = figure.find_element("css selector", "svg")
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", svg)
    size = svg.size
    ActionChains(page.driver).move_to_element_with_offset(
        svg, x - size["width"] / 2, y - size["height"] / 2
    ).click().perform()
    page.wait("the query", lambda: _open_queries(page))

    opened_query = _open_queries(page)[0]
    assert page.driver.execute_script("return decodeURIComponent(location.hash)") == f"#query={opened_query}"
    (lists,) = page.driver.execute_script(
        "return [...document.querySelectorAll('details[data-query][open] table')].slice(0, 1)"
    )
    assert lists.is_displayed()


def test_an_index_leads_to_its_pages(chromium_on_files, nights):
    """Each link is a page on disk."""
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


def _place(page: Report, figure: WebElement, query: str) -> tuple[float, float]:
    """Where the point of a query is drawn, in pixels from the left and the top of the chart."""
    code = """
        const [figure, query] = arguments, svg = figure.querySelector("svg");
        const point = pointsOf(figure).find(([id]) => id === query) ?? pointsOf(figure)[0];
        const [left, top, width, height, low, high] = figure.dataset.points.split(" ").map(Number);
        const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
        return [left + (point[1] - low) / (high - low) * width, top + height - (point[2] - low) / (high - low) * height]
            .map(pixels => pixels * scale);
    """
    x, y = page.driver.execute_script(code, figure, query)
    return float(x), float(y)
