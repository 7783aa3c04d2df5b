"""The morning after the night in which bm25 broke: what each surface says first, as a person reads it there.

With `RANKLEDGER_SCREENSHOTS=docs/images` the pictures of the guide are made again.
"""

import os
from datetime import UTC, datetime

from markdown_it import MarkdownIt

import rankledger
from tests.support.planted_nights import (
    ACCEPTED,
    BROKEN,
    broken_headline,
    night,
    without_interval,
    write_config,
    write_night,
)
from tests.support.webhook_receiver import receiver
from tests.system.books import runs_in
from tests.system.browser import browser
from tests.system.kills import ROOT, run


def test_every_surface_names_the_broken_slice(folder, mlflow, loaded, opened, tmp_path_factory, monkeypatch):
    """The page and MLflow's own in Chromium, the terminal's first line, Markdown, and the alert: how much bm25 fell,
    on which family, since when, and whose it is, by the ranks that were written. The page begins with it, and
    axe-core finds nothing serious on it.
    """
    with receiver() as hook:
        config = write_config(folder, notify=[{"webhook": "${ALERTS_URL}"}], tracking={"uri": mlflow})
        monkeypatch.setenv("ALERTS_URL", f"{hook.address}/hook")
        for number in range(1, BROKEN + 1):
            write_night(folder, number)
            if number < BROKEN - 1:  # known to the records alone
                rankledger.evaluate_config(config, date=night(number), tracking=False, overrides=["report=false"])
            else:
                words = ("nightly", config, "--date", night(number), "--markdown", "night.md")
                ended = run(*words, cwd=folder, by=loaded)
            if number == ACCEPTED:
                rankledger.accept("last", name="nightly", reason="good", config=config)
        alert = hook.posts[-1].message
    found = rankledger.load("last", name="nightly")
    said = found.headline
    page = opened(found.record.absolute() / "report.html")

    assert (ended.code, ended.err) == (1, "")
    assert page.texts("#verdict h2 ~ *")[0] == said
    for width, scheme in ((1440, "light"), (1440, "dark"), (375, "light"), (375, "dark")):
        page.see(width, scheme, height=1560)
        assert page.top(".leads") < 300
        if pictures := os.environ.get("RANKLEDGER_SCREENSHOTS"):
            page.picture(ROOT / pictures / f"report-{width}-{scheme}.png")
        assert page.violations() == []
        assert page.overhang() == 0
    page.click(text="See the queries that changed most")
    queries = [query for query in page.all("details[data-query]") if query.is_displayed()]
    assert queries
    assert all("family=internet" in query.get_attribute("data-slices").split("\n") for query in queries)
    assert "#queries-1&slice=family%3Dinternet" in page.driver.current_url
    assert without_interval(said) == broken_headline()
    assert " ".join(ended.out.split()).startswith(said.replace("FAIL ", "FAIL ", 1))
    assert MarkdownIt().render((folder / "night.md").read_text("utf-8")).partition("<strong>")[2].startswith(said)
    assert alert["headline"] == said
    own = runs_in(mlflow, found.evaluation_id)[""].info
    with browser(mlflow, tmp_path_factory.mktemp("profile"), now=datetime.now(UTC)) as pages:
        pages.open(f"/experiments/{own.experiment_id}/runs/{own.run_id}")
        assert said in pages.shows("Description", said)
        assert pages.troubles() == []
