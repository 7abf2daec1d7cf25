"""Statements by which threads of an explicit program tell others how far they are."""

from __future__ import annotations

from tile_core.ir.expr import Call
from tile_core.ir.gpu_intrinsics import BARRIER_ARRIVALS, COPY_BARRIER
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Evaluate, Let, Stmt
from tile_core.ops.control import Barrier
from tile_core.ops.mbarrier import BarrierArrive, BarrierWait

_SENDS = frozenset({*BARRIER_ARRIVALS, COPY_BARRIER, "cluster_arrive", "cluster_arrive_relaxed"})
_AWAITS = frozenset({"mbarrier_wait_parity", "cluster_wait"})


def sends_signal(stmt: Stmt) -> bool:
    """Whether others may wait for a thread that has run `stmt`: it arrives at some barrier."""
    if isinstance(stmt, Barrier):
        return stmt.count is not None
    return isinstance(stmt, BarrierArrive) or _calls(stmt, _SENDS)


def awaits_signal(stmt: Stmt) -> bool:
    """Whether `stmt` waits for threads that arrive at some barrier."""
    if isinstance(stmt, Barrier):
        return stmt.count is not None and not stmt.arrives_only
    return isinstance(stmt, BarrierWait) or _calls(stmt, _AWAITS)


def _calls(stmt: Stmt, names: frozenset[str]) -> bool:
    return isinstance(stmt, (Evaluate, Let)) and any(
        node.function in names for node in nodes_of(stmt, Call)
    )
