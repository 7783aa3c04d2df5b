"""The page as a file: whatever names say it stays harmless, asks for nothing, and is the same for the same record."""

import ast
import base64
import hashlib
import inspect
import re
import shlex
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from rankledger.pipeline.history.history import History, Night, Series
from rankledger.pipeline.report import terminal
from rankledger.pipeline.report.html import blocks, charts, render
from rankledger.pipeline.report.html.render import html
from tests.support.manifests import change_evaluation
from tests.support.page_reader import read_page
from tests.support.sample_page import estimate, manifest, page

MARKUP = '</script></style></title>"\'><hostile onload="x" {{7*7}} {% if %} &lt;'
KEPT = {"higher", "all", "pass", "fail", "precision", "judged", ""}  # words of ours, on which something depends
NAMES = {"web", "bm25", "dense", "hybrid", "ndcg@10", "ap", "latency_ms"}  # that are keys of what a record holds


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def every(self, name: str) -> list[str]:
        return [attributes[name] or "" for _, attributes in self.found if name in attributes]


def marked(value: Any) -> Any:
    if isinstance(value, str):
        return value if value in KEPT else f"{value}{MARKUP}"
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: marked(getattr(value, field.name)) for field in fields(value)})
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: marked(item) for name, item in value})
    if isinstance(value, np.ndarray):
        return np.array([marked(item) for item in value], dtype=object) if value.dtype == object else value
    if isinstance(value, dict):
        rows = {
            marked(key) if key in NAMES or isinstance(key, tuple) else key: marked(item) for key, item in value.items()
        }
        return type(value)(rows)
    return type(value)(map(marked, value)) if isinstance(value, tuple | list) else value


def history() -> History:
    nights = tuple(Night(f"2026-11-{day}", "id", 0.5, 0.4, 0.6, 0.1, 100, "", 0.0, "pass", None) for day in (19, 20))
    series = Series((), None, None, dataset="web", model="dense", nights=nights)
    return History("nightly", "ndcg@10", "higher", (series,), ("a remark",))


def hostile() -> str:
    found = marked(page(history=(history(),)))
    command = shlex.join(["rankledger", "evaluate", f"c{MARKUP}", "--set", f"name={MARKUP}"])
    return html(replace(found, manifest=found.manifest.model_copy(update={"command": command})))


def test_no_name_becomes_markup():
    text = hostile()
    elements = Elements(text)

    assert text.count("hostile") > 150
    assert "hostile" not in {tag for tag, _ in elements.found}
    assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
    assert len(re.findall("<script", text)) == 1
    assert "49" not in read_page(text).text["verdict"]


def test_what_a_name_says_can_be_read():
    text = html(
        page({"models": {"bm25": {"owner": "a\u202eb"}, "dense": {"owner": "W" * 500}, "hybrid": {"owner": "שלום"}}})
    )

    assert "a\\u202eb" in text
    assert "W" * 79 + "…" in text
    assert "<bdi>שלום</bdi>" in text
    assert "W" * 80 not in text


def test_the_page_asks_for_nothing():
    elements = Elements(html(page()))

    assert not elements.every("src")
    assert {"link", "img", "iframe", "object", "base", "form"}.isdisjoint(tag for tag, _ in elements.found)
    ids = elements.every("id")
    assert len(ids) == len(set(ids))
    assert {target.removeprefix("#") for target in elements.every("href")} <= set(ids)
    assert {label for name in ("for", "aria-labelledby") for label in elements.every(name)} <= set(ids)
    assert elements.every("content")[-1].startswith("default-src 'none'")
    assert "url(" not in (files("rankledger.pipeline.report.html") / "page.css").read_text(encoding="utf-8")


def test_nothing_of_the_moment_or_the_machine_is_on_the_page():
    other = {
        "evaluation_id": "20270101T000000Z-nightly-ffffffff",
        "command": "rankledger evaluate nightly.yaml --jobs 99 --set seed=7 --runs-dir elsewhere",
        "user": "nobody",
        "host": "nowhere",
        "created": "2027-01-01T00:00:00+00:00",
        "timings": {"score": 99.0},
        "environment": manifest()["environment"] | {"cpu": "another", "platform": "another"},
    }

    assert html(page(other)) == html(page())


def test_the_script_and_its_digest_belong_together():
    text = html(page())
    script = re.search("<script>(.*)</script>", text, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()

    assert f"sha256-{digest}" in Elements(text).every("content")[-1]


@pytest.mark.parametrize(
    ("module", "texts"),
    [
        (blocks, ["between", "chart.svg"]),
        (
            render,
            ["'\\n'.join(lines)", "_resource('page.css')", "cell.drawing", "f'{GENERATOR}\\n'", "index", "script"],
        ),
        (charts, []),
        (terminal, []),
    ],
    ids=["blocks", "page", "charts", "notebook"],  # the lines escape their cells
)
def test_only_our_own_text_is_taken_as_markup(module, texts):
    found = [
        ast.unparse(argument)
        for call in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "Markup"
        for argument in call.args
        if not isinstance(argument, ast.Constant)
    ]

    assert sorted(found) == texts


def test_sections_stand_in_their_order():
    text = read_page(html(page(history=(history(),)))).text

    assert [key for key in text if key] == [
        *("verdict", "leaderboard", "standing", "differences", "slices", "queries", "curves", "quality"),
        "definitions",
        *("history", "provenance"),
    ]
    bare = page({"models": {}, "external_metrics": {}}, comparison_lines=(), verdicts=(), pairs=(), remarks=())
    bare = replace(bare, evaluation=change_evaluation(bare.evaluation, estimates=bare.evaluation.estimates[:3]))
    assert {"standing", "differences", "slices", "queries", "history"}.isdisjoint(read_page(html(bare)).text)


def test_the_head_names_what_the_page_is_of():
    text = html(page({"date": "2026-11-20", "config": "/home/a/nightly.yaml"}))
    found = re.search('<dl class="facts">(.*?)</dl>', text)
    assert found is not None

    said = re.findall("<dt>(.*?)</dt><dd><bdi>(.*?)</bdi></dd>", found[1])
    assert said == [
        ("date", "2026-11-20"),
        ("config", "nightly.yaml"),
        ("commit", "c0ffeec0ff with changes"),
        ("queries", "100"),
    ]


def test_only_the_first_part_of_a_section_is_open():
    lines = tuple(estimate(model, 0.5, dataset=name) for name in ("web", "news", "shop") for model in ("bm25", "dense"))
    text = html(page(estimates=lines, comparison_lines=(), pairs=(), curves=()))
    board = text[text.index('<section id="leaderboard"') : text.index('<section id="standing"')]

    assert re.findall('<details class="fold"( open)?><summary><h3>', board) == [" open", "", ""]
    for key, state in (("leaderboard", " open"), ("quality", ""), ("provenance", "")):
        assert f'aria-labelledby="{key}-title">\n<details class="fold"{state}><summary><h2' in text
    assert 'aria-labelledby="verdict-title">\n<h2' in text


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_have_enough_contrast(scheme):
    style = (files("rankledger.pipeline.report.html") / "page.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"--([\w]+): (#\w+)", re.findall(r":root {(.*?)}", style, re.DOTALL)[scheme]))

    for name in ("ink", "muted", "link", "good", "bad", "warn"):
        assert min(contrast(colours[name], colours[ground]) for ground in ("ground", "raised")) >= 4.5, name
    for name in (f"c{number}" for number in range(1, 9)):
        assert min(contrast(colours[name], colours[ground]) for ground in ("ground", "raised")) >= 3, name


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)
