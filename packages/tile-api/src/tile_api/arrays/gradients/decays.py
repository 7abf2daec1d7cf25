"""Gradients of decays that many elements share, without the elements of all steps.

In ``h[t] = a[t] h[t - 1] + b[t]`` a decay has the gradient ``Σ l[t] h[t - 1]``, over the elements
that share it: what is carried in both directions would have to be stored for all steps. Times the
decay itself, it is a running sum of what other gradients need anyway:
``a[t] ā[t] = a[t + 1] ā[t + 1] + Σ (g[t] a[t] h[t - 1] - (l[t] - g[t]) b[t])``. What a step adds
and reads itself is in neither term: it would cancel, and leave its rounding. So it is taken where
a logarithm of the decay has a derivative everywhere, for exponentials first of all.

Terms do not decay, as the sum does: it would be made of the rounding of many. So it begins anew
in each span of steps, with ``a[t + 1] ā[t + 1] = Σ l[t + 1] a[t + 1] h[t]`` of what is carried
between spans in both directions, which is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    compared,
    const,
    floordiv,
    integer_part,
    make,
    multiply,
    negate,
    reciprocal,
    where,
)
from tile_api.arrays.equations.recurrence import SPAN, Recurrence, Steps, Variables
from tile_api.arrays.equations.sizes import is_multiple


@dataclass(frozen=True)
class Step:
    """A step that multiplies a carried value and adds to it.

    Parameters
    ----------
    decay
        The factors.
    added
        The terms.
    """

    decay: tuple[Expr, ...]
    added: tuple[Expr, ...]


def decayed(x: Expr, is_mine: Callable[[Expr], bool], token: str) -> Step | None:
    """Return a step as a multiple of the carried value and terms, if it is written so."""
    if is_mine(x):
        return Step((), ())
    if x.op not in ("add", "multiply"):
        return None
    mine = [arg for arg in x.args if token in arg.free]
    rest = tuple(arg for arg in x.args if token not in arg.free)
    inner = decayed(mine[0], is_mine, token) if len(mine) == 1 else None
    if inner is None or not rest:
        return None
    if x.op == "add":
        return Step(inner.decay, (*inner.added, *rest))
    return None if inner.added else Step((*inner.decay, *rest), ())


def logarithm(
    factors: Sequence[Expr], is_active: Callable[[Expr], bool]
) -> list[tuple[Expr, Expr]] | None:
    """Return operands of a product with the derivatives of its logarithm; None if it has none."""
    found: list[tuple[Expr, Expr]] = []
    todo = [(x, const(1, x.dtype)) for x in factors]
    while todo:
        x, by = todo.pop()
        if not is_active(x):
            continue
        match x.op:
            case "exp":
                found.append((x.args[0], by))
            case "multiply":
                todo += [(arg, by) for arg in x.args]
            case "reciprocal":
                todo.append((x.args[0], negate(by)))
            case "pow" if x.args[1].is_constant:
                todo.append((x.args[0], multiply(x.args[1], by)))
            case _ if _is_positive(x):
                found.append((x, multiply(by, reciprocal(x))))
            case _:
                return None
    return found


def _is_positive(x: Expr) -> bool:
    """Tell whether a sum has a positive number among terms that are not negative."""
    if x.op != "add":
        return False
    terms = [*x.args]
    while any(t.op == "add" for t in terms):
        terms = [y for t in terms for y in (t.args if t.op == "add" else (t,))]
    numbers = [t for t in terms if t.is_constant]
    rest = [t for t in terms if not t.is_constant]
    return any(t.value > 0 for t in numbers) and all(t.op == "exp" for t in rest)


def running_sum(
    of: Recurrence,
    kept: Variables,
    given: Expr,
    end: Expr,
    between: Callable[[Expr, Expr], Expr],
) -> Expr:
    """Return the sum of what a step and those after it give, at the step of a recurrence.

    Parameters
    ----------
    kept
        The dimensions of the sum.
    given
        What a step gives.
    end
        What the sum is before the last step.
    between
        Returns the sum after a step, given the following one: it begins with it in each span.
    """
    dtype, span = given.dtype, of.span
    back = replace(of, is_backward=not of.is_backward)
    one = replace(of, token=f"{of.token}*", carried=(kept,))
    each = Steps(one, (const(0, dtype),), (given,))
    if span.op == "const":
        carried, size, start = ("", 1), of.extent, end
    else:
        carried, size = span.value, SPAN
        count = const(carried[1])
        onwards = const(carried[1] - 1 if of.is_backward else 1)
        following = integer_part("mod", add(onwards, span), count)
        is_last = (
            compared("le", span, const(0))
            if of.is_backward
            else compared("le", const(carried[1] - 1), span)
        )
        start = where(is_last, end, between(of.end_of(span), back.end_of(following)))
    sums = replace(
        back, token=f"{of.token}'", variable=f"{of.variable}'", extent=size,
        carried=((carried, *kept),),
    )  # fmt: skip
    at = add(multiply(const(SPAN), span), sums.step)
    now = each.value(0, at, one.indices(0))
    if not is_multiple(of.extent, size):
        now = where(compared("lt", at, const(of.extent)), now, const(0, dtype))
    before = make("carry", *sums.indices(0), value=(sums.token, 0), dtype=dtype)
    made = Steps(sums, (start,), (add(before, now),))
    step, count = of.step, const(SPAN)
    if span.op == "const":
        return made.value(0, step, (const(0), *one.indices(0)))
    place = floordiv(step, count), *one.indices(0)
    return made.value(0, integer_part("mod", step, count), place)
