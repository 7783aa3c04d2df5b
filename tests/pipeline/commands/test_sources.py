"""A record evaluated again, by other measures and without the outputs."""

import json
from pathlib import Path
from typing import Any

import pytest

import rankledger
from tests.support.generated_data import rating_collection, search_collection, write_config
from tests.support.records import figures_of, manifest_of

SEARCH = ["ndcg@10", "ap"]
WEB = search_collection(20, n_queries=30)
NEWS = search_collection(21, n_queries=12)
NEW = 'suites.new=["err", "p@3", "bpref"]'


def evaluate(source: str | Path, runs: Path, *overrides: str, **options: Any) -> rankledger.Evaluation:
    return rankledger.evaluate_config(source, overrides=overrides, tracking=False, runs_dir=runs, **options)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, {"web": WEB, "news": NEWS}, {"search": SEARCH})


def outputs(config: Path) -> list[Path]:
    return [path for model in ("bm25", "dense") for path in config.parent.glob(f"*/{model}.*")]


def delete_outputs(config: Path) -> None:
    for path in outputs(config):
        path.unlink()


@pytest.mark.parametrize("by", ["path", "id"])
def test_a_record_gets_a_new_measure_without_its_outputs(config, runs, by):
    first = evaluate(config, runs)
    expected = evaluate(config, runs, NEW)
    delete_outputs(config)
    again = evaluate(first.record if by == "path" else first.evaluation_id, runs, NEW)

    assert again.failures == ()
    assert figures_of(again.record) == figures_of(expected.record)
    assert [output["files"] for output in manifest_of(again.record)["outputs"]] == [
        output["files"] for output in manifest_of(first.record)["outputs"]
    ]
    assert (manifest_of(again.record)["repeats"], manifest_of(first.record)["repeats"]) == (first.evaluation_id, None)
    assert figures_of(evaluate(again.record, runs).record) == figures_of(again.record)
    with pytest.raises(rankledger.InputError, match="a record has its own date; remove --date"):
        evaluate(first.record, runs, date="2026-11-21")


def test_models_that_were_searched_for_are_those_of_the_record(tmp_path, runs):
    config = write_config(tmp_path, {"web": WEB}, {"search": SEARCH}, ending=".tsv")
    first = evaluate(config, runs, "models=" + json.dumps({"*": {"outputs": f"{tmp_path}/{{dataset}}/{{model}}.tsv"}}))
    expected = evaluate(first.record, runs, NEW)
    delete_outputs(config)
    (tmp_path / "web" / "newcomer.tsv").write_text("query_id\tdoc_id\tscore\nq0\td\t1\n", encoding="utf-8")
    again = evaluate(first.record, runs, NEW)

    assert [result.model for result in again.results] == ["bm25", "dense"]
    assert figures_of(again.record) == figures_of(expected.record)


def test_inputs_that_have_changed_or_are_gone_are_refused(config, runs):
    first = evaluate(config, runs)
    path = config.parent / "web" / "bm25.txt"
    path.write_text(path.read_text(encoding="utf-8") + "q9999 Q0 d 1 1.5 tag\n", encoding="utf-8")
    again = evaluate(first.record, runs)

    (failure,) = again.failures
    assert (failure.dataset, failure.model) == ("web", "bm25")
    assert "bm25.txt: has changed (sha256 " in failure.reason
    assert failure.reason.endswith("restore it, or name the config instead of the record")
    assert len(again.results) == 3

    path = config.parent / "web" / "judged.txt"
    path.write_text(path.read_text(encoding="utf-8") + "q9999 0 d 1\n", encoding="utf-8")

    with pytest.raises(rankledger.InputError, match=r"judged\.txt: has changed \(sha256 .*or name the config instead"):
        evaluate(first.record, runs)

    path.unlink()

    with pytest.raises(rankledger.InputError, match=r"judgments: file not found: .*judged\.txt; check"):
        evaluate(first.record, runs)


def test_an_output_that_is_gone_and_was_not_kept_is_a_failure(config, runs):
    first = evaluate(config, runs, "execution.cache=false")
    delete_outputs(config)

    reasons = [failure.reason for failure in evaluate(first.record, runs).failures]
    assert len(reasons) == 4
    assert all("file not found, and no output cache has it; restore it" in reason for reason in reasons)
    again = evaluate(first.record, runs, "execution.cache=true")
    assert f"file not found, and {runs / 'cache'} has no copy of it; restore it" in again.failures[0].reason


def test_an_output_that_is_gone_cannot_be_scored_by_every_measure(config, runs):
    first = evaluate(config, runs)
    delete_outputs(config)
    again = evaluate(first.record, runs, 'suites.new=["entropy"]')
    assert len(again.failures) == 4
    reason = again.failures[0].reason
    assert "file not found, and a measure asks for documents that are not judged; restore it" in reason

    entries = sorted((runs / "cache").rglob("*.hits"))
    for path in entries:
        path.write_bytes(path.read_bytes()[:-1])

    reasons = [failure.reason for failure in evaluate(first.record, runs).failures]
    assert len(reasons) == 4
    assert all(any(str(path) in reason for path in entries) for reason in reasons)


def test_predictions_that_are_gone_are_a_failure(tmp_path, runs):
    config = write_config(tmp_path, {"stars": rating_collection(3, models=("bm25",))}, {"errors": ["rmse"]})
    first = evaluate(config, runs)
    delete_outputs(config)
    (failure,) = evaluate(first.record, runs).failures
    assert "file not found, and no output cache has it" in failure.reason
