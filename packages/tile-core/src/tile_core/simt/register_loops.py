"""Loops over register tiles alone: each thread goes through its registers, in their order."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.effects import effects_of
from tile_core.ir.expr import AddressOf, Expr, Load, Var
from tile_core.ir.intrinsics import Effect
from tile_core.ir.node import Node, contains, rewrite, walk
from tile_core.ir.stmt import For, Parallel, Stmt, Store
from tile_core.ops.reducer import ReducerUpdate
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import counted
from tile_core.simt.inverse_fragment import by_holders
from tile_core.simt.subbyte_access import is_narrow


def register_loop(loop: Parallel, extents: tuple[int, ...], ctx: SimtContext) -> Stmt | None:
    """Return a loop over registers, or None if the thread matters, or what is where.

    Before   parallel i, j in (64, 64): C[i, j] = max(C[i, j], 0)
    After    for s in unrolled(32): C[s] = max(C[s], 0)

    All tiles must be held in one way, which leaves no register empty, and the indices of the
    elements must be the loop's variables, which mean nothing else in the body. Nor does the loop
    update a reducer with elements that several threads hold: one of them does.
    """
    tiles = _tiles(loop)
    if not tiles or tuple(static_value(e) for e in loop.extents) != extents:
        return None
    held = [ctx.fragment_of(tile) for tile in tiles]
    first = held[0]
    if first.shape != extents or not all(first == f or first.same_function(f) for f in held[1:]):
        return None
    if not first.fills_registers() or (
        first.replication > 1 and contains(loop.body, ReducerUpdate)
    ):
        return None
    slot = ctx.fresh_var("s")
    flats = {tile: ctx.places.flat(tile) for tile in tiles}

    def visit(node: Node) -> Node:
        if isinstance(node, (Load, Store)):
            return replace(node, buffer=flats[node.buffer], indices=(slot,))
        return node

    known = ctx.knowing(ctx.env.with_loop(slot, 0, first.slots))
    body = ctx.lower(rewrite(loop.body, visit), replace(known, by_thread=True))
    return by_holders(first, counted(slot, first.slots, body, span=loop.span), ctx)


def _tiles(loop: Parallel) -> list[Buffer]:
    """Return the register tiles of a body that touches nothing else, point by point; else none."""
    found: dict[Buffer, None] = {}
    for node in walk(loop.body):
        if isinstance(node, (AddressOf, Parallel, For)):
            return []
        if isinstance(node, (Load, Store)):
            plain = len(node.indices) == len(loop.vars) and all(
                a is b for a, b in zip(node.indices, loop.vars, strict=True)
            )
            if node.buffer.scope is not Scope.FRAGMENT or not plain or is_narrow(node.buffer.dtype):
                return []
            found[node.buffer] = None
    if effects_of(loop.body) is not Effect.NONE or _names_points(loop.body, set(loop.vars)):
        return []
    return list(found)


def _names_points(node: Node, variables: set[Var]) -> bool:
    """Whether a variable of the loop occurs otherwise than as an index."""
    if isinstance(node, Load):
        return False
    if isinstance(node, Store):
        return _names_points(node.value, variables)
    if isinstance(node, Expr) and node in variables:
        return True
    return any(_names_points(child, variables) for child in node.children())
