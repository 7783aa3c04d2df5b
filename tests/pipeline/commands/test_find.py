"""Records listed, found where the config says, found by a published figure, and shown as they were evaluated."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import rankledger
from rankledger.pipeline.commands.browse import find, list_evaluations, load
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.receipts import Receipt, write_receipt
from rankledger.pipeline.record.store import digest_of, open_records
from rankledger.pipeline.report.markdown import note
from rankledger.pipeline.report.terminal import as_data, everything, first_screen
from tests.support.each import each
from tests.support.generated_data import rating_collection, search_collection, write_config
from tests.support.manifests import forge

WEB = search_collection(50, n_queries=20, models=("bm25", "dense"))
GATES = [{"name": "complete", "max_missing": 0.01}]  # one query in ten is without output


@pytest.fixture
def evaluation(tmp_path) -> rankledger.Evaluation:
    config = write_config(tmp_path, {"web": WEB}, {"search": ["ap", "rr"]}, name="nightly", gates=GATES)
    return rankledger.evaluate_config(config, tracking=False, date="2026-11-20", runs_dir=tmp_path / "runs")


def with_figure(record: Path, estimate: str) -> None:
    header, first, *others = (record / "summary.csv").read_text(encoding="utf-8").splitlines()
    cells = first.split(",")
    assert cells[:4] == ["web", "bm25", "all", "ap"]
    cells[4] = estimate
    forge(record, "summary.csv", ("\n".join([header, ",".join(cells), *others]) + "\n").encode())


@each(
    "case",
    [
        ("0.4312", "0.43116", True),
        ("0.4312", "0.43115000000000003", True),
        ("0.29", "0.285", True),  # the double is a little less
        ("28.5%", "0.2855", True),
        ("43 %", "0.4349", True),
        ("1", "1.0", True),
        (".5", "0.45", True),
        ("1.7e-2", "0.0168", True),
        ("-0.25", "-0.2549", True),
        ("0.4312", "0.43126", False),
        ("0.43120", "0.43116", False),
        ("43.12%", "43.12", False),
    ],
)
def test_a_figure_that_rounds_to_the_published_one_is_found(case, evaluation, tmp_path):
    published, figure, is_found = case
    with_figure(evaluation.record, figure)
    found = [
        line for line in find(published, measure="ap", runs_dir=tmp_path / "runs").figures if line["model"] == "bm25"
    ]

    place = (evaluation.evaluation_id, "web", "all", float(figure))
    assert [tuple(line[name] for name in ("evaluation_id", "dataset", "slice", "estimate")) for line in found] == [
        place
    ] * is_found
    fingerprint = read_record(evaluation.record).manifest.definitions["ap"].fingerprint
    assert {line["fingerprint"] for line in found} <= {fingerprint}


@pytest.mark.parametrize("published", ["", "much", "nan", "4,3", "1e999999999"])
def test_what_is_no_number_is_refused(tmp_path, published):
    with pytest.raises(rankledger.InputError, match=r"is not a number; write a figure such as 0\.4312 or 43\.12%"):
        find(published, measure="ap", runs_dir=tmp_path)


def test_any_measure_is_searched_unless_one_is_named(evaluation, tmp_path, run_cli):
    with_figure(evaluation.record, "0.4312")
    runs = tmp_path / "runs"
    for line in (found for found in find("0.4312", runs_dir=runs).figures if found["model"] == "bm25"):
        assert (line["measure"], line["estimate"]) == ("ap", 0.4312)
    assert find("0.4312", measure="MAP", runs_dir=runs) == find("0.4312", measure="ap", runs_dir=runs)
    printed = run_cli("find", "0.4312").out

    assert "measure" in printed.splitlines()[1]
    assert "figure that rounds to 0.4312" in printed


def test_the_list_says_what_became_of_each_evaluation(evaluation, tmp_path):
    (tmp_path / "web/dense.txt").unlink()
    again = rankledger.evaluate_config(
        evaluation.record, tracking=False, overrides=["execution.cache=false"], runs_dir=tmp_path / "runs"
    )
    records = open_records(tmp_path / "runs")
    receipt = Receipt(evaluation.evaluation_id, "0" * 64, "sqlite:///x", "1", "r", (), "2026-11-21T02:00Z")
    write_receipt(records, receipt)
    listing = list_evaluations(runs_dir=tmp_path / "runs")
    assert [entry["delivered"] for entry in listing.evaluations] == [None, None]
    (remark,) = listing.remarks
    assert remark.endswith("/receipt.json is the receipt of another manifest; delete it and run `rankledger sync`")
    write_receipt(records, replace(receipt, manifest_sha256=digest_of(evaluation.record)))
    listed = list_evaluations(runs_dir=tmp_path / "runs").evaluations
    first, last = sorted(listed, key=lambda entry: entry["repeats"] is not None)  # both may be of one second

    assert (first["evaluation_id"], first["date"], first["repeats"]) == (evaluation.evaluation_id, "2026-11-20", None)
    assert (first["n_models"], first["n_datasets"], first["n_failures"], first["gates"]) == (2, 1, 0, "fail")
    assert first["delivered"] == "2026-11-21T02:00Z"
    files = [file for file in evaluation.record.iterdir() if file.name != "receipt.json"]
    assert first["size"] == sum(file.stat().st_size for file in files)
    assert (last["evaluation_id"], last["repeats"]) == (again.evaluation_id, evaluation.evaluation_id)
    assert (last["n_failures"], last["delivered"]) == (1, None)


def test_a_name_that_is_not_there_is_refused(evaluation, tmp_path):
    with pytest.raises(rankledger.InputError, match="no evaluation is called 'nigthly'; did you mean 'nightly'"):
        list_evaluations("nigthly", runs_dir=tmp_path / "runs")
    with pytest.raises(rankledger.InputError, match="no evaluation is called 'nigthly'; did you mean 'nightly'"):
        find("0.4", measure="ap", name="nigthly", runs_dir=tmp_path / "runs")
    assert list_evaluations(runs_dir=tmp_path / "elsewhere").evaluations == ()


@pytest.mark.parametrize("form", ["id", "path", "accepted", "accepted#bm25"])
def test_show_finds_the_record_that_is_meant(evaluation, tmp_path, form):
    shutil.copytree(evaluation.record, tmp_path / "copy")
    if form.startswith("accepted"):
        runs, config = tmp_path / "runs", tmp_path / "config.yaml"
        rankledger.accept(evaluation.evaluation_id, reason="first", failed=True, runs_dir=runs, config=config)
    reference = {"id": evaluation.evaluation_id, "path": str(tmp_path / "copy")}.get(form, form)

    shown = load(reference, name="nightly", runs_dir=tmp_path / "runs")
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
    with pytest.raises(rankledger.InputError) as error:
        load(reference.replace("ID", evaluation.evaluation_id), name=name, runs_dir=tmp_path / "runs")
    assert said in str(error.value)


def test_what_is_loaded_or_shown_is_what_was_evaluated(evaluation, tmp_path, run_cli):
    loaded = rankledger.load(runs_dir=tmp_path / "runs")
    assert loaded.evaluation_id == evaluation.evaluation_id
    for name in ("summary", "comparisons", "gates", "scores"):
        pd.testing.assert_frame_equal(getattr(loaded, name), getattr(evaluation, name))

    figure = next(line.estimate for line in evaluation.estimates if line.model == "bm25" and line.measure == "ap")
    for words in (["list"], ["list", "--name", "nightly"], ["find", f"{figure:.3f}", "--measure", "ap"]):
        assert evaluation.evaluation_id in run_cli(*words).out
        assert evaluation.evaluation_id in json.dumps(json.loads(run_cli(*words, "--json").out))
    assert run_cli("find", "-0.25", "--measure", "ap").out == "no figure by ap in 1 record rounds to -0.25\n"

    options = ["--runs-dir", "again"]
    printed = run_cli("evaluate", "config.yaml", "--date", "2026-11-20", "--no-tracking", *options)
    assert run_cli("show", printed.record.name, *options).out == printed.out


NEWS_AND_MORE = search_collection(30, n_queries=30, models=("bm25", "dense", "rrf"))
STARS = rating_collection(31, n_users=12, models=("bm25", "dense"))
TWO_GATES = [
    {"name": "floor", "measure": "ap", "at_least": 0.9},
    {"name": "no-drop", "measure": "rr", "against": "self@last_passed", "margin": 0.1},
]
SECTIONS: list[dict[str, Any]] = [
    {"sensitivity": ["ties"], "comparison": {"baseline": "bm25"}, "pooled": True},
    {"gates": TWO_GATES, "comparison": {"baseline": "all_pairs", "test": "bootstrap"}},
]


def broken(config: Path) -> None:
    (config.parent / "web/dense.txt").unlink()
    document = yaml.safe_load(config.read_text(encoding="utf-8"))
    document["models"]["a|b [red]*x*"] = document["models"].pop("rrf")
    config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


@pytest.mark.parametrize("damage", [lambda config: None, broken], ids=["whole", "broken"])
@pytest.mark.parametrize("sections", SECTIONS, ids=["ties", "gates"])
def test_what_is_printed_of_a_record_is_what_evaluate_printed(tmp_path, sections, damage):
    suites = {"search": ["ndcg@5,10", "ap", "rr", "fn", "kendall_tau"], "stars": ["rmse", "mae"]}
    config = write_config(tmp_path, {"web": NEWS_AND_MORE, "stars": STARS}, suites, lead="ap", **sections)
    damage(config)
    evaluated = rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs")
    shown = read_record(evaluated.record)

    for screen in (first_screen, everything):
        assert screen(shown, width=120, colour=True) == screen(evaluated, width=120, colour=True)
    assert note(shown) == note(evaluated)
    assert as_data(shown) == as_data(evaluated)
    for of in (shown, evaluated):
        assert of.leading == {"web": "ap", "stars": "rmse"}


ELSEWHERE = "Only the records in runs/records are used. Check the place."


@pytest.fixture
def record(tmp_path: Path) -> Path:
    data = {"web": search_collection(3, n_queries=6)}
    config = write_config(tmp_path, data, {"search": ["ap"]}, report=False, records="far", name="places")
    return rankledger.evaluate_config(config, runs_dir=tmp_path / "runs", tracking=False).record


READING = (
    ["list"],
    ["list", "--name", "places"],
    ["list", "--records", "config.yaml"],
    ["show", "places"],
    ["history"],
    ["history", "--name", "places"],
    ["find", "0"],
    ["verify", "last", "--no-tracking"],
    ["compare", "last#first", "places#second"],
    ["explain", "last", "--model", "first", "--query", "q0"],
    ["site", "--output", "site"],
    ["accept", "last", "--config", "config.yaml", "--reason", "fine"],
    ["accept", "places", "--reason", "fine"],
    ["prune", "--keep-days", "0", "--config", "config.yaml"],
)


def models_of(record: Path) -> list[str]:
    return [*json.loads((record / "manifest.json").read_bytes())["models"]]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_command_reads_where_the_config_says(run_cli, record, command):
    names = dict(zip(("first", "second"), models_of(record), strict=False))
    words = command
    for short, name in names.items():
        words = [name if word == short else word.replace(f"#{short}", f"#{name}") for word in words]

    outcome = run_cli(*words)

    assert outcome.code == 0, outcome.err
    assert not list(Path("runs").rglob("manifest.json"))


def test_a_folder_that_is_gone_is_said_and_the_rest_is_done(run_cli, record):
    shutil.move(record.parent, "moved")
    here = Path("runs/records") / record.name
    shutil.copytree(Path("moved") / record.name, here)

    outcome = run_cli("list", "--name", "places", "--json")

    assert [own["evaluation_id"] for own in json.loads(outcome.out)["evaluations"]] == [record.name]
    assert outcome.err.splitlines() == [f"{record.parent}: folder not found. {ELSEWHERE}"]
    assert run_cli("sync").out == f"places: not delivered: {record.parent}: folder not found. " + (
        "Check `records` in the config.\n"
    )


def test_in_python_a_place_that_is_gone_is_a_warning(record, monkeypatch):
    monkeypatch.chdir(record.parents[1])
    shutil.rmtree(record.parent)
    with pytest.warns(rankledger.InputWarning, match="far: folder not found"):
        assert rankledger.list_evaluations().evaluations == ()


def test_two_places_are_not_mixed(run_cli, record):
    text = Path("config.yaml").read_text(encoding="utf-8")
    Path("other.yaml").write_text(text.replace("name: places", "name: other").replace("far", "near"), encoding="utf-8")
    rankledger.evaluate_config("other.yaml", tracking=False)
    assert run_cli("list").out.startswith("runs/records: 0 evaluations")
    assert run_cli("list", "--name", "other").out.startswith(str(Path("near").absolute()))
    assert run_cli("list", "--name", "places").out.startswith(str(record.parent))


def test_a_record_of_somebody_else_names_no_place(run_cli, record, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("another").absolute()))
    assert run_cli("list").out.startswith("runs/records: 0 evaluations")


def test_an_evaluation_after_another_imports_no_pandas(record):
    code = (
        "import sys; from rankledger.pipeline.cli.app import main\n"
        "try: main(['evaluate', 'config.yaml', '--no-tracking', '--quiet'])\n"
        "except SystemExit as error: assert not error.code\n"
        "assert not {'pandas', 'pyarrow.dataset'} & sys.modules.keys()"
    )
    folder = record.parents[1]
    config = folder / "config.yaml"
    gates = "gates: [{name: no-drop, against: last_passed, margin: 1.0, measure: ap}]\n"
    config.write_text(config.read_text(encoding="utf-8").replace("report: false\n", gates), encoding="utf-8")

    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
