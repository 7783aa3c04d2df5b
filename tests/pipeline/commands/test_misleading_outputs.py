"""Outputs that can be read and mislead: by their ranks, cut off, without a common id, or of unequal judging."""

import gzip
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas
import pytest
import yaml

import rankledger
from rankledger.pipeline.data.joined import DataWarning
from rankledger.pipeline.delivery.mlflow.runs import build_runs
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.report.markdown import markdown
from rankledger.pipeline.report.messages import notes
from rankledger.pipeline.report.page import page_of
from rankledger.pipeline.report.terminal import as_data, first_screen
from tests.support import nights
from tests.support.data_files import parquet_table, refusal
from tests.support.generated_data import Collection, write_config

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


QUERIES = [f"q{number}" for number in range(20)]
GOOD = {query: [f"{10 * place + 10}" for place in range(6)] for query in QUERIES}  # 10 to 60, of which 10 is judged
BEYOND = {query: ["50", "60", "70"] for query in QUERIES}  # some of what GOOD returns, none of it judged
PREFIXED = {query: [f"m{document}" for document in documents] for query, documents in GOOD.items()}
OTHERS = {query: ["x1", "x2"] for query in QUERIES}
REFUSED = "prefixed.tsv: none of its 6 documents is judged, such as 'm10'; the judgments have '10': remove the prefix"


def config(rankings: Mapping[str, Mapping[str, list[str]]], /, *, documents: str = "", **sections: Any) -> str:
    Path("qrels.txt").write_text("".join(f"{query} 0 10 1\n" for query in QUERIES), encoding="utf-8")
    for model, ranking in rankings.items():
        rows = [f"{query}\t{document}\t{-at}" for query in ranking for at, document in enumerate(ranking[query])]
        Path(f"{model}.tsv").write_text("\n".join(["query_id\tdoc_id\tscore", *rows]) + "\n", encoding="utf-8")
    dataset = {"judgments": "qrels.txt"}
    if documents:
        Path("documents.tsv").write_text("doc_id\n" + documents, encoding="utf-8")
        dataset["documents"] = "documents.tsv"
    models = {model: {"outputs": f"{model}.tsv"} for model in rankings}
    suites = {"s": ["ndcg@10"]}
    return str(nights.write_config(**{"datasets": {"web": dataset}, "models": models, "suites": suites, **sections}))


def evaluate(path: str | Path, **options: Any) -> rankledger.Evaluation:
    return rankledger.evaluate_config(path, tracking=False, **options)


def refused(evaluation: rankledger.Evaluation) -> list[str]:
    return [failure.model for failure in evaluation.failures]


def warned(evaluation: rankledger.Evaluation) -> list[str]:
    return [warning.model for warning in evaluation.data_warnings]


def test_a_prefix_no_longer_passes_its_gate(run_cli):
    """With `on_inconclusive: warn` 0.0000 was "Gates passed", exit 0: now the output is refused, exit 4."""
    gate = {"name": "floor", "models": "prefixed", "measure": "ndcg@10", "at_least": 0, "on_inconclusive": "warn"}
    path = config({"good": GOOD, "prefixed": PREFIXED}, gates=[gate])
    code, _, err = run_cli("evaluate", path, "--no-tracking", "--quiet")
    assert code == 4
    assert REFUSED in err
    assert run_cli("validate", path).code == 4


def test_documents_of_the_catalogue_or_of_a_model_with_hits_are_no_mismatch():
    path = config({"good": GOOD, "beyond": BEYOND, "prefixed": PREFIXED, "again": PREFIXED})

    evaluation = evaluate(path)
    assert refused(evaluation) == ["prefixed", "again"]
    assert warned(evaluation) == ["beyond"]
    assert refused(evaluate(config({"beyond": BEYOND, "prefixed": PREFIXED}))) == ["beyond", "prefixed"]

    assert refused(evaluate(config({"others": OTHERS}))) == ["others"]
    assert warned(evaluate(config({"others": OTHERS}, documents="10\nx2\n"))) == ["others"]


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_the_verdict_does_not_depend_on_the_cache_or_the_jobs(backend):
    path = config({"good": GOOD, "beyond": BEYOND, "prefixed": PREFIXED})
    first = evaluate(path, jobs=1)
    again = evaluate(path, jobs=2, backend=backend)
    checked = rankledger.validate(path)

    for found in (again, checked):
        assert refused(found) == refused(first)
    assert again.data_warnings == first.data_warnings
    assert str(first.data_warnings[0]) in checked.warnings


def test_what_was_accepted_is_accepted_when_it_is_evaluated_again():
    evaluation = evaluate(config({"good": GOOD, "beyond": BEYOND, "prefixed": PREFIXED}))
    assert rankledger.reproduce(str(evaluation.record)).verdict == "identical"
    Path("good.tsv").unlink()
    Path("beyond.tsv").unlink()

    again = evaluate(evaluation.record)

    assert refused(again) == ["prefixed"]
    assert again.data_warnings == evaluation.data_warnings


def test_an_output_may_be_allowed_to_share_nothing():
    """`allow_no_overlap` makes a warning of the refusal, for other queries too; a misplaced one is an unknown key."""
    renamed = {query.upper(): documents for query, documents in GOOD.items()}
    outputs = {
        model: {"outputs": {"path": f"{model}.tsv", "allow_no_overlap": True}} for model in ("prefixed", "renamed")
    }
    path = config(
        {"good": GOOD, "prefixed": PREFIXED, "renamed": renamed}, models={"good": {"outputs": "good.tsv"}, **outputs}
    )

    evaluation = evaluate(path)
    assert refused(evaluation) == []
    assert warned(evaluation) == ["prefixed", "renamed"]
    with pytest.raises(rankledger.InputError, match="unknown key 'allow_no_overlap'"):
        evaluate(path, overrides=["datasets.web.judgments={path: qrels.txt, allow_no_overlap: true}"])

    path = config({"renamed": renamed}, conventions={"missing_queries": "error"})
    assert "write the letters of both in the same case" in evaluate(path).failures[0].reason


def test_scores_of_other_queries_are_refused():
    Path("queries.tsv").write_text("query_id\n1\n2\n", encoding="utf-8")
    Path("judge.csv").write_text("query_id,clicks\n1.0,3\n2.0,4\n", encoding="utf-8")
    datasets = {"live": {"scores": {"clicks": "higher"}, "queries": "queries.tsv"}}
    models = {"judge": {"outputs": "judge.csv"}}

    evaluation = evaluate(config({}, datasets=datasets, models=models, suites={}))

    assert evaluation.failures[0].reason.startswith(
        "judge.csv: none of its 2 queries is in the queries table, such as '1.0'; the table has '1': write ids as text"
    )
    allowed = {"judge": {"outputs": {"path": "judge.csv", "allow_no_overlap": True}}}
    assert warned(evaluate(config({}, datasets=datasets, models=allowed, suites={}))) == ["judge"]


def test_a_warning_is_on_every_surface(run_cli):
    path = config({"good": GOOD, "beyond": BEYOND}, report=True)
    line = "small overlap with the dataset: none of the documents retrieved is judged for its query; check the ids"
    outcome = run_cli("evaluate", path, "--no-tracking")
    record = read_record(outcome.record)
    assert f"WARNING beyond: {line}" in " ".join(outcome.out.split())
    assert record.manifest.warnings == [DataWarning("web", "beyond", line)]
    assert record.data_warnings == (DataWarning("web", "beyond", line),)
    page = (record.path / "report.html").read_text(encoding="utf-8")
    assert line in page
    assert "1 warning on the inputs" in page
    assert line in markdown([page_of(record, Workspace.open("runs"))])
    tagged = {run.task: run.tags.get("rankledger.warnings") for run in build_runs(record, max_metrics=40, note="")}
    assert tagged == {("web", "good"): None, ("web", "beyond"): line, None: None}

    path = config({"good": GOOD, "beyond": BEYOND})
    assert run_cli("evaluate", path, "--no-tracking", "--quiet") == (0, "", "")
    assert json.loads(run_cli("evaluate", path, "--no-tracking", "--json").out)["warnings"][0]["model"] == "beyond"


def test_odd_rankings_are_warned_of_from_the_cache_as_well():
    own = {query: [query, *documents] for query, documents in GOOD.items()}
    path = config({"own": own, "good": GOOD})
    ranks = [f"{query}\t{document}\t{at}" for query, found in GOOD.items() for at, document in enumerate(found, 1)]
    Path("good.tsv").write_text("\n".join(["query_id\tdoc_id\tscore", *ranks]) + "\n", encoding="utf-8")

    for _ in range(2):
        found = {warning.model: warning.warning for warning in evaluate(path).data_warnings}
        assert found["own"].startswith("20 of 20 queries find the document of their own id first;")
        assert found["good"].startswith("the scores of every query rise down the file,")
    said = ["datasets.web.exclude_self=true", "models.good.outputs={path: good.tsv, columns: {rank: score}}"]
    evaluation = rankledger.evaluate_config(path, tracking=False, overrides=said)
    assert evaluation.data_warnings == ()
    assert {line.model: line.estimate for line in evaluation.estimates} == {"own": 1.0, "good": 1.0}


EFFECT = "Unjudged documents count as not relevant, so the difference may be an effect of judging."
SENTENCE = f"web: dense: 8% of its top 10 is judged, bm25: 12%. {EFFECT}"
JUDGED = {"q": {"r": 1} | {f"j{number}": 0 for number in range(20)}}


def lists(n_judged: int, n_queries: int = 10, length: int = 12) -> dict[str, dict[str, float]]:
    """Ten lists of 12 documents, of whose first 10 so many are judged in all, from rank 10 up; the best is relevant."""
    shares = [n_judged // n_queries + (query < n_judged % n_queries) for query in range(n_queries)]
    return {
        f"q{query}": {
            "r" if rank == 10 - own < 10 else f"{'j' if 10 - own < rank < 10 else 'u'}{rank}": float(-rank)
            for rank in range(length)
        }
        for query, own in enumerate(shares)
    }


def evaluated(
    folder: Path,
    n_judged: Mapping[str, int],
    measures: tuple[str, ...] = ("ndcg@10",),
    *,
    grades: Mapping[str, int] = JUDGED["q"],
    **config: object,
) -> rankledger.Evaluation:
    judgments = {f"q{query}": dict(grades) for query in range(10)}
    outputs = {model: lists(number) for model, number in n_judged.items()}
    path = write_config(
        folder,
        {"web": Collection(judgments, outputs)},
        {"compared": measures},
        bootstrap={"resamples": 100},
        **{"report": False} | config,
    )
    return rankledger.evaluate_config(path, tracking=False, jobs=1, runs_dir=folder / "runs")


def said(evaluation: rankledger.Evaluation) -> list[str]:
    return [str(warning) for warning in evaluation.data_warnings if "of judging" in str(warning)]


def test_every_surface_says_it(tmp_path):
    """8 and 12 of 100 documents are judged, whatever the figures are."""
    found = evaluated(tmp_path, {"bm25": 12, "dense": 8}, comparison={"baseline": "bm25"}, report=True)
    folder = found.record

    assert said(found) == [SENTENCE]
    assert [warning["warning"] for warning in json.loads((folder / "manifest.json").read_text())["warnings"]] == [
        SENTENCE.removeprefix("web: ")
    ]
    assert SENTENCE.removeprefix("web: ") in (folder / "report.html").read_text(encoding="utf-8")
    comparison = rankledger.compare(f"{folder}#bm25", f"{folder}#dense", runs_dir=tmp_path / "runs")
    assert SENTENCE in comparison.remarks
    assert f"WARNING  {SENTENCE}" in first_screen(found, width=500, colour=False)
    assert SENTENCE in [*notes(rankledger.load(folder))]
    assert as_data(found)["warnings"][0]["warning"] == SENTENCE.removeprefix("web: ")


@pytest.mark.parametrize(
    ("n_judged", "measures", "config"),
    [
        ({"bm25": 10, "dense": 8}, ("ndcg@10",), {}),  # 0.02 apart
        ({"bm25": 12, "dense": 8}, ("bpref", "infap", "judged@10"), {}),  # these pass over unjudged documents
        ({"bm25": 12, "dense": 8}, ("ndcg@10",), {"conventions": {"unjudged_documents": "condensed"}}),
        ({"bm25": 12, "dense": 8}, ("ndcg@10",), {"grades": dict.fromkeys(JUDGED["q"], 1)}),  # precision
        ({"bm25": 12, "dense": 8, "c": 9}, ("p@10", "p@1"), {"comparison": {"baseline": "c", "measures": ["p@1"]}}),
    ],
    ids=["alike", "skipping", "condensed", "relevant alone", "not compared"],
)
def test_what_judging_cannot_explain_has_no_sentence(tmp_path, n_judged, measures, config):
    assert said(evaluated(tmp_path, n_judged, measures, **config)) == []


def test_a_difference_of_three_hundredths_counts(tmp_path):
    """11 and 8 of 100 are 0.03 apart; down to rank 12 the lists have 120 documents, and 0.025 is less."""
    found = said(evaluated(tmp_path, {"bm25": 11, "dense": 8}, ("ndcg@10", "p@10", "ap", "ndcg@12")))
    assert found == [f"web: dense: 8% of its top 10 is judged, bm25: 11%. {EFFECT}"]

    (line,) = said(evaluated(tmp_path, {f"m{number:02}": 10 + number for number in range(30)}, ("p@10", "ndcg@10")))
    assert line.startswith("web: m00: 10% of its top 10 is judged, m01: 11%, m02: 12%, 24 more in between, m27: 37%, ")


def test_a_baseline_is_compared_with_each_model_and_others_are_not(tmp_path):
    """Of 100 documents a has 12. Neither b, 10, nor c, 14, is 0.03 away, though they are 0.04 apart. d, 8, is."""
    models = {"a": 12, "b": 10, "c": 14, "d": 8}

    assert said(evaluated(tmp_path / "one", models, comparison={"baseline": "a"})) == [
        f"web: d: 8% of its top 10 is judged, a: 12%. {EFFECT}"
    ]
    effects = "Unjudged documents count as not relevant, so differences may be effects of judging."
    assert said(evaluated(tmp_path / "all", models)) == [
        f"web: d: 8% of its top 10 is judged, b: 10%, a: 12%, c: 14%. {effects}"
    ]
