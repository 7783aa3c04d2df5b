"""Configs made to harm, or by accident: each is refused in a line, at once and within little memory."""

import os
import resource
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.support.errors import InputError

pytestmark = pytest.mark.usefixtures("folder")

CONFIG = "name: x\ndatasets: {d: {judgments: j}}\nmodels: {m: {outputs: o}}\nsuites: {s: [ap]}\n"
MANY = "keys and values"
DEEP = "is nested more than 100 deep; shorten it"
NOT_PLAIN = "is a folder, device, pipe or socket; name a regular file"


def refusal(text: str | None = None, *overrides: str) -> str:
    if text is not None:
        Path("a.yaml").write_text(text, encoding="utf-8")
    begin = time.process_time()
    with pytest.raises(InputError) as error:
        plan(load("a.yaml", overrides, {}))
    assert time.process_time() - begin < 10
    return str(error.value)


def billion_laughs() -> str:
    lines = [f"x{i}: &x{i} [{','.join([f'*x{i - 1}'] * 9)}]" for i in range(1, 30)]
    return "\n".join(["x0: &x0 [a]", *lines])


def doubling_merges() -> str:
    lines = [f"x{i}: &x{i} {{<<: [*x{i - 1}, *x{i - 1}], k{i}: 1}}" for i in range(1, 60)]
    return "\n".join(["x0: &x0 {a: 1}", *lines])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (billion_laughs, MANY),
        (doubling_merges, MANY),
        (lambda: "[" + "a," * 4_900_000, MANY),
        (lambda: "[" * 9_000_000, DEEP),
        (lambda: "- " * 4_000_000, DEEP),
        (lambda: "? " * 4_000_000, DEEP),
        (lambda: "x0: &x0 [1]\n" + "".join(f"x{i}: &x{i} [*x{i - 1}]\n" for i in range(1, 500)), DEEP),
        (lambda: "x0: &x0 {a: 1}\n" + "".join(f"x{i}: &x{i} {{<<: *x{i - 1}}}\n" for i in range(1, 500)), DEEP),
        (lambda: "a: " + "b" * 11_000_000, "larger than 10 MB"),
    ],
    ids=["laughs", "merges", "nodes", "flow", "block", "keys", "aliases", "merged", "size"],
)
def test_a_bomb_of_yaml_is_refused_at_once(text: Callable[[], str], message: str):
    assert message in refusal(text())


def test_a_refusal_takes_little_memory():
    Path("a.yaml").write_text("[" + "a," * 4_900_000, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refusal()

    unit = 1 if sys.platform == "darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 200e6


def test_models_times_datasets_are_bounded():
    datasets, models = (", ".join(f"{letter}{i}: " for i in range(1000)) for letter in "dm")
    defaults = "defaults: {dataset: {judgments: j}, model: {outputs: '{dataset}{model}'}}"

    assert "1,000 models on 1,000 datasets are more than 100,000 evaluations" in refusal(
        f"name: x\n{defaults}\ndatasets: {{{datasets}}}\nmodels: {{{models}}}\nsuites: {{s: [ap]}}\n"
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: os.mkfifo("odd"),
        lambda: socket.socket(socket.AF_UNIX).bind("odd"),
        lambda: Path("odd").symlink_to("/dev/zero"),
        lambda: Path("odd").mkdir(),
    ],
    ids=["fifo", "socket", "device", "folder"],
)
def test_what_is_no_plain_file_is_never_opened(make: Callable[[], None]):
    make()

    assert refusal("extends: odd\n" + CONFIG) == f"odd: {NOT_PLAIN}"
    Path("a.yaml").unlink()
    Path("odd").rename("a.yaml")
    assert refusal() == f"a.yaml: {NOT_PLAIN}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("https://example.org/a.yaml", "file not found"),
        ('"a\\0b"', "takes a file's path"),
        ("x" * 100_000, "file not found"),
        ("link.yaml", "extends itself"),
        ("loop.yaml", "cannot be read"),
    ],
    ids=["url", "zero byte", "long", "itself", "loop of links"],
)
def test_what_cannot_be_extended(name, message):
    Path("link.yaml").symlink_to("a.yaml")
    Path("loop.yaml").symlink_to("loop.yaml")

    found = refusal(f"extends: {name}\n{CONFIG}")
    assert message in found
    assert len(found) < 400


@pytest.mark.parametrize(
    "override",
    [f"suites.s[{'9' * 6000}]=1", "name=[" + "a," * 1_000_000 + "]", "\udcff=1", "name=\0"],
    ids=["place", "bomb", "surrogate", "zero byte"],
)
def test_overrides_made_to_harm_are_refused(override):
    found = refusal(CONFIG, override)

    assert "\n" not in found
    assert len(found) < 800


def test_many_findings_that_say_the_same_are_one_line():
    models = "".join(f"  m{i}: {{outptus: o}}\n" for i in range(900))
    text = CONFIG.replace("models: {m: {outputs: o}}\n", f"models:\n{models}")

    assert refusal(text) == (
        "a.yaml:4: models.m0.outptus: unknown key 'outptus'; did you mean 'outputs'? (and 899 more like it)"
    )
    assert refusal("a: 1\n" * 10_000).endswith("keep one (and 9,998 more like it)")


def test_many_findings_are_cut_with_their_number():
    lines = refusal(CONFIG + "".join(f"k{i}: 1\n" for i in range(5_000))).splitlines()

    assert len(lines) == 51
    assert lines[-1] == "and 4,950 more errors; fix these first"


@pytest.mark.parametrize("setting", ["seed", "bootstrap.resamples", "bootstrap.confidence", "conventions.depth"])
@pytest.mark.parametrize(
    "number", [".nan", ".inf", "-.inf", "-1.0e+308", "1.0e+400", f"-1{'0' * 4000}", "[1]", "0.5e-1x"]
)
def test_numbers_that_no_setting_takes(setting, number):
    assert setting in refusal(CONFIG, f"{setting}={number}")
