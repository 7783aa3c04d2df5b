"""The page of a large evaluation: how large it is, what making it takes, and that it opens."""

from __future__ import annotations

import json

from tests.support.generated_data import write_large
from tests.system.report import choose, column, page_of

LAST = "[data-name='leaderboard-market-1']"


def test_a_large_evaluation(opened, tmp_path, capsys):
    """40 models × 2 datasets × 12 slices × 25 measures: a page that says what it leaves out.

    `make kernels` makes the page of six datasets and 10,000 queries, which has to stay under 6 MB.
    """
    sizes = {"n_models": 40, "n_datasets": 2, "n_queries": 1_000}
    compared = {"baseline": "model-00", "permutations": 200}
    config = write_large(tmp_path, **sizes, bootstrap={"resamples": 200}, comparison=compared)
    path = page_of(config, tmp_path)
    timings = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))["timings"]
    page = opened(path)
    waited = page.opening()
    with capsys.disabled():
        print(f"\n{path.stat().st_size / 1e6:.1f} MB, {timings}, {waited}")

    assert path.stat().st_size < 3_000_000
    assert "Slices by other measures: summary.csv" in page.text()
    assert page.driver.execute_script("return document.querySelectorAll('tr').length") < 6_000  # of 26,000 figures
    for part in ("all", "device=3"):
        choose(page, "slice", part, LAST)
        assert len(column(page, "figure", LAST)) == sizes["n_models"]
