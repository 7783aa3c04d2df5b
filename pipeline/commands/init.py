"""A first config, written for the files of a folder: what they are, which of them belong together, and what is missing.

What is written was validated. A file that has no place stands at the end of the config as a comment, with the reason.
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
from rankledger.pipeline.data.files import suffixes
from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.data.judgments import index_judgments, rating_like_relevance
from rankledger.pipeline.data.recognise import ANSWERS, REPLICATE, Recognised, Role, recognise, shared_pairs
from rankledger.pipeline.data.rows import Rows
from rankledger.pipeline.support.atomic import partial_beside
from rankledger.pipeline.support.errors import InputError

CONFIG = "rankledger.yaml"
"""The name of the config that is written."""

_OURS = ("runs/records/", "runs/cache/", "runs/mlflow")  # what evaluations write into the runs folder of a project
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
_LISTED = 20  # files in a refusal

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


@dataclass(frozen=True)
class FirstConfig:
    """A config that was written, and for what.

    Attributes:
        path: where it is.
        files: a line for each file: its path, what it was taken for, and why.
        models: the models that it names.
        others: files that are no data, by path.
        night: the last date that outputs have in their paths, if those of other dates differ from them by it alone.
    """

    path: Path
    files: tuple[tuple[str, str, str], ...]
    models: tuple[str, ...]
    others: tuple[str, ...]
    night: str | None = None


@dataclass
class _Draft:
    """A config that is being put together; paths start at the folder.

    Attributes:
        name: of the evaluation, and of its dataset.
        kind: what is evaluated: `rankings`, `ratings` or `scores`.
        dataset: the lines of the dataset: key, value in YAML, and a comment.
        outputs: the models' outputs, by model.
        measures: the lines of the suite, each with a comment; none for external scores.
        night: the last date of the outputs, which their templates have `{date}` for; None if they are of no nights.
        templates: The path with `{date}` of each output of a night.
        used: of each file that has a place, which.
        unused: why a file that was recognised has no place.
    """

    name: str
    kind: Role
    dataset: list[tuple[str, str, str]] = field(default_factory=list)
    outputs: dict[str, Recognised] = field(default_factory=dict)
    measures: list[tuple[str, str]] = field(default_factory=list)
    night: str | None = None
    templates: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    unused: dict[str, str] = field(default_factory=dict)


def init(folder: str | Path = ".", *, force: bool = False) -> FirstConfig:
    """Write a config for the files of a folder, as `rankledger.yaml` in it.

    Args:
        folder: the folder; folders below it are looked at, too.
        force: whether to write it in the place of one that is there.

    Raises:
        InputError: there is a config already, there is nothing to evaluate, or the files do not fit each other.
        OSError: the config cannot be written.
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
    draft = _drafted(place, files)
    draft = _validated(path, draft, files)
    return FirstConfig(path, tuple(_lines(draft, files)), tuple(draft.outputs), _others(files), draft.night)


def _is_ours(path: Path) -> bool:
    return path.as_posix().startswith(_OURS) or path.suffix in (".yaml", ".yml")


def _others(files: Sequence[Recognised]) -> tuple[str, ...]:
    return tuple(file.path for file in files if file.role is None and not file.reason)


def _lines(draft: _Draft, files: Sequence[Recognised]) -> Iterator[tuple[str, str, str]]:
    for file in files:
        if file.role or file.reason:
            yield file.name, draft.used.get(file.name, "not used"), draft.unused.get(file.name, file.reason)


def _drafted(folder: Path, files: Sequence[Recognised]) -> _Draft:
    """The config of these files.

    Raises:
        InputError: outputs, or what to compare them with, are missing.
    """
    of: dict[Role, list[Recognised]] = {}
    for file in files:
        if file.role:
            of.setdefault(file.role, []).append(file)
    _tell_lists(of)
    name = re.sub(r"[^A-Za-z0-9]+", "-", folder.resolve().name).strip("-")[:60] or "evaluation"
    if "rankings" in of and (of.keys() & {"judgments", "ratings"}):
        draft = _of_rankings(_Draft(name, "rankings"), of)
    elif "predictions" in of and "ratings" in of:
        draft = _of_ratings(_Draft(name, "ratings"), of)
    elif "scores" in of:
        draft = _of_scores(_Draft(name, "scores"), of)
    else:
        raise InputError(*_nothing(folder, files))
    for model, output in draft.outputs.items():
        draft.used[output.name] = f"model {model}"
    return draft


def _tell_lists(of: dict[Role, list[Recognised]]) -> None:
    judged, lists = of.get("ratings") or of.get("judgments", []), of.get("rankings", [])
    if lists and judged and all(file.may_predict for file in lists):
        rated = shared_pairs([_rows(file) for file in lists], [_rows(file) for file in judged])
        if all(n > _PREDICTED * len(_rows(file).values) for n, file in zip(rated, lists, strict=True)):
            of["predictions"] = [replace(file, role="predictions") for file in of.pop("rankings")]
    if "predictions" in of and "rankings" not in of and judged:
        of["ratings"] = judged


def _nothing(folder: Path, files: Sequence[Recognised]) -> Iterator[str]:
    roles = {file.role for file in files}
    if "rankings" in roles:
        missing = "rankings without judgments; add a file with query_id, doc_id and relevance"
    elif "predictions" in roles:
        missing = "predictions without ratings; add a file with query_id, doc_id and rating"
    elif roles & {"judgments", "ratings"}:
        missing = "judgments without a model's output; add a file with query_id, doc_id and score"
    else:
        missing = "neither judgments nor outputs of models; see the guide on data for their columns"
    yield f"{folder}: found {missing}"
    noted = [file for file in files if file.role or file.reason]
    for file in noted[:_LISTED]:
        yield f"{file.path}: {file.role or 'not recognised'}: {file.reason}"
    if len(noted) > _LISTED:
        yield f"and {len(noted) - _LISTED:,} more"


def _of_rankings(draft: _Draft, of: Mapping[Role, Sequence[Recognised]]) -> _Draft:
    outputs = _of_last_night(draft, of["rankings"])
    chosen = _choose(draft, of.get("judgments") or of["ratings"], outputs)
    rows = _rows(chosen)
    columns = ", columns: {relevance: rating}" if chosen.role == "ratings" else ""
    _place(draft, "judgments", chosen, f"{{path: {_path(chosen.path)}{columns}}}" if columns else _path(chosen.path))
    if rating_like_relevance(index_judgments(rows, keep_first=True), [Measure.parse("rr")], None):
        greatest = rows.values.max()
        comment = f"the lowest grade that counts as relevant; grades go to {greatest:g}"
        draft.dataset.append(("relevant", f"{_RELEVANT * greatest:g}", comment))
    _add_tables(draft, rows, of)
    _add_interactions(draft, rows, of)
    draft.outputs = _named(outputs)
    depth = max(int(_rows(output).counts.max()) for output in outputs)
    draft.measures = list(_ranking_measures(draft, depth))
    return draft


def _ranking_measures(draft: _Draft, depth: int) -> Iterator[tuple[str, str]]:
    keys = {key for key, _, _ in draft.dataset}
    if "relevant" in keys:
        yield "ndcg(gain=binary)@10", "how well the relevant ones are placed; the first measure leads"
    else:
        yield "ndcg@10", "how well the first 10 are ordered, by grade; the first measure leads"
    yield "rr@10", "1 / rank of the first relevant document"
    yield f"r@{_DEEP if depth >= _DEEP else 10}", "share of the relevant documents that was found"
    yield "ap", "precision, averaged over the relevant documents"
    yield "judged@10", "share of the first 10 that is judged: where it differs much, models are hard to compare"
    if "documents" in keys:
        yield "item_coverage@10", "share of the catalogue that somebody gets"
    if "interactions" in keys:
        yield "novelty@10", "how unknown the documents are, by the interactions"


def _of_ratings(draft: _Draft, of: Mapping[Role, Sequence[Recognised]]) -> _Draft:
    outputs = _of_last_night(draft, of["predictions"])
    chosen = _choose(draft, of["ratings"], outputs)
    _place(draft, "ratings", chosen, _path(chosen.path))
    _add_tables(draft, _rows(chosen), {role: files for role, files in of.items() if role != "documents"})
    draft.outputs = _named(outputs)
    draft.measures = [
        ("rmse", "root of the mean squared error; the first measure leads"),
        ("mae", "mean absolute error"),
    ]
    if set(_rows(chosen).values) <= {0, 1}:
        draft.measures = [
            ("auc", "area under the ROC curve of all pairs; the first measure leads"),
            ("auc(average=impressions)", "the same of each query, weighted by its pairs"),
        ]
    return draft


def _of_scores(draft: _Draft, of: Mapping[Role, Sequence[Recognised]]) -> _Draft:
    tasks = Counter(file.dataset for file in of["scores"])
    task = max(tasks, key=lambda name: tasks[name])
    files = [file for file in of["scores"] if file.dataset == task]
    for file in of["scores"]:
        if file.dataset != task:
            measured = f"the models are measured on {task or 'scores without a task'}"
            draft.unused[file.name] = f"scores of {file.dataset or 'no task'}; {measured}"
    sets = [frozenset(file.scores) for file in files]
    common = max(sets, key=lambda names: (sum(names <= other for other in sets), len(names)))
    fitting = _of_last_night(draft, [file for file in files if common <= set(file.scores)])
    names = [name for name in fitting[0].scores if name in common]
    is_judged = fitting[0].tool in ANSWERS
    comment = fitting[0].reason if is_judged else "write lower where less is better, neither where neither is"
    draft.dataset.append(("scores", f"{{{_scores(fitting[0].tool, names)}}}", comment))
    for file in of.get("queries", ()):
        known = {query_id for output in fitting for query_id in _ids(output)}
        if known <= _ids(file):
            _place(draft, "queries", file, _path(file.path))
            break
    draft.outputs = _named(fitting)
    return draft


def _scores(tool: str, names: Sequence[str]) -> str:
    meaning = "{range: [0, 1]}" if tool in ANSWERS else "higher"
    directions = {name: "lower" if name in _LOWER else meaning for name in names}
    return ", ".join(
        f"{_key(name)}: {direction}"
        if is_score_name(name)
        else f"{_key(f'score of {name}'[:200].strip())}: {{column: {_text(name)}, direction: {direction}}}"
        for name, direction in directions.items()
    )


def _choose(draft: _Draft, candidates: Sequence[Recognised], outputs: Sequence[Recognised]) -> Recognised:
    shared = list(shared_pairs([_rows(file) for file in candidates], [_rows(file) for file in outputs]))
    best = max(range(len(candidates)), key=lambda place: (not _is_training(candidates[place]), shared[place]))
    for file, n_shared in zip(candidates, shared, strict=True):
        if file is not candidates[best]:
            chosen = f"{candidates[best].path}, with {shared[best]:,}"
            draft.unused[file.name] = f"{file.role}, but the outputs have {n_shared:,} of its pairs; chosen: {chosen}"
    return candidates[best]


def _is_training(file: Recognised) -> bool:
    return "train" in PurePosixPath(file.path).name.lower()


def _place(draft: _Draft, key: str, file: Recognised, value: str) -> None:
    draft.used[file.name] = key
    draft.dataset.append((key, value, file.reason))
    if key == "queries" and (columns := _group_columns(file)):
        comment = "figures of each group of queries, too: remove the #"
        draft.dataset.append(("# slices", f"[{', '.join(map(_text, columns))}]", comment))
    if key == "interactions":
        comment = "what stands there is counted in rankings; remove the # to leave it out, or write `refuse`"
        draft.dataset.append(("# seen", "remove", comment))


def _group_columns(queries: Recognised) -> list[str]:
    columns = queries.ids.texts if queries.ids else {}
    return [name for name, texts in columns.items() if 1 < len(set(texts)) <= min(_GROUPS, len(texts) / _OF_GROUP)]


def _add_tables(draft: _Draft, rows: Rows, of: Mapping[Role, Sequence[Recognised]]) -> None:
    for file in (*of.get("queries", ()), *of.get("scores", ())):
        n_missing = len(set(rows.query_ids) - _ids(file))
        if file.ids is None or n_missing:
            draft.unused[file.name] = f"{file.role} without {n_missing:,} of the judged queries"
        elif "queries" not in draft.used.values():
            _place(draft, "queries", file, _path(file.path))
    judged = set(rows.doc_ids.unique().to_pylist())
    catalogues = sorted(of.get("documents", ()), key=lambda file: -len(judged & _ids(file)))
    if catalogues and judged & _ids(catalogues[0]):
        _place(draft, "documents", catalogues[0], _path(catalogues[0].path))


def _add_interactions(draft: _Draft, rows: Rows, of: Mapping[Role, Sequence[Recognised]]) -> None:
    training = [file for file in of.get("judgments", ()) if _is_training(file)]
    known = [*of.get("interactions", ()), *of.get("ratings", ()), *training]
    left = [file for file in known if file.name not in draft.used]
    before = [
        file
        for file, shared in zip(left, shared_pairs([_rows(file) for file in left], [rows]), strict=True)
        if not shared and set(rows.query_ids) & set(_rows(file).query_ids)
    ]
    if before:
        chosen = max(before, key=lambda file: len(_rows(file).values))
        draft.unused.pop(chosen.name, None)
        _place(draft, "interactions", chosen, _path(chosen.path))


def _named(outputs: Sequence[Recognised]) -> dict[str, Recognised]:
    names = [" ".join(output.model.split())[:_LONGEST] or _stem(PurePosixPath(output.path).name) for output in outputs]
    named: dict[str, Recognised] = {}
    for name, output in zip(names, outputs, strict=True):
        model = name if names.count(name) == 1 else output.path.replace("/", "-")
        named[model if model not in named else f"{model}-{len(named)}"] = output
    return named


def _of_last_night(draft: _Draft, outputs: Sequence[Recognised]) -> Sequence[Recognised]:
    """Return the outputs of the last date, if any differs from one of another date by the date in its path alone.

    Of several runs of a model on one date, the last is taken.
    """
    runs: dict[tuple[str, str], dict[str, list[Recognised]]] = {}  # by all but the date, and by date
    for output in outputs:
        date, _ = next(iter(_DATE.findall(output.path)), ("", ""))
        path = _DATE.sub(lambda found: "{date}*" if found[2] else "{date}", output.path)
        runs.setdefault((path, output.name.removeprefix(output.path)), {}).setdefault(date, []).append(output)
    if any(len(dated) > 1 for dated in runs.values()):
        draft.night = max(date for dated in runs.values() for date in dated)
    last = []
    for (path, _), dated in runs.items():
        taken = draft.night if draft.night and "" not in dated else max(dated)
        for date, own in dated.items():
            if date != taken:
                night = f"of the night {date}: --date {date} evaluates it"
                draft.unused |= {output.name: night for output in own}
                continue
            draft.unused |= {output.name: "an earlier run of its model" for output in own[:-1]}
            last.append(own[-1])
            if date == draft.night and len(own) == 1:
                draft.templates[own[0].name] = path
    return last


def _stem(name: str) -> str:
    return name[: len(name) - len("".join(suffixes(name)))] or name


def _rows(file: Recognised) -> Rows:
    assert file.rows is not None, "its role has rows"
    return file.rows


def _ids(file: Recognised) -> set[str]:
    return set() if file.ids is None else set(file.ids.ids.to_pylist())


def _validated(path: Path, draft: _Draft, files: Sequence[Recognised]) -> _Draft:
    """Write the config once it can be evaluated; outputs that are refused are left out.

    Raises:
        InputError: as of `validate`; or no output is left.
    """
    with partial_beside(path) as partial:
        partial.write_text(_written(draft, files), encoding="utf-8", errors="replace")
        failures = validate(partial, date=draft.night).failures
        for failure in failures:
            _leave_out(draft, failure)
        if not draft.outputs:
            raise InputError(*(failure.reason for failure in failures))
        partial.write_text(_written(draft, files), encoding="utf-8", errors="replace")
        partial.replace(path)
    return draft


def _leave_out(draft: _Draft, failure: Failure) -> None:
    output = draft.outputs.pop(failure.model)
    draft.unused[output.name] = failure.reason
    del draft.used[output.name]


def _written(draft: _Draft, files: Sequence[Recognised]) -> str:
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
    yield "# What the models are measured on. Files are joined by the ids of queries and documents."
    yield "datasets:"
    yield f"  {_text(draft.name)}:"
    for key, value, comment in draft.dataset:
        yield f"    # {comment}"
        yield f"    {key}: {value}"


def _model_lines(draft: _Draft) -> Iterator[str]:
    yield "# What each model returned. Beside `outputs` you may record `params: {k1: 0.9}` and `owner: search-team`."
    yield "models:"
    for model, output in draft.outputs.items():
        listed = ", ".join(text if text.isdecimal() else _text(text) for text in output.replicates)
        replicates = f", replicates: [{listed}]" if listed else ""
        yield f"  {_key(model)}: {{outputs: {_outputs(output, draft.templates.get(output.name))}{replicates}}}"


def _outputs(output: Recognised, template: str | None = None) -> str:
    path = _path(output.path)
    if template:
        before, mark, after = template.partition("{date}")
        path = _text(mark.join(text.replace("{", "{{").replace("}", "}}") for text in (before, after)))
    if not output.tool:
        return path
    select = ", ".join(
        f"{label}: {json.dumps(text) if text == REPLICATE else _path(text)}" for label, text in output.select.items()
    )
    selected = f", select: {{{select}}}" if select else ""
    return f"{{path: {path}, format: {output.tool}{selected}}}"


def _suite_lines(draft: _Draft) -> Iterator[str]:
    if draft.measures:
        yield "# Measures, as metric(parameter=value)@cutoff; `rankledger measures` lists all, and explains one."
        yield "suites:"
        yield "  main:"
        width = max(len(measure) for measure, _ in draft.measures)
        yield from (f"    - {measure:{width}}  # {comment}" for measure, comment in draft.measures)
        if "documents" in draft.used.values():
            yield "    # - awrf(feature=COLUMN)@10  # fairness, where COLUMN is one of the documents, with their groups"


def _comparison_lines(draft: _Draft) -> Iterator[str]:
    if len(draft.outputs) > 1:
        yield "# All other models are compared with the baseline, query by query. Name the one that is in use."
        yield f"comparison: {{baseline: {_text(_baseline(draft))}}}"
        yield ""
    yield "# Intervals come from drawing the queries again, so many times; the same seed gives the same figures."
    yield "bootstrap: {resamples: 10000, confidence: 0.95}"
    yield "seed: 20261120"


def _gate_lines(draft: _Draft) -> Iterator[str]:
    measure = draft.measures[0][0] if draft.measures else next(iter(draft.outputs.values())).scores[0]
    *_, candidate = [model for model in draft.outputs if model != _baseline(draft)] or [_baseline(draft)]
    limit = "at_most: 1.0" if measure == "rmse" else "at_least: 0.3"
    yield "# Gates stop a release: `evaluate` exits with 1 if one fails, with 3 if the data cannot say. Remove the #."
    yield "# gates:"
    yield f"#   - {{name: floor, models: {_text(candidate)}, measure: {_text(measure)}, {limit}}}"
    if draft.night:
        yield f"#   - {{name: no-drop, measure: {_text(measure)}, against: self@last_passed, margin: 0.02}}"
    elif len(draft.outputs) > 1:
        against = f"against: {_text(_baseline(draft))}, margin: 0.01"
        yield f"#   - {{name: no-worse, models: {_text(candidate)}, measure: {_text(measure)}, {against}}}"
    if draft.night or len(draft.outputs) > 1:
        against = "--against previous --margin 0.02" if draft.night else "--margin 0.01"
        yield "# Few queries leave a small margin undecided. The margin that yours can decide is `detectable now` of"
        yield f"# `rankledger plan last --name {draft.name} {against}`, after an evaluation."


def _baseline(draft: _Draft) -> str:
    likely = [model for word in ("baseline", "bm25", "pop") for model in draft.outputs if word in model.lower()]
    return next(iter(likely), min(draft.outputs))


def _unplaced(draft: _Draft, files: Sequence[Recognised]) -> list[str]:
    lines = []
    for file in files:
        if file.name in draft.used or not (file.role or file.reason):
            continue
        lines.append(f"# {_line(file.name)}: {_line(draft.unused.get(file.name, file.reason))}")
        if draft.night and file.role == draft.kind:
            continue
        if file.role:
            write = _WRITE[file.role].format(path=_outputs(file), scores=_scores(file.tool, file.scores))
            lines.append(f"#   to use it, write {write}")
        elif not file.tool:
            lines.append("#   to use it, map its columns, such as")
            columns = _COLUMNS.search(file.reason)  # which the reader proposes, where it knows them
            mapped = columns[0] if columns else "columns: {query_id: …, doc_id: …, score: …}"
            lines.append(f"#   outputs: {{path: {_path(file.path)}, {mapped}}}")
    return ["\n".join(["# Files that have no place above:", *lines])] if lines else []


def _line(text: str) -> str:
    return " ".join(text.split())


def _path(path: str) -> str:
    """A path in YAML: its braces are no placeholders."""
    return _text(path.replace("{", "{{").replace("}", "}}"))


def _text(text: str) -> str:
    """A text in YAML, as it is or in quotes: its dollar signs are no variables."""
    return _key(text.replace("$", "$$"))


def _key(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=False)
