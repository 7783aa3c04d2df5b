"""The command line as these tests call it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rankledger.pipeline.cli.app import main


@pytest.fixture
def run_cli(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[object, str, str]]:
    """The command, run in this process in an empty folder of its own: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[object, str, str]:
        code: object = 0
        try:
            main(list(arguments))
        except SystemExit as end:
            code = end.code
        return (code or 0, *capfd.readouterr())

    return run
