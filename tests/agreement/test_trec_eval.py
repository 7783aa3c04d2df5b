"""The whole pipeline against other arithmetic: trec_eval's C code on generated files, and rating errors by hand."""

import math
from functools import cache

import numpy as np
import pytest
import pytrec_eval

import rankledger
from rankledger.metrics.measure import Measure
from rankledger.pipeline.record.evaluation import Evaluation
from tests.agreement.cases import assert_agree
from tests.support.generated_data import Collection, search_collection, write_config

TOOL = "trec_eval 9.0.4"

SEEDS = range(3)
FIGURES = 73  # that pytrec_eval gives for one query at one relevance level
RELEVANCE_LEVELS = (1, 2)
MEASURES = {
    *("P.1,3,5,10,30", "recall.1,3,5,10,30", "map", "map_cut.1,3,5,10,30", "ndcg", "ndcg_cut.1,3,5,10,30"),
    *("recip_rank", "Rprec", "bpref", "iprec_at_recall", "11pt_avg", "set_P", "set_recall", "set_F"),
    *("success.1,3,5,10", "num_rel_ret", "num_ret", "num_rel", "num_nonrel_judged_ret", "utility", "set_map"),
    *("gm_map", "gm_bpref", "infAP", "G", "binG", "Rndcg", "ndcg_rel", "relative_P.1,3,5,10,30", "set_relative_P"),
    "Rprec_mult",
}
OF_ANY_LEVEL = {"ndcg", "ndcg_rel", "g", "num_ret"}


Figures = dict[tuple[str, str], dict[tuple[str, int], dict[str, float]]]
"""What the program gives: by model and our measure, by its name and relevance level, the value of each query."""


@pytest.fixture(scope="module", params=SEEDS)
def collection(request: pytest.FixtureRequest) -> Collection:
    return search_collection(request.param, n_queries=60)


@cache
def measure_of(name: str, level: int) -> str:
    measure = Measure.parse(name)  # whose alias would be found out by other figures
    metric = measure.metric
    if metric.name in OF_ANY_LEVEL or "rel" not in metric.parameters:
        return str(measure)
    parameters = ",".join([*(f"{parameter}={value}" for parameter, value in measure.given), f"rel={level}"])
    return str(Measure.parse(f"{metric.name}({parameters}){'' if measure.k is None else f'@{measure.k}'}"))


@pytest.fixture(scope="module")
def program(collection: Collection) -> Figures:
    found: Figures = {}
    for model, ranking in collection.outputs.items():
        for level in RELEVANCE_LEVELS:
            evaluator = pytrec_eval.RelevanceEvaluator(collection.judged, MEASURES, relevance_level=level)
            for query_id, values in evaluator.evaluate(ranking).items():
                assert len(values) == FIGURES
                for name, value in values.items():
                    figures = found.setdefault((model, measure_of(name, level)), {})
                    figures.setdefault((name, level), {})[query_id] = value
    return found


@pytest.fixture(scope="module")
def evaluation(collection: Collection, program, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    folder = tmp_path_factory.mktemp("agreement")
    measures = list(dict.fromkeys(measure for _, measure in program))
    config = write_config(folder, {"made": collection}, {"trec": measures}, rng=np.random.default_rng(0), report=False)
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs")


def test_every_query_scores_what_the_program_gives(collection, program, evaluation):
    scores = evaluation.scores.set_index(["model", "query_id"]).fillna(0.0)
    compared = 0
    for (model, measure), names in program.items():
        for figures in names.values():
            found = Measure.parse(measure).aggregation.forward(scores.loc[model][measure]).to_dict()
            ours = {query_id: {measure: found[query_id]} for query_id in figures}
            assert_agree(ours, {query_id: {measure: value} for query_id, value in figures.items()}, at_least=40)
            compared += len(figures)

    n_answered = sum(len(collection.judged.keys() & output.keys()) for output in collection.outputs.values())
    assert compared == n_answered * FIGURES * len(RELEVANCE_LEVELS)


def test_a_query_without_output_scores_0_or_is_undefined(collection, evaluation):
    scores = evaluation.scores.set_index(["model", "query_id"])
    for model, output in collection.outputs.items():
        lost = sorted(collection.judged.keys() - output.keys())
        assert lost
        others = scores.loc[model].loc[lost].drop(columns=["dataset", "num_rel(rel=1)", "num_rel(rel=2)"])
        assert (others.fillna(0.0) == 0).all(axis=None)


def test_the_mean_is_that_of_the_program_with_c(collection, program, evaluation):
    """A figure is the sum of trec_eval's over the number of judged queries, answered or not, to 1e-9.

    A query without output adds 0; to a geometric mean the logarithm of 0.00001; to `num_rel` its relevant documents.
    """
    estimates = {(line.model, line.measure): line for line in evaluation.estimates}

    assert estimates.keys() == program.keys()
    for (model, measure), names in program.items():
        line = estimates[model, measure]
        lost = collection.judged.keys() - collection.outputs[model].keys()
        for (name, level), figures in names.items():
            added = [len(lost) * math.log(1e-5)] if name.startswith("gm_") else []
            if name == "num_rel":
                added = [grade >= level for query_id in lost for grade in collection.judged[query_id].values()]
            mean = math.fsum([*figures.values(), *added]) / len(collection.judged)
            assert line.estimate == pytest.approx(math.exp(mean) if name.startswith("gm_") else mean, abs=1e-9)
        assert line.n_queries == len(collection.judged)
        assert line.n_missing == len(lost)


def test_undefined_queries_are_counted(collection, evaluation):
    estimates = {(line.model, line.measure): line for line in evaluation.estimates}
    for level in RELEVANCE_LEVELS:
        without = sum(max(grades.values()) < level for grades in collection.judged.values())
        assert without > 0
        for model in collection.outputs:
            assert estimates[model, f"ap(rel={level})"].n_undefined == without
            assert estimates[model, f"p(rel={level})@10"].n_undefined == 0


def test_the_collections_hold_the_hard_cases():
    """Without ties, negative grades, unanswered and unjudged queries and odd ids, agreement would prove little."""
    for seed in SEEDS:
        made = search_collection(seed, n_queries=60)
        grades = {grade for values in made.judged.values() for grade in values.values()}
        assert grades == {-2, -1, 0, 1, 2, 3, 4}
        assert any(max(values.values()) < 1 for values in made.judged.values())
        for output in made.outputs.values():
            assert made.judged.keys() - output.keys()
            assert output.keys() - made.judged.keys()
            both = made.judged.keys() & output.keys()
            assert any(output[q].keys() - made.judged[q].keys() for q in both)
            assert any(made.judged[q].keys() - output[q].keys() for q in both)
            assert sum(len(set(values.values())) < len(values) for values in output.values()) > 10
            assert any(
                len(set(map(np.float32, values.values()))) < len(set(values.values())) for values in output.values()
            )
            assert not all(doc_id.isascii() for values in output.values() for doc_id in values)
        assert not all(query_id.isascii() for query_id in made.judged)


RATINGS = {"ann": {"a": 4, "b": 2}, "bob": {"a": 5, "c": 1, "d": 3}, "eve": {"a": 3}}
PREDICTIONS = {"bob": {"d": 5, "c": 1}, "ann": {"a": 3, "b": 2.5, "z": 9}, "joe": {"a": 1}}


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    folder = tmp_path_factory.mktemp("rated")
    errors = ["rmse", "rmse(average=query)", "mae", "mae(average=query)", "mse"]
    stars = Collection(RATINGS, {"knn": PREDICTIONS}, "ratings")
    config = write_config(folder, {"stars": stars}, {"errors": errors}, ending=".csv")
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs")


def test_rating_errors_of_a_hand_worked_model(rated):
    """Pooled: (1 + 0.25 + 0 + 4) / 4 = 1.3125, (1 + 0.5 + 0 + 2) / 4 = 0.875; per user: 0.75 and 1 make 0.875 as well,
    √0.625 and √2 make (0.790569 + 1.414214) / 2 = 1.102392.
    """
    figures = {line.measure: line.estimate for line in rated.estimates}

    assert figures == pytest.approx(
        {
            "rmse": math.sqrt(1.3125),
            "rmse(average=query)": (math.sqrt(0.625) + math.sqrt(2)) / 2,
            "mae": 0.875,
            "mae(average=query)": 0.875,
            "mse": 1.3125,
        },
        abs=1e-12,
    )


def test_rating_errors_of_each_user(rated):
    scores = rated.scores.set_index("query_id")

    assert list(scores.index) == ["ann", "bob", "eve"]
    np.testing.assert_allclose(scores["rmse"], [math.sqrt(0.625), math.sqrt(2), math.nan], atol=1e-12)
    np.testing.assert_allclose(scores["mae"], [0.75, 1.0, math.nan], atol=1e-12)


def test_what_stays_unpaired_is_counted(rated):
    quality = rated.quality["stars", "knn"]
    lines = {line.measure: line for line in rated.estimates}

    assert quality.n_rows == 6
    assert quality.n_unpaired == 4
    assert quality.n_missing_queries == 1
    assert quality.n_unjudged_queries == 1
    assert {(line.n_queries, line.n_missing, line.n_undefined) for line in lines.values()} == {(3, 1, 1)}


def test_errors_beyond_the_doubles_are_never_made_up(tmp_path):
    """An error of 1e200 in one of three pairs is a root mean square of 1e200 / √3: that, infinite, or refused."""
    stars = Collection({"ann": {"a": 1, "b": 2, "c": 3}}, {"knn": {"ann": {"a": 1e200, "b": 2, "c": 3}}}, "ratings")
    config = write_config(tmp_path, {"stars": stars}, {"errors": ["rmse"]}, ending=".csv")
    evaluation = rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs")

    for line in evaluation.estimates:
        assert line.estimate in (None, math.inf) or line.estimate == pytest.approx(1e200 / math.sqrt(3))
    assert evaluation.failures or evaluation.estimates
