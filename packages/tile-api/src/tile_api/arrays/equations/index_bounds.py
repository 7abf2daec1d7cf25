"""Between which numbers indices are."""

from __future__ import annotations

from math import prod

from tile_api.arrays.equations.expressions import INDEX, Expr, bound_of, const, make, walk
from tile_api.arrays.equations.memoization import memoized
from tile_api.arrays.equations.sizes import at_most


@memoized
def is_natural(x: Expr) -> bool:
    """Tell whether an index is known to be 0 or more."""
    match x.op:
        case "const":
            return at_most(0, x.value)
        case "cast":
            (arg,) = x.args
            narrow, wide = arg.dtype.bits, x.dtype.bits
            is_kept = arg.dtype.is_int and (narrow < wide or narrow == wide == INDEX.bits)
            return is_kept and (arg.dtype.startswith("u") or is_natural(arg))
        case "mod":
            return is_natural(x.args[1])
        case "maximum":
            return any(map(is_natural, x.args))
        case "where":
            return all(map(is_natural, x.args[1:]))
        case "reduce":
            return x.value[0] in ("max", "min") and is_natural(x.args[0])
        case "add" | "multiply" | "floordiv" | "minimum":
            return all(map(is_natural, x.args))
    return x.op == "index"


def is_below(x: Expr, size: int) -> bool:
    """Tell whether an index that is 0 or more is known to be less than `size`."""
    match x.op:
        case "cast":
            return x.args[0].dtype.is_int and is_below(x.args[0], size)
        case "mod":
            return is_natural(x.args[1]) and is_below(x.args[1], size + 1)
        case "minimum":
            return any(is_below(arg, size) for arg in x.args)
        case "maximum":
            return all(is_below(arg, size) for arg in x.args)
    bound = bound_of(x)
    return bound is not None and at_most(bound, size)


@memoized
def most_of(x: Expr) -> int | None:
    """Return the largest number that an integer may be, if it is known to be 0 or more."""
    known = [most_of(arg) for arg in x.args if arg.dtype.is_int]
    both = [n for n in known if n is not None]
    match x.op:
        case "const" | "index":
            bound = bound_of(x)
            return None if bound is None else bound - 1
        case "bitand":
            return min(both, default=None)
        case "add" | "multiply" | "cast" if len(both) == len(x.args):
            found = sum(both) if x.op == "add" else prod(both)
            is_signed = not x.dtype.startswith("u")
            return found if found < 1 << x.dtype.bits - is_signed else None
    return None


def is_read(x: Expr) -> bool:
    """Tell whether an index is data: read or computed from what is, and not counted."""
    return any(n.op in ("load", "state", "scan", "carry") for n in walk(x))


def clipped(x: Expr, first: int | None = None, last: int | None = None) -> Expr:
    """Return an index of a part of an array, which is chosen only where the index lies in it.

    One that is read is bounded, so that no check is made of it where another part is chosen; one
    that is counted stays as it is.
    """
    if not is_read(x):
        return x
    x = x if last is None else make("minimum", x, const(last))
    return x if first is None else make("maximum", x, const(first))
