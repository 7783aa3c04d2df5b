"""Tables that programs put into a page, between `<!-- KIND: NAME -->` and `<!-- end -->`."""

import re
from collections.abc import Mapping


def places(page: str, kind: str) -> set[str]:
    return {match["name"] for match in _pattern(kind).finditer(page)}


def filled(page: str, kind: str, tables: Mapping[str, str]) -> str:
    return _pattern(kind).sub(
        lambda match: f"{match[1]}\n{tables[match['name']]}\n\n{match[3]}" if match["name"] in tables else match[0],
        page,
    )


def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {kind}: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
