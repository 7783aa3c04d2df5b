"""The measure that leads among those there are."""

from __future__ import annotations

import pytest

from rankledger.pipeline.types.results import lead_among


@pytest.mark.parametrize(
    ("lead", "measures", "leading"),
    [("ap", ["rr", "ap"], "ap"), ("ap", ["rr", "p@5"], "rr"), (None, ["rr"], "rr"), ("ap", [], None)],
)
def test_the_first_measure_leads_if_the_lead_measure_is_not_there(lead, measures, leading):
    """It is one of the measures there are, in their order; of none, none leads."""
    assert lead_among(lead, measures) == leading
