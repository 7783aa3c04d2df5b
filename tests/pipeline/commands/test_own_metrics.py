"""Metrics of one's own: a config names their code, which is run to evaluate and never to read a record."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import rankledger
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.metric import MetricError
from rankledger.pipeline.cli import app
from rankledger.pipeline.commands.browse import measures
from rankledger.pipeline.config.own_metrics import own_metric, try_metric
from rankledger.pipeline.record.manifest_parts import describe_metric, restore_metric
from rankledger.pipeline.support.own_code import find_code
from tests.support.blocks import judged_block
from tests.support.each import each
from tests.support.generated_data import rating_collection, search_collection, write_config
from tests.support.records import manifest_of

WEB = search_collection(11, n_queries=14)
HEAD = """
import numpy as np
from rankledger.metrics.block import Floats, JudgedBlock
from rankledger.metrics.metric import Metric
from rankledger.metrics.block import Terms, from_terms
"""
GAIN = """
@from_terms
def gained(block: JudgedBlock, *, k: int | None = None, base: float = 2) -> Terms:
    '''Gain by rank.

    Formula: sum gain / log_base(rank + base - 1).

    Reference:
        ours
    '''
    if base <= 1:
        raise ValueError("base must be above 1")
    gain = np.where(block.grades > 0, block.grades, 0.0)
    seen = block.ranks <= (np.inf if k is None else k)
    return Terms(np.where(seen, gain / (np.log(block.ranks + base - 1) / np.log(base)), 0.0))

gain = Metric("x", gained, "Gain", range=(0, 1000), additive=True)
"""
BROKEN = """
def broken(block: JudgedBlock, *, k: int | None = None) -> Floats:
    '''Broken.'''
    if len(block.query_ids) > 3:
        raise RuntimeError("no such service")
    return np.zeros(len(block.query_ids))
"""


def write_module(folder: Path, *parts: str, name: str = "clicks") -> Path:
    path = folder / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join((HEAD, *parts)), encoding="utf-8")
    return path


def write(folder: Path, *measures: str, metrics: dict[str, str] | None = None, **sections: Any) -> Path:
    named = metrics or {"gain": "clicks:gain"}
    return write_config(folder, {"web": WEB}, {"search": measures}, metrics=named, **sections)


def evaluate(config: Path, **options: Any) -> rankledger.Evaluation:
    return rankledger.evaluate_config(config, runs_dir=config.parent / "runs", tracking=False, **options)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    write_module(tmp_path, GAIN)
    return write(tmp_path, "gain@5", "gain(base=4)@10", "dcg@5", report=False)


def function_of(folder: Path, body: str, name: str = "own") -> Any:
    """The metric of a function whose body is given; one of `x` for each body, for code is loaded once."""
    path = write_module(folder, f"def own(block: JudgedBlock) -> Floats:\n    '''Own.'''\n    {body}\n")
    return own_metric(name, find_code(f"{path}:own", folder))


def test_it_scores_as_a_built_in_metric_does(config):
    evaluation = evaluate(config)
    scores = evaluation.scores
    assert evaluation.failed_measures == ()
    np.testing.assert_allclose(scores["gain@5"], scores["dcg@5"], rtol=1e-12)
    assert not np.allclose(scores["gain(base=4)@10"], scores["dcg@5"])

    scores = evaluate(config, overrides=["conventions={ties: expected}"]).scores

    np.testing.assert_allclose(scores["gain@5"], scores["dcg@5"], rtol=1e-12)

    ours, theirs = (
        rankledger.explain(config, model="bm25", query=next(iter(WEB.judged)), measure=measure)
        for measure in ("gain@5", "dcg@5")
    )
    assert ours.outcome.value == pytest.approx(theirs.outcome.value)
    assert [line.term for line in ours.documents] == pytest.approx([line.term for line in theirs.documents])

    one = evaluate(config, jobs=1).record
    other = evaluate(config, jobs=2, backend="processes").record
    assert (one / "scores.parquet").read_bytes() == (other / "scores.parquet").read_bytes()
    assert (one / "summary.csv").read_bytes() == (other / "summary.csv").read_bytes()


def test_ratings_and_lists_of_documents_can_be_measured(tmp_path):
    source = """
from rankledger.metrics.ratings import RatingsBlock

def error(block: RatingsBlock) -> Floats:
    '''Error.'''
    return np.nansum(np.abs(block.predictions - block.ratings), axis=0) / block.n_pairs

worst = Metric("worst", error, "Error", range=(0, np.inf), direction="lower", undefined="skip")
"""
    write_module(tmp_path, source)
    config = write_config(
        tmp_path,
        {"stars": rating_collection(5)},
        {"errors": ["worst", "mae", "worst(average=query)", "mae(average=query)"]},
        metrics={"worst": "clicks:worst"},
    )
    found = evaluate(config, overrides=["report=false"]).summary.set_index(["model", "measure"])["estimate"]

    for model in found.index.levels[0]:
        assert found[model, "worst"] == pytest.approx(found[model, "mae"])
        assert found[model, "worst(average=query)"] == pytest.approx(found[model, "mae(average=query)"])

    source = """
from rankledger.metrics.catalogue import CatalogueBlock

def length(block: CatalogueBlock, *, k: int) -> Floats:
    '''Length.'''
    return (block.first(k) >= 0).sum(axis=0)

longest = Metric("length", length, "Length", range=(0, 10**6))
"""
    write_module(tmp_path, source)
    scores = evaluate(write(tmp_path, "length@9", "fp@9", "tp@9", metrics={"length": "clicks:longest"})).scores

    np.testing.assert_array_equal(scores["length@9"], scores["fp@9"] + scores["tp@9"])


@each(
    "case",
    {
        "built in": ({"ndcg": "clicks:gain"}, "knows a metric 'ndcg'"),
        "another tool's": ({"recip_rank": "clicks:gain"}, "knows a metric 'recip_rank'"),
        "refused elsewhere": ({"relstring": "clicks:gain"}, "knows a metric 'relstring'"),
        "no file": ({"own": "clocks:gain"}, "module 'clocks' not found"),
        "no path": ({"own": "lib/clicks.py:gain"}, "file not found"),
        "no function": ({"own": "clicks:loss"}, "has no 'loss'"),
        "no reference": ({"own": "gain"}, "write module:function"),
        "a number": ({"own": "clicks:NUMBER"}, "is a int; name a function, or a Metric"),
        "another name": (
            {"own": "clicks:renamed"},
            "renamed in clicks.py: annotate its first parameter as `block: Judg",
        ),
        "another block": ({"own": "clicks:unlike"}, "annotate its first parameter as `block: JudgedBlock`"),
        "no block": ({"own": "clicks:blank"}, "annotate its first parameter as `block: JudgedBlock`"),
        "no type": ({"own": "clicks:bare"}, "bare in clicks.py: annotate its first parameter as `block: JudgedBlock`"),
        "a parameter without": (
            {"own": "clicks:open"},
            "open in clicks.py: annotate its parameter 'base' as float, str",
        ),
        "an open end": ({"own": "clicks:loose"}, "its parameter 'k' is to stand behind a `*`"),
        "a type": ({"own": "clicks:typed"}, "annotate its parameter 'words' as float, str"),
        "one number": ({"own": "clicks:single"}, "it returns one number"),
        "no range": ({"own": "clicks:EMPTY"}, "its range is empty"),
        "clusters": ({"own": "clicks:WORST"}, "has no score at its other queries; write undefined='skip'"),
        "raises": ({"own": "raising:own"}, "cannot be loaded: KeyError: 'x' (raising.py, line 1)"),
        "syntax": ({"own": "syntax:own"}, "cannot be loaded: SyntaxError"),
        "exits": ({"own": "exits:own"}, "cannot be loaded: SystemExit: 3 (exits.py, line 1)"),
    },
)
def test_what_is_no_metric_is_refused_with_its_line(case, tmp_path):
    metrics, message = case
    lines = """
NUMBER = 3
def renamed(rows: JudgedBlock) -> Floats: ...
def unlike(block: list) -> Floats: ...
def blank() -> Floats: ...
def bare(block): ...
def open(block: JudgedBlock, *, k=None, base=2): ...
def loose(block: JudgedBlock, k: int = 3) -> Floats: ...
def typed(block: JudgedBlock, *, words: dict) -> Floats: ...
def single(block: JudgedBlock) -> float: ...
def plain(block: JudgedBlock) -> Floats: ...
EMPTY = Metric("x", plain, "x", range=(1, 0))
WORST = Metric("x", plain, "x", needs=("cluster",))
"""
    write_module(tmp_path, GAIN, lines)
    for name, text in {"raising": "{}['x']", "syntax": "def", "exits": "raise SystemExit(3)"}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (name,) = metrics
    with pytest.raises(rankledger.InputError) as raised:
        evaluate(write(tmp_path, f"{name}@5" if name == "own" else "ap", metrics=metrics))

    (line,) = raised.value.lines
    assert re.search(rf"config\.yaml:\d+: metrics\.{name}: ", line)
    assert message in line


def test_parameters_are_checked_before_data_is_read(config):
    for line, message in {
        "gain(base=1)@5": "gain: ValueError: base must be above 1 (clicks.py, line",
        "gain(bas=3)@5": "gain has no parameter 'bas'; it has base",
        "gian@5": "did you mean 'gain'?",
    }.items():
        with pytest.raises(rankledger.InputError, match=r"suites\.search\[0\]: ") as raised:
            evaluate(config, overrides=[f"suites.search=['{line}', 'dcg@5']"])
        assert message in str(raised.value)


EMPTY = """
def best(block: JudgedBlock, *, k: int | None = None, least: float = 0) -> Floats:
    '''The greatest grade, which an empty list has not.'''
    if least > 1:
        raise ValueError("least must be at most 1")
    if not np.isfinite(block.ranks).any():
        raise ValueError("max() of an empty list")
    return np.where(np.isfinite(block.ranks), block.grades, 0.0).max(axis=0).clip(least, 1)
"""


def test_a_value_error_fails_its_measure_alone(tmp_path):
    write_module(tmp_path, EMPTY)
    config = write(tmp_path, "best@5", "dcg@5", metrics={"best": "clicks:best"}, report=False)
    evaluation = evaluate(config)
    assert evaluation.failed_measures == ()
    assert set(evaluation.scores["best@5"].dropna()) <= {0.0, 1.0}
    with pytest.raises(rankledger.InputError, match=r"suites\.search\[0\]: best: ValueError: least must be at most 1"):
        evaluate(config, overrides=["suites.search=['best(least=2)@5', 'dcg@5']"])

    write_module(tmp_path, EMPTY.replace("if not", "if len(block.query_ids) > 1 or not"))
    evaluation = evaluate(write(tmp_path, "best@5", "dcg@5", metrics={"best": "clicks:best"}, report=False))
    assert {failure.measure for failure in evaluation.failed_measures} == {"best@5"}
    assert "ValueError: max() of an empty list (clicks.py, line" in evaluation.failed_measures[0].warning
    assert {line.measure for line in evaluation.estimates if line.estimate is not None} == {"dcg@5"}


@each(
    "case",
    {
        "return [0.0] * len(block.query_ids)": "returned a list; return an array of numbers",
        "return np.zeros((len(block.query_ids), 1))": "returned the shape (2, 1) for 2 queries; return (2,)",
        "return np.zeros(1)": "returned the shape (1,) for 2 queries",
        "return np.full(len(block.query_ids), 'x')": "returned an array of <U1",
        "return np.full(2, 1j)": "returned an array of complex128",
        "return np.full(2, np.inf)": "returned inf, and its range is 0 to 1; return NaN if it is undefined",
        "return np.full(2, -0.1)": "returned -0.1, and its range is 0 to 1",
        "block.ranks[0] = 1": "ValueError: assignment destination is read-only (clicks.py, line 9)",
        "raise KeyError('a\\nb')": "KeyError: 'a\\nb' (clicks.py, line 9)",
        "raise SystemExit('stop')": "SystemExit: stop (clicks.py, line 9)",
    }.items(),
)
def test_what_no_score_may_be_fails(case, tmp_path):
    body, message = case
    block = judged_block(ranks=[[1, 2], [3, np.inf]], grades=[[1, 1], [0, np.nan]])
    before = block.ranks.copy()

    with pytest.raises(MetricError) as raised:
        function_of(tmp_path, body).function(block)

    assert str(raised.value).startswith(message)
    np.testing.assert_array_equal(block.ranks, before)


def test_rounding_beyond_the_range_is_cut(tmp_path):
    """A sum of 1 + 2e-16 is 1 and no error; NaN stays, integers become doubles."""
    block = judged_block(ranks=[[1], [2]], grades=[[1], [1]])
    assert function_of(tmp_path, "return np.array([np.nextafter(1, 2), np.nan])").function(block)[0] == 1
    assert function_of(tmp_path, "return np.array([0, 1])").function(block).dtype == np.float64


def test_validate_finds_a_score_that_depends_on_other_queries(tmp_path):
    write_module(tmp_path, "def own(block: JudgedBlock) -> Floats:\n    return block.n_judged / block.n_judged.sum()\n")
    with pytest.raises(
        rankledger.InputError, match=r"metrics\.own: own: a query's score changes with the other queries of its block"
    ):
        rankledger.validate(write(tmp_path, "own", metrics={"own": "clicks:own"}))


def test_an_error_fails_its_measure_alone(tmp_path):
    write_module(tmp_path, GAIN, BROKEN)
    both = {"gain": "clicks:gain", "broken": "clicks:broken"}
    against = {"models": "dense", "measure": "broken@3", "against": "bm25"}
    gates = [
        {"name": "floor", "measure": "broken@3", "at_least": 0},
        {"name": "crash", "max_query_drop": 0.1, **against},
        {"name": "drop", "margin": 0.1, **against},
    ]
    alone = evaluate(write(tmp_path, "gain@5", "ap", report=False))
    found = evaluate(write(tmp_path, "gain@5", "broken@3", "ap", metrics=both, gates=gates, sensitivity=["ties"]))
    figures = found.summary.set_index(["model", "measure"])["estimate"]

    assert figures.xs("broken@3", level="measure").isna().all()
    for row in alone.summary.itertuples():
        assert figures[row.model, row.measure] == row.estimate
    assert [(each.model, each.measure) for each in found.failed_measures] == [
        ("bm25", "broken@3"),
        ("dense", "broken@3"),
    ]
    assert "broken@3 failed: RuntimeError: no such service (clicks.py, line" in found.failed_measures[0].warning
    assert {verdict.outcome for verdict in found.verdicts} == {"inconclusive"}
    table = parquet.read_table(found.record / "scores.parquet")
    assert table["broken@3"].null_count == table.num_rows
    assert table["gain@5"].null_count == 0
    assert "broken@3 failed" in (found.record / "report.html").read_text(encoding="utf-8")


def test_the_command_says_that_it_is_incomplete(tmp_path, monkeypatch, capsys):
    write_module(tmp_path, BROKEN, "print('at import')")
    config = write(tmp_path, "broken@3", "ap", metrics={"broken": "clicks:broken"}, report=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        app.main(["evaluate", str(config), "--no-tracking", "--json"])
    out, err = capsys.readouterr()

    assert left.value.code == 4
    assert json.loads(out)
    assert "at import" in err


def test_the_fingerprint_is_of_the_source(tmp_path):
    def fingerprint(folder: str, *more: str) -> str:
        write_module(tmp_path / folder, GAIN, *more)
        record = evaluate(write(tmp_path / folder, "gain@5", report=False)).record
        return manifest_of(record)["definitions"]["gain@5"]["fingerprint"]

    assert fingerprint("one") == fingerprint("other")
    assert fingerprint("one") != fingerprint("third", "# a word")


def test_two_modules_of_one_name_do_not_meet(tmp_path):
    path = [*sys.path]
    for folder, value in {"one": 0.25, "other": 0.5}.items():
        body = f"def own(block: JudgedBlock) -> Floats:\n    return np.full(len(block.query_ids), {value})\n"
        write_module(tmp_path / folder, body)
        scores = evaluate(write(tmp_path / folder, "own", metrics={"own": "clicks:own"}, report=False)).scores
        assert set(scores["own"]) == {value}

    assert sys.path == path
    assert "clicks" not in sys.modules
    assert not [*tmp_path.rglob("__pycache__")]


READERS = {
    "show": lambda runs: rankledger.load("last", runs_dir=runs).scores["gain@5"],
    "compare": lambda runs: rankledger.compare("previous", "last", runs_dir=runs),
    "history": lambda runs: rankledger.history(measure="gain@5", runs_dir=runs),
    "report": lambda runs: rankledger.report("last", runs_dir=runs),
    "verify": lambda runs: rankledger.verify("last", runs_dir=runs),
    "accept": lambda runs: rankledger.accept("last", models=["bm25"], reason="it is good", runs_dir=runs),
}


def test_a_record_is_read_without_its_code(config):
    evaluate(config, overrides=["comparison={baseline: bm25}"])
    evaluate(config, overrides=["comparison={baseline: bm25}"])
    module = config.parent / "clicks.py"
    trace = config.parent / "trace"
    module.write_text(f"open({str(trace)!r}, 'w')\nraise RuntimeError", encoding="utf-8")
    for _ in range(2):
        for read in READERS.values():
            assert read(config.parent / "runs") is not None
        module.unlink(missing_ok=True)

    assert not trace.exists()


def test_a_record_describes_its_metrics(config):
    live = own_metric("gain", find_code("clicks:gain", config.parent))
    read = restore_metric("gain", **describe_metric(live))
    for text in ("gain@5", "gain(base=4)@10", "gain"):
        one, other = (rankledger.Measure.parse(text, own={"gain": metric}) for metric in (live, read))
        assert str(one) == str(other)
        assert one.fingerprint(PROFILES["trec_eval"]) == other.fingerprint(PROFILES["trec_eval"])
    for name in ("title", "range", "direction", "input", "per", "cutoff", "formula", "reference", "code", "additive"):
        assert getattr(read, name) == getattr(live, name)
    with pytest.raises(MetricError, match="its code is not run"):
        read.function(judged_block(ranks=[[1]], grades=[[1]]))


def test_the_record_of_somebody_else_runs_nothing(config, tmp_path, monkeypatch):
    record = evaluate(config).record
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    found = rankledger.evaluate_config(record, runs_dir=tmp_path / "elsewhere", tracking=False)
    assert {each.measure for each in found.failed_measures} == {"gain@5", "gain(base=4)@10"}
    assert "named by a record that you did not make here" in found.failed_measures[0].warning
    assert found.summary.set_index("measure").loc["dcg@5", "estimate"].notna().all()


def test_reproduce_says_that_the_code_changed(config):
    """The same source gives the same bytes; another one is a line with both hashes, though its figures are equal."""
    record = evaluate(config).record
    runs = config.parent / "runs"
    assert rankledger.reproduce(str(record), runs_dir=runs).verdict == "identical"

    module = config.parent / "clicks.py"
    module.write_text(module.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    (line,) = rankledger.reproduce(str(record), runs_dir=runs).definitions

    assert line.startswith("gain@5, gain(base=4)@10: its code was gain sha256:")
    module.unlink()
    with pytest.raises(rankledger.InputError, match=r"metrics\.gain: file not found: .*clicks\.py"):
        rankledger.reproduce(str(record), runs_dir=runs)


def test_a_gate_does_not_compare_with_other_code(config):
    complete = {"name": "complete", "max_missing": "50%"}
    gate = {"name": "no-drop", "measure": "gain@5", "against": "self@last_passed", "margin": 0.5}
    evaluate(config, overrides=[f"gates={json.dumps([complete])}"])
    module = config.parent / "clicks.py"
    module.write_text(module.read_text(encoding="utf-8").replace("block.grades, 0.0)", "2 * block.grades, 0.0)"))
    found = evaluate(config, overrides=[f"gates={json.dumps([gate])}"])

    assert [verdict.estimate for verdict in found.verdicts] == [0.0, 0.0]


def test_an_imported_module_is_known_by_its_source(tmp_path, monkeypatch):
    write_module(tmp_path / "lib", GAIN, name="clicklib")
    monkeypatch.syspath_prepend(tmp_path / "lib")
    found = find_code("clicklib:gain", tmp_path)
    assert found.version.startswith("sha256:")
    assert find_code("yaml:safe_load", tmp_path).version.lower().startswith("pyyaml ")


def test_trying_needs_subtopics_only_if_the_metric_does(tmp_path):
    source = """
def covered(block: JudgedBlock) -> Floats:
    '''Covered.'''
    return (block.subtopic_grades > 0).any(axis=1).mean(axis=0)

own = Metric("own", covered, "Covered", needs=("subtopics",))
silent = Metric("silent", covered, "Covered")
"""
    write_module(tmp_path, source)
    try_metric(own_metric("own", find_code("clicks:own", tmp_path)), {})
    with pytest.raises(ValueError, match="NoneType"):
        try_metric(own_metric("silent", find_code("clicks:silent", tmp_path)), {})


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """The folder of an installed package, clickstats 1.0, that names the metrics `gain`, `ndcg` and `lost`."""
    site = tmp_path / "site-packages"
    write_module(site, GAIN, name="clickstats")
    info = site / "clickstats-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: clickstats\nVersion: 1.0\n", encoding="utf-8")
    entries = "[rankledger.metrics]\ngain = clickstats:gain\nndcg = clickstats:gain\nlost = clickstats:lost\n"
    (info / "entry_points.txt").write_text(entries, encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    yield site
    sys.modules.pop("clickstats", None)


def installed_config(folder: Path) -> Path:
    return write_config(folder, {"web": WEB}, {"search": ["gain@5", "ndcg@5", "dcg@5"]}, report=False)


def test_an_installed_metric_needs_no_line_in_the_config(package, tmp_path, monkeypatch):
    found = evaluate(installed_config(tmp_path))
    np.testing.assert_allclose(found.scores["gain@5"], found.scores["dcg@5"], rtol=1e-12)
    manifest = manifest_of(found.record)
    assert {name: metric["code"] for name, metric in manifest["own_metrics"].items()} == {"gain": "gain clickstats 1.0"}

    config = installed_config(tmp_path)
    scores = evaluate(config).scores["gain@5"]
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(package)])
    sys.modules.pop("clickstats")

    np.testing.assert_array_equal(rankledger.load("last", runs_dir=tmp_path / "runs").scores["gain@5"], scores)
    with pytest.raises(rankledger.InputError, match=r"suites\.search\[0\]: unknown metric 'gain@5'"):
        evaluate(config)


def test_measures_lists_ones_own(package, config, tmp_path):
    write_module(config.parent, GAIN.replace('"Gain"', '"Gain of clicks"'))
    listed = measures(own=True, config=write(config.parent, "worth@5", metrics={"worth": "clicks:gain"}))

    assert "gain[@k]  Gain: sum gain / log_base(rank + base - 1)" in listed
    assert "worth[@k]  Gain of clicks: sum gain / log_base(rank + base - 1)" in listed
    assert "lost  cannot be used: clickstats has no 'lost'" in listed
    assert "ndcg  cannot be used: `rankledger measures` knows a metric 'ndcg'" in listed
    assert "bpref" not in listed
    assert "bpref" in measures(config=config)
    assert measures("gain@5").startswith("gain: Gain\n")
    assert measures("ndcg").startswith("ndcg: nDCG\n")

    with pytest.raises(rankledger.InputError, match=r"the installed metric 'lost': clickstats has no 'lost'"):
        evaluate(write_config(tmp_path, {"web": WEB}, {"search": ["lost@5"]}))


def test_measures_says_that_there_is_none_of_ones_own():
    assert measures(own=True).startswith("no metrics of your own")
