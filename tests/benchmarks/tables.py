"""Tables and a plot of the benchmark results, for docs/methods.md and docs/images/scaling.svg."""

import math
import statistics
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tests.benchmarks.tools import ROOT
from tests.support.filled_pages import filled

PRICE = 0.05  # USD per hour of a core, an assumption that docs/methods.md names
TARGET = 1_000_000_000
ROWS_PER_TASK = 1_000_000
PAGE, IMAGE = ROOT / "docs/methods.md", ROOT / "docs/images/scaling.svg"
AXES = ("rows", "queries", "measures", "models", "resamples")
Found = Mapping[str, Mapping[str, Any]]
Point = tuple[int, float, float]  # size, seconds, MB


def measured(found: Found) -> str:
    work = [row for name, case in found.items() if name != "scaling" for row in _work(name, case)]
    about = sorted({f"{case['date']}, {case['machine']}, {case['versions']}." for case in found.values()})
    head = ["case", "task", "wall, s", "CPU, s", "peak memory, MB", "wall ÷ first"]
    return "\n\n".join([textwrap.fill(" ".join(about), 120), _markdown(head, work)])


def claims(found: Found) -> str:
    rows = [
        [name, claim, f"{value:,.4g}", f"{limit:,.4g}", "yes" if value <= limit else "no"]
        for name, case in found.items()
        for claim, value, limit in case["claims"]
    ]
    return _markdown(["case", "what", "measured", "at most", "met"], rows)


def _work(name: str, case: Mapping[str, Any]) -> Iterator[list[str]]:
    first = next(iter(case["tasks"].values()))["wall"]
    for label, task in case["tasks"].items():
        spread = f"{statistics.median(task['wall']):.2f} ({min(task['wall']):.2f}–{max(task['wall']):.2f})"
        cpu, peak = statistics.median(task["cpu"]), f"{max(task['total']):,.0f}"
        ratio = statistics.median(own / reference for own, reference in zip(task["wall"], first, strict=True))
        yield [name, label, spread, f"{cpu:.2f}", peak, f"{ratio:.2f}"]


def extrapolation(found: Found) -> str:
    few, many = (
        {"bytes": task["bytes"]} | {kind: statistics.median(task[kind]) for kind in ("wall", "cpu", "total")}
        for task in found["100m"]["tasks"].values()
    )
    size = 28_000_000, 100_000_000
    per_row = {kind: (many[kind] - few[kind]) / (size[1] - size[0]) for kind in many}
    at = {kind: many[kind] + per_row[kind] * (TARGET - size[1]) for kind in many}
    hours = at["cpu"] / 3600
    rows = [
        ["tasks (ranges of a million rows)", f"{size[1] // ROWS_PER_TASK:,}", f"{TARGET // ROWS_PER_TASK:,}"],
        ["bytes read", f"{many['bytes'] / 1e9:.1f} GB", f"{at['bytes'] / 1e9:.0f} GB"],
        ["wall on this machine", f"{many['wall']:.0f} s", f"{at['wall'] / 60:.0f} min"],
        ["core-hours", f"{many['cpu'] / 3600:.3f}", f"{hours:.2f}"],
        [f"cost at {PRICE} USD per core-hour", f"{many['cpu'] / 3600 * PRICE:.4f} USD", f"{hours * PRICE:.2f} USD"],
        ["peak memory", f"{many['total']:,.0f} MB", f"{at['total']:,.0f} MB"],
    ]
    return _markdown(["", "100 M rows, measured", "1,000 M rows, extrapolated"], rows)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def points(found: Found) -> dict[str, list[Point]]:
    by_axis: dict[str, list[Point]] = {axis: [] for axis in AXES}
    tasks = found["scaling"]["tasks"]
    least = [statistics.median(tasks["nothing=1"][kind]) for kind in ("wall", "total")]
    for label, task in tasks.items():
        axis, _, size = label.partition("=")
        if axis in by_axis:
            above = [statistics.median(task[kind]) - own for kind, own in zip(("wall", "total"), least, strict=True)]
            by_axis[axis].append((int(size), above[0], above[1]))
    return by_axis


def fits(sizes: Sequence[float], values: Sequence[float]) -> float:
    kept = [(size, value) for size, value in zip(sizes, values, strict=True) if value > 0]
    if len(kept) < 2:
        return math.nan
    return float(np.polyfit(*np.log(np.array(kept)).T, 1)[0])


def svg(found: Found) -> str:
    width, height = 200, 180
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * len(AXES) + 20} {2 * height + 20}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
    ]
    for column, (axis, own) in enumerate(points(found).items()):
        for row, (unit, place) in enumerate((("s", 1), ("MB", 2))):
            sizes, values = [point[0] for point in own], [point[place] for point in own]
            title = f"{axis}: {unit} ∝ n^{fits(sizes, values):.2f}"
            corner = f'<g transform="translate({20 + width * column},{20 + height * row})">'
            parts += [corner, *_panel(title, sizes, [max(value, 0.001) for value in values], width - 70, height - 70)]
            parts.append("</g>")
    return "\n".join([*parts, "</svg>\n"])


def _panel(title: str, sizes: Sequence[float], values: Sequence[float], width: int, height: int) -> Iterator[str]:
    across, up = _scale(sizes, width), _scale(values, height)
    places = [(30 + across(size), height + 24 - up(value)) for size, value in zip(sizes, values, strict=True)]
    yield f'<text x="18" y="0" font-weight="bold">{title}</text>'
    yield f'<path d="M18 14V{height + 32}H{width + 42}" fill="none" stroke="#888"/>'
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{line}" fill="none" stroke="#1f6feb" stroke-width="1.5"/>'
    for (x, y), size, value in zip(places, sizes, values, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#1f6feb"/>'
        yield f'<text x="{x:.1f}" y="{y - 6:.1f}" font-size="9" text-anchor="middle">{value:.3g}</text>'
        yield f'<text x="{x:.1f}" y="{height + 44}" font-size="9" text-anchor="middle">{_short(size)}</text>'


def _scale(values: Sequence[float], length: int) -> Callable[[float], float]:
    low, high = math.log(min(values)), math.log(max(values))
    return lambda value: length * (math.log(value) - low) / ((high - low) or 1.0)


def _short(size: float) -> str:
    return f"{size / 1e6:g}M" if size >= 1e6 else f"{size / 1e3:g}k" if size >= 1e3 else f"{size:g}"


def write(found: Found) -> None:
    tables = {"work": measured(found)}
    if "100m" in found:
        tables["billion"] = extrapolation(found)
    if "scaling" in found:
        IMAGE.write_text(svg(found), encoding="utf-8")
        tables["growth"] = "![Time and memory by rows, queries, measures, models and resamples](images/scaling.svg)"
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), "measured", tables), encoding="utf-8")
