"""Conversions between NumPy and Arrow by their buffers.

`pa.array`, `pa.scalar` and `to_numpy` would import pandas, which takes longer than many an evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_STRINGS = 1 << 16  # that are encoded at a time: as bytes each takes several times its text


def numpy_of(numbers: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the (N,) numbers of an Arrow array without nulls, read-only and not copied."""
    return np.frombuffer(numbers.buffers()[1], dtype, len(numbers), numbers.offset * np.dtype(dtype).itemsize)


def concatenate(arrays: Sequence[pa.StringArray]) -> pa.StringArray:
    """Return the strings of all arrays in one."""
    return pa.concat_arrays(arrays) if arrays else strings([])


def integers(values: npt.NDArray[np.signedinteger]) -> pa.Int64Array:
    """Return integers as an Arrow array, not copied if they have 64 bits."""
    buffer = pa.py_buffer(np.ascontiguousarray(values, dtype=np.int64))
    return pa.Int64Array.from_buffers(pa.int64(), len(values), [None, buffer])


def floats(values: npt.NDArray[np.floating]) -> pa.DoubleArray:
    """Return floats as an Arrow array, not copied if they have 64 bits. NaN stays NaN."""
    buffer = pa.py_buffer(np.ascontiguousarray(values, dtype=np.float64))
    return pa.DoubleArray.from_buffers(pa.float64(), len(values), [None, buffer])


def bools(values: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """Return truth values as an Arrow array."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, bits])


def strings(values: Iterable[str]) -> pa.StringArray:
    """Return strings as an Arrow array."""
    text, ends, left = bytearray(), [np.zeros(1, dtype=np.int32)], iter(values)
    while encoded := [value.encode() for value in islice(left, _STRINGS)]:
        ends.append(len(text) + np.cumsum([*map(len, encoded)], dtype=np.int32))
        text += b"".join(encoded)
    offsets = np.concatenate(ends)
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(bytes(text)))


def repeated(value: str, n_rows: int) -> pa.StringArray:
    """Return an Arrow array of one string, `n_rows` times."""
    encoded = value.encode()
    offsets = np.arange(n_rows + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.StringArray.from_buffers(n_rows, pa.py_buffer(offsets), pa.py_buffer(encoded * n_rows))
