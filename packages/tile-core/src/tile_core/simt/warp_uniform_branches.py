"""Values that the lanes of a warp are known to share: what is decided on them, and found once."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.device_calls import PREFIX, UNIFORM
from tile_core.ir.expr import Binary, BinaryOp, Call, Const, Expr, Load, Var
from tile_core.ir.free_variables import structure
from tile_core.ir.node import Node, contains, nodes_of, rewrite, substitute
from tile_core.ir.stmt import For, If, Let, Seq, Stmt, While
from tile_core.ir.structural_equality import same_value
from tile_core.ir.visitor import bound_variables, map_statements
from tile_core.machine import SimtMachine
from tile_core.records import replace

_FEATURES = frozenset({"async_mma", "accumulator_memory"})
"""Where instructions of several warps take operands from registers that lanes share."""


def make_branches_warp_uniform(
    stmt: Stmt, thread: Var, name_hint: str, machine: SimtMachine
) -> Stmt:
    """Return `stmt` with alternatives of whole warps chosen by the number of the warp.

    Before   if (tid >= 256) { … } else { … }
    After    warp = shfl(tid >> 5, 0);  if (warp >= 8) { … } else { … }

    After a comparison of thread numbers the assembler has to believe that the lanes of a warp
    parted, and keeps in a register of each lane what they could share. It trusts an exchange.
    """
    if _FEATURES.isdisjoint(machine.features) or not isinstance(stmt, Seq):
        return stmt
    warp, width = Var(name_hint, dtype_of("int32")), machine.warp_size
    made: list[Stmt] = []
    is_named = False
    for item in stmt.body:
        if isinstance(item, Seq):
            made.append(make_branches_warp_uniform(item, thread, name_hint, machine))
            continue
        decided = _decided(item, thread, warp, width)
        if decided is not item and not is_named:
            own = binary(BinaryOp.FLOORDIV, thread, as_expr(width, thread.dtype))
            lane = (as_expr(0), as_expr(width))
            made.append(Let(warp, Call("shfl_sync", (own, *lane), thread.dtype)))
            is_named = True
        made.append(decided)
    return replace(stmt, body=tuple(made))


def _decided(stmt: Stmt, thread: Var, warp: Var, width: int) -> Stmt:
    """Return a decision between warps, and those among its alternatives, by the warp's number."""
    if not isinstance(stmt, If) or stmt.otherwise is None:
        return stmt
    cond = _by_warp(stmt.cond, thread, warp, width)
    if cond is None:
        return stmt
    return replace(stmt, cond=cond, otherwise=_last(stmt.otherwise, thread, warp, width))


def _last(stmt: Stmt, thread: Var, warp: Var, width: int) -> Stmt:
    """Return the other alternatives; the last may have a condition and none behind it."""
    if not isinstance(stmt, If):
        return stmt
    cond = _by_warp(stmt.cond, thread, warp, width)
    if cond is None:
        return stmt
    rest = None if stmt.otherwise is None else _last(stmt.otherwise, thread, warp, width)
    return replace(stmt, cond=cond, otherwise=rest)


def _by_warp(cond: Expr, thread: Var, warp: Var, width: int) -> Expr | None:
    """Return a condition on threads as one on warps, if it does not divide a warp."""
    match cond:
        case Binary(op=BinaryOp.AND, a=a, b=b):
            left, right = (_by_warp(part, thread, warp, width) for part in (a, b))
            return None if left is None or right is None else replace(cond, a=left, b=right)
        case Binary(op=BinaryOp.GE | BinaryOp.LT, a=Var() as line, b=Const(value=bound)) if (
            line is thread and int(bound) % width == 0
        ):
            return replace(cond, a=warp, b=as_expr(int(bound) // width, warp.dtype))
    return None


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


_SHARED = PREFIX + UNIFORM


def name_uniform_wave_ids(stmt: Stmt, fresh: Callable[[str], str], known: frozenset[Var]) -> Stmt:
    """Return a program of one thread in which values that waves share have names.

    Before   for k: …  T + (uniform(tid // 64) * 128 + k * 4096)
    After    wave = uniform(tid // 64);  for k: …  T + (wave * 128 + k * 4096)

    Compilers do not move such a value out of a loop: it stands for an instruction that all lanes
    run together.

    The values of `known` are known where the program begins; `fresh` returns a name that
    nothing has.
    """
    if not any(n.function == _SHARED for n in nodes_of(stmt, Call)):
        return stmt
    names: dict[object, Var] = {}
    lets: list[Let] = []

    def named(node: Node) -> Node:
        if not (isinstance(node, Call) and node.function == _SHARED):
            return node
        (value,) = node.args
        if not known.issuperset(nodes_of(value, Var)):
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
