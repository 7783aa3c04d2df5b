"""The looks of a gate over evaluations and their records."""

import shutil
from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.record.folder import read_record
from tests.support.generated_data import search_collection, write_config

WEB = search_collection(43, n_queries=40)
GATE = {"name": "no-drop", "models": "dense", "measure": "ap", "against": "bm25", "margin": 0.005}


@pytest.fixture
def config(tmp_path) -> Path:
    """Of a gate with two looks; the output of `dense` is kept for other nights."""
    gates = [GATE | {"looks": {"changed_outputs": 2}, "on_inconclusive": "warn"}]
    path = write_config(tmp_path, {"web": WEB}, {"search": ["ap"]}, gates=gates, report=False)
    shutil.copy(tmp_path / "web" / "dense.txt", tmp_path / "first.txt")
    return path


def night(config: Path, shift: int, date: str | None = None, since: str | None = None) -> Verdict:
    """The verdict of a night on which the scores of `dense` moved by so many documents; looks count since that day."""
    rows = [line.split() for line in (config.parent / "first.txt").read_text().splitlines()]
    scores = [row[4] for row in rows]
    moved = zip(rows, [*scores[shift:], *scores[:shift]], strict=True)
    lines = [" ".join([*row[:4], score, *row[5:]]) + "\n" for row, score in moved]
    (config.parent / "web" / "dense.txt").write_text("".join(lines))
    overrides = [f"gates.0.looks.since={since}"] if since else []
    (verdict,) = rankledger.evaluate_config(
        config, overrides=overrides, date=date, tracking=False, runs_dir=config.parent / "runs"
    ).verdicts
    return verdict


def test_looks_are_counted_from_record_to_record(config):
    found = [night(config, shift) for shift in (0, 0, 3, 0)]
    records = map(read_record, (config.parent / "runs" / "records").glob("*/"))
    for record in sorted(records, key=lambda record: record.manifest.created)[:-1]:
        shutil.rmtree(record.path)
    last = night(config, 7)

    assert [verdict.looks.spent for verdict in found if verdict.looks] == [1, 1, 2, 2]
    assert (found[3].outcome, found[3].ci_low, found[3].ci_high) == (
        found[0].outcome,
        found[0].ci_low,
        found[0].ci_high,
    )
    assert (last.outcome, last.looks and last.looks.spent) == ("inconclusive", 2)
    assert "all 2 looks are spent" in last.reason


def test_looks_are_renewed_by_the_dates_of_nights(config):
    """Two looks; none is left, nor for a renewal to come; that day has two anew, of which a repeat takes none."""
    first, second, third, fourth, fifth = (f"3026-12-0{day}" for day in range(1, 6))
    nights = [
        night(config, 1, first),
        night(config, 2, second),
        night(config, 3, third),
        night(config, 3, third, since=fourth),
        night(config, 3, fourth, since=fourth),
        night(config, 4, fourth, since=fourth),
        night(config, 1, fifth, since=fourth),
    ]
    looks = [verdict.looks for verdict in nights if verdict.looks]

    assert [look.spent for look in looks] == [1, 2, 2, 2, 1, 2, 2]
    assert [bool(look.output) for look in looks] == [True, True, False, False, True, True, False]
    assert f"the last on {second}; set looks.since to a later day to renew them" in nights[2].reason
    assert f"the last on {fourth}; set looks.since to a later day to renew them" in nights[6].reason


def test_validate_names_slices_that_are_too_small(tmp_path, run_cli):
    rows = [(f"q{i:02}", "de" if i < 5 else "fr" if i < 25 else "us") for i in range(60)]
    (tmp_path / "qrels.tsv").write_text("".join(f"{query} 0 d 1\n" for query, _ in rows), encoding="utf-8")
    (tmp_path / "run.tsv").write_text("".join(f"{query} Q0 d 1 1.0 t\n" for query, _ in rows), encoding="utf-8")
    table = "query_id,market\n" + "".join(f"{query},{market}\n" for query, market in rows)
    (tmp_path / "queries.csv").write_text(table, encoding="utf-8")
    (tmp_path / "a.yaml").write_text(
        "name: a\ndatasets: {web: {judgments: qrels.tsv, queries: queries.csv, slices: [market]}}\n"
        "models: {m: {outputs: run.tsv}}\nsuites: {s: [ap]}\n"
        "gates: [{name: floor, models: m, measure: ap, at_least: 0.3, slices: [market]}]\n",
        encoding="utf-8",
    )
    printed = " ".join(run_cli("validate", tmp_path / "a.yaml").out.split())

    said = "gate floor: 2 of 3 slices on web are too small to judge: market=de (5), market=fr (20); a verdict takes 30"
    assert f"{said} queries" in printed


def test_validate_says_how_often_gates_err(config):
    """Of one gate with two looks: the smaller of 2.5% and of 5% / 2."""
    assert rankledger.validate(config).gate_notes == (
        "false alarms: the gate uses an interval; with every model exactly at its limits, a gate fails by chance in at "
        "most 2.5% of nights",
    )
