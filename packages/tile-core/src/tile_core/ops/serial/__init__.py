"""Every tile operator as scalar loops in tile IR: the meaning, and everybody's last resort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Evaluate, For, If, Leaf, Seq, Stmt, Store
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.control import Barrier, Breakpoint, Print
from tile_core.ops.copy import Copy, Im2col, Transpose
from tile_core.ops.fill import Fill
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.reduce import Reduce, ReducerFinalize, ReducerInit, ReducerUpdate, Scan
from tile_core.ops.serial import gemm, printing, reduce, transfer
from tile_core.ops.serial.loops import seq

_EXPANSIONS: dict[type[Leaf], Callable[[Any], Stmt]] = {
    AtomicTile: transfer.expand_atomic,
    Barrier: lambda op: seq(),
    Breakpoint: lambda op: seq(),
    Copy: transfer.expand_copy,
    CopyCommit: lambda op: seq(),
    CopyWait: lambda op: seq(),
    Fill: transfer.expand_fill,
    Gemm: gemm.expand_gemm,
    Im2col: transfer.expand_im2col,
    Print: printing.expand_print,
    Reduce: reduce.expand_reduce,
    ReducerFinalize: reduce.expand_reducer_finalize,
    ReducerInit: reduce.expand_reducer_init,
    ReducerUpdate: reduce.expand_reducer_update,
    Scan: reduce.expand_scan,
    Transpose: transfer.expand_transpose,
    WaitProducts: lambda op: seq(),
}


def expand(op: Leaf) -> Stmt:
    """Return statements that do what `op` does, one element at a time.

    Before   copy A[bx*64:+64, 0:+32], T
    After    for i in range(64): for j in range(32): T[i, j] = cast(A[bx*64 + i, j])

    The result holds no operators, only loops, branches, scalar variables, loads and stores.
    No bounds are checked in it: accesses to global buffers are guarded by their definition.
    Barriers and waits become nothing: whoever expands runs the block as one thread.

    Raises
    ------
    UnsupportedOnTarget
        If the core does not know the operator: its own package must bring a rule for it.
    """
    write = _EXPANSIONS.get(type(op))
    if write is None:
        raise UnsupportedOnTarget(
            f"operator {_name(op)!r} has no serial form",
            span=op.span,
            hint="the package that defines the operator must provide a rule for this target",
        )
    return _located(write(op), op)


def _name(op: Leaf) -> str:
    return op.name if isinstance(op, GpuOperator) else type(op).mnemonic


def _located(stmt: Stmt, op: Leaf) -> Stmt:
    """Return `stmt` with the place of `op` on every statement that has none."""
    if op.span is None:
        return stmt

    def place(node: Node) -> Node:
        if node.span is None and isinstance(node, (Evaluate, For, If, Seq, Store)):
            return replace(node, span=op.span)
        return node

    return rewrite(stmt, place)
