"""Waiting for outputs, on a clock that a test winds: what comes in time, what is late, and what is said meanwhile."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rankledger.pipeline.commands.nightly import AwaitedInput, wait_for
from rankledger.pipeline.config.schema import Nightly
from tests.support.fake_clock import Clock

pytestmark = pytest.mark.usefixtures("folder")

BM25 = AwaitedInput("bm25.tsv", ("web", "bm25"))
DENSE = AwaitedInput("dense.tsv", ("web", "dense"))


class Night(Clock):
    """A night that is waited through, and what was said of it."""

    def __init__(self, happens: dict[float, Callable[[], object]] | None = None) -> None:
        super().__init__(happens)
        self.said: list[str] = []

    def wait(self, *wanted: AwaitedInput, **rule: object) -> dict[AwaitedInput, str]:
        return self.wait_for(lambda: wanted, **rule)

    def wait_for(self, wanted: Callable[[], Sequence[AwaitedInput]], **rule: object) -> dict[AwaitedInput, str]:
        return wait_for(wanted, Nightly(**{"wait": "2h", **rule}), clock=self, say=self.said.append)


def write(name: str, text: str = "") -> Callable[[], object]:
    def writing() -> None:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")

    return writing


def test_nothing_is_waited_for_where_all_is_there():
    write("bm25.tsv")()
    night = Night()

    assert night.wait(BM25) == {}
    assert (night.minutes, night.said) == (0, [])


def test_the_last_look_is_at_the_deadline():
    """Looking every 50 minutes, at 2:50, 3:40 and 4:00: what came at 3:59 is in time."""
    night = Night({119: write("bm25.tsv")})

    assert night.wait(BM25, every="50m") == {}
    assert night.minutes == 120


def test_what_comes_after_the_deadline_is_late():
    night = Night({31: write("bm25.tsv")})

    assert [*night.wait(BM25, wait="30m")] == [BM25]


def test_without_waiting_there_is_one_look():
    write("bm25.tsv")()
    night = Night()

    (reason,) = night.wait(AwaitedInput("bm25.tsv", ("web", "bm25"), "_SUCCESS"), wait="0").values()

    assert (night.minutes, night.said) == (0, [])
    assert reason.startswith("bm25.tsv: late: no _SUCCESS by 02:00 UTC; once")


def test_a_marker_says_that_an_output_is_whole():
    """The file grows from 2:10 on and is whole at 2:40, when the marker is written."""
    night = Night({10: write("out/bm25.tsv"), 40: write("out/bm25.tsv", "much more"), 40.5: write("out/_SUCCESS", "")})

    assert night.wait(AwaitedInput("out/bm25.tsv", ("web", "bm25"), "_SUCCESS")) == {}
    assert night.minutes == 40.5
    assert [line.partition(": ")[2] for line in night.said] == [
        "out/bm25.tsv (not there)",
        "out/bm25.tsv (no out/_SUCCESS)",
    ]


def test_a_marker_without_its_output_is_not_enough():
    write("out/_SUCCESS")()

    (reason,) = Night().wait(AwaitedInput("out/bm25.tsv", ("web", "bm25"), "_SUCCESS")).values()

    assert "late: not there by 04:00 UTC" in reason


@pytest.mark.parametrize(
    ("happens", "settled"),
    [
        ({0: "bm25.tsv"}, 0.5),
        ({0.5: "bm25.tsv a", 1: "bm25.tsv ab", 1.5: "bm25.tsv abc"}, 2),
        ({0.5: "bm25.tsv yesterday's", 1: "bm25.tsv to"}, 1.5),
        ({0.5: "bm25.tsv/part-0 text", 1: "bm25.tsv/part-1", 1.5: "bm25.tsv/part-2 text"}, 2),
    ],
    ids=["there all day", "growing", "replaced by a shorter one", "parts, one of them empty"],
)
def test_an_output_is_settled_if_two_looks_find_the_same(happens, settled):
    night = Night({minute: write(*words.split()) for minute, words in happens.items() if minute})
    if 0 in happens:
        write(happens[0])()

    assert night.wait(BM25, ready="stable") == {}
    assert night.minutes == settled


def test_an_output_that_grows_without_end_is_late():
    night = Night({minute / 2: write("bm25.tsv", "a" * minute) for minute in range(400)})

    (reason,) = night.wait(BM25, ready="stable").values()

    assert "late: not settled by 04:00 UTC (waited 2h)" in reason


def test_what_was_ready_is_not_looked_at_again():
    """What happens to it afterwards is its reader's to refuse: waiting would never end with files that come and go."""
    write("bm25.tsv")()
    night = Night({10: Path("bm25.tsv").unlink, 20: write("dense.tsv")})

    assert night.wait(BM25, DENSE) == {}


def test_progress_is_said_when_it_changes():
    night = Night({30: write("bm25.tsv")})

    night.wait(BM25, DENSE)

    assert night.said == [
        "waiting until 04:00 UTC for 2 of 2: bm25.tsv (not there), dense.tsv (not there)",
        "waiting until 04:00 UTC for 1 of 2: dense.tsv (not there)",
    ]


def test_many_that_are_missing_are_not_all_named():
    night = Night()

    night.wait(*[AwaitedInput(f"{number}.tsv", ("web", str(number))) for number in range(240)], wait="1m")

    assert night.said[0].startswith("waiting until 02:01 UTC for 240 of 240: 0.tsv (not there), 1.tsv")
    assert night.said[0].endswith("4.tsv (not there) and 235 more")


def test_models_that_turn_up_are_waited_for():
    """The first look knows no model; at 2:10 one is found, whose output on another dataset comes at 2:20."""
    night = Night({10: write("web/bm25.tsv"), 20: write("news/bm25.tsv")})

    def wanted() -> list[AwaitedInput]:
        if not Path("web").exists():
            return [AwaitedInput("web/*.tsv", lack="no model yet")]
        return [AwaitedInput("web/bm25.tsv", ("web", "bm25")), AwaitedInput("news/bm25.tsv", ("news", "bm25"))]

    assert night.wait_for(wanted) == {}
    assert night.minutes == 20
    assert night.said[0] == "waiting until 04:00 UTC for 1 of 1: web/*.tsv (no model yet)"


def test_a_server_that_is_away_is_waited_for():
    """What cannot be looked at may be there later; what the trouble is stands in the line, and in the reason."""
    night = Night()

    (reason,) = night.wait(AwaitedInput("nowhere://out/bm25.tsv", ("web", "bm25"))).values()

    assert "cannot be looked at (nowhere://out/bm25.tsv: " in night.said[0]
    assert reason.startswith("nowhere://out/bm25.tsv: late: cannot be looked at (nowhere://out/bm25.tsv: ")
