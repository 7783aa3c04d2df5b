"""What a name of another tool is here, and how the tables of names say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["RANKS", "UNCUT", "Alias", "Tool", "means", "refused", "several"]

RANKS = "5,10,15,20,30,100,200,500,1000"
UNCUT = "over all ranks; the MRR of MS MARCO is `rr@10`"


@dataclass(frozen=True)
class Alias:
    """What a name is here.

    Attributes:
        ours: our measures, none where the name is refused. `#` is the number in the name, `√#` its square root.
        said: why the name is refused, or where the tool's own definition differs; `@#` is the cutoff that was written.
        renamed: the tool's names of parameters to ours, where they differ.
    """

    ours: tuple[str, ...]
    said: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """The names of one tool, or of tools that share theirs.

    Attributes:
        title: what it is called.
        versions: those whose names these are.
        names: each name, as it is written there.
    """

    title: str
    versions: str
    names: Mapping[str, Alias]


def means(*ours: str, said: str = "", **renamed: str) -> Alias:
    """A name that is read as these measures."""
    return Alias(ours, said, renamed)


def refused(reason: str) -> Alias:
    """A name without an equivalent."""
    return Alias((), reason)


def several(names: str, alias: Alias) -> Mapping[str, Alias]:
    """Several names of one meaning."""
    return dict.fromkeys(names.split(), alias)
