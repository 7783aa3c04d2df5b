"""YAML text as plain values with their line numbers.

Dates are texts, and numbers that YAML 1.1 reads in a surprising way are rejected: `017`, `1:30`, `2024_01`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml
from yaml.composer import Composer

from rankledger.pipeline.support.errors import shorten

KeyPath: TypeAlias = tuple[str | int, ...]
Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_AS_TEXT = {_TAG + "str", _TAG + "timestamp", _TAG + "value"}
_HALF = re.compile("[\ud800-\udfff]")  # by an escape such as "\udcff"; no file takes it
_PAIR = re.compile(r"\\u[dD][89abAB]")  # an escape that begins a pair, as JSON writes emoji; libyaml refuses it
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(_[0-9]{3})*(\.[0-9]*([eE][-+][0-9]+)?)?|[-+]?0[xb].*")
_OCTAL = re.compile(r"[-+]?0[0-9_]+")

MOST_NODES = 100_000
"""Maximum number of keys and values of all files of a config, with aliases and merges counted each time."""

_DEEPEST = 100  # collections in each other
_LARGE = 1 << 15  # characters, from which on libyaml reads a text: it takes 0.1 s for what the pure parser needs 1 s
_ALIKE = 5  # findings that say the same; more are one line
_MOST_LINES = 50  # of findings
_LONGEST_LINE, _HALF_LINE = 1000, 400  # characters of a message
_VALUE = re.compile(r"""'[^']{200,}'|"[^"]{200,}"|[^\s'"]{201,}""")  # in a message, too long to be shown

_SUPPORTED = {_TAG + kind for kind in ("int", "float", "bool", "null", "map", "seq")} | _AS_TEXT


@dataclass(frozen=True)
class Origin:
    """Place of a value."""

    file: str  # YAML file as the command or `extends` spelled it, or `override key.path`
    line: int | None  # From 1. None for an override or an argument.
    key: KeyPath = ()  # Key of an argument. Its name is then `file`.

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def directory(self) -> Path:
        """Folder in which relative paths start. The working directory for an override."""
        return Path() if self.line is None else Path(self.file).parent


def dotted(path: KeyPath) -> str:
    """Return a key's path as in errors and `--set`: `suites.search[2]`, `datasets."trec.8"`."""
    parts = []
    for key in path:
        if isinstance(key, int):
            parts.append(f"[{key}]")
        else:
            plain = key.isprintable() and re.fullmatch(r"""[^.="'\[\]\s]+""", key)
            parts.append("." + (key if plain else json.dumps(key, ensure_ascii=not key.isprintable())))
    return "".join(parts).removeprefix(".")


class Finding(NamedTuple):
    """A problem of a config and its place."""

    origin: Origin
    path: KeyPath  # Path of the key. Empty for the whole file.
    message: str  # problem and action

    def __str__(self) -> str:
        origin, key = str(self.origin), dotted(self.path)
        if origin.startswith("override ") and key.startswith(origin.removeprefix("override ")):
            origin, key = f"override {shorten(key)}", ""  # it names the key, or one that holds it
        if self.origin.key and self.path[: len(self.origin.key)] == self.origin.key:
            below = dotted(self.path[len(self.origin.key) :])
            origin, key = f"{self.origin.file}{'' if below[:1] in ('', '[') else '.'}{below}", ""
        message = _VALUE.sub(lambda match: shorten(match[0]), self.message)
        if len(message) > _LONGEST_LINE:  # it holds many long values
            message = f"{message[:_HALF_LINE]}…{message[-_HALF_LINE:]}"
        return ": ".join([origin, *([shorten(key)] if key else []), message])


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return distinct findings in the order of files and lines."""
    return sorted(dict.fromkeys(findings), key=lambda each: (each.origin.file, each.origin.line or 0))


def lines_of(findings: Iterable[Finding], *, n_further: int = 0) -> list[str]:
    """Return at most 50 lines of findings. Equal messages are one line with their number."""
    distinct = [*dict.fromkeys(findings)]
    n_alike = Counter(each.message for each in distinct)
    firsts = {each.message: each for each in reversed(distinct)}
    lines: list[str] = []
    for each in distinct:
        further = n_alike[each.message] - 1
        if further < _ALIKE:
            lines.append(str(each))
        elif each is firsts[each.message]:
            lines.append(f"{each} (and {further:,} more like it)")
    shown = lines[:_MOST_LINES]
    n_left = len(lines) - len(shown) + n_further
    return [*shown, f"and {n_left:,} more errors; fix these first"] if n_left else shown


@dataclass
class Budget:
    """Remaining number of keys and values of one config."""

    left: int = MOST_NODES


def parse(
    text: str, name: str, *, at: KeyPath = (), numbered: bool = True, budget: Budget | None = None
) -> tuple[Value, dict[KeyPath, Origin], list[Finding]]:
    """Read the one YAML document in a text. An empty text is None.

    Args:
        text: YAML.
        name: Name in origins and errors: the file, or `override key.path`.
        at: Key path of the whole value.
        numbered: True gives origins lines.
        budget: Remaining number of keys and values.

    Returns:
        The value, the origin of each value by its path, and the findings.
    """
    builder = _Builder(name, numbered, budget or Budget())
    try:
        node = _compose(text)
        value = None if node is None else builder.build(node, at, 1)
    except _RefusedError as refusal:
        line, message = refusal.args
        return None, {}, [Finding(builder.origin(line), (), message)]
    return value, builder.origins, builder.errors


class _RefusedError(Exception):
    """Line of a text that is rejected as a whole, and the reason."""


class _Composer(Composer):
    n_nodes = 0
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.n_nodes += 1
        self.depth += 1
        if self.n_nodes > MOST_NODES or self.depth > _DEEPEST + 1:  # what is in the innermost collection counts as well
            line = self.peek_event().start_mark.line + 1  # type: ignore[attr-defined]  # a parser's
            many = f"has more than {MOST_NODES:,} keys and values by here; shorten it"
            raise _RefusedError(line, many) if self.n_nodes > MOST_NODES else _too_deep(line)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Loader(_Composer, yaml.SafeLoader):
    """PyYAML's own parser."""


_Quick: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _QuickLoader(_Composer, _Quick):  # type: ignore[misc]
    def __init__(self, text: str) -> None:
        Composer.__init__(self)
        _Quick.__init__(self, text)


def _too_deep(line: int) -> _RefusedError:
    return _RefusedError(line, f"is nested more than {_DEEPEST} deep; shorten it")


def _compose(text: str) -> yaml.Node | None:
    try:
        yaml.reader.Reader(text)  # finds what is not printable, in characters; libyaml would count bytes
        loader = _Loader if len(text) < _LARGE or _PAIR.search(text) else _QuickLoader
        return loader(text).get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"the character {chr(error.character)!r} is not allowed in YAML; remove it"
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        message = f"is not valid YAML: {error.problem}"
        if error.context == "expected a single document in the stream":
            message = "a second document begins here (`---`); keep one per file"
    raise _RefusedError(line, message)


class _Builder:
    def __init__(self, name: str, numbered: bool, budget: Budget) -> None:
        self.origins: dict[KeyPath, Origin] = {}
        self.errors: list[Finding] = []
        self._budget = budget
        self._name = name
        self._numbered = numbered
        self._open: set[yaml.Node] = set()  # the collections being built: an alias to one of them would never end

    def origin(self, line: int) -> Origin:
        return Origin(self._name, line if self._numbered else None)

    def build(self, node: yaml.Node, path: KeyPath, line: int) -> Value:
        """Return the value of a node. `line` is the line of its key."""
        self._take(1, line)
        self.origins[path] = self.origin(line)
        if node.tag not in _SUPPORTED:
            self._refuse(node, path, f"the tag {_show_tag(node.tag)} is not supported; write a plain value")
        elif node in self._open:
            self._refuse(node, path, "an alias refers to the value that contains it; write the value out")
        elif isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        elif len(self._open) == _DEEPEST:
            raise _too_deep(line)
        else:
            self._open.add(node)
            items = enumerate(node.value)
            value: Value = (
                [self.build(item, (*path, position), item.start_mark.line + 1) for position, item in items]
                if isinstance(node, yaml.SequenceNode)
                else self._mapping(node, path)
            )
            self._open.remove(node)
            return value
        return None

    def _refuse(self, node: yaml.Node, path: KeyPath, message: str) -> None:
        self.errors.append(Finding(self.origin(node.start_mark.line + 1), path, message))

    def _take(self, n_nodes: int, line: int) -> None:
        self._budget.left -= n_nodes
        if self._budget.left < 0:
            message = f"holds more than {MOST_NODES:,} keys and values with aliases written out; shorten it"
            raise _RefusedError(line, message)

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Value:
        if node.tag in _AS_TEXT:
            text = _join_pairs(node.value)
            if _HALF.search(text):
                self._refuse(node, path, f"{text!r} is half of a surrogate pair; write the character")
            return text
        surprise = _surprise(node)
        value: Value = None
        try:
            value = yaml.constructor.SafeConstructor().construct_object(node)
            str(value)  # Python reads hexadecimal numbers of any length, but writes none of more than 4,300 digits
        except (yaml.YAMLError, ValueError, LookupError):
            self._refuse(node, path, f"{node.value!r} cannot be read as {_show_tag(node.tag)}; quote it")
        else:
            if surprise is not None:
                intended = f"{int(node.value.replace('_', ''))} or {value}" if surprise == " (octal)" else value
                message = f"found {node.value}, which YAML reads as {value}{surprise}; write {intended}"
                self._refuse(node, path, f"{message}, or quote it for a text: '{node.value}'")
        return value

    def _mapping(self, node: yaml.Node, path: KeyPath) -> dict[str, Value]:
        lines: dict[str, int] = {}
        nodes: dict[str, yaml.Node] = {}
        self._take(len(node.value), node.start_mark.line + 1)
        for key_node, value_node in node.value:
            key = _join_pairs(key_node.value) if isinstance(key_node, yaml.ScalarNode) else key_node.value
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag not in (*_AS_TEXT, _MERGE):
                self._refuse(key_node, path, _key_message(key_node))
            elif _HALF.search(key):
                self._refuse(key_node, path, f"the key {key!r} contains half of a surrogate pair; write another")
            elif key in nodes:
                self._refuse(key_node, path, f"duplicate key '{key}' (first on line {lines[key]}); keep one")
            else:
                lines[key], nodes[key] = key_node.start_mark.line + 1, value_node
        merge_node = nodes.pop("<<", None)
        brought = {} if merge_node is None else self._brought(merge_node, path)
        for key, value_node in nodes.items():  # no comprehension: its frames would count as calls within each other
            brought[key] = self.build(value_node, (*path, key), lines[key])
        return brought

    def _brought(self, node: yaml.Node, path: KeyPath) -> dict[str, Value]:
        """Return the values of `<<: *anchor` or `<<: [*a, *b]`. The first of several wins."""
        brought: dict[str, Value] = {}
        for source in reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(source, yaml.MappingNode):
                self._refuse(source, path, "`<<` takes a mapping or a list of mappings")
            elif isinstance(value := self.build(source, path, self.origins[path].line or 1), dict):
                brought |= value
        return brought


def _join_pairs(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if _HALF.search(text) else text


def _show_tag(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag


def _surprise(node: yaml.ScalarNode) -> str | None:
    """Return the surprising value that YAML 1.1 reads from a number. None if there is none."""
    if node.tag not in (_TAG + "int", _TAG + "float"):
        return None
    if ":" in node.value:
        return " (base 60)"
    if node.tag == _TAG + "int" and _OCTAL.fullmatch(node.value):
        return " (octal)"
    return "" if "_" in node.value and not _THOUSANDS.fullmatch(node.value) else None


def _key_message(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return "a key is text, not a list or a mapping; write a plain key"
    kind = _show_tag(node.tag).removeprefix("!!")
    return f"the key {node.value or 'null'} is not text (YAML reads it as {kind}); quote it: '{node.value}'"
