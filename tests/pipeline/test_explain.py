"""Scores taken apart: terms add up to what is reported, every document stands at its rank, and names are checked."""

import itertools
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

import rankledger
from rankledger.metrics.conventional_scores import has_expectation
from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.cli import app
from rankledger.pipeline.commands.explain import explain
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.dataset import DatasetInput, SingleQuery, read_dataset, read_output
from rankledger.pipeline.data.joined import QueryList
from rankledger.pipeline.explain import Explanation, ScoreTerm, ScoreTotal, compare
from rankledger.pipeline.explain import explain as take_apart
from rankledger.pipeline.report.explanation import as_data
from rankledger.pipeline.scoring import score
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from tests.metrics.variants import JUDGED_VARIANTS, VARIANTS, parsed
from tests.support.data_files import refusal, write
from tests.support.generated_data import (
    Collection,
    rating_collection,
    rows,
    search_collection,
    write_config,
    write_table,
)
from tests.support.manifests import forge

TREC_EVAL = PROFILES["trec_eval"]
WEB = search_collection(80, n_queries=24, models=("bm25", "dense"))
NEWS = search_collection(81, n_queries=9, models=("bm25", "dense"))
STARS = rating_collection(82, models=("bm25", "knn"))
RULES: dict[str, dict[str, object]] = {
    "as trec_eval": {},
    "best order": {"ties": "optimistic"},
    "worst order, cut": {"ties": "pessimistic", "depth": 7},
    "condensed": {"unjudged_documents": "condensed", "ties": "doc_id_asc", "score_precision": "float64"},
    "all orders, cut": {"ties": "expected", "depth": 5},
    "all orders, condensed": {"ties": "expected", "unjudged_documents": "condensed"},
    "negative is 0": {"negative_grades": "non_relevant", "ties": "input_order"},
    "undefined left out": {"undefined_queries": "skip", "missing_queries": "skip"},
}


Listed = Callable[[Conventions], QueryList]


# ---- the sum


def added_up(last: ScoreTotal, lines: tuple[ScoreTerm, ...]) -> float:
    """The score that the last line makes of the terms shown, added from the top down; NaN for a division by 0."""
    total = 0.0
    for line in lines:
        total += line.term or 0.0
    assert total == last.total
    value = last.scale * (total if last.rest is None else last.rest + total)
    if last.divisor is not None:
        value = value / last.divisor if last.divisor else float("nan")
    return float(np.sqrt(value)) if last.root else value


def probabilities(found: Collection) -> Collection:
    judged = {
        query_id: {doc_id: grade / 4 for doc_id, grade in grades.items()} for query_id, grades in found.judged.items()
    }
    return Collection(judged, found.outputs)


def write_inputs(folder: Path, found: Collection, *, subtopics: bool = False) -> tuple[DatasetInput, Source]:
    judged = rows(found.judged)
    (folder / "judged.tsv").write_text(
        "query_id\tdoc_id\trelevance\tsubtopic\n"
        + "".join(f"{query}\t{doc}\t{grade}\t{number % 3}\n" for number, (query, doc, grade) in enumerate(judged)),
        encoding="utf-8",
    )
    output = write_table(folder / "bm25.tsv", rows(found.outputs["bm25"]), "score")
    documents = write(folder / "documents.tsv", "doc_id\n" + "".join(f"d{number}\n" for number in range(2000)))
    judged = Source(str(folder / "judged.tsv"))
    source = PlannedDataset(judged, documents=Source(documents), subtopics=subtopics)
    return read_dataset(source, TREC_EVAL.conventions), Source(str(output))


@pytest.fixture(scope="module", params=["whole", "by subtopic", "probabilities"])
def searched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    folder = tmp_path_factory.mktemp("searched")
    of_probabilities = request.param == "probabilities"
    cuts = ("@1", "@1000")  # one term, or more than any list of 50 has: nothing to add up, or what no cutoff adds up
    cut = [text for text in JUDGED_VARIANTS if not text.endswith(cuts)]
    texts = [text for text in cut if ("probability" in text) == of_probabilities]
    if request.param == "by subtopic":
        texts = [text for text in texts if "subtopics" in parsed(text).metric.needs]
    found = probabilities(WEB) if of_probabilities else WEB
    return *write_inputs(folder, found, subtopics=request.param == "by subtopic"), texts


@pytest.mark.parametrize("rules", RULES)
def test_the_terms_of_every_measure_add_up_to_its_score(searched, rules):
    """For every ranking metric in every variant and an eighth of the queries, to the last bit of what is reported.

    Where that is undefined, so is the sum, or the conventions leave such queries out; and it is said why.
    """
    dataset, output, texts = searched
    profile = TREC_EVAL.with_conventions(**RULES[rules])
    joined = read_output(dataset, output, profile.conventions, with_catalogue=False)
    measures = [parsed(text) for text in texts]
    if profile.conventions.ties == "expected":
        measures = [measure for measure in measures if has_expectation(measure.metric, measure.arguments(4))]
    (scores,) = score({("web", "bm25"): joined}, {"web": measures}, profile, Workers(jobs=1))

    for column in range(list(RULES).index(rules), len(scores.query_ids), len(RULES)):  # every query once
        query_id = scores.query_ids[column]
        listed = SingleQuery(dataset, output, query_id, keep_first=False).listed(profile.conventions)
        for measure, reported in zip(measures, scores.values[:, column], strict=True):
            found = take_apart(listed, measure, profile, dataset="web", model="bm25")
            summed = added_up(found.sum, found.documents)
            if np.isnan(reported):
                assert found.outcome.value is None
                assert found.why
                assert found.why.startswith("where ")
            else:
                assert (found.outcome.value, found.why) == (reported, None)
                assert summed == reported, str(measure)


def test_no_ranking_metric_is_left_out_above():
    tested = {parsed(text).metric.name for text in JUDGED_VARIANTS}

    assert tested == {name for name in VARIANTS if Measure.parse(VARIANTS[name][0]).metric.input == "judged"}


def test_an_ideal_list_adds_up_to_the_divisor(searched):
    dataset, output, texts = searched
    measures = [parsed(text) for text in texts]
    seen = set()
    for query_id in dataset.judgments.query_ids[::4]:
        listed = SingleQuery(dataset, output, query_id, keep_first=False).listed(TREC_EVAL.conventions)
        for measure in measures:
            found = take_apart(listed, measure, TREC_EVAL, dataset="web", model="bm25")
            if found.ideal is not None:
                seen.add(measure.metric.name)
                total = 0.0
                for line in found.ideal:
                    total += line.term or 0.0
                assert total == pytest.approx(found.sum.divisor, rel=1e-12)
                assert [line.rank for line in found.ideal] == [*range(1, len(found.ideal) + 1)]
                grades = [line.grade for line in found.ideal if line.grade is not None]
                assert grades == sorted(grades, reverse=True)

    assert seen


# ---- by hand


def explain_small(folder: Path, qrels: str, output: str, measure: str, **options: Any) -> Explanation:
    write(folder / "qrels.txt", qrels)
    write(folder / "m.txt", output)
    config = "name: t\ndatasets: {web: {judgments: qrels.txt}}\nmodels: {m: {outputs: m.txt}}\nsuites: {s: [ap]}\n"
    path = write(folder / "config.yaml", config)
    return explain(path, model="m", query=options.pop("query", "q"), measure=measure, **options)


def hand_worked(folder: Path, measure: str, **options: Any) -> Explanation:
    """A query that judges a 3, b 2, c 1 and e 0, and of which b, c and a are retrieved at ranks 1, 2 and 4."""
    qrels = "q 0 a 3\nq 0 b 2\nq 0 c 1\nq 0 e 0\nr 0 a 0\n"
    output = "q Q0 b 1 4 m\nq Q0 c 2 3 m\nq Q0 x 3 2 m\nq Q0 a 4 1 m\n"
    return explain_small(folder, qrels, output, measure, **options)


def shown(lines: tuple[ScoreTerm, ...] | None) -> list[tuple[object, ...]]:
    def figure(value: float | bool | None) -> float | None:
        return None if value is None else round(float(value), 6)

    return [
        (line.rank, line.doc_id, line.grade, *map(figure, (*line.factors.values(), line.term, line.running)))
        for line in lines or ()
    ]


def test_ndcg_of_a_hand_worked_query(tmp_path):
    """b gains 2 / log2 2 = 2, c 1 / log2 3 = 0.630930, and a, at rank 4, 3 / log2 5 = 1.292030: together 3.922960.

    The ideal list, a, b, c, gains 3 + 2 / log2 3 + 1 / log2 4 = 4.761860, and 3.922960 / 4.761860 = 0.823829.
    """
    found = hand_worked(tmp_path, "ndcg@10")

    assert shown(found.documents) == [
        (1, "b", 2, 2, 1, 2, 2),
        (2, "c", 1, 1, 1.584963, 0.63093, 2.63093),
        (3, "x", None, None, None),
        (4, "a", 3, 3, 2.321928, 1.29203, 3.922959),
    ]
    assert shown(found.ideal) == [
        (1, "a", 3, 3, 1, 3, 3),
        (2, "b", 2, 2, 1.584963, 1.26186, 4.26186),
        (3, "c", 1, 1, 2, 0.5, 4.76186),
    ]
    assert [line.found_at for line in found.ideal or ()] == [(4, 4), (1, 1), (2, 2)]
    assert found.outcome.value == pytest.approx(0.823829, abs=1e-6)
    assert found.sum.divisor == pytest.approx(4.76186, abs=1e-5)
    assert (found.sum.rest, found.sum.scale, found.sum.root, found.n_retrieved) == (None, 1, False, 4)


def test_average_precision_of_a_hand_worked_query(tmp_path):
    """Precision is 1/1 at b, 2/2 at c and 3/4 at a: 2.75 over the 3 relevant documents is 0.916667."""
    found = hand_worked(tmp_path, "ap")

    assert shown(found.documents) == [
        (1, "b", 2, 1, 1, 1, 1),
        (2, "c", 1, 1, 1, 1, 2),
        (3, "x", None, None, None),
        (4, "a", 3, 1, 0.75, 0.75, 2.75),
    ]
    assert found.ideal is None
    assert (found.sum.total, found.sum.divisor) == (2.75, 3)
    assert found.outcome.value == 2.75 / 3
    assert found.outcome.counts_as == 2.75 / 3


@pytest.mark.parametrize(
    ("measure", "query", "undefined", "counts_as", "why"),
    [
        (
            "ndcg",
            "r",
            "zero",
            0.0,
            "the query has no judged document with positive gain (1 judged, the greatest grade 0;",
        ),
        ("ndcg", "r", "skip", None, "the query has no judged document with positive gain (1 judged, "),
        ("p@5", "r", "skip", None, "the query has no relevant document and such are skipped"),
        ("utility(d=1)", "q", "zero", 0.0, "`d` is not 0 and the size of the catalogue is not known"),
    ],
)
def test_an_undefined_score_says_why_and_what_it_counts_as(tmp_path, measure, query, undefined, counts_as, why):
    """The query r has one judged document, graded 0: there is nothing to divide by. The JSON is strict anyway."""
    chosen = [f"conventions.undefined_queries={undefined}"]
    found = hand_worked(tmp_path, measure, query=query, overrides=chosen)

    assert (found.outcome.value, found.outcome.counts_as) == (None, counts_as)
    assert found.why is not None
    assert found.why.startswith(f"where {why}")
    json.dumps(as_data(found), allow_nan=False)


def test_a_missing_query_that_is_skipped_is_left_out_of_the_mean(tmp_path):
    found = hand_worked(tmp_path, "num_ret", query="r", overrides=["conventions.missing_queries=skip"])

    assert (found.outcome.value, found.outcome.counts_as) == (0.0, None)


def test_the_mean_over_all_orders_is_shown_document_by_document(tmp_path):
    """Of a and x, tied at ranks 1 and 2, a (grade 1) adds the mean of 1 and 1 / log2 3: 0.815465."""
    qrels, output = "q 0 a 1\n", "q Q0 a 1 1 m\nq Q0 x 2 1 m\n"
    tied = ["conventions.ties=expected"]
    found = explain_small(tmp_path, qrels, output, "dcg@5", overrides=tied)

    assert shown(found.documents) == [(None, "a", 1, 0.815465, 0.815465), (None, "x", None, None, None)]
    assert [line.ties for line in found.documents] == [(1, 2), (1, 2)]


def test_rating_errors_of_a_hand_worked_user(tmp_path):
    """Errors of 1 and -2 square to 1 and 4: √(5 / 2) = 1.581139, and the mean absolute error is 3 / 2."""
    stars = Collection({"u": {"a": 3, "b": 4, "c": 1}}, {"m": {"u": {"a": 4, "b": 2, "z": 5}}}, "ratings")
    config = write_config(tmp_path, {"stars": stars}, {"s": ["rmse"]})
    found = {name: explain(config, model="m", query="u", measure=name) for name in ("rmse", "mse", "mae")}

    assert found["rmse"].outcome.value == pytest.approx(1.581139, abs=1e-6)
    assert (found["mse"].outcome.value, found["mae"].outcome.value) == (2.5, 1.5)
    lines = {name: {(line.doc_id, line.term) for line in one.documents} for name, one in found.items()}
    assert lines == {"rmse": {("a", 1.0), ("b", 4.0)}, "mse": {("a", 1.0), ("b", 4.0)}, "mae": {("a", 1.0), ("b", 2.0)}}
    factors = {line.doc_id: dict(line.factors) for line in found["rmse"].documents}
    assert factors["b"] == {"rating": 4.0, "prediction": 2.0, "error": -2.0}
    for measured in found.values():
        assert added_up(measured.sum, measured.documents) == measured.outcome.value


@pytest.mark.parametrize("text", ["rmse", "mse", "mae", "rmse(average=query)"])
def test_rating_errors_of_any_user_add_up(tmp_path, text):
    config = write_config(tmp_path, {"stars": STARS}, {"s": [text]})
    evaluation = rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs")
    reported = evaluation.scores.set_index(["model", "query_id"])[text]

    for (model, query_id), value in reported.items():
        found = explain(config, model=model, query=query_id, measure=text)
        if np.isnan(value):
            assert (found.outcome.value, found.outcome.counts_as, found.documents) == (None, None, ())
        else:
            assert found.outcome.value == value
            assert added_up(found.sum, found.documents) == value


# ---- the places of documents


@pytest.mark.parametrize("ties", ["doc_id_desc", "doc_id_asc", "input_order", "optimistic", "pessimistic", "expected"])
@pytest.mark.parametrize("depth", [None, 4])
def test_every_rank_at_the_head_has_one_document(tmp_path, ties, depth):
    """Down to the list's end, to its depth or to rank 20, each rank has the one document that is there, judged or not.

    Within a group of equal scores each order is possible, but every document stays in its group.
    """
    dataset, output = write_inputs(tmp_path, WEB)
    profile = TREC_EVAL.with_conventions(ties=ties, depth=depth)
    for query_id in sorted(WEB.judged)[::2]:
        listed = SingleQuery(dataset, output, query_id, keep_first=False).listed(profile.conventions)
        found = take_apart(listed, Measure.parse("p"), profile, dataset="web", model="bm25")
        last = min(len(listed.retrieved), depth or 20, 20)
        groups = dict(zip(listed.retrieved, listed.ties, strict=True))
        head = [line for line in found.documents if line.place <= last]

        for line in head:
            first, end = groups[line.doc_id]
            assert line.ties == ((first, end) if end > first else None)
            assert line.rank is None if ties == "expected" and line.ties else first <= line.rank <= end
            assert line.grade == WEB.judged[query_id].get(line.doc_id)
        if ties == "expected":
            certain = {doc_id for doc_id in listed.retrieved[:last] if groups[doc_id][1] <= last}
            assert {line.doc_id for line in head} >= certain
        else:
            assert [line.rank for line in head] == [*range(1, last + 1)]
            assert len({line.doc_id for line in head}) == last


def test_the_best_and_the_worst_order_move_what_is_not_judged(tmp_path):
    qrels, output = "q 0 b 1\n", "q Q0 a 1 1 m\nq Q0 b 2 1 m\nq Q0 c 3 1 m\n"
    orders = {}
    for ties in ("optimistic", "doc_id_desc", "pessimistic"):
        chosen = [f"conventions.ties={ties}"]
        found = explain_small(tmp_path, qrels, output, "rr", overrides=chosen)
        orders[ties] = [line.doc_id for line in found.documents]

    assert orders == {"optimistic": ["b", "c", "a"], "doc_id_desc": ["c", "b", "a"], "pessimistic": ["c", "a", "b"]}


def test_a_condensed_list_has_no_document_without_judgment(tmp_path):
    found = hand_worked(tmp_path, "ap", overrides=["conventions.unjudged_documents=condensed"])

    assert [(line.rank, line.doc_id) for line in found.documents] == [(1, "b"), (2, "c"), (3, "a")]
    assert (found.n_retrieved, found.n_condensed) == (3, 1)


def test_ideal_documents_of_equal_grade_stand_as_in_the_ranking(tmp_path):
    """Of four documents graded 1 the ranking has d and b: the ideal list has d, b, then by id those it lacks."""
    qrels, output = "".join(f"q 0 {name} 1\n" for name in "cbad"), "q Q0 d 1 2 m\nq Q0 b 2 1 m\n"
    found = explain_small(tmp_path, qrels, output, "ndcg")

    assert [line.doc_id for line in found.ideal or ()] == ["d", "b", "a", "c"]
    assert [line.found_at for line in found.ideal or ()] == [(1, 1), (2, 2), None, None]


# ---- another profile

TEXTS = ("ndcg@5", "ap@5", "bpref", "err@10", "iprec(recall=0.7)", "rbp", "p@5", "judged@5", "kendall_distance", "fn")


@pytest.fixture(scope="module")
def joins(tmp_path_factory: pytest.TempPathFactory) -> list[Listed]:
    """Three queries, each as any conventions have it joined; it is joined once for each, whatever it is asked for."""
    whole = write_inputs(tmp_path_factory.mktemp("whole"), WEB)
    queries = sorted(WEB.judged)[::8]
    return [cache(SingleQuery(*whole, query_id, keep_first=False).listed) for query_id in queries]


@pytest.mark.parametrize(("own", "other"), [*itertools.permutations(PROFILES, 2)])
def test_the_choices_of_a_profile_come_to_its_score(joins, own, other):
    """All choices made one after the other give the score under the other profile, for every pair of profiles.

    One that is said to make no difference makes none alone, and none when it is left out of all.
    """
    for listed in joins:
        for text in TEXTS:
            measure = Measure.parse(text, PROFILES[own])
            found = compare(listed, measure, PROFILES[own], PROFILES[other])
            before = outcome_of(listed, text, own)
            assert found.outcome == outcome_of(listed, text, other)
            for choice in found.idle:
                assert choice.alone.same_as(before)
                assert choice.all_others.same_as(found.outcome)
            for choice in found.choices:
                assert not (choice.alone.same_as(before) and choice.all_others.same_as(found.outcome))
            for choice in (*found.choices, *found.idle):
                assert choice.own != choice.other
                assert choice.because.startswith((f"{own}: ", f"{other}: "))


@cache
def outcome_of(listed: Listed, text: str, name: str) -> Any:
    profile = PROFILES[name]
    empty = profile.with_conventions(missing_queries="empty", ties=profile.conventions.ties)
    found = listed(empty.conventions)
    if profile.conventions.missing_queries == "error" and not found.retrieved:
        return compare(listed, Measure.parse(text, profile), profile, profile).outcome
    if profile.conventions.negative_grades == "error" and min(found.grades) < 0:
        return compare(listed, Measure.parse(text, profile), profile, profile).outcome
    return take_apart(found, Measure.parse(text, profile), profile, dataset="web", model="bm25").outcome


def test_the_choice_that_makes_the_difference_is_named(tmp_path):
    """b (grade 1) and c, without judgment, are tied: c is above by its id, b by its row; nothing else matters here."""
    qrels, output = "q 0 b 1\n", "q Q0 b 1 1 m\nq Q0 c 2 1 m\n"
    found = explain_small(tmp_path, qrels, output, "rr", under="ranx")
    comparison = found.comparison
    assert comparison is not None

    assert (found.outcome.value, comparison.outcome.value) == (0.5, 1.0)
    (choice,) = comparison.choices
    assert (choice.name, choice.own, choice.other) == ("ties", "doc_id_desc", "input_order")
    assert (choice.alone.value, choice.all_others.value) == (1.0, 0.5)
    assert choice.because.startswith("ranx: argsort")
    assert [choice.name for choice in comparison.idle] == ["score_precision", "missing_queries", "negative_grades"]


def test_a_default_of_a_parameter_is_a_choice(tmp_path):
    """gdeval's exponential gain: (3 + 1 / log2 3 + 7 / log2 5) / (7 + 3 / log2 3 + 1 / 2) = 6.645666 / 9.392789."""
    found = hand_worked(tmp_path, "ndcg@10", under="gdeval")
    comparison = found.comparison
    assert comparison is not None

    (choice,) = comparison.choices
    assert (choice.name, choice.own, choice.other) == ("gain", "linear", "exponential")
    assert choice.alone.value == comparison.outcome.value == pytest.approx(0.707528, abs=1e-5)
    assert choice.because.startswith("gdeval: dcg adds 2**grade - 1")


def test_a_parameter_that_is_written_is_no_choice(tmp_path):
    """The measure names its gain, which holds under any profile."""
    found = hand_worked(tmp_path, "ndcg(gain=linear)@10", under="gdeval")

    assert found.comparison is not None
    assert found.comparison.choices == ()
    assert found.comparison.outcome == found.outcome


def test_the_rounding_of_the_last_digit_is_no_difference(tmp_path):
    """With one relevant document, graded 2, nDCG is 1 / log2 5 whatever its gain: 2 / log2 5 / 2 and 3 / log2 5 / 3."""
    qrels, output = "q 0 a 2\n", "q Q0 x 1 4 m\nq Q0 y 2 3 m\nq Q0 z 3 2 m\nq Q0 a 4 1 m\n"
    found = explain_small(tmp_path, qrels, output, "ndcg", under="gdeval")
    comparison = found.comparison
    assert comparison is not None

    assert comparison.outcome != found.outcome
    assert comparison.outcome.same_as(found.outcome)
    assert comparison.choices == ()


def test_a_choice_that_matters_with_others_alone_is_named(tmp_path):
    """Tied are n (grade -1) and z (grade 1): z is above by its id, n by its row, and n is judged under ranx alone.

    For bpref z is worth 1 unless a document that is judged non-relevant stands above it: that takes both choices.
    """
    qrels, output = "q 0 z 1\nq 0 n -1\n", "q Q0 n 1 1 m\nq Q0 z 2 1 m\n"
    found = explain_small(tmp_path, qrels, output, "bpref", under="ranx")
    comparison = found.comparison
    assert comparison is not None

    assert (found.outcome.value, comparison.outcome.value) == (1.0, 0.0)
    assert {choice.name: choice.alone.value for choice in comparison.choices} == {"ties": 1.0, "negative_grades": 1.0}


@pytest.mark.parametrize(
    ("under", "query", "refused"), [("sklearn", "n", "a negative grade"), ("ranx", "r", "a query without output")]
)
def test_what_the_other_profile_refuses_is_said(tmp_path, under, query, refused):
    """There is no score under it, and the choice that refuses is named."""
    qrels, output = "n 0 a -1\nn 0 b 1\nr 0 a 1\n", "n Q0 b 1 1 m\n"
    found = explain_small(tmp_path, qrels, output, "ap", query=query, under=under)

    assert found.comparison is not None
    assert found.comparison.outcome.refused == refused
    assert [choice.alone.refused for choice in found.comparison.choices] == [refused]


# ---- configs and records


SUITES = {"search": ["ndcg@5,10", "ap", "bpref", "err", "kendall_tau", "rbp(p=0.9)", "fn"], "stars": ["rmse", "mae"]}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_config(Path("configs"), {"web": WEB, "news": NEWS, "stars": STARS}, SUITES)


@pytest.fixture
def record(config: Path) -> Path:
    return rankledger.evaluate_config(config, tracking=False).record


def test_a_record_has_the_scores_that_are_explained(record):
    n_explained = 0
    for row in parquet.read_table(record / "scores.parquet").to_pylist()[::13]:
        dataset, model, query_id, _ = (row.pop(name) for name in ("dataset", "model", "query_id", "missing"))
        for measure, value in row.items():
            if value is not None and "." not in measure.rpartition(")")[2]:
                found = explain(record, model=model, query=query_id, measure=measure, dataset=dataset)
                assert found.outcome.value == (None if np.isnan(value) else value)
                assert found.recorded is not None
                assert (found.recorded.measured, found.recorded.same_definition) == (True, True)
                n_explained += 1

    assert n_explained > 35


def test_a_record_is_found_by_its_id(record):
    query = min(WEB.judged)
    found = explain(record.name, model="bm25", query=query, measure="p@3", dataset="web")

    assert found.recorded is not None
    assert (found.recorded.evaluation_id, found.recorded.measured) == (record.name, False)
    today = explain("configs/config.yaml", model="bm25", query=query, measure="p@3", dataset="web")
    assert found.outcome == today.outcome


def test_a_record_that_was_moved_keeps_its_id(record, monkeypatch):
    """Its id is what its manifest says, and not what its folder is called, `.` least of all."""
    moved = record.rename(record.with_name("kept"))
    monkeypatch.chdir(moved)
    found = explain(".", model="bm25", query=min(WEB.judged), measure="ap", dataset="web")

    assert found.recorded is not None
    assert found.recorded.evaluation_id == record.name


def test_inputs_that_moved_are_found_in_the_folder_that_is_named(record):
    names = {"model": "bm25", "query": min(WEB.judged), "measure": "ap", "dataset": "web"}
    before = explain(record.name, **names)
    Path("configs/web").rename("moved")
    Path("moved/dense.txt").unlink()

    with pytest.raises(InputError) as refused:
        explain(record.name, **names)
    assert [line.partition(" (")[0] for line in refused.value.lines] == [
        "judgments of web: configs/web/judged.txt",
        "bm25 on web: configs/web/bm25.txt",
    ]
    assert all(line.endswith("name the folder that it moved to with --inputs") for line in refused.value.lines)

    assert explain(record.name, **names, inputs="moved").outcome == before.outcome
    with pytest.raises(InputError, match="--inputs is for records"):
        explain("configs/config.yaml", **names, inputs="moved")


def test_a_record_needs_neither_variables_nor_dates_nor_secrets(config, monkeypatch):
    written = yaml.safe_load(config.read_text(encoding="utf-8"))
    written["datasets"] = {"web": {"judgments": "${PLACE}/judged.txt"}}
    written["models"] = {"bm25": {"outputs": "web/bm25.{date}.txt"}}
    written["suites"] = {"search": ["ap"]}
    written["tracking"] = {"uri": "https://user:${SECRET}@example.invalid"}
    config.write_text(yaml.safe_dump(written), encoding="utf-8")
    Path("configs/web/bm25.txt").rename("configs/web/bm25.2026-11-20.txt")
    monkeypatch.setenv("PLACE", "web")
    monkeypatch.setenv("SECRET", "word")
    record = rankledger.evaluate_config(config, tracking=False, date="2026-11-20").record
    monkeypatch.delenv("PLACE")
    monkeypatch.delenv("SECRET")

    assert explain(record, model="bm25", query=min(WEB.judged), measure="ap").recorded is not None


@pytest.mark.parametrize("name", ["judged", "bm25"])
def test_a_changed_file_is_refused(record, name):
    for changed, refused in ((f"configs/web/{name}.txt", True), ("configs/web/dense.txt", False)):
        path = Path(changed)
        before = path.read_bytes()
        path.write_bytes(before + before[: before.index(b"\n") + 1].replace(b" 1 ", b" 2 ").replace(b" 0 ", b" 0 new"))
        if refused:
            message = refusal(explain, record, model="bm25", query=min(WEB.judged), measure="ap", dataset="web")
            assert message.startswith(f"{changed}: has changed (sha256 ")
        else:
            explain(record, model="bm25", query=min(WEB.judged), measure="ap", dataset="web")
        path.write_bytes(before)


def test_another_score_in_the_record_is_an_error(record):
    table = parquet.read_table(record / "scores.parquet")
    column = table.schema.get_field_index("ap")
    sink = pa.BufferOutputStream()
    parquet.write_table(table.set_column(column, "ap", pa.array([0.25] * len(table))), sink)
    forge(record, "scores.parquet", sink.getvalue().to_pybytes())
    query = min(WEB.judged)
    value = explain("configs/config.yaml", model="bm25", query=query, measure="ap", dataset="web").outcome.value
    message = refusal(explain, record, model="bm25", query=query, measure="ap", dataset="web")

    assert f"is 0.25 in scores.parquet and comes to {value!r} now" in message
    assert "of the same definition" in message


def test_another_definition_in_the_record_is_said(record):
    manifest = json.loads((record / "manifest.json").read_text(encoding="utf-8"))
    manifest["definitions"]["ap"]["fingerprint"] = "0" * 16
    (record / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    found = explain(record, model="bm25", query=min(WEB.judged), measure="ap", dataset="web")

    assert found.recorded is not None
    assert not found.recorded.same_definition


def test_an_output_that_was_refused_is_not_explained_from_the_record(config):
    path = Path("configs/web/bm25.txt")
    before = path.read_bytes()
    path.unlink()
    record = rankledger.evaluate_config(config, tracking=False).record
    path.write_bytes(before)
    message = refusal(explain, record, model="bm25", query=min(WEB.judged), measure="ap", dataset="web")

    assert message == f"{record}: 'bm25' was not evaluated on 'web', for its output was refused"


def test_nothing_else_is_read(config):
    written = yaml.safe_load(config.read_text(encoding="utf-8"))
    written["datasets"]["web"] |= {"queries": "none.tsv", "documents": "none.tsv"}
    config.write_text(yaml.safe_dump(written), encoding="utf-8")
    Path("configs/web/dense.txt").unlink()
    query = min(WEB.judged)

    assert explain(config, model="bm25", query=query, measure="ap", dataset="web").outcome.value is not None
    message = refusal(explain, config, model="bm25", query=query, measure="tn", dataset="web")
    assert message == "configs/none.tsv: file not found; check the path"


def test_the_dataset_is_the_one_that_judges_the_query(config):
    only = sorted(WEB.judged.keys() - NEWS.judged.keys())[0]
    both = sorted(WEB.judged.keys() & NEWS.judged.keys())[0]

    assert explain(config, model="bm25", query=only, measure="ap").dataset == "web"
    assert explain(config, model="bm25", query="u0", measure="rmse").dataset == "stars"
    assert explain(config, model="bm25", query=both, measure="ap", dataset="news").dataset == "news"
    assert refusal(explain, config, model="bm25", query=both, measure="ap") == (
        f"the query {both!r} is judged in web, news; name one with --dataset"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "bm52"}, "unknown model 'bm52'; did you mean 'bm25'?"),
        ({"query": "q00"}, "the query 'q00' is not judged in web, news; did you mean 'q0'?"),
        ({"query": "none", "dataset": "web"}, "the query 'none' is not judged in web"),
        ({"measure": "ndgc@10"}, "unknown metric 'ndgc@10'; did you mean 'ndcg@10'?"),
        ({"measure": "ndcg@5,10"}, "'ndcg@5,10' is 2 measures, ndcg@5, ndcg@10; write one"),
        ({"dataset": "wbe"}, "unknown dataset 'wbe'; did you mean 'web'?"),
        ({"under": "ranks"}, "unknown profile 'ranks'; did you mean 'ranx'?"),
        (
            {"dataset": "stars"},
            "ap is for rankings, and the dataset 'stars' has ratings; name another measure or dataset",
        ),
        ({"model": "knn"}, "ap is for rankings, and the dataset 'stars' has ratings; name another measure or dataset"),
        ({"model": "knn", "dataset": "web"}, "the model 'knn' is not evaluated on web; name another"),
        ({"measure": "tn"}, "tn needs documents, and the dataset 'web' has none; name another measure or dataset"),
        ({"measure": "strec@5"}, "strec@5 needs subtopics, and the dataset 'web' has none; name another measure or "),
        ({"measure": "item_coverage@5"}, "item_coverage@5 is one figure of the whole dataset; there is no score of a "),
        ({"measure": "novelty@5"}, "novelty@5 uses more than judgments and ranks; it cannot be explained"),
        ({"measure": "p_mrr(model=dense)"}, "p_mrr(model=dense) uses more than judgments and ranks; it cannot be "),
        ({"measure": "robustness@5"}, "robustness@5 uses more than judgments and ranks; it cannot be explained"),
        ({"measure": "r2"}, "r2 is not a sum over the pairs of a query; explain mae, mse, rmse, log_loss, brier"),
        ({"measure": "rmse", "under": "ranx"}, "rmse is for ratings, which no convention changes; remove --under"),
        ({"measure": "err(max_grade=2)"}, "web: err(max_grade=2): a judgment has grade "),
    ],
    ids=str,
)
def test_what_is_unknown_is_refused(config, given, said):
    names = {"model": "bm25", "query": "q0", "measure": "ap"} | given
    if "max_grade" in names["measure"]:
        names["query"] = next(query for query, grades in sorted(WEB.judged.items()) if max(grades.values()) == 4)
        names["dataset"] = "web"

    assert refusal(explain, config, **names).startswith(said)


def test_neither_config_nor_record_is_refused(config):
    assert refusal(explain, "nothing", model="m", query="q", measure="ap") == (
        "nothing: there is no such config, and no record of that id in runs/records"
    )
    record = rankledger.evaluate_config(config, tracking=False).record
    message = refusal(explain, record, model="m", query="q", measure="ap", overrides=["seed=1"])
    assert message == f"{record}: a record is explained as it was evaluated; remove --set and --date"


# ---- the command


def test_the_command_prints_the_arithmetic(config, capsys):
    query = min(WEB.judged)
    app.main(["explain", str(config), "--model", "bm25", "--query", query, "--measure", "ap", "--dataset", "web"])
    printed = capsys.readouterr()

    assert printed.err == ""
    assert printed.out.startswith(f"bm25 on web, query {query}: ap = ")


def test_two_models_are_explained_side_by_side(config, capsys):
    query = min(WEB.judged)
    both = explain(config, model="bm25", against="dense", query=query, measure="ap", dataset="web")
    alone = [explain(config, model=model, query=query, measure="ap", dataset="web") for model in ("bm25", "dense")]

    assert as_data(both) == as_data(alone[0]) | {"against": as_data(alone[1])}
    with pytest.raises(InputError, match="'bm25' is named twice; name another one to compare it with"):
        explain(config, model="bm25", against="bm25", query=query, measure="ap")
    command = ["explain", str(config), "--query", query, "--measure", "ap", "--dataset", "web"]
    models = ["--model", "bm25", "--model", "dense"]
    app.main([*command, *models, "--json"])
    assert json.loads(capsys.readouterr().out)["against"]["model"] == "dense"
    with pytest.raises(SystemExit) as ended:
        app.main([*command, *models, "--model", "bm25"])
    assert ended.value.code == 2
    assert "found 3 models; name one, or two to see side by side" in capsys.readouterr().err


def test_the_command_prints_json_and_markdown(config, capsys):
    query = min(WEB.judged)
    words = ["explain", str(config), "--model", "bm25", "--query", query, "--measure", "ap", "--dataset", "web"]
    app.main([*words, "--json", "--under", "ranx"])
    found = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(word))
    app.main([*words, "--markdown"])
    marked = capsys.readouterr().out

    expected = explain(config, model="bm25", query=query, measure="ap", dataset="web")
    assert found["value"] == expected.outcome.value
    assert [line["term"] for line in found["documents"]] == [line.term for line in expected.documents]
    assert found["under"]["profile"] == "ranx"
    assert marked.startswith("### bm25 on web, query ")


def test_the_command_refuses_in_one_line(config, capsys):
    with pytest.raises(SystemExit) as ended:
        app.main(["explain", str(config), "--model", "bm52", "--query", "q0", "--measure", "ap"])
    printed = capsys.readouterr()

    assert ended.value.code == InputError.exit_code
    assert (printed.out, printed.err) == ("", "unknown model 'bm52'; did you mean 'bm25'?\n")
