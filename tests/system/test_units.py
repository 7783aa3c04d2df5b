"""The units of docs/nightly for systemd, as systemd itself reads them."""

import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "docs/nightly"


@pytest.fixture
def units(tmp_path) -> list[Path]:
    command = tmp_path / ".venv/bin/rankledger"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    written = []
    for name in ("rankledger-nightly.service", "rankledger-nightly.timer"):
        text = (UNITS / name).read_text().replace("/srv/ranking", str(tmp_path)).replace("User=ranking", "User=root")
        (tmp_path / name).write_text(text)
        written.append(tmp_path / name)
    return written


def verified(*units: Path) -> str:
    ended = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


def test_systemd_finds_nothing_wrong(units):
    """Every key and value is one that it knows, and the command is there; a key that is misspelt it would name."""
    assert verified(*units) == ""

    units[0].write_text(units[0].read_text().replace("Type=", "Tpye="))
    assert "Tpye" in verified(*units)


def test_the_timer_goes_off_every_night():
    (moment,) = [
        line.partition("=")[2]
        for line in (UNITS / "rankledger-nightly.timer").read_text().splitlines()
        if line.startswith("OnCalendar=")
    ]
    said = subprocess.run(["systemd-analyze", "calendar", moment], capture_output=True, text=True, check=True).stdout

    assert "02:00:00 UTC" in said.partition("Next elapse:")[2]
