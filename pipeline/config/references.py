"""References: what a model is held against, as gates and commands write it.

`(ID | PATH | newest | latest | accepted | mlflow:RUN_ID)[#model]` is a model of a record, the same one unless another
is named; `self@` before it says so. A word that a model of the config is called is that model in this evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from pipeline.config.mistakes import suggestion
from pipeline.errors import InputError
from pipeline.verdicts import Reference

__all__ = ["MLFLOW", "WORDS", "is_path", "parse_reference", "split_reference"]

_SELF = "self@"
WORDS = ("newest", "latest", "accepted")
"""What means a record that is looked for, of an evaluation and a model."""

MLFLOW = "mlflow:"
"""What a reference to a run of MLflow begins with."""
_RECORD = re.compile(r"\d{8}T\d{6}Z-[A-Za-z0-9._-]+-[0-9a-f]{8}|mlflow:[A-Za-z0-9]+", re.ASCII)


def parse_reference(text: str, models: Collection[str]) -> Reference:
    """The reference that `text` writes; a path in it is as it was written.

    Args:
        text: such as `self@accepted`, `latest#bm25`, `runs/records/20261120T020000Z-nightly-1f0c9a2b` or `bm25`.
        models: what the models of the config are called, if there is one.

    Raises:
        InputError: it is none; the message says what was likely meant.
    """
    if text in models:
        return Reference(text, None, text)
    own, record, model = split_reference(text)
    if own and (model or record in models):
        other = f"{record}{model}"
        raise InputError(f"{text!r} is the same model and another one at once; write {other!r} or {own + 'accepted'!r}")
    if model == "#" or not record:
        raise InputError(f"{text!r} lacks a record or a model; write it as in accepted#bm25")
    if not (record in WORDS or _RECORD.fullmatch(record) or is_path(record)):
        known = suggestion(record, [*WORDS, *models])
        raise InputError(f"{record!r} is no model, no evaluation's id and no path (which has a slash){known}")
    return Reference(text, record, model.removeprefix("#") or None)


def split_reference(text: str) -> tuple[str, str, str]:
    """`self@` or nothing, the record, and `#model` or nothing; the text is the three in a row."""
    own = _SELF if text.startswith(_SELF) else ""
    record, mark, model = text.removeprefix(own).rpartition("#")
    return (own, record, f"{mark}{model}") if mark else (own, model, "")


def is_path(record: str) -> bool:
    """Whether a record is named by its path, which has a slash to tell it from an id."""
    return "/" in record
