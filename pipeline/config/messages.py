"""Messages on wrong values and keys of a config."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from itertools import accumulate
from operator import getitem
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from rankledger.metrics.aliases import translate
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.config.yaml import KeyPath, Value
from rankledger.pipeline.support.errors import likely

# Our keys, and other tools' words for them; which key is meant depends on where the word stands.
_OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    "at_least": ("min",),
    "at_most": ("max",),
    "cluster": ("group",),
    "comparison": ("compare", "comparisons"),
    "confidence": ("level",),
    "conventions": ("profile",),
    "documents": ("corpus", "items"),
    "exclude": ("excluded", "excluded_ids"),
    "exclude_self": ("ignore_identical_ids",),
    "seen": ("exclude_seen", "filter_seen", "remove_seen"),
    "gates": ("thresholds",),
    "jobs": ("n_jobs", "workers"),
    "judgments": ("ground_truth", "labels", "qrels", "truth"),
    "margin": ("threshold", "tolerance"),
    "measure": ("measures", "metric", "metrics"),
    "measures": ("metrics",),
    "models": ("predictions", "rankings", "results", "run", "runs", "systems"),
    "name": ("experiment",),
    "notify": ("alerts", "notifications"),
    "outputs": ("files", "output", "predictions", "rankings", "results", "run", "runs"),
    "params": ("hyperparameters",),
    "path": ("file",),
    "queries": ("topics", "users"),
    "resamples": ("iterations", "n_resamples", "samples"),
    "seed": ("random_state",),
    "slices": ("group_by", "groups", "segments"),
    "suites": ("measures", "metrics"),
    "tracking": ("mlflow", "tracking_uri"),
    "until": ("expires",),
    "uri": ("tracking_uri",),
    "waive": ("until",),
}
_WANTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping of `key: value`",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:,}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number up to {le:,}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_type": "a mapping of `key: value`",
    "string_too_short": "a text of at least one character",
    "string_type": "a text",
    "string_unicode": "a text without halves of surrogate pairs",
    "too_long": "at most {max_length:,}",
    "too_short": "at least one",
    "tuple_type": "a list",
}
METRICS_GROUP = "rankledger.metrics"
"""The group of entry points by which installed packages name metrics."""
MOST_LINES = 1000
"""Lines of all suites."""
_MOST_COMPARED = 200  # choices that a word is compared with
_MOST_NAMED = 30  # choices that are listed
_LONGEST = 200  # characters of the word


def explain_errors(
    errors: Iterable[ErrorDetails], data: Mapping[str, Value], section_at: Callable[[KeyPath], type[BaseModel]]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield key path and message of each error of pydantic. Values of `tracking` and `notify` are never shown."""
    for error in errors:
        # A tag says which branch of a union was tried, `[key]` that the key itself was refused; neither was written.
        path = tuple(key for key in error["loc"] if not str(key).startswith("\0") and key != "[key]")
        if error["type"] == "extra_forbidden":
            key = error["loc"][-1]  # written, whatever it looks like
            path = path if path[-1:] == (key,) else (*path, key)
            yield path, f"unknown key {path[-1]!r}{_suggest_key(str(path[-1]), section_at(path[:-1]))}"
        elif error["type"] == "missing":
            yield path, f"the key {path[-1]!r} is missing; add it"
        elif error["type"] == "too_short" and error["input"]:
            continue  # an item was refused, which is said, and what is left is counted
        elif _split(data, path):
            yield explain_line(data, path, "")
        else:
            yield path, _message(error, secret=path[:1] in (("tracking",), ("notify",)))


def explain_line(data: Mapping[str, Value], path: KeyPath, message: str) -> tuple[KeyPath, str]:
    """Return key path and message for a wrong line of measures. Join a line that a YAML flow list has split."""
    if parts := _split(data, path):
        first, line = parts
        return first, f"a comma splits items in [...]: quote it ('{line}') or put it on its own line"
    items = reduce(getitem, path[:-1], cast("Any", data))
    if isinstance(items, list) and not isinstance(items[int(path[-1])], str):
        return path, f"found {shown(items[int(path[-1])])}; write a text in quotes"
    return path, message


def metric_in(line: str) -> str:
    """Return the name of the metric that a line begins with."""
    return re.split(r"[(@\s]", line.strip(), maxsplit=1)[0]


def is_built_in(line: str) -> bool:
    """Return whether a line begins with a built-in metric, or another tool's name for one."""
    try:
        return metric_in(line) in METRICS or translate(line) != (line,)
    except ValueError:  # another tool's name of what is not here
        return True


def suggestion(word: str, choices: Iterable[str]) -> str:
    """Return the end of a message on an unknown word: the likely choice, or all choices."""
    names = list(choices)
    further = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    listed = f"; known: {', '.join(names[:_MOST_NAMED])}{further}" if names else ""
    return likely(word[:_LONGEST], names[:_MOST_COMPARED]) or listed


def _suggest_key(key: str, section: type[BaseModel]) -> str:
    for field in section.model_fields:
        if key.lower() in _OTHER_WORDS.get(field, ()):
            return f"; did you mean {field!r}?"
    return suggestion(key, section.model_fields)


def _message(error: ErrorDetails, *, secret: bool) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error" and error["loc"][-1] == "[key]":
        return f"{value!r} is not one of our columns ({context['expected']}); write ours first, then yours"
    if context.get("class_name") in ("File", "OutputFile"):
        expected = "a path, or a mapping with `path:`"
    else:
        expected = _WANTED[kind].format(**context) if kind in _WANTED else error["msg"]
    quote = " in quotes" if kind == "string_type" and isinstance(value, int | float) else ""
    written = "a wrong value" if secret else shown(value)
    return f"found {written}; write {expected}{quote}"


def shown(value: object) -> str:
    """Return a value as messages show it."""
    if value is None or value in ({}, [], ()):
        return "nothing"
    if isinstance(value, dict | list | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _split(data: Mapping[str, Value], path: KeyPath) -> tuple[KeyPath, str] | None:
    listed = (path[:1] == ("suites",) and len(path) == 3) or path[-2:-1] in (("measure",), ("measures",))
    items = reduce(getitem, path[:-1], cast("Any", data)) if listed else None
    if not isinstance(items, list):
        return None
    position = int(path[-1])
    first, line = _measures(items)[position]
    return ((*path[:-1], first), line) if line != str(items[position]) and line.count("(") == line.count(")") else None


def _measures(items: list[Value]) -> list[tuple[int, str]]:
    pieces: list[list[str]] = []
    for item in items:
        line = ",".join(pieces[-1]) if pieces else ""
        if line.count("(") > line.count(")") or ("@" in line and type(item) is int):
            pieces[-1].append(str(item))
        else:
            pieces.append([str(item)])
    first = list(accumulate(map(len, pieces), initial=0))
    return [(first[number], ",".join(piece)) for number, piece in enumerate(pieces) for _ in piece]


LONGEST_LINE = 10_000


def is_line(value: object) -> bool:
    """Return whether a value is read as a line of a suite."""
    return isinstance(value, str | int | float) and not isinstance(value, bool) and len(str(value)) <= LONGEST_LINE
