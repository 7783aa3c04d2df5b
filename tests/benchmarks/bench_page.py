"""What the page of a large evaluation weighs, and what making it costs beside the evaluation.

40 models × 6 datasets × 12 slices × 25 measures × 10,000 queries, each output ten documents deep.
"""

import json

import rankledger
from tests.support.generated_data import write_large

_LIMIT = 6_000_000  # bytes


def test_the_page_of_a_large_evaluation(tmp_path, capsys):
    sizes = {"n_models": 40, "n_datasets": 6, "n_queries": 10_000}
    compared = {"baseline": "model-00", "permutations": 1_000}
    config = write_large(tmp_path, **sizes, bootstrap={"resamples": 1_000}, comparison=compared)
    record = rankledger.evaluate_config(config, runs_dir=tmp_path / "runs", tracking=False).record
    timings = json.loads((record / "manifest.json").read_text(encoding="utf-8"))["timings"]
    size = (record / "report.html").stat().st_size

    assert size < _LIMIT
    assert timings["report"] < sum(timings.values()) - timings["report"]
    with capsys.disabled():
        print(f"\n{size / 1e6:.2f} MB; seconds: {timings}")
