"""`tilelang.quantize.utils`: numbers of a few bits, packed."""

from __future__ import annotations

from typing import Any

from tile_core.errors import FrontendValueError


def general_compress(
    lowprecision_weight: Any, source_bits: int = 4, storage_dtype: Any = None
) -> Any:
    """Return small numbers packed along the last axis, the first in the lowest bits.

    Parameters
    ----------
    lowprecision_weight
        Integers, of which the lowest `source_bits` bits count: a NumPy array or a torch tensor.
    source_bits
        Bits per number: a divisor of 8.
    storage_dtype
        What to view the bytes as: a NumPy type; None means int8.

    Raises
    ------
    FrontendValueError
        If numbers do not fill bytes.
    """
    import numpy as np

    values = np.asarray(
        lowprecision_weight.cpu().numpy()
        if hasattr(lowprecision_weight, "cpu")
        else lowprecision_weight
    )
    each = 8 // source_bits
    if source_bits * each != 8 or values.shape[-1] % each:
        raise FrontendValueError(
            f"{values.shape[-1]} numbers of {source_bits} bits do not fill bytes",
            hint="use 1, 2, 4 or 8 bits, and a last axis that fills whole bytes",
        )
    grouped = (values.astype(np.uint8) & ((1 << source_bits) - 1)).reshape(
        *values.shape[:-1], -1, each
    )
    shifts = np.arange(each, dtype=np.uint8) * np.uint8(source_bits)
    packed = np.bitwise_or.reduce(grouped << shifts, axis=-1)
    return packed.view(np.int8 if storage_dtype is None else storage_dtype)
