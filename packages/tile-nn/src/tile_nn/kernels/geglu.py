"""`tile_nn.geglu`."""

from __future__ import annotations

from typing import Any

import tile_api as tile
from tile_nn import checks


@tile.function
def geglu(gate: Any, up: Any, *, approximate: str = "tanh") -> Any:
    """Return ``gelu(gate) * up``.

    Parameters
    ----------
    gate, up
        Of one shape, floats of any type.
    approximate
        ``"tanh"``, as in Gemma; ``"none"``: by the error function.

    Returns
    -------
    y
        Of their shape and type: computed in float32, and rounded once.

    Notes
    -----
    Known elsewhere as ``liger_geglu``; packed in one tensor it is `gelu_and_mul`. N. Shazeer, *GLU
    variants improve transformer*, 2020.
    """
    checks.floats("geglu", gate=gate, up=up)
    checks.of_shape("geglu", gate.shape, "that of gate", up=up)
    checks.one_of("tile_nn.geglu: approximate", approximate, ("tanh", "none"))
    return tile.nn.gelu(gate, approximate=approximate) * up
