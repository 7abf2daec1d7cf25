"""Divisions by a few numbers over and over: one reciprocal each, and products."""

from __future__ import annotations

from typing import TypeGuard

from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.device import device
from tile_core.ir.expr import Binary, BinaryOp, Expr, Load, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import For, LoopKind, Stmt, Store
from tile_core.ir.visitor import map_statements, static_range
from tile_core.machine import SimtMachine
from tile_core.records import replace

FEATURE = "fast_float64"
"""Of machines that multiply in float64 at half the speed of float32, not at a sixtieth."""

FEWEST = 8
"""Divisions by each number from which on its reciprocal in float64 is worth making."""


def reduce_division_strength(stmt: Stmt, machine: SimtMachine) -> Stmt:
    """Return `stmt` with quotients that share their divisors as products with reciprocals.

    Before   unroll r < 64:  O[r] = O[r] / total[r >> 5]
    After    unroll r < 64:  O[r] = quotient(O[r], total[r >> 5])

    A division of float32 is a dozen instructions with a branch: sums that are divided by their
    weights make a sixth of all that the compiler of an attention kernel does. The header's
    function gives the same bits with a reciprocal in float64, which the compiler makes once for
    each divisor, and two instructions. Only where `machine` is quick at float64.
    """
    if not machine.has(FEATURE) or not any(map(_divides, nodes_of(stmt, Binary))):
        return stmt
    return _rewritten(stmt, ())


def _rewritten(stmt: Stmt, loops: tuple[For, ...]) -> Stmt:
    match stmt:
        case For():
            loops = (*loops, stmt) if stmt.kind is LoopKind.UNROLL else ()
        case Store():
            return replace(stmt, value=_with_quotients(stmt.value, loops))
    return map_statements(stmt, lambda inner: _rewritten(inner, loops))


def _with_quotients(value: Expr, loops: tuple[For, ...]) -> Expr:
    def rule(node: Node) -> Node:
        if _divides(node) and _repeats(node.b, loops):
            return device("quotient", node.a, node.b)
        return node

    return rewrite(value, rule)


def _divides(node: Node) -> TypeGuard[Binary]:
    return isinstance(node, Binary) and node.op is BinaryOp.DIV and node.dtype == "float32"


def _repeats(divisor: Expr, loops: tuple[For, ...]) -> bool:
    """Whether all iterations of `loops`, which are unrolled, divide by few different numbers."""
    iterations, moved = 1, free_variables(divisor)
    for loop in loops:
        iterations *= max(1, len(static_range(loop) or ()))
    return iterations >= FEWEST * _different(divisor, {loop.var for loop in loops} & set(moved))


def _different(divisor: Expr, moved: set[Var]) -> float:
    """Return how many values a divisor has at most in loops over the indices `moved`."""
    if not moved:
        return 1
    if isinstance(divisor, Load) and _is_in_registers(divisor.buffer):
        return static_value(divisor.buffer.shape[0]) or float("inf")
    return float("inf")


def _is_in_registers(buffer: Buffer) -> bool:
    return buffer.scope in (Scope.LOCAL, Scope.FRAGMENT) and buffer.rank == 1
