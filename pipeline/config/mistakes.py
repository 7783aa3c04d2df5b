"""What pydantic refused, in plain words: what was found, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import cast

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from pipeline.config.source import KeyPath, Value

__all__ = ["explain", "suggestion"]

# Other tools' words, and our keys for them; which one is meant depends on where they stand.
_OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    "compare": ("comparison",),
    "comparisons": ("comparison",),
    "corpus": ("documents",),
    "experiment": ("name",),
    "file": ("path",),
    "files": ("outputs",),
    "expires": ("until",),
    "ground_truth": ("judgments",),
    "group": ("cluster",),
    "group_by": ("slices",),
    "groups": ("slices",),
    "hyperparameters": ("params",),
    "iterations": ("resamples",),
    "items": ("documents",),
    "labels": ("judgments",),
    "level": ("confidence",),
    "max": ("at_most",),
    "measures": ("suites", "measure"),
    "metric": ("measure",),
    "metrics": ("suites", "measures", "measure"),
    "min": ("at_least",),
    "mlflow": ("tracking",),
    "n_jobs": ("jobs",),
    "n_resamples": ("resamples",),
    "output": ("outputs",),
    "predictions": ("outputs", "models"),
    "profile": ("conventions",),
    "qrels": ("judgments",),
    "random_state": ("seed",),
    "rankings": ("outputs", "models"),
    "results": ("outputs", "models"),
    "run": ("outputs", "models"),
    "runs": ("outputs", "models"),
    "samples": ("resamples",),
    "segments": ("slices",),
    "systems": ("models",),
    "threshold": ("margin",),
    "thresholds": ("gates",),
    "tolerance": ("margin",),
    "topics": ("queries",),
    "tracking_uri": ("uri", "tracking"),
    "truth": ("judgments",),
    "until": ("waive",),
    "users": ("queries",),
    "workers": ("jobs",),
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


_MOST_COMPARED = 200  # choices that a word is held against
_MOST_NAMED = 30  # choices that are listed
_LONGEST = 200  # characters of the word


def explain(
    errors: Iterable[ErrorDetails], data: Mapping[str, Value], section_at: Callable[[KeyPath], type[BaseModel]]
) -> Iterator[tuple[KeyPath, str]]:
    """The key path and the message of each error.

    Args:
        errors: of one validation of `data`.
        data: the values; what `tracking` holds is never shown, for it may be a secret.
        section_at: which section stands at a key path, for the keys it knows.
    """
    for error in errors:
        # A tag says which branch of a union was tried, `[key]` that the key itself was refused; neither was written.
        path = tuple(key for key in error["loc"] if not str(key).startswith("\0") and key != "[key]")
        if error["type"] == "extra_forbidden":
            yield path, f"unknown key {path[-1]!r}{_known(str(path[-1]), section_at(path[:-1]))}"
        elif error["type"] == "missing":
            yield path, f"the key {path[-1]!r} is missing; add it"
        elif error["type"] == "too_short" and error["input"]:
            continue  # an item was refused, which is said, and what is left is counted
        elif whole := _split(data, path):
            first, line = whole
            yield first, f"a comma splits items in [...]: quote it ('{line}') or put it on its own line"
        else:
            yield path, _message(error, secret=path[:1] == ("tracking",))


def suggestion(word: str, choices: Iterable[str]) -> str:
    """The end of a message on an unknown word: the choice that is likely meant, or else all of them."""
    known = list(choices)
    close = difflib.get_close_matches(word[:_LONGEST], known[:_MOST_COMPARED], n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    further = f" and {len(known) - _MOST_NAMED:,} more" if len(known) > _MOST_NAMED else ""
    return f"; known: {', '.join(known[:_MOST_NAMED])}{further}" if known else ""


def _known(key: str, section: type[BaseModel]) -> str:
    fields = [field for field in _OTHER_WORDS.get(key.lower(), ()) if field in section.model_fields]
    return f"; did you mean {fields[0]!r}?" if fields else suggestion(key, section.model_fields)


def _message(error: ErrorDetails, *, secret: bool) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error" and error["loc"][-1] == "[key]":
        return f"{value!r} is none of our names ({context['expected']}); write our name first, then the file's"
    if context.get("class_name") in ("File", "OutputFile"):
        wanted = "a path, or a mapping with `path:`"
    else:
        wanted = _WANTED[kind].format(**context) if kind in _WANTED else error["msg"]
    quote = " in quotes" if kind == "string_type" and isinstance(value, int | float) else ""
    found = "a wrong value" if secret else _shown(value)
    return f"found {found}; write {wanted}{quote}"


def _shown(value: object) -> str:
    if value is None or value in ({}, [], ()):
        return "nothing"
    if isinstance(value, dict | list | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _split(data: Mapping[str, Value], path: KeyPath) -> tuple[KeyPath, str] | None:
    """Where the measure at `path` begins and how it reads, if a YAML flow list has split it at its commas."""
    listed = (path[:1] == ("suites",) and len(path) == 3) or path[-2:-1] in (("measure",), ("measures",))
    items = _value(data, path[:-1]) if listed else None
    if not isinstance(items, list):
        return None
    position = int(path[-1])
    first, line = _measures(items)[position]
    return ((*path[:-1], first), line) if line != str(items[position]) and line.count("(") == line.count(")") else None


def _value(data: Value | Mapping[str, Value], path: KeyPath) -> Value:
    """The value at a key path, each key of which is there."""
    for key in path:
        data = data[int(key)] if isinstance(data, list) else cast("Mapping[str, Value]", data)[str(key)]
    return cast("Value", data)


def _measures(items: list[Value]) -> list[tuple[int, str]]:
    """For each item, the position where its measure begins, and that measure in one piece."""
    pieces: list[list[str]] = []
    for item in items:
        line = ",".join(pieces[-1]) if pieces else ""
        if line.count("(") > line.count(")") or ("@" in line and type(item) is int):
            pieces[-1].append(str(item))
        else:
            pieces.append([str(item)])
    first = list(accumulate(map(len, pieces), initial=0))
    return [(first[number], ",".join(piece)) for number, piece in enumerate(pieces) for _ in piece]
