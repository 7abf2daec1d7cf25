"""Barriers for parts of a block where the machine has one barrier, that of the whole block."""

from __future__ import annotations

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import const
from tile_core.ir.device import device
from tile_core.ir.device_calls import BAR_ARRIVE, BAR_READY, BAR_SYNC, PREFIX
from tile_core.ir.expr import AddressOf, Call
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Evaluate, Seq, Stmt
from tile_core.simt.context import SimtContext

FEATURE = "barriers_in_memory"
"""A machine that waits for some threads of a block by counting them in its shared memory."""

_WORDS = 2  # of a barrier: how many came, and how often it has opened
_IN_MEMORY = {f"{PREFIX}bar_sync": BAR_SYNC, f"{PREFIX}bar_arrive": BAR_ARRIVE}


def lower_software_barriers(body: Stmt, ctx: SimtContext) -> Stmt:
    """Return `body` with counters in shared memory for the barriers that have numbers.

    Before   if 64 <= tid < 192: …;  bar_sync(15, 128);  …
    After    bar_ready(&counts[0], 32);  if 64 <= tid < 192: …;
             bar_sync_counted(&counts[0], 15, 128);  …

    Counters begin at zero behind a barrier of the whole block. A wave counts once, so that
    barriers are for whole waves; each of them is on the machine until it ends and gets its turn,
    so that those who wait do not keep the others from coming.
    """
    if not ctx.machine.has(FEATURE) or not any(
        n.function in _IN_MEMORY for n in nodes_of(body, Call)
    ):
        return body
    words = _WORDS * ctx.machine.barriers
    made = Buffer(ctx.names.fresh("arrivals"), (words,), dtype_of("uint32"), Scope.SHARED)
    ctx.workspaces_of(0, 0).append(made)  # nobody's, so that nothing else lies there
    place = AddressOf(made, (const(0),), "rw")

    def counted(node: Node) -> Node:
        if not isinstance(node, Call) or node.function not in _IN_MEMORY:
            return node
        return device(_IN_MEMORY[node.function], place, *node.args)

    return Seq((Evaluate(device(BAR_READY, place, words)), rewrite(body, counted)))
