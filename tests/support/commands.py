"""The command line, run in this process: how a command ended, and what it printed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from rankledger.pipeline.cli.app import main


class Outcome(NamedTuple):
    """The exit code of a command, and what it wrote to both streams."""

    code: Any
    out: str
    err: str

    @property
    def record(self) -> Path:
        """The record whose page or folder is named below the tables."""
        found = re.findall(r"^(?:Page|Record) +(.+?)(?:/report\.html)?$", self.out, re.MULTILINE)
        assert len(found) == 1, self.out
        return Path(found[0])

    @property
    def error(self) -> str:
        assert self.out == ""
        (line,) = self.err.removeprefix("\n").splitlines()
        return line


Command: TypeAlias = Callable[..., Outcome]


@pytest.fixture
def run_cli(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: object) -> Outcome:
        code: Any = 0
        capfd.readouterr()
        try:
            main([*map(str, arguments)])
        except SystemExit as end:
            code = end.code
        return Outcome(code or 0, *capfd.readouterr())

    return run
