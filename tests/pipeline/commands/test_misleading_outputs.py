"""Outputs that can be read and mislead: warnings on the order of ranks and on files that are cut off."""

import gzip
import json
import random
from pathlib import Path

import pandas
import pytest
import yaml

import rankledger
from tests.support.data_files import parquet_table, refusal

pytestmark = pytest.mark.usefixtures("folder")

RISING = "the scores rise with the ranks beside them, and the highest comes first."
COLUMNS = ("query_id", "doc_id", "rank", "score")


def ranked(sign: int = 1) -> list[tuple[str, str, int, float]]:
    rows = [(f"q{q}", f"d{rank}", rank, sign * (q + 0.25 * rank)) for q in range(5) for rank in range(1, 7)]
    return random.Random(7).sample(rows, len(rows))


def write_output(rows: list[tuple[str, str, int, float]], suffix: str) -> str:
    lines = {
        "txt": "".join("{} Q0 {} {} {} t\n".format(*row) for row in rows),
        "jsonl": "".join(json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n" for row in rows),
        "json": json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows]),
        "csv": "".join(",".join(map(str, row)) + "\n" for row in [COLUMNS, *rows]),
        "tsv": "".join("\t".join(map(str, row)) + "\n" for row in [COLUMNS, *rows]),
    }
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    path = Path(f"run.{suffix}")
    data = parquet_table(**columns) if suffix == "parquet" else lines[suffix.removesuffix(".gz")].encode()
    path.write_bytes(gzip.compress(data) if suffix == "txt.gz" else data)
    return str(path)


def warnings(
    output: object, judgments: str = "qrels.tsv", measure: str = "ndcg@5", kind: str = "judgments"
) -> list[str]:
    if not Path("qrels.tsv").exists():
        rows = "".join(f"q{query}\td1\t1\n" for query in range(5))
        Path("qrels.tsv").write_text("query_id\tdoc_id\trelevance\n" + rows)
    sections = {"name": "t", "datasets": {"d": {kind: judgments}}, "models": {"m": {"outputs": output}}}
    Path("t.yaml").write_text(yaml.safe_dump(sections | {"suites": {"s": [measure]}, "bootstrap": {"resamples": 100}}))
    evaluation = rankledger.evaluate_config("t.yaml", record=False, tracking=False)
    return [warning.warning for warning in evaluation.data_warnings if "fewer than" not in warning.warning]


@pytest.mark.parametrize("suffix", ["txt", "csv", "tsv", "jsonl", "json", "parquet", "txt.gz"])
def test_scores_that_rise_with_ranks_are_noticed_in_any_order_of_rows(suffix):
    output = write_output(ranked(), suffix)

    for _ in range(2):
        (warning,) = warnings(output)
        assert warning.startswith(RISING)
    if suffix not in ("txt", "txt.gz", "json"):
        assert warnings({"path": output, "columns": {"score": "score"}}) == []


@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet"])
def test_scores_that_fall_with_ranks_are_sound(suffix):
    """Nor does a file that is written from the last rank to the first warn, because its ranks tell the order."""
    assert warnings(write_output(ranked(-1), suffix)) == []
    assert warnings(write_output(sorted(ranked(-1), key=lambda row: -row[2]), suffix)) == []


def test_ranks_in_memory():
    frame = pandas.DataFrame(ranked(), columns=COLUMNS)
    judged = {f"q{query}": {"d1": 1} for query in range(5)}

    for given, n_warnings in ((frame, 1), (frame.assign(rank=1), 0), (frame.assign(score=-frame["score"]), 0)):
        evaluation = rankledger.evaluate(judged, {"m": given}, ["ndcg@5"])
        assert sum(RISING in warning.warning for warning in evaluation.data_warnings) == n_warnings


def numbers(values: list[str], form: str = "q{}\td{}\t{}\n") -> str:
    return "".join(form.format(place % 5, place // 5 + 1, value) for place, value in enumerate(values))


FIXED = [f"{30 - place / 4:.2f}" for place in range(20)]  # 30.00 to 25.25
LONG = [repr(place + 1 / 3) for place in range(20)]  # of 15 or more decimals
CUT = "has fewer decimals than all before it. Check if the file is cut off."


@pytest.mark.parametrize(
    ("values", "n_cut", "last"),
    [
        (FIXED, 2, "25.2"),
        (FIXED, 3, "25."),
        (FIXED, 4, "25"),
        (FIXED, 5, "2"),
        (LONG, 10, repr(19 + 1 / 3)[:-9]),
        (FIXED, 1, ""),  # the line end alone
        (LONG, 1, ""),
        (FIXED, 0, ""),
        ([*FIXED[:8], "2"], 1, ""),  # few lines
        ([f"{place % 7}" for place in range(20)], 1, ""),  # whole numbers
        ([f"{place / 8}" for place in range(1, 21)], 1, ""),  # as Python writes them, 2.5 after 2.375
    ],
)
@pytest.mark.parametrize("suffix", ["tsv", "csv", "txt"])
def test_a_last_number_that_is_cut_off(values, n_cut, last, suffix):
    form = {"tsv": "q{}\td{}\t{}\n", "csv": "q{},d{},{}\n", "txt": "q{} Q0 d{} 1 {}\n"}[suffix]
    head = {"tsv": "query_id\tdoc_id\tscore\n", "csv": "query_id,doc_id,score\n", "txt": ""}[suffix]
    text = head + numbers(values, form)
    Path(f"run.{suffix}").write_text(text[: len(text) - n_cut])

    found = [warning for warning in warnings(f"run.{suffix}") if "no end" in warning]

    assert found == ([f"run.{suffix}: the last line has no end, and its number {last} {CUT}"] if last else [])


def test_a_last_rating_that_is_cut_off():
    Path("run.tsv").write_text("query_id\tdoc_id\tprediction\n" + numbers(FIXED))
    Path("ratings.tsv").write_text(("query_id\tdoc_id\trating\n" + numbers(FIXED))[:-4])

    assert warnings("run.tsv", "ratings.tsv", "rmse", "ratings") == [
        f"ratings.tsv: the last line has no end, and its number 25 {CUT}"
    ]


@pytest.mark.parametrize(("value", "kind"), [("x1 d1", "a text"), (None, "a NoneType")], ids=["text", "none"])
def test_a_text_in_place_of_a_list(value, kind):
    judged = {"q": {"d1": 1}, "r": {"d1": 1}}
    asks = "Use a list of document ids or {document: score} for every query."
    for run in ({"q": value}, {"q": ["d1"], "r": value}, {"q": {"d1": 1}, "r": value}):
        query = next(reversed(run))
        message = refusal(rankledger.evaluate, judged, {"bm25": run}, ["ndcg@10"])
        assert f"outputs['bm25']: the value of '{query}' is {kind}. {asks}" in message
    if value:
        message = refusal(rankledger.evaluate, {"q": value}, {"bm25": {"q": ["d1"]}}, ["ndcg@10"])
        assert message.startswith("judgments: the value of 'q' is a text. Use a list of document ids or {document: rel")
