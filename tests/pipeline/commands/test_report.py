"""Reports of finished records: which evaluations, measures and nights they hold, and that they are always the same."""

import csv
import io
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

import rankledger
from rankledger.pipeline.commands import report as reporting
from rankledger.pipeline.commands.report import report
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.support.errors import InputError
from tests.support.generated_data import search_collection, write_config
from tests.support.page_reader import read_page

WEB = search_collection(50, n_queries=40, models=("bm25", "dense"))
NEWS = search_collection(51, n_queries=30, models=("bm25", "dense"))
FORMS = ("html", "markdown", "latex", "csv")


@pytest.fixture
def config(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    sections = {"comparison": {"baseline": "bm25"}, "lead": "ap", "report": False}
    return write_config(tmp_path, {"web": WEB, "news": NEWS}, {"search": ["ndcg@5,10", "ap", "rr"]}, **sections)


def evaluated(config: Path, date: str = "2026-11-20", overrides: tuple[str, ...] = ()) -> rankledger.Evaluation:
    return rankledger.evaluate_config(config.name, date=date, tracking=False, overrides=overrides)


@pytest.fixture
def shown(monkeypatch) -> list[Page]:
    found: list[Page] = []

    def html(page):
        found[:] = [page]
        return "<!doctype html>"

    monkeypatch.setattr(reporting, "html", html)
    return found


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("form", FORMS)
def test_the_same_record_gives_the_same_bytes(config, form):
    record = evaluated(config).record
    copied = Path("elsewhere") / record.name
    shutil.copytree(record, copied)

    text = report(record.name, form=form)
    assert report(record.name, form=form) == text
    assert report(str(copied), form=form) == text
    assert report(record.name, record.name, form=form) == text  # named twice, shown once


def test_a_page_made_later_is_that_of_the_record(config):
    config.write_text(config.read_text(encoding="utf-8").replace("report: false", "report: true"), encoding="utf-8")
    record = evaluated(config).record
    page = (record / "report.html").read_text(encoding="utf-8")
    (record / "report.html").unlink()
    assert report(record.name) == page


def test_the_table_of_figures_is_the_summary(config):
    records = [evaluated(config, date).record for date in ("2026-11-19", "2026-11-20")]
    rows = read(report(records[1].name, str(records[0]), form="csv"))
    expected = [
        {"evaluation_id": record.name, "date": date, **row}
        for record, date in ((records[1], "2026-11-20"), (records[0], "2026-11-19"))
        for row in read((record / "summary.csv").read_text(encoding="utf-8"))
    ]

    assert rows == expected


def test_a_word_is_of_the_only_evaluation(config):
    evaluated(config, "2026-11-19")
    last = evaluated(config, overrides=("gates=[{name: complete, max_missing: 100%}]",)).evaluation_id

    assert {row["evaluation_id"] for row in read(report("last_passed", name="generated", form="csv"))} == {last}
    assert report("last_passed#dense", name="generated", form="csv") == report(last, form="csv")
    assert report(form="csv") == report("last_passed", form="csv") == report(last, form="csv")
    with pytest.raises(InputError, match="has no model 'dens'; it has bm25, dense; did you mean 'dense'"):
        report(f"{last}#dens", form="csv")
    with pytest.raises(InputError, match=r"\./nowhere: record not found"):
        report("./nowhere", form="csv")


def test_measures_are_shown_in_their_order(config, shown):
    record = evaluated(config).record
    report(record.name, measures=["rr", "ap"])
    (page,) = shown

    assert page.evaluation.leading == {"web": "rr", "news": "rr"}
    assert {line.measure for line in page.evaluation.estimates} == {"rr", "ap"}
    assert {line.measure for line in page.evaluation.comparison_lines} == {"rr", "ap"}
    assert {pair.measure for pair in page.pairs} == {"rr"}
    assert {query.measure for pair in page.pairs for query in pair.largest_changes} <= {"rr"}
    assert "Model & Rank & rr & ap \\\\" in report(record.name, measures=["rr", "ap"], form="latex")
    assert "Model & Rank & ndcg@5 & ndcg@10 & ap \\\\" in report(
        record.name, measures=["nDCG@5,10", "map"], form="latex"
    )
    with pytest.raises(
        InputError, match="has no measure 'ndgc@5'; available: ndcg@5, ndcg@10, ap, rr; did you mean 'ndcg@5'"
    ):
        report(record.name, measures=["ndgc@5"])


def test_several_evaluations_are_an_index_of_their_pages(config):
    config.write_text(config.read_text(encoding="utf-8").replace("report: false", "report: true"), encoding="utf-8")
    earlier, later = (evaluated(config, date) for date in ("2026-11-19", "2026-11-20"))
    config.write_text(config.read_text(encoding="utf-8").replace("report: true", "report: false"), encoding="utf-8")
    bare = evaluated(config, "2026-11-21")
    Path("out").mkdir()
    text = report(later.evaluation_id, earlier.evaluation_id, bare.evaluation_id, output="out/index.html")
    page = read_page(text)
    tables = {table.name: table for table in page.tables}
    links = re.findall(r'<a href="(\.\.[^"]*)">([^<]*)</a>', text)

    assert "<title>generated: 3 evaluations, Thu 19 Nov to Sat 21 Nov</title>" in text
    assert [row[0] for row in tables["evaluations"].groups[0].rows] == [
        later.evaluation_id,
        earlier.evaluation_id,
        bare.evaluation_id,
    ]
    assert [(Path("out", unquote(link)).resolve(), words) for link, words in links] == [
        ((later.record / "report.html").resolve(), later.evaluation_id),
        ((later.record / "changes.html").resolve(), "the night before"),
        ((earlier.record / "report.html").resolve(), earlier.evaluation_id),
    ]
    assert all(Path("out", unquote(link)).is_file() for link, _ in links)
    lines = read((bare.record / "summary.csv").read_text(encoding="utf-8"))
    figures = {(line["dataset"], line["model"]): float(line["estimate"]) for line in lines if line["measure"] == "ap"}
    for group in tables["models"].groups:
        for row in tables["models"].cells(group):
            expected = f"{figures[group.title.partition(':')[0], row['model']]:.4f}"
            assert (row["first"], row["last"], row["change"]) == (expected, expected, "0.0000")
    assert report(later.evaluation_id, earlier.evaluation_id, bare.evaluation_id, output="out/index.html") == text


def test_history_is_of_the_last_nights(config, shown):
    nights = ["2026-11-18", "2026-11-19", "2026-11-20"]
    ids = [evaluated(config, nights[0]).evaluation_id]
    report(ids[0])
    assert (shown[0].history, shown[0].remarks) == ((), ())
    ids += [evaluated(config, night).evaluation_id for night in nights[1:]]
    report(ids[2], last=2)
    (history,) = shown[0].history

    assert isinstance(history, rankledger.History)
    assert history.measure == "ap"
    assert [(series.dataset, series.model) for series in history.series] == [
        (dataset, model) for dataset in ("web", "news") for model in ("bm25", "dense")
    ]
    assert {tuple(night.date for night in series.nights) for series in history.series} == {tuple(nights[1:])}
    assert "### History by ap" in report(ids[0], form="markdown")


def test_a_history_that_cannot_be_read_is_a_remark(config, shown):
    record = evaluated(config).record
    moved = Path("attic") / record.name
    shutil.move(record, moved)
    report(str(moved))

    (remark,) = shown[0].remarks
    assert remark.startswith("no history by ap: ")
    assert "no evaluation is called 'generated'" in remark


def test_a_record_without_any_figure_says_why(config):
    document = yaml.safe_load(config.read_text(encoding="utf-8")) | {"report": True}
    for model in document["models"].values():
        model["outputs"] = "gone/{dataset}/{model}.txt"
    config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

    night = rankledger.nightly(config.name, date="2026-11-20", tracking=False)

    assert night.record is not None
    assert report("last", name="generated") == (night.record / "report.html").read_text(encoding="utf-8")
    text = report("last", name="generated", form="markdown")
    assert all(f"{failure.model} on {failure.dataset} was not evaluated: " in text for failure in night.failures)
    for asked in ({"form": "latex"}, {"form": "csv"}, {"measures": ["ap"]}):
        with pytest.raises(InputError, match="has no figures, as no model output was evaluated; name another record, "):
            report("last", name="generated", **asked)


def test_a_dataset_without_the_measures_is_left_out(config):
    document = yaml.safe_load(config.read_text(encoding="utf-8"))
    document["datasets"]["news"]["suites"] = ["other"]
    document["datasets"]["web"]["suites"] = ["search"]
    document["suites"]["other"] = ["p@5"]
    config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    text = report(evaluated(config).evaluation_id, form="markdown", measures=["p@5"])

    assert "### news" in text
    assert "web" not in text
