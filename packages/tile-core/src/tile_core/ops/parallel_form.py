"""Element-wise tile operators as one parallel loop each."""

from __future__ import annotations

from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.expr import Expr, Var
from tile_core.ir.stmt import For, Parallel, Seq, Stmt
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.copy import Copy, Im2col, Transpose
from tile_core.ops.fill import Fill
from tile_core.ops.operator import TileOperator
from tile_core.ops.serial import expand

ELEMENT_WISE: tuple[type[TileOperator], ...] = (AtomicTile, Copy, Fill, Im2col, Transpose)


def is_element_wise(op: object) -> bool:
    """Whether `op` does the same to each element of a tile, in any order."""
    return isinstance(op, ELEMENT_WISE)


def as_parallel(op: TileOperator) -> Parallel:
    """Return the parallel loop that does what `op` does, one element per iteration.

    Before   copy A[bx*64:+64, 0:+32], T
    After    parallel i, j in (64, 32): T[i, j] = cast(A[bx*64 + i, j])

    The copy of a single element is a loop of extents (), with one iteration.

    Raises
    ------
    InternalError
        If `op` is not element-wise.
    """
    if not is_element_wise(op):
        raise InternalError(f"{op.mnemonic!r} is not an element-wise operator", span=op.span)
    body: Stmt = expand(op)
    names: list[Var] = []
    extents: list[Expr] = []
    while isinstance(body, For):
        names.append(body.var)
        extents.append(body.stop)
        body = body.body
    wishes: dict[str, Any] = {}
    if isinstance(op, Copy):
        wishes = {"coalesced_width": op.coalesced_width, "loop_layout": op.loop_layout}
    if not isinstance(body, Seq):
        body = Seq((body,), span=op.span)
    return Parallel(tuple(names), tuple(extents), body, span=op.span, **wishes)
