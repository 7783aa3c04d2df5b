"""Explanations of a score, and of a metric."""

import inspect
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.explain import (
    ConventionChoice,
    Explanation,
    Outcome,
    ProfileComparison,
    RecordedScore,
    ScoreTerm,
    ScoreTotal,
)
from rankledger.pipeline.report.explanation import as_data, markdown, measures, tables
from rankledger.pipeline.support.errors import InputError
from tests.support.terminal import table_rows
from tests.support.terminal import tables as table_cells

TREC_EVAL = PROFILES["trec_eval"]
JUDGED = [  # rank, document, grade, gain, discount, term, running sum
    (1, "b", 2.0, 2.0, 1.0, 2.0, 2.0),
    (2, "c", 1.0, 1.0, 1.5849625007211562, 0.6309297535714575, 2.6309297535714578),
    (4, "a", 3.0, 3.0, 2.321928094887362, 1.2920296742201792, 3.922959427791637),
]
IDEAL = [
    (1, "a", 3.0, 3.0, 1.0, 3.0, 3.0, (4, 4)),
    (2, "b", 2.0, 2.0, 1.5849625007211562, 1.261859507142915, 4.261859507142915, (1, 1)),
    (3, "c", 1.0, 1.0, 2.0, 0.5, 4.761859507142915, None),
]


def line(
    rank: int | None, doc_id: str | None, grade: float | None = None, term: float | None = None, **rest: Any
) -> ScoreTerm:
    given = {"ties": None, "factors": {}, "running": term} | rest
    return ScoreTerm(rank=rank, doc_id=doc_id, grade=grade, term=term, **given)


def explained(measure: str = "ndcg@10", **given: Any) -> Explanation:
    documents = [
        line(rank, doc_id, grade, term, factors={"gain": gain, "discount": discount}, running=running)
        for rank, doc_id, grade, gain, discount, term, running in JUDGED
    ]
    ideal = tuple(
        line(rank, doc, grade, term, factors={"gain": gain, "discount": discount}, running=running, found_at=found)
        for rank, doc, grade, gain, discount, term, running, found in IDEAL
    )
    parts: dict[str, Any] = {
        "dataset": "web",
        "model": "m",
        "query_id": "q",
        "measure": Measure.parse(measure),
        "profile": TREC_EVAL,
        "outcome": Outcome(0.8238293334905776, 0.8238293334905776),
        "why": None,
        "documents": (*documents[:2], line(3, "x"), documents[2]),
        "n_retrieved": 4,
        "n_condensed": 0,
        "ideal": ideal,
        "sum": ScoreTotal(3.922959427791637, None, 1.0, 4.761859507142915),
    }
    return Explanation(**parts | given)


def text(explanation: Explanation, width: int = 160) -> list[str]:
    return [row.rstrip() for row in tables(explanation, width=width, colour=False).splitlines()]


EXPECTED = Path(__file__).parent / "expected"
BESIDE = (EXPECTED / "explanation.txt").read_text(encoding="utf-8")


def test_the_ideal_list_stands_beside_the_ranking():
    assert text(explained()) == BESIDE.splitlines()


def test_two_models_stand_side_by_side():
    other = replace(explained(), model="other", documents=explained().documents[1:2], outcome=Outcome(0.5, 0.5))
    rows = text(replace(explained(), against=other))
    headers, *lines = next(table for table in table_cells("\n".join(rows)) if "m: grade" in table[0])

    assert rows[:2] == ["m on web, query q: ndcg@10 = 0.8238", "other on web, query q: ndcg@10 = 0.5000"]
    assert headers == ["", "m", "m: grade", "m: term", "other", "other: grade", "other: term"]
    assert lines[:3] == [
        ["1", "b", "2", "2.0000", "c", "1", "0.6309"],
        ["2", "c", "1", "0.6309", "", "", ""],
        ["3", "x", "", "", "", "", ""],
    ]
    assert sum(row.startswith("ndcg@10 = 3.9230 / 4.7619") for row in rows) == 2
    assert as_data(replace(explained(), against=other))["against"] == as_data(other)
    assert markdown(replace(explained(), against=other)).count("### ") == 2


def test_the_ideal_list_is_slim_before_it_stands_below():
    rows = text(explained(), width=120)

    assert rows[3].split() == ["ranking", "ideal", "list"]
    assert rows[5].endswith("  2.0000  2.0000       1  a             3         4  3.0000")
    assert max(map(len, rows)) <= 120


def test_the_ideal_list_stands_below_where_there_is_no_room():
    narrow = text(explained(), width=80)

    assert max(map(len, narrow)) <= 80
    assert narrow.index("ideal list") > narrow.index("ranking")
    assert sorted(BESIDE.split()) == sorted(" ".join(narrow).split())


def test_nothing_is_taken_for_markup():
    found = explained(query_id="*q*", documents=(line(1, "[red]a|b_$c$", 1.0, 1.0),), ideal=None)

    assert "[red]a|b_$c$" in "\n".join(text(found))
    assert "| 1 | \\[red\\]a\\|b\\_\\$c\\$ | 1 | 1 | 1 |" in markdown(found).splitlines()
    assert markdown(found).startswith("### m on web, query \\*q\\*: ndcg@10 = ")


def test_markdown_has_both_tables():
    assert markdown(explained()) == (EXPECTED / "explanation.md").read_text(encoding="utf-8")


def test_json_has_every_figure_in_full():
    found = json.loads(json.dumps(as_data(explained()), allow_nan=False))

    assert found["value"] == found["counts_as"] == 0.8238293334905776
    assert found["sum"] == {
        "total": 3.922959427791637,
        "rest": None,
        "scale": 1,
        "divisor": 4.761859507142915,
        "root": 0,
    }
    assert found["documents"][1] == {
        "rank": 2,
        "ties": None,
        "doc_id": "c",
        "grade": 1,
        "factors": {"gain": 1, "discount": 1.5849625007211562},
        "term": 0.6309297535714575,
        "running": 2.6309297535714578,
    }
    assert found["documents"][2]["term"] is None
    assert [row["found_at"] for row in found["ideal"]] == [[4, 4], [1, 1], None]
    assert found["conventions"]["ties"] == "doc_id_desc"
    assert (found["under"], found["record"], found["undefined"]) == (None, None, None)


def test_every_key_of_the_json_is_documented():
    guide = (Path(__file__).parents[3] / "docs/matching.md").read_text(encoding="utf-8")
    page = guide.partition("### Read the JSON")[2].partition("\n## ")[0]
    first = {
        name for cell in re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }
    recorded = RecordedScore("x", measured=True, same_definition=True)
    data = json.loads(json.dumps(as_data(replace(compared(), recorded=recorded))))
    below = (
        [data[key] for key in ("sum", "under", "record")] + data["documents"] + data["ideal"] + data["under"]["choices"]
    )

    assert first == set(data)
    assert {key for part in below for key in part} <= set(re.findall(r"`(\w+)`", page))


@pytest.mark.parametrize(
    ("measure", "last", "value", "said"),
    [
        ("tp@10", ScoreTotal(3.0, None, 1.0, None), 3.0, "tp@10 = 3"),
        ("p@10", ScoreTotal(3.0, None, 1.0, 10.0), 0.3, "p@10 = 3 / 10 = 0.3000"),
        ("ap", ScoreTotal(1.0, None, 1.0, 1.0), 1.0, "ap = 1 / 1 = 1"),
        ("fp@10", ScoreTotal(-3.0, 10.0, 1.0, None), 7.0, "fp@10 = 10 − 3 = 7"),
        ("unjudged@10", ScoreTotal(-3.0, 10.0, 1.0, 10.0), 0.7, "unjudged@10 = (10 − 3) / 10 = 0.7000"),
        ("tn", ScoreTotal(2.0, 100.0, 1.0, None), 102.0, "tn = 100 + 2 = 102"),
        ("rbp", ScoreTotal(1.64, None, 0.2, None), 0.328, "rbp = 0.2000 × 1.6400 = 0.3280"),
        ("f1", ScoreTotal(2.0, None, 2.0, 7.0), 4 / 7, "f1 = 2 × 2 / 7 = 0.5714"),
        ("ndcg_rel", ScoreTotal(1.5, 0.25, 1.0, 3.0), 1.75 / 3, "ndcg_rel = (0.2500 + 1.5000) / 3 = 0.5833"),
        ("rbp", ScoreTotal(1e-7, None, 0.2, None), 2e-8, "rbp = 0.2000 × 1.0e-07 = 2.0e-08"),
        ("rmse", ScoreTotal(5.0, None, 1.0, 2.0, root=True), 2.5**0.5, "rmse = √(5 / 2) = 1.5811"),
    ],
)
def test_the_last_line(measure, last, value, said):
    assert said in text(explained(measure, sum=last, outcome=Outcome(value, value), ideal=None))


@pytest.mark.parametrize(
    ("measure", "given", "said"),
    [
        ("ndcg", {"outcome": Outcome(None, 0.0)}, "in the mean it counts as 0 (undefined_queries: zero)"),
        (
            "ndcg",
            {"outcome": Outcome(None, None), "profile": PROFILES["gdeval"]},
            "it is left out of the mean (undefined_queries: skip)",
        ),
        (
            "judged@5",
            {"outcome": Outcome(None, None)},
            "it is left out of the mean (undefined judged is never counted)",
        ),
        (
            "ap",
            {"outcome": Outcome(0.0, None), "profile": PROFILES["beir"], "n_retrieved": 0, "documents": ()},
            "it is left out of the mean (missing_queries: skip)",
        ),
    ],
)
def test_what_a_query_is_in_the_mean(measure, given, said):
    why = None if given["outcome"].value is not None else "where there is nothing"
    found = explained(measure, why=why, sum=ScoreTotal(0.0, None, 1.0, 0.0), ideal=(), **given)

    assert said in text(found)
    assert (f"{measure} = 0 / 0: undefined where there is nothing" in text(found)) == (why is not None)


def test_below_the_head_only_what_adds_is_shown():
    head = [line(rank, f"x{rank}") for rank in range(1, 20)]
    documents = (
        *head,
        line(20, "z", 0.0, 0.0),
        line(23, "n", 0.0, 0.0),
        line(25, "r", 1.0, 1.0),
        line(30, "m", 0.0, 0.0),
    )
    rows = text(explained("ap", documents=documents, n_retrieved=30, ideal=None))
    cells = [row[0] for row in table_rows("\n".join(rows))]

    assert cells == [*map(str, range(1, 21)), "⋮", "25"]
    assert (
        "not shown, below rank 20: 7 documents without judgment; "
        "2 judged, adding nothing: n (grade 0, rank 23), m (grade 0, rank 30)" in rows
    )


@pytest.mark.parametrize("width", [40, 20])
def test_numbers_are_never_cut(width):
    documents = (line(1, "d" * 30, 1.0, 1.0, factors={"gain": 1.0, "discount": 1234.5678}),)
    rows = text(explained(documents=documents), width=width)

    assert [row for row in rows if row.startswith(" ") and "1234" in row] == [
        "    1  dddddddddddd      1     1  1234.5678     1    1"
    ]


def test_ids_cannot_steer_a_terminal():
    hostile = "a\x1b[2J\nb\u202ec"
    explanation = explained(query_id=hostile, documents=(line(1, hostile, 1.0, 1.0), line(30, hostile, 1.0, 0.0)))
    rows = text(explanation)

    assert rows[0] == r"m on web, query a\x1b[2J\nb\u202ec: ndcg@10 = 0.8238"
    assert sum(r"a\x1b[2J\nb\u202ec" in row for row in rows) == 3
    assert not {"\x1b", "\u202e"} & set("".join(rows))
    assert r"| 1 | a\\x1b\[2J\\nb\\u202ec | 1 |" in markdown(explanation)


def test_an_ideal_list_that_names_nothing_has_no_columns_for_it():
    ideal = (line(1, None, None, 2.0, factors={"gain": 2.0}),)

    assert "| rank | gain | term | sum |" in markdown(explained("alpha_ndcg@10", ideal=ideal)).splitlines()


def test_no_line_ends_in_blanks():
    assert not [row for row in tables(explained(), width=80, colour=False).splitlines() if row != row.rstrip()]


def test_below_the_cutoff_nothing_adds():
    documents = (line(1, "a", 1.0, 1.0), line(2, "x"), *(line(rank, f"r{rank}", 1.0, 0.0) for rank in range(3, 8)))
    rows = text(explained("p@2", documents=documents, n_retrieved=9, ideal=None))

    named = "r3 (grade 1, rank 3), r4 (grade 1, rank 4), r5 (grade 1, rank 5), 2 more"
    assert f"not shown, below rank 2: 2 documents without judgment; 5 judged, adding nothing: {named}" in rows
    assert len(table_rows("\n".join(rows))) == 2


def test_equal_scores_are_marked():
    rows = text(explained(documents=(line(1, "a", 1.0, 1.0, ties=(1, 2)), line(2, "x", ties=(1, 2)))))

    assert [row[:2] for row in table_rows("\n".join(rows))[:2]] == [["= 1", "a"], ["= 2", "x"]]
    assert "=: equal scores, ordered by ties: doc_id_desc" in rows


def test_where_all_orders_count_there_are_ranks_from_and_to():
    profile = TREC_EVAL.with_conventions(ties="expected")
    documents = (line(None, "a", 1.0, 0.75, ties=(1, 2)), line(None, "x", ties=(1, 2)), line(4, "b", 1.0, 0.5))
    rows = text(explained("dcg", profile=profile, documents=documents, ideal=None))

    assert [row[0] for row in table_rows("\n".join(rows))] == ["1–2", "1–2", "⋮", "4"]
    assert "equal scores: each document adds the mean over all their orders (ties: expected)" in rows
    assert "conventions: trec_eval with ties: expected" in rows


def test_remarks_on_the_data_are_made_where_they_apply():
    condensed = TREC_EVAL.with_conventions(unjudged_documents="condensed")
    record = RecordedScore("20261120T122701Z-web-8203a3f5", measured=True, same_definition=True)
    cases = {
        "3 documents without judgment taken out of the ranking (unjudged_documents: condensed)": {
            "profile": condensed,
            "n_condensed": 3,
        },
        "a negative grade is no judgment (negative_grades: unjudged)": {"documents": (line(1, "a", -1.0, 0.0),)},
        "a negative grade counts as 0 (negative_grades: non_relevant)": {
            "documents": (line(1, "a", -1.0, 0.0),),
            "profile": TREC_EVAL.with_conventions(negative_grades="non_relevant"),
        },
        "nothing was retrieved": {"documents": (), "n_retrieved": 0},
        "the record 20261120T122701Z-web-8203a3f5 has the same score": {"recorded": record},
        "the record x does not have this measure": {
            "recorded": RecordedScore("x", measured=False, same_definition=False)
        },
        "the record x has the same score, by a definition of another fingerprint": {
            "recorded": RecordedScore("x", measured=True, same_definition=False)
        },
    }
    plain = text(explained())
    for said, given in cases.items():
        assert said in text(explained(**given))
        assert said not in plain


def compared() -> Explanation:
    before, after = Outcome(0.8238293334905776, 0.8238293334905776), Outcome(0.7075284541839216, 0.7075284541839216)
    gain = ConventionChoice("gain", "linear", "exponential", after, before, "gdeval: dcg adds 2**grade - 1")
    idle = tuple(
        ConventionChoice(name, "a", "b", before, after, "gdeval: so it is")
        for name in ("score_precision", "missing_queries")
    )
    return explained(comparison=ProfileComparison(PROFILES["gdeval"], after, (gain,), idle))


def test_the_other_profile_and_what_makes_the_difference():
    rows = text(compared())
    begin = rows.index("under gdeval (gdeval.pl 1.2a and 1.3): 0.7075; as evaluated 0.8238")

    assert rows[begin - 1] == ""
    ((headers, *cells),) = table_cells("\n".join(rows[begin + 2 :]))
    assert headers == ["choice", "as evaluated", "gdeval", "alone it gives", "because"]
    assert cells[0] == ["gain", "linear", "exponential", "0.7075", "gdeval: dcg adds 2**grade - 1"]
    assert rows[-1] == "makes no difference here: score_precision (b), missing_queries (b)"
    assert "| gain | linear | exponential | 0.7075 | gdeval: dcg adds 2\\*\\*grade - 1 |" in markdown(compared())


def test_several_choices_are_made_together_in_the_last_row():
    other = Outcome(0.25, 0.25)
    choices = tuple(ConventionChoice(name, "a", "b", Outcome(0.5, 0.5), other, "ranx: so") for name in ("ties", "gain"))
    rows = text(explained(comparison=ProfileComparison(PROFILES["ranx"], other, choices, ())))

    table = [row for row in table_rows("\n".join(rows)) if row[0] in ("ties", "all of them")]
    assert table == [["ties", "a", "b", "0.5000", "ranx: so"], ["all of them", "", "", "0.2500", ""]]


def test_different_figures_look_different():
    other = Outcome(0.8238294, 0.8238294)
    choice = ConventionChoice("ties", "a", "b", other, explained().outcome, "ranx: so")
    rows = text(explained(comparison=ProfileComparison(PROFILES["ranx"], other, (choice,), ())))

    assert "under ranx (ranx 0.3.21: evaluate(Qrels, Run)): 0.82382940; as evaluated 0.82382933" in rows
    assert any("    0.82382940  ranx: so" in row for row in rows)


def test_json_has_the_choices():
    found = json.loads(json.dumps(as_data(compared()), allow_nan=False))["under"]

    assert (found["profile"], found["value"], found["refused"]) == ("gdeval", 0.7075284541839216, None)
    assert found["choices"][0]["alone"]["value"] == 0.7075284541839216
    assert found["choices"][0]["all_others"]["value"] == 0.8238293334905776
    assert [choice["name"] for choice in found["idle"]] == ["score_precision", "missing_queries"]


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(0.8238293334905776, 0.8238293334905776), "0.8238 too"),
        (Outcome(None, None, "a negative grade"), "refused: a negative grade; as evaluated 0.8238"),
        (Outcome(None, 0.0), "undefined (0 in the mean); as evaluated 0.8238"),
        (Outcome(None, None), "undefined (left out of the mean); as evaluated 0.8238"),
        (Outcome(0.5, None), "0.5000 (left out of the mean); as evaluated 0.8238"),
    ],
)
def test_the_score_under_another_profile_in_words(outcome, said):
    comparison = ProfileComparison(PROFILES["kaggle"], outcome, (), ())

    assert f"under kaggle (Kaggle's ml_metrics 0.1.4: apk and mapk): {said}" in text(explained(comparison=comparison))


def test_pairs_of_ratings_have_no_ranks():
    pair = line(None, "a", None, 4.0, factors={"rating": 4.0, "prediction": 2.0, "error": -2.0})
    rows = text(
        explained("rmse", documents=(pair,), n_retrieved=1, ideal=None, sum=ScoreTotal(4.0, None, 1.0, 1.0, root=True))
    )

    assert " document  rating  prediction  error  term  sum" in rows
    assert " a              4           2     -2     4    4" in rows
    assert "in the mean it weighs as much as its pairs, 1" in rows
    assert not any("conventions" in row or "not shown" in row for row in rows)


def test_an_explanation_prints_a_line_per_document():
    assert str(explained()).splitlines() == [
        "<Explanation ndcg@10 of m on web, query q: 0.8238>",
        "  1 b: grade 2, adds 2.0000",
        "  2 c: grade 1, adds 0.6309",
        "  3 x: not judged",
        "  4 a: grade 3, adds 1.2920",
    ]
    undefined = explained(outcome=Outcome(None, None), why="no relevant document")
    assert repr(undefined).startswith("<Explanation ndcg@10 of m on web, query q: no relevant document>")


def entry(name: str) -> str:
    lines = measures().splitlines()
    begins = [number for number, line in enumerate(lines) if line[:1].strip()] + [len(lines)]
    (begin,) = [
        n for n in begins[:-1] if lines[n].split()[0].removesuffix("@k").removesuffix("[@k]") in (name, f"{name}[")
    ]
    return "\n".join(lines[begin : begins[begins.index(begin) + 1]])


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("text", [entry, measures], ids=["list", "explanation"])
def test_every_metric_is_described_in_full(name, text):
    metric, said = METRICS[name], text(name)

    low, high = metric.range
    direction = "no direction" if metric.direction == "neither" else metric.direction
    for fact in (metric.title, metric.formula, metric.reference, f"{direction} is better"):
        assert fact in said
    assert " to ".join(f"{end:g}".replace("inf", "∞") for end in (low, high)) in said
    for parameter in metric.parameters.values():
        assert f"{parameter.name}=" in said
    entry, _, _ = said.partition(inspect.getdoc(metric.function))
    assert "…" not in entry.replace(metric.formula, "").replace("=…", "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ndcg", "gain=linear|exponential|binary, discount=log2|jarvelin, base=2, rel=1"),
        ("r", "rel=1, denominator=relevant|cutoff"),
        ("rmse", "average=pooled|query"),
        ("f", "beta=…, rel=1"),
        ("avg_rp", "cutoffs=[5,10]"),
        ("rankscore", "half_life=5"),
    ],
)
def test_parameters_are_listed_with_their_defaults(name, said):
    assert said in entry(name)
    assert said in measures(name)


@pytest.mark.parametrize(("name", "written"), [("ndcg", "ndcg[@k]"), ("rprec", "rprec"), ("rp", "rp@k")])
def test_the_list_says_whether_a_cutoff_is_written(name, written):
    assert METRICS[name].cutoff == {"ndcg[@k]": "optional", "rprec": "refused", "rp@k": "required"}[written]
    assert entry(name).startswith(f"{written}  ")


@pytest.mark.parametrize("name", ["ndcg", "ndcg@10", "ndcg(gain=exponential)@5", " ndcg@10 "])
def test_a_measure_is_explained_by_its_metric(name):
    assert measures(name) == measures("ndcg")
    assert inspect.getdoc(METRICS["ndcg"].function) in measures(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ndgc", "unknown metric 'ndgc'; did you mean 'ndcg'?"),
        ("ndcg@0", "ndcg: cutoffs are whole numbers from 1, found '@0'"),
        ("ndcg(gain=cubic)", "ndcg: gain is one of linear, exponential, binary, found 'cubic'"),
        ("", "'' is not a measure; write metric(parameter=value,…)@cutoff, such as ndcg@10"),
    ],
)
def test_what_is_no_metric_is_refused(name, said):
    with pytest.raises(InputError) as error:
        measures(name)

    assert str(error.value) == said
