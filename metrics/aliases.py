"""Names of measures in other tools.

`aliases.tsv` has a section for each tool and a row for each meaning. `#` in a name is a number: `rbp.#` is `rbp.95` of
ranx. `*` ends a prefix. A name without `#` may have parameters and a cutoff in the style of any tool: `AP(rel=2)@10`,
`P_10`, `ndcg_cut.5,10`, `map@100-l2`. The spelling is exact: `hits` is a count, `hit` is not. If tools disagree on a
name, the name means what trec_eval and ir_measures mean, and the note says what the other tool does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rankledger.metrics.registry import METRICS

_TEXT = re.compile(
    r"(?P<name>[^\s(@]+?)\s*(\((?P<parameters>.*)\))?\s*(@\s*(?P<cutoff>[^()@]*?))?(-l(?P<level>\d+))?(?P<mean>/mean)?",
    re.ASCII,
)
_NUMBERED = re.compile(r"(.+?)([._])(-?\.?\d[\d.,-]*)", re.ASCII)  # P_10, set_F.1.0, utility.1,-1,0,0
_INNER = re.compile(r"(.+_at_)(\d+)(_[a-z]\w*)", re.ASCII)  # nauc_ndcg_at_10_max
_PAIRED = re.compile(r"(.+?)[._](\w+)=(.+)", re.ASCII)  # rbp.p=0.9, ndcg.1=3.5,2=9
_ITEMS = re.compile(r",(?![^\[{]*[\]}])")  # commas outside brackets and braces
_MEASURE = re.compile(r"(\w+)(?:\((.*)\))?(@.*)?")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class MetricAlias:
    """Names of other tools that have one meaning.

    Attributes:
        names: Names as written in the tool.
        measures: Our measures. Empty if the names are rejected. `#` is the number in the name, `√#` its square root.
        note: Reason of the rejection, or difference of the tool's own definition. `@#` is the cutoff that was written.
        parameters: The tool's names of parameters, and ours.
    """

    names: tuple[str, ...]
    measures: tuple[str, ...]
    note: str
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class ToolAliases:
    """Names of one tool, or of tools that share names."""

    title: str
    versions: str
    aliases: list[MetricAlias]


@dataclass(frozen=True)
class _Reading:
    """Reading of a text: key among the aliases, bare name, and the cutoff or number after the name."""

    key: str
    name: str
    cutoff: str | None = None
    number: str | None = None


@cache
def read_tools() -> tuple[ToolAliases, ...]:
    """Return the names in other tools, by tool."""
    tools: list[ToolAliases] = []
    for line in Path(__file__).with_name("aliases.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        if line.startswith("# "):
            title, versions = line[2:].split("\t")
            tools.append(ToolAliases(title, versions, []))
        else:
            names, measures, note, parameters, *_ = [*line.split("\t"), "", "", ""]
            renamed = dict(pair.split("=") for pair in parameters.split())
            tools[-1].aliases.append(MetricAlias(tuple(names.split()), tuple(measures.split()), note, renamed))
    return tuple(tools)


@cache
def read_aliases() -> Mapping[str, MetricAlias]:
    """Return the meaning of each name, with the note of the first tool that has the name."""
    return {name: alias for tool in reversed(read_tools()) for alias in tool.aliases for name in alias.names}


def translate(text: str) -> tuple[str, ...]:
    """Return our measures for a name of another tool.

    Returns:
        Our spellings, or `text` alone if the name is ours or unknown.

    Raises:
        ValueError: The name has no equivalent. The message says why, and what to use.
    """
    written = text.strip()
    match = _TEXT.fullmatch(written)
    if match and match["name"] in METRICS and not (match["level"] or match["mean"]):
        return (text,)
    aliases = read_aliases()
    for name, alias in aliases.items():
        if name.endswith("*") and written.startswith(name[:-1]):
            raise _refusal(written, alias.note, None)
    if match is None:
        return (text,)
    parameters = [*_split_parameters(match["parameters"]), *([("rel", match["level"])] if match["level"] else [])]
    readings = _find_readings(match["name"], match["cutoff"], match["level"])
    reading = next((reading for reading in readings if reading.key in aliases), None)
    return (text,) if reading is None else _translate_reading(written, reading, parameters)


def _find_readings(name: str, cutoff: str | None, level: str | None) -> Iterator[_Reading]:
    """Yield all ways to read a name, the likeliest first."""
    if level:
        yield _Reading(f"{name}-l#", name, cutoff)
    if cutoff is not None:
        yield _Reading(f"{name}@#", name, number=cutoff)
    yield _Reading(name, name, cutoff)
    if (numbered := _NUMBERED.fullmatch(name)) and cutoff is None:
        stem, mark, number = numbered.groups()
        for sign in dict.fromkeys([mark, "_"]):
            yield _Reading(f"{stem}{sign}{re.sub('[^,]+', '#', number)}", stem, number=number)
            yield _Reading(f"{stem}{sign}#", stem, number=number)
        yield _Reading(stem, stem, number)
    if inner := _INNER.fullmatch(name):
        yield _Reading(f"{inner[1]}#{inner[3]}", name, cutoff, inner[2])
    if paired := _PAIRED.fullmatch(name):
        stem, key, number = paired.groups()
        yield _Reading(f"{stem}.{'#' if key.isdecimal() else key}=#", stem, cutoff, number)


def _split_parameters(text: str | None) -> Iterator[tuple[str, str]]:
    for item in _ITEMS.split(text) if text and text.strip() else ():
        name, _, value = (part.strip() for part in item.partition("="))
        yield name, value.strip("'\"")


def _translate_reading(text: str, reading: _Reading, parameters: list[tuple[str, str]]) -> tuple[str, ...]:
    aliases, number, cutoff = read_aliases(), reading.number, reading.cutoff
    alias = named = aliases[reading.key]
    kept = []
    for name, value in parameters:
        special = aliases.get(f"{reading.name}({name}={value})") or aliases.get(f"{reading.name}({name}=#)")
        if name == "judged_only" and value == "True":
            problem = "unjudged documents are a convention"
            raise _refusal(text, f"{problem}. Set conventions: {{unjudged_documents: condensed}}.", None)
        if special is None and name in {"cutoff", "k", "n", "top_k"}:
            cutoff = cutoff or value
        elif special is None and name != "judged_only":
            parameter = alias.parameters.get(name, name)
            kept.append(f"{parameter}={value}" if value else parameter)
        elif special is not None and special.measures != named.measures:
            alias, number = special, value
    if not alias.measures:
        raise _refusal(text, alias.note, cutoff or number)
    return tuple(_write_measure(measure, kept, cutoff) for measure in _fill_numbers(text, alias.measures, number))


def _write_measure(measure: str, parameters: list[str], cutoff: str | None) -> str:
    """Replace parameters and cutoff of a measure by those that were written."""
    metric, fixed, usual = _MEASURE.fullmatch(measure).groups(default="")  # type: ignore[union-attr]
    names = {item.partition("=")[0] for item in parameters}
    items = [item for item in fixed.split(",") if item and item.partition("=")[0] not in names] + parameters
    suffix = usual if cutoff is None else "" if cutoff == "-1" else f"@{cutoff}"  # -1 of Cornac is no cutoff
    return f"{metric}({','.join(items)}){suffix}" if items else f"{metric}{suffix}"


def _fill_numbers(text: str, templates: tuple[str, ...], written: str | None) -> Iterator[str]:
    """Replace `#` by the written numbers. A template with one `#` yields a measure for each number."""
    for template in templates:
        if written is None or "#" not in template:
            yield template
        elif template.count("#") > 1:
            for number in written.split(","):
                template = template.replace("#", _write_number(number), 1)
            yield template
        else:
            for number in written.split(","):
                if "√#" in template:
                    if not _FLOAT.fullmatch(number) or float(number) < 0:
                        problem = f"found '{number}' as the square of beta"
                        raise ValueError(f"'{text}': {problem}. Use a number of at least 0.")
                    fill = _write_number(str(math.sqrt(float(number))))
                else:
                    fill = number if "0.#" in template else _write_number(number)
                yield template.replace("√", "").replace("#", fill)


def _write_number(text: str) -> str:
    """Return `0.1` for `0.10` and `1` for `1.0`. The parser of measures rejects what is not a number."""
    if not _FLOAT.fullmatch(text) or math.isinf(number := float(text)):
        return text
    return str(int(number) if number.is_integer() else number)


def _refusal(text: str, note: str, cutoff: str | None) -> ValueError:
    return ValueError(f"'{text}': {note.replace('@#', f'@{cutoff}' if cutoff else '')}")
