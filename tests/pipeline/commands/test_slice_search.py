"""Slices that an evaluation searches: in its results, its record, its page, and the same when it is read again."""

from pathlib import Path

import pytest
import yaml

import rankledger
from rankledger.pipeline.report.messages import notes
from rankledger.pipeline.report.terminal import as_data
from tests.support.generated_data import Collection, write_config

QUERIES = [f"q{number:02}" for number in range(1, 61)]
SAID = "market=se, 25 of 60 queries, 1.0000 → 0.5000, accounts for 100% of the drop"


def output(fallen: int) -> dict[str, dict[str, float]]:
    return {
        query_id: {f"r-{query_id}": 2.0, "x": 3.0 if place < fallen else 1.0} for place, query_id in enumerate(QUERIES)
    }


def evaluate(folder: Path, **sections: object) -> rankledger.Evaluation:
    judged = {query_id: {f"r-{query_id}": 1} for query_id in QUERIES}
    outputs = {"bm25": output(0), "dense": output(25)}
    path = write_config(folder, {"web": Collection(judged, outputs)}, {"search": ["rr"]}, ending=".tsv", **sections)
    rows = "".join(f"{query_id}\t{'se' if place < 25 else 'no'}\n" for place, query_id in enumerate(QUERIES))
    (folder / "queries.tsv").write_text("query_id\tmarket\n" + rows, encoding="utf-8")
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["datasets"]["web"]["queries"] = "queries.tsv"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return rankledger.evaluate_config(path, tracking=False, runs_dir=folder / "runs")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> rankledger.Evaluation:
    comparison = {"baseline": "bm25", "search_slices": True}
    return evaluate(tmp_path_factory.mktemp("searched"), comparison=comparison)


def test_slices_of_an_evaluation(searched):
    """rr of the 25 queries of `se` falls from 1 to 1/2, that of the others not; what was searched is a warning."""
    (line,) = searched.slice_changes
    assert (line.model, line.baseline, line.slice, line.change) == ("dense", "bm25", "market=se", -0.5)
    assert str(line) == SAID
    assert f"where rr of dense against bm25 on web changed: {SAID} (p ≤.0010)" in list(notes(searched))
    assert searched.changed_slices["n_queries"].tolist() == [25]
    assert any(warning.startswith("web: 2 slices by market were searched") for warning in searched.warnings)


def test_the_record_has_the_slices(searched):
    again = rankledger.load(searched.record)
    assert again.slice_changes == searched.slice_changes
    assert as_data(again)["slice_changes"] == as_data(searched)["slice_changes"]
    assert SAID in (searched.record / "report.html").read_text(encoding="utf-8").replace("<wbr>", "")
    assert "search_slices: true" in (searched.record / "config.yaml").read_text(encoding="utf-8")

    found = rankledger.reproduce(searched.record, runs_dir=searched.record.parent.parent)
    assert (found.verdict, "slice_changes.csv" in found.files) == ("identical", True)


def test_slices_are_searched_on_demand(tmp_path):
    found = evaluate(tmp_path, comparison={"baseline": "bm25"})
    assert found.slice_changes == ()
    assert not (found.record / "slice_changes.csv").exists()
