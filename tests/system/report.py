"""A report in Chromium: what it asks for and says, how wide and how long it is, what axe-core finds, and its print."""

import base64
import importlib.resources
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, Literal

from pypdf import PdfReader
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

import rankledger
from tests.system.browser import Browser, chromium

__all__ = ["BOARD", "Report", "choose", "column", "head_of", "numbers", "page_of", "reports"]

BOARD = "[data-name='leaderboard-web']"
"""The leaderboard of a dataset that is called web."""

_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
_SERIOUS = ("serious", "critical")
_AXE = """
    const done = arguments[arguments.length - 1];
    axe.run(document, {runOnly: arguments[0], resultTypes: ["violations"]})
        .then(found => done(found.violations.map(rule =>
            [rule.impact, rule.id, rule.nodes.map(node => [node.target.join(" "), node.any[0]?.message ?? ""])])))
        .catch(error => done([["critical", String(error), []]]));
"""
_A4 = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}  # inches
_WAITED = 'return performance.getEntriesByType("navigation")[0]'
_TAB_STOPS = """
    return [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex]")]
        .filter(element => element.tabIndex >= 0 && element.checkVisibility()).length;
"""
_LONG_TASKS = """
    window.longTasks = [];
    new PerformanceObserver(list => window.longTasks.push(...list.getEntries().map(task => task.duration)))
        .observe({type: "longtask", buffered: true});
"""
_COLUMN = """
    const box = document.querySelector(arguments[0]);
    const at = [...box.querySelectorAll("thead th")].findIndex(head => head.innerText.trim() === arguments[1]);
    const text = cell => [...cell.childNodes].filter(node => node.localName !== "small").map(node => node.textContent);
    return [...box.querySelectorAll("tbody tr:not(.head)")].filter(row => row.getClientRects().length)
        .map(row => text(row.cells[at]).join("").trim());
"""


class Report(Browser):
    """A browser on a report that lies on disk; what it saves lands in `downloads`."""

    def __init__(self, driver: webdriver.Chrome, downloads: Path) -> None:
        super().__init__(driver, "")
        self.downloads = downloads

    def load(self, path: Path) -> None:
        """Open a file; what was logged of the last page is forgotten."""
        self.driver.get("about:blank")
        self.messages()
        self.requests()
        self.driver.get(path.as_uri())

    def text(self) -> str:
        """What the page says now: the browser's own answer, for the driver's takes minutes for a large page."""
        text: str = self.driver.execute_script("return document.body.innerText")
        return text

    def messages(self) -> list[str]:
        """All that was said on the console since it was asked last, warnings too."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since it was asked last, of whatever kind."""
        logged = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [entry["params"] for entry in logged if entry["method"] == "Network.requestWillBeSent"]
        return [found["request"]["url"] for found in sent]

    def see(self, width: int, scheme: Literal["light", "dark"] = "light", *, height: int = 900) -> None:
        """Make the window so many pixels wide, and the colours such."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def overhang(self) -> int:
        """By how many pixels the page is wider than the window: so far it would scroll sideways."""
        code = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.driver.execute_script(code))

    def violations(self) -> list[str]:
        """The serious and critical findings of axe-core, a line each with the first elements."""
        axe = importlib.resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        self.driver.execute_script(axe)
        found = self.driver.execute_async_script(_AXE, _RULES)
        return [f"{impact} {rule}: {len(nodes)}: {nodes[:3]}" for impact, rule, nodes in found if impact in _SERIOUS]

    def printed(self) -> list[str]:
        """The text of each page of A4."""
        pdf = base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", _A4)["data"])
        return [page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages]

    def opening(self) -> dict[str, float]:
        """How long it took to open: until all was parsed, and the longest time that nothing could be clicked, in ms."""
        waited: dict[str, Any] = self.driver.execute_script(_WAITED)
        tasks = self.driver.execute_script("return window.longTasks")
        return {"parsed": waited["domContentLoadedEventEnd"], "longest task": max(tasks, default=0)}

    def tab_stops(self) -> int:
        """How many elements the keyboard's Tab comes to."""
        return int(self.driver.execute_script(_TAB_STOPS))

    def top(self, css: str) -> int:
        """How far below the top of the page an element begins, in pixels."""
        code = "return document.querySelector(arguments[0]).getBoundingClientRect().top + scrollY"
        return int(self.driver.execute_script(code, css))

    def active(self) -> WebElement:
        """What has the keyboard's focus."""
        return self.driver.switch_to.active_element


@contextmanager
def reports(folder: Path) -> Iterator[Report]:
    """A browser for reports, whose downloads land in that folder."""
    with chromium(folder / "profile", logs=("browser", "performance")) as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _LONG_TASKS})
        kept = {"behavior": "allow", "downloadPath": str(folder)}
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", kept)
        yield Report(driver, folder)


def page_of(config: Path, folder: Path) -> Path:
    """Evaluate a config in that folder; gives its record's page."""
    with chdir(folder):
        return (rankledger.evaluate_config(config, runs_dir="runs", tracking=False).record / "report.html").absolute()


def column(page: Browser, head: str, box: str = BOARD) -> list[str]:
    """The texts of a table's column without their intervals, of the rows that are shown."""
    texts: list[str] = page.driver.execute_script(_COLUMN, box, head)
    return texts


def numbers(texts: Sequence[str]) -> list[float]:
    """What figures say, without their marks."""
    return [float(text.rstrip("†")) for text in texts]


def head_of(page: Browser, head: str, box: str = BOARD) -> WebElement:
    """The head of a column."""
    (found,) = [th for th in page.all(f"{box} thead th") if th.text.split("\n")[0] == head]
    return found


def choose(page: Browser, by: str, text: str) -> None:
    """Choose from a list of the page's head."""
    (select,) = page.all(f"#by-{by}")
    (option,) = [found for found in select.find_elements(By.TAG_NAME, "option") if found.text == text]
    option.click()
