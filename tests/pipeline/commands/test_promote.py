"""From nights whose gates pass to the alias in a real registry; tests/system has a server, kills and faults."""

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import rankledger
from rankledger.pipeline.commands.upkeep import SyncResult, sync
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.receipts import read_promotions
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.support.errors import InputError, TrackingError
from tests.support.fake_clock import Clock
from tests.support.model_registry import Registry, write_nightly, write_output

FIRST, SECOND, THIRD = "2026-11-18", "2026-11-19", "2026-11-20"
TAG = "rankledger.promoted_by.champion"


@pytest.fixture(scope="module")
def _registered(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Path:
    store = tmp_path_factory.mktemp("registry") / "mlflow.db"
    shutil.copyfile(empty_store, store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{store}")  # the registry asks for the source of a version there
        Registry(f"sqlite:///{store}", "ranker").fill(3)
    return store


@pytest.fixture
def registry(_registered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(_registered, tmp_path / "mlflow.db")
    return Registry(f"sqlite:///{tmp_path}/mlflow.db", "ranker")


def night(registry: Registry, date: str, version: int = 1, *, tag: bool = True, **options: Any) -> Evaluation:
    sections, clock = options.pop("sections", {}), Clock()
    clock.time = datetime.fromisoformat(f"{options.pop('at', date)}T02:00:00+00:00")
    config = write_nightly(Path(), registry, version, **sections)
    write_output(Path(), date)
    if tag:
        rankledger.tag_outputs(config, model="dense", date=date)
    return rankledger.nightly(config, date=date, clock=clock, **options)


def settled(evaluation: Evaluation) -> list[str]:
    receipt = read_promotions(Records(Path("runs/records")), evaluation.evaluation_id)
    return [] if receipt is None else [own.outcome for own in receipt.promotions]


def test_a_night_whose_gates_pass_is_promoted_and_says_so(registry, run_cli, monkeypatch):
    evaluation = night(registry, FIRST, 2)

    assert registry.holder() == 2
    assert registry.tags(2)[TAG] == f"{FIRST} {evaluation.evaluation_id}"
    assert evaluation.promotions == ("promoted: models:/ranker/2 is @champion",)
    assert (evaluation.unpromoted, settled(evaluation)) == (None, ["promoted"])
    (series,) = rankledger.history("nightly").series
    assert [one.promoted for one in series.nights] == ["models:/ranker/2 @champion"]
    monkeypatch.setenv("COLUMNS", "200")
    assert "promoted models:/ranker/2 @champion" in run_cli("history", "--name", "nightly").out
    assert [*sync()] == []


def test_nothing_is_done_twice(registry):
    first = night(registry, FIRST)
    registry.move(2)  # whoever sets the alias again would move it back
    again = night(registry, FIRST)
    [*sync(), *sync(again=True)]
    assert (again.evaluation_id, again.promotions, again.unpromoted) == (first.evaluation_id, (), None)
    assert registry.holder() == 2


FLOOR = {"name": "floor", "models": ["dense"], "measure": "rr"}
WAIVED = {"until": "2026-12-31", "owner": "ann", "reason": "a new index"}


@pytest.mark.parametrize(
    ("gate", "effects"),
    [
        (FLOOR | {"at_least": 0.99}, {"fail"}),
        (FLOOR | {"at_least": 0.75, "on_inconclusive": "warn"}, {"warn"}),
        (FLOOR | {"at_least": 0.75, "on_inconclusive": "pass"}, {"pass"}),
        (FLOOR | {"at_least": 0.99, "waive": WAIVED}, {"warn"}),
    ],
)
def test_what_does_not_pass_is_not_promoted(registry, gate, effects):
    """The model's rr is 0.75: failed, undecided but tolerated, or waived."""
    evaluation = night(registry, FIRST, sections={"gates": [gate]})
    assert {verdict.effect for verdict in evaluation.verdicts} == effects
    assert (registry.holder(), evaluation.promotions, evaluation.unpromoted) == (None, (), None)
    assert [*sync()] == []


def test_a_gate_of_another_model_stops_the_release_of_all(registry):
    config = write_nightly(Path(), registry)
    write_output(Path(), FIRST)
    write_output(Path(), FIRST, "bm25")
    rankledger.tag_outputs(config, model="dense", date=FIRST)
    other = {"name": "other", "models": ["bm25"], "measure": "rr", "at_least": 0.99}
    document = yaml.safe_load(config.read_text()) | {"name": "two"}
    document["models"]["bm25"] = {"outputs": "{date}/bm25.txt"}
    Path("missing.yaml").write_text(yaml.safe_dump(document))
    document["gates"].append(other)
    Path("failing.yaml").write_text(yaml.safe_dump(document))

    failed = rankledger.nightly("failing.yaml", date=FIRST, clock=Clock())
    (Path(FIRST) / "bm25.txt").unlink()
    incomplete = rankledger.nightly("missing.yaml", date=FIRST, clock=Clock(), again=True)

    assert [verdict.effect for verdict in failed.verdicts] == ["pass", "fail"]
    assert [failure.model for failure in incomplete.failures] == ["bm25"]
    assert registry.holder() is None


def test_without_a_state_folder_a_night_is_promoted_and_sync_says_why_no_other(registry, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    promoted = night(registry, FIRST)
    assert promoted.promotions == ("promoted: models:/ranker/1 is @champion",)
    (warning,) = [line for line in promoted.warnings if "XDG_STATE_HOME" in line]
    assert warning.startswith("/proc/nowhere")

    night(registry, SECOND, 2, tag=False)
    (synced,) = sync()
    assert synced.unpromoted.endswith(
        "is not known as yours on this machine. Set XDG_STATE_HOME to the state folder of the user who made the record"
    )


def test_outputs_that_the_version_did_not_make_are_refused(registry, run_cli):
    without = night(registry, FIRST, tag=False)
    assert without.store
    assert ": models:/ranker/1 has no tag rankledger.outputs_sha256, so what it made" in str(without.unpromoted)

    registry.tag(1, "rankledger.outputs_sha256", "0" * 64)
    (refused,) = sync()
    made = ": models:/ranker/1 made other outputs (rankledger.outputs_sha256 is 000000000000…, "
    assert made in refused.unpromoted
    assert (registry.holder(), TAG in registry.tags(1)) == (None, False)
    assert run_cli("sync").code == 5

    tagged = rankledger.tag_outputs("config.yaml", model="dense", date=FIRST)
    assert tagged.replaced == "0" * 64
    (promoted,) = sync()
    assert promoted == SyncResult(without.evaluation_id, promotions=("promoted: models:/ranker/1 is @champion",))
    assert registry.holder() == 1


def test_the_exit_code_says_that_nothing_was_promoted_where_tracking_is_required(registry, run_cli):
    write_nightly(Path(), registry)
    write_output(Path(), FIRST)
    command = ["nightly", "config.yaml", "--date", FIRST]

    assert ": models:/ranker/1 has no tag" in run_cli(*command).err
    assert run_cli(*command, "--require-tracking").code == 5

    tagged = run_cli("tag-outputs", "config.yaml", "--model", "dense", "--date", FIRST)
    assert tagged.out.startswith("models:/ranker/1: outputs ")
    assert "\npromoted: models:/ranker/1 is @champion\n" in run_cli(*command, "--require-tracking").out


def test_the_tag_is_of_the_bytes_of_the_outputs_alone(registry):
    evaluation = night(registry, FIRST)
    here = rankledger.tag_outputs("config.yaml", model="dense", date=FIRST)
    Path("elsewhere").mkdir()
    for name in ("config.yaml", "qrels.txt", FIRST):
        shutil.move(name, f"elsewhere/{name}")

    moved = rankledger.tag_outputs("elsewhere/config.yaml", model="dense", date=FIRST)

    assert (moved.sha256, moved.replaced, moved.n_files) == (here.sha256, None, 1)
    assert registry.tags(1)["rankledger.outputs_sha256"] == here.sha256
    assert evaluation.promotions
    write_output(Path("elsewhere"), SECOND)
    assert rankledger.tag_outputs("elsewhere/config.yaml", model="dense", date=SECOND).replaced == here.sha256


def test_nights_go_forward(registry):
    night(registry, FIRST, 1)
    third = night(registry, THIRD, 2)
    late = night(registry, SECOND, 3, at="2026-11-21")

    assert registry.holder() == 2
    by = f"{THIRD} {third.evaluation_id}"
    assert late.promotions == (f"not promoted: models:/ranker/3: @champion stays at version 2, promoted by {by}",)
    assert [settled(one) for one in (third, late)] == [["promoted"], ["kept"]]
    assert [*sync()] == []
    assert TAG not in registry.tags(3)


def test_an_older_night_is_no_later_one_where_its_record_is_unknown(registry):
    third = night(registry, THIRD, 1)
    shutil.move("runs", "runs of another machine")
    late = night(registry, SECOND, 2, at="2026-11-21")
    assert registry.holder() == 1
    by = f"{THIRD} {third.evaluation_id}"
    assert late.promotions == (f"not promoted: models:/ranker/2: @champion stays at version 1, promoted by {by}",)


def test_a_night_of_the_future_blocks_no_promotion(registry):
    """A clock stood a hundred years ahead for one night, which promoted version 1."""
    ahead = night(registry, "2126-11-18", 1)
    assert registry.tags(1)[TAG] == f"2126-11-18 {ahead.evaluation_id}"

    assert night(registry, SECOND, 2).promotions == ("promoted: models:/ranker/2 is @champion",)
    (line,) = night(registry, FIRST, 3, at="2026-11-21").promotions  # an older night still comes too late
    assert line.startswith(f"not promoted: models:/ranker/3: @champion stays at version 2, promoted by {SECOND} ")


def test_only_the_last_night_is_promoted_by_sync(registry):
    nights = [night(registry, date, version, tag=False) for date, version in ((FIRST, 1), (SECOND, 2), (THIRD, 3))]
    for version, date in ((1, FIRST), (2, SECOND), (3, THIRD)):
        rankledger.tag_outputs(write_nightly(Path(), registry, version), model="dense", date=date)

    results = {result.evaluation_id: result.promotions for result in sync()}

    late = "not promoted: models:/ranker/{}: a later night was evaluated"
    assert [results[one.evaluation_id] for one in nights] == [
        (late.format(1),),
        (late.format(2),),
        ("promoted: models:/ranker/3 is @champion",),
    ]
    assert registry.holder() == 3
    assert not any(TAG in registry.tags(version) for version in (1, 2))


def test_the_same_version_keeps_the_alias(registry):
    first = night(registry, FIRST, 2)
    second = night(registry, SECOND, 2)

    by = f"{FIRST} {first.evaluation_id}"
    assert second.promotions == (f"models:/ranker/2 is @champion already, promoted by {by}",)
    assert registry.tags(2)[TAG] == by
    (series,) = rankledger.history("nightly").series
    assert [one.promoted for one in series.nights] == ["models:/ranker/2 @champion", ""]


def test_an_alias_that_a_human_moved_to_a_newer_version_stays(registry):
    registry.move(3)
    evaluation = night(registry, FIRST, 2)
    assert registry.holder() == 3
    assert evaluation.promotions == ("not promoted: models:/ranker/2: @champion stays at version 3",)


def test_an_alias_that_a_human_took_back_is_not_given_again(registry):
    """Version 2 was promoted and is bad, so somebody moved the alias back: later nights of version 2 leave it there."""
    first = night(registry, FIRST, 2)
    registry.move(1)
    second = night(registry, SECOND, 2)

    assert registry.holder() == 1
    by = f"{FIRST} {first.evaluation_id}"
    line = f"not promoted: models:/ranker/2 was @champion before ({by}), and somebody moved it to version 1"
    assert second.promotions == (line,)
    assert night(registry, THIRD, 3).promotions == ("promoted: models:/ranker/3 is @champion",)


def test_what_a_killed_night_began_the_next_one_ends(registry):
    """The tag was set and the alias was not; of that night there is no receipt, so the version never had the alias."""
    first = night(registry, FIRST, 2, tag=False)
    registry.tag(2, TAG, f"{FIRST} {first.evaluation_id}")
    second = night(registry, SECOND, 2)
    assert second.promotions == ("promoted: models:/ranker/2 is @champion",)
    assert (registry.holder(), registry.tags(2)[TAG]) == (2, f"{SECOND} {second.evaluation_id}")


def test_a_night_that_moved_the_alias_and_could_not_note_it_did_so(registry):
    """Killed before its receipt, and another night came after: `sync` finds its name on the version."""
    first = night(registry, FIRST, 2)
    Path("runs/records", first.evaluation_id, "promotion.json").unlink()
    night(registry, SECOND, 2)
    (result,) = sync()
    assert result == SyncResult(first.evaluation_id, promotions=("promoted: models:/ranker/2 is @champion",))
    assert settled(first) == ["promoted"]


def test_the_record_of_somebody_else_promotes_nothing(registry, monkeypatch):
    """Its user's list does not have it: it is logged where the command says, and the registry stays as it is."""
    evaluation = night(registry, FIRST, tracking=False)
    manifest = Path("runs/records", evaluation.evaluation_id, "manifest.json")
    manifest.write_text(manifest.read_text().replace('"tracking": "off"', '"tracking": "on"'))
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("another user").absolute()))

    (result,) = sync(tracking_uri=registry.uri)

    assert (result.reason, result.tracked, result.promotions) == ("", registry.uri, ())
    assert registry.holder() is None


def test_a_repeated_evaluation_promotes_nothing(registry):
    evaluation = night(registry, FIRST, tracking=False)
    assert [*sync()] == []
    repeated = rankledger.evaluate_config(evaluation.evaluation_id, overrides=["report=false"])
    assert repeated.store
    assert (registry.holder(), repeated.promotions) == (None, ())


def test_a_store_without_a_registry_is_said_so(registry, monkeypatch):
    """The registry that the user's environment names is none: the night is logged, and the line says what to do."""
    monkeypatch.setenv("MLFLOW_REGISTRY_URI", "nowhere://registry")
    evaluation = night(registry, FIRST, tag=False)

    assert evaluation.store
    advice = "remove `promote` from the config, or set tracking.uri to a store that has one"
    assert evaluation.unpromoted.endswith(f": the MLflow store has no model registry with aliases; {advice}")
    with pytest.raises(InputError, match="the MLflow store has no model registry with aliases"):
        rankledger.tag_outputs("config.yaml", model="dense", date=FIRST)


def test_a_version_that_is_not_there_is_said_so(registry):
    evaluation = night(registry, FIRST, 9, tag=False)
    found = "models:/ranker/9 is no version of a registered model in MLflow"
    assert evaluation.unpromoted.endswith(f": {found}; fix model_uri in the config")


def test_a_damaged_receipt_is_named(registry):
    """It is no reason to promote again: the alias may have moved since."""
    evaluation = night(registry, FIRST)
    receipt = Path("runs/records", evaluation.evaluation_id, "promotion.json")
    receipt.write_text(json.dumps({"evaluation_id": "another"}))
    registry.move(2)

    (result,) = sync()

    assert result.unpromoted.startswith(f"runs/records: {evaluation.evaluation_id}/promotion.json is not a receipt (")
    assert result.unpromoted.endswith("; delete it and run `rankledger sync`")
    assert registry.holder() == 2
    (series,) = rankledger.history("nightly").series
    assert [one.promoted for one in series.nights] == [""]


def test_the_receipt_goes_with_its_record(registry):
    first = night(registry, FIRST)
    night(registry, SECOND)
    receipt = Path("runs/records", first.evaluation_id, "promotion.json")
    assert receipt.is_file()
    rankledger.prune(keep_days=0, delete=True)
    assert not receipt.parent.exists()


def test_a_tag_that_is_no_nights_stops_nothing(registry):
    registry.move(1)
    registry.tag(1, TAG, "zoe")
    assert night(registry, FIRST, 2).promotions == ("promoted: models:/ranker/2 is @champion",)


def test_a_store_that_went_away_is_asked_once(registry, monkeypatch):
    for date, version in ((FIRST, 1), (SECOND, 2)):
        night(registry, date, version, tag=False)
    asked: list[str] = []

    class Away:
        timeout, public_uri = 1.0, registry.uri

        def __init__(self, *_: object) -> None:
            """Nothing is opened."""

        def __enter__(self) -> "Away":
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing ends."""

        def ask(self, call: str, **_: object) -> None:
            asked.append(call)
            raise TrackingError("no answer within 1 s", unreachable=True)

    monkeypatch.setattr("rankledger.pipeline.commands.upkeep.open_store", Away)
    results = [*sync()]

    assert asked == ["move_alias"]
    assert [(result.reason, result.unpromoted) for result in results] == [("", "no answer within 1 s")] * 2


def test_a_folder_of_records_has_records_alone(registry):
    """A night that was logged and promoted has its receipts inside, claims are hidden, and `verify` finds no fault."""
    evaluation = night(registry, FIRST)
    (record,) = Path("runs/records").glob("[!.]*")
    files = {path.name for path in record.iterdir()}
    assert {"manifest.json", "receipt.json", "promotion.json"} < files
    assert rankledger.verify(evaluation.evaluation_id).n_files == len(files) - 2
    assert [path.name for path in Path("runs/records").glob(".*")] == [".state"]
