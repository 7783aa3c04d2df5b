"""Signs of clusters: in a cluster whose sign is -1 two models change places.

Where there is no difference between the models either order is as likely, so every pattern of signs is. All of them
where there are few clusters, else random ones, which are drawn once per dataset and shared by all that is tested on it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_ENUMERATED", "Signs", "all_signs", "draw_signs"]

Signs = npt.NDArray[np.int8]

MOST_ENUMERATED = 13
"""Clusters of which all patterns are looked at, 8,192 of them; of more, random ones."""


def all_signs(n_clusters: int) -> Signs:
    """(2**K, K): every pattern of 1 and -1 over K clusters; the first is that of the sample, all 1."""
    patterns = np.arange(2**n_clusters)[:, np.newaxis]
    return _from_bits(patterns >> np.arange(n_clusters) & 1)


def draw_signs(entropy: list[int], n_patterns: int, n_clusters: int) -> Signs:
    """(n_patterns, C): random signs, a bit each."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    n_signs = n_patterns * n_clusters
    drawn = np.frombuffer(rng.bytes(-(-n_signs // 8)), dtype=np.uint8)
    return _from_bits(np.unpackbits(drawn, count=n_signs).reshape(n_patterns, n_clusters))


def _from_bits(bits: npt.NDArray[np.integer]) -> Signs:
    return 1 - 2 * bits.astype(np.int8)
