"""The measure that leads, and the state of an evaluation."""

import pytest

from rankledger.pipeline.data.joined import DataWarning, Failure
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import lead_among
from rankledger.pipeline.record.evaluation import find_state

LOST = Failure("web", "bm25", "bm25.tsv: file not found")
BROKEN = DataWarning("web", "bm25", "failed", "clicks")


@pytest.mark.parametrize(
    ("lead", "measures", "leading"),
    [("ap", ["rr", "ap"], "ap"), ("ap", ["rr", "p@5"], "rr"), (None, ["rr"], "rr"), ("ap", [], None)],
)
def test_the_first_measure_leads_if_the_lead_measure_is_not_there(lead, measures, leading):
    assert lead_among(lead, measures) == leading


@pytest.mark.parametrize(
    ("effects", "failures", "warnings", "state"),
    [
        ([], [], [], "passed"),
        (["pass", "warn"], [], [], "passed"),
        (["stop", "pass"], [], [], "inconclusive"),
        (["stop"], [LOST], [], "incomplete"),
        (["pass"], [], [BROKEN], "incomplete"),
        (["pass"], [], [DataWarning("web", "bm25", "odd ranking")], "passed"),
        (["fail", "stop"], [LOST], [BROKEN], "failed"),
    ],
)
def test_the_state_follows_the_order_of_exit_codes(effects, failures, warnings, state):
    verdicts = [Verdict("floor", "web", "bm25", "rr", "all", "fail", effect, "") for effect in effects]

    assert find_state(verdicts, failures, warnings) == state
