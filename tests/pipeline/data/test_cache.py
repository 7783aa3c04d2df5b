"""Joins that are kept, and kept ones that are joined with other judgments."""

import dataclasses
import hashlib
import io
import multiprocessing
import os
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.pipeline.data import cache, readers
from rankledger.pipeline.data.cache import CacheError, Key, OutputCache, hits_key, judgments_key
from rankledger.pipeline.data.join import rejoin
from rankledger.pipeline.data.joined import Hits, JudgedOutput
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.rankings import join_ranking
from rankledger.pipeline.data.rows import Rows
from rankledger.pipeline.support.arrow import strings
from tests.benchmarks.workload import Workload, write_judgments, write_ranking
from tests.support.data_files import contents, refusal, rows_of
from tests.support.generated_data import rows, search_collection

TREC_EVAL = PROFILES["trec_eval"].conventions
WEB = search_collection(30, n_queries=25)
JUDGMENTS = judgments_key({"files": (("a" * 64, "trec", ""),), "size": 100, "columns": ()})
OUTPUT = hits_key(JUDGMENTS, {"files": (("b" * 64, "trec", ""),), "size": 200, "columns": ()}, "doc_id_desc", "float32")


def join_hits(model: str = "bm25") -> Hits:
    hits = join_ranking(index_judgments(rows_of(rows(WEB.judged))), rows_of(rows(WEB.outputs[model])), TREC_EVAL).hits
    assert hits is not None
    return hits


def unlike(found: Hits | None, expected: Hits) -> list[str]:
    names = [field.name for field in dataclasses.fields(Hits) if field.name != "quality"]
    if found is None:
        return [*names, "quality"]
    pairs = {name: (getattr(found, name), getattr(expected, name)) for name in names}
    columns = [n for n, (one, other) in pairs.items() if one.dtype != other.dtype or not np.array_equal(one, other)]
    return columns + (["quality"] if found.quality != expected.quality else [])


@pytest.fixture
def store(tmp_path: Path) -> OutputCache:
    return OutputCache(tmp_path / "runs" / "cache")


@pytest.fixture
def entry(store: OutputCache) -> Path:
    store.write_hits(OUTPUT, join_hits())
    (found,) = store.folder.rglob("*.hits")
    return found


# ---- what is kept


def test_hits_come_back_as_they_were(store):
    store.write_hits(OUTPUT, join_hits())
    assert unlike(store.read_hits(OUTPUT), join_hits()) == []

    judgments = index_judgments(rows_of([("p", "a", 1.0), ("q", "a", 1.0)]))
    none = join_ranking(judgments, rows_of([("q", "x", 1.0), ("q", "y", 1.0)]), TREC_EVAL).hits
    store.write_hits(OUTPUT, none)
    found = store.read_hits(OUTPUT)
    assert unlike(found, none) == []
    assert found.n_retrieved.tolist() == [0, 2]


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize("with_subtopics", [False, True])
def test_judgments_come_back_as_they_were(store, chunk, with_subtopics):
    judged = rows_of(rows(WEB.judged), chunk=chunk)
    if with_subtopics:
        subtopics = strings([f"é{row % 3}" for row in range(judged.ends[-1])])
        judged = dataclasses.replace(judged, subtopics=subtopics)
    store.write_rows(judged, JUDGMENTS)

    found = store.read_rows(JUDGMENTS)
    assert isinstance(found, Rows)
    assert list(found.query_ids) == list(judged.query_ids)
    assert contents(found) == contents(judged)
    assert (found.subtopics and found.subtopics.to_pylist()) == (judged.subtopics and judged.subtopics.to_pylist())


def test_what_was_never_kept_is_not_there(store):
    assert store.read_hits(OUTPUT) is None
    assert store.read_rows(JUDGMENTS) is None
    assert not store.may_hold(JUDGMENTS, 200)

    store.write_hits(OUTPUT, join_hits())
    assert store.may_hold(JUDGMENTS, 200)
    assert not store.may_hold(JUDGMENTS, 20)
    assert not store.may_hold(other(JUDGMENTS, subtopics=True), 200)


def other(key: Key, **changes: object) -> Key:
    return {**key, **changes}


def of_content(**changes: object) -> Key:
    return other(OUTPUT, content=other(OUTPUT["content"], **changes))


def of_judgments(**changes: object) -> Key:
    return other(OUTPUT, judgments=other(JUDGMENTS, **changes))


@pytest.mark.parametrize(
    "key",
    [
        *(other(OUTPUT, order=order) for order in ("doc_id_asc", "input_order", "rank_column")),
        other(OUTPUT, score_precision="float64"),
        of_content(files=(("c" * 64, "trec", ""),)),
        of_content(files=(("b" * 64, "tsv", ""),)),
        of_content(files=(("b" * 64, "trec", ".gz"),)),
        of_content(columns=(("score", "points"),)),
        of_judgments(duplicates="keep_first"),
        of_judgments(subtopics=True),
        of_judgments(content=other(JUDGMENTS["content"], columns=(("x", "y"),))),
    ],
    ids=str,
)
def test_whatever_is_read_otherwise_is_another_entry(store, key):
    store.write_hits(OUTPUT, join_hits())

    assert store.read_hits(key) is None


def test_parts_of_an_output_stand_in_order(store):
    files = (("b" * 64, "trec", ""), ("c" * 64, "trec", ""))
    store.write_hits(of_content(files=files), join_hits())

    assert store.read_hits(of_content(files=files[::-1])) is None


@pytest.mark.parametrize("ties", ["optimistic", "pessimistic", "expected"])
def test_orders_that_no_file_decides_share_an_entry(ties):
    assert hits_key(JUDGMENTS, OUTPUT["content"], ties, "float32") == OUTPUT
    assert hits_key(JUDGMENTS, OUTPUT["content"], "rank_column", "float32") != OUTPUT


def test_what_is_excluded_has_keys_of_its_own(store):
    one, another = ({"pairs": OUTPUT["content"], "exclude_self": own} for own in (False, True))
    hits, pairs = join_hits(), rows_of([("q", "a", 0.0), ("p", "é", 0.0), ("q", "b", 0.0)])
    store.write_hits(other(OUTPUT, exclusions=one), hits)
    store.write_rows(pairs, JUDGMENTS, one)

    assert store.read_hits(other(OUTPUT, exclusions=one)) is not None
    assert store.read_hits(OUTPUT) is store.read_hits(other(OUTPUT, exclusions=another)) is None
    found = store.read_rows(JUDGMENTS, one)
    assert found is not None
    assert contents(found) == contents(pairs)
    assert store.read_rows(JUDGMENTS, another) is store.read_rows(JUDGMENTS) is None


def test_an_entry_is_a_few_percent_of_its_output(tmp_path):
    """Of 40 queries by 1,000 documents, 5 to 50 of them judged, entry and judgments take under 3% of the text."""
    write_judgments(tmp_path / "judged.txt", Workload(40))
    write_ranking(tmp_path / "out.txt", Workload(40))
    judged = readers.read_judgments(str(tmp_path / "judged.txt"))
    hits = join_ranking(index_judgments(judged), readers.read_ranking(str(tmp_path / "out.txt")), TREC_EVAL).hits
    store = OutputCache(tmp_path / "cache")
    store.write_rows(judged, JUDGMENTS)
    store.write_hits(OUTPUT, hits)

    kept = sum(file.stat().st_size for file in store.folder.rglob("*") if file.is_file())
    assert kept < 0.03 * (tmp_path / "out.txt").stat().st_size


# ---- what is not believed


def parquet_of(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def cache_refusal(store: OutputCache, key: Key = OUTPUT) -> str:
    with pytest.raises(CacheError) as caught:
        store.read_hits(key)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_flipped_byte_anywhere_is_found(store, entry):
    data = entry.read_bytes()
    heading = data.index(b"\n") + 1
    for place in (*range(heading), *range(heading, len(data), 7)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        entry.write_bytes(damaged)
        assert cache_refusal(store).startswith(f"{entry}: ignored, as it is damaged or of another version")


STRANGE = {
    "nothing": b"",
    "no Parquet": b"PAR1",
    "no columns": parquet_of(pa.table({})),
    "texts": parquet_of(pa.table({"n_retrieved": ["7"]})),
    "nulls": parquet_of(pa.table({"n_retrieved": pa.nulls(1, pa.int64())})),
}
UNSAID = [{}, {"quality": "{"}, {"quality": "[1]"}, {"quality": '{"n_rows": 1, "other": 2}'}]


def test_what_is_no_entry_is_passed_over_though_its_hash_is_right(store, entry):
    """Another layout, or columns and a key that are right without what was found."""
    table = parquet.read_table(pa.BufferReader(entry.read_bytes().partition(b"\n")[2]))
    key = table.schema.metadata[b"key"]
    unsaid = [parquet_of(table.replace_schema_metadata({"key": key, **metadata})) for metadata in UNSAID]
    for body in (*STRANGE.values(), *unsaid):
        entry.write_bytes(f"rankledger blocks 2 {hashlib.sha256(body).hexdigest()}\n".encode() + body)
        assert cache_refusal(store).startswith(f"{entry}: ignored, as it is damaged or of another version")


def test_a_file_cut_short_is_found(store, entry):
    data = entry.read_bytes()
    for size in [*range(0, len(data), 97), len(data) - 1]:
        entry.write_bytes(data[:size])
        assert "ignored" in cache_refusal(store)
    entry.write_bytes(data + b"\0")
    assert "ignored" in cache_refusal(store)


def copy_as(entry: Path, store: OutputCache, key: Key) -> None:
    scratch = OutputCache(store.folder.parent / "scratch")
    scratch.write_hits(key, join_hits())
    (found,) = scratch.folder.rglob("*.hits")
    place = store.folder / found.relative_to(scratch.folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(entry, place)
    shutil.rmtree(scratch.folder)


def test_entries_of_another_version_or_under_anothers_name_are_passed_over(store, entry, monkeypatch):
    stranger = other(OUTPUT, score_precision="float64")
    copy_as(entry, store, stranger)
    assert "as it is of other inputs" in cache_refusal(store, stranger)

    monkeypatch.setattr(cache, "_VERSION", cache._VERSION + 1)
    assert store.read_hits(OUTPUT) is None
    copy_as(entry, store, OUTPUT)
    assert "of another version" in cache_refusal(store)


def test_damaged_judgments_are_found_and_written_anew(store):
    judged = rows_of(rows(WEB.judged))
    store.write_rows(judged, JUDGMENTS)
    (path,) = store.folder.rglob("judgments.rows")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CacheError, match="ignored"):
        store.read_rows(JUDGMENTS)

    store.write_rows(judged, JUDGMENTS)
    assert contents(store.read_rows(JUDGMENTS)) == contents(judged)


def test_an_entry_that_cannot_be_read_is_passed_over(store, entry):
    entry.unlink()
    entry.mkdir()

    assert cache_refusal(store).startswith(f"{entry}: ignored (")


# ---- writing


def test_a_store_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "cache").write_text("", encoding="utf-8")
    store = OutputCache(tmp_path / "cache")

    with pytest.raises(CacheError, match=r"cache: cannot be written \(.*\); outputs will be parsed again"):
        store.write_hits(OUTPUT, join_hits())
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_a_disk_that_is_full_leaves_nothing_behind(store, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(CacheError, match="No space left on device"):
        store.write_hits(OUTPUT, join_hits())
    assert [path for path in store.folder.rglob("*") if path.is_file()] == []


def _write_often(folder: Path, model: str) -> None:
    for _ in range(20):
        OutputCache(folder).write_hits(OUTPUT, join_hits(model))


def test_processes_that_write_at_once_leave_a_whole_entry(store):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_often, args=(store.folder, "bm25")) for _ in range(2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        found = store.read_hits(OUTPUT)
        if found is not None:
            assert unlike(found, join_hits()) == []
    for writer in writers:
        writer.join()

    assert [writer.exitcode for writer in writers] == [0, 0]
    assert len([path for path in store.folder.rglob("*") if path.is_file()]) == 1


# ---- what is not used any more


def test_a_file_is_used_when_it_is_read(store, entry):
    other, leftover = entry.with_name("judgments.rows"), entry.with_name(".0123.partial")
    for path in (entry, other, leftover):
        path.touch()
        os.utime(path, (0, 0))
    a_minute_ago = datetime.now(UTC) - timedelta(minutes=1)
    assert set(store.unused_since(a_minute_ago)) == {entry, other, leftover}

    assert store.read_hits(OUTPUT) is not None

    assert set(store.unused_since(a_minute_ago)) == {other, leftover}


QUERIES = st.sampled_from(["q1", "q10", "Q", "é", "🦆"])
DOCUMENTS = st.sampled_from(["d1", "d10", "d2", "é", "文", "\uffff", "x"])
GRADES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0])
PAIRS = st.tuples(QUERIES, DOCUMENTS)
JUDGED = st.dictionaries(PAIRS, GRADES, min_size=1, max_size=30)
RANKED = st.dictionaries(PAIRS, st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 2.5, -3.0]), min_size=1, max_size=35)

Judged = dict[tuple[str, str], float]


def table(pairs: Judged) -> Rows:
    return rows_of([(*pair, value) for pair, value in pairs.items()])


def rejoined(then: Rows, now: Rows, ranking: Rows, conventions: Conventions = TREC_EVAL) -> JudgedOutput:
    hits = join_ranking(index_judgments(then), ranking, conventions).hits
    assert hits is not None
    return rejoin(then, hits, index_judgments(now), conventions, 9.0, path="out.tsv")


def assert_rejoined(then: Rows, now: Rows, ranking: Rows, conventions: Conventions = TREC_EVAL) -> None:
    """The kept hits joined with other judgments are what a join gives."""
    expected = join_ranking(index_judgments(now), ranking, conventions, n_documents=9.0)
    assert differing(rejoined(then, now, ranking, conventions), expected) == []


def differing(found: JudgedOutput, expected: JudgedOutput) -> list[str]:
    pairs = {name: (getattr(found, name), getattr(expected, name)) for name in ("query_ids", "missing")}
    for place, blocks in enumerate(zip(found.blocks, expected.blocks, strict=True)):
        names = [field.name for field in dataclasses.fields(JudgedBlock)]
        pairs |= {f"{place}.{name}": tuple(getattr(block, name) for block in blocks) for name in names}
    arrays = [name for name, pair in pairs.items() if not _same(*pair)]
    return arrays + [name for name in ("max_grade", "quality") if getattr(found, name) != getattr(expected, name)]


def _same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


@given(JUDGED, RANKED, st.integers(0, 100), st.sampled_from(["doc_id_desc", "doc_id_asc", "input_order"]))
def test_fewer_and_other_judgments_give_what_a_join_gives(then, ranked, seed, ties):
    rng = random.Random(seed)
    kept = rng.sample(sorted(then), rng.randint(1, len(then)))
    now = {pair: rng.choice([then[pair], -1.0, 0.0, 2.0]) for pair in kept}

    assert_rejoined(table(then), table(now), table(ranked), dataclasses.replace(TREC_EVAL, ties=ties))


@given(JUDGED, JUDGED, RANKED)
def test_new_judgments_are_refused_or_give_what_a_join_gives(then, now, ranked):
    def unsure(query: str) -> bool:
        known = query in {name for name, _ in then}
        return not known or any(name == query and (name, document) not in then for name, document in ranked)

    new = [pair for pair in now if pair not in then and unsure(pair[0])]
    if new:
        hits = join_ranking(index_judgments(table(then)), table(ranked), TREC_EVAL).hits
        message = refusal(rejoin, table(then), hits, index_judgments(table(now)), TREC_EVAL, path="out.tsv")
        assert message.startswith(f"out.tsv: {len(new)} judged pair")
    else:
        assert_rejoined(table(then), table(now), table(ranked))


def test_a_new_pair_is_named_with_what_to_do():
    then, now = table({("q1", "a"): 1.0}), table({("q1", "a"): 1.0, ("q1", "d7"): 2.0})
    hits = join_ranking(index_judgments(then), table({("q1", "a"): 2.0, ("q1", "x"): 1.0}), TREC_EVAL).hits

    assert refusal(rejoin, then, hits, index_judgments(now), TREC_EVAL, path="out.tsv") == (
        "out.tsv: 1 judged pair is new, such as query 'q1', document 'd7', and the output cache has no ranks of "
        "unjudged documents; restore it"
    )


def test_a_new_pair_of_a_query_whose_whole_ranking_is_known_was_not_retrieved():
    then = table({("q1", "a"): 1.0, ("q1", "b"): 0.0, ("q2", "a"): 1.0})
    now = table({("q1", "a"): 1.0, ("q1", "d7"): 2.0, ("q2", "d7"): 1.0})
    found = rejoined(then, now, table({("q1", "a"): 2.0, ("q1", "b"): 3.0}))

    (block,) = found.blocks
    np.testing.assert_array_equal(block.ranks, [[2.0, np.inf]])
    np.testing.assert_array_equal(block.judged_grades, [[2.0, 1.0], [1.0, np.nan]])


def test_subtopics_are_those_of_the_new_judgments():
    def judged(rows: list[tuple[str, str, str, float]]) -> Rows:
        plain = rows_of([(query, document, grade) for query, document, _, grade in rows])
        return dataclasses.replace(plain, subtopics=strings([subtopic for *_, subtopic, _ in rows]))

    then = judged([("q", "a", "1", 1.0), ("q", "b", "1", 0.0), ("q", "b", "2", 1.0)])
    now = judged([("q", "b", "2", 2.0), ("q", "a", "2", 1.0), ("q", "a", "3", 1.0)])
    assert_rejoined(then, now, table({("q", "x"): 3.0, ("q", "a"): 2.0, ("q", "b"): 1.0}))


def test_a_query_without_output_is_refused_where_that_is_an_error():
    judgments = table({("q1", "a"): 1.0, ("q2", "a"): 1.0})
    hits = join_ranking(index_judgments(judgments), table({("q1", "a"): 1.0}), TREC_EVAL).hits
    strict = dataclasses.replace(TREC_EVAL, missing_queries="error")

    assert refusal(rejoin, judgments, hits, index_judgments(judgments), strict, path="out.tsv") == (
        "out.tsv: 1 of 2 judged queries have no output, such as 'q2'; complete it, or say missing_queries: empty"
    )


@pytest.mark.parametrize("n_dropped", [0, 1])
def test_what_the_join_counted_is_counted_anew(n_dropped):
    then = {("q1", "a"): 1.0, ("q2", "a"): 1.0}
    now = dict(list(then.items())[: 2 - n_dropped])
    ranked = {("q1", "a"): 1.0, ("q2", "a"): 3.0, ("q2", "b"): 1.0, ("q3", "a"): 1.0}
    quality = rejoined(table(then), table(now), table(ranked)).quality

    assert quality.n_unjudged_queries == 1 + n_dropped
    assert quality.judged_at_10 == (1.0 if n_dropped else 2 / 3)
