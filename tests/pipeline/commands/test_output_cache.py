"""Evaluations by way of the output cache: the same bytes, with nothing parsed twice, and never a damaged figure."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankledger
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import join, readers
from rankledger.pipeline.data.cache import OutputCache
from tests.support.generated_data import (
    Collection,
    rating_collection,
    rows,
    search_collection,
    write_config,
    write_table,
)
from tests.support.records import figures_of, manifest_of

SEARCH = ["ndcg@5,10", "ap", "rr", "bpref", "judged@5", "fn"]
EXPECTED = ["ndcg@5,10", "ap", "rr", "p@3"]  # those that have a mean over orders of ties
WEB = search_collection(20, n_queries=30)
NEWS = search_collection(21, n_queries=12)
DATA = {"web": WEB, "news": NEWS}


def evaluate(config: Path, *overrides: str, **options: Any) -> rankledger.Evaluation:
    runs = options.pop("runs_dir", config.parent / "runs")
    overrides = ("report=false", *overrides)
    return rankledger.evaluate_config(config, overrides=overrides, tracking=False, runs_dir=runs, **options)


def parsed(evaluation: rankledger.Evaluation) -> dict[tuple[str, str], bool]:
    manifest = manifest_of(evaluation.record)
    return {(output["dataset"], output["model"]): output["parsed"] for output in manifest["outputs"]}


def entries(config: Path) -> list[Path]:
    return sorted((config.parent / "runs" / "cache").rglob("*.hits"))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    class Counting(readers.RankingRanges):
        def __init__(self, source: Source, **options: Any) -> None:
            found.append(Path(source.path).name)
            super().__init__(source, **options)

    monkeypatch.setattr(readers, "RankingRanges", Counting)
    return found


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, DATA, {"search": SEARCH})


def test_a_second_evaluation_parses_no_rows(config, calls):
    first = evaluate(config)
    assert len(calls) == 4
    assert set(parsed(first).values()) == {True}

    calls.clear()
    second = evaluate(config, 'suites.new=["err", "rbp", "p@3"]')
    assert calls == []
    assert set(parsed(second).values()) == {False}
    assert {line.measure for line in second.estimates} > {line.measure for line in first.estimates}

    first = evaluate(config)
    for name in DATA:
        path = config.parent / name / "bm25.txt"
        path.rename(path.with_name("2026-11-20.bm25.txt"))
    calls.clear()
    second = evaluate(config, f"models.bm25.outputs={config.parent}/{{dataset}}/2026-11-20.bm25.txt")

    assert calls == []
    assert figures_of(first.record) == figures_of(second.record)


CONVENTIONS = [
    *({"ties": ties} for ties in ("doc_id_asc", "input_order", "pessimistic")),
    {"ties": "expected"},
    {"ties": "rank_column"},
    {"score_precision": "float64"},
    {"depth": 7},
    {"unjudged_documents": "condensed"},
    {"missing_queries": "skip", "undefined_queries": "skip"},
    {"negative_grades": "non_relevant"},
]


CASES = [*((99, conventions) for conventions in CONVENTIONS), *((1 << 17, CONVENTIONS[place]) for place in (0, 3, 6))]


@pytest.mark.parametrize(("cells", "conventions"), CASES, ids=str)
def test_the_store_changes_no_byte(tmp_path, monkeypatch, conventions, cells):
    monkeypatch.setattr(join, "_CELLS", cells)
    measures = EXPECTED if conventions == {"ties": "expected"} else SEARCH
    folder = write_config(tmp_path, {"web": WEB}, {"search": measures}, conventions=conventions)
    if conventions == {"ties": "rank_column"}:
        _write_distinct_ranks(tmp_path / "web")
    without = evaluate(folder, "execution.cache=false")
    assert not (tmp_path / "runs" / "cache").exists()

    filling, reading = evaluate(folder), evaluate(folder)
    assert set(parsed(reading).values()) == {False}
    assert figures_of(without.record) == figures_of(filling.record) == figures_of(reading.record)


def _write_distinct_ranks(folder: Path) -> None:
    for model, output in WEB.outputs.items():
        lines = [
            f"{query_id} Q0 {doc_id} {rank} 0 tag\n"
            for query_id, documents in output.items()
            for rank, doc_id in enumerate(documents, start=1)
        ]
        (folder / f"{model}.txt").write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize("ending", [".csv.gz", ".parquet"])
def test_formats_are_kept_alike(tmp_path, ending):
    config = write_config(tmp_path, DATA, {"search": SEARCH}, ending=ending)
    first, second = evaluate(config), evaluate(config)
    assert set(parsed(second).values()) == {False}
    assert figures_of(first.record) == figures_of(second.record)


def test_subtopics_are_kept(tmp_path, calls):
    judged = "".join(f"q{q} {s} d{d} {(q + s + d) % 3}\n" for q in range(4) for s in (1, 2) for d in range(q, q + 3))
    output = {f"q{q}": {f"d{d}": float(-d % 5) for d in range(6)} for q in range(4)}
    config = write_config(tmp_path, {"web": Collection({"q": {"d": 1}}, {"m": output})}, {"s": ["alpha_ndcg@5", "ap"]})
    (tmp_path / "web" / "judged.txt").write_text(judged, encoding="utf-8")
    first = evaluate(config, "datasets.web.subtopics=true")
    calls.clear()

    assert figures_of(evaluate(config, "datasets.web.subtopics=true").record) == figures_of(first.record)
    assert calls == []


def test_parts_and_a_url_are_kept(config):
    folder, found = config.parent / "web", rows(WEB.outputs["bm25"])
    write_table(folder / "parts/0.tsv", found[:50], "score")
    write_table(folder / "parts/1.tsv", found[50:], "score")
    for place in (folder / "parts", f"file://{folder}/bm25.txt"):
        first, second = (evaluate(config, f"models.bm25.outputs.web={place}") for _ in range(2))
        assert parsed(second)["web", "bm25"] is False
        assert figures_of(first.record) == figures_of(second.record)


def change_digit(path: Path, before: str) -> str:
    text = path.read_text(encoding="utf-8")
    place = text.index(before) - 1
    path.write_text(text[:place] + ("1" if text[place] != "1" else "2") + text[place + 1 :], encoding="utf-8")
    return ""


CHANGES: list[Callable[[Path], str]] = [
    lambda folder: change_digit(folder / "web/bm25.txt", " tag\n"),
    lambda folder: change_digit(folder / "web/judged.txt", "\n"),
    lambda _: "conventions.score_precision=float64",
    lambda _: "conventions.ties=doc_id_asc",
    lambda _: "datasets.web.duplicates=keep_first",
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_parsed(config, change):
    evaluate(config)
    override = [text] if (text := change(config.parent)) else []
    second = evaluate(config, *override)
    assert parsed(second)["web", "bm25"] is True
    assert figures_of(second.record) == figures_of(evaluate(config, *override, "execution.cache=false").record)


def test_other_columns_are_parsed(tmp_path):
    config = write_config(tmp_path, {"web": WEB}, {"search": SEARCH}, ending=".tsv")
    rng = np.random.default_rng(5)
    lines = [f"{query}\t{doc}\t{score}\t{rng.normal()}\n" for query, doc, score in rows(WEB.outputs["bm25"])]
    text = "query_id\tdoc_id\tscore\tother\n" + "".join(lines)
    (tmp_path / "web" / "bm25.tsv").write_text(text, encoding="utf-8")
    columns = f"models.bm25.outputs={{path: {tmp_path}/web/bm25.tsv, columns: {{score: other}}}}"
    first, second = evaluate(config), evaluate(config, columns)

    assert parsed(second)["web", "bm25"] is True
    assert (
        figures_of(first.record)
        != figures_of(second.record)
        == figures_of(evaluate(config, columns, "execution.cache=false").record)
    )


@pytest.mark.parametrize("measures", [["entropy"], ["rbo(model=dense)"], ["nauc@10"]])
def test_measures_of_documents_that_nobody_judged_need_the_output(config, calls, measures):
    """Coverage and overlap ask which documents stand there, nauc for their scores; the store has judged ranks alone."""
    evaluate(config)
    calls.clear()
    second = evaluate(config, f"suites.more={json.dumps(measures)}")
    assert len(calls) == 4
    assert set(parsed(second).values()) == {True}


def test_predictions_of_ratings_are_parsed(tmp_path):
    """Every rated pair counts, so that nothing small could be kept."""
    config = write_config(tmp_path, {"stars": rating_collection(3)}, {"errors": ["rmse"]})
    evaluate(config)
    assert set(parsed(evaluate(config)).values()) == {True}
    assert entries(config) == []


def test_what_is_missing_is_refused_whatever_the_store_has(config):
    evaluate(config)
    reasons = [
        evaluate(config, "conventions.missing_queries=error", f"execution.cache={blocks}").failures
        for blocks in ("true", "false")
    ]

    assert len(reasons[0]) == 4
    assert reasons[0] == reasons[1]

    # What the store has of an output does not stand in for it, unless a record asks for it.
    (config.parent / "web" / "bm25.txt").unlink()

    (failure,) = evaluate(config).failures
    assert (failure.dataset, failure.model) == ("web", "bm25")
    assert "file not found: " in failure.reason


@pytest.mark.parametrize("as_url", [False, True])
def test_machines_share_a_store_by_its_path_or_url(tmp_path, as_url):
    place = (tmp_path / "the shared").as_uri() if as_url else "the shared"
    config = write_config(tmp_path, DATA, {"search": SEARCH}, execution={"cache": place})
    first, second = (evaluate(config, runs_dir=tmp_path / machine) for machine in ("one", "two"))
    third = evaluate(first.record, runs_dir=tmp_path / "three")

    assert [set(parsed(each).values()) for each in (first, second, third)] == [{True}, {False}, {False}]
    assert (
        figures_of(first.record)
        == figures_of(second.record)
        == figures_of(third.record)
        == figures_of(evaluate(config, "execution.cache=false").record)
    )
    assert len([*(tmp_path / "the shared").rglob("*.hits")]) == 4
    assert not [*tmp_path.glob("*/cache")]


@pytest.mark.parametrize("damage", [lambda _: b"", lambda data: data[:200] + data[202:]])
def test_a_damaged_entry_changes_no_figure(config, damage):
    first = evaluate(config)
    for path in entries(config):
        path.write_bytes(damage(path.read_bytes()))
    second, third = evaluate(config), evaluate(config)

    assert figures_of(first.record) == figures_of(second.record) == figures_of(third.record)
    assert set(parsed(second).values()) == {True}
    assert sorted(line.partition(": ")[0] for line in second.warnings) == list(map(str, entries(config)))
    assert set(parsed(third).values()) == {False}
    assert third.warnings == ()


def test_a_store_that_cannot_be_written_is_one_remark(config):
    runs = config.parent / "runs"
    runs.mkdir()
    (runs / "cache").write_text("in the way", encoding="utf-8")
    evaluation = evaluate(config)
    assert evaluation.failures == ()
    (line,) = evaluation.warnings
    assert line.startswith(f"{runs / 'cache'}: cannot be written (")
    assert figures_of(evaluation.record) == figures_of(evaluate(config, "execution.cache=false").record)

    evaluation = evaluate(config, "execution.cache=s4://eval/cache")

    (line,) = evaluation.warnings
    assert line.startswith("s4://eval/cache: ")
    assert line.endswith("; fix the URL")
    assert figures_of(evaluation.record) == figures_of(evaluate(config, "execution.cache=false").record)


def test_a_store_that_is_turned_off_is_left_alone(config):
    evaluate(config, "execution.cache=false")
    assert not OutputCache(config.parent / "runs" / "cache").folder.exists()
    evaluate(config)
    assert set(parsed(evaluate(config, "execution.cache=false")).values()) == {True}
