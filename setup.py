"""Package without dead links in its readme. Refuse to build without modules and data. See also pyproject.toml."""

import re
import sys
from pathlib import Path

from setuptools import setup

for file in ("metrics/__init__.py", "pipeline/__init__.py", "demo/quickstart/qrels.tsv"):
    if not Path(__file__).with_name("rankledger").joinpath(file).is_file():
        sys.exit(
            f"rankledger/{file} not found behind a link: this checkout has no symbolic links; "
            "run `git config core.symlinks true`, then `git checkout -- rankledger` (see CONTRIBUTING.md)"
        )

readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
readme = re.sub(r"!\[[^]]*\]\([^)]*\)\n\n", "", readme)  # pictures and guides are only in a checkout
readme = re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", readme)

setup(long_description=readme, long_description_content_type="text/markdown")
