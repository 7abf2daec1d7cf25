"""Statements, as generators that pause where lanes must wait for others.

Lanes run in step: a branch that only some of them take runs with the others masked out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from tile_core.errors import AssumptionError, DeviceAssertError, InternalError, UndefinedOperation
from tile_core.interp import access, reductions, signals, specialised_warps
from tile_core.interp.execution_state import Lanes, Loop
from tile_core.interp.expressions import evaluate
from tile_core.interp.operators import MEANINGS
from tile_core.interp.parallel import each_lane, iterations
from tile_core.interp.statement_facts import acts_on_block
from tile_core.interp.values import Array, convert
from tile_core.interp.wait_events import (
    Collective,
    Event,
    GridWait,
    Vote,
    Wait,
    YieldPoint,
    require_all,
)
from tile_core.ir.buffer import Scope
from tile_core.ir.expr import Call
from tile_core.ir.gpu_intrinsics import RANGE_INTRINSICS
from tile_core.ir.names import Names
from tile_core.ir.print_expr import print_expr
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    AnnotateSafeValue,
    Break,
    Check,
    CheckKind,
    Continue,
    Evaluate,
    For,
    Hint,
    If,
    Launch,
    Leaf,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ops.control import Barrier, Breakpoint
from tile_core.ops.parallel_form import as_parallel, is_element_wise
from tile_core.ops.printing import Print
from tile_core.ops.reducer import ReducerUpdate
from tile_core.ops.serial_forms import expand
from tile_core.ops.signals import SIGNALS

Steps: TypeAlias = "Iterator[Event]"


def steps(stmt: Stmt, lanes: Lanes) -> Steps:
    """Run `stmt` for the active lanes, yielding whenever they wait."""
    lanes.span = stmt.span or lanes.span
    facts = lanes.machine.facts(stmt) if lanes.warp is not None else None
    if facts is not None and facts.votes:
        yield from _vote(stmt, lanes)
    simple = _SIMPLE.get(type(stmt))
    if simple is not None:
        if lanes.is_part and lanes.warp is not None and acts_on_block(stmt):
            yield Collective(stmt, lanes)
        else:
            simple(stmt, lanes)
        return
    compound = _COMPOUND.get(type(stmt))
    if compound is not None:
        yield from compound(stmt, lanes)
    elif isinstance(stmt, Leaf):
        yield from _leaf(stmt, lanes)
    else:
        raise InternalError(f"cannot run {type(stmt).__name__}", span=stmt.span)


def run(stmt: Stmt, lanes: Lanes) -> None:
    """Run `stmt` for lanes that never wait for others."""
    for event in steps(stmt, lanes):
        if not isinstance(event, YieldPoint):
            raise InternalError(f"{type(event).__name__} inside a tile operator", span=stmt.span)


# Simple statements ---------------------------------------------------------------------------


def _let(stmt: Let, lanes: Lanes) -> None:
    lanes.env[stmt.var] = evaluate(stmt.value, lanes)


def _store(stmt: Store, lanes: Lanes) -> None:
    if stmt.buffer.scope is Scope.REDUCER:
        updated = reductions.as_update(stmt)
        if updated is not None:
            reductions.update(updated, lanes)
            return
    indices = [evaluate(i, lanes) for i in stmt.indices]

    def value() -> Array:
        return convert(evaluate(stmt.value, lanes), stmt.value.dtype, stmt.buffer.dtype)

    access.store(lanes, stmt.buffer, indices, value, stmt)


def _check(stmt: Check, lanes: Lanes) -> None:
    holds = evaluate(stmt.cond, lanes)
    wrong = ~holds if len(holds) == 1 or lanes.mask is None else ~holds & lanes.mask
    if not wrong.any():
        return
    told, span = stmt.message or print_expr(stmt.cond, Names()), stmt.span or lanes.span
    if stmt.kind is CheckKind.ASSUME:
        raise AssumptionError(f"the assumption does not hold: {told}", span=span)
    if lanes.block is None:
        raise AssumptionError(f"the assertion does not hold: {told}", span=span)
    raise DeviceAssertError(f"device assertion failed: {told}", span=span)


def _safe_value(stmt: AnnotateSafeValue, lanes: Lanes) -> None:
    value = evaluate(stmt.value, lanes)
    lanes.safe = {**lanes.safe, stmt.buffer: convert(value, stmt.value.dtype, stmt.buffer.dtype)}


def _break(stmt: Break, lanes: Lanes) -> None:
    loop = lanes.loops[-1]
    loop.left = loop.left | lanes.active
    lanes.mask = np.zeros(lanes.count, np.bool_)


def _continue(stmt: Continue, lanes: Lanes) -> None:
    lanes.mask = np.zeros(lanes.count, np.bool_)


_SIMPLE: dict[type[Any], Callable[[Any, Lanes], None]] = {
    Let: _let,
    Alloc: lambda stmt, lanes: lanes.allocate(stmt.buffer),
    Store: _store,
    Check: _check,
    AnnotateSafeValue: _safe_value,
    AnnotateLayout: lambda stmt, lanes: None,  # without effect on results, as hints
    Hint: lambda stmt, lanes: None,
    Break: _break,
    Continue: _continue,
    ReducerUpdate: reductions.update,
    Breakpoint: MEANINGS[Breakpoint],
}


# Compound statements -------------------------------------------------------------------------


def _seq(stmt: Seq, lanes: Lanes) -> Steps:
    safe = lanes.safe
    for item in stmt.body:
        yield from steps(item, lanes)
        if lanes.mask is not None and not lanes.mask.any():
            break
    lanes.safe = safe


def _if(stmt: If, lanes: Lanes) -> Steps:
    cond = evaluate(stmt.cond, lanes)
    if len(cond) == 1:
        branch = stmt.then if cond[0] else stmt.otherwise
        if branch is not None:
            yield from steps(branch, lanes)
        return
    after = np.zeros(lanes.count, np.bool_)
    for branch, taken in ((stmt.then, lanes.where(cond)), (stmt.otherwise, lanes.where(~cond))):
        if branch is not None and taken.any():
            outside, lanes.mask = lanes.mask, taken
            yield from steps(branch, lanes)
            taken, lanes.mask = lanes.active, outside
        after = after | taken
    lanes.mask = None if after.all() else after


def _enter_iteration(lanes: Lanes, loop: Loop, entry: Array | None, goes_on: Array) -> bool:
    """Activate the lanes that run the next iteration; return whether there are any."""
    alive = goes_on & ~loop.left if len(goes_on) > 1 or loop.left.any() else goes_on
    if len(alive) == 1 and lanes.count > 1:
        if not alive[0]:
            return False
        lanes.mask = entry
        return True
    active = alive if entry is None else alive & entry
    lanes.mask = None if active.all() else active
    return bool(active.any())


def _counted(stmt: For | Pipelined, lanes: Lanes) -> Steps:
    value, stop = evaluate(stmt.start, lanes), evaluate(stmt.stop, lanes)
    step = evaluate(stmt.step, lanes) if isinstance(stmt, For) else np.ones(1, value.dtype)
    if (step == 0).any():
        raise UndefinedOperation(
            "a loop's step is zero",
            span=stmt.span or lanes.span,
            hint="make sure that the step cannot be zero, with T.assume",
        )
    entry, loop = lanes.mask, Loop(lanes)
    lanes.loops.append(loop)
    while True:
        lanes.mask = entry
        if not _enter_iteration(lanes, loop, entry, np.where(step > 0, value < stop, value > stop)):
            break
        lanes.env[stmt.var] = value
        yield from steps(stmt.body, lanes)
        value = value + step
    lanes.loops.pop()
    lanes.mask = entry


def _while(stmt: While, lanes: Lanes) -> Steps:
    entry, everyone, loop = lanes.mask, lanes.active, Loop(lanes)
    lanes.loops.append(loop)
    while True:
        still = everyone & ~loop.left
        if not still.any():
            break
        lanes.mask = None if still.all() else still
        loop.left = loop.left | ~np.broadcast_to(evaluate(stmt.cond, lanes), (lanes.count,))
        still = still & ~loop.left
        if not still.any():
            break
        lanes.mask = None if still.all() else still
        yield from steps(stmt.body, lanes)
        yield YieldPoint(stmt)
    lanes.loops.pop()
    lanes.mask = entry


def _parallel(stmt: Parallel, lanes: Lanes) -> Steps:
    if lanes.warp is not None:
        yield Collective(stmt, lanes)
        return
    with iterations(stmt, lanes) as inner:
        if inner is not None:
            run(stmt.body, inner)


def _on_threads(stmt: OnThreads, lanes: Lanes) -> Steps:
    """Run a part if these threads belong to it; others pass by."""
    if lanes.team is None:
        yield from steps(stmt.body, lanes)
        return
    outside, warp, mask = lanes.team, lanes.warp, lanes.mask
    inside = (outside[0] + stmt.first, stmt.count)
    if lanes.is_part:
        if not inside[0] <= lanes.first < inside[0] + inside[1]:
            return
        if inside == (lanes.first, lanes.weight):
            lanes.warp = None  # nobody else takes part
    else:
        taken = lanes.where(lanes.among(inside))
        if not taken.any():
            return
        lanes.mask = None if taken.all() else taken
    lanes.team = inside
    yield from steps(stmt.body, lanes)
    lanes.team, lanes.warp = outside, warp
    if not lanes.is_part:
        after = lanes.active
        if mask is not None or not taken.all():
            around = np.ones(lanes.count, np.bool_) if mask is None else mask
            after = after | (around & ~taken)
        lanes.mask = None if after.all() else after


def _evaluate(stmt: Evaluate, lanes: Lanes) -> Steps:
    call = stmt.value
    if isinstance(call, Call) and call.function in RANGE_INTRINSICS:
        yield from specialised_warps.call_steps(stmt, call, lanes)
    elif lanes.is_part and lanes.warp is not None and acts_on_block(stmt):
        yield Collective(stmt, lanes)
    else:
        evaluate(stmt.value, lanes)


def _leaf(stmt: Leaf, lanes: Lanes) -> Steps:
    if isinstance(stmt, Barrier):
        yield from _barrier(stmt, lanes)
    elif isinstance(stmt, SIGNALS):
        yield from signals.signal_steps(stmt, lanes)
    elif isinstance(stmt, specialised_warps.OF_THREADS):
        yield from specialised_warps.operator_steps(stmt, lanes)
    elif lanes.warp is None or (isinstance(stmt, Print) and stmt.source is None):
        run_operator(stmt, lanes)
    elif lanes.machine.facts(stmt).private:
        for lane in each_lane(lanes):
            run_operator(stmt, lane)
    else:
        yield Collective(stmt, lanes)


def run_operator(op: Leaf, lanes: Lanes) -> None:
    """Perform a tile operator; `lanes` is one lane that stands for the block.

    An operator without a meaning of its own on arrays does what its serial form does.
    """
    meaning = MEANINGS.get(type(op))
    if meaning is not None:
        meaning(op, lanes)
    else:
        run(as_parallel(op) if is_element_wise(op) else expand(op), lanes)


def _barrier(stmt: Barrier, lanes: Lanes) -> Steps:
    if stmt.scope == "grid":
        if lanes.warp is not None:
            require_all(stmt, "this barrier of the grid", lanes)
        yield GridWait(stmt)
    elif stmt.scope == "warp" and lanes.block is not None:
        lanes.block.thread_epoch = lanes.machine.next_epoch()  # lanes are in step already
    elif lanes.warp is not None or (lanes.team is not None and stmt.number is not None):
        yield Wait.at(stmt, lanes, evaluate)


def _launch(stmt: Launch, lanes: Lanes) -> Steps:
    lanes.machine.launcher(stmt, lanes)
    return iter(())


def _vote(stmt: Stmt, lanes: Lanes) -> Steps:
    for call in lanes.machine.facts(stmt).votes:
        yield Vote(call, evaluate(call.args[0], lanes), lanes)


_COMPOUND: dict[type[Any], Callable[[Any, Lanes], Steps]] = {
    Seq: _seq,
    If: _if,
    For: _counted,
    Pipelined: _counted,
    While: _while,
    Parallel: _parallel,
    OnThreads: _on_threads,
    Evaluate: _evaluate,
    Launch: _launch,
}
