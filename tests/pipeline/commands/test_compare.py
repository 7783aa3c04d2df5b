"""What moved between two evaluations: worked by hand, refused where they are unlike, and split where that is forced."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import rankledger
from rankledger.pipeline.commands.upkeep import accept
from rankledger.pipeline.history.compare import compare
from rankledger.pipeline.history.comparison import ChangePart, ComparisonReport
from rankledger.pipeline.inference.tables import RankedDocument
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.changes import comparison_data, comparison_markdown, comparison_screen
from rankledger.pipeline.support.errors import InputError
from tests.support.generated_data import Collection, search_collection, write_config
from tests.support.nights import write_config as write_night

N_QUERIES = 40
QUERIES = [f"q{number:02}" for number in range(1, N_QUERIES + 1)]
MOVED = ("q03", "q07")
SUITES = {"search": ["rr", "ndcg@10"]}

Grades = Mapping[str, Mapping[str, float]]


COMPLETE = {"name": "complete", "max_missing": "100%"}  # which every output passes


def ranking(*documents: str) -> dict[str, float]:
    return {document: float(len(documents) - place) for place, document in enumerate(documents)}


def judgments() -> dict[str, dict[str, float]]:
    return {query_id: {f"r-{query_id}": 2} for query_id in QUERIES}


def output(moved: tuple[str, ...] = ()) -> dict[str, dict[str, float]]:
    """The relevant document at rank 1; at rank 3 of the queries that moved."""
    return {
        query_id: ranking("x", "y", f"r-{query_id}") if query_id in moved else ranking(f"r-{query_id}", "x", "y")
        for query_id in QUERIES
    }


def evaluate(
    folder: Path,
    judged: Grades,
    outputs: Mapping[str, Grades],
    *,
    suites: Any = SUITES,
    dataset: Mapping[str, Any] = {},
    model: Mapping[str, Any] = {},
    **sections: Any,
) -> Evaluation:
    sections = {"report": False} | sections
    path = write_config(folder, {"web": Collection(judged, outputs)}, suites, ending=".tsv", **sections)
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["datasets"]["web"] |= dataset
    config["models"][next(iter(outputs))] |= model
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return rankledger.evaluate_config(path, tracking=False, runs_dir=folder.parent / "runs")


def two_nights(folder: Path, before: Grades, after: Grades, **sections: Any) -> tuple[Evaluation, Evaluation]:
    first = evaluate(folder / "first", judgments(), {"bm25": before}, **sections)
    return first, evaluate(folder / "second", judgments(), {"bm25": after}, **sections)


def moved_from(base: Evaluation, candidate: Evaluation, **options: Any) -> ComparisonReport:
    return compare(base.record, candidate.record, runs_dir=base.record.parent.parent, **options)


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Evaluation, Evaluation]:
    """Two evaluations of bm25, between which the relevant document of two queries fell from rank 1 to 3."""
    return two_nights(tmp_path_factory.mktemp("nights"), output(), output(MOVED), gates=[COMPLETE])


@pytest.fixture(scope="module")
def movement(nights: tuple[Evaluation, Evaluation]) -> ComparisonReport:
    return moved_from(*nights)


def test_two_queries_that_fell(movement):
    """rr falls by 2/3 twice, ndcg@10 from 1 to 1 / log2(4) twice: over 40 queries by 1/30 and by 1/40."""
    by_measure = {line.measure: line for line in movement.comparisons}
    assert [*by_measure] == ["rr", "ndcg@10"]
    assert by_measure["rr"].difference == pytest.approx(-1 / 30)
    assert by_measure["ndcg@10"].difference == pytest.approx(-1 / 40)
    assert by_measure["rr"].baseline_estimate == 1.0
    assert by_measure["rr"].estimate == pytest.approx(1 - 1 / 30)
    assert (by_measure["rr"].wins, by_measure["rr"].ties, by_measure["rr"].losses) == (0, 38, 2)
    assert by_measure["rr"].p_value == 0.5  # of 2**2 patterns of signs, -- and ++ are as far from 0
    assert by_measure["rr"].mark == "sparse"

    # q03 and q07 and no other: from 1 to 1/3, the document from rank 1 to rank 3.
    found = {query.query_id: query for query in movement.largest_changes}
    assert [*found] == [*MOVED]
    for query_id, query in found.items():
        assert (query.before, query.after) == (1.0, pytest.approx(1 / 3))
        assert query.change == pytest.approx(-2 / 3)
        assert query.documents == (RankedDocument(f"r-{query_id}", 2.0, 1, 3),)

    assert movement.differences.set_index("measure")["difference"].to_dict() == pytest.approx(
        {"rr": -1 / 30, "ndcg@10": -1 / 40}
    )
    assert len(movement.slices) == 0
    assert movement.queries[["query_id", "doc_id", "rank_before", "rank_after"]].to_numpy().tolist() == [
        [query_id, f"r-{query_id}", 1.0, 3.0] for query_id in MOVED
    ]
    assert len(movement.parts) == 0
    assert repr(movement).endswith(": 2 differences, 0 of slices>")


def test_a_document_that_is_no_longer_retrieved_has_no_rank(tmp_path):
    """q05 retrieved its document at rank 2 and does not any more."""
    before = output() | {"q05": ranking("x", "r-q05")}
    after = output() | {"q05": ranking("x")}
    found = moved_from(*two_nights(tmp_path, before, after))
    assert [query.documents for query in found.largest_changes] == [(RankedDocument("r-q05", 2.0, 2, None),)]
    assert "r-q05 (grade 2): 2 → not retrieved" in comparison_screen(found, width=200, colour=False, everything=True)


def test_the_same_outputs_have_not_moved(nights, tmp_path):
    again = evaluate(tmp_path / "again", judgments(), {"bm25": output()})

    found = moved_from(nights[0], again)

    assert not found.moved
    assert {line.difference for line in found.comparisons} == {0.0}
    assert found.largest_changes == ()
    assert "Every query has the same score" in comparison_screen(found, width=120, colour=False, everything=True)
    assert "Every query has the same score" in comparison_markdown(found)


def test_a_model_is_compared_with_itself_under_its_old_name(nights, tmp_path):
    first, _ = nights
    candidate = evaluate(
        tmp_path / "renamed", judgments(), {"lexical": output(MOVED), "new": output()}, model={"was": "bm25"}
    )

    found = moved_from(first, candidate)

    assert found.pairs == (("lexical", "bm25"),)
    assert found.comparisons[0].difference == pytest.approx(-1 / 30)
    assert [remark for remark in found.remarks if "'new'" in remark]


def test_a_query_that_is_left_out_of_every_mean_has_not_moved(tmp_path):
    after = {query_id: found for query_id, found in output(MOVED).items() if query_id != "q05"}
    found = moved_from(*two_nights(tmp_path, output(), after, conventions={"missing_queries": "skip"}))

    assert [query.query_id for query in found.largest_changes] == [*MOVED]
    assert {line.wins + line.ties + line.losses for line in found.comparisons} == {39}


def test_a_figure_of_all_lists_is_shown_before_and_after(tmp_path):
    """First 40 of 42 documents are at rank 1 of a list, then 38 and x: no query has a score of that."""
    documents = tmp_path / "documents.tsv"
    names = ["x", "y", *(f"r-{query_id}" for query_id in QUERIES)]
    documents.write_text("doc_id\n" + "".join(f"{name}\n" for name in names), encoding="utf-8")
    further = {"suites": {"search": ["rr", "item_coverage@1"]}, "dataset": {"documents": str(documents)}}
    found = moved_from(*two_nights(tmp_path, output(), output(MOVED), **further))

    (figure,) = found.figures
    assert (figure.measure, figure.before, figure.after) == ("item_coverage@1", 40 / 42, 39 / 42)
    assert {line.measure for line in found.comparisons} == {"rr"}
    assert "figures of all lists together" in comparison_screen(found, width=120, colour=False, everything=True)


def test_scores_that_were_made_elsewhere_are_compared(tmp_path):
    """Of 3 queries q2 got 0.5 better by `faithful` and one worse by `seconds`, of which less is better."""
    datasets = {"judged": {"scores": {"faithful": "higher", "seconds": "lower"}}}
    nights = []
    for name, rows in (("first", "q1,1,4\nq2,0,4\nq3,1,4\n"), ("second", "q1,1,4\nq2,0.5,5\nq3,1,4\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "judge.csv").write_text(f"query_id,faithful,seconds\n{rows}", encoding="utf-8")
        models = {"llm": {"outputs": "judge.csv"}}
        path = write_night(tmp_path / name, datasets=datasets, models=models, suites={})
        nights.append(rankledger.evaluate_config(path, tracking=False, runs_dir=tmp_path / "runs"))
    found = moved_from(*nights)

    assert [line.difference for line in found.comparisons] == pytest.approx([1 / 6, -1 / 3])
    assert [(query.query_id, query.change, query.documents) for query in found.largest_changes] == [("q2", 0.5, None)]


def test_a_model_that_one_side_lacks_is_said(tmp_path):
    first = evaluate(tmp_path / "first", judgments(), {"bm25": output(), "dense": {"q01": {}}})
    second = evaluate(tmp_path / "second", judgments(), {"bm25": output(MOVED), "dense": output()})
    found = moved_from(first, second)
    assert [failure.model for failure in first.failures] == ["dense"]
    assert {line.model for line in found.comparisons} == {"bm25"}
    assert "left out: dense on web, which is not evaluated on both sides" in found.remarks

    evaluate(tmp_path / "nightly", judgments(), {"bm25": output(), "rrf": output()})
    second = evaluate(tmp_path / "nightly", judgments(), {"bm25": output(MOVED), "dense": output()})

    found = compare(runs_dir=tmp_path / "runs")
    assert found.pairs == (("bm25", "bm25"),)
    (came, went) = [line for line in found.remarks if line.startswith("left out: ")]
    assert "has no model 'dense'" in came
    assert went == f"left out: 'rrf' is in {found.base.evaluation_id} alone"
    assert found.candidate.evaluation_id == second.evaluation_id


def queries_table(folder: Path) -> str:
    """A queries table in which the queries that moved are of the market `se`, with 33 others; 5 are of `no`."""
    small = QUERIES[-5:]
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{query_id}\t{'no' if query_id in small else 'se'}\n" for query_id in QUERIES]
    path = folder / "queries.tsv"
    path.write_text("query_id\tmarket\n" + "".join(rows), encoding="utf-8")
    return str(path)


def test_slices_that_moved(tmp_path):
    """Both queries that fell are among the 35 of `se`: -2 · (2/3) / 35; the 5 of `no` are marked, for they are few."""
    further = {"dataset": {"queries": queries_table(tmp_path)}, "slices": ["market"]}
    found = moved_from(*two_nights(tmp_path, output(), output((*MOVED, "q40")), **further))

    by_slice = {line.slice: line for line in found.comparisons if line.measure == "rr"}
    assert by_slice["market=se"].difference == pytest.approx(-4 / 3 / 35)
    assert by_slice["market=no"].difference == pytest.approx(-2 / 3 / 5)
    assert by_slice["market=no"].p_value is None
    shown = [
        line
        for line in comparison_screen(found, width=200, colour=False, everything=True).splitlines()
        if "market=" in line
    ]
    assert ["under 30, not judged" in line for line in shown] == [False, True]

    table = queries_table(tmp_path)
    further = {"dataset": {"queries": table}, "slices": ["market"]}
    first, second = two_nights(tmp_path, output(), output(MOVED), **further)
    Path(table).write_text(Path(table).read_text(encoding="utf-8").replace("no", "dk"), encoding="utf-8")

    found = moved_from(first, second)
    assert {line.slice for line in found.comparisons} == {"all"}
    assert any("slices are left out" in remark and "has changed" in remark for remark in found.remarks)


def test_where_it_changed(tmp_path):
    """All 20 queries of `se` fell from 1 to 1/3: the whole drop. Columns of the queries table make slices unasked."""
    path = tmp_path / "queries.tsv"
    rows = [f"{query_id}\t{'se' if place < 20 else 'no'}\n" for place, query_id in enumerate(QUERIES)]
    path.write_text("query_id\tmarket\n" + "".join(rows), encoding="utf-8")
    further = {"dataset": {"queries": str(path)}}
    found = moved_from(*two_nights(tmp_path, output(), output(tuple(QUERIES[:20])), **further))

    (line,) = found.slice_changes
    assert (line.dataset, line.model, line.baseline, line.measure) == ("web", "bm25", "bm25", "rr")
    assert (line.before, line.after, line.change) == (1.0, pytest.approx(1 / 3), pytest.approx(-2 / 3))
    said = "market=se, 20 of 40 queries, 1.0000 → 0.3333, accounts for 100% of the drop"
    assert str(line) == said
    assert f"where rr changed: {said} (p ≤.0010)" in comparison_screen(found, width=200, colour=False, everything=True)
    assert comparison_data(found)["slice_changes"][0]["slice"] == "market=se"
    assert found.changed_slices["share"].tolist() == [pytest.approx(1.0)]
    assert "web: 2 slices by market were searched" in found.remarks
    assert comparison_screen(found, width=200, colour=False, everything=True).count("overstated") == 1


def test_queries_of_a_user_are_drawn_as_one(tmp_path):
    """Of 20 users with two queries each, those of q03 and q07 moved: the difference rests on 20 clusters."""
    table = tmp_path / "queries.tsv"
    rows = "".join(f"{query_id}\tu{number // 2}\n" for number, query_id in enumerate(QUERIES))
    table.write_text("query_id\tuser_id\n" + rows, encoding="utf-8")
    further = {"dataset": {"queries": str(table)}, "cluster": "user_id"}
    first, second = two_nights(tmp_path, output(), output(MOVED), **further)

    line = moved_from(first, second).comparisons[0]

    assert (line.n_clusters, line.n_queries, line.losses) == (20, 40, 2)
    assert line.difference == pytest.approx(-1 / 30)


@pytest.mark.parametrize("sections", [{}, {"execution": {"cache": "../shared"}}], ids=["runs", "elsewhere"])
def test_ranks_come_from_the_store_when_outputs_are_gone(tmp_path, sections):
    first, second = two_nights(tmp_path, output(), output(MOVED), **sections)
    for folder in ("first", "second"):
        (tmp_path / folder / "web" / "bm25.tsv").unlink()
    found = moved_from(first, second)
    assert found.largest_changes[0].documents == (RankedDocument("r-q03", 2.0, 1, 3),)


def test_ranks_are_left_out_where_nobody_kept_them(tmp_path):
    first, second = two_nights(tmp_path, output(), output(MOVED))
    (tmp_path / "second" / "web" / "bm25.tsv").unlink()
    shutil.rmtree(tmp_path / "runs" / "cache")

    found = moved_from(first, second)

    assert [query.query_id for query in found.largest_changes] == [*MOVED]
    assert {query.documents for query in found.largest_changes} == {None}
    assert [remark for remark in found.remarks if "the ranks of documents are left out" in remark]


OLD = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1, "d": 0}}
NEW = {"q2": {"b": 1}, "q3": {"c": 0, "d": 1}, "q4": {"e": 1}}
BEFORE = {"q1": ranking("a"), "q2": ranking("x", "b"), "q3": ranking("c", "d"), "q4": ranking("x", "y", "z", "e")}
AFTER = {"q1": ranking("a"), "q2": ranking("b"), "q3": ranking("d", "c"), "q4": ranking("e")}


@pytest.fixture
def rejudged(tmp_path: Path) -> tuple[Evaluation, Evaluation]:
    """Between these two q1 went, q4 came, of q3 another document is relevant, and the model got better."""
    first = evaluate(tmp_path / "first", OLD, {"bm25": BEFORE}, suites={"search": ["rr"]})
    second = evaluate(tmp_path / "second", NEW, {"bm25": AFTER}, suites={"search": ["rr"]})
    return first, second


def test_new_judgments_and_an_output_with_unknown_ranks_share_a_part(tmp_path):
    """x of q1 was not judged before and now is: nobody kept its rank, and the output is gone."""
    first = evaluate(tmp_path / "first", {"q1": {"a": 1}}, {"bm25": {"q1": ranking("x", "a")}})
    second = evaluate(tmp_path / "second", {"q1": {"a": 1, "x": 1}}, {"bm25": {"q1": ranking("x", "z")}})
    (tmp_path / "first" / "web" / "bm25.tsv").unlink()

    found = moved_from(first, second, force=True)

    (rr, _) = found.splits
    assert [part.causes for part in rr.parts] == [("judgments", "output")]
    assert rr.parts[0].amount == pytest.approx(1 / 2)
    assert "query 'q1', document 'x'" in rr.parts[0].reason
    assert "cannot be separated" in comparison_screen(found, width=120, colour=False, everything=True)


def test_the_part_of_a_definition(nights, tmp_path):
    """Down to rank 2 the old output has all its documents and loses nothing; the new one loses 2 of 40: -1/20."""
    first, second = nights
    folder = tmp_path / "cut-too"
    candidate = evaluate(folder, judgments(), {"bm25": output(MOVED)}, conventions={"depth": 2})

    forwards = moved_from(first, candidate, force=True).splits[0]
    backwards = moved_from(second, candidate, force=True).splits[0]

    assert forwards.parts == (ChangePart(("definition",), 0.0), ChangePart(("output",), pytest.approx(-1 / 20)))
    assert backwards.parts == (
        ChangePart(("definition",), pytest.approx(-1 / 60)),
        ChangePart(("output",), pytest.approx(0.0)),
    )


def test_parts_are_those_of_evaluations_made_in_between(tmp_path):
    old, new = (search_collection(0, n_queries=30, models=("bm25", "dense")) for _ in range(2))
    judged = {query: {doc: abs(grade - 1) for doc, grade in grades.items()} for query, grades in new.judged.items()}
    suites = {"search": ["ap", "ndcg@10", "bpref", "err"]}
    first = evaluate(tmp_path / "first", old.judged, {"bm25": old.outputs["bm25"]}, suites=suites)
    between = evaluate(tmp_path / "between", judged, {"bm25": old.outputs["bm25"]}, suites=suites)
    second = evaluate(tmp_path / "second", judged, {"bm25": new.outputs["dense"]}, suites=suites)
    figures = [{line.measure: line.estimate for line in found.estimates} for found in (first, between, second)]

    splits = moved_from(first, second, force=True).splits

    assert [split.measure for split in splits] == suites["search"]
    for split in splits:
        before, middle, after = (found[split.measure] for found in figures)
        assert [part.causes for part in split.parts] == [("judgments",), ("output",)]
        assert [part.amount for part in split.parts] == pytest.approx([middle - before, after - middle], abs=1e-12)


def test_other_documents_and_the_output_share_a_part(tmp_path):
    """`tn@1` is documents - 1 - relevant ones missed: 3 - 1 - 1, then 5 - 1 - 0. They do not count in rr."""
    for name, n_documents in (("three", 3), ("five", 5)):
        rows = "".join(f"{document}\n" for document in ["d", "x", "y", "z", "u"][:n_documents])
        (tmp_path / f"{name}.tsv").write_text(f"doc_id\n{rows}", encoding="utf-8")
    first, second = (
        evaluate(
            tmp_path / name,
            {"q1": {"d": 1}},
            {"bm25": {"q1": found}},
            suites={"search": ["rr", "tn@1"]},
            dataset={"documents": str(tmp_path / f"{name}.tsv")},
        )
        for name, found in (("three", ranking("x", "d")), ("five", ranking("d", "x")))
    )

    with pytest.raises(InputError, match=r"^web: the documents differ, which count in tn@1; add"):
        moved_from(first, second)
    rr, tn = moved_from(first, second, force=True).splits
    assert [part.causes for part in rr.parts] == [("output",)]
    assert rr.change == pytest.approx(1 / 2)
    assert [part.causes for part in tn.parts] == [("documents", "output")]
    assert (tn.before, tn.after, tn.change) == (1.0, 4.0, 3.0)


def test_without_references_the_last_two_are_compared(tmp_path):
    floor = {"name": "floor", "measure": "rr", "at_least": 1}
    nights = [
        evaluate(tmp_path / "nightly", judgments(), {"bm25": output(MOVED)}, gates=gates)
        for gates in ([COMPLETE], [COMPLETE], [floor])
    ]

    found = [compare(*words, runs_dir=tmp_path / "runs") for words in ((), ("previous",), ("last_passed", "last"))]
    assert [verdict.outcome == "pass" for verdict in nights[2].verdicts] == [False]
    for each in found:
        sides = (each.base.evaluation_id, each.candidate.evaluation_id)
        assert sides == (nights[1].evaluation_id, nights[2].evaluation_id)

    outputs = {"bm25": output(), "dense": output(MOVED)}
    evaluate(tmp_path / "nightly", judgments(), outputs, gates=[COMPLETE])
    second = evaluate(tmp_path / "nightly", judgments(), outputs, gates=[COMPLETE])

    found = compare("last_passed#bm25", "last_passed#dense", name="generated", runs_dir=tmp_path / "runs")
    assert {found.base.evaluation_id, found.candidate.evaluation_id} == {second.evaluation_id}


@pytest.mark.parametrize(
    ("base", "candidate", "said"),
    [("last#bm25", "last", "both mean 'bm25' of one record"), ("last", "last", "are the same")],
)
def test_a_record_is_not_compared_with_itself(tmp_path, base, candidate, said):
    with pytest.raises(InputError, match=f"{said}; name another one to compare with, such as previous"):
        compare(base, candidate, runs_dir=tmp_path)


def test_the_name_is_needed_only_where_there_are_several(nights, tmp_path):
    records = tmp_path / "runs/records"
    for night in nights:
        shutil.copytree(night.record, records / night.evaluation_id)
    assert compare(runs_dir=tmp_path / "runs").base.evaluation_id == nights[0].evaluation_id
    for night in nights:  # the same records under another name
        folder = records / night.evaluation_id.replace("generated", "other")
        shutil.copytree(night.record, folder)
        manifest = (folder / "manifest.json").read_text(encoding="utf-8").replace("generated", "other")
        (folder / "manifest.json").write_text(manifest, encoding="utf-8")

    with pytest.raises(
        InputError, match="records of several evaluations found: generated, other; name one with --name"
    ):
        compare(runs_dir=tmp_path / "runs")
    assert compare(name="generated", runs_dir=tmp_path / "runs").base.evaluation_id == nights[0].evaluation_id


def test_last_passed_is_another_record_for_each_model(tmp_path):
    config, runs = tmp_path / "nightly", tmp_path / "runs"
    outputs = {"bm25": output(), "dense": output(MOVED)}
    floor = {"name": "floor", "models": ["dense"], "measure": "rr", "at_least": 1}
    nights = [evaluate(config, judgments(), outputs, gates=gates) for gates in ([COMPLETE], [floor], [])]

    found = compare("last_passed", "last", runs_dir=runs)

    records = {pair.models: (pair.base.evaluation_id, pair.candidate.evaluation_id) for pair in found.records}
    assert records == {
        (("bm25", "bm25"),): (nights[1].evaluation_id, nights[2].evaluation_id),
        (("dense", "dense"),): (nights[0].evaluation_id, nights[2].evaluation_id),
    }
    assert {line.model for line in found.comparisons} == {"bm25", "dense"}
    assert "2 pairs of records: p-values are corrected within each" in found.remarks
    for pair in found.records:
        assert pair.base.evaluation_id in comparison_screen(found, width=120, colour=False, everything=True)


def test_what_is_accepted_is_another_record_for_each_model(tmp_path):
    config = tmp_path / "nightly"
    runs = tmp_path / "runs"
    outputs = {"bm25": output(), "dense": output(MOVED)}
    for model in outputs:
        accept(str(evaluate(config, judgments(), outputs).record), models=[model], reason="fine", runs_dir=runs)
    third = evaluate(config, judgments(), outputs)

    assert len(compare("accepted", third.evaluation_id, runs_dir=runs).records) == 2
    assert compare("accepted#dense", third.evaluation_id, runs_dir=runs).pairs == (("dense", "dense"),)
    with pytest.raises(InputError, match=r"accepted: each model has a different record \('bm25' in .*; add #model"):
        rankledger.load("accepted", runs_dir=runs)


def test_two_runs_of_mlflow_are_in_the_store_of_the_environment(tmp_path, monkeypatch):
    from mlflow import MlflowClient

    config = write_config(tmp_path / "a", {"web": Collection(judgments(), {"bm25": output()})}, SUITES, ending=".tsv")
    first = rankledger.evaluate_config(config, runs_dir=tmp_path / "runs")
    client = MlflowClient(first.store)
    experiment = client.get_experiment_by_name(first.name).experiment_id
    (run,) = client.search_runs([experiment], "tags.`rankledger.kind` = 'evaluation'")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(first.store))

    found = compare(f"mlflow:{run.info.run_id}", f"mlflow:{run.info.run_id}", runs_dir=tmp_path / "elsewhere")
    assert found.base.evaluation_id == found.candidate.evaluation_id == first.evaluation_id


@pytest.mark.parametrize(
    ("base", "candidate", "message"),
    [
        ("last_passed", "accepted", "no record of 'generated' is accepted for 'bm25'"),
        ("last_passed", "{first}", "there is no earlier evaluation of 'generated' with 'bm25'"),
        ("20200101T000000Z-none-00000000", "last_passed", "20200101T000000Z-none-00000000: record not found"),
        ("{first}#bm25", "{second}#sparse", "has no model 'sparse'"),
    ],
)
def test_what_is_not_there_is_refused(nights, base, candidate, message):
    first, second = nights
    names = {"first": first.evaluation_id, "second": second.evaluation_id}
    with pytest.raises(InputError, match=message):
        compare(base.format(**names), candidate.format(**names), runs_dir=first.record.parent.parent)


def test_a_pipe_gets_plain_text_or_json(nights, run_cli):
    code, out, _ = run_cli("compare", *(night.record for night in nights), "--json", "--measure", "nDCG@10")

    data = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert code == 0
    assert data == json.loads(json.dumps(comparison_data(moved_from(*nights, measure="ndcg@10"))))
    assert {line["measure"]: line["difference"] for line in data["differences"]} == pytest.approx(
        {"rr": -1 / 30, "ndcg@10": -1 / 40}
    )
    assert data["queries"][0]["change"] == pytest.approx(-0.5)
    assert data["queries"][0]["documents"] == [{"doc_id": "r-q03", "grade": 2.0, "before": 1, "after": 3}]

    first, second = nights
    code, out, _ = run_cli("compare", first.record, second.record)
    assert code == 0
    assert "\x1b" not in out
    assert first.evaluation_id in out
    assert second.evaluation_id in out
    assert "r-q03 (grade 2): 1 → 3" in out
    assert "-0.03" in out

    # `ndgc@10` is not among the measures of both; ndcg@10 is.
    with pytest.raises(InputError, match=r"'ndgc@10'.*; did you mean 'ndcg@10'\?"):
        moved_from(*nights, measure="ndgc@10")


def test_a_change_of_judgments_is_split_into_its_parts(rejudged, run_cli, tmp_path):
    records = [found.record for found in rejudged]
    refused, out, error = run_cli("compare", *records)
    forced, table, _ = run_cli("compare", *records, "--force", "--all")
    assert (refused, out, forced) == (2, "", 0)
    judgments_line, queries_line = error.splitlines()
    assert judgments_line.startswith("web: the judgments differ (sha256 ")
    assert queries_line == "web: the queries differ (1 are gone, 1 are new); add --force to compare anyway"
    assert "queries removed" in table

    # rr of q1, q2, q3 is 1, 1/2, 1: 5/6. Without q1 3/4; q3 has 1/2 now: 1/2; q4 has 1/4: 5/12; the new output 1.
    report = moved_from(*rejudged, force=True)
    (found,) = report.splits
    assert (found.before, found.after, found.change) == (pytest.approx(5 / 6), 1.0, pytest.approx(1 / 6))
    assert [part.causes for part in found.parts] == [
        ("queries removed",),
        ("judgments",),
        ("queries added",),
        ("output",),
    ]
    assert [part.amount for part in found.parts] == pytest.approx([-1 / 12, -1 / 4, -1 / 12, 7 / 12])
    assert report.parts["amount"].to_list() == [part.amount for part in found.parts]

    # q2 went from 1/2 to 1 and q3, each by its own judgments, from 1 to 1.
    (line,) = moved_from(*rejudged, force=True).comparisons
    assert (line.n_queries, line.difference) == (2, pytest.approx(1 / 4))


def test_new_queries_and_a_missing_output_share_a_part(rejudged, tmp_path):
    """The store knows the ranks of q2 and q3, whose documents were judged before, and none of q4."""
    (tmp_path / "first" / "web" / "bm25.tsv").unlink()

    (found,) = moved_from(*rejudged, force=True).splits

    assert [part.causes for part in found.parts] == [("queries removed",), ("judgments",), ("queries added", "output")]
    assert [part.amount for part in found.parts] == pytest.approx([-1 / 12, -1 / 4, 1 / 2])
    assert found.parts[-1].reason


def test_markdown_shows_hostile_names_as_they_are(tmp_path):
    query, document = "q|<b>*1*", "d|</td>`x`"
    judged = {query: {document: 1}, "q2": {"d": 1}}
    plain = {"q2": ranking("d")}
    first = evaluate(tmp_path / "first", judged, {"bm25": {query: ranking(document, "x"), **plain}})
    second = evaluate(tmp_path / "second", judged, {"bm25": {query: ranking("x", document), **plain}})

    text = comparison_markdown(moved_from(first, second))

    (row,) = [line for line in text.splitlines() if "grade 1" in line]
    assert r"q\|\<b\>\*1\*" in row
    assert r"d\|\</td\>\`x\` (grade 1): 1 → 2" in row
    assert row.count("|") - row.count(r"\|") == 6  # five columns
