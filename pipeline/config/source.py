"""One YAML text to plain values, each with the line it came from.

Every scalar is read as YAML's safe loader reads it, except that a date stays the text it was written as. Keys are text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from pipeline.errors import InputError

__all__ = ["KeyPath", "Origin", "Value", "dotted", "finding", "parse"]

KeyPath: TypeAlias = tuple[str | int, ...]
Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_AS_TEXT = {_TAG + "str", _TAG + "timestamp", _TAG + "value"}
_HALF = re.compile("[\ud800-\udfff]")  # by an escape such as "\udcff"; no file takes it
_SUPPORTED = {_TAG + kind for kind in ("int", "float", "bool", "null", "map", "seq")} | _AS_TEXT


@dataclass(frozen=True)
class Origin:
    """Where a value was written."""

    file: str
    """The YAML file, spelled as the command or `extends` spelled it; or `--set key.path`."""

    line: int | None
    """1-based; None for `--set`."""

    def __str__(self) -> str:
        """As errors begin: `configs/nightly.yaml:14`."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def directory(self) -> Path:
        """Where relative paths start: the file's folder; for `--set` the working directory."""
        return Path() if self.line is None else Path(self.file).parent


def dotted(path: KeyPath) -> str:
    """A key's path as errors show it and `--set` reads it: `suites.search[2]`, `datasets."trec.8"`."""
    parts = []
    for key in path:
        if isinstance(key, int):
            parts.append(f"[{key}]")
        else:
            plain = key.isprintable() and re.fullmatch(r"""[^.="'\[\]\s]+""", key)
            parts.append("." + (key if plain else json.dumps(key, ensure_ascii=not key.isprintable())))
    return "".join(parts).removeprefix(".")


def finding(origin: Origin, path: KeyPath, message: str) -> str:
    """An error's one line: where, the key's path, what was found and what to do."""
    told = not path or str(origin).endswith(f"--set {dotted(path)}")
    return f"{origin}: {message}" if told else f"{origin}: {dotted(path)}: {message}"


def parse(
    text: str, name: str, *, at: KeyPath = (), numbered: bool = True
) -> tuple[Value, dict[KeyPath, Origin], list[str]]:
    """The one YAML document in `text`.

    Args:
        text: YAML; nothing at all is None.
        name: what origins and errors name: the file, or `--set key.path`.
        at: the key path of the whole value.
        numbered: whether origins have lines.

    Returns:
        The value, the origin of each value by its path, and the errors found, one line each.
    """
    builder = _Builder(name, numbered)
    try:
        node = _compose(text, builder)
        value = None if node is None else builder.build(node, at, 1)
    except InputError as error:
        return None, {}, [str(error)]
    return value, builder.origins, builder.errors


def _compose(text: str, builder: _Builder) -> yaml.Node | None:
    try:
        return yaml.SafeLoader(text).get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"the character {chr(error.character)!r} is not allowed in YAML; remove it"
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        message = f"is not valid YAML: {error.problem}"
        if error.context == "expected a single document in the stream":
            message = "a second document begins here (`---`); keep one per file"
    except RecursionError:
        line, message = 1, "is nested too deeply"
    raise InputError(f"{builder.origin(line)}: {message}")


class _Builder:
    """Turns YAML nodes into plain values, and keeps where each stands and what is wrong with it."""

    def __init__(self, name: str, numbered: bool) -> None:
        self.origins: dict[KeyPath, Origin] = {}
        self.errors: list[str] = []
        self._name = name
        self._numbered = numbered
        self._open: set[int] = set()  # ids of the collections being built: an alias to one of them would never end

    def origin(self, line: int) -> Origin:
        return Origin(self._name, line if self._numbered else None)

    def build(self, node: yaml.Node, path: KeyPath, line: int) -> Value:
        """The value of `node`; `line` is its key's line, where it has a key."""
        self.origins[path] = self.origin(line)
        if node.tag not in _SUPPORTED:
            self._refuse(node, path, f"the tag {_shown(node.tag)} is not supported; write a plain value")
        elif id(node) in self._open:
            self._refuse(node, path, "an alias stands inside its own anchor; spell the value out")
        elif isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        else:
            self._open.add(id(node))
            value = self._collection(node, path)
            self._open.remove(id(node))
            return value
        return None

    def _refuse(self, node: yaml.Node, path: KeyPath, message: str) -> None:
        self.errors.append(finding(self.origin(node.start_mark.line + 1), path, message))

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Value:
        if node.tag in _AS_TEXT:
            if _HALF.search(node.value):
                self._refuse(node, path, f"{node.value!r} holds half of a surrogate pair; write the character itself")
            return str(node.value)
        value: Value = None
        try:
            value = yaml.constructor.SafeConstructor().construct_object(node)
            str(value)  # Python reads hexadecimal numbers of any length, but writes none of more than 4,300 digits
        except (yaml.YAMLError, ValueError, LookupError):
            self._refuse(node, path, f"{node.value!r} cannot be read as {_shown(node.tag)}; quote it")
        return value

    def _collection(self, node: yaml.Node, path: KeyPath) -> Value:
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return [self.build(item, (*path, position), item.start_mark.line + 1) for position, item in items]
        return self._mapping(node, path)

    def _mapping(self, node: yaml.Node, path: KeyPath) -> dict[str, Value]:
        """The mapping's own entries on top of those that `<<` brings in."""
        lines: dict[str, int] = {}
        own: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if key_node.tag not in (*_AS_TEXT, _MERGE):
                self._refuse(key_node, path, _key_message(key_node))
            elif _HALF.search(key):
                self._refuse(key_node, path, f"the key {key!r} holds half of a surrogate pair; write another")
            elif key in own:
                self._refuse(key_node, path, f"the key '{key}' is there twice (first on line {lines[key]}); keep one")
            else:
                lines[key], own[key] = key_node.start_mark.line + 1, value_node
        merge_node = own.pop("<<", None)
        brought = {} if merge_node is None else self._brought(merge_node, path)
        return brought | {key: self.build(value_node, (*path, key), lines[key]) for key, value_node in own.items()}

    def _brought(self, node: yaml.Node, path: KeyPath) -> dict[str, Value]:
        """What `<<: *anchor` or `<<: [*a, *b]` brings in, the first of several winning."""
        brought: dict[str, Value] = {}
        for source in reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(source, yaml.MappingNode):
                self._refuse(source, path, "`<<` takes a mapping or a list of mappings")
            elif isinstance(value := self.build(source, path, self.origins[path].line or 1), dict):
                brought |= value
        return brought


def _shown(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag


def _key_message(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return "a key is text, not a list or a mapping; write a plain key"
    kind = _shown(node.tag).removeprefix("!!")
    return f"the key {node.value or 'null'} is not text (YAML reads it as {kind}); quote it: '{node.value}'"
