"""Write tools/: what other tools give for the cases of tests/agreement.

Run as `python -m tests.golden.make_tools ranx recbole torchmetrics`, in an environment that has the tools beside what
the tests need; README.md says how to install them. The tests themselves ask: they run with the tool in place of its
file, and must pass.
"""

import importlib
import sys

import pytest

from tests.agreement.recorded_tool import EVIDENCE, FAIRNESS, LOGS, MTEB, PROGRAMS, RANX, RECBOLE, TORCHMETRICS

TOOLS = {tool.name: tool for tool in (EVIDENCE, FAIRNESS, LOGS, MTEB, PROGRAMS, RANX, RECBOLE, TORCHMETRICS)}
TESTS = {
    "evidence": ("evidence",),
    "fairness": ("fairness",),
    "logs": ("logged",),
    "mteb": ("mteb",),
    "programs": ("programs",),
    "ranx": ("ranx", "coming_from"),
    "recbole": ("recbole", "recommenders"),
    "torchmetrics": ("torchmetrics",),
}


def main(names: list[str]) -> None:
    for name in names:
        TOOLS[name].run(importlib.import_module(f"tests.golden.tools.{name}_functions"))
        if code := pytest.main(
            [*(f"tests/agreement/test_{test}.py" for test in TESTS[name]), "-p", "no:cacheprovider"]
        ):
            sys.exit(code)
        TOOLS[name].write()


if __name__ == "__main__":
    main(sys.argv[1:])
