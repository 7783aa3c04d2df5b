"""A model's numbers from outside, such as its latency or cost: a JSON object of finite numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.data.files import find_files
from pipeline.errors import InputError, shorten
from pipeline.mlflow_names import EXTRA, clashes
from pipeline.tables import InputFile

__all__ = ["Extra", "read_extra"]


@dataclass(frozen=True)
class Extra:
    """The numbers of one model, by name, and the file that they are from."""

    numbers: Mapping[str, float]
    file: InputFile


def read_extra(path: str) -> Extra:
    """The numbers of one file.

    Args:
        path: the file, or its URL; it may be compressed.

    Raises:
        InputError: it is missing, or no object of finite numbers under names that MLflow can hold.
    """
    file, *others = find_files(path)
    if others:
        raise InputError(f"{path}: {1 + len(others)} files are there; name one JSON object of numbers")
    stored = file.read()
    try:
        found = json.loads(file.uncompress(stored).to_pybytes(), parse_int=float, object_pairs_hook=_once)
        "".join(found if isinstance(found, dict) else ()).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}); write an object of numbers") from None
    if not isinstance(found, dict):
        raise InputError(f'{path}: found {type(found).__name__}; write an object of numbers, as {{"cost": 1.5}}')
    for name, number in found.items():
        if not isinstance(number, float) or not math.isfinite(number):
            raise InputError(
                f"{path}: {shorten(name)}: found {shorten(json.dumps(number))}; write a finite number, or leave it out"
            )
    for problem in clashes((EXTRA + name, name) for name in found):
        raise InputError(f"{path}: {problem}")
    return Extra(found, file.describe_bytes(stored))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of a key that stands twice, either number could be meant.

    Raises:
        ValueError: a key stands twice.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"'{shorten(name)}' stands twice")
        found[name] = value
    return found
