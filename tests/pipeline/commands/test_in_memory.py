"""Evaluations of what is in memory: the figures of the same rows in files, and nothing that is written."""

import math
import re
import tempfile
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rankledger
from rankledger import JudgedBlock, Measure, Metric, Terms, from_terms
from rankledger.metrics.block import Floats
from rankledger.metrics.ranking import ap
from rankledger.metrics.registry import METRICS
from tests.support.data_files import refusal
from tests.support.generated_data import (
    Collection,
    Table,
    rating_collection,
    rows,
    search_collection,
    write_config,
    write_table,
)
from tests.support.records import manifest_of

MODELS = ("bm25", "dense", "rrf")
WEB = search_collection(20, n_queries=30, models=MODELS)
STARS = rating_collection(21, n_users=12, models=MODELS)
MEASURES = ["ndcg@5,10", "ap", "rr", "bpref", "judged@10"]
FEW = {"bootstrap": {"resamples": 200}}
COMPARED = {**FEW, "comparison": {"permutations": 200}}
JUDGED = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 2}}
RUN = {"q1": {"d1": 0.5, "d2": 0.7}, "q2": {"d3": 1.0}}

ScoredDoc = namedtuple("ScoredDoc", ["query_id", "doc_id", "score"])  # as of ir_measures
Qrel = namedtuple("Qrel", ["query_id", "doc_id", "relevance", "iteration"])


class Streamed:
    """A table that only Arrow can take, as those of Polars and DuckDB are."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class Run:
    """The one method that `Qrels` and `Run` of ranx have in common with other dictionaries."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def to_dict(self) -> Table:
        return self._table


def frame(table: Table, value: str) -> pd.DataFrame:
    found = pd.DataFrame(rows(table), columns=["query_id", "doc_id", value])
    return found.set_index(pd.Index(np.arange(len(found)) * 7 % 5))


def arrow(table: Table, value: str) -> pa.Table:
    found = pa.Table.from_pandas(frame(table, value), preserve_index=False).append_column(
        "rank", pa.array([0] * len(rows(table)))
    )
    return pa.concat_tables([found.slice(0, 7), found.slice(7, 0), found.slice(7)])


def categorical(table: Table, value: str) -> pd.DataFrame:
    found = frame(table, value)
    names = ["unused", *reversed(found["query_id"].unique())]
    return found.assign(query_id=pd.Categorical(found["query_id"], categories=names))


CONTAINERS: Mapping[str, Callable[[Table, str], Any]] = {
    "mapping": lambda table, value: table,
    "ranx": lambda table, value: Run(table),
    "tuples": lambda table, value: rows(table),
    "generator": lambda table, value: (row for row in rows(table)),
    "named tuples": lambda table, value: [ScoredDoc(*row) for row in rows(table)],
    "further fields": lambda table, value: [Qrel(*row, "0") for row in rows(table)],
    "pandas": frame,
    "categorical": categorical,
    "objects": lambda table, value: frame(table, value).astype({"query_id": object, "doc_id": object}),
    "arrow": arrow,
    "stream": lambda table, value: Streamed(arrow(table, value)),
    "batches": lambda table, value: arrow(table, value).to_reader(),
}


def in_memory(collection: Collection, make: Callable[[Table, str], Any], **options: Any) -> rankledger.Evaluation:
    columns = ("rating", "prediction") if collection.kind == "ratings" else ("relevance", "score")
    outputs = {model: make(table, columns[1]) for model, table in collection.outputs.items()}
    options = {"settings": COMPARED, "dataset": "web", "baseline": "bm25", "measures": MEASURES} | options
    return rankledger.evaluate(make(collection.judged, columns[0]), outputs, **options)


def from_files(
    folder: Path, collection: Collection, measures: list[str], *, overrides: Sequence[str] = (), **sections: Any
) -> rankledger.Evaluation:
    config = write_config(
        folder,
        {"web": collection},
        {"measures": measures},
        ending=".tsv",
        comparison={"baseline": "bm25", "permutations": 200},
        report=False,
        **sections,
    )
    return rankledger.evaluate_config(config, overrides=overrides, tracking=False, runs_dir=folder / "runs")


def assert_same(found: rankledger.Evaluation, expected: rankledger.Evaluation) -> None:
    for name in ("summary", "scores", "comparisons"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(expected, name), check_exact=True, obj=name)
    assert found.failures == expected.failures == ()
    assert found.leading == expected.leading
    rising = {name: replace(quality, n_rising=0) for name, quality in found.quality.items()}  # of the order of rows
    assert rising == {name: replace(quality, n_rising=0) for name, quality in expected.quality.items()}


def test_every_container_has_the_figures_of_files(tmp_path: Path):
    expected = from_files(tmp_path, WEB, MEASURES)
    for make in CONTAINERS.values():
        assert_same(in_memory(WEB, make), expected)
    rng = np.random.default_rng(3)
    assert_same(in_memory(WEB, lambda table, value: rows(table, rng)), expected)

    dense = write_table(tmp_path / "of {model}" / "dense.parquet", rows(WEB.outputs["dense"]), "score")
    outputs = {"bm25": str(tmp_path / "web" / "bm25.tsv"), "dense": dense, "rrf": WEB.outputs["rrf"]}
    options: dict[str, Any] = {"baseline": "bm25", "dataset": "web", "settings": COMPARED}
    assert_same(rankledger.evaluate(tmp_path / "web" / "judged.tsv", outputs, MEASURES, **options), expected)

    measures = ["rmse", "mae"]
    expected = from_files(tmp_path, STARS, measures)
    for name in ("mapping", "tuples", "pandas", "arrow"):
        assert_same(in_memory(STARS, CONTAINERS[name], measures=measures), expected)


def test_slices_and_clusters_come_of_the_queries_table(tmp_path: Path) -> None:
    names = sorted(WEB.judged)
    table = pd.DataFrame({"query_id": names, "lang": ["de" if place % 3 else "en" for place in range(len(names))]})
    table.to_csv(tmp_path / "queries.tsv", sep="\t", index=False)
    config = write_config(
        tmp_path, {"web": WEB}, {"measures": ["ap"]}, ending=".tsv", report=False, slices=["lang"], comparison=None
    )
    queries = f"datasets.web.queries={tmp_path / 'queries.tsv'}"
    expected = rankledger.evaluate_config(config, overrides=[queries], tracking=False, runs_dir=tmp_path / "runs")
    found = in_memory(
        WEB, CONTAINERS["mapping"], measures="ap", queries=table, baseline=None, settings={**FEW, "slices": ["lang"]}
    )
    assert_same(found, expected)
    assert set(found.summary["slice"]) == {"all", "lang=de", "lang=en"}


def test_whole_numbers_are_the_ids_that_they_are_written_as() -> None:
    judged = {7: {1: 1, 2: 0}, 8: {3: 1}}
    texts = pd.DataFrame({"query_id": ["7", "7", "8"], "doc_id": ["2", "1", "3"], "score": [1, 2, 3]})
    numbers = texts.astype({"query_id": "int32", "doc_id": "uint64"})
    tuples = [(7, 2, 1), (7, 1, 2), (8, 3, 3)]
    other = texts.assign(query_id=["07", "07", "8"])
    outputs = {"texts": texts, "numbers": numbers, "tuples": tuples, "other": other}
    scores = rankledger.evaluate(judged, outputs, ["ap"], settings=FEW).scores.pivot(
        index="query_id", columns="model", values="ap"
    )
    assert scores.loc["7"].to_dict() == {"texts": 1, "numbers": 1, "tuples": 1, "other": 0}
    assert scores.loc["8"].to_dict() == {"texts": 1, "numbers": 1, "tuples": 1, "other": 1}


def test_nothing_is_written_without_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    evaluation = rankledger.evaluate(JUDGED, {"bm25": RUN}, ["ap"], settings=FEW)
    assert evaluation.record is None
    assert list(tmp_path.iterdir()) == []
    assert evaluation._repr_html_().count("record:") == 0  # type: ignore[attr-defined]  # of what the workflow returns
    assert "in memory" in repr(evaluation)

    expected = from_files(tmp_path / "one", WEB, ["ap"])
    config = tmp_path / "one" / "config.yaml"
    assert_same(rankledger.evaluate_config(config, record=False, runs_dir=tmp_path / "runs"), expected)
    assert not (tmp_path / "runs").exists()


def test_arguments_that_are_wrong_are_refused():
    takes = (
        "give a path, a data frame or Arrow table with the columns query_id, doc_id, score, "
        "{query: {document: score}}, or tuples (query, document, score)"
    )
    cases: dict[str, tuple[Any, ...]] = {
        f"outputs: found an int; {takes}": (JUDGED, 3, "ap"),
        "outputs: found none. Add the models' outputs by name, such as {'bm25': run}.": (JUDGED, {}, "ap"),
        "outputs: found the key 1. Use the models' names as keys.": (JUDGED, {1: RUN}, "ap"),
        f"outputs['bm25']: found an int; {takes}": (JUDGED, {"bm25": 3}, "ap"),
        f"judgments: found a NoneType; {takes.replace('score', 'relevance')}": (None, {"bm25": RUN}, "ap"),
        "measures: found []; give names, such as ['ndcg@10', 'ap']": (JUDGED, {"bm25": RUN}, []),
        "measures: found [3]; give names, such as ['ndcg@10', 'ap']": (JUDGED, {"bm25": RUN}, [3]),
        "measures[1]: unknown metric 'ndgc@10'; did you mean 'ndcg@10'?": (JUDGED, {"bm25": RUN}, ["ap", "ndgc@10"]),
        "judgments: file not found: nowhere.tsv; check the path": ("nowhere.tsv", {"bm25": RUN}, "ap"),
    }
    for message in cases:
        assert refusal(rankledger.evaluate, *cases[message]) == message

    pairs = "a path, a data frame or Arrow table with the columns query_id, doc_id, {query: [document, …]}, or tuples"
    options: dict[str, dict[str, Any]] = {
        "baseline: unknown model 'bm52'; did you mean 'bm25'?": {"baseline": "bm52"},
        "queries: found a dict; give a path, or a data frame or Arrow table with the column query_id": {"queries": {}},
        "settings: sed: unknown key 'sed'; did you mean 'seed'?": {"settings": {"sed": 1}},
        "settings: found a list. Use keys of a config, such as {'bootstrap': {'resamples': 1000}}.": {
            "settings": ["seed=1"]
        },
        "settings: Object of type set is not JSON serializable. Use texts, numbers, lists and mappings.": {
            "settings": {"slices": {"lang"}}
        },
        f"exclude: found an int; give {pairs} (query, document)": {"exclude": 3},
        "exclude: the value of 'q1' is a text. Use a list of document ids for every query.": {"exclude": {"q1": "d1"}},
        "exclude: found ('q1', 'd1', 1) (row 1); give tuples (query, document)": {"exclude": [("q1", "d1", 1)]},
        "exclude: none of its queries is judged, such as 'q9'; the judgments have 'q1': write the ids of both alike, "
        "or remove `exclude`": {"exclude": {"q9": ["d1"]}},
    }
    for message in options:
        assert refusal(rankledger.evaluate, JUDGED, {"bm25": RUN}, "ap", **options[message]) == message
    double = [("q1", "d1", 1), ("q1", "d1", 0)]
    message = refusal(rankledger.evaluate, double, {"bm25": RUN}, ["ap"])
    assert message.startswith("judgments: query 'q1' judges document 'd1' twice (row 1 and row 2); keep one")


@pytest.mark.parametrize("output", [RUN, frame(RUN, "score"), rows(RUN), {"q1": ["d2", "d1"], "q2": ["d3"]}])
def test_a_single_output_needs_no_name(output: Any) -> None:
    evaluation = rankledger.evaluate(JUDGED, output, ["rr"], settings=FEW)
    assert evaluation.scores["model"].tolist() == ["output", "output"]
    assert evaluation.scores["rr"].tolist() == [0.5, 1.0]


def test_an_output_that_is_wrong_is_a_failure_like_a_file() -> None:
    table = frame(RUN, "score")
    cases: dict[str, Any] = {
        "score is null (row 2); fill it or remove the row": table.assign(score=[1.0, None, 2.0]),
        "score nan (row 2) is not a finite number; fix it": [("q1", "d1", 1.0), ("q1", "d2", float("nan"))],
        "score inf (query 'q2', document 'd3') is not a finite number; fix it": {"q1": {"d": 1}, "q2": {"d3": np.inf}},
        "score 'high' (query 'q1', document 'd1') is not a number; fix it": {"q1": {"d1": "high"}},
        "score True (row 1) is not a number; fix it": [("q1", "d1", True)],
        "score is large_string; write numbers": table.assign(score="1.0"),
        "doc_id is double; write ids as strings or whole numbers": table.assign(doc_id=[1.0, 2.0, 3.0]),
        "query 'q1' ranks document 'd1' twice (row 1 and row 3); keep one": [
            ("q1", "d1", 1.0),
            ("q1", "d2", 2.0),
            ("q1", "d1", 0.5),
        ],
        "no rows; give some": {"q1": {}},
        "no column 'doc_id' among query_id, score; name its columns query_id, doc_id, score": table[
            ["query_id", "score"]
        ],
        "no column 'query_id' among q, d, hits; name its columns query_id, doc_id, score": (
            table.set_axis(["q", "d", "hits"], axis=1)
        ),
        "no column 'query_id' among 0, 1, 2; name its columns query_id, doc_id, score": (
            table.set_axis([0, 1, 2], axis=1)
        ),
        "none of its queries is judged, such as 'Q1'; the judgments have 'q1': write the letters of both in the same "
        "case, or accept it with settings={'models': {'new': {'outputs': {'allow_no_overlap': True}}}}": {
            "Q1": {"d1": 1.0}
        },
        "found ('q1', 'd1') (row 1); give tuples (query, document, score)": [("q1", "d1")],
        "the value of 'q1' is a tuple. Use a list of document ids or {document: score} for every query.": {
            "q0": {"d1": 1.0},
            "q1": ("d1",),
        },
        "doc_id 3 (row 2) is an int; write ids as strings or whole numbers, all of one kind": [
            ("q1", "d1", 1.0),
            ("q1", 3, 1.0),
        ],
        "empty doc_id (row 1); fill it": [("q1", "", 1.0)],
    }
    for message in cases:
        evaluation = rankledger.evaluate(JUDGED, {"bm25": RUN, "new": cases[message]}, ["ap"], settings=FEW)
        assert [failure.reason for failure in evaluation.failures] == [f"outputs['new']: {message}"]
        assert set(evaluation.summary["model"]) == {"bm25"}


def test_unjudged_and_unanswered_queries_are_counted_as_in_files() -> None:
    evaluation = rankledger.evaluate(JUDGED, {"bm25": {"q1": {"d1": 1.0}, "other": {"d9": 1.0}}}, ["ap"], settings=FEW)
    quality = evaluation.quality["data", "bm25"]
    assert (quality.n_unjudged_queries, quality.n_missing_queries) == (1, 1)
    assert evaluation.scores["ap"].tolist() == [1.0, 0.0]


def test_ranks_and_subtopics_need_a_table() -> None:
    settings = {**FEW, "conventions": {"ties": "rank_column"}}
    message = refusal(rankledger.evaluate, JUDGED, {"bm25": RUN}, ["ap"], settings=settings)
    assert message == "outputs['bm25']: a dict cannot hold query_id, doc_id, rank; give a data frame or Arrow table"
    ranked = frame(RUN, "score").assign(rank=[2, 1, 1])
    evaluation = rankledger.evaluate(JUDGED, {"bm25": ranked}, ["rr"], settings=settings)
    assert evaluation.scores["rr"].tolist() == [0.5, 1.0]


def test_a_record_names_inputs_by_the_digest_of_their_rows(tmp_path: Path):
    digests = set()
    for name in ("mapping", "generator", "pandas", "categorical", "stream"):
        evaluation = in_memory(WEB, CONTAINERS[name], record=True, runs_dir=tmp_path)
        manifest = manifest_of(evaluation.record)
        (judged,) = manifest["datasets"]["web"]["inputs"]["judgments"]
        assert judged["path"] == "judgments (in memory)"
        assert [output["path"] for output in manifest["outputs"]] == [f"outputs['{model}']" for model in MODELS]
        digests.add((judged["sha256"], *(output["files"][0]["sha256"] for output in manifest["outputs"])))
    assert len(digests) == 1
    assert len({*next(iter(digests))}) == 1 + len(MODELS)

    digests = set()
    for name in ("lists", "sets", "tuples"):
        options = {"exclude": EXCLUDED[name], "record": True, "runs_dir": tmp_path}
        evaluation = in_memory(WEB, CONTAINERS["mapping"], **options)
        inputs = manifest_of(evaluation.record)["datasets"]["web"]["inputs"]
        assert [*inputs] == ["judgments", "exclude"]
        digests.add(inputs["exclude"][0]["sha256"])
    assert len(digests) == 1
    query = next(query for query in PAIRS if query in WEB.judged)
    assert evaluation.explain("bm25", query, "ap").n_excluded == len(PAIRS[query])


def test_a_record_is_read_compared_and_reported_but_not_evaluated_again(tmp_path: Path) -> None:
    evaluation = in_memory(WEB, CONTAINERS["pandas"], record=True, runs_dir=tmp_path)
    record = str(evaluation.record)
    assert_same(rankledger.load(record), evaluation)
    differences = rankledger.compare(f"{record}#bm25", f"{record}#dense").differences
    expected = evaluation.comparisons.query("model == 'dense' and slice == 'all'")
    np.testing.assert_allclose(differences["difference"], expected["difference"])
    assert "in-memory" in rankledger.report(record)
    gone = "was given in memory, and a record keeps no inputs; evaluate it again"
    of_all = [f"judgments of web: {gone}", *(f"{model} on web: {gone}" for model in MODELS)]
    with pytest.raises(rankledger.InputError) as refused:
        rankledger.reproduce(record)
    assert [*refused.value.lines] == of_all
    with pytest.raises(rankledger.InputError) as refused:
        rankledger.explain(record, model="bm25", query=min(WEB.judged))
    assert [*refused.value.lines] == of_all[:2]
    advice = "evaluate again from its data"
    message = refusal(rankledger.evaluate_config, record, tracking=False)
    assert message == f"memory://judgments: was given in memory, and a record keeps no inputs; {advice}"


def without_ids(text: str, *evaluations: rankledger.Evaluation) -> str:
    for evaluation in evaluations:
        text = text.replace(evaluation.evaluation_id, "ID")
    return text


def test_an_evaluation_without_a_record_is_reported_as_its_record_is(tmp_path: Path):
    kept = in_memory(WEB, CONTAINERS["mapping"], record=True, runs_dir=tmp_path / "runs")
    free = in_memory(WEB, CONTAINERS["mapping"])
    assert without_ids(free.to_latex(), free) == without_ids(kept.to_latex(), kept)
    assert without_ids(free.to_markdown(["ap"]), free) == without_ids(kept.to_markdown("ap"), kept)
    assert without_ids(rankledger.report(str(kept.record), form="latex"), kept) == without_ids(kept.to_latex(), kept)
    for name, begin in (("report.html", "<!doctype html>"), ("report.md", "##"), ("r.tex", "%"), ("r.csv", "evalu")):
        free.report(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").lower().startswith(begin)
    assert refusal(free.report, tmp_path / "r.pdf").endswith("let the name end in .html, .md, .tex, .csv")

    evaluation = rankledger.evaluate(JUDGED, {"bm25": RUN}, ["ap"], settings=FEW)
    assert "& MAP" in evaluation.to_latex(headers={"ap": "MAP"})
    assert refusal(evaluation.to_latex, headers={"app": "MAP"}) == "headers: no measure 'app'; did you mean 'ap'?"
    style = rankledger.TableStyle(intervals=True)
    message = refusal(rankledger.report, "last", form="markdown", style=style)
    assert message == "style: is for LaTeX, and the report is markdown; remove it"


def test_models_of_one_evaluation_are_compared(tmp_path: Path):
    evaluation = in_memory(WEB, CONTAINERS["mapping"])
    differences = evaluation.compare("bm25", "dense").differences.set_index("measure")["difference"]
    expected = evaluation.comparisons.query("model == 'dense'").set_index("measure")["difference"]
    for measure, difference in differences.items():
        assert difference == pytest.approx(expected[measure], abs=1e-12)
    assert len(differences) == len(expected)
    message = refusal(evaluation.compare, "bm25", "dnse")
    assert "has no model 'dnse'" in message
    assert str(Path(tempfile.gettempdir())) not in message

    columns = ["query_id", "doc_id", "grade", "rank_before", "rank_after"]
    expected = from_files(tmp_path, WEB, MEASURES).compare("bm25", "dense").queries[columns]
    assert expected["rank_before"].notna().any()
    for options in ({}, {"record": True, "runs_dir": tmp_path / "kept"}):
        compared = in_memory(WEB, CONTAINERS["pandas"], **options).compare("bm25", "dense")
        pd.testing.assert_frame_equal(compared.queries[columns], expected)
        assert all("of judging" in remark for remark in compared.remarks)


def test_a_query_is_explained_with_or_without_a_record(tmp_path: Path) -> None:
    query = min(WEB.judged)
    free = in_memory(WEB, CONTAINERS["generator"])
    kept = in_memory(WEB, CONTAINERS["stream"], record=True, runs_dir=tmp_path / "runs")
    files = from_files(tmp_path, WEB, MEASURES)
    for evaluation in (free, kept, files, rankledger.load(files.record)):
        scores = evaluation.scores.set_index(["model", "query_id"])["ap"]
        assert evaluation.explain("dense", query, "ap").outcome.value == scores["dense", query]
    assert refusal(free.explain, "dense", "nowhere").startswith("the query 'nowhere' is not judged in web")


def test_outputs_that_are_all_refused_raise(tmp_path: Path) -> None:
    outputs = {"bm25": {}, "a.b": {"q9": {"d1": 1.0}}, "gone": tmp_path / "gone.tsv"}
    lines = (
        "outputs['bm25']: no rows; give some",
        "outputs['a.b']: none of its queries is judged, such as 'q9'; the judgments have 'q1': write the ids of both "
        "alike, or accept it with settings={'models': {'a.b': {'outputs': {'allow_no_overlap': True}}}}",
        f"outputs['gone']: file not found: {tmp_path / 'gone.tsv'}; check the path",
    )
    for options in ({}, {"record": True}, {"baseline": "bm25"}):
        with pytest.raises(rankledger.InputError) as refused:
            rankledger.evaluate(JUDGED, outputs, ["ap"], runs_dir=tmp_path, **options)
        assert {*refused.value.lines} == {*lines}
    assert not [*tmp_path.rglob("manifest.json")]


def test_an_output_without_rows_says_so() -> None:
    """`DataFrame()` is what a failed job hands over; of a column of nulls the first row is named."""
    types = (pa.null(), pa.float64(), pa.string(), pa.list_(pa.string()))
    tables = [pa.table({name: pa.array([], own) for name in ("query_id", "doc_id", "score")}) for own in types]
    empty = [*tables, *(table.to_pandas() for table in tables), pd.DataFrame(), {}, [], iter(())]
    nulls = pa.table({"query_id": pa.array([None, None]), "doc_id": ["a", "b"], "score": [1.0, 2.0]})
    outputs = {"bm25": RUN, "nulls": nulls, **{f"empty {place}": output for place, output in enumerate(empty)}}

    evaluation = rankledger.evaluate(JUDGED, outputs, ["ap"], settings=FEW)

    reasons = {f"empty {place}": "no rows; give some" for place in range(len(empty))}
    reasons["nulls"] = "query_id is null (row 1); fill it or remove the row"
    assert {failure.model: failure.reason for failure in evaluation.failures} == {
        name: f"outputs['{name}']: {reason}" for name, reason in reasons.items()
    }
    judgments = pd.DataFrame({"query_id": [], "doc_id": [], "relevance": []})
    assert refusal(rankledger.evaluate, judgments, {"m": RUN}, "ap") == "judgments: no rows; give some"


def test_what_a_command_prints_is_a_warning():
    lenskit = frame(RUN, "score").set_axis(["user_id", "item_id", "score"], axis=1)
    with pytest.warns(rankledger.InputWarning) as caught:
        evaluation = rankledger.evaluate(JUDGED, {"bm25": lenskit, "new": {}, "few": {"q1": {"d9": 1}, "q2": {"d3": 2}}}, "ap", settings=FEW)  # fmt: skip  # noqa: E501
    refused, unequal, read = (str(warning.message) for warning in caught)
    assert {warning.filename for warning in caught} == {__file__}
    assert refused == evaluation.failures[0].reason == "outputs['new']: no rows; give some"
    assert evaluation.warnings == (read,)
    assert unequal.startswith("data: few: 50% of its list is judged, bm25: 100%. ")
    assert read == "read as files of LensKit: columns: {query_id: user_id, doc_id: item_id} (such as outputs['bm25'])"

    # Two outputs and the catalogue have LensKit's columns, in a line; d9 and d8 are no documents of the catalogue.
    outputs = {
        name: frame({"q1": {"d1": 3, **more}, "q2": {"d3": 2}}, "score").set_axis(
            ["user_id", "item_id", "score"], axis=1
        )
        for name, more in {"one": {"d9": 2}, "two": {"d9": 2, "d8": 1}}.items()
    }
    documents = pd.DataFrame({"item_id": ["d1", "d2", "d3"]})
    with pytest.warns(rankledger.InputWarning):
        found = rankledger.evaluate(JUDGED, outputs, ["ap", "item_coverage@3"], documents=documents, settings=FEW)

    columns = "{doc_id: item_id} (such as documents); {query_id: user_id, doc_id: item_id} (such as outputs['one'])"
    assert found.warnings == (
        f"3 inputs read as files of LensKit: columns: {columns}",
        "one on data: recommendations outside of the catalogue: 1, documents: 1; check the ids",
        "two on data: recommendations outside of the catalogue: 2, documents: 2; check the ids",
    )


PAIRS = {query: sorted(ranked)[:4] for query, ranked in [*WEB.outputs["bm25"].items()][:9]}
EXCLUDED: Mapping[str, Any] = {
    "lists": PAIRS,
    "sets": {query: {*documents} for query, documents in PAIRS.items()},
    "mappings": {query: dict.fromkeys(documents, 0.0) for query, documents in PAIRS.items()},
    "tuples": [(query, document) for query, documents in PAIRS.items() for document in documents],
}


def test_documents_are_excluded_as_from_files(tmp_path: Path) -> None:
    outputs = {
        model: {query: {**ranked, query: 99.0} for query, ranked in table.items()}
        for model, table in WEB.outputs.items()
    }
    collection = Collection(WEB.judged, outputs)
    table = pd.DataFrame(EXCLUDED["tuples"], columns=["query_id", "doc_id"])
    write_table(tmp_path / "pairs.tsv", rows(EXCLUDED["mappings"]), "score")
    settings = {**COMPARED, "datasets": {"web": {"exclude_self": True}}}
    config = [f"datasets.web.exclude={tmp_path / 'pairs.tsv'}", "datasets.web.exclude_self=true"]
    expected = from_files(tmp_path, collection, MEASURES, overrides=config)
    plain = in_memory(collection, CONTAINERS["mapping"])
    kinds = {**EXCLUDED, "pandas": table, "arrow": pa.Table.from_pandas(table), "path": tmp_path / "pairs.tsv"}
    for name in kinds:
        found = in_memory(collection, CONTAINERS["mapping"], exclude=kinds[name], settings=settings)
        assert_same(found, expected)
        assert found.quality["web", "bm25"].n_excluded > plain.quality["web", "bm25"].n_rows / 100
    assert not found.summary.equals(plain.summary)


def test_what_was_seen_in_training_is_a_setting() -> None:
    """d2 of q1 was consumed: counted by default, removed so that d1 is first, or a reason to refuse."""
    data = (JUDGED, {"bm25": RUN}, "rr")
    settings = {seen: {**FEW, "datasets": {"data": {"seen": seen}}} for seen in ("remove", "refuse")}
    interactions = {"q1": ["d2"]}
    counted = rankledger.evaluate(*data, settings=FEW, interactions=interactions)
    removed = rankledger.evaluate(*data, settings=settings["remove"], interactions=interactions)
    assert (counted.scores["rr"].tolist(), counted.quality["data", "bm25"].n_seen) == ([0.5, 1.0], 1)
    assert (removed.scores["rr"].tolist(), removed.quality["data", "bm25"].n_excluded) == ([1.0, 1.0], 1)
    message = refusal(rankledger.evaluate, *data, settings=settings["refuse"], interactions=interactions)
    assert message == (
        "outputs['bm25']: user 'q1' is recommended 'd2' (query 'q1', document 'd2'), which is in the user's "
        "interactions; leave it out, or set seen: remove"
    )


def test_a_record_is_logged_to_mlflow(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    evaluation = in_memory(WEB, CONTAINERS["pandas"], tracking=True, runs_dir=tmp_path)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    runs = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    logged = {run.data.tags.get("rankledger.model"): run.data.metrics for run in runs}
    summary = evaluation.summary.query("slice == 'all' and measure == 'ap'").set_index("model")["estimate"]
    assert {model: logged[model]["ap"] for model in MODELS} == summary.to_dict()
    assert evaluation.record is not None
    assert evaluation.untracked is None


def first_hit(block: JudgedBlock, *, k: int | None = None) -> Floats:
    return ((block.ranks == 1) & (block.grades > 0)).any(axis=0).astype(np.float64)


@from_terms
def halved(block: JudgedBlock, *, k: int | None = None) -> Terms:
    grades = np.where(block.ranks <= (k or np.inf), np.where(block.grades > 0, block.grades, 0.0), 0.0)
    return Terms(grades / np.where(block.ranks == 1, 1, 2), {"grade": grades})


HALVED = Metric("halved", halved, "Halved grades", range=(0, 3), additive=True)


def metric_at(rank: int) -> Callable[..., Floats]:
    def hit_at_rank(block: JudgedBlock) -> Floats:
        return ((block.ranks == rank) & (block.grades > 0)).any(axis=0).astype(np.float64)

    return hit_at_rank


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        (first_hit, {"first_hit": 0.5}),
        ([first_hit, "rr"], {"first_hit": 0.5, "rr": 0.75}),
        (HALVED, {"halved": 1.25}),
        ([Measure(HALVED, k=1), Measure(HALVED)], {"halved@1": 1.0, "halved": 1.25}),
        (["halved@1", HALVED], {"halved@1": 1.0, "halved": 1.25}),
        ([metric_at(2)], {"hit_at_rank": 0.5}),
        ([METRICS["rr"], Measure(METRICS["p"], k=2), ap], {"rr": 0.75, "p@2": 0.5, "ap": 0.75}),
    ],
)
@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_a_metric_may_be_an_object(measures, expected, backend):
    """By hand: q1 has its grade 1 at rank 2, q2 its grade 2 at rank 1, so 0 and 1, 1/2 and 2, 0 and 2, 1 and 0."""
    outputs = {"bm25": RUN, "same": RUN}
    found = rankledger.evaluate(JUDGED, outputs, measures, settings={**FEW, "execution": {"backend": backend}}, jobs=2)
    lines = [line for line in found.estimates if line.model == "bm25"]
    assert {line.measure: line.estimate for line in lines} == expected


def test_an_evaluation_by_metrics_that_are_objects_is_whole(tmp_path):
    outputs = {"bm25": RUN, "dense": {"q1": {"d1": 1.0}, "q2": {"d3": 1.0}}}
    found = rankledger.evaluate(JUDGED, outputs, [HALVED], settings=FEW, record=True, runs_dir=tmp_path)

    assert found.explain("bm25", "q1").outcome.value == 0.5
    (line,) = found.compare("bm25", "dense").comparisons
    assert line.difference == 0.25
    assert "halved" in found.to_markdown()
    assert rankledger.load(found.evaluation_id, runs_dir=tmp_path).estimates == found.estimates


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        ([metric_at(1), metric_at(2)], "found two metrics 'hit_at_rank'. Set another name for one of them."),
        (lambda block: block, "<lambda>: annotate its first parameter as `block: JudgedBlock`"),
        (Metric("ndcg", first_hit, "First hit"), "`rankledger measures` knows a metric 'ndcg'"),
        (dict, "dict is a type; name a function, or a Metric"),
        ([first_hit, 3], "give names, such as ['ndcg@10', 'ap']"),
    ],
)
def test_what_is_no_metric_is_refused(measures, said):
    with pytest.raises(rankledger.InputError) as refused:
        rankledger.evaluate(JUDGED, {"bm25": RUN}, measures)
    assert str(refused.value).startswith("measures")
    assert said in str(refused.value)


def test_printed_it_is_the_leaderboard(monkeypatch):
    """Reciprocal rank by hand: bm25 has 1/2 and 1, dense 1 and 1; the better one is above. Its repr stays short."""
    monkeypatch.setenv("COLUMNS", "100")
    found = rankledger.evaluate(JUDGED, {"bm25": RUN, "dense": {"q1": {"d1": 1.0}, "q2": {"d3": 1.0}}}, ["rr"])

    text = str(found)
    assert re.search(r"dense.* 1\.00.*\n.*bm25.* 0\.75", text)
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text
    assert repr(found) == f"<Evaluation {found.evaluation_id} in memory>"


VIEW = pa.string_view()
CODED = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.uint32()), pa.array(["d2", "d1", "d3"], VIEW))
LISTED = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), pa.array(["d2", "d1", "d3"], VIEW))


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"query_id": ["q1", "q1", "q2"], "doc_id": CODED, "score": [0.7, 0.5, 1.0]}),
        pa.table({"query_id": pa.array(["q1", "q1", "q2"], VIEW), "doc_id": CODED, "score": [0.7, 0.5, 1.0]}),
        pa.table({"query_id": pa.array(["q1", "q2"], VIEW), "doc_id": LISTED}),
        pa.table({"query_id": pa.array(["q1", "q2"], VIEW), "doc_id": LISTED.cast(pa.large_list(VIEW))}),
        pa.table(
            {
                "query_id": ["q1", "q2"],
                "items": pa.array(
                    [
                        [{"item_id": "d2", "score": 0.7}, {"item_id": "d1", "score": 0.5}],
                        [{"item_id": "d3", "score": 1.0}],
                    ],
                    pa.list_(pa.struct([("item_id", VIEW), ("score", pa.float64())])),
                ),
            }
        ),
    ],
)
def test_string_views_are_strings(table):
    """Polars exports texts, categories and lists so: ndcg of q1 is 1 / log2(3), and of q2 1."""
    found = rankledger.evaluate(JUDGED, {"m": Streamed(table)}, ["ndcg"], settings=FEW).summary["estimate"][0]
    assert found == pytest.approx((1 / math.log2(3) + 1) / 2)


def test_judgments_of_string_views_are_read():
    judged = pa.table({"query_id": ["q1", "q1", "q2"], "doc_id": CODED, "relevance": [0, 1, 2]})
    found = rankledger.evaluate(Streamed(judged), {"m": RUN}, ["ndcg"], settings=FEW).summary["estimate"][0]
    assert found == pytest.approx((1 / math.log2(3) + 1) / 2)
