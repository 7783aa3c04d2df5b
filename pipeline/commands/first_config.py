"""Text of the config that `init` writes, with a comment on each part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from rankledger.pipeline.config.values import is_score_name
from rankledger.pipeline.data.files import suffixes
from rankledger.pipeline.data.recognise import ANSWERS, REPLICATE, Recognised, Role

CONFIG = "rankledger.yaml"
"""Name of the new config."""

DEEP = 100
"""Documents of a ranking, from which recall at that depth says something."""

DATE = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(T\d\d[\d:.-]*\d)?(?!\d)")
_PLAIN = re.compile(r"[A-Za-z_][\w./@-]*", re.ASCII)
_WORDS = {"true", "false", "null", "yes", "no", "on", "off"}  # that YAML 1.1 takes for something else
_LOWER = ("cost", "latency_ms")  # scores that tools write and that are better if lower
_WRITE: dict[Role, tuple[str, str]] = {  # where a file without a place could stand, and by which key
    "judgments": ("a dataset of its own", "judgments"),
    "ratings": ("a dataset of its own", "ratings"),
    "rankings": ("a model", "outputs"),
    "predictions": ("a model, on a dataset with ratings", "outputs"),
    "scores": ("a model, on a dataset with its scores", "outputs"),
}

_MEASURES = (  # kind, key that all datasets have (`!`: that some lack), measure, comment
    ("rankings", "!relevant", "ndcg@10", "how well the first 10 are ordered, by grade; the first measure leads"),
    ("rankings", "relevant", "ndcg(gain=binary)@10", "how well the relevant ones are placed; the first measure leads"),
    ("rankings", "", "rr@10", "1 / rank of the first relevant document"),
    ("rankings", "!deep", "r@10", "share of the relevant documents that was found"),
    ("rankings", "deep", f"r@{DEEP}", "share of the relevant documents that was found"),
    ("rankings", "", "ap", "precision, averaged over the relevant documents"),
    ("rankings", "", "judged@10", "share of the first 10 that is judged; where it differs much, comparing is hard"),
    ("rankings", "documents", "item_coverage@10", "share of the catalogue that somebody gets"),
    ("rankings", "interactions", "novelty@10", "how unknown the documents are, by the interactions"),
    ("ratings", "!labels", "rmse", "root of the mean squared error; the first measure leads"),
    ("ratings", "!labels", "mae", "mean absolute error"),
    ("ratings", "labels", "auc", "area under the ROC curve of all pairs; the first measure leads"),
    ("ratings", "labels", "auc(average=impressions)", "the same of each query, weighted by its pairs"),
)


@dataclass
class DatasetDraft:
    """Keys of one dataset, and the outputs that are measured on it."""

    name: str
    kind: Role
    outputs: dict[str, Recognised]  # by model
    lines: list[tuple[str, object, str]] = field(default_factory=list)  # key, value, comment
    traits: set[str] = field(default_factory=set)  # `deep` rankings, `labels` in place of ratings

    @property
    def keys(self) -> set[str]:
        return {key for key, _, _ in self.lines} | self.traits


@dataclass
class Draft:
    """Contents of the config to write, and the use of each file."""

    name: str
    datasets: list[DatasetDraft] = field(default_factory=list)
    has_folders: bool = False  # each dataset has folders of its name, so that paths are templates
    night: str | None = None
    dated: set[str] = field(default_factory=set)  # outputs whose path has {date}
    other_nights: dict[str, str] = field(default_factory=dict)  # date of each output of another night
    used: dict[str, str] = field(default_factory=dict)  # use of each file with a place
    unused: dict[str, str] = field(default_factory=dict)  # reason for each file without a place

    @property
    def models(self) -> dict[str, dict[str, Recognised]]:
        models: dict[str, dict[str, Recognised]] = {}
        for dataset in self.datasets:
            for model, output in dataset.outputs.items():
                models.setdefault(model, {})[dataset.name] = output
        return models


def stem_of(path: str) -> str:
    """Return the name of a file without its endings."""
    name = PurePosixPath(path).name
    return name[: len(name) - len("".join(suffixes(name)))] or name


def score_settings(tool: str, names: Sequence[str]) -> dict[str, object]:
    """Return what a dataset says about scores. A name that no score can have becomes a column."""
    scores: dict[str, object] = {}
    for name in names:
        direction: object = {"range": [0, 1]} if tool in ANSWERS else "lower" if name in _LOWER else "higher"
        if is_score_name(name):
            scores[name] = direction
        else:
            scores[f"score of {name}"[:200].strip()] = {"column": name, "direction": direction}
    return scores


def config_text(draft: Draft, files: Sequence[Recognised]) -> str:
    """Return the config, with the files that have no place as comments at its end."""
    suites = _suites(draft)
    outputs = {model: _list_outputs(draft, model) for model in draft.models}
    template = next(iter(outputs.values()))
    if not isinstance(template, str) or "{model}" not in template or any(each != template for each in outputs.values()):
        template = None
    blocks = (
        _head(draft),
        _dataset_lines(draft, template),
        _model_lines(draft, {model: value for model, value in outputs.items() if value != template}),
        _suite_lines(suites),
        _comparison_lines(draft),
        _gate_lines(draft, suites),
        _list_unplaced(draft, files),
    )
    return "\n\n".join(filter(None, map("\n".join, blocks))) + "\n"


def _head(draft: Draft) -> Iterator[str]:
    yield "# Written by `rankledger init`, from the files in this folder. Change what is not as you want it."
    if draft.night:
        yield f"# `rankledger nightly {CONFIG} --date {draft.night}` evaluates that night; `{{date}}` is its date."
    else:
        yield f"# `rankledger validate {CONFIG}` reads every file; `rankledger evaluate {CONFIG}` evaluates."
    yield f"name: {draft.name}"


def _dataset_lines(draft: Draft, template: object) -> Iterator[str]:
    lines = [{key: value for key, value, _ in dataset.lines} for dataset in draft.datasets]
    first, *others = lines
    common = {key: value for key, value in first.items() if others and all(other.get(key) == value for other in others)}
    if common or template:
        yield "# What datasets and models share. `{dataset}`, `{model}` and `{date}` are their names and the date."
        yield "defaults:"
        if common:
            yield "  dataset:"
            yield from (f"    {key}: {_yaml(value)}" for key, value in common.items())
        if template:
            yield f"  model: {_yaml({'outputs': template})}"
        yield ""
    yield "# What the models are measured on. Files are joined by the ids of queries and documents."
    yield "datasets:"
    for dataset in draft.datasets:
        yield f"  {_key(dataset.name)}:"
        for key, value, comment in dataset.lines:
            if key not in common:
                yield f"    # {comment}"
                yield f"    {key}: {_yaml(value)}"


def _model_lines(draft: Draft, outputs: Mapping[str, object]) -> Iterator[str]:
    yield "# What each model returned. Beside `outputs` you may record `params: {k1: 0.9}` and `owner: search-team`."
    yield "models:"
    for model, of_datasets in draft.models.items():
        replicates = next(iter(of_datasets.values())).replicates
        numbers = [int(text) if text.isdecimal() else text for text in replicates]
        entry = {"outputs": outputs.get(model), "replicates": numbers}
        written = {key: value for key, value in entry.items() if value}
        yield f"  {_key(model)}:" + (f" {_yaml(written)}" if written else "")


def _list_outputs(draft: Draft, model: str) -> object:
    values = {
        dataset: _output_value(output, path_template(draft, output, dataset, model))
        for dataset, output in draft.models[model].items()
    }
    first = next(iter(values.values()))
    is_one = len(values) == len(draft.datasets) and all(value == first for value in values.values())
    return first if is_one else values


def path_template(draft: Draft, file: Recognised, dataset: str, model: str = "") -> str:
    """Return a path with placeholders for the night, folders and names."""
    *folders, name = map(_escape_braces, file.path.split("/"))
    word, placeholder = (model, "{model}") if model else (dataset, "{dataset}")
    if draft.has_folders:
        folders = ["{dataset}" if folder == _escape_braces(dataset) else folder for folder in folders]
        if stem_of(file.path) == word:
            name = placeholder + name.removeprefix(_escape_braces(word))
    path = "/".join([*folders, name])
    return DATE.sub(lambda date: "{date}*" if date[2] else "{date}", path) if file.name in draft.dated else path


def _output_value(output: Recognised, path: str) -> object:
    if not output.tool:
        return path
    select = {label: text if text == REPLICATE else _escape_braces(text) for label, text in output.select.items()}
    return {"path": path, "format": output.tool, **({"select": select} if select else {})}


def _suites(draft: Draft) -> dict[str, list[tuple[str, str]]]:
    suites = {}
    for kind in dict.fromkeys(dataset.kind for dataset in draft.datasets if dataset.kind != "scores"):
        shared = {""}.union(set.intersection(*(dataset.keys for dataset in draft.datasets if dataset.kind == kind)))
        suites[kind] = [
            (measure, comment)
            for suite_kind, key, measure, comment in _MEASURES
            if suite_kind == kind and (key.removeprefix("!") in shared) != key.startswith("!")
        ]
    return {kind if len(suites) > 1 else "main": measures for kind, measures in suites.items()}


def _suite_lines(suites: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[str]:
    if suites:
        yield "# Measures, as metric(parameter=value)@cutoff; `rankledger measures` lists all, and explains one."
        yield "suites:"
    for name, measures in suites.items():
        yield f"  {name}:"
        width = max(len(measure) for measure, _ in measures)
        yield from (f"    - {measure:{width}}  # {comment}" for measure, comment in measures)
        if any(measure.startswith("item_coverage") for measure, _ in measures):
            yield "    # - awrf(feature=COLUMN)@10  # fairness, where COLUMN is one of the documents, with their groups"


def _comparison_lines(draft: Draft) -> Iterator[str]:
    if len(draft.models) > 1:
        yield "# All other models are compared with the baseline, query by query. Name the one that is in use."
        yield f"comparison: {_yaml({'baseline': _baseline(draft)})}"
        yield ""
    yield "# Intervals come from drawing the queries again, so many times; the same seed gives the same figures."
    yield "bootstrap: {resamples: 10000, confidence: 0.95}"
    yield "seed: 20261120"


def _gate_lines(draft: Draft, suites: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[str]:
    models, baseline = list(draft.models), _baseline(draft)
    outputs = next(iter(draft.datasets[0].outputs.values()), None)
    measure = next(iter(suites.values()))[0][0] if suites else outputs.scores[0] if outputs else ""
    *_, candidate = [model for model in models if model != baseline] or [baseline]
    limit = {"at_most": 1.0} if measure == "rmse" else {"at_least": 0.3}
    yield "# Gates stop a release: `evaluate` exits with 1 if one fails, with 3 if the data cannot say. Remove the #."
    yield "# gates:"
    yield f"#   - {_yaml({'name': 'floor', 'models': candidate, 'measure': measure, **limit})}"
    if draft.night:
        against = "--against previous --margin 0.02"
        yield f"#   - {_yaml({'name': 'no-drop', 'measure': measure, 'against': 'self@last_passed', 'margin': 0.02})}"
    elif len(models) > 1:
        against = "--margin 0.01"
        gate = {"name": "no-worse", "models": candidate, "measure": measure, "against": baseline, "margin": 0.01}
        yield f"#   - {_yaml(gate)}"
    else:
        return
    yield "# Few queries leave a small margin undecided. The margin that yours can decide is `detectable now` of"
    yield f"# `rankledger plan last --name {draft.name} {against}`, after an evaluation."


def _baseline(draft: Draft) -> str:
    likely = [model for word in ("baseline", "bm25", "pop") for model in draft.models if word in model.lower()]
    return next(iter(likely), min(draft.models))


def _list_unplaced(draft: Draft, files: Sequence[Recognised]) -> Iterator[str]:
    dates = sorted({*draft.other_nights.values()})
    unplaced = [file for file in files if file.name not in draft.used and file.name not in draft.other_nights]
    if dates or unplaced:
        yield "# Files that have no place above:"
    if dates:
        nights = " to ".join(dict.fromkeys((dates[0], dates[-1])))
        yield f"# outputs of other nights, {nights}: --date evaluates one"
    for file in unplaced:
        yield f"# {_one_line(file.name)}: {_one_line(draft.unused.get(file.name, file.reason))}"
        path = _escape_braces(file.path)
        if file.role:
            entry, key = _WRITE.get(file.role, ("the dataset", file.role))
            yield f"#   to use it, write {entry}: {key}: {_yaml(_output_value(file, path))}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escape_braces(path: str) -> str:
    return path.replace("{", "{{").replace("}", "}}")


def _yaml(value: object) -> str:
    """Return a value in YAML on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)}: {_yaml(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return _key(value.replace("$", "$$")) if isinstance(value, str) else json.dumps(value)


def _key(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=False)
