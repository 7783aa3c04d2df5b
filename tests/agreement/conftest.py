"""Each test of this folder compares what docs/agreement.csv says that it does; `make agreement` writes that file."""

import os
from collections.abc import Generator

import pytest

from tests.agreement.table import Row, read, take, write

_WRITTEN: list[Row] | None = [] if "RANKLEDGER_AGREEMENT" in os.environ else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    take("", "")
    result = yield
    module, name = item.path.name, item.name
    found = take(f"{module}::{name}", getattr(item.module, "TOOL", ""))
    assert all(row.tool for row in found), f"{module}: name the tool and its version, as in TOOL = 'ranx 0.3.21'"
    if _WRITTEN is None:
        expected = [row for row in read() if row.test == f"{module}::{name}"]
        changed = {row[:-1] for row in found} ^ {row[:-1] for row in expected}
        assert not changed, f"docs/agreement.csv is not up to date; run `make agreement`: {sorted(changed)}"
    else:
        _WRITTEN.extend(found)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _WRITTEN is not None and not session.testsfailed:
        ran = {item.path.name for item in session.items}
        write([*(row for row in read() if row.test.partition("::")[0] not in ran), *_WRITTEN])
