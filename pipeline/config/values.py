"""The values of a config: what each may be, and the message if it is something else."""

from __future__ import annotations

import ast
import inspect
import math
import re
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, timedelta
from itertools import accumulate, pairwise
from string import Formatter
from typing import Annotated, ClassVar, Literal, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.yaml import KeyPath, Value
from rankledger.pipeline.support.credentials import without_credentials
from rankledger.pipeline.support.errors import likely

__all__ = [
    "METRICS_GROUP",
    "MOST_LINES",
    "Amount",
    "Bytes",
    "CachePlace",
    "Columns",
    "DatasetName",
    "Date",
    "Duration",
    "Ends",
    "EvaluationName",
    "Finite",
    "Interval",
    "Jobs",
    "Keys",
    "Labels",
    "Least",
    "MetricName",
    "Name",
    "Number",
    "OneOrMore",
    "OwnMetricName",
    "Plain",
    "ProfileName",
    "QueryColumns",
    "ReplicateNames",
    "ScoreName",
    "Section",
    "Suite",
    "Whole",
    "checked_jobs",
    "explain_errors",
    "explain_line",
    "format_duration",
    "is_printable",
    "is_share",
    "metric_in",
    "number_of",
    "suggestion",
    "unreadable_lines",
]

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
    """The key path and the message of each error.

    Args:
        errors: of one validation of `data`.
        data: the values; what `tracking` and `notify` hold is never shown, for it may be a secret.
        section_at: which section stands at a key path, for the keys it knows.
    """
    for error in errors:
        # A tag says which branch of a union was tried, `[key]` that the key itself was refused; neither was written.
        path = tuple(key for key in error["loc"] if not str(key).startswith("\0") and key != "[key]")
        if error["type"] == "extra_forbidden":
            key = error["loc"][-1]  # written, whatever it looks like
            path = path if path[-1:] == (key,) else (*path, key)
            yield path, f"unknown key {path[-1]!r}{_known(str(path[-1]), section_at(path[:-1]))}"
        elif error["type"] == "missing":
            yield path, f"the key {path[-1]!r} is missing; add it"
        elif error["type"] == "too_short" and error["input"]:
            continue  # an item was refused, which is said, and what is left is counted
        elif _split(data, path):
            yield explain_line(data, path, "")
        else:
            yield path, _message(error, secret=path[:1] in (("tracking",), ("notify",)))


def explain_line(data: Mapping[str, Value], path: KeyPath, message: str) -> tuple[KeyPath, str]:
    """Where, and what is wrong with a line of measures; one that a YAML flow list has split is put together again.

    Args:
        data: the values.
        path: where the line stands.
        message: why it cannot be read.
    """
    if whole := _split(data, path):
        first, line = whole
        return first, f"a comma splits items in [...]: quote it ('{line}') or put it on its own line"
    items = _value(data, path[:-1])
    if isinstance(items, list) and not isinstance(items[int(path[-1])], str):
        return path, f"found {_shown(items[int(path[-1])])}; write a text in quotes"
    return path, message


def unreadable_lines(data: Mapping[str, Value], recorded: Collection[str]) -> Iterator[tuple[KeyPath, str]]:
    """The key path and the message of each line of a suite that is text, or a number, and no measure.

    Lines of metrics of the user's own are read when the config is planned, which loads them.

    Args:
        data: the values.
        recorded: metrics of the user's own that a record describes.
    """
    suites, named = data.get("suites"), data.get("metrics")
    own = {*recorded, *(named if isinstance(named, dict) else ())}
    listed = suites.items() if isinstance(suites, dict) else ()
    lines = [
        (("suites", name, position), str(line))
        for name, suite in listed
        for position, line in enumerate(suite if isinstance(suite, list) else ())
        if _is_line(line) and metric_in(str(line)) not in own
    ]
    wrong = {}
    for path, line in lines if len(lines) <= MOST_LINES else ():  # of each, what was meant is searched for
        try:
            Measure.expand(line)
        except ValueError as error:
            wrong[path] = (line, str(error))
    known = _installed_metrics() if wrong else ()
    for path, (line, message) in wrong.items():
        if metric_in(line) not in known:
            yield explain_line(data, path, message)


def _installed_metrics() -> Collection[str]:
    from rankledger.pipeline.support.own_code import installed  # here, because all metrics of most configs are ours

    return installed(METRICS_GROUP)


def metric_in(line: str) -> str:
    """The name of the metric that a line begins with."""
    return re.split(r"[(@\s]", line.strip(), maxsplit=1)[0]


def suggestion(word: str, choices: Iterable[str]) -> str:
    """The end of a message on an unknown word: the choice that is likely meant, or else all of them."""
    known = list(choices)
    further = f" and {len(known) - _MOST_NAMED:,} more" if len(known) > _MOST_NAMED else ""
    listed = f"; known: {', '.join(known[:_MOST_NAMED])}{further}" if known else ""
    return likely(word[:_LONGEST], known[:_MOST_COMPARED]) or listed


def _known(key: str, section: type[BaseModel]) -> str:
    for ours in section.model_fields:
        if key.lower() in _OTHER_WORDS.get(ours, ()):
            return f"; did you mean {ours!r}?"
    return suggestion(key, section.model_fields)


def _message(error: ErrorDetails, *, secret: bool) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error" and error["loc"][-1] == "[key]":
        return f"{value!r} is not one of our columns ({context['expected']}); write ours first, then yours"
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
    """The value at a key path whose keys all exist."""
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


def _attribute_docstrings(section: type) -> Iterator[tuple[str, str]]:
    """The keys of a section with what stands below them; pydantic reads it from the source at every start."""
    body = cast(ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(section))).body[0]).body
    for key, text in pairwise(body):
        match key, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(description))):
                yield name, inspect.cleandoc(description)


class Section(BaseModel):
    """A part of the config."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    shorthand: ClassVar[JsonSchemaValue | None] = None  # the JSON Schema of what may stand for the whole section

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty_keys(cls, data: object) -> object:
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}
        return {} if data is None else data

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The section's JSON Schema, its shorthand included."""
        mapping = handler(schema)
        properties = handler.resolve_ref_schema(mapping)["properties"]
        for section in reversed(cls.__mro__[: cls.__mro__.index(Section)]):
            for key, description in _attribute_docstrings(section):
                if handler.resolve_ref_schema(properties[key]).get("description") != description:
                    properties[key].setdefault("description", description)
        return {"anyOf": [cls.shorthand, mapping]} if cls.shorthand else mapping


_PLACEHOLDERS = ("dataset", "model", "date")
_TAKEN = ("dataset", "model", "query_id", "missing", "measure", "value")  # columns that mean something beside scores
_END = {"anyOf": [{"type": "number"}, {"type": "null"}]}  # the JSON Schema of one end of a range
_MOST_JOBS = 1000
_LONGEST_LINE = 10_000
_UNITS = {"h": "hours", "m": "minutes", "s": "seconds"}
_TIME = "a number of seconds, minutes or hours, such as 90s, 30m or 2h"
_LEAST_BYTES = 1 << 27  # Python with its libraries and small inputs takes nearly as much
_MOST_BYTES = 1 << 50
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def is_printable(text: str) -> bool:
    """Whether it holds neither a control character nor half of a surrogate pair, which stands for a byte of no text."""
    return not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)


def is_share(amount: float | str) -> bool:
    """Whether an amount was written as a percentage."""
    return isinstance(amount, str)


def number_of(amount: float | str) -> float:
    """What an amount comes to: 0.02 for `2%`."""
    return float(amount.rstrip("% ")) / 100 if isinstance(amount, str) else amount


def format_duration(duration: timedelta) -> str:
    """The duration as it is written in a config, in the greatest unit that gives a whole number."""
    seconds = round(duration.total_seconds())
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s" if seconds else "0"


def _name(name: str) -> str:
    if not name.strip() or not is_printable(name):
        raise ValueError(f"the name {name!r} is empty or contains a control character; choose another")
    if without_credentials(name) != name:
        raise ValueError("the name contains a user or password, as a URI does; choose another")
    return name


def _dataset_name(name: str) -> str:
    if name in ("path", "*"):
        raise ValueError(f"{name!r} is reserved; choose another name for the dataset")
    return _name(name)


def _key_name(name: str) -> str:
    if name in _PLACEHOLDERS or not name.isidentifier():
        raise ValueError(f"the key {name!r} cannot be a placeholder; write a word except {', '.join(_PLACEHOLDERS)}")
    return name


def _evaluation_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise ValueError(f"found {name!r}; write up to 100 letters, digits and . _ - beginning with a letter or digit")
    return name


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"found {str(value).lower()}; write a number")
    return value


def _plain(value: object) -> object:
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("write text, a finite number, true or false; quote anything else")
    return value


def _cache_place(value: object) -> object:
    if not isinstance(value, bool | str) or value == "":
        raise ValueError(f"found {_shown(value)}; write true, false, or a folder or URL")
    return value


def _is_line(value: object) -> bool:
    """Whether it is read as a line of a suite: a text, or a number that a flow list has split off at a comma."""
    return isinstance(value, str | int | float) and not isinstance(value, bool) and len(str(value)) <= _LONGEST_LINE


def _measure_line(value: object) -> object:
    if isinstance(value, str) and not _is_line(value):
        raise ValueError(f"the line has {len(value):,} characters, more than {_LONGEST_LINE:,}; split it")
    return str(value) if _is_line(value) else value


def _score_name(name: str) -> str:
    """As MLflow, the header of a table and `--measure` can all take it."""
    if name in _TAKEN or not re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_. -]{0,98}[A-Za-z0-9_])?(@[0-9]{1,9})?", name):
        raise ValueError(
            f"a score cannot be called {name!r}; write letters, digits, spaces and . _ -, with a cutoff as in ndcg@10 "
            f"if wanted, and none of {', '.join(_TAKEN)}"
        )
    return name


def _own_metric_name(name: str) -> str:
    if name in _TAKEN or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,98}", name):
        raise ValueError(
            f"a metric cannot be called {name!r}; write letters, digits and _, and none of {', '.join(_TAKEN)}"
        )
    return name


def _query_columns(columns: tuple[str, ...]) -> tuple[str, ...]:
    for column in columns:
        if columns.count(column) > 1:
            raise ValueError(f"the column {column!r} is named twice; keep one")
    return columns


def _amount(value: object) -> float | str:
    """A number; or a percentage, which stays as it was written."""
    text = "" if isinstance(value, bool) else str(value).strip()
    if not _NUMBER.fullmatch(text.removesuffix("%").rstrip()) or math.isinf(float(text.rstrip("% "))):
        raise ValueError(f"found {value!r}; write a number, or a percentage such as 2%")
    return text if text.endswith("%") else float(text)


def _date(value: object) -> date:
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"found {value!r}; write a date such as 2026-12-31") from None


def _duration(value: object, wanted: str = f"{_TIME}, or 0") -> timedelta:
    if isinstance(value, timedelta):
        return value
    text = str(value).strip()
    if text == "0":
        return timedelta(0)
    if not re.fullmatch(r"[0-9]{1,6}[hms]", text):
        raise ValueError(f"found {value!r}; write {wanted}")
    return timedelta(**{_UNITS[text[-1]]: int(text[:-1])})


def _interval(value: object) -> timedelta:
    duration = _duration(value, _TIME)
    if not duration:
        raise ValueError("found 0; write a duration above 0, such as 30s")
    return duration


def _bytes(value: object) -> int:
    found = re.fullmatch(r"(-?[0-9]{1,99})(?:\.([0-9]))? ?([kKMGT]i?)?B?", str(value).strip())
    if isinstance(value, bool | float) or found is None:
        raise ValueError(f"found {_shown(value)}; write a number of bytes, or one with a unit, such as 512MiB or 2GiB")
    whole, tenths, unit = found.groups()
    base, power = 1024 if unit and unit.endswith("i") else 1000, " KMGT".index((unit or " ")[0].upper())
    n_bytes: int = (10 * int(whole) + int(tenths or 0)) * base**power // 10
    if whole.startswith("-"):
        raise ValueError(f"found {_shown(value)}, which is below 0; write at least 128MiB")
    if n_bytes < _LEAST_BYTES:
        raise ValueError(f"found {_shown(value)}, which is {n_bytes:,} bytes; write at least 128MiB")
    if n_bytes > _MOST_BYTES:
        raise ValueError(f"found {_shown(value)}, which is more than any machine has; write at most 1024TiB")
    return n_bytes


def _ends(value: object) -> object:
    if not (isinstance(value, list | tuple) and len(value) == 2):
        raise ValueError("write the lowest and the highest possible score, as in [0, 1]; null for no limit")
    return value


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _text_of_number(name: object) -> object:
    return str(name) if isinstance(name, int) and not isinstance(name, bool) else name


def _replicates(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the replicate {name!r} is listed twice; keep one")
    return names


def _profile(name: str) -> str:
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}{suggestion(name, PROFILES)}")
    return name


def checked_jobs(jobs: int) -> int:
    """The same number of workers.

    Raises:
        ValueError: it is 0, below -2, or more than a system has threads for.
    """
    if not (jobs in (-1, -2) or 1 <= jobs <= _MOST_JOBS):
        wanted = f"a number of workers from 1 to {_MOST_JOBS:,}, or -1 for one per CPU, -2 for one fewer"
        raise ValueError(f"found {jobs}; write {wanted}")
    return jobs


def _metric_name(template: str) -> str:
    try:
        parts = [part for part in Formatter().parse(template) if part[1] is not None]
        fields = ["".join(filter(None, part[1:])) for part in parts]  # a format or a conversion is no plain name
    except ValueError:
        fields = [template]
    if not {"measure"} <= set(fields) <= {"suite", "measure"}:
        raise ValueError("write {measure}, optionally with {suite}, and no other placeholder")
    return template


EvaluationName: TypeAlias = Annotated[str, AfterValidator(_evaluation_name)]
Jobs: TypeAlias = Annotated[int, BeforeValidator(_no_bool), AfterValidator(checked_jobs)]
MetricName: TypeAlias = Annotated[str, AfterValidator(_metric_name)]
ProfileName: TypeAlias = Annotated[str, AfterValidator(_profile), Field(json_schema_extra={"enum": [*PROFILES]})]
Whole: TypeAlias = Annotated[int, BeforeValidator(_no_bool)]
Number: TypeAlias = Annotated[float, BeforeValidator(_no_bool)]
Finite: TypeAlias = Annotated[float, BeforeValidator(_no_bool), Field(allow_inf_nan=False)]
Least: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(_no_bool)]
Amount: TypeAlias = Annotated[
    float | str, BeforeValidator(_amount), WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]})
]
Date: TypeAlias = Annotated[date, BeforeValidator(_date), WithJsonSchema({"type": "string", "format": "date"})]
Duration: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(format_duration),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"const": 0}]}),
]
Bytes: TypeAlias = Annotated[
    int,
    BeforeValidator(_bytes),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": _LEAST_BYTES, "maximum": _MOST_BYTES}]}
    ),
]
Interval: TypeAlias = Annotated[
    timedelta, BeforeValidator(_interval), PlainSerializer(format_duration), WithJsonSchema({"type": "string"})
]
Ends: TypeAlias = Annotated[
    tuple[Finite | None, Finite | None],
    BeforeValidator(_ends),
    WithJsonSchema({"type": "array", "items": _END, "minItems": 2, "maxItems": 2}),
]
Plain: TypeAlias = Annotated[str | int | float | bool, BeforeValidator(_plain)]
CachePlace: TypeAlias = Annotated[
    bool | Annotated[str, Field(min_length=1)], Field(union_mode="left_to_right"), BeforeValidator(_cache_place)
]
Name: TypeAlias = Annotated[str, AfterValidator(_name)]
DatasetName: TypeAlias = Annotated[
    str, AfterValidator(_dataset_name), WithJsonSchema({"type": "string", "not": {"enum": ["path", "*"]}})
]
ScoreName: TypeAlias = Annotated[str, AfterValidator(_score_name)]
OwnMetricName: TypeAlias = Annotated[str, AfterValidator(_own_metric_name)]
QueryColumns: TypeAlias = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(max_length=100), AfterValidator(_query_columns)
]
OneOrMore: TypeAlias = Annotated[
    tuple[str, ...],
    BeforeValidator(_listed),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
Suite: TypeAlias = Annotated[
    tuple[Annotated[str, BeforeValidator(_measure_line)], ...], Field(min_length=1, max_length=1000)
]
_PairColumn: TypeAlias = Literal["query_id", "doc_id", "relevance", "subtopic", "score", "rank", "rating", "prediction"]
_AnswerColumn: TypeAlias = Literal["nugget", "importance", "sentence", "support"]
_LogColumn: TypeAlias = Literal[
    "impression_id", "clicked", "dwell", "weight", "propensity", "probability", "predicted", "expected", "team"
]
Columns: TypeAlias = dict[
    Literal[_PairColumn, "measure", "value", _AnswerColumn, _LogColumn],
    Annotated[
        str, BeforeValidator(_text_of_number), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer"}]})
    ],
]
ReplicateNames: TypeAlias = Annotated[
    tuple[Annotated[str, BeforeValidator(_text_of_number), AfterValidator(_name)], ...],
    Field(max_length=1000),
    AfterValidator(_replicates),
    WithJsonSchema({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "minItems": 1}),
]
Labels: TypeAlias = dict[str, Annotated[str, BeforeValidator(_text_of_number)]]
Keys: TypeAlias = dict[Annotated[str, AfterValidator(_key_name)], str]
