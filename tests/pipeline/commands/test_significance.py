"""One decision on every surface: words, letters, daggers and counts follow from the corrected p-value."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rankledger
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.terminal import everything, first_screen
from tests.support.nights import write_config
from tests.support.page_reader import read_page

N_QUERIES = 30


def evaluate(folder: Path, models: dict[str, dict[str, np.ndarray]], comparison: dict[str, object]) -> Evaluation:
    for model, scores in models.items():
        rows = {"query_id": [f"q{i:02}" for i in range(N_QUERIES)], **scores}
        pd.DataFrame(rows).to_csv(folder / f"{model}.csv", index=False)
    measures = {measure: {"range": [0, 1]} for measure in next(iter(models.values()))}
    outputs = {model: {"outputs": f"{model}.csv"} for model in models}
    sections = {"datasets": {"web": {"scores": measures}}, "models": outputs, "suites": {}, "comparison": comparison}
    path = write_config(folder, **sections, bootstrap={"resamples": 500})
    return rankledger.evaluate_config(path, tracking=False, runs_dir=folder / "runs")


def made(evaluation: Evaluation, form: str) -> str:
    assert evaluation.record is not None
    return rankledger.report(str(evaluation.record), form=form, runs_dir=evaluation.record.parents[1])  # type: ignore[arg-type]


def lost(n_large: int) -> dict[str, dict[str, np.ndarray]]:
    """A model that is worse on all 30 queries: by 0.5 on a few, and by about 0.01 on the others."""
    base = np.linspace(0.6, 0.9, N_QUERIES)
    drop = np.where(np.arange(N_QUERIES) < n_large, 0.5, np.linspace(0.008, 0.012, N_QUERIES))
    return {"base": {"ap": base}, "new": {"ap": base - drop}}


@pytest.mark.parametrize("baseline", ["base", "all_pairs"])
def test_all_queries_worse_is_worse_on_every_surface(tmp_path, baseline):
    """No other pattern of signs gives so large a sum, and hardly a resample is as far to the side of 0.

    κ is about 3, because three queries make nearly all of the difference: the interval is approximate.
    """
    evaluation = evaluate(tmp_path, lost(3), {"baseline": baseline})
    (line,) = evaluation.comparison_lines

    assert line.mark == "sparse"
    assert 1 / 10_001 <= line.p_corrected < 0.05
    page = read_page(made(evaluation, "html"))
    (row,) = next(table for table in page.tables if table.name == "differences-web").groups[0].rows
    assert row[-1] == "worse"
    assert "worse |" in made(evaluation, "md")
    if baseline == "all_pairs":
        shown = first_screen(evaluation, width=200, colour=False)
        assert f"baseline {line.baseline}" in shown
        assert "better than" in shown.splitlines()[0]
        assert r"\textsuperscript{\phantom{a}b}" in made(evaluation, "latex")
    else:
        dagger = "ddagger" if line.p_corrected < 0.01 else "dagger"
        assert rf"\rlap{{$^{{\{dagger}}}$}}" in made(evaluation, "latex")


def by_holm(p_values: list[float]) -> list[float]:
    order = np.argsort(p_values)
    corrected, greatest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        greatest = max(greatest, min((len(p_values) - place) * p_values[index], 1.0))
        corrected[index] = greatest
    return corrected


@pytest.mark.parametrize("family", ["dataset", "measure"])
def test_a_named_test_and_correction_apply_to_every_measure(tmp_path, family):
    rng = np.random.default_rng(1)
    names = ["a", "b", "c"]
    models = {
        name: {m: rng.uniform(0.1 * i, 0.6 + 0.1 * i, N_QUERIES) for m in ("ap", "rr")} for i, name in enumerate(names)
    }
    evaluation = evaluate(
        tmp_path, models, {"baseline": "all_pairs", "test": "t", "correction": "holm", "family": family}
    )
    lines = evaluation.comparison_lines
    expected = [
        stats.ttest_rel(models[line.model][line.measure], models[line.baseline][line.measure]).pvalue for line in lines
    ]
    groups = [[i for i, line in enumerate(lines) if family == "dataset" or line.measure == m] for m in ("ap", "rr")]

    assert [line.p_value for line in lines] == pytest.approx(expected, rel=1e-6)
    for group in groups:
        corrected = by_holm([expected[i] for i in group])
        assert [lines[i].p_corrected for i in group] == pytest.approx(corrected, rel=1e-6)
    assert {(line.test, line.correction, line.role) for line in lines} == {("t", "holm", "")}
    tests = "3 pairs x 2 measures x 1 slice on web (6 tests)"
    each = ""
    if family == "measure":
        tests, each = "3 pairs x 1 measure x 1 slice on web (3 tests)", ", for each measure"
    said = f": t test, corrected among {tests} by Holm{each}"
    assert f"p{said}" in everything(evaluation, width=200, colour=False)
    assert f"P{said}" in " ".join(read_page(made(evaluation, "html")).text["differences"].split())
    latex = made(evaluation, "latex")
    assert "Paired $t$-test, corrected by Holm's method" in latex
    assert tests.replace(" x ", r" $\times$ ") in latex


def test_a_record_with_a_named_test_is_reproduced(tmp_path):
    evaluation = evaluate(
        tmp_path, lost(3), {"baseline": "base", "test": "t", "correction": "holm", "family": "measure"}
    )
    assert evaluation.record is not None
    found = rankledger.reproduce(str(evaluation.record), runs_dir=tmp_path / "again")
    assert found.verdict == "identical"


def test_a_primary_family_has_no_other_test(tmp_path):
    with pytest.raises(rankledger.InputError, match="primary family has its own test"):
        evaluate(tmp_path, lost(3), {"baseline": "base", "test": "t", "primary": True})
