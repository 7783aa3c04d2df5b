"""Write the parts of the guides that the code knows best: `python docs/generate.py`.

What stands between `<!-- generated: NAME -->` and `<!-- end -->` in a page is made here; the rest is written by hand.
A test fails while a page differs from what this makes.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import itertools
import json
import re
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

import rankledger
from rankledger.metrics.aliases import MetricAlias, read_aliases, read_tools
from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.metrics.metric import Metric, Parameter
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.cli.commands import GROUPS
from rankledger.pipeline.config import schema as config_schema
from rankledger.pipeline.record.evaluation import Evaluation, Table

__all__ = ["pages"]

FOLDER = Path(__file__).parent
MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

# The sections of a config in reading order: the heading, and the model whose keys it lists.
SECTIONS = {
    "The whole config": "ConfigFile",
    "A dataset: `datasets.NAME`": "Dataset",
    "An external score: `scores.NAME`": "Score",
    "A model: `models.NAME`": "Model",
    "`promote` of a model": "Promote",
    "A file": "File",
    "A model's output": "OutputFile",
    "`conventions`": "Conventions",
    "`bootstrap`": "Bootstrap",
    "`comparison`": "Comparison",
    "A gate: `gates`": "Gate",
    "`waive` of a gate": "Waive",
    "`looks` of a gate": "Looks",
    "`nightly`": "Nightly",
    "A target: `notify`": "Notify",
    "`execution`": "Execution",
    "`tracking`": "Tracking",
    "`defaults`": "Defaults",
}
SHOWN = {  # what is written for a part of the schema that has a section of its own
    "Bootstrap": "[mapping](#bootstrap)",
    "Comparison": "[mapping](#comparison)",
    "Conventions": "[profile or mapping](#conventions)",
    "Dataset": "[dataset](#a-dataset-datasetsname)",
    "DatasetDefaults": "[dataset](#a-dataset-datasetsname)",
    "Defaults": "[mapping](#defaults)",
    "Execution": "[mapping](#execution)",
    "File": "[file](#a-file)",
    "Gate": "[gate](#a-gate-gates)",
    "Looks": "[mapping](#looks-of-a-gate)",
    "Model": "[model](#a-model-modelsname)",
    "Promote": "[mapping](#promote-of-a-model)",
    "Nightly": "[mapping](#nightly)",
    "Notify": "[target](#a-target-notify)",
    "OutputFile": "[output](#a-models-output)",
    "Score": "[score](#an-external-score-scoresname)",
    "Tracking": "[mapping](#tracking)",
    "Waive": "[mapping](#waive-of-a-gate)",
}
NAMES = {"array": "list", "boolean": "true or false", "integer": "whole number", "object": "mapping", "string": "text"}
BOUNDS = {"minimum": "at least {}", "exclusiveMinimum": "above {}", "exclusiveMaximum": "below {}"}
BETTER = {"higher": "higher is better", "lower": "lower is better", "neither": "no direction is better"}
AVERAGED = {
    "pooled": "`pooled` is one figure over all pairs or rows",
    "query": "`query` is the mean of the figures of each query",
    "impressions": "`impressions` is that mean weighted by the pairs of each query",
    "positives": "`positives` by its positive pairs",
}


def pages() -> dict[Path, str]:
    """Return every page with a generated part, and its expected text."""
    parts = {
        "config": _config,
        "metrics": _metrics,
        "metric_table": _metric_table,
        "names": _names,
        "agreement": _agreement,
        "api": _api,
        "commands": _commands,
        "profiles": _profiles,
        "profile_defaults": _profile_defaults,
        "reasons": _reasons,
    }
    tables = {name: table for name, table in vars(Evaluation).items() if isinstance(table, Table)}
    parts |= {f"columns_of_{name}": partial(_columns, table.row) for name, table in tables.items()}
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(FOLDER.glob("*.md"))}
    return {
        page: MARKED.sub(lambda found: "\n".join([found[1], *parts[found[2]](), found[3]]), text)
        for page, text in texts.items()
        if MARKED.search(text)
    }


def _config() -> Iterator[str]:
    schema = config_schema.schema()
    definitions: Mapping[str, Any] = schema["$defs"]  # type: ignore[assignment]
    for heading, name in SECTIONS.items():
        section = _mapping(schema if name == "ConfigFile" else definitions[name])
        required = set(section.get("required", []))
        if name == "ConfigFile":
            required = {"name", "datasets", "models", "suites"}
        yield from (f"### {heading}", "", section["description"], "")
        yield from ("| key | value | default | meaning |", "|---|---|---|---|")
        for key, value in section["properties"].items():
            default = "required" if key in required else _default(value)
            meaning = value.get("description") or _mapping(definitions[_referred(value)])["description"]
            yield f"| `{key}` | {_shape(value)} | {default} | {_cell(meaning)} |"
        yield ""


def _mapping(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a section without its shorthand."""
    return next(part for part in (section, *section.get("anyOf", [])) if "properties" in part)


def _referred(value: Mapping[str, Any]) -> str:
    """Return the name of the definition of a value."""
    return str(value["$ref"]).rpartition("/")[2]


def _shape(value: Mapping[str, Any]) -> str:
    """Describe the allowed values."""
    if "$ref" in value:
        return SHOWN[_referred(value)]
    if words := value.get("enum", [value["const"]] if "const" in value else []):
        return " or ".join(f"`{word}`" for word in words)
    if choices := [
        choice for choice in (*value.get("anyOf", []), *value.get("oneOf", [])) if choice != {"type": "null"}
    ]:
        return " or ".join(dict.fromkeys(map(_shape, choices)))
    bounds = [text.format(f"{value[bound]:,}") for bound, text in BOUNDS.items() if bound in value]
    name = " ".join([NAMES.get(value["type"], value["type"]), ", ".join(bounds)]).strip()
    if value["type"] == "array":
        return f"{name} of {_shape(value['items'])}"
    if value["type"] == "object":
        keys = value.get("propertyNames", {}).get("enum")
        below = _shape(value["additionalProperties"])
        return f"{name}, keys {', '.join(f'`{key}`' for key in keys)}" if keys else f"{name} of name to {below}"
    return name


def _default(value: Mapping[str, Any]) -> str:
    if "$ref" in value and "default" not in value:
        return "see there"
    default = value.get("default")
    if default is None or default == {}:
        return "none"
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _metric_table() -> Iterator[str]:
    yield from ("| metric | title | formula | range | better |", "|---|---|---|---|---|")
    for metric in METRICS.values():
        link = f"[`{_written(metric)}`](#{metric.name})"
        yield f"| {link} | {metric.title} | `{_cell(metric.formula)}` | {_range(metric)} | {metric.direction} |"
    yield ""


def _metrics() -> Iterator[str]:
    for metric in METRICS.values():
        text = _docstring(metric.function)
        paragraphs = "\n".join(text[""]).split("\n\n")
        described = [part for part in paragraphs if not part.startswith("Formula: ")]
        yield from (f"### {metric.name}", "", "\n\n".join(described), "")
        yield from _items(_facts(metric, text))
        yield ""
        meanings = _meanings(text.get("Args", [])) | {
            "average": f"{'; '.join(AVERAGED[word] for word in metric.averages)}."
        }
        if metric.cutoff != "refused" or metric.parameters:
            yield from ("| parameter | default | meaning |", "|---|---|---|")
            if metric.cutoff != "refused":
                default = "required" if metric.cutoff == "required" else "all ranks"
                yield f"| `@k` | {default} | {_cell(meanings['k'])} |"
            for parameter in metric.parameters.values():
                yield f"| `{parameter.name}` | {_parameter(parameter)} | {_cell(meanings[parameter.name])} |"
            yield ""


def _facts(metric: Metric, text: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the lines on one metric."""
    yield f"written `{_written(metric)}`: `{metric.formula}`; {BETTER[metric.direction]}"
    yield f"value: {re.sub(r'^.Q,.[,;] ', '', ' '.join(text['Returns']))}"
    if metric.per == "dataset":
        yield "of all queries together: a dataset has one figure, without confidence interval"
    if metric.needs:
        yield f"needs {' and '.join(f'`{need}:`' for need in metric.needs)} in the dataset"
    if metric.columns:
        yield f"needs {' and '.join(f'`{column}`' for column in metric.columns)} in [logs](data.md#evaluate-logs)"
    if metric.undefined == "skip":
        yield "an undefined query is left out of the mean, whatever the conventions say of others"
    names = [name for name, alias in read_aliases().items() if alias.measures == (metric.name,) and name != metric.name]
    if names:
        yield f"also written {', '.join(f'`{name}`' for name in sorted(names, key=str.lower) if '(' not in name)}"
    yield f"reference: {' '.join(text['Reference'])}"
    yield f"version {metric.version}"


def _names() -> Iterator[str]:
    compared = _compared()
    for tool in read_tools():
        agreement = {  # of trec_eval 9, whose name comes after that of 10
            metric: comparison
            for (metric, name), comparison in compared.items()
            if any(name.startswith(title) for title in tool.title.split(", "))
        }
        columns = ("there", "here", "", *(["agreement"] if agreement else []))
        yield from (f"## {tool.title}", "", f"Names of {tool.versions}.", "", f"| {' | '.join(columns)} |")
        yield "|---" * len(columns) + "|"
        for alias in tool.aliases:
            note = _cell(alias.note.replace("@#", "@10"))
            renamed = [f"`{their_name}` is `{name}`" for their_name, name in alias.parameters.items()]
            cells = [", ".join(map(_theirs, alias.names)), _ours(alias), "; ".join(filter(None, [note, *renamed]))]
            if agreement:
                metrics = _metric_names(alias)
                cells.append(
                    _difference(agreement[min(metrics)]) if metrics <= agreement.keys() and len(metrics) == 1 else ""
                )
            yield f"| {' | '.join(cells)} |"
        yield ""


def _agreement() -> Iterator[str]:
    """Yield a row per metric with the tools that it was compared with, and tools with a name only."""
    compared = _compared()
    yield from ("| metric | figures compared, and the greatest difference | has it, too |", "|---|---|---|")
    for metric in METRICS:
        tools = {tool: comparison for (name, tool), comparison in compared.items() if name == metric}
        named = [
            tool.title
            for tool in read_tools()[:-1]  # the last are names of no tool
            if any({metric} == _metric_names(alias) for alias in tool.aliases)
            and not any(tool_name.startswith(title) for tool_name in tools for title in tool.title.split(", "))
        ]
        shown = "; ".join(f"{tool}: {_difference(comparison)}" for tool, comparison in tools.items())
        yield f"| [`{metric}`](#{metric}) | {shown} | {', '.join(named)} |"
    for metric in sorted({name for name, _ in compared} - METRICS.keys()):  # computed from tables of judged answers
        shown = "; ".join(
            f"{tool}: {_difference(comparison)}" for (name, tool), comparison in compared.items() if name == metric
        )
        yield f"| [`{metric}`](data.md#score-judged-answers) | {shown} |  |"
    yield ""


def _compared() -> dict[tuple[str, str], tuple[int, float]]:
    """Return the number of compared values and the maximum difference by metric and tool, from docs/agreement.csv."""
    compared: dict[tuple[str, str], tuple[int, float]] = {}
    with (FOLDER / "agreement.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            n_figures, maximum = compared.get((row["metric"], row["tool"]), (0, 0.0))
            added = n_figures + int(row["figures"]), max(maximum, float(row["difference"]))
            compared[row["metric"], row["tool"]] = added
    return dict(sorted(compared.items(), key=lambda item: (item[0][0], item[0][1].lower())))


def _difference(compared: tuple[int, float]) -> str:
    n_figures, maximum = compared
    return f"{n_figures:,}, {maximum:.0e}" if maximum else f"{n_figures:,}, 0"


def _metric_names(alias: MetricAlias) -> set[str]:
    return {re.split(r"\W", measure)[0] for measure in alias.measures}


def _theirs(name: str) -> str:
    """Return a name of another tool, with `…` for a number or for the rest of the name."""
    plain, _, parameter = name.replace("#", "…").replace("*", "…").partition("(")
    return f"`{plain}` with `{parameter.rstrip(')')}`" if parameter else f"`{plain}`"


def _ours(alias: MetricAlias) -> str:
    """Return our measures for an alias, with `…` for the number, and between two measures of one metric."""
    shown: list[str] = []
    for _, group in itertools.groupby(alias.measures, lambda measure: re.split(r"\W", measure)[0]):
        measures = [f"`{measure.replace('#', '…')}`" for measure in group]
        shown += measures if len(measures) < 4 else [measures[0], f"{measures[1]} … {measures[-1]}"]
    return ", ".join(shown) or "refused"


def _profiles() -> Iterator[str]:
    """Yield a row per convention with its value in each profile."""
    yield from ("| convention |" + "".join(f" `{name}` |" for name in PROFILES), "|---" * (len(PROFILES) + 1) + "|")
    for convention in fields(Conventions):
        choices = []
        for profile in PROFILES.values():
            choice = getattr(profile.conventions, convention.name)
            others = profile.ties if convention.name == "ties" else {}
            exceptions = "".join(f"; {metric}: `{ties}`" for metric, ties in others.items())
            choices.append(f"{'all' if choice is None else f'`{choice}`'}{exceptions}")
        yield f"| `{convention.name}` | {' | '.join(choices)} |"
    yield ""


def _profile_defaults() -> Iterator[str]:
    """Yield a row per parameter whose default a profile changes."""
    yield from ("| parameter | default | elsewhere |", "|---|---|---|")
    changed = [
        (metric, name)
        for profile in PROFILES.values()
        for metric, ours_by_name in profile.defaults.items()
        for name in ours_by_name
    ]
    for metric, name in sorted(set(changed)):
        elsewhere = [
            f"{profile.name}: `{profile.defaults[metric][name]}`"
            for profile in PROFILES.values()
            if name in profile.defaults.get(metric, {})
        ]
        ours_by_name = METRICS[metric].parameters[name].default
        default = "the judgments' greatest" if ours_by_name is None else f"`{ours_by_name}`"
        yield f"| `{metric}({name}=…)` | {default} | {', '.join(elsewhere)} |"
    yield ""


def _reasons() -> Iterator[str]:
    """Yield the reasons of each profile's choices."""
    for profile in PROFILES.values():
        yield from (f"### {profile.name}", "", f"{profile.tool}.", "")
        yield from _items(f"`{choice}`: {reason}" for choice, reason in profile.because.items())
        for key, conventions in profile.differs.items():
            metric, _, part = key.partition(" ")
            written = f"{metric}({part})" if "=" in part else f"{metric}@k" if part else metric
            chosen = ", ".join(f"`{word}: {choice}`" for word, choice in conventions.items())
            if chosen:
                yield from _items([f"`{written}`: set {chosen} to reproduce the tool's figure"])
        yield ""


def _items(texts: Iterable[str]) -> Iterator[str]:
    """Yield a list of the texts in lines of at most 120 characters."""
    for text in texts:
        yield textwrap.fill(text, 120, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def _docstring(documented: object) -> dict[str, list[str]]:
    """Return the paragraphs of a docstring by heading, '' before the first heading."""
    sections: dict[str, list[str]] = {"": []}
    heading = ""
    for line in (inspect.getdoc(documented) or "").splitlines():
        if re.fullmatch(r"[A-Z]\w+:", line):
            heading = line.rstrip(":")
            sections[heading] = []
        elif heading:
            sections[heading] += [line.removeprefix("    ")] if line else []
        else:
            sections[heading].append(line)
    while sections[""] and not sections[""][-1]:
        sections[""].pop()
    return sections


def _meanings(lines: Iterable[str]) -> dict[str, str]:
    """Return the meaning of each argument."""
    meanings: dict[str, str] = {}
    for line in lines:
        if line.startswith(" "):
            name = next(reversed(meanings))
            meanings[name] = f"{meanings[name]} {line.strip()}"
        else:
            name, _, meanings[name] = line.partition(": ")
    return meanings


def _parameter(parameter: Parameter) -> str:
    """Describe the default of a parameter and its other values."""
    words = typing.get_args(parameter.type) if typing.get_origin(parameter.type) is typing.Literal else ()
    others = [f"`{word}`" for word in words if word != parameter.default]
    default = "none"
    if parameter.required:
        default = "required"
    elif isinstance(parameter.default, tuple):
        default = f"`[{','.join(map(str, parameter.default))}]`"
    elif parameter.default is not None:
        default = f"`{parameter.default if words else format(parameter.default, 'g')}`"
    return f"{default}; or {', '.join(others)}" if others else default


def _written(metric: Metric) -> str:
    """Return the notation of a measure of the metric, with optional parts in brackets."""
    required = [f"{parameter.name}=…" for parameter in metric.parameters.values() if parameter.required]
    parameters = f"({','.join(required)})" if required else ""
    return metric.name + parameters + {"refused": "", "optional": "[@k]", "required": "@k"}[metric.cutoff]


def _range(metric: Metric) -> str:
    low, high = (f"{end:g}".replace("inf", "∞") for end in metric.range)
    return f"{low} to {high}"


def _commands() -> Iterator[str]:
    for title, commands in GROUPS.items():
        yield from (f"## {title}", "")
        for command in commands:
            arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
            usage = " ".join(parameter.make_metavar(click.Context(command)) for parameter in arguments)
            yield from (f"### rankledger {command.name} {usage}".rstrip(), "")
            for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
                yield from _paragraph(paragraph)
            options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
            if options:
                yield from ("| option | meaning |", "|---|---|")
                yield from (f"| {_option(option)} | {_cell(option.help or '')} |" for option in options)
                yield ""


def _paragraph(text: str) -> Iterator[str]:
    """Yield a paragraph of a command's help: text, examples, or a list."""
    if not text.startswith("\b\n"):
        yield from (text, "")
        return
    head, *lines = text.removeprefix("\b\n").splitlines()
    if head == "Example:":
        yield from ("```sh", *map(str.strip, lines), "```", "")
        return
    yield from (head, "")
    for line in lines:
        words, meaning = re.split(r"  +", line.strip())
        yield f"- {', '.join(f'`{word}`' for word in words.split(', '))}: {meaning}"
    yield ""


def _api() -> Iterator[str]:
    """Yield every public name, functions first."""
    public = {name: getattr(rankledger, name) for name in rankledger.__all__}
    yield from ("## Functions", "")
    for name, member in public.items():
        if not isinstance(member, type):
            yield from _function(name, member)
    yield from ("## Types", "")
    types = {name: member for name, member in public.items() if isinstance(member, type)}
    for name, member in types.items():
        yield from _type(name, member)
    yield from ("## What the types hold", "", "You get these from the types above; they are not imported by name.", "")
    for name, member in sorted(_held(types).items()):
        yield from _type(name, member)


def _held(types: Mapping[str, type]) -> dict[str, type]:
    """Return the project's types in attributes of these types, and in theirs, by name."""
    held: dict[str, type] = {}
    queue = [*types.values()]
    while queue:
        owner = queue.pop()
        bases = [base for base in owner.__mro__ if base.__module__.startswith("rankledger.")]
        modules = [importlib.import_module(base.__module__) for base in bases]
        for name in re.findall(r"[A-Z]\w+", " ".join(_annotations(owner).values())):
            member = next((getattr(module, name) for module in modules if hasattr(module, name)), None)
            if not isinstance(member, type) or issubclass(member, BaseModel):  # the guide on records has the manifest
                continue
            if member.__module__.startswith("rankledger.") and name not in types | held:
                held[name] = member
                queue.append(member)
    return held


def _annotations(owner: type) -> dict[str, str]:
    """Return the type of each attribute and property as source text."""
    annotations = {name: str(text) for base in reversed(owner.__mro__) for name, text in _own(base)}
    return {name: text for name, text in annotations.items() if not name.startswith("_")}


def _own(owner: type) -> Iterator[tuple[str, object]]:
    yield from vars(owner).get("__annotations__", {}).items()
    for name, member in vars(owner).items():
        if isinstance(member, Table):
            yield name, f"tuple[{member.row.__name__}, ...]"
        getter = member.fget if isinstance(member, property) else getattr(member, "func", None)
        if getter is not None:
            yield name, inspect.signature(getter).return_annotation


def _function(name: str, function: Callable[..., object]) -> Iterator[str]:
    text = _docstring(function)
    yield from (f"### {name}", "", "```text", *_signature(name, function), "```", "", *text[""], "")
    yield from _meanings_table("argument", text.get("Args", []))
    for heading in ("Returns", "Raises"):
        if heading in text:
            yield from (f"{heading}:", "", *_items(_joined(text[heading])), "")


def _signature(name: str, function: Callable[..., object]) -> list[str]:
    """Return the call as source text, one argument per line if it is long."""
    signature = inspect.signature(function)
    arguments = [*_arguments(signature)]
    short = f"rankledger.{name}({', '.join(arguments)}) -> {signature.return_annotation}"
    if len(short) <= 100:
        return [short]
    lines = [f"    {argument}," for argument in arguments]
    return [f"rankledger.{name}(", *lines, f") -> {signature.return_annotation}"]


def _arguments(signature: inspect.Signature) -> Iterator[str]:
    keyword_only = False
    for parameter in signature.parameters.values():
        many = parameter.kind is parameter.VAR_POSITIONAL
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            yield "*"
        keyword_only |= many or parameter.kind is parameter.KEYWORD_ONLY
        default = "" if parameter.default is parameter.empty else f" = {_literal(parameter.default)}"
        yield f"{'*' * many}{parameter.name}: {parameter.annotation}{default}"


def _literal(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _type(name: str, found: type) -> Iterator[str]:
    text = _docstring(found)
    yield from (f"### {name}", "", *text[""], "")
    types = _annotations(found)
    lines = (line for base in _bases(found) for line in (*_docstring(base).get("Attributes", []), *_members(base)))
    meanings = _meanings([*lines])
    if meanings:
        yield from ("| attribute | type | meaning |", "|---|---|---|")
        for attribute, meaning in meanings.items():
            written = f"`{_cell(types[attribute])}`" if attribute in types else ""
            yield f"| `{attribute}` | {written} | {_cell(meaning)} |"
        yield ""


def _columns(row: type) -> Iterator[str]:
    """Yield a table of a result table's columns."""
    lines = [line for base in _bases(row) for line in _docstring(base).get("Attributes", [])]
    yield from _meanings_table("column", lines)


def _bases(found: type) -> list[type]:
    return [base for base in reversed(found.__mro__) if base.__module__.startswith("rankledger.")]


def _members(found: type) -> Iterator[str]:
    """Yield a row per public property and method with its first sentence."""
    for name, member in vars(found).items():
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
            parameters = [*inspect.signature(getattr(found, name)).parameters]
            yield f"{name}({', '.join(parameters[inspect.isfunction(member) :])}): {_first(member)}"
        elif isinstance(member, property | cached_property):
            yield f"{name}: {_first(member)}"
        elif isinstance(member, Table):
            yield f"{name}: Rows of `{member.file}`."


def _first(member: object) -> str:
    return (inspect.getdoc(member) or "").partition("\n\n")[0].replace("\n", " ")


def _meanings_table(head: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from (f"| {head} | meaning |", "|---|---|")
        yield from (f"| `{name}` | {_cell(meaning)} |" for name, meaning in _meanings(lines).items())
        yield ""


def _joined(lines: Iterable[str]) -> list[str]:
    """Return the items of a section, one per line, with indented lines joined to their item."""
    joined: list[str] = []
    for line in lines:
        if joined and (line.startswith(" ") or ":" not in line):
            joined[-1] = f"{joined[-1]} {line.strip()}"
        else:
            joined.append(line)
    return joined


def _option(option: click.Option) -> str:
    flags = ", ".join(option.opts)
    if option.is_flag:
        return f"`{flags}`"
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    value = "|".join(map(str, choices)) or option.metavar or (option.name or "").upper()
    default = f", by default `{option.default}`" if option.show_default else ""
    return _cell(f"`{flags} {value}`{default}")


def _cell(text: str) -> str:
    """Text for a cell of a table: in one line, and no bar that would end the cell."""
    return " ".join(text.split()).replace("|", r"\|")


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
