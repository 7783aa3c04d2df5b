"""NumPy and Arrow share buffers: what one writes the other one reads."""

import pytest

from rankledger.pipeline.support.arrow import repeated, strings


@pytest.mark.parametrize("value", ["", "web", "größer"])
@pytest.mark.parametrize("n_rows", [0, 1, 3])
def test_a_repeated_string_is_that_of_a_list(value, n_rows):
    found = repeated(value, n_rows)

    found.validate(full=True)
    assert found.equals(strings([value] * n_rows))
