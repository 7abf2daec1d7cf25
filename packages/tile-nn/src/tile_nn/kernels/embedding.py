"""`tile_nn.embedding`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks


@tile.function
def embedding(ids: Any, weight: Any, *, scale: float = 1.0) -> Any:
    """Return a row of a table for each number.

    Parameters
    ----------
    ids
        Integers of any shape, from 0 to less than `rows`. Another one is an error of the kernel:
        TL6009.
    weight
        ``(rows, d)``, floats of any type.
    scale
        What rows are multiplied by: Gemma's is the root of `d`.

    Returns
    -------
    y
        ``(*ids.shape, d)``, of the type of `weight`.

    Notes
    -----
    Its gradient adds rows in the order of `ids`: equal arguments give equal bits. Known elsewhere
    as ``torch.nn.functional.embedding``, ``liger_embedding``.
    """
    checks.integers("embedding", ids=ids)
    checks.floats("embedding", weight=weight)
    checks.require(
        weight.ndim == 2, "embedding", f"weight has {weight.ndim} dimensions", "it is (rows, d)"
    )
    rows = weight[np.where(ids < 0, weight.shape[0], ids)]
    return rows if scale == 1.0 else (rows * scale).astype(weight.dtype)
