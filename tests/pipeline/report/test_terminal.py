"""The leaderboard, the note and the data of an evaluation that is written by hand."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.inputs import Validation
from rankledger.pipeline.data.joined import Failure, JoinStats, Scores
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import Comparison, Estimate, OrderAgreement
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.headline import headline_of
from rankledger.pipeline.report.markdown import note
from rankledger.pipeline.report.messages import agreement_notes
from rankledger.pipeline.report.terminal import as_data, closing, leaderboard, matrix
from tests.support.manifests import change_evaluation, make_evaluation

HOSTILE = "<script>alert(1)</script> | a|b [red]x[/red] *y* `z` \\ #1 _u_ $m$ [t](http://x)"
PLAIN = JoinStats(n_rows=5_000, n_unjudged_queries=0, n_missing_queries=0, judged_at_10=0.125)
N_QUERIES = 1_200
WIDTHS = [80, 120, 200]
SEARCH = ["ndcg@10", "ap", "rr(rel=2)@10", "ndcg(gain=exponential)@10", "avg_rp(cutoffs=[5,10])", "judged@10", "fn"]

Figures = dict[str, tuple[float | None, ...]]


def evaluation(
    boards: dict[str, dict[str, Figures]], failures: tuple[Failure, ...] = (), **quality: JoinStats
) -> Evaluation:
    estimates, results = [], []
    for dataset, board in boards.items():
        for model, figures in board.items():
            for measure, (figure, *interval) in figures.items():
                low, high = interval or (None, None)
                line = (figure, low, high, None if low is None else 0.01, N_QUERIES, 0, 0)
                estimates.append(Estimate(dataset, model, "all", measure, *line))
            results.append(scores(dataset, model))
    return make_evaluation(
        evaluation_id="20261120T020000Z-nightly-1f0c9a2b",
        directions={line.measure: Measure.parse(line.measure).metric.direction for line in estimates},
        results=tuple(results),
        estimates=tuple(estimates),
        quality={(d, m): quality.get(m, PLAIN) for d, board in boards.items() for m in board},
        failures=failures,
        record=Path("runs/records/20261120T020000Z-nightly-1f0c9a2b"),
    )


def scores(dataset: str, model: str) -> Scores:
    query_ids = np.array([f"q{query}" for query in range(N_QUERIES)], dtype=object)
    nothing = np.empty((0, N_QUERIES))
    return Scores(dataset, model, query_ids, (), nothing, nothing, {}, np.zeros(N_QUERIES, dtype=bool))


def board(models: list[str], measures: list[str]) -> dict[str, Figures]:
    return {
        model: dict.fromkeys(measures, (0.9 - n / 100, 0.8 - n / 100, 0.95 - n / 100)) for n, model in enumerate(models)
    }


def plain(found: Evaluation, width: int = 200) -> str:
    return leaderboard(found, width=width, colour=False)


def table_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[:1] in "┏┃┡│└├"]


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]


# ---- the leaderboard

MODELS = ["bm25", "a-rather-long-name-of-a-model", "密集检索模型", "x"]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_table_is_wider_than_the_terminal(width):
    found = evaluation({"web": board(MODELS, SEARCH), "a dataset " * 30: board(["bm25"], SEARCH)})
    text = plain(found, width)

    assert table_lines(text)
    remarks = {f"{model} on {dataset}: " for dataset, model in found.quality}
    for line in text.splitlines():
        assert cell_len(line) <= width or any(line.startswith(remark) for remark in remarks), line


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("measure", SEARCH)
def test_models_and_figures_stand_whole_in_their_cells(width, measure):
    text = plain(evaluation({"web": board(MODELS, [measure, *(m for m in SEARCH if m != measure)])}), width)

    whole = [
        [model, f"{0.9 - n / 100:.4f} [{0.8 - n / 100:.4f}, {0.95 - n / 100:.4f}]"] for n, model in enumerate(MODELS)
    ]
    assert [row[:2] for row in cells(text)] == (whole[::-1] if measure == "fn" else whole)
    assert "…" not in text
    assert measure in table_lines(text)[1]


@pytest.mark.parametrize("width", WIDTHS)
def test_large_figures_stand_whole(width):
    line = (12345.6789, 12000.1234, 13000.5678)
    found = evaluation({"web": {"bm25": dict.fromkeys(["fn", "fp@1000", "dcg", "tp", "tn"], line)}})
    text = plain(found, width)

    assert "…" not in text
    assert cells(text)[0][1] == "12345.6789 [12000.1234, 13000.5678]"
    assert all(cell_len(line) <= width for line in table_lines(text))


def ranked(found: Evaluation, *ranks: tuple[int, int]) -> Evaluation:
    by_model = dict(zip(dict.fromkeys(line.model for line in found.estimates), ranks, strict=True))
    lines = (
        replace(line, rank_low=by_model[line.model][0], rank_high=by_model[line.model][1]) for line in found.estimates
    )
    return change_evaluation(found, estimates=tuple(lines))


@pytest.mark.parametrize("width", WIDTHS)
def test_ranks_stand_beside_the_models(width):
    found = ranked(evaluation({"web": board(MODELS, SEARCH)}), (1, 2), (1, 3), (2, 3), (4, 4))
    text = plain(found, width)

    assert [row[1] for row in cells(text)] == ["1–2", "1–3", "2–3", "4"]
    assert all(cell_len(line) <= width for line in table_lines(text))
    assert f"may be the best: {MODELS[0]}, {MODELS[1]}\n" in text


def test_a_terminal_too_narrow_for_ranks_shows_figures():
    found = ranked(evaluation({"web": board(MODELS, SEARCH)}), (1, 2), (1, 3), (2, 3), (4, 4))

    assert "rank ┃" in plain(found, 66)
    assert "rank ┃" not in plain(found, 65)
    assert "0.9000 [0.8000, 0.9500]" in plain(found, 65)


def test_measures_that_disagree_on_the_order_are_on_the_page_alone():
    taus = {"ap": 0.8, "rr(rel=2)@10": -0.25, "fn": 1.0, "judged@10": 0.5}
    lines = tuple(
        OrderAgreement("web", measure, "ndcg@10", tau, tau - 0.5, 1.0, 4, 3, 0, 3) for measure, tau in taus.items()
    )
    found = change_evaluation(evaluation({"web": board(MODELS, SEARCH)}), agreement=lines)

    assert [*agreement_notes(found, "web")] == [
        "agreement with the order by ndcg@10 on web (Kendall's tau of 4 models and its bounds): rr(rel=2)@10 -0.25 "
        "(-0.75 to 1.00), judged@10 0.50 (0.00 to 1.00), ap 0.80 (0.30 to 1.00), and 1 more measure in agreement.csv"
    ]
    assert "agreement" not in plain(found)
    assert [line["tau"] for line in as_data(found)["agreement"]] == [*taus.values()]


def test_a_baseline_that_was_not_evaluated_is_named():
    gone = Failure("web", "gone", "gone.tsv: file not found; check the path")
    found = change_evaluation(evaluation({"web": board(MODELS, SEARCH)}), failures=(gone, replace(gone, model="old")))

    said = "not compared on web: the baseline gone was not evaluated\n"
    assert said in plain(change_evaluation(found, baseline="gone"))
    assert "not compared" not in plain(change_evaluation(found, baseline="other"))


def test_many_possible_firsts_are_counted():
    models = [f"m{number}" for number in range(13)]
    found = ranked(evaluation({"web": board(models, ["ap"])}), *[(1, 13)] * 13)

    assert "may be the best: m0, m1, m2, m3, m4, m5, m6, m7, m8, m9 and 3 more\n" in plain(found)


def test_a_name_that_is_wider_than_the_terminal_is_folded_and_not_cut():
    name = "-".join(f"part{number}" for number in range(30))
    text = plain(evaluation({"web": board([name, "bm25"], SEARCH)}), 80)

    assert "…" not in text
    assert "".join(row[0] for row in cells(text)).removesuffix("bm25") == name
    assert all(cell_len(line) <= 80 for line in table_lines(text))


def test_a_long_name_leaves_room_for_figures():
    text = plain(evaluation({"web": board(["x" * 250, "bm25"], ["ap", "rr", "r@10"])}), 130)

    row = cells(text)[-1]
    assert (row[1], row[-2:]) == ("0.8900 [0.7900, 0.9400]", ["0.8900"] * 2)
    assert all(cell_len(line) <= 130 for line in table_lines(text))


def test_a_name_of_10000_letters_is_cut():
    text = plain(evaluation({"web": board(["x" * 10_000, "bm25"], ["ap"])}), 80)

    assert 400 < text.count("x") < 3_000
    assert "0.9000 [0.8000, 0.9500]" in text


@pytest.mark.parametrize("width", [1, 20, 30, 40, 60])
def test_a_narrow_terminal_gets_something(width):
    text = plain(evaluation({"web": board(["bm25", "dense"], SEARCH)}), width)

    assert [row[:2] for row in cells(text)] == [
        ["bm25", "0.9000 [0.8000, 0.9500]"],
        ["dense", "0.8900 [0.7900, 0.9400]"],
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_measures_that_do_not_fit_are_named(width):
    found = evaluation({"web": board(["bm25"], SEARCH)})
    text = " ".join(plain(found, width).split())
    shown = len(cells(plain(found, width))[0]) - 1
    (needed,) = re.findall(r"COLUMNS=(\d+) shows all", text)

    assert 3 <= shown < len(SEARCH)
    assert f"left out: {', '.join(SEARCH[: shown - 1 : -1])}; COLUMNS=" in text
    assert "COLUMNS" not in plain(found, int(needed))
    assert "COLUMNS" in plain(found, int(needed) - 1)


def test_three_measures_fit_on_80_columns():
    text = plain(evaluation({"web": board(["bm25"], ["ap", "rr", "p@5"])}), 80)

    assert cells(text)[0] == ["bm25", "0.9000 [0.8000, 0.9500]", "0.9000", "0.9000"]


@pytest.mark.parametrize(
    ("measure", "figures", "order"),
    [
        ("ap", {"low": 0.1, "none": None, "high": 0.9}, ["high", "low", "none"]),
        ("rmse", {"bad": 1.5, "none": None, "good": 0.5}, ["good", "bad", "none"]),
    ],
)
def test_models_stand_by_their_first_measure_best_first(measure, figures, order):
    found = evaluation({"web": {model: {measure: (figure,), "rr": (0.5,)} for model, figure in figures.items()}})

    assert [row[0] for row in cells(plain(found))] == order


BOLD = re.compile(r"\x1b\[1m([^\x1b]*)\x1b\[0m")


def bold(found: Evaluation) -> list[str]:
    lines = leaderboard(found, width=200, colour=True).splitlines()
    return [text.strip() for line in lines if "│" in line for text in BOLD.findall(line)]


@pytest.mark.parametrize(
    ("figures", "best"),
    [
        ([{"ap": 0.9, "fn": 7.0, "rr": 0.2}, {"ap": 0.1, "fn": 3.0, "rr": None}], ["0.2000", "0.9000", "3.0000"]),
        ([{"ap": 0.9, "judged@10": 0.5, "rr": None}, {"ap": 0.1, "judged@10": 0.7, "rr": None}], ["0.9000"]),
        ([{"ap": 0.5}, {"ap": 0.5}, {"ap": 0.1}], ["0.5000", "0.5000"]),
    ],
    ids=["each measure", "no better end", "equal figures"],
)
def test_the_best_figure_of_each_measure_is_bold(figures, best):
    models = {f"m{n}": {measure: (figure,) for measure, figure in row.items()} for n, row in enumerate(figures)}

    assert sorted(bold(evaluation({"web": models}))) == best


def test_a_figure_without_interval_stands_alone():
    figures: dict[str, Figures] = {"bm25": {"item_coverage@10": (0.25,), "kendall_tau": (None,)}}

    assert cells(plain(evaluation({"web": figures})))[0] == ["bm25", "0.2500", "undefined"]


def test_a_dataset_has_a_table_with_its_queries():
    found = evaluation({"web": board(["bm25"], ["ap"]), "news": board(["bm25"], ["ap"])})
    lines = (replace(line, n_queries=1) if line.dataset == "news" else line for line in found.estimates)
    text = plain(change_evaluation(found, estimates=tuple(lines)))

    assert text.index("web (1,200 queries)") < text.index("news (1 query)")


def test_markup_in_names_is_text():
    text = plain(evaluation({"[bold]web[/bold]": board([HOSTILE], ["ap"])}))

    assert cells(text)[0][0] == HOSTILE
    assert "[bold]web[/bold]" in text


def test_what_would_steer_a_terminal_is_spelt_out():
    found = evaluation({"web\x1b[2J": board(["a\u202eb"], ["ap"])}, (Failure("web\x1b[2J", "a\u202eb", "missing"),))
    text = plain(found)

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "a\\u202eb on web\\x1b[2J was not evaluated: missing" in text


def test_queries_without_a_score_are_counted():
    found = evaluation({"web": board(["bm25", "dense"], ["ap"]), "care": board(["rag", "plain"], ["ap"])})
    found = change_evaluation(
        found, quality={key: replace(PLAIN, judged_at_10=0.1 if key[0] == "web" else None) for key in found.quality}
    )
    undefined = [3, 3, 7, 13]
    some = change_evaluation(
        found, estimates=tuple(replace(e, n_undefined=n) for e, n in zip(found.estimates, undefined, strict=True))
    )

    assert "undefined" not in plain(found)
    assert [line for line in plain(some).splitlines() if "undefined" in line] == [
        "web: ap is undefined on 3 of 1,200 queries, such as without relevant documents",
        "care: ap is undefined on 7 to 13 of 1,200 queries",
    ]


@pytest.mark.parametrize(
    ("quality", "said"),
    [
        (PLAIN, "bm25 on web: 5,000 rows, 12.5% of the top 10 judged"),
        (replace(PLAIN, n_missing_queries=30), "30 of 1,200 judged queries without output"),
        (replace(PLAIN, n_unjudged_queries=4_000), "4,000 queries without judgments ignored"),
        (replace(PLAIN, n_tied=17), "17 tied scores"),
        (replace(PLAIN, n_excluded=7, n_excluded_queries=2), "5,000 rows, 7 documents of 2 queries excluded, 12.5%"),
        (replace(PLAIN, n_excluded=0), "5,000 rows, 0 documents excluded, 12.5% of the top 10 judged"),
        (replace(PLAIN, n_seen=3, n_seen_queries=1), "5,000 rows, 3 documents of 1 query seen in training, 12.5%"),
        (replace(PLAIN, n_seen=0), "5,000 rows, 0 documents seen in training, 12.5% of the top 10 judged"),
        (
            JoinStats(n_rows=1, n_unjudged_queries=1, n_missing_queries=0, judged_at_10=None, n_tied=1, n_unpaired=1),
            "1 row, 1 query without judgments ignored, 1 tied score, 1 rating or prediction unpaired",
        ),
        (replace(PLAIN, judged_at_10=None, n_unpaired=1_001), "bm25 on web: 5,000 rows, 1,001 ratings or"),
    ],
)
def test_the_counts_of_the_join_are_shown(quality, said):
    found = evaluation({"web": board(["bm25"], ["ap"])}, bm25=quality)
    (line,) = [line for line in plain(found, 80).splitlines() if line.startswith("bm25 on web: ")]

    assert said in line
    assert "nan" not in line
    assert "0 tied" not in line
    assert said.partition(": ")[2] in note(found)


def test_a_failure_is_shown_whole():
    reason = "data/" + "long/" * 40 + "x.tsv:3: score 'much' is not a number; fix it"
    found = evaluation({"web": board(["bm25"], ["ap"])}, failures=(Failure("web", "late", reason),))

    assert f"late on web was not evaluated: {reason}" in plain(found, 80).splitlines()
    assert "\n**Incomplete:** 1 model on 1 dataset; 1 model output missing or refused.\n" in note(found)
    assert "late on web was not evaluated: " in rendered(note(found))
    assert reason in rendered(note(found))


def test_many_failures_for_one_reason_are_few_lines():
    reason = "a.yaml:3: defaults.model.outputs: file not found: m{}.tsv; check the path"
    missing = [Failure("web", f"m{i}", reason.format(i)) for i in range(1000)]
    found = evaluation({}, failures=(*missing, Failure("web", "bad", "bad.tsv: no rows; write the file again")))

    lines = [f"m{i} on web was not evaluated: {reason.format(i)}" for i in range(3)]
    lines.append("and 997 more model outputs: file not found")
    lines.append("bad on web was not evaluated: bad.tsv: no rows; write the file again")
    assert plain(found).splitlines() == lines
    assert "and 997 more model outputs" in note(found)
    assert "m3" not in note(found)


def test_without_any_model_there_are_only_remarks():
    found = evaluation({}, failures=(Failure("web", "late", "late.tsv: file not found; check the path"),))

    assert plain(found).splitlines() == ["late on web was not evaluated: late.tsv: file not found; check the path"]
    assert "late" in note(found)
    assert as_data(found)["estimates"] == []


# ---- the note


def rendered(markdown: str) -> str:
    html = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").render(markdown)
    for mark, sign in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        html = re.sub(r"<[^>]*>", "\n", html).replace(mark, sign) if mark == "&lt;" else html.replace(mark, sign)
    return html.replace("\u200b", "")  # which breaks what would be a link


@pytest.mark.parametrize(
    "name",
    [HOSTILE, "<script>alert(1)</script>", "a|b", "~~x~~", "a &lt; b", "&copy;", "http://x.example", "<b", "a\\|b"],
)
def test_a_name_in_the_note_is_shown_as_it_is(name):
    text = note(evaluation({name: board([name, "bm25"], ["ap", "rr"])}))
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)

    assert "<script" not in html
    below = rendered(text.partition("**Complete")[2])
    assert below.count(name) == 5  # the heading, the row, `name on name` and `bm25 on name`
    assert html.count("<tr>") == 3
    assert html.count("<td") == 2 * 3


def test_the_note_has_the_first_measures_of_each_dataset():
    text = note(evaluation({"web": board(["bm25", "dense"], SEARCH), "news": board(["bm25"], ["rr"])}))
    lines = text.splitlines()

    assert "### web" in lines
    assert "### news" in lines
    shown = (
        "| model | ndcg@10 | ap | rr(rel=2)@\u200b10 | ndcg(gain=exponential)@\u200b10 | avg\\_rp(cutoffs=\\[5,10\\]) |"
    )
    assert shown in lines
    assert "| bm25 | 0.9000 \\[0.8000,\u00a00.9500\\] |" in lines
    assert text.index("| bm25 |") < text.index("| dense |")
    assert lines[2] == "**Complete:** 2 models on 2 datasets."


@pytest.mark.parametrize(
    ("effects", "said"),
    [
        (["pass"] * 5 + ["fail", "stop", "fail"], "✗ 2 of 8 checks failed"),
        (["pass", "warn", "stop"], "? 1 of 3 checks undecided"),
        (["pass", "warn"], "✓ 1 of 2 checks passed"),
        (["pass"], "✓ 1 of 1 check passed"),
    ],
    ids=str,
)
def test_the_note_begins_with_what_the_gates_came_to(effects, said):
    verdicts = [Verdict("floor", "web", "bm25", "ap", "all", "fail", effect, "why") for effect in effects]
    small = replace(verdicts[0], outcome="not judged", effect="pass")
    found = change_evaluation(evaluation({"web": board(["bm25"], ["ap"])}), verdicts=(*verdicts, small))
    text = note(found)

    assert text.splitlines()[0] == said
    assert headline_of(found) in text.splitlines()[2]
    assert text.splitlines()[4] == "**Complete:** 1 model on 1 dataset."


# ---- the data


def test_data_is_json_without_nan():
    found = evaluation(
        {"web": {"bm25": {"rmse": (None,), "mae": (0.5, 0.25, None)}}},
        bm25=replace(PLAIN, judged_at_10=None),
        failures=(Failure("web", "late", "it's gone"),),
    )
    text = json.dumps(as_data(found), allow_nan=False)
    data: dict[str, Any] = json.loads(text)

    assert data["quality"] == [
        {
            "dataset": "web",
            "model": "bm25",
            "n_rows": 5_000,
            "n_unjudged_queries": 0,
            "n_missing_queries": 0,
            "judged_at_10": None,
            "n_tied": 0,
            "n_rounded": 0,
            "n_unpaired": 0,
            "n_excluded": None,
            "n_excluded_queries": 0,
            "n_self_first": 0,
            "n_rising": 0,
            "n_seen": None,
            "n_seen_queries": 0,
            "look_alikes": "",
            "rank_order": 0,
        }
    ]
    late = {"dataset": "web", "model": "late", "reason": "it's gone", "replicate": ""}
    assert data["failures"] == [late]
    assert data["estimates"][0]["estimate"] is None
    assert data["estimates"][1]["ci_low"] == 0.25


def test_data_has_every_figure_to_the_last_bit():
    found = evaluation({"web": {"bm25": {"ap": (0.1 + 0.2, 1 / 3, 2 / 3)}}})
    (line,) = json.loads(json.dumps(as_data(found)))["estimates"]

    assert (line["estimate"], line["ci_low"], line["ci_high"]) == (0.1 + 0.2, 1 / 3, 2 / 3)
    assert (line["dataset"], line["model"], line["slice"], line["measure"]) == ("web", "bm25", "all", "ap")


# ---- the matrix


def validation(**changes: Any) -> Validation:
    given: dict[str, Any] = {
        "n_queries": {"web": 1_200, "news": 7},
        "n_measures": {"web": 13, "news": 1},
        "models": ("bm25", HOSTILE),
        "quality": {("web", "bm25"): PLAIN, ("news", "bm25"): replace(PLAIN, n_missing_queries=3)},
        "failures": (Failure("web", HOSTILE, "x.tsv: no rows; write the file again"),),
    }
    return Validation(**(given | changes))


def test_the_matrix_tells_ready_failed_and_not_asked_for():
    text = matrix(validation(), width=200)

    assert cells(text) == [["bm25", "ready", "ready"], [HOSTILE, "failed", "-"]]
    assert "1,200 queries, 13 measures" in text
    assert "bm25 on news: 5,000 rows, 3 of 7 judged queries without output, 12.5% of the top 10 judged" in text
    assert f"{HOSTILE} on web: x.tsv: no rows; write the file again" in text.splitlines()
    assert "how often gates err" in matrix(validation(gate_notes=("how often gates err",)), width=200).splitlines()


@pytest.mark.parametrize(("width", "n_datasets"), [(80, 1), (80, 6), (120, 6), (200, 12)])
def test_a_large_matrix_names_every_model_and_dataset(width, n_datasets):
    names = [f"dataset-number-{number}" for number in range(n_datasets)]
    models = tuple(f"model-{number:02d}" for number in range(40))
    found = validation(
        n_queries=dict.fromkeys(names, 50),
        n_measures=dict.fromkeys(names, 20),
        models=models,
        quality={(name, model): PLAIN for name in names for model in models},
        failures=(),
    )
    lines = table_lines(matrix(found, width=width))

    assert all(cell_len(line) <= width for line in lines)
    assert "…" not in "".join(lines)
    assert "".join(lines).count("ready") == 40 * n_datasets
    for model in models:
        assert sum(model in line for line in lines) >= 1


def test_names_of_many_are_counted_as_many():
    one = validation(n_queries={"web": 1}, n_measures={"web": 1}, models=("bm25",), quality={}, failures=())

    assert "1 model on 1 dataset" in matrix(one, width=80)
    assert "2 models on 2 datasets" in matrix(validation(), width=80)


# ---- winners that the order of tied documents decides


def bounded(found: Evaluation, **bounds: tuple[float, float]) -> Evaluation:
    lines = tuple(
        replace(line, ties_least=bounds[line.model][0], ties_expected=0.5, ties_greatest=bounds[line.model][1])
        if line.model in bounds
        else line
        for line in found.estimates
    )
    return change_evaluation(found, estimates=lines)


def test_a_winner_that_flips_inside_its_bounds_is_marked():
    found = evaluation({"web": {"bm25": {"ap": (0.5,)}, "dense": {"ap": (0.45,)}}})
    text = plain(bounded(found, bm25=(0.44, 0.52), dense=(0.40, 0.46)))

    assert "0.5000†" in text
    assert "0.4500†" not in text
    remark = "† ap on web: the order of tied documents decides who leads: bm25 0.4400 to 0.5200, dense 0.4000 to 0.4600"
    assert remark in text


@pytest.mark.parametrize("width", range(60, 200, 7))
def test_marks_leave_room_for_names(width):
    found = evaluation({"web": board(["bm25", "dense", "hybrid"], SEARCH[:5])})
    text = plain(bounded(found, bm25=(0.1, 0.95), dense=(0.1, 0.95), hybrid=(0.1, 0.95)), width)

    assert "†" in text
    assert [row[0] for row in cells(text)] == ["bm25", "dense", "hybrid"]


@pytest.mark.parametrize("bounds", [{}, {"bm25": (0.48, 0.52), "dense": (0.40, 0.48)}], ids=["unknown", "apart"])
def test_a_winner_by_more_than_its_bounds_is_not_marked(bounds):
    found = evaluation({"web": {"bm25": {"ap": (0.5,)}, "dense": {"ap": (0.45,)}}})

    assert "†" not in plain(bounded(found, **bounds))


def test_where_lower_is_better_the_greatest_value_is_the_leaders_worst():
    found = evaluation({"web": {"bm25": {"kendall_distance": (7.0,)}, "dense": {"kendall_distance": (3.0,)}}})

    assert "3.0000†" in plain(bounded(found, dense=(3, 6), bm25=(5, 8)))
    assert "†" not in plain(bounded(found, dense=(3, 4), bm25=(5, 8)))


def marked(found: Evaluation, marks: dict[str, str]) -> Evaluation:
    lines = tuple(replace(line, mark=marks.get(line.model, "")) for line in found.estimates)
    return change_evaluation(found, estimates=lines)


def test_an_interval_that_is_not_to_be_trusted_is_marked_and_explained():
    text = plain(
        marked(evaluation({"web": board(["bm25", "dense", "rrf"], ["ap"])}), {"dense": "sparse", "rrf": "degenerate"})
    )

    assert [row[1].endswith("~") for row in cells(text)] == [False, True, True]
    assert "~ sparse on web (a few queries or clusters decide it): dense ap" in text
    assert "~ degenerate on web (all of them score alike): rrf ap" in text


def test_of_many_marked_lines_the_first_are_named():
    text = plain(marked(evaluation({"web": board(["bm25"], ["ap", "rr", "p@1", "p@2", "p@3"])}), {"bm25": "sparse"}))

    assert "bm25 ap, bm25 rr, bm25 p@1 and 2 more" in text


def compared(model: str, baseline: str, p_corrected: float | None, **further: Any) -> Comparison:
    figures = {field.name: None for field in fields(Comparison)}
    words = {"dataset": "web", "slice": "all", "measure": "ap", "model": model, "baseline": baseline, "family": ""}
    counts = {"wins": 10, "ties": 10, "losses": 10, "n_queries": 30, "n_clusters": 30, "mark": ""}
    interval = {"difference": -0.1, "ci_low": -0.2, "ci_high": -0.01}
    tested = {"p_value": 0.01, "p_corrected": p_corrected}
    return Comparison(**{**figures, **words, **counts, **interval, **tested, **further})


def test_models_that_are_not_distinguishable_share_a_letter():
    found = evaluation({"web": board(["x", "y", "z"], ["ap"])})
    pairs = (compared("y", "x", 0.2), compared("z", "y", 0.06), compared("z", "x", 0.01))
    text = plain(change_evaluation(found, comparison_lines=pairs))

    assert [(row[0], row[2]) for row in cells(text)] == [("x", "a"), ("y", "ab"), ("z", "b")]
    assert "letters: models that share one do not differ significantly by the first measure" in text
    strict = plain(
        change_evaluation(found, comparison_lines=pairs, confidence=0.9)
    )  # at the level 0.1, 0.06 tells apart
    assert [row[2] for row in cells(strict)] == ["a", "a", "b"]


def test_letters_follow_the_corrected_p_value_of_marked_differences():
    found = evaluation({"web": board(["x", "y"], ["ap"])})
    parted, sparse = (
        plain(change_evaluation(found, comparison_lines=(compared("y", "x", 0.0141, mark=mark),)))
        for mark in ("", "sparse")
    )

    assert [row[2] for row in cells(parted)] == ["a", "b"]
    assert [row[2] for row in cells(sparse)] == ["a", "b"]


def test_models_that_were_not_all_compared_have_no_letters():
    found = evaluation({"web": board(["x", "y", "z"], ["ap"])})
    text = plain(change_evaluation(found, comparison_lines=(compared("y", "x", 0.2), compared("z", "x", 0.2))))

    assert "letters" not in text


def test_bold_is_explained_where_there_is_bold():
    found = evaluation({"web": board(["bm25", "dense"], SEARCH)})

    assert "bold: the best" in leaderboard(found, width=120, colour=True)
    assert "bold" not in plain(found)


def test_notes_on_very_many_outputs_are_cut():
    text = plain(evaluation({"web": board([f"m{n}" for n in range(31)], ["ap"])}))

    assert len(re.findall(r"^m\d+ on web: ", text, re.MULTILINE)) == 30
    assert "1 more output in manifest.json" in text


def test_the_record_is_named_last_and_its_page_before_it(tmp_path):
    web = evaluation({"web": board(["bm25"], ["ap"])})
    found = change_evaluation(web, record=tmp_path, store="sqlite:///mlflow.db")
    mlflow = "MLflow: mlflow ui --backend-store-uri sqlite:///mlflow.db"
    happened = "bm25: ap 0.9000."

    assert closing(found) == ["", happened, mlflow, f"record: {tmp_path}"]
    (tmp_path / "report.html").touch()
    assert closing(found) == ["", happened, mlflow, f"report: {tmp_path}/report.html", f"record: {tmp_path}"]


def test_the_pages_of_mlflow_that_are_not_installed_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = change_evaluation(
        evaluation({"web": board(["bm25"], ["ap"])}), record=tmp_path, store="sqlite:///mlflow.db"
    )

    assert closing(found)[2].endswith("sqlite:///mlflow.db (install it with: pip install 'rankledger[ui]')")
    assert closing(change_evaluation(found, store="http://mlflow:5000"))[2] == "MLflow: http://mlflow:5000"


def test_slices_are_named_and_stay_out_of_the_table():
    found = evaluation({"web": board(["bm25"], ["ap"])})
    (line,) = found.estimates
    text = plain(change_evaluation(found, estimates=(line, replace(line, slice="market=de", estimate=0.1))))

    assert len(cells(text)) == 1
    assert "1 slice in summary.csv: market=de" in text


def test_a_remark_on_all_datasets_together_names_them():
    found = evaluation({"web": board(["bm25"], ["ap"]), "*": board(["bm25"], ["ap"])})
    found = change_evaluation(
        found, quality={task: quality for task, quality in found.quality.items() if task[0] == "web"}
    )
    text = plain(marked(found, {"bm25": "degenerate"}))

    assert "mean of all datasets (1,200 queries)" in text
    assert "~ degenerate on mean of all datasets (all of them score alike): bm25 ap" in text
    assert "on *" not in text


def test_an_undefined_figure_has_no_interval_to_distrust():
    found = evaluation({"web": {"bm25": {"ap": (0.5, 0.5, 0.5), "rr": (None,)}}})
    assert "(all of them score alike): bm25 ap\n" in plain(marked(found, {"bm25": "degenerate"}))
