"""Signals between blocks of all ranks: who raised a flag, and who waits for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.errors import Deadlock, Note, OutOfBounds, Span, UnsupportedOnTarget
from tile_core.interp.clocks import Clocks, Flag
from tile_core.interp.execution_state import BlockState, Lanes, declared
from tile_core.interp.expressions import evaluate
from tile_core.interp.regions import number, numbers
from tile_core.interp.wait_events import Event, Pending, Wait, require_all
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Stmt
from tile_core.ops.signals import Signal, WaitSignal


def signal_steps(op: Signal | WaitSignal, lanes: Lanes) -> Iterator[Event]:
    """Raise a flag, or wait for it: the whole block, together."""
    block = lanes.block
    if block is None or lanes.machine.clocks is None:
        raise UnsupportedOnTarget(
            "the interpreter runs all ranks of a kernel at a time, and this is the kernel of one",
            span=op.span,
            hint="compile tile.ranks_as_blocks(kernel): its arrays have a first dimension of ranks",
        )
    if lanes.warp is not None:
        yield _all_threads(op, lanes)
    if not lanes.warp:
        yield from _performed(op, lanes, block, lanes.machine.clocks)
    if lanes.warp is not None and isinstance(op, WaitSignal):
        yield _all_threads(op, lanes)


def _all_threads(op: Signal | WaitSignal, lanes: Lanes) -> Wait:
    require_all(op, "this signal" if isinstance(op, Signal) else "this wait", lanes)
    return Wait(op, lanes, int(lanes.active.sum()) * lanes.weight, None, None)


def _performed(
    op: Signal | WaitSignal, lanes: Lanes, block: BlockState, clocks: Clocks
) -> Iterator[Event]:
    flag, name = _flag(op, lanes, clocks)
    value = int(lanes.agreed(evaluate(op.value, lanes), "the value of a signal", op.span))
    if isinstance(op, Signal):
        flag.values.append(value)
        flag.clocks.append(clocks.release(block.number))
        lanes.machine.stores += 1
        return
    while flag.value < value:
        yield Pending(
            op,
            lanes,
            lambda: flag.value >= value,
            lambda: f"{name} must be at least {value}, and is {flag.value}",
        )
    clocks.acquire(block.number, flag.known(value, len(clocks.names)))
    if op.takes:
        flag.taken += value
        lanes.machine.stores += 1


def _flag(op: Signal | WaitSignal, lanes: Lanes, clocks: Clocks) -> tuple[Flag, str]:
    """Return the flag that is meant, and its name."""
    buffer = op.flag.buffer
    at, shape = numbers(op.flag.starts, lanes), tuple(number(e, lanes) for e in buffer.shape)
    name = f"{buffer.name}[{', '.join(map(str, at[1:]))}] of rank {at[0]}"
    if not all(0 <= index < extent for index, extent in zip(at, shape, strict=True)):
        raise OutOfBounds(
            f"there is no flag {name}: there are {shape[0]} ranks, and "
            f"{' x '.join(map(str, shape[1:]))} flags on each",
            span=op.span,
            notes=declared(buffer),
            hint="declare more flags, or take the rank modulo T.ranks()",
        )
    return clocks.flags.setdefault((buffer, *at), Flag()), name


def stuck(waits: Sequence[tuple[BlockState, Pending]], clocks: Clocks) -> Deadlock:
    """Return the report of blocks that wait for signals that never come."""
    told = [
        (f"{clocks.told(block.number)} waits here: {event.lacks()}", event.node.span)
        for block, event in waits
    ]
    flags = {e.node.flag.buffer for _, e in waits if isinstance(e.node, WaitSignal)}
    raised = _signals_of(clocks.body, flags)
    return Deadlock(
        f"{clocks.told(waits[0][0].number)} waits for ever: {waits[0][1].lacks()}",
        span=waits[0][1].node.span,
        notes=tuple(Note(text, span) for text, span in (*told[1:], *raised)),
        hint="count the signals that each flag gets, and signal before waiting for others",
    )


def _signals_of(body: Stmt, flags: set[Buffer]) -> list[tuple[str, Span | None]]:
    found = [op for op in nodes_of(body, Signal) if op.flag.buffer in flags]
    return [(f"{op.flag.buffer.name} is raised here", op.span) for op in found]
