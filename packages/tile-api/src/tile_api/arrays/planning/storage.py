"""What tiles and accumulators are stored in."""

from __future__ import annotations

from tile_api.arrays.equations.expressions import INDEX, Expr, walk
from tile_api.arrays.equations.index_bounds import range_of
from tile_api.arrays.equations.memoization import memoized
from tile_api.arrays.equations.sizes import Size
from tile_api.arrays.reductions.state import State
from tile_core.dtypes import DType


def tile_dtype(x: Expr) -> DType:
    """Return what a tile of `x` is stored in: positions in a dimension fit 32 bits."""
    return DType("int32") if x.dtype == INDEX and _is_position(x) else x.dtype


@memoized
def _is_position(x: Expr) -> bool:
    match x.op:
        case "where":
            return all(map(_is_position, x.args[1:]))
        case "reduce":
            return x.value[0] in ("max", "min") and _is_position(x.args[0])
        case "cast":
            return x.args[0].dtype.is_bool
        case "load" | "state":
            return False
    found = range_of(x)
    if found is None:  # sizes that are symbols are those of arrays
        return _has_symbols(x) and all(map(_is_position, x.args))
    low, high = found
    return low >= -(1 << 31) and high < 1 << 31


def _has_symbols(x: Expr) -> bool:
    sizes = (
        n.value if n.op == "const" else n.value[1] for n in walk(x) if n.op in ("const", "index")
    )
    return any(isinstance(size, Size) for size in sizes)


def state_dtype(s: State) -> DType:
    """Return what an accumulator is stored in: a sum of positions may need 64 bits."""
    return tile_dtype(s.body) if s.kind in ("max", "min") else s.body.dtype
