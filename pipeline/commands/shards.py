"""One shard of an evaluation: some of its outputs, read into the output cache.

Jobs that share a runs folder can read shards in any order. Cache entries do not depend on who wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rankledger.pipeline.data.inputs import is_kept, read_inputs
from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.data.outputs import left_to_evaluation
from rankledger.pipeline.record.workspace import Backend, Workspace, open_config, workers_of
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.progress import work


@dataclass(frozen=True)
class ShardResult:
    """Result of reading one shard."""

    shard: str  # such as `3/16`
    folder: str  # path or URL of the output cache
    n_parsed: int
    n_found: int
    n_left: int  # outputs of all shards that the cache cannot hold
    failures: tuple[Failure, ...]
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        were = "was" if self.n_found == 1 else "were"
        outputs = "output" if self.n_parsed == 1 else "outputs"
        return f"shard {self.shard}: {self.n_parsed} {outputs} read, {self.n_found} {were} in the cache ({self.folder})"


@work()
def read_shard(
    config: str,
    shard: str,
    *,
    overrides: Sequence[str] = (),
    date: str | None = None,
    jobs: int | None = None,
    backend: Backend | None = None,
    scheduler: str | None = None,
    runs_dir: str = "runs",
) -> ShardResult:
    """Read every Nth output of a config into the output cache. Score and record nothing.

    Args:
        config: Path of the config.
        shard: `3/16` is the third of every sixteen outputs, in the order of the config.
        overrides: `key.path=value` texts that set keys of the config.
        date: Value of `{date}` in paths.
        jobs: Number of workers, instead of the config's.
        backend: `threads`, `processes` or `dask`, instead of the config's.
        scheduler: Address of a Dask cluster, instead of the config's.
        runs_dir: Runs folder with the output cache that all shards share.

    Raises:
        InputError: The config, the shard, judgments or documents are wrong, or the cache is off or not writable.
    """
    place, n_shards = _parsed(shard)
    opened = open_config(config, overrides=overrides, date=date)
    loaded, planned = opened.loaded, opened.planned
    if not loaded.config.execution.cache:
        raise InputError(f"{config}: execution.cache is off, and a shard only fills the cache; remove it or --shard")
    store = replace(Workspace.open(runs_dir), cache_place=planned.cache).cache
    store.refuse_unwritable()
    keeps = {dataset.name: is_kept(dataset) for dataset in planned.datasets}
    kept = [task for task in planned.tasks if keeps[task.dataset]]
    tasks = tuple(kept[place - 1 :: n_shards])
    datasets = tuple(dataset for dataset in planned.datasets if any(task.dataset == dataset.name for task in tasks))
    inputs = read_inputs(
        replace(planned, tasks=tasks, datasets=datasets),
        loaded.config.conventions.resolved.conventions,
        workers_of(loaded.config, jobs, backend, scheduler),
        store=store,
    )
    n_parsed = sum(output.parsed for output in inputs.joined.values())
    n_left = len(planned.tasks) - len(kept)
    return ShardResult(
        shard,
        str(store.place),
        n_parsed,
        len(inputs.joined) - n_parsed,
        n_left,
        inputs.failures,
        (*inputs.remarks, *([left_to_evaluation(n_left)] if n_left else [])),
    )


def _parsed(shard: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", shard, re.ASCII)
    place, n_shards = (int(part) for part in found.groups()) if found else (0, 0)
    if not 1 <= place <= n_shards:
        raise InputError(f"--shard: found {shard!r}; write it as 3/16, from 1/16 to 16/16")
    return place, n_shards
