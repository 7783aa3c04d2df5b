"""Which record a reference means: bad nights never become a baseline, and what is not found is reported."""

import errno
import json
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from rankledger.pipeline.config.gates import Reference
from rankledger.pipeline.gates.verdicts import Outcome, SpentLooks, Verdict
from rankledger.pipeline.history import lookup as lookup_module
from rankledger.pipeline.history.lookup import (
    ACCEPTED,
    Acceptance,
    RecordHistory,
    Resolved,
    failures_in_a_row,
    read_accepted,
    resolve,
    spent_looks,
    write_accepted,
)
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.manifest import RecordedBaseline
from rankledger.pipeline.record.store import Records, Remote, digest_of
from rankledger.pipeline.record.tables import damaged_files
from rankledger.pipeline.support.errors import InputError
from tests.support.manifests import description, write_tables

FIRST = datetime(2025, 11, 18, 2, 0, tzinfo=UTC)
NOW = FIRST + timedelta(days=10)
BAD: tuple[Outcome, ...] = ("fail", "inconclusive", "not comparable", "not evaluated")


def verdict(outcome: Outcome = "pass", model: str = "dense", gate: str = "no-drop") -> Verdict:
    return Verdict(gate, "web", model, "ap", "all", outcome, "fail" if outcome == "fail" else "warn", "so it is")


def night(
    folder: Path,
    day: int,
    *verdicts: Verdict,
    name: str = "nightly",
    models: tuple[str, ...] = ("bm25", "dense"),
    failed: tuple[str, ...] = (),
    seconds: float = 0,
    mark: int = 0,
    references: Mapping[str, Any] = MappingProxyType({}),
    looks: tuple[SpentLooks, ...] | None = (),
    date: str | None = None,
) -> Evaluation:
    created = FIRST + timedelta(days=day, seconds=seconds)
    evaluation_id = f"{created:%Y%m%dT%H%M%SZ}-{name}-{day:06x}{mark:02x}"
    said = {"evaluation_id": evaluation_id, "created": created.isoformat(), "baselines": dict(references), "date": date}
    tables = {"verdicts": verdicts, "looks": looks} if verdicts else {}
    return write_tables(folder, description(name, models=models, failed=failed, **said), {"estimates": (), **tables})


def nothing(*, first: bool) -> RecordedBaseline:
    return RecordedBaseline(reference="self@last_passed", record=None, reason="there is none", first=first)


def found(folder: Path, text: str, *, model: str = "dense", was: str | None = None, before: datetime = NOW) -> Resolved:
    record, _, other = text.partition("#")
    reference = Reference(text, record.removeprefix("self@"), other or None)
    return resolve(
        reference, RecordHistory(Records(folder), "nightly", before), folder / ACCEPTED, model=model, was=was
    )


def last_passed(folder: Path, model: str = "dense", **options: str) -> Path | None:
    record = found(folder, "last_passed", model=model, **options).record
    return record and record.path


# ---- last_passed


def test_last_passed_is_the_last_earlier_record(tmp_path):
    night(tmp_path, 1, verdict())
    second = night(tmp_path, 2, verdict(), seconds=0.9, mark=1)
    night(tmp_path, 2, verdict(), seconds=0.1, mark=2)
    night(tmp_path, 11, verdict())  # after the current night

    assert last_passed(tmp_path) == second.path


def test_a_night_that_is_evaluated_again_looks_before_its_date(tmp_path):
    first, *_ = [night(tmp_path, day, verdict(), date=f"2025-11-0{day}") for day in (1, 2, 3)]
    again = RecordHistory(Records(tmp_path), "nightly", NOW, "2025-11-02")

    found = resolve(Reference("self@last_passed", "last_passed", None), again, tmp_path / ACCEPTED, model="dense")

    assert found.record is not None
    assert found.record.path == first.path


def test_an_evaluation_is_not_its_own_baseline(tmp_path):
    only = night(tmp_path, 1, verdict())

    assert found(tmp_path, "last_passed", before=FIRST + timedelta(days=1)).record is None
    assert found(tmp_path, "last_passed", before=FIRST + timedelta(days=1, seconds=1)).record == only


@pytest.mark.parametrize(
    ("second", "changes", "bm25"),
    [
        *(((verdict(), verdict(outcome, gate="floor")), {}, 2) for outcome in BAD),
        ((verdict("fail"), verdict(model="bm25")), {}, 2),
        ((), {}, 1),  # without gates it has passed nothing
        ((verdict(),), {"failed": ("dense",)}, 2),
        ((verdict(model="bm25"),), {"models": ("bm25",)}, 2),
    ],
)
def test_a_bad_night_never_becomes_the_baseline(tmp_path, second, changes, bm25):
    """A night with anything but passes of a model, even waived or only warnings, is no baseline of that model."""
    nights = [night(tmp_path, 1, verdict()), night(tmp_path, 2, *second, **changes)]

    assert last_passed(tmp_path, "dense") == nights[0].path
    assert last_passed(tmp_path, "bm25") == nights[bm25 - 1].path


def test_the_first_night_becomes_the_baseline_of_the_second(tmp_path):
    """A gate without a baseline yet does not count, or there would never be a baseline; for one gate."""
    first = night(tmp_path, 1, verdict("not comparable"), references={"no-drop": {"dense": nothing(first=True)}})

    assert last_passed(tmp_path) == first.path
    others = (verdict("not comparable"), verdict("not comparable", gate="other"))
    night(
        tmp_path,
        2,
        *others,
        references={"no-drop": {"dense": nothing(first=True)}, "other": {"dense": nothing(first=False)}},
    )
    assert last_passed(tmp_path) == first.path


def test_a_bad_night_that_was_accepted_is_a_baseline(tmp_path):
    night(tmp_path, 1, verdict())
    second = night(tmp_path, 2, verdict("not comparable"), verdict("fail", model="bm25"))
    accept(tmp_path, second)

    assert last_passed(tmp_path) == second.path
    assert last_passed(tmp_path, "bm25") != second.path


def test_a_renamed_model_is_found_by_its_old_name(tmp_path):
    night(tmp_path, 1, verdict(model="old"), models=("old",))

    assert found(tmp_path, "last_passed", was="old").model == "old"
    assert last_passed(tmp_path) is None

    night(tmp_path, 2, verdict(), models=("old", "dense"))
    assert found(tmp_path, "last_passed", was="old").model == "dense"


def test_an_old_name_cannot_hide_a_bad_night(tmp_path):
    first = night(tmp_path, 1, verdict(model="old"), models=("old",))
    night(tmp_path, 2, verdict("fail", model="old"), models=("old",))

    assert last_passed(tmp_path, was="old") == first.path


def test_folders_that_are_no_records_are_skipped(tmp_path):
    good = night(tmp_path, 1, verdict())
    (night(tmp_path, 2, verdict()).path / "manifest.json").write_text('{"name": "nigh', encoding="utf-8")
    (night(tmp_path, 3, verdict()).path / "manifest.json").unlink()
    (night(tmp_path, 4, verdict()).path / "scores.parquet").write_bytes(b"PAR1")
    night(tmp_path, 5, verdict(), name="other-nightly")
    newer = night(tmp_path, 6, verdict()).path / "manifest.json"
    newer.write_text(json.dumps(json.loads(newer.read_text("utf-8")) | {"schema_version": 99}), encoding="utf-8")
    (night(tmp_path, 7, verdict()).path / "gates.json").write_text("[]", encoding="utf-8")
    (tmp_path / "20251126T020000Z-nightly-00000000").write_text("a file", encoding="utf-8")

    assert last_passed(tmp_path) == good.path


def test_the_first_night_has_no_baseline(tmp_path):
    nothing = found(tmp_path / "none", "last_passed")

    assert nothing == Resolved(None, "dense", "there is no earlier evaluation of 'nightly' with 'dense'", first=True)


def test_if_none_passed_their_number_and_the_last_are_named(tmp_path):
    failing = night(tmp_path, 1, verdict("fail"))
    name = failing.path.name
    why = f"`rankledger show {name}` says why, and `rankledger accept {name} --failed` takes it for a baseline anyway"
    reason = f"'dense' did not pass in the one evaluation of 'nightly'; {why}"
    assert found(tmp_path, "last_passed") == Resolved(None, "dense", reason, first=True)

    last = night(tmp_path, 2, failed=("dense",))
    night(tmp_path, 3, models=("bm25",))
    why = f"`rankledger show {last.path.name}` says why, and `rankledger accept {last.path.name} --failed` takes"
    reason = f"'dense' did not pass in any of 2 evaluations of 'nightly'; {why} it for a baseline anyway"
    assert found(tmp_path, "last_passed") == Resolved(None, "dense", reason, first=True)


# ---- by id and by path


def test_a_record_is_found_by_its_id_and_by_its_path(tmp_path):
    record = night(tmp_path, 1, name="other")

    assert found(tmp_path, record.path.name) == Resolved(record, "dense")
    assert found(tmp_path, f"{record.path.name}#bm25") == Resolved(record, "bm25")
    assert found(tmp_path / "else", str(record.path)) == Resolved(record, "dense")


def test_a_missing_record_is_reported(tmp_path):
    nothing = found(tmp_path, "20251120T020000Z-nightly-1f0c9a2b")

    assert (nothing.record, nothing.first) == (None, False)
    assert nothing.reason == (
        f"20251120T020000Z-nightly-1f0c9a2b: record not found, neither at that path nor in {tmp_path}"
    )


def test_a_record_without_the_model_is_reported(tmp_path):
    record = night(tmp_path, 1)
    nothing = found(tmp_path, record.path.name, model="new", was="old")

    assert nothing.reason == f"{record.path}: has no model 'new' or 'old'; it has bm25, dense"


def test_a_record_of_another_schema_is_reported(tmp_path):
    """What another version wrote is not taken for what this one would have written."""
    record = night(tmp_path, 1)
    manifest = json.loads((record.path / "manifest.json").read_bytes()) | {"schema_version": 99}
    (record.path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    reason = "the record has schema 99, and this rankledger reads 4; install the version that wrote it"
    assert reason in found(tmp_path, record.path.name).reason


def test_a_changed_record_is_refused(tmp_path):
    record = night(tmp_path, 1)
    (record.path / "summary.csv").write_bytes((record.path / "summary.csv").read_bytes() + b"\n")

    assert found(tmp_path, record.path.name).record is None
    assert "has changed since it was written" in found(tmp_path, record.path.name).reason
    assert next(damaged_files(record), None) is not None


def test_a_damaged_record_is_no_baseline_and_makes_no_first_night(tmp_path):
    older, last = night(tmp_path, 1, verdict()), night(tmp_path, 2, verdict())
    (last.path / "config.yaml").write_text("changed", encoding="utf-8")
    assert last_passed(tmp_path) == older.path

    shutil.rmtree(older.path)
    none = found(tmp_path, "last_passed")

    assert (none.record, none.first) == (None, False)
    assert f"{last.path / 'config.yaml'}: has changed since it was written" in none.reason
    assert none.reason.endswith("; restore the record")


@pytest.mark.parametrize("word", ["last", "last_passed"])
def test_later_damaged_records_are_named(tmp_path, word):
    damaged, good, newer, after = (night(tmp_path, day, verdict()) for day in (1, 2, 3, 11))
    for record in (damaged, newer, after):
        (record.path / "manifest.json").write_bytes(b"{}")
    resolved = found(tmp_path, word)

    assert resolved.record is not None
    assert resolved.record.path == good.path
    (reason,) = resolved.lost
    assert reason.startswith(f"{newer.path / 'manifest.json'}: ")


def test_a_record_damaged_in_the_remote_store_is_skipped(tmp_path):
    older, last = night(tmp_path / "far", 1, verdict("fail")), night(tmp_path / "far", 2, verdict())
    (last.path / "config.yaml").unlink()
    records = Records(tmp_path / "near", Remote(f"file://{tmp_path}/far"))
    history = RecordHistory(records, "nightly", NOW)

    assert [record.path.name for record in history] == [older.path.name]
    assert list(failures_in_a_row(history).values()) == [1]
    bm25, dense = (
        resolve(Reference("last_passed", "last_passed", None), history, tmp_path / ACCEPTED, model=model)
        for model in ("bm25", "dense")
    )

    assert bm25.record is not None  # of which nothing was said
    assert bm25.record.path.name == older.path.name
    assert (dense.record, dense.first) == (None, False)
    assert f"{last.path.name}/config.yaml differs from what was written; restore it" in dense.reason


# ---- accepted


def accept(folder: Path, record: Evaluation, model: str = "dense") -> None:
    entry = Acceptance(record.path.name, digest_of(record.path), "it is good", "2025-11-20", "ann")
    write_accepted(folder / ACCEPTED, {"nightly": {model: entry}})


def test_accepted_is_what_the_file_says(tmp_path):
    first = night(tmp_path, 1)
    night(tmp_path, 2)
    accept(tmp_path, first)

    assert found(tmp_path, "accepted") == Resolved(first, "dense")
    assert found(tmp_path, "accepted#dense", model="new") == Resolved(first, "dense")
    assert found(tmp_path, "accepted", model="new", was="dense") == Resolved(first, "dense")


def test_if_nothing_is_accepted_the_command_is_named(tmp_path):
    """Without a file, and without an entry for the model, the reason says what to run: the
    same for all models if none is accepted, so that one command does.
    """
    expected = f"{tmp_path / ACCEPTED}: no record of 'nightly' is accepted for 'dense'"

    advice = "run `rankledger accept last --name nightly --reason TEXT`"
    assert found(tmp_path, "accepted").reason == f"{expected}; {advice}"
    accept(tmp_path, night(tmp_path, 1), "bm25")
    advice = "run `rankledger accept last --name nightly --model dense --reason TEXT`"
    assert found(tmp_path, "accepted").reason == f"{expected}; {advice}"
    assert not found(tmp_path, "accepted").first


def test_a_missing_accepted_record_is_reported(tmp_path):
    record = night(tmp_path, 1)
    accept(tmp_path, record)
    shutil.rmtree(record.path)

    reason = f"the accepted record {record.path.name} is not in {tmp_path}; restore it there"
    assert found(tmp_path, "accepted") == Resolved(None, "dense", reason)


@pytest.mark.parametrize("file", ["manifest.json", "scores.parquet"])
def test_an_accepted_record_that_was_changed_is_refused(tmp_path, file):
    record = night(tmp_path, 1)
    accept(tmp_path, record)
    (record.path / file).write_bytes((record.path / file).read_bytes() + b" ")

    nothing = found(tmp_path, "accepted")
    assert nothing.record is None
    assert str(record.path / file) in nothing.reason


def test_what_was_accepted_is_read_as_it_was_written(tmp_path):
    """Any text in the reason; evaluations and models in their order; nothing else is left in the folder."""
    entry = Acceptance(
        "20251120T020000Z-nightly-1f0c9a2b", "ab" * 32, 'because: "new" # ü\nand more', "2025-11-20", "Ann Ü <ann@x>"
    )
    entries = {"nightly": {"dense": entry, "bm25: 2": entry}, "a-b": {"x": entry}}
    write_accepted(tmp_path / ACCEPTED, entries)

    assert read_accepted(tmp_path / ACCEPTED) == entries
    text = (tmp_path / ACCEPTED).read_text(encoding="utf-8")
    assert text.startswith("# The baselines of gates")
    assert text.index("a-b:") < text.index("nightly:") < text.index("bm25: 2") < text.index("dense:")
    assert [path.name for path in tmp_path.iterdir()] == [ACCEPTED]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nightly: [", "is not YAML"),
        ("- nightly", "found list"),
        ("nightly: 3", "nightly: found '3'"),
        ("nightly: {dense: {record: id}}", "nightly.dense: has no 'manifest_sha256'"),
        ("nightly: {dense: id}", "nightly.dense: has no 'record'"),
        ("x: !!python/object/apply:os.system [echo]", "found"),
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path, text, message):
    (tmp_path / ACCEPTED).write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match="restore it") as error:
        read_accepted(tmp_path / ACCEPTED)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# ---- a place that is away


class Away(Remote):
    def folders(self) -> list[str]:
        raise OSError(errno.EIO, "away", self.url)


def test_an_unreachable_place_has_no_first_night(tmp_path):
    """Another model gets the same answer: an empty history would mean that there was no night yet."""
    history = RecordHistory(Records(tmp_path, Away(f"file://{tmp_path}/elsewhere")), "nightly", NOW)
    reference = Reference("last_passed", "last_passed", None)

    for model in ("bm25", "dense"):
        with pytest.raises(OSError, match="away"):
            resolve(reference, history, tmp_path / ACCEPTED, model=model)
    with pytest.raises(OSError, match="away"):
        failures_in_a_row(history)


def test_a_record_is_read_and_checked_once_for_all_its_models(tmp_path, monkeypatch):
    record = night(tmp_path, 1, verdict())
    read = []
    monkeypatch.setattr(lookup_module, "read_record", lambda path: read.append(path) or read_record(path))
    monkeypatch.setattr(lookup_module, "damaged_files", lambda record: read.append("checked") or iter(()))
    history = RecordHistory(Records(tmp_path), "nightly", NOW)
    for model in ["bm25"] * 3:
        assert resolve(Reference("x", str(record.path), None), history, tmp_path / ACCEPTED, model=model).record

    assert read == [record.path, "checked"]


# ---- failures in a row


def test_failures_are_counted_back_to_the_last_night_that_was_no_failure(tmp_path):
    night(tmp_path, 1, verdict("fail"), verdict("fail", gate="floor"))
    night(tmp_path, 2, verdict("fail"), verdict("inconclusive", gate="floor"))
    night(tmp_path, 3, verdict("fail"), verdict("fail", gate="floor"))
    night(tmp_path, 4, verdict("fail"), verdict("fail", gate="floor"), verdict(gate="cost"))

    counts = failures_in_a_row(RecordHistory(Records(tmp_path), "nightly", NOW))
    assert {line[0]: count for line, count in counts.items()} == {"no-drop": 4, "floor": 2}


def test_a_night_without_the_line_ends_the_row(tmp_path):
    night(tmp_path, 1, verdict("fail"))
    night(tmp_path, 2)
    night(tmp_path, 3, verdict("fail"))
    assert list(failures_in_a_row(RecordHistory(Records(tmp_path), "nightly", NOW)).values()) == [1]
    night(tmp_path, 4)
    assert failures_in_a_row(RecordHistory(Records(tmp_path), "nightly", NOW)) == {}


def test_a_damaged_night_does_not_end_a_row_of_failures(tmp_path):
    night(tmp_path, 1, verdict("fail"))
    (night(tmp_path, 2, verdict()).path / "gates.json").write_text("[]", encoding="utf-8")
    night(tmp_path, 3, verdict("fail"))

    assert list(failures_in_a_row(RecordHistory(Records(tmp_path), "nightly", NOW)).values()) == [2]


@pytest.mark.parametrize(("tonight", "nights"), [("2025-11-04", 2), ("2025-11-03", 1), ("2025-11-02", 0), (None, 2)])
def test_a_repeated_evaluation_of_one_night_counts_once(tmp_path, tonight, nights):
    for place, day in enumerate([2, 2, 3, 3, 3]):
        night(tmp_path, place, verdict("fail"), date=f"2025-11-0{day}")
    history = RecordHistory(Records(tmp_path), "nightly", NOW, tonight)

    assert list(failures_in_a_row(history).values()) == [nights] * bool(nights)


# ---- looks


def looks(**outputs: str) -> tuple[SpentLooks, ...]:
    return (SpentLooks("no-drop", "web", "dense", outputs),)


def known(folder: Path) -> Any:
    return spent_looks(RecordHistory(Records(folder), "nightly", NOW))


def test_the_last_record_has_all_looks(tmp_path):
    """What is written is read again, whatever became of the records before; one without gates is passed over."""
    night(tmp_path, 1, verdict(), looks=looks(a="2025-11-19"))
    night(tmp_path, 2, verdict(), looks=looks(a="2025-11-19", b="2025-11-20"))
    night(tmp_path, 3)

    assert known(tmp_path) == {("no-drop", "web", "dense"): {"a": "2025-11-19", "b": "2025-11-20"}}


def test_without_a_record_no_look_is_spent(tmp_path):
    assert known(tmp_path) == {}
    night(tmp_path, 1)
    assert known(tmp_path) == {}


def test_a_record_without_looks_is_skipped(tmp_path):
    night(tmp_path, 1, verdict(), looks=looks(a="2025-11-19"))
    unknown = night(tmp_path, 2, verdict(), looks=None)

    assert known(tmp_path) == {("no-drop", "web", "dense"): {"a": "2025-11-19"}}
    shutil.rmtree(next(path for path in tmp_path.iterdir() if path != unknown.path))
    assert known(tmp_path) == f"{unknown.path.name} does not know it either"


def test_a_damaged_record_counts_as_a_look(tmp_path):
    night(tmp_path, 1, verdict(), looks=looks(a="2025-11-19"))
    second = night(tmp_path, 2, verdict(), looks=looks(a="2025-11-19", b="2025-11-20"))
    (second.path / "gates.json").write_text("{}", encoding="utf-8")

    (found,) = known(tmp_path).values()
    assert found == {"a": "2025-11-19", second.path.name: "2025-11-20"}
    shutil.rmtree(tmp_path / min(path.name for path in tmp_path.iterdir()))
    assert "gates.json" in known(tmp_path)  # why nothing is known
