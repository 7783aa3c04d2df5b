"""Names in MLflow and their maximum lengths, and the checks of a config for them.

The checks run even if tracking is off, because a record may be logged years later.

`search/ndcg_at_10` is an estimate in a section. `search.ci95/`, `search.detail/`, `search.vs_bm25/`,
`search.vs_previous/` and `search.worst_slice/` are the sections that belong to it. Letters that MLflow does not allow
become `_`, and names that then coincide are rejected.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import PlannedGate
from rankledger.pipeline.config.planned import EVERYTHING, PlannedComparison, Planning, Task
from rankledger.pipeline.config.sources import Model, PlannedDataset
from rankledger.pipeline.config.yaml import KeyPath

NAME_LIMIT = 250
"""Letters in the name of a model, a dataset or a run, and in the key of a metric, param or tag."""

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


def check_names(
    planning: Planning,
    datasets: Sequence[PlannedDataset],
    models: Mapping[str, Model],
    comparison: PlannedComparison | None,
    lead: Mapping[str, Measure],
) -> None:
    """Find names, params and tags that are too long for MLflow or equal to it."""
    naming = Naming(planning.config.tracking.metric_name, planning.config.bootstrap.confidence)
    for dataset in datasets:
        path: KeyPath = ("datasets", dataset.name)
        if len(dataset.name) > NAME_LIMIT:
            planning.find(path, _too_long("the name of the dataset", dataset.name, NAME_LIMIT))
        pairs = comparison.pairs[dataset.name] if comparison else ()
        names = [*_list_figures(naming, dataset, dict.fromkeys(baseline for _, baseline in pairs))]
        _find_all(planning, path, clashes(names))
        outside = [owner for name, owner in names if name.startswith(EXTRA)]
        if outside and any(model.extra for model in planning.config.models.values()):
            message = f"{outside[0]!r} would be among the external metrics in MLflow; rename its suite"
            planning.find(path, message)
    for entry, model in planning.config.models.items():
        _check_texts(planning, entry, model)
    for name in models:
        if len(name) > NAME_LIMIT:
            path = ("models", name if name in planning.config.models else EVERYTHING)
            planning.find(path, _too_long(f"the name of the model '{name[:60]}…'", name, NAME_LIMIT))
    _find_all(planning, ("models",), clashes(_list_overviews(planning, naming, datasets, models, lead)))


def _find_all(planning: Planning, path: KeyPath, messages: Iterable[str]) -> None:
    for message in dict.fromkeys(messages):
        planning.find(path, message)


def _too_long(what: str, text: str, limit: int) -> str:
    return f"{what} has {len(text):,} characters, and MLflow allows {limit:,}; shorten it"


def _list_figures(naming: Naming, dataset: PlannedDataset, baselines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the owner of each metric and tag of a model's run."""
    for suite, measures in dataset.suites.items():
        for measure in measures:
            name = naming.figure(suite, measure.key)
            yield from _list_details(naming, name, str(measure))
            yield naming.worst_slice(name), f"the worst slice of {measure}"
            yield WORST_SLICE + name, f"the tag of the worst slice of {measure}"
            yield FINGERPRINT + measure.key, f"the fingerprint of {measure}"
            for baseline in baselines:
                for field, key in naming.difference(name, baseline).items():
                    yield key, f"{field} of {measure} to {baseline}"
            for since in SINCE:
                for field, key in naming.change(name, since).items():
                    yield key, f"{field} of {measure} since {since}"


def _list_details(naming: Naming, name: str, owner: str) -> Iterator[tuple[str, str]]:
    for field, key in naming.own(name).items():
        yield key, owner if field == "estimate" else f"{field} of {owner}"


def _list_overviews(
    planning: Planning,
    naming: Naming,
    datasets: Sequence[PlannedDataset],
    models: Iterable[str],
    lead: Mapping[str, Measure],
) -> Iterator[tuple[str, str]]:
    """Yield the name and the owner of each metric of the evaluation's own run."""
    measures = [measure for dataset in datasets for measure in dataset.measures if planning.config.pooled]
    for model in models:
        for dataset_name, measure in lead.items():
            yield overview(model, dataset_name, measure.key), f"{model} on {dataset_name}"
        for key, text in dict.fromkeys((measure.key, str(measure)) for measure in measures):
            yield from _list_details(naming, overall(model, key), f"{text} of {model}")


def _check_texts(planning: Planning, entry: str, model: Model) -> None:
    params = {key: text_of(value) for key, value in model.params.items()}
    for what, texts, limit in (("param", params, PARAM_LIMIT), ("tag", model.tags, TAG_LIMIT)):
        path = ("models", entry, f"{what}s")
        _find_all(planning, path, clashes((key, key) for key in texts))
        for key, text in texts.items():
            if what == "tag" and allowed(key).startswith(RESERVED):
                kept = " and ".join(f"`{prefix}`" for prefix in RESERVED)
                planning.find((*path, key), f"tags that begin with {kept} are set by MLflow and rankledger; rename it")
            if len(text) > limit:
                planning.find((*path, key), _too_long(f"the {what}", text, limit))
    if model.owner is not None and len(model.owner) > TAG_LIMIT:
        planning.find(("models", entry, "owner"), _too_long("it", model.owner, TAG_LIMIT))


def check_promotions(planning: Planning, tasks: Sequence[Task], gates: Sequence[PlannedGate]) -> None:
    """Find promotions of models that are no version of a registered model, or that no gate judges."""
    judged = {model for gate in gates for _, model in gate.tasks}
    families = {task.model for task in tasks if task.replicate}
    targets: dict[tuple[str, str], str] = {}
    for name, model in planning.config.models.items():
        if model.promote is None:
            continue
        path = ("models", name, "promote")
        _find_all(planning, path, _without_version(name, model, families))
        if name not in judged:
            planning.find(path, f"no gate judges {name!r}, and what is not judged is not promoted; add a gate")
        if not planning.config.tracking.enabled:
            planning.find(path, "the alias is MLflow's, and `tracking` is off; enable it, or remove `promote`")
        first = targets.setdefault((model.promote.registered, model.promote.alias), name)
        if first != name:
            planning.find(path, f"{first!r} is promoted to the alias {model.promote.alias!r}, too; remove one")


def _without_version(name: str, model: Model, families: Collection[str]) -> Iterator[str]:
    assert model.promote is not None, "asked of models that are promoted alone"
    example = f"{model.promote.model}/3"
    if name == EVERYTHING:
        yield f"{EVERYTHING!r} stands for several models, and an alias for one version; write the model by its name"
    elif name in families:
        yield f"the replicates of {name!r} are several models, and an alias stands for one version; remove `promote`"
    elif model.model_uri is None:
        yield f"`model_uri` must name the version that made the outputs; add it, as in {example}"
    elif not re.fullmatch(re.escape(model.promote.model) + "/[1-9][0-9]*", model.model_uri):
        found = f"model_uri is {model.model_uri}, which is no version of {model.promote.model} by number"
        yield f"{found}; write it as {example}"
