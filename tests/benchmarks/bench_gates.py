"""How often a gate errs: 5,000 samples whose true difference is known, at its margin and away from it.

Printed as a table for docs/gates.md.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.benchmarks.gate_errors import outcomes

MARGIN = 0.005
DRAWS = 5_000


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("n_queries", [150, 500, 2000])
def test_at_its_margin_a_gate_fails_and_passes_alike_seldom(n_queries, share, capsys):
    """About 2.5% fail, a false alarm, and 2.5% pass, a miss; a few more where only 45 skewed differences are not 0."""
    told = {"margin": MARGIN, "n_queries": n_queries, "draws": DRAWS, "resamples": 2_000, "share": share}
    at_margin = Counter(line for (line,) in outcomes(truth=-MARGIN, **told))
    unchanged = Counter(line for (line,) in outcomes(truth=0.0, **told))
    thrice = Counter(line for (line,) in outcomes(truth=-3 * MARGIN, **told))
    with capsys.disabled():
        print(f"\n{n_queries:6,} queries, {share:.0%} differ")
        for name, found in (("at the margin", at_margin), ("no drop", unchanged), ("thrice the margin", thrice)):
            print(f"{name:20}", {outcome: f"{found[outcome] / DRAWS:.1%}" for outcome in ("fail", "pass")})

    assert 0.015 <= at_margin["fail"] / DRAWS <= 0.04
    assert 0.015 <= at_margin["pass"] / DRAWS <= 0.04
    assert unchanged["fail"] <= at_margin["fail"]
    assert thrice["pass"] <= at_margin["pass"]


def test_the_slices_of_a_gate_share_its_errors(capsys):
    """Of 1,000 gates with 12 slices of 200 queries, all at the margin, about one in 20 decides anything."""
    found = list(
        outcomes(truth=-MARGIN, margin=MARGIN, n_queries=2400, n_slices=12, draws=1000, resamples=10_000, share=1.0)
    )
    fails, passes = (np.mean([outcome in lines for lines in found]) for outcome in ("fail", "pass"))
    with capsys.disabled():
        print(f"\n12 slices: some fail {fails:.1%}, some pass {passes:.1%}")

    assert fails <= 0.04
    assert passes <= 0.04
