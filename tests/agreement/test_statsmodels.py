"""Corrected p-values beside those of statsmodels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.multitest import multipletests

from rankledger.pipeline.inference.sign_flips import benjamini_hochberg, holm


@pytest.mark.parametrize(("ours", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
@settings(max_examples=15)  # statsmodels takes 50 ms for holm
@given(p_values=arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1)))
def test_corrections_agree(p_values, ours, theirs):
    np.testing.assert_allclose(ours(p_values), multipletests(p_values, method=theirs)[1], rtol=1e-12, atol=1e-300)
