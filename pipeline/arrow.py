"""Between NumPy and Arrow by way of their buffers.

`pa.array`, `pa.scalar` and `to_numpy` import pandas where it is installed, which takes longer than many an evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["floats", "integers", "numpy_of", "strings"]


def numpy_of(chunks: Sequence[pa.Array], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """(N,): the numbers of Arrow arrays without nulls, one after the other, read-only where there is one array."""
    size = np.dtype(dtype).itemsize
    parts = [np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * size) for chunk in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def integers(values: npt.NDArray[np.int64]) -> pa.Int64Array:
    """The integers as Arrow sees them, not copied."""
    return pa.Int64Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def floats(values: npt.NDArray[np.float64]) -> pa.DoubleArray:
    """The floats as Arrow sees them, not copied; NaN stays NaN and is no null."""
    return pa.DoubleArray.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def strings(values: Iterable[str]) -> pa.StringArray:
    """The strings as an Arrow array."""
    encoded = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))
