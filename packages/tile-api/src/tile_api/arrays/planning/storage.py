"""What tiles and accumulators are stored in."""

from __future__ import annotations

from tile_api.arrays.equations.expressions import INDEX, Expr, bound_of
from tile_api.arrays.equations.memoization import memoized
from tile_api.arrays.reductions.state import State
from tile_core.dtypes import DType


def tile_dtype(x: Expr) -> DType:
    """Return what a tile of `x` is stored in: positions in a dimension fit 32 bits."""
    return DType("int32") if x.dtype == INDEX and _is_position(x) else x.dtype


@memoized
def _is_position(x: Expr) -> bool:
    match x.op:
        case "const":
            return -(1 << 31) <= int(x.value) < 1 << 31
        case "where":
            return all(map(_is_position, x.args[1:]))
        case "reduce":
            return x.value[0] in ("max", "min") and _is_position(x.args[0])
        case "load" | "cast" | "state":
            return False
    bound = bound_of(x)
    return bound <= 1 << 31 if bound is not None else all(map(_is_position, x.args))


def state_dtype(s: State) -> DType:
    """Return what an accumulator is stored in: a sum of positions may need 64 bits."""
    return tile_dtype(s.body) if s.kind in ("max", "min") else s.body.dtype
