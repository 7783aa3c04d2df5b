"""References and paths in a config.

A reference, `(ID | PATH | last | last_passed | previous | accepted | mlflow:RUN_ID)[#model]`, is a record and a model
of it. `self@` before it is the same model. A template is text with `{word}`.
"""

from __future__ import annotations

import copy
import glob
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from string import Formatter
from typing import Literal

from rankledger.pipeline.config.gates import Reference
from rankledger.pipeline.config.loader import FILES, Document
from rankledger.pipeline.config.messages import suggestion
from rankledger.pipeline.config.sources import BEIR_TABLES
from rankledger.pipeline.config.yaml import KeyPath, Value
from rankledger.pipeline.support.errors import InputError

_SELF = "self@"
WORDS = ("last", "last_passed", "previous", "accepted")
"""The words that refer to a record of an evaluation."""

MLFLOW = "mlflow:"
"""The prefix of a reference to an MLflow run."""
_RECORD = re.compile(r"\d{8}T\d{6}Z-[A-Za-z0-9._-]+-[0-9a-f]{8}|mlflow:[A-Za-z0-9]+", re.ASCII)


def parse_reference(text: str, models: Collection[str], words: Sequence[str] = WORDS) -> Reference:
    """Return the reference that a text writes. Raise InputError if it writes none.

    `words` are the ones that the message on an unknown reference lists.
    """
    if text in models:
        return Reference(text, None, text)
    prefix, record, model = split_reference(text)
    if prefix and (model or record in models):
        other = f"{record}{model}"
        raise InputError(f"{text!r} names the same model and another one; write {other!r} or {prefix + 'accepted'!r}")
    if model == "#" or not record:
        raise InputError(f"{text!r} lacks a record or a model; write it as in accepted#bm25")
    if not (record in WORDS or _RECORD.fullmatch(record) or is_path(record)):
        hint = suggestion(record, [*words, *models])
        raise InputError(f"{record!r} is not a model, an evaluation id or a path (with a slash){hint}")
    return Reference(text, record, model.removeprefix("#") or None)


def split_reference(text: str) -> tuple[str, str, str]:
    """Return `self@` or nothing, the record, and `#model` or nothing."""
    prefix = _SELF if text.startswith(_SELF) else ""
    record, mark, model = text.removeprefix(prefix).rpartition("#")
    return (prefix, record, f"{mark}{model}") if mark else (prefix, model, "")


def is_path(record: str) -> bool:
    """Return whether a reference is a path. A path has a slash, an id has none."""
    return "/" in record


_RECORDS: KeyPath = ("records",)
_CACHE: KeyPath = ("execution", "cache")
_FOUND = "\0"  # stands for the name that is searched for in a pattern; no name can hold it


def fill(template: str, words: Mapping[str, str | None]) -> str:
    """Return `template` with every `{word}` replaced. Raise ValueError if one is unknown or None."""
    parts = []
    try:
        fields = list(Formatter().parse(template))
    except ValueError:
        raise ValueError(f"{template!r} has a single brace; write {{{{ or }}}} to mean it literally") from None
    for literal, name, spec, conversion in fields:
        parts.append(literal)
        if name is None:
            continue
        if name not in words or spec or conversion:
            available = ", ".join(f"{{{word}}}" for word in words)
            raise ValueError(f"{template!r} has an unknown placeholder {{{name}}}; available: {available}")
        value = words[name]
        if value is None:
            raise ValueError(f"{template!r} needs a date; pass --date YYYY-MM-DD")
        parts.append(value)
    return "".join(parts)


def has_placeholder(template: str, word: str) -> bool:
    """Return whether a template has a placeholder."""
    try:
        return any(name == word for _, name, _, _ in Formatter().parse(template))
    except ValueError:
        return False


def is_url(path: str) -> bool:
    """Return whether a path names a filesystem other than the local one."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path) is not None


def absolute(path: str, directory: Path) -> str:
    """Return an absolute local path. A URL is unchanged."""
    return path if is_url(path) else os.path.normpath(Path.cwd() / directory / path)


def search(
    template: str, words: Mapping[str, str | None], directory: Path, word: Literal["model", "replicate"] = "model"
) -> Iterator[tuple[str, str]]:
    """Yield name and file of each model, or replicate, whose output exists.

    Args:
        template: Local path with the placeholder. `*`, `?` and `[…]` match within a name.
        words: Words for the other placeholders.
        directory: Start of a relative path.
        word: Placeholder to search for.

    Raises:
        ValueError: The template is wrong.
    """
    if is_url(template):
        key_hint = " under `replicates`" if word == "replicate" else ""
        raise ValueError(f"{word}s are searched for in local folders only; list them by name{key_hint}")
    literal = {key: value and glob.escape(value) for key, value in words.items()}
    pattern = os.path.normpath(fill(template, {**literal, "replicate": "*", word: _FOUND}))
    if _FOUND not in pattern:
        raise ValueError(f"{template!r} has no {{{word}}} to find {word}s by; write it in place of the name")
    shape = re.compile(_regex(pattern))
    files = glob.glob(pattern.replace(_FOUND, "*"), root_dir=directory)  # noqa: PTH207 (Path.glob takes no absolute ones)
    for file in sorted(files):
        if match := shape.fullmatch(file):
            yield match["name"], absolute(file, directory)


def tables_of_folder(folder: str, roles: Collection[str] | None = None) -> dict[str, str]:
    """Return the tables of queries and documents in a local folder of BEIR by role. Look only if `roles` is None."""
    if is_url(folder):
        return {}
    paths = {role: os.path.join(folder, name) for role, name in BEIR_TABLES.items()}  # noqa: PTH118
    if roles is not None:
        return {role: path for role, path in paths.items() if role in roles}
    with suppress(OSError, ValueError):  # such as a name that is too long
        return {role: path for role, path in paths.items() if Path(folder, "qrels").is_dir() and Path(path).is_file()}
    return {}


def _regex(pattern: str) -> str:
    parts: list[str] = []
    for token in re.split(r"(\[[^]]+\]|[*?\0])", pattern):
        if token == _FOUND:
            parts.append("(?P=name)" if "(?P<name>[^/]+)" in parts else "(?P<name>[^/]+)")
        elif token in ("*", "?"):
            parts.append("[^/]" + token.replace("?", ""))
        elif len(token) > 3 and token.startswith("["):
            parts.append(re.sub(r"^\[!", "[^", token.replace("\\", "\\\\")))
        else:
            parts.append(re.escape(token[1] if re.fullmatch(r"\[.\]", token) else token))
    return "".join(parts)


def relocate(document: Document, directory: Path) -> dict[str, Value]:
    """Return the config as written, with relative paths for a copy in `directory`. `${NAME}` is kept."""
    raw = copy.deepcopy(document.raw)
    for holder, key, path in _path_values(raw):
        text, value = holder[key], document.value(path)
        if isinstance(text, str) and isinstance(value, str) and _is_relative(value):
            start = os.path.relpath(document.origin(path).directory, directory)
            if path not in (_RECORDS, _CACHE):  # the others are templates
                start = start.replace("{", "{{").replace("}", "}}")
            holder[key] = _join_path(start, text)
    metrics = _mapping(raw.get("metrics"))
    if metrics:
        from rankledger.pipeline.support.own_code import code_file  # here, because few configs name code
    for name in metrics:
        value, directory_of = document.value(("metrics", name)), document.origin(("metrics", name)).directory
        if isinstance(value, str) and (file := code_file(value, directory_of)):
            moved = str(file) if Path(value).is_absolute() else os.path.relpath(file, directory)
            metrics[name] = f"{moved}:{value.rpartition(':')[2]}".replace("$", "$$")
    gates = raw.get("gates")
    for position, gate in enumerate(gates if isinstance(gates, list) else ()):
        holder, path = _mapping(gate), ("gates", position, "against")
        text, value = holder.get("against"), document.value(path)
        if isinstance(text, str) and isinstance(value, str) and value not in _mapping(document.data.get("models")):
            prefix, record, model = split_reference(text)
            if is_path(record_path := split_reference(value)[1]) and _is_relative(record_path):
                start = os.path.relpath(document.origin(path).directory, directory)
                moved = _join_path(start, record)
                holder["against"] = f"{prefix}{moved if is_path(moved) else f'./{moved}'}{model}"
    return raw


def paths_of(data: dict[str, Value]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the key path of each path and URL in a valid config."""
    for holder, key, path in _path_values(data):
        if isinstance(text := holder[key], str):
            yield path, text


def _is_relative(path: str) -> bool:
    return not (is_url(path) or Path(path).is_absolute())


def _join_path(start: str, text: str) -> str:
    joined = f"{start.replace('$', '$$')}/{text}"
    return joined if "$" in text else os.path.normpath(joined)


def _path_values(raw: dict[str, Value]) -> Iterator[tuple[dict[str, Value], str, KeyPath]]:
    if raw.get("records"):
        yield raw, "records", _RECORDS
    if isinstance(_mapping(raw.get("execution")).get("cache"), str):
        yield _mapping(raw["execution"]), "cache", _CACHE
    for section in ("defaults", "datasets", "models"):
        for name, entry in _mapping(raw.get(section)).items():
            for key in _mapping(entry).keys() & set(FILES):
                yield from _find_paths(_mapping(entry), key, (section, name, key))


def _find_paths(holder: dict[str, Value], key: str, path: KeyPath) -> Iterator[tuple[dict[str, Value], str, KeyPath]]:
    value = holder[key]
    if isinstance(value, str):
        yield holder, key, path
    elif "path" in _mapping(value):
        yield _mapping(value), "path", (*path, "path")
    else:  # outputs by dataset
        for dataset in _mapping(value):
            yield from _find_paths(_mapping(value), dataset, (*path, dataset))


def _mapping(value: Value) -> dict[str, Value]:
    return value if isinstance(value, dict) else {}
