"""NumPy's functions of elements, as expressions of the expressions of their operands."""

from __future__ import annotations

import math
from collections.abc import Callable

from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import Expr, const, make
from tile_api.arrays.equations.index_bounds import range_of

Row = Callable[..., Expr]
"""What makes an expression of the expressions of its operands."""


def _named(name: str) -> Row:
    return lambda *args: make(name, *args)


def _bools(name: str, row: Row) -> Row:
    """Return `row`, but `name` of truth values."""
    return lambda x, y: make(name, x, y) if x.dtype.is_bool else row(x, y)


def _rounding(name: str) -> Row:
    """Return a function to whole numbers, which leaves integers as they are."""
    return lambda x: make(name, x) if x.dtype.is_float else x


def _power(x: Expr, y: Expr) -> Expr:
    if y.op == "const":
        if y.value == 1:
            return x
        if y.value == 2:
            return eq.multiply(x, x)
        if y.value == 0.5 and x.dtype.is_float:
            return make("sqrt", x)
        if y.value == -1 and x.dtype.is_float:
            return eq.reciprocal(x)
        if y.value == 3:
            return eq.multiply(eq.multiply(x, x), x)
    return make("pow", x, y)


def _scaled(name: str, factor: float) -> Row:
    """Return `name` of a multiple, such as exp2 by exp."""
    return lambda x: make(name, eq.multiply(const(factor, x.dtype), x))


def _multiple(factor: float) -> Row:
    return lambda x: eq.multiply(const(factor, x.dtype), x)


def _reciprocal(x: Expr) -> Expr:
    if x.dtype.is_float:
        return eq.reciprocal(x)
    one, none = const(1, x.dtype), const(0, x.dtype)
    found = eq.where(make("eq", x, one), one, none)
    low = const(-1, x.dtype)
    return found if x.dtype.startswith("u") else eq.where(make("eq", x, low), low, found)


def _differ(x: Expr, y: Expr) -> Expr:
    """Return whether a remainder `x` that is not 0 has another sign than the divisor `y`."""
    none = const(0, x.dtype)
    if y.op == "const":
        return make("lt", x, none) if y.value > 0 else make("lt", none, x)
    return make("and", make("ne", x, none), make("ne", make("lt", x, none), make("lt", y, none)))


def _integer_part(op: str, x: Expr, y: Expr) -> Expr:
    """Return ``x // y`` or ``x % y`` of integers: 0 where `y` is 0, as NumPy has it.

    A divisor that is read may also be 0 beside its array, where a block of elements ends after it.
    """
    none = const(0, x.dtype)
    if y.op == "const":
        return none if y.value == 0 else eq.integer_part(op, x, y)
    found, known = eq.integer_part(op, x, y), range_of(y)
    if known is not None and not known[0] <= 0 <= known[1]:
        return found
    return eq.where(make("eq", y, const(0, y.dtype)), none, found)


def _floor_divide(x: Expr, y: Expr) -> Expr:
    """Return the quotient rounded down; a quotient of floats may be rounded up, which is told."""
    if not x.dtype.is_float:
        return _integer_part("floordiv", x, y)
    rest = make("fmod", x, y)
    whole = make("rint", eq.divide(eq.subtract(x, rest), y))
    found = eq.where(_differ(rest, y), eq.subtract(whole, const(1, x.dtype)), whole)
    if y.op == "const" and y.value:
        return found
    return eq.where(make("eq", y, const(0, y.dtype)), eq.divide(x, y), found)


def _remainder(x: Expr, y: Expr) -> Expr:
    if not x.dtype.is_float:
        return _integer_part("mod", x, y)
    rest, none = make("fmod", x, y), const(0, x.dtype)
    if y.op == "const":
        signed = const(math.copysign(0.0, y.value), x.dtype)
    else:
        signed = make("copysign", none, y)
    rest = eq.where(make("eq", rest, none), signed, rest)
    return eq.where(_differ(rest, y), eq.add(rest, y), rest)


def _fmod(x: Expr, y: Expr) -> Expr:
    if x.dtype.is_float:
        return make("fmod", x, y)
    rest, none = _integer_part("mod", x, y), const(0, x.dtype)
    if x.dtype.startswith("u"):
        return rest
    differ = make("and", make("ne", rest, none), make("lt", x, none))
    other = make("and", differ, make("lt", none, y))
    mine = make(
        "and", make("ne", rest, none), make("and", make("le", none, x), make("lt", y, none))
    )
    return eq.where(make("or", other, mine), eq.subtract(rest, y), rest)


def _log_of_sum(base: float) -> Row:
    """Return log(base**x + base**y); equal infinities have no difference, and have equal parts."""
    of_two = math.log(2, base)

    def row(x: Expr, y: Expr) -> Expr:
        apart = eq.negate(make("absolute", eq.subtract(x, y)))
        half = const(0.5, x.dtype)
        middle = eq.add(eq.multiply(half, x), eq.multiply(half, y))
        twice = eq.add(middle, const(of_two, x.dtype))
        power = make("exp", eq.multiply(const(math.log(base), x.dtype), apart))
        above = eq.multiply(const(1 / math.log(base), x.dtype), make("log1p", power))
        return eq.where(make("eq", x, y), twice, eq.add(make("maximum", x, y), above))

    return row


def _shift(name: str) -> Row:
    """Return a shift that leaves no bit, or the sign, by what is not less than the width."""

    def row(x: Expr, amount: Expr) -> Expr:
        last, none = const(x.dtype.bits - 1, amount.dtype), const(0, x.dtype)
        found = range_of(amount)
        if found is not None and found[0] >= 0 and found[1] <= last.value:
            return make(name, x, amount)
        known = make("le", const(0, amount.dtype), amount), make("le", amount, last)
        is_within = known[1] if amount.dtype.startswith("u") else make("and", *known)
        is_lost = amount.op == "const"
        if name == "shr" and not x.dtype.startswith("u"):
            return make(name, x, last if is_lost else eq.where(is_within, amount, last))
        return none if is_lost else eq.where(is_within, make(name, x, amount), none)

    return row


def _sign(x: Expr) -> Expr:
    none, one = const(0, x.dtype), const(1, x.dtype)
    below = x if x.dtype.is_float else none  # a NaN is its own sign
    if not x.dtype.startswith("u"):
        low = const(-1, x.dtype)
        zero = eq.where(make("eq", x, none), none, below) if x.dtype.is_float else none
        below = eq.where(make("lt", x, none), low, zero)
    return eq.where(make("lt", none, x), one, below)


def _heaviside(x: Expr, y: Expr) -> Expr:
    none, one = const(0, x.dtype), const(1, x.dtype)
    above = eq.where(make("lt", none, x), one, x)
    return eq.where(make("lt", x, none), none, eq.where(make("eq", x, none), y, above))


def _is_infinite(x: Expr) -> Expr:
    if not x.dtype.is_float:
        return const(False, "bool")
    return make("eq", make("absolute", x), const(math.inf, x.dtype))


def _is_finite(x: Expr) -> Expr:
    if not x.dtype.is_float:
        return const(True, "bool")
    return make("lt", make("absolute", x), const(math.inf, x.dtype))


def _xor(x: Expr, y: Expr) -> Expr:
    """Return what differs in bits: a quotient by nothing has to be known as one."""
    if x.dtype.is_bool:
        return make("ne", x, y)
    return const(0, x.dtype) if x is y else make("bitxor", x, y)


def _extreme(best: str) -> Row:
    return lambda x, y: x if x is y else make(best, x, y)


def _known(best: str) -> Row:
    """Return an extremum that leaves out what is not a number."""

    def row(x: Expr, y: Expr) -> Expr:
        if not x.dtype.is_float:
            return UFUNCS[best](x, y)
        rest = eq.where(make("ne", y, y), x, make(best, x, y))
        return eq.where(make("ne", x, x), y, rest)

    return row


def _cube_root(x: Expr) -> Expr:
    """Return the root by a power and a step of Newton's, since a third is rounded."""
    size, third = make("absolute", x), const(1 / 3, x.dtype)
    near = make("pow", size, third)
    off = eq.subtract(near, eq.divide(size, eq.multiply(near, near)))
    is_usual = make("and", make("lt", const(0, x.dtype), near),
                    make("lt", near, const(math.inf, x.dtype)))  # fmt: skip
    root = eq.where(is_usual, eq.subtract(near, eq.multiply(third, off)), near)
    return make("copysign", root, x)


UFUNCS: dict[str, Row] = {
    "add": _bools("or", eq.add),
    "subtract": eq.subtract,
    "multiply": _bools("and", eq.multiply),
    "divide": eq.divide,
    "negative": eq.negate,
    "positive": lambda x: x,
    "square": lambda x: eq.multiply(x, x),
    "reciprocal": _reciprocal,
    "power": _power,
    "float_power": _power,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _fmod,
    "less": lambda x, y: make("lt", x, y),
    "less_equal": lambda x, y: make("le", x, y),
    "greater": lambda x, y: make("lt", y, x),
    "greater_equal": lambda x, y: make("le", y, x),
    "equal": lambda x, y: make("eq", x, y),
    "not_equal": lambda x, y: make("ne", x, y),
    "logical_and": lambda x, y: make("and", eq.cast(x, eq.BOOL), eq.cast(y, eq.BOOL)),
    "logical_or": lambda x, y: make("or", eq.cast(x, eq.BOOL), eq.cast(y, eq.BOOL)),
    "logical_xor": lambda x, y: make("ne", eq.cast(x, eq.BOOL), eq.cast(y, eq.BOOL)),
    "logical_not": lambda x: make("not", eq.cast(x, eq.BOOL)),
    "bitwise_and": lambda x, y: make("and" if x.dtype.is_bool else "bitand", x, y),
    "bitwise_or": lambda x, y: make("or" if x.dtype.is_bool else "bitor", x, y),
    "bitwise_xor": _xor,
    "invert": lambda x: make("not" if x.dtype.is_bool else "bitnot", x),
    "left_shift": _shift("shl"),
    "right_shift": _shift("shr"),
    "maximum": _bools("or", _extreme("maximum")),
    "minimum": _bools("and", _extreme("minimum")),
    "fmax": _known("maximum"),
    "fmin": _known("minimum"),
    "absolute": lambda x: x if x.dtype.is_bool or x.dtype.startswith("u") else make("absolute", x),
    "fabs": _named("absolute"),
    "sign": _sign,
    "signbit": lambda x: make("lt", make("copysign", const(1, x.dtype), x), const(0, x.dtype)),
    "copysign": _named("copysign"),
    "heaviside": _heaviside,
    "exp": _named("exp"),
    "exp2": _scaled("exp", math.log(2)),
    "expm1": _named("expm1"),
    "log": _named("log"),
    "log2": _named("log2"),
    "log10": _named("log10"),
    "log1p": _named("log1p"),
    "logaddexp": _log_of_sum(math.e),
    "logaddexp2": _log_of_sum(2),
    "erf": _named("erf"),
    "hypot": _named("hypot"),
    "cbrt": _cube_root,
    "sqrt": _named("sqrt"),
    "sin": _named("sin"),
    "cos": _named("cos"),
    "tan": _named("tan"),
    "arcsin": _named("asin"),
    "arccos": _named("acos"),
    "arctan": _named("atan"),
    "arctan2": _named("atan2"),
    "sinh": _named("sinh"),
    "cosh": _named("cosh"),
    "tanh": _named("tanh"),
    "arcsinh": _named("asinh"),
    "arccosh": _named("acosh"),
    "arctanh": _named("atanh"),
    "deg2rad": _multiple(math.pi / 180),
    "radians": _multiple(math.pi / 180),
    "rad2deg": _multiple(180 / math.pi),
    "degrees": _multiple(180 / math.pi),
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "rint": _rounding("rint"),
    "isfinite": _is_finite,
    "isinf": _is_infinite,
    "isnan": lambda x: make("ne", x, x) if x.dtype.is_float else const(False, "bool"),
}
"""By the name of the ufunc."""
