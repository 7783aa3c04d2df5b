"""Ids, paths, names and keys that would steer a terminal or command a CI: no raw byte of them reaches either stream."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.support.text import one_line
from tests.support.commands import Command, Outcome
from tests.support.generated_data import search_collection, write_config
from tests.support.records import manifest_of

# colours, a window's title, the C1 form of both, what deletes, breaks of lines, text turned round; commands to a CI
CONTROLS = "\x1b[31mred\x1b]0;title\x07\x9b31m\x7f\r::error::no\x85b\u202eb\u2066b"
TEXTS = [CONTROLS, "  ::error::forged", "##[error]forged"]
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def checked(found: Outcome) -> Outcome:
    for stream in found[1:]:
        assert not RAW.search(stream), stream
        for line in stream.split("\n"):
            assert not line.lstrip().startswith("::"), line
            assert not re.search(r"##\w*\[", line), line
    return found


@pytest.fixture
def config(tmp_path: Path) -> Path:
    web = search_collection(40, n_queries=5)
    return write_config(tmp_path, {"web": web}, {"search": ["ap"]}, report=False)


@pytest.mark.parametrize("text", [*TEXTS, "a\n::error::forged"])
def test_paths_and_words_of_the_command(run_cli: Command, text):
    assert checked(run_cli("evaluate", text))[0] == 2
    assert checked(run_cli("show", text))[0] == 2
    assert checked(run_cli(text))[0] == 2
    assert checked(run_cli("show", f"--{text}"))[0] == 2
    assert checked(run_cli("evaluate", "c.yaml", "--backend", text))[0] == 2
    assert checked(run_cli("evaluate", "c.yaml", "--junit", f"{text}/none/gates.xml"))[0] == 2
    code, _, err = checked(run_cli("measures", text))
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize("text", TEXTS)
def test_names_keys_and_overrides_of_a_config(run_cli: Command, config, text):
    """What is refused is shown spelt out, a line for each finding; what may be a name begins no line as a command."""
    quoted = json.dumps(text)
    for extra in (f"{quoted}: 1", f"suites: {{{quoted}: [{quoted}]}}", f"tracking: {{uri: {quoted}, {quoted}: 1}}"):
        path = config.with_name("other.yaml")
        path.write_text(f"extends: config.yaml\n{extra}\n", encoding="utf-8")
        code, _, err = checked(run_cli("validate", str(path)))
        assert (code, set(err.split("\n")[-1:])) == (2, {""})
    checked(run_cli("validate", str(config), "--set", f"{text}=1"))
    models = {"extends": "config.yaml", "models": {text: {"outputs": f"{text}.txt"}}}
    path.write_text(json.dumps(models), encoding="utf-8")
    for words in (["--quiet"], ["--json"], []):
        checked(run_cli("evaluate", str(path), "--no-tracking", *words))


@pytest.mark.parametrize("text", TEXTS)
def test_ids_and_paths_of_inputs(run_cli: Command, config, tmp_path, text):
    word = text.replace(" ", "_")
    (tmp_path / f"{text}.tsv").write_text(
        f"query_id\tdoc_id\tscore\n{word}\t{word}\t1\n{word}\t{word}\t2\n", encoding="utf-8", newline=""
    )
    path = config.with_name("other.json.yaml")
    exact = {"conventions": {"score_precision": "float64"}}  # no scores are equal only because they are rounded
    changed = exact | {"extends": "config.yaml", "models": {"bm25": {"outputs": {"web": f"{text}.tsv"}}}}
    path.write_text(json.dumps(changed), encoding="utf-8")
    code, out, err = checked(run_cli("evaluate", str(path), "--no-tracking", "--quiet"))
    assert (code, out) == (4, "")
    assert err.count("\n") == 1

    judged = {"datasets": {"web": {"judgments": f"{text}.qrels.tsv"}}}
    twice = f"query_id\tdoc_id\trelevance\n{word}\t{word}\t1\n{word}\t{word}\t1\n"
    (tmp_path / f"{text}.qrels.tsv").write_text(twice, encoding="utf-8", newline="")
    path.write_text(json.dumps({"extends": "config.yaml", **judged}), encoding="utf-8")
    assert checked(run_cli("evaluate", str(path), "--no-tracking"))[0] == 2


def edited(record: Path, text: str) -> None:
    manifest: dict[str, Any] = manifest_of(record)
    manifest |= {"name": text, "date": text, "config": text, "records": text, "user": text}
    manifest["models"] = {text: {"params": {}, "tags": {}, "owner": text, "model_id": None, "model_uri": None}}
    manifest["failures"] = [{"dataset": text, "model": text, "reason": f"{text}\n{text}"}]
    manifest["files"][text] = {"size": 1, "sha256": text}
    (record / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize("text", [CONTROLS, "x\n::error::forged", "##[error]forged"])
def test_records_that_somebody_else_wrote(run_cli: Command, config, text):
    record = rankledger.evaluate_config(config, runs_dir=config.parent / "runs", tracking=False).record
    edited(record, text)

    for words in (
        ["show", str(record)],
        ["show", str(record), "--json"],
        ["verify", str(record)],
        ["reproduce", str(record)],
        ["list"],
        ["list", "--json"],
        ["site", "--output", "site"],
        ["sync"],
        ["report", str(record), "--format", "markdown"],
        ["prune", "--keep-days", "0"],
    ):
        code, _, err = checked(run_cli(*words))
        assert "Traceback" not in err or code == 70


def test_the_message_of_a_bug_is_no_command_and_findings_have_a_line_each(run_cli: Command, config, monkeypatch):
    path = config.with_name("other.yaml")
    path.write_text('extends: config.yaml\n"a\\nb": 1\n"c\\nd": 2\n', encoding="utf-8")

    code, _, err = checked(run_cli("validate", str(path)))

    assert (code, err.count("\n")) == (2, 2)
    assert str(rankledger.InputError("a\nb", "c")) == "a b\nc"

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("\x1b[31m\n::error::forged\r##[error]")

    monkeypatch.setattr("rankledger.pipeline.commands.evaluate.evaluate_config", broken)

    code, _, err = checked(run_cli("evaluate", "any.yaml"))

    assert code == 70
    assert "\\x1b[31m" in err
    assert "\\x3a:error::forged" in err


@pytest.mark.parametrize(("text", "line"), [("::a", "\\x3a:a"), ("a::b", "a::b"), ("## a [b]", "## a [b]")])
def test_only_commands_are_changed(text, line):
    assert one_line(text) == line
