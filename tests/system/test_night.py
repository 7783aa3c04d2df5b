"""A second night of many models, logged to MLflow over HTTP on PostgreSQL.

With `RANKLEDGER_NIGHT=40` it has the 40 models of docs/mlflow.md, and prints the figures that stand there.
"""

import os
from collections import Counter
from datetime import UTC, datetime

from rankledger.pipeline.record.folder import read_record
from tests.support.faulty_proxy import proxy_to
from tests.support.generated_data import Collection, search_collection, write_config
from tests.support.histories import points_in
from tests.system.books import runs_in, visible
from tests.system.kills import run

N_MODELS, N_DATASETS, N_METRICS = int(os.environ.get("RANKLEDGER_NIGHT", "6")), 6, 40
MOST_CALLS = 6  # per run
MEASURES = [f"{name}@{k}" for name in ("ndcg", "p", "r", "rr", "success") for k in (1, 3, 5, 10, 20)]


def dataset(seed: int) -> Collection:
    return search_collection(seed, n_queries=12, models=[f"model-{number:02}" for number in range(N_MODELS)])


def test_a_night_takes_few_calls(folder, postgres, mlflow_on_postgres):
    server, database = mlflow_on_postgres
    config = write_config(
        folder / "configs",
        {f"web-{seed}": dataset(seed) for seed in range(N_DATASETS)},
        {"search": MEASURES},
        name="night",
        tracking={"uri": "http://127.0.0.1", "timeout": "10m"},
    )
    first = run("evaluate", config, "--date", "2026-11-19", "--set", f"tracking.uri={server}", cwd=folder)
    assert (first.code, first.err) == (0, "")
    before = size_of(postgres, database)
    with proxy_to(server) as proxy:
        command = ("evaluate", config, "--date", "2026-11-20", "--set", f"tracking.uri={proxy.uri}")
        outcome = run(*command, cwd=folder)
        ended = datetime.now(UTC)
        calls = Counter(f"{call.method} {call.path.partition('/artifacts/')[0]}" for call in proxy.calls)
    grown = size_of(postgres, database) - before
    records = {read_record(path).manifest.date: path for path in visible(folder / "runs")}
    record = records["2026-11-20"]
    runs = runs_in(server, record.name)
    seconds = (ended - datetime.fromisoformat(read_record(record).manifest.finished)).total_seconds()

    assert (outcome.code, outcome.err) == (0, "")
    assert len(runs) == N_MODELS * N_DATASETS + 1
    assert {len(found.data.metrics) for name, found in runs.items() if name} == {N_METRICS}
    points = points_in(server, "night")
    assert len(points) == N_MODELS * N_DATASETS
    assert {len(found) for found in points.values()} <= {2 * N_METRICS - 1, 2 * N_METRICS}  # an interval is whole
    print(f"{len(runs)} runs: {calls.total()} calls, {seconds:.0f} s, {grown / len(runs):,.0f} bytes a run; {calls}")
    assert calls.total() <= MOST_CALLS * len(runs)


def size_of(postgres, database: str) -> int:
    postgres.ask("vacuum", database)
    ((size,),) = postgres.ask("select pg_database_size(current_database())", database)
    return int(size)
