"""Turns of two groups of warps, given up where both wait for each other anyway."""

from __future__ import annotations

from collections.abc import Collection

from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import Call
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Evaluate, For, If, Seq, Stmt, While
from tile_core.simt.expr_builders import seq

_STEPS = (f"{PREFIX}bar_sync", f"{PREFIX}bar_arrive")
_BARRIER = f"{PREFIX}sync"


def drop_ping_pong(body: Stmt, turns: Collection[int]) -> Stmt:
    """Return `body` without turns, if a loop has them and a barrier of all its threads.

    Before   for k:  if tid < 128: bar_sync(14, 256) else: bar_sync(13, 256);  …;  sync;  …
    After    for k:  …;  sync;  …

    Whoever has the turn would wait at the barrier for those who wait for the turn. And groups
    that meet in every iteration do the same work at the same time: no turns change that.

    Parameters
    ----------
    turns
        Numbers of the barriers that hand the turn over.
    """

    def is_step(node: Node) -> bool:
        return isinstance(node, Call) and node.function in _STEPS and _number(node) in turns

    def meets(loop: Stmt) -> bool:
        calls = [*nodes_of(loop, Call)]
        return any(n.function == _BARRIER for n in calls) and any(map(is_step, calls))

    def rule(node: Node) -> Node:
        match node:
            case Evaluate(value=value) if is_step(value):
                return seq()
            case If(then=then, otherwise=otherwise) if _is_empty(then) and (
                otherwise is None or _is_empty(otherwise)
            ):
                return seq()
        return node

    if not turns or not any(map(meets, nodes_of(body, For, While))):
        return body
    return rewrite(body, rule, (Evaluate, If))


def _number(call: Call) -> object:
    return getattr(call.args[0], "value", None)


def _is_empty(stmt: Stmt) -> bool:
    return isinstance(stmt, Seq) and all(map(_is_empty, stmt.body))
