"""Which blocks of the stream a mask leaves, and in which of them it holds everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tile_api.arrays.equations.expressions import Expr, const, make, rebuild, subtract, walk
from tile_api.arrays.equations.numerics import is_strict
from tile_api.arrays.equations.sizes import Size
from tile_api.arrays.planning.plan import Carried, Plan
from tile_api.arrays.reductions.algebra import factors, polynomial, product, terms
from tile_api.arrays.reductions.groups import Group
from tile_api.arrays.reductions.state import State


@dataclass(frozen=True)
class Stretch:
    """Blocks of the stream, one loop.

    Parameters
    ----------
    name
        What the printed variable with `first` is called; empty for a text that stands as it is.
    certain
        Conditions that hold for all elements of these blocks.
    but
        The blocks for which they do not, as it is printed; empty: there are none.
    """

    first: str
    last: str
    certain: frozenset[Expr] = frozenset()
    but: str = ""


@dataclass(frozen=True)
class Bounds:
    """The loops of a sweep, and the variables that they need: names with texts, in order.

    They may be as long as blocks of rows are far back.
    """

    variables: tuple[tuple[str, str], ...]
    stretches: tuple[Stretch, ...]
    grows: bool = False


def conjuncts(condition: Expr) -> list[Expr]:
    """Return the conditions that all have to hold."""
    if condition.op != "and":
        return [condition]
    return [c for arg in condition.args for c in conjuncts(arg)]


def vanishing(state: State) -> list[Expr]:
    """Return the conditions without which an element adds nothing to a state."""
    body = state.body
    if state.kind == "max":
        parts = [make("exp", body)] if body.dtype.is_float else []
    else:
        parts = factors(body) if state.kind == "sum" else []
    found: list[Expr] = []
    for part in parts:
        summed = [_scaled(term) for term in (terms(part.args[0]) if part.op == "exp" else [])]
        is_none = any(_is_masked(x, -math.inf if c < 0 else math.inf) for c, x in summed)
        for c, term in summed:
            if c > 0 and not is_none and _is_masked(term, -math.inf):
                found += conjuncts(term.args[0])
        if _is_masked(part, 0):
            found += conjuncts(part.args[0])
    return [c for c in found if c.op in ("le", "lt")]


def _scaled(x: Expr) -> tuple[float, Expr]:
    """Return a number, and what it scales."""
    is_scaled = x.op == "multiply" and x.args[0].op == "const"
    return (x.args[0].value, x.args[1]) if is_scaled else (1.0, x)


def _is_masked(x: Expr, by: float) -> bool:
    return x.op == "where" and x.args[2].op == "const" and x.args[2].value == by


@dataclass(frozen=True)
class _Affine:
    """A condition on the stream: ``stream <= row + offset``, or ``>=``; without a row if None."""

    condition: Expr
    is_upper: bool
    has_row: bool
    offset: int


def _affine(condition: Expr, plan: Plan) -> _Affine | None:
    left, right = condition.args
    if not left.dtype.is_int:
        return None
    form = polynomial(subtract(right, left))
    linear = {atoms[0]: c for atoms, c in form.items() if len(atoms) == 1}
    if len(linear) + (() in form) != len(form):
        return None
    sizes = [x for x in linear if x.op == "const"]  # in terms of symbols
    slack = int(form.get((), 0)) - (condition.op == "lt")
    slack += sum(int(linear.pop(x)) * x.value for x in sizes)
    by_name = {x.value[0]: c for x, c in linear.items() if x.op == "index"}
    along = by_name.pop(plan.stream or "", None)
    row = by_name.pop(plan.row or "", None)
    if along is None or by_name or len(linear) != 1 + (row is not None):
        return None
    if abs(along) != 1 or row not in (None, -along):
        return None
    return _Affine(condition, along < 0, row is not None, slack if along < 0 else -slack)


def bounds_of(plan: Plan, states: Sequence[State]) -> Bounds:
    """Return the loops of a sweep: up to three, *partly*, *wholly* and *rest* within the mask."""
    assert plan.stream is not None
    extent, everything = plan.axes[plan.stream].extent, plan.blocks_of_stream
    if plan.is_stepped:
        return Bounds((), (Stretch("0", everything),))
    common = [
        c for c in vanishing(states[0]) if all(c in set(vanishing(s)) for s in states[1:])
    ]  # fmt: skip
    known = [a for c in dict.fromkeys(common) if (a := _affine(c, plan)) is not None]
    if not known:
        return Bounds((), (Stretch(plan.before or "0", everything),))
    lowest, highest = plan.before or "0", everything
    from_whole, to_whole = "", ""
    for a in known:
        row, end = ("bx * BM", "bx * BM + BM") if a.has_row else ("0", "1")
        if a.is_upper:
            last = f"T.max(0, ({_plus(end, a.offset - 1)}) // BN + 1)"
            highest = f"T.min({highest}, {last})"
            mine = f"T.max(0, ({_plus(row, a.offset + 1)}) // BN)"
            to_whole = f"T.min({to_whole}, {mine})" if to_whole else mine
        else:
            first = f"T.max(0, ({_plus(row, a.offset)}) // BN)"
            lowest = first if lowest == "0" else f"T.max({lowest}, {first})"
            mine = f"T.ceildiv(T.max(0, {_plus(end, a.offset - 1)}), BN)"
            from_whole = f"T.max({from_whole}, {mine})" if from_whole else mine
    if plan.parts:
        highest = f"T.max({lowest}, {highest})"
    if extent % plan.axes[plan.stream].size:
        return Bounds((), (Stretch(lowest, highest),))
    found = _three(lowest, highest, from_whole, to_whole, frozenset(a.condition for a in known))
    if plan.blocks.masks_apart:
        return found
    return replace(_together(found), grows={a.is_upper for a in known if a.has_row} == {True})


def _three(
    lowest: str, highest: str, from_whole: str, to_whole: str, certain: frozenset[Expr]
) -> Bounds:
    variables = [("last", highest)]
    stretches: list[Stretch] = []
    start = lowest
    if from_whole:
        variables += [("first", lowest), ("wholly", f"T.max(first, T.min({from_whole}, last))")]
        stretches.append(Stretch("first", "wholly"))
        start = "wholly"
    if to_whole:
        variables.append(("rest", f"T.max({start}, T.min({to_whole}, last))"))
        stretches += [Stretch(start, "rest", certain), Stretch("rest", "last")]
    else:
        stretches.append(Stretch(start, "last", certain))
    return Bounds(tuple(variables), tuple(stretches))


def _together(bounds: Bounds) -> Bounds:
    """Return one loop for all stretches, in which masks are for blocks of some only."""
    first, last = bounds.stretches[0].first, bounds.stretches[-1].last
    (whole,) = (s for s in bounds.stretches if s.certain)
    outside = [f"ko < {whole.first}"] * (whole.first != first)
    outside += [f"ko >= {whole.last}"] * (whole.last != last)
    but = f"T.Or({', '.join(outside)})" if len(outside) > 1 else "".join(outside)
    return Bounds(bounds.variables, (Stretch(first, last, whole.certain, but),))


def _plus(text: str, number: int) -> str:
    if isinstance(number, Size):
        return f"{text} + {number}"
    if number == 0:
        return text
    if text.isdigit():
        return str(int(text) + number)
    return f"{text} + {number}" if number > 0 else f"{text} - {-number}"


def without_masks(c: Carried, stretch: Stretch) -> Carried:
    """Return a state without the conditions that hold in all blocks of a stretch."""
    if stretch.but:
        return c
    known: dict[Expr, Expr] = {
        n: n.args[1]
        for n in walk(c.state.body)
        if n.op == "where" and set(conjuncts(n.args[0])) <= stretch.certain
    }
    if not stretch.certain or not known:
        return c
    one = const(1, c.state.body.dtype)
    body = rebuild(c.state.body, dict(known))
    if c.state.kind == "sum" and not is_strict():
        body = product(factors(body), one)
    groups = tuple(
        Group(g.variables, tuple(factors(rebuild(product(g.factors, one), dict(known)))))
        for g in c.groups
    )
    return Carried(replace(c.state, body=body), c.column, groups)
