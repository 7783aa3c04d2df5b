"""Names in MLflow and their maximum lengths.

`search/ndcg_at_10` is an estimate in a section. `search.ci95/`, `search.detail/`, `search.vs_bm25/`,
`search.vs_previous/` and `search.worst_slice/` are the sections that belong to it. Letters that MLflow does not allow
become `_`, and names that then coincide are rejected.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

NAME_LIMIT = 250
"""Letters in a run's name and in the key of a metric, param or tag."""

EXPERIMENT_LIMIT = 256
"""Letters in the name of an experiment."""

PARAM_LIMIT = 6_000
"""Letters in the value of a param."""

TAG_LIMIT = 8_000
"""Letters in the value of a tag."""

RESERVED = ("mlflow.", "rankledger.")
"""Reserved beginnings of tag keys."""

FINGERPRINT = "rankledger.fingerprint."
WORST_SLICE = "rankledger.worst_slice."
EXTRA = "extra/"
SINCE = ("previous", "accepted")
"""The earlier evaluations since which figures change."""

MODEL_ID = re.compile(r"m-[A-Za-z0-9]+")
MODEL_URI = re.compile(r"models:/(m-[A-Za-z0-9]+|[^/:@\x00-\x1f]+(/[0-9]{1,9}|@[\w-]+))")

_SECTION_LIMIT = 60  # letters of a model or a dataset in the name of a section

_OWN = {  # a field of an estimate: the section it is in, which is of intervals where it is empty, and the name's ending
    "ci_low": ("", ".low"),
    "ci_high": ("", ".high"),
    "std_error": ("detail", ".std_error"),
    "n_undefined": ("detail", ".n_undefined"),
    "ties_least": ("detail", ".ties_least"),
    "ties_greatest": ("detail", ".ties_greatest"),
}
_CHANGE = {"difference": "", "ci_low": ".low", "ci_high": ".high"}
_DIFFERENCE = {**_CHANGE, "p_corrected": ".p_corrected"}


@dataclass(frozen=True)
class Naming:
    """Names of estimates by a template with `{measure}` and optionally `{suite}`. `level` is of intervals."""

    template: str
    confidence: float

    def figure(self, suite: str, key: str) -> str:
        return allowed(self.template.format(suite=suite, measure=key))

    def own(self, name: str) -> Mapping[str, str]:
        """Return the names of an estimate and its details, by field."""
        interval = f"ci{self.confidence * 100:.10g}"
        beside = {field: _beside(name, part or interval) + ending for field, (part, ending) in _OWN.items()}
        return {"estimate": name, **beside}

    def difference(self, name: str, baseline: str) -> Mapping[str, str]:
        """Return the names of a difference to a model, by the field of the comparison."""
        stem = _beside(name, f"vs_{section(baseline)}")
        return {field: stem + ending for field, ending in _DIFFERENCE.items()}

    def change(self, name: str, since: str) -> Mapping[str, str]:
        """Return the names of a change since one of `SINCE`, by field."""
        stem = _beside(name, f"vs_{since}")
        return {field: stem + ending for field, ending in _CHANGE.items()}

    def worst_slice(self, name: str) -> str:
        return _beside(name, "worst_slice")


def overall(model: str, key: str) -> str:
    """Return the name of a model's estimate over all datasets, in the evaluation's own run."""
    return allowed(f"{section(model)}/{key}")


def overview(model: str, dataset: str, key: str) -> str:
    """Return the name of a model's estimate on one dataset, in the evaluation's own run."""
    return allowed(f"{section(model)}/{section(dataset)}.{key}")


def _beside(name: str, part: str) -> str:
    before, _, last = name.rpartition("/")
    return f"{before and f'{before}.'}{part}/{last}"


def section(name: str) -> str:
    """Return a model or a dataset as a part of a name. A long one is cut and ends in a hash."""
    if len(name) > _SECTION_LIMIT:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{name[: _SECTION_LIMIT - 9]}_{digest[:8]}"
    return name.replace("/", "_")


def experiment_of(name: str, dataset: str | None = None) -> str:
    """Return the experiment of an evaluation, or of its models on a dataset."""
    return name if dataset is None else f"{name}/{dataset}"


def history_of(name: str, dataset: str) -> str:
    """Return the experiment of the histories on a dataset. Names of evaluations have no spaces."""
    return f"{name} history/{dataset}"


@lru_cache(maxsize=20_000)  # the models of a dataset share their names
def allowed(name: str) -> str:
    """Return a name with `_` for every letter that MLflow refuses, and for parts that make no plain path."""
    parts = re.sub(r"[^\w.\- :/]", "_", name).split("/")
    path = "/".join("_" * max(1, len(part)) if part in ("", ".", "..") else part for part in parts)
    return path.replace("..", "__", 1) if path.startswith("..") else path


def clashes(items: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield messages on (name, owner) pairs: names that are too long for MLflow, or one to it."""
    owners: dict[str, str] = {}
    for name, owner in items:
        key = allowed(name)
        first = owners.setdefault(key, owner)
        if first != owner:
            yield f"{first!r} and {owner!r} would both be {key!r} in MLflow; rename one"
        elif len(key) > NAME_LIMIT:
            yield f"the name '{key[:60]}…' has {len(key)} characters, and MLflow allows {NAME_LIMIT}; shorten it"


def text_of(value: object) -> str:
    """Return a value as YAML writes it, a text without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
