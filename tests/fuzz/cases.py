"""What a fuzz run is made of: cases, the targets that take them, and which case has which number.

A case is a file: a name, whose ending says its format and whose first part may say what is done with it, and bytes. The
seed of the run, the name of the target and the number of the case decide the case, and nothing else does.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rankledger.pipeline.support.errors import InputError, LockedError
from tests.fuzz.mutations import mutate


@dataclass(frozen=True)
class Case:
    name: str  # such as `by rank/ranking.tsv.gz`
    data: bytes

    @property
    def file(self) -> Path:
        return Path(self.name.rpartition("/")[2])

    @property
    def variant(self) -> str:
        return self.name.partition("/")[0]


def _nothing() -> None:
    """No file is needed."""


@dataclass(frozen=True)
class Target:
    name: str  # what it is called
    # Sound files to change; called in the prepared folder, the working directory.
    seeds: Callable[[], Sequence[Case]]
    run: Callable[[Case], object]  # takes a case, in a copy of that folder; leaves the folder as it was
    # Writes what cases need beside them into the working directory, once for all targets that share it.
    prepare: Callable[[], None] = _nothing
    tokens: tuple[bytes, ...] = ()  # words of this target's inputs to put into cases
    refusals: tuple[type[Exception], ...] = (InputError, LockedError)  # what may be raised
    share: int = 10  # of the executions, relative to the other targets


def case_of(target: Target, seeds: Sequence[Case], seed: int, number: int) -> Case:
    rng = random.Random(f"{seed}/{target.name}/{number}")
    chosen, other = rng.choice(seeds), rng.choice(seeds)
    data = chosen.data
    for _ in range(0 if rng.random() < 0.02 else min(12, 1 + int(rng.expovariate(0.9)))):
        data = mutate(chosen.name, data, other.data, rng, target.tokens)
    return Case(chosen.name, data)
