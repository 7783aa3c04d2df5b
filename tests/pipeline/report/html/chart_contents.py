"""What is on a chart: its paths with their colours and points, its words with their places, and its data."""

import csv
import io
import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from rankledger.pipeline.report.html.charts import Chart

Place = tuple[float, float]

_SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Drawn:
    style: dict[str, str]
    lines: tuple[tuple[Place, ...], ...]


@dataclass(frozen=True)
class Words:
    said: str
    at: Place


def paths(chart: Chart, **style: str) -> list[Drawn]:
    root = ET.fromstring(chart.svg)
    inherited = {"fill": root.attrib["fill"], "stroke-width": "1"}
    drawn = [
        Drawn(inherited | _properties(path.attrib["style"]), _lines(path.attrib["d"]))
        for path in root.iter(f"{_SVG}path")
    ]
    wanted = {name.replace("_", "-"): value for name, value in style.items()}
    return [path for path in drawn if wanted.items() <= path.style.items()]


def words(chart: Chart) -> list[Words]:
    texts = ET.fromstring(chart.svg).iter(f"{_SVG}text")
    return [Words(text.text or "", (float(text.attrib["x"]), float(text.attrib["y"]))) for text in texts]


def rows(chart: Chart) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(chart.csv)))


def _properties(style: str) -> dict[str, str]:
    return {name.strip(): value.strip() for name, value in (part.split(":") for part in style.split(";"))}


def _lines(path: str) -> tuple[tuple[Place, ...], ...]:
    return tuple(
        tuple((float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", line))
        for line in path.split("M")
        if line
    )
