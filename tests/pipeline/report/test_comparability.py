"""Which evaluations may stand side by side."""

from __future__ import annotations

import pytest

from rankledger.pipeline.report.tables import comparability_notes, shared_lead_measures
from tests.support.handwritten_results import estimates, page

WEB = estimates("web", {"bm25": {"ap": 0.4, "rr": 0.5}})
NEWS = estimates("news", {"bm25": {"rr": 0.5}})


def test_each_dataset_leads_as_in_the_last_evaluation_that_has_it():
    """web leads by ap on the 20th and by rr on the 21st, in whatever order they are named; news is in one alone."""
    old = page([*NEWS, *WEB], lead={"web": "ap", "news": "rr"}, created="2026-11-20T02:00:00+00:00")
    new = page(WEB, lead={"web": "rr"}, created="2026-11-21T02:00:00+00:00")

    assert shared_lead_measures([new, old]) == shared_lead_measures([old, new]) == {"web": "rr", "news": "rr"}
    assert list(shared_lead_measures([old, new])) == ["news", "web"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"datasets": {"web": {"digests": {"judgments": "new"}}}}, ["the judgments differ on web"]),
        ({"definitions": {"ap": {"fingerprint": "0000000000000000"}}}, ["the definitions of ap differ on web"]),
        ({"definitions": {"rr": {"fingerprint": "0000000000000000"}}}, []),  # is not shown side by side
    ],
)
def test_what_keeps_figures_from_being_compared_is_said(changes, said):
    """Other judgments, and another meaning of the measure that is shown; one without the dataset is no harm."""
    found = list(comparability_notes([page(WEB), page(WEB, **changes), page(NEWS)]))

    assert [line.partition(" in these evaluations")[0] for line in found] == said
    assert all(line.endswith("figures there cannot be compared") for line in found)
