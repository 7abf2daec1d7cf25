"""Tiles that every thread holds whole, of which threads then use different elements."""

from __future__ import annotations

import numpy as np

from tile_core.ir.buffer import Buffer
from tile_core.layout import Fragment
from tile_core.layout.formulas import evaluate
from tile_core.layout.loop_layout import LoopLayout
from tile_core.passes.inference.conflicts import ANNOTATION, SCALAR
from tile_core.passes.inference.inference_state import Layouts
from tile_core.passes.inference.layout_queries import MOST_SERIAL
from tile_core.passes.inference.parallel_nests import Nest, RegisterAccess
from tile_core.remarks import warn


def tell_of_chosen_registers(state: Layouts) -> None:
    """Warn of tiles for which a register's number depends on the thread that asks.

    Two operators that hold different rows of a tile leave it to all threads, each with all of
    its elements. Where a loop of one of them has another element in each thread, no
    instruction can name the register: the tile is in local memory, which is slow. Said once
    per tile, at the loop.
    """
    told: set[Buffer] = set()
    for node, nest in state.found.nests.items():
        loop = state.loop_of(node)
        for touch in nest.touches if loop is not None else ():
            storage = touch.buffer.storage
            held = state.layout_of(touch.buffer)
            if storage in told or loop is None or not isinstance(held, Fragment):
                continue
            if state.reasons[storage].who in (ANNOTATION, SCALAR):
                continue  # the program itself asks for that
            everywhere = held.slots > 1 and held.is_fully_replicated()
            if everywhere and _varies(touch, loop, held):
                told.add(storage)
                _tell(touch, nest, state)


def _varies(touch: RegisterAccess, loop: LoopLayout, held: Fragment) -> bool:
    """Whether threads ask for different registers in one iteration and lane of a loop."""
    thread, turn, lane = np.ogrid[: loop.threads, : loop.rounds, : loop.vector]
    point = [np.broadcast_to(x, loop.box) for x in loop.coords_at(thread, turn, lane)]
    runs = np.ones(loop.box, dtype=bool)
    for x, extent in zip(point, loop.extents, strict=True):
        runs &= (x >= 0) & (x < extent)
    inside = [np.where(runs, x, 0) for x in point]
    coords = [evaluate(e, [*inside, *(0 for _ in range(MOST_SERIAL))]) for e in touch.indices]
    slots = np.broadcast_to(held.slot_at(*coords), loop.box)
    lowest = np.where(runs, slots, held.slots).min(axis=0)
    highest = np.where(runs, slots, -1).max(axis=0)
    return bool((lowest < highest).any())


def _tell(touch: RegisterAccess, nest: Nest, state: Layouts) -> None:
    storage = touch.buffer.storage
    others = {
        f"line {n.node.span.line}"
        for n in state.found.nests.values()
        if storage in n.tiles and n is not nest and n.node.span is not None
    }
    elsewhere = f" (it is used on {', '.join(sorted(others))} too)" if others else ""
    warn(
        f"{storage.name!r} is whole in each thread, and in this {nest.who} every thread uses "
        f"elements of its own{elsewhere}: the tile is kept in local memory, for no register can "
        "be named by a number known at run time only; matrix products whose warps have the same "
        "rows, "
        "as with policy=T.GemmWarpPolicy.FullRow, or a copy into a second tile for one of the "
        "loops, keep it in registers",
        nest.node.span,
        pass_name="infer_layouts",
    )
