"""Barriers in memory and signals are no numbers: what stands there is the machine's affair."""

from __future__ import annotations

from tile_core.errors import FrontendTypeError, Note, Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Load
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Kernel, Leaf, Store
from tile_core.ops.gpu_only import GpuOperator


def verify_barriers(kernel: Kernel) -> None:
    """Check that nothing reads or writes barriers or signals as if they were elements of a tile.

    Raises `FrontendTypeError` at the first statement or expression that does.
    """
    for node in nodes_of(kernel.body, Load, Store, Leaf):
        match node:
            case Load(buffer=buffer):
                _refuse(buffer, "read", node.span)
            case Store(buffer=buffer):
                _refuse(buffer, "written", node.span)
            case GpuOperator():  # those for barriers among them: targets say what they have
                pass
            case Leaf():
                for region in node.reads():
                    _refuse(region.buffer, "read", node.span)
                for region in node.writes():
                    _refuse(region.buffer, "written", node.span)


def _refuse(buffer: Buffer, done: str, span: Span | None) -> None:
    if buffer.scope is Scope.SIGNALS:
        raise FrontendTypeError(
            f"{buffer.name!r} holds signals, which are not {done} as numbers",
            span=span,
            notes=(Note(f"{buffer.name} is declared here", buffer.span),),
            hint="use T.signal, T.wait_signal and T.barrier_ranks: a launch finds all flags 0",
        )
    if buffer.scope is not Scope.BARRIER:
        return
    raise FrontendTypeError(
        f"{buffer.name!r} holds barriers, which are not {done} as numbers",
        span=span,
        notes=(Note(f"{buffer.name} is declared here", buffer.span),),
        hint="use T.mbarrier_arrive and T.mbarrier_wait_parity; barriers are ready from the start",
    )
