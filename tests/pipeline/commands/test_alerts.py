"""Alerts of nights, to a real server on loopback: once for a change of what fails and once for a cause."""

import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.delivery import alerts
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.store import forget_own
from tests.support import nights
from tests.support.fake_clock import Clock
from tests.support.page_reader import read_page
from tests.support.terminal import table_rows
from tests.support.webhook_receiver import SILENT, Receiver, receiver

QUERIES = [f"q{number:02}" for number in range(40)]
LOG = Path("runs/records/.state/alerts/nightly.json")
GOOD, BAD = 1, 4  # ranks of the document that is relevant; the gate wants 0.5
HOSTILE = "<!channel> <https://evil.example|here> & *bold*"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rankledger.pipeline.delivery.alerts._PAUSE", 0.0)
    nights.write_judgments(QUERIES)
    write_config()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as started:
        monkeypatch.setenv("ALERTS_URL", f"{started.address}/hooks/T0/B0/xyzzy")
        yield started


def write_config(*targets: dict[str, Any], **changes: Any) -> None:
    nights.write_config(
        **{
            "models": {"bm25": {"outputs": "{date}.txt", "owner": "search-team"}},
            "gates": [{"name": "floor", "measure": "rr", "at_least": 0.5}],
            "notify": list(targets) or [{"webhook": "${ALERTS_URL}"}],
            **changes,
        }
    )


def night(day: int, rank: int, **options: Any) -> rankledger.Evaluation:
    """A night of November whose only model has the relevant document at that rank: 1 passes, 4 fails."""
    date = f"2026-11-{day}"
    nights.write_ranking(f"{date}.txt", dict.fromkeys(QUERIES, rank))
    return rankledger.nightly("config.yaml", date=date, **options)


def states(hook: Receiver) -> list[tuple[str, str]]:
    return [(post.message["date"], post.message["state"]) for post in hook.posts]


def synced() -> list[str]:
    return [result.reason for result in rankledger.sync()]


def names(failures: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [tuple(failure[key] for key in ("model", "dataset", "gate", "slice")) for failure in failures]


def test_an_alert_follows_what_fails(hook, run_cli):
    """Night 11: the file of bm25 is missing. Night 12: the file of dense is cut off, too. Night 13."""
    models = {name: {"outputs": f"{name}-{{date}}.txt", "owner": f"{name}-team"} for name in ("bm25", "dense")}
    write_config(models=models, gates=[{"name": "floor", "measure": "rr", "at_least": 0.5}])
    for day in (11, 12, 13, 14):
        for model, is_whole in (("bm25", day > 12), ("dense", day == 11)):
            if is_whole or model == "dense":
                nights.write_ranking(f"{model}-2026-11-{day}.txt", dict.fromkeys(QUERIES, GOOD))
            if not is_whole and model == "dense":
                path = Path(f"dense-2026-11-{day}.txt")
                path.write_bytes(path.read_bytes()[:-9])
        assert run_cli("nightly", "config.yaml", "--date", f"2026-11-{day}").code == 4

    first, second, third = (post.message for post in hook.posts)
    lost, cut = ("bm25", "web", "", "all"), ("dense", "web", "", "all")
    assert lost in names(first["failing"])
    assert all(failure["model"] == "bm25" and failure["is_new"] for failure in first["failing"])
    assert cut in names(second["failing"])
    assert {failure["model"] for failure in second["failing"] if failure["is_new"]} == {"dense"}
    assert {failure["model"] for failure in second["failing"] if not failure["is_new"]} == {"bm25"}
    assert lost in names(third["recovered"])
    assert (third["n_new"], {failure["model"] for failure in third["failing"]}) == (0, {"dense"})
    assert second["failing"][0]["owner"] == "dense-team"
    assert "New: dense on web, floor (owner: dense-team): dense-2026-11-12.txt" in second["text"]
    assert "Recovered: bm25 on web" in third["text"]


def test_another_slice_of_the_same_gate_is_news(hook):
    queries = {f"q{number:02}": "de" if number % 2 else "fr" for number in range(80)}
    nights.write_judgments(queries)
    Path("queries.tsv").write_text("query_id\tlang\n" + "".join(f"{query}\t{queries[query]}\n" for query in queries))
    write_config(
        datasets={"web": {"judgments": "qrels.txt", "queries": "queries.tsv", "slices": ["lang"]}},
        gates=[{"name": "floor", "measure": "rr", "at_least": 0.5, "slices": ["lang"]}],
    )
    for day, failing in ((11, "de"), (12, "fr")):
        ranks = {query: BAD if lang == failing else GOOD for query, lang in queries.items()}
        nights.write_ranking(f"2026-11-{day}.txt", ranks)
        rankledger.nightly("config.yaml", date=f"2026-11-{day}")

    message = hook.posts[1].message
    assert states(hook) == [("2026-11-11", "failed"), ("2026-11-12", "failed")]
    assert names(message["failing"]) == [("bm25", "web", "floor", "lang=fr")]
    assert names(message["recovered"]) == [("bm25", "web", "floor", "lang=de")]


def test_an_unchanged_failure_is_told_again_after_a_set_number_of_nights(hook):
    write_config({"webhook": "${ALERTS_URL}", "remind_after": 3})
    for day in range(11, 18):
        night(day, BAD)
    for day in range(18, 23):
        night(day, GOOD)

    assert [date[-2:] for date, _ in states(hook)] == ["11", "14", "17", "18"]
    assert [post.message["reminder"] for post in hook.posts] == [False, True, True, False]
    assert [post.message["n_new"] for post in hook.posts] == [1, 0, 0, 0]
    assert hook.posts[1].message["text"].startswith("Reminder: nightly failed on 2026-11-14 (1 failing)")
    assert len({*hook.ids}) == 4


def test_reminders_can_be_off(hook):
    write_config({"webhook": "${ALERTS_URL}", "remind_after": 0})
    night(11, BAD)
    night(29, BAD)
    assert len(hook.posts) == 1


def test_a_message_says_what_broke_and_whose_it_is(hook):
    write_config({"webhook": "${ALERTS_URL}", "page": "https://eval.example.com/{evaluation_id}.html"})
    evaluation = night(12, BAD)
    (post,) = hook.posts
    message = post.message
    (failure,) = message["failing"]

    assert message["id"] == post.headers["idempotency-key"] == evaluation.evaluation_id
    assert (message["name"], message["record"]) == ("nightly", str(evaluation.record.resolve()))
    assert message["page"] == f"https://eval.example.com/{evaluation.evaluation_id}.html"
    assert names([failure]) == [("bm25", "web", "floor", "all")]
    assert (failure["owner"], failure["is_new"]) == ("search-team", True)
    assert "0.25" in failure["reason"]
    assert message["headline"] == evaluation.headline
    assert message["text"].split("\n") == [
        "nightly failed on 2026-11-12 (1 new, 1 failing)",
        evaluation.headline,
        f"New: bm25 on web, floor (owner: search-team): {failure['reason']}",
        message["page"],
    ]


def test_a_message_stays_small_and_mentions_nobody(hook):
    names = [f"{HOSTILE} {number}" for number in range(60)]
    write_config(models={name: {"outputs": f"{number}.txt"} for number, name in enumerate(names)})
    rankledger.nightly("config.yaml", date="2026-11-11")
    (post,) = hook.posts

    assert (post.message["n_failing"], len(post.message["failing"])) == (120, 20)
    assert len(post.body) < 20_000
    assert len(post.message["text"]) < 4_000
    assert "&lt;!channel&gt;" in post.message["text"]
    assert "<" not in post.message["text"]


def test_a_new_target_is_told_of_what_fails(hook):
    write_config(notify=[])
    night(11, BAD)
    write_config()
    night(12, BAD)
    write_config({"webhook": "${ALERTS_URL}"}, {"webhook": "${ALERTS_URL}?to=team"})
    night(13, BAD)

    assert states(hook) == [("2026-11-12", "failed"), ("2026-11-13", "failed")]
    assert hook.posts[1].path.endswith("?to=team")


def test_a_record_that_was_evaluated_again_is_no_night(hook):
    write_config(notify=[])
    record = night(11, GOOD).record
    gates = "gates=[{name: ceiling, measure: rr, at_most: 0.5}]"
    assert rankledger.evaluate_config(str(record), overrides=[gates]).verdicts[0].effect == "fail"
    write_config()
    night(12, GOOD)

    assert hook.posts == []


def test_an_output_that_is_missing_is_a_state_of_its_own(hook):
    night(11, GOOD)
    rankledger.nightly("config.yaml", date="2026-11-12")
    assert states(hook) == [("2026-11-12", "incomplete")]
    assert "2026-11-12.txt" in hook.posts[0].message["failing"][0]["reason"]


def test_a_night_that_is_evaluated_again_tells_each_change(hook):
    night(11, GOOD)
    night(12, BAD)
    night(12, GOOD, again=True)
    night(12, BAD, again=True)

    assert [state for _, state in states(hook)] == ["failed", "passed", "failed"]
    assert len({*hook.ids}) == 3


def test_evaluate_and_a_night_that_is_shown_again_send_nothing(hook):
    night(11, BAD)
    rankledger.nightly("config.yaml", date="2026-11-11")
    rankledger.evaluate_config("config.yaml", date="2026-11-11")
    assert len(hook.posts) == 1


def test_an_answer_that_is_lost_gives_two_posts_with_one_id(hook):
    hook.answers = [SILENT]
    assert night(11, BAD).unsent == ()
    first, second = hook.posts
    assert first.body == second.body
    assert len({*hook.ids}) == 1


def test_an_attempt_that_is_interrupted_may_have_arrived(hook, monkeypatch):
    def interrupt(*args: Any) -> None:
        post_alert(*args)
        raise KeyboardInterrupt

    post_alert = alerts.post_alert
    with monkeypatch.context() as patched:
        patched.setattr(alerts, "post_alert", interrupt)
        with pytest.raises(KeyboardInterrupt):
            night(11, BAD)
    assert synced() == [""]

    assert len(hook.posts) == 2
    assert len({*hook.ids}) == 1


def test_a_night_that_may_have_been_told_is_followed_by_the_next(hook):
    """The receiver may know of the failure, though it never said so: it hears that the next night passed."""
    night(11, GOOD)
    hook.answers = [503, 503]
    night(12, BAD)
    night(13, GOOD)
    (failure,) = hook.posts[-1].message["recovered"]

    assert states(hook)[-1] == ("2026-11-13", "passed")
    assert failure["gate"] == "floor"


def test_a_receiver_that_is_away_gets_it_by_sync_with_the_same_id(hook):
    hook.answers, hook.said = [503, 503], "busy"
    (reason,) = night(11, BAD).unsent
    assert reason == "notify[0] (webhook at 127.0.0.1): answered 503 (busy)"

    assert synced() == [""]
    assert synced() == []
    assert len(hook.posts) == 3
    assert len({*hook.ids}) == 1


def test_what_a_receiver_refuses_is_not_sent_again_at_once(hook):
    hook.answers, hook.said = [404, 404], "no such path /hooks/T0/B0/xyzzy"
    (reason,) = night(11, BAD).unsent
    assert reason == "notify[0] (webhook at 127.0.0.1): answered 404 (no such path ***)"
    assert len(hook.posts) == 1
    assert synced() == [reason]
    assert len(hook.posts) == 2


def test_an_older_night_that_is_delivered_late_never_alerts_over_a_newer_one(hook):
    night(11, GOOD)
    hook.answers = [503, 503]
    night(12, BAD)
    night(13, GOOD)
    assert states(hook)[-1] == ("2026-11-13", "passed")
    n_posts = len(hook.posts)

    night(10, BAD)
    assert synced() == []
    assert len(hook.posts) == n_posts
    night(14, GOOD)
    assert len(hook.posts) == n_posts


def test_a_failure_that_stays_and_was_never_told_is_told_of_the_newest_night(hook):
    hook.answers = [400]
    night(11, BAD)
    night(12, BAD)

    assert states(hook) == [("2026-11-11", "failed"), ("2026-11-12", "failed")]
    night(13, BAD)
    assert len(hook.posts) == 2


def test_a_record_that_nobody_looked_at_gives_rise_to_its_alert(hook):
    night(11, BAD)
    LOG.unlink()
    assert synced() == [""]
    assert len(hook.posts) == 2
    assert len({*hook.ids}) == 1


def test_two_processes_at_once_send_an_alert_once(hook):
    hook.answers = [404]
    night(11, BAD)
    second: list[list[str]] = []
    other = threading.Thread(target=lambda: second.append(synced()))
    hook.meanwhile = other.start
    first = synced()
    other.join()

    assert (first, second) == ([""], [[]])
    assert len(hook.posts) == 2


def test_a_record_that_was_deleted_is_not_told(hook):
    """It may have been told, and its night is pruned: `sync` has nothing to tell, and the next night is told."""
    night(10, GOOD)
    hook.answers = [503, 503]
    evaluation = night(11, BAD)
    shutil.rmtree(evaluation.record)
    assert synced() == []
    assert night(12, BAD).unsent == ()

    assert states(hook)[2:] == [("2026-11-12", "failed")]


def test_a_command_gets_the_alert_on_stdin(tmp_path):
    program = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    write_config({"command": [sys.executable, "-c", program, "got $$HOME.json"]})
    assert night(11, BAD).unsent == ()
    assert json.loads((tmp_path / "got $HOME.json").read_text())["state"] == "failed"


def test_a_command_that_fails_is_named_and_run_again_by_sync(run_cli):
    program = """
import json, pathlib, sys
told = json.load(sys.stdin)
with open("told.txt", "a") as file:
    print(told["id"], file=file)
sys.exit("the pager is off" if not pathlib.Path("on").exists() else 0)
"""
    write_config({"command": [sys.executable, "-c", program]})
    (reason,) = night(11, BAD).unsent
    assert reason == f"notify[0] (command {sys.executable}): exited with 1 (the pager is off)"
    refused = run_cli("sync")
    assert refused.code == 5
    assert f"not delivered: {reason}" in refused.out
    Path("on").touch()
    sent = run_cli("sync")
    assert sent.code == 0
    assert f"alert sent to notify[0] (command {sys.executable})" in sent.out
    assert run_cli("sync").code == 0

    told = Path("told.txt").read_text().splitlines()
    assert (len(told), len({*told})) == (3, 1)


def test_a_program_that_is_not_there_is_named(run_cli):
    write_config({"command": ["no-such-pager"]})
    nights.write_ranking("2026-11-11.txt", dict.fromkeys(QUERIES, BAD))
    outcome = run_cli("nightly", "config.yaml", "--date", "2026-11-11")
    assert outcome.code == 1
    reason = "notify[0] (command no-such-pager): cannot be run: No such file or directory"
    assert f"alert not sent: {reason}; `rankledger sync` sends it" in outcome.err


def test_metrics_are_of_the_last_night():
    write_config({"metrics": "new/nightly.prom"})
    night(11, GOOD)
    night(13, BAD)
    night(10, GOOD)

    text = Path("runs/new/nightly.prom").read_text()
    assert 'rankledger_state{evaluation="nightly",state="failed"} 1.0\n' in text
    # 13 November 2026, midnight in UTC
    assert 'rankledger_night_timestamp_seconds{evaluation="nightly"} 1794528000.0\n' in text


def test_metrics_that_cannot_be_written_cost_nothing(hook):
    Path("runs/nightly.prom").mkdir(parents=True)
    write_config({"metrics": "nightly.prom"}, {"webhook": "${ALERTS_URL}"})
    evaluation = night(11, BAD)

    (reason,) = evaluation.unsent
    assert evaluation.record is not None
    assert reason.startswith("notify[0] (metrics nightly.prom): cannot be written: ")
    assert len(hook.posts) == 1


def test_no_secret_is_in_the_record_or_beside_it(hook, monkeypatch):
    evaluation = night(11, BAD)

    assert len(hook.posts) == 1
    written = [path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()]
    assert any(b"${ALERTS_URL}" in data for data in written)
    assert not any(b"xyzzy" in data for data in written)
    assert "ALERTS_URL" not in read_record(evaluation.record).manifest.expansions

    monkeypatch.delenv("ALERTS_URL")
    again = rankledger.evaluate_config(str(evaluation.record))
    assert [line.estimate for line in again.estimates] == [line.estimate for line in evaluation.estimates]
    assert not read_record(again.record).manifest.alerts


def test_the_record_of_somebody_else_chooses_no_receiver(hook, tmp_path):
    """Its config names a server and a program; `sync` sends nothing and runs nothing, though an alert is due."""
    write_config({"webhook": "${ALERTS_URL}"}, {"command": ["touch", str(tmp_path / "ran")]})
    hook.answers = [404]
    evaluation = night(11, BAD)
    (tmp_path / "ran").unlink()
    LOG.unlink()
    forget_own(evaluation.evaluation_id)

    assert synced() == []
    assert len(hook.posts) == 1
    assert not (tmp_path / "ran").exists()


def test_sync_needs_variables_only_if_something_is_due(hook, monkeypatch):
    night(11, GOOD)
    address = os.environ["ALERTS_URL"]
    monkeypatch.delenv("ALERTS_URL")
    assert synced() == []
    monkeypatch.setenv("ALERTS_URL", address)
    hook.answers = [404]
    night(12, BAD)
    monkeypatch.delenv("ALERTS_URL")
    (reason,) = synced()
    assert "${ALERTS_URL} is not set" in reason
    monkeypatch.setenv("ALERTS_URL", address)

    assert synced() == [""]


def test_a_target_whose_variable_is_not_set_costs_no_night(hook, monkeypatch, tmp_path):
    address = os.environ["ALERTS_URL"]
    monkeypatch.delenv("ALERTS_URL")
    write_config({"webhook": "${ALERTS_URL}"}, {"command": ["touch", str(tmp_path / "told")]})

    (reason,) = night(11, BAD).unsent
    assert reason.startswith("notify[0] (webhook): ${ALERTS_URL} is not set in the environment")
    assert (tmp_path / "told").exists()
    (reason,) = synced()
    assert "${ALERTS_URL} is not set" in reason

    monkeypatch.setenv("ALERTS_URL", address)
    assert synced() == [""]
    assert states(hook) == [("2026-11-11", "failed")]


def test_targets_that_cannot_be_used_cost_neither_the_verdict_nor_another_alert(hook, monkeypatch, run_cli):
    monkeypatch.setenv("BROKEN", "http://[::1/S3CR3T")
    monkeypatch.setenv("PASSWORD", "http://bot:S3CR3T-S3CR3T@127.0.0.1:1/x")
    monkeypatch.setenv("TOKEN", "S3CR3T-S3CR3T")
    refuse = "import sys; sys.exit(f'wrong token {sys.argv[1]!r}')"
    monkeypatch.setattr("rankledger.pipeline.delivery.alerts.metrics_text", lambda *_: {}["a bug"])
    write_config(
        {"webhook": "${BROKEN}"},
        {"webhook": "${PASSWORD}"},
        {"command": [sys.executable, "-c", refuse, "${TOKEN}"]},
        {"metrics": "nightly.prom"},
        {"webhook": "${ALERTS_URL}"},
    )
    nights.write_ranking("2026-11-11.txt", dict.fromkeys(QUERIES, BAD))
    outcome = run_cli("nightly", "config.yaml", "--date", "2026-11-11")
    reasons = [line.split("): ", 1)[1] for line in outcome.err.splitlines() if line.startswith("alert not sent: ")]

    assert outcome.code == 1
    assert states(hook) == [("2026-11-11", "failed")]
    assert [reason.removesuffix("; `rankledger sync` sends it") for reason in reasons] == [
        "found no address of a server. Set one that begins with https:// or http://",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "exited with 1 (wrong token '***')",
        "KeyError: 'a bug'",
    ]
    assert "S3CR3T" not in outcome.out + outcome.err


def test_a_line_break_around_an_address_is_named(hook, monkeypatch, run_cli):
    monkeypatch.setenv("ALERTS_URL", f"{hook.address}/hook\n")
    hook.answers = [404]
    (reason,) = night(11, BAD).unsent
    assert (
        reason == "notify[0] (webhook at 127.0.0.1, without the line break or blank around the address): answered 404"
    )
    assert synced() == [""]


def test_a_webhook_whose_variable_is_not_set_is_no_target(hook, monkeypatch, tmp_path):
    address = os.environ["ALERTS_URL"]
    monkeypatch.delenv("ALERTS_URL")
    write_config({"webhook": "${ALERTS_URL:-}"})
    assert night(11, BAD).unsent == ()
    assert not LOG.exists()

    write_config({"webhook": "${ALERTS_URL:-}"}, {"command": ["touch", str(tmp_path / "told")]})
    assert night(12, BAD).unsent == ()
    assert (tmp_path / "told").exists()
    monkeypatch.setenv("ALERTS_URL", address)
    night(13, BAD)
    assert states(hook) == [("2026-11-13", "failed")]


def test_a_log_that_is_no_log_is_named_and_the_night_is_whole(hook):
    LOG.parent.mkdir(parents=True)
    LOG.write_text('{"latest": 1}')
    evaluation = night(11, BAD)

    assert evaluation.record is not None
    (reason,) = evaluation.unsent
    assert ".state/alerts/nightly.json is not a log of alerts" in reason
    assert reason.endswith("restore or delete it")


GATES = ["no-drop", "floor", "ceiling"]


@pytest.fixture
def night_of_one_cause(folder, run_cli, monkeypatch):
    nights.write_judgments(QUERIES)
    for model in ("dense", "sparse"):
        nights.write_ranking(f"{model}.txt", dict.fromkeys(QUERIES, 1))
    measures = ["rr", "ap", "ndcg@10", "recall@3"]
    with receiver() as hook:
        monkeypatch.setenv("HOOK", hook.address)
        nights.write_config(
            models={name: {"outputs": f"{name}.txt"} for name in ("bm25", "dense", "sparse")},
            suites={"search": measures},
            gates=[{"name": name, "measure": measures, "at_least": 0.1} for name in GATES],
            notify=[{"webhook": "${HOOK}"}],
            report=True,
        )
        printed = run_cli("nightly", "config.yaml", "--date", "2026-11-12", "--markdown", "gates.md")
        (post,) = hook.posts
    return printed.out, post.message["text"]


def test_twelve_verdicts_of_one_cause_are_one_row(night_of_one_cause, run_cli):
    printed, alert = night_of_one_cause
    reason, more = "bm25.txt: file not found", "(and 11 more verdicts)"

    shown = run_cli("show", "--all").out
    assert len(re.findall(r"^[A-Z]+ .*bm25", printed, re.MULTILINE)) == 1
    assert [row[0] for row in table_rows(shown) if len(row) == 5].count("bm25") == 1
    markdown = Path("gates.md").read_text("utf-8")
    (row,) = re.findall(r"^\| bm25 .*", markdown.split("<details>")[0], re.MULTILINE)
    assert [cell.strip() for cell in row.split("|")[1:5]] == ["bm25", "INCONCLUSIVE", ", ".join(GATES), "web"]
    assert reason in row
    assert more in row
    (line,) = [line for line in alert.splitlines() if "bm25.txt" in line and line.startswith("New: ")]
    assert line.startswith("New: bm25 on web, no-drop, floor, ceiling: ")
    assert "(and 3 more failures)" in line

    evaluation = rankledger.load("last")
    assert evaluation._repr_html_().count("bm25.txt: file not found") == 1
    page = read_page((evaluation.record / "report.html").read_text("utf-8"))
    (table,) = [table for table in page.tables if table.name == "reasons"]
    ((row,),) = [table.cells(group) for group in table.groups]
    assert (row["model"], row["dataset"], row["gate"]) == ("bm25", "web", ", ".join(GATES))
    assert more in row["reason"]


JUMPS = {
    4: timedelta(days=365),
    8: timedelta(days=-3),
    9: timedelta(days=-3),
    12: timedelta(minutes=-2),
    15: timedelta(days=-20_000),
    17: timedelta(days=365),
}
"""Nights, and how far the clock is off."""


@pytest.mark.parametrize("is_dated", [True, False], ids=["the scheduler's date", "the clock's date"])
def test_twenty_nights_with_a_clock_that_jumps_tell_each_change_once(
    hook, monkeypatch, capsys, record_property, is_dated
):
    """What fails changes on and after each night with a wrong clock, and the first night after a year ahead warns."""
    write_config({"webhook": "${ALERTS_URL}", "remind_after": 0})
    first = datetime.now(UTC).replace(hour=12, minute=0) - timedelta(days=25)
    ranks = [GOOD if letter == "+" else BAD for letter in "+--+-++-+-++-++-+-+-"]
    expected = []
    for number, rank in enumerate(ranks):
        clock = set_clock(monkeypatch, first + timedelta(days=number) + JUMPS.get(number, timedelta()))
        date = str((first + timedelta(days=number) if is_dated else clock.now()).date())
        nights.write_ranking(f"{date}.txt", dict.fromkeys(QUERIES, rank))
        capsys.readouterr()
        evaluation = rankledger.nightly("config.yaml", date=date if is_dated else None, clock=clock, again=True)
        warned = capsys.readouterr().err

        assert evaluation.unsent == ()
        assert synced() == []
        if rank != ([GOOD, *ranks])[number]:
            expected.append((date, "passed" if rank == GOOD else "failed"))
        assert states(hook) == expected, f"night {number}"
        if JUMPS.get(number - 1, timedelta()) > timedelta(days=2):
            assert "the record began in the future. Check the clock of this machine" in warned
    assert len({*hook.ids}) == len(expected)
    record_property("cases", len(ranks))


def set_clock(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> Clock:
    """Set the time of every module, and return the clock to wait with."""

    class Then(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return moment

    for name, module in [*sys.modules.items()]:
        if name.startswith("rankledger.pipeline.") and isinstance(getattr(module, "datetime", None), type):
            monkeypatch.setattr(module, "datetime", Then)
    clock = Clock()
    clock.time = moment
    return clock
