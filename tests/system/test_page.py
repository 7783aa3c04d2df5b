"""What a person does on a record's page in a real browser, from its file and in MLflow's artifact view."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import rankledger
from tests.support import sample_evaluations
from tests.system.books import runs_in
from tests.system.browser import browser
from tests.system.report import BOARD, Report, choose, column, head_of, numbers

KEY = ("dataset", "slice", "measure")


def test_what_leaves_a_page_is_seen(chromium_on_files, tmp_path):
    """A picture from elsewhere is among the requests, and what a script complains of among the messages."""
    path = tmp_path / "page.html"
    path.write_text("<img src='http://127.0.0.1:9/leaves.png'><script>console.warn('complains')</script>")
    chromium_on_files.load(path)

    assert "http://127.0.0.1:9/leaves.png" in chromium_on_files.requests()
    assert any("complains" in message for message in chromium_on_files.messages())


def test_a_head_sorts_by_the_mouse(opened, various):
    """The greatest figure first, then the least; the head says so, and numbers are ordered as numbers."""
    page = opened(various)
    for head in ("figure", "difference from bm25"):
        for direction in ("descending", "ascending"):
            head_of(page, head).find_element(By.TAG_NAME, "button").click()
            found = numbers([text for text in column(page, head) if text])
            assert len(found) >= 3
            assert found == sorted(found, reverse=direction == "descending")
            assert head_of(page, head).get_attribute("aria-sort") == direction
    assert len(page.all(f"{BOARD} th[aria-sort]")) == 1


def test_a_head_sorts_by_the_keyboard(opened, various):
    """Tab comes to the button of a head, whose focus is to be seen, and Enter and the space bar are a click."""
    page = opened(various)
    wanted = head_of(page, "model").find_element(By.TAG_NAME, "button")
    for _ in range(300):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        if page.active() == wanted:
            break
    assert page.active() == wanted
    outlined = page.driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outlined != "none"
    for key, backwards in ((Keys.ENTER, False), (Keys.SPACE, True)):
        ActionChains(page.driver).send_keys(key).perform()
        assert column(page, "model") == sorted(column(page, "model"), reverse=backwards)


def test_rows_are_chosen_by_measure_slice_and_model(opened, various):
    """Each choice leaves the rows that the summary has for it, and what is typed those with it in their name."""
    page = opened(various)
    summary = lines(various.parent / "summary.csv")
    for measure, part in (("ap", "all"), ("ap", "market=de"), ("rr@10", "market=de")):
        choose(page, "measure", measure)
        choose(page, "slice", part)
        own = [line for line in summary if [*map(line.get, KEY)] == ["web", part, measure]]
        shown = dict(zip(column(page, "model"), numbers(column(page, "figure")), strict=True))
        assert shown == pytest.approx({line["model"]: float(line["estimate"]) for line in own}, abs=5.01e-5)

    (search,) = page.all(f"{BOARD} input[type='search']")
    search.send_keys("B")
    assert sorted(column(page, "model")) == ["bm25", "hybrid"]
    search.send_keys("m")
    assert column(page, "model") == ["bm25"]


def test_data_are_shown_and_saved(opened, various):
    """The data of a chart open at a click, and a second saves them as they stand there."""
    page = opened(various)
    (data,) = page.all("figure [data-name='differences-web']")
    details = data.find_element(By.XPATH, "ancestor::details")
    details.find_element(By.TAG_NAME, "summary").click()
    shown = data.text
    page.wait("a link", lambda: details.find_elements(By.CSS_SELECTOR, "a[download]"))[0].click()
    saved = saved_as(page, "differences-web.csv")

    assert saved.strip() == shown.strip()
    compared = lines(various.parent / "comparisons.csv")
    wanted = [line for line in compared if [*map(line.get, KEY)] == ["web", "all", sample_evaluations.LEAD]]
    rows = csv.DictReader(io.StringIO(saved))
    assert {row["model"]: row["difference"] for row in rows} == {line["model"]: line["difference"] for line in wanted}


def test_a_table_is_saved(opened, various):
    """The data of a table are its rows, those that are not shown among them."""
    page = opened(various)
    box = page.all(BOARD)[0]
    box.find_element(By.CSS_SELECTOR, "details.data summary").click()
    page.wait("a link", lambda: box.find_elements(By.CSS_SELECTOR, "a[download]"))[0].click()
    saved = list(csv.DictReader(io.StringIO(saved_as(page, "leaderboard-web.csv"))))
    summary = [line for line in lines(various.parent / "summary.csv") if line["dataset"] == "web"]

    assert len(saved) == len(summary)
    assert sorted(row["figure"].rstrip("†") for row in saved) == sorted(f"{float(x['estimate']):.4f}" for x in summary)


def saved_as(page: Report, name: str) -> str:
    """A file that was saved, once it is there."""
    path: Path = page.downloads / name
    return page.wait(name, lambda: path.read_text(encoding="utf-8") if path.is_file() else None)


def lines(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_what_is_folded_opens(opened, various):
    """The queries that moved open to the documents that moved them, by the keyboard, too."""
    page = opened(various)
    folded = [details for details in page.all("#queries details:not(.data)") if "→" in details.text]
    assert folded
    assert not folded[0].find_element(By.TAG_NAME, "table").is_displayed()
    folded[0].find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert folded[0].find_element(By.TAG_NAME, "table").is_displayed()


def test_without_scripts_all_is_there(opened, various):
    """Where no script may run, every row of every table is in view, and nothing that would need one."""
    page = opened(various)
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.load(various)
        hidden = [row for row in page.all("#leaderboard tbody tr") if not row.is_displayed()]
        tools = [tool for tool in page.all("select, input, thead button") if tool.is_displayed()]
    finally:
        page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    assert hidden == []
    assert tools == []


def test_in_mlflows_artifact_view(mlflow, tmp_path):
    """In the frame that MLflow keeps apart, rows are sorted and chosen, data are shown, and nothing goes wrong."""
    evaluation = rankledger.evaluate(
        sample_evaluations.all_pairs(tmp_path, tracking={"uri": mlflow}), runs_dir=tmp_path / "runs"
    )
    info = runs_in(mlflow, evaluation.evaluation_id)[""].info
    with browser(mlflow, tmp_path / "profile", now=datetime.now(UTC)) as page:
        page.open(f"/experiments/{info.experiment_id}/runs/{info.run_id}/artifacts")
        page.click(text="report.html")
        (frame,) = page.wait("the frame", lambda: page.all("iframe[sandbox]"))
        assert "allow-same-origin" not in frame.get_attribute("sandbox")
        page.driver.switch_to.frame(frame)
        page.wait("the leaderboard", lambda: page.all(f"{BOARD} thead button"))

        head_of(page, "figure").find_element(By.TAG_NAME, "button").click()
        choose(page, "measure", "ap")
        found = numbers(column(page, "figure"))
        assert found == sorted(found, reverse=True)
        assert len(found) == 4
        (search,) = page.all(f"{BOARD} input[type='search']")
        search.send_keys("dense")
        assert column(page, "model") == ["dense"]
        (data,) = page.all(f"{BOARD} details.data")
        data.find_element(By.TAG_NAME, "summary").click()
        assert page.wait("the data", lambda: data.find_element(By.TAG_NAME, "pre").text).startswith(
            "rows,model,rank,figure"
        )
        assert data.find_elements(By.CSS_SELECTOR, "a[download]") == []  # the frame may save nothing
        page.driver.switch_to.default_content()
        assert page.troubles() == []
