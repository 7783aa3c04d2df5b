"""External scores and results of other tools, from the config to the record and back."""

import csv
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

import rankledger
from rankledger.pipeline.inference.tables import Estimate
from tests.support.records import manifest_of

pytestmark = pytest.mark.usefixtures("folder")

CONFIGS = Path(__file__).parents[3] / "configs"
QRELS = CONFIGS / "quickstart" / "qrels.tsv"
MODELS = ("bm25", "tfidf", "names")  # of names 86 queries are without output
TEXT = ["rr@10", "ndcg@10", "r@20"]


def evaluate(datasets: dict[str, Any], models: dict[str, Any], **config: Any) -> rankledger.Evaluation:
    return rankledger.evaluate_config(written(datasets, models, **config), tracking=False)


def written(datasets: dict[str, Any], models: dict[str, Any], **config: Any) -> Path:
    path = Path("given.yaml")
    outputs = {name: {"outputs": output} for name, output in models.items()}
    sections = {"name": "given", "datasets": datasets, "models": outputs, "bootstrap": {"resamples": 200}}
    path.write_text(yaml.safe_dump(sections | config, sort_keys=False), encoding="utf-8")
    return path


def ranked(**config: Any) -> rankledger.Evaluation:
    models = {model: str(CONFIGS / "quickstart" / f"{model}.tsv") for model in MODELS}
    return evaluate({"web": {"judgments": str(QRELS)}}, models, suites={"search": TEXT}, **config)


def judged(folder: str = "judge") -> dict[str, str]:
    Path(folder).mkdir()
    Path(folder, "a.csv").write_text("query_id,faithful\nq1,1\nq2,0.5\nq3,0\nq4,\n", encoding="utf-8")
    Path(folder, "b.csv").write_text("query_id,faithful\nq1,0.5\nq2,0.5\nq4,1\nq5,1\n", encoding="utf-8")
    return {"a": f"{folder}/a.csv", "b": f"{folder}/b.csv"}


FAITHFUL = {"scores": {"faithful": {"direction": "higher", "range": [0, 1]}}}


def lines(evaluation: rankledger.Evaluation) -> dict[tuple[str, str, str], Estimate]:
    return {(line.dataset, line.model, line.measure): line for line in evaluation.estimates if line.slice == "all"}


def test_our_own_scores_given_back_have_the_same_figures():
    first = ranked()
    table = parquet.read_table(first.record / "scores.parquet")
    for model in MODELS:
        rows = table.filter(pa.compute.equal(table["model"], model)).take(np.random.default_rng(0).permutation(300))
        parquet.write_table(rows, f"{model}.parquet")

    second = evaluate(
        {"web": {"scores": dict.fromkeys(TEXT, "higher")}}, {model: f"{model}.parquet" for model in MODELS}
    )

    def figures(evaluation: rankledger.Evaluation) -> list[dict[str, Any]]:
        return [asdict(line) | {"n_missing": 0} for line in evaluation.estimates]  # all queries have a row

    assert figures(second) == figures(first)
    assert first.estimates


def test_queries_are_all_that_a_model_has():
    """Of q1 to q5, a has no row of q5 and no score of q4: (1 + 0.5 + 0) / 3; b has no row of q3: 3 / 4."""
    found = lines(evaluate({"support": FAITHFUL}, judged()))
    of_a, of_b = found["support", "a", "faithful"], found["support", "b", "faithful"]
    assert (of_a.estimate, of_a.n_queries, of_a.n_missing, of_a.n_undefined) == (0.5, 5, 1, 2)
    assert (of_b.estimate, of_b.n_queries, of_b.n_missing, of_b.n_undefined) == (0.75, 5, 1, 1)


def test_queries_are_those_of_the_table_where_there_is_one():
    """q9 is nobody's, and what is scored beside the table is ignored and counted: a has 1, 0.5 and 0 of q1, q2, q3."""
    Path("queries.tsv").write_text("query_id\nq9\nq3\nq2\nq1\n", encoding="utf-8")

    evaluation = evaluate({"support": FAITHFUL | {"queries": "queries.tsv"}}, judged())

    (of_a, of_b) = lines(evaluation).values()
    assert (of_a.estimate, of_a.n_queries, of_a.n_missing, of_a.n_undefined) == (0.5, 4, 1, 1)
    assert (of_b.estimate, of_b.n_queries, of_b.n_missing, of_b.n_undefined) == (0.5, 4, 2, 2)
    assert evaluation.results[0].query_ids.tolist() == ["q1", "q2", "q3", "q9"]
    assert [found.n_unjudged_queries for found in evaluation.quality.values()] == [1, 2]


def test_given_scores_stand_beside_rankings():
    datasets = {"support": FAITHFUL, "web": {"judgments": str(QRELS)}}
    models = {
        "a": {"support": judged()["a"], "web": str(CONFIGS / "quickstart" / "bm25.tsv")},
        "b": {"support": "judge/b.csv"},
    }

    evaluation = evaluate(datasets, models, suites={"search": ["rr@10"]})

    keys = [("support", "a"), ("support", "b"), ("web", "a")]
    assert [(found.dataset, found.model) for found in evaluation.results] == keys
    assert [*evaluation.quality] == keys
    assert evaluation.directions == {"faithful": "higher", "rr@10": "higher"}
    assert [*lines(evaluation)] == [(*key, "faithful" if key[0] == "support" else "rr@10") for key in keys]
    alone = lines(ranked())["web", "bm25", "rr@10"]
    assert lines(evaluation)["web", "a", "rr@10"] == replace(alone, model="a", rank_low=None, rank_high=None)


def test_the_record_says_that_the_scores_were_made_elsewhere():
    record = evaluate({"support": FAITHFUL}, judged()).record
    manifest = manifest_of(record)
    table = parquet.read_table(record / "scores.parquet").to_pylist()

    definition = manifest["definitions"]["faithful"]
    assert (definition["formula"], definition["reference"]) == ("external", "external")
    assert (definition["direction"], definition["range"]) == ("higher", [0, 1])
    assert manifest["datasets"]["support"]["kind"] == "scores"
    assert manifest["datasets"]["support"]["suites"] == {"scores": ["faithful"]}
    (inputs,) = manifest["datasets"]["support"]["inputs"].items()
    assert (inputs[0], [file["path"] for file in inputs[1]]) == ("scores", ["judge/a.csv", "judge/b.csv"])
    assert [[file["path"] for file in output["files"]] for output in manifest["outputs"]] == [
        ["judge/a.csv"],
        ["judge/b.csv"],
    ]
    np.testing.assert_array_equal(
        [row["faithful"] for row in table if row["model"] == "a"], [1, 0.5, 0, np.nan, np.nan]
    )


def test_a_missing_output_is_a_failure_and_the_others_are_evaluated():
    outputs = judged()

    one = evaluate({"support": FAITHFUL}, outputs | {"b": "nowhere.csv"})
    none = evaluate({"support": FAITHFUL}, {"a": "nowhere.csv"})

    assert [(failure.model, failure.reason) for failure in one.failures] == [
        ("b", "given.yaml:14: models.b.outputs: file not found: nowhere.csv; check the path")
    ]
    assert lines(one)["support", "a", "faithful"].n_queries == 4  # those of a alone
    assert [failure.model for failure in none.failures] == ["a"]
    assert none.estimates == ()


def test_given_scores_are_validated_and_not_explained():
    config = written({"support": FAITHFUL}, judged())
    validation = rankledger.validate(config)
    assert (dict(validation.n_queries), dict(validation.n_measures)) == ({"support": 5}, {"support": 1})
    assert [found.n_rows for found in validation.quality.values()] == [4, 4]

    for dataset in (None, "support"):
        with pytest.raises(rankledger.InputError) as error:
            rankledger.explain(config, model="a", query="q1", measure="faithful", dataset=dataset)
        score = "faithful of 'support' is an external score, which cannot be explained"
        assert str(error.value) == f"{score}; name a measure of rankings or ratings"


def test_clusters_and_slices_of_given_scores():
    """Columns of the queries table group them as any queries: a scores 1 and 0.5 in German, 0 in English."""
    rows = [("query_id", "user", "language"), ("q1", "u", "de"), ("q2", "u", "de"), ("q3", "v", "en"), ("q5", "w", "")]
    with Path("queries.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)

    dataset = FAITHFUL | {"queries": "queries.csv", "cluster": "user", "slices": ["language"]}
    evaluation = evaluate({"support": dataset}, judged())

    figures = {(line.model, line.slice): (line.estimate, line.n_queries) for line in evaluation.estimates}
    assert figures["a", "all"] == (0.5, 4)
    assert figures["a", "language=de"] == (0.75, 2)
    assert figures["a", "language=en"] == (0, 1)
    assert figures["b", "language=en"] == (None, 1)


def test_a_record_keeps_its_queries_whatever_becomes_of_an_output():
    outputs = judged()
    first = evaluate({"support": FAITHFUL}, outputs)
    path = Path(outputs["b"])
    path.write_text(path.read_text(encoding="utf-8") + "q6,1\n", encoding="utf-8")
    changed = rankledger.evaluate_config(first.record, tracking=False)
    path.unlink()
    gone = rankledger.evaluate_config(first.record, tracking=False)

    for again in (changed, gone):
        assert [failure.model for failure in again.failures] == ["b"]
        assert again.results[0].query_ids.tolist() == ["q1", "q2", "q3", "q4", "q5"]
        unranked = replace(lines(first)["support", "a", "faithful"], rank_low=None, rank_high=None)
        assert lines(again)["support", "a", "faithful"] == unranked


def test_a_record_refuses_a_table_of_other_queries():
    table = Path("queries.csv")
    table.write_text("query_id\nq1\nq2\nq3\n", encoding="utf-8")
    first = evaluate({"support": FAITHFUL | {"queries": "queries.csv"}}, judged())
    table.write_text("query_id,market\nq3,us\nq1,de\nq2,de\n", encoding="utf-8")
    sliced = rankledger.evaluate_config(first.record, overrides=["slices=[market]"], tracking=False)
    assert lines(sliced) == lines(first)
    assert {line.slice for line in sliced.estimates} == {"all", "market=de", "market=us"}

    table.write_text("query_id\nq1\nq2\nq3\nq4\n", encoding="utf-8")
    with pytest.raises(rankledger.InputError) as error:
        rankledger.evaluate_config(first.record, tracking=False)
    assert str(error.value) == (
        "queries.csv: has changed (4 queries are there, and 3 were evaluated, which differ in 'q4'); "
        "restore it, or name the config instead of the record"
    )


SCORES = Path(__file__).parents[2] / "golden" / "scores"
INSPECT = SCORES / "inspect"
SUMS = f"""name: sums
datasets:
  sums: {{scores: {{includes: higher}}}}
models:
  small: {{outputs: {INSPECT}/small.json}}
  large: {{outputs: {{path: {INSPECT}/large.eval, format: inspect, select: {{task: "{{dataset}}"}}}}}}
  twice: {{outputs: {{path: {INSPECT}/twice.eval, select: {{epoch: "{{replicate}}"}}}}, replicates: [1, 2]}}
bootstrap: {{resamples: 200}}
report: false
"""


def sums(text: str) -> Path:
    path = Path("sums.yaml")
    path.write_text(text, encoding="utf-8")
    return path


def test_logs_of_inspect_are_evaluated_and_reproduced():
    """Right of four: small 2, large all 3 that it answered, twice 3 and then 2, which makes 5 of 8."""
    evaluation = rankledger.evaluate_config(sums(SUMS), tracking=False)

    assert {line.model: line.estimate for line in evaluation.estimates} == {"small": 0.5, "large": 1.0, "twice": 0.625}
    assert {line.model: line.n_missing for line in evaluation.estimates} == {"small": 0, "large": 1, "twice": 0}
    assert [(line.replicate, line.estimate) for line in evaluation.replicates] == [("1", 0.75), ("2", 0.5)]
    remarks = [line for line in evaluation.warnings if "read as results of" in line]
    assert [Path(line.partition(":")[0]).name for line in remarks] == ["small.json", "twice.eval"]
    assert rankledger.reproduce(str(evaluation.record)).verdict == "identical"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (
            ", replicates: [1, 2]",
            "",
            "sums.yaml:7: models.twice.outputs.select: `select` has {replicate}, and files do not tell which there "
            "are; add replicates: [1, 2, 3]",
        ),
        ("{dataset}", "{data}", "sums.yaml:6: models.large.outputs.select.task: '{data}' has an unknown placeholder"),
        ("{scores: {includes: higher}}", "{judgments: qrels.tsv}", "`select` has no effect on rankings; remove it"),
    ],
)
def test_a_selection_that_cannot_be_made_is_refused_with_its_line(old, new, found):
    suites = "suites: {a: [rr]}\n" if "judgments" in new else ""
    with pytest.raises(rankledger.InputError) as refused:
        rankledger.evaluate_config(sums(SUMS.replace(old, new) + suites), tracking=False)
    assert found in str(refused.value)


def test_a_tool_is_no_format_of_judgments():
    with pytest.raises(rankledger.InputError, match="format inspect has results of samples alone"):
        rankledger.evaluate_config(
            sums(
                f"name: a\ndatasets: {{a: {{judgments: {{path: {INSPECT}/small.json, format: inspect}}}}}}\n"
                "models: {b: {outputs: b.tsv}}\nsuites: {s: [rr]}\n"
            ),
            tracking=False,
        )
