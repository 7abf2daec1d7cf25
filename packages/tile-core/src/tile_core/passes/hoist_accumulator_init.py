"""Accumulators that the first iteration of a loop drops are zeroed before the loop."""

from __future__ import annotations

from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import as_expr, binary, const
from tile_core.ir.effects import accesses
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Load
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import Node, contains, rewrite, walk
from tile_core.ir.stmt import Break, Continue, For, If, Kernel, LoopKind, Pipelined, Seq, Stmt
from tile_core.ir.structural_equality import same_value
from tile_core.ir.visitor import bound_variables
from tile_core.ops.copy import Fill
from tile_core.ops.gemm import Gemm
from tile_core.records import replace


def hoist_accumulator_init(kernel: Kernel) -> Kernel:
    """Return `kernel` without MMAs that ask in every iteration whether it is the first.

    Before   for k < n: copy A[k], A_s;  gemm A_s, B_s, C, clear where k == 0
    After    if 0 < n: fill C, 0
             for k < n: copy A[k], A_s;  gemm A_s, B_s, C

    Registers that accumulators are in cannot be chosen by a condition, nor zeroed while MMAs are
    in flight. The MMA must run once in each iteration, and nothing before it in the iteration
    may touch its accumulators: it would see zeros.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, Pipelined) or (
            isinstance(node, For) and node.kind in (LoopKind.SERIAL, LoopKind.UNROLL)
        ):
            return _hoisted(node)
        return node

    return rewrite(kernel, rule, (Pipelined, For))


def _hoisted(loop: For | Pipelined) -> Stmt:
    if contains(loop.body, Break, Continue):
        return loop
    body = loop.body.body if isinstance(loop.body, Seq) else (loop.body,)
    fills: list[Stmt] = []
    made: list[Stmt] = []
    for k, stmt in enumerate(body):
        if isinstance(stmt, Gemm) and _clears_first(stmt, loop) and _can(stmt, body[:k], loop):
            zero = const(0, stmt.c.buffer.dtype)
            fills.append(Fill(stmt.c, zero, span=stmt.span))
            stmt = replace(stmt, clear=as_expr(False))
        made.append(stmt)
    if not fills:
        return loop
    inner = replace(loop, body=Seq(tuple(made), span=loop.body.span))
    runs = binary(BinaryOp.LT, as_expr(loop.start), as_expr(loop.stop))
    zeroed: Stmt = Seq(tuple(fills), span=loop.span)
    if not (isinstance(runs, Const) and runs.value):
        zeroed = If(runs, zeroed, span=loop.span)
    return Seq((zeroed, inner), span=loop.span)


def _clears_first(op: Gemm, loop: For | Pipelined) -> bool:
    """Whether accumulators are dropped in the first iteration, and in no other."""
    clear = op.clear
    if not isinstance(clear, Binary) or clear.op is not BinaryOp.EQ:
        return False
    if (static_value(loop.step) or 0) <= 0:
        return False
    sides = ((clear.a, clear.b), (clear.b, clear.a))
    return any(i is loop.var and _is_same(first, as_expr(loop.start)) for i, first in sides)


def _is_same(a: Expr, b: Expr) -> bool:
    if isinstance(a, Const) and isinstance(b, Const):
        return a.value == b.value
    return not contains(a, Load) and same_value(a, b)


def _can(op: Gemm, before: tuple[Stmt, ...], loop: For | Pipelined) -> bool:
    """Whether the accumulators are the same in all iterations, and untouched until the MMA."""
    storage = op.c.buffer.storage
    if any(a.buffer.storage is storage for stmt in before for a in accesses(stmt)):
        return False
    named = {v for s in op.c.starts for v in free_variables(s)}
    reads = (n for s in op.c.starts if isinstance(s, Expr) for n in walk(s))
    return not named & bound_variables(loop).keys() and not any(isinstance(n, Load) for n in reads)
