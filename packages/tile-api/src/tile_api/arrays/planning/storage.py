"""What tiles and accumulators are stored in."""

from __future__ import annotations

from tile_api.arrays.equations.expressions import INDEX, Expr, walk
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
        case "load" | "cast" | "state":
            return False
    found = _range(x)
    if found is None:  # sizes that are symbols are those of arrays
        return _has_symbols(x) and all(map(_is_position, x.args))
    low, high = found
    return low >= -(1 << 31) and high < 1 << 31


def _has_symbols(x: Expr) -> bool:
    sizes = (n.value if n.op == "const" else n.value[1] for n in walk(x) if n.op in _SIZED)
    return any(isinstance(size, Size) for size in sizes)


_SIZED = ("const", "index")


@memoized
def _range(x: Expr) -> tuple[int, int] | None:
    """Return the least and the greatest that an integer may be, where that is known."""
    if x.op in _SIZED:
        value = x.value if x.op == "const" else x.value[1]
        if isinstance(value, Size):
            return None
        return (int(value), int(value)) if x.op == "const" else (0, int(value) - 1)
    if x.op == "reduce" and x.value[0] not in ("max", "min"):
        return None
    known = [_range(arg) for arg in (x.args[1:] if x.op == "where" else x.args)]
    found = [r for r in known if r is not None]
    if len(found) != len(known) or not found:
        return None
    (a, b), (c, d) = found[0], found[-1]
    match x.op:
        case "reduce":
            return a, b
        case "where":
            return min(a, c), max(b, d)
        case "maximum":
            return max(a, c), max(b, d)
        case "minimum":
            return min(a, c), min(b, d)
        case "add":
            return a + c, b + d
        case "multiply":
            ends = (a * c, a * d, b * c, b * d)
            return min(ends), max(ends)
        case "floordiv" if c == d > 0:
            return a // c, b // c
        case "mod" if c == d > 0:
            return (a, b) if a >= 0 and b < c else (0, c - 1)
    return None


def state_dtype(s: State) -> DType:
    """Return what an accumulator is stored in: a sum of positions may need 64 bits."""
    return tile_dtype(s.body) if s.kind in ("max", "min") else s.body.dtype
