"""File formats of installed packages: named by entry points, imported when a file needs them and never by a record."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import feather
from pyarrow import table as arrow_table

import rankledger
from rankledger.pipeline.commands.browse import formats
from rankledger.pipeline.commands.init import init
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.dataset import content_of
from rankledger.pipeline.data.readers import read_judgments, read_queries, read_ranking
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import contents, refusal, write
from tests.support.generated_data import search_collection, write_config

WEB = search_collection(11, n_queries=14)
CODE = """
import pyarrow as pa
from pyarrow import feather

from rankledger.pipeline.data.formats.parquet import chains_of, lists_of, rows_of, values_of, wanted_names
from rankledger.pipeline.data.formats.common import Format
from rankledger.pipeline.data.formats.delimited import delimited


def _table(part, names=None):
    table = feather.read_table(pa.BufferReader(part.data))
    part.check_columns(names or (), table.column_names)
    return table.select(list(names)) if names else table


def _parse(part):
    print("reading", part.path)
    return rows_of(part, _table(part, wanted_names(part, _table(part).schema)))


def _cells(part, names):
    table = _table(part, names)
    return {name: values_of(part, name, table.column(name)) for name in names}


def _columns(part):
    return _table(part).column_names


FEATHER = Format(
    "feather",
    (".feather", ".ftr"),
    _parse,
    lambda part, row: f"row {row + 1}",
    _columns,
    _cells,
    _table,
    _columns,
    typed=True,
    find_chains=lambda part, _: chains_of(_table(part).schema),
    read_lists=lambda part: lists_of(part, _table(part)),
)
PSV = delimited("psv", "|")
DICT = {}


def _fail(part):
    raise KeyError("no such key")


def _short(part):
    return _parse(part).select([0])


def _float(part):
    table = _parse(part)
    return table.set_column(1, "doc_id", pa.nulls(len(table), pa.string()))


def broken(name, parse):
    return Format(name, (f".{name}",), parse, lambda part, row: "", _columns, _cells, header=_columns)


FAILS, SHORT = broken("fails", _fail), broken("short", _short)
NULLS, NOTHING = broken("nulls", _float), broken("nothing", lambda part: None)
"""
ENTRIES = {"feather": "FEATHER", "ftr": "FEATHER", "psv": "PSV", "tsv": "PSV", "dict": "DICT", "other": "PSV"}
ENTRIES |= {"fails": "FAILS", "short": "SHORT", "nulls": "NULLS", "nothing": "NOTHING", "lost": "LOST"}


def install(site: Path, title: str, module: str, entries: dict[str, str], code: str = CODE) -> None:
    write(site / f"{module}.py", code)
    name, version = title.split()
    info = site / f"{name}-{version}.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{entry} = {module}:{value}\n" for entry, value in entries.items())
    write(info / "entry_points.txt", f"[rankledger.formats]\n{lines}")


@pytest.fixture
def site(tmp_path, monkeypatch) -> Iterator[Path]:
    """The folder of an installed package, feathers 1.0."""
    folder = tmp_path / "site-packages"
    install(folder, "feathers 1.0", "feathers", ENTRIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(folder)
    yield folder
    sys.modules.pop("feathers", None)


def feather_of(path: str, **columns: list) -> str:
    feather.write_feather(arrow_table(columns), path)
    return path


def config_of(folder: Path) -> Path:
    config = write_config(folder, {"web": WEB}, {"search": ["ndcg@5"]}, report=False)
    model, table = next(iter(WEB.outputs.items()))
    rows = [(query, doc, score) for query, own in table.items() for doc, score in own.items()]
    queries, documents, scores = zip(*rows, strict=True)
    feather_of(str(folder / "out.feather"), query_id=[*queries], doc_id=[*documents], score=[*map(float, scores)])
    models = {name: {"outputs": {"web": "out.feather"}} if name == model else None for name in WEB.outputs}
    path = folder / "feather.yaml"
    path.write_text(json.dumps({"extends": config.name, "models": models}), encoding="utf-8")
    return path


def test_the_ending_of_a_file_or_the_config_names_the_installed_format(site):
    judged = feather_of("a.feather", query_id=["q1", "q2"], doc_id=["d1", "d2"], relevance=[1, 0])
    lists = feather_of("b.feather", user_id=["u"], recs=[["a", "b"]])
    queries = feather_of("c.ftr", query_id=["q1"], market=["de"])
    assert contents(read_judgments(judged)) == [("q1", "d1", 1.0), ("q2", "d2", 0.0)]
    assert contents(read_ranking(lists)) == [("u", "a", -1.0), ("u", "b", -2.0)]
    assert read_queries(queries, further=["market"]).texts == {"market": ["de"]}
    assert contents(read_judgments(write(Path("a.psv"), "query_id|doc_id|relevance\nq|d|1\n"))) == [("q", "d", 1.0)]

    # `format: psv`, whatever the file is called; refusals name the line as for a built-in format.
    path = write(Path("a.txt"), "query_id|doc_id|relevance\nq|d|1\nq|e|x\n")
    assert refusal(read_judgments, Source(path, "psv")) == "a.txt:3: relevance 'x' is not a number; fix it"


def test_the_formats_of_the_guide_read_files(tmp_path, monkeypatch):
    guide = (Path(__file__).parents[3] / "docs/data.md").read_text(encoding="utf-8")
    for name, code in re.findall(r"^```python\n# (\w+)\.py\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE):
        write(tmp_path / "site" / f"{name}.py", code)
    entries = re.findall(r'^(\w+) = "(\w+):(\w+)"$', guide, re.MULTILINE)
    for entry, module, value in entries:
        code = (tmp_path / "site" / f"{module}.py").read_text(encoding="utf-8")
        install(tmp_path / "site", f"{module} 1.0", module, {entry: value}, code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "site")
    judged = feather_of("a.feather", q_id=["q1"], doc_id=["d1"], score=[2])
    try:
        assert contents(read_judgments(judged)) == [("q1", "d1", 2.0)]
        assert contents(read_judgments(write(Path("a.psv"), "query_id|doc_id|relevance\nq|d|1\n"))) == [("q", "d", 1.0)]
        assert read_queries(feather_of("b.feather", query_id=["q"], of=["x"]), others=True).texts == {"of": ["x"]}
        assert "map it with columns: {query_id: query, doc_id: …}" in refusal(
            read_judgments, feather_of("c.feather", query=["q"], passage=["d"], relevance=[1])
        )
    finally:
        for _, module, _ in entries:
            sys.modules.pop(module, None)


def test_no_package_is_imported_for_a_built_in_ending(site):
    assert contents(read_judgments(write(Path("a.txt"), "q 0 d 1\n"))) == [("q", "d", 1.0)]
    assert contents(read_judgments(write(Path("a.tsv"), "query_id\tdoc_id\trelevance\nq\td\t1\n"))) == [("q", "d", 1.0)]
    assert "feathers" not in sys.modules


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dict", ": DICT is a dict; name a Format"),
        ("lost", ": feathers has no 'LOST'; check the name"),
        ("other", ": its entry point has another name than the format and its endings; call it psv or psv"),
        ("fails", " failed (KeyError: 'no such key'); check the file, or report it to them"),
        ("short", " returned the columns query_id in place of query_id, doc_id, relevance; report it to them"),
        ("nulls", " returned nulls in doc_id; report it to them"),
        ("nothing", " returned a NoneType in place of a table of Arrow; report it to them"),
    ],
)
def test_a_broken_package_is_named(site, name, message):
    """The file, the format and the package stand in the one line; wrong columns would be figures that look right."""
    path = feather_of(f"a.{name}", query_id=["q"], doc_id=["d"], relevance=[1])
    assert refusal(read_judgments, path) == f"a.{name}: format '{name}' of feathers 1.0{message}"


def test_a_package_that_cannot_be_imported_is_named(site):
    install(site, "halves 2.0", "halves", {"half": "HALF"}, "import no_such_module\n")
    path = write(Path("a.half"), "x")

    assert refusal(read_judgments, Source(path, "half")) == (
        "a.half: format 'half' of halves 2.0: halves cannot be imported: ModuleNotFoundError: No module named "
        "'no_such_module'"
    )
    assert contents(read_judgments(write(Path("a.psv"), "query_id|doc_id|relevance\nq|d|1\n"))) == [("q", "d", 1.0)]


def test_two_packages_of_one_name_are_refused(site):
    install(site, "plumes 3.1", "plumes", {"psv": "PSV"})
    assert refusal(read_judgments, write(Path("a.psv"), "x")) == (
        "a.psv: format 'psv' of feathers 1.0 and plumes 3.1: several installed packages name it: feathers 1.0, plumes "
        "3.1; uninstall all but one"
    )


def test_another_version_of_the_package_is_another_content(site):
    path = feather_of("a.feather", query_id=["q"], doc_id=["d"], score=[1.0])
    files = read_ranking(path).files
    assert content_of(Source(path), files)["files"][0][1] == "feather feathers 1.0"
    assert content_of(Source(path, "tsv"), files)["files"][0][1] == "tsv"


def test_a_record_is_read_without_the_package(site, tmp_path, monkeypatch):
    record = rankledger.evaluate_config(config_of(tmp_path), runs_dir="runs", tracking=False).record
    sys.modules.pop("feathers")

    assert rankledger.load(record).estimates
    assert "feathers" not in sys.modules
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(site)])
    assert rankledger.load(record).estimates
    (failure,) = rankledger.evaluate_config(str(record), runs_dir="runs", tracking=False).failures
    assert "out.feather" in failure.reason


@pytest.mark.parametrize("named", [False, True])
def test_the_record_of_somebody_else_imports_nothing(site, tmp_path, monkeypatch, named):
    config = config_of(tmp_path)
    if named:
        content = json.loads(config.read_text(encoding="utf-8"))
        model = next(iter(content["models"]))
        Path("out.feather").rename("out.bin")
        content["models"][model]["outputs"] = {"web": {"path": "out.bin", "format": "feather"}}
        config.write_text(json.dumps(content), encoding="utf-8")
    record = rankledger.evaluate_config(config, runs_dir="runs", tracking=False).record
    sys.modules.pop("feathers", None)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody"))

    assert rankledger.load(record).estimates
    for call in (rankledger.evaluate_config, rankledger.reproduce):
        with pytest.raises(InputError, match=r"has the format 'feather' of an installed package, and the record was"):
            call(str(record), runs_dir="runs")
    assert "feathers" not in sys.modules
    evaluated = rankledger.evaluate_config(record / "config.yaml", runs_dir="again", tracking=False)
    assert evaluated.failures == ()


def test_commands_know_installed_formats(site, tmp_path):
    listed = formats(own=True).splitlines()
    assert "feather         .feather .ftr  feathers 1.0" in listed
    assert "dict  cannot be used: format 'dict' of feathers 1.0: DICT is a dict; name a Format" in listed
    known = "there is a built-in format of that name; choose another name"
    assert f"tsv  cannot be used: format 'tsv' of feathers 1.0: {known}" in listed
    assert not any(line.startswith("parquet") for line in listed)
    assert "parquet         .parquet .pq .parq\n" in formats()

    folder = tmp_path / "data"
    folder.mkdir()
    feather_of(str(folder / "qrels.feather"), query_id=["q1", "q2"], doc_id=["d1", "d2"], relevance=[1, 2])
    feather_of(str(folder / "bm25.feather"), query_id=["q1", "q2"], doc_id=["d1", "d3"], score=[1.5, 2.5])
    assert [role for _, role, _ in init(folder).files] == ["model bm25", "judgments"]

    config = write_config(Path("c"), {"web": WEB}, {"search": ["ndcg@5"]})
    message = refusal(rankledger.validate, config, overrides=["datasets.web.judgments={path: x, format: fether}"])
    assert "unknown format 'fether'; did you mean 'feather'?" in message
