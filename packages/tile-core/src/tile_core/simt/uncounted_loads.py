"""Loads of tensors in loops whose copies waves count: waiting for one is waiting for all copies."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.ir.buffer import Scope
from tile_core.ir.device_calls import COUNTED_LOAD, PREFIX
from tile_core.ir.expr import AddressOf, Call, Expr, Load, Var
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.stmt import Evaluate, For, If, Let, Seq, Stmt, While
from tile_core.ir.visitor import statements_in
from tile_core.remarks import remark

COPY = PREFIX + COUNTED_LOAD

TEXT = (
    "waiting for this load also waits for every earlier asynchronous copy: the compiler cannot "
    "count them separately"
)


def uncounted_loads(stmt: Stmt, threads: frozenset[Var]) -> None:
    """Tell of each loop whose threads load elements of tensors beside counted copies.

    One for the first such load; loads at an index that all threads share are left to another
    unit, and another counter.
    """
    for loop in _loops(stmt):
        if (found := next(_loads(loop.body, set(threads)), None)) is not None:
            remark("missed", "uncounted_loads", TEXT, found.span)


def _loops(stmt: Stmt) -> Iterator[For | While]:
    """Yield the innermost loops that wait for what they copy, in the order of the program."""
    for node in nodes_of(stmt, For, While):
        if _copies(node) and not any(map(_copies, nodes_of(node.body, For, While))):
            yield node


def _copies(loop: For | While) -> bool:
    """Whether `loop` copies, and is more than the instructions of one copy."""
    if not any(n.function == COPY for n in nodes_of(loop, Call)):
        return False
    evaluated = (n.value for n in nodes_of(loop.body, Evaluate))
    return any(isinstance(n, Call) and n.function != COPY for n in evaluated)


def _loads(stmt: Stmt, varying: set[Var]) -> Iterator[Stmt]:
    """Yield the statements that load from where each thread says."""
    own = stmt.cond if isinstance(stmt, If) else stmt
    if not isinstance(stmt, (Seq, For, While)) and _is_load(own, varying):
        yield stmt
    if isinstance(stmt, Let) and _varies(stmt.value, varying):
        varying.add(stmt.var)
    for inner in statements_in(stmt):
        yield from _loads(inner, varying)


def _is_load(root: Node, varying: set[Var]) -> bool:
    if any(n.function == COPY for n in nodes_of(root, Call)):
        return False
    return any(
        n.buffer.storage.scope is Scope.GLOBAL
        and (isinstance(n, Load) or "r" in n.access)
        and any(_varies(i, varying) for i in n.indices)
        for n in nodes_of(root, Load, AddressOf)
    )


def _varies(expr: Expr, varying: set[Var]) -> bool:
    return not varying.isdisjoint(nodes_of(expr, Var))
