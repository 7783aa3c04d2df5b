"""Records listed, and found again from what was published of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import rankledger
from rankledger.pipeline.cli import app
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.receipts import Receipt, write_receipt
from rankledger.pipeline.record.store import open_records
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.types.results import Evaluation
from rankledger.pipeline.workflow.browse import find, list_evaluations, show
from tests.support.generated_data import search_collection, write_config
from tests.support.manifests import forge

WEB = search_collection(50, n_queries=20, models=("bm25", "dense"))
GATES = [{"name": "complete", "max_missing": 0.01}]  # one query in ten is without output


@pytest.fixture
def evaluation(tmp_path) -> Evaluation:
    """One evaluation, whose gates fail, in the runs folder of the test."""
    config = write_config(tmp_path, {"web": WEB}, {"search": ["ap", "rr"]}, name="nightly", gates=GATES)
    return rankledger.evaluate(config, tracking=False, date="2026-11-20", runs_dir=tmp_path / "runs")


def with_figure(record: Path, estimate: str) -> None:
    """Have the summary say that bm25's average precision is so much."""
    header, first, *others = (record / "summary.csv").read_text(encoding="utf-8").splitlines()
    cells = first.split(",")
    assert cells[:4] == ["web", "bm25", "all", "ap"]
    cells[4] = estimate
    forge(record, "summary.csv", ("\n".join([header, ",".join(cells), *others]) + "\n").encode())


@pytest.mark.parametrize(
    ("published", "figure"),
    [
        ("0.4312", "0.43116"),
        ("0.4312", "0.4312499"),
        ("0.4312", "0.43115000000000003"),
        ("0.29", "0.285"),  # the double is a little less
        ("28.5%", "0.2855"),
        ("0.43", "0.4251"),
        ("43.12%", "0.43124"),
        ("43 %", "0.4349"),
        ("1", "1.0"),
        (".5", "0.45"),
        ("1.7e-2", "0.0168"),
        ("-0.25", "-0.2549"),
    ],
)
def test_a_figure_that_rounds_to_the_published_one_is_found(evaluation, tmp_path, published, figure):
    """To as many digits as were given, in percent, too, and whichever way a half is rounded."""
    with_figure(evaluation.record, figure)
    found = [line for line in find(published, measure="ap", runs_dir=tmp_path / "runs").figures if line.model == "bm25"]

    assert [(line.evaluation_id, line.dataset, line.slice, line.estimate) for line in found] == [
        (evaluation.evaluation_id, "web", "all", float(figure))
    ]
    assert found[0].fingerprint == read_record(evaluation.record).manifest.definitions["ap"].fingerprint


@pytest.mark.parametrize(
    ("published", "figure"),
    [("0.4312", "0.43126"), ("0.4312", "0.4311"), ("0.43120", "0.43116"), ("43.12%", "43.12"), ("0.43", "0.4358")],
)
def test_a_figure_that_rounds_to_another_is_not(evaluation, tmp_path, published, figure):
    """One digit more is one digit more; a percentage is a share of one."""
    with_figure(evaluation.record, figure)

    assert "bm25" not in [line.model for line in find(published, measure="ap", runs_dir=tmp_path / "runs").figures]


@pytest.mark.parametrize("published", ["", "much", "nan", "inf", "0.4 0.5", "4,3", "1e999999999", "1e-999999999"])
def test_what_is_no_number_is_refused(tmp_path, published):
    """The message says what to write."""
    with pytest.raises(InputError, match=r"is not a number; write a figure such as 0\.4312 or 43\.12%"):
        find(published, measure="ap", runs_dir=tmp_path)


def test_any_measure_is_searched_unless_one_is_named(evaluation, tmp_path, capsys):
    """Each figure says by what it is; named as another tool writes it, the measure is ours."""
    with_figure(evaluation.record, "0.4312")
    runs = tmp_path / "runs"
    for line in (found for found in find("0.4312", runs_dir=runs).figures if found.model == "bm25"):
        assert (line.measure, line.estimate) == ("ap", 0.4312)
    assert find("0.4312", measure="MAP", runs_dir=runs) == find("0.4312", measure="ap", runs_dir=runs)
    app.main(["find", "0.4312", "--runs-dir", str(runs)])

    printed = capsys.readouterr().out
    assert "measure" in printed.splitlines()[2]
    assert "figure that rounds to 0.4312" in printed


def test_a_measure_that_no_record_has_is_refused(evaluation, tmp_path):
    """With those that there are and the one that was likely meant; without any record there is none to name."""
    with pytest.raises(InputError, match="no record has 'app'; available: ap, rr; did you mean 'ap'"):
        find("0.4", measure="app", runs_dir=tmp_path / "runs")
    with pytest.raises(InputError, match="no records; check --runs-dir"):
        find("0.4", measure="ap", runs_dir=tmp_path / "elsewhere")


def test_the_list_says_what_became_of_each_evaluation(evaluation, tmp_path):
    """Repeats among them, with the gates, failures, delivery and the size of the files."""
    (tmp_path / "web/dense.txt").unlink()
    again = rankledger.evaluate(
        evaluation.record, tracking=False, overrides=["execution.cache=false"], runs_dir=tmp_path / "runs"
    )
    records = open_records(tmp_path / "runs")
    write_receipt(
        records, Receipt(evaluation.evaluation_id, "0" * 64, "sqlite:///x", "1", "r", (), "2026-11-21T02:00Z")
    )
    listed = list_evaluations(runs_dir=tmp_path / "runs").evaluations
    first, last = sorted(listed, key=lambda entry: entry.repeats is not None)  # both may be of one second

    assert (first.evaluation_id, first.date, first.repeats) == (evaluation.evaluation_id, "2026-11-20", None)
    assert (first.n_models, first.n_datasets, first.n_failures, first.gates) == (2, 1, 0, "fail")
    assert first.delivered == "2026-11-21T02:00Z"
    assert first.size == sum(file.stat().st_size for file in evaluation.record.iterdir())
    assert (last.evaluation_id, last.repeats) == (again.evaluation_id, evaluation.evaluation_id)
    assert (last.n_failures, last.delivered) == (1, None)


def test_a_name_that_is_not_there_is_refused(evaluation, tmp_path):
    """With the one that was likely meant; where nothing is named and nothing there, the list is empty."""
    with pytest.raises(InputError, match="no evaluation is called 'nigthly'; did you mean 'nightly'"):
        list_evaluations("nigthly", runs_dir=tmp_path / "runs")
    assert list_evaluations(runs_dir=tmp_path / "elsewhere").evaluations == ()


def test_a_name_to_look_through_that_is_not_there_is_refused(evaluation, tmp_path):
    """It is not the measure that is wrong."""
    with pytest.raises(InputError, match="no evaluation is called 'nigthly'; did you mean 'nightly'"):
        find("0.4", measure="ap", name="nigthly", runs_dir=tmp_path / "runs")


def test_a_negative_figure_is_no_option(evaluation, tmp_path, capsys):
    """As a correlation may be."""
    app.main(["find", "-0.25", "--measure", "ap", "--runs-dir", str(tmp_path / "runs")])

    assert capsys.readouterr().out == "no figure by ap in 1 record rounds to -0.25\n"


@pytest.mark.parametrize("manifest", ["{", "null", "{}"])
def test_show_of_a_damaged_record_says_so(evaluation, tmp_path, manifest):
    """Cut off, no object, or without what is to be shown."""
    (evaluation.record / "manifest.json").write_text(manifest, encoding="utf-8")

    with pytest.raises(InputError, match="restore the record"):
        show(evaluation.evaluation_id, runs_dir=tmp_path / "runs")


@pytest.mark.parametrize("form", ["id", "path", "accepted", "accepted#bm25"])
def test_show_finds_the_record_that_is_meant(evaluation, tmp_path, form):
    """By its id, its path, or what was accepted."""
    shutil.copytree(evaluation.record, tmp_path / "copy")
    if form.startswith("accepted"):
        arguments = [
            "--reason",
            "first",
            "--runs-dir",
            str(tmp_path / "runs"),
            "--config",
            str(tmp_path / "config.yaml"),
        ]
        app.main(["accept", evaluation.evaluation_id, *arguments])
    reference = {"id": evaluation.evaluation_id, "path": str(tmp_path / "copy")}.get(form, form)

    shown = show(reference, name="nightly", runs_dir=tmp_path / "runs")
    assert shown.evaluation_id == evaluation.evaluation_id
    assert shown.record == (tmp_path / "copy" if form == "path" else evaluation.record)


@pytest.mark.parametrize(
    ("reference", "name", "said"),
    [
        ("previous", None, "there is only one evaluation of 'nightly'"),
        ("last_passed", "nightyl", "no evaluation is called 'nightyl'"),
        ("last_passed", "nightly", "did not pass in the one evaluation of 'nightly'; `rankledger show "),
        ("20261120T020000Z-nightly-00000000", None, "record not found"),
        ("ID#bm52", None, "has no model 'bm52'; it has bm25, dense; did you mean 'bm25'?"),
    ],
)
def test_show_says_why_there_is_nothing_to_show(evaluation, tmp_path, reference, name, said):
    """No name, no such record, none that passed, no such model."""
    with pytest.raises(InputError) as error:
        show(reference.replace("ID", evaluation.evaluation_id), name=name, runs_dir=tmp_path / "runs")

    assert said in str(error.value)


def test_what_is_loaded_is_what_was_evaluated(evaluation, tmp_path):
    """Every table, the scores of queries among them; by default of the last evaluation."""
    loaded = rankledger.load(runs_dir=tmp_path / "runs")

    assert loaded.evaluation_id == evaluation.evaluation_id
    for table in ("summary", "comparisons", "gates", "scores"):
        pd.testing.assert_frame_equal(getattr(loaded, table), getattr(evaluation, table))


def test_the_commands_print_what_was_found(evaluation, tmp_path, capsys):
    """The id of the evaluation stands whole in each table, and JSON has all of it."""
    figure = next(line.estimate for line in evaluation.estimates if line.model == "bm25" and line.measure == "ap")
    options = ["--runs-dir", str(tmp_path / "runs")]
    for words in (["list"], ["list", "--name", "nightly"], ["find", f"{figure:.3f}", "--measure", "ap"]):
        app.main([*words, *options])
        assert evaluation.evaluation_id in capsys.readouterr().out
        app.main([*words, *options, "--json"])
        assert evaluation.evaluation_id in json.dumps(json.loads(capsys.readouterr().out))
    app.main(["find", "12345", "--measure", "ap", *options])
    assert capsys.readouterr().out == "no figure by ap in 1 record rounds to 12345\n"


def test_show_prints_what_evaluate_printed(evaluation, tmp_path, capsys):
    """Table by table, down to the last line; and the JSON."""
    config = str(tmp_path / "config.yaml")
    options = ["--runs-dir", str(tmp_path / "again")]
    with pytest.raises(SystemExit):
        app.main(["evaluate", config, "--date", "2026-11-20", "--no-tracking", *options])
    printed = capsys.readouterr().out
    (record,) = open_records(tmp_path / "again").ids()
    app.main(["show", record, *options])

    assert capsys.readouterr().out == printed
