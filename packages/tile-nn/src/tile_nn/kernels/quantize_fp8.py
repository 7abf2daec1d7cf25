"""`tile_nn.quantize_fp8`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks
from tile_nn.kernels.quantize_int8 import in_groups

LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float8_e4m3fnuz": 240.0}


@tile.function(numerics="strict")
def quantize_fp8(
    x: Any, *, group_size: int = 0, dtype: str = "float8_e4m3fn", eps: float = 1e-10,
    scale_ue8m0: bool = False,
) -> Any:  # fmt: skip
    """Return floats of 8 bits and the scales that bring them back, for each row or group.

    Parameters
    ----------
    x
        ``(..., d)``, floats of any type.
    group_size
        So many neighbours of a row share a scale; 0: all of them. DeepSeek's is 128.
    dtype
        ``"float8_e4m3fn"``, ``"float8_e5m2"``, or ``"float8_e4m3fnuz"`` (gfx942).
    eps
        The least that the largest magnitude of a group counts for; DeepSeek's is 1e-4.
    scale_ue8m0
        Whether scales are powers of two, rounded up.

    Returns
    -------
    q
        ``(..., d)``: ``x / scale``, limited to the largest number of `dtype`, halves to even.
    scale
        ``(..., d / group_size)``, or ``(..., 1)``, float32: the largest magnitude over the largest
        number of `dtype`.

    Notes
    -----
    Known elsewhere as ``scaled_fp8_quant`` (vLLM), ``sgl_per_token_group_quant_fp8`` (SGLang),
    ``per_token_cast`` (TileKernels), ``act_quant`` (DeepSeek).
    """
    checks.one_of("tile_nn.quantize_fp8: dtype", dtype, tuple(LARGEST))
    most = LARGEST[dtype]
    groups = in_groups("quantize_fp8", x, group_size)
    scale = np.maximum(np.max(np.abs(groups), axis=-1), eps) / np.float32(most)
    if scale_ue8m0:
        scale = np.exp2(np.ceil(np.log2(scale)))
    q = np.clip(groups / np.expand_dims(scale, -1), -most, most)
    return np.reshape(q.astype(dtype), x.shape), scale
