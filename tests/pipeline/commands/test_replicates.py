"""Models with replicates from the config to the record, and what commands make of them."""

import dataclasses
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from rankledger.metrics.measure import Measure
from rankledger.pipeline.commands.browse import load
from rankledger.pipeline.commands.evaluate import evaluate_config, validate
from rankledger.pipeline.commands.explain import explain
from rankledger.pipeline.commands.nightly import nightly
from rankledger.pipeline.commands.reproduce import FIGURES, reproduce
from rankledger.pipeline.commands.upkeep import accept
from rankledger.pipeline.history.compare import compare
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.scores import read_scores
from rankledger.pipeline.report.explanation import as_data, markdown
from rankledger.pipeline.report.messages import not_compared, replicate_notes
from rankledger.pipeline.report.terminal import matrix
from rankledger.pipeline.support.errors import InputError
from tests.support.terminal import table_rows

QUERIES = [f"q{i:02}" for i in range(40)]
DOCUMENTS = [f"d{i}" for i in range(8)]
CONFIG = """
name: seeds
datasets: {web: {judgments: qrels.tsv}}
models:
  bm25: {outputs: bm25.tsv}
  dense: {outputs: "runs-of/{model}/seed-{replicate}.tsv"}
suites: {search: ["ndcg@5", rr]}
comparison: {baseline: bm25}
bootstrap: {resamples: 200}
tracking: {enabled: false}
report: false
"""


def write_output(path, seed, lift):
    rng = np.random.default_rng(seed)
    rows = [f"{q}\t{d}\t{rng.random() + lift * (i < 2)}" for q in QUERIES for i, d in enumerate(DOCUMENTS)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("query_id\tdoc_id\tscore\n" + "\n".join(rows) + "\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judged = "".join(f"{q}\t{d}\t1\n" for q in QUERIES for d in DOCUMENTS[:2])
    Path("qrels.tsv").write_text(f"query_id\tdoc_id\trelevance\n{judged}")
    write_output(Path("bm25.tsv"), 0, 0.1)
    for seed, lift in ((1, 0.2), (2, 0.5), (3, 0.3)):
        write_output(Path(f"runs-of/dense/seed-{seed}.tsv"), seed, lift)
    Path("c.yaml").write_text(CONFIG)
    return tmp_path


def lines(evaluation, model="dense"):
    return {line.measure: line for line in evaluation.estimates if line.model == model}


def test_a_family_has_the_mean_of_its_replicates_and_a_wider_interval(folder):
    evaluation = evaluate_config("c.yaml")
    singly = CONFIG.replace("  dense:", "  '*':").replace("{model}/seed-{replicate}", "dense/seed-{model}")
    Path("single.yaml").write_text(singly.replace("name: seeds", "name: singly"))
    single = evaluate_config("single.yaml")

    own = lines(evaluation)["ndcg@5"]
    alone = [lines(single, model)["ndcg@5"] for model in "123"]
    assert own.estimate == pytest.approx(np.mean([line.estimate for line in alone]))
    assert own.ci_high - own.ci_low > max(line.ci_high - line.ci_low for line in alone)
    by_replicate = {line.replicate: line.estimate for line in evaluation.replicates if line.measure == "ndcg@5"}
    assert by_replicate == {line.model: line.estimate for line in alone}
    assert {line.measure: line.more for line in evaluation.components} == {"ndcg@5": "replicates", "rr": "replicates"}


def test_the_record_has_each_replicate(folder):
    evaluation = evaluate_config("c.yaml")
    record = read_record(evaluation.record)
    assert [(output.model, output.replicate) for output in record.manifest.outputs] == [
        ("bm25", ""),
        ("dense", "1"),
        ("dense", "2"),
        ("dense", "3"),
    ]
    assert len({output.files[0].sha256 for output in record.manifest.outputs}) == 4
    measures = [Measure.parse("ndcg@5"), Measure.parse("rr")]
    again = read_scores(record, "web", "dense", measures)
    new = next(scores for scores in evaluation.results if scores.model == "dense")
    for one, other in zip((again, *again.replicates), (new, *new.replicates), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        assert one.replicate == other.replicate
    assert record.replicates == evaluation.replicates
    assert record.components == evaluation.components
    assert [(scores.model, len(scores.replicates)) for scores in load(str(record.path)).results] == [
        ("bm25", 0),
        ("dense", 3),
    ]

    with pytest.raises(InputError, match="'dense' has the replicates 1, 2, 3, each with its own scores; name one"):
        explain("c.yaml", model="dense", query="q01")
    with pytest.raises(InputError, match="'dense' has no replicate '7'"):
        explain("c.yaml", model="dense", query="q01", replicate="7")
    found = explain(str(evaluation.record), model="dense", query="q01", replicate="2")

    own = next(scores for scores in evaluation.results if scores.model == "dense").replicates[1]
    assert found.outcome.value == pytest.approx(own.values[0, 1])
    assert found.recorded.measured
    assert as_data(found)["replicate"] == "2"
    assert markdown(found).startswith("### dense (replicate 2) on web, query q01: ")


def test_a_record_without_replicates_has_no_such_file(folder):
    Path("c.yaml").write_text(CONFIG.replace("seed-{replicate}", "seed-1"))
    record = evaluate_config("c.yaml").record
    assert not [path.name for path in record.iterdir() if "replicate" in path.name or "components" in path.name]
    assert '"replicate"' not in (record / "manifest.json").read_text()


def test_a_listed_replicate_that_is_missing_is_said(folder):
    Path("c.yaml").write_text(CONFIG.replace('replicate}.tsv"', 'replicate}.tsv", replicates: [1, 2, 9]'))
    evaluation = evaluate_config("c.yaml")

    (failure,) = evaluation.failures
    assert (failure.subject, failure.reason) == (
        "dense (replicate 9) on web",
        "c.yaml:6: models.dense.outputs: file not found: runs-of/dense/seed-9.tsv; check the path",
    )
    assert {line.replicate for line in evaluation.replicates} == {"1", "2"}
    assert ["dense", "2 of 3 ready"] in table_rows(matrix(validate("c.yaml"), width=100))
    assert reproduce(str(evaluation.record)).verdict == "identical"

    gate = "gates: [{name: whole, models: [dense], max_missing: 10%}]\n"
    listed = CONFIG.replace('replicate}.tsv"', 'replicate}.tsv", replicates: [1, 2, 9]')
    Path("c.yaml").write_text(listed + gate)
    (verdict,) = evaluate_config("c.yaml").verdicts
    assert (verdict.outcome, verdict.estimate) == ("fail", pytest.approx(1 / 3))
    assert verdict.reason.startswith("replicate 9 of dense has no output (1 of 3): 33.33% of the judged queries are ")


def test_one_replicate_claims_nothing_of_others(folder):
    for seed in (2, 3):
        Path(f"runs-of/dense/seed-{seed}.tsv").unlink()
    evaluation = evaluate_config("c.yaml")
    Path("c.yaml").write_text(CONFIG.replace("seed-{replicate}", "seed-1"))
    single = evaluate_config("c.yaml")

    assert lines(evaluation) == lines(single)
    assert "dense on web: only one replicate; nothing is claimed of any other" in map(str, evaluation.data_warnings)
    assert evaluation.components == ()
    Path("c.yaml").write_text(CONFIG)
    assert explain("c.yaml", model="dense", query="q01").subject == "dense (replicate 1) on web, query q01"
    shutil.rmtree("runs-of")
    (failure,) = evaluate_config("c.yaml").failures
    assert failure.reason.endswith("file not found: runs-of/dense/seed-*.tsv; check the path")


def test_validate_says_what_becomes_of_replicates(folder):
    assert validate("c.yaml").replicates == {("web", "dense"): ("1", "2", "3")}
    Path("c.yaml").write_text(CONFIG.replace("  dense:", "  '*':"))
    assert validate("c.yaml").models == ("bm25", "dense")

    gate = 'gates: [{name: drop, models: dense, measure: "ndcg@5", against: self@accepted, margin: 0.1}]\n'
    Path("c.yaml").write_text(CONFIG + gate)
    (line,) = [text for text in validate("c.yaml").warnings if "seed" in text]
    assert line.startswith("c.yaml:6: models.dense: gate drop compares other replicates of dense")
    Path("c.yaml").write_text(CONFIG.replace('replicate}.tsv"', 'replicate}.tsv", shared_seeds: true') + gate)

    assert not [text for text in validate("c.yaml").warnings if "seed" in text]

    # One of the three seeds is missing from one model, so that differences are not paired.
    for seed in (1, 2):
        write_output(Path(f"runs-of/other-{seed}.tsv"), seed, 0.1)
    other = '  other: {outputs: "runs-of/other-{replicate}.tsv", replicates: [1, 2, 3], shared_seeds: true}\nsuites:'
    config = CONFIG.replace('replicate}.tsv"', 'replicate}.tsv", shared_seeds: true').replace("suites:", other)
    Path("c.yaml").write_text(config)
    said = "other on web: not paired with dense by seed, for their replicates are not the same: 1, 2 and 1, 2, 3"

    assert said in validate("c.yaml").warnings


def test_a_record_is_evaluated_again_with_its_replicates(folder):
    evaluation = evaluate_config("c.yaml")
    write_output(Path("runs-of/dense/seed-4.tsv"), 4, 0.3)
    Path("runs-of/dense/seed-2.tsv").unlink()
    again = evaluate_config(str(evaluation.record))

    for name in FIGURES:
        assert (again.record / name).is_file() == (evaluation.record / name).is_file()
        if (again.record / name).is_file():
            assert (again.record / name).read_bytes() == (evaluation.record / name).read_bytes()


def test_records_are_compared_family_by_family(folder):
    first = evaluate_config("c.yaml")
    for seed, lift in ((1, 0.3), (2, 0.7), (3, 0.5)):
        write_output(Path(f"runs-of/dense/seed-{seed}.tsv"), seed, lift)
    second = evaluate_config("c.yaml")
    report = compare(str(first.record), str(second.record))
    line = next(line for line in report.comparisons if (line.model, line.measure) == ("dense", "ndcg@5"))

    assert line.difference == pytest.approx(lines(second)["ndcg@5"].estimate - lines(first)["ndcg@5"].estimate)
    assert line.ci_low < 0 < line.ci_high
    assert line.wins > 1.5 * line.losses


def test_a_gate_holds_a_family_against_its_accepted_record(folder):
    """By queries alone the drop is sure; the replicates differ as much, so that the gate is inconclusive."""
    gate = 'gates: [{name: drop, models: [dense], measure: "ndcg@5", against: "self@%s", margin: 0.0}]\n'
    Path("c.yaml").write_text(CONFIG)
    first = evaluate_config("c.yaml")
    for seed, lift in ((1, 0.0), (2, 0.4), (3, 0.2)):
        write_output(Path(f"runs-of/dense/seed-{seed}.tsv"), seed, lift)
    Path("c.yaml").write_text(CONFIG + gate % first.record)
    (verdict,) = evaluate_config("c.yaml").verdicts

    assert verdict.outcome == "inconclusive"
    assert "as replicates differ; evaluate more replicates or more queries" in verdict.reason
    assert verdict.estimate < -0.05


def test_a_baseline_without_one_replicate_is_compared(folder):
    listed = CONFIG.replace('replicate}.tsv"', 'replicate}.tsv", replicates: [1, 8, 9]')
    Path("c.yaml").write_text(listed.replace("baseline: bm25", "baseline: dense"))
    evaluation = evaluate_config("c.yaml")
    assert len(evaluation.failures) == 2
    assert list(not_compared(evaluation)) == []
    Path("runs-of/dense/seed-1.tsv").unlink()

    assert list(not_compared(evaluate_config("c.yaml"))) == [
        "not compared on web: the baseline dense was not evaluated"
    ]


def test_the_test_of_a_family_is_named(folder):
    write_output(Path("other.tsv"), 5, 0.2)
    config = CONFIG.replace("suites:", "  other: {outputs: other.tsv}\nsuites:")
    Path("c.yaml").write_text(config)
    found = evaluate_config("c.yaml").comparison_lines

    assert {line.test for line in found if line.model == "dense"} == {"variance components"}
    assert "variance components" not in {line.test for line in found if line.model == "other"}
    assert [line.measure for line in found if line.model == "dense" and line.is_primary] == ["ndcg@5"]


def test_a_night_waits_for_replicates_that_are_listed(folder):
    """Without a list a night that has one seed of three would count as whole: `nightly` refuses, `validate` says so."""
    line = "c.yaml:6: models.dense.outputs: `{replicate}` without a list, so `nightly` cannot know what to wait for"
    assert not validate("c.yaml").warnings
    Path("c.yaml").write_text(CONFIG + "nightly: {wait: 1s}\n")
    assert [text for text in validate("c.yaml").warnings if text.startswith(line)]
    with pytest.raises(InputError) as error:
        nightly("c.yaml", date="2026-11-01")

    assert error.value.lines[0] == f"{line}; add replicates: [1, 2, 3]"


def test_shared_seeds_are_paired(folder):
    for seed in (1, 2, 3):
        text = Path(f"runs-of/dense/seed-{seed}.tsv").read_text().splitlines()
        moved = [line if "\td0\t" not in line else f"{line.rpartition(chr(9))[0]}\t9" for line in text]
        Path(f"runs-of/better-{seed}.tsv").write_text("\n".join(moved) + "\n")
    config = CONFIG.replace('.tsv"}', '.tsv", shared_seeds: true}').replace("baseline: bm25", "baseline: dense")
    config = config.replace(
        "suites:", '  better: {outputs: "runs-of/better-{replicate}.tsv", shared_seeds: true}\nsuites:'
    )
    errors, tests = [], []
    for text in (config, config.replace(", shared_seeds: true", "")):
        Path("c.yaml").write_text(text)
        found = evaluate_config("c.yaml").comparison_lines
        line = next(line for line in found if (line.model, line.measure) == ("better", "ndcg@5"))
        errors.append(line.std_error)
        tests.append(line.test)

    assert errors[0] < 0.7 * errors[1]
    assert tests == ["variance components of paired replicates", "variance components"]


def test_a_gate_names_the_replicate_that_undoes_its_pairing(folder):
    gate = 'gates: [{name: drop, models: dense, measure: "ndcg@5", against: self@accepted, margin: 0.1}]\n'
    Path("c.yaml").write_text(CONFIG.replace('replicate}.tsv"', 'replicate}.tsv", shared_seeds: true') + gate)
    accept(str(evaluate_config("c.yaml").record), reason="first")
    (paired,) = evaluate_config("c.yaml").verdicts
    Path("runs-of/dense/seed-2.tsv").unlink()
    (unpaired,) = evaluate_config("c.yaml").verdicts

    assert "by seed" not in paired.details
    assert "not paired by seed: replicate 2 is on one side only" in unpaired.details


def test_the_page_asks_for_queries_or_replicates(folder):
    evaluation = evaluate_config("c.yaml", overrides=["report=true"])
    page = (evaluation.record / "report.html").read_text()
    rows = [line for line in read_record(evaluation.record).components if line.measure == "ndcg@5"]
    (note,) = replicate_notes(evaluation, "web")

    assert "More queries or more replicates? Standard deviations on web" in page
    assert len(rows) == 1
    assert f"{math.sqrt(rows[0].replicates):.4f}" in page.partition("More queries or more replicates?")[2]
    assert note in page
    assert note.startswith("dense on web: 3 replicates; standard error of ndcg@5: 0.")
    assert note.endswith("with twice the replicates: more replicates would help most")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("outputs: bm25.tsv", "outputs: bm25.tsv, replicates: [1, 2]", r"`outputs` has no {replicate}; write it into"),
        ('.tsv"}', '.tsv", replicates: [1, 1]}', "the replicate '1' is named twice; keep one"),
        ("runs-of/{model}", "s3://bucket/{model}", "replicates are searched for in local folders only; list them"),
        ("rr]", '"rbo(model=dense)"]', "compares with 'dense', which has replicates; name a model with one output"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(folder, old, new, message):
    Path("c.yaml").write_text(CONFIG.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        evaluate_config("c.yaml")
    (line,) = error.value.lines
    assert line.startswith("c.yaml:")
    assert message in line


def test_scores_of_replicates_are_those_of_the_family(folder):
    text = Path("runs-of/dense/seed-2.tsv").read_text().splitlines()
    Path("runs-of/dense/seed-2.tsv").write_text("\n".join(line for line in text if not line.startswith("q03")) + "\n")
    evaluation = evaluate_config("c.yaml")
    assert lines(evaluation)["rr"].n_missing == 1
    assert {line.replicate: line.n_missing for line in evaluation.replicates} == {"1": 0, "2": 1, "3": 0}
    assert dataclasses.asdict(evaluation.quality["web", "dense"])["n_missing_queries"] == 1
