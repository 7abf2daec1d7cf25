"""Values that warps agree on by an exchange are asked for once, ahead of loops that use them."""

from __future__ import annotations

from tile_core.ir.expr import Call, Const, Load, Var
from tile_core.ir.node import Node, contains, nodes_of, substitute
from tile_core.ir.stmt import For, Let, Seq, Stmt, While
from tile_core.ir.structural_equality import same_value
from tile_core.ir.visitor import bound_variables, map_statements
from tile_core.records import replace

_EXCHANGE = "shfl_sync"


def hoist_warp_shuffles(stmt: Stmt) -> Stmt:
    """Return `stmt` with exchanges of what does not change in a loop in front of it.

    Before   for k: … group = shfl(tid >> 7, 0); … shared + group * 4096 …
    After    group = shfl(tid >> 7, 0);  for k: … shared + group * 4096 …

    Compilers leave exchanges where they are, since threads meet there, and an exchange takes
    as long as an access of shared memory. Whole warps come to a loop in which they exchange
    values, so they may as well do it before. Exchanges of the same value become one.
    """
    if isinstance(stmt, Seq):
        return _sequence(stmt)
    return map_statements(stmt, hoist_warp_shuffles)


def _sequence(stmt: Seq) -> Seq:
    made: list[Stmt] = []
    known: list[Let] = []
    names: dict[Node, Node] = {}
    for item in stmt.body:
        asked, rest = _taken_out(hoist_warp_shuffles(item))
        for let in asked:
            same = next((one for one in known if same_value(one.value, let.value)), None)
            if same is None:
                known.append(let)
                made.append(let)
            else:
                names[let.var] = same.var
        if rest is not None:
            made.append(substitute(rest, names) if names else rest)
    return replace(stmt, body=tuple(made))


def _taken_out(stmt: Stmt) -> tuple[list[Let], Stmt | None]:
    """Return the exchanges that can stand in front of `stmt`, and what is left of it."""
    if isinstance(stmt, Let) and is_exchange(stmt):
        return [stmt], None
    if not isinstance(stmt, (For, While)) or not isinstance(stmt.body, Seq):
        return [], stmt
    own = bound_variables(stmt).keys()
    asked = [
        item
        for item in stmt.body.body
        if isinstance(item, Let) and is_exchange(item) and own.isdisjoint(nodes_of(item.value, Var))
    ]
    if not asked:
        return [], stmt
    left = tuple(item for item in stmt.body.body if item not in asked)
    return asked, replace(stmt, body=replace(stmt.body, body=left))


def is_exchange(let: Let) -> bool:
    """Whether a value is one lane's, the same for its warp, and made of variables alone."""
    value = let.value
    return (
        isinstance(value, Call)
        and value.function == _EXCHANGE
        and all(isinstance(node, Const) for node in value.args[1:])
        and not contains(value.args[0], Load, Call)
    )
