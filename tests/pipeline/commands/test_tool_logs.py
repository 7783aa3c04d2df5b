"""Logs of evaluation tools, evaluated: queries are the same if they ask the same, whatever number a run gives them."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

CONFIG = """
name: t
datasets: {d: {scores: {acc: {range: [0, 1]}}}}
models:
  a: {outputs: {path: a.jsonl, format: lm_eval}}
  b: {outputs: {path: b.jsonl, format: lm_eval}}
comparison: {baseline: a}
report: false
tracking: {enabled: false}
bootstrap: {resamples: 100}
"""


def write_log(path: str, contents: Sequence[str], right: Sequence[str], ids: Sequence[object] = ()) -> None:
    rows = enumerate(contents)
    lines = [
        {"doc_id": ids[n] if ids else n, "doc": {}, "doc_hash": own, "metrics": ["acc"], "acc": float(own in right)}
        for n, own in rows
    ]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("\n".join(map(json.dumps, lines)))


def comparison(record: Path) -> dict[str, str]:
    (row,) = csv.DictReader((record / "comparisons.csv").open())
    return row


def records() -> list[Path]:
    return sorted(filter(Path.is_dir, Path("runs/records").glob("*Z-*")), key=lambda path: path.stat().st_mtime)


HASHES = [f"h{number}" for number in range(40)]


@pytest.mark.parametrize(
    ("contents", "n_differing", "counts"),
    [
        (HASHES[::-1], 40, ("10", "30", "0")),  # another order: all ids ask something else
        (HASHES[5:25], 20, ("10", "10", "0")),  # filtered: 0 is what was 5
        ([*HASHES[1:], "other"], 40, ("10", "29", "0")),  # one is new, one is gone
    ],
)
def test_queries_are_paired_by_what_they_ask(run_cli, contents, n_differing, counts):
    """`b` answers h10 to h19 right and `a` does not, both h20 to h39: 10 wins, the others ties, in any order."""
    write_log("a.jsonl", HASHES, HASHES[20:])
    write_log("b.jsonl", contents, HASHES[10:])
    Path("c.yaml").write_text(CONFIG)

    ended = run_cli("evaluate", "c.yaml")

    row = comparison(ended.record)
    assert (row["wins"], row["ties"], row["losses"]) == counts
    said = f"{n_differing} of {len(contents)} query ids have another doc_hash than in a.jsonl"
    assert f"b: {said}. Queries are paired by doc_hash" in " ".join(ended.out.split())


def test_nights_are_compared_by_what_was_asked(run_cli):
    """On the second night the questions have other ids, and `b` loses h10 to h14: 5 of 40, and 35 are the same."""
    text = CONFIG.replace("path: ", "path: '{date}/").replace(".jsonl", ".jsonl'")
    gate = "gates: [{name: g, models: '*', measure: acc, against: self@accepted, margin: 0.5}]\n"
    Path("c.yaml").write_text(text + gate)
    for date, contents, begin in (("2026-11-20", HASHES, 10), ("2026-11-21", HASHES[::-1], 15)):
        write_log(f"{date}/a.jsonl", contents, HASHES[20:])
        write_log(f"{date}/b.jsonl", contents, HASHES[begin:])
    run_cli("nightly", "c.yaml", "-q", "--date", "2026-11-20")
    run_cli("accept", "last", "--config", "c.yaml", "--reason", "x")

    ended = run_cli("nightly", "c.yaml", "-q", "--date", "2026-11-21")

    first, second = records()
    changes = {(row["model"], row["since"]): row for row in csv.DictReader((second / "changes.csv").open())}
    assert {key: float(row["difference"]) for key, row in changes.items()} == {
        ("a", "previous"): 0,
        ("a", "accepted"): 0,
        ("b", "previous"): -0.125,
        ("b", "accepted"): -0.125,
    }
    assert "d: 40 of 40 query ids have another doc_hash than" in ended.err
    assert "Queries are paired by doc_hash" in ended.err
    compared = run_cli("compare", f"{first}#b", f"{second}#b")
    assert "d: 40 of 40 query ids have another doc_hash than in the base" in compared.err
    assert "0 / 35 / 5" in compared.out


def test_a_content_that_each_run_makes_anew_moves_no_query(run_cli):
    write_log("a.jsonl", HASHES, HASHES[20:])
    write_log("b.jsonl", [f"x{own}" for own in HASHES], [f"x{own}" for own in HASHES[10:]])
    Path("c.yaml").write_text(CONFIG)

    ended = run_cli("evaluate", "c.yaml")

    row = comparison(records()[-1])
    assert (row["wins"], row["ties"], row["losses"]) == ("10", "30", "0")
    assert "another doc_hash than in a.jsonl. Check that doc_hash is the same in both" in " ".join(ended.out.split())


def test_ids_that_the_config_names_stay(run_cli):
    write_log("a.jsonl", HASHES, HASHES[20:])
    write_log("b.jsonl", HASHES[::-1], HASHES[20:])
    Path("c.yaml").write_text(CONFIG.replace("format: lm_eval", "format: lm_eval, columns: {query_id: doc_id}"))

    ended = run_cli("evaluate", "c.yaml")

    assert comparison(ended.record)["ties"] == "0"
    assert "40 of 40 query ids have another doc_hash" in " ".join(ended.out.split())
    Path("c.yaml").write_text(CONFIG.replace("format: lm_eval", "format: lm_eval, columns: {query_id: doc_hash}"))
    ended = run_cli("evaluate", "c.yaml")
    assert comparison(ended.record)["ties"] == "40"
    assert "another doc_hash" not in ended.out


def test_two_models_without_a_common_query(run_cli):
    write_log("a.jsonl", HASHES, HASHES[20:])
    write_log("b.jsonl", HASHES, HASHES[20:], ids=range(100, 140))
    gate = "gates: [{name: g, models: b, measure: acc, against: a, margin: 0.1}]\n"
    Path("c.yaml").write_text(CONFIG.replace("report: false\n", "") + gate)

    ended = run_cli("evaluate", "c.yaml")

    record = records()[-1]
    (verdict,) = json.loads((record / "gates.json").read_text())["verdicts"]
    page = (record / "report.html").read_text()
    assert comparison(record)["mark"] == "empty"
    assert verdict["reason"] == "acc of b is undefined: no query in common has scores of both models"
    for said in (ended.out, page, run_cli("compare", f"{record}#a", f"{record}#b").out):
        assert "no query in common" in said
        assert "alike" not in said


def test_differences_that_are_all_the_same(run_cli):
    """40 differences of 898 each: 2 of 2⁴⁰ patterns of signs are as extreme, so p is the least of the draws."""
    for model, base in {"a": 0, "b": 898}.items():
        Path(f"{model}.csv").write_text("query_id,s\n" + "".join(f"q{n},{n % 7 + base}\n" for n in range(40)))
    text = CONFIG.replace(".jsonl, format: lm_eval", ".csv").replace("acc: {range: [0, 1]}", "s: higher")
    Path("c.yaml").write_text(text)

    assert "better than a (adj. p ≤.0001)" in run_cli("evaluate", "c.yaml").out
    assert "(1 primary test)" in run_cli("show", "--all").out


def test_scores_of_tools_keep_their_names_or_get_others(run_cli):
    """A name that MLflow or a shell would not take is read as it is, or under the name that the config gives it."""
    names = ["Correctness (GEval)", "Tone & style", "über", "acc,none", "Harmful/Privacy", "a|b", "x: y"]
    rows = [{"query_id": f"q{n}", **dict.fromkeys(names, n % 2)} for n in range(40)]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    scores = dict.fromkeys(names, "higher") | {"geval": {"column": names[0], "range": [0, 1]}}
    config = {"name": "t", "datasets": {"d": {"scores": scores}}, "models": {"a": {"outputs": "a.jsonl"}}}
    gate = {"name": "g", "measure": names[0], "at_least": 0.2}
    Path("c.yaml").write_text(json.dumps({**config, "gates": [gate], "bootstrap": {"resamples": 100}}))

    ended = run_cli("evaluate", "c.yaml", "-q")

    record = records()[-1]
    estimates = {row["measure"]: row["estimate"] for row in csv.DictReader((record / "summary.csv").open())}
    assert estimates == dict.fromkeys(scores, "0.5")
    assert (ended.code, ended.err) == (0, "")
    assert run_cli("report", "last", "--format", "markdown").code == 0
    assert run_cli("reproduce", "last").code == 0


def test_a_gate_finds_its_number_among_other_things(run_cli):
    write_log("a.jsonl", HASHES, HASHES)
    Path("e.json").write_text('{"model": "bm25", "cost": null, "loss": NaN, "eval": {"p95": 110.5}, "b": {"n": 1}}')
    gates = "gates:\n" + "".join(
        f"  - {{name: '{name}', models: a, extra: '{name}', at_most: 120}}\n" for name in ("p95", "eval.p95", "model")
    )
    text = CONFIG.replace("lm_eval}}\n  b:", "lm_eval}, extra: e.json}\n  b:").replace(
        "comparison: {baseline: a}\n", ""
    )
    write_log("b.jsonl", HASHES, HASHES)
    Path("c.yaml").write_text(text + gates)

    run_cli("evaluate", "c.yaml", "-q")

    record = records()[-1]
    found = {own["gate"]: own for own in json.loads((record / "gates.json").read_text())["verdicts"]}
    assert {name: own["outcome"] for name, own in found.items()} == {
        "p95": "pass",
        "eval.p95": "pass",
        "model": "inconclusive",
    }
    assert found["model"]["reason"] == "the `extra` of a has no finite number 'model'. Check the file"
