"""Files in the exact form that other tools write, read without configuration; each says where its form comes from."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.dataset import read_dataset, read_output
from rankledger.pipeline.data.readers import (
    RankingRanges,
    read_documents,
    read_judgments,
    read_pairs,
    read_queries,
    read_ranking,
)
from rankledger.pipeline.data.rows import Rows
from tests.support.data_files import contents, parquet_table, refusal, write

read_ratings = partial(read_pairs, value="rating")
read_predictions = partial(read_pairs, value="prediction")

pytestmark = pytest.mark.usefixtures("folder")

TREC_EVAL = PROFILES["trec_eval"].conventions
Read = Callable[[str], Rows]


def remark(tool: str, line: str, path: str) -> str:
    return f"read {tool}: columns: {{{line}}} (such as {path})"


# ranx: Qrels.from_df and Run.from_df (ranx/data_structures) read q_id, doc_id and score by default; as Parquet.
RANX = parquet_table(q_id=["q1", "q1", "q2"], doc_id=["d2", "d1", "d3"], score=[0, 1, 2])
# PyTerrier: qrels of get_qrels() are qid, docno, label, iteration; results qid, docid, docno, rank from 0, score and
# query, here as DataFrame.to_csv(index=False) writes them.
PYTERRIER_QRELS = "qid,docno,label,iteration\nq1,d2,0,0\nq1,d1,1,0\n"
PYTERRIER_RUN = "qid,docid,docno,rank,score,query\nq1,7,d2,0,9.5,chemical\nq1,3,d1,1,7.25,chemical\n"
# MovieLens ml-latest-small: the head of ratings.csv, tags left out, and movies.csv.
MOVIELENS = "userId,movieId,rating,timestamp\n1,1,4.0,964982703\n1,3,4.5,964981247\n2,318,3.0,1445714835\n"
MOVIES = "movieId,title,genres\n1,Toy Story (1995),Adventure|Comedy\n3,Grumpier Old Men (1995),Comedy\n"
# RecBole's atomic files, https://recbole.io/docs/user_guide/data/atomic_files.html: names with types, tabs between.
INTER = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n1\t10\t4\t964982703\n2\t10\t3.5\t964982931\n"
ITEM = "item_id:token\tmovie_title:token_seq\tclass:token_seq\n10\tToy Story\tAnimation Comedy\n11\tHeat\tAction\n"
# Surprise's Prediction(uid, iid, r_ui, est, details), as pandas.DataFrame(predictions).to_csv(index=False) writes it.
SURPRISE = (
    "uid,iid,r_ui,est,details\n196,302,4.0,4.043,{'was_impossible': False}\n186,54,,3.7,{'was_impossible': False}\n"
)
# Microsoft recommenders' defaults: userID, itemID, prediction.
RECOMMENDERS = "userID,itemID,prediction\n1,10,4.5\n2,10,3.0\n"
# LensKit before 2025 (batch.recommend: item, score, user, rank); since then lists with user_id, item_id, score, rank.
LENSKIT = "item,score,user,rank\n10,4.5,1,1\n11,3.5,1,2\n"
LENSKIT_2025 = parquet_table(user_id=[1, 1], item_id=[10, 11], score=[4.5, 3.5], rank=[1, 2])
FILES: list[tuple[str, str | bytes, Read, list[tuple[str, str, float]], str, str]] = [
    (
        *("qrels.parquet", RANX, read_judgments, [("q1", "d2", 0.0), ("q1", "d1", 1.0), ("q2", "d3", 2.0)]),
        *("as files of ranx", "query_id: q_id, relevance: score"),
    ),
    (
        *("run.parquet", RANX, read_ranking, [("q1", "d2", 0.0), ("q1", "d1", 1.0), ("q2", "d3", 2.0)]),
        *("as files of ranx", "query_id: q_id"),
    ),
    (
        *("qrels.csv", PYTERRIER_QRELS, read_judgments, [("q1", "d2", 0.0), ("q1", "d1", 1.0)]),
        *("as files of PyTerrier", "query_id: qid, doc_id: docno, relevance: label"),
    ),
    (
        *("run.csv", PYTERRIER_RUN, read_ranking, [("q1", "d2", 9.5), ("q1", "d1", 7.25)]),
        *("as files of PyTerrier", "query_id: qid, doc_id: docno"),
    ),
    (
        *("ratings.csv", MOVIELENS, read_ratings, [("1", "1", 4.0), ("1", "3", 4.5), ("2", "318", 3.0)]),
        *("as files of MovieLens", "query_id: userId, doc_id: movieId"),
    ),
    (
        *("ratings.csv", MOVIELENS, read_judgments, [("1", "1", 4.0), ("1", "3", 4.5), ("2", "318", 3.0)]),
        *("as files of MovieLens", "query_id: userId, doc_id: movieId, relevance: rating"),
    ),
    (
        *("ratings.csv", MOVIELENS, read_pairs, [("1", "1", 0.0), ("1", "3", 0.0), ("2", "318", 0.0)]),
        *("as files of MovieLens", "query_id: userId, doc_id: movieId"),
    ),
    (
        *("ml-100k.inter", INTER, read_ratings, [("1", "10", 4.0), ("2", "10", 3.5)]),
        *("as files of RecBole", "query_id: user_id:token, doc_id: item_id:token, rating: rating:float"),
    ),
    (
        *("p.csv", SURPRISE, read_predictions, [("196", "302", 4.043), ("186", "54", 3.7)]),
        *("as files of Surprise", "query_id: uid, doc_id: iid, prediction: est"),
    ),
    (
        *("p.csv", RECOMMENDERS, read_predictions, [("1", "10", 4.5), ("2", "10", 3.0)]),
        *("as files of recommenders", "query_id: userID, doc_id: itemID"),
    ),
    (
        *("p.csv", "user,item,prediction\n1,10,4.5\n", read_predictions, [("1", "10", 4.5)]),
        *("as files of LensKit", "query_id: user, doc_id: item"),
    ),
    (
        *("run.csv", LENSKIT, read_ranking, [("1", "10", 4.5), ("1", "11", 3.5)]),
        *("as files of LensKit", "query_id: user, doc_id: item"),
    ),
    (
        *("run.parquet", LENSKIT_2025, read_ranking, [("1", "10", 4.5), ("1", "11", 3.5)]),
        *("as files of LensKit", "query_id: user_id, doc_id: item_id"),
    ),
    (
        *("test.tsv", "query-id\tcorpus-id\tscore\nPLAIN-2\tMED-10\t1\n", read_judgments, [("PLAIN-2", "MED-10", 1.0)]),
        *("as files of BEIR", "query_id: query-id, doc_id: corpus-id, relevance: score"),
    ),
    (
        *("run.csv", "query_id,doc_id,rank\nq,d1,1\nq,d2,2\n", read_ranking, [("q", "d1", -1.0), ("q", "d2", -2.0)]),
        *("by rank", "rank: rank"),
    ),
]


@pytest.mark.parametrize(("path", "data", "read", "rows", "tool", "line"), FILES)
def test_files_of_a_tool_are_recognised(path, data, read, rows, tool, line):
    found = read(write(Path(path), data))
    pasted = read(Source(path, columns=dict(pair.split(": ") for pair in line.split(", "))))

    assert contents(found) == contents(pasted) == rows
    assert found.remarks == (remark(tool, line, path),)
    assert pasted.remarks == ()


# BEIR's folders: queries.jsonl and corpus.jsonl as its datasets have them.
BEIR_QUERIES = (
    '{"_id": "PLAIN-2", "text": "Statins?", "metadata": {"url": "http://x"}}\n{"_id": "PLAIN-3", "text": ""}\n'
)
BEIR_CORPUS = '{"_id": "MED-10", "title": "Statin", "text": "…", "metadata": {}}\n'


def test_tables_of_ids_are_recognised_by_one_name():
    queries = read_queries(write(Path("queries.jsonl"), BEIR_QUERIES), others=True)
    corpus = read_documents(write(Path("corpus.jsonl"), BEIR_CORPUS))
    movies = read_documents(write(Path("movies.csv"), MOVIES), features=["genres"])
    items = read_documents(write(Path("ml.item"), ITEM))

    assert queries.ids.to_pylist() == ["PLAIN-2", "PLAIN-3"]
    assert queries.texts == {"text": ["Statins?", None]}
    assert queries.remarks == (remark("as files of BEIR", "query_id: _id", "queries.jsonl"),)
    assert corpus.ids.to_pylist() == ["MED-10"]
    assert movies.ids.to_pylist() == ["1", "3"]
    assert movies.features["genres"].starts.tolist() == [0, 2, 3]
    assert items.ids.to_pylist() == ["10", "11"]


@pytest.mark.parametrize(
    ("header", "read", "line"),
    [
        ("qid,docid,grade", read_judgments, "query_id: qid, doc_id: docid, relevance: grade"),
        ("qid,docid,score", read_ranking, "query_id: qid, doc_id: docid"),
        (
            "customer id,product id,similarity",
            read_ranking,
            'query_id: "customer id", doc_id: "product id", score: sim',
        ),
        ("query_id,doc_id,rel", read_judgments, "relevance: rel"),
        ("user,item,prediction", read_ranking, "query_id: user, doc_id: item, score: prediction"),
    ],
)
def test_names_that_can_mean_one_column_alone_are_read(header, read, line):
    rows = read(write(Path("a.csv"), f"{header}\nq1,d1,1\nq1,d2,2\n"))

    assert contents(rows) == [("q1", "d1", 1), ("q1", "d2", 2)]
    assert f"columns: {{{line}" in rows.remarks[0]


def test_our_own_column_names_need_no_remark():
    assert read_ranking(write(Path("a.tsv"), "query_id\tdoc_id\tscore\trank\nq\td\t1\t1\n")).remarks == ()


@pytest.mark.parametrize(
    ("header", "read", "line"),
    [
        ("userId,user_id,movieId,item_id,rating", read_ratings, "query_id: userId, doc_id: movieId"),
        ("qid,user_id", read_queries, "query_id: qid"),
        ("search,hit,grade", read_judgments, "query_id: …, doc_id: …, relevance: grade"),
        ("item,user,ts,stars", read_ratings, "rating: stars"),
        ("customer id,product id,distance", read_ranking, 'query_id: "customer id", doc_id: "product id", score: …}'),
        ("user_id,item_id,place", read_judgments, "relevance: …"),
        ("user_id,item_id,place", read_ranking, "rank: place"),
    ],
)
def test_ambiguous_columns_are_refused_with_the_line_to_paste(header, read, line):
    message = refusal(read, write(Path("a.csv"), f"{header}\n{','.join('1' for _ in header.split(','))}\n"))

    assert message.startswith("a.csv:1: no column '")
    assert f"map it with columns: {{{line}" in message


def test_a_rank_that_is_a_score_is_refused():
    """PostgreSQL's ts_rank, selected as `rank`, is better if higher: its fractions tell."""
    path = write(Path("a.csv"), "query_id,doc_id,rank\nq,d1,1\nq,d2,0.83\n")

    assert refusal(read_ranking, path) == (
        "a.csv: rank 0.83 (line 3) is not a whole number from 0; fix it, or if the highest comes first, say columns: "
        "{score: rank}"
    )
    assert contents(read_ranking(Source(path, columns={"score": "rank"}))) == [("q", "d1", 1.0), ("q", "d2", 0.83)]


@pytest.mark.parametrize("n_rows", [1, 2, 10**6])
@pytest.mark.parametrize(
    ("path", "header"),
    [("a.tsv", "qid\tdocno\trank\n"), ("a.jsonl", ""), ("a.parquet", ""), ("a.csv", "qid,docno,rank\n")],
)
def test_ranges_are_recognised_as_the_whole_file_is(path, header, n_rows):
    rows = [(f"q{query}", f"d{rank}", rank) for query in range(3) for rank in range(1, 5)]
    sign = "\t" if path.endswith("tsv") else ","
    lines = header + "".join(sign.join(map(str, row)) + "\n" for row in rows)
    objects = "".join(json.dumps(dict(zip(("qid", "docno", "rank"), row, strict=True))) + "\n" for row in rows)
    columns = list(zip(*rows, strict=True))
    data = {"a.jsonl": objects, "a.parquet": parquet_table(qid=columns[0], docno=columns[1], rank=columns[2])}.get(
        path, lines
    )
    ranges = RankingRanges(write(Path(path), data), n_rows=n_rows)

    assert [row for part in ranges for row in contents(part)] == [(query, doc, -rank) for query, doc, rank in rows]
    assert ranges.remarks == (
        remark("as files of PyTerrier and by rank", "query_id: qid, doc_id: docno, rank: rank", path),
    )


def test_an_evaluation_has_the_remarks_of_all_its_files():
    judged = write(Path("qrels.csv"), PYTERRIER_QRELS)
    queries = write(Path("topics.csv"), "qid,query\nq1,chemical\n")
    dataset = read_dataset(PlannedDataset(Source(judged), queries=Source(queries)), TREC_EVAL)
    joined = read_output(dataset, Source(write(Path("run.csv"), PYTERRIER_RUN)), TREC_EVAL, with_catalogue=False)

    assert [line.partition(" (")[2] for line in (*dataset.remarks, *joined.remarks)] == [
        "such as qrels.csv)",
        "such as topics.csv)",
        "such as run.csv)",
    ]


# Without a header. MS MARCO passage ranking: qrels.dev.small.tsv, and a run as msmarco_passage_eval.py reads it, query,
# passage and rank with tabs between.
MSMARCO_QRELS = "300674\t0\t7067032\t1\n125705\t0\t7067056\t1\n"
MSMARCO_RUN = "1048585\t7187158\t1\n1048585\t7187157\t2\n1048585\t7187163\t3\n2\t4339068\t1\n2\t1782337\t2\n"
RANKED = [("1048585", "7187158", -1), ("1048585", "7187157", -2), ("1048585", "7187163", -3)]
RANKED = [(query, doc, float(rank)) for query, doc, rank in (*RANKED, ("2", "4339068", -1), ("2", "1782337", -2))]
# MovieLens ml-100k: u.data, user, item, rating and seconds with tabs between; ml-1m: ratings.dat, with `::` between.
U_DATA = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n"
RATINGS_DAT = "1::1193::5::978300760\n1::661::3::978302109\n"
SCORED = "q1 d1 9.5\nq1 d2 7.25\nq2 d1 1\n"
BY_RANK = "columns: {query_id: 1, doc_id: 2, rank: 3}"
HEADERLESS: list[tuple[str, str, Read, list[tuple[str, str, float]], str]] = [
    ("qrels.tsv", MSMARCO_QRELS, read_judgments, [("300674", "7067032", 1.0), ("125705", "7067056", 1.0)], "TREC"),
    ("run.tsv", MSMARCO_RUN, read_ranking, RANKED, f"read by rank: format: trec, {BY_RANK}"),
    ("run.txt", MSMARCO_RUN, read_ranking, RANKED, f"read by rank: {BY_RANK}"),
    (
        *("run.txt", SCORED, read_ranking, [("q1", "d1", 9.5), ("q1", "d2", 7.25), ("q2", "d1", 1.0)]),
        "read as lines without a header: columns: {query_id: 1, doc_id: 2, score: 3}",
    ),
    (
        *("run.txt", "q d1 9\nq d2 9\nq d3 4\n", read_ranking, [("q", "d1", 9.0), ("q", "d2", 9.0), ("q", "d3", 4.0)]),
        "read as lines without a header: columns: {query_id: 1, doc_id: 2, score: 3}",
    ),
    (
        *("qrels.txt", "q d1 1\nq d2 0\n", read_judgments, [("q", "d1", 1.0), ("q", "d2", 0.0)]),
        "read as lines without a header: columns: {query_id: 1, doc_id: 2, relevance: 3}",
    ),
    (
        *("train.txt", "u i\nu j\n", read_pairs, [("u", "i", 0.0), ("u", "j", 0.0)]),
        "read as lines without a header: columns: {query_id: 1, doc_id: 2}",
    ),
    *(
        (*(name, data, read, rows), f"read as files of MovieLens: columns: {{query_id: 1, doc_id: 2{value}}}")
        for name, data, grades in (
            ("u.data", U_DATA, [("196", "242", 3.0), ("186", "302", 3.0)]),
            ("ratings.dat", RATINGS_DAT, [("1", "1193", 5.0), ("1", "661", 3.0)]),
        )
        for read, rows, value in (
            (read_ratings, grades, ", rating: 3"),
            (read_judgments, grades, ", relevance: 3"),
            (read_pairs, [(query, doc, 0.0) for query, doc, _ in grades], ""),
        )
    ),
]


@pytest.mark.parametrize(("path", "data", "read", "rows", "line"), HEADERLESS)
def test_lines_without_a_header_are_recognised(path, data, read, rows, line):
    """By what stands in the first of them; the line of the remark, in the config, gives the same without a remark."""
    expected = "read as TREC text: format: trec" if line == "TREC" else line
    found = read(write(Path(path), data))
    numbers = dict(pair.split(": ") for pair in expected.partition("{")[2].rstrip("}").split(", ") if pair)
    pasted = read(Source(path, "trec" if "format: trec" in expected else None, numbers))

    assert contents(found) == contents(pasted) == rows
    assert found.remarks == (f"{expected} (such as {path})",)
    assert pasted.remarks == ()


@pytest.mark.parametrize("data", ["q d1 3\nq d2 1\nq d3 2\n", "q d1 5\nq d2 7\n", "q d1 0\nq d2 0\n", "q 1 2\nr 2 1\n"])
@pytest.mark.parametrize("path", ["a.tsv", "a.txt"])
def test_a_third_field_that_may_be_a_rank_or_a_score_is_refused(path, data):
    message = refusal(read_ranking, write(Path(path), data.replace(" ", "\t")))

    assert message == (
        f"{path}: its third field may be a rank or a score; say format: trec, columns: {{query_id: 1, doc_id: 2, rank: "
        "3}, or with score: 3"
    )
    numbers = {"query_id": "1", "doc_id": "2"}
    by_score = read_ranking(Source(path, "trec", {**numbers, "score": "3"}))
    by_rank = read_ranking(Source(path, "trec", {**numbers, "rank": "3"}))
    assert by_rank.values.tolist() == (-by_score.values).tolist()


def test_a_run_named_as_judgments_is_refused():
    """Its ranks would be taken for grades, the last document's the greatest."""
    assert refusal(read_judgments, write(Path("run.tsv"), MSMARCO_RUN)) == (
        "run.tsv: looks like a ranking, with ranks in its third field; name the judgments"
    )


@pytest.mark.parametrize("last", ["q9\td\t0.5", "q9\td\t-1"])
def test_a_score_far_behind_ranks_is_refused(last):
    text = "".join(f"q{query}\td{rank}\t{rank}\n" for query in range(4_000) for rank in range(1, 4))
    path = write(Path("run.tsv"), f"{text}{last}\n")
    messages = {refusal(read_ranking, path), *(refusal(list, RankingRanges(path, n_rows=n)) for n in (1_000, 10**6))}

    assert messages == {
        f"run.tsv: rank {last.split()[-1]} (line 12001) is not a whole number from 0; fix it, or if the highest comes "
        "first, say format: trec, columns: {query_id: 1, doc_id: 2, score: 3}"
    }


@pytest.mark.parametrize("ending", ["", "z\td1\t5\n"])
def test_ranges_without_a_header_have_one_layout(ending):
    text = "".join(f"q{query}\td{rank}\t{rank}\n" for query in range(9_000) for rank in (1, 2)) + ending
    path = write(Path("run.tsv"), text)
    whole = contents(read_ranking(path))

    for n_rows in (700, 10**6):
        ranges = RankingRanges(path, n_rows=n_rows)
        assert [row for part in ranges for row in contents(part)] == whole
        assert ranges.remarks == (f"read by rank: format: trec, {BY_RANK} (such as run.tsv)",)


# Folders. BEIR's zip files have corpus.jsonl, queries.jsonl and qrels/{train,dev,test}.tsv in a folder of their own.
QRELS = "query-id\tcorpus-id\tscore\nPLAIN-2\tMED-10\t{}\n"


def beir_folder(*splits: str) -> Path:
    """A dataset of BEIR with these splits, the grades of which are 1, 2, and so on."""
    folder = Path("beir/nfcorpus")
    write(folder / "queries.jsonl", BEIR_QUERIES)
    write(folder / "corpus.jsonl", BEIR_CORPUS)
    for grade, split in enumerate(splits, 1):
        write(folder / f"qrels/{split}.tsv", QRELS.format(grade))
    return folder


@pytest.mark.parametrize("splits", [("test", "train", "dev"), ("test",), ("dev",)])
@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_of_beir_means_its_test_judgments(splits, end):
    found = read_judgments(f"{beir_folder(*splits)}{end}")

    assert contents(found) == [("PLAIN-2", "MED-10", 1.0)]
    assert [Path(file.path) for file in found.files] == [Path(f"beir/nfcorpus/qrels/{splits[0]}.tsv")]
    assert found.remarks[0].endswith(f"qrels/{splits[0]}.tsv)")


def test_a_folder_of_beir_without_a_test_split_is_refused():
    said = "holds judgments of several splits; name one, as in beir/nfcorpus/qrels/dev.tsv"

    assert refusal(read_judgments, str(beir_folder("train", "dev"))) == f"beir/nfcorpus: {said}"


# A repository on the HuggingFace hub, as push_to_hub writes it: README.md, and data/<split>-<n>-of-<n>.parquet.
def shard(query: str) -> bytes:
    return parquet_table(query_id=[query], doc_id=["d"], score=[0.5])


def test_a_folder_of_huggingface_is_its_shards():
    """They are one input in the order of their names; the card and the description are no data."""
    for number in (1, 0):
        write(Path(f"hf/data/train-0000{number}-of-00002.parquet"), shard(f"q{number}"))
    write(Path("hf/README.md"), "---\nlicense: mit\n---\n")
    write(Path("hf/dataset_infos.json"), "{}")

    assert contents(read_ranking("hf")) == [("q0", "d", 0.5), ("q1", "d", 0.5)]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet"],
            "hf: holds the splits test, train; name one, as in hf/data/test-*.parquet",
        ),
        (
            ["data/train-00000-of-00003.parquet", "data/train-00002-of-00003.parquet"],
            "hf: lacks 1 of 3 shards, such as data/train-00001-of-00003.parquet; complete it",
        ),
        (
            ["data-00000-of-00001.arrow", "state.json", "dataset_info.json"],
            "hf: holds Arrow files, as of save_to_disk; write it with to_parquet",
        ),
    ],
)
def test_a_folder_that_is_not_one_whole_split_is_refused(names, message):
    """Train and test together, or half of a split, would give figures that look right."""
    for name in names:
        write(Path("hf") / name, shard(name))

    assert refusal(read_ranking, "hf") == message
