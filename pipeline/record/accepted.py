"""`accepted.yaml`: by evaluation and model, the record that the model is held against until another is accepted.

The file lies beside the config, under version control, so that who accepted what and why is reviewed like a change of
the config. Each entry has the hash of the record's manifest, which has those of its files: a record that was changed
afterwards is not the one that was accepted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

import yaml

from rankledger.pipeline.errors import InputError
from rankledger.pipeline.support.atomic import write_whole
from rankledger.pipeline.types.manifest import is_evaluation_id
from rankledger.pipeline.types.results import Acceptance, Record

__all__ = ["ACCEPTED", "Entries", "config_of", "digest_of", "read_accepted", "write_accepted"]

ACCEPTED = "accepted.yaml"

_HEADER = """\
# What models are held against by gates with `against: self@accepted`: by evaluation, then by model.
# Written by `rankledger accept`; keep it under version control.
"""


Entries = Mapping[str, Mapping[str, Acceptance]]


def config_of(record: Record) -> Path:
    """The config that was evaluated, beside which the file lies.

    A record has the path as it was from the working directory of then, which usually held the runs folder: it is looked
    for there first, for the working directory of now may hold another config of that name.
    """
    written = Path(record.manifest.config)
    there = record.path.absolute().parent.parent.parent / written
    return written if there == written.absolute() or not there.is_file() else there


def read_accepted(path: Path) -> Entries:
    """What was accepted, by evaluation and model; nothing where there is file not found.

    Raises:
        InputError: it is not what `write_accepted` writes.
    """
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader) or {}  # noqa: S506: all values are texts
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); restore it") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: is not YAML ({' '.join(str(error).split())[:300]}); restore it") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: found {type(found).__name__}; it holds models by evaluation, restore it")
    return {str(name): _entries(path, str(name), models) for name, models in found.items()}


def write_accepted(path: Path, entries: Entries) -> None:
    """Write the file whole under a temporary name and rename it; evaluations and models stand in their order.

    Raises:
        OSError: it cannot be written; the file stays as it was.
    """
    ordered = {
        name: {model: asdict(models[model]) for model in sorted(models)} for name, models in sorted(entries.items())
    }
    text = _HEADER + yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=1_000)
    write_whole(path, text.encode())


def digest_of(record: Path) -> str:
    """The hex digest of the manifest of the record in that folder."""
    return hashlib.sha256((record / "manifest.json").read_bytes()).hexdigest()


def _entries(path: Path, name: str, models: object) -> dict[str, Acceptance]:
    if not isinstance(models, dict):
        raise InputError(f"{path}: {name}: found {str(models)[:100]!r}; it holds entries by model, restore it")
    return {str(model): _entry(path, f"{name}.{model}", entry) for model, entry in models.items()}


def _entry(path: Path, key: str, entry: object) -> Acceptance:
    given = entry if isinstance(entry, dict) else {}
    names = [field.name for field in fields(Acceptance)]
    lacking = [name for name in names if name not in given]
    if lacking:
        raise InputError(f"{path}: {key}: has no {lacking[0]!r}; restore it or run `rankledger accept` again")
    if found := next((name for name in names if not isinstance(given[name], str)), None):
        raise InputError(f"{path}: {key}: {found} is no text; restore it or run `rankledger accept` again")
    if not is_evaluation_id(given["record"]) or not re.fullmatch("[0-9a-f]{64}", given["manifest_sha256"]):
        named = f"{given['record'][:100]!r} with the hash {given['manifest_sha256'][:100]!r} is no record"
        raise InputError(f"{path}: {key}: {named}; restore it or run `rankledger accept` again")
    return Acceptance(**{name: given[name] for name in names})
