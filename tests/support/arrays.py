"""Small arrays for kernels: exact inputs, and outputs that show what was not written."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

POISON = 77


def dtype_named(name: str) -> np.dtype[Any]:
    """Return NumPy's type of that name, or that of `ml_dtypes`."""
    return np.dtype(getattr(ml_dtypes, name, name))


def counted(*shape: int, dtype: str = "int32", start: int = 0, modulo: int = 0) -> Any:
    """Return consecutive integers from `start`, wrapped below `modulo` if it is not 0."""
    values = np.arange(start, start + int(np.prod(shape)))
    return (values % modulo if modulo else values).astype(dtype_named(dtype)).reshape(shape)


def poisoned(*shape: int, dtype: str = "int32") -> Any:
    """Return an array full of `POISON`, which no kernel of these tests computes everywhere."""
    kind = dtype_named(dtype)
    if kind == np.bool_:
        return np.ones(shape, kind)
    return np.full(shape, POISON).astype(kind)


def drawn(*shape: int, seed: int = 0, low: int = -8, high: int = 8, dtype: str = "float32") -> Any:
    """Return reproducible integers in ``[low, high)``: sums of their products are exact."""
    values = np.random.default_rng(seed).integers(low, high, shape)
    return values.astype(dtype_named(dtype))
