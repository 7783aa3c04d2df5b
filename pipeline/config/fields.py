"""The plain values of a config: what each must be, and what is said where it is not."""

from __future__ import annotations

import math
import re
import unicodedata
from string import Formatter
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from metrics.conventions import PROFILES
from metrics.measure import Measure
from pipeline.config.mistakes import suggestion

__all__ = [
    "Columns",
    "DatasetName",
    "EvaluationName",
    "Jobs",
    "Keys",
    "MetricName",
    "Name",
    "Number",
    "Plain",
    "ProfileName",
    "Suite",
    "Whole",
]

_PLACEHOLDERS = ("dataset", "model", "date")


def _name(name: str) -> str:
    if not name.strip() or any(unicodedata.category(letter) == "Cc" for letter in name):
        raise ValueError(f"the name {name!r} is empty or holds a control character; write one that can be printed")
    return name


def _dataset_name(name: str) -> str:
    if name in ("path", "*"):
        raise ValueError(f"a dataset cannot be called {name!r}, which has a meaning of its own; choose another name")
    return _name(name)


def _key_name(name: str) -> str:
    if name in _PLACEHOLDERS or not name.isidentifier():
        raise ValueError(f"the key {name!r} cannot fill a template; write a word other than {', '.join(_PLACEHOLDERS)}")
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
        raise ValueError("it must be a text, a finite number, true or false; put anything else in quotes")
    return value


def _measure_line(line: str) -> str:
    Measure.expand(line)
    return line


def _profile(name: str) -> str:
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}{suggestion(name, PROFILES)}")
    return name


def _jobs(jobs: int) -> int:
    if jobs == 0:
        raise ValueError("found 0; write a number of workers, or -1 for one per CPU")
    return jobs


def _metric_name(template: str) -> str:
    try:
        fields = [name for _, name, spec, conversion in Formatter().parse(template) if name is not None]
    except ValueError:
        fields = [template]
    if not {"measure"} <= set(fields) <= {"suite", "measure"}:
        raise ValueError("it takes {measure}, and {suite} if wanted, and no other placeholder; mend the braces")
    return template


EvaluationName: TypeAlias = Annotated[str, AfterValidator(_evaluation_name)]
Jobs: TypeAlias = Annotated[int, BeforeValidator(_no_bool), AfterValidator(_jobs)]
MetricName: TypeAlias = Annotated[str, AfterValidator(_metric_name)]
ProfileName: TypeAlias = Annotated[str, AfterValidator(_profile), Field(json_schema_extra={"enum": [*PROFILES]})]
Whole: TypeAlias = Annotated[int, BeforeValidator(_no_bool)]
Number: TypeAlias = Annotated[float, BeforeValidator(_no_bool)]
Plain: TypeAlias = Annotated[str | int | float | bool, BeforeValidator(_plain)]
Name: TypeAlias = Annotated[str, AfterValidator(_name)]
DatasetName: TypeAlias = Annotated[
    str, AfterValidator(_dataset_name), WithJsonSchema({"type": "string", "not": {"enum": ["path", "*"]}})
]
Suite: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(_measure_line)], ...], Field(min_length=1)]
Columns: TypeAlias = dict[
    Literal["query_id", "doc_id", "relevance", "subtopic", "score", "rank", "rating", "prediction"], str
]
Keys: TypeAlias = dict[Annotated[str, AfterValidator(_key_name)], str]
