"""What a person does on a record's page in a real browser, from its file and in MLflow's artifact view."""

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
REASONS = "[data-name='reasons']"


def test_what_leaves_a_page_is_seen(chromium_on_files, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<img src='http://127.0.0.1:9/leaves.png'><script>console.warn('complains')</script>")
    chromium_on_files.load(path)

    assert "http://127.0.0.1:9/leaves.png" in chromium_on_files.requests()
    assert any("complains" in message for message in chromium_on_files.messages())


def test_a_head_sorts_by_the_mouse(opened, various):
    page = opened(various)
    for head in ("ndcg@10", "difference from bm25"):
        for direction in ("descending", "ascending"):
            head_of(page, head).find_element(By.TAG_NAME, "button").click()
            found = numbers([text for text in column(page, head) if text])
            assert len(found) >= 3
            assert found == sorted(found, reverse=direction == "descending")
            assert head_of(page, head).get_attribute("aria-sort") == direction
    assert len(page.all(f"{BOARD} th[aria-sort]")) == 1


def test_a_head_sorts_by_the_keyboard(opened, various):
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
    page = opened(various)
    summary = lines(various.parent / "summary.csv")
    for part in ("all", "market=de"):
        choose(page, "slice", part)
        for measure in ("ap", "fn@10"):
            choose(page, "measure", measure)
            own = [line for line in summary if [*map(line.get, KEY)] == ["web", part, measure]]
            shown = dict(zip(column(page, "model"), numbers(column(page, measure)), strict=True))
            assert shown == pytest.approx({line["model"]: float(line["estimate"]) for line in own}, abs=5.01e-5)
            assert [*shown.values()] == sorted(shown.values(), reverse=measure == "ap")  # of fn@10 the least is best

    (search,) = page.all("#by-filter")
    search.send_keys("B")
    assert sorted(column(page, "model")) == ["bm25", "hybrid"]
    search.send_keys("m")
    assert column(page, "model") == ["bm25"]


def test_the_chosen_measure_has_its_ranks_and_differences(opened, various):
    page = opened(various)
    summary, compared = (lines(various.parent / f"{name}.csv") for name in ("summary", "comparisons"))

    def heads() -> list[str]:
        return [head.text for head in page.all(f"{BOARD} thead th") if head.is_displayed()]

    at_first = heads()
    assert at_first[:2] == ["model", "rank"]
    assert not [head for head in at_first if " by " in head]
    for part in ("all", "market=de"):
        choose(page, "slice", part)
        choose(page, "measure", "ap")
        shown = heads()
        assert {"rank by ap"} | {head for head in shown if head.startswith("rank")} == {"rank by ap"}
        (difference,) = (head for head in shown if head.startswith("difference"))
        assert difference.startswith("difference from bm25 by ap (")
        ranks = {
            line["model"]: "–".join(dict.fromkeys(filter(None, (line["rank_low"], line["rank_high"]))))
            for line in summary
            if [*map(line.get, KEY)] == ["web", part, "ap"]
        }
        assert dict(zip(column(page, "model"), column(page, "rank by ap"), strict=True)) == ranks
        own = [line for line in compared if [*map(line.get, KEY)] == ["web", part, "ap"]]
        found = dict(zip(column(page, "model"), column(page, difference), strict=True))
        assert {line["model"]: f"{float(line['difference']):+.4f}" for line in own} == {
            model: text.split()[0] for model, text in found.items() if text
        }
    choose(page, "slice", "all")
    choose(page, "measure", "lead measure")
    assert heads() == at_first


def test_intervals_are_one_click_away(opened, various):
    page = opened(various)
    intervals = page.all(f"{BOARD} td:not(.b) small")
    assert not intervals[0].is_displayed()
    page.all("#by-intervals")[0].click()
    assert intervals[0].is_displayed()
    assert intervals[0].text.startswith("[")


def test_a_cell_of_the_verdicts_opens_its_reasons(opened, various):
    page = opened(various)
    everyone = column(page, "model", REASONS)
    (cell,) = [
        found for found in page.all("[data-name='verdicts'] td button") if found.accessible_name == "lost on web: I 1"
    ]
    cell.click()
    assert column(page, "model", REASONS) == ["lost"]
    assert column(page, "dataset", REASONS) == ["web"]
    assert cell.get_attribute("aria-pressed") == "true"
    cell.click()
    assert column(page, "model", REASONS) == everyone
    assert len(everyone) > 3


def test_an_address_restores_a_view(opened, various):
    page = opened(various)
    choose(page, "slice", "market=de")
    choose(page, "measure", "ap")
    page.all("#by-filter")[0].send_keys("b")
    page.click(text="Data quality")
    address = page.driver.current_url
    seen = _seen(page)
    assert address.partition("#")[2].startswith("quality&slice=market%3Dde&measure=ap&filter=b")

    page.driver.get("about:blank")
    page.driver.get(address)
    assert _seen(page) == seen
    assert seen["slice"] == "market=de"
    assert page.all("#quality > details")[0].get_attribute("open")


def _seen(page: Report) -> dict[str, object]:
    chosen = {by: page.all(f"#by-{by}")[0].get_property("value") for by in ("measure", "slice", "filter")}
    return {**chosen, "models": column(page, "model"), "figures": column(page, "ap")}


def test_an_address_leads_to_a_query(opened, various):
    """`#query=ID` opens the section, the pair and the query; one that is opened is in the address."""
    page = opened(various)
    page.click(text="Queries")
    query = page.all("#queries details details[data-query]")[0]
    query.find_element(By.TAG_NAME, "summary").click()
    address = page.wait("its address", lambda: "query=" in page.driver.current_url and page.driver.current_url)

    page.driver.get("about:blank")
    page.driver.get(address)
    (shown,) = page.all("#queries details[data-query][open]")
    assert shown.find_element(By.TAG_NAME, "table").is_displayed()


def test_data_are_shown_copied_and_saved(opened, various):
    page = opened(various)
    (data,) = page.all("figure [data-name='trade-off-web']")
    details = data.find_element(By.XPATH, "ancestor::details[1]")
    details.find_element(By.TAG_NAME, "summary").click()
    shown = data.text
    link = page.wait("a link", lambda: details.find_elements(By.CSS_SELECTOR, "a[download]"))[0]
    (copy,) = details.find_elements(By.TAG_NAME, "button")
    copy.click()
    assert copy.text == "Copied"
    page.all("#by-filter")[0].send_keys(Keys.CONTROL, "v")
    assert page.all("#by-filter")[0].get_property("value").split() == shown.split()
    link.click()
    saved = saved_as(page, "trade-off-web.csv")

    assert saved.strip() == shown.strip()
    summary, lead = lines(various.parent / "summary.csv"), sample_evaluations.LEAD
    wanted = [line for line in summary if [*map(line.get, KEY)] == ["web", "all", lead]]
    rows = {row["model"]: float(row[lead]) for row in csv.DictReader(io.StringIO(saved))}
    assert rows == {line["model"]: round(float(line["estimate"]), 6) for line in wanted}


def test_a_table_is_saved(opened, various):
    page = opened(various)
    box = page.all(BOARD)[0]
    box.find_element(By.CSS_SELECTOR, "details.data summary").click()
    page.wait("a link", lambda: box.find_elements(By.CSS_SELECTOR, "a[download]"))[0].click()
    saved = list(csv.DictReader(io.StringIO(saved_as(page, "leaderboard-web.csv"))))
    summary = [line for line in lines(various.parent / "summary.csv") if line["dataset"] == "web"]
    measures = {line["measure"] for line in summary}
    figures = [row[measure].rstrip("†") for row in saved for measure in measures]

    assert sorted(figures) == sorted(f"{float(x['estimate']):.4f}" for x in summary)
    assert all(row[f"{measure} interval"].startswith("[") for row in saved for measure in measures if row[measure])


def saved_as(page: Report, name: str) -> str:
    path: Path = page.downloads / name
    return page.wait(name, lambda: path.read_text(encoding="utf-8") if path.is_file() else None)


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_what_is_folded_opens(opened, various):
    page = opened(various)
    assert not page.all("#queries details")[0].get_attribute("open")
    page.click(text="Queries")
    folded = [details for details in page.all("#queries details[data-query]") if "→" in details.text]
    assert folded
    assert not folded[0].find_element(By.TAG_NAME, "table").is_displayed()
    folded[0].find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert folded[0].find_element(By.TAG_NAME, "table").is_displayed()


def test_without_scripts_all_is_there(opened, various):
    """Where no script may run, every row of what is open is in view, and nothing that would need one."""
    page = opened(various)
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.load(various)
        rows = page.all(f"{BOARD} tbody tr, {REASONS} tbody tr")
        hidden = [row for row in rows if not row.is_displayed()]
        tools = [tool for tool in page.all("select, input, thead button") if tool.is_displayed()]
        intervals = page.all(f"{BOARD} td small")[0].is_displayed()
    finally:
        page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    assert hidden == []
    assert len(rows) > 20
    assert tools == []
    assert intervals


def test_in_mlflows_artifact_view(mlflow, tmp_path):
    evaluation = rankledger.evaluate_config(
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

        choose(page, "measure", "ap")
        found = numbers(column(page, "ap"))
        assert found == sorted(found, reverse=True)
        assert len(found) == 4
        head_of(page, "ap").find_element(By.TAG_NAME, "button").click()
        assert numbers(column(page, "ap")) == found[::-1]
        (search,) = page.all("#by-filter")
        search.send_keys("dense")
        assert column(page, "model") == ["dense"]
        (data,) = page.all(f"{BOARD} details.data")
        data.find_element(By.TAG_NAME, "summary").click()
        assert page.wait("the data", lambda: data.find_element(By.TAG_NAME, "pre").text).startswith(
            "rows,model,rank,ndcg@10,ndcg@10 interval"
        )
        assert data.find_elements(By.CSS_SELECTOR, "a[download]") == []  # the frame may save nothing
        page.driver.switch_to.default_content()
        assert page.troubles() == []
