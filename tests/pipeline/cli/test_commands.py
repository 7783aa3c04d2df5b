"""The command line as its users meet it: exit codes, what is on stdout and stderr, and what is left on disk."""

import errno
import importlib
import importlib.metadata
import io
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from rankledger.metrics.registry import METRICS
from rankledger.pipeline.cli.app import main
from rankledger.pipeline.cli.commands import OTHER_WORDS, cli
from rankledger.pipeline.cli.terminal import exit_code_of
from rankledger.pipeline.config.sources import FORMATS
from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import read_record
from tests.support.forked import Loaded
from tests.support.generated_data import Collection, rows, search_collection, write_config, write_table
from tests.support.manifests import make_evaluation
from tests.support.terminal import table_rows

ROOT = Path(__file__).parents[3]
RUN = "from rankledger.pipeline.cli.app import main; main()"
WEB = search_collection(40, n_queries=15)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "configs", {"web": WEB}, {"search": ["ndcg@10", "ap"]})


def started(
    *arguments: str, cwd: Path, code: str = RUN, by: Loaded | None = None, **streams: Any
) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own, which is started or forked; streams are pipes unless they are given."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    environment.pop("PYTHONUNBUFFERED", None)  # which hides what is written twice
    if by is not None:
        numbers = {name: stream if isinstance(stream, int) else stream.fileno() for name, stream in streams.items()}
        forked = by.start(code, arguments, folder=cwd, environment=environment, **numbers)
        out, err = forked.communicate()
        return subprocess.CompletedProcess(arguments, forked.wait(), out, err)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, text=True, check=False, env=environment, **streams
    )


def edit(config: Path, **sections: Any) -> None:
    written = yaml.safe_load(config.read_text(encoding="utf-8")) | sections
    config.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in written.items()), encoding="utf-8")


def boom(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def is_recorded(runs: Path) -> bool:
    return any(path.is_file() for path in runs.rglob("*") if path.relative_to(runs).parts[0] != "cache")


def test_evaluate_prints_the_leaderboard_and_below_it_the_record(run_cli, config):
    outcome = run_cli("evaluate", str(config), "--no-tracking")

    assert (outcome.code, outcome.err) == (0, "")
    assert {path.name for path in Path("runs").iterdir()} == {"cache", "records"}
    assert "MLflow" not in outcome.out
    rows_of = {model: row for model, *row in table_rows(outcome.out)}
    assert {*rows_of} == {"bm25", "dense"}
    for line in read_record(outcome.record).estimates:
        assert any(cell.startswith(f"{line.estimate:.2f}") for cell in rows_of[line.model])


def test_json_is_one_object_and_nothing_else(run_cli, config, tmp_path):
    outcome = run_cli("evaluate", str(config), "--no-tracking", "--json")
    found = json.loads(outcome.out, parse_constant=lambda word: pytest.fail(word))

    assert (outcome.code, outcome.err) == (0, "")
    assert found["record"] == f"runs/records/{found['evaluation_id']}"
    assert (found["failures"], found["store"]) == ([], None)
    summary = read_record(Path(found["record"])).estimates
    assert found["estimates"] == [dict(vars(line)) for line in summary]
    assert {(line["dataset"], line["model"]) for line in found["quality"]} == {("web", "bm25"), ("web", "dense")}

    stars = Collection({"u1": {"a": 1}, "u2": {"a": 3}}, {"knn": {"u1": {"a": 1e200}, "u2": {"a": 3}}}, "ratings")
    config = write_config(tmp_path / "stars", {"stars": stars}, {"errors": ["mae", "rmse"]})
    outcome = run_cli("evaluate", str(config), "--no-tracking", "--json")
    json.loads(outcome.out, parse_constant=lambda word: pytest.fail(word))
    assert outcome.err == ""


def test_options_override_the_config(run_cli, config):
    changes = ("bootstrap.resamples=123", "suites.search=[rr]", "seed=5")
    options = [word for change in changes for word in ("--set", change)]
    chosen = run_cli("evaluate", str(config), "--no-tracking", *options, "--seed", "7").record
    edit(config, bootstrap={"resamples": 123}, suites={"search": ["rr"]}, seed=7)
    written = run_cli("evaluate", str(config), "--no-tracking").record

    recorded = yaml.safe_load((chosen / "config.yaml").read_text(encoding="utf-8"))
    manifest = read_record(chosen).manifest
    assert recorded["bootstrap"] == {"resamples": 123}
    assert (manifest.bootstrap.resamples, manifest.seed) == (123, 7)
    assert {line.measure for line in read_record(chosen).estimates} == {"rr"}
    assert (chosen / "summary.csv").read_bytes() == (written / "summary.csv").read_bytes()


def test_demo_evaluates_the_quickstart(run_cli):
    outcome = run_cli("demo", "--no-tracking", "--runs-dir", "here")
    config = outcome.out.splitlines()[0].removeprefix("config: ")
    written = run_cli("evaluate", str(ROOT / "configs/quickstart.yaml"), "--no-tracking")
    assert (outcome.code, Path(config).read_bytes()) == (0, (ROOT / "configs/quickstart.yaml").read_bytes())
    summaries = [(record / "summary.csv").read_bytes() for record in (outcome.record, written.record)]
    assert summaries[0] == summaries[1]


def test_date_fills_the_paths(run_cli, config):
    edit(config, models={"bm25": {"outputs": "{date}/bm25.txt"}})
    write_table(config.parent / "2026-11-20" / "bm25.txt", rows(WEB.outputs["bm25"]), "score")

    outcome = run_cli("evaluate", str(config), "--no-tracking", "--date", "2026-11-20")
    assert outcome.code == 0
    assert read_record(outcome.record).manifest.date == "2026-11-20"
    assert read_record(outcome.record).manifest.outputs[0].files[0].path == "configs/2026-11-20/bm25.txt"

    outcome = run_cli("evaluate", str(config), "--no-tracking")
    assert outcome.code == 2
    assert "--date" in outcome.error


def test_a_command_with_processes_ends_with_its_work(config):
    """A process of its own, whose idle workers would wait for more work for five minutes."""
    arguments = ("evaluate", str(config), "--no-tracking", "--jobs", "2", "--backend", "processes")
    outcome = started(*arguments, cwd=config.parent, timeout=120)
    assert (outcome.returncode, outcome.stderr) == (0, "")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"suites": {"s": ["ndgc@10"]}}, r"configs/config\.yaml:\d: suites\.s.*'ndgc@10'; did you mean 'ndcg@10'\?"),
        ({"bootstap": {}}, r"configs/config\.yaml:\d: .*bootstap.*did you mean 'bootstrap'"),
        (
            {"datasets": {"web": {"judgments": "none.txt"}}},
            r"configs/config\.yaml:\d: datasets\.web\.judgments: file not found: configs/none\.txt; check the path",
        ),
        ({"datasets": {"web": {"judgments": "bad.txt"}}}, r"configs/bad\.txt:2: relevance 'good' is not a number"),
        ({"suites": {"s": ["err(max_grade=1)"]}}, r"^web: err\(max_grade=1\): "),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_bad_input_is_one_line_on_stderr(run_cli, config, tmp_path, changes, said, as_json):
    (config.parent / "bad.txt").write_text("q1 0 d1 1\nq1 0 d2 good\n", encoding="utf-8")
    edit(config, **changes)
    outcome = run_cli("evaluate", str(config.relative_to(tmp_path)), "--no-tracking", *(["--json"] if as_json else []))
    assert outcome.code == 2
    assert re.search(said, outcome.error)
    assert not is_recorded(tmp_path / "runs")


def test_validate_lists_every_finding_of_a_config(run_cli, tmp_path):
    text = """\
name: n
datasets:
  web: {judgments: qrels.txt}
models:
  bm25: {outputs: bm25.txt, ownr: me}
suites:
  search: [ndgc@10, "ap(rell=2)", p@5,10]
lead: rr
gates:
  - {name: g, measure: rr, models: bm52, against: accepted, margin: 1%}
comparison: {baseline: bm26, measures: [ap, app]}
"""
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    outcome = run_cli("validate", "a.yaml")
    assert (outcome.code, outcome.err) == (2, "a.yaml:5: models.bm25.ownr: unknown key 'ownr'; did you mean 'owner'?\n")

    outcome = run_cli("validate", "a.yaml", "--set", "models.bm25={outputs: bm25.txt}")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines() == [
        "a.yaml:7: suites.search[0]: unknown metric 'ndgc@10'; did you mean 'ndcg@10'?",
        "a.yaml:7: suites.search[1]: ap has no parameter 'rell'; it has rel, denominator",
        "a.yaml:7: suites.search[2]: a comma splits items in [...]: quote it ('p@5,10') or put it on its own line",
        "a.yaml:10: gates[0].models: unknown model 'bm52'; did you mean 'bm25'?",
        "a.yaml:11: comparison.baseline: unknown model 'bm26'; did you mean 'bm25'?",
        "a.yaml:11: comparison.measures[1]: unknown metric 'app'; did you mean 'ap'?",
    ]  # that `rr` is in no suite is not said: one of the wrong lines may mean it


def test_all_missing_files_are_listed_before_any_is_read(run_cli, tmp_path):
    text = """\
name: n
datasets:
  web:
    judgments: qrels.txt
    queries: queries.tsv
defaults: {model: {outputs: "{model}.txt"}}
models:
  bm25:
  bad:
  dense: {outputs: {path: web/dense.txt}, extra: costs.json}
suites: {search: [ap]}
"""
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "bad.txt").write_text("no ranking", encoding="utf-8")
    outcome = run_cli("validate", "a.yaml")

    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines() == [
        "a.yaml:4: datasets.web.judgments: file not found: qrels.txt; check the path",
        "a.yaml:5: datasets.web.queries: file not found: queries.tsv; check the path",
        "a.yaml:6: defaults.model.outputs: file not found: bm25.txt; check the path",
        "a.yaml:10: models.dense.outputs.path: file not found: web/dense.txt; check the path",
        "a.yaml:10: models.dense.extra: file not found: costs.json; check the path",
    ]


@pytest.mark.parametrize("command", ["evaluate", "validate"])
@pytest.mark.parametrize(("name", "said"), [("none.yaml", "not found|no such config"), ("configs", "folder")])
def test_a_config_that_is_not_there_is_named(run_cli, config, command, name, said):
    outcome = run_cli(command, name)
    assert outcome.code == 2
    assert outcome.error.startswith(f"{name}: ")
    assert re.search(said, outcome.error)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "x.yaml", "--job", "2"], "--job"),
        (["evaluate"], "CONFIG"),
        (["explain", "x.yaml", "--model", "bm25"], "'--query': name a query; `rankledger compare`"),
        (["run"], "did you mean 'evaluate'?"),  # and not 'prune', which looks more like it, and deletes
        (["leaderboard"], "did you mean 'show'?"),
        (["Diff"], "did you mean 'compare'?"),
        (["evalute"], "did you mean 'evaluate'?"),
        (["nightly.yaml"], "did you mean `rankledger evaluate nightly.yaml`?"),
        (["qqqq"], "no command 'qqqq'"),
    ],
)
def test_a_wrong_command_is_refused(run_cli, arguments, said):
    """Exit 2: the last line on stderr names what is wrong, and nothing is on stdout."""
    outcome = run_cli(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err.splitlines()[-1]


def test_commands_and_options_are_named_and_explained():
    assert set(OTHER_WORDS) <= set(cli.commands)
    assert not set(cli.commands) & {word for words in OTHER_WORDS.values() for word in words}
    for name, command in cli.commands.items():
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or parameter.help, (name, parameter.name)


def test_wrong_options_are_refused(run_cli, config):
    for override in ("bootstrap.resamples", "bootstrap.resample=5"):
        outcome = run_cli("evaluate", config, "--set", override)
        assert outcome.code == 2
        assert outcome.error.startswith("override ")
    for command in ("evaluate", "validate"):
        assert run_cli(command, config, "--jobs", 0).error.startswith("--jobs: found 0; ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "{config}:11: models.dense.outputs.web: file not found: configs/web/dense.txt; check the path"),
        ("q1 Q0 d1 1 2 t\nq1 Q0 d1 2 1 t\n", "configs/web/dense.txt: query 'q1' ranks document 'd1' twice"),
    ],
    ids=["missing", "twice"],
)
def test_an_output_that_is_refused_leaves_the_others(run_cli, config, tmp_path, text, said):
    path, said = config.parent / "web" / "dense.txt", said.format(config=config)
    path.unlink() if text is None else path.write_text(text, encoding="utf-8")

    outcome = run_cli("validate", str(config), *EXACT)
    assert (outcome.code, outcome.err) == (4, "")
    assert "failed" in outcome.out
    assert f"dense on web: {said}" in outcome.out
    assert not (tmp_path / "runs").exists()

    outcome = run_cli("evaluate", str(config), "--no-tracking")
    record = read_record(outcome.record)
    assert (outcome.code, outcome.err) == (4, "")
    assert "".join(f"dense on web was not evaluated: {said}".split()) in "".join(outcome.out.split())
    assert {line.model for line in record.estimates} == {"bm25"}
    (failure,) = record.manifest.failures
    assert (failure.dataset, failure.model) == ("web", "dense")
    assert failure.reason.startswith(said)
    assert "\n" not in failure.reason

    outcome = run_cli("evaluate", str(config), "--no-tracking", "--json")
    found = json.loads(outcome.out)
    assert (outcome.code, outcome.err) == (4, "")
    assert [failure["reason"].startswith(said) for failure in found["failures"]] == [True]
    assert {line["model"] for line in found["estimates"]} == {"bm25"}


EXACT = ["--set", "conventions={score_precision: float64}"]  # no scores are equal only because they are rounded


@pytest.mark.parametrize("as_json", [False, True])
def test_with_every_output_missing_there_is_no_record(run_cli, config, tmp_path, as_json):
    """Exit 4: what is wrong with each output is printed, and gates fail as ever, in JUnit's XML, too."""
    edit(config, gates=[{"name": "floor", "models": "*", "measure": "ap", "at_least": 0}])
    for model in WEB.outputs:
        (config.parent / "web" / f"{model}.txt").unlink()
    outcome = run_cli("evaluate", str(config), "--require-tracking", *(["--json"] if as_json else []))

    assert (outcome.code, outcome.err) == (4, "")
    assert all(f"{model}.txt; check the path" in outcome.out for model in WEB.outputs)
    if as_json:
        assert json.loads(outcome.out)["record"] is None
    else:
        assert outcome.out.endswith("\nRecord  none, because no model output was evaluated\n")
    assert not is_recorded(tmp_path / "runs")
    assert not (tmp_path / "runs" / "mlflow.db").exists()

    outcome = run_cli("evaluate", str(config), "--no-tracking", "--quiet", "--junit", "gates.xml")
    assert (outcome.code, outcome.out) == (4, "")
    assert [line.split()[1] for line in outcome.err.splitlines()] == ["incomplete:", "incomplete:"]
    assert 'tests="2" failures="2"' in (tmp_path / "gates.xml").read_text(encoding="utf-8")


def test_a_bug_keeps_its_traceback(run_cli, config, monkeypatch, tmp_path):
    monkeypatch.setattr("rankledger.pipeline.run.score", boom(RuntimeError("two and two is five")))
    outcome = run_cli("evaluate", str(config), "--no-tracking")

    assert (outcome.code, outcome.out) == (70, "")
    assert outcome.err.startswith("Traceback (most recent call last):")
    assert "RuntimeError: two and two is five" in outcome.err
    assert outcome.err.splitlines()[-1] == "this is a bug of rankledger; please report it with the lines above"
    assert not is_recorded(tmp_path / "runs")


@pytest.mark.parametrize("blocked", ["runs", "runs/records"])
def test_a_file_where_records_should_be_is_named(run_cli, config, tmp_path, blocked):
    path = tmp_path / blocked
    path.parent.mkdir(exist_ok=True)
    path.write_text("in the way", encoding="utf-8")
    outcome = run_cli("evaluate", str(config), "--no-tracking")

    assert outcome.code == 74
    assert blocked in outcome.error
    assert outcome.error.endswith("nothing was recorded")
    assert path.read_text(encoding="utf-8") == "in the way"


@pytest.mark.parametrize("option", ["--junit", "--markdown"])
def test_an_output_file_that_cannot_be_written_is_refused_at_once(run_cli, config, tmp_path, option):
    outcome = run_cli("evaluate", str(config), "--no-tracking", option, "gone/gates.xml")
    assert outcome.code == 2
    assert outcome.err.endswith(f"gone/gates.xml: folder not found; create it or check {option}\n")
    assert not is_recorded(tmp_path / "runs")


FULL = OSError(errno.ENOSPC, "No space left on device", "scores.parquet")
AWAY = OSError(errno.EIO, "there is no bucket", "s3://eval/records")
LIMITS = {
    MemoryError(): "memory: the process ran out of memory. Set fewer jobs, or use a machine with more memory",
    RuntimeError("can't start new thread"): (
        "threads: the system allows no further thread. Set fewer jobs, or a higher limit of processes or memory"
    ),
}


@pytest.mark.parametrize(
    ("command", "target", "error", "code", "line"),
    [
        (
            *("evaluate", "pyarrow.parquet.ParquetWriter.write_table", FULL, 74),
            "scores.parquet: No space left on device; nothing was recorded",
        ),
        *(
            ("evaluate", "rankledger.pipeline.run.score", error, 74, f"{line}; nothing was recorded")
            for error, line in LIMITS.items()
        ),
        ("evaluate", "rankledger.pipeline.run.score", KeyboardInterrupt(), 130, "interrupted; nothing was recorded"),
        ("list", "rankledger.pipeline.record.store.Records.ids", AWAY, 74, "s3://eval/records: there is no bucket"),
        ("list", "rankledger.pipeline.record.store.Records.ids", KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=["disk", "memory", "threads", "Ctrl-C", "list, disk", "list, Ctrl-C"],
)
def test_an_end_in_the_middle_leaves_nothing_behind(run_cli, config, monkeypatch, command, target, error, code, line):
    """Whoever lists records has not lost one, and is not told so."""
    monkeypatch.setattr(target, boom(error))
    outcome = run_cli(command, *([str(config), "--no-tracking"] if command == "evaluate" else []))
    assert (outcome.code, outcome.error) == (code, line)
    assert not is_recorded(Path("runs"))


INTERRUPTED_IN = """
import importlib.abc, os, signal, sys

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.parametrize("module", ["click", "rankledger.pipeline.cli.everyday", "numpy"])
def test_ctrl_c_while_modules_are_imported_is_one_line(config, tmp_path, module):
    code = f"{INTERRUPTED_IN.format(module=module)}\n{RUN}"
    outcome = started("evaluate", str(config), "--no-tracking", cwd=tmp_path, code=code)
    assert outcome.returncode == 130
    assert outcome.stderr.strip() in ("interrupted", "interrupted; nothing was recorded")


def test_an_interruption_while_tracking_tells_the_record(run_cli, config, monkeypatch, tmp_path):
    monkeypatch.setattr("rankledger.pipeline.record.mlflow_stores.TrackingStore.ask", boom(KeyboardInterrupt()))
    outcome = run_cli("evaluate", str(config))
    (record,) = (tmp_path / "runs" / "records").iterdir()
    assert outcome.code == 130
    assert "nothing was recorded" not in outcome.err
    assert record.name in outcome.err + outcome.out


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_stdout_that_takes_nothing_is_no_lost_record(loaded, config, tmp_path, closed_pipe):
    """Exit 74 on a full disk. A pipe to `true` is not exit 1 of a failed gate. The record is complete for both."""
    with Path("/dev/full").open("w") as full:
        on_disk, in_pipe = (
            started("evaluate", str(config), "--no-tracking", cwd=tmp_path, by=loaded, stdout=stdout)
            for stdout in (full, closed_pipe)
        )

    records = [path.name for path in (tmp_path / "runs" / "records").iterdir()]
    assert len(records) == 2
    for outcome in (on_disk, in_pipe):
        assert "Traceback" not in outcome.stderr
        assert "nothing was recorded" not in outcome.stderr
    assert (on_disk.returncode, in_pipe.returncode == 1) == (74, False)
    assert any(name in on_disk.stderr for name in records)


@pytest.mark.parametrize(("closed", "source", "code"), [(">&-", "", 0), (">&- 2>&-", "", 0), ("2>&-", "none.yaml", 2)])
def test_streams_that_are_closed_change_nothing(config, tmp_path, closed, source, code):
    """A service or a cron job may have none: the record is written, and an error has its exit code."""
    command = f'"$0" -c "{RUN}" "$@" {closed}'
    asked = ["sh", "-c", command, sys.executable, "evaluate", source or str(config), "--no-tracking"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    assert subprocess.run(asked, cwd=tmp_path, env=environment, check=False).returncode == code
    records = [path for path in tmp_path.glob("runs/records/*") if read_record(path).estimates]
    assert len(records) == (code == 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [("evaluate", "none.yaml"), ("no-command",)], ids=" ".join)
def test_a_stderr_that_takes_nothing_leaves_the_exit_code(loaded, tmp_path, arguments):
    with Path("/dev/full").open("w") as full:
        assert started(*arguments, cwd=tmp_path, by=loaded, stderr=full).returncode == 2


def test_a_terminal_without_box_drawing_gets_its_figures(run_cli, config, monkeypatch):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="ascii"))
    outcome = run_cli("evaluate", str(config), "--no-tracking")
    sys.stdout.flush()
    assert (outcome.code, outcome.err) == (0, "")
    assert b"\nPage  runs/records/" in printed.getvalue()


@pytest.fixture
def nobody() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{free.getsockname()[1]}"


def test_tracking_is_the_default(run_cli, config, tmp_path):
    from mlflow import MlflowClient

    outcome = run_cli("evaluate", str(config), "--runs-dir", "my runs")
    store = tmp_path / "my runs" / "mlflow.db"
    assert (outcome.code, outcome.err) == (0, "")
    assert store.is_file()
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("MLflow ")]
    uri = f"sqlite:///{store}"
    expected = ["MLflow", "mlflow", "ui", "--backend-store-uri", "sqlite:///my runs/mlflow.db"]
    assert shlex.split(line) == expected
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("generated")
    (run,) = client.search_runs([experiment.experiment_id], "tags.`rankledger.kind` = 'evaluation'")
    assert run.data.tags["rankledger.evaluation"] == outcome.record.name

    # Exit 5: a caller who requires it must not get 0 if MLflow has nothing.
    outcome = run_cli("evaluate", str(config), "--require-tracking", "--no-tracking")
    assert outcome.code == 5
    assert outcome.err == "not logged to MLflow: --no-tracking, or `tracking` in the config, turns it off\n"
    assert read_record(outcome.record).estimates


@pytest.mark.parametrize(
    ("fails", "words", "code"), [(False, [], 0), (True, [], 4), (False, ["--require-tracking"], 5)], ids=str
)
def test_a_server_that_is_away_changes_no_result(run_cli, config, monkeypatch, nobody, fails, words, code):
    """The exit code is the evaluation's own unless tracking is required; a remark on stderr says what is missing."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    if fails:
        (config.parent / "web" / "dense.txt").unlink()
    outcome = run_cli("evaluate", str(config), "--set", f"tracking.uri={nobody}", *words)

    assert outcome.code == code
    (remark,) = outcome.err.splitlines()
    assert remark.startswith("not in MLflow: ")
    assert nobody in remark
    assert remark.endswith("; `rankledger sync` delivers the record")
    assert "MLflow: " not in outcome.out
    assert read_record(outcome.record).estimates


@pytest.mark.parametrize(("source", "code"), [("", 5), ("nowhere.yaml", 2)])
def test_remarks_that_nobody_reads_change_no_result(loaded, config, tmp_path, source, code):
    """`rankledger evaluate … 2>&1 | true`: not exit 1 of a failed gate, though there is something to remark."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        arguments = ("evaluate", source or str(config), "--no-tracking", "--require-tracking")
        outcome = started(*arguments, cwd=tmp_path, by=loaded, stdout=writing, stderr=writing)
    finally:
        os.close(writing)

    assert outcome.returncode == code
    assert len([*tmp_path.glob("runs/records/2*")]) == (code == 5)


def test_the_command_runs_in_any_thread(capfd):
    ended: list[Any] = []

    def run() -> None:
        try:
            main(["--version"])
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert not [error for error in ended if not isinstance(error, SystemExit)]
    assert capfd.readouterr().out.startswith("rankledger, version ")


def test_a_server_that_is_away_is_in_the_json(run_cli, config, monkeypatch, nobody):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("STORE_PASSWORD", "s3cret")
    uri = nobody.replace("http://", "http://ann:${STORE_PASSWORD}@")
    outcome = run_cli("evaluate", str(config), "--json", "--set", f"tracking.uri={uri}")
    found = json.loads(outcome.out)

    assert outcome.code == 0
    assert found["store"] is None
    assert nobody in found["untracked"]
    assert "s3cret" not in outcome.out + outcome.err


def test_validate_prints_the_matrix_and_writes_nothing(run_cli, config, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    alone = run_cli("validate", str(config), "--set", "models.dense=", *EXACT)
    outcome = run_cli("validate", str(config))

    assert (alone.code, alone.err) == (0, "")
    assert outcome.code == 0
    assert f"{len(WEB.judged)} queries, 2 measures" in outcome.out
    for model, output in WEB.outputs.items():
        assert [model, "ready"] in table_rows(outcome.out)
        assert f"{model} on web: {sum(map(len, output.values()))} rows" in outcome.out
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", [("validate",), ("evaluate", "--no-tracking")])
def test_settings_that_are_probably_wrong_are_warned_of_on_stderr(run_cli, config, command):
    gate = {"name": "no-drop", "measure": "ap", "against": "last_passed", "margin": 0, "on_inconclusive": "pass"}
    edit(config, gates=[gate])

    outcome = run_cli(command[0], str(config), *command[1:])

    assert outcome.code == 0
    assert re.search(
        r"^\S+\.yaml:\d+: gates\[0\]\.against: against last_passed a model may lose a little", outcome.err, re.MULTILINE
    )


def test_the_package_runs_as_a_module(tmp_path):
    command = [sys.executable, "-m", "rankledger", "formats"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "parquet" in outcome.stdout


def test_formats_metrics_and_the_version_are_printed(run_cli):
    outcome = run_cli("formats")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split()[0] for line in outcome.out.splitlines()] == [*FORMATS]
    assert "parquet         .parquet .pq .parq\n" in outcome.out
    assert run_cli("formats", "--own").out == "no formats of installed packages: install a package with some\n"

    outcome = run_cli("measures")
    assert (outcome.code, outcome.err) == (0, "")
    for name in METRICS:
        assert re.search(rf"^{name}(\[@k\]|@k)?  ", outcome.out, flags=re.MULTILINE), name

    metric = METRICS["ndcg"]
    for name in ("ndcg", "ndcg(gain=exponential)@10"):
        outcome = run_cli("measures", name)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.startswith(f"{metric.name}: {metric.title}\n")
        assert metric.formula in outcome.out
        assert metric.reference in outcome.out

    for name, meant in (
        ("ndgc", "did you mean 'ndcg'?"),
        ("recal@10", "did you mean 'r@10'?"),
        ("xyz", "rankledger measures"),
    ):
        outcome = run_cli("measures", name)
        assert outcome.code == 2
        assert f"unknown metric '{name}'" in outcome.error
        assert meant in outcome.error

    (script,) = importlib.metadata.entry_points(group="console_scripts", name="rankledger")
    outcome = run_cli("--version")
    assert script.value == "rankledger.pipeline.cli.app:main"

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == f"rankledger, version {importlib.metadata.version('rankledger')}\n"


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    outcome = started("schema", cwd=ROOT)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    printed = json.loads(outcome.stdout)
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    return Draft202012Validator(printed)


def test_the_schema_accepts_the_quickstart(schema):
    quickstart = yaml.safe_load((ROOT / "configs" / "quickstart.yaml").read_text(encoding="utf-8"))
    assert schema.is_valid(quickstart)
    assert schema.is_valid({"extends": "base.yaml", "seed": 3})


@pytest.mark.parametrize(
    "changes",
    [
        {"bootstap": {}},
        {"seed": "many"},
        {"bootstrap": {"confidence": 1}},
        {"datasets": {}},
        {"datasets": {"web": {"judgments": {"path": "q.tsv", "format": "xml"}}}},
        {"models": {"x": {"parms": {}}}},
        {"conventions": "other"},
    ],
    ids=str,
)
def test_the_schema_refuses_what_the_loader_refuses(schema, run_cli, config, changes):
    written = yaml.safe_load(config.read_text(encoding="utf-8"))
    assert schema.is_valid(written)
    edit(config, **changes)

    assert not schema.is_valid(written | changes)
    assert run_cli("validate", str(config)).code == 2
    for key in ("name", "datasets", "models", "suites"):
        assert not schema.is_valid({name: value for name, value in written.items() if name != key})


GIVEN = {"scores": {"faithfulness": "higher"}}
JUDGED = {"judgments": "web/judged.txt"}


@pytest.mark.parametrize(
    ("sections", "accepted"),
    [
        ({"datasets": {"web": GIVEN, "news": GIVEN}}, True),
        ({"datasets": {"web": None}, "defaults": {"dataset": GIVEN}}, True),
        ({"datasets": {"web": GIVEN, "news": JUDGED}}, False),
        ({"datasets": {"web": None}, "defaults": {"dataset": JUDGED}}, False),
    ],
    ids=["each of scores", "all by default", "one judged", "judged by default"],
)
def test_suites_may_be_left_out_where_every_dataset_has_scores(schema, run_cli, config, sections, accepted):
    written = {"name": "given", "models": {"judge": {"outputs": "judge.csv"}}, **sections}
    (config.parent / "judge.csv").write_text("query_id,faithfulness\nq1,0.5\nq2,1\n", encoding="utf-8")
    config.write_text(json.dumps(written), encoding="utf-8")
    assert schema.is_valid(written) == accepted
    assert (run_cli("validate", str(config)).code == 0) == accepted


@pytest.mark.parametrize(("word", "code"), [("--version", 0), ("--nonsense", 2)])
def test_the_process_ends_with_the_command(word, code):
    """What is registered for the end is called, and Python is not taken apart: Arrow's threads may abort that."""
    program = (
        "import atexit\n"
        "class Last:\n"
        "    def __del__(self): print('taken apart', flush=True)\n"
        "last = Last()\n"
        "atexit.register(print, 'called')\n"
        f"{RUN}"
    )
    done = subprocess.run([sys.executable, "-c", program, word], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.splitlines()[-1:]) == (code, ["called"])


HEAVY = {"numpy", "pyarrow", "pandas", "pydantic", "yaml", "joblib", "rich.table", "mlflow", "scipy"}
LOADED = f"""
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
{RUN}
"""


@pytest.mark.parametrize("arguments", [["--help"], ["evaluate", "-h"]], ids=" ".join)
def test_help_imports_nothing_heavy(tmp_path, arguments):
    outcome = started(*arguments, cwd=tmp_path, code=LOADED)
    assert outcome.returncode == 0
    assert "rankledger.pipeline.cli.commands" in outcome.stderr.split()
    assert sorted(HEAVY & set(outcome.stderr.split())) == []


def test_an_evaluation_imports_neither_pandas_nor_mlflow(config, tmp_path):
    models = {}
    for ending in (".txt", ".tsv", ".csv.gz", ".jsonl", ".tsv.zst", ".parquet"):
        write_table(config.parent / f"bm25{ending}", rows(WEB.outputs["bm25"]), "score")
        models[ending] = {"outputs": f"bm25{ending}"}
    edit(config, models=models)
    outcome = started("evaluate", str(config), "--no-tracking", "--json", cwd=tmp_path, code=LOADED)
    loaded = set(outcome.stderr.split())

    assert outcome.returncode == 0, outcome.stderr
    assert {"pyarrow", "rankledger.pipeline.report.html.render"} <= loaded
    tables = {"rich.console", "rich.table", "rich.text"}
    assert sorted({"pandas", "mlflow", "scipy", "joblib", "multiprocessing", *tables} & loaded) == []


WEIGHTS = (1, 5, 4, 3, 0)  # what weighs most comes first


def evaluation_of(*, gate: str, unsaved: bool, untracked: bool, failed: bool) -> Evaluation:
    effect = {"pass": "pass", "inconclusive": "stop", "fail": "fail"}[gate]
    verdict = Verdict("floor", "web", "bm25", "ap", "all", gate, effect, "a reason")
    return make_evaluation(
        evaluation_id="20261120T020000Z-nightly-1f0c9a2b",
        directions={},
        results=(),
        estimates=(),
        quality={},
        failures=(Failure("web", "dense", "not there"),) if failed else (),
        record=Path("record"),
        store=None if untracked else "sqlite:///mlflow.db",
        untracked="away" if untracked else None,
        unsaved="away" if unsaved else None,
        verdicts=(verdict,),
    )


@pytest.mark.parametrize("required", [False, True])
def test_the_weightiest_code_is_the_one(required):
    """A gate that failed before a place without a copy, that before an output, that before doubt; over all 24 cases."""
    for gate, unsaved, untracked, failed in product(["pass", "inconclusive", "fail"], *[[False, True]] * 3):
        apply = {
            {"pass": 0, "inconclusive": 3, "fail": 1}[gate],
            *([5] if unsaved or (untracked and required) else []),
            *([4] if failed else []),
        }
        found = evaluation_of(gate=gate, unsaved=unsaved, untracked=untracked, failed=failed)

        assert exit_code_of(found, require_tracking=required) == min(apply, key=WEIGHTS.index)
