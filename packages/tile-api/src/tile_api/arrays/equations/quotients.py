"""Quotients by numbers, which are products with a reciprocal where nobody sees the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, const, make, multiply, rebuild, walk
from tile_api.arrays.equations.numerics import is_strict

STEPS = frozenset(("floor", "ceil", "trunc", "rint", "cast", "lt", "le", "eq", "ne", "mod"))
"""What may jump where its operand is rounded otherwise: quotients within stay quotients."""

EXACT = "exact"
"""The value of reciprocals in such quotients: wherever one is computed, it is rounded alike."""

WHOLE = frozenset(("floor", "ceil", "trunc", "rint"))
"""Their quotients stay, too: ``np.round(x, 1)`` is the float that is written so."""


def without_quotients(outputs: Sequence[Output]) -> list[Output]:
    """Return outputs in which quotients by numbers are products, unless they are strict."""
    if is_strict():
        return list(outputs)
    elements = [o.element for o in outputs]
    exact = _exact(elements)
    known: dict[Expr, Expr] = {}
    for x in walk(*elements):
        made = rebuild(x, known)
        if x not in exact and _is_quotient(made):
            made = multiply(const(1 / made.args[1].args[0].value, made.dtype), made.args[0])
        known[x] = made
    return [replace(o, element=known[o.element]) for o in outputs]


def with_exact_quotients(outputs: Sequence[Output]) -> list[Output]:
    """Return outputs in which quotients that have to be exact say so, in whatever kernel they are.

    An element that is compared with the largest of them is computed like these.
    """
    elements = [o.element for o in outputs]
    exact = _exact(elements)
    known: dict[Expr, Expr] = {}
    for x in walk(*elements):
        made = rebuild(x, known)
        if x in exact and x.op == made.op == "reciprocal" and made.args[0].op != "const":
            made = make("reciprocal", *made.args, value=EXACT)
        known[x] = made
    return [replace(o, element=known[o.element]) for o in outputs]


def _is_quotient(x: Expr) -> bool:
    if x.op != "multiply" or x.args[0].op in WHOLE:
        return False
    return x.args[1].op == "reciprocal" and x.args[1].args[0].op == "const"


def _exact(elements: Sequence[Expr]) -> set[Expr]:
    """Return what is rounded to steps before it is summed or stored."""
    found: set[Expr] = set()
    todo = [arg for x in walk(*elements) if x.op in STEPS for arg in x.args]
    while todo:
        x = todo.pop()
        is_sum = x.op == "reduce" and x.value[0] not in ("max", "min")
        if x not in found and x.dtype.is_float and x.op != "load" and not is_sum:
            found.add(x)
            todo += x.args
    return found
