"""What the thread expression of a fragment leaves over: register slots and idle replicas."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tile_core.errors import InternalError, LayoutError
from tile_core.ir.build_expr import binary
from tile_core.ir.expr import Binary, Expr, Var
from tile_core.layout.formula_bounds import reach
from tile_core.layout.formulas import (
    axis_of,
    coordinate,
    inputs_of,
    linear_form,
    same_expr,
    simplify,
    to_text,
)
from tile_core.layout.mixed_radix import (
    Digit,
    digit_expr,
    digit_of,
    digits_in,
    flatten_row_major,
    leftover,
)


def derived_index(thread: Expr, domain: Sequence[int]) -> tuple[Expr, ...]:
    """Return the register slot: the digits of the coordinates that the thread does not use.

    `domain` has the extents of the coordinates and, last, of the replica number.

    Raises `LayoutError` if the thread does not use the coordinates digit by digit.
    """
    try:
        used = digits_in(thread, domain)
        free: list[Expr] = []
        extents: list[int] = []
        for source in _sources(used, len(domain) - 1, domain):
            for digit in reversed(leftover(used, source, reach(source, domain).hi + 1)):
                free.append(digit_expr(digit))
                extents.append(digit.extent)
    except LayoutError as error:
        raise LayoutError(
            f"no register index follows from the thread {to_text(thread)}: {error.message}",
            hint="give forward_index_fn as well",
        ) from error
    return (simplify(flatten_row_major(free, extents), domain),)


def _sources(used: Sequence[Digit], rank: int, domain: Sequence[int]) -> list[Expr]:
    """Return the coordinates, with sums that are used as one number in place of their parts."""
    sums: list[Expr] = []
    for digit in used:
        source = digit.source
        if isinstance(source, Var) or any(same_expr(source, s) for s in sums):
            continue
        terms = linear_form(source, domain).terms
        if rank in inputs_of(source) or not all(isinstance(t.expr, Var) for t, _ in terms):
            raise LayoutError(f"{to_text(source)} is not a number written with whole coordinates")
        sums.append(source)
    taken = [axis for s in sums for axis in inputs_of(s)]
    alone = {axis_of(d.source) for d in used if isinstance(d.source, Var)}
    if len(taken) != len(set(taken)) or alone & set(taken):
        raise LayoutError("a coordinate is used in two different sums")
    single: list[Expr] = [coordinate(axis) for axis in range(rank) if axis not in taken]
    return sorted([*sums, *single], key=lambda source: min(inputs_of(source)))


def condensed(thread: Expr, domain: Sequence[int]) -> tuple[Expr, int]:
    """Return the thread over a smaller replica number, and how many replicas are left.

    The digits of the replica number that do not occur in `thread` are dropped. If it occurs
    otherwise than digit by digit nothing is dropped.
    """
    rep = coordinate(len(domain) - 1)
    copies = domain[-1]
    try:
        used = [d for d in digits_in(thread, domain) if axis_of(rep) in inputs_of(d.source)]
        idle = leftover(used, rep, copies)
        kept = leftover(idle, rep, copies)
    except LayoutError:
        return thread, copies
    whole = math.prod(d.extent for d in (*idle, *kept)) == copies
    if not idle or not whole or any(not isinstance(d.source, Var) for d in used):
        return thread, copies

    def visit(node: Expr) -> Expr:
        digit = digit_of(node, domain)
        if digit is not None and same_expr(digit.source, rep):
            return _moved(digit, kept, rep)
        if isinstance(node, Binary):
            return binary(node.op, visit(node.a), visit(node.b))
        return node

    left = copies // math.prod(d.extent for d in idle)
    return simplify(visit(simplify(thread, domain)), (*domain[:-1], left)), left


def _moved(digit: Digit, kept: Sequence[Digit], rep: Var) -> Expr:
    """Return `digit` of the old replica number as one of the new, which has only `kept`."""
    unit = 1
    for place in kept:
        if place.unit <= digit.unit and digit.end <= place.end:
            return rep // (unit * (digit.unit // place.unit)) % digit.extent
        unit *= place.extent
    raise InternalError(f"a digit of {rep.name} is neither kept nor idle")
