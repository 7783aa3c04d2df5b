"""The page of a large evaluation: how large it is, what making it takes, where things are, and that it opens."""

import json
import shutil
from contextlib import chdir
from pathlib import Path

import rankledger
from tests.support.generated_data import write_large
from tests.system.report import choose, column

MEASURES = (
    *("ndcg@1,3,5,10", "p@1,3,5,10", "r@1,3,5,10", "success@3,5,10"),
    *("ap", "rr@10", "judged@10", "rbp(p=0.8)", "err@10"),
)
GATES = [
    {"name": "no worse", "measure": "ndcg@10", "against": "model-00", "margin": 0.01, "slices": ["market"]},
    {"name": "floor", "measure": "ndcg@10", "at_least": 0.75},
]
BOARD = "[data-name='leaderboard-market-0']"
REASONS = "[data-name='reasons']"


def test_a_large_evaluation(opened, tmp_path, capsys):
    config = write_large(
        tmp_path,
        n_models=25,
        n_datasets=4,
        n_queries=400,
        n_slices=8,
        suites={"search": list(MEASURES)},
        lead="ndcg@10",
        gates=GATES,
        comparison={"baseline": "model-00", "permutations": 200},
        bootstrap={"resamples": 200},
    )
    with chdir(tmp_path):
        repeat(rankledger.evaluate_config(config, tracking=False, overrides=["report=false"]).record, 29)
        path = (rankledger.evaluate_config(config, date="2020-01-30", tracking=False).record / "report.html").absolute()
    timings = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))["timings"]
    page = opened(path)
    waited = page.opening()
    with capsys.disabled():
        print(f"\n{path.stat().st_size / 1e6:.2f} MB, {timings}, {waited}, {page.tab_stops()} tab stops")

    assert path.stat().st_size < 2_000_000
    assert page.driver.execute_script("return document.querySelectorAll('tr').length") < 5_000  # of 18,000 figures
    assert page.tab_stops() < 60
    for width, height in ((1440, 900), (375, 812)):
        page.see(width, height=height)
        assert page.top("#verdict") < height / 4
        assert page.top(REASONS) < height * 1.5
        assert page.top(f"{BOARD} tbody tr:nth-child(2)") < 2 * height
        assert page.overhang() == 0
        assert len(column(page, "model", REASONS)) == (10 if width > 1000 else 2)
    assert len(page.all("[data-name='nights'] tbody svg")) == 100
    assert [line.text for line in page.all("[data-name='nights'] .more-line button")] == ["98 more"]
    more = page.all(f"{REASONS} .more-line button")[0]
    assert more.text == f"{len(page.all(f'{REASONS} tbody tr')) - 2} more"
    more.click()
    assert len(column(page, "model", REASONS)) > 100
    assert "Slices by other measures: summary.csv" in page.text()
    for part in ("all", "device=3"):
        choose(page, "slice", part)
        assert len(column(page, "ndcg@10", BOARD)) == 25


def repeat(record: Path, n_nights: int) -> None:
    for night in range(1, n_nights + 1):
        copy = record.with_name(f"202001{night:02}T020000Z-large-{night:08x}")
        shutil.copytree(record, copy)
        manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
        day = f"2020-01-{night:02}"
        manifest |= {"evaluation_id": copy.name, "date": day, "created": f"{day}T02:00:00+00:00"}
        (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    shutil.rmtree(record)
