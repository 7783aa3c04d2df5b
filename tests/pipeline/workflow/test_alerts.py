"""Alerts of nights, to a real server on loopback: on a change of state alone, at least once, and never an older one."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.notify import Delivery, Webhook
from rankledger.pipeline.record.alerts import read_log
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.store import Records, forget_own
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.types.alerts import AlertLog
from rankledger.pipeline.types.results import Evaluation
from rankledger.pipeline.workflow.nightly import nightly
from tests.support import nights
from tests.support.servers import free_port
from tests.support.webhook_receiver import SILENT, Receiver, receiver

QUERIES = [f"q{number:02}" for number in range(40)]
NAME = "nightly"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
GOOD, BAD = 1, 4  # ranks of the document that is relevant; the gate wants 0.5


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with judgments; a webhook that may only have been busy is tried again at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKLEDGER_ALLOW_ENV", "ALERTS_URL,ALERTS_SECRET")
    monkeypatch.setattr("rankledger.pipeline.workflow.alerts._PAUSE", 0.0)
    nights.write_judgments(QUERIES)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver, whose address is in the environment."""
    with receiver() as found:
        monkeypatch.setenv("ALERTS_URL", f"{found.address}/hooks/T0/B0/xyzzy")
        yield found


def write_config(*targets: dict[str, Any], **changes: Any) -> None:
    nights.write_config(
        models={"bm25": {"outputs": "{date}.txt", "owner": "search-team"}},
        gates=[{"name": "floor", "measure": "rr", "at_least": 0.5}],
        **{"notify": list(targets) or [{"webhook": "${ALERTS_URL}"}], **changes},
    )


def night(day: int, rank: int, **options: Any) -> Evaluation:
    """A night of November whose only model has the relevant document at that rank: 1 passes, 4 fails."""
    date = f"2026-11-{day}"
    nights.write_ranking(f"{date}.txt", dict.fromkeys(QUERIES, rank))
    return nightly("config.yaml", date=date, **options)


def states(posts: Receiver) -> list[tuple[str, str]]:
    """The date and the state that each post tells of."""
    return [(post.message["data"]["date"], post.message["data"]["state"]) for post in posts.posts]


def synced() -> list[str]:
    """The reasons for which `sync` could not send, empty for what it sent."""
    return [result.reason for result in rankledger.sync()]


def log() -> AlertLog:
    found = read_log(Records(Path("runs/records")), NAME)
    assert found is not None
    return found


def test_an_alert_tells_of_a_change_and_not_of_what_stays(hook):
    """Passed, failed, failed, passed, passed: the first failure and the first recovery are told; the rest is silent."""
    write_config()
    for day, rank in enumerate((GOOD, BAD, BAD, GOOD, GOOD), start=11):
        assert night(day, rank).unsent == ()

    assert states(hook) == [("2026-11-12", "failed"), ("2026-11-14", "passed")]
    assert synced() == []
    assert len(hook.posts) == 2


def test_a_message_says_what_broke_and_whose_it_is(hook):
    """State before and after, the gate with its reason, the model's owner, and where the record is."""
    write_config()
    before, after = night(11, GOOD), night(12, BAD)
    (post,) = hook.posts
    data = post.message["data"]

    assert data["before"] == {"state": "passed", "date": "2026-11-11", "evaluation_id": before.evaluation_id}
    assert (data["name"], data["evaluation_id"]) == (NAME, after.evaluation_id)
    assert data["links"]["record"] == str(after.record.resolve())
    (model,) = data["models"]
    assert (model["model"], model["owner"]) == ("bm25", "search-team")
    assert [(found["gate"], found["measure"], found["effect"]) for found in model["reasons"]] == [
        ("floor", "rr", "fail")
    ]
    assert "0.25" in model["reasons"][0]["reason"]
    assert data["headline"] == after.headline
    assert post.message["title"] == "nightly failed on 2026-11-12 (passed on 2026-11-11)"


def test_a_first_night_is_told_unless_it_passed(hook):
    """Nothing is known before it, and silence means that all is well."""
    write_config()
    night(11, BAD)

    assert states(hook) == [("2026-11-11", "failed")]
    assert hook.posts[0].message["data"]["before"] is None


def test_the_first_night_with_targets_is_held_against_the_night_before(hook):
    """The evaluation failed before anybody asked for alerts: that it still fails is no change."""
    write_config(notify=[])
    night(11, BAD)
    write_config()
    night(12, BAD)
    night(13, GOOD)

    assert states(hook) == [("2026-11-13", "passed")]


def test_a_record_that_was_evaluated_again_is_no_night(hook):
    """Nobody asked for alerts yet, the night passed, and its record was evaluated again with a gate that fails."""
    write_config(notify=[])
    record = night(11, GOOD).record
    gates = "gates=[{name: ceiling, measure: rr, at_most: 0.5}]"
    assert rankledger.evaluate(str(record), overrides=[gates]).verdicts[0].effect == "fail"
    write_config()
    night(12, GOOD)

    assert hook.posts == []


def test_an_output_that_is_missing_is_a_state_of_its_own(hook):
    """A night without output is incomplete, and the alert names the file that is missing."""
    write_config()
    night(11, GOOD)
    nightly("config.yaml", date="2026-11-12")

    assert states(hook) == [("2026-11-12", "incomplete")]
    assert "2026-11-12.txt" in hook.posts[0].message["data"]["models"][0]["reasons"][0]["reason"]


def test_a_night_that_is_evaluated_again_tells_each_change(hook):
    """Failed, then fixed, then failed again on one date: three alerts, and no two share an id."""
    write_config()
    night(11, GOOD)
    night(12, BAD)
    night(12, GOOD, again=True)
    night(12, BAD, again=True)

    assert [state for _, state in states(hook)] == ["failed", "passed", "failed"]
    assert len({alert_id for alert_id, _ in hook.ids}) == 3


def test_evaluate_and_a_night_that_is_shown_again_send_nothing(hook):
    """Alerts are the job's: a look at an evaluation, or an experiment with the same config, is none."""
    write_config()
    night(11, BAD)
    nightly("config.yaml", date="2026-11-11")
    rankledger.evaluate("config.yaml", date="2026-11-11")

    assert len(hook.posts) == 1


def test_an_answer_that_is_lost_gives_two_posts_with_one_id_the_second_marked(hook):
    """The receiver acted and the connection broke: it is sent again at once, and says that it may be a repeat."""
    write_config()
    hook.answers = [SILENT]
    assert night(11, BAD).unsent == ()
    (first, second) = hook.posts

    assert [marked for _, marked in hook.ids] == [False, True]
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] == first.message["id"]
    assert (first.message["repeat"], second.message["repeat"]) == (False, True)
    assert {**first.message, "repeat": True} == second.message
    assert log().targets.popitem()[1].sent.attempts == 2


def test_an_attempt_that_is_interrupted_may_have_arrived(hook, monkeypatch):
    """Ctrl-C while the receiver has the post: the next one has its id, and is marked."""
    write_config()

    def interrupted(webhook: Webhook, delivery: Delivery) -> None:
        send(webhook, delivery)
        raise KeyboardInterrupt

    send = Webhook.send
    with monkeypatch.context() as patched:
        patched.setattr(Webhook, "send", interrupted)
        with pytest.raises(KeyboardInterrupt):
            night(11, BAD)
    assert synced() == [""]

    assert [marked for _, marked in hook.ids] == [False, True]
    assert len({alert_id for alert_id, _ in hook.ids}) == 1


def test_a_receiver_that_is_away_gets_it_by_sync_with_the_same_id(hook):
    """Two answers of 503 are said in a line; `sync` sends it, marked, and then no more."""
    write_config()
    hook.answers, hook.said = [503, 503], "busy"
    (reason,) = night(11, BAD).unsent
    assert reason == "notify[0] (webhook at 127.0.0.1): answered 503 (busy)"

    assert synced() == [""]
    assert synced() == []
    assert len(hook.posts) == 3
    assert len({alert_id for alert_id, _ in hook.ids}) == 1
    assert [marked for _, marked in hook.ids] == [False, True, True]


def test_what_never_left_is_not_marked_when_it_is_sent(tmp_path, monkeypatch):
    """Nobody listens: the connection is refused, so the post that `sync` makes is the first."""
    port = free_port()
    monkeypatch.setenv("ALERTS_URL", f"http://127.0.0.1:{port}/hook")
    write_config()
    (reason,) = night(11, BAD).unsent
    assert "Connection refused" in reason
    with receiver(port) as hook:
        assert synced() == [""]
        assert [marked for _, marked in hook.ids] == [False]


def test_what_a_receiver_refuses_is_not_sent_again_at_once(hook):
    """404 is a wrong address: one post, one line without the address, and `sync` tries it again."""
    write_config()
    hook.answers, hook.said = [404, 404], "no such path /hooks/T0/B0/xyzzy"
    (reason,) = night(11, BAD).unsent
    assert reason == "notify[0] (webhook at 127.0.0.1): answered 404"
    assert len(hook.posts) == 1
    assert synced() == [reason]
    assert [marked for _, marked in hook.ids] == [False, False]


def test_an_older_night_that_is_delivered_late_never_alerts_over_a_newer_one(hook):
    """The failure was not told before the next night passed, so the pass is told; an earlier date later is silent."""
    write_config()
    night(11, GOOD)
    hook.answers = [503, 503]
    night(12, BAD)
    night(13, GOOD)
    assert states(hook)[-1] == ("2026-11-13", "passed")
    assert hook.posts[-1].message["data"]["before"]["state"] == "failed"
    n_posts = len(hook.posts)

    night(10, BAD)
    assert synced() == []
    assert len(hook.posts) == n_posts
    night(14, GOOD)
    assert len(hook.posts) == n_posts


def test_a_failure_that_stays_and_was_never_told_is_told_of_the_newest_night(hook):
    """The receiver refused the first night's alert; the second night fails as well, and is what it hears of."""
    write_config()
    hook.answers = [400]
    night(11, BAD)
    night(12, BAD)

    assert states(hook) == [("2026-11-11", "failed"), ("2026-11-12", "failed")]
    night(13, BAD)
    assert len(hook.posts) == 2


def test_a_record_that_nobody_looked_at_gives_rise_to_its_alert(hook):
    """The log of alerts is gone, as after a kill right behind the record: `sync` finds the record and sends."""
    write_config()
    night(11, BAD)
    Path(f"runs/records/.state/alerts/{NAME}.json").unlink()
    assert synced() == [""]

    assert [marked for _, marked in hook.ids] == [False, False]
    assert len({alert_id for alert_id, _ in hook.ids}) == 1


def test_two_processes_at_once_send_an_alert_once(hook):
    """While the first waits for an answer another `sync` begins: it waits for the first, and finds nothing due."""
    write_config()
    hook.answers = [404]
    night(11, BAD)
    second: list[list[str]] = []
    other = threading.Thread(target=lambda: second.append(synced()))
    hook.meanwhile = other.start
    first = synced()
    other.join()

    assert (first, second) == ([""], [[]])
    assert len(hook.posts) == 2


def test_an_alert_whose_record_was_deleted_is_dropped(hook):
    """It may have arrived, and its night is pruned while the state stays: there is nothing to tell; nothing fails."""
    write_config()
    hook.answers = [503, 503]
    evaluation = night(11, BAD)
    shutil.rmtree(evaluation.record)
    assert night(12, BAD).unsent == ()

    assert len(hook.posts) == 2
    assert [target.pending for target in log().targets.values()] == [None]


def test_a_command_gets_the_alert_on_stdin(tmp_path):
    """It is run without a shell: a word with a blank and a dollar sign arrives as it is."""
    program = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    write_config({"command": [sys.executable, "-c", program, "got $$HOME.json"]})
    assert night(11, BAD).unsent == ()

    assert json.loads((tmp_path / "got $HOME.json").read_text())["data"]["state"] == "failed"


def test_a_command_that_fails_is_named_and_run_again_by_sync(run_cli):
    """It exits with 3 until a file is there; the night says so, `sync` exits with 5, then sends it, marked."""
    program = """
import json, pathlib, sys
told = json.load(sys.stdin)
with open("told.txt", "a") as file:
    print(told["id"], told["repeat"], file=file)
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

    told = [line.split() for line in Path("told.txt").read_text().splitlines()]
    assert len({alert_id for alert_id, _ in told}) == 1
    assert [marked for _, marked in told] == ["False", "True", "True"]


def test_a_program_that_is_not_there_is_named(run_cli):
    """The night ends as its gates say; a line on stderr names the program, and the command that sends it later."""
    write_config({"command": ["no-such-pager"]})
    nights.write_ranking("2026-11-11.txt", dict.fromkeys(QUERIES, BAD))

    outcome = run_cli("nightly", "config.yaml", "--date", "2026-11-11")

    assert outcome.code == 1
    reason = "notify[0] (command no-such-pager): cannot be run: No such file or directory"
    assert f"alert not sent: {reason}; `rankledger sync` sends it" in outcome.err


def test_files_hold_the_last_change_and_the_last_night():
    """The alert is of the night that broke; the metrics are of the last night, and no older one takes their place."""
    write_config({"file": "alerts/last.json"}, {"metrics": "nightly.prom"})
    night(11, GOOD)
    assert not Path("runs/alerts").exists()
    night(12, BAD)
    night(13, BAD)
    night(10, GOOD)

    assert json.loads(Path("runs/alerts/last.json").read_text())["data"]["date"] == "2026-11-12"
    text = Path("runs/nightly.prom").read_text()
    assert 'rankledger_state{evaluation="nightly",state="failed"} 1.0\n' in text
    # 13 November 2026, midnight in UTC
    assert 'rankledger_night_timestamp_seconds{evaluation="nightly"} 1794528000.0\n' in text


def test_no_secret_is_in_the_record_or_beside_it(hook, monkeypatch):
    """Neither the address nor the key nor their variables' values are in any file under the runs folder."""
    monkeypatch.setenv("ALERTS_SECRET", SECRET)
    write_config({"webhook": "${ALERTS_URL}", "secret": "${ALERTS_SECRET}"})
    evaluation = night(11, BAD)

    (post,) = hook.posts
    assert post.headers["webhook-signature"].startswith("v1,")
    written = [path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()]
    assert any(b"${ALERTS_URL}" in data for data in written)
    assert not any(b"xyzzy" in data or b"MfKQ9r8" in data for data in written)
    assert "ALERTS_URL" not in read_record(evaluation.record).manifest.expansions


def test_the_record_of_somebody_else_chooses_no_receiver(hook, tmp_path):
    """Its config names a server and a program; `sync` sends nothing and runs nothing, though an alert is due."""
    write_config({"webhook": "${ALERTS_URL}"}, {"command": ["touch", str(tmp_path / "ran")]})
    hook.answers = [404]
    evaluation = night(11, BAD)
    (tmp_path / "ran").unlink()
    Path(f"runs/records/.state/alerts/{NAME}.json").unlink()
    forget_own(evaluation.evaluation_id)

    assert synced() == []
    assert len(hook.posts) == 1
    assert not (tmp_path / "ran").exists()


def test_sync_reads_only_variables_that_are_allowed(hook, monkeypatch):
    """As under `tracking`: the line says which to allow, and the config is not read where nothing is due."""
    write_config()
    night(11, GOOD)
    monkeypatch.delenv("RANKLEDGER_ALLOW_ENV")
    assert synced() == []
    hook.answers = [404]
    night(12, BAD)

    (reason,) = synced()
    assert "${ALERTS_URL} may be a secret" in reason
    assert [result.reason for result in rankledger.sync(allow_env=["ALERTS_URL"])] == [""]


def test_a_record_with_targets_is_evaluated_again_without_their_variables(hook, monkeypatch):
    """What is not sent needs no address: the variable is neither allowed nor set."""
    write_config()
    evaluation = night(11, BAD)
    monkeypatch.delenv("ALERTS_URL")
    monkeypatch.delenv("RANKLEDGER_ALLOW_ENV")
    again = rankledger.evaluate(str(evaluation.record))

    assert [line.estimate for line in again.estimates] == [line.estimate for line in evaluation.estimates]
    assert not read_record(again.record).manifest.alerts


def test_a_webhook_whose_variable_is_not_set_is_no_target(hook, monkeypatch):
    """`${NAME:-}` lets one config serve a machine that sends and one that does not."""
    address = os.environ["ALERTS_URL"]
    monkeypatch.delenv("ALERTS_URL")
    write_config({"webhook": "${ALERTS_URL:-}", "form": "slack"})
    assert night(11, BAD).unsent == ()
    assert not Path(f"runs/records/.state/alerts/{NAME}.json").exists()

    write_config({"webhook": "${ALERTS_URL:-}"}, {"file": "last.json"})
    assert night(12, BAD).unsent == ()
    assert Path("runs/last.json").exists()
    monkeypatch.setenv("ALERTS_URL", address)
    night(13, BAD)
    assert states(hook) == [("2026-11-13", "failed")]


def test_a_log_that_is_no_log_is_named_and_the_night_is_whole(hook):
    """Somebody wrote something else there: the evaluation ends well, and the line says what to do."""
    write_config()
    Path("runs/records/.state/alerts").mkdir(parents=True)
    Path(f"runs/records/.state/alerts/{NAME}.json").write_text('{"latest": 1}')
    evaluation = night(11, BAD)

    assert evaluation.record is not None
    (reason,) = evaluation.unsent
    assert ".state/alerts/nightly.json is not a log of alerts" in reason
    assert reason.endswith("restore or delete it")
    with pytest.raises(InputError):
        log()
