"""What tools that are large or slow gave for the cases of these tests: read from `tests/golden/tools`.

A result is looked up by the function that was called and by all its arguments, so that a case that has changed in one
figure has no result, rather than an old one. `tests/golden/make_tools.py` runs the tools and writes the results.
"""

import hashlib
import json
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.agreement.cases import Figures

FOLDER = Path(__file__, "../../golden/tools").resolve()


class RecordedTool:
    def __init__(self, name: str) -> None:
        self.name = name
        self.path = FOLDER / f"{name}.json"
        self._functions: ModuleType | None = None

    def __call__(self, function: str, *arguments: Any, **options: Any) -> Any:
        key = f"{function} {_digest(arguments, options)}"
        if self._functions is not None and key not in self._results:
            result = getattr(self._functions, function)(*arguments, **options)
            self._results[key] = json.loads(json.dumps(result))
        if key not in self._results:
            command = f"python -m tests.golden.make_tools {self.name}"
            raise LookupError(f"{self.path}: no result of {function} for this case; run `{command}`")
        return self._results[key]

    def run(self, functions: ModuleType) -> None:
        self._functions = functions
        self.__dict__["_results"] = {}

    def write(self) -> None:
        """Write what the tool gave since `run`: a line for each result, or for each of its columns."""
        lines = [f"{json.dumps(key)}: {_lines(result)}" for key, result in sorted(self._results.items())]
        self.path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    @cached_property
    def _results(self) -> dict[str, Any]:
        return json.loads(self.path.read_text(encoding="utf-8"))


def by_query(query_ids: list[str], columns: dict[str, list[float]]) -> Figures:
    rows = zip(*columns.values(), strict=True)
    return {query_id: dict(zip(columns, row, strict=True)) for query_id, row in zip(query_ids, rows, strict=True)}


def _digest(*arguments: Any) -> str:
    text = json.dumps(arguments, default=np.ndarray.tolist)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _lines(result: Any) -> str:
    if not isinstance(result, dict):
        return json.dumps(result)
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in result.items()) + "\n}"


EVIDENCE = RecordedTool("evidence")
FAIRNESS = RecordedTool("fairness")
LOGS = RecordedTool("logs")
MTEB = RecordedTool("mteb")
PROGRAMS = RecordedTool("programs")
RANX = RecordedTool("ranx")
RECBOLE = RecordedTool("recbole")
TORCHMETRICS = RecordedTool("torchmetrics")
