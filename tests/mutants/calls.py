"""A pytest plugin that runs in any tree: it records which functions each test calls, or runs chosen tests alone.

`MUTANTS_RECORD`: the file to which a line of JSON per test is appended.
`MUTANTS_TESTS`: a file of JSON with the tests to run, in order, their usual seconds, and the CPU seconds for all.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

CUT_OFF = 99  # the exit code when the CPU seconds are used up


def pytest_configure(config: pytest.Config) -> None:
    if record := os.environ.get("MUTANTS_RECORD"):
        config.pluginmanager.register(_Recorder(Path(record), config.rootpath.resolve()))
    if tests := os.environ.get("MUTANTS_TESTS"):
        config.pluginmanager.register(_Chosen(**json.loads(Path(tests).read_text(encoding="utf-8"))))


class _Recorder:
    def __init__(self, record: Path, root: Path) -> None:
        self._file = record.open("a", encoding="utf-8")
        self._root = root
        self._codes: dict[int, tuple[CodeType, str]] = {}
        self._fixtures: dict[int, set[str]] = {}
        self._called: set[str] = set()
        self._failed: set[str] = set()
        self._trace()

    def _trace(self) -> None:
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def _on_call(self, frame: FrameType, event: str, value: object) -> None:
        code = frame.f_code
        known = self._codes.get(id(code)) or self._codes.setdefault(id(code), (code, self._name(code)))
        if known[1]:
            self._called.add(known[1])

    def _name(self, code: CodeType) -> str:
        path = Path(code.co_filename)
        if not path.is_absolute() or not path.is_relative_to(self._root):
            return ""
        place = path.resolve().relative_to(self._root)
        return f"{place.as_posix()}:{code.co_firstlineno}" if place.parts[0] in {"metrics", "pipeline"} else ""

    def pytest_collection_finish(self) -> None:
        self._write(None, self._called)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        outer, self._called = self._called, set()
        yield
        if fixturedef.scope != "function":
            self._fixtures[id(fixturedef)] = self._called
        self._called |= outer

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self._called, begun = set(), _cpu_seconds()
        self._trace()
        yield
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for definition in definitions:
                self._called |= self._fixtures.get(id(definition), set())
        if item.nodeid not in self._failed:
            self._write(item.nodeid, self._called, _cpu_seconds() - begun)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._failed.add(report.nodeid)

    def _write(self, test: str | None, called: set[str], seconds: float = 0.0) -> None:
        line = {"test": test, "seconds": round(seconds, 4), "called": sorted(called)}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


class _Chosen:
    def __init__(self, tests: dict[str, float], cpu_seconds: float) -> None:
        self._tests, self._limit = tests, cpu_seconds
        self._order = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self._order), key=lambda i: self._order[i.nodeid])
        for item in items:
            item.add_marker(pytest.mark.timeout(30 + 30 * self._tests[item.nodeid]))

    def pytest_runtest_teardown(self) -> None:
        if _cpu_seconds() > self._limit:
            pytest.exit("cut off", CUT_OFF)


def _cpu_seconds() -> float:
    return time.process_time() + sum(os.times()[2:4])
