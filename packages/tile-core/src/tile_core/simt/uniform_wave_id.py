"""The number of a thread's wave, found once, as a value that the lanes of a wave share."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.ir.device_calls import PREFIX, UNIFORM
from tile_core.ir.expr import Call, Expr, Var
from tile_core.ir.free_variables import structure
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Let, Seq, Stmt

_SHARED = PREFIX + UNIFORM


def name_uniform_wave_ids(stmt: Stmt, fresh: Callable[[str], str], known: frozenset[Var]) -> Stmt:
    """Return a program of one thread in which values that waves share have names.

    Before   for k: …  T + (uniform(tid // 64) * 128 + k * 4096)
    After    wave = uniform(tid // 64);  for k: …  T + (wave * 128 + k * 4096)

    Compilers do not move such a value out of a loop: it stands for an instruction that all lanes
    run together.

    Parameters
    ----------
    fresh
        Returns a name that nothing has.
    known
        Variables whose values are known where the program begins.
    """
    if not any(n.function == _SHARED for n in nodes_of(stmt, Call)):
        return stmt
    names: dict[object, Var] = {}
    lets: list[Let] = []

    def named(node: Node) -> Node:
        if not (isinstance(node, Call) and node.function == _SHARED):
            return node
        (value,) = node.args
        if not _variables(value) <= known:
            return node
        key = structure(value)
        if key not in names:
            names[key] = Var(fresh("wave"), node.dtype)
            lets.append(Let(names[key], node))
        return names[key]

    body = rewrite(stmt, named)
    if not lets:
        return stmt
    return Seq((*lets, *(body.body if isinstance(body, Seq) else (body,))), span=stmt.span)


def _variables(expr: Expr) -> set[Var]:
    return {*nodes_of(expr, Var)}
