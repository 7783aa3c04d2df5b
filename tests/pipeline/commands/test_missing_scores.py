"""Scores that a model lacks, queries that vanish and short lists: no gate judges by the others."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.report.headline import headline_of
from tests.support.nights import write_config

pytestmark = pytest.mark.usefixtures("folder")

SCORE = {"s": {"range": [0, 1]}}
COMPLETE = {"name": "complete", "max_missing": "1%"}
FLOOR = {"name": "floor", "measure": "s", "at_least": 0.3}
NO_DROP = {"name": "no-drop", "measure": "s", "against": "base", "margin": 0.01}
NO_CRASH = {"name": "no-crash", "measure": "s", "against": "base", "max_query_drop": 0.4}


def write_scores(name: str, values: Mapping[str, object]) -> str:
    path = Path(f"{name}.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("query_id", "s"), *values.items()])
    return str(path)


def numbered(*values: object) -> dict[str, object]:
    return {f"q{number:03}": value for number, value in enumerate(values)}


def evaluate(
    models: Mapping[str, Any], gates: Sequence[Any] = (), *, date: str | None = None, **config: Any
) -> rankledger.Evaluation:
    outputs = {model: {"outputs": output} for model, output in models.items()}
    sections = {"name": "t", "datasets": {"d": {"scores": SCORE}}, "models": outputs, "suites": {}, "gates": [*gates]}
    return rankledger.evaluate_config(write_config(**sections | config), tracking=False, date=date)


def verdicts(evaluation: rankledger.Evaluation, model: str = "cand") -> dict[str, Verdict]:
    return {verdict.gate: verdict for verdict in evaluation.verdicts if verdict.model == model}


@pytest.mark.parametrize("left_out", [False, True])
def test_a_gate_does_not_judge_the_80_queries_that_have_a_score(left_out):
    """Of 200 queries `cand` has 80: 120 of 200 are missing. The other 80 are better, which tells nothing of all 200.

    It is the same if rows are left out.
    """
    base = write_scores("base", numbered(*[0.5] * 200))
    found = numbered(*[0.6] * 80, *[None] * 120)
    cand = write_scores("cand", {query: value for query, value in found.items() if value or not left_out})

    alone = verdicts(evaluate({"base": base, "cand": cand}, [FLOOR, NO_DROP, NO_CRASH]))
    first = verdicts(evaluate({"base": base, "cand": cand}, [COMPLETE, FLOOR]))

    for verdict in alone.values():
        assert (verdict.outcome, verdict.effect) == ("inconclusive", "stop")
        assert "on 80 of 200 queries" in verdict.reason
    assert (first["complete"].outcome, first["complete"].estimate) == ("fail", 0.6)
    assert first["floor"].outcome == "not evaluated"


@pytest.mark.parametrize(
    ("n_lacking", "share", "outcome"), [(2, "1%", "pass"), (3, "1%", "inconclusive"), (3, "1.5%", "pass")]
)
def test_a_key_sets_the_share_that_may_lack_a_score(n_lacking, share, outcome):
    """2 of 200 are 1%, 3 of 200 are 1.5%."""
    base = write_scores("base", numbered(*[0.5] * 200))
    cand = write_scores("cand", numbered(*[0.6] * (200 - n_lacking), *[None] * n_lacking))
    gates = [gate | {"max_unscored": share} for gate in (FLOOR, NO_DROP, NO_CRASH)]
    found = verdicts(evaluate({"base": base, "cand": cand}, gates)).values()
    assert [verdict.outcome for verdict in found] == [outcome] * 3
    assert all(f"on {200 - n_lacking} of 200 queries" in verdict.reason + verdict.details for verdict in found)


@pytest.mark.parametrize(("n_lacking", "outcome"), [(10, "fail"), (120, "inconclusive")])
def test_a_failure_that_no_score_could_mend_stays_one(n_lacking, outcome):
    """All scores drop from 1 to 0. If 10 of 200 lack one and gained 1 each, the mean still drops by 0.9; if 120 do, it
    gains 0.2. The mean of `cand` is at most 0.05, or 0.6, and 0.3 are asked for.
    """
    base = write_scores("base", {**numbered(*[1] * 200)})
    cand = write_scores("cand", numbered(*[0] * (200 - n_lacking), *[None] * n_lacking))
    found = verdicts(evaluate({"base": base, "cand": cand}, [FLOOR, NO_DROP]))
    assert [found[gate].outcome for gate in ("floor", "no-drop")] == [outcome] * 2


def test_a_crash_that_was_counted_fails_whatever_is_missing():
    """One query dropped by 0.5, and none may drop by more than 0.4: further scores could only add to it."""
    base = write_scores("base", numbered(*[0.5] * 200))
    cand = write_scores("cand", numbered(0, *[0.6] * 79, *[None] * 120))
    found = verdicts(evaluate({"base": base, "cand": cand}, [NO_CRASH]))
    assert (found["no-crash"].outcome, found["no-crash"].estimate) == ("fail", 1)


def test_a_query_that_no_model_has_a_score_of_is_missing():
    """Both judges failed on 20 of 40 samples: half of the scores that had to be given are not there."""
    values = numbered(*[1] * 20, *["NaN"] * 20)
    models = {name: write_scores(name, values) for name in ("base", "cand")}
    found = verdicts(evaluate(models, [COMPLETE | {"models": "*"}]))
    floor = verdicts(evaluate(models, [FLOOR]))["floor"]
    assert (found["complete"].outcome, found["complete"].estimate) == ("fail", 0.5)
    assert (floor.outcome, "on 20 of 40 queries" in floor.reason) == ("inconclusive", True)


def test_the_terminal_says_how_many_are_unscored(capsys):
    evaluation = evaluate({"cand": write_scores("cand", numbered(1, None, "nan", "unscored"))})
    assert str(evaluation.data_warnings[0]) == (
        "cand on d: 3 of 4 queries in the output have no score, and figures are of the others"
    )


@pytest.mark.parametrize("missing", ["skip", "empty"])
def test_rankings_without_output_leave_the_mean_only_if_they_are_skipped(missing):
    """Of 60 queries `cand` has 30, each with its relevant document first. Skipped, they leave the mean, which is 1; by
    the default they score 0, which the mean holds: 0.5.
    """
    queries = [f"q{number}" for number in range(60)]
    Path("qrels.tsv").write_text("query_id\tdoc_id\trelevance\n" + "".join(f"{query}\td1\t1\n" for query in queries))
    for model, own in {"base": queries, "cand": queries[:30]}.items():
        rows = "".join(f"{query}\td1\t2\n{query}\td2\t1\n" for query in own)
        Path(f"{model}.tsv").write_text("query_id\tdoc_id\tscore\n" + rows)
    gates = [gate | {"measure": "rr@2"} for gate in (FLOOR, NO_DROP, NO_CRASH)]

    found = verdicts(
        evaluate(
            {"base": "base.tsv", "cand": "cand.tsv"},
            gates,
            datasets={"d": {"judgments": "qrels.tsv"}},
            suites={"all": ["rr@2"]},
            conventions={"missing_queries": missing},
        )
    )

    if missing == "skip":
        assert {verdict.outcome for verdict in found.values()} == {"inconclusive"}
        assert all("on 30 of 60 queries" in verdict.reason for verdict in found.values())
    else:
        assert [verdict.outcome for verdict in found.values()] == ["pass", "fail", "fail"]


def promptfoo(*named: Mapping[str, float | None]) -> dict[str, str]:
    rows = [
        {
            "testIdx": number,
            "promptIdx": 0,
            "provider": {"id": "p"},
            "prompt": {"label": "p"},
            "success": True,
            "score": 1,
            "latencyMs": 1,
            "namedScores": scores,
            "failureReason": 0,
            "vars": {"q": number},
            "testCase": {"vars": {"q": number}},
        }
        for number, scores in enumerate(named)
    ]
    Path("r.json").write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": rows}, "config": {}}))
    return {"path": "r.json", "format": "promptfoo"}


@pytest.mark.parametrize(("absent", "share"), [({"s": None}, 0.5), ({}, 0.0)])
def test_a_score_that_a_sample_was_not_asked_for_is_not_missing(absent, share):
    output = promptfoo(*[{"s": 1.0}] * 30, *[absent] * 30)
    scores = {"d": {"scores": SCORE | {"pass": {"range": [0, 1]}}}}
    found = verdicts(evaluate({"cand": output}, [COMPLETE], datasets=scores))
    assert found["complete"].estimate == share


def night(number: int, values: Mapping[str, object], gates: Sequence[Any] = (), **config: Any) -> rankledger.Evaluation:
    date = f"2026-11-{number}"
    write_scores(f"{date}/cand", values)
    return evaluate({"cand": "{date}/cand.csv"}, gates, date=date, **config)


SELF = {"name": "self", "measure": "s", "against": "self@accepted", "margin": 0.05}


def test_queries_that_vanish_overnight_are_missing():
    """The last night had 100 queries, this one has the 50 that were right: 0.6 becomes 1, of half of the queries."""
    night(20, numbered(*[1] * 60, *[0] * 40))
    rankledger.accept("last", reason="checked", name="t")
    full, half = numbered(*[1] * 60, *[0] * 40), numbered(*[1] * 50)

    quiet = night(21, half)
    judged = verdicts(night(22, half, [FLOOR, SELF]))
    complete = verdicts(night(23, half, [COMPLETE, SELF]))

    assert (
        headline_of(quiet) == "CHANGE Not compared with the record of 20 Nov: 50 of its 100 queries have no score now."
    )
    warning = "50 queries of earlier evaluations gone, such as 'q050', 'q051', 'q052' of the night 2026-11-20"
    assert [str(found).partition(". ")[0] for found in quiet.data_warnings] == [f"d: {warning}"]
    assert {verdict.outcome for verdict in judged.values()} == {"inconclusive"}
    assert all("on 50 of 100 queries" in verdict.reason for verdict in judged.values())
    assert (complete["complete"].outcome, complete["complete"].estimate) == ("fail", 0.5)
    assert not night(24, full, [COMPLETE, FLOOR, SELF]).data_warnings


def test_a_bad_night_does_not_set_the_queries_of_the_next_one():
    """100 queries passed on the first night. The second and the third have 50, of which 50% are missing."""
    nights = [night(20 + number, numbered(*[1] * n), [COMPLETE]) for number, n in enumerate((100, 50, 50))]
    assert [verdicts(found)["complete"].estimate for found in nights] == [0.0, 0.5, 0.5]
    rankledger.accept("last", failed=True, reason="50 questions were withdrawn", name="t")
    assert verdicts(night(23, numbered(*[1] * 50), [COMPLETE]))["complete"].outcome == "pass"


@pytest.mark.parametrize("n_queries", [199, 201])
def test_no_figure_is_said_to_be_unchanged_if_its_queries_changed(n_queries):
    """Of 200 queries the first 100 are right. Without the last one the figure is 100 / 199, with one more 100 / 201."""
    values = [1] * 100 + [0] * 101
    night(20, numbered(*values[:200]))
    headline = headline_of(night(21, numbered(*values[:n_queries])))
    assert headline == "CHANGE No value changed on the queries of both since last night."


def test_with_a_queries_table_the_queries_are_those_of_the_table():
    table = Path("queries.csv")
    datasets = {"d": {"scores": SCORE, "queries": "queries.csv"}}
    table.write_text("query_id\n" + "".join(f"{query}\n" for query in numbered(*range(100))))
    night(20, numbered(*[1] * 100), [COMPLETE], datasets=datasets)
    table.write_text("query_id\n" + "".join(f"{query}\n" for query in numbered(*range(50))))

    evaluation = night(21, numbered(*[1] * 50), [COMPLETE], datasets=datasets)

    assert verdicts(evaluation)["complete"].estimate == 0
    assert not evaluation.data_warnings


def test_logs_are_of_different_users():
    """Each user saw one ranker on one night: no user is missing, and the gate compares the users of both logs."""

    def log(name: str, users: Sequence[int]) -> str:
        rows = "".join(f"u{user},{user % 2}\n" for user in users)
        Path(name).write_text("query_id,clicked\n" + rows)
        return name

    models = {"base": log("base.csv", range(100)), "cand": log("cand.csv", range(40, 140))}
    gates = [FLOOR | {"measure": "ctr"}, NO_DROP | {"measure": "ctr"}]
    evaluation = evaluate(models, gates, datasets={"d": {"logs": ["ctr"]}})

    assert {verdict.outcome for verdict in verdicts(evaluation).values()} == {"pass"}


def test_a_table_for_a_paper_names_what_a_model_lacks():
    complete = write_scores("base", numbered(*[0.5] * 200))
    partial = write_scores("cand", numbered(*[0.6] * 80, *[None] * 120))
    evaluation = evaluate({"base": complete, "cand": partial})

    text = rankledger.report(str(evaluation.record), form="latex")
    assert "cand has no score for 120 of 200 queries." in text
    assert "base has no" not in text
    alone = rankledger.report(str(evaluate({"cand": partial}).record), form="latex")
    assert "No model has a score for 120 of 200 queries." in alone


@pytest.mark.parametrize(
    ("second", "mark"), [([None, 1.0] * 50, "undefined on 50 of 100 queries"), ([0.0, 1.0] * 25, "queries changed")]
)
def test_a_history_names_queries_that_lost_their_score(second, mark, run_cli):
    for date, values in (("2026-11-01", [0.0, 1.0] * 50), ("2026-11-02", second)):
        evaluate({"cand": write_scores("cand", numbered(*values))}, date=date)
    printed = run_cli("history", "--name", "t", "--markdown").out
    first, last = (line for line in printed.splitlines() if "2026-11-0" in line and line.startswith("|"))
    assert mark in last
    assert "undefined" not in first


N_QUERIES = 100


def write_ranking(name: str, lengths: Sequence[int]) -> str:
    rows = [f"q{query}\td{rank}\t{-rank}\n" for query, length in enumerate(lengths) for rank in range(length)]
    Path(f"{name}.tsv").write_text("query_id\tdoc_id\tscore\n" + "".join(rows))
    return f"{name}.tsv"


def evaluate_lists(
    models: Mapping[str, Sequence[int]],
    measures: Sequence[str] = ("r@10",),
    relevant: Sequence[str] = ("d0", "d30"),
    dataset: Mapping[str, Any] | None = None,
    **config: Any,
) -> rankledger.Evaluation:
    rows = "".join(f"q{query}\t{doc}\t1\n" for query in range(N_QUERIES) for doc in relevant)
    Path("qrels.tsv").write_text("query_id\tdoc_id\trelevance\n" + rows)
    outputs = {model: {"outputs": write_ranking(model, lengths)} for model, lengths in models.items()}
    datasets = {"d": {"judgments": "qrels.tsv", **(dataset or {})}}
    path = write_config(datasets=datasets, models=outputs, suites={"all": [*measures]}, **config)
    return rankledger.evaluate_config(path, record=False, tracking=False)


def warnings(evaluation: rankledger.Evaluation) -> list[str]:
    return [str(warning).partition(". ")[0] for warning in evaluation.data_warnings]


def verdicts_by_gate(evaluation: rankledger.Evaluation) -> dict[str, Verdict]:
    return {verdict.gate: verdict for verdict in evaluation.verdicts}


@pytest.mark.parametrize(("n_short", "is_short"), [(1, False), (2, True)])
def test_more_than_1_percent_of_short_lists_is_too_much(n_short, is_short):
    """Of 100 lists of `full` all have 10 documents; of `cut` one or two have 9. The relevant one is first in both.

    So the recall is the same on every query, and it tells nothing if 2% of the lists were cut.
    """
    gates = [
        {"name": "drop", "models": "cut", "measure": "r@10", "against": "full", "margin": 0.01},
        {"name": "gain", "models": "full", "measure": "r@10", "against": "cut", "margin": 0.01},
        {"name": "crash", "models": "cut", "measure": "r@10", "against": "full", "max_query_drop": 0.4},
        {"name": "floor", "models": "cut", "measure": "r@10", "at_least": 0.3},
        {"name": "may", "models": "cut", "measure": "r@10", "against": "full", "margin": 0.01, "max_unscored": 0.02},
        {"name": "first", "models": "cut", "measure": "r@5", "against": "full", "margin": 0.01},
    ]
    lengths = [9] * n_short + [10] * (N_QUERIES - n_short)

    evaluation = evaluate_lists(
        {"full": [10] * N_QUERIES, "cut": lengths}, ["r@10", "r@5"], comparison={"baseline": "full"}, gates=gates
    )

    found = verdicts_by_gate(evaluation)
    expected = "inconclusive" if is_short else "pass"
    assert {gate: verdict.outcome for gate, verdict in found.items()} == {
        **dict.fromkeys(("drop", "gain", "crash", "floor"), expected),
        **dict.fromkeys(("may", "first"), "pass"),
    }
    said = f"{n_short} of 100 queries where full has enough have fewer than 10 documents, which r@10 asks for"
    assert warnings(evaluation) == ([f"cut on d: {said}"] if is_short else [])
    if is_short:
        assert "fewer than 10 documents on 2 of 100 queries on which full has enough" in found["drop"].reason
        assert "fewer than 10 documents on 2 of 100 queries on which full has enough" in found["gain"].reason


def test_removing_what_was_seen_cuts_a_list():
    """`pop` has 10 documents a user; the first of them was seen by 40 of 100 users. `fresh` has 10 others of each.

    40 lists of `pop` have 9 documents, so it cannot be compared by 10.
    """
    seen = "".join(f"q{query}\td0\n" for query in range(40))
    Path("seen.tsv").write_text("query_id\tdoc_id\n" + seen)
    gates = [{"name": "drop", "models": "pop", "measure": "r@10", "against": "fresh", "margin": 0.5}]
    dataset = {"interactions": "seen.tsv", "seen": "remove"}

    alone = evaluate_lists({"pop": [10] * N_QUERIES}, relevant=("d1", "d30"), dataset=dataset)
    both = evaluate_lists(
        {"fresh": [11] * N_QUERIES, "pop": [10] * N_QUERIES}, relevant=("d1",), dataset=dataset, gates=gates
    )

    assert warnings(alone) == ["pop on d: 40 of 100 queries have fewer than 10 documents, which r@10 asks for"]
    assert warnings(both) == [
        "pop on d: 40 of 100 queries where fresh has enough have fewer than 10 documents, which r@10 asks for"
    ]
    assert verdicts_by_gate(both)["drop"].outcome == "inconclusive"


@pytest.mark.parametrize("models", [("one",), ("one", "two")])
def test_runs_of_fewer_documents_than_the_cutoff_were_cut(models):
    """All lists have 20 documents, R@50 asks for 50, and a relevant document is at rank 31 of what was retrieved."""
    evaluation = evaluate_lists(dict.fromkeys(models, [20] * N_QUERIES), ["r@50", "r@20"])
    assert warnings(evaluation) == [
        f"{model} on d: 100 of 100 queries have fewer than 50 documents, which r@50 asks for" for model in models
    ]


def test_lists_that_lose_nothing_are_not_cut():
    """Lists of different lengths are those of a model that finds no more; a list with all relevant documents, and one
    with the whole catalogue, has nothing to lose.
    """
    Path("documents.tsv").write_text("doc_id\n" + "".join(f"d{number}\n" for number in range(20)))
    varied = [5 + query % 10 for query in range(N_QUERIES)]
    whole = [20] * N_QUERIES
    assert not warnings(evaluate_lists({"m": varied}, ["r@50"]))
    assert not warnings(evaluate_lists({"m": whole}, ["r@50"], relevant=("d0", "d19")))
    assert not warnings(evaluate_lists({"m": whole}, ["r@50"], dataset={"documents": "documents.tsv"}))

    lengths = [5, 10] * (N_QUERIES // 2)
    assert not warnings(evaluate_lists({"one": lengths, "two": lengths}, comparison={"baseline": "one"}))
