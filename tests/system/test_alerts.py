"""Nights with targets that are killed at every step, and receivers that are away: no alert is lost, an alert that comes
twice has one id, and none of an older night follows that of a newer one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rankledger.pipeline.record.store import Records
from tests.support.forked import Loaded
from tests.support.generated_data import search_collection, write_config
from tests.support.servers import free_port
from tests.support.webhook_receiver import SILENT, Receiver, receiver
from tests.system.kills import Ended, Running, run, start

WEB = search_collection(41, n_queries=12)
LOST = {"gates": [{"name": "answers", "max_missing": 0}]}  # the collection has judged queries without output
KEPT = {"gates": [{"name": "answers", "max_missing": 1}]}


class Job:
    def __init__(self, folder: Path, hook: Receiver | str, loaded: Loaded) -> None:
        address = hook if isinstance(hook, str) else hook.address
        self.folder, self.loaded = folder, loaded
        self.environment = {"ALERTS_URL": f"{address}/hook"}
        self.targets: list[dict[str, Any]] = [{"webhook": "${ALERTS_URL}"}]

    def night(self, day: int, gates: Mapping[str, Any]) -> Ended:
        return self.command(*self._words(day, gates))

    def killed_night(self, day: int, gates: Mapping[str, Any], at: int, when: str) -> None:
        ended = self.start(day, gates, kill_at=at, when=when).wait()
        assert ended.code == -9, ended.err

    def start(self, day: int, gates: Mapping[str, Any], **options: Any) -> Running:
        words = self._words(day, gates)
        return start(*words, cwd=self.folder, by=self.loaded, environment=self.environment, **options)

    def command(self, *words: str | Path, **options: Any) -> Ended:
        return run(*words, cwd=self.folder, by=self.loaded, environment=self.environment, **options)

    def records(self) -> list[str]:
        return Records(self.folder / "runs" / "records").ids()

    def _words(self, day: int, gates: Mapping[str, Any]) -> tuple[str | Path, ...]:
        config = self.folder / "configs" / f"{day}.yaml"
        if not config.exists():
            base = write_config(self.folder / "configs", {"web": WEB}, {"search": ["ap"]})
            more = {"notify": self.targets, "report": False, "tracking": {"enabled": False}, **gates}
            config.write_text(yaml.safe_dump({"extends": base.name, **more}))
        return "nightly", config, "--date", f"2026-11-{day}"


def told(hook: Receiver) -> list[tuple[str, str]]:
    return [(post.message["date"], post.message["state"]) for post in hook.posts]


def test_a_night_that_is_killed_at_any_rename_loses_no_alert(tmp_path, hook, loaded):
    plain = tmp_path / "plain"
    plain.mkdir()
    job = Job(plain, hook, loaded)
    assert job.night(11, KEPT).code == 0
    renames = job.night(12, LOST).renames
    assert told(hook) == [("2026-11-12", "failed")]
    assert len([name for name in renames if "/.state/alerts/" in name]) >= 3, renames  # looked at, attempt, receipt

    for number, (at, when) in enumerate(
        (at, when) for at in range(1, len(renames) + 1) for when in ("before", "after")
    ):
        folder = tmp_path / f"{at}-{when}"
        folder.mkdir()
        job = Job(folder, hook, loaded)
        assert job.night(11, KEPT).code == 0
        hook.posts.clear()
        job.killed_night(12, LOST, at, when)
        if number % 4 in (1, 2) or len(job.records()) == 1:  # killed before there was a record
            assert job.night(12, LOST).code == 1
        assert job.command("sync").code == 0
        assert job.command("sync").out == ""

        case = f"killed {when} rename {at}, {renames[at - 1]}"
        assert {*told(hook)} == {("2026-11-12", "failed")}, case
        assert len({*hook.ids}) == 1, case
        assert len(hook.ids) <= 2, case


def test_a_night_that_is_killed_between_post_and_answer(tmp_path, hook, loaded):
    job = Job(tmp_path, hook, loaded)
    running = job.start(11, LOST)
    hook.meanwhile, hook.answers = running.kill, [SILENT]
    assert running.wait().code == -9
    synced = job.command("sync")

    assert (synced.code, job.command("sync").out) == (0, "")
    assert len(hook.ids) == 2
    assert len({*hook.ids}) == 1


def test_a_receiver_that_acts_and_dies_gets_two_posts_with_one_id(tmp_path, hook, loaded):
    job = Job(tmp_path, hook, loaded)
    hook.answers = [SILENT]
    ended = job.night(11, LOST)

    assert (ended.code, ended.err) == (1, "")
    assert len(hook.ids) == 2
    assert len({*hook.ids}) == 1
    assert job.command("sync").out == ""


def test_nights_without_a_receiver_tell_the_last_state_once_it_is_back(tmp_path, loaded):
    port = free_port()
    job = Job(tmp_path, f"http://127.0.0.1:{port}", loaded)
    codes = []
    for day, gates in enumerate((KEPT, LOST, KEPT, LOST), start=11):
        ended = job.night(day, gates)
        codes.append(ended.code)
        lines = [line for line in ended.err.splitlines() if line.startswith("alert not sent: ")]
        assert len(lines) == (day > 11)  # a first night that passes is no news
        assert all(line.endswith("; `rankledger sync` sends it") for line in lines)
    assert job.command("sync").code == 5
    with receiver(port) as hook:
        synced = job.command("sync")
        again = job.command("sync")

    assert codes == [0, 1, 0, 1]
    assert told(hook) == [("2026-11-14", "failed")]
    assert (synced.code, again.out) == (0, "")
    assert synced.out.endswith("alert sent to notify[0] (webhook at 127.0.0.1)\n")


def test_nights_of_machines_that_vanish_share_what_was_told(tmp_path, hook, loaded, s3):
    place = f"{s3.bucket()}/records"
    nights = {11: KEPT, 12: LOST, 13: LOST, 14: KEPT}
    for day, gates in nights.items():
        (tmp_path / str(day)).mkdir()
        job = Job(tmp_path / str(day), hook, loaded)
        hook.answers = [400] if day == 12 else []
        words = (*job._words(day, gates), "--records", place)
        assert job.command(*words).code == (0 if gates is KEPT else 1)

    assert told(hook) == [("2026-11-12", "failed"), ("2026-11-13", "failed"), ("2026-11-14", "passed")]
    assert hook.posts[1].message["record"].startswith(place)
    assert hook.posts[2].message["recovered"]


def test_several_targets_at_once(tmp_path, hook, loaded):
    job = Job(tmp_path, hook, loaded)
    job.targets = [
        {"command": ["false"]},
        {"webhook": "${ALERTS_URL}", "page": "https://eval.example.com/{evaluation_id}.html"},
        {"metrics": "nightly.prom"},
    ]
    ended = job.night(11, LOST)
    (record,) = job.records()
    (post,) = hook.posts

    assert "alert not sent: notify[0] (command false): exited with 1;" in ended.err
    assert post.message["text"].startswith("generated failed on 2026-11-11")
    assert post.message["page"] == f"https://eval.example.com/{record}.html"
    assert "rankledger_estimate{" in (tmp_path / "runs/nightly.prom").read_text()
