"""The queries that moved most, written and read again."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.inference.tables import QueryChange, RankedDocument
from rankledger.pipeline.record.tables import query_changes_in, write_query_changes

TEXTS = st.builds(
    "{}{}".format,
    st.sampled_from(["", "=", "+", "-", "@", "'", "''=", "\t"]),  # what spreadsheets compute, and what is put before it
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12),
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
RANKS = st.none() | st.integers(1, 10**6)
GRADES = st.floats(min_value=0, exclude_min=True, allow_infinity=False)  # those of relevant documents
DOCUMENTS = st.builds(RankedDocument, TEXTS, GRADES, RANKS, RANKS)
QUERIES = st.builds(
    QueryChange,
    *[TEXTS] * 5,
    before=NUMBERS,
    after=NUMBERS,
    change=NUMBERS,
    documents=st.none() | st.lists(DOCUMENTS, max_size=4).map(tuple),
)


@given(
    st.lists(QUERIES, max_size=5, unique_by=lambda query: (query.dataset, query.model, query.baseline, query.query_id))
)
def test_what_is_written_is_read_again(queries):
    with TemporaryDirectory() as folder:
        write_query_changes(Path(folder) / "movers.csv", queries)

        file = Path(folder) / "movers.csv"
        assert query_changes_in(file.read_bytes(), file) == tuple(queries)


def test_a_row_per_document(tmp_path):
    moved = QueryChange("web", "dense", "bm25", "q1", "ap", 0.5, 1.0, 0.5, (RankedDocument("d1", 2.0, None, 1),))
    unknown = QueryChange("web", "dense", "bm25", "q2", "ap", 0.5, 0.25, -0.25, None)
    empty = QueryChange("web", "dense", "bm25", "q3", "judged@5", 0.5, 0.25, -0.25, ())
    write_query_changes(tmp_path / "movers.csv", [moved, unknown, empty])

    assert (tmp_path / "movers.csv").read_text(encoding="utf-8").split("\n") == [
        "dataset,model,baseline,query_id,measure,before,after,change,doc_id,grade,rank_before,rank_after",
        "web,dense,bm25,q1,ap,0.5,1.0,0.5,d1,2.0,,1",
        "web,dense,bm25,q2,ap,0.5,0.25,-0.25,,,,",
        "web,dense,bm25,q3,judged@5,0.5,0.25,-0.25,,0.0,,",
        "",
    ]


def test_spreadsheets_show_ids_and_compute_none(tmp_path):
    moved = QueryChange("web", "@m", "'b", "+1", "ap", 0.5, 0.25, -0.25, (RankedDocument("=1+1", 2.0, None, 1),))
    write_query_changes(tmp_path / "movers.csv", [moved])

    assert (tmp_path / "movers.csv").read_text(encoding="utf-8").split("\n")[1] == (
        "web,'@m,''b,'+1,ap,0.5,0.25,-0.25,'=1+1,2.0,,1"
    )
