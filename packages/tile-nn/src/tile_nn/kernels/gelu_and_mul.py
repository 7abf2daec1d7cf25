"""`tile_nn.gelu_and_mul`."""

from __future__ import annotations

from typing import Any

import tile_api as tile
from tile_nn import checks
from tile_nn.kernels.geglu import geglu


@tile.function
def gelu_and_mul(x: Any, *, approximate: str = "none") -> Any:
    """Return the first half of each row through GELU, times the second half.

    Parameters
    ----------
    x
        ``(..., 2 · d)``, floats of any type: the gate, then what it lets through.
    approximate
        ``"none"``: by the error function; ``"tanh"``.

    Returns
    -------
    y
        ``(..., d)``, of the type of `x`: computed in float32, and rounded once.

    Notes
    -----
    Known elsewhere by this name in FlashInfer, vLLM and SGLang, where ``gelu_tanh_and_mul`` is it
    with ``approximate="tanh"``. For two tensors there is `geglu`.
    """
    checks.floats("gelu_and_mul", x=x)
    checks.ranked("gelu_and_mul", 1, "(..., 2 * d)", x=x)
    checks.even("gelu_and_mul", x=x)
    half = x.shape[-1] // 2
    return geglu(x[..., :half], x[..., half:], approximate=approximate)
