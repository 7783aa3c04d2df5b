"""First config for the files of a folder, validated before it is written: `rankledger init`.

Files without a place are comments at the end of the config, with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from rankledger.metrics.measure import Measure
from rankledger.pipeline.commands.evaluate import validate
from rankledger.pipeline.commands.first_config import (
    CONFIG,
    DATE,
    DEEP,
    DatasetDraft,
    Draft,
    config_text,
    path_template,
    score_settings,
    stem_of,
)
from rankledger.pipeline.data.checks import rating_like_relevance
from rankledger.pipeline.data.files import suffixes
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.recognise import ANSWERS, Recognised, Role, recognise, shared_pairs
from rankledger.pipeline.data.rows import Rows
from rankledger.pipeline.support.atomic import partial_beside
from rankledger.pipeline.support.errors import InputError

_OURS = ("runs/records/", "runs/cache/", "runs/mlflow")  # what evaluations write into the runs folder of a project
_JUDGED: tuple[Role, ...] = ("judgments", "ratings")
_LISTS: tuple[Role, ...] = ("rankings", "predictions")
_PREDICTED = 0.5  # of the rows of an output, above which they predict ratings
_RELEVANT = 0.8  # of the greatest rating: 4 of 5 stars
_LONGEST = 80  # characters of a model's name
_GROUPS = 20  # different texts in a column that groups queries, at most
_OF_GROUP = 5  # queries that a group has on average, at least
_SHOWN = 15  # lines on files
_OF_NIGHT = "of the night"
_UNUSED = "not used"

_MISSING: tuple[tuple[set[Role], str], ...] = (  # if a folder has files of the first roles and nothing can be evaluated
    ({"rankings"}, "rankings without judgments; add a file with query_id, doc_id and relevance"),
    ({"predictions"}, "predictions without ratings; add a file with query_id, doc_id and rating"),
    ({*_JUDGED}, "judgments without a model's output; add a file with query_id, doc_id and score"),
    (set(), "neither judgments nor outputs of models; see the guide on data for their columns"),
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
        """Path, use and description of each file, or of files alike if there are many."""
        if len(self.files) <= _SHOWN:
            return [*self.files]
        alike: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for path, use, reason in self.files:
            parts = PurePosixPath(DATE.sub("{date}", path)).parts
            name, ending = parts[-1], "".join(suffixes(path))
            if use.startswith("model ") or reason.startswith(_OF_NIGHT):
                name = f"{{model}}{ending}"
            elif use == _UNUSED:
                name = f"*{ending}"
            alike.setdefault(("/".join([*parts[:-1], name]), use.partition(" ")[0]), []).append((path, use, reason))
        lines = []
        for (path, word), group in alike.items():
            uses = [*dict.fromkeys(use for _, use, _ in group)]
            several = f"{len(uses):,} {word}s" if len(uses) > 1 else uses[0]
            lines.append(
                group[0] if len(group) == 1 else (path, several, f"{len(group):,} files; {group[0][0]}: {group[0][2]}")
            )
        n_further = len(lines) - _SHOWN + 1
        return lines if n_further < 2 else [*lines[: _SHOWN - 1], (f"and {n_further:,} more", "", f"see {self.path}")]


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
    recognised = [
        replace(file, path=Path(file.path).relative_to(place).as_posix())
        for file in recognise(
            place, lambda path: path.relative_to(place).as_posix().startswith(_OURS) or path.suffix in (".yaml", ".yml")
        )
    ]
    files = [file for file in recognised if file.role or file.reason]
    draft = Draft(re.sub(r"[^A-Za-z0-9]+", "-", place.resolve().name).strip("-")[:60] or "evaluation")
    _add_datasets(draft, [file for file in files if file.role])
    if not draft.datasets:
        roles = {file.role for file in files}
        missing = next(missing for needed, missing in _MISSING if not needed or needed & roles)
        lines = [f"{file.path}: {file.role or 'not recognised'}: {file.reason}" for file in files]
        further = [f"and {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
        raise InputError(f"{folder}: found {missing}", *lines[:_SHOWN], *further)
    _write_validated(path, draft, files)
    uses = ((draft.used.get(file.name, _UNUSED), draft.unused.get(file.name, file.reason)) for file in files)
    described = tuple((file.name, *use) for file, use in zip(files, uses, strict=True))
    return FirstConfig(
        path,
        tuple(draft.models),
        draft.night,
        described,
        tuple(file.path for file in recognised if not (file.role or file.reason)),
    )


def _add_datasets(draft: Draft, files: Sequence[Recognised]) -> None:
    lists = _take_last_night(draft, [file for file in files if file.role in _LISTS])
    others = [file for file in files if file.role not in _LISTS]
    for name, members in _split_by_dataset(draft, [*lists, *others]).items():
        by_role: dict[Role, list[Recognised]] = {}
        for file in members:
            by_role.setdefault(file.role, []).append(file)  # type: ignore[arg-type]
        _assign_roles(by_role)
        if ("rankings" in by_role and by_role.keys() & {*_JUDGED}) or (
            "predictions" in by_role and "ratings" in by_role
        ):
            dataset = _judged_dataset(draft, name, by_role)
        elif "scores" in by_role and not draft.has_folders:
            dataset = _scored_dataset(draft, name, by_role)
        else:
            continue
        draft.datasets.append(dataset)
        for model, output in dataset.outputs.items():
            draft.used[output.name] = f"model {model} on {name}" if draft.has_folders else f"model {model}"


def _take_last_night(draft: Draft, outputs: Sequence[Recognised]) -> list[Recognised]:
    """Return the outputs of the last date if paths differ by dates alone, one run of each model."""
    runs: dict[tuple[str, str], dict[str, list[Recognised]]] = {}  # by all but the date, and by date
    for output in outputs:
        date, _ = next(iter(DATE.findall(output.path)), ("", ""))
        shape = (DATE.sub("{date}", output.path), output.name.removeprefix(output.path))
        runs.setdefault(shape, {}).setdefault(date, []).append(output)
    if any(len(dated) > 1 for dated in runs.values()):
        draft.night = max(date for dated in runs.values() for date in dated)
    last = []
    for dated in runs.values():
        night = draft.night if draft.night and "" not in dated else max(dated)
        for date, group in dated.items():
            if date != night:
                draft.other_nights |= dict.fromkeys([output.name for output in group], date)
                continue
            draft.unused |= {output.name: "an earlier run of its model" for output in group[:-1]}
            last.append(group[-1])
            if date == draft.night and len(group) == 1:
                draft.dated.add(group[0].name)
    draft.unused |= {
        name: f"{_OF_NIGHT} {date}: --date {date} evaluates it" for name, date in draft.other_nights.items()
    }
    return last


def _split_by_dataset(draft: Draft, files: Sequence[Recognised]) -> dict[str, list[Recognised]]:
    """Return the files of each dataset, named like a folder of outputs if its judgments are, too."""
    words = {file.name: [*PurePosixPath(file.path).parts[:-1], stem_of(file.path)] for file in files}
    judged = [words[file.name] for file in files if file.role in _JUDGED]
    lists = [file for file in files if file.role in _LISTS]
    folders = {word for file in lists for word in words[file.name][:-1] if not DATE.search(word)} - {"path"}
    shared = set.intersection(*map(set, judged)) if judged else set()
    names = dict.fromkeys(
        next((word for word in reversed(words) if word in folders - shared), None)
        or next((word for word in reversed(words) if word in folders), "")
        for words in judged
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
    members = [file for file in files if file.name not in outside]
    return {name: [file for file in members if dataset_of[file.name] in (name, "")] for name in names}


def _assign_roles(of: dict[Role, list[Recognised]]) -> None:
    """Move rankings whose pairs are mostly rated to predictions. Use judgments as ratings if there are predictions."""
    judged, lists = of.get("ratings") or of.get("judgments", []), of.get("rankings", [])
    if lists and judged and all(file.may_predict for file in lists):
        rated = shared_pairs([_rows(file) for file in lists], [_rows(file) for file in judged])
        if all(n > _PREDICTED * len(_rows(file).values) for n, file in zip(rated, lists, strict=True)):
            of["predictions"] = [replace(file, role="predictions") for file in of.pop("rankings")]
    if "predictions" in of and "rankings" not in of and judged:
        of["ratings"] = judged


def _judged_dataset(draft: Draft, name: str, of: Mapping[Role, Sequence[Recognised]]) -> DatasetDraft:
    is_ranked = "rankings" in of and bool(of.keys() & {*_JUDGED})
    outputs = of["rankings" if is_ranked else "predictions"]
    dataset = DatasetDraft(name, "rankings" if is_ranked else "ratings", _name_models(outputs))
    chosen = _choose_judgments(draft, (is_ranked and of.get("judgments")) or of["ratings"], outputs)
    rows = _rows(chosen)
    _place(draft, dataset, "judgments" if is_ranked else "ratings", chosen)
    if is_ranked and rating_like_relevance(index_judgments(rows, keep_first=True), [Measure.parse("rr")], None):
        maximum = float(rows.values.max())
        comment = f"the lowest grade that counts as relevant; grades go to {maximum:g}"
        dataset.lines.append(("relevant", float(f"{_RELEVANT * maximum:g}"), comment))
    for file in (*of.get("queries", ()), *of.get("scores", ())):
        n_missing = len(set(rows.query_ids) - _ids(file))
        if file.ids is None or n_missing:
            draft.unused[file.name] = f"{file.role} without {n_missing:,} of the judged queries"
        elif "queries" not in dataset.keys:
            _place(draft, dataset, "queries", file)
    if not is_ranked:
        dataset.traits |= {"labels"} if set(rows.values) <= {0, 1} else set()
        return dataset
    judged = set(rows.doc_ids.unique().to_pylist())
    catalogues = sorted(of.get("documents", ()), key=lambda file: -len(judged & _ids(file)))
    if catalogues and judged & _ids(catalogues[0]):
        _place(draft, dataset, "documents", catalogues[0])
    if consumed := _find_interactions(draft, rows, of):
        _place(draft, dataset, "interactions", consumed)
    dataset.traits |= {"deep"} if max(int(_rows(output).counts.max()) for output in outputs) >= DEEP else set()
    return dataset


def _find_interactions(draft: Draft, rows: Rows, of: Mapping[Role, Sequence[Recognised]]) -> Recognised | None:
    """Return the largest file of the same queries that shares no pair with the judgments. None if there is none."""
    training = [file for file in of.get("judgments", ()) if _is_training(file)]
    candidates = [*of.get("interactions", ()), *of.get("ratings", ()), *training]
    candidates = [file for file in candidates if file.name not in draft.used]
    shared = shared_pairs([_rows(file) for file in candidates], [rows])
    before = [
        file
        for file, n_shared in zip(candidates, shared, strict=True)
        if not n_shared and set(rows.query_ids) & set(_rows(file).query_ids)
    ]
    return max(before, key=lambda file: len(_rows(file).values), default=None)


def _scored_dataset(draft: Draft, name: str, of: Mapping[Role, Sequence[Recognised]]) -> DatasetDraft:
    task = Counter(file.dataset for file in of["scores"]).most_common(1)[0][0]
    for file in of["scores"]:
        if file.dataset != task:
            measured = f"the models are measured on {task or 'scores without a task'}"
            draft.unused[file.name] = f"scores of {file.dataset or 'no task'}; {measured}"
    files = [file for file in of["scores"] if file.dataset == task]
    sets = [frozenset(file.scores) for file in files]
    common = max(sets, key=lambda names: (sum(names <= other for other in sets), len(names)))
    fitting = _take_last_night(draft, [file for file in files if common <= set(file.scores)])
    first = fitting[0]
    dataset = DatasetDraft(name, "scores", _name_models(fitting))
    comment = first.reason if first.tool in ANSWERS else "write lower where less is better, neither where neither is"
    scores = score_settings(first.tool, [name for name in first.scores if name in common])
    dataset.lines.append(("scores", scores, comment))
    for file in of.get("queries", ()):
        if {query_id for output in fitting for query_id in _ids(output)} <= _ids(file):
            _place(draft, dataset, "queries", file)
            break
    return dataset


def _choose_judgments(draft: Draft, candidates: Sequence[Recognised], outputs: Sequence[Recognised]) -> Recognised:
    shared = list(shared_pairs([_rows(file) for file in candidates], [_rows(file) for file in outputs]))
    best = max(range(len(candidates)), key=lambda place: (not _is_training(candidates[place]), shared[place]))
    for file, n_shared in zip(candidates, shared, strict=True):
        if file is not candidates[best]:
            chosen = f"{candidates[best].path}, with {shared[best]:,}"
            draft.unused[file.name] = f"{file.role}, but the outputs have {n_shared:,} of its pairs; chosen: {chosen}"
    return candidates[best]


def _is_training(file: Recognised) -> bool:
    return "train" in PurePosixPath(file.path).name.lower()


def _place(draft: Draft, dataset: DatasetDraft, key: str, file: Recognised) -> None:
    draft.used[file.name] = f"{key} of {dataset.name}" if draft.has_folders else key
    draft.unused.pop(file.name, None)
    path = path_template(draft, file, dataset.name)
    is_rated = key == "judgments" and file.role == "ratings"
    value = {"path": path, "columns": {"relevance": "rating"}} if is_rated else path
    dataset.lines.append((key, value, file.reason))
    if key == "interactions":
        comment = "what is there counts in rankings; remove the # to leave it out, or write `refuse`"
        dataset.lines.append(("# seen", "remove", comment))
    columns = file.ids.texts if key == "queries" and file.ids else {}
    groups = [name for name, texts in columns.items() if 1 < len(set(texts)) <= min(_GROUPS, len(texts) / _OF_GROUP)]
    if groups:
        dataset.lines.append(("# slices", groups, "figures of each group of queries, too: remove the #"))


def _name_models(outputs: Sequence[Recognised]) -> dict[str, Recognised]:
    names = [" ".join(output.model.split())[:_LONGEST] or stem_of(output.path) for output in outputs]
    models: dict[str, Recognised] = {}
    for name, output in zip(names, outputs, strict=True):
        model = name if names.count(name) == 1 else output.path.replace("/", "-")
        models[model if model not in models else f"{model}-{len(models)}"] = output
    return models


def _rows(file: Recognised) -> Rows:
    assert file.rows is not None, "its role has rows"
    return file.rows


def _ids(file: Recognised) -> set[str]:
    return set() if file.ids is None else set(file.ids.ids.to_pylist())


def _write_validated(path: Path, draft: Draft, files: Sequence[Recognised]) -> None:
    """Write the config without the outputs that an evaluation refuses. Raise InputError if none is left."""
    datasets = {dataset.name: dataset for dataset in draft.datasets}
    with partial_beside(path) as partial:
        partial.write_text(config_text(draft, files), encoding="utf-8", errors="replace")
        failures = validate(partial, date=draft.night).failures
        for failure in failures:
            if output := datasets[failure.dataset].outputs.pop(failure.model, None):
                draft.unused[output.name] = failure.reason
                del draft.used[output.name]
        if not draft.models:
            raise InputError(*(failure.reason for failure in failures))
        partial.write_text(config_text(draft, files), encoding="utf-8", errors="replace")
        partial.replace(path)
