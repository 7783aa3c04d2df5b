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
from rankledger.pipeline.data.joined import DataWarning, Failure, JoinStats, Scores
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import ChangeSince, Comparison, Estimate, OrderAgreement
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.headline import headline_of
from rankledger.pipeline.report.markdown import note
from rankledger.pipeline.report.terminal import as_data, data_screen, everything, first_screen, matrix
from tests.support.manifests import change_evaluation, make_evaluation
from tests.support.terminal import table_rows, tables

HOSTILE = "<script>alert(1)</script> | a|b [red]x[/red] *y* `z` \\ #1 _u_ $m$ [t](http://x)"
PLAIN = JoinStats(n_rows=5_000, n_unjudged_queries=0, n_missing_queries=0, judged_at_10=0.125)
N_QUERIES = 1_200
ID = "20261119T020000Z-nightly-1f0c9a2b"
WIDTHS = [80, 100, 160]
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
    return first_screen(found, width=width, colour=False, is_last=True)


def whole(found: Evaluation, width: int = 200) -> str:
    return everything(found, width=width, colour=False)


def board_rows(text: str) -> list[list[str]]:
    return [row for table in tables(text) if table[0][0] == "model" for row in table[1:]]


# ---- the leaderboard

MODELS = ["bm25", "a-rather-long-name-of-a-model", "密集检索模型", "x"]


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_terminal(width):
    failure = Failure("web", "gone", "out/web/gone.tsv: file not found. " * 5)
    found = evaluation({"web": board(MODELS, SEARCH), "a dataset " * 30: board(["bm25", "x"], SEARCH)}, (failure,))
    found = change_evaluation(found, warnings=[DataWarning("web", "x", "has few documents in common " * 9)])
    text = plain(found, width)

    assert len(table_rows(text)) >= 6
    assert max(cell_len(line) for line in text.splitlines()) <= width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("measure", SEARCH)
def test_models_and_figures_stand_whole_in_their_cells(width, measure):
    text = plain(evaluation({"web": board(MODELS, [measure, *(m for m in SEARCH if m != measure)])}), width)

    expected = [
        [model, f"{0.9 - n / 100:.3f} [{0.8 - n / 100:.3f}, {0.95 - n / 100:.3f}]"] for n, model in enumerate(MODELS)
    ]
    assert [row[:2] for row in board_rows(text)] == (expected[::-1] if measure == "fn" else expected)
    assert "…" not in text
    assert tables(text)[-1][0][:2] == ["model", measure]


@pytest.mark.parametrize("width", WIDTHS)
def test_large_figures_stand_whole(width):
    line = (12345.6789, 12000.1234, 13000.5678)
    text = plain(evaluation({"web": {"bm25": dict.fromkeys(["fn", "fp@1000", "dcg", "tp", "tn"], line)}}), width)

    assert board_rows(text)[0][1] == "12345.679 [12000.123, 13000.568]"
    assert max(cell_len(line) for line in text.splitlines()) <= width


def compared(model: str, baseline: str, p_corrected: float | None, **further: Any) -> Comparison:
    figures = {field.name: None for field in fields(Comparison)}
    words = {"dataset": "web", "slice": "all", "measure": "ap", "model": model, "baseline": baseline, "family": ""}
    counts = {"wins": 10, "ties": 10, "losses": 10, "n_queries": 30, "n_clusters": 30, "mark": ""}
    interval = {"difference": -0.1, "ci_low": -0.2, "ci_high": -0.01}
    tested = {"p_value": 0.01, "p_corrected": p_corrected}
    return Comparison(**{**figures, **words, **counts, **interval, **tested, **further})


def test_the_verdict_comes_first_then_the_table_the_warnings_and_the_places(tmp_path):
    (tmp_path / "report.html").touch()
    missing = replace(PLAIN, n_missing_queries=344)
    found = evaluation({"web": board(["x", "y", "z"], ["ap", "rr", "p@5"])}, y=missing)
    pairs = (compared("y", "x", 0.0002, p_least=0.0002), compared("z", "x", 0.3, mark="sparse"))
    found = change_evaluation(found, comparison_lines=pairs, record=tmp_path, store="http://mlflow:5000")

    assert plain(found, 100).splitlines() == [
        "BEST  x: ap = 0.900, not clearly better than z",
        "",
        "web: 1,200 queries, 3 models, 95% intervals, baseline x",
        " model  ap                    difference                adj. p     rr    p@5",
        " x      0.900 [0.800, 0.950]  baseline                          0.900  0.900",
        " y      0.890 [0.790, 0.940]  -0.100 [-0.200, -0.010]   ≤.0002  0.890  0.890",
        " z      0.880 [0.780, 0.930]  -0.100 [-0.200, -0.010]~  0.3000  0.880  0.880",
        " ~ approximate: few queries decide it, or all are equal",
        "",
        "WARNING  y: no output for 344 of 1,200 queries. These queries score 0.",
        "",
        f"Page    {tmp_path}/report.html",
        "MLflow  http://mlflow:5000",
        f"More    rankledger show --all {tmp_path}",
    ]


def test_colors_repeat_the_words():
    verdict = Verdict("floor", "web", "x", "ap", "all", "fail", "fail", "ap of x is 0.9")
    found = evaluation({"web": board(["x", "y"], ["ap"])}, y=replace(PLAIN, n_missing_queries=344))
    found = change_evaluation(found, verdicts=(verdict,), comparison_lines=(compared("y", "x", 0.0002),))
    colored = first_screen(found, width=100, colour=True)

    for text in ("\x1b[1;31mFAIL", "\x1b[1;33mWARNING", "\x1b[31m-0.100"):
        assert text in colored
    plain_lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", colored).splitlines()]
    assert plain_lines == first_screen(found, width=100, colour=False).splitlines()


@pytest.mark.parametrize(("change", "is_calm"), [({}, True), ({"decision": "worse"}, False), ({"reason": "x"}, False)])
def test_a_calm_night_has_no_table(change, is_calm):
    line = ChangeSince("web", "x", "ap", "previous", ID, "2026-11-19", 0.9, 0.9, -0.001)
    verdict = Verdict("floor", "web", "x", "ap", "all", "pass", "pass", "ap of x is 0.9")
    found = evaluation({"web": board(MODELS, ["ap"])})
    found = change_evaluation(found, changes=(replace(line, **change),), verdicts=(verdict,), date="2026-11-20")
    text = plain(found, 100)

    assert (table_rows(text) == []) == is_calm
    assert len(text.splitlines()) <= 8 or not is_calm
    assert board_rows(plain(change_evaluation(found, date=""), 100))


def ranked(found: Evaluation, *ranks: tuple[int, int]) -> Evaluation:
    by_model = dict(zip(dict.fromkeys(line.model for line in found.estimates), ranks, strict=True))
    lines = (
        replace(line, rank_low=by_model[line.model][0], rank_high=by_model[line.model][1]) for line in found.estimates
    )
    return change_evaluation(found, estimates=tuple(lines))


@pytest.mark.parametrize("width", WIDTHS)
def test_ranks_stand_beside_the_models(width):
    text = plain(ranked(evaluation({"web": board(MODELS, SEARCH)}), (1, 2), (1, 3), (2, 3), (4, 4)), width)

    assert [row[1] for row in board_rows(text)] == ["1–2", "1–3", "2–3", "4"]
    expected = f"BEST {MODELS[0]}: ndcg@10 = 0.900, not clearly better than {MODELS[1]} web:"
    assert " ".join(text.split()).startswith(expected)


def test_a_terminal_too_narrow_for_differences_and_ranks_shows_figures():
    found = ranked(evaluation({"web": board(["x", "y"], ["ap"])}), (1, 1), (2, 2))
    found = change_evaluation(found, comparison_lines=(compared("y", "x", 0.01),))

    for width, headers in ((80, ["rank", "ap", "difference", "adj. p"]), (60, ["rank", "ap", "difference"])):
        assert tables(plain(found, width))[0][0] == ["model", *headers]
    assert [[table[0] for table in tables(plain(found, width))][-1] for width in (40, 34)] == [
        ["model", "rank", "ap"],
        ["model", "ap"],
    ]


def test_everything_has_each_measure_and_the_agreement_of_measures():
    taus = {"ap": 0.8, "rr(rel=2)@10": -0.25, "fn": 1.0, "judged@10": 0.5}
    lines = tuple(
        OrderAgreement("web", measure, "ndcg@10", tau, tau - 0.5, 1.0, 4, 3, 0, 3) for measure, tau in taus.items()
    )
    found = change_evaluation(evaluation({"web": board(MODELS, SEARCH)}), agreement=lines)
    text = whole(found)

    assert (
        "agreement with the order by ndcg@10 on web (Kendall's tau of 4 models and its bounds): rr(rel=2)@10 -0.25 "
        "(-0.75 to 1.00), judged@10 0.50 (0.00 to 1.00), ap 0.80 (0.30 to 1.00), and 1 more measure in agreement.csv"
    ) in text
    assert "agreement" not in plain(found)
    assert [table[0][1] for table in tables(text)] == SEARCH
    assert [line["tau"] for line in as_data(found)["agreement"]] == [*taus.values()]


def test_a_baseline_that_was_not_evaluated_is_named():
    gone = Failure("web", "gone", "gone.tsv: file not found; check the path")
    found = change_evaluation(evaluation({"web": board(MODELS, SEARCH)}), failures=(gone, replace(gone, model="old")))

    expected = "WARNING  not compared on web: the baseline gone was not evaluated\n"
    assert expected in plain(change_evaluation(found, baseline="gone"))
    assert "not compared" not in plain(change_evaluation(found, baseline="other"))


def test_a_name_that_is_wider_than_the_terminal_is_folded_and_not_cut():
    name = "-".join(f"part{number}" for number in range(30))
    text = plain(evaluation({"web": board([name], SEARCH)}), 80)

    assert "…" not in text
    assert "".join(row[0] for row in board_rows(text)) == name
    assert all(cell_len(line) <= 80 for line in text.splitlines())


def test_a_name_of_10000_letters_is_cut():
    text = plain(evaluation({"web": board(["x" * 10_000, "bm25"], ["ap"])}), 80)

    assert 400 < text.count("x") < 3_000
    assert "0.900 [0.800, 0.950]" in text


@pytest.mark.parametrize("width", [1, 20, 30, 40, 60])
def test_a_narrow_terminal_gets_something(width):
    text = plain(evaluation({"web": board(["bm25", "dense"], SEARCH)}), width)

    assert [row[:2] for row in board_rows(text) if len(row) > 1] == [
        ["bm25", "0.900 [0.800, 0.950]"],
        ["dense", "0.890 [0.790, 0.940]"],
    ]


def test_measures_models_and_datasets_that_are_left_out_are_counted():
    boards = {f"d{n}": board([f"m{m}" for m in range(17)], ["ap", "rr", "p@5", "r@5", "p@1"]) for n in range(6)}
    text = plain(evaluation(boards), 120)

    assert len(tables(text)) == 5
    assert [len(table) for table in tables(text)] == [16] * 5
    assert tables(text)[0][0] == ["model", "ap", "rr", "p@5", "r@5"]
    assert text.splitlines()[-1] == ("More    1 dataset, 5 measures, 10 models: rankledger show --all --name nightly")


def test_a_measure_that_is_too_wide_leaves_its_place_to_the_next():
    text = plain(evaluation({"web": board(["bm25"], ["ap", "ndcg(gain=exponential)@10", "rr"])}), 50)

    assert tables(text)[0][0] == ["model", "ap", "rr"]


@pytest.mark.parametrize(
    ("measure", "figures", "order"),
    [
        ("ap", {"low": 0.1, "none": None, "high": 0.9}, ["high", "low", "none"]),
        ("rmse", {"bad": 1.5, "none": None, "good": 0.5}, ["good", "bad", "none"]),
    ],
)
def test_models_stand_by_their_first_measure_best_first(measure, figures, order):
    found = evaluation({"web": {model: {measure: (figure,), "rr": (0.5,)} for model, figure in figures.items()}})

    assert [row[0] for row in board_rows(plain(found))] == order


def test_a_figure_without_interval_stands_alone():
    figures: dict[str, Figures] = {"bm25": {"item_coverage@10": (0.25,), "kendall_tau": (None,)}}

    assert board_rows(plain(evaluation({"web": figures})))[0] == ["bm25", "0.250", "undefined"]


def test_a_dataset_has_a_table_with_its_queries():
    found = evaluation({"web": board(["bm25"], ["ap"]), "news": board(["bm25"], ["ap"])})
    lines = (replace(line, n_queries=1) if line.dataset == "news" else line for line in found.estimates)
    text = plain(change_evaluation(found, estimates=tuple(lines)))

    assert text.index("web: 1,200 queries, 1 model") < text.index("news: 1 query, 1 model")


def test_markup_in_names_is_text():
    text = plain(evaluation({"[bold]web[/bold]": board([HOSTILE], ["ap"])}))

    assert HOSTILE in text
    assert "[bold]web[/bold]" in text


def test_what_would_steer_a_terminal_is_spelt_out():
    found = evaluation({"web\x1b[2J": board(["a\u202eb"], ["ap"])}, (Failure("web\x1b[2J", "a\u202eb", "missing"),))
    text = plain(found)

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "INCOMPLETE  a\\u202eb on web\\x1b[2J was not evaluated: missing" in text


def test_queries_without_a_score_are_counted():
    found = evaluation({"web": board(["bm25", "dense"], ["ap"]), "care": board(["rag", "plain"], ["ap"])})
    found = change_evaluation(
        found, quality={key: replace(PLAIN, judged_at_10=0.1 if key[0] == "web" else None) for key in found.quality}
    )
    undefined = [3, 3, 7, 13]
    some = change_evaluation(
        found, estimates=tuple(replace(e, n_undefined=n) for e, n in zip(found.estimates, undefined, strict=True))
    )

    assert "undefined" not in whole(found)
    assert [line for line in whole(some).splitlines() if "undefined" in line] == [
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
    for text in (whole(found, 80), data_screen(found, width=80, colour=False)):
        (line,) = [line for line in text.splitlines() if line.startswith("bm25 on web: ")]
        assert said in line
    assert "nan" not in line
    assert "0 tied" not in line
    assert said not in plain(found)


def test_a_failure_is_shown_whole():
    reason = "data/" + "long/" * 40 + "x.tsv:3: score 'much' is not a number; fix it"
    found = evaluation({"web": board(["bm25"], ["ap"])}, failures=(Failure("web", "late", reason),))

    assert f"INCOMPLETE  late on web was not evaluated: {reason}" in plain(found, 400).splitlines()
    assert f"INCOMPLETE late on web was not evaluated: {reason}" in rendered(note(found))


def test_many_failures_for_one_reason_are_few_lines():
    reason = "a.yaml:3: defaults.model.outputs: file not found: m{}.tsv; check the path"
    missing = [Failure("web", f"m{i}", reason.format(i)) for i in range(1000)]
    found = evaluation({}, failures=(*missing, Failure("web", "bad", "bad.tsv: no rows; write the file again")))

    lines = [f"INCOMPLETE  m{i} on web was not evaluated: {reason.format(i)}" for i in range(3)]
    lines.append("INCOMPLETE  and 997 more model outputs: file not found")
    lines.append("INCOMPLETE  bad on web was not evaluated: bad.tsv: no rows; write the file again")
    assert plain(found).splitlines()[:5] == lines
    assert "m3" not in plain(found)


def test_without_any_model_there_are_only_remarks():
    found = evaluation({}, failures=(Failure("web", "late", "late.tsv: file not found; check the path"),))

    assert plain(change_evaluation(found, record=None)).splitlines() == [
        "INCOMPLETE  late on web was not evaluated: late.tsv: file not found; check the path",
        "",
        "Record  none, because no model output was evaluated",
    ]
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
    assert "<script" not in MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert name in rendered(text)


def test_the_note_is_five_lines():
    found = evaluation({"web": board(["bm25", "dense"], SEARCH)}, dense=replace(PLAIN, n_missing_queries=30))
    verdict = Verdict("floor", "web", "bm25", "ap", "all", "fail", "fail", "ap of bm25 is 0.9")
    found = ranked(change_evaluation(found, verdicts=(verdict,)), (1, 1), (2, 2))

    assert note(found).split("\n\n") == [
        "**FAIL floor: ap of bm25 is 0.9.**",
        "BEST bm25: ndcg@10 = 0.900, better than dense",
        "web: 1,200 queries, 2 models, 95% intervals",
        "1 warning: dense: no output for 30 of 1,200 queries. These queries score 0.",
        "The page is the artifact report.html.\n",
    ]
    assert headline_of(found) in note(found)


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

    assert ["bm25", "ready", "ready"] in table_rows(text)
    assert [HOSTILE, "failed", "-"] in table_rows(text)
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
    lines = [line for line in matrix(found, width=width).splitlines() if line.startswith(" ")]

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

    assert "0.500†" in text
    assert "0.450†" not in text
    assert " † the order of tied documents decides who is best\n" in text


@pytest.mark.parametrize("width", range(60, 200, 7))
def test_marks_leave_room_for_names(width):
    found = evaluation({"web": board(["bm25", "dense", "hybrid"], SEARCH[:5])})
    text = plain(bounded(found, bm25=(0.1, 0.95), dense=(0.1, 0.95), hybrid=(0.1, 0.95)), width)

    assert "†" in text
    assert [row[0] for row in board_rows(text)] == ["bm25", "dense", "hybrid"]


@pytest.mark.parametrize("bounds", [{}, {"bm25": (0.48, 0.52), "dense": (0.40, 0.48)}], ids=["unknown", "apart"])
def test_a_winner_by_more_than_its_bounds_is_not_marked(bounds):
    found = evaluation({"web": {"bm25": {"ap": (0.5,)}, "dense": {"ap": (0.45,)}}})

    assert "†" not in plain(bounded(found, **bounds))


def test_where_lower_is_better_the_greatest_value_is_the_leaders_worst():
    found = evaluation({"web": {"bm25": {"kendall_distance": (7.0,)}, "dense": {"kendall_distance": (3.0,)}}})

    assert "3.000†" in plain(bounded(found, dense=(3, 6), bm25=(5, 8)))
    assert "†" not in plain(bounded(found, dense=(3, 4), bm25=(5, 8)))


def marked(found: Evaluation, marks: dict[str, str]) -> Evaluation:
    lines = tuple(replace(line, mark=marks.get(line.model, "")) for line in found.estimates)
    return change_evaluation(found, estimates=lines)


def test_an_interval_that_is_not_to_be_trusted_is_marked_and_explained():
    found = evaluation({"web": board(["bm25", "dense", "rrf"], ["ap"])})
    found = marked(found, {"dense": "sparse", "rrf": "degenerate"})

    assert [row[1].endswith("~") for row in board_rows(plain(found))] == [False, True, True]
    assert [row[1].endswith("~") for row in board_rows(whole(found))] == [False, True, True]


def test_models_that_are_not_distinguishable_share_a_letter():
    found = evaluation({"web": board(["x", "y", "z"], ["ap"])})
    pairs = (compared("y", "x", 0.2), compared("z", "y", 0.06), compared("z", "x", 0.01))
    text = plain(change_evaluation(found, comparison_lines=pairs))

    assert [(row[0], row[2]) for row in board_rows(text)] == [("x", "a"), ("y", "ab"), ("z", "b")]
    assert " letters: models that share one do not differ clearly by ap\n" in text
    strict = plain(
        change_evaluation(found, comparison_lines=pairs, confidence=0.9)
    )  # at the level 0.1, 0.06 tells apart
    assert [row[2] for row in board_rows(strict)] == ["a", "a", "b"]


def test_models_that_were_not_all_compared_have_no_letters():
    found = evaluation({"web": board(["x", "y", "z"], ["ap"])})
    text = plain(change_evaluation(found, comparison_lines=(compared("y", "x", 0.2), compared("z", "x", 0.2))))

    assert "letters" not in text


def test_the_pages_of_mlflow_that_are_not_installed_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    found = evaluation({"web": board(["bm25"], ["ap"])})
    found = change_evaluation(found, record=tmp_path, store=f"sqlite:///{tmp_path}/runs/mlflow.db")
    command = "mlflow ui --backend-store-uri sqlite:///runs/mlflow.db (install it with: pip install 'rankledger[ui]')"

    assert plain(found).splitlines()[-3:-1] == [f"Record  {tmp_path}", f"MLflow  {command}"]


def test_slices_stay_out_of_the_table():
    found = evaluation({"web": board(["bm25"], ["ap"])})
    (line,) = found.estimates
    text = plain(change_evaluation(found, estimates=(line, replace(line, slice="market=de", estimate=0.1))))

    assert len(board_rows(text)) == 1


def test_the_mean_of_all_datasets_comes_first():
    found = evaluation({"web": board(["bm25"], ["ap"]), "*": board(["bm25"], ["ap"])})
    found = change_evaluation(
        found, quality={task: quality for task, quality in found.quality.items() if task[0] == "web"}
    )
    text = plain(found)

    assert text.index("mean of all datasets: 1,200 queries") < text.index("web: 1,200 queries")
