"""Write tools/: what other tools give for the cases of tests/agreement."""

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
