"""The leaderboard that a notebook shows: its figures, its marks, and names that would do harm."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rankledger.pipeline.data.joined import Failure, JoinStats
from rankledger.pipeline.inference.tables import Comparison, Estimate
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.terminal import notebook_leaderboard
from tests.support.manifests import change_evaluation, make_evaluation

EMPTY = {"br"}
FIGURES = {"bm25": (0.9, 0.8, 1.0), "dense": (0.6, 0.5, 0.7), "random": (None, None, None)}


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: dict[str, list[str]] = {}
        self.rows: list[list[str]] = []
        self.bold: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(str(value))
        self.open += [] if tag in EMPTY else [tag]
        self.rows += [[]] if tag == "tr" else []
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.strip()
        if "b" in self.open:
            self.bold.append(data)


def read(evaluation: Evaluation) -> Reader:
    reader = Reader()
    reader.feed(notebook_leaderboard(evaluation))
    reader.close()
    assert reader.open == []
    return reader


def evaluation(figures: dict[str, tuple[float | None, ...]], measures: tuple[str, ...] = ("ap", "rr")) -> Evaluation:
    return make_evaluation(
        evaluation_id="20261120T020000Z-nightly-1f0c9a2b",
        directions=dict.fromkeys(measures, "higher"),
        results=(),
        estimates=tuple(
            Estimate("web", model, "all", measure, *figure, None if figure[0] is None else 0.01, 1_200, 0, 0)
            for model, figure in figures.items()
            for measure in measures
        ),
        quality={("web", model): JoinStats(5_000, 0, 0, 0.125) for model in figures},
        failures=(),
        record=Path("runs/records/20261120T020000Z-nightly-1f0c9a2b"),
    )


def test_a_row_has_every_figure_of_its_model():
    found = read(evaluation(FIGURES))

    assert found.rows == [
        ["model", "ap", "rr"],
        ["bm25", "0.900 [0.800, 1.000]", "0.900 [0.800, 1.000]"],
        ["dense", "0.600 [0.500, 0.700]", "0.600 [0.500, 0.700]"],
        ["random", "undefined", "undefined"],
    ]
    assert found.bold == ["0.900 [0.800, 1.000]"] * 2
    assert "web: 1,200 queries, 3 models, 95% intervals" in found.text
    assert "Record runs/records/20261120T020000Z-nightly-1f0c9a2b" in found.text


def test_ranks_stand_beside_the_models():
    made, ranks = evaluation(FIGURES), {"bm25": (1, 1), "dense": (2, 2), "random": (None, None)}
    lines = [replace(line, rank_low=ranks[line.model][0], rank_high=ranks[line.model][1]) for line in made.estimates]
    found = read(change_evaluation(made, estimates=tuple(lines)))

    assert [row[1] for row in found.rows] == ["rank", "1", "2", ""]
    assert "BEST bm25: ap = 0.900, better than the other 2 models" in found.text


def test_models_that_are_not_distinguishable_share_a_letter():
    pair = Comparison(
        *("web", "dense", "bm25", "ap", "all", 0.6, 0.9, -0.3, -0.7, 0.1, 0.2, 0.3, 0.3, "", None, 1, 2, 3, None, 6, 6)
    )
    two = {model: FIGURES[model] for model in ("bm25", "dense")}
    found = read(change_evaluation(evaluation(two), comparison_lines=(pair,)))

    assert [row[2] for row in found.rows] == ["letters", "a", "a"]
    assert "BEST bm25: ap = 0.900, not clearly better than dense" in found.text


def test_names_that_would_do_harm_are_text():
    script, turned, long = "<script>alert(1)</script>\"'&", "a\u202eb", "x" * 10_000
    failure = Failure("web", "<img src=x onerror=alert(1)>", "not <b>there</b>")
    found = change_evaluation(evaluation(dict.fromkeys((script, turned, long), (0.5, 0.4, 0.6))), failures=(failure,))
    read_ = read(found)

    assert not {"script", "img"} & read_.names
    assert not any(name.startswith("on") for name in read_.attributes)
    assert [row[0] for row in read_.rows[1:]] == [script, "a\\u202eb", f"{'x' * 79}…"]
    assert "<img src=x onerror=alert(1)> on web was not evaluated: not <b>there</b>" in read_.text


def test_nothing_is_asked_for_from_elsewhere():
    found = read(evaluation(FIGURES))

    assert not {"script", "style", "link", "img", "iframe", "a"} & found.names
    assert not {"src", "href"} & set(found.attributes)
    assert "url(" not in " ".join(found.attributes["style"])


def test_what_is_left_out_is_counted():
    figures = {f"m{n}": (n / 100, None, None) for n in range(60)}
    found = read(evaluation(figures, ("ap", "rr", "p@5", "p@10", "r@5", "r@10")))

    assert len(found.rows) == 51
    assert "web: 1,200 queries, 60 models: 10 more models, 2 more measures in summary" in found.text


@pytest.mark.parametrize("n_models", [0, 1])
def test_little_is_shown_too(n_models):
    figures = dict(list(FIGURES.items())[:n_models])
    found = read(change_evaluation(evaluation(figures), failures=(Failure("web", "gone", "no file"),)))

    assert len(found.rows) == (2 if n_models else 0)
    assert "gone on web was not evaluated: no file" in found.text
