"""Types of config values, and messages on wrong ones."""

from __future__ import annotations

import ast
import inspect
import math
import re
import textwrap
import unicodedata
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.messages import LONGEST_LINE, is_line, shown, suggestion
from rankledger.pipeline.support.text import without_credentials


def _attribute_docstrings(section: type) -> Iterator[tuple[str, str]]:
    """Yield the keys of a section with their descriptions. pydantic would read them at every start."""
    body = cast(ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(section))).body[0]).body
    for key, text in pairwise(body):
        match key, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(description))):
                yield name, inspect.cleandoc(description)


class Section(BaseModel):
    """A part of the config."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    shorthand: ClassVar[JsonSchemaValue | None] = None  # the JSON Schema of what may stand for the whole section
    short_for: ClassVar[str] = ""  # the key that a text alone gives

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, data: object) -> object:
        if cls.short_for and isinstance(data, str):
            return {cls.short_for: data}
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}
        return {} if data is None else data

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        mapping = handler(schema)
        properties = handler.resolve_ref_schema(mapping)["properties"]
        for section in reversed(cls.__mro__[: cls.__mro__.index(Section)]):
            for key, description in _attribute_docstrings(section):
                if handler.resolve_ref_schema(properties[key]).get("description") != description:
                    properties[key].setdefault("description", description)
        return {"anyOf": [cls.shorthand, mapping]} if cls.shorthand else mapping


_RESERVED = ("path", "*")
_PLACEHOLDERS = ("dataset", "model", "date")
_TAKEN = ("dataset", "model", "query_id", "missing", "measure", "value")  # columns that mean something beside scores
_END = {"anyOf": [{"type": "number"}, {"type": "null"}]}  # the JSON Schema of one end of a range
_MOST_JOBS = 1000
_LONGEST_NAME = 250
_UNITS = {"h": "hours", "m": "minutes", "s": "seconds"}
_TIME = "a number of seconds, minutes or hours, such as 90s, 30m or 2h"
_LEAST_BYTES = 1 << 27  # Python with its libraries and small inputs takes nearly as much
_MOST_BYTES = 1 << 50
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def is_printable(text: str) -> bool:
    """Return whether a text has no control character and no half of a surrogate pair."""
    return not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)


class Share(float):
    """A number that was written as a percentage: `2%` is 0.02."""

    def __str__(self) -> str:
        return f"{100 * self:.12g}%"


def format_duration(duration: timedelta) -> str:
    """Return a duration in the largest unit that gives a whole number."""
    seconds = round(duration.total_seconds())
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s" if seconds else "0"


def _name(name: str) -> str:
    if not name.strip() or not is_printable(name):
        raise ValueError(f"the name {name!r} is empty or contains a control character; choose another")
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"the name has {len(name):,} characters. Use at most {_LONGEST_NAME}, as MLflow does.")
    if without_credentials(name) != name:
        raise ValueError("the name contains a user or password, as a URI does; choose another")
    return name


def _dataset_name(name: str) -> str:
    if name in _RESERVED:
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
        raise ValueError(f"found {shown(value)}; write true, false, or a folder or URL")
    return value


def _measure_line(value: object) -> object:
    if isinstance(value, str) and not is_line(value):
        raise ValueError(f"the line has {len(value):,} characters, more than {LONGEST_LINE:,}; split it")
    return str(value) if is_line(value) else value


def _check_name(pattern: str, what: str, rule: str) -> AfterValidator:
    def check(name: str) -> str:
        if name in _TAKEN or not re.fullmatch(pattern, name):
            raise ValueError(f"a {what} cannot be called {name!r}; write {rule}, and none of {', '.join(_TAKEN)}")
        return name

    return AfterValidator(check)


def _distinct(what: str) -> AfterValidator:
    def check(names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the {what} {name!r} is named twice; keep one")
        return names

    return AfterValidator(check)


def _amount(value: object) -> float:
    if isinstance(value, Share):
        return value
    text = "" if isinstance(value, bool) else str(value).strip()
    if not _NUMBER.fullmatch(text.removesuffix("%").rstrip()) or math.isinf(float(text.rstrip("% "))):
        raise ValueError(f"found {value!r}; write a number, or a percentage such as 2%")
    return Share(float(text.rstrip("% ")) / 100) if text.endswith("%") else float(text)


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
    if not (duration := _duration(value, _TIME)):
        raise ValueError("found 0; write a duration above 0, such as 30s")
    return duration


def _bytes(value: object) -> int:
    match = re.fullmatch(r"(-?[0-9]{1,99})(?:\.([0-9]))? ?([kKMGT]i?)?B?", str(value).strip())
    if isinstance(value, bool | float) or match is None:
        raise ValueError(f"found {shown(value)}; write a number of bytes, or one with a unit, such as 512MiB or 2GiB")
    units, tenths, unit = match.groups()
    base, power = 1024 if unit and unit.endswith("i") else 1000, " KMGT".index((unit or " ")[0].upper())
    n_bytes: int = (10 * int(units) + int(tenths or 0)) * base**power // 10
    if units.startswith("-"):
        raise ValueError(f"found {shown(value)}, which is below 0; write at least 128MiB")
    if n_bytes < _LEAST_BYTES:
        raise ValueError(f"found {shown(value)}, which is {n_bytes:,} bytes; write at least 128MiB")
    if n_bytes > _MOST_BYTES:
        raise ValueError(f"found {shown(value)}, which is more than any machine has; write at most 1024TiB")
    return n_bytes


def _ends(value: object) -> object:
    if not (isinstance(value, list | tuple) and len(value) == 2):
        raise ValueError("write the lowest and the highest possible score, as in [0, 1]; null for no limit")
    return value


def _to_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _text_of_number(name: object) -> object:
    return str(name) if isinstance(name, int) and not isinstance(name, bool) else name


def _profile(name: str) -> str:
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}{suggestion(name, PROFILES)}")
    return name


def checked_jobs(jobs: int) -> int:
    """Return a number of workers. Raise ValueError if it is 0, below -2, or above 1,000."""
    if not (jobs in (-1, -2) or 1 <= jobs <= _MOST_JOBS):
        expected = f"a number of workers from 1 to {_MOST_JOBS:,}, or -1 for one per CPU, -2 for one fewer"
        raise ValueError(f"found {jobs}; write {expected}")
    return jobs


EvaluationName: TypeAlias = Annotated[str, AfterValidator(_evaluation_name)]
Jobs: TypeAlias = Annotated[int, BeforeValidator(_no_bool), AfterValidator(checked_jobs)]
ProfileName: TypeAlias = Annotated[str, AfterValidator(_profile), Field(json_schema_extra={"enum": [*PROFILES]})]
Whole: TypeAlias = Annotated[int, BeforeValidator(_no_bool)]
Number: TypeAlias = Annotated[float, BeforeValidator(_no_bool)]
Finite: TypeAlias = Annotated[float, BeforeValidator(_no_bool), Field(allow_inf_nan=False)]
Least: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(_no_bool)]
Amount: TypeAlias = Annotated[
    float,
    PlainValidator(_amount),
    PlainSerializer(lambda amount: str(amount) if isinstance(amount, Share) else amount),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
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
    str, AfterValidator(_dataset_name), WithJsonSchema({"type": "string", "not": {"enum": [*_RESERVED]}})
]
_SCORE = r"(?! )[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,200}(?<! )"
_SCORE_RULE = "up to 200 characters on one line, without blanks at the ends"


def is_score_name(name: str) -> bool:
    """Return whether a score can be called so."""
    return name not in _TAKEN and re.fullmatch(_SCORE, name) is not None


ScoreName: TypeAlias = Annotated[str, _check_name(_SCORE, "score", _SCORE_RULE)]
OwnMetricName: TypeAlias = Annotated[
    str, _check_name(r"[A-Za-z_][A-Za-z0-9_]{0,98}", "metric", "letters, digits and _")
]
QueryColumns: TypeAlias = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(max_length=100), _distinct("column")
]
OneOrMore: TypeAlias = Annotated[
    tuple[str, ...],
    BeforeValidator(_to_list),
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
    _distinct("replicate"),
    WithJsonSchema({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "minItems": 1}),
]
Labels: TypeAlias = dict[str, Annotated[str, BeforeValidator(_text_of_number)]]
Keys: TypeAlias = dict[Annotated[str, AfterValidator(_key_name)], str]
