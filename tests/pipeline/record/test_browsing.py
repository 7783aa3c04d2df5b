"""Many records looked through: what is read of them, and where."""

import json
from collections.abc import Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.record.folder import RecordEntry, new_evaluation_id, read_record, scan_records
from rankledger.pipeline.record.store import Records, Remote
from rankledger.pipeline.record.tables import lines_in
from rankledger.pipeline.support.errors import InputError
from tests.support.manifests import description, write_tables

NIGHT = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
VERDICT = Verdict("floor", "web", "bm25", "ap", "all", "pass", "pass", "fine")


def estimate(measure: str, model: str = "bm25", slice: str = "all") -> Estimate:
    return Estimate("web", model, slice, measure, 0.1 + 0.2, None, 1 / 3, 0.02, 300, 0, 1)


LINES = [
    *(
        estimate(measure, model)
        for model in ("bm25", 'a "dense", one\nor two')
        for measure in ("ap", "avg_rp(cutoffs=[5,10])")
    ),
    estimate("ap", slice="market=de"),
]


def written(folder: Path, name: str = "nightly", lines: Sequence[Estimate] = LINES, **manifest_changes: Any) -> Path:
    query_ids = np.array(["q1"], dtype=object)
    nothing = np.empty((0, 1))
    scores = Scores("web", "bm25", query_ids, (), nothing, nothing, {}, np.zeros(1, dtype=bool))
    said = {"created": NIGHT.isoformat()} | manifest_changes
    manifest = description(name, evaluation_id=new_evaluation_id(name, NIGHT), lines=lines, **said)
    return write_tables(folder, manifest, {"estimates": tuple(lines), "verdicts": (VERDICT,)}, [scores]).path


@pytest.mark.parametrize("measure", ["ap", "avg_rp(cutoffs=[5,10])", "rr"])
@pytest.mark.parametrize("lines", [LINES, LINES[:1] + LINES[-1:]], ids=["quoted", "plain"])
def test_the_lines_of_a_measure_are_those_of_the_summary(tmp_path, measure, lines):
    summary = written(tmp_path, lines=lines) / "summary.csv"
    found = lines_in(summary.read_bytes(), Estimate, summary, measure=measure)

    assert found == tuple(line for line in read_record(summary.parent).estimates if line.measure == measure)
    assert [astuple(line) for line in found] == [astuple(line) for line in lines if line.measure == measure]


def test_an_entry_says_what_the_record_holds(tmp_path):
    record = written(tmp_path, created="2026-11-21T01:30:00+02:00")
    entry = RecordEntry(Records(tmp_path), record.name)

    assert entry.manifest == read_record(record).manifest
    assert entry.record.verdicts == (VERDICT,)
    assert entry.size == sum(file.stat().st_size for file in record.iterdir())
    assert entry.manifest.night == "2026-11-20"
    assert RecordEntry(Records(tmp_path), written(tmp_path, date="2026-11-01").name).manifest.night == "2026-11-01"


def test_elsewhere_only_the_small_files_are_read(tmp_path, monkeypatch):
    far = [written(tmp_path / "far") for _ in range(40)]
    near = Records(tmp_path / "near", Remote(f"file://{tmp_path / 'far'}"))
    read, asked = Remote.read, []

    def heard(self: Remote, name: str) -> bytes | None:
        asked.append(name)
        return read(self, name)

    monkeypatch.setattr(Remote, "read", heard)
    found = scan_records(
        near, "nightly", lambda entry: (entry.manifest.evaluation_id, len(entry.lines("ap")), entry.record.verdicts)
    )

    assert found.found == tuple((path.name, 3, (VERDICT,)) for path in sorted(far, key=lambda path: path.name)[::-1])
    assert {name.partition("/")[2] for name in asked} == {"manifest.json", "summary.csv", "gates.json"}
    assert not near.folder.exists()


def test_what_is_here_is_not_read_elsewhere(tmp_path, monkeypatch):
    record = written(tmp_path / "near")
    near = Records(tmp_path / "near", Remote(f"file://{tmp_path / 'far'}"))
    monkeypatch.delattr(Remote, "read")

    assert scan_records(near, None, lambda entry: entry.record.verdicts).found == ((VERDICT,),)
    assert record.is_dir()


def test_what_is_no_record_is_passed_over(tmp_path):
    whole, cut, later, poor = (written(tmp_path) for _ in range(4))
    (cut / "manifest.json").write_text('{"name"', encoding="utf-8")
    (later / "manifest.json").write_text(json.dumps({"schema_version": 99}), encoding="utf-8")
    (poor / "manifest.json").write_text("{}", encoding="utf-8")
    found = scan_records(Records(tmp_path), None, lambda entry: entry.manifest.name and entry.evaluation_id)

    assert found.found == (whole.name,)
    assert sorted(found.unreadable) == sorted(path.name for path in (cut, later, poor))


def test_a_record_without_summary_is_not_one_without_figures(tmp_path):
    whole, poor = written(tmp_path), written(tmp_path)
    (poor / "summary.csv").unlink()
    found = scan_records(Records(tmp_path), None, lambda entry: (entry.evaluation_id, len(entry.lines("ap"))))

    assert found.found == ((whole.name, 3),)
    assert [*found.unreadable] == [poor.name]


def test_a_place_that_is_away_is_an_error(tmp_path, monkeypatch):
    def away(self: Remote, name: str) -> bytes | None:
        raise OSError(None, "is away", self.url)

    written(tmp_path / "far")
    monkeypatch.setattr(Remote, "read", away)
    with pytest.raises(OSError, match="is away"):
        scan_records(
            Records(tmp_path / "near", Remote(f"file://{tmp_path / 'far'}")), None, lambda entry: entry.manifest
        )


def test_a_similar_name_is_suggested(tmp_path):
    for name in ("nightly", "nightly", "weekly-de-2"):
        written(tmp_path, name)

    with pytest.raises(InputError, match="no evaluation is called 'weekly-de2'; did you mean 'weekly-de-2'"):
        scan_records(Records(tmp_path), "weekly-de2", lambda entry: entry.manifest.night)


@pytest.mark.parametrize("damage", ["{", "null", "[]", None], ids=["cut", "null", "list", "folder"])
def test_where_no_record_of_a_name_can_be_read_that_is_said(tmp_path, damage):
    broken, whole = written(tmp_path), written(tmp_path, "weekly")
    (broken / "manifest.json").unlink()
    if damage is None:
        (broken / "manifest.json").mkdir()
    else:
        (broken / "manifest.json").write_text(damage, encoding="utf-8")

    with pytest.raises(InputError, match=f"no record of 'nightly' can be read, such as {broken.name}"):
        scan_records(Records(tmp_path), "nightly", lambda entry: entry.manifest.night)
    found = scan_records(Records(tmp_path), None, lambda entry: entry.manifest.name)
    assert found.found == ("weekly",)
    assert whole.is_dir()
    assert found.remarks[0].startswith(f"{broken.name}: cannot be read as a record, left out: ")
