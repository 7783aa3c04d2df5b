"""Records that are damaged, or that somebody else has written: every command refuses them in one line, exit 2."""

import contextlib
import errno
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml
from pyarrow import parquet

import rankledger
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.scores import read_query_ids
from rankledger.pipeline.support.errors import InputError
from tests.support.commands import Command, Outcome
from tests.support.each import each
from tests.support.generated_data import search_collection, write_config
from tests.support.manifests import forge
from tests.support.records import manifest_of

Change = Callable[[dict[str, Any]], object]

WEB = search_collection(5, n_queries=6, models=("bm25", "dense", "hybrid"))
QUERY = next(iter(WEB.judged))
FILES = (
    *("config.yaml", "scores.parquet", "summary.csv", "comparisons.csv", "agreement.csv", "curves.csv", "movers.csv"),
    *("queries.json", "gates.json"),
)
COMMANDS = {
    "evaluate": ["evaluate", "{id}", "--no-tracking"],
    "reproduce": ["reproduce", "{id}"],
    "report": ["report", "{id}"],
    "explain": ["explain", "{id}", "--model", "bm25", "--query", QUERY, "--measure", "ap"],
    "show": ["show", "{id}"],
    "compare": ["compare", "{id}#bm25", "{id}#dense", "--all"],
    "accept": ["accept", "{id}", "--reason", "checked"],
    "verify": ["verify", "{id}", "--no-tracking"],
    "history": ["history", "--name", "kept", "--measure", "ap"],
    "list": ["list", "--name", "kept"],
    "find": ["find", "0.5", "--measure", "ap", "--name", "kept"],
    "site": ["site", "--output", "site"],
    "export": ["export", "{id}", "--output", "shared"],
}
READ_BY = {
    "config.yaml": ("evaluate", "explain", "compare"),
    "scores.parquet": ("explain", "compare"),
    "summary.csv": ("show", "report", "history", "find", "site"),
    "comparisons.csv": ("show", "report"),
    "agreement.csv": ("show", "report"),
    "curves.csv": ("report",),
    "movers.csv": ("report",),
    "queries.json": ("report",),
    "gates.json": ("show", "report", "list", "history", "site"),
}
"""By file, the commands that read what it holds; those that check all hashes refuse whatever has changed."""

CHECKING = ("reproduce", "report", "accept", "verify", "export")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged")
    config = write_config(folder, {"web": WEB}, {"search": ["ap", "ndcg@5"]})
    gates = {"floor": {"models": "*", "measure": "ap", "at_least": 0.0}}
    text = config.read_text(encoding="utf-8").replace("name: generated", "name: kept", 1)
    more = (
        f"comparison: {{baseline: bm25, test: t}}\ngates: {json.dumps([{'name': n} | g for n, g in gates.items()])}\n"
    )
    config.write_text(text + more, encoding="utf-8")
    with contextlib.chdir(folder):
        rankledger.evaluate_config(config.name, tracking=False)
    return folder


@pytest.fixture
def record(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (found,) = (tmp_path / "runs" / "records").glob("*-kept-*")
    return found


@pytest.fixture
def run(record: Path, run_cli: Command) -> Callable[[str], Outcome]:
    return lambda command: run_cli(*(word.replace("{id}", record.name) for word in COMMANDS[command]))


def refused(outcome: Outcome, *, lines: int = 1) -> bool:
    printed = outcome.out + outcome.err
    assert outcome.code == 2, printed
    assert len(printed.splitlines()) <= lines, printed
    assert len(printed) < 700, printed
    assert "Traceback" not in printed
    return True


BYTES = {
    "empty": b"",
    "cut": b'{"schema_version": 4, "evaluation_id": "2026',
    "garbage": bytes(range(256)),
    "list": b"[]",
    "deep": b'{"schema_version":' + 100_000 * b"[",
    "deep objects": 50_000 * b'{"a":',
    "huge number": b'{"schema_version": 4, "seed": ' + 5_000 * b"9" + b"}",
    "not a number": b'{"schema_version": 4, "seed": NaN}',
    "half a letter": b'{"name": "\\ud800"}',
}


def put(*path: Any, to: Any) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        found: Any = manifest
        for key in path[:-1]:
            found = found[key]
        if to is DROP:
            del found[path[-1]]
        else:
            found[path[-1]] = to

    return change


DROP = object()
CHANGES: dict[str, Change] = {
    "no id": put("evaluation_id", to=DROP),
    "id is a path": put("evaluation_id", to="../20261120T020000Z-kept-00000000"),
    "id is dots": put("evaluation_id", to=".."),
    "id of another name": put("name", to="other"),
    "schema is a later one": put("schema_version", to=5),
    "schema is a flag": put("schema_version", to=True),
    "seed is a text": put("seed", to="17"),
    "unknown convention": put("conventions", "ties", to="by hand"),
    "confidence above 1": put("bootstrap", "confidence", to=2.0),
    "a measure without definition": put("definitions", "ap", to=DROP),
    "unknown direction": put("definitions", "ap", "direction", to="sideways"),
    "input without its hash": put("datasets", "web", "inputs", "judgments", 0, "sha256", to=None),
    "suite is empty": put("datasets", "web", "suites", "search", to=[]),
    "a model is gone": put("models", "bm25", to=DROP),
    "no digest of an output": put("outputs", 0, "files", 0, "sha256", to=DROP),
    "two digests of an output": put("outputs", 0, "files", 0, "ranges_sha256", to="b" * 64),
    "an output of no model": put("outputs", 0, "model", to="other"),
    "an output of no dataset": put("outputs", 0, "dataset", to="other"),
    "an output twice": lambda manifest: manifest["outputs"].append(manifest["outputs"][0]),
    "a path with a NUL": put("outputs", 0, "files", 0, "path", to="a\0b"),
    "a count is negative": put("outputs", 0, "quality", "n_rows", to=-1),
    "a count is huge": put("outputs", 0, "quality", "n_rows", to=10**30),
    "depth of two": put("outputs", 0, "depth", to=[1.0, 2.0]),
    "a failure of no model": put("failures", to=[{"dataset": "web", "model": "x", "reason": "gone"}]),
    "a baseline without hash": put(
        "baselines", to={"g": {"bm25": {"reference": "x", "record": "20261120T020000Z-x-0000000a"}}}
    ),
    "external_metrics of no model": put("external_metrics", to={"x": {"reason": "gone"}}),
    "a command that does not end": put("command", to="rankledger evaluate 'a.yaml"),
    "repeats dots": put("repeats", to=".."),
    "created without offset": put("created", to="2026-11-20T02:00:00"),
    "created before the first year of UTC": put("created", to="0001-01-01T00:00:00+14:00"),
    "a file is a path": lambda m: m["files"].update({"../x": m["files"]["summary.csv"]}),
    "a file is absolute": lambda m: m["files"].update({"/etc/passwd": m["files"]["summary.csv"]}),
    "a file is the folder": lambda m: m["files"].update({".": m["files"]["summary.csv"]}),
    "a hash is no hash": put("files", "summary.csv", "sha256", to="abc"),
    "no scores": put("files", "scores.parquet", to=DROP),
    "no summary": put("files", "summary.csv", to=DROP),
    "no config": put("files", "config.yaml", to=DROP),
}


def damage(record: Path, by: str) -> None:
    data = BYTES.get(by)
    if data is None:
        manifest = manifest_of(record)
        CHANGES[by](manifest)
        data = json.dumps(manifest).encode()
    (record / "manifest.json").write_bytes(data)


@each("by", [*BYTES, *CHANGES])
def test_a_damaged_manifest_is_refused(by, record):
    shutil.copy(record / "manifest.json", record.parent / "whole.json")
    damage(record, by)
    with pytest.raises(InputError, match=record.name) as error:
        read_record(record)
    assert len(error.value.lines) == 1
    assert len(str(error.value)) < 700
    shutil.move(record.parent / "whole.json", record / "manifest.json")


@pytest.mark.parametrize("by", ["cut", "garbage", "schema is a later one", "a measure without definition"])
def test_every_command_refuses_a_damaged_manifest(record, run, by):
    damage(record, by)
    for command in COMMANDS:
        outcome = run(command)
        assert refused(outcome)
        assert record.name in outcome.out + outcome.err


def test_a_manifest_may_have_more_keys_but_be_no_folder_or_link_to_nowhere(record, run):
    manifest = manifest_of(record) | {"more": {"deep": [1, None]}}
    manifest["datasets"]["web"]["licence"] = "MIT"
    (record / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert run("show").code == 0

    (record / "manifest.json").unlink()
    for make in (lambda path: path.mkdir(), lambda path: (path.rmdir(), path.symlink_to("nowhere"))):
        make(record / "manifest.json")
        assert all(refused(run(command)) for command in COMMANDS)


def _damages(data: bytes) -> Iterator[bytes | None]:
    yield None
    yield data[:-1]
    yield data + b"\n"
    yield bytes([data[0] ^ 1]) + data[1:]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_has_changed_is_refused_by_whoever_reads_it(record, run, name):
    data = (record / name).read_bytes()
    for damaged in _damages(data):
        (record / name).unlink(missing_ok=True)
        if damaged is not None:
            (record / name).write_bytes(damaged)
        for command in {*READ_BY[name], *CHECKING}:
            outcome = run(command)
            assert refused(outcome)
            assert name in outcome.err or "can be read" in outcome.err
    (record / name).unlink()
    (record / name).mkdir()
    assert all(refused(run(command)) for command in (*READ_BY[name], *CHECKING))


def _tables(record: Path, name: str) -> Iterator[bytes]:
    text = (record / name).read_text(encoding="utf-8")
    header, first, rest = text.split("\n", 2)
    yield b""
    yield b"\xff\xfe" + text.encode()
    yield text.encode()[:-20]
    yield text.replace(",", ";").encode()
    yield f"{header}\n{first},more\n".encode()
    yield f"{header}\n{first.partition(',')[0]}\n".encode()
    yield f"{header.replace('model', 'modell')}\n{first}\n{rest}".encode()
    yield f"{header}\n{first.replace('web', 'elsewhere')}\n{rest}".encode()
    yield f"{header}\n{first.replace('bm25', 'other').replace('dense', 'other')}\n{rest}".encode()
    yield f'{header}\n"{first}\n{rest}'.encode()
    yield f"{header}\n{200_000 * 'x'}{first}\n{rest}".encode()
    if name == "curves.csv":
        yield text.replace(",judged,1.0,", ",judged,0.0,").encode()  # ranks have a logarithmic scale
        yield text.replace(",precision,0.1,", ",precision,1.1,").encode()
    for value in ("nan", "1e999", "x", "-1", 5_000 * "9"):
        cells = first.split(",")
        column = {"summary.csv": 8, "comparisons.csv": -6, "curves.csv": 7, "movers.csv": 6}[name]
        cells[column] = value if value != "-1" or name != "movers.csv" else "nan"
        yield f"{header}\n{','.join(cells)}\n{rest}".encode()


@pytest.mark.parametrize("name", ["summary.csv", "comparisons.csv", "curves.csv", "movers.csv"])
def test_a_forged_table_is_refused(record, run, name):
    for data in [*_tables(record, name)]:
        forge(record, name, data)
        assert all(refused(run(command)) for command in READ_BY[name] if command in ("show", "report"))


def test_a_summary_of_other_lines_is_refused(record, run):
    text = (record / "summary.csv").read_text(encoding="utf-8")
    forge(record, "summary.csv", text.replace("bm25", "other").encode())
    assert all(refused(run(command)) for command in ("history", "find"))
    forge(record, "summary.csv", "".join(text.splitlines(keepends=True)[:-1]).encode())
    assert refused(run("show"))


def test_forged_gates_are_refused(record, run):
    gates = json.loads((record / "gates.json").read_bytes())
    for data in (b"", b"[]", b"\xff", b'{"verdicts": [{}]}', b'{"verdicts":' + 100_000 * b"["):
        forge(record, "gates.json", data)
        assert all(refused(run(command)) for command in READ_BY["gates.json"])

    for change in ({"outcome": "perhaps"}, {"model": "other"}, {"nights": -0.5}):
        forged = gates | {"verdicts": [gates["verdicts"][0] | change, *gates["verdicts"][1:]]}
        forge(record, "gates.json", json.dumps(forged).encode())
        assert refused(run("show"))


def _scores(table: pa.Table) -> Iterator[bytes]:
    for changed in (
        table.drop_columns(["missing"]),
        table.drop_columns(["query_id"]),
        table.rename_columns(["model", "dataset", *table.column_names[2:]]),
        table.set_column(4, "ap", pc.cast(table["ap"], pa.string())),
        table.set_column(4, "ap", pc.cast(table["ap"], pa.float32())),
        table.set_column(2, "query_id", pa.nulls(len(table), pa.string())),
        table.set_column(3, "missing", pa.nulls(len(table), pa.bool_())),
        table.set_column(2, "query_id", pa.array(["q"] * len(table))),
        table.append_column("ap", table["ap"]),
        table.slice(1),
        pa.concat_tables([table, table]),
    ):
        yield as_parquet(changed)


def as_parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def test_forged_scores_are_refused(record, run):
    table = parquet.read_table(record / "scores.parquet")
    whole = (record / "scores.parquet").read_bytes()
    files = [b"", b"PAR1" * 100, whole[:-9], whole[100:], b"query_id,ap\nq1,0.5\n"]
    contradiction = whole.replace(b"\x02\x18\x07dataset", b"\x00\x18\x07dataset")  # of the footer with itself
    for data in (*files, whole.replace(b"ndcg@5", b"ndcg@\xff"), *_scores(table), contradiction):
        forge(record, "scores.parquet", data)
        assert all(refused(run(command)) for command in READ_BY["scores.parquet"])

    decimals = pa.array([1] * len(table), pa.decimal128(5, 2))
    columns = [(place, name) for place, name in enumerate(table.column_names) if name in ("dataset", "model")]
    for data in (contradiction, *(as_parquet(table.set_column(*column, decimals)) for column in columns)):
        forge(record, "scores.parquet", data)
        with pytest.raises(InputError, match=r"scores\.parquet: .*; restore the record"):
            read_query_ids(read_record(record), "web")  # which an evaluation of external scores asks for

    ids = [*table["query_id"].to_pylist()[:-1], "another"]
    place = table.column_names.index("query_id")
    forge(record, "scores.parquet", as_parquet(table.set_column(place, "query_id", pa.array(ids))))
    with pytest.raises(InputError, match=r"scores\.parquet: models have scores of different queries of 'web'"):
        rankledger.compare(record, record)


def test_a_config_that_lacks_a_model_of_the_record_is_no_bug(record, run):
    document = yaml.safe_load((record / "config.yaml").read_text(encoding="utf-8"))
    del document["models"]["dense"]
    document.pop("comparison")
    forge(record, "config.yaml", yaml.safe_dump(document).encode())

    outcome = run("compare")
    assert outcome.code == 0
    for said in ("by ap: dense against bm25", "ranks of documents are left out: ", "was not evaluated on 'web'"):
        assert said in outcome.out + outcome.err


@pytest.mark.parametrize("data", [b"", b"\xff", b"name: [kept\n", b"name: kept\n", b"- name\n"])
def test_a_forged_config_is_refused(record, run, data):
    forge(record, "config.yaml", data)
    for command in READ_BY["config.yaml"]:
        assert refused(run(command), lines=10)


def test_commands_over_many_records_pass_over_one(record, run):
    other = record.with_name("20261119T020000Z-kept-00000000")
    shutil.copytree(record, other)
    (other / "manifest.json").write_bytes(b"{}")

    for command in ("list", "history", "site"):
        outcome = run(command)
        assert outcome.code == 0
        assert f"{other.name}: cannot be read as a record, left out: " in outcome.out + outcome.err
        assert record.name in outcome.out or command != "list"


def test_last_says_that_a_later_record_is_damaged(record, run_cli):
    newer = record.with_name(f"{record.name[:-8]}ffffffff")
    shutil.copytree(record, newer)
    (newer / "manifest.json").write_bytes(b"{}")
    found = f": a later record is damaged ({Path('runs/records') / newer.name / 'manifest.json'}: "

    for command in (["show", "last"], ["compare", "last#bm25", "last#dense"]):
        printed = run_cli(*command, "--name", "kept")
        for line, reference in zip(printed.err.splitlines(), command[1:], strict=True):
            assert line.startswith(f"{reference}{found}")
            assert line.endswith(f"; restore the record); used {record.name} instead")
        assert "damaged" not in printed.out

    refusal = run_cli("accept", "last", "--name", "kept", "--reason", "checked")
    assert refusal.code == 2
    assert refusal.err.startswith(f"last{found}")
    assert refusal.err.endswith(f"restore it, or name the record by its id, such as {record.name}\n")
    assert not Path("accepted.yaml").exists()


def test_a_record_that_is_damaged_and_older_is_no_reason_to_warn(record, run_cli):
    older = record.with_name(f"20200101T000000Z-kept-{record.name[-8:]}")
    shutil.copytree(record, older)
    (older / "manifest.json").write_bytes(b"{}")
    assert run_cli("show", "last", "--name", "kept").err == ""
    older.rename(record.with_name(f"{record.name[:-8]}ffffffff"))
    assert run_cli("compare", f"{record.name}#bm25", f"{record.name}#dense").err == ""


@pytest.mark.parametrize("data", [b"", b"[]", 100_000 * b"[", b'{"runs": [{}]}'])
def test_a_damaged_receipt_is_refused(record, run, data):
    (record / "receipt.json").write_bytes(data)
    assert refused(run("verify"))
    listed = run("list")
    assert (listed.code, "receipt.json is not a receipt" in " ".join(listed.out.split())) == (0, True)


@pytest.mark.parametrize("data", [b"\xff", 500 * b"[", b"kept: {bm25: {}}", b"kept: {bm25: 2026-99-99}"])
def test_a_damaged_list_of_what_is_accepted_is_refused(record, run, data):
    Path("accepted.yaml").write_bytes(data)
    assert refused(run("accept"))
    assert Path("accepted.yaml").read_bytes() == data


@pytest.mark.parametrize("entry", ["", "..", "20261120T020000Z-a/b-00000000"])
def test_what_is_accepted_is_no_path(record, run, entry):
    accepted = {"record": entry, "manifest_sha256": "0" * 64, "reason": "", "accepted": "", "by": ""}
    Path("accepted.yaml").write_text(json.dumps({"kept": {"bm25": accepted}}), encoding="utf-8")
    assert refused(run("accept"))


def close(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every call on a file, or on the contents of a folder, fail as for a user without permission."""

    def guard(call: Callable[..., Any], begin: str) -> Callable[..., Any]:
        def refuse(target: Any, *arguments: Any, **options: Any) -> Any:
            if isinstance(target, str | os.PathLike) and str(Path(target).absolute()).startswith(begin):
                raise PermissionError(errno.EACCES, "Permission denied", str(target))
            return call(target, *arguments, **options)

        return refuse

    is_folder = path.is_dir()
    for module, name in ((io, "open"), *(((os, "stat"), (os, "scandir")) if is_folder else ())):
        monkeypatch.setattr(module, name, guard(getattr(module, name), f"{path}/" if is_folder else str(path)))


@pytest.mark.parametrize("closed", ["", "manifest.json"])
def test_what_may_not_be_read_is_named_and_no_drop_passes(record, run_cli, monkeypatch, closed):
    later = run_cli("evaluate", "config.yaml", "--no-tracking").record.absolute()
    config = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))
    gate = {"name": "drop", "models": "*", "measure": "ap", "margin": 0.5, "against": "self@last_passed"}
    Path("config.yaml").write_text(yaml.safe_dump(config | {"gates": [gate]}), encoding="utf-8")
    close(later / closed, monkeypatch)
    denied = f"{later.name}/manifest.json: Permission denied. Set its permissions, or restore the record"

    for command in ("list", "history --measure ap", "find 0.5", "site --output site", "show last --name kept"):
        code, *printed = run_cli(*command.split())
        assert (code, denied in "".join(printed)) == (0, True), command
    for command in (f"show {later.name}", f"verify {later.name}", "prune --keep-days 0 --config config.yaml", "sync"):
        assert denied in "".join(run_cli(*command.split())[1:]), command
    shutil.rmtree(record)
    judged = run_cli("evaluate", "config.yaml", "--no-tracking")
    assert (judged.code, denied in " ".join(judged.out.split())) == (3, True)
