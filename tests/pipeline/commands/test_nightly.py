"""Nights as a job meets them: evaluated once, shown again, and not lost to a rival, a kill or a late output."""

import errno
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rankledger.pipeline import run as evaluate
from rankledger.pipeline.commands.nightly import AwaitedInput, nightly, wait_for
from rankledger.pipeline.config import schema
from rankledger.pipeline.config.schema import Nightly
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.receipts import read_receipt
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.support.errors import InputError
from tests.support import nights
from tests.support.fake_clock import Clock
from tests.support.forked import Loaded
from tests.support.histories import points_in

DATE = "2026-11-20"
QUERIES = [f"q{number:02}" for number in range(80)]
RUN = "from rankledger.pipeline.cli.app import main; main()"
COMMAND = ("nightly", "config.yaml", "--date", DATE)
PATIENT = {"wait": "2h"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    nights.write_judgments(QUERIES)
    write_config()
    return tmp_path


def write_config(**changes: Any) -> None:
    models = {model: {"outputs": "{date}/{model}.txt"} for model in ("bm25", "dense")}
    nights.write_config(**{"models": models, **changes})


def write_output(model: str, *, best: int = 1, folder: str = DATE) -> None:
    """Half of the queries have their document at the best rank, half one lower: (1 + 1/2) / 2 = 0.75 for 1."""
    ranks = {query_id: best + number % 2 for number, query_id in enumerate(QUERIES)}
    nights.write_ranking(Path(folder) / f"{model}.txt", ranks)


def write_outputs(*models: str) -> None:
    for model in models or ("bm25", "dense"):
        write_output(model)


def night(clock: Clock | None = None, **options: Any) -> Evaluation:
    return nightly("config.yaml", **{"date": DATE, "clock": clock or Clock(), **options})


def records() -> list[str]:
    return sorted(path.parent.name for path in Path("runs/records").glob("*/manifest.json"))


def figures(evaluation: Evaluation) -> dict[str, float | None]:
    return {line.model: line.estimate for line in evaluation.estimates}


def wait_until(done: Any) -> None:
    deadline = time.monotonic() + 600
    while not done():
        assert time.monotonic() < deadline, "it never did"
        time.sleep(0.02)


@pytest.mark.parametrize("date", [DATE, None])
def test_a_night_is_evaluated_under_its_date_or_that_of_today(date):
    """The clock stands at two in the morning of 20 November in UTC, whatever the machine's time zone."""
    write_outputs()
    evaluation = night(date=date)
    assert figures(evaluation) == {"bm25": 0.75, "dense": 0.75}
    assert read_record(evaluation.record).manifest.date == DATE


@pytest.mark.parametrize("date", ["20261120", "2026-11-31", ""])
def test_a_date_is_written_in_one_way(date):
    """It names the night's file: other ways of writing it would be other nights."""
    with pytest.raises(InputError, match=r"--date: found .*; write the night's date as YYYY-MM-DD"):
        night(date=date)


def test_a_night_that_was_evaluated_is_shown_again():
    write_outputs()
    first = night()
    for file in Path(DATE).iterdir():
        file.unlink()

    second = night()
    write_output("bm25", folder="2026-11-21")
    write_output("dense", folder="2026-11-21")
    third = night(date="2026-11-21")

    assert (second.evaluation_id, second.estimates) == (first.evaluation_id, first.estimates)
    assert records() == sorted({first.evaluation_id, third.evaluation_id})


def test_again_evaluates_anew_and_is_what_is_shown_from_then_on():
    """An output is missing when the night is over, so that a second command shows it, and `--again` is what serves."""
    write_output("bm25")
    first = night()
    write_output("dense", best=3)
    shown = night()

    second = night(again=True)

    (failure,) = first.failures
    advice = "check the path, or run nightly --again once it is there"
    assert (failure.model, failure.reason) == ("dense", f"{DATE}/dense.txt: file not found by 02:00 UTC; {advice}")
    assert shown.failures == first.failures
    assert (figures(second), second.failures) == (pytest.approx({"bm25": 0.75, "dense": (1 / 3 + 1 / 4) / 2}), ())
    assert night().evaluation_id == second.evaluation_id
    assert records() == sorted([first.evaluation_id, second.evaluation_id])


def test_again_that_comes_to_nothing_is_recorded_and_told_once():
    write_config(notify=[{"command": ["sh", "-c", "cat >> told.json; echo >> told.json"]}])
    write_outputs()
    first = night()
    Path("qrels.txt").unlink()
    later = Clock()
    later.time = datetime.now(UTC) + timedelta(seconds=10)

    for _ in range(2):
        with pytest.raises(InputError, match="file not found by"):
            night(later, again=True)

    (failed,) = {*records()} - {first.evaluation_id}
    assert "file not found by" in read_record(Path("runs/records") / failed).manifest.error
    assert [json.loads(line)["id"] for line in Path("told.json").read_text().splitlines()] == [failed]
    assert night().evaluation_id == first.evaluation_id


def test_a_failed_night_is_recorded_if_mlflow_cannot_start(monkeypatch, run_cli):
    write_config(tracking={"enabled": True})
    write_outputs()
    Path("qrels.txt").write_text("q00 0 d0 many\n")

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("rankledger.pipeline.record.mlflow_stores.subprocess.Popen", fail)
    code, _, said = run_cli(*COMMAND)

    assert (code, len(records())) == (2, 1)
    assert "cannot be recorded" not in said
    assert "mlflow.db: its process cannot be started (Resource temporarily unavailable); `rankledger sync`" in said


def test_the_second_call_prints_writes_and_exits_as_the_first(tmp_path, monkeypatch, run_cli):
    """To the letter; a job that was started again by hand has a summary of its own to fill."""
    write_config(gates=[{"name": "floor", "measure": "rr", "at_least": 0.6}])
    write_output("bm25")
    write_output("dense", best=3)
    outcomes = []
    for attempt in ("first", "second"):
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / attempt))
        outcomes.append(run_cli(*COMMAND, "--junit", f"{attempt}.xml"))

    first, second = outcomes
    assert first.code == 1
    assert second[:2] == first[:2]
    assert first.out.startswith("FAIL  floor: rr of dense is ")
    assert len(records()) == 1
    assert Path("second").read_text() == Path("first").read_text()
    assert Path("second.xml").read_text() == Path("first.xml").read_text()


def test_what_mlflow_did_not_get_is_delivered_by_the_second_call(monkeypatch):
    write_config(tracking={"uri": "${STORE}"})
    write_outputs()
    monkeypatch.setenv("STORE", "http://127.0.0.1:1")
    first = night()
    monkeypatch.setenv("STORE", "sqlite:///mlflow.db")

    second, third = night(), night()

    kept = Records(Path("runs/records"))
    receipt = read_receipt(kept, first.evaluation_id)
    assert first.untracked is not None
    assert first.store is None
    assert second.untracked is None
    assert second.store is not None
    assert third.store == second.store
    assert receipt is not None
    assert len(receipt.runs) == 2
    assert len(records()) == 1


def test_a_night_that_is_evaluated_again_has_a_second_point_in_mlflow(capsys):
    """Once for each record, at the step of the night: 20,777 days after 1970-01-01. That there is a second is said."""
    write_config(tracking={})
    write_outputs()
    first = night()
    assert capsys.readouterr().err == ""

    second = night(again=True)

    (line,) = capsys.readouterr().err.splitlines()
    assert line == "nightly 2026-11-20 is evaluated again: histories in MLflow get a second point that night"
    times = [
        round(datetime.fromisoformat(read_record(found.record).manifest.finished).timestamp() * 1_000)
        for found in (first, second)
    ]
    points = points_in(f"sqlite:///{Path('runs/mlflow.db').resolve()}", "nightly")
    assert len(points) == 2
    for of_model in points.values():
        figures = [point for point in of_model if ".vs_" not in point[0]]  # the first one changed since nothing
        metrics = sorted({metric for metric, *_ in figures})
        assert [point[:3] for point in figures] == [(metric, 20_777, time) for metric in metrics for time in times]


def test_an_evaluation_that_was_not_to_be_tracked_is_not_delivered_later():
    write_config(tracking={})
    write_outputs()
    first = night(tracking=False)
    assert night().store is None
    assert read_receipt(Records(Path("runs/records")), first.evaluation_id) is None


def test_a_late_output_is_waited_for(capsys):
    """It comes at 2:45, and the night has both; what was waited for is said on stderr alone."""
    write_config(nightly=PATIENT)
    write_output("bm25")
    clock = Clock({45: lambda: write_output("dense", best=3)})

    evaluation = night(clock)

    assert clock.minutes == 45
    assert figures(evaluation) == pytest.approx({"bm25": 0.75, "dense": (1 / 3 + 1 / 4) / 2})
    printed = capsys.readouterr()
    assert printed.err == f"waiting until 04:00 UTC for 1 of 3: {DATE}/dense.txt (not there)\n"
    assert printed.out == ""


def test_an_output_that_never_comes_is_a_failure():
    write_config(nightly=PATIENT)
    write_output("bm25")

    evaluation = night()

    assert figures(evaluation) == {"bm25": 0.75}
    (failure,) = read_record(evaluation.record).manifest.failures
    assert asdict(failure) == {
        "dataset": "web",
        "model": "dense",
        "reason": f"{DATE}/dense.txt: late: not there by 04:00 UTC (waited 2h); once it is there, run nightly --again",
        "replicate": "",
    }


def test_a_night_with_a_late_output_exits_with_4(run_cli):
    write_config(nightly={"ready": "{model}.done"})
    write_outputs()
    Path(DATE, "bm25.done").touch()
    Path(DATE, "dense.txt").write_text("half a li", encoding="utf-8")

    outcome = run_cli(*COMMAND)
    assert outcome.code == 4
    assert f"dense.txt: late: no {DATE}/dense.done by" in outcome.out


def test_scores_made_elsewhere_may_be_late_too():
    models = {model: {"outputs": "{date}/{model}.csv"} for model in ("bm25", "dense")}
    write_config(
        nightly=PATIENT, datasets={"answers": {"scores": {"faithfulness": "higher"}}}, models=models, suites={}
    )
    Path(DATE).mkdir()
    Path(DATE, "bm25.csv").write_text("query_id,faithfulness\nq1,1\nq2,0.5\n", encoding="utf-8")

    evaluation = night()

    assert figures(evaluation) == {"bm25": 0.75}
    assert [(failure.dataset, failure.model) for failure in evaluation.failures] == [("answers", "dense")]


def test_judgments_that_are_late_end_the_night():
    write_config(nightly=PATIENT)
    write_outputs()
    Path("qrels.txt").rename("elsewhere.txt")

    with pytest.raises(InputError, match=r"^qrels.txt: late: not there by 04:00 UTC \(waited 2h\)"):
        night()
    with pytest.raises(InputError, match=r"^qrels.txt: late"):
        night()

    (failed,) = records()
    assert read_record(Path("runs/records") / failed).manifest.error.startswith("qrels.txt: late: not there")
    Path("elsewhere.txt").rename("qrels.txt")
    assert not night().failures


def test_a_night_with_unusable_judgments_leaves_a_trace(run_cli):
    write_config(gates=[{"name": "no-drop", "measure": "rr", "against": "self@last_passed", "margin": 0.1}])
    for day in (18, 19, 20):
        nights.write_judgments(QUERIES)
        if day == 19:
            Path("qrels.txt").write_text("q00 0 d0 many\n")
        for model in ("bm25", "dense"):
            write_output(model, folder=f"2026-11-{day}")
        reports = ("--junit", "junit.xml", "--markdown", "night.md") if day == 19 else ()
        code, _, said = run_cli("nightly", "config.yaml", "--date", f"2026-11-{day}", *reports)
        assert code == (2 if day == 19 else 0), said
        assert day != 19 or "the night 2026-11-19 could not be evaluated: qrels.txt" in run_cli("show")[2]

    _, failed, last = (read_record(Path("runs/records") / name) for name in records())
    failures = {failure.model: failure.reason for failure in failed.manifest.failures}
    assert failures == dict.fromkeys(("bm25", "dense"), failed.manifest.error)
    assert not failed.estimates
    assert {verdict.outcome for verdict in last.verdicts} == {"pass"}  # held against the night before
    assert failed.path.name in run_cli("list")[1]
    assert "was not evaluated" in run_cli("show", failed.path.name)[1]
    assert (run_cli("history", "--measure", "rr")[0], run_cli("site", "--output", "site")[0]) == (0, 0)
    assert "qrels.txt" in Path("site/feed.xml").read_text()
    assert '<error message="qrels.txt' in Path("junit.xml").read_text()
    assert "Nothing was evaluated: qrels.txt" in Path("night.md").read_text().replace("\\", "")


def test_a_full_disk_costs_the_record_and_not_the_alert(monkeypatch, run_cli):
    write_config(notify=[{"command": ["sh", "-c", "cat > told.json"]}])
    write_outputs()

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/records")

    for name in ("run.write_record", "commands.nightly.write_record", "delivery.alerts._write_log"):
        monkeypatch.setattr(f"rankledger.pipeline.{name}", full)
    code, _, said = run_cli(*COMMAND, "--junit", "junit.xml")

    assert (code, records()) == (74, [])
    assert "cannot be recorded: No space left on device" in said
    told = json.loads(Path("told.json").read_text())
    assert (told["state"], told["n_failing"], told["record"]) == ("incomplete", 2, "")
    assert "No space left" in told["failing"][0]["reason"]
    assert "<error" in Path("junit.xml").read_text()


def test_a_bug_leaves_a_trace(monkeypatch):
    write_outputs()
    monkeypatch.setattr("rankledger.pipeline.run.compute", None)
    with pytest.raises(TypeError):
        night()
    (failed,) = records()
    assert "a bug of rankledger: TypeError" in read_record(Path("runs/records") / failed).manifest.error


def test_numbers_from_outside_are_waited_for():
    models = {"bm25": {"outputs": "{date}/{model}.txt", "extra": "{date}/costs.json"}}
    write_config(nightly=PATIENT, models=models, gates=[{"name": "cost", "extra": "cost", "at_most": 2}])
    write_output("bm25")
    clock = Clock({10: lambda: Path(DATE, "costs.json").write_text('{"cost": 1}')})

    evaluation = night(clock)

    assert clock.minutes == 10
    assert [verdict.outcome for verdict in evaluation.verdicts] == ["pass"]


def test_models_that_are_searched_for_may_turn_up_late():
    Path("judged.txt").write_text(Path("qrels.txt").read_text())
    write_config(
        nightly=PATIENT,
        datasets={"web": {"judgments": "qrels.txt"}, "news": {"judgments": "judged.txt"}},
        models={"*": {"outputs": "{dataset}-{date}/{model}.txt"}},
    )
    clock = Clock(
        {
            5: lambda: write_output("dense", folder=f"web-{DATE}"),
            20: lambda: write_output("dense", folder=f"news-{DATE}"),
        }
    )

    evaluation = night(clock)

    assert clock.minutes == 20
    assert [(line.dataset, line.model) for line in evaluation.estimates] == [("web", "dense"), ("news", "dense")]


def test_a_search_in_vain_ends_with_what_evaluate_says(capsys):
    write_config(nightly=PATIENT, models={"*": {"outputs": "{date}/{model}.txt"}})
    clock = Clock()

    with pytest.raises(InputError, match=r"config.yaml:\d+: models\.\*: no file matches"):
        night(clock)

    (failed,) = records()
    (failure,) = read_record(Path("runs/records") / failed).manifest.failures
    assert (failure.model, "no file matches" in failure.reason) == ("*", True)
    waiting, recorded = capsys.readouterr().err.splitlines()
    assert (clock.minutes, waiting) == (120, f"waiting until 04:00 UTC for 1 of 1: {DATE}/*.txt (no model yet)")
    assert recorded.endswith(failed)


def test_a_mistake_in_the_config_is_not_waited_for():
    write_config(nightly=PATIENT, comparison={"baseline": "splade"})
    clock = Clock()
    with pytest.raises(InputError, match="splade"):
        night(clock)
    assert clock.minutes == 0


@pytest.fixture
def busy(loaded: Loaded) -> Any:
    """A real process that is at the night, and stays there: it is stopped in the middle."""
    write_output("bm25")
    command = [*COMMAND, "--set", "bootstrap.resamples=1000000"]  # takes many seconds, and it is stopped within one
    process = loaded.start(RUN, command, folder=Path.cwd(), environment=os.environ)
    file = Path(f"runs/records/.state/nights/nightly-{DATE}.json")
    wait_until(lambda: file.is_file() and json.loads(file.read_text())["evaluations"])
    process.send_signal(signal.SIGSTOP)
    yield process
    process.kill()
    process.wait()


def test_the_second_process_learns_who_has_the_night(busy, run_cli):
    code, out, err = run_cli(*COMMAND)
    assert (code, out) == (75, "")
    assert err.startswith(f"nightly of {DATE} is already running: process {busy.pid} on ")
    assert records() == []


def test_a_folder_without_locks_is_named(monkeypatch, run_cli):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    write_output("bm25")
    monkeypatch.setattr("fcntl.flock", refuse)
    code, _, err = run_cli(*COMMAND)
    lock = f"runs/records/.state/nights/nightly-{DATE}.lock"
    assert code == 74
    assert f"\n{lock}: No locks available. Use a folder on a filesystem with locks;" in err


def test_a_link_to_a_volume_that_is_not_mounted_is_named(run_cli):
    write_output("bm25")
    Path("runs").symlink_to("/nowhere/runs")
    for words in (COMMAND, ["list"]):
        code, _, err = run_cli(*words)
        assert code == 74
        assert err.startswith("runs: is a link to /nowhere/runs, which is not there. Check that it is mounted")


def test_a_name_is_no_guess_for_itself(run_cli):
    """Nothing was evaluated that night, so that there is no last record."""
    write_config(datasets={"web": {"judgments": "missing.txt"}})
    assert run_cli(*COMMAND).code == 2
    assert "no evaluation of 'nightly' was finished" in run_cli("show", "last", "--name", "nightly").err


@pytest.mark.parametrize("with_what", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_holder_does_not_block_the_night(busy, with_what):
    busy.send_signal(with_what)
    busy.send_signal(signal.SIGCONT)
    busy.communicate(timeout=600)
    write_output("dense")

    evaluation = night()

    assert records() == [evaluation.evaluation_id]
    assert night().evaluation_id == evaluation.evaluation_id


def test_a_record_whose_holder_was_killed_before_it_could_say_so_is_the_nights(monkeypatch):
    write_outputs()

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(evaluate, "deliver", killed)
        with pytest.raises(KeyboardInterrupt):
            night()
    (record,) = records()

    assert night().evaluation_id == record
    assert records() == [record]


def test_the_place_of_records_is_that_of_the_config(tmp_path):
    write_config(records="shared")
    write_outputs()

    first = night(runs_dir="one")
    second = night(runs_dir="two")

    assert second.evaluation_id == first.evaluation_id
    assert Path("shared/.state/nights").is_dir()
    assert schema.load("config.yaml").config.records == "shared"


BM25 = AwaitedInput("bm25.tsv", ("web", "bm25"))
DENSE = AwaitedInput("dense.tsv", ("web", "dense"))


class Night(Clock):
    def __init__(self, happens: dict[float, Callable[[], object]] | None = None) -> None:
        super().__init__(happens)
        self.said: list[str] = []

    def wait(self, *wanted: AwaitedInput, **rule: object) -> dict[AwaitedInput, str]:
        return wait_for(lambda: wanted, Nightly(**{"wait": "2h", **rule}), clock=self, say=self.said.append)


def write(name: str, text: str = "") -> Callable[[], object]:
    def writing() -> None:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")

    return writing


def test_nothing_is_waited_for_where_all_is_there_or_waiting_is_off():
    write("bm25.tsv")()
    night = Night()
    assert night.wait(BM25) == {}
    assert (night.minutes, night.said) == (0, [])

    night = Night()

    (reason,) = night.wait(AwaitedInput("bm25.tsv", ("web", "bm25"), "_SUCCESS"), wait="0").values()
    assert (night.minutes, night.said) == (0, [])
    assert reason.startswith("bm25.tsv: late: no _SUCCESS by 02:00 UTC; once")


def test_the_last_look_is_at_the_deadline():
    night = Night({31: write("bm25.tsv")})
    assert [*night.wait(BM25, wait="30m")] == [BM25]
    # Looking every 50 minutes, at 2:50, 3:40 and 4:00: what came at 3:59 is in time.
    night = Night({119: write("bm25.tsv")})
    assert night.wait(BM25, every="50m") == {}
    assert night.minutes == 120


def test_a_marker_says_that_an_output_is_whole():
    """The file grows from 2:10 on and is whole at 2:40, when the marker is written."""
    night = Night({10: write("out/bm25.tsv"), 40: write("out/bm25.tsv", "much more"), 40.5: write("out/_SUCCESS", "")})

    assert night.wait(AwaitedInput("out/bm25.tsv", ("web", "bm25"), "_SUCCESS")) == {}
    assert night.minutes == 40.5
    assert [line.partition(": ")[2] for line in night.said] == [
        "out/bm25.tsv (not there)",
        "out/bm25.tsv (no out/_SUCCESS)",
    ]


@pytest.mark.parametrize("days", [365, -3])
def test_a_clock_that_is_set_meanwhile_changes_no_waiting(days):
    clock = Clock({10: lambda: setattr(clock, "shift", timedelta(days=days)), 90: lambda: write_output("bm25")})
    write_output("dense")
    write_config(nightly=PATIENT)
    assert night(clock).failures == ()
    assert clock.minutes == 90


def test_what_never_comes_is_late_with_its_reason():
    write("out/_SUCCESS")()
    (reason,) = Night().wait(AwaitedInput("out/bm25.tsv", ("web", "bm25"), "_SUCCESS")).values()
    assert "late: not there by 04:00 UTC" in reason

    night = Night({minute / 2: write("bm25.tsv", "a" * minute) for minute in range(400)})
    (reason,) = night.wait(BM25, ready="stable").values()
    assert "late: not settled by 04:00 UTC (waited 2h)" in reason

    # What cannot be looked at may be there later; what the trouble is stands in the line, and in the reason.
    night = Night()
    (reason,) = night.wait(AwaitedInput("nowhere://out/bm25.tsv", ("web", "bm25"))).values()
    assert "cannot be looked at (nowhere://out/bm25.tsv: " in night.said[0]
    assert reason.startswith("nowhere://out/bm25.tsv: late: cannot be looked at (nowhere://out/bm25.tsv: ")


@pytest.mark.parametrize(
    ("happens", "settled"),
    [
        ({0: "bm25.tsv"}, 0.5),
        ({0.5: "bm25.tsv a", 1: "bm25.tsv ab", 1.5: "bm25.tsv abc"}, 2),
        ({0.5: "bm25.tsv yesterday's", 1: "bm25.tsv to"}, 1.5),
        ({0.5: "bm25.tsv/part-0 text", 1: "bm25.tsv/part-1", 1.5: "bm25.tsv/part-2 text"}, 2),
    ],
    ids=["there all day", "growing", "replaced by a shorter one", "parts, one of them empty"],
)
def test_an_output_is_settled_if_two_looks_find_the_same(happens, settled):
    night = Night({minute: write(*words.split()) for minute, words in happens.items() if minute})
    if 0 in happens:
        write(happens[0])()
    assert night.wait(BM25, ready="stable") == {}
    assert night.minutes == settled


def test_what_was_ready_is_not_looked_at_again():
    """What happens to it afterwards is its reader's to refuse: waiting would never end with files that come and go."""
    write("bm25.tsv")()
    night = Night({10: Path("bm25.tsv").unlink, 20: write("dense.tsv")})
    assert night.wait(BM25, DENSE) == {}


def test_progress_is_said_when_it_changes():
    night = Night({30: write("bm25.tsv")})

    night.wait(BM25, DENSE)
    assert night.said == [
        "waiting until 04:00 UTC for 2 of 2: bm25.tsv (not there), dense.tsv (not there)",
        "waiting until 04:00 UTC for 1 of 2: dense.tsv (not there)",
    ]

    night = Night()

    night.wait(*[AwaitedInput(f"{number}.tsv", ("web", str(number))) for number in range(240)], wait="1m")
    assert night.said[0].startswith("waiting until 02:01 UTC for 240 of 240: 0.tsv (not there), 1.tsv")
    assert night.said[0].endswith("4.tsv (not there) and 235 more")
