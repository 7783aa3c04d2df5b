"""`rankledger init`: a first config for the files of a folder, validated before it is written.

Files without a place are comments at the end of the config, with the reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from rankledger.metrics.measure import Measure
from rankledger.pipeline.commands.evaluate import validate
from rankledger.pipeline.config.values import is_score_name
from rankledger.pipeline.data.checks import rating_like_relevance
from rankledger.pipeline.data.files import suffixes
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.recognise import ANSWERS, REPLICATE, Recognised, Role, recognise, shared_pairs
from rankledger.pipeline.data.rows import Rows
from rankledger.pipeline.support.atomic import partial_beside
from rankledger.pipeline.support.errors import InputError

CONFIG = "rankledger.yaml"
"""Name of the new config."""

_OURS = ("runs/records/", "runs/cache/", "runs/mlflow")  # what evaluations write into the runs folder of a project
_JUDGED: tuple[Role, ...] = ("judgments", "ratings")
_LISTS: tuple[Role, ...] = ("rankings", "predictions")
_DEEP = 100  # documents of a ranking, from which recall at that depth says something
_PREDICTED = 0.5  # of the rows of an output, above which they predict ratings
_RELEVANT = 0.8  # of the greatest rating: 4 of 5 stars
_COLUMNS = re.compile(r"columns: \{[^{}\n]*\}")
_DATE = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(T\d\d[\d:.-]*\d)?(?!\d)")
_PLAIN = re.compile(r"[A-Za-z_][\w./@-]*", re.ASCII)
_WORDS = {"true", "false", "null", "yes", "no", "on", "off"}  # that YAML 1.1 takes for something else
_LOWER = ("cost", "latency_ms")  # scores that tools write and that are better if lower
_LONGEST = 80  # characters of a model's name
_GROUPS = 20  # different texts in a column that groups queries, at most
_OF_GROUP = 5  # queries that a group has on average, at least
_SHOWN = 15  # lines on files
_OF_NIGHT = "of the night"

_WRITE = {  # what to write so that a file has a place
    "judgments": "a dataset of its own: judgments: {path}",
    "ratings": "a dataset of its own: ratings: {path}",
    "rankings": "a model: outputs: {path}",
    "predictions": "a model, on a dataset with ratings: outputs: {path}",
    "scores": "a dataset with `scores: {{{scores}}}`, and a model: outputs: {path}",
    "interactions": "in the dataset: interactions: {path}",
    "queries": "in the dataset: queries: {path}",
    "documents": "in the dataset: documents: {path}",
}
_MISSING: tuple[tuple[set[Role], str], ...] = (  # if a folder has files of the first roles and nothing can be evaluated
    ({"rankings"}, "rankings without judgments; add a file with query_id, doc_id and relevance"),
    ({"predictions"}, "predictions without ratings; add a file with query_id, doc_id and rating"),
    ({*_JUDGED}, "judgments without a model's output; add a file with query_id, doc_id and score"),
    (set(), "neither judgments nor outputs of models; see the guide on data for their columns"),
)
_ADVICE = {  # lines that are comments below a key of a dataset
    "queries": ("slices", "figures of each group of queries, too: remove the #"),
    "interactions": ("seen", "what is there counts in rankings; remove the # to leave it out, or write `refuse`"),
}


_MEASURES = (  # kind, key that all datasets have (`!`: that some lack), measure, comment
    ("rankings", "!relevant", "ndcg@10", "how well the first 10 are ordered, by grade; the first measure leads"),
    ("rankings", "relevant", "ndcg(gain=binary)@10", "how well the relevant ones are placed; the first measure leads"),
    ("rankings", "", "rr@10", "1 / rank of the first relevant document"),
    ("rankings", "!deep", "r@10", "share of the relevant documents that was found"),
    ("rankings", "deep", f"r@{_DEEP}", "share of the relevant documents that was found"),
    ("rankings", "", "ap", "precision, averaged over the relevant documents"),
    ("rankings", "", "judged@10", "share of the first 10 that is judged; where it differs much, comparing is hard"),
    ("rankings", "documents", "item_coverage@10", "share of the catalogue that somebody gets"),
    ("rankings", "interactions", "novelty@10", "how unknown the documents are, by the interactions"),
    ("ratings", "!labels", "rmse", "root of the mean squared error; the first measure leads"),
    ("ratings", "!labels", "mae", "mean absolute error"),
    ("ratings", "labels", "auc", "area under the ROC curve of all pairs; the first measure leads"),
    ("ratings", "labels", "auc(average=impressions)", "the same of each query, weighted by its pairs"),
)


@dataclass(frozen=True)
class FirstConfig:
    """A config that was written."""

    path: Path
    models: tuple[str, ...]
    night: str | None
    """Last date of outputs whose paths differ by their dates alone. None if there are no such outputs."""

    files: tuple[tuple[str, str, str], ...]
    """Path, use and description of each file with data."""

    others: tuple[str, ...]
    """Paths of files without data."""

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        if len(self.files) <= _SHOWN:
            return [*self.files]
        alike: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for path, use, reason in self.files:
            parts = PurePosixPath(_DATE.sub("{date}", path)).parts
            name, ending = parts[-1], "".join(suffixes(path))
            if use.startswith("model ") or reason.startswith(_OF_NIGHT):
                name = f"{{model}}{ending}"
            elif use == "not used":
                name = f"*{ending}"
            alike.setdefault(("/".join([*parts[:-1], name]), use.partition(" ")[0]), []).append((path, use, reason))
        lines = []
        for (path, word), own in alike.items():
            uses = [*dict.fromkeys(use for _, use, _ in own)]
            several = f"{len(uses):,} {word}s" if len(uses) > 1 else uses[0]
            lines.append(own[0] if len(own) == 1 else (path, several, f"{len(own):,} files; {own[0][0]}: {own[0][2]}"))
        n_further = len(lines) - _SHOWN + 1
        return lines if n_further < 2 else [*lines[: _SHOWN - 1], (f"and {n_further:,} more", "", f"see {self.path}")]


@dataclass
class _Dataset:
    name: str
    kind: Role
    lines: list[tuple[str, str, str]] = field(default_factory=list)  # key, value in YAML, comment
    outputs: dict[str, Recognised] = field(default_factory=dict)  # by model
    is_deep: bool = False
    has_labels: bool = False

    @property
    def keys(self) -> set[str]:
        traits = {"deep": self.is_deep, "labels": self.has_labels}
        return {key for key, _, _ in self.lines} | {trait for trait, holds in traits.items() if holds}


@dataclass
class _Draft:
    name: str
    datasets: list[_Dataset] = field(default_factory=list)
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


def init(folder: str | Path = ".", *, force: bool = False) -> FirstConfig:
    """Write `rankledger.yaml` for the files in a folder and below.

    Raises:
        InputError: A config exists already, nothing can be evaluated, or the files do not fit each other.
        OSError: The config cannot be written.
    """
    place = Path(folder)
    path = place / CONFIG
    if not place.is_dir():
        raise InputError(f"{folder}: folder not found; check the path")
    if path.exists() and not force:
        raise InputError(f"{path}: exists already; evaluate it, or write it anew with --force")
    files = [
        replace(file, path=Path(file.path).relative_to(place).as_posix())
        for file in recognise(place, lambda file: _is_ours(file.relative_to(place)))
    ]
    draft = _Draft(re.sub(r"[^A-Za-z0-9]+", "-", place.resolve().name).strip("-")[:60] or "evaluation")
    _add_datasets(draft, files)
    if not draft.datasets:
        raise InputError(*_explain_nothing(place, files))
    _write_validated(path, draft, files)
    lines = [
        (file.name, draft.used[file.name], file.reason)
        if file.name in draft.used
        else (file.name, "not used", draft.unused.get(file.name, file.reason))
        for file in files
        if file.role or file.reason
    ]
    others = tuple(file.path for file in files if file.role is None and not file.reason)
    return FirstConfig(path, tuple(draft.models), draft.night, tuple(lines), others)


def _is_ours(path: Path) -> bool:
    return path.as_posix().startswith(_OURS) or path.suffix in (".yaml", ".yml")


def _explain_nothing(folder: Path, files: Sequence[Recognised]) -> Iterator[str]:
    roles = {file.role for file in files}
    yield f"{folder}: found {next(missing for needed, missing in _MISSING if not needed or needed & roles)}"
    noted = [file for file in files if file.role or file.reason]
    for file in noted[:_SHOWN]:
        yield f"{file.path}: {file.role or 'not recognised'}: {file.reason}"
    if len(noted) > _SHOWN:
        yield f"and {len(noted) - _SHOWN:,} more"


def _add_datasets(draft: _Draft, files: Sequence[Recognised]) -> None:
    lists = _take_last_night(draft, [file for file in files if file.role in _LISTS])
    kept = [file for file in files if file.role and file.role not in _LISTS]
    for name, own in _split_by_dataset(draft, [*lists, *kept]).items():
        of: dict[Role, list[Recognised]] = {}
        for file in own:
            if file.role:
                of.setdefault(file.role, []).append(file)
        _tell_lists(of)
        if "rankings" in of and (of.keys() & {*_JUDGED}):
            dataset = _add_rankings(draft, _Dataset(name, "rankings"), of)
        elif "predictions" in of and "ratings" in of:
            dataset = _add_ratings(draft, _Dataset(name, "ratings"), of)
        elif "scores" in of and not draft.has_folders:
            dataset = _add_scores(draft, _Dataset(name, "scores"), of)
        else:
            continue
        draft.datasets.append(dataset)
        for model, output in dataset.outputs.items():
            draft.used[output.name] = f"model {model} on {name}" if draft.has_folders else f"model {model}"


def _take_last_night(draft: _Draft, outputs: Sequence[Recognised]) -> list[Recognised]:
    """Return the outputs of the last date if paths differ by dates alone, one run of each model."""
    runs: dict[tuple[str, str], dict[str, list[Recognised]]] = {}  # by all but the date, and by date
    for output in outputs:
        date, _ = next(iter(_DATE.findall(output.path)), ("", ""))
        shape = (_DATE.sub("{date}", output.path), output.name.removeprefix(output.path))
        runs.setdefault(shape, {}).setdefault(date, []).append(output)
    if any(len(dated) > 1 for dated in runs.values()):
        draft.night = max(date for dated in runs.values() for date in dated)
    last = []
    for dated in runs.values():
        taken = draft.night if draft.night and "" not in dated else max(dated)
        for date, own in dated.items():
            if date != taken:
                draft.other_nights |= dict.fromkeys([output.name for output in own], date)
                continue
            draft.unused |= {output.name: "an earlier run of its model" for output in own[:-1]}
            last.append(own[-1])
            if date == draft.night and len(own) == 1:
                draft.dated.add(own[0].name)
    draft.unused |= {
        name: f"{_OF_NIGHT} {date}: --date {date} evaluates it" for name, date in draft.other_nights.items()
    }
    return last


def _split_by_dataset(draft: _Draft, files: Sequence[Recognised]) -> dict[str, list[Recognised]]:
    """Return the files of each dataset, named like a folder of outputs if its judgments are, too."""
    words = {file.name: [*PurePosixPath(file.path).parts[:-1], _stem(file.path)] for file in files}
    judged = [words[file.name] for file in files if file.role in _JUDGED]
    lists = [file for file in files if file.role in _LISTS]
    folders = {word for file in lists for word in words[file.name][:-1] if not _DATE.search(word)} - {"path"}
    shared = set.intersection(*map(set, judged)) if judged else set()
    names = dict.fromkeys(
        next((word for word in reversed(own) if word in folders - shared), None)
        or next((word for word in reversed(own) if word in folders), "")
        for own in judged
    )
    dataset_of = {
        file.name: next((word for word in reversed(words[file.name]) if word and word in names), "") for file in files
    }
    outside = [file.name for file in files if file.role in (*_JUDGED, *_LISTS) and not dataset_of[file.name]]
    names.pop("", None)
    if not names or (len(names) == 1 and outside):
        return {draft.name: [*files]}
    draft.has_folders = True
    draft.unused |= dict.fromkeys(outside, "not in a folder of a dataset")
    left = [file for file in files if file.name not in outside]
    return {name: [file for file in left if dataset_of[file.name] in (name, "")] for name in names}


def _tell_lists(of: dict[Role, list[Recognised]]) -> None:
    judged, lists = of.get("ratings") or of.get("judgments", []), of.get("rankings", [])
    if lists and judged and all(file.may_predict for file in lists):
        rated = shared_pairs([_rows(file) for file in lists], [_rows(file) for file in judged])
        if all(n > _PREDICTED * len(_rows(file).values) for n, file in zip(rated, lists, strict=True)):
            of["predictions"] = [replace(file, role="predictions") for file in of.pop("rankings")]
    if "predictions" in of and "rankings" not in of and judged:
        of["ratings"] = judged


def _add_rankings(draft: _Draft, dataset: _Dataset, of: Mapping[Role, Sequence[Recognised]]) -> _Dataset:
    chosen = _choose_judgments(draft, of.get("judgments") or of["ratings"], of["rankings"])
    rows = _rows(chosen)
    _place(draft, dataset, "judgments", chosen, ", columns: {relevance: rating}" if chosen.role == "ratings" else "")
    if rating_like_relevance(index_judgments(rows, keep_first=True), [Measure.parse("rr")], None):
        greatest = rows.values.max()
        comment = f"the lowest grade that counts as relevant; grades go to {greatest:g}"
        dataset.lines.append(("relevant", f"{_RELEVANT * greatest:g}", comment))
    _add_tables(draft, dataset, rows, of)
    _add_interactions(draft, dataset, rows, of)
    dataset.outputs = _name_models(of["rankings"])
    dataset.is_deep = max(int(_rows(output).counts.max()) for output in of["rankings"]) >= _DEEP
    return dataset


def _add_ratings(draft: _Draft, dataset: _Dataset, of: Mapping[Role, Sequence[Recognised]]) -> _Dataset:
    chosen = _choose_judgments(draft, of["ratings"], of["predictions"])
    _place(draft, dataset, "ratings", chosen)
    _add_tables(draft, dataset, _rows(chosen), {role: files for role, files in of.items() if role != "documents"})
    dataset.outputs = _name_models(of["predictions"])
    dataset.has_labels = set(_rows(chosen).values) <= {0, 1}
    return dataset


def _add_scores(draft: _Draft, dataset: _Dataset, of: Mapping[Role, Sequence[Recognised]]) -> _Dataset:
    tasks = Counter(file.dataset for file in of["scores"])
    task = max(tasks, key=lambda name: tasks[name])
    for file in of["scores"]:
        if file.dataset != task:
            measured = f"the models are measured on {task or 'scores without a task'}"
            draft.unused[file.name] = f"scores of {file.dataset or 'no task'}; {measured}"
    files = [file for file in of["scores"] if file.dataset == task]
    sets = [frozenset(file.scores) for file in files]
    common = max(sets, key=lambda names: (sum(names <= other for other in sets), len(names)))
    fitting = _take_last_night(draft, [file for file in files if common <= set(file.scores)])
    first = fitting[0]
    comment = first.reason if first.tool in ANSWERS else "write lower where less is better, neither where neither is"
    scores = _scores(first.tool, [name for name in first.scores if name in common])
    dataset.lines.append(("scores", f"{{{scores}}}", comment))
    for file in of.get("queries", ()):
        if {query_id for output in fitting for query_id in _ids(output)} <= _ids(file):
            _place(draft, dataset, "queries", file)
            break
    dataset.outputs = _name_models(fitting)
    return dataset


def _scores(tool: str, names: Sequence[str]) -> str:
    meaning = "{range: [0, 1]}" if tool in ANSWERS else "higher"
    directions = {name: "lower" if name in _LOWER else meaning for name in names}
    return ", ".join(
        f"{_key(name)}: {direction}"
        if is_score_name(name)
        else f"{_key(f'score of {name}'[:200].strip())}: {{column: {_text(name)}, direction: {direction}}}"
        for name, direction in directions.items()
    )


def _choose_judgments(draft: _Draft, candidates: Sequence[Recognised], outputs: Sequence[Recognised]) -> Recognised:
    shared = list(shared_pairs([_rows(file) for file in candidates], [_rows(file) for file in outputs]))
    best = max(range(len(candidates)), key=lambda place: (not _is_training(candidates[place]), shared[place]))
    for file, n_shared in zip(candidates, shared, strict=True):
        if file is not candidates[best]:
            chosen = f"{candidates[best].path}, with {shared[best]:,}"
            draft.unused[file.name] = f"{file.role}, but the outputs have {n_shared:,} of its pairs; chosen: {chosen}"
    return candidates[best]


def _is_training(file: Recognised) -> bool:
    return "train" in PurePosixPath(file.path).name.lower()


def _place(draft: _Draft, dataset: _Dataset, key: str, file: Recognised, further: str = "") -> None:
    draft.used[file.name] = f"{key} of {dataset.name}" if draft.has_folders else key
    path = _template(draft, file, dataset.name)
    dataset.lines.append((key, f"{{path: {path}{further}}}" if further else path, file.reason))
    columns = file.ids.texts if key == "queries" and file.ids else {}
    groups = [name for name, texts in columns.items() if 1 < len(set(texts)) <= min(_GROUPS, len(texts) / _OF_GROUP)]
    if groups or key == "interactions":
        advised, comment = _ADVICE[key]
        value = f"[{', '.join(map(_text, groups))}]" if groups else "remove"
        dataset.lines.append((f"# {advised}", value, comment))


def _add_tables(draft: _Draft, dataset: _Dataset, rows: Rows, of: Mapping[Role, Sequence[Recognised]]) -> None:
    for file in (*of.get("queries", ()), *of.get("scores", ())):
        n_missing = len(set(rows.query_ids) - _ids(file))
        if file.ids is None or n_missing:
            draft.unused[file.name] = f"{file.role} without {n_missing:,} of the judged queries"
        elif "queries" not in dataset.keys:
            _place(draft, dataset, "queries", file)
    judged = set(rows.doc_ids.unique().to_pylist())
    catalogues = sorted(of.get("documents", ()), key=lambda file: -len(judged & _ids(file)))
    if catalogues and judged & _ids(catalogues[0]):
        _place(draft, dataset, "documents", catalogues[0])


def _add_interactions(draft: _Draft, dataset: _Dataset, rows: Rows, of: Mapping[Role, Sequence[Recognised]]) -> None:
    training = [file for file in of.get("judgments", ()) if _is_training(file)]
    candidates = [*of.get("interactions", ()), *of.get("ratings", ()), *training]
    candidates = [file for file in candidates if file.name not in draft.used]
    shared = shared_pairs([_rows(file) for file in candidates], [rows])
    before = [
        file
        for file, n_shared in zip(candidates, shared, strict=True)
        if not n_shared and set(rows.query_ids) & set(_rows(file).query_ids)
    ]
    if before:
        chosen = max(before, key=lambda file: len(_rows(file).values))
        draft.unused.pop(chosen.name, None)
        _place(draft, dataset, "interactions", chosen)


def _name_models(outputs: Sequence[Recognised]) -> dict[str, Recognised]:
    names = [" ".join(output.model.split())[:_LONGEST] or _stem(output.path) for output in outputs]
    models: dict[str, Recognised] = {}
    for name, output in zip(names, outputs, strict=True):
        model = name if names.count(name) == 1 else output.path.replace("/", "-")
        models[model if model not in models else f"{model}-{len(models)}"] = output
    return models


def _stem(path: str) -> str:
    name = PurePosixPath(path).name
    return name[: len(name) - len("".join(suffixes(name)))] or name


def _rows(file: Recognised) -> Rows:
    assert file.rows is not None, "its role has rows"
    return file.rows


def _ids(file: Recognised) -> set[str]:
    return set() if file.ids is None else set(file.ids.ids.to_pylist())


def _write_validated(path: Path, draft: _Draft, files: Sequence[Recognised]) -> None:
    """Write the config without the outputs that an evaluation refuses. Raise InputError if none is left."""
    datasets = {dataset.name: dataset for dataset in draft.datasets}
    with partial_beside(path) as partial:
        partial.write_text(_config_text(draft, files), encoding="utf-8", errors="replace")
        failures = validate(partial, date=draft.night).failures
        for failure in failures:
            if output := datasets[failure.dataset].outputs.pop(failure.model, None):
                draft.unused[output.name] = failure.reason
                del draft.used[output.name]
        if not draft.models:
            raise InputError(*(failure.reason for failure in failures))
        partial.write_text(_config_text(draft, files), encoding="utf-8", errors="replace")
        partial.replace(path)


def _config_text(draft: _Draft, files: Sequence[Recognised]) -> str:
    parts = (_head, _dataset_lines, _model_lines, _suite_lines, _comparison_lines, _gate_lines)
    blocks = ["\n".join(part(draft)) for part in parts]
    return "\n\n".join([*filter(None, blocks), *_unplaced(draft, files)]) + "\n"


def _head(draft: _Draft) -> Iterator[str]:
    yield "# Written by `rankledger init`, from the files in this folder. Change what is not as you want it."
    if draft.night:
        yield f"# `rankledger nightly {CONFIG} --date {draft.night}` evaluates that night; `{{date}}` is its date."
    else:
        yield f"# `rankledger validate {CONFIG}` reads every file; `rankledger evaluate {CONFIG}` evaluates."
    yield f"name: {draft.name}"


def _dataset_lines(draft: _Draft) -> Iterator[str]:
    first = {key: value for key, value, _ in draft.datasets[0].lines}
    others = [{key: value for key, value, _ in dataset.lines} for dataset in draft.datasets[1:]]
    common = {key for key, value in first.items() if others and all(lines.get(key) == value for lines in others)}
    template = _common_outputs(draft)
    if common or template:
        yield "# What datasets and models share. `{dataset}`, `{model}` and `{date}` are their names and the date."
        yield "defaults:"
        if common:
            yield "  dataset:"
            yield from (f"    {key}: {first[key]}" for key in first if key in common)
        if template:
            yield f"  model: {{outputs: {template}}}"
        yield ""
    yield "# What the models are measured on. Files are joined by the ids of queries and documents."
    yield "datasets:"
    for dataset in draft.datasets:
        yield f"  {_text(dataset.name)}:"
        for key, value, comment in dataset.lines:
            if key not in common:
                yield f"    # {comment}"
                yield f"    {key}: {value}"


def _model_lines(draft: _Draft) -> Iterator[str]:
    yield "# What each model returned. Beside `outputs` you may record `params: {k1: 0.9}` and `owner: search-team`."
    yield "models:"
    template = _common_outputs(draft)
    for model in draft.models:
        outputs, replicates = _outputs_of(draft, model)
        listed = ", ".join(text if text.isdecimal() else _text(text) for text in replicates)
        further = f", replicates: [{listed}]" if listed else ""
        yield f"  {_key(model)}:" + ("" if outputs == template else f" {{outputs: {outputs}{further}}}")


def _common_outputs(draft: _Draft) -> str:
    outputs = {_outputs_of(draft, model)[0] for model in draft.models}
    template = outputs.pop()
    return template if not outputs and "{model}" in template and not template.startswith("{") else ""


def _outputs_of(draft: _Draft, model: str) -> tuple[str, tuple[str, ...]]:
    own = draft.models[model]
    written = {
        dataset: _output_value(output, _template(draft, output, dataset, model)) for dataset, output in own.items()
    }
    replicates = next(iter(own.values())).replicates
    if len(written) == len(draft.datasets) and len(set(written.values())) == 1:
        return next(iter(written.values())), replicates
    return f"{{{', '.join(f'{_key(dataset)}: {value}' for dataset, value in written.items())}}}", replicates


def _template(draft: _Draft, file: Recognised, dataset: str, model: str = "") -> str:
    """Return a path in YAML with placeholders for the night, folders and names."""
    *folders, name = map(_braced, file.path.split("/"))
    word, placeholder = (model, "{model}") if model else (dataset, "{dataset}")
    if draft.has_folders:
        folders = ["{dataset}" if folder == _braced(dataset) else folder for folder in folders]
        if _stem(file.path) == word:
            name = placeholder + name.removeprefix(_braced(word))
    path = "/".join([*folders, name])
    if file.name in draft.dated:
        path = _DATE.sub(lambda found: "{date}*" if found[2] else "{date}", path)
    return _text(path)


def _output_value(output: Recognised, path: str) -> str:
    if not output.tool:
        return path
    select = ", ".join(
        f"{label}: {json.dumps(text) if text == REPLICATE else _text(_braced(text))}"
        for label, text in output.select.items()
    )
    selected = f", select: {{{select}}}" if select else ""
    return f"{{path: {path}, format: {output.tool}{selected}}}"


def _suite_lines(draft: _Draft) -> Iterator[str]:
    suites = _suites(draft)
    if suites:
        yield "# Measures, as metric(parameter=value)@cutoff; `rankledger measures` lists all, and explains one."
        yield "suites:"
    for name, measures in suites.items():
        yield f"  {name}:"
        width = max(len(measure) for measure, _ in measures)
        yield from (f"    - {measure:{width}}  # {comment}" for measure, comment in measures)
        if any(measure.startswith("item_coverage") for measure, _ in measures):
            yield "    # - awrf(feature=COLUMN)@10  # fairness, where COLUMN is one of the documents, with their groups"


def _suites(draft: _Draft) -> dict[str, list[tuple[str, str]]]:
    suites = {}
    for kind in dict.fromkeys(dataset.kind for dataset in draft.datasets if dataset.kind != "scores"):
        shared = {""}.union(set.intersection(*(dataset.keys for dataset in draft.datasets if dataset.kind == kind)))
        suites[kind] = [
            (measure, comment)
            for of, key, measure, comment in _MEASURES
            if of == kind and (key.removeprefix("!") in shared) != key.startswith("!")
        ]
    return {kind if len(suites) > 1 else "main": measures for kind, measures in suites.items()}


def _comparison_lines(draft: _Draft) -> Iterator[str]:
    if len(draft.models) > 1:
        yield "# All other models are compared with the baseline, query by query. Name the one that is in use."
        yield f"comparison: {{baseline: {_text(_baseline(draft))}}}"
        yield ""
    yield "# Intervals come from drawing the queries again, so many times; the same seed gives the same figures."
    yield "bootstrap: {resamples: 10000, confidence: 0.95}"
    yield "seed: 20261120"


def _gate_lines(draft: _Draft) -> Iterator[str]:
    models, baseline = list(draft.models), _baseline(draft)
    suites = list(_suites(draft).values())
    measure = suites[0][0][0] if suites else next(iter(draft.datasets[0].outputs.values())).scores[0]
    *_, candidate = [model for model in models if model != baseline] or [baseline]
    limit = "at_most: 1.0" if measure == "rmse" else "at_least: 0.3"
    yield "# Gates stop a release: `evaluate` exits with 1 if one fails, with 3 if the data cannot say. Remove the #."
    yield "# gates:"
    yield f"#   - {{name: floor, models: {_text(candidate)}, measure: {_text(measure)}, {limit}}}"
    if draft.night:
        yield f"#   - {{name: no-drop, measure: {_text(measure)}, against: self@last_passed, margin: 0.02}}"
    elif len(models) > 1:
        against = f"against: {_text(baseline)}, margin: 0.01"
        yield f"#   - {{name: no-worse, models: {_text(candidate)}, measure: {_text(measure)}, {against}}}"
    if draft.night or len(models) > 1:
        against = "--against previous --margin 0.02" if draft.night else "--margin 0.01"
        yield "# Few queries leave a small margin undecided. The margin that yours can decide is `detectable now` of"
        yield f"# `rankledger plan last --name {draft.name} {against}`, after an evaluation."


def _baseline(draft: _Draft) -> str:
    likely = [model for word in ("baseline", "bm25", "pop") for model in draft.models if word in model.lower()]
    return next(iter(likely), min(draft.models))


def _unplaced(draft: _Draft, files: Sequence[Recognised]) -> Iterator[str]:
    lines = []
    if dates := sorted({*draft.other_nights.values()}):
        nights = " to ".join(dict.fromkeys((dates[0], dates[-1])))
        lines.append(f"# outputs of other nights, {nights}: --date evaluates one")
    for file in files:
        if file.name in draft.used or file.name in draft.other_nights or not (file.role or file.reason):
            continue
        lines.append(f"# {_line(file.name)}: {_line(draft.unused.get(file.name, file.reason))}")
        path = _text(_braced(file.path))
        if file.role:
            write = _WRITE[file.role].format(path=_output_value(file, path), scores=_scores(file.tool, file.scores))
            lines.append(f"#   to use it, write {write}")
        elif not file.tool:
            lines.append("#   to use it, map its columns, such as")
            columns = _COLUMNS.search(file.reason)  # which the reader proposes, where it knows them
            mapped = columns[0] if columns else "columns: {query_id: …, doc_id: …, score: …}"
            lines.append(f"#   outputs: {{path: {path}, {mapped}}}")
    if lines:
        yield "\n".join(["# Files that have no place above:", *lines])


def _line(text: str) -> str:
    return " ".join(text.split())


def _braced(path: str) -> str:
    return path.replace("{", "{{").replace("}", "}}")


def _text(text: str) -> str:
    return _key(text.replace("$", "$$"))


def _key(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=False)
