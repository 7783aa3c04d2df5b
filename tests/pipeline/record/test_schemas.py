"""A record of every released schema, kept as it was written, is read, shown, compared and reproduced by this version.

`schemas/<version>/` holds a tiny config with its data and the record that the version of that schema wrote of it:

    FOLDER=web rankledger evaluate config.yaml
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import pipeline
from metrics.measure import Measure
from pipeline.errors import InputError
from pipeline.record import SCHEMA_VERSION, read_record, read_scores
from pipeline.record.checking import damages, strays
from pipeline.report.text import leaderboard
from pipeline.workflow.compare import compare
from pipeline.workflow.reporting import report
from pipeline.workflow.reproducing import reproduce
from pipeline.workflow.showing import evaluation_of

SCHEMAS = Path(__file__).parent / "schemas"


@pytest.fixture(params=sorted(path.name for path in SCHEMAS.iterdir()))
def path(request, tmp_path, monkeypatch) -> Path:
    """The record of a schema, in a copy of its folder, which is the working directory."""
    folder = shutil.copytree(SCHEMAS / request.param, tmp_path / request.param)
    monkeypatch.chdir(folder)
    (record,) = Path("runs/records").glob("*/")
    return record


def test_every_schema_is_kept():
    """Whoever raises the version puts a record of it here."""
    assert {path.name for path in SCHEMAS.iterdir()} == {str(version) for version in range(1, SCHEMA_VERSION + 1)}


def test_it_is_of_its_schema_and_whole(path):
    """The manifest says the version; no file was touched since it was written."""
    record = read_record(path)

    assert str(record.manifest["schema_version"]) == Path.cwd().name
    assert [*damages(record), *strays(record)] == []


def test_it_is_read(path):
    """Figures, scores, failures, and the conventions as a mapping whatever the version called them."""
    record = read_record(path)

    assert {line.model for line in record.summary} == {"bm25", "dense", "knn"}
    assert record.manifest["conventions"]["ties"] == "doc_id_desc"
    assert [failure["model"] for failure in record.manifest["failures"]] == ["late"]
    found = read_scores(path, "web", "bm25", [Measure.parse("ap")])
    assert found is not None
    estimate = next(line.estimate for line in record.summary if (line.model, line.measure) == ("bm25", "ap"))
    assert found.values.mean() == pytest.approx(estimate, abs=1e-12)


def test_it_is_shown(path):
    """The leaderboard has its models and figures."""
    text = leaderboard(evaluation_of(read_record(path)), width=120, colour=False)

    for word in ("bm25", "dense", "knn", "0.5813", "0.5401"):
        assert word in text


@pytest.mark.parametrize("form", ["html", "markdown", "latex", "csv"])
def test_it_is_reported(path, form):
    """In every form, with the mean reciprocal rank of bm25."""
    assert re.search(r"\b0\.58125?\b|\b0\.5813\b", report(str(path), form=form))


def test_it_is_reproduced(path):
    """This version gives every figure that it gave, to 1e-12; the variable of its paths is the record's."""
    found = reproduce(str(path))

    assert found.verdict in ("identical", "equal")
    assert found.definitions == ()


def test_it_is_compared_with_tonight(path, monkeypatch):
    """An evaluation of the same config by this version: same judgments and definitions, and nothing moved."""
    monkeypatch.setenv("FOLDER", "web")
    tonight = pipeline.evaluate("config.yaml", tracking=False)

    movement = compare(path.name, tonight.evaluation_id)

    assert movement.unlike == ()
    assert {line.difference for line in movement.comparisons} == {0.0}


def test_a_later_schema_is_refused(path):
    """With what to install; not with a key that is not there."""
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    manifest["schema_version"] = SCHEMA_VERSION + 1
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    with pytest.raises(InputError, match=rf"has schema {SCHEMA_VERSION + 1}, and this rankledger reads up to"):
        read_record(path)
