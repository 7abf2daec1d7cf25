"""Derivatives of functions of elements, as data: each is an expression of operands and result.

Where a function has no derivative, the table says what is taken: the value that is even on both
sides of a tie or a kink (`absolute` at 0: 0, `maximum` of equal operands: a half to each), and
what the formula gives at poles (`sqrt` at 0: infinity).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import Expr, const, make, multiply, negate, reciprocal

Partials = tuple["Expr | None", ...]
Derivative = Callable[..., Partials]
"""Of the result and the operands: the derivative by each operand, None where it is 0."""


def _like(number: float, x: Expr) -> Expr:
    return const(number, x.dtype)


def _square(x: Expr) -> Expr:
    return multiply(x, x)


def _one_less_square(x: Expr) -> Expr:
    return eq.subtract(_like(1, x), _square(x))


def _one_more_square(x: Expr) -> Expr:
    return eq.add(_like(1, x), _square(x))


def _root(x: Expr) -> Expr:
    """Return 1/sqrt(x)."""
    return reciprocal(make("sqrt", x))


def _scaled(factor: float, x: Expr) -> Expr:
    return multiply(_like(factor, x), x)


def _larger(x: Expr, y: Expr) -> Expr:
    """Return how much of the larger one of two is `x`."""
    tie = eq.where(make("eq", x, y), _like(0.5, x), _like(0, x))
    return eq.where(make("lt", y, x), _like(1, x), tie)


def _power(z: Expr, x: Expr, y: Expr) -> Partials:
    less = eq.subtract(y, _like(1, y))
    by_base = multiply(y, UFUNCS["power"](x, less))
    if y.op != "const":
        by_base = eq.where(make("eq", y, _like(0, y)), _like(0, x), by_base)
    zero = make("and", make("eq", x, _like(0, x)), make("le", _like(0, y), y))
    return by_base, eq.where(zero, _like(0, x), multiply(z, make("log", x)))


def _angle(z: Expr, y: Expr, x: Expr) -> Partials:
    size = reciprocal(eq.add(_square(x), _square(y)))
    return multiply(x, size), negate(multiply(y, size))


def _signed(z: Expr, x: Expr, y: Expr) -> Partials:
    return multiply(make("copysign", _like(1, y), y), UFUNCS["sign"](x)), None


def logistic_of(z: Expr) -> tuple[Expr, Expr] | None:
    """Return `x` of ``1 / (c + exp(x))`` with the derivative by it, which no power overflows.

    Of a reciprocal that is no such function: None.
    """
    whole = z.args[0]
    parts = whole.args if whole.op == "add" else ()
    for c, power in (parts, parts[::-1]) if parts else ():
        if c.op == "const" and power.op == "exp":
            rest = eq.subtract(_like(1, z), multiply(c, z))
            return power.args[0], negate(multiply(z, rest))
    return None


def _none(z: Expr, *operands: Expr) -> Partials:
    return (None,) * len(operands)


DERIVATIVES: Mapping[str, Derivative] = {
    "add": lambda z, x, y: (_like(1, x), _like(1, y)),
    "multiply": lambda z, x, y: (y, x),
    "reciprocal": lambda z, x: (negate(_square(z)),),
    "sqrt": lambda z, x: (_scaled(0.5, reciprocal(z)),),
    "exp": lambda z, x: (z,),
    "expm1": lambda z, x: (eq.add(_like(1, z), z),),
    "log": lambda z, x: (reciprocal(x),),
    "log2": lambda z, x: (_scaled(1 / math.log(2), reciprocal(x)),),
    "log10": lambda z, x: (_scaled(1 / math.log(10), reciprocal(x)),),
    "log1p": lambda z, x: (reciprocal(eq.add(_like(1, x), x)),),
    "sin": lambda z, x: (make("cos", x),),
    "cos": lambda z, x: (negate(make("sin", x)),),
    "tan": lambda z, x: (_one_more_square(z),),
    "asin": lambda z, x: (_root(_one_less_square(x)),),
    "acos": lambda z, x: (negate(_root(_one_less_square(x))),),
    "atan": lambda z, x: (reciprocal(_one_more_square(x)),),
    "sinh": lambda z, x: (make("cosh", x),),
    "cosh": lambda z, x: (make("sinh", x),),
    "tanh": lambda z, x: (_one_less_square(z),),
    "asinh": lambda z, x: (_root(_one_more_square(x)),),
    "acosh": lambda z, x: (_root(eq.subtract(_square(x), _like(1, x))),),
    "atanh": lambda z, x: (reciprocal(_one_less_square(x)),),
    "erf": lambda z, x: (_scaled(2 / math.sqrt(math.pi), make("exp", negate(_square(x)))),),
    "absolute": lambda z, x: (UFUNCS["sign"](x),),
    "maximum": lambda z, x, y: (_larger(x, y), _larger(y, x)),
    "minimum": lambda z, x, y: (_larger(y, x), _larger(x, y)),
    "pow": _power,
    "hypot": lambda z, x, y: (multiply(x, reciprocal(z)), multiply(y, reciprocal(z))),
    "atan2": _angle,
    "fmod": lambda z, x, y: (_like(1, x), negate(make("trunc", eq.divide(x, y)))),
    "copysign": _signed,
    "floor": _none,
    "ceil": _none,
    "trunc": _none,
    "rint": _none,
    "bits": _none,
}
"""By the operator of an expression."""
