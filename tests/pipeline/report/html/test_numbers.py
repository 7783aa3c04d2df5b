"""Every number on a page is one of its record's files: its tables, what is said of its charts, and their data."""

import itertools
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path

import pyarrow.parquet
import pytest

import rankledger
from tests.pipeline.report.html.recorded_tables import (
    Expected,
    Recorded,
    Tables,
    definitions,
    differences,
    four,
    leaderboards,
    lists,
    moved,
    provenance,
    quality,
    signed,
    slices,
)
from tests.support import sample_evaluations
from tests.support.page_reader import Chart, Said, Table, read_page

NIGHTS = {
    "various": lambda folder: sample_evaluations.various(folder),
    "all pairs": lambda folder: sample_evaluations.all_pairs(folder),
    "all pairs, many queries": lambda folder: sample_evaluations.all_pairs(folder, 77, n_queries=130),
    "ratings": lambda folder: sample_evaluations.ratings(folder),
    "second night": lambda folder: sample_evaluations.second_night(folder),
}

TABLES: tuple[Callable[[Recorded], Tables], ...] = (
    *(leaderboards, differences, slices, moved, lists, quality, definitions, provenance),
)


@pytest.fixture(scope="module", params=NIGHTS)
def record(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("night")
    with chdir(folder):
        return rankledger.evaluate_config(
            NIGHTS[request.param](folder), runs_dir="runs", tracking=False
        ).record.absolute()


@pytest.fixture(scope="module")
def said(record: Path) -> Said:
    return read_page((record / "report.html").read_text(encoding="utf-8"))


def test_every_cell_of_every_table(record, said):
    assert list(unlike(said.tables, wanted_of(record))) == []


def test_a_cell_that_is_altered_is_found(record, said):
    wanted, rng = wanted_of(record), random.Random(3)
    places = [
        (row, column)
        for table in said.tables
        if table.name not in BY_HAND
        for group in table.groups
        for row in group.rows
        for column, text in enumerate(row)
        if re.search(r"\d", text) and not table.heads[column].startswith("letters")
    ]
    for row, column in rng.sample(places, min(60, len(places))):
        text = row[column]
        digit = rng.choice([found.start() for found in re.finditer(r"\d", text)])
        row[column] = f"{text[:digit]}{(int(text[digit]) + 1) % 10}{text[digit + 1 :]}"
        assert list(unlike(said.tables, wanted)) != [], text
        row[column] = text


def wanted_of(record: Path) -> Mapping[str, Sequence[Expected]]:
    recorded = Recorded(record)
    return dict(itertools.chain.from_iterable(build(recorded) for build in TABLES))


BY_HAND = {"gates", "verdicts", "reasons", "failures", "worst-figures", "external"}  # in test_sections.py


def unlike(tables: Sequence[Table], expected: Mapping[str, Sequence[Expected]]) -> Iterator[str]:
    found = {name: table for name, table in _called(tables) if name not in BY_HAND}
    yield from (f"no table {name}" for name in expected.keys() - found.keys())
    yield from (f"a table that is in no file: {name}" for name in found.keys() - expected.keys())
    for name in expected.keys() & found.keys():
        groups, wanted = found[name].groups, expected[name]
        if len(groups) != len(wanted):
            yield f"{name}: {len(groups)} groups of rows, {len(wanted)} in the files"
        for group, of_file in zip(groups, wanted, strict=False):
            if not group.title.startswith(of_file.title):
                yield f"{name}: {group.title!r} instead of {of_file.title!r}"
            yield from _unlike(f"{name}, {group.title}", found[name].cells(group), of_file)


def _unlike(where: str, rows: Sequence[Mapping[str, str]], expected: Expected) -> Iterator[str]:
    if len(rows) != len(expected.rows):
        yield f"{where}: {len(rows)} rows, {len(expected.rows)} in the files"
    for row, wanted in zip(rows, expected.rows, strict=False):
        for head, text in row.items():
            name = re.sub(r" \([^() ]+ to [^() ]+\)$", "", head)  # without the ends of the scale of its bars
            if not name.startswith("letters") and wanted.get(name) != text:
                yield f"{where}, {head}: {text!r} instead of {wanted.get(name)!r}"


def _called(tables: Sequence[Table]) -> Iterator[tuple[str, Table]]:
    numbers = {"moved": itertools.count(1), "lists": itertools.count(1)}
    for table in tables:
        kind, query = table.name.partition("-")[0], table.caption.partition(" documents of ")[2]
        yield (f"{kind} {next(numbers[kind])}: {query}" if kind in numbers else table.name), table


def test_letters(record, said):
    recorded = Recorded(record)
    for table in said.tables:
        if "letters" not in table.heads:
            continue
        dataset = table.name.removeprefix("leaderboard-")
        for group in table.groups:
            for head in (head for head in table.heads if head.startswith("letters")):
                letters = {row["model"]: set(row[head]) for row in table.cells(group)}
                measure = head.removeprefix("letters").removeprefix(" by ") or recorded.leading(dataset)
                key = (dataset, measure, group.slice)
                lines = [x for x in recorded.comparisons if (x["dataset"], x["measure"], x["slice"]) == key]
                assert len(lines) == len(letters) * (len(letters) - 1) / 2
                for line in lines:
                    alike = not line["p_corrected"] or float(line["p_corrected"]) >= 0.05
                    assert bool(letters[line["model"]] & letters[line["baseline"]]) is alike, line


def test_counts_of_verdicts(record, said):
    verdicts, text = Recorded(record).verdicts, said.text["verdict"]
    gates = {verdict["gate"] for verdict in verdicts}
    passing = gates - {verdict["gate"] for verdict in verdicts if verdict["effect"] != "pass"}

    assert re.findall(r"PASS (\d+) of (\d+) gates? ", text) == (
        [(str(len(passing)), str(len(gates)))] if passing else []
    )


def test_what_is_said_of_queries_and_settings(record, said):
    recorded = Recorded(record)
    manifest, text = recorded.manifest, {name: " ".join(found.split()) for name, found in said.text.items()}
    for line in recorded.query_changes:
        before, after, change = four(line["before"]), four(line["after"]), signed(line["change"])
        assert f"{line['query_id']}: {before} → {after} ({change})" in text["queries"]
    for name, dataset in manifest["datasets"].items():
        without = dataset["n_without_relevant"]
        some = "" if without is None else f", {without:,} of them without relevant documents"
        assert f"{name} {dataset['n_queries']:,} queries with judgments or ratings{some}." in text["quality"]
    packages = manifest["environment"]["packages"]
    wanted = (
        f"seed{manifest['seed']} ",
        f"{manifest['bootstrap']['resamples']:,} resamples",
        *(f"{name} {packages[name]}" for name in ("numpy", "pyarrow", "pandas")),
    )
    assert [part for part in wanted if part not in text["provenance"]] == []


def test_the_data_of_every_chart(record, said):
    recorded = Recorded(record)
    for chart in said.charts:
        wanted = expected_data(chart, recorded, record)
        assert len(chart.rows) == len(wanted), chart.name
        for row, line in zip(_sorted(chart.rows), _sorted(wanted), strict=True):
            for head, text in row.items():
                assert _value(text) == _value(line[head]), (chart.name, head, row, line)


def test_every_kind_of_chart_is_there(record, said):
    kinds = {chart.name.partition("-")[0] for chart in said.charts}
    recorded = Recorded(record)
    searched = any(line["curve"] == "precision" for line in recorded.curves)

    assert ("scores" in kinds) is bool(recorded.query_changes)
    assert ({"precision", "judged", "cutoffs"} <= kinds) is searched


def test_captions_of_charts(record, said):
    recorded = Recorded(record)
    for chart in said.charts:
        if chart.name.startswith("scores-"):
            changes = [change for *_, change in _changes(chart, recorded, record)]
            better, worse = (sum(sign * change > 1e-12 for change in changes) for sign in (1, -1))
            equal = len(changes) - better - worse
            assert f"{len(changes):,} queries: {better:,} better, {equal:,} equal, {worse:,} worse." in chart.caption


def expected_data(chart: Chart, recorded: Recorded, record: Path) -> list[Mapping[str, str]]:
    kind, _, what = chart.name.partition("-")
    if kind in ("precision", "judged"):
        own = [line for line in recorded.curves if (line["dataset"], line["curve"]) == (what, kind)]
        across = "recall" if kind == "precision" else "rank"
        return [{**line, across: line["at"], kind: line["estimate"]} for line in own]
    if chart.name.startswith("trade-off-"):
        return _traded_off(chart.name.removeprefix("trade-off-"), recorded)
    if kind == "cutoffs":
        return _by_cutoff(*what.rsplit("-", 1), recorded)
    rows = _changes(chart, recorded, record)
    if kind == "changes":
        return [_counted(row, [change for *_, change in rows]) for row in chart.rows]
    heads = ("query_id", "before", "after", "change")
    return [dict(zip(heads, (row[0], *map(repr, row[1:])), strict=True)) for row in rows]


def _traded_off(dataset: str, recorded: Recorded) -> list[Mapping[str, str]]:
    rows: dict[str, dict[str, str]] = {}
    outside = {model: own["numbers"] for model, own in recorded.manifest["external_metrics"].items()}
    for line in recorded.summary:
        if (line["dataset"], line["slice"]) == (dataset, "all"):
            ends = {f"{line['measure']} {end}": _rounded(line[end]) for end in ("ci_low", "ci_high")}
            row = rows.setdefault(line["model"], {"model": line["model"]})
            row |= {line["measure"]: _rounded(line["estimate"]), **ends}
    names = dict.fromkeys(name for model in rows for name in outside.get(model, {}))
    for model, row in rows.items():
        for name in names:
            row |= {name: str(outside.get(model, {}).get(name, "")), f"{name} ci_low": "", f"{name} ci_high": ""}
    return list(rows.values())


def _rounded(text: str) -> str:
    return str(round(float(text), 6)) if text else ""


def _by_cutoff(dataset: str, place: str, recorded: Recorded) -> list[Mapping[str, str]]:
    own = [line for line in recorded.summary if (line["dataset"], line["slice"]) == (dataset, "all")]
    found: dict[str, list[Mapping[str, str]]] = {}
    for line in own:
        measure, at, cutoff = line["measure"].partition("@")
        if at:
            found.setdefault(measure, []).append({**line, "cutoff": cutoff, measure: line["estimate"]})
    several = [lines for lines in found.values() if len({line["cutoff"] for line in lines}) > 1]
    return several[int(place) - 1]


def _changes(chart: Chart, recorded: Recorded, record: Path) -> list[tuple[str, float, float, float]]:
    found = re.fullmatch(r"(.+) against (.+?)…? by (.+) on (.+?)(, query by query|: how much .+)", chart.title)
    assert found, chart.title
    model, baseline, measure, dataset, _ = found.groups()
    after = _scores(record, dataset, model, measure)
    other, _, evaluation_id = baseline.partition(" in ")
    others = (path for path in record.parent.glob(f"{evaluation_id}*") if path != record)  # the title may cut the id
    (before_in,) = others if evaluation_id else (record,)
    before = _scores(before_in, dataset, other, measure)
    sign = -1 if recorded.lower(measure) else 1
    rows = [(query, before[query], after[query], sign * (after[query] - before[query])) for query in after]
    return [row for row in rows if not math.isnan(row[3])]


def _counted(row: Mapping[str, str], changes: Sequence[float]) -> Mapping[str, str]:
    moved = [change for change in changes if abs(change) > 1e-12]
    low, high = float(row["from"]), float(row["to"])
    inside = [low <= change < high or (change == high == max(moved)) for change in moved]
    return {**row, "n_queries": str(len(changes) - len(moved) if low == high else sum(inside))}


def _scores(record: Path, dataset: str, model: str, measure: str) -> dict[str, float]:
    table = pyarrow.parquet.read_table(record / "scores.parquet").to_pylist()
    return {row["query_id"]: row[measure] for row in table if (row["dataset"], row["model"]) == (dataset, model)}


def _sorted(rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    names = ("dataset", "model", "baseline", "slice", "query_id", "recall", "rank", "cutoff", "from")
    return sorted(rows, key=lambda row: [str(_value(row.get(name, ""))) for name in names])


def _difference(row: Mapping[str, str]) -> float:
    return float(row["difference"])


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
