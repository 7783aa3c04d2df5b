"""Outputs that share no id with the judgments, from files to exit codes and every surface."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.commands.evaluate import validate
from rankledger.pipeline.commands.reproduce import reproduce
from rankledger.pipeline.data.joined import DataWarning
from rankledger.pipeline.delivery.mlflow.runs import build_runs
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.report.markdown import markdown
from rankledger.pipeline.report.page import page_of
from rankledger.pipeline.support.errors import InputError
from tests.support.nights import write_config

pytestmark = pytest.mark.usefixtures("folder")

QUERIES = [f"q{number}" for number in range(20)]
GOOD = {query: [f"{10 * place + 10}" for place in range(6)] for query in QUERIES}  # 10 to 60, of which 10 is judged
BEYOND = {query: ["50", "60", "70"] for query in QUERIES}  # some of what GOOD returns, none of it judged
PREFIXED = {query: [f"m{document}" for document in documents] for query, documents in GOOD.items()}
OTHERS = {query: ["x1", "x2"] for query in QUERIES}
REFUSED = "prefixed.tsv: none of its 6 documents is judged, such as 'm10'; the judgments have '10': remove the prefix"


def config(rankings: Mapping[str, Mapping[str, list[str]]], /, *, documents: str = "", **sections: Any) -> str:
    """A config of these rankings, with judgments of document 10 for every query."""
    Path("qrels.txt").write_text("".join(f"{query} 0 10 1\n" for query in QUERIES), encoding="utf-8")
    for model, ranking in rankings.items():
        rows = [f"{query}\t{document}\t{-at}" for query in ranking for at, document in enumerate(ranking[query])]
        Path(f"{model}.tsv").write_text("\n".join(["query_id\tdoc_id\tscore", *rows]) + "\n", encoding="utf-8")
    dataset = {"judgments": "qrels.txt"}
    if documents:
        Path("documents.tsv").write_text("doc_id\n" + documents, encoding="utf-8")
        dataset["documents"] = "documents.tsv"
    models = {model: {"outputs": f"{model}.tsv"} for model in rankings}
    suites = {"s": ["ndcg@10"]}
    return str(write_config(**{"datasets": {"web": dataset}, "models": models, "suites": suites, **sections}))


def evaluate(path: str | Path, **options: Any) -> Evaluation:
    return rankledger.evaluate_config(path, tracking=False, **options)


def refused(evaluation: Evaluation) -> list[str]:
    return [failure.model for failure in evaluation.failures]


def warned(evaluation: Evaluation) -> list[str]:
    return [warning.model for warning in evaluation.data_warnings]


def test_a_prefix_no_longer_passes_its_gate(run_cli):
    """With `on_inconclusive: warn` 0.0000 was "Gates passed", exit 0: now the output is refused, exit 4."""
    gate = {"name": "floor", "models": "prefixed", "measure": "ndcg@10", "at_least": 0, "on_inconclusive": "warn"}
    path = config({"good": GOOD, "prefixed": PREFIXED}, gates=[gate])

    code, _, err = run_cli("evaluate", path, "--no-tracking", "--quiet")
    assert code == 4
    assert REFUSED in err
    assert run_cli("validate", path).code == 4


def test_documents_that_a_model_with_hits_returns_are_no_mismatch():
    path = config({"good": GOOD, "beyond": BEYOND, "prefixed": PREFIXED, "again": PREFIXED})

    evaluation = evaluate(path)

    assert refused(evaluation) == ["prefixed", "again"]
    assert warned(evaluation) == ["beyond"]
    assert refused(evaluate(config({"beyond": BEYOND, "prefixed": PREFIXED}))) == ["beyond", "prefixed"]


def test_documents_of_the_catalogue_are_no_mismatch():
    assert refused(evaluate(config({"others": OTHERS}))) == ["others"]
    assert warned(evaluate(config({"others": OTHERS}, documents="10\nx2\n"))) == ["others"]


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_the_verdict_does_not_depend_on_the_cache_or_the_jobs(backend):
    path = config({"good": GOOD, "beyond": BEYOND, "prefixed": PREFIXED})
    first = evaluate(path, jobs=1)
    again = evaluate(path, jobs=2, backend=backend)
    checked = validate(path)

    for found in (again, checked):
        assert refused(found) == refused(first)
    assert again.data_warnings == first.data_warnings
    assert str(first.data_warnings[0]) in checked.warnings


def test_what_was_accepted_is_accepted_when_it_is_evaluated_again():
    evaluation = evaluate(config({"good": GOOD, "beyond": BEYOND, "prefixed": PREFIXED}))
    assert reproduce(str(evaluation.record)).verdict == "identical"
    Path("good.tsv").unlink()
    Path("beyond.tsv").unlink()

    again = evaluate(evaluation.record)

    assert refused(again) == ["prefixed"]
    assert again.data_warnings == evaluation.data_warnings


def test_an_output_may_be_allowed_to_share_nothing():
    """`allow_no_overlap` makes a warning of the refusal, for other queries too; a misplaced one is an unknown key."""
    renamed = {query.upper(): documents for query, documents in GOOD.items()}
    outputs = {
        model: {"outputs": {"path": f"{model}.tsv", "allow_no_overlap": True}} for model in ("prefixed", "renamed")
    }
    path = config(
        {"good": GOOD, "prefixed": PREFIXED, "renamed": renamed}, models={"good": {"outputs": "good.tsv"}, **outputs}
    )

    evaluation = evaluate(path)

    assert refused(evaluation) == []
    assert warned(evaluation) == ["prefixed", "renamed"]
    with pytest.raises(InputError, match="unknown key 'allow_no_overlap'"):
        evaluate(path, overrides=["datasets.web.judgments={path: qrels.txt, allow_no_overlap: true}"])


def test_missing_queries_are_reported_with_their_cause():
    renamed = {query.upper(): documents for query, documents in GOOD.items()}
    path = config({"renamed": renamed}, conventions={"missing_queries": "error"})

    assert "write the letters of both in the same case" in evaluate(path).failures[0].reason


def test_scores_of_other_queries_are_refused():
    Path("queries.tsv").write_text("query_id\n1\n2\n", encoding="utf-8")
    Path("judge.csv").write_text("query_id,clicks\n1.0,3\n2.0,4\n", encoding="utf-8")
    datasets = {"live": {"scores": {"clicks": "higher"}, "queries": "queries.tsv"}}
    models = {"judge": {"outputs": "judge.csv"}}

    evaluation = evaluate(config({}, datasets=datasets, models=models, suites={}))

    assert evaluation.failures[0].reason.startswith(
        "judge.csv: none of its 2 queries is in the queries table, such as '1.0'; the table has '1': write ids as text"
    )
    allowed = {"judge": {"outputs": {"path": "judge.csv", "allow_no_overlap": True}}}
    assert warned(evaluate(config({}, datasets=datasets, models=allowed, suites={}))) == ["judge"]


def test_a_warning_is_on_every_surface(run_cli):
    path = config({"good": GOOD, "beyond": BEYOND}, report=True)
    line = "small overlap with the dataset: none of the documents retrieved is judged for its query; check the ids"
    outcome = run_cli("evaluate", path, "--no-tracking")
    record = read_record(outcome.record)

    assert f"beyond on web: {line}" in " ".join(outcome.out.split())
    assert record.manifest.warnings == [DataWarning("web", "beyond", line)]
    assert record.data_warnings == (DataWarning("web", "beyond", line),)
    page = (record.path / "report.html").read_text(encoding="utf-8")
    assert line in page
    assert "1 warning on the inputs" in page
    assert line in markdown([page_of(record, Workspace.open("runs"))])
    tagged = {
        run.task: run.tags.get("rankledger.warnings")
        for run in build_runs(record, metric_name="{measure}", max_metrics=40, note="")
    }
    assert tagged == {("web", "good"): None, ("web", "beyond"): line, None: None}


def test_warnings_reach_a_terminal_that_shows_little(run_cli):
    path = config({"good": GOOD, "beyond": BEYOND})

    assert "small overlap" in run_cli("evaluate", path, "--no-tracking", "--quiet").err
    assert json.loads(run_cli("evaluate", path, "--no-tracking", "--json").out)["warnings"][0]["model"] == "beyond"


def test_odd_rankings_are_warned_of_from_the_cache_as_well():
    own = {query: [query, *documents] for query, documents in GOOD.items()}
    path = config({"own": own, "good": GOOD})
    ranks = [f"{query}\t{document}\t{at}" for query, found in GOOD.items() for at, document in enumerate(found, 1)]
    Path("good.tsv").write_text("\n".join(["query_id\tdoc_id\tscore", *ranks]) + "\n", encoding="utf-8")

    for _ in range(2):
        found = {warning.model: warning.warning for warning in evaluate(path).data_warnings}
        assert found["own"].startswith("20 of 20 queries find the document of their own id first;")
        assert found["good"].startswith("the scores of every query rise down the file,")
    said = ["datasets.web.exclude_self=true", "models.good.outputs={path: good.tsv, columns: {rank: score}}"]
    evaluation = rankledger.evaluate_config(path, tracking=False, overrides=said)
    assert evaluation.data_warnings == ()
    assert {line.model: line.estimate for line in evaluation.estimates} == {"own": 1.0, "good": 1.0}
