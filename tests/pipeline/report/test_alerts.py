"""Alerts as messages: what they say, and that no name in them is read as mark-up by Slack or Teams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rankledger.pipeline.report.alerts import AlertForm, Links, alert_message
from rankledger.pipeline.types.alerts import Alert, NightState
from rankledger.pipeline.types.gates import Effect, Verdict
from rankledger.pipeline.types.results import Failure
from tests.support.handwritten_results import ID, estimates, page

HOSTILE = "<!channel> <https://evil.example|here> *bold* [a](https://evil.example) :skull: \u202e\x1b[31m"
BEFORE = NightState("20261119T020000Z-nightly-00000000", "2026-11-19", "2026-11-19T02:00:00+00:00", "passed")
FAILED = Alert("alert_7", NightState(ID, "2026-11-20", "2026-11-20T02:00:00+00:00", "failed"), BEFORE)
LINKS = Links("runs/records/x", "https://eval.example.com/a|b?c=<d>&e", "http://127.0.0.1:5000/#/runs/1")


def verdict(effect: Effect, model: str = "bm25", reason: str = "ap of bm25 dropped by 0.1", **names: Any) -> Verdict:
    outcome = "pass" if effect == "pass" else "fail" if effect == "fail" else "inconclusive"
    found = {"gate": "floor", "dataset": "web", "measure": "ap", "slice": "all"} | names
    return Verdict(**found, model=model, outcome=outcome, effect=effect, reason=reason)


def message(form: AlertForm, *verdicts: Verdict, failures: tuple[Failure, ...] = (), repeat: bool = False) -> Any:
    found = page(estimates("web", {"bm25": {"ap": 0.4}, HOSTILE: {"ap": 0.3}}), (), verdicts, failures)
    data = alert_message(form, FAILED, found.evaluation, found.manifest, LINKS, repeat=repeat)
    return json.loads(data)


def test_what_broke_comes_first_and_what_passes_is_not_listed():
    """Failed gates before missing outputs before undecided gates, by model; passes and warnings are no reasons."""
    verdicts = [verdict("stop", "dense"), verdict("pass"), verdict("warn"), verdict("fail", "dense", gate="drop")]
    found = message("json", *verdicts, failures=(Failure("web", "lost", "lost.tsv: file not found"),))

    (dense, lost) = found["data"]["models"]
    assert [reason["gate"] for reason in dense["reasons"]] == ["drop", "floor"]
    assert (lost["model"], lost["reasons"]) == ("lost", [{"dataset": "web", "reason": "lost.tsv: file not found"}])
    assert found["type"] == "rankledger.state_changed"
    assert found["data"]["headline"].startswith("dense fails drop: ")


def test_a_message_stays_small():
    """Of a thousand reasons of any length twenty are told and the others counted; Standard Webhooks asks for 20 kB."""
    verdicts = [verdict("fail", reason="x" * 10_000, slice=f"family={number}") for number in range(1_000)]
    found = message("json", *verdicts)
    slack = message("slack", *verdicts)

    assert len(json.dumps(found)) < 20_000
    assert found["data"]["n_more_reasons"] == 980
    assert len(slack["blocks"]) <= 50  # as many as Slack takes
    assert all(len(block["text"]["text"]) <= 3_000 for block in slack["blocks"] if "text" in block)
    assert any(block.get("text", {}).get("text") == "and 980 more reasons" for block in slack["blocks"])


def test_slack_reads_no_mark_up_in_names():
    """Every name stands in `plain_text` without emoji; what is read as mark-up holds links alone, whole and escaped."""
    found = message("slack", verdict("fail", HOSTILE, f"{HOSTILE} fell"))
    texts = [block["text"] for block in found["blocks"] if "text" in block]
    (context,) = [block for block in found["blocks"] if block["type"] == "context"]

    assert all(text["type"] == "plain_text" and text["emoji"] is False for text in texts)
    assert any("<!channel>" in text["text"] for text in texts)
    assert not any("\x1b" in text["text"] or "\u202e" in text["text"] for text in texts)
    assert "<!" not in found["text"]
    assert context["elements"][0]["text"] == (
        "<https://eval.example.com/a%7Cb?c=&lt;d&gt;&amp;e|Page> · <http://127.0.0.1:5000/#/runs/1|MLflow run>"
    )
    assert len(found["blocks"][0]["text"]["text"]) <= 150


def test_teams_reads_no_mark_up_in_names():
    """An Adaptive Card in a message: names stand in text runs, which read none; links are actions."""
    found = message("teams", verdict("fail", HOSTILE, f"{HOSTILE} fell"))
    (attachment,) = found["attachments"]
    card = attachment["content"]

    assert (found["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    assert (card["type"], card["$schema"]) == ("AdaptiveCard", "http://adaptivecards.io/schemas/adaptive-card.json")
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert {run["type"] for block in card["body"] for run in block["inlines"]} == {"TextRun"}
    assert [action["url"] for action in card["actions"]] == [LINKS.page, LINKS.mlflow]
    assert len(json.dumps(found)) < 28_000  # what Teams takes


@pytest.mark.parametrize("form", ["json", "slack", "teams"])
def test_a_repeat_is_the_same_message_with_a_mark(form):
    """Whoever sees it is told that it may be the second."""
    first, again = (json.dumps(message(form, verdict("fail"), repeat=repeat)) for repeat in (False, True))

    assert first == json.dumps(message(form, verdict("fail")))
    assert first != again
    assert ('"repeat": true' if form == "json" else "Sent again: nothing confirms that it arrived") in again


def test_what_is_promoted_is_named():
    """A model whose alias moves if its gates pass, as the page names it."""
    found = page(estimates("web", {"bm25": {"ap": 0.4}}))
    promote = {"model": "models:/ranker", "alias": "champion", "when": "gates_pass"}
    models = {
        "bm25": {**found.manifest.models["bm25"].model_dump(), "model_uri": "models:/ranker/3", "promote": promote}
    }
    manifest = found.manifest.model_validate(found.manifest.model_dump() | {"models": models})
    slack = json.loads(alert_message("slack", FAILED, found.evaluation, manifest, LINKS, repeat=False))

    said = "bm25 is promoted if its gates pass: models:/ranker/3 @champion"
    assert said in [block["text"]["text"] for block in slack["blocks"] if "text" in block]


def test_the_title_names_both_states():
    """Such as of a night that passed again, or that is undecided."""
    assert message("json")["title"] == "nightly failed on 2026-11-20 (passed on 2026-11-19)"
