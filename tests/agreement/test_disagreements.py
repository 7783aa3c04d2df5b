"""disagreements.md: each block gives what is shown, if its tool is installed here, at the version it names."""

import doctest
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).with_name("disagreements.md").read_text(encoding="utf-8")
HEAD, *SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
TITLES = [section.partition("\n")[0] for section in SECTIONS]


def run(text: str, names: dict[str, Any]) -> None:
    for code in re.findall(r"^```pycon\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        example = doctest.DocTestParser().get_doctest(code, names, code, None, 0)
        runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS)
        try:
            runner.run(example, clear_globs=False)
        except doctest.DocTestFailure as failure:
            pytest.fail(f"{failure.example.source}shown {failure.example.want}given {failure.got}")
        names.update(example.globs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", SECTIONS, ids=TITLES)
def test_a_section_gives_what_it_shows(section):
    names: dict[str, Any] = {}
    own, *tools = re.split(r"^### ", section, flags=re.MULTILINE)
    run(HEAD, names)
    run(own, names)
    for tool in tools:
        name, release, *by_hand = tool.partition("\n")[0].split(" ", 2)
        if not by_hand:
            assert version(name) == release
            run(tool, names)


def test_every_tool_is_pinned():
    tools = [tool for section in SECTIONS for tool in re.split(r"^### ", section, flags=re.MULTILINE)[1:]]

    assert len(tools) > 20
    for tool in tools:
        assert re.match(r"[\w -]+ \d[\d.]*( \(by hand\))?\n", tool), tool.partition("\n")[0]
        (code,) = re.findall(r"^```\w+\n(.*?)^```$", tool, re.DOTALL | re.MULTILINE)
        typed = re.findall(r"^(?:>>>|\.\.\.) ", code, re.MULTILINE) or code.splitlines()
        assert len(typed) <= 10, tool.partition("\n")[0]
