"""Targets with faults on purpose, which a run must find: see test_fuzz.py."""

import os
import signal
import time

from rankledger.pipeline.support.errors import InputError
from tests.fuzz.cases import Case, Target


def _refuse(case: Case) -> None:
    raise InputError("no")


def _bug(case: Case) -> None:
    raise KeyError("planted")


def _crash(case: Case) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _exit(case: Case) -> None:
    os._exit(3)


def _hang(case: Case) -> None:
    time.sleep(3600)


def _slow(case: Case) -> None:
    began = time.process_time()
    while time.process_time() - began < 0.4:
        pass


def _large(case: Case) -> None:
    _ = b"x" * 200_000_000


def _hog(case: Case) -> None:
    held = []
    while True:
        held.append(b"x" * 20_000_000)
        time.sleep(0.01)


def _seeds() -> list[Case]:
    return [Case("planted/a.txt", b"1 2\n"), Case("planted/a.parquet", b"PAR1"), Case("planted/a.txt.gz", b"")]


TARGETS = (
    Target("sound", _seeds, repr),
    *(
        Target(run.__name__.removeprefix("_"), _seeds, run, share=share)
        for run, share in (
            (_refuse, 10),
            (_bug, 10),
            (_crash, 10),
            (_exit, 10),
            (_slow, 3),
            (_large, 3),
            (_hang, 3),
            (_hog, 3),
        )
    ),
)
