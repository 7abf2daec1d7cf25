"""Between which numbers indices are."""

from __future__ import annotations

from tile_api.arrays.equations.expressions import INDEX, Expr, bound_of, const, make, walk
from tile_api.arrays.equations.memoization import memoized
from tile_api.arrays.equations.sizes import Size, at_most


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
        case "maximum" | "bitand":
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
def range_of(x: Expr) -> tuple[int, int] | None:
    """Return the least and the greatest that an integer may be, where that is known to fit."""
    if x.op in ("const", "index"):
        size = x.value if x.op == "const" else x.value[1]
        if isinstance(size, Size) or not x.dtype.is_int:
            return None
        return (int(size), int(size)) if x.op == "const" else (0, int(size) - 1)
    if not x.dtype.is_int or (x.op == "reduce" and x.value[0] not in ("max", "min")):
        return None
    if x.op == "cast" and x.args[0].dtype.is_bool:
        return 0, 1
    known = [range_of(arg) for arg in (x.args[1:] if x.op == "where" else x.args)]
    found = [r for r in known if r is not None]
    if x.op == "bitand":
        return min(((0, high) for low, high in found if low >= 0), default=None)
    if not found or len(found) != len(known):
        return None
    made = _combined(x.op, *found[0], *found[-1])
    least = 0 if x.dtype.startswith("u") else -(1 << x.dtype.bits - 1)
    fits = made is not None and least <= made[0] and made[1] < least + (1 << x.dtype.bits)
    return made if fits else None


def _combined(op: str, a: int, b: int, c: int, d: int) -> tuple[int, int] | None:
    """Return the range of an operator on one from `a` to `b` and one from `c` to `d`."""
    match op:
        case "reduce" | "cast":
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


def ordered(op: str, x: Expr, y: Expr) -> Expr:
    """Return ``x < y`` or ``x <= y`` (`op`: "lt", "le") of indices, which their ranges may decide.

    What is chosen nowhere is not read then: an index of it may lie outside.
    """
    one, other = range_of(x), range_of(y)
    if one is not None and other is not None:
        beyond = op == "le"
        if one[1] < other[0] + beyond:
            return const(True, "bool")
        if one[0] >= other[1] + beyond:
            return const(False, "bool")
    return make(op, x, y)


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
