"""`reproduce`: a record evaluated again, with its inputs in place, moved, changed or gone."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import rankledger
from rankledger.metrics import measure
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.commands.reproduce import reproduce
from rankledger.pipeline.data import files as input_files
from rankledger.pipeline.record.folder import config_of, read_record
from rankledger.pipeline.record.receipts import read_receipt
from rankledger.pipeline.record.store import open_records
from tests.support import nights
from tests.support.generated_data import (
    Collection,
    rating_collection,
    rows,
    search_collection,
    write_config,
    write_table,
)
from tests.support.records import manifest_of

WEB = search_collection(80, n_queries=20)
STARS = rating_collection(81, n_users=6)
SUITES = {"search": ["ndcg@10", "ap", "item_coverage@5"], "errors": ["rmse", "mae(average=query)"]}


def evaluate(folder: Path, data: Mapping[str, Collection] | None = None, **sections: Any) -> rankledger.Evaluation:
    lab = folder / "lab"
    config = write_config(lab, data or {"web": WEB, "stars": STARS}, SUITES if data is None else {"search": ["ap"]})
    if data is None:
        query_ids = list(WEB.judged)
        queries = [
            f"{query_id}\t{'de' if place % 2 else 'en'}\tu{place // 2}" for place, query_id in enumerate(query_ids)
        ]
        (lab / "web/queries.tsv").write_text("query_id\tmarket\tuser\n" + "\n".join(queries) + "\n", encoding="utf-8")
        documents = dict.fromkeys(doc_id for _, doc_id, _ in rows(WEB.judged) + rows(WEB.outputs["bm25"]))
        text = "".join(f"{json.dumps({'doc_id': doc_id}, ensure_ascii=False)}\n" for doc_id in documents)
        (lab / "web/documents.jsonl").write_text(text, encoding="utf-8")
    written = yaml.safe_load(config.read_text(encoding="utf-8"))
    if data is None:
        written["datasets"]["web"] |= {"queries": "web/queries.tsv", "slices": ["market"], "cluster": "user"}
        written["datasets"]["web"] |= {"documents": "web/documents.jsonl"}
        sections = {"comparison": {"baseline": "all_pairs"}, "sensitivity": ["ties"], "pooled": False} | sections
    config.write_text(yaml.safe_dump(written | sections, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return rankledger.evaluate_config(config.relative_to(folder), tracking=False)


@pytest.fixture
def evaluation(folder: Path) -> rankledger.Evaluation:
    return evaluate(folder, {"web": WEB})


def check(evaluation: rankledger.Evaluation, **options: Any) -> rankledger.Reproduction:
    return rankledger.reproduce(evaluation.evaluation_id, **options)


def flip(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert sum(one != other for one, other in zip(old, new, strict=True)) == 1
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_record_is_identical_where_nothing_changed(folder):
    evaluation = evaluate(folder)
    before = sorted(folder.rglob("*"))
    found = check(evaluation)
    assert (found.verdict, found.n_moved, found.n_found, found.inputs, found.failures) == ("identical", 0, 0, (), ())
    assert found.files == ("summary.csv", "comparisons.csv", "curves.csv", "scores.parquet")
    assert sorted(folder.rglob("*")) == before


def test_what_ran_is_computed_again_whatever_the_defaults_are(folder):
    evaluation = evaluate(folder, bootstrap={"resamples": 300, "method": "basic"}, seed=7)
    config = evaluation.record / "config.yaml"
    written = yaml.safe_load(config.read_text(encoding="utf-8"))
    del written["bootstrap"], written["seed"]  # as if they were defaults of then that are others now
    manifest = manifest_of(evaluation.record)
    config.write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")
    _rehash(evaluation.record, manifest)

    assert check(evaluation).verdict == "identical"


def test_gates_need_no_baseline(folder):
    first = evaluate(folder)
    gates = [{"name": "no-drop", "measure": "ap", "datasets": "web", "against": "self@last_passed", "margin": 0.5}]
    evaluation = evaluate(folder, gates=gates)
    assert evaluation.verdicts
    shutil.rmtree(first.record)
    assert check(evaluation).verdict == "identical"


def test_models_are_those_that_were_found_and_did_not_fail(folder):
    lab = folder / "lab"
    late = {"bm25": {"outputs": {"web": "web/bm25.txt"}}, "dense": {"outputs": {"web": "web/late.txt"}}}
    evaluation = evaluate(folder, {"web": WEB}, models=late)
    assert [failure.model for failure in evaluation.failures] == ["dense"]
    shutil.copy(lab / "web/bm25.txt", lab / "web/late.txt")
    assert check(evaluation).verdict == "identical"

    evaluation = evaluate(folder, {"web": WEB}, models={"*": {"outputs": "{dataset}/{model}.txt"}})
    shutil.copy(folder / "lab/web/bm25.txt", folder / "lab/web/another.txt")
    assert check(evaluation).verdict == "identical"


def test_dates_and_variables_are_those_of_the_record(folder, monkeypatch):
    lab = folder / "lab"
    write_config(lab, {"web": WEB}, {"search": ["ap"]})
    (lab / "web/bm25.txt").rename(lab / "web/bm25-2026-11-20.txt")
    datasets = {"web": {"judgments": "${WHERE}/judged.txt"}}
    nights.write_config(lab, datasets=datasets, models={"bm25": {"outputs": "web/bm25-{date}.txt"}})
    monkeypatch.setenv("WHERE", "web")
    evaluation = rankledger.evaluate_config("lab/config.yaml", date="2026-11-20", tracking=False)
    monkeypatch.setenv("WHERE", "elsewhere")

    assert check(evaluation).verdict == "identical"


def test_scores_made_elsewhere_are_of_the_queries_that_they_were(folder):
    lab = folder / "lab"
    lab.mkdir()
    for model, begin in (("judge", 0), ("clicks", 3)):
        lines = [f"q{place},{(place * 7 + begin) % 10 / 10}" for place in range(begin, 40)]
        (lab / f"{model}.csv").write_text("\n".join(["query_id,faithfulness", *lines]), encoding="utf-8")
    datasets = {name: {"scores": {"faithfulness": "higher"}} for name in ("web", "news")}
    models = {model: {"outputs": f"{model}.csv"} for model in ("judge", "clicks")}
    nights.write_config(lab, datasets=datasets, models=models, suites={}, pooled=True)
    evaluation = rankledger.evaluate_config("lab/config.yaml", tracking=False)
    lab.rename(folder / "archive")

    found = check(evaluation, inputs="archive")
    assert (found.verdict, found.n_found) == ("identical", 4)
    (folder / "archive/clicks.csv").unlink()
    with pytest.raises(rankledger.InputError, match=r"clicks on web: lab/clicks\.csv"):
        check(evaluation, inputs="archive")


def test_moved_inputs_are_found_by_their_bytes(folder):
    evaluation = evaluate(folder)
    (folder / "archive").mkdir()
    files = sorted(path for path in (folder / "lab").rglob("*") if path.is_file() and path.name != "config.yaml")
    for place, path in enumerate(files):
        path.rename(folder / "archive" / f"{place}")

    found = check(evaluation, inputs="archive")

    assert (found.verdict, found.n_found, found.inputs) == ("identical", 8, ())


@pytest.fixture
def in_parts(folder) -> rankledger.Evaluation:
    written = rows(WEB.outputs["bm25"])
    for place in range(3):
        write_table(folder / f"lab/parts/{place}.tsv", written[place * 100 : place * 100 + 100], "score")
    return evaluate(folder, {"web": WEB}, models={"bm25": {"outputs": "parts"}})


def test_parts_that_moved_are_read_in_their_order(folder, in_parts):
    (folder / "archive").mkdir()
    (folder / "lab/parts/1.tsv").rename(folder / "archive/zzz")
    (folder / "lab/parts/9.tsv").write_text("query_id\tdoc_id\tscore\nq\td\t1\n", encoding="utf-8")
    found = check(in_parts, inputs="archive")
    assert (found.verdict, found.n_found) == ("identical", 1)


def test_a_part_that_changed_is_the_one_of_its_name(folder, in_parts):
    part = folder / "lab/parts/1.tsv"
    part.write_text("no ranking\n", encoding="utf-8")
    alone = check(in_parts)
    shutil.copy(folder / "lab/parts/2.tsv", folder / "lab/parts/9.tsv")

    assert [changed["found"] for changed in alone.inputs] == ["lab/parts/1.tsv"]
    assert "lab/parts" in alone.failures[0]
    assert check(in_parts).inputs == alone.inputs


def test_another_part_is_not_taken_for_one_that_is_gone(folder, in_parts):
    (folder / "lab/parts/0.tsv").rename(folder / "lab/parts/9.tsv")
    (folder / "lab/parts/9.tsv").write_text("query_id\tdoc_id\tscore\nq\td\t1\n", encoding="utf-8")
    with pytest.raises(rankledger.InputError, match=r"^bm25 on web: lab/parts/0\.tsv .* not found"):
        check(in_parts)


def test_a_flipped_byte_is_named_with_the_figures_that_moved(folder):
    evaluation = evaluate(folder)
    flip(folder / "lab/web/judged.txt", " 4\n", " 1\n")

    found = check(evaluation)

    (changed,) = found.inputs
    assert (found.verdict, changed["what"], changed["recorded"]) == (
        "different",
        "judgments of web",
        "lab/web/judged.txt",
    )
    assert changed["recorded_digest"] != changed["found_digest"]
    assert {figure["row"][0] for figure in found.moved} == {"web"}
    assert "ndcg@10" in {figure["row"][-1] for figure in found.moved}


def test_large_inputs_are_known_by_their_ranges(folder, monkeypatch):
    monkeypatch.setattr(input_files, "_LARGEST", 100)
    monkeypatch.setattr(input_files, "_RANGE", 64)
    evaluation = evaluate(folder, {"web": WEB})
    files = [file for output in read_record(evaluation.record).manifest.outputs for file in output.files]
    assert all(file.sha256 is None and file.ranges_sha256 for file in files)
    assert rankledger.verify(str(evaluation.record), runs_dir="runs", tracking=False).n_files

    assert check(evaluation).verdict == "identical"
    (folder / "lab/web").rename(folder / "moved")
    assert check(evaluation, inputs="moved").verdict == "identical"
    flip(folder / "moved/judged.txt", " 4\n", " 1\n")
    (changed,) = check(evaluation, inputs="moved").inputs
    assert changed["recorded_digest"].startswith("ranges_sha256:")
    assert changed["recorded_digest"] != changed["found_digest"]


def test_the_right_file_is_preferred_to_a_changed_one(folder, evaluation):
    (folder / "archive").mkdir()
    shutil.copy(folder / "lab/web/judged.txt", folder / "archive/kept")
    flip(folder / "lab/web/judged.txt", "1", "2")
    found = check(evaluation, inputs="archive")
    assert (found.verdict, found.n_found, found.inputs) == ("identical", 1, ())


def test_inputs_that_changed_or_are_gone_are_named(folder, evaluation):
    with (folder / "lab/web/judged.txt").open("a", encoding="utf-8") as file:
        file.write("\n")
    found = check(evaluation)
    assert (found.verdict, found.n_moved, len(found.inputs)) == ("different", 0, 1)

    judged, output = folder / "lab/web/judged.txt", folder / "lab/web/bm25.txt"
    kept = output.read_bytes()
    output.write_text("no ranking\n", encoding="utf-8")
    of_output = check(evaluation)
    output.write_bytes(kept)
    judged.write_text("no judgments\n", encoding="utf-8")
    of_judgments = check(evaluation)

    assert of_output.verdict == of_judgments.verdict == "different"
    assert of_output.failures[0].startswith("bm25 on web: ")
    assert {figure["row"][1] for figure in of_output.moved if figure["column"] == ""} == {"bm25"}
    assert "judged" in of_judgments.failures[0]
    assert of_judgments.n_moved == 0

    shutil.rmtree(folder / "lab/web")

    with pytest.raises(rankledger.InputError) as refused:
        check(evaluation)
    lines = str(refused.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["judgments of web", "bm25 on web", "dense on web"]
    assert all("name the folder that it moved to with --inputs" in line for line in lines)
    with pytest.raises(rankledger.InputError, match="not found there or in lab; restore it"):
        check(evaluation, inputs="lab")


def test_numbers_from_outside_are_inputs(folder):
    lab = folder / "lab"
    lab.mkdir()
    (lab / "extra.json").write_text('{"latency": 12}', encoding="utf-8")
    models = {"bm25": {"outputs": {"web": "web/bm25.txt"}, "extra": "extra.json"}}
    evaluation = evaluate(folder, {"web": WEB}, models=models)
    assert check(evaluation).verdict == "identical"
    (lab / "extra.json").write_text('{"latency": 13}', encoding="utf-8")

    found = check(evaluation)
    assert (found.verdict, [changed["what"] for changed in found.inputs]) == ("different", ["extra of bm25"])


def test_what_is_defined_or_installed_otherwise_is_named(folder, evaluation, monkeypatch):
    manifest = manifest_of(evaluation.record)
    numpy = manifest["environment"]["packages"]["numpy"]
    manifest["environment"]["packages"]["numpy"] = "2.1.0"
    _rehash(evaluation.record, manifest)

    found = check(evaluation)
    assert (found.verdict, found.versions) == ("identical", (f"numpy 2.1.0 → {numpy}",))

    later = replace(METRICS["ap"], version=METRICS["ap"].version + 1)
    monkeypatch.setattr(measure, "METRICS", {**METRICS, "ap": later})

    found = check(evaluation)
    assert (found.verdict, found.definitions) == ("identical", ("ap: the metric's version was 1 and is 2",))


def test_last_bits_are_equal_and_more_is_different(folder, evaluation):
    for off, verdict in ((1e-15, "equal"), (1e-9, "different")):
        summary = evaluation.record / "summary.csv"
        header, first, *others = summary.read_text(encoding="utf-8").splitlines()
        cells = first.split(",")
        kept = cells[4]
        cells[4] = repr(float(kept) + off)
        summary.write_text("\n".join([header, ",".join(cells), *others, ""]), encoding="utf-8")
        _rehash(evaluation.record, manifest_of(evaluation.record))

        found = check(evaluation)
        assert (found.verdict, found.n_moved) == (verdict, int(off == 1e-9))
    assert found.moved[0]["column"] == "estimate"
    assert float(found.moved[0]["after"]) == pytest.approx(float(kept), abs=1e-12)


def test_a_flipped_byte_in_a_moved_input_is_named_too(folder, evaluation):
    assert config_of(replace(read_record(evaluation.record), path=Path("/record"))) == Path("lab/config.yaml")

    (folder / "lab").rename(folder / "archive")
    flip(folder / "archive/web/bm25.txt", "1", "2")
    found = check(evaluation, inputs="archive")
    (changed,) = found.inputs
    assert (changed["what"], changed["found"]) == ("bm25 on web", "archive/web/bm25.txt")
    assert found.verdict == "different"


def test_the_code_is_not_that_of_another_repository(folder, evaluation, monkeypatch):
    manifest = manifest_of(evaluation.record)
    manifest["environment"]["git"] = {"commit": "0" * 40, "branch": None, "url": None, "dirty": False}
    _rehash(evaluation.record, manifest)
    (folder / "lab").rename(folder / "archive")
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)

    assert check(evaluation, inputs="archive").code == ()


def test_from_a_run_in_an_empty_folder_with_only_the_inputs(folder, monkeypatch):
    config = write_config(folder / "lab", {"web": WEB}, {"search": ["ap"]})
    evaluation = rankledger.evaluate_config(config.relative_to(folder))
    receipt = read_receipt(open_records(folder / "runs"), evaluation.evaluation_id)
    assert receipt is not None
    uri = f"sqlite:///{folder / 'runs/mlflow.db'}"
    empty = folder / "empty"
    shutil.copytree(folder / "lab/web", empty / "here")
    (folder / "lab").rename(folder / "gone")
    monkeypatch.chdir(empty)

    found = rankledger.reproduce(f"mlflow:{receipt.run_id}", inputs=".", tracking_uri=uri)
    assert (found.verdict, found.n_found) == ("identical", 3)
    flip(empty / "here/bm25.txt", "1", "2")
    changed = reproduce(f"mlflow:{receipt.run_id}", inputs=".", tracking_uri=uri)
    assert (changed.verdict, [entry["what"] for entry in changed.inputs]) == ("different", ["bm25 on web"])


def _rehash(record: Path, manifest: Any) -> None:
    for name in manifest["files"]:
        data = (record / name).read_bytes()
        manifest["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (record / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
