"""Results of other tools, sample by sample, recognized by the beginning of a file.

A failed sample is a query without output. For judged answers, a row is one nugget or one citation.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np
import pyarrow as pa

from rankledger.metrics.language_models import citation_scores, nugget_scores
from rankledger.pipeline.data.files import DAMAGED
from rankledger.pipeline.data.formats.common import PAGE, FilePart, Format, Sample
from rankledger.pipeline.data.formats.delimited import CSV, TSV
from rankledger.pipeline.data.formats.json import JSONL, decoded, load_json
from rankledger.pipeline.data.formats.parquet import PARQUET
from rankledger.pipeline.support.errors import InputError, shorten

PLACE = "place"
"""Label that distinguishes models of one name in a file."""

OF_AN_ANSWER = {"latency_ms": "latencyMs", "cost": "cost"}
"""Scores that a cached answer does not have, with promptfoo's keys."""

_ZIP = b"PK\x03\x04"
_ZSTD = 93  # the method of a zip member that Python's own module cannot read before 3.14
_INSPECT_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer


def samples_format(
    name: str,
    samples: Callable[[FilePart], Iterator[Sample]],
    is_recognised: Callable[[bytes], bool] | None = None,
    repeats: str = "",
    groups: bool = False,
) -> Format:
    """Return a format of samples, recognized by the beginning of a file."""

    def refuse(part: FilePart, *_: object) -> NoReturn:
        raise InputError(f"{part.path}: format {name} has results of samples alone; name a table, or another format")

    return Format(
        name,
        (),
        refuse,
        lambda part, row: f"sample {row + 1}",
        refuse,
        refuse,
        typed=True,
        samples=lambda part: list(samples(part)),
        is_recognised=is_recognised,
        repeats=repeats,
        groups=groups,
    )


def _document(part: FilePart, text: bytes | memoryview) -> dict[str, Any]:
    content = load_json(part.path, text, "write it again")
    if not isinstance(content, dict):
        _refuse(part, "expected one object")
    return content


def _objects(part: FilePart) -> Iterator[dict[str, Any]]:
    advice = "write the file again"
    if bytes(part.data[:PAGE]).lstrip()[:1] == b"[":
        rows = ((part.path, row) for row in load_json(part.path, part.data, advice))
    else:
        lines = ((part.at(number), line) for number, line in enumerate(part.lines(), 1) if line.strip())
        rows = ((position, load_json(position, line, advice)) for position, line in lines)
    for position, row in rows:
        if not isinstance(row, dict):
            raise InputError(f"{position}: expected objects, in lines or in one list; {advice}")
        yield row


def _fields(prefix: str, holder: object) -> dict[str, object]:
    content = decoded(holder)
    if not isinstance(content, dict):
        return {prefix: content} if type(content) in (str, int) else {}
    return {name: value for key, inner in content.items() for name, value in _fields(f"{prefix}.{key}", inner).items()}


def _refuse(part: FilePart, found: str) -> NoReturn:
    raise InputError(f"{part.path}: {found}; write the file again with {part.format.name}, or fix `format`")


def _get(part: FilePart, holder: object, key: str, type_: type | tuple[type, ...]) -> Any:
    value = holder.get(key) if isinstance(holder, Mapping) else None
    if not isinstance(value, type_) or isinstance(value, bool):
        _refuse(part, f"no '{key}' where {part.format.name} writes one")
    return value


def _object(part: FilePart, holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {} if holder.get(key) is None else cast(dict[str, Any], _get(part, holder, key, dict))


def _inspect(part: FilePart) -> Iterator[Sample]:
    if bytes(part.data[:4]) == _ZIP:
        try:
            with zipfile.ZipFile(io.BytesIO(part.data)) as archive:
                head = _document(part, _member(part, archive, "header.json"))
                summaries = _member(part, archive, "summaries.json")
        except (*DAMAGED, ValueError) as error:
            raise InputError(f"{part.path}: not a whole zip ({error}); copy it again") from None
        samples = load_json(f"{part.path}: summaries.json", summaries, "copy it again")
    else:
        head = _document(part, part.data)
        samples = head.get("samples")
    if head.get("status") != "success":
        problem = f"the evaluation is not complete (status {shorten(str(head.get('status')))})"
        raise InputError(f"{part.path}: {problem}; complete it with `inspect eval-retry`")
    if head.get("invalidated"):
        raise InputError(f"{part.path}: samples were invalidated; evaluate them again with `inspect eval-retry`")
    if not isinstance(samples, list):
        raise InputError(f"{part.path}: the log has no samples; evaluate with --log-samples")
    spec = _get(part, head, "eval", dict)
    labels = {"task": _get(part, spec, "task", str), "model": _get(part, spec, "model", str)}
    for sample in samples:
        ids = {"query_id": _get(part, sample, "id", (str, int))}
        scores = dict(_inspect_scores(_object(part, sample, "scores")))
        failed = not scores and bool(sample.get("error"))
        content = "input", _without_ids(sample.get("input"))
        yield Sample(ids, {**labels, "epoch": _get(part, sample, "epoch", int)}, scores, failed, content)


def _without_ids(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_ids(inner) for key, inner in value.items() if key != "id"}
    return [*map(_without_ids, value)] if isinstance(value, list) else value


def _inspect_scores(scores: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            yield from ((f"{scorer}.{name}", _count_word(score, _INSPECT_WORDS)) for name, score in value.items())
        else:
            yield scorer, _count_word(value, _INSPECT_WORDS)


def _count_word(value: object, words: Mapping[str, float]) -> object:
    return words.get(value, value) if isinstance(value, str) else value


def _member(part: FilePart, archive: zipfile.ZipFile, name: str) -> bytes:
    members = [member for member in archive.infolist() if member.filename == name]
    if not members:
        raise InputError(f"{part.path}: no {name} in it; complete it with `inspect eval-retry`")
    if len(members) > 1:
        raise InputError(f"{part.path}: {name} occurs twice in the archive. Remove one, or copy the log again.")
    (member_info,) = members
    if member_info.flag_bits & 1:
        raise InputError(f"{part.path}: the archive is encrypted. Set a log that is not encrypted.")
    limit = int(min(part.limit, 1 << 40))
    if member_info.compress_type != _ZSTD:
        with archive.open(member_info) as member:
            contents = member.read(limit + 1)
    else:
        head = bytes(part.data[member_info.header_offset :][:30])
        begin = (
            member_info.header_offset
            + 30
            + sum(int.from_bytes(head[offset : offset + 2], "little") for offset in (26, 28))
        )
        stored = pa.py_buffer(part.data[begin : begin + member_info.compress_size])
        with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as member:
            contents = member.read(limit + 1)
        if len(contents) <= limit and zlib.crc32(contents) != member_info.CRC:
            raise zipfile.BadZipFile(f"bad CRC-32 of {name}")
    if len(contents) > limit:
        found_bytes = f"more than {limit:,} bytes come of {name}"
        raise InputError(f"{part.path}: {found_bytes}; check the file, or set allow_large: true")
    return contents


_INSPECT_BEGINNING = re.compile(
    rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"\w+",\s*"eval":\s*\{'
    rb"|PK\x03\x04.{26}(_journal/|samples/|(header|summaries|reductions)\.json)",  # the first name in a zip
    re.DOTALL,
)
INSPECT = samples_format("inspect", _inspect, lambda begin: bool(_INSPECT_BEGINNING.match(begin)), repeats="epoch")


_LM_EVAL_NAME = re.compile(r"samples_(.+?)(_\d{4}-\d\d-\d\dT[^/]*)?\.jsonl(\.gz|\.zst)?")
_LM_EVAL_KEYS = {  # of a line beside its metrics, which lm_eval names since 0.4.8
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}


def _lm_eval(part: FilePart) -> Iterator[Sample]:
    name = _LM_EVAL_NAME.fullmatch(part.path.rpartition("/")[2])
    task = {"task": name[1]} if name else {}
    for line in _objects(part):
        ids = {**_fields("doc", line.get("doc")), "query_id": _get(part, line, "doc_id", (str, int))}
        ids |= {key: line[key] for key in ("doc_id", "doc_hash", "prompt_hash") if key in line}
        named = line.get("metrics")
        metrics = map(str, named) if isinstance(named, list) else (key for key in line if key not in _LM_EVAL_KEYS)
        content = next(((key, line[key]) for key in ("doc_hash", "doc") if line.get(key)), ("", None))
        labels = task | ({"filter": line["filter"]} if "filter" in line else {})
        yield Sample(ids, labels, {metric: line.get(metric) for metric in metrics}, content=content)


LM_EVAL = samples_format(
    "lm_eval",
    _lm_eval,
    lambda begin: bool(re.match(rb'\s*\[?\s*\{\s*"doc_id":\s*("[^"]*"|\d+),\s*"doc":', begin)),
    groups=True,
)


def _mlflow(part: FilePart) -> Iterator[Sample]:
    """Yield the rows of a results table. A score is a column such as `toxicity/v1/score` or `right/value`."""
    table = load_json(part.path, part.data, "write it again")
    if isinstance(table, list):  # by `to_json(orient="records")`
        rows = [*_objects(part)]
        columns = [*dict.fromkeys(str(name) for row in rows for name in row)]
    else:
        columns = [str(name) for name in _get(part, table, "columns", list)]
        rows = [
            dict(zip(columns, _cells(part, cells, columns), strict=True)) for cells in _get(part, table, "data", list)
        ]
    named = {column: _MLFLOW_SCORE.sub("", column) for column in columns if _MLFLOW_SCORE.search(column)}
    for name in named.values():
        if [*named.values()].count(name) > 1:
            _refuse(part, f"several columns of the score '{shorten(name)}'")
    for row in rows:
        ids = _fields("request", row.get("request"))
        for name in columns:
            ids |= {} if name in named else _fields(name, row.get(name))
        scores = {name: _count_word(row.get(column), _MLFLOW_WORDS) for column, name in named.items()}
        yield Sample(ids, {}, scores, row.get("state") == "ERROR")


_MLFLOW_SCORE = re.compile(r"(/v\d+)?/(score|value)$")
_MLFLOW_WORDS = {"unknown": math.nan}  # by a judge that cannot tell: MLflow leaves it out of the mean


def _cells(part: FilePart, cells: object, columns: Sequence[str]) -> list[object]:
    if not isinstance(cells, list) or len(cells) != len(columns):
        _refuse(part, f"a row without the {len(columns)} columns")
    return cells


_MLFLOW_BEGINNING = re.compile(rb'\s*(\{\s*"columns":\s*\[|\[\s*\{(?=.*?"[^"]+/(score|value)":))', re.DOTALL)
MLFLOW = samples_format("mlflow", _mlflow, lambda begin: bool(_MLFLOW_BEGINNING.match(begin)))


_PROMPTFOO_ERROR = 2  # the `failureReason` of a result without an answer
_PROMPTFOO_BEGINNING = re.compile(rb'\s*\{\s*"evalId":\s*(null|"[^"]*"),\s*"results":\s*\{')
_PROMPTFOO_LINE = re.compile(
    rb'\s*\{(?!\s*("evalId":\s*(null|"[^"]*"),\s*)?"results":)(?=[^\n]*"promptIdx":)(?=[^\n]*"testCase":)(?=[^\n]*"testIdx":)'
)
_LABEL = 80  # characters of a prompt's label; a longer one is the prompt itself


def _promptfoo(part: FilePart) -> Iterator[Sample]:
    """Yield the results of `promptfoo eval -o`: one for each test, prompt, provider and repeat.

    The file does not number repeats. The results of one test are in the order of repeats.
    """
    results, config = _promptfoo_results(part)
    added = _added_variables(part, results, config)
    number_of_test, n_tests = dict[str, int](), 0
    number_of_prompt: dict[str, int] = {}
    n_before: Counter[tuple[int, int]] = Counter()
    places: dict[tuple[str, str], dict[int, int]] = {}  # of each provider and prompt, counted from 1
    for result in results:
        prompts = places.setdefault(_models(part, result), {})
        prompts.setdefault(result["promptIdx"], 1 + len(prompts))
    for result in results:
        case = result["testCase"]
        variables = {name: value for name, value in _object(part, case, "vars").items() if name not in added}
        # What a provider adds beside variables is not in the first result of a test: its place tells the test, too.
        contents = [result["testIdx"], variables], {**case, "vars": variables}
        shown_key, test = (json.dumps(content, sort_keys=True) for content in contents)
        number = number_of_test.get(shown_key, number_of_test.get(test, n_tests))
        number_of_test |= {shown_key: number, test: number}
        n_tests = max(n_tests, number + 1)
        n_before[number, result["promptIdx"]] += 1
        provider, prompt = _models(part, result)
        number_of_prompt.setdefault(prompt, 1 + len(number_of_prompt))
        labels: dict[str, object] = {
            "provider": provider,
            "prompt": number_of_prompt[prompt] if len(prompt) > _LABEL or "\n" in prompt else prompt,
            "repeat": n_before[number, result["promptIdx"]],
        }
        if len(prompts := places[provider, prompt]) > 1:
            labels[PLACE] = prompts[result["promptIdx"]]
        failed = result.get("failureReason") == _PROMPTFOO_ERROR
        ids = {"query_id": number, **_fields("vars", case.get("vars")), **_fields("metadata", case.get("metadata"))}
        ids |= {"description": case["description"]} if case.get("description") else {}
        is_cached = isinstance(result.get("response"), dict) and bool(result["response"].get("cached"))
        yield Sample(ids, labels, _promptfoo_scores(part, result, is_cached), failed, ("vars", variables), is_cached)


def _models(part: FilePart, result: Mapping[str, Any]) -> tuple[str, str]:
    provider = _get(part, result, "provider", dict)
    prompt = _get(part, _get(part, result, "prompt", dict), "label", str)
    return provider.get("label") or _get(part, provider, "id", str), prompt


def _promptfoo_results(part: FilePart) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    config: dict[str, Any] = {}
    if re.match(rb"\s*\[", part.data) or _PROMPTFOO_LINE.match(part.data):
        results: list[Any] = [*_objects(part)]
    else:
        head = _document(part, part.data)
        config = _object(part, head, "config")
        results = _get(part, _get(part, head, "results", dict), "results", list)
    order = ("testIdx", "promptIdx")
    results = sorted(results, key=lambda each: [_get(part, each, name, int) for name in order])
    for result in results:
        _get(part, result, "testCase", dict)
    return results, config


def _added_variables(part: FilePart, results: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> set[str]:
    added, names, first = {"sessionId", "_conversation"}, set[str](), dict[int, dict[str, Any]]()
    for result in results:
        variables = _object(part, result["testCase"], "vars")
        before = first.setdefault(result["testIdx"], variables)
        names |= variables.keys()
        added |= {name for name in {*before, *variables} if before.get(name) != variables.get(name)}
        added |= variables.keys() - result["vars"].keys() if isinstance(result.get("vars"), dict) else set()
    tests = config["tests"] if isinstance(config.get("tests"), list) and not config.get("scenarios") else [None]
    named = [*tests, config.get("defaultTest") or {}]
    variables_of = [test.get("vars") or {} if isinstance(test, dict) else None for test in named]
    if all(isinstance(test, dict) for test in variables_of):
        added |= names - {name for test in variables_of for name in test or ()}
    return added if names - added else {"sessionId", "_conversation"}


def _promptfoo_scores(part: FilePart, result: Mapping[str, Any], is_cached: bool) -> dict[str, object]:
    scores = {"score": result.get("score"), "pass": result.get("success")}
    scores |= {} if is_cached else {name: result.get(key) for name, key in OF_AN_ANSWER.items()}
    named = _object(part, result, "namedScores")
    return scores | {f"named.{name}" if name in scores else name: value for name, value in named.items()}


PROMPTFOO = samples_format(
    "promptfoo",
    _promptfoo,
    lambda begin: bool(_PROMPTFOO_BEGINNING.match(begin) or _PROMPTFOO_LINE.match(begin)),
    repeats="repeat",
)


def _every_eval_ever(part: FilePart) -> Iterator[Sample]:
    for line in _objects(part):
        scored = _get(part, line, "evaluation", dict)
        metadata = _object(part, line, "metadata")
        labels = {"model": _get(part, line, "model_id", str), "evaluation": _get(part, line, "evaluation_name", str)}
        if line.get("evaluation_result_id") is not None:
            labels["result"] = str(line["evaluation_result_id"])
        if "epoch" in metadata:
            labels["epoch"] = str(metadata["epoch"])
        ids = {"query_id": _get(part, line, "sample_id", str), **_fields("metadata", metadata)}
        ids |= {"sample_hash": line["sample_hash"]} if line.get("sample_hash") else {}
        scores = {name: scored.get(name) for name in ("score", "is_correct")}
        scores["latency_ms"] = _object(part, line, "performance").get("latency_ms")
        yield Sample(ids, labels, scores, bool(line.get("error")), ("sample_hash", line.get("sample_hash")))


EVERY_EVAL_EVER = samples_format(
    "every_eval_ever",
    _every_eval_ever,
    lambda begin: bool(re.match(rb'\s*\{\s*"schema_version":\s*"[^"]*",\s*"evaluation_id":', begin)),
    repeats="epoch",
)


_TABLES: Mapping[str, Format] = {suffix: table for table in (TSV, CSV, JSONL, PARQUET) for suffix in table.suffixes}
_ASSIGNMENTS = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}  # AutoNuggetizer's words
_SUPPORT = _ASSIGNMENTS | {"full_support": 1.0, "no_support": 0.0}  # and those of the track's support evaluation
_IMPORTANCE = {"vital": True, "okay": False}
_NO_JUDGMENT = "failed"  # AutoNuggetizer's word for a nugget whose judge gave no answer


_Verdict: TypeAlias = tuple[int, object, Sequence[object]]
"""Row of a table, with its nugget or sentence, and the words of its judge."""


def _nuggets(part: FilePart) -> Iterator[Sample]:
    table = _table(part)
    is_nested = "nuggets" in table.format.columns(table)
    by_query = _nested_verdicts(table) if is_nested else _verdicts(table, "nugget", "importance", "support")
    for query, rows in by_query.items():
        first: dict[object, int] = {}
        for place, nugget, _ in rows:
            if nugget in first:
                places = " and ".join(map(table.position, (first[nugget], place)))
                problem = f"query '{shorten(str(query))}' has the nugget {shorten(repr(nugget))} twice ({places})"
                raise InputError(f"{table.path}: {problem}; keep one")
            first[nugget] = place
        failed = any(_NO_JUDGMENT in words for _, _, words in rows)
        scores: dict[str, float] = {}
        if not failed:
            vital = [_read_word(table, place, "importance", words[0], _IMPORTANCE) for place, _, words in rows]
            support = [_read_word(table, place, "support", words[1], _SUPPORT) for place, _, words in rows]
            scores = nugget_scores(np.array(vital, dtype=bool), np.array(support, dtype=np.float64))
        yield Sample({part.name("query_id"): query}, {}, scores, failed)


def _citations(part: FilePart) -> Iterator[Sample]:
    table = _table(part)
    for query, rows in _verdicts(table, "sentence", "support").items():
        numbers = {name: number for number, name in enumerate(dict.fromkeys(name for _, name, _ in rows))}
        support = [
            np.nan if word in (None, "") else _read_word(table, place, "support", word, _SUPPORT)
            for place, _, (word,) in rows
        ]
        scores = citation_scores(np.array([numbers[name] for _, name, _ in rows]), np.array(support, dtype=np.float64))
        yield Sample({part.name("query_id"): query}, {}, scores)


def _table(part: FilePart) -> FilePart:
    formats = [_TABLES[suffix] for suffix in PurePath(part.path.lower()).suffixes if suffix in _TABLES]
    if not formats:
        raise InputError(f"{part.path}: {part.format.name} stand in a table; name it {', '.join(_TABLES)}")
    return replace(part, format=formats[-1])


def _verdicts(table: FilePart, *columns: str) -> dict[object, list[_Verdict]]:
    names = [table.name(column) for column in ("query_id", *columns)]
    cells = table.format.cells(table, names)
    rows: dict[object, list[_Verdict]] = {}
    for place, (query, name, *words) in enumerate(zip(*(cells[name] for name in names), strict=True)):
        _refuse_nested(table, place, query, *([] if columns == ("nuggets",) else [name]))
        rows.setdefault(query, []).append((place, name, words))
    return rows


def _nested_verdicts(table: FilePart) -> dict[object, list[_Verdict]]:
    rows: dict[object, list[_Verdict]] = {}
    for query, lines in _verdicts(replace(table, names={"query_id": "qid", **table.names}), "nuggets").items():
        for place, nuggets, _ in lines:
            if not isinstance(nuggets, list) or not all(isinstance(nugget, dict) for nugget in nuggets):
                raise InputError(f"{table.path}: nuggets ({table.position(place)}): expected a list of objects")
            for nugget in nuggets:
                _refuse_nested(table, place, nugget.get("text"))
                words = nugget.get("importance"), nugget.get("assignment")
                rows.setdefault(query, []).append((place, nugget.get("text"), words))
    return rows


def _refuse_nested(table: FilePart, place: int, *cells: object) -> None:
    for cell in cells:
        if isinstance(cell, list | dict):
            problem = f"found {shorten(repr(cell))} ({table.position(place)})"
            raise InputError(f"{table.path}: {problem}; write a text or a number")


def _read_word(table: FilePart, place: int, column: str, word: object, known: Mapping[str, Any]) -> Any:
    if not isinstance(word, str) or word not in known:
        problem = f"{column} {shorten(repr(word))} ({table.position(place)})"
        raise InputError(f"{table.path}: {problem}; write {', '.join(known)}")
    return known[word]


NUGGETS = samples_format("nuggets", _nuggets)
CITATIONS = samples_format("citations", _citations)
