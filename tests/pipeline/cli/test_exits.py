"""The exit code of an evaluation: of several that apply, the one that weighs most."""

from itertools import product
from pathlib import Path

import pytest

from rankledger.pipeline.cli.terminal import exit_code_of
from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.record.evaluation import Evaluation
from tests.support.manifests import make_evaluation

WEIGHTS = (1, 5, 4, 3, 0)  # what weighs most comes first


def evaluation(*, gate: str, unsaved: bool, untracked: bool, failed: bool) -> Evaluation:
    effect = {"pass": "pass", "inconclusive": "stop", "fail": "fail"}[gate]
    verdict = Verdict("floor", "web", "bm25", "ap", "all", gate, effect, "a reason")
    return make_evaluation(
        evaluation_id="20261120T020000Z-nightly-1f0c9a2b",
        directions={},
        results=(),
        estimates=(),
        quality={},
        failures=(Failure("web", "dense", "not there"),) if failed else (),
        record=Path("record"),
        store=None if untracked else "sqlite:///mlflow.db",
        untracked="away" if untracked else None,
        unsaved="away" if unsaved else None,
        verdicts=(verdict,),
    )


@pytest.mark.parametrize("required", [False, True])
def test_the_weightiest_code_is_the_one(required):
    """A gate that failed before a place without a copy, that before an output, that before doubt; over all 24 cases."""
    for gate, unsaved, untracked, failed in product(["pass", "inconclusive", "fail"], *[[False, True]] * 3):
        apply = {
            {"pass": 0, "inconclusive": 3, "fail": 1}[gate],
            *([5] if unsaved or (untracked and required) else []),
            *([4] if failed else []),
        }
        found = evaluation(gate=gate, unsaved=unsaved, untracked=untracked, failed=failed)

        assert exit_code_of(found, require_tracking=required) == min(apply, key=WEIGHTS.index)
