"""What runs side by side: an evaluation's calls by joblib, as a stage of the work, and a file's chunks in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import joblib

from rankledger.pipeline.support.progress import each

__all__ = ["Workers", "map_threads"]

T = TypeVar("T")


@dataclass(frozen=True)
class Workers:
    """How many calls run at a time, and in what.

    Attributes:
        jobs: workers; negative ones count from the cores down, -1 being all of them.
        backend: `threads` (NumPy and Arrow release the interpreter's lock) or `processes`.
    """

    jobs: int = -1
    backend: Literal["threads", "processes"] = "threads"

    def run(
        self, title: str, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], *, unit: str = "parts"
    ) -> list[T]:
        """The results of `function(*call)` for each call, in the order of the calls.

        Args:
            title: what is being done, as the progress says.
            function: a function of a module, so that processes can import it.
            calls: the arguments of each call.
            unit: what the progress calls them.
        """
        backend = "loky" if self.backend == "processes" else "threading"
        parallel = joblib.Parallel(n_jobs=self.jobs, backend=backend, return_as="generator")
        results = parallel(joblib.delayed(function)(*call) for call in calls)
        return list(each(title, results, len(calls), unit))


def map_threads(function: Callable[..., T], *arguments: Iterable[Any]) -> list[T]:
    """The results of `function` for each chunk of one file, in order, by a thread per core.

    For what NumPy and Arrow do in milliseconds without holding the interpreter's lock; joblib takes longer to start.
    """
    with ThreadPoolExecutor(joblib.cpu_count()) as pool:
        return list(pool.map(function, *arguments))
