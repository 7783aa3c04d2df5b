"""Headless Chromium: it waits for what is to be seen on a page, and keeps what goes wrong there."""

import io
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

__all__ = ["Browser", "browser", "chromium"]

Found = TypeVar("Found")

_PATIENCE = 200  # seconds until a page shows what it should, on a machine that is busy
_LONGEST = 900  # seconds that an answer of the driver may take there: axe looks at every element of a large page
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--lang=en-US"),
)
_SIZE = {"width": 1440, "height": 765, "deviceScaleFactor": 1, "mobile": False}
_SETTINGS = {  # what a person clicks once
    "mlflow.workflowType_v1": '"machine_learning"',
    "mlflow.assistant.panelOpen_v1": "false",
    "mlflow.assistant.fab.autoOpenedOnFirstLoad_v1": "true",
}
_CLOCK = """{
    const late = %d, now = Date.now;
    Date = new Proxy(Date, {construct: (D, given) => given.length ? new D(...given) : new D(Date.now())});
    Date.now = () => now() - late;
}"""
_QUIRKS = ("/favicon.ico", "/mlflow/users/current", "ResizeObserver loop")  # of MLflow, whatever it shows
_BROKEN = "Something went wrong"  # a page, or a part of it, that gave up
_TO_BE_SEEN = """
    const edge = element => {
        let right = Infinity;
        for (; element; element = element.parentElement)
            if (getComputedStyle(element).overflowX !== "visible")
                right = Math.min(right, element.getBoundingClientRect().right);
        return right;
    };
    const text = document.createTreeWalker(arguments[0], NodeFilter.SHOW_TEXT).nextNode();
    const range = document.createRange(), right = edge(text.parentElement);
    let n = 0;
    for (range.setStart(text, 0); n < text.length; n++) {
        range.setEnd(text, n + 1);
        if (range.getBoundingClientRect().right > right) break;
    }
    return text.data.slice(0, n);
"""


class Browser:
    """A browser, and the server of MLflow whose pages it opens."""

    def __init__(self, driver: webdriver.Chrome, server: str) -> None:
        self.driver = driver
        self._server = server

    def open(self, path: str) -> None:
        """Load a page anew; what went wrong on the last is forgotten."""
        self.driver.get("about:blank")  # what follows `#` alone would load nothing
        self.driver.get_log("browser")
        self.driver.get(f"{self._server}/#{path}")

    def leave(self) -> None:
        """Go to a page of the server that has no scripts: its storage can be read, and stays as it is."""
        self.driver.get(f"{self._server}/health")

    def stored(self, part: str) -> str | None:
        """What the pages have stored in the browser under the key that has this part."""
        code = "return Object.entries(localStorage).filter(([key]) => key.includes(arguments[0])).map(e => e[1])[0]"
        value: str | None = self.driver.execute_script(code, part)
        return value

    def store(self, part: str, value: str) -> None:
        """Replace it."""
        code = "localStorage.setItem(Object.keys(localStorage).find(key => key.includes(arguments[0])), arguments[1])"
        self.driver.execute_script(code, part, value)

    def wait(self, what: str, look: Callable[[], Found | None]) -> Found:
        """What `look` finds, as soon as it is true; a failure names what was missing, and shows the page's text."""
        waiting = WebDriverWait(self.driver, _PATIENCE, 0.1, [StaleElementReferenceException])
        try:
            return waiting.until(lambda _: look() or False)
        except TimeoutException:
            raise AssertionError(f"{what} is not to be seen in:\n{self.text()}") from None

    def shows(self, *texts: str) -> str:
        """The text of the page, once every one of these is in it."""

        def look() -> str | None:
            text = self.text()
            return text if all(part in text for part in texts) else None

        return self.wait(" or ".join(map(repr, texts)), look)

    def text(self) -> str:
        """What the page says now."""
        return self.driver.find_element(By.TAG_NAME, "body").text

    def all(self, selector: str) -> list[WebElement]:
        """The elements that a CSS selector finds now."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str, attribute: str = "innerText") -> list[str]:
        """What they say, all at once, be they in view or not."""
        code = "return [...document.querySelectorAll(arguments[0])].map(e => e[arguments[1]] ?? e.textContent)"
        found: list[str] = self.driver.execute_script(code, selector, attribute)
        return found

    def click(self, selector: str = "", *, text: str = "") -> None:
        """Click the first element of that selector or text, once it is there."""
        how = (By.XPATH, f"//*[normalize-space(text())='{text}']") if text else (By.CSS_SELECTOR, selector)
        found = self.wait(text or selector, lambda: self.driver.find_elements(*how))
        self.driver.execute_script("arguments[0].click()", found[0])

    def to_be_seen(self, element: WebElement) -> str:
        """As much of an element's text as is not cut off."""
        text: str = self.driver.execute_script(_TO_BE_SEEN, element)
        return text

    def troubles(self) -> list[str]:
        """What went wrong on this page, but for MLflow's own: errors of scripts and of requests, parts that gave up."""
        severe = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        found = [message for message in severe if not any(quirk in message for quirk in _QUIRKS)]
        return [*found, *([self.text()] if _BROKEN in self.text() else [])]

    def picture(self, path: Path) -> None:
        """Save what is in view, in 256 colours."""
        image = Image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB")
        image.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


@contextmanager
def browser(server: str, profile: Path, *, now: datetime) -> Iterator[Browser]:
    """A browser of its own."""
    with chromium(profile) as driver:
        late = round((datetime.now(UTC) - now).total_seconds() * 1000)
        _tell(driver, "Page.addScriptToEvaluateOnNewDocument", {"source": _CLOCK % late})
        found = Browser(driver, server)
        found.leave()
        for key, value in _SETTINGS.items():
            driver.execute_script("localStorage.setItem(arguments[0], arguments[1])", key, value)
        yield found


@contextmanager
def chromium(profile: Path, *, logs: Sequence[str] = ("browser",)) -> Iterator[webdriver.Chrome]:
    """The browser alone, 1440 pixels wide and in UTC."""
    options = webdriver.ChromeOptions()
    options.binary_location = _program("chromium")
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    driver = webdriver.Chrome(options=options, service=Service(_program("chromedriver")))
    driver.command_executor.client_config.timeout = _LONGEST
    driver.set_script_timeout(_LONGEST)
    try:
        _tell(driver, "Emulation.setDeviceMetricsOverride", _SIZE)
        _tell(driver, "Emulation.setTimezoneOverride", {"timezoneId": "UTC"})
        yield driver
    finally:
        driver.quit()


def _program(name: str) -> str:
    found = shutil.which(name)
    assert found, f"{name} is not installed: run tests/system/install.sh"
    return found


def _tell(driver: webdriver.Chrome, command: str, arguments: dict[str, Any]) -> None:
    driver.execute_cdp_cmd(command, arguments)
