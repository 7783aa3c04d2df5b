"""Records in the schema of Every Eval Ever: its keys, the figures of the record, and scores that are read again."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankledger
from rankledger.metrics.measure import external_measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.external_scores import read_external_scores

pytestmark = pytest.mark.usefixtures("folder")

INSPECT = Path(__file__).parents[2] / "golden" / "scores" / "inspect"
SUMS = f"""name: sums
datasets:
  sums: {{scores: {{includes: {{range: [0, 1]}}, style.brief: lower}}}}
models:
  small: {{outputs: {INSPECT}/small.json}}
  org/large: {{outputs: {{path: {INSPECT}/large.eval, format: inspect}}}}
  twice: {{outputs: {{path: {INSPECT}/twice.eval, select: {{epoch: "{{replicate}}"}}}}, replicates: [1, 2]}}
bootstrap: {{resamples: 200}}
report: false
"""
RANKED = """name: web
datasets: {web: {judgments: qrels.tsv, documents: documents.tsv}}
models: {bm25: {outputs: bm25.tsv}, "../../<b>": {outputs: b.tsv}}
suites: {main: [rr, item_coverage@1]}
bootstrap: {resamples: 200}
report: false
"""
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def evaluated(config: str) -> rankledger.Evaluation:
    Path("config.yaml").write_text(config, encoding="utf-8")
    return rankledger.evaluate_config("config.yaml", tracking=False)


@pytest.fixture
def ranked() -> rankledger.Evaluation:
    Path("qrels.tsv").write_text("query_id\tdoc_id\trelevance\nq1\td1\t1\nq2\td2\t1\nq3\td3\t1\n")
    Path("documents.tsv").write_text("doc_id\nd1\nd2\nd3\n")
    for name in ("bm25.tsv", "b.tsv"):
        Path(name).write_text("query_id\tdoc_id\tscore\nq1\td1\t2\nq2\td1\t2\nq2\td2\t1\n")
    return evaluated(RANKED)


def logs(files: tuple[Path, ...]) -> dict[str, tuple[dict[str, Any], list[dict[str, Any]], Path]]:
    found = {}
    for path in files:
        if path.suffix == ".json":
            log = json.loads(path.read_text())
            samples = path.with_name(f"{path.stem}_samples.jsonl")
            lines = [json.loads(line) for line in samples.read_text().splitlines()]
            found[log["model_info"]["name"]] = log, lines, samples
    return found


def scores(path: Path, **options: Any) -> dict[str, float]:
    read = read_external_scores(Source(str(path), **options), [external_measure(name) for name in ["score"]])
    return dict(zip(read.query_ids, read.values[0].tolist(), strict=True))


@pytest.fixture
def sums() -> tuple[rankledger.Evaluation, dict[str, tuple[dict[str, Any], list[dict[str, Any]], Path]]]:
    return evaluated(SUMS), logs(rankledger.export("last", "out"))


def test_the_scores_and_figures_are_those_of_the_record(sums):
    evaluation, written = sums
    originals = {"small": "small.json", "org/large": "large.eval", "twice": "twice.eval"}
    for model, name in originals.items():
        for measure in ("includes", "style.brief"):
            for select in [{"epoch": "1"}, {"epoch": "2"}] if model == "twice" else [{}]:
                given = read_external_scores(Source(str(INSPECT / name), select=select), [external_measure(measure)])
                expected = dict(zip(given.query_ids, given.values[0].tolist(), strict=True))
                assert scores(written[model][2], select={"result": f"sums/{measure}", **select}) == expected
    assert len(written["org/large"][1]) == 2 * 3

    log, lines, _ = written["small"]
    first, second = log["evaluation_results"]
    line = next(line for line in evaluation.estimates if (line.model, line.measure) == ("small", "includes"))
    assert first["score_details"]["score"] == line.estimate == 0.5
    assert first["score_details"]["details"] == {"n_queries": "4", "n_missing": "0", "n_undefined": "0"}
    assert first["score_details"]["uncertainty"] == {
        "num_samples": 4,
        "num_bootstrap_samples": 200,
        "standard_error": {"value": line.std_error},
        "confidence_interval": {"lower": line.ci_low, "upper": line.ci_high, "confidence_level": 0.95},
    }
    configs = [result["metric_config"] for result in (first, second)]
    assert [config["lower_is_better"] for config in configs] == [False, True]
    assert [(config["min_score"], config["max_score"]) for config in configs] == [(0, 1), ("-Infinity", "Infinity")]
    correct = [line["evaluation"]["is_correct"] for line in lines]
    assert correct == [True, True, False, False] + 4 * [False]  # `style.brief` has no best score


REQUIRED = ("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library")
INSTANCE = {
    *("schema_version", "evaluation_id", "model_id", "evaluation_name", "evaluation_result_id", "sample_id"),
    *("interaction_type", "input", "output", "answer_attribution", "evaluation", "metadata"),
}


def test_the_files_are_linked_as_the_schema_wants(sums):
    _, written = sums
    assert {model: log["model_info"]["id"] for model, (log, _, _) in written.items()} == {
        "small": "unknown/small",
        "org/large": "org/large",
        "twice": "unknown/twice",
    }
    for log, lines, samples in written.values():
        known = {*REQUIRED, "evaluation_results", "evaluation_timestamp", "detailed_evaluation_results"}
        assert set(log) == known
        assert log["evaluation_id"] == f"sums/{log['model_info']['id']}/{log['retrieved_timestamp']}"
        details = log["detailed_evaluation_results"]
        assert Path("out", details["file_path"]) == samples
        assert re.fullmatch(rf"data/sums/(unknown|org)/\w+/{UUID}_samples\.jsonl", details["file_path"])
        assert details["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
        assert details["total_rows"] == len(lines)
        results = {result["evaluation_result_id"] for result in log["evaluation_results"]}
        for line in lines:
            assert set(line) == INSTANCE
            assert (line["schema_version"], line["evaluation_id"]) == ("0.3.0", log["evaluation_id"])
            assert line["model_id"] == log["model_info"]["id"]
            assert line["evaluation_result_id"] in results


def test_a_query_without_output_and_a_figure_without_scores(ranked):
    log, lines, samples = logs(rankledger.export("last", "out"))["bm25"]

    figures = {result["evaluation_result_id"]: result["score_details"]["score"] for result in log["evaluation_results"]}
    assert figures == {"web/rr": 0.5, "web/item_coverage@1": pytest.approx(1 / 3)}
    assert scores(samples) == {"q1": 1.0, "q2": 0.5, "q3": 0.0}
    assert [line["metadata"] for line in lines] == [{}, {}, {"missing": "true"}]
    assert np.mean([line["evaluation"]["score"] for line in lines]) == figures["web/rr"]

    files = rankledger.export("last", "out")
    contents = [path.read_bytes() for path in files]

    again = rankledger.export(str(ranked.record), "other")
    assert [path.relative_to("other") for path in again] == [path.relative_to("out") for path in files]
    assert [path.read_bytes() for path in again] == contents
    assert {path.relative_to("out").parts[:-1] for path in files} == {
        ("data", "web", "unknown", "bm25"),
        ("data", "web", "_", "_..__b_"),
    }
