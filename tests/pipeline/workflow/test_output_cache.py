"""Evaluations by way of the output cache: the same bytes, with nothing parsed twice, and never a damaged figure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankledger
from rankledger.pipeline.data import join, readers
from rankledger.pipeline.data.cache import OutputCache
from rankledger.pipeline.types.inputs import Source
from rankledger.pipeline.types.results import Evaluation
from rankledger.pipeline.workflow import outputs
from tests.support.generated_data import (
    Collection,
    rating_collection,
    rows,
    search_collection,
    write_config,
    write_table,
)

SEARCH = ["ndcg@5,10", "ap", "rr", "bpref", "judged@5", "fn"]
EXPECTED = ["ndcg@5,10", "ap", "rr", "p@3"]  # those that have a mean over orders of ties
WEB = search_collection(20, n_queries=30)
NEWS = search_collection(21, n_queries=12)
DATA = {"web": WEB, "news": NEWS}


def evaluate(config: Path, *overrides: str, **options: Any) -> Evaluation:
    runs = options.pop("runs_dir", config.parent / "runs")
    overrides = ("report=false", *overrides)
    return rankledger.evaluate(config, overrides=overrides, tracking=False, runs_dir=runs, **options)


def figures(evaluation: Evaluation) -> list[bytes]:
    """The bytes of the files that hold figures."""
    return [(evaluation.record / name).read_bytes() for name in ("scores.parquet", "summary.csv")]


def parsed(evaluation: Evaluation) -> dict[tuple[str, str], bool]:
    """Whether the rows of each output were parsed, as the manifest has it."""
    manifest = json.loads((evaluation.record / "manifest.json").read_text(encoding="utf-8"))
    return {(output["dataset"], output["model"]): output["parsed"] for output in manifest["outputs"]}


def entries(config: Path) -> list[Path]:
    return sorted((config.parent / "runs" / "cache").rglob("*.hits"))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outputs whose rows were parsed since it was last cleared."""
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


# ---- the second evaluation


def test_a_second_evaluation_with_a_new_measure_parses_no_rows(config, calls):
    """The first parses each output once; the second, by other measures, asks no reader for a row."""
    first = evaluate(config)
    assert len(calls) == 4
    assert set(parsed(first).values()) == {True}

    calls.clear()
    second = evaluate(config, 'suites.new=["err", "rbp", "p@3"]')
    assert calls == []
    assert set(parsed(second).values()) == {False}
    assert {line.measure for line in second.estimates} > {line.measure for line in first.estimates}


def test_the_manifest_says_the_same_of_the_files(config):
    """Paths, sizes, hashes and what the join counted are in the manifest whether rows were parsed or not."""
    manifests = [json.loads((evaluate(config).record / "manifest.json").read_text(encoding="utf-8")) for _ in range(2)]

    without = [
        [{key: value for key, value in output.items() if key != "parsed"} for output in manifest["outputs"]]
        for manifest in manifests
    ]
    assert without[0] == without[1]


CONVENTIONS = [
    *({"ties": ties} for ties in ("doc_id_desc", "doc_id_asc", "input_order", "optimistic", "pessimistic")),
    {"ties": "expected"},
    {"ties": "rank_column"},
    {"score_precision": "float64"},
    {"depth": 7},
    {"unjudged_documents": "condensed"},
    {"missing_queries": "skip", "undefined_queries": "skip"},
    {"negative_grades": "non_relevant"},
    "ir_measures",
    {"profile": "ranx", "missing_queries": "empty"},
]


CASES = [*((99, conventions) for conventions in CONVENTIONS), *((1 << 17, CONVENTIONS[place]) for place in (0, 5, 8))]


@pytest.mark.parametrize(("cells", "conventions"), CASES, ids=str)
def test_the_store_changes_no_byte(tmp_path, monkeypatch, conventions, cells):
    """Under all conventions in many blocks, some in one: without the store, when it is filled, when it is read."""
    monkeypatch.setattr(join, "_CELLS", cells)
    measures = EXPECTED if conventions == {"ties": "expected"} else SEARCH
    folder = write_config(tmp_path, {"web": WEB}, {"search": measures}, conventions=conventions)
    if conventions == {"ties": "rank_column"}:
        _write_distinct_ranks(tmp_path / "web")
    without = evaluate(folder, "execution.cache=false")
    assert not (tmp_path / "runs" / "cache").exists()

    filling, reading = evaluate(folder), evaluate(folder)
    assert set(parsed(reading).values()) == {False}
    assert figures(without) == figures(filling) == figures(reading)


def _write_distinct_ranks(folder: Path) -> None:
    """Outputs whose rank column orders them."""
    for model, output in WEB.outputs.items():
        lines = [
            f"{query_id} Q0 {doc_id} {rank} 0 tag\n"
            for query_id, documents in output.items()
            for rank, doc_id in enumerate(documents, start=1)
        ]
        (folder / f"{model}.txt").write_text("".join(lines), encoding="utf-8")


def test_one_store_serves_all_conventions(config):
    """Filled under some conventions, it changes no byte of an evaluation under others."""
    for ties in ("input_order", "doc_id_asc", "doc_id_desc"):
        evaluate(config, f"conventions.ties={ties}")
    for ties in ("input_order", "doc_id_asc", "doc_id_desc", "expected"):
        changed = [f"conventions.ties={ties}", f"suites.search={json.dumps(EXPECTED)}"]
        kept = evaluate(config, *changed)
        assert set(parsed(kept).values()) == {False}
        assert figures(kept) == figures(evaluate(config, *changed, "execution.cache=false"))


def test_workers_find_what_others_kept(config):
    """What threads kept processes find, and the bytes are the same."""
    first = evaluate(config, jobs=2)
    second = evaluate(config, jobs=2, backend="processes")

    assert set(parsed(second).values()) == {False}
    assert figures(first) == figures(second)


@pytest.mark.parametrize("ending", [".tsv", ".csv.gz", ".jsonl.zst", ".parquet"])
def test_formats_are_kept_alike(tmp_path, ending):
    """Whatever the outputs are written in, the second evaluation parses none of them."""
    config = write_config(tmp_path, DATA, {"search": SEARCH}, ending=ending)
    first, second = evaluate(config), evaluate(config)

    assert set(parsed(second).values()) == {False}
    assert figures(first) == figures(second)


def test_an_output_under_another_name_is_known_by_its_content(config, calls):
    """A copy with another name, of the same format, is the same output: nightly files need not keep their names."""
    first = evaluate(config)
    for name in DATA:
        path = config.parent / name / "bm25.txt"
        path.rename(path.with_name("2026-11-20.bm25.txt"))
    calls.clear()
    second = evaluate(config, f"models.bm25.outputs={config.parent}/{{dataset}}/2026-11-20.bm25.txt")

    assert calls == []
    assert figures(first) == figures(second)


def test_subtopics_are_kept(tmp_path, calls):
    """Judgments of subtopics: the grades by subtopic are found again through the rows of the judgments."""
    judged = "".join(f"q{q} {s} d{d} {(q + s + d) % 3}\n" for q in range(4) for s in (1, 2) for d in range(q, q + 3))
    output = {f"q{q}": {f"d{d}": float(-d % 5) for d in range(6)} for q in range(4)}
    config = write_config(tmp_path, {"web": Collection({"q": {"d": 1}}, {"m": output})}, {"s": ["alpha_ndcg@5", "ap"]})
    (tmp_path / "web" / "judged.txt").write_text(judged, encoding="utf-8")
    first = evaluate(config, "datasets.web.subtopics=true")
    calls.clear()

    assert figures(evaluate(config, "datasets.web.subtopics=true")) == figures(first)
    assert calls == []


def test_an_output_in_parts_is_kept(config):
    """A folder of parts is known by all of them, in their order."""
    folder = config.parent / "web" / "parts"
    found = rows(WEB.outputs["bm25"])
    write_table(folder / "0.tsv", found[:50], "score")
    write_table(folder / "1.tsv", found[50:], "score")
    first, second = (evaluate(config, f"models.bm25.outputs.web={folder}") for _ in range(2))

    assert parsed(second)["web", "bm25"] is False
    assert figures(first) == figures(second)


def test_a_url_is_kept(config):
    """An input on a filesystem that is named by its URL is hashed as it is stored there."""
    url = f"file://{config.parent / 'web' / 'bm25.txt'}"
    first, second = (evaluate(config, f"models.bm25.outputs.web={url}") for _ in range(2))

    assert parsed(second)["web", "bm25"] is False
    assert figures(first) == figures(second)


# ---- what is parsed anyway


def change_output(folder: Path) -> str:
    """One score is another, in as many bytes."""
    path = folder / "web" / "bm25.txt"
    text = path.read_text(encoding="utf-8")
    place = text.index(" tag\n") - 1
    path.write_text(text[:place] + ("1" if text[place] != "1" else "2") + text[place + 1 :], encoding="utf-8")
    return ""


def change_judgments(folder: Path) -> str:
    """One grade is another, in as many bytes."""
    path = folder / "web" / "judged.txt"
    text = path.read_text(encoding="utf-8")
    place = text.index("\n") - 1
    path.write_text(text[:place] + ("1" if text[place] != "1" else "2") + text[place + 1 :], encoding="utf-8")
    return ""


CHANGES: list[Callable[[Path], str]] = [
    change_output,
    change_judgments,
    lambda _: "conventions.score_precision=float64",
    lambda _: "conventions.ties=doc_id_asc",
    lambda _: "datasets.web.duplicates=keep_first",
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_parsed(config, change):
    """Another output, other judgments or another way of reading: the figures are those without the store."""
    evaluate(config)
    override = [text] if (text := change(config.parent)) else []
    second = evaluate(config, *override)

    assert parsed(second)["web", "bm25"] is True
    assert figures(second) == figures(evaluate(config, *override, "execution.cache=false"))


def test_other_columns_are_parsed(tmp_path):
    """The same file with two scores: by the other column it is another output."""
    config = write_config(tmp_path, {"web": WEB}, {"search": SEARCH}, ending=".tsv")
    rng = np.random.default_rng(5)
    lines = [f"{query}\t{doc}\t{score}\t{rng.normal()}\n" for query, doc, score in rows(WEB.outputs["bm25"])]
    text = "query_id\tdoc_id\tscore\tother\n" + "".join(lines)
    (tmp_path / "web" / "bm25.tsv").write_text(text, encoding="utf-8")
    columns = f"models.bm25.outputs={{path: {tmp_path}/web/bm25.tsv, columns: {{score: other}}}}"
    first, second = evaluate(config), evaluate(config, columns)

    assert parsed(second)["web", "bm25"] is True
    assert figures(first) != figures(second) == figures(evaluate(config, columns, "execution.cache=false"))


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


def test_a_first_evaluation_hashes_nothing_beforehand(config, monkeypatch):
    """Where the store certainly has nothing, an output is hashed beside the parsing and not before it."""
    monkeypatch.setattr(outputs, "describe", lambda _: pytest.fail("hashed"))
    evaluate(config)
    change = config.parent / "web" / "bm25.txt"
    change.write_text(change.read_text(encoding="utf-8") + "q9999 Q0 d 1 1.5 tag\n", encoding="utf-8")
    for path in (*config.parent.glob("news/*.txt"), config.parent / "web" / "dense.txt"):
        path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")

    assert set(parsed(evaluate(config)).values()) == {True}


def test_a_missing_output_is_a_failure(config):
    """What the store has of an output does not stand in for it, unless a record asks for it."""
    evaluate(config)
    (config.parent / "web" / "bm25.txt").unlink()

    (failure,) = evaluate(config).failures
    assert (failure.dataset, failure.model) == ("web", "bm25")
    assert "file not found: " in failure.reason


def test_a_query_without_output_is_refused_from_the_store_too(config):
    """The reason is the one that a join gives."""
    evaluate(config)
    reasons = [
        evaluate(config, "conventions.missing_queries=error", f"execution.cache={blocks}").failures
        for blocks in ("true", "false")
    ]

    assert len(reasons[0]) == 4
    assert reasons[0] == reasons[1]


# ---- a store elsewhere


@pytest.mark.parametrize("as_url", [False, True])
def test_machines_share_a_store_by_its_path_or_url(tmp_path, as_url):
    """A path starts at the config's folder. Evaluations with other runs folders parse nothing, and so does one of the
    record, whose config lies elsewhere; nothing is cached in the runs folders.
    """
    place = (tmp_path / "the shared").as_uri() if as_url else "the shared"
    config = write_config(tmp_path, DATA, {"search": SEARCH}, execution={"cache": place})
    first, second = (evaluate(config, runs_dir=tmp_path / machine) for machine in ("one", "two"))
    third = evaluate(first.record, runs_dir=tmp_path / "three")

    assert [set(parsed(each).values()) for each in (first, second, third)] == [{True}, {False}, {False}]
    assert figures(first) == figures(second) == figures(third) == figures(evaluate(config, "execution.cache=false"))
    assert len([*(tmp_path / "the shared").rglob("*.hits")]) == 4
    assert not [*tmp_path.glob("*/cache")]


def test_a_url_that_no_store_is_known_by_is_one_remark(config):
    """All figures are there, and the line says what to fix."""
    evaluation = evaluate(config, "execution.cache=s4://eval/cache")

    (line,) = evaluation.warnings
    assert line.startswith("s4://eval/cache: ")
    assert line.endswith("; fix the URL")
    assert figures(evaluation) == figures(evaluate(config, "execution.cache=false"))


# ---- a store that is no good


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda _: b"", lambda data: data[:200] + data[202:]])
def test_a_damaged_entry_changes_no_figure(config, damage):
    """It is passed over with a line that names it, and written anew."""
    first = evaluate(config)
    for path in entries(config):
        path.write_bytes(damage(path.read_bytes()))
    second, third = evaluate(config), evaluate(config)

    assert figures(first) == figures(second) == figures(third)
    assert set(parsed(second).values()) == {True}
    assert sorted(line.partition(": ")[0] for line in second.warnings) == list(map(str, entries(config)))
    assert set(parsed(third).values()) == {False}
    assert third.warnings == ()


def test_a_store_that_cannot_be_written_is_one_remark(config):
    """All figures are there, and one line says that nothing was kept, however many outputs there are."""
    runs = config.parent / "runs"
    runs.mkdir()
    (runs / "cache").write_text("in the way", encoding="utf-8")
    evaluation = evaluate(config)

    assert evaluation.failures == ()
    (line,) = evaluation.warnings
    assert line.startswith(f"{runs / 'cache'}: cannot be written (")
    assert figures(evaluation) == figures(evaluate(config, "execution.cache=false"))


def test_a_store_that_is_turned_off_is_left_alone(config):
    """With `cache: false` nothing is written, and what is there is not read."""
    evaluate(config, "execution.cache=false")
    assert not OutputCache(config.parent / "runs" / "cache").folder.exists()

    evaluate(config)
    assert set(parsed(evaluate(config, "execution.cache=false")).values()) == {True}
