"""`tile_nn.quantize_int8`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks


@tile.function(numerics="strict")
def quantize_int8(x: Any, *, group_size: int = 0, eps: float = 1e-10) -> Any:
    """Return bytes and the scales that bring them back, a scale for each row or group.

    Parameters
    ----------
    x
        ``(..., d)``, floats of any type.
    group_size
        So many neighbours of a row share a scale; 0: all of them.
    eps
        The least that the largest magnitude of a group counts for: a group of zeros has a scale.

    Returns
    -------
    q
        ``(..., d)``, int8, from -127 to 127: ``x / scale``, halves rounded to even.
    scale
        ``(..., d / group_size)``, or ``(..., 1)``, float32: the largest magnitude over 127.

    Notes
    -----
    A row with NaN has scale NaN. Known elsewhere as ``scaled_int8_quant`` (vLLM),
    ``sgl_per_token_group_quant_int8`` (SGLang), ``int8_vectorwise_quant`` (bitsandbytes),
    ``per_token_cast`` (TileKernels).
    """
    groups = in_groups("quantize_int8", x, group_size)
    scale = np.maximum(np.max(np.abs(groups), axis=-1), eps) / np.float32(127)
    q = np.rint(np.clip(groups / np.expand_dims(scale, -1), -127, 127))
    return np.reshape(q.astype("int8"), x.shape), scale


def in_groups(kernel: str, x: Any, group_size: int) -> Any:
    """Return rows as groups, in float32."""
    checks.floats(kernel, x=x)
    checks.ranked(kernel, 1, "(..., d)", x=x)
    size = group_size or x.shape[-1]
    checks.require(
        isinstance(size, int) and size >= 0 and x.shape[-1] % max(size, 1) == 0, kernel,
        f"group_size is {group_size!r}, of rows of {x.shape[-1]} elements",
        "0, or a number that rows are a multiple of",
    )  # fmt: skip
    groups = np.reshape(x, (*x.shape[:-1], x.shape[-1] // max(size, 1), size))
    return groups.astype("float32")
