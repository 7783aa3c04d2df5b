"""`python -m tests.simulations [--write]`, or `make simulate`: the tables of docs/methods.md, from the code itself.

Each table stands in a page between `<!-- simulated: NAME -->` and `<!-- end -->`, NAME being a module of this folder.
"""

import argparse
import time
from importlib import import_module
from multiprocessing import Pool
from pathlib import Path

from tests.support.filled_pages import filled, places

DOCS = Path(__file__).parents[2] / "docs"


def _made(name: str) -> tuple[str, str, float]:
    began = time.process_time()
    return name, import_module(f"tests.simulations.{name}").table(), time.process_time() - began


def main() -> None:
    """Print the tables that the guides show; with --write, put them in their places."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/*.md")
    parser.add_argument("--only", metavar="NAME", help="simulate only this table")
    options = parser.parse_args()
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    named = {name for text in pages.values() for name in places(text, "simulated")}
    if options.only and options.only not in named:
        parser.error(f"{options.only}: no guide has a table of that name; the names are {', '.join(sorted(named))}")
    with Pool(2) as pool:
        tables = {}
        for name, table, seconds in pool.imap(_made, [options.only] if options.only else sorted(named)):
            tables[name] = table
            print(f"{name}, {seconds:.0f} s of CPU", table, "", sep="\n\n", flush=True)
    if options.write:
        for path, text in pages.items():
            if (changed := filled(text, "simulated", tables)) != text:
                path.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main()
