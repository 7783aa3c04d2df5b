"""A model of a record beside the current one: its own scores if they mean the same, else scored anew or refused."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import rankledger
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.cache import OutputCache
from rankledger.pipeline.data.inputs import read_inputs
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.history.baselines import CurrentEvaluation, baseline_scores
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.workspace import Workspace, open_source
from rankledger.pipeline.support.parallel import Workers
from tests.support.generated_data import (
    Collection,
    Table,
    rating_collection,
    search_collection,
    write_config,
    write_table,
)

SUITES = {"search": ["ndcg@10", "ap", "rr(rel=2)@10", "bpref"]}
STARS = {"stars": ["rmse", "r2", "mae(average=query)"]}
WEB = search_collection(40, n_queries=30)
RATED = rating_collection(41, n_users=10)


def evaluated(folder: Path, collection: Collection, suites: Mapping[str, Sequence[str]], **sections: Any) -> Path:
    config = write_config(folder, {"web": collection}, suites, **sections)
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs").record


def remove_outputs(record: Path) -> None:
    for output in read_record(record).manifest.outputs:
        for file in output.files:
            Path(file.path).unlink()


class Against(NamedTuple):
    scores: Scores | None
    reasons: Mapping[Measure, str]


def recalled(
    folder: Path,
    collection: Collection,
    suites: Mapping[str, Sequence[str]],
    record: Path,
    model: str = "dense",
    **sections: Any,
) -> Against:
    return held_against(
        write_config(folder / "current", {"web": collection}, suites, **sections), record, model, folder
    )


def held_against(config: Path, record: Path, model: str, folder: Path) -> Against:
    workspace = Workspace.open(folder / "runs")
    opened = open_source(config, workspace)
    profile = opened.loaded.config.conventions.resolved
    inputs = read_inputs(opened.planned, profile.conventions, Workers(), cache=OutputCache(folder / "runs" / "cache"))
    (dataset,) = opened.planned.datasets
    current = CurrentEvaluation(profile, inputs, Workers(), workspace)
    return Against(*baseline_scores(read_record(record), model, dataset, dataset.measures, current))


def scored(folder: Path, collection: Collection, suites: Mapping[str, Sequence[str]], **sections: Any) -> Scores:
    config = write_config(folder / "apart", {"web": collection}, suites, **sections)
    evaluation = rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "apart" / "runs")
    return next(result for result in evaluation.results if result.model == "dense")


def assert_same(found: Against, expected: Scores) -> None:
    assert found.reasons == {}
    assert found.scores is not None
    assert found.scores.query_ids.tolist() == expected.query_ids.tolist()
    assert found.scores.missing.tolist() == expected.missing.tolist()
    assert set(found.scores.measures) == set(expected.measures)
    for row, measure in enumerate(found.scores.measures):
        other = expected.measures.index(measure)
        assert found.scores.values[row].tobytes() == expected.values[other].tobytes()
        assert found.scores.weights[row].tobytes() == expected.weights[other].tobytes()


def regraded(judged: Table) -> Table:
    return {
        query_id: {doc_id: (grade + 1 + place) % 4 for place, (doc_id, grade) in enumerate(found.items()) if place != 1}
        for query_id, found in judged.items()
    }


def other_outputs(collection: Collection, **changes: Any) -> Collection:
    """The collection with other outputs now: those of the record must not be read from the current files."""
    outputs = {
        model: {query_id: {doc_id: -score for doc_id, score in found.items()} for query_id, found in output.items()}
        for model, output in collection.outputs.items()
    }
    return replace(collection, outputs=outputs, **changes)


def test_what_means_the_same_is_taken_from_the_record(tmp_path):
    record = evaluated(tmp_path, WEB, SUITES)
    shutil.rmtree(tmp_path / "runs" / "cache")
    assert_same(recalled(tmp_path, other_outputs(WEB), SUITES, record), scored(tmp_path, WEB, SUITES))


def test_changed_judgments_are_scored_anew(tmp_path):
    record = evaluated(tmp_path, WEB, SUITES)
    shutil.rmtree(tmp_path / "web")  # its files are gone; the output cache is all there is
    judged = dict(list(regraded(WEB.judged).items())[3:])
    found = recalled(tmp_path, other_outputs(WEB, judged=judged), SUITES, record)
    assert_same(found, scored(tmp_path, replace(WEB, judged=judged), SUITES))


def test_an_unchanged_output_is_scored_without_what_is_excluded_now(tmp_path):
    record = evaluated(tmp_path, WEB, SUITES)
    pairs = [(query_id, next(iter(found)), 0.0) for query_id, found in WEB.judged.items()]
    defaults = {"dataset": {"exclude": str(tmp_path / "pairs.tsv")}}
    write_table(tmp_path / "pairs.tsv", pairs, "relevance")

    found = recalled(tmp_path, WEB, SUITES, record, defaults=defaults)

    assert_same(found, scored(tmp_path, WEB, SUITES, defaults=defaults))
    before = scored(tmp_path, WEB, SUITES)
    assert found.scores is not None
    assert not np.array_equal(found.scores.values, before.values, equal_nan=True)
    shutil.rmtree(tmp_path / "runs" / "cache")
    unknown = recalled(tmp_path, other_outputs(WEB), SUITES, record, defaults=defaults)
    for reason in unknown.reasons.values():
        assert reason.startswith(f"excluded documents changed since {read_record(record).manifest.label}, and ")
        assert "has no copy of it" in reason


def test_changed_clusters_are_scored_anew(tmp_path):
    suites = {"search": ["robustness@10"]}
    table = tmp_path / "queries.tsv"
    defaults = {"dataset": {"queries": str(table), "cluster": "question"}}

    def write(size: int) -> None:
        lines = [f"{query_id}\t{place // size}\t{place // 5}\n" for place, query_id in enumerate(sorted(WEB.judged))]
        table.write_text("query_id\tquestion\ttopic\n" + "".join(lines), encoding="utf-8")

    write(2)
    record = evaluated(tmp_path, WEB, suites, defaults=defaults)
    pairs = scored(tmp_path, WEB, suites, defaults=defaults)
    assert_same(recalled(tmp_path, other_outputs(WEB), suites, record, defaults=defaults), pairs)
    for size, column in ((3, "question"), (2, "topic")):
        write(size)
        defaults["dataset"]["cluster"] = column
        found = recalled(tmp_path, other_outputs(WEB), suites, record, defaults=defaults)
        now = scored(tmp_path, WEB, suites, defaults=defaults)
        assert_same(found, now)
        assert not np.array_equal(now.values, pairs.values, equal_nan=True)


@pytest.mark.parametrize(
    ("suites", "sections"),
    [
        ({"search": ["ndcg@10", "p@3", "ndcg(gain=exponential)@10"]}, {}),
        (SUITES, {"conventions": {"unjudged_documents": "condensed"}}),
    ],
    ids=["measures", "conventions"],
)
def test_new_definitions_are_scored_anew(tmp_path, suites, sections):
    record = evaluated(tmp_path, WEB, SUITES)
    found = recalled(tmp_path, other_outputs(WEB), suites, record, **sections)
    assert_same(found, scored(tmp_path, WEB, suites, **sections))


def test_one_measure_can_be_compared_where_another_cannot(tmp_path):
    """What the record has is taken although what it lacks is not to be had any more."""
    record = evaluated(tmp_path, WEB, {"search": ["ap"]})
    remove_outputs(record)
    shutil.rmtree(tmp_path / "runs" / "cache")

    found = recalled(tmp_path, other_outputs(WEB), {"search": ["p@3", "ap"]}, record)

    assert found.scores is not None
    assert [str(measure) for measure in found.scores.measures] == ["ap"]
    assert {str(measure): reason.partition(",")[0] for measure, reason in found.reasons.items()} == {
        "p@3": f"p@3 was not measured {read_record(record).manifest.where}"
    }


def test_ratings_are_taken_from_the_record_or_not_at_all(tmp_path):
    record = evaluated(tmp_path, RATED, STARS)
    models = list(RATED.outputs)

    same = recalled(tmp_path, other_outputs(RATED), STARS, record, models[1])
    assert same.reasons == {}
    assert same.scores is not None
    assert len(same.scores.moments) == 1

    changed = {user: {item: 6 - stars for item, stars in found.items()} for user, found in RATED.judged.items()}
    other = recalled(tmp_path, other_outputs(RATED, judged=changed), STARS, record, models[1])
    assert other.scores is None
    expected = f"judgments changed since {read_record(record).manifest.label}; only rankings can be scored again"
    assert set(other.reasons.values()) == {expected}


def test_what_cannot_be_compared_says_why(tmp_path):
    record = evaluated(tmp_path, WEB, SUITES)

    found = recalled(tmp_path, WEB, SUITES, record, "new")
    assert found.scores is None
    assert set(found.reasons.values()) == {f"'new' was not evaluated on 'web' {read_record(record).manifest.where}"}

    remove_outputs(record)
    query_id = next(iter(WEB.judged))
    judged = {**WEB.judged, query_id: {**WEB.judged[query_id], "new-document": 2}}

    found = recalled(tmp_path, other_outputs(WEB, judged=judged), SUITES, record)
    assert found.scores is None
    assert len(found.reasons) == len(SUITES["search"])
    for reason in found.reasons.values():
        assert reason.startswith(f"judgments changed (1 pair new) since {read_record(record).manifest.label}, and ")
        assert "new-document" in reason

    shutil.rmtree(tmp_path / "runs" / "cache")

    found = recalled(tmp_path, other_outputs(WEB, judged=regraded(WEB.judged)), SUITES, record)
    assert found.scores is None
    assert all("cache has no copy of it" in reason for reason in found.reasons.values())

    found = recalled(tmp_path, other_outputs(WEB), SUITES, record, defaults={"dataset": {"duplicates": "keep_first"}})
    assert found.scores is None
    assert all(reason.startswith("judgments changed") for reason in found.reasons.values())


def test_given_scores_are_compared_query_by_query(tmp_path):
    def written(folder: Path, scores: dict[str, float]) -> Path:
        folder.mkdir()
        lines = "".join(f"{query_id}\t{score}\n" for query_id, score in scores.items())
        (folder / "judge.tsv").write_text(f"query_id\tfaithful\n{lines}", encoding="utf-8")
        config = "name: given\ndatasets: {web: {scores: {faithful: higher}}}\nmodels: {dense: {outputs: judge.tsv}}\n"
        (folder / "config.yaml").write_text(config, encoding="utf-8")
        return folder / "config.yaml"

    before = written(tmp_path / "before", {"q1": 0.25, "q2": 0.5, "q3": 0.75})
    record = rankledger.evaluate_config(before, tracking=False, runs_dir=tmp_path / "runs").record
    now = written(tmp_path / "now", {"q4": 1.0, "q3": 0.5, "q1": 0.5})

    found = held_against(now, record, "dense", tmp_path)

    assert found.reasons == {}
    assert found.scores is not None
    assert found.scores.query_ids.tolist() == ["q1", "q3", "q4"]
    np.testing.assert_array_equal(found.scores.values, [[0.25, 0.75, np.nan]])
    assert found.scores.missing.tolist() == [False, False, True]
