"""How many neighbouring elements the accesses of a loop can take at once."""

from __future__ import annotations

import math
from collections.abc import Callable

from tile_core.arith.affine import Linear
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Const,
    Expr,
    Extent,
    Load,
    Select,
    StringConst,
    Var,
)
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, nodes_of, substitute, walk
from tile_core.ir.stmt import Evaluate, For, If, Parallel, Store, While
from tile_core.layout import Layout
from tile_core.passes.inference.parallel_nests import Nest
from tile_core.passes.pipelines.asynchronous_copies import strides_of

VECTOR_BITS = 128
"""The widest access of one thread, unless the machine says otherwise."""

LayoutOf = Callable[[Buffer], object]


def widest(nest: Nest, layout_of: LayoutOf, bits: int = VECTOR_BITS) -> int:
    """Return the lanes that every access of memory in the body can take, a power of two.

    Accesses along the innermost variable must be consecutive and start at a multiple of
    their length; those that do not move along it take no part. The user's `coalesced_width`
    comes first. A body that touches registers only is cut as if it accessed memory. `layout_of`
    gives the layout of a shared tile, None if it is still open: rows are expected then. No access
    is wider than `bits`.
    """
    if not nest.extents:
        return 1
    inner = nest.extents[-1]
    hint = nest.loop.coalesced_width
    if hint is not None and 0 < hint == _power_of_two(hint) and inner % hint == 0:
        return int(hint)
    if not nest.memory:
        widths = [bits // max(8, t.buffer.dtype.bits) for t in nest.touches]
        return _power_of_two(math.gcd(inner, min(widths, default=1)))
    if _is_scalar(nest):
        return 1
    width = _power_of_two(math.gcd(inner, bits))
    for buffer, indices in nest.memory:
        if not any(_depends(i, nest.loop.vars[-1], nest.names) for i in indices):
            continue
        width = min(width, max(1, bits // max(1, buffer.dtype.bits)))
        width = _aligned(nest, buffer, indices, layout_of, width)
        if width == 1:
            break
    return width


def _power_of_two(number: int) -> int:
    return number & -number


def _is_scalar(nest: Nest) -> bool:
    """Whether something in the body rules out that neighbours are accessed together."""
    innermost = nest.loop.vars[-1]
    # Where registers say who adds what: other loops are shared out so that warps add to lines.
    sums = nodes_of(nest.loop.body, Evaluate) if nest.touches else ()
    added = {n.value for n in sums if _adds(n.value)}
    for node in walk(nest.loop.body):
        match node:
            case For() | While() | Parallel():
                return True
            case Store(buffer=buffer) if buffer.scope.is_thread_private:
                return True
            case If(cond=cond):
                if _depends(cond, innermost, nest.names):
                    return True
            case Select(cond=cond, then=then, otherwise=otherwise, lazy=True):
                # Registers, and what all neighbours read, are chosen lane by lane.
                moving = any(
                    _moves(n, innermost, nest.names) for n in (*walk(then), *walk(otherwise))
                )
                if moving and _depends(cond, innermost, nest.names):
                    return True
            case Call(function=function) if function.startswith("extern:"):
                return True
            case Call(function=function) if effect_of(function) & Effect.ATOMIC:
                if node not in added:
                    return True
    return False


def _moves(node: Node, innermost: Var, names: dict[Node, Node]) -> bool:
    """Whether a part of an expression accesses memory that neighbours have apart."""
    if isinstance(node, Load) and node.buffer.scope in (Scope.GLOBAL, Scope.SHARED):
        return any(_depends(i, innermost, names) for i in node.indices)
    return isinstance(node, Call) and effect_of(node.function) is not Effect.NONE


def _adds(value: Expr) -> bool:
    """Whether a call adds to an element, in whatever order with others: machines add vectors."""
    if not isinstance(value, Call) or value.function != "atomic_add":
        return False
    return all(isinstance(a, StringConst) and a.value == "relaxed" for a in value.args[2:])


def _depends(expr: Expr, var: Var, names: dict[Node, Node]) -> bool:
    written = substitute(expr, names) if names else expr
    return any(node is var for node in walk(written))


def _aligned(
    nest: Nest, buffer: Buffer, indices: tuple[Expr, ...], layout_of: LayoutOf, width: int
) -> int:
    """Return the part of `width` that one access can take.

    What is loaded to find a place, such as the row of a table, is one number like others if all
    neighbours find the same: nothing is known of it but what it is multiplied by.
    """
    written = tuple(substitute(i, nest.names) for i in indices) if nest.names else indices
    innermost = nest.loop.vars[-1]
    moving = [i for i in written if any(node is innermost for node in walk(i))]
    if any(isinstance(node, Load) for i in moving for node in walk(i)):
        return 1
    layout = layout_of(buffer) if buffer.scope is Scope.SHARED else None
    if isinstance(layout, Layout):
        return _aligned_in_tile(nest.env, innermost, written, layout, width)
    return _aligned_in_tensor(nest.env, innermost, written, strides_of(buffer), width)


def _aligned_in_tile(
    env: ConstraintSet, innermost: Var, indices: tuple[Expr, ...], layout: Layout, width: int
) -> int:
    *outer, last = (env.linear(i) for i in indices)
    if not any(_mentions(value, innermost) for value in (*outer, last)):
        return width
    if any(_mentions(value, innermost) for value in outer):
        return 1
    return min(_unit_step(env, last, innermost, width), layout.vector_width(-1, width))


def _aligned_in_tensor(
    env: ConstraintSet,
    innermost: Var,
    indices: tuple[Expr, ...],
    strides: tuple[Extent, ...],
    width: int,
) -> int:
    """Return the widest access along the last index whose first element is a multiple of it.

    Where both are of one number, as in ``x[s // 32, s % 32]``, neighbours stay in one row.
    """
    *outer, last = (env.linear(i) for i in indices)
    if not any(_mentions(value, innermost) for value in (*outer, last)):
        return width
    steady = min(_steady(env, index, innermost, width) for index in indices)
    if steady > 1:
        return steady
    for index, value in zip(indices[:-1], outer, strict=True):
        if _mentions(value, innermost):
            width = min(width, _steady(env, index, innermost, width))
    if width == 1 or static_value(strides[-1]) != 1:
        return 1
    match indices[-1]:
        case Binary(op=BinaryOp.FLOORMOD, a=a, b=Const(value=row)):
            last, width = env.linear(a), math.gcd(width, int(row))
    for index, stride in zip(indices[:-1], strides[:-1], strict=True):
        width = math.gcd(width, env.multiple_of(index) * env.multiple_of(stride))
    return _power_of_two(_unit_step(env, last, innermost, width))


def _steady(env: ConstraintSet, index: Expr, innermost: Var, width: int) -> int:
    """Return for how many neighbours, up to `width`, `index` is the same.

    An index such as ``(k*64 + j) // 32`` stays where it is for runs of 32, which start at
    multiples of 32: one element is read for all of a vector, like a scale for its group.
    """
    match index:
        case Binary(op=BinaryOp.FLOORDIV, a=a, b=Const(value=group)) if int(group) > 1:
            value = env.linear(a)
            if value.apart(innermost)[0] == 1:
                return _unit_step(env, value, innermost, math.gcd(width, int(group)))
    parts = [c for c in index.children() if isinstance(c, Expr)]
    if not parts:
        return 1 if index is innermost else width
    return min(_steady(env, part, innermost, width) for part in parts)


def _unit_step(env: ConstraintSet, value: Linear, innermost: Var, width: int) -> int:
    """Return the widest access from ``value`` on, along its unit step of `innermost`."""
    step, rest = value.apart(innermost)
    if step != 1 or _mentions(rest, innermost):
        return 1
    numbers = [rest.constant, *(factor * env.divisor(atom) for atom, factor in rest.terms)]
    if any(x.denominator != 1 for x in numbers):
        return 1
    return math.gcd(width, *(int(x) for x in numbers))


def _mentions(value: Linear, var: Var) -> bool:
    return any(node is var for atom, _ in value.terms for node in walk(atom.expr))
