"""NumPy and Arrow share buffers: what one writes the other one reads."""

from __future__ import annotations

import pytest

from rankledger.pipeline.support.arrow import repeated, strings


@pytest.mark.parametrize("value", ["", "web", "größer"])
@pytest.mark.parametrize("n_rows", [0, 1, 3])
def test_a_repeated_string_is_that_of_a_list(value, n_rows):
    """Its offsets count bytes, of which some letters have two."""
    found = repeated(value, n_rows)

    found.validate(full=True)
    assert found.equals(strings([value] * n_rows))
