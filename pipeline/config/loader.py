"""A config file with everything it extends, `--set`, environment variables and defaults.

- `extends` merges mappings key by key. A list replaces a list, and null removes a key.
- `${NAME}` and `${NAME:-default}` are variables, `$$` is a dollar. The text of a variable is never read as a number.
- `--set key.path=value` replaces one key. Nothing after `=` removes it.
- `defaults` are merged below each dataset and model. A file is replaced whole, and a dataset of one kind takes no
  defaults of another kind.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, cast

from rankledger.pipeline.config.yaml import Budget, Finding, KeyPath, Origin, Value, dotted, in_order, lines_of, parse
from rankledger.pipeline.support.errors import InputError, shorten

FILES = (  # the keys that hold paths
    *("judgments", "ratings", "queries", "documents", "interactions", "exclude", "outputs", "extra"),
)
KINDS = ("judgments", "ratings", "scores", "logs")  # a dataset has one of these keys
_OF_RANKINGS = ("subtopics", "exclude", "exclude_self", "seen")
_OF_FILES = (*_OF_RANKINGS, "relevant", "documents", "interactions", "suites", "duplicates")
IDLE = {"ratings": _OF_RANKINGS, "scores": _OF_FILES, "logs": _OF_FILES}  # by kind, the keys that have no effect
_MOST_BYTES = 10_000_000  # of a file
_SECRET = ("tracking", "notify")  # the sections whose variables may be secrets and are never kept
_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>(?:[^{}]|\{[^{}]*\})*))?\}|(?P<bad>\{))"
)
_SEGMENT = r"""(?:"[^"]*"|'[^']*'|[^."'=\[\]]+)"""
_ASSIGNMENT = re.compile(rf"({_SEGMENT}(?:\.{_SEGMENT}|\[\d+\])*)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Document:
    """Values of a config before validation."""

    data: dict[str, Value]  # values with variables and defaults
    raw: dict[str, Value]  # values as written, with `${NAME}` and without defaults
    origins: Mapping[KeyPath, Origin]  # origin of each value of `data`
    inherited: Mapping[KeyPath, KeyPath]  # paths of the values that a default filled in, with their paths in `defaults`
    expansions: Mapping[str, str]  # environment variables that `raw` needs to expand to `data`
    # positions in `raw` of targets of `notify` whose variables are not set or wrong
    unusable_targets: Mapping[int, Finding] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()  # values of the variables of `tracking` and `notify`

    def origin(self, path: KeyPath) -> Origin:
        """Return the origin of the value at a path, or of the innermost one around it."""
        return self.origins[self._find_innermost(path)]

    def value(self, path: KeyPath) -> Value:
        value: Value = self.data
        for key in path:
            if isinstance(value, dict):
                value = value.get(str(key))
            else:
                value = value[key] if isinstance(value, list) and isinstance(key, int) else None
        return value

    def refuse(self, findings: Iterable[tuple[KeyPath, str]], *, n_further: int = 0) -> None:
        """Raise InputError with a line for each finding, in order. Do nothing if there are none."""
        _raise(in_order(self.finding(path, message) for path, message in findings), n_further)

    def finding(self, path: KeyPath, message: str) -> Finding:
        """Return a finding with the origin of its key, or of the default that filled it in."""
        written = self._find_innermost(path)
        return Finding(self.origins[written], self.inherited.get(written, written), message)

    def without_targets(self, findings: Iterable[Finding]) -> Document | None:
        """Return the document without targets of `notify` whose variables cause findings. None if it has none.

        A target that cannot be used costs no evaluation.
        """
        written = self.raw.get("notify")
        n_written = len(written) if isinstance(written, list) else 0
        positions = [position for position in range(n_written) if position not in self.unusable_targets]
        unusable: dict[int, Finding] = {}
        for finding in findings:
            section, *keys = finding.path
            if section == "notify" and keys and isinstance(keys[0], int):
                path = ("notify", positions[keys[0]], *keys[1:])
                value = reduce(getitem, path, cast("Any", self.raw))
                if isinstance(value, str) and _VARIABLE.search(value):
                    unusable.setdefault(positions[keys[0]], finding._replace(path=path))
        if not unusable:
            return None
        usable = [index for index, position in enumerate(positions) if position not in unusable]
        targets = cast("list[Value]", self.data["notify"])
        origins = {path: origin for path, origin in self.origins.items() if path[:1] != ("notify",) or len(path) == 1}
        origins |= {
            ("notify", usable.index(path[1]), *path[2:]): origin
            for path, origin in self.origins.items()
            if len(path) > 1 and path[0] == "notify" and path[1] in usable
        }
        data = {**self.data, "notify": [targets[index] for index in usable]}
        return replace(self, data=data, origins=origins, unusable_targets={**self.unusable_targets, **unusable})

    def _find_innermost(self, path: KeyPath) -> KeyPath:
        while path not in self.origins:
            path = path[:-1]
        return path


@dataclass
class _Layer:
    data: dict[str, Value] = field(default_factory=dict)
    origins: dict[KeyPath, Origin] = field(default_factory=dict)

    def under(self, over: _Layer) -> _Layer:
        return _Layer(merge(self.data, over.data), self.origins | over.origins)


def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    secrets: Mapping[str, str] | None = None,
) -> Document:
    """Read a YAML file, what it extends, overrides and environment variables.

    Args:
        path: File, spelled in errors as given.
        overrides: `key.path=value` texts, later ones on top.
        environ: Variables that `${NAME}` may name.
        secrets: Variables for `tracking` and `notify`. None for `environ`.

    Raises:
        InputError: All findings at once, one line each.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"config: found a {type(path).__name__}; give the path of a YAML file")
    reader = _Reader()
    layer = reader.read(Path(path), ())
    _raise(reader.errors)
    return _document(layer, overrides, environ, secrets, reader.budget)


def given(data: Mapping[str, Value], arguments: Mapping[KeyPath, str], settings: Mapping[str, Value]) -> Document:
    """Return the config of a function's arguments, with settings on top. Errors name the arguments."""
    merged = merge(data, settings)
    origins = {path: Origin("evaluate", None) for path in _places(merged, ())}
    origins |= {path: Origin("settings", None) for path in _places(dict(settings), ()) if path in origins and path}
    for key, name in arguments.items():
        origins |= {path: Origin(name, None, key) for path in origins if path[: len(key)] == key}
    return _document(_Layer(_escape_dollars(merged), origins), (), os.environ, None, Budget())


def _escape_dollars(value: Any) -> Any:
    """Double every dollar, so that none names a variable."""
    if isinstance(value, dict):
        return {key: _escape_dollars(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_escape_dollars(entry) for entry in value]
    return value.replace("$", "$$") if isinstance(value, str) else value


def _document(
    layer: _Layer,
    overrides: Sequence[str],
    environ: Mapping[str, str],
    secrets: Mapping[str, str] | None,
    budget: Budget,
) -> Document:
    if isinstance(overrides, str):  # whose letters would be taken for overrides
        raise InputError(f"overrides: found the text {shorten(repr(overrides))}; write a list of such texts")
    errors: list[Finding] = []
    for text in overrides:
        layer = _override(layer, text, budget, errors)
    expander = _Expander(environ, environ if secrets is None else secrets, layer.origins, errors)
    data = {key: expander.expand(value, (key,)) for key, value in layer.data.items()}
    _raise(errors)
    origins = {place: layer.origins[place] for place in _places(data, ())}
    filled, inherited = _with_defaults(data)
    origins |= {place: origins[default] for place, default in inherited.items()}
    document = Document(filled, layer.data, origins, inherited, expander.used, secrets=frozenset(expander.secrets))
    return document.without_targets(expander.unusable) or document


def merge(base: Mapping[str, Value], over: Mapping[str, Value]) -> dict[str, Value]:
    """Return `over` on top of `base`, mappings merged key by key. None removes a key of `base`."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if value is None and key in merged:
            del merged[key]
        elif isinstance(value, dict) and isinstance(below, dict):
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def _with_defaults(data: dict[str, Value]) -> tuple[dict[str, Value], dict[KeyPath, KeyPath]]:
    filled = dict(data)
    inherited: dict[KeyPath, KeyPath] = {}
    defaults = data.get("defaults")
    for section, kind in (("datasets", "dataset"), ("models", "model")):
        entries = data.get(section)
        default = defaults.get(kind) if isinstance(defaults, dict) else None
        if not (isinstance(entries, dict) and isinstance(default, dict)):
            continue
        under = {name: _merge_default(default, entry) for name, entry in entries.items()}
        filled[section] = under
        written = set(_places(entries, (section,)))
        new = [path for path in _places(under, (section,)) if path not in written]
        inherited |= {path: ("defaults", kind, *path[2:]) for path in new}
    return filled, inherited


def _merge_default(default: dict[str, Value], entry: Value) -> Value:
    if not (entry is None or isinstance(entry, dict)):
        return entry
    written = entry or {}
    named = [kind for kind in KINDS if written.get(kind) is not None]
    ruled_out = {key for kind in named for key in (*KINDS, *IDLE.get(kind, ())) if key != kind}
    allowed = {
        key: value
        for key, value in default.items()
        if not (key in FILES and key in written and (_is_file(value) or _is_file(written[key])))
        and key not in ruled_out
    }
    return merge(allowed, written)


def _is_file(value: Value) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and "path" in value)


def _places(value: Value, path: KeyPath) -> Iterator[KeyPath]:
    queue = [(value, path)]
    while queue:
        value, path = queue.pop()
        yield path
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        queue += [(below, (*path, key)) for key, below in items]


def _raise(findings: Iterable[Finding], n_further: int = 0) -> None:
    if lines := lines_of(findings, n_further=n_further):
        raise InputError(*lines)


class _Reader:
    def __init__(self) -> None:
        self.errors: list[Finding] = []
        self.budget = Budget()
        self._layers: dict[str, _Layer] = {}

    def read(self, path: Path, chain: tuple[Path, ...]) -> _Layer:
        """Return one file on top of the files that it extends. `chain` has the files that led here."""
        try:
            text = _read_text(path)
        except InputError as error:
            self.errors.append(Finding(Origin(str(path), None), (), str(error)))
            return _Layer()
        value, origins, findings = parse(text, str(path), budget=self.budget)
        self.errors += findings
        if isinstance(value, dict):
            return self._extend(_Layer(value, origins), path, (*chain, path))
        if not findings:
            kind = "nothing" if value is None else "a list" if isinstance(value, list) else "a single value"
            message = f"{kind} found; write `key: value` lines, beginning with `name:`"
            self.errors.append(Finding(Origin(str(path), 1), (), message))
        return _Layer()

    def _extend(self, layer: _Layer, path: Path, chain: tuple[Path, ...]) -> _Layer:
        names = layer.data.pop("extends", None)
        origin = layer.origins.pop(("extends",), layer.origins[()])
        named = names if isinstance(names, list) else [] if names is None else [names]
        below = _Layer()
        for name in named:
            below = below.under(self._parent(name, path, chain, origin))
        return below.under(layer)

    def _parent(self, name: Value, path: Path, chain: tuple[Path, ...], origin: Origin) -> _Layer:
        if not (isinstance(name, str) and name and "\0" not in name):
            return self._refuse(origin, f"takes a file's path or a list of them; found {name!r}")
        parent = path.parent / name
        place = os.path.realpath(parent)
        if place in map(os.path.realpath, chain):
            circle = " -> ".join(str(file) for file in (*chain, parent))
            return self._refuse(origin, f"extends itself: {circle}; remove one of them")
        if place not in self._layers:
            if os.path.lexists(parent):
                self._layers[place] = self.read(parent, chain)
            else:  # said at the line that names it
                self._layers[place] = self._refuse(origin, f"file not found: '{parent}'; check the path")
        return self._layers[place]

    def _refuse(self, origin: Origin, message: str) -> _Layer:
        self.errors.append(Finding(origin, ("extends",), message))
        return _Layer()


def _read_text(path: Path) -> str:
    if "\0" in str(path):
        raise InputError("a path cannot hold a zero byte; check the path")
    try:
        state = path.stat()  # a device or a FIFO may act, or wait for ever, once it is opened
        if not stat.S_ISREG(state.st_mode):
            raise InputError("is a folder, device, pipe or socket; name a regular file")
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)  # some files say that they are empty, as those of /proc
        if len(content) > _MOST_BYTES:
            raise InputError(f"is larger than {_MOST_BYTES // 1_000_000} MB; check the path")
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("file not found; check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (at byte {error.start}); save it as UTF-8") from None


class _Expander:
    def __init__(
        self,
        environ: Mapping[str, str],
        secrets: Mapping[str, str],
        origins: Mapping[KeyPath, Origin],
        errors: list[Finding],
    ) -> None:
        self.used: dict[str, str] = {}
        self.secrets: set[str] = set()
        self.unusable: list[Finding] = []  # of targets of `notify`
        self._environ = environ
        self._secrets = secrets
        self._origins = origins
        self._errors = errors

    def expand(self, value: Value, path: KeyPath) -> Value:
        if isinstance(value, dict):
            return {key: self.expand(below, (*path, key)) for key, below in value.items()}
        if isinstance(value, list):
            return [self.expand(below, (*path, position)) for position, below in enumerate(value)]
        return self._text(value, path) if isinstance(value, str) else value

    def _text(self, text: str, path: KeyPath) -> str:
        return _VARIABLE.sub(lambda match: self._variable(match, path), text)

    def _variable(self, match: re.Match[str], path: KeyPath) -> str:
        name, default = match["name"], match["default"]
        if match["dollar"]:
            return "$"
        if match["bad"]:
            return self._refuse(path, "invalid `${`; write ${NAME} or ${NAME:-default}, or $${ for the text itself")
        is_secret = path[0] in _SECRET
        value = (self._secrets if is_secret else self._environ).get(name)
        if value is not None:
            self.secrets.add(value) if is_secret else self.used.update({name: value})
        if value or (value is not None and default is None):
            return value
        if default is not None:
            return self._text(default, path)
        if name in os.environ:
            problem = f"${{{name}}} is not in the record, whose config reads no variable of this machine"
            return self._refuse(path, f"{problem}. Set this key with --set, or use --tracking-uri.")
        problem = f"${{{name}}} is not set in the environment; set it, or write ${{{name}:-default}}"
        if path[0] == "notify" and len(path) > 1 and isinstance(path[1], int):
            self.unusable.append(Finding(self._origins[path], path, problem))
            return ""
        return self._refuse(path, problem)

    def _refuse(self, path: KeyPath, message: str) -> str:
        self._errors.append(Finding(self._origins[path], path, message))
        return ""


def _override(layer: _Layer, text: str, budget: Budget, errors: list[Finding]) -> _Layer:
    assignment = _ASSIGNMENT.fullmatch(text)
    name = f"override {shorten(assignment[1] if assignment else text.partition('=')[0])}"  # the value may be a secret
    try:
        if assignment is None:
            raise ValueError('is not key.path=value (quote a name that contains dots: "trec.8")')
        path = _path(layer.data, [key.strip("\"'") for key in re.findall(_SEGMENT, assignment[1])])
    except ValueError as error:
        errors.append(Finding(Origin(name, None), (), str(error)))
        return layer
    value, origins, findings = parse(assignment[2], name, at=path, numbered=False, budget=budget)
    errors += findings
    above = {path[:depth]: Origin(name, None) for depth in range(1, len(path) + 1)}
    data = cast("dict[str, Value]", _put(layer.data, path, value))  # a path is never empty
    return _Layer(data, above | layer.origins | origins)


def _path(data: Value, keys: Sequence[str]) -> KeyPath:
    if keys[0] == "extends":
        raise ValueError("`extends` cannot be overridden; write a file that extends both")
    path: KeyPath = ()
    for key in keys:
        if isinstance(data, list):
            if not (re.fullmatch("[0-9]{1,9}", key) and int(key) < len(data)):
                items = f"{dotted(path)} has the items 0 to {len(data) - 1}, found '{key}'"
                raise ValueError(f"{items}; write one of them, or set the whole list")
            path, data = (*path, int(key)), data[int(key)]
        elif isinstance(data, dict) or data is None:
            path, data = (*path, key), (data or {}).get(key)
        else:
            raise ValueError(f"{dotted(path)} is a plain value without keys; set the value itself")
    return path


def _put(container: Value, path: KeyPath, value: Value) -> Value:
    """Return `container` with `value` at `path`. None removes the key."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(container, list) and isinstance(key, int):
        return [*container[:key], _put(container[key], rest, value), *container[key + 1 :]]
    entries = dict(container) if isinstance(container, dict) else {}
    below = _put(entries.get(str(key)), rest, value)
    if below is None and key in entries:
        del entries[str(key)]
    else:
        entries[str(key)] = below
    return entries
