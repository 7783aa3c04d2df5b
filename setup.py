"""Refuse to build a package without its modules; everything else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

for name in ("metrics", "pipeline"):
    if not Path(__file__).with_name("rankledger").joinpath(name, "__init__.py").is_file():
        sys.exit(
            f"rankledger/{name} is not a link to ../{name}: this checkout has no symbolic links; "
            "run `git config core.symlinks true`, then `git checkout -- rankledger` (see CONTRIBUTING.md)"
        )

setup()
