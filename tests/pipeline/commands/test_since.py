"""How figures changed since earlier records: twelve nights in which bm25 breaks on one family, and a case by hand."""

import json
import re
import shutil
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

import rankledger
from rankledger.pipeline.cli import app
from rankledger.pipeline.commands.reproduce import FIGURES
from rankledger.pipeline.inference.tables import ChangeSince
from rankledger.pipeline.report.terminal import as_data
from tests.support.planted_nights import (
    ACCEPTED,
    BROKEN,
    N_NIGHTS,
    QUERIES,
    broken_headline,
    mean,
    night,
    share,
    without_interval,
    write_config,
    write_night,
    write_output,
)


@dataclass(frozen=True)
class Nights:
    evaluations: Mapping[int, rankledger.Evaluation]
    printed: str
    markdown: str


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """Twelve nights, the ninth of which is accepted; only the pages of the last two are drawn."""
    folder = tmp_path_factory.mktemp("nights")
    config, runs, comment = write_config(folder), folder / "runs", folder / "comment.md"
    evaluations, printed = {}, ""
    for number in range(1, N_NIGHTS + 1):
        write_night(folder, number)
        if number == BROKEN:
            options = ["--date", night(number), "--runs-dir", str(runs), "--markdown", str(comment)]
            printed = stdout_of("evaluate", str(config), *options)
            evaluations[number] = rankledger.load("last", name="nightly", runs_dir=runs)
        else:
            drawn = f"report={json.dumps(number > BROKEN)}"
            evaluations[number] = evaluate(config, date=night(number), overrides=[drawn])
        if number == ACCEPTED:
            rankledger.accept("last", name="nightly", reason="good", config=config, runs_dir=runs)
    return Nights(evaluations, printed, comment.read_text(encoding="utf-8"))


def evaluate(config: Path, **options: Any) -> rankledger.Evaluation:
    return rankledger.evaluate_config(config, tracking=False, **{"runs_dir": config.parent / "runs", **options})


def stdout_of(*arguments: str) -> str:
    """What a command prints, whatever it exits with."""
    printed = StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        app.main([*arguments])
    return printed.getvalue()


def line_of(evaluation: rankledger.Evaluation, since: str, model: str = "bm25") -> ChangeSince:
    (line,) = (line for line in evaluation.changes if (line.since, line.model) == (since, model))
    return line


def test_the_broken_slice_is_named_on_every_surface(nights):
    found = nights.evaluations[BROKEN]
    said = found.headline
    page = (found.record / "report.html").read_text(encoding="utf-8").replace("<wbr>", "")
    verdict = page.partition('id="verdict"')[2]

    assert without_interval(said) == broken_headline()
    assert as_data(found)["headline"] == said
    assert " ".join(nights.printed.split()).startswith(said)
    assert f"\nPage     {found.record}/report.html\n" in nights.printed
    assert MarkdownIt().render(nights.markdown).partition("<strong>")[2].startswith(said)
    assert MarkdownIt().render(found.to_markdown()).partition("<strong>")[2].startswith(said)
    assert re.findall("<p[^>]*><bdi>(.*?)</bdi></p>", verdict)[0] == said


def test_the_next_night_says_since_when(nights):
    found = nights.evaluations[BROKEN + 1]
    previous, accepted = line_of(found, "previous"), line_of(found, "accepted")

    assert previous.difference == pytest.approx(mean("bm25", 12) - mean("bm25", 11))
    assert accepted.difference == pytest.approx(mean("bm25", 12) - mean("bm25", ACCEPTED))
    assert (accepted.date, accepted.first_seen) == (night(ACCEPTED), night(BROKEN))
    assert previous.first_seen == night(BROKEN)  # that its gate fails
    assert (accepted.slice, accepted.slice_queries) == ("family=internet", 59)
    assert accepted.slice_share == pytest.approx(share(ACCEPTED, 12))
    assert "since the accepted record of 18 Nov, allowed 0.02. family=internet (59 queries" in found.headline
    assert found.headline.endswith("Since 20 Nov. Owner: search-team.")


def test_the_page_has_the_nights_and_the_change_since_the_accepted_one(nights):
    found = nights.evaluations[BROKEN]
    accepted = line_of(found, "accepted")
    verdict = (found.record / "report.html").read_text(encoding="utf-8").partition('id="verdict"')[2]
    table = verdict[verdict.index("<table") : verdict.index("</table>")]
    first, second = re.findall("<tr><th scope=row.*?</tr>", table.replace("<wbr>", ""))

    assert accepted.difference == pytest.approx(mean("bm25", BROKEN) - mean("bm25", ACCEPTED))
    assert accepted.ci_low < accepted.difference < accepted.ci_high < 0
    text = re.sub("<[^>]+>", " ", first).split()
    assert (text[0], text[-2:]) == ("bm25", [night(ACCEPTED), night(BROKEN)])
    assert f"{mean('bm25', BROKEN):.4f}" in text
    assert f"{accepted.difference:+.4f}" in text
    assert f'role="img" aria-label="{BROKEN} nights: ' in first
    assert "dense" in second

    against = [line for line in found.verdicts if line.reference and line.model == "bm25"]
    assert against
    for line in against:
        assert f"against the night {night(ACCEPTED)}" in line.reason or f"the night {night(BROKEN - 1)}" in line.reason
        assert line.reference.startswith("bm25 in 20")


def test_a_record_keeps_the_changes_which_change_no_figure(nights, tmp_path):
    first, found = nights.evaluations[1], nights.evaluations[BROKEN + 1]
    again = rankledger.load(found.record)
    assert again.changes == found.changes != ()
    assert (again.headline, as_data(again)["changes"]) == (found.headline, as_data(found)["changes"])
    assert [*again.changes_since["since"]] == ["previous", "accepted"] * 2
    assert first.changes == ()
    assert not (first.record / "changes.csv").exists()

    found = nights.evaluations[BROKEN]
    config = found.record.parent.parent.parent / "config.yaml"
    alone = evaluate(config, date=night(BROKEN), runs_dir=tmp_path, jobs=2)
    same = [name for name in FIGURES if (found.record / name).exists()]
    assert "scores.parquet" in same
    for name in same:
        assert (found.record / name).read_bytes() == (alone.record / name).read_bytes()
    assert alone.changes == ()


@pytest.fixture
def config(tmp_path) -> Path:
    path = write_config(tmp_path, gates=[], suites={"search": ["rr"]})
    for number in (1, 2):
        for model in ("bm25", "dense"):
            write_output(tmp_path / night(number) / f"{model}.txt", dict.fromkeys(QUERIES, 1))
    return path


def test_a_change_worked_by_hand(config):
    """The first 75 of 300 queries go from rank 1 to 2."""
    worse = {query_id: 2 if place < 75 else 1 for place, query_id in enumerate(QUERIES)}
    write_output(config.parent / night(2) / "bm25.txt", worse)
    evaluate(config, date=night(1))
    found = evaluate(config, date=night(2))
    line, other = line_of(found, "previous"), line_of(found, "previous", "dense")

    assert (line.before, line.after, line.difference) == (1.0, 0.875, -0.125)
    assert (line.ci_low, line.ci_high) == pytest.approx((-0.1495, -0.1005), abs=0.004)
    assert (line.n_queries, line.slice, line.slice_before, line.slice_after) == (300, "family=internet", 1.0, 0.5)
    assert line.slice_share == pytest.approx(59 / 75)
    assert (line.first_seen, line.owner, line.reason) == (night(2), "search-team", "")
    assert (other.difference, other.ci_low, other.ci_high, other.first_seen) == (0.0, 0.0, 0.0, "")
    assert found.headline == (
        "CHANGE rr of bm25 fell 0.125 since last night. family=internet (59 queries) explains 79% of it. "
        "Since 11 Nov. Owner: search-team."
    )


def test_what_did_not_change_or_gates_pass_is_not_searched(config):
    evaluate(config, date=night(1))
    found = evaluate(config, date=night(2))
    assert found.headline == "CHANGE No value changed since last night."
    assert {line.first_seen for line in found.changes} == {""}

    write_output(config.parent / night(2) / "bm25.txt", {query: 1 + query.startswith("internet") for query in QUERIES})
    evaluate(config, date=night(1))
    found = evaluate(config, date=night(2), overrides=['gates=[{"name": "floor", "measure": "rr", "at_least": 0.5}]'])
    line = line_of(found, "previous")
    assert line.difference == pytest.approx(-59 / 300 / 2)
    assert (line.decision, line.slice, line.slice_share) == ("worse", "", None)


def test_a_late_night_is_held_against_the_night_before_it(config):
    write_output(config.parent / night(3) / "bm25.txt", dict.fromkeys(QUERIES, 2))
    write_output(config.parent / night(3) / "dense.txt", dict.fromkeys(QUERIES, 2))
    for number in (1, 3, 2, 2):
        found = evaluate(config, date=night(number))
        then = {(line.date, line.difference) for line in found.changes}
        assert then == {1: set(), 2: {(night(1), 0.0)}, 3: {(night(1), -0.5)}}[number]


def test_without_a_date_nothing_depends_on_the_day(config):
    fixed = [f"defaults.model.outputs={config.parent}/{night(2)}/{{model}}.txt", "models={bm25: {}, dense: {}}"]
    evaluate(config, overrides=fixed, date="first")
    write_output(config.parent / night(2) / "bm25.txt", dict.fromkeys(QUERIES, 2))
    found = evaluate(config, overrides=fixed)
    assert line_of(found, "previous").first_seen == ""
    assert found.headline == "CHANGE rr of bm25 fell 0.500 since first."


def change_judgments(config: Path) -> None:
    with (config.parent / "qrels.txt").open("a", encoding="utf-8") as file:
        file.write("files-000 0 x1 1\n")


def change_definition(config: Path) -> None:
    text = config.read_text(encoding="utf-8")
    config.write_text(f"{text}conventions: {{ties: optimistic}}\n", encoding="utf-8")


def change_version(config: Path) -> None:
    (manifest,) = (config.parent / "runs" / "records").glob("*/manifest.json")
    found = json.loads(manifest.read_text(encoding="utf-8"))
    found["environment"]["packages"]["rankledger"] = "0.0.1"
    manifest.write_text(json.dumps(found), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (change_judgments, "judgments changed (1 pair new) since the night 2026-11-10"),
        (change_definition, "rr is defined otherwise (fingerprint "),
        (change_version, "rankledger was 0.0.1 on the night 2026-11-10"),
    ],
)
def test_what_means_something_else_is_not_compared(config, change, reason):
    evaluate(config, date=night(1))
    change(config)
    found = evaluate(config, date=night(2))
    line = line_of(found, "previous")

    assert line.reason.startswith(reason)
    assert (line.difference, line.before, line.ci_low) == (None, None, None)
    judged = "Judgments changed since 10 Nov (1 pair new)."
    expected = judged if change is change_judgments else f"Not compared with the record of 10 Nov: {reason}"
    assert f". {expected}" in found.headline


def test_figures_that_are_undefined_are_not_compared(config):
    (config.parent / "qrels.txt").write_text("".join(f"{query_id} 0 r 0\n" for query_id in QUERIES), encoding="utf-8")
    undefined = ["conventions.undefined_queries=skip"]
    evaluate(config, date=night(1), overrides=undefined)
    found = evaluate(config, date=night(2), overrides=undefined)

    assert {(line.difference, line.before, line.reason) for line in found.changes} == {
        (None, None, "no query has a score in both")
    }
    assert found.headline.startswith("CHANGE Not compared with ")


def test_a_model_that_is_new_has_nothing_to_compare_with(config):
    evaluate(config, date=night(1), overrides=[f"models={{bm25: {{outputs: '{config.parent}/{night(1)}/bm25.txt'}}}}"])
    accepted = rankledger.accept("last", name="nightly", reason="good", config=config, runs_dir=config.parent / "runs")
    found = evaluate(config, date=night(2))
    entry = accepted.entries["bm25"]

    assert "has no model 'dense'" in line_of(found, "previous", "dense").reason
    assert [line.since for line in found.changes if line.model == "dense"] == ["previous"]
    assert (line_of(found, "accepted").reference, line_of(found, "accepted").difference) == (entry.record, 0.0)
    shutil.rmtree(config.parent / "runs" / "records" / entry.record)
    again = evaluate(config, date=night(2))
    assert line_of(again, "accepted").reason.startswith(f"the accepted record {entry.record} is not in ")


@pytest.mark.parametrize(("n_worse", "decision", "said"), [(6, "worse", "0.010"), (5, "", "0.008")])
def test_a_drop_of_few_queries_is_decided_by_their_signs(config, n_worse, decision, said):
    """6 of 300 queries go from rank 1 to 2: 2 of 2⁶ patterns of signs are as extreme, so p = 0.03; of 5 p = 0.06."""
    write_output(config.parent / night(2) / "bm25.txt", {q: 1 + (place < n_worse) for place, q in enumerate(QUERIES)})
    evaluate(config, date=night(1))
    found = evaluate(config, date=night(2))
    line = line_of(found, "previous")

    assert (line.mark, line.p_corrected, line.decision) == ("sparse", 2 / 2**n_worse, decision)
    assert f"bm25 fell {said} since last night" in found.headline
    assert ("(unclear)" in found.headline) is (decision == "")
