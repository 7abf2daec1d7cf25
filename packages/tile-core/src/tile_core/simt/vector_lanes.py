"""Lanes of a vector in equal parts, and whether lanes may run in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, const
from tile_core.ir.effects import Access, Mode, accesses
from tile_core.ir.expr import AddressOf, BinaryOp, Expr, Load, Var
from tile_core.ir.node import substitute
from tile_core.ir.stmt import For, LoopKind, Stmt, Store
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext
from tile_core.simt.lane_strides import Lanes, LaneStride, along

MEMORY = (Scope.GLOBAL, Scope.SHARED)
"""Where accesses of several neighbours at once are one instruction."""


@dataclass(frozen=True, slots=True)
class LanePart:
    """Lanes taken `lanes.count` at a time: ``lane == first + lanes.var``.

    Parameters
    ----------
    chunk
        Number of the part; None if there is one.
    first
        The first lane of the part.
    chunks
        How many parts there are.
    """

    chunk: Var | None
    chunks: int
    first: Expr
    lanes: Lanes

    @property
    def lane(self) -> Expr:
        """The lane in terms of the part and the lane within it."""
        return binary(BinaryOp.ADD, self.first, self.lanes.var)

    def each(self, body: Stmt) -> Stmt:
        """Return `body` for each part, written out."""
        if self.chunk is None:
            return body
        dtype = self.chunk.dtype
        stop = const(self.chunks, dtype)
        return For(
            self.chunk, const(0, dtype), stop, const(1, dtype), body, LoopKind.UNROLL,
            span=body.span,
        )  # fmt: skip


def part(lanes: Lanes, width: int, ctx: SimtContext) -> LanePart:
    """Return `lanes` in parts of `width`, which divides their number."""
    dtype = lanes.var.dtype
    inner, chunks = Var(f"{lanes.var.name}_lane", dtype), lanes.count // width
    if chunks == 1:
        env = lanes.env.with_loop(inner, 0, width)
        return LanePart(None, 1, const(0, dtype), Lanes(inner, width, env))
    chunk = Var(ctx.names.fresh("c"), dtype)
    env = lanes.env.with_loop(chunk, 0, chunks).with_loop(inner, 0, width)
    return LanePart(chunk, chunks, chunk * width, Lanes(inner, width, env))


def widths(count: int, most: int) -> Iterator[int]:
    """Yield the powers of two from `most` down to 2 that divide `count`."""
    width = 1 << (most.bit_length() - 1)
    while width >= 2:
        if count % width == 0:
            yield width
        width //= 2


def index_of(access: Access) -> Expr | None:
    """Return the offset that a load, store or address of a flat buffer touches."""
    node = access.node
    return node.indices[0] if isinstance(node, (Load, Store, AddressOf)) else None


def independent(statements: Sequence[Stmt], lanes: Lanes, *, registers: bool) -> bool:
    """Whether no lane touches what another one writes, so that statements may run lane by lane.

    Parameters
    ----------
    registers
        Ask so of registers too; otherwise of memory alone.
    """
    found: dict[Buffer, list[Access]] = {}
    for stmt in statements:
        for access in accesses(stmt):
            if registers or access.buffer.scope in MEMORY:
                found.setdefault(access.buffer.storage, []).append(access)
    return all(_is_apart(touches, lanes) for touches in found.values())


def _is_apart(touches: list[Access], lanes: Lanes) -> bool:
    if all(t.mode is Mode.READ for t in touches) or all(t.mode is Mode.ATOMIC for t in touches):
        return True
    if len(touches) == 1:
        return True
    first = index_of(touches[0])
    if first is None or (step := along(first, lanes)) is None or step.factor == 0:
        return False
    here = lanes.env.linear(first)
    for touch in touches:
        index = index_of(touch)
        if index is None or touch.buffer.dtype != touches[0].buffer.dtype:
            return False
        apart = lanes.env.linear(index) - here
        if not apart.is_number or apart.constant != 0:
            return False
    return True


def within(expr: Expr, of: Lanes, piece: LanePart) -> LaneStride | None:
    """Return how `expr`, which mentions the lane `of`, moves along one part."""
    return along(substitute(expr, {of.var: piece.lane}), piece.lanes)


def at_first(expr: Expr, of: Lanes, piece: LanePart) -> Expr:
    """Return `expr` at the first lane of a part."""
    return substitute(expr, {of.var: piece.first})
