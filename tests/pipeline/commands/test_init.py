"""`rankledger init`: what the files of a folder are taken for, and a config for them that runs."""

import csv
import json
import re
import shutil
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

import rankledger
from rankledger.pipeline.cli import app
from rankledger.pipeline.commands.first_config import CONFIG
from rankledger.pipeline.commands.init import FirstConfig, init

QUERIES = [f"q{number}" for number in range(6)]
JUDGED = [(query, f"d{number}", (number + place) % 3) for place, query in enumerate(QUERIES) for number in range(4)]
RANKED = [(query, f"d{number}", 9.5 - number) for query in QUERIES for number in range(6)]
TABLE = ("query_id", "doc_id", "relevance")
OUTPUT = ("query_id", "doc_id", "score")


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))), path)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows([header, *rows])


def write_trec(folder: Path) -> None:
    (folder / "qrels.txt").write_text("".join(f"{query} 0 {doc} {grade}\n" for query, doc, grade in JUDGED))
    for name in ("bm25", "dense"):
        lines = (f"{query} Q0 {doc} 1 {score} {name}\n" for query, doc, score in RANKED)
        (folder / f"{name}.run").write_text("".join(lines))


def roles(found: FirstConfig) -> dict[str, str]:
    return {path: role for path, role, _ in found.files}


def config_of(found: FirstConfig) -> dict:
    return yaml.safe_load(found.path.read_text(encoding="utf-8"))


def dataset_of(found: FirstConfig) -> dict:
    (dataset,) = config_of(found)["datasets"].values()
    return dataset


def runs(found: FirstConfig) -> None:
    uncommented = found.path.read_text(encoding="utf-8").replace("# gates:", "gates:").replace("#   - {", "  - {")
    with_gates = found.path.with_name("with-gates.yaml")
    with_gates.write_text(uncommented, encoding="utf-8")
    validation = rankledger.validate(with_gates)

    assert (validation.failures, set(validation.models)) == ((), set(found.models))
    evaluation = rankledger.evaluate_config(found.path, runs_dir=found.path.parent / "runs", tracking=False)
    assert {line.model for line in evaluation.estimates} == set(found.models)


def init_and_run(folder: Path) -> FirstConfig:
    found = init(folder)
    runs(found)
    return found


def test_trec_text(tmp_path):
    write_trec(tmp_path)
    (tmp_path / "README.md").write_text("# Our runs\n\nMade by hand.\n")
    (tmp_path / "model.pt").write_bytes(b"PK\0\0\1\2 1 2 3 4 5\n")
    found = init_and_run(tmp_path)

    assert roles(found) == {"qrels.txt": "judgments", "bm25.run": "model bm25", "dense.run": "model dense"}
    assert found.others == ("README.md", "model.pt")
    assert config_of(found)["comparison"] == {"baseline": "bm25"}


@pytest.mark.parametrize("ending", ["tsv", "csv", "parquet"])
def test_tables_with_queries_and_documents(tmp_path, ending):
    write(tmp_path / f"qrels.{ending}", TABLE, JUDGED)
    write(tmp_path / f"queries.{ending}", ("query_id", "text"), [(query, "why") for query in QUERIES])
    write(tmp_path / f"corpus.{ending}", ("doc_id", "title"), [(f"d{number}", "what") for number in range(9)])
    write(tmp_path / f"runs/a.{ending}", OUTPUT, RANKED)
    found = init_and_run(tmp_path)

    assert dataset_of(found) == {
        "judgments": f"qrels.{ending}",
        "queries": f"queries.{ending}",
        "documents": f"corpus.{ending}",
    }
    assert config_of(found)["models"] == {"a": {"outputs": f"runs/a.{ending}"}}
    assert "comparison" not in config_of(found)


def test_ratings_and_predictions_with_a_training_set(tmp_path):
    pairs = [(f"u{user}", f"i{item}", 1.0 + (user + item) % 5) for user in range(6) for item in range(8)]
    write(tmp_path / "a-first.csv", ("query_id", "doc_id", "rating"), [pair for pair in pairs if pair[1] < "i5"])
    write(tmp_path / "held-out.csv", ("query_id", "doc_id", "rating"), [pair for pair in pairs if pair[1] >= "i5"])
    for name in ("mean", "knn"):
        rows = [(user, item, 3.5) for user, item, _ in pairs if item >= "i5"]
        write(tmp_path / f"{name}.csv", ("query_id", "doc_id", "prediction"), rows)
    found = init_and_run(tmp_path)

    assert dataset_of(found) == {"ratings": "held-out.csv"}
    assert config_of(found)["suites"]["main"] == ["rmse", "mae"]
    unused = "# a-first.csv: ratings, but the outputs have 0 of its pairs; chosen: held-out.csv, with 18"
    assert unused in found.path.read_text()


def test_rankings_of_a_recommender_with_train_and_test(tmp_path):
    """Test ratings become grades with a threshold of 0.8 times the greatest, 4 of 5; training ratings interactions."""
    pairs = [(f"u{user}", f"i{item}", 1 + (user + item) % 5) for user in range(6) for item in range(12)]
    write(tmp_path / "train.csv", ("query_id", "doc_id", "rating"), [pair for pair in pairs if pair[1] < "i5"])
    write(tmp_path / "test.csv", ("query_id", "doc_id", "rating"), [pair for pair in pairs if pair[1] >= "i5"])
    for name in ("als", "popular"):
        write(tmp_path / f"{name}.csv", OUTPUT, [(user, item, 0.5 + rating) for user, item, rating in pairs[::2]])
    found = init_and_run(tmp_path)

    assert dataset_of(found) == {
        "judgments": {"path": "test.csv", "columns": {"relevance": "rating"}},
        "relevant": 4,
        "interactions": "train.csv",
    }
    assert config_of(found)["comparison"] == {"baseline": "popular"}


LISTS = [
    ("truth.csv", "predictions.csv", ("session_type", "labels"), " ".join),
    ("truth.jsonl", "a.jsonl", ("query_id", "doc_ids"), list),
    ("truth.parquet", "a.parquet", ("user_id", "items"), list),
]


@pytest.mark.parametrize(("truth", "output", "names", "written"), LISTS)
def test_lists_of_one_name_are_told_apart_by_their_lengths(tmp_path, truth, output, names, written):
    relevant = [
        (query, written([f"d{number}" for number in range(1 + place % 3)])) for place, query in enumerate(QUERIES)
    ]
    returned = [(query, written([f"d{number}" for number in range(4)])) for query in QUERIES]
    for name, rows in ((truth, relevant), (output, returned)):
        if name.endswith("jsonl"):
            lines = (json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
            (tmp_path / name).write_text("".join(lines))
        else:
            write(tmp_path / name, names, rows)
    found = init_and_run(tmp_path)

    assert roles(found) == {truth: "judgments", output: f"model {output.partition('.')[0]}"}


def test_a_submission_is_known_by_its_column(tmp_path):
    write(tmp_path / "qrels.csv", TABLE, JUDGED)
    write(tmp_path / "sub.csv", ("customer_id", "prediction"), [("q0", "d1 d2 d0"), ("q1", ""), ("q2", "d1")])
    found = init_and_run(tmp_path)
    assert roles(found) == {"qrels.csv": "judgments", "sub.csv": "model sub"}


def test_scores_of_another_tool(tmp_path):
    for place, name in enumerate(("small", "large")):
        rows = [(query, 0.5 + 0.1 * place, 100 + number) for number, query in enumerate(QUERIES)]
        write(tmp_path / f"{name}.csv", ("query_id", "faithfulness", "latency"), rows)
    write(tmp_path / "questions.csv", ("query_id", "topic"), [(query, "law") for query in QUERIES])
    found = init_and_run(tmp_path)

    assert dataset_of(found) == {"scores": {"faithfulness": "higher", "latency": "higher"}, "queries": "questions.csv"}
    assert "suites" not in config_of(found)
    assert "write lower where less is better" in found.path.read_text()


def test_nuggets_and_citations_of_answers(tmp_path):
    header, support = ("query_id", "nugget", "importance", "support"), ("support", "not_support", "partial_support")
    rows = [(query, "n1", "vital", support[place % 3]) for place, query in enumerate(QUERIES)]
    write(tmp_path / "plain.nuggets.parquet", header, rows)
    write(tmp_path / "odd.csv", header, [*rows, ("q9", "n1", "Vital", "support")])
    nuggets = [{"text": "n1", "importance": "okay", "assignment": "support"}]
    lines = [json.dumps({"qid": query, "query": "who?", "nuggets": nuggets}) for query in QUERIES]
    (tmp_path / "rag_nuggets.jsonl").write_text("\n".join(lines), encoding="utf-8")
    write(tmp_path / "plain.citations.tsv", ("query_id", "sentence", "support"), [("q0", "s1", "full_support")])
    found = init_and_run(tmp_path)

    assert config_of(found)["models"] == {
        "plain": {"outputs": {"path": "plain.nuggets.parquet", "format": "nuggets"}},
        "rag": {"outputs": {"path": "rag_nuggets.jsonl", "format": "nuggets"}},
    }
    assert dataset_of(found)["scores"]["strict_vital_score"] == {"range": [0, 1]}
    reasons = {path: reason for path, _, reason in found.files}
    assert "importance 'Vital' (line 8); write vital, okay" in reasons["odd.csv"]
    assert reasons["plain.citations.tsv"] == "scores of citations; the models are measured on nuggets"
    assert "outputs: {path: plain.citations.tsv, format: citations}" in found.path.read_text(encoding="utf-8")


def test_groups_and_what_was_seen_are_suggested(tmp_path):
    write(tmp_path / "test.csv", TABLE, JUDGED)
    write(tmp_path / "train.csv", ("query_id", "doc_id"), [(query, "d5") for query in QUERIES])
    write(tmp_path / "items.csv", ("doc_id", "provider"), [(f"d{number}", "ab"[number % 2]) for number in range(6)])
    people = [(f"u{number}", f"name {number}", "ab"[number % 2]) for number in range(4)]
    write(tmp_path / "people.csv", ("query_id", "name", "group"), people + [(query, query, "a") for query in QUERIES])
    write(tmp_path / "als.csv", OUTPUT, RANKED)
    found = init(tmp_path)
    text = found.path.read_text(encoding="utf-8")
    runs(found)
    for line in ("# slices: [group]", "# seen: remove", "# - awrf(feature=COLUMN)@10"):
        assert line in text
        text = text.replace(line, line.removeprefix("# ").replace("COLUMN", "provider"))
    found.path.write_text(text, encoding="utf-8")
    evaluation = rankledger.evaluate_config(found.path, runs_dir=tmp_path / "runs", tracking=False)

    assert {line.slice for line in evaluation.estimates} == {"all", "group=a"}
    assert "awrf(feature=provider)@10" in {line.measure for line in evaluation.estimates}
    assert [quality.n_excluded for quality in evaluation.quality.values()] == [len(QUERIES)]


GOLDEN = Path(__file__).parents[2] / "golden" / "scores"


def models_of_tool(folder: Path, tool: str) -> tuple[FirstConfig, dict[str, Any]]:
    shutil.copytree(GOLDEN / tool, folder / "logs")
    with zipfile.ZipFile(folder / "model.pt", "w") as other:
        other.writestr("archive/data.pkl", b"no log of any tool")
    found = init_and_run(folder)
    return found, config_of(found)["models"]


def test_logs_of_inspect(tmp_path):
    """Zips and JSON, called as their models; epochs are replicates; the scores are those of all logs."""
    found, models = models_of_tool(tmp_path, "inspect")

    assert models == {
        "mockllm/large": {"outputs": {"path": "logs/large.eval", "format": "inspect"}},
        "mockllm/small": {"outputs": {"path": "logs/small.json", "format": "inspect"}},
        "mockllm/twice": {
            "outputs": {"path": "logs/twice.eval", "format": "inspect", "select": {"epoch": "{replicate}"}},
            "replicates": [1, 2],
        },
    }
    assert found.others == ("model.pt",)
    assert list(dataset_of(found)["scores"]) == ["includes", "close", "style.brief", "style.polite"]


def test_results_of_promptfoo(tmp_path):
    found, models = models_of_tool(tmp_path, "promptfoo")

    assert {name: model["outputs"]["select"] for name, model in models.items()} == {
        "small": {"provider": "small"},
        "large": {"provider": "large"},
        "twice-plain": {"prompt": "plain", "repeat": "{replicate}"},
        "twice-polite": {"prompt": "polite", "repeat": "{replicate}"},
    }
    directions = dataset_of(found)["scores"]
    assert [name for name, direction in directions.items() if direction == "lower"] == ["latency_ms", "cost"]
    assert {path for path, _, _ in found.files} == {
        *("logs/models.json (provider small)", "logs/models.json (provider large)"),
        *("logs/repeats.json (prompt plain)", "logs/repeats.json (prompt polite)"),
    }


def test_samples_of_two_tasks_are_not_of_one_dataset(tmp_path):
    found, models = models_of_tool(tmp_path, "lm_eval")

    (choice,) = (tmp_path / "logs").glob("samples_choice_*")
    assert models == {"logs": {"outputs": {"path": f"logs/{choice.name}", "format": "lm_eval"}}}
    assert "(filter strict): scores of written, strict; the models are measured on choice, none" in (
        found.path.read_text()
    )
    assert "select: {filter: letters}" in found.path.read_text()


def test_a_log_that_is_refused_says_what_its_tool_needs(tmp_path):
    found, models = models_of_tool(tmp_path, "mlflow")
    assert list(models) == ["eval_results_table"]
    (reason,) = [reason for path, _, reason in found.files if path == "logs/genai.json"]
    assert reason.endswith("map it with columns: {query_id: request.query_id}")
    assert "doc_id: …" not in found.path.read_text()


def test_scores_as_trec_eval_prints_them(tmp_path):
    """Lines of measure, query and value are scores, and no judgments, though they are text of few fields."""
    for name in ("a", "b"):
        lines = [f"{measure} {query} 0.25\n" for measure in ("map", "P_5") for query in (*QUERIES, "all")]
        (tmp_path / f"{name}.eval").write_text("".join(lines))
    found = init_and_run(tmp_path)
    assert dataset_of(found) == {"scores": {"P_5": "higher", "map": "higher"}}


@pytest.mark.parametrize("orient", ["columns", "index", "records", "split"])
def test_json_of_pandas(tmp_path, orient):
    judged = pandas.DataFrame({"query_id": [1, 1, 2], "doc_id": [11, 12, 13], "relevance": [1, 0, 2]})
    ranked = judged.rename(columns={"relevance": "score"}).assign(score=[1.5, 2.5, 0.5])
    judged.to_json(tmp_path / "qrels.json", orient=orient, index=orient != "records")
    ranked.to_json(tmp_path / "run.json", orient=orient, index=orient != "records")

    found = init_and_run(tmp_path)

    assert {path: text.partition(";")[2].partition(",")[0] for path, _, text in found.files} == {
        "qrels.json": " 3 rows of 2 queries",
        "run.json": " 3 rows of 2 queries",
    }


@pytest.mark.parametrize("name", ["bm25.txt", "bm25.tsv"])
def test_scores_as_ir_measures_prints_them(tmp_path, name):
    """They are no ranking of documents, though a line has three fields and the last is a number."""
    (tmp_path / name).write_text("q1\tnDCG@10\t0.5\nq2\tnDCG@10\t1.0\nall\tnDCG@10\t0.75\n")
    found = init_and_run(tmp_path)
    assert found.files == ((name, "model bm25", "scores of 2 queries: nDCG@10"),)


def test_json_is_told_apart_by_its_numbers(tmp_path):
    for name, rows in (("truth", JUDGED), ("run", RANKED)):
        table: dict[str, dict[str, float]] = {}
        for query, doc, number in rows:
            table.setdefault(query, {})[doc] = number
        (tmp_path / f"{name}.json").write_text(json.dumps(table))
    found = init_and_run(tmp_path)

    assert roles(found) == {"run.json": "model run", "truth.json": "judgments"}


def test_of_several_judgments_those_that_the_outputs_are_for(tmp_path):
    write_trec(tmp_path)
    (tmp_path / "qrels.txt").rename(tmp_path / "qrels.dev.txt")
    (tmp_path / "qrels.a.txt").write_text("".join(f"x{query} 0 {doc} 1\n" for query, doc, _ in JUDGED))
    found = init(tmp_path)

    assert dataset_of(found) == {"judgments": "qrels.dev.txt"}
    assert roles(found)["qrels.a.txt"] == "not used"
    assert "#   to use it, write a dataset of its own: judgments: qrels.a.txt" in found.path.read_text()


def test_an_output_that_would_be_refused_is_left_out_with_the_reason(tmp_path):
    write_trec(tmp_path)
    with (tmp_path / "dense.run").open("a") as file:
        file.write("q0 Q0 d0 9 1.0 dense\n")
    (tmp_path / "other.run").write_text("elsewhere Q0 d1 1 1.0 x\n")
    found = init_and_run(tmp_path)

    assert found.models == ("bm25",)
    text = found.path.read_text()
    assert "# dense.run: " in text
    assert "ranks document 'd0' twice" in text
    assert roles(found)["other.run"] == "not used"


def test_a_table_that_no_reader_takes_has_the_line_of_the_reader(tmp_path):
    write_trec(tmp_path)
    write(tmp_path / "clicks.csv", ("who", "what", "when"), [("u1", "i1", "now")])
    found = init_and_run(tmp_path)

    assert roles(found)["clicks.csv"] == "not used"
    comment = found.path.read_text().partition("# Files that have no place above:")[2]
    assert "no column 'query_id' among who, what, when" in comment
    assert "map it with columns: {query_id: …, doc_id: …" in comment


def test_a_ranking_by_rank_is_called_one(tmp_path):
    write_trec(tmp_path)
    ranked = [(query, doc, place % 6 + 1) for place, (query, doc, _) in enumerate(RANKED)]
    write(tmp_path / "colbert.tsv", ("query_id", "doc_id", "rank"), ranked)
    write(tmp_path / "splade.tsv", ("qid", "pid", "rank"), ranked)
    found = init(tmp_path)

    described = {path: reason for path, _, reason in found.files}
    assert described["colbert.tsv"].startswith("query, document and rank;")
    assert described["bm25.run"].startswith("query, document and score;")
    assert described["splade.tsv"].startswith("query, document and rank;")
    assert rankledger.validate(found.path).failures == ()


def test_lists_of_recommendations_are_told_from_predicted_ratings(tmp_path):
    pairs = [(f"u{user}", f"i{item}", 1.0 + (user + item) % 5) for user in range(6) for item in range(40)]
    write(tmp_path / "train.csv", ("userId", "movieId", "rating"), [pair for pair in pairs if pair[1] < "i2"])
    write(tmp_path / "test.csv", ("userId", "movieId", "rating"), [pair for pair in pairs if pair[1] in ("i30", "i31")])
    lists = [(user, item, 9.5 - place % 6) for place, (user, item, _) in enumerate(pairs) if item >= "i30"]
    write(tmp_path / "knn.csv", ("user", "item", "prediction"), lists)
    found = init_and_run(tmp_path)

    assert dataset_of(found) == {"judgments": "test.csv", "relevant": 4, "interactions": "train.csv"}
    assert config_of(found)["suites"]["main"][0] == "ndcg(gain=binary)@10"


def test_the_first_rows_of_a_long_ranking_are_called_so(tmp_path):
    write_trec(tmp_path)
    rows = [f"q{query} Q0 d{doc} {doc} {-doc} t" for query in range(12) for doc in range(1000)]
    (tmp_path / "long.run").write_text("\n".join(rows))
    found = init(tmp_path)
    (described,) = [reason for path, _, reason in found.files if path == "long.run"]
    assert re.fullmatch(r"query, document and rank; the first [\d,]+ rows have \d+ queries, up to 1000 .*", described)


def test_odd_names_are_quoted(tmp_path):
    odd = tmp_path / "1: {x} $HOME"
    odd.mkdir()
    write_trec(odd)
    (odd / "dense.run").rename(odd / "{model} ${HOME} [1].run")
    (odd / "bm25.run").rename(odd / "null.run")
    found = init(odd)

    assert set(found.models) == {"null", "{model} ${HOME} [1]"}
    assert rankledger.validate(found.path).failures == ()


def test_two_files_of_one_name_are_two_models(tmp_path):
    write(tmp_path / "qrels.tsv", TABLE, JUDGED)
    for folder in ("july", "august"):
        write(tmp_path / folder / "bm25.tsv", OUTPUT, RANKED)
    assert init(tmp_path).models == ("august-bm25.tsv", "july-bm25.tsv")


def test_a_config_that_is_there_stays(tmp_path):
    write_trec(tmp_path)
    (tmp_path / CONFIG).write_text("mine")
    with pytest.raises(rankledger.InputError, match="exists already; evaluate it, or write it anew with --force"):
        init(tmp_path)
    assert (tmp_path / CONFIG).read_text() == "mine"

    first = init(tmp_path, force=True)
    runs(first)
    assert init(tmp_path, force=True) == first


@pytest.mark.parametrize(
    ("removed", "said"),
    [
        (["qrels.txt"], "rankings without judgments; add a file with query_id, doc_id and relevance"),
        (["bm25.run", "dense.run"], "judgments without a model's output; add a file with query_id, doc_id and score"),
        (["qrels.txt", "bm25.run", "dense.run"], "neither judgments nor outputs"),
    ],
)
def test_what_is_missing_is_named(tmp_path, removed, said):
    write_trec(tmp_path)
    for name in removed:
        (tmp_path / name).unlink()
    with pytest.raises(rankledger.InputError) as caught:
        init(tmp_path)

    first, *others = caught.value.lines
    assert said in first
    assert len(others) == 3 - len(removed)
    assert not (tmp_path / CONFIG).exists()


def test_outputs_that_are_all_refused_leave_no_config(tmp_path):
    write_trec(tmp_path)
    for name in ("bm25", "dense"):
        (tmp_path / f"{name}.run").write_text("elsewhere Q0 d1 1 1.0 x\n")
    with pytest.raises(rankledger.InputError, match=r"bm25\.run: "):
        init(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bm25.run", "dense.run", "qrels.txt"]


def test_outputs_of_several_nights_are_a_template_and_those_of_the_last_are_evaluated(tmp_path, capsys):
    write(tmp_path / "judgments.csv", TABLE, JUDGED)
    for date in ("2026-11-23", "2026-11-24"):
        for model in ("bm25", "dense"):
            write(tmp_path / "out{s}" / date / f"{model}.csv", OUTPUT, RANKED)
    found = init(tmp_path)

    assert found.night == "2026-11-24"
    assert config_of(found)["models"] == {
        "bm25": {"outputs": "out{{s}}/{date}/bm25.csv"},
        "dense": {"outputs": "out{{s}}/{date}/dense.csv"},
    }
    assert roles(found)["out{s}/2026-11-23/bm25.csv"] == "not used"
    for date in ("2026-11-23", "2026-11-24"):
        evaluation = rankledger.evaluate_config(
            found.path, date=date, tracking=False, runs_dir=tmp_path / "runs", overrides=["bootstrap.resamples=100"]
        )
        assert [result.model for result in evaluation.results] == ["bm25", "dense"]
    (command,) = re.findall(r"`rankledger (plan [^`]*)`", found.path.read_text(encoding="utf-8"))
    with pytest.raises(SystemExit):
        app.main([*command.split(), "--runs-dir", str(tmp_path / "runs")])

    assert "dense against dense: 6 queries are too few to plan by" in capsys.readouterr().err


def lm_eval(path: Path, values: list[object], metric: str = "acc") -> None:
    """A log of lm_eval; `path` is `FOLDER/samples_TASK_DATE.jsonl`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"doc_id": n, "doc": {}, "metrics": [metric], metric: value} for n, value in enumerate(values)]
    path.write_text("\n".join(map(json.dumps, lines)))


def test_logs_of_several_nights_are_one_model(tmp_path):
    for time in ("2026-06-12T01-02-03.45", "2026-06-13T06-07-08.9"):
        lm_eval(tmp_path / "tuned" / f"samples_x_{time}.jsonl", [1.0, 0.0])
    found = init(tmp_path)

    outputs = {"path": "tuned/samples_x_{date}*.jsonl", "format": "lm_eval"}
    assert (found.night, config_of(found)["models"]) == ("2026-06-13", {"tuned": {"outputs": outputs}})

    lm_eval(tmp_path / "tuned" / "samples_x_2026-06-13T23-00-00.1.jsonl", [1.0, 1.0])
    found = init(tmp_path, force=True)
    newest = "tuned/samples_x_2026-06-13T23-00-00.1.jsonl"
    assert config_of(found)["models"] == {"tuned": {"outputs": {"path": newest, "format": "lm_eval"}}}


@pytest.mark.parametrize(
    ("values", "said"),
    [([[-10.2, 7], [-3.1, 2]], "no score is a number among acc"), (["good", "bad"], "no score is a number among acc")],
)
def test_a_log_without_numbers_has_no_place(tmp_path, values, said):
    lm_eval(tmp_path / "odd" / "samples_x.jsonl", values)
    with pytest.raises(rankledger.InputError, match=said):
        init(tmp_path)

    lm_eval(tmp_path / "base" / "samples_x.jsonl", ["True", "False", None])
    found = init(tmp_path)
    assert [*config_of(found)["models"]] == ["base"]
    assert said in found.path.read_text()
    assert config_of(found)["datasets"][tmp_path.name.replace("_", "-")]["scores"] == {"acc": "higher"}


def test_names_of_scores_that_no_score_can_have_are_mapped(tmp_path):
    """`value` is a column of long tables, and a name may have any sign: the config is valid and reads both."""
    names = ["value", "factual_correctness(mode=f1)", "$HOME {x} #"]
    for model in ("base", "tuned"):
        rows = [(f"q{n}", n / 10, "True", n) for n in range(10)]
        write(tmp_path / f"{model}.csv", ["query_id", *names], rows)
    found = init(tmp_path)

    scores = next(iter(config_of(found)["datasets"].values()))["scores"]
    assert scores == {
        "score of value": {"column": "value", "direction": "higher"},
        names[1]: "higher",
        names[2]: "higher",
    }
    evaluation = rankledger.evaluate_config(
        found.path, tracking=False, record=False, overrides=["bootstrap.resamples=100"]
    )
    means = {estimate.measure: estimate.estimate for estimate in evaluation.estimates if estimate.model == "base"}
    assert means == pytest.approx({"score of value": 0.45, names[1]: 1.0, names[2]: 4.5})


def test_one_output_with_a_date_is_no_night(tmp_path):
    write(tmp_path / "judgments.csv", TABLE, JUDGED)
    write(tmp_path / "bm25-2026-11-24.csv", OUTPUT, RANKED)
    found = init(tmp_path)
    assert found.night is None
    assert config_of(found)["models"] == {"bm25-2026-11-24": {"outputs": "bm25-2026-11-24.csv"}}


def write_nights(folder: Path, datasets: Sequence[str], models: Sequence[str], dates: Sequence[str]) -> None:
    for dataset in datasets:
        write(folder / dataset / "qrels.tsv", TABLE, JUDGED)
        write(folder / dataset / "queries.tsv", ("query_id", "text"), [(query, "why") for query in QUERIES])
        for date in dates:
            for model in models:
                write(folder / "outputs" / date / dataset / f"{model}.tsv", OUTPUT, RANKED)


def test_nights_of_several_datasets_are_one_template(run_cli, tmp_path):
    datasets, models = [f"d{number}" for number in range(6)], ["bm25", "dense", "hybrid"]
    write_nights(tmp_path, datasets, models, ["2026-11-23", "2026-11-24", "2026-11-25"])
    outcome = run_cli("init", tmp_path)
    config = yaml.safe_load((tmp_path / CONFIG).read_text(encoding="utf-8"))

    assert outcome.code == 0
    assert len(outcome.out.splitlines()) <= 20
    assert outcome.out.endswith(f"next: rankledger nightly {tmp_path / CONFIG} --date 2026-11-25\n")
    assert config["datasets"] == dict.fromkeys(sorted(datasets))
    assert config["models"] == dict.fromkeys(models)
    assert config["defaults"] == {
        "dataset": {"judgments": "{dataset}/qrels.tsv", "queries": "{dataset}/queries.tsv"},
        "model": {"outputs": "outputs/{date}/{dataset}/{model}.tsv"},
    }
    for date in ("2026-11-23", "2026-11-25"):
        validation = rankledger.validate(tmp_path / CONFIG, date=date)
        assert (len(validation.models), validation.failures) == (3, ())
    write(tmp_path / "outputs/2026-11-26/d0/bm25.tsv", OUTPUT, RANKED)
    outcome = run_cli("validate", tmp_path / CONFIG, "--date", "2026-11-26")
    assert outcome.code == 4
    assert "outputs/2026-11-26/d0/dense.tsv" in outcome.out


@pytest.mark.parametrize(
    ("judgments", "output"),
    [
        ("{}/qrels.tsv", "{}/{}.tsv"),
        ("{}/qrels.tsv", "runs/{}/{}.tsv"),
        ("{}/qrels/test.tsv", "{}/runs/{}.tsv"),
        ("qrels/{}.tsv", "runs/{}/{}.tsv"),
    ],
)
def test_datasets_in_folders_of_their_names(run_cli, tmp_path, judgments, output):
    for dataset in ("news", "web"):
        write(tmp_path / judgments.format(dataset), TABLE, JUDGED)
        for model in ("bm25", "dense"):
            write(tmp_path / output.format(dataset, model), OUTPUT, RANKED)
    outcome = run_cli("init", tmp_path)
    config = yaml.safe_load((tmp_path / CONFIG).read_text(encoding="utf-8"))

    assert outcome.code == 0
    assert "model dense on web" in outcome.out
    assert config["defaults"]["dataset"]["judgments"] == judgments.format("{dataset}")
    assert config["defaults"]["model"]["outputs"] == output.format("{dataset}", "{model}")
    evaluated = run_cli("evaluate", tmp_path / CONFIG, "--no-tracking", "--set", "bootstrap.resamples=100", "--json")
    figures = {(line["dataset"], line["model"]) for line in json.loads(evaluated.out)["estimates"]}
    assert figures == {(dataset, model) for dataset in ("news", "web") for model in ("bm25", "dense")}


def test_datasets_that_differ_are_written_one_by_one(run_cli, tmp_path):
    write_nights(tmp_path, ["news", "web"], ["bm25", "dense"], ["2026-11-23", "2026-11-24"])
    for file in [*tmp_path.glob("outputs/*/news/dense.tsv"), tmp_path / "news" / "queries.tsv"]:
        file.unlink()
    stars = [(query, doc, 1.0 + grade) for query, doc, grade in JUDGED]
    write(tmp_path / "stars" / "held-out.csv", ("query_id", "doc_id", "rating"), stars)
    write(tmp_path / "outputs/2026-11-24/stars/knn.csv", ("query_id", "doc_id", "prediction"), stars)
    write(tmp_path / "stray.tsv", OUTPUT, RANKED)
    outcome = run_cli("init", tmp_path)
    text = (tmp_path / CONFIG).read_text(encoding="utf-8")
    config = yaml.safe_load(text)

    template = "outputs/{date}/{dataset}/{model}.tsv"
    assert config["datasets"] == {
        "news": {"judgments": "{dataset}/qrels.tsv"},
        "stars": {"ratings": "{dataset}/held-out.csv"},
        "web": {"judgments": "{dataset}/qrels.tsv", "queries": "{dataset}/queries.tsv"},
    }
    assert {model: entry["outputs"] for model, entry in config["models"].items()} == {
        "bm25": {"news": template, "web": template},
        "knn": {"stars": "outputs/{date}/{dataset}/{model}.csv"},
        "dense": {"web": template},
    }
    assert {name: lines[0] for name, lines in config["suites"].items()} == {"rankings": "ndcg@10", "ratings": "rmse"}
    assert "# stray.tsv: not in a folder of a dataset" in text
    assert outcome.code == 0
    assert rankledger.validate(tmp_path / CONFIG, date="2026-11-24").failures == ()


def test_many_files_are_few_lines(run_cli, tmp_path):
    write(tmp_path / "qrels.tsv", TABLE, JUDGED)
    for number in range(20):
        write(tmp_path / f"runs/m{number}.tsv", OUTPUT, RANKED)
        write(tmp_path / f"notes/{number}.csv", ("who", "what"), [("a", "b")])
        (tmp_path / f"{number}.md").write_text("# Notes\n\nMade by hand.\n")
    lines = run_cli("init", tmp_path).out.splitlines()

    assert len(lines) <= 20
    assert any(line.startswith("runs/{model}.tsv") and "20 models" in line for line in lines)
    assert any(line.startswith("no data: 0.md, ") and line.endswith(" and 15 more") for line in lines)
    (tmp_path / "qrels.tsv").unlink()
    assert len(run_cli("init", tmp_path, "--force").err.splitlines()) <= 20
