"""Documents left out of rankings: the join gives what it gives of an output from which they were deleted."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.dataset import DatasetInput, SingleQuery, read_dataset, read_output
from rankledger.pipeline.data.joined import JudgedOutput
from tests.support.data_files import SUFFIXES, contents, encode, refusal, rows_of, write

TREC_EVAL = PROFILES["trec_eval"].conventions
JUDGED = [("a", "a", 1), ("a", "c", 2), ("b", "x", 0), ("b", "c", 3), ("c", "a", 1), ("z", "a", 1)]
PAIR = st.tuples(st.sampled_from(["a", "b", "c", "u", "é"]), st.sampled_from(["a", "b", "c", "d", "x", "é"]))


def dataset(
    folder: Path,
    pairs: list[tuple[str, str]] | None = None,
    *,
    exclude_self: bool = False,
    suffix: str = ".tsv",
    interactions: list[tuple[str, str]] | None = None,
    seen: str = "count",
) -> DatasetInput:
    consumed = None
    if interactions is not None:
        rows = [(*pair, 0.0) for pair in interactions]
        consumed = Source(write(folder / "consumed.tsv", encode(rows, "tsv")))
    exclude = None
    if pairs is not None:
        layout = {ending: name for name, ending in SUFFIXES.items()}[suffix]
        exclude = Source(write(folder / f"excluded{suffix}", encode([(*pair, 0.0) for pair in pairs], layout)))
    judged = Source(write(folder / "judged.txt", encode(JUDGED, "trec")))
    source = PlannedDataset(judged, exclude=exclude, exclude_self=exclude_self, interactions=consumed, seen=seen)
    return read_dataset(source, TREC_EVAL)


def joined(data: DatasetInput, path: str, **options: object) -> JudgedOutput:
    found = {"with_catalogue": True, "depth": 3.0, "compared": 2.0, "allow_no_overlap": True} | options
    return read_output(data, Source(path), TREC_EVAL, **found)


def arrays(found: JudgedOutput) -> list[object]:
    columns = (array for block in found.blocks for array in vars(block).values() if isinstance(array, np.ndarray))
    values = [array.tolist() if array.dtype == object else array.tobytes() for array in columns]
    return [*values, found.missing.tobytes(), found.catalogue.codes.tobytes(), found.ranked.ranks.tobytes()]


def test_ranks_are_those_of_what_is_left(tmp_path):
    path = write(
        tmp_path / "out.txt", encode([("a", "a", 4), ("a", "b", 3), ("a", "x", 2), ("a", "c", 1)], "trec", "score")
    )
    found = joined(dataset(tmp_path, [("a", "x"), ("a", "x"), ("b", "b")], exclude_self=True), path)
    block = found.blocks[0]

    assert block.ranks[:, 0].tolist() == [2]
    assert block.n_retrieved.tolist() == [2, 0, 0, 0]
    assert block.judged_grades[:2, 0].tolist() == [2, 1]
    assert (found.quality.n_rows, found.quality.n_excluded, found.quality.n_excluded_queries) == (4, 2, 1)


@given(
    rows=st.lists(st.tuples(PAIR, st.sampled_from([0, 1, 2.5])), min_size=1, max_size=24, unique_by=lambda row: row[0]),
    pairs=st.lists(PAIR, max_size=12).map(lambda pairs: [("a", "c"), *pairs]),
    exclude_self=st.booleans(),
    side_by_side=st.booleans(),
    n_rows=st.sampled_from([1, 2, 3, 8]),
    at_a_time=st.sampled_from([1, 3]),
)
def test_it_is_as_if_the_rows_were_not_there(
    tmp_path_factory, rows, pairs, exclude_self, side_by_side, n_rows, at_a_time
):
    folder = tmp_path_factory.getbasetemp()
    plain = [(*pair, score) for pair, score in rows]
    plain = sorted(plain, key=lambda row: row[0]) if side_by_side else plain
    is_out = {row: row[:2] in pairs or (exclude_self and row[0] == row[1]) for row in plain}
    left = [row for row in plain if not is_out[row]]
    out = [row for row in plain if is_out[row] and row[0] in "abc"]
    whole = write(folder / "whole.txt", encode(plain, "trec", "score"))
    rest = write(folder / "rest.txt", encode([*left, ("u", "none", 0)], "trec", "score"))  # no file may be empty

    found = joined(dataset(folder, pairs, exclude_self=exclude_self), whole, n_rows=n_rows, at_a_time=at_a_time)

    assert arrays(found) == arrays(joined(dataset(folder), rest))
    assert found.quality.n_excluded == len(out)
    assert found.quality.n_excluded_queries == len({query for query, *_ in out})
    assert found.quality.n_rows == len(plain)


@given(
    rows=st.lists(st.tuples(PAIR, st.sampled_from([0, 1, 2.5])), min_size=1, max_size=24, unique_by=lambda row: row[0]),
    consumed=st.lists(PAIR, max_size=12).map(lambda pairs: [("a", "c"), *pairs]),
    n_rows=st.sampled_from([1, 3, 8]),
    at_a_time=st.sampled_from([1, 3]),
)
def test_what_was_seen_is_removed_or_counted(tmp_path_factory, rows, consumed, n_rows, at_a_time):
    folder = tmp_path_factory.getbasetemp()
    plain = [(*pair, score) for pair, score in rows]
    path = write(folder / "whole.txt", encode(plain, "trec", "score"))
    options = {"n_rows": n_rows, "at_a_time": at_a_time, "with_catalogue": False}
    excluded = [("a", "x"), ("b", "c")]

    removed = joined(dataset(folder, excluded, interactions=consumed, seen="remove"), path, **options)
    both = joined(dataset(folder, [*excluded, *consumed]), path, **options)
    counted = joined(dataset(folder, excluded, interactions=consumed), path, **options)
    neither = joined(dataset(folder, excluded), path, **options)

    assert ranks(removed) == ranks(both)
    assert dataclasses.asdict(removed.quality) == dataclasses.asdict(both.quality)
    assert ranks(counted) == ranks(neither)
    found = [row for row in plain if row[:2] in consumed and row[:2] not in excluded and row[0] in "abc"]
    assert counted.quality.n_seen == len(found)
    assert counted.quality.n_seen_queries == len({query for query, *_ in found})
    assert counted.quality.n_excluded == neither.quality.n_excluded
    assert (removed.quality.n_seen, neither.quality.n_seen) == (None, None)


def ranks(found: JudgedOutput) -> list[object]:
    columns = (array for block in found.blocks for array in vars(block).values() if isinstance(array, np.ndarray))
    return [
        *(array.tolist() if array.dtype == object else array.tobytes() for array in columns),
        found.missing.tobytes(),
    ]


@pytest.mark.parametrize("n_rows", [1, 2, 100])
def test_what_was_seen_is_refused(tmp_path, n_rows):
    rows = [("b", "x", 9), ("a", "a", 4), ("a", "b", 3), ("b", "c", 1), ("a", "c", 0.5)]
    path = write(tmp_path / "out.txt", encode(rows, "trec", "score"))
    data = dataset(tmp_path, [("a", "a")], interactions=[("b", "c"), ("a", "a"), ("a", "c"), ("u", "x")], seen="refuse")

    message = refusal(joined, data, path, n_rows=n_rows)
    assert message == (
        f"{path}: user 'b' is recommended 'c' (line 4), which is in the user's interactions; leave it out, or set "
        "seen: remove"
    )


def test_interactions_of_which_no_user_is_judged_are_refused(tmp_path):
    for seen in ("remove", "refuse"):
        message = refusal(dataset, tmp_path, interactions=[("A", "c"), ("B", "c")], seen=seen)
        assert message == (
            f"{tmp_path / 'consumed.tsv'}: none of its 2 queries is judged, such as 'A'; the judgments have 'a': write "
            "the letters of both in the same case, or remove `seen`"
        )
    assert dataset(tmp_path, interactions=[("A", "c")]).excluded is None


@given(
    rows=st.lists(st.tuples(PAIR, st.sampled_from([0, 1, 2.5])), min_size=1, max_size=16, unique_by=lambda row: row[0]),
    pairs=st.lists(PAIR, max_size=12).map(lambda pairs: [("a", "c"), *pairs]),
    query=st.sampled_from("abc"),
)
def test_a_query_alone_is_what_it_is_among_all(tmp_path_factory, rows, pairs, query):
    folder = tmp_path_factory.getbasetemp()
    plain = [(*pair, score) for pair, score in rows]
    path = write(folder / "whole.txt", encode(plain, "trec", "score"))
    data = dataset(folder, pairs, exclude_self=True)
    block = joined(data, path).blocks[0]
    column = data.query_ids.tolist().index(query)
    left = [row for row in plain if row[0] == query and row[1] != query and row[:2] not in pairs]

    alone = SingleQuery(data, Source(path), query, keep_first=False).listed(TREC_EVAL)

    ranks = block.ranks[:, column]
    assert alone.block.ranks[:, 0].tolist()[: len(ranks)] == ranks[: len(alone.block.ranks)].tolist()
    by_score = sorted(left, key=lambda row: (row[2], row[1].encode()), reverse=True)
    assert list(alone.retrieved) == [row[1] for row in by_score]
    assert len(alone.ties) == len(left)
    assert alone.n_excluded == sum(row[0] == query for row in plain) - len(left)


def test_a_query_of_which_nothing_is_left_has_no_output(tmp_path):
    path = write(tmp_path / "out.txt", encode([("a", "a", 4)], "trec", "score"))
    data = dataset(tmp_path, exclude_self=True)
    found = joined(data, path)

    assert found.missing.all()
    assert (found.quality.n_rows, found.quality.n_excluded, found.quality.n_missing_queries) == (1, 1, 4)
    complete = dataclasses.replace(TREC_EVAL, missing_queries="error")
    message = refusal(read_output, data, Source(path), complete, with_catalogue=False, allow_no_overlap=True)
    assert "4 of 4 judged queries have no output" in message


@pytest.mark.parametrize("n_rows", [1, 2, 100])
def test_a_document_that_is_left_out_may_not_stand_twice(tmp_path, n_rows):
    rows = [("b", "x", 9), ("a", "a", 4), ("a", "b", 3), ("a", "a", 1)]
    path = write(tmp_path / "out.txt", encode(rows, "trec", "score"))

    message = refusal(joined, dataset(tmp_path, exclude_self=True), path, n_rows=n_rows)
    assert message == f"{path}: query 'a' ranks document 'a' twice (line 2 and line 4); keep one"


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_pairs_are_read_in_every_format_with_columns(suffix, tmp_path):
    data = dataset(tmp_path, [("a", "x"), ("u", "x")], suffix=suffix)

    assert contents(data.excluded.rows) == [("a", "x", 0.0)]
    assert [*data.files] == ["judgments", "exclude"]
    assert data.remarks == (
        f"{tmp_path / 'excluded'}{suffix}: 1 of the 2 queries with documents to exclude is not judged, such as 'u'",
    )


def test_pairs_of_which_no_query_is_judged_are_refused(tmp_path):
    judged = Source(write(tmp_path / "judged.tsv", "query_id\tdoc_id\trelevance\n1\t7\t1\n2\t8\t1\n"))
    path = write(tmp_path / "excluded.tsv", "query_id\tdoc_id\n1.0\t7\n2.0\t8\n")

    message = refusal(read_dataset, PlannedDataset(judged, exclude=Source(path)), TREC_EVAL)
    assert message == (
        f"{path}: none of its 2 queries is judged, such as '1.0'; the judgments have '1': write ids as text (pandas "
        "made floats of them), or remove `exclude`"
    )


@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_rows_without_some(chunk):
    rows = rows_of([("q", "a", 1.0), ("r", "b", 2.0), ("q", "c", 3.0), ("s", "d", 4.0), ("q", "e", 5.0)], chunk=chunk)
    left = rows.without(np.array([1, 3]))

    assert contents(left) == [("q", "a", 1.0), ("q", "c", 3.0), ("q", "e", 5.0)]
    assert left.query_ids == ["q", "r", "s"]
    assert [left.place(row) for row in range(3)] == ["line 1", "line 3", "line 5"]
    assert not rows.without(np.arange(5)).chunks
