"""`tile.nn.dequantize`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.definitions._choices import one_of
from tile_api.arrays.function import function


@function
def dequantize(x: Any, scale: Any, zero: Any = 0, *, bits: int = 8) -> Any:
    """Return ``(x - zero) * scale``, in the type of `scale`.

    Of fewer than 8 `bits`, several stand in a byte, those of lower indices in lower bits. Where
    `scale` or `zero` have fewer columns, each is for a group of neighbours.
    """
    one_of("tile.nn.dequantize: bits", bits, 1, 2, 4, 8)
    if bits < 8:
        codes = np.expand_dims(x, -1) >> (np.arange(8 // bits, dtype="uint8") * bits)
        x = np.reshape(codes & (2**bits - 1), (*x.shape[:-1], -1))
    columns = x.shape[-1]
    scale, zero = (
        np.repeat(a, columns // np.shape(a)[-1], axis=-1) if np.ndim(a) else a
        for a in (scale, zero)
    )
    return (x.astype(scale.dtype) - zero) * scale
