"""A record shown again: what is printed of it is what was printed when it was evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import rankledger
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.report.markdown import note
from rankledger.pipeline.report.terminal import as_data, closing, differences, leaderboard
from rankledger.pipeline.report.verdicts import table
from rankledger.pipeline.workflow.evaluation import evaluation_of
from tests.support.generated_data import rating_collection, search_collection, write_config

WEB = search_collection(30, n_queries=30, models=("bm25", "dense", "rrf"))
STARS = rating_collection(31, n_users=12, models=("bm25", "dense"))
GATES = [
    {"name": "floor", "measure": "ap", "at_least": 0.9},
    {"name": "no-drop", "measure": "rr", "against": "self@last_passed", "margin": 0.1},
]
SECTIONS: list[dict[str, Any]] = [
    {},
    {"sensitivity": ["ties"], "comparison": {"baseline": "bm25"}, "pooled": True},
    {"gates": GATES, "comparison": {"baseline": "all_pairs", "test": "bootstrap"}},
]


def broken(config: Path) -> None:
    """One model's output is not there any more, and another model has a hostile name."""
    (config.parent / "web/dense.txt").unlink()
    document = yaml.safe_load(config.read_text(encoding="utf-8"))
    document["models"]["a|b [red]*x*"] = document["models"].pop("rrf")
    config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


@pytest.mark.parametrize("damage", [lambda config: None, broken], ids=["whole", "broken"])
@pytest.mark.parametrize("sections", SECTIONS, ids=["plain", "ties", "gates"])
def test_what_is_printed_of_a_record_is_what_evaluate_printed(tmp_path, sections, damage):
    """The tables, the note and the JSON are the same to the letter, with missing outputs, ties, gates and NaN too."""
    suites = {"search": ["ndcg@5,10", "ap", "rr", "fn", "kendall_tau"], "stars": ["rmse", "mae"]}
    config = write_config(tmp_path, {"web": WEB, "stars": STARS}, suites, lead="ap", **sections)
    damage(config)
    evaluated = rankledger.evaluate(config, tracking=False, runs_dir=tmp_path / "runs")
    shown = evaluation_of(read_record(evaluated.record))

    assert leaderboard(shown, width=120, colour=True) == leaderboard(evaluated, width=120, colour=True)
    assert note(shown) == note(evaluated)
    assert as_data(shown) == as_data(evaluated)
    assert closing(shown) == closing(evaluated)
    for of in (shown, evaluated):
        assert of.leading == {"web": "ap", "stars": "rmse"}
    printed = [
        differences(of.comparison_lines, of.leading_difference, width=120, colour=False) for of in (shown, evaluated)
    ]
    assert printed[0] == printed[1]
    assert table(shown.verdicts, width=120, colour=False) == table(evaluated.verdicts, width=120, colour=False)
