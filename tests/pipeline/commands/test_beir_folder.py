"""A folder of BEIR as a dataset: its judgments bring its queries, and its corpus where a measure needs it."""

import json
import shutil
from pathlib import Path

import pytest

import rankledger
from tests.support.data_files import refusal, write
from tests.support.nights import write_config
from tests.support.records import manifest_of

QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n"
RUN = "q1 Q0 d1 1 2 a\nq1 Q0 d3 2 1 a\nq2 Q0 d3 1 2 a\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    queries = [{"_id": f"q{n}", "text": "", "metadata": {}, "market": "de" if n == 1 else "fr"} for n in (1, 2, 3)]
    corpus = [{"_id": f"d{n}", "title": "", "text": "…", "metadata": {}} for n in range(1, 6)]
    for name, objects in (("queries.jsonl", queries), ("corpus.jsonl", corpus)):
        write(Path("nfcorpus") / name, "".join(json.dumps(each) + "\n" for each in objects))
    write(Path("nfcorpus/qrels/test.tsv"), QRELS)
    write(Path("run.txt"), RUN)
    return Path("nfcorpus")


def config(measures: list[str], **dataset: object) -> Path:
    datasets = {"nf": {"judgments": "nfcorpus", **dataset}}
    return write_config(datasets=datasets, models={"a": {"outputs": "run.txt"}}, suites={"s": measures})


def evaluated(measures: list[str], **dataset: object) -> rankledger.Evaluation:
    return rankledger.evaluate_config(config(measures, **dataset), runs_dir="runs", tracking=False)


def roles(evaluation: rankledger.Evaluation) -> dict[str, str]:
    inputs = manifest_of(evaluation.record)["datasets"]["nf"]["inputs"]
    return {role: Path(file["path"]).name for role, (file,) in inputs.items()}


def test_a_folder_brings_its_tables():
    evaluation = evaluated(["rr@10", "item_coverage@10"])
    figures = {line.measure: line.estimate for line in evaluation.estimates}
    assert figures["item_coverage@10"] == pytest.approx(2 / 5)
    assert figures["rr@10"] == pytest.approx(1 / 2)
    assert roles(evaluation) == {"judgments": "test.tsv", "queries": "queries.jsonl", "documents": "corpus.jsonl"}
    assert roles(evaluated(["rr@10"])) == {"judgments": "test.tsv", "queries": "queries.jsonl"}

    evaluation = evaluated(["rr@10"], slices=["market"])
    assert {line.slice for line in evaluation.estimates} == {"all", "market=de", "market=fr"}

    assert roles(evaluated(["rr@10"], judgments="nfcorpus/qrels/test.tsv")) == {"judgments": "test.tsv"}

    write(Path("corpus.tsv"), "doc_id\nd1\nd2\nd3\nd4\n")
    write(Path("queries.tsv"), "query_id\nq1\nq2\n")
    evaluation = evaluated(["item_coverage@10"], queries="queries.tsv", documents="corpus.tsv")
    assert roles(evaluation) == {"judgments": "test.tsv", "queries": "queries.tsv", "documents": "corpus.tsv"}
    assert evaluation.estimates[0].estimate == pytest.approx(2 / 4)


def test_a_folder_that_lacks_something_is_refused(folder):
    (folder / "corpus.jsonl").unlink()
    assert "the whole catalogue is needed; add `documents:`" in refusal(
        rankledger.validate, config(["item_coverage@10"])
    )
    write(folder / "queries.jsonl", '{"_id": "q1", "text": ""}\n')
    assert "it lacks 1, such as 'q2'" in refusal(rankledger.validate, config(["rr@10"]))


def test_a_record_knows_its_tables_without_the_folder(folder):
    record = evaluated(["item_coverage@10"]).record
    assert rankledger.reproduce(str(record), runs_dir="runs").verdict == "identical"
    Path("elsewhere").mkdir()
    shutil.move(folder, "elsewhere/nf")

    assert rankledger.load(record).estimates
    again = rankledger.reproduce(str(record), runs_dir="runs", inputs="elsewhere")
    assert (again.verdict, again.n_found) == ("identical", 3)
    with pytest.raises(rankledger.InputError, match=r"documents of nf: .*corpus\.jsonl"):
        rankledger.reproduce(str(record), runs_dir="runs")
