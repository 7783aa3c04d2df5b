"""Between NumPy and Arrow by way of their buffers.

`pa.array`, `pa.scalar` and `to_numpy` import pandas where it is installed, which takes longer than many an evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["bools", "concatenate", "floats", "integers", "numpy_of", "repeated", "strings"]


def numpy_of(numbers: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """(N,): the numbers of an Arrow array without nulls as NumPy sees them, read-only and not copied."""
    return np.frombuffer(numbers.buffers()[1], dtype, len(numbers), numbers.offset * np.dtype(dtype).itemsize)


def concatenate(arrays: Sequence[pa.StringArray]) -> pa.StringArray:
    """The strings of all arrays in one."""
    return pa.concat_arrays(arrays) if arrays else strings([])


def integers(values: npt.NDArray[np.signedinteger]) -> pa.Int64Array:
    """The integers as Arrow sees them, not copied if they have 64 bits."""
    buffer = pa.py_buffer(np.ascontiguousarray(values, dtype=np.int64))
    return pa.Int64Array.from_buffers(pa.int64(), len(values), [None, buffer])


def floats(values: npt.NDArray[np.float64]) -> pa.DoubleArray:
    """The floats as Arrow sees them, not copied; NaN stays NaN and is no null."""
    return pa.DoubleArray.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def bools(values: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """The truth values as an Arrow array, which keeps eight to a byte."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, bits])


def strings(values: Iterable[str]) -> pa.StringArray:
    """The strings as an Arrow array."""
    encoded = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def repeated(value: str, n_rows: int) -> pa.StringArray:
    """The string so many times."""
    encoded = value.encode()
    offsets = np.arange(n_rows + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.StringArray.from_buffers(n_rows, pa.py_buffer(offsets), pa.py_buffer(encoded * n_rows))
