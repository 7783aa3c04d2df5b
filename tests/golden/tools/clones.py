"""Modules of programs that no registry has, or whose packages import what their formulas do not need."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["CLONES", "bare"]

CLONES = Path(os.environ["GOLDEN_CLONES"])


def bare(*packages: str, clone: str = "") -> None:
    for package in packages:
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(CLONES / clone / package.replace(".", "/"))]
