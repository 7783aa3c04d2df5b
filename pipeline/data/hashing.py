"""64-bit hashes of (query, document) pairs, eight bytes at a time over Arrow's own buffers.

Equal pairs have equal hashes. That two different ones do is so unlikely that a hash may stand for a pair in sorting and
looking up, but every match is verified on the ids.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.parallel import map_threads
from pipeline.tables import Chunk, Rows

__all__ = ["Hashes", "hash_pairs"]

Hashes = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: multiplying by it spreads low bits upwards
_OTHER_ODD = np.uint64(0xC2B2AE3D27D4EB4F)
_WORD = 8  # bytes
_LOW_BYTES = np.array([(1 << 8 * n) - 1 for n in range(_WORD + 1)], dtype=np.uint64)  # masks of the first n bytes


def hash_pairs(rows: Rows, queries: npt.NDArray[np.int64]) -> Hashes:
    """(N,): the hash of each row's query and document.

    Args:
        rows: the rows.
        queries: a number for each of `rows.query_ids`, the same wherever hashes are compared.
    """
    salts = queries.astype(np.uint64) * _OTHER_ODD
    hashes = np.empty(rows.ends[-1], dtype=np.uint64)

    def fill(chunk: Chunk, end: int) -> None:
        span = slice(end - len(chunk.values), end)
        np.bitwise_xor(_hash_ids(chunk.doc_ids), salts[chunk.query_codes], out=hashes[span])

    map_threads(fill, rows.chunks, rows.ends)
    return hashes


def _hash_ids(ids: pa.StringArray) -> Hashes:
    _, offsets, text = ids.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(ids) + 1, ids.offset * 4).astype(np.int64)
    starts, lengths = bounds[:-1], np.diff(bounds)
    words = _overlapping_words(text, int(bounds[-1]))
    hashes = lengths.astype(np.uint64) * _ODD
    rows: npt.NDArray[np.int64] | slice = slice(None)
    for begin in range(0, int(lengths.max(initial=0)), _WORD):
        if begin:
            rows = np.flatnonzero(lengths > begin)
        word = words[starts[rows] + begin] & _LOW_BYTES[np.minimum(lengths[rows] - begin, _WORD).clip(0)]
        mixed = (hashes[rows] ^ word) * _ODD
        hashes[rows] = mixed ^ (mixed >> np.uint64(29))
    return hashes


def _overlapping_words(text: pa.Buffer | None, size: int) -> Hashes:
    """The eight bytes that begin at every byte of the text, as one number each; zeros follow the text."""
    padded = np.zeros(size + _WORD, dtype=np.uint8)
    if text is not None:
        padded[:size] = np.frombuffer(text, np.uint8, size)
    return np.ndarray(size + 1, dtype=np.uint64, buffer=padded, strides=(1,))
