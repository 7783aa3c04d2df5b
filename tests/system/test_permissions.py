"""Commands where a folder is closed or the user has no home: nothing is lost, doubled, silent or leaked."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.forked import Loaded
from tests.support.generated_data import search_collection, write_config
from tests.support.webhook_receiver import Receiver
from tests.system.books import visible
from tests.system.kills import ROOT

COMMANDS = {
    "evaluate": "c.yaml -q",
    "nightly": "c.yaml --date 2026-11-22 -q",
    "show": "last",
    "compare": "",
    "history": "",
    "report": "last --format markdown",
    "site": "--output ../out/site",
    "explain": "last --model bm25 --query q0",
    "plan": "last#dense --margin 0.1 --against last#bm25",
    "validate": "c.yaml",
    "find": "0.5",
    "accept": "last --failed --reason checked",
    "sync": "-q",
    "prune": "--keep-days 0 --yes -q",
    "verify": "last -q",
    "reproduce": "last -q",
    "list": "",
    "export": "last --output ../out/export",
}
EVALUATE = ("evaluate", "nightly")
CODE = """
from tests.system.worker import become_nobody, fork_workers
become_nobody()
fork_workers({})
from rankledger.pipeline.cli.app import main; main()
"""
SECRET = "Xyzzy-4711"
CODES = {0, 1, 2, 3, 4, 5, 74, 75}


def close_runs(place: Path) -> None:
    for path in [place / "runs", *(place / "runs").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def close_config(place: Path) -> None:
    for path in [place, *(path for path in place.iterdir() if path.name != "runs")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


STATES: dict[str, Callable[[Path], object]] = {
    "a runs folder that is read-only": close_runs,
    "a runs folder that cannot be entered": lambda place: (place / "runs").chmod(0),
    "a config folder that is read-only": close_config,
    "a record that cannot be entered": lambda place: visible(place / "runs")[-1].chmod(0),
    "no home": lambda place: shutil.rmtree(place.parent / "home"),
}


class Place:
    """A working folder with two recorded nights. MLflow does not have the last one, and nobody was told of it."""

    def __init__(self, folder: Path, loaded: Loaded, hook: Receiver) -> None:
        self.folder, self._loaded, self._hook = folder / "work", loaded, hook
        for name in ("work", "home", "out"):
            (folder / name).mkdir()
        data = {"web": search_collection(40, n_queries=50)}
        gates = [{"name": "floor", "measure": "ap", "at_least": 0.99}]
        options = {"notify": [{"webhook": "${HOOK}"}], "gates": gates}
        write_config(self.folder, data, {"search": ["ap"]}, name="t", **options).rename(self.folder / "c.yaml")
        first = self.run("nightly", "c.yaml --date 2026-11-20 -q --set gates[0].at_least=0.001")
        hook.answers = [500, 500]
        second = self.run("nightly", "c.yaml --date 2026-11-21 -q")
        assert (first[0], second[0]) == (0, 1), (first, second)
        hook.answers = []
        (visible(self.folder / "runs")[-1] / "receipt.json").unlink()
        shutil.copytree(folder, folder.with_name(f"{folder.name}-kept"))

    def run(self, command: str, words: str | None = None) -> tuple[int, str, str]:
        home = {"HOME": str(home)} if (home := self.folder.parent / "home").exists() else {}
        variables = {"HOOK": f"{self._hook.address}/{SECRET}", "PYTHONPATH": str(ROOT), "COLUMNS": "120", **home}
        arguments = [command, *(COMMANDS[command] if words is None else words).split()]
        kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_STATE_HOME")}
        process = self._loaded.start(CODE, arguments, folder=self.folder, environment=kept | variables)
        out, err = process.communicate(300)
        assert process.returncode is not None
        return process.returncode, out, err

    @contextmanager
    def closed(self, close: Callable[[Path], object]) -> Iterator[None]:
        top = self.folder.parent
        close(self.folder)
        try:
            yield
        finally:
            for path in [top, *top.rglob("*")]:  # opens a folder before it lists it
                path.chmod(0o755 if path.is_dir() else 0o644)

    def restore(self) -> None:
        top = self.folder.parent
        shutil.rmtree(top)
        shutil.copytree(top.with_name(f"{top.name}-kept"), top)
        self._hook.posts.clear()


@pytest.fixture
def place(tmp_path: Path, loaded: Loaded, hook: Receiver) -> Place:
    (tmp_path / "place").mkdir()
    return Place(tmp_path / "place", loaded, hook)


def without_ids(text: str) -> str:
    return re.sub(
        r"\d{8}T\d{6}Z-t-[0-9a-f]{8}|\b[0-9a-f]{32}\b|[0-9a-f-]{36}|[\d.]+ k?B|\d{4}-\d\d-\d\d|\d\d:\d\d", "", text
    )


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("state", STATES)
def test_a_closed_folder_costs_nothing_and_is_named(place, hook, state, record_property):
    records = visible(place.folder / "runs")
    before = {path: data for record in records for path, data in files_of(record).items()}
    faults = []
    for command in COMMANDS:
        usual = place.run(command)
        left = visible(place.folder / "runs")
        place.restore()
        with place.closed(STATES[state]):
            code, out, err = place.run(command)
        after = files_of(place.folder)

        def expect(holds: bool, fault: str, command: str = command, shown: object = (code, out[-500:], err)) -> None:
            if not holds:
                faults.append(f"{command}: {fault}: {shown}")

        expect(code in CODES and "Traceback" not in err, "ends as a bug")
        pruned = {record for record in records if record not in left} if command == "prune" else set()
        missing = [path for path, data in before.items() if after.get(path) != data and path.parent not in pruned]
        expect(not missing, f"lost {missing}")
        new = {record for record in visible(place.folder / "runs") if record not in records}
        expect(len(new) <= (command in EVALUATE), f"doubled {new}")
        ids = [post.headers["idempotency-key"] for post in hook.posts]
        expect(len(ids) == len(set(ids)), f"told twice {ids}")
        is_usual = (code, without_ids(out)) == (usual[0], without_ids(usual[1]))
        is_named = "Permission denied" in out + err or err.strip() not in ("", usual[2].strip())
        expect(is_usual or is_named or (code not in (0, usual[0]) and out.strip() != ""), f"silent, usually {usual}")
        leaks = [path for path, data in after.items() if SECRET.encode() in data]
        expect(SECRET not in out + err and not leaks, f"leaked {leaks}")
        place.restore()
    assert not faults, "\n".join(faults)
    record_property("cases", len(COMMANDS))
