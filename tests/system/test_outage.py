"""What is away when a night is evaluated, MLflow or the place of records: it is delivered later, in order, and once."""

import shutil
from datetime import datetime

from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.store import Records, Remote
from tests.support.faulty_proxy import Fault
from tests.support.generated_data import search_collection, write_config
from tests.support.histories import points_in
from tests.support.servers import free_port, mlflow_server
from tests.system.books import runs_in, visible
from tests.system.kills import Ended, run

WEB = search_collection(40, n_queries=15)
NIGHTS = ("2026-11-18", "2026-11-19", "2026-11-20")


def test_three_nights_without_a_server(folder, loaded, empty_store):
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    config = write_config(folder / "configs", {"web": WEB}, {"search": ["ndcg@10", "ap"]}, tracking={"uri": address})
    for night in NIGHTS:
        outcome = run("evaluate", config, "--date", night, cwd=folder, by=loaded)
        (line,) = outcome.err.splitlines()
        assert outcome.code == 0
        assert line.startswith(f"not in MLflow: MLflow at {address}: ")
    assert run("sync", cwd=folder, by=loaded).code == 5
    records = [read_record(path) for path in visible(folder / "runs")]
    shutil.copyfile(empty_store, folder / "mlflow.db")
    with mlflow_server(folder, f"sqlite:///{folder}/mlflow.db", port=port):
        synced = run("sync", cwd=folder, by=loaded)
        again = run("sync", cwd=folder, by=loaded)
        found = [runs_in(address, record.path.name) for record in records]

    assert [record.manifest.date for record in records] == [*NIGHTS]
    assert (synced.code, synced.err) == (0, "")
    pages = [f"{record.path.name}: in MLflow at {address}/#/experiments/" for record in records]
    assert [line.partition("experiments/")[0] + "experiments/" for line in synced.out.splitlines()] == pages
    assert (again.code, again.out, again.err) == (0, "", "")
    for record, runs in zip(records, found, strict=True):
        created = datetime.fromisoformat(record.manifest.created).timestamp() * 1_000
        assert runs.keys() == {"", "web/bm25", "web/dense"}
        assert all(0 <= run.info.start_time - int(created) <= 3 for run in runs.values())
    starts = [runs[""].info.start_time for runs in found]
    assert starts == sorted(starts)


def test_an_older_night_that_is_delivered_late_lands_at_its_step(folder, loaded, proxy, mlflow):
    from mlflow import MlflowClient

    settings = {"name": "late", "tracking": {"uri": proxy.uri}}
    figures: dict[str, float] = {}
    for night, seed in (("2026-11-18", 40), ("2026-11-20", 41)):
        web = search_collection(seed, n_queries=15, models=["bm25"])
        config = write_config(folder / "configs", {"web": web}, {"search": ["ap"]}, **settings)
        proxy.expect(*((Fault.LOST_REQUEST, 1) if night == "2026-11-18" else ()))
        alone = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
        outcome = run("evaluate", config, "--date", night, cwd=folder, by=loaded, environment=alone)
        assert outcome.err.startswith("not in MLflow: ") is (night == "2026-11-18")
    for path in visible(folder / "runs"):
        record = read_record(path)
        (line,) = (line for line in record.estimates if line.slice == "all")
        figures[str(record.manifest.date)] = line.estimate

    assert [step for metric, step, *_ in points_in(mlflow, "late")["web", "bm25"] if metric == "ap"] == [20_777]
    assert run("sync", cwd=folder, by=loaded).code == 0

    points = points_in(mlflow, "late")["web", "bm25"]
    assert {(step, value) for metric, step, _, value in points if metric == "ap"} == {
        (20_775, figures["2026-11-18"]),
        (20_777, figures["2026-11-20"]),
    }
    assert len({(metric, step) for metric, step, *_ in points}) == len(points)
    (history,) = MlflowClient(mlflow).search_runs(
        [MlflowClient(mlflow).get_experiment_by_name("late").experiment_id], "tags.`rankledger.kind` = 'history'"
    )
    assert history.data.metrics["ap"] == figures["2026-11-20"]


def test_no_room_to_make_a_store(folder, loaded):
    config = write_config(folder / "configs", {"web": WEB}, {"search": ["ap"]})
    for limit in (100_000, 400_000, 700_000):
        runs_dir = folder / f"runs-{limit}"
        outcome = run("evaluate", config, "--runs-dir", runs_dir, cwd=folder, by=loaded, limit=limit)
        assert outcome.code == 0
        assert outcome.err.startswith("not in MLflow: ")
        assert not (runs_dir / "mlflow.db").exists()
    for runs_dir in sorted(folder.glob("runs-*")):
        (record,) = visible(runs_dir)
        synced = run("sync", "--runs-dir", runs_dir, cwd=folder, by=loaded)
        assert synced.code == 0, synced.out
        assert runs_in(f"sqlite:///{runs_dir}/mlflow.db", record.name).keys() == {"", "web/bm25", "web/dense"}


def test_a_night_without_the_place_of_records(folder, loaded, s3):
    config = write_config(folder / "configs", {"web": WEB}, {"search": ["ap"]}, tracking={"enabled": False})
    place = f"{s3.bucket()}/records"

    def night(runs_dir: str, environment: dict[str, str] | None = None) -> Ended:
        command = ("nightly", config, "--date", "2026-11-20", "--runs-dir", runs_dir, "--records", place)
        return run(*command, cwd=folder, by=loaded, environment=environment)

    nobody = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}
    away = [night("one", nobody), night("one", nobody)]
    (evaluation_id,) = Records(folder / "one" / "records").ids()
    back, other = night("one"), night("other")

    assert [outcome.code for outcome in away] == [5, 5]
    assert all(outcome.err.splitlines()[-1].startswith(f"not kept: {place}: ") for outcome in away)
    assert all(outcome.err.startswith(f"{place}: ") for outcome in away)
    assert [ended.code for ended in (back, other)] == [0, 0]
    assert all(
        ended.err.endswith(" was evaluated before: this is its record; --again evaluates it anew\n")
        for ended in (back, other)
    )
    for name in ("one", "other"):
        assert Records(folder / name / "records").ids() == [evaluation_id]


def test_gates_of_a_night_without_the_place_of_records(folder, loaded, s3):
    gates = [
        {"name": "no-drop", "measure": "ap", "against": "self@last_passed", "max_query_drop": 1, "allow": 1},
        {"name": "floor", "measure": "ap", "at_least": 1, "fail_after": 2},
        {"name": "looked", "models": "dense", "measure": "ap", "against": "bm25", "margin": 0.9}
        | {"looks": {"changed_outputs": 90}},
    ]
    config = write_config(folder, {"web": WEB}, {"search": ["ap"]}, tracking={"enabled": False}, gates=gates)
    place = f"{s3.bucket()}/records"
    nobody = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}

    away = run("evaluate", config, "--records", place, cwd=folder, by=loaded, environment=nobody)
    (record,) = visible(folder / "runs")
    synced = run("sync", "--records", place, cwd=folder, by=loaded)

    assert away.code == 5
    assert away.err.splitlines()[-1].startswith(f"not kept: {place}: ")
    found = {(verdict.gate, verdict.model): verdict for verdict in read_record(record).verdicts}
    for model in ("bm25", "dense"):
        assert (found["no-drop", model].outcome, found["no-drop", model].effect) == ("not comparable", "stop")
        assert found["floor", model].outcome == "inconclusive"
        assert place in found["no-drop", model].reason
    assert found["looked", "dense"].outcome == "inconclusive"
    assert f"; unknown how many of 90 looks are spent: {place}" in found["looked", "dense"].reason
    assert (synced.code, synced.err) == (0, "")
    assert Records(folder / "runs" / "records", Remote(place)).ids() == [record.name]


def test_a_bucket_that_is_not_there_is_no_empty_one(folder, loaded, s3):
    there = run("list", "--records", f"{s3.bucket()}/records", cwd=folder, by=loaded)
    gone = run("list", "--records", "s3://mistyped/records", cwd=folder, by=loaded)

    assert (there.code, there.err) == (0, "")
    assert (gone.code, gone.out) == (74, "")
    assert gone.err == "s3://mistyped/records: bucket not found; create it, or fix the URL\n"
