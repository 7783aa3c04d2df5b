"""Excluded documents in whole evaluations: what a record says of them, the cache, comparisons and `explain`."""

from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.data.cache import OutputCache
from rankledger.pipeline.data.dataset import read_dataset
from rankledger.pipeline.data.outputs import OutputReader, output_store
from rankledger.pipeline.report.explanation import as_data, markdown
from rankledger.pipeline.report.messages import notes
from tests.support.data_files import contents, refusal, write
from tests.support.generated_data import Collection, write_config
from tests.support.records import figures_of, manifest_of

TREC_EVAL = PROFILES["trec_eval"].conventions
# By rr bm25 has 1/2, 1/3 and 1: without p of p 1, 1/3 and 1; without x and y of q, too, 1, 1 and 1.
JUDGED = {"p": {"a": 1}, "q": {"b": 1}, "r": {"c": 1, "d": 1}}
OUTPUT = {"p": {"p": 9.0, "a": 8.0, "x": 7.0}, "q": {"x": 9.0, "y": 8.0, "b": 7.0}, "r": {"c": 9.0, "x": 8.0}}
PAIRS = "query_id\tdoc_id\nq\tx\nq\ty\nu\tx\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, {"web": Collection(JUDGED, {"bm25": OUTPUT})}, {"search": ["rr", "r@2"]})


def evaluate(config: Path, *keys: str, **options: Any) -> rankledger.Evaluation:
    return rankledger.evaluate_config(
        config,
        overrides=[f"datasets.web.{key}" for key in keys],
        tracking=False,
        runs_dir=config.parent / "runs",
        **options,
    )


def figures(evaluation: rankledger.Evaluation) -> dict[str, float | None]:
    return {line.measure: line.estimate for line in evaluation.estimates}


def with_pairs(config: Path, text: str = PAIRS) -> str:
    return f"exclude={write(config.parent / 'excluded.tsv', text)}"


def test_the_record_says_what_was_excluded(config):
    plain = evaluate(config)
    found = evaluate(config, with_pairs(config), "exclude_self=true")
    dataset, (output,) = manifest_of(found.record)["datasets"]["web"], manifest_of(found.record)["outputs"]

    assert figures(plain) == pytest.approx({"rr": (1 / 2 + 1 / 3 + 1) / 3, "r@2": (1 + 0 + 1 / 2) / 3})
    assert figures(found) == pytest.approx({"rr": 1, "r@2": (1 + 1 + 1 / 2) / 3})
    assert [*dataset["inputs"]] == ["judgments", "exclude"]
    assert dataset["exclude_self"] is True
    assert {name: output["quality"][name] for name in ("n_rows", "n_excluded", "n_excluded_queries")} == {
        "n_rows": 8,
        "n_excluded": 3,
        "n_excluded_queries": 2,
    }
    assert "bm25 on web: 8 rows, 37.5% of the top 10 judged" in [*notes(plain)]
    assert "bm25 on web: 8 rows, 3 documents of 2 queries excluded, 60.0% of the top 10 judged" in [*notes(found)]
    (warning,) = found.warnings
    assert warning.endswith("1 of the 2 queries with documents to exclude is not judged, such as 'u'")
    assert "excluded documents" not in manifest_of(plain.record)["datasets"]["web"]["digests"]
    assert manifest_of(plain.record)["outputs"][0]["quality"]["n_excluded"] is None


def test_a_comparison_says_so_also_over_new_judgments(config):
    before, after = evaluate(config), evaluate(config, with_pairs(config), "exclude_self=true")
    options = {"runs_dir": config.parent / "runs"}

    message = refusal(rankledger.compare, before.evaluation_id, after.evaluation_id, **options)
    assert message.startswith("web: the excluded documents differ (none and sha256 ")
    assert message.endswith(" with exclude_self); add --force to compare anyway")
    split, _ = rankledger.compare(before.evaluation_id, after.evaluation_id, force=True, **options).splits
    assert [part.causes for part in split.parts] == [("excluded documents",), ("output",)]
    assert [part.amount for part in split.parts] == pytest.approx([1 - 11 / 18, 0])

    before = evaluate(config)
    write(config.parent / "web" / "judged.txt", "p 0 x 1\nq 0 b 1\nr 0 c 1\n")
    after = evaluate(config, "exclude_self=true")

    compared = rankledger.compare(
        before.evaluation_id, after.evaluation_id, force=True, runs_dir=config.parent / "runs"
    )
    (split,) = (found for found in compared.splits if found.measure == "rr")
    assert [part.causes for part in split.parts] == [("judgments",), ("output",)]
    assert (split.before, split.after) == (pytest.approx(11 / 18), pytest.approx((1 / 2 + 1 / 3 + 1) / 3))
    assert split.parts[1].amount == pytest.approx(0)


def test_explain_shows_what_is_left_and_what_was_seen(config):
    found = evaluate(config, with_pairs(config), "exclude_self=true")
    explained = rankledger.explain(found.record, model="bm25", query="q", measure="rr", runs_dir=config.parent / "runs")
    assert [(line.rank, line.doc_id) for line in explained.documents] == [(1, "b")]
    assert (explained.n_retrieved, explained.n_excluded, explained.outcome.value) == (1, 2, 1)
    assert explained.recorded is not None
    assert explained.recorded.measured
    assert "2 documents left out before ranking (" in markdown(explained)
    assert as_data(explained)["n_excluded"] == 2

    options = {"model": "bm25", "query": "q", "measure": "rr", "runs_dir": config.parent / "runs"}
    counted, removed = (
        rankledger.explain(evaluate(config, *trained(config, seen)).record, **options) for seen in ("count", "remove")
    )
    assert (counted.n_seen, counted.n_excluded, counted.n_retrieved) == (2, 0, 3)
    assert "2 documents of the list seen in training (interactions)" in markdown(counted)
    assert (removed.n_seen, removed.n_excluded, removed.n_retrieved) == (0, 2, 1)
    assert as_data(counted)["n_seen"] == 2


TRAINED = "query_id\tdoc_id\nq\tx\nq\ty\nr\tx\nv\tc\n"


def trained(config: Path, seen: str, text: str = TRAINED) -> tuple[str, ...]:
    path = write(config.parent / "train.tsv", text)
    return (f"interactions={path}", f"seen={seen}")


def test_what_was_seen_in_training(config):
    """q consumed x and y, r x: counted, the figures are the same; removed, rr is (1/2 + 1 + 1) / 3; or refused."""
    plain, counted, removed = (
        evaluate(config, *keys) for keys in ((), trained(config, "count"), trained(config, "remove"))
    )

    assert figures(counted) == figures(plain)
    assert (counted.record / "scores.parquet").read_bytes() == (plain.record / "scores.parquet").read_bytes()
    assert next(notes(counted)) == (
        "bm25 on web: 8 rows, 3 documents of 2 queries seen in training, 37.5% of the top 10 judged"
    )
    assert figures(removed)["rr"] == pytest.approx((1 / 2 + 1 + 1) / 3)
    assert "3 documents of 2 queries excluded" in next(notes(removed))
    datasets = [manifest_of(found.record)["datasets"]["web"] for found in (plain, counted, removed)]
    assert [found.get("seen") for found in datasets] == [None, "count", "remove"]
    assert ["excluded documents" in found["digests"] for found in datasets] == [False, False, True]
    (failure,) = evaluate(config, *trained(config, "refuse")).failures
    assert "user 'q' is recommended 'x' (line 4), which is in the user's interactions" in failure.reason


def test_the_cache_knows_what_was_left_out_and_counted(config):
    keys = [(), ("exclude_self=true",), (with_pairs(config),), trained(config, "count"), trained(config, "remove")]
    first, again = ([evaluate(config, *key) for key in keys] for _ in range(2))
    others = [
        evaluate(config, with_pairs(config, PAIRS + "r\tc\n")),
        evaluate(config, *trained(config, "count", TRAINED + "r\tc\n")),
    ]

    outputs = [manifest_of(found.record)["outputs"][0] for found in (*first, *again, *others)]
    assert [output["parsed"] for output in outputs] == [True] * 5 + [False] * 5 + [True] * 2
    assert [figures_of(found.record) for found in first] == [figures_of(found.record) for found in again]
    assert [figures(found)["rr"] for found in (*first, *others)] == pytest.approx(
        [11 / 18, 7 / 9, 5 / 6, 11 / 18, 5 / 6, 1 / 2, 11 / 18]
    )
    counts = [output["quality"]["n_seen"] for output in (*outputs[3:5], *outputs[8:10], outputs[-1])]
    assert counts == [3, None, 3, None, 4]


def test_what_is_counted_breaks_no_comparison(config):
    options = {"runs_dir": config.parent / "runs"}
    plain, counted = evaluate(config), evaluate(config, *trained(config, "count"))
    again = evaluate(config, *trained(config, "count", TRAINED + "r\tc\n"))
    removed = evaluate(config, *trained(config, "remove"))

    for before, after in ((plain, counted), (counted, again)):
        assert not rankledger.compare(before.evaluation_id, after.evaluation_id, **options).moved
    message = refusal(rankledger.compare, counted.evaluation_id, removed.evaluation_id, **options)
    assert message.startswith("web: the excluded documents differ (none and seen: remove, sha256 ")
    split, _ = rankledger.compare(plain.evaluation_id, removed.evaluation_id, force=True, **options).splits
    assert [part.causes for part in split.parts] == [("excluded documents",), ("output",)]
    assert [part.amount for part in split.parts] == pytest.approx([(1 / 2 + 1 + 1) / 3 - 11 / 18, 0])


def test_a_record_is_reproduced_and_explained_with_its_pairs(config, tmp_path):
    found = evaluate(config, with_pairs(config), "exclude_self=true")
    moved = tmp_path / "moved"
    moved.mkdir()
    (config.parent / "excluded.tsv").rename(moved / "pairs.tsv")

    with pytest.raises(rankledger.InputError, match="exclude of web"):
        rankledger.reproduce(str(found.record), runs_dir=config.parent / "runs")
    again = rankledger.reproduce(str(found.record), inputs=moved, runs_dir=config.parent / "runs")
    assert (again.verdict, again.n_found) == ("identical", 1)

    found = evaluate(config, with_pairs(config))
    with_pairs(config, PAIRS + "r\tc\n")
    message = refusal(
        rankledger.explain, found.record, model="bm25", query="q", measure="rr", runs_dir=config.parent / "runs"
    )
    assert "excluded.tsv" in message


def test_workers_find_the_pairs_beside_the_judgments(config):
    keys = [with_pairs(config), "exclude_self=true", *trained(config, "count")]
    overrides = [f"datasets.web.{key}" for key in keys]
    (planned,) = plan(load(config, overrides)).datasets
    dataset, cache = read_dataset(planned.shown, TREC_EVAL), OutputCache(config.parent / "cache")
    kept = output_store(planned, dataset.files, TREC_EVAL, cache)
    assert OutputReader(dataset, TREC_EVAL, depth=0, compared=0, kept=kept).keep_judgments() == ()

    found = kept.dataset()
    assert found is not None
    assert sorted(contents(found.excluded.rows)) == sorted(contents(dataset.excluded.rows))
    assert [value for _, _, value in sorted(contents(found.excluded.rows), key=lambda row: row[2])] == [0] * 5 + [1] * 3
    (pairs,) = (config.parent / "cache").rglob("*.excluded")
    pairs.unlink()
    assert kept.dataset() is None
