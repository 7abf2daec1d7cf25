"""`tile_nn.silu_and_mul`."""

from __future__ import annotations

from typing import Any

import tile_api as tile
from tile_nn import checks
from tile_nn.kernels.swiglu import swiglu


@tile.function
def silu_and_mul(x: Any) -> Any:
    """Return the first half of each row through SiLU, times the second half.

    Parameters
    ----------
    x
        ``(..., 2 · d)``, floats of any type: the gate, then what it lets through.

    Returns
    -------
    y
        ``(..., d)``, of the type of `x`: computed in float32, and rounded once.

    Notes
    -----
    Known elsewhere by this name in FlashInfer, vLLM and SGLang, and as ``swiglu_forward``
    (TileKernels). For two tensors there is `swiglu`.
    """
    checks.floats("silu_and_mul", x=x)
    checks.ranked("silu_and_mul", 1, "(..., 2 * d)", x=x)
    checks.even("silu_and_mul", x=x)
    half = x.shape[-1] // 2
    return swiglu(x[..., :half], x[..., half:])
