"""Refuse to build a package without its modules and data; everything else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

for file in ("metrics/__init__.py", "pipeline/__init__.py", "demo/quickstart/qrels.tsv"):
    if not Path(__file__).with_name("rankledger").joinpath(file).is_file():
        sys.exit(
            f"rankledger/{file} not found behind a link: this checkout has no symbolic links; "
            "run `git config core.symlinks true`, then `git checkout -- rankledger` (see CONTRIBUTING.md)"
        )

setup()
