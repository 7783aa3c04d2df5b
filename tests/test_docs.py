"""The guides: what they show runs, what they name exists, and what exists is in them."""

import importlib.metadata
import json
import os
import re
import runpy
import shlex
import shutil
import struct
import subprocess
import sys
import typing
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest
import yaml

import rankledger
from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.metrics.measure import Measure
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.cli import app, commands, terminal
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import Loaded, load, schema
from rankledger.pipeline.data.joined import JoinStats
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import (
    ChangeSince,
    Comparison,
    CurvePoint,
    Estimate,
    OrderAgreement,
    ReplicateEstimate,
    SliceChange,
    VarianceComponents,
)
from rankledger.pipeline.support.errors import InputError, LockedError
from tests.support.each import each

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "configs/quickstart/README.md"]
README = "README.md"
TUTORIAL = "docs/tutorial-rankers.md"
RECOMMENDERS = "docs/tutorial-recommenders.md"
LOGS = "docs/data.md"  # of which the section on logs is a walk
OWN_METRICS = "docs/own-metrics.md"
LLM = "docs/tutorial-language-models.md"
MATCHING = "docs/matching.md"  # whose Python tests/agreement/test_coming_from.py runs
SEQUELS = {README, TUTORIAL, RECOMMENDERS, OWN_METRICS, LLM}  # whose blocks build on one another
DATE = "2026-11-20"
EVALUATION_ID = re.compile(r"\d{8}T\d{6}Z-([\w.-]+)-[0-9a-f]{8}|\d{1,2} [A-Z][a-z]{2} \d\d:\d\d")  # or when it began


TIME = re.compile(r"\d{1,2} [A-Z][a-z]{2} \d\d:\d\d UTC|\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def stable(line: str) -> str:
    """A printed line without the ids and times of the evaluations."""
    return TIME.sub("TIME", EVALUATION_ID.sub("ID", line)).rstrip()


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(language: str) -> list[tuple[str, str]]:
    fenced = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [(name_of(page), code) for page in PAGES for code in fenced.findall(page.read_text(encoding="utf-8"))]


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def scratch(tmp_path, monkeypatch) -> Path:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


# What exists is documented.


def test_generated_parts_are_up_to_date():
    generated = runpy.run_path(str(ROOT / "docs/generate.py"))["pages"]()

    assert {name_of(page) for page in generated} == {
        "docs/api.md",
        "docs/commands.md",
        "docs/config.md",
        "docs/matching.md",
        "docs/metrics.md",
        "docs/names.md",
        "docs/records.md",
    }
    assert [name_of(page) for page, text in generated.items() if page.read_text(encoding="utf-8") != text] == []


@each("name", [*METRICS])
def test_every_metric_is_documented(name):
    section = re.search(rf"^### {name}\n(.*?)(?=^### |\Z)", text_of("docs/metrics.md"), re.DOTALL | re.MULTILINE)

    assert section is not None
    assert "reference: " in section[1]
    for parameter in METRICS[name].parameters:
        assert f"| `{parameter}` |" in section[1]


def test_every_config_key_is_documented():
    documented = set(re.findall(r"^\| `(\w+)` \|", text_of("docs/config.md"), re.MULTILINE))

    assert set(config_keys(schema())) == documented


def config_keys(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for below in schema.values():
            yield from config_keys(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from config_keys(below)


@pytest.mark.parametrize("name", commands.cli.commands)
def test_every_command_and_option_is_documented(name):
    section = re.search(rf"^### rankledger {name}\b(.*?)(?=^###? |\Z)", text_of("docs/commands.md"), re.DOTALL | re.M)

    assert section is not None
    for option in commands.cli.commands[name].params:
        if isinstance(option, click.Option):
            assert f"| `{option.opts[0]}" in section[1]


def test_every_public_name_is_documented():
    importable = text_of("docs/api.md").partition("\n## What the types hold\n")[0]
    documented = set(re.findall(r"^### (\w+)$", importable, re.MULTILINE))

    assert dir(rankledger) == sorted(rankledger.__all__)
    assert documented == set(rankledger.__all__)
    for name in rankledger.__all__:
        assert getattr(rankledger, name).__doc__, name
    assert rankledger.__version__ == importlib.metadata.version("rankledger")
    with pytest.raises(AttributeError, match="has no attribute 'evalute'"):
        _ = rankledger.evalute


def test_the_package_is_imported_without_numpy():
    code = "import sys, rankledger; dir(rankledger); print(*{'numpy', 'mlflow', 'pyarrow', 'rich'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)

    assert loaded.stdout.strip() == ""


def test_every_exit_code_is_documented():
    documented = set(map(int, re.findall(r"^\| (\d+) \|", text_of("docs/nightly.md"), re.MULTILINE)))

    codes = {code for name, code in vars(terminal).items() if name.isupper()}
    assert documented == codes | {InputError.exit_code, LockedError.exit_code}


def test_every_convention_is_documented():
    text = text_of("docs/matching.md")
    meanings = text.partition("## Choose a convention")[2].partition("\n<!-- ")[0]
    types = typing.get_type_hints(Conventions)

    for convention in fields(Conventions):
        assert f"| `{convention.name}` |" in meanings
        for word in typing.get_args(types[convention.name]):
            assert f"`{word}`" in meanings or not isinstance(word, str)
    for profile in PROFILES.values():
        assert {field.name for field in fields(Conventions)} <= set(profile.because)
        assert {*profile.defaults, *profile.ties} <= set(profile.because)


def test_every_part_of_a_record_is_documented(scratch):
    run_console(
        "rankledger evaluate configs/quickstart.yaml --set bootstrap.resamples=100 --set comparison.search_slices=true"
    )
    (record,) = (scratch / "runs/records").iterdir()
    manifest = json.loads((record / "manifest.json").read_text(encoding="utf-8"))
    text = text_of("docs/records.md")
    keys = text.partition("### manifest.json")[2]
    tables = {
        "summary.csv": Estimate,
        "comparisons.csv": Comparison,
        "slice_changes.csv": SliceChange,
        "gates.json": Verdict,
        "curves.csv": CurvePoint,
        "agreement.csv": OrderAgreement,
        "replicates.csv": ReplicateEstimate,
        "variance_components.csv": VarianceComponents,
        "changes.csv": ChangeSince,
    }
    counts = text_of("docs/data.md").partition("| in the manifest |")[2].partition("\n\n")[0]

    lacking = {"replicates.csv", "variance_components.csv"}  # no model of the quickstart has some
    lacking |= {"changes.csv", "changes.html"}  # nor an earlier record
    named = set(re.findall(r"^### (\S+\.\w+)$", text, re.MULTILINE))

    assert {file.name for file in record.iterdir()} == named - lacking
    assert names_in_first_cells(keys) == {*manifest, "error"}  # of a night that could not be evaluated
    for name, table in tables.items():
        columns = text.partition(f"### {name}")[2].partition("\n### ")[0]
        assert names_in_first_cells(columns) == {field.name for field in fields(table)}
    columns = text.partition("### movers.csv")[2].partition("\n### ")[0]
    assert names_in_first_cells(columns) == set(
        (record / "movers.csv").open(encoding="utf-8").readline().strip().split(",")
    )
    assert names_in_first_cells(counts) == {field.name for field in fields(JoinStats)}


def names_in_first_cells(text: str) -> set[str]:
    return {
        name for cell in re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }


# What is shown runs.


@pytest.mark.parametrize("page", sorted({page for page, _ in blocks("yaml")} - SEQUELS))
def test_configs_load_and_plan(page, scratch):
    for found, code in blocks("yaml"):
        if found == page:
            name = re.search(r"^name: (\S+)", code, re.MULTILINE)
            file = scratch / f"{name[1] if name else 'config'}.yaml"
            file.write_text(code, encoding="utf-8")
            names = re.findall(r"\$\{(\w+)\}", code)
            variables = {name: "https://word" if name.endswith("_URL") else "word" for name in names}
            loaded = load(file, environ=variables)
            make_up_outputs(loaded, scratch)

            assert plan(loaded, DATE).tasks


def make_up_outputs(loaded: Loaded, folder: Path) -> None:
    for dataset in loaded.config.datasets:
        for model in loaded.config.models.values():
            path = getattr(model.outputs, "path", "")
            if "{model}" in path:
                file = folder / path.format(dataset=dataset, model="found", date=DATE)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()


def run_console(line: str) -> None:
    words = shlex.split(line)[1:]
    app.main([*words, "--no-tracking"] if words[0] in {"evaluate", "nightly"} else words)


def assert_commands_print(page: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        run_console(command)
        printed = iter(map(stable, capsys.readouterr().out.splitlines()))
        for line in filter(None, map(stable, shown.splitlines())):
            assert line in printed, f"{page}: not printed, or not in this order: {line}"


def blocks_of_guides(language: str) -> list[tuple[str, str]]:
    logs = walk_of(LOGS)
    return [(page, code) for page, code in blocks(language) if page not in SEQUELS and code not in logs]


def walk_of(page: str) -> str:
    """Return the part of a page whose blocks build on one another."""
    text = text_of(page)
    return text.partition("\n## Evaluate logs\n")[2].partition("\n## ")[0] if page == LOGS else text


@pytest.mark.parametrize(("page", "code"), blocks_of_guides("console"), ids=lambda text: text.partition("\n")[0])
def test_commands_print_what_is_shown(page, code, scratch, capsys):
    assert_commands_print(page, code, capsys)


@pytest.mark.parametrize("page", [README, TUTORIAL, RECOMMENDERS, LOGS])
def test_a_tutorial_works_from_start_to_end(page, scratch, capsys):
    fenced = re.findall(r"^```(\w+)\n(.*?)^```$", walk_of(page), re.DOTALL | re.MULTILINE)
    assert [language for language, _ in fenced].count("console") > 0
    for language, code in fenced:
        if language == "sh" and page != README:  # whose commands are those of a checkout
            subprocess.run(["bash", "-ec", code], check=True)
        elif language == "yaml":  # whose first line says which file it is, or is the end of
            file = scratch / code.partition("\n")[0].removeprefix("# ")
            file.write_text((file.read_text("utf-8") if file.exists() else "") + code, encoding="utf-8")
        elif language == "console":
            assert_commands_print(page, code, capsys)
        elif language == "python":
            exec(compile(code, page, "exec"), {"__name__": "__main__"})
        elif language == "text" and page == README:  # what the Python example before it printed
            assert capsys.readouterr().out == code


def test_the_tutorial_shows_the_first_lines_of_its_files():
    shown = [code.splitlines() for page, code in blocks("tsv") if page == TUTORIAL]

    files = [text_of(f"configs/quickstart/{name}.tsv").splitlines() for name in ("qrels", "bm25")]
    assert shown == [files[0][:2], files[1][:3]]


def test_the_guide_to_own_metrics_works_from_start_to_end(scratch, capsys):
    (module,), (config,), (commands,) = (
        [code for page, code in blocks(language) if page == OWN_METRICS] for language in ("python", "yaml", "console")
    )
    (scratch / "clicks.py").write_text(module, encoding="utf-8")
    (scratch / "mine.yaml").write_text(config, encoding="utf-8")

    assert_commands_print(OWN_METRICS, commands, capsys)


def test_the_guide_to_language_models_works_from_start_to_end(scratch, capsys):
    """Its logs, configs and commands run one after the other; of what Inspect and promptfoo wrote, 5/8 and 3/4 pass."""
    golden = ROOT / "tests/golden/scores"
    fenced = re.findall(r"^```(yaml|text|console|python)\n(.*?)^```$", text_of(LLM), re.DOTALL | re.MULTILINE)
    for language, code in fenced:
        if language == "python":
            exec(compile(code, LLM, "exec"), {"__name__": "__main__"})
            shutil.copy(golden / "inspect/twice.eval", scratch / "logs/small.eval")
            shutil.copy(golden / "promptfoo/repeats.json", scratch / "results.json")
        elif language == "console":
            assert_commands_print(LLM, code, capsys)
        elif language == "text":
            with (scratch / "llm.yaml").open("a", encoding="utf-8") as file:
                file.write(code)
        else:
            name = yaml.safe_load(code)["name"]
            (scratch / f"{name}.yaml").write_text(code, encoding="utf-8")
            if name != "llm":
                run_console(f"rankledger evaluate {name}.yaml --set bootstrap.resamples=200")
                assert {"repeated": "0.62 [", "prompts": "0.75 ["}[name] in capsys.readouterr().out


PYTHON = [(page, code) for page, code in blocks_of_guides("python") if page != MATCHING]


@pytest.mark.parametrize(("page", "code"), PYTHON, ids=lambda text: text.partition("\n")[0])
def test_python_runs(page, code, scratch):
    names = {"__name__": "__main__"}
    exec(compile(code, page, "exec"), names)

    assert len(names) > 1


def test_the_first_nights_are_as_shown(scratch):
    page = text_of("docs/gates.md").partition("## Set up the first nights")[2]
    config, commands, accepted = re.findall(r"^```(?:yaml|sh|text)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[:3]
    (scratch / "first.yaml").write_text(config, encoding="utf-8")
    run_console("rankledger evaluate configs/quickstart.yaml")
    for line in commands.splitlines():
        command, _, remark = line.partition("  #")
        if command.startswith("rankledger"):
            records = sorted(path.name for path in scratch.glob("runs/records/*"))
            words = shlex.split(command)[1:]
            code = re.search(r"exits with (\d)", remark)
            assert exit_code(words) == (int(code[1]) if code else 0), line

    written = (scratch / "accepted.yaml").read_text(encoding="utf-8")
    head, entry = written.splitlines()[:3], yaml.safe_load(written)["first-nights"]["bm25"]
    assert accepted.splitlines()[:3] == head
    assert list(yaml.safe_load(accepted)["first-nights"]["bm25"]) == list(entry)
    (shown,) = [code for page, code in blocks("json") if page == "docs/records.md"]
    gates = json.loads((scratch / "runs/records" / records[-1] / "gates.json").read_text(encoding="utf-8"))
    assert list(json.loads(shown)) == list(gates)
    assert [list(line) for line in json.loads(shown)["verdicts"]] == [list(gates["verdicts"][-1])]


def exit_code(words: list[str]) -> object:
    try:
        app.main([*words, "--no-tracking"] if words[0] == "evaluate" else words)
    except SystemExit as ended:
        return ended.code
    return 0


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), re.M)}

    assert named
    assert named <= targets


HEAD = "query_id\tdoc_id\tscore\n"
QRELS = "query_id\tdoc_id\trelevance\nq1\td1\t1\nq1\td2\t0\nq2\td1\t2\n"
JUDGED = "web: {judgments: qrels.tsv, queries: queries.tsv}"
GIVEN = "web: {scores: {faithfulness: {range: [0, 1]}}}"
REFUSED = [  # files that bring about the refusals of docs/data.md, and the dataset that they are of
    (JUDGED, {"bm25.tsv": HEAD + "q1\td4\t3\nq1\td1\t2\nq1\td4\t1\n"}),
    (JUDGED, {"qrels.tsv": QRELS + "q1\td1\t1\n"}),
    (JUDGED, {"bm25.tsv": HEAD + "q1\td4\tnan\n"}),
    (JUDGED, {"bm25.tsv": HEAD + "q1\td4\thigh\n"}),
    (JUDGED, {"bm25.tsv": None}),
    (JUDGED, {"bm25.tsv": "query_id\thit\tscore\nq1\td1\t1\n"}),
    (JUDGED, {"bm25.tsv": HEAD + "q1\td1\n"}),
    (JUDGED, {"queries.tsv": "query_id\nq1\n"}),
    (JUDGED, {"bm25.tsv": HEAD + "q1\tmd1\t2\nq1\tmd9\t1\n"}),
    (GIVEN, {"judge.csv": "query_id,faithfulness\nq1,1\nq2,1.01\n"}),
]


def test_refusals_are_those_shown(scratch, capsys):
    good = {"qrels.tsv": QRELS, "queries.tsv": "query_id\nq1\nq2\n", "bm25.tsv": HEAD + "q1\td1\t1\n"}
    said = []
    for dataset, files in REFUSED:
        output = "judge.csv" if dataset == GIVEN else "bm25.tsv"
        config = f"name: refused\ndatasets:\n  {dataset}\nmodels:\n  bm25: {{outputs: {output}}}\n"
        config += "" if dataset == GIVEN else "suites:\n  search: [ap]\n"
        (scratch / "refused.yaml").write_text(config, encoding="utf-8")
        for name, text in (good | files).items():
            (scratch / name).unlink(missing_ok=True)
            if text is not None:
                (scratch / name).write_text(text, encoding="utf-8")
        with pytest.raises(SystemExit) as ended:
            app.main(["validate", "refused.yaml"])
        printed = capsys.readouterr()
        said.append((printed.out + printed.err).splitlines()[-1].removeprefix("bm25 on web: "))
        assert ended.value.code == (terminal.INCOMPLETE if output in files else InputError.exit_code)

    shown = [line for page, code in blocks("text") if page == "docs/data.md" for line in code.splitlines()]
    assert said == shown


def test_a_server_that_is_away_is_said_as_shown(scratch, capsys):
    (shown,) = [code for page, code in blocks("text") if page == "docs/mlflow.md"]
    (scratch / "qrels.txt").write_text("q1 0 d1 1\n", encoding="utf-8")
    (scratch / "bm25.txt").write_text("q1 Q0 d1 1 1.0 bm25\n", encoding="utf-8")
    config = "name: away\ndatasets: {web: {judgments: qrels.txt}}\nmodels: {bm25: {outputs: bm25.txt}}\n"
    config += "suites: {search: [ap]}\ntracking: {uri: 'http://127.0.0.1:1'}\n"
    (scratch / "away.yaml").write_text(config, encoding="utf-8")

    app.main(["evaluate", "away.yaml"])

    assert capsys.readouterr().err == shown


# What is named exists.


@each("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target
        if file.suffix == ".png":
            width = struct.unpack(">I", file.read_bytes()[16:20])[0]
            assert (width, file.stat().st_size < 300_000) == (1440, True), target


def test_the_site_has_every_page():
    listed = re.findall(r"[\w/-]+\.md$", text_of("mkdocs.yml"), re.MULTILINE)

    assert sorted(listed) == sorted(name_of(page).removeprefix("docs/") for page in (ROOT / "docs").rglob("*.md"))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each("page", PAGES)
def test_measures_parse(page):
    shape = re.compile(r"`([A-Za-z]\w*(?:\([a-z_]+=[^)`…]*\)(?:@[\d,]+)?|@[\d,]+))`")
    for text in shape.findall(prose(page)):
        assert Measure.expand(text)


@each("page", PAGES)
def test_lines_are_short(page):
    lines = page.read_text(encoding="utf-8").splitlines()

    messages = "".join(code for name, code in blocks("text") if name == name_of(page)).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|") and line not in messages] == []


def test_nothing_of_the_machine_is_in_the_pages():
    for page in PAGES:
        found = re.search(rf"(?<![\w.])/(?:home|root|tmp|work)/|{re.escape(os.fspath(ROOT))}", page.read_text("utf-8"))
        assert found is None, page
