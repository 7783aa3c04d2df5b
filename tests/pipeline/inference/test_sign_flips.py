"""Signs: every pattern of a few, and random ones that are fair, independent and the same each time."""

import numpy as np

from rankledger.pipeline.inference.sign_flips import all_signs, draw_signs


def test_every_pattern_of_two_clusters():
    np.testing.assert_array_equal(all_signs(2), [[1, 1], [-1, 1], [1, -1], [-1, -1]])


def test_every_pattern_is_there_once():
    """2**13 patterns of 13 clusters, all different; of no cluster there is one, which is empty."""
    assert len(np.unique(all_signs(13), axis=0)) == 2**13
    assert all_signs(0).shape == (1, 0)


def test_drawn_signs_are_fair_and_independent():
    """Of 40,000 patterns of 9 clusters each sign is as often 1 as -1, and so is the product of any two of them."""
    signs = draw_signs([0, 1, 2], 40_000, 9).astype(float)

    assert set(np.unique(signs)) == {-1, 1}
    products = signs.T @ signs / len(signs)
    np.testing.assert_allclose(signs.mean(axis=0), 0, atol=4 / 200)
    np.testing.assert_allclose(products, np.eye(9), atol=4 / 200)


def test_fewer_patterns_are_the_first_of_more():
    np.testing.assert_array_equal(draw_signs([0, 1, 2], 5, 7), draw_signs([0, 1, 2], 90, 7)[:5])
    assert (draw_signs([0, 1, 2], 5, 7) != draw_signs([0, 1, 3], 5, 7)).any()
