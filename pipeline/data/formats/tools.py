"""Results of other tools, sample by sample: what is measured of each, and which task, model or prompt it is of.

They are recognised by how a file begins. A sample that failed has no scores; it is a query without output.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, cast

import pyarrow as pa

from rankledger.pipeline.data.formats.common import FilePart, Format, Sample
from rankledger.pipeline.data.formats.json import load_json
from rankledger.pipeline.support.errors import InputError, shorten

__all__ = ["EVERY_EVAL_EVER", "INSPECT", "LM_EVAL", "MLFLOW", "PROMPTFOO", "samples_format"]

_ZIP = b"PK\x03\x04"
_ZSTD = 93  # the method of a zip member that Python's own module cannot read before 3.14
_INSPECT_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer


def samples_format(
    name: str,
    samples: Callable[[FilePart], Iterator[Sample]],
    is_recognised: Callable[[bytes], bool] | None = None,
    repeats: str = "",
) -> Format:
    """The format of files with the results of samples alone, which is recognised by how a file begins, if at all."""

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
    )


def _document(part: FilePart, text: bytes | memoryview) -> dict[str, Any]:
    """The one object that a text is."""
    found = load_json(part.path, text, "write it again")
    if not isinstance(found, dict):
        _refuse(part, "expected one object")
    return found


def _lines(part: FilePart) -> Iterator[dict[str, Any]]:
    """The objects of JSON lines."""
    for number, line in enumerate(part.lines(), 1):
        if line.strip():
            found = load_json(part.at(number), line, "write the file again")
            if not isinstance(found, dict):
                raise InputError(f"{part.at(number)}: expected one object a line; write the file again")
            yield found


def _fields(prefix: str, holder: object) -> dict[str, object]:
    """The texts and whole numbers of an object, which may name a query."""
    found = holder if isinstance(holder, dict) else {}
    return {f"{prefix}.{key}": value for key, value in found.items() if type(value) in (str, int)}


def _refuse(part: FilePart, found: str) -> NoReturn:
    raise InputError(f"{part.path}: {found}; write the file again with {part.format.name}, or fix `format`")


def _get(part: FilePart, holder: object, key: str, type_: type | tuple[type, ...]) -> Any:
    """What stands under a key that the tool always writes."""
    found = holder.get(key) if isinstance(holder, Mapping) else None
    if not isinstance(found, type_) or isinstance(found, bool):
        _refuse(part, f"no '{key}' where {part.format.name} writes one")
    return found


def _object(part: FilePart, holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The object under a key that the tool may leave out or set to null."""
    return {} if holder.get(key) is None else cast(dict[str, Any], _get(part, holder, key, dict))


def _number(value: object, words: Mapping[str, float] | None = None) -> object:
    """True and false, and words that mean a number, as that number; anything else as it is."""
    if isinstance(value, bool):
        return float(value)
    return (words or {}).get(value, value) if isinstance(value, str) else value


def _inspect(part: FilePart) -> Iterator[Sample]:
    """The samples of a log, a file of JSON or a zip of such files; each has a score by scorer, or several."""
    if bytes(part.data[:4]) == _ZIP:
        try:
            with zipfile.ZipFile(io.BytesIO(part.data)) as archive:
                head = _document(part, _member(part, archive, "header.json"))
                samples = json.loads(_member(part, archive, "summaries.json"))
        except (zipfile.BadZipFile, NotImplementedError, ValueError, RecursionError) as error:
            raise InputError(f"{part.path}: not a whole zip ({error}); copy it again") from None
    else:
        head = _document(part, part.data)
        samples = head.get("samples")
    if head.get("status") != "success":
        found = f"the evaluation is not complete (status {shorten(str(head.get('status')))})"
        raise InputError(f"{part.path}: {found}; complete it with `inspect eval-retry`")
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
        yield Sample(ids, {**labels, "epoch": _get(part, sample, "epoch", int)}, scores, failed)


def _inspect_scores(scores: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Scores by scorer; those of a scorer with several values as `scorer.value`."""
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            yield from ((f"{scorer}.{name}", _number(one, _INSPECT_WORDS)) for name, one in value.items())
        else:
            yield scorer, _number(value, _INSPECT_WORDS)


def _member(part: FilePart, archive: zipfile.ZipFile, name: str) -> bytes:
    """A member of a zip, also one that is compressed by Zstandard."""
    try:
        found = archive.getinfo(name)
    except KeyError:
        raise InputError(f"{part.path}: no {name} in it; complete it with `inspect eval-retry`") from None
    limit = int(min(part.limit, 1 << 40))
    if found.compress_type != _ZSTD:
        with archive.open(found) as member:
            contents = member.read(limit + 1)
    else:
        head = bytes(part.data[found.header_offset :][:30])
        begin = found.header_offset + 30 + sum(int.from_bytes(head[at : at + 2], "little") for at in (26, 28))
        stored = pa.py_buffer(part.data[begin : begin + found.compress_size])
        with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as member:
            contents = member.read(limit + 1)
        if len(contents) <= limit and zlib.crc32(contents) != found.CRC:
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


def _lm_eval(part: FilePart) -> Iterator[Sample]:
    """The lines of `--log_samples`: a task a file, whose name says which; a line per document and filter."""
    name = _LM_EVAL_NAME.fullmatch(part.path.rpartition("/")[2])
    task = {"task": name[1]} if name else {}
    for line in _lines(part):
        ids = {**_fields("doc", line.get("doc")), "query_id": _get(part, line, "doc_id", (str, int))}
        ids |= {key: line[key] for key in ("doc_hash", "prompt_hash") if key in line}
        scores = {str(metric): _number(line.get(str(metric))) for metric in _get(part, line, "metrics", list)}
        yield Sample(ids, {**task, "filter": _get(part, line, "filter", str)}, scores)


LM_EVAL = samples_format(
    "lm_eval", _lm_eval, lambda begin: bool(re.match(rb'\s*\{\s*"doc_id":\s*\d+,\s*"doc":', begin))
)


def _mlflow(part: FilePart) -> Iterator[Sample]:
    """The rows of a results table; a score is a column such as `toxicity/v1/score` or `right/value`."""
    table = _document(part, part.data)
    columns = [str(name) for name in _get(part, table, "columns", list)]
    named = {column: column.partition("/")[0] for column in columns if re.search("/(score|value)$", column)}
    for name in named.values():
        if [*named.values()].count(name) > 1:
            _refuse(part, f"several columns of the score '{shorten(name)}'")
    for cells in _get(part, table, "data", list):
        if not isinstance(cells, list) or len(cells) != len(columns):
            _refuse(part, f"a row without the {len(columns)} columns")
        row = dict(zip(columns, cells, strict=True))
        ids = _fields("request", row.get("request"))
        ids |= {name: value for name, value in row.items() if name not in named and type(value) in (str, int)}
        scores = {name: _number(row[column]) for column, name in named.items()}
        yield Sample(ids, {}, scores, row.get("state") == "ERROR")


MLFLOW = samples_format("mlflow", _mlflow, lambda begin: bool(re.match(rb'\s*\{\s*"columns":\s*\[', begin)))


_PROMPTFOO_ERROR = 2  # the `failureReason` of a result without an answer
_LABEL = 80  # characters of a prompt's label; a longer one is the prompt itself


def _promptfoo(part: FilePart) -> Iterator[Sample]:
    """The results of `promptfoo eval -o`: one for each test, prompt, provider and repeat.

    Repeats are not numbered in the file: the results of one test come as often as it was repeated, in their order.
    """
    results = _get(part, _get(part, _document(part, part.data), "results", dict), "results", list)
    number_of_test: dict[str, int] = {}
    number_of_prompt: dict[str, int] = {}
    n_before: Counter[tuple[int, int]] = Counter()
    for result in sorted(results, key=lambda each: [_get(part, each, name, int) for name in ("testIdx", "promptIdx")]):
        test = json.dumps(_get(part, result, "testCase", dict), sort_keys=True)
        number = number_of_test.setdefault(test, len(number_of_test))
        prompt = _get(part, _get(part, result, "prompt", dict), "label", str)
        number_of_prompt.setdefault(prompt, 1 + len(number_of_prompt))
        provider = _get(part, result, "provider", dict)
        n_before[number, result["promptIdx"]] += 1
        labels = {
            "provider": provider.get("label") or _get(part, provider, "id", str),
            "prompt": number_of_prompt[prompt] if len(prompt) > _LABEL or "\n" in prompt else prompt,
            "repeat": n_before[number, result["promptIdx"]],
        }
        failed = result.get("failureReason") == _PROMPTFOO_ERROR
        case = result["testCase"]
        ids = {"query_id": number, **_fields("vars", case.get("vars")), **_fields("metadata", case.get("metadata"))}
        ids |= {"description": case["description"]} if case.get("description") else {}
        yield Sample(ids, labels, _promptfoo_scores(part, result), failed)


def _promptfoo_scores(part: FilePart, result: Mapping[str, Any]) -> dict[str, object]:
    """The scores that each result has, and those that its assertions name."""
    scores = {"score": result.get("score"), "pass": _number(result.get("success"))}
    scores |= {"latency_ms": result.get("latencyMs"), "cost": result.get("cost")}
    named = _object(part, result, "namedScores")
    return scores | {f"named.{name}" if name in scores else name: _number(value) for name, value in named.items()}


PROMPTFOO = samples_format(
    "promptfoo",
    _promptfoo,
    lambda begin: bool(re.match(rb'\s*\{\s*"evalId":\s*(null|"[^"]*"),\s*"results":\s*\{', begin)),
    repeats="repeat",
)


def _every_eval_ever(part: FilePart) -> Iterator[Sample]:
    """The lines of instances, by version 0.3.0 of the schema; one for each sample and figure that it is part of.

    A sample with an error has a score, for the schema wants one, and converters write 0.
    """
    for line in _lines(part):
        scored = _get(part, line, "evaluation", dict)
        metadata = _object(part, line, "metadata")
        labels = {"model": _get(part, line, "model_id", str), "evaluation": _get(part, line, "evaluation_name", str)}
        if line.get("evaluation_result_id") is not None:
            labels["result"] = str(line["evaluation_result_id"])
        if "epoch" in metadata:
            labels["epoch"] = str(metadata["epoch"])
        ids = {"query_id": _get(part, line, "sample_id", str), **_fields("metadata", metadata)}
        ids |= {"sample_hash": line["sample_hash"]} if line.get("sample_hash") else {}
        scores = {name: _number(scored.get(name)) for name in ("score", "is_correct")}
        scores["latency_ms"] = _object(part, line, "performance").get("latency_ms")
        yield Sample(ids, labels, scores, bool(line.get("error")))


EVERY_EVAL_EVER = samples_format(
    "every_eval_ever",
    _every_eval_ever,
    lambda begin: bool(re.match(rb'\s*\{\s*"schema_version":\s*"[^"]*",\s*"evaluation_id":', begin)),
    repeats="epoch",
)
