"""`tile_nn.swiglu`."""

from __future__ import annotations

from typing import Any

import tile_api as tile
from tile_nn import checks


@tile.function
def swiglu(gate: Any, up: Any) -> Any:
    """Return ``silu(gate) * up``.

    Parameters
    ----------
    gate, up
        Of one shape, floats of any type.

    Returns
    -------
    y
        Of their shape and type: computed in float32, and rounded once.

    Notes
    -----
    ``silu(x) = x / (1 + exp(-x))``. Known elsewhere as ``liger_swiglu``; packed in one tensor it is
    `silu_and_mul`. N. Shazeer, *GLU variants improve transformer*, 2020.
    """
    checks.floats("swiglu", gate=gate, up=up)
    checks.of_shape("swiglu", gate.shape, "that of gate", up=up)
    return tile.nn.silu(gate) * up
