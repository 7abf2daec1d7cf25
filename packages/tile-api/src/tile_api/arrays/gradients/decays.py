"""Gradients of decays that many elements share, without the elements of all steps.

In ``h[t] = a[t] h[t - 1] + b[t]`` a decay has the gradient ``Σ l[t] h[t - 1]``, over the elements
that share it: what is carried in both directions would have to be stored for all steps. Times the
decay itself, it is a running sum of what other gradients need anyway:
``a[t] ā[t] = a[t + 1] ā[t + 1] + Σ (g[t] a[t] h[t - 1] - (l[t] - g[t]) b[t])``. What a step adds
and reads itself is in neither term: it would cancel, and leave its rounding. So it is taken where
a logarithm of the decay has a derivative everywhere, for exponentials first of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tile_api.arrays.equations.expressions import Expr, const, multiply, negate, reciprocal


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
