"""Accesses of memory by several lanes at once: lanes in parts, and how many may take part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.errors import Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import all_of, binary, const
from tile_core.ir.device import device
from tile_core.ir.effects import Access, Mode, accesses
from tile_core.ir.expr import AddressOf, BinaryOp, Expr, Load, Var
from tile_core.ir.node import substitute
from tile_core.ir.stmt import Evaluate, If, Stmt, Store
from tile_core.records import dataclass, replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import counted
from tile_core.simt.lane_strides import Lanes, LaneStride, along, is_steady

MEMORY = (Scope.GLOBAL, Scope.SHARED)
"""Where accesses of several neighbours at once are one instruction."""


@dataclass(frozen=True, slots=True)
class LanePart:
    """Lanes taken `lanes.count` at a time: ``lane == first + lanes.var``.

    `chunk` is the number of the part of `chunks`, None if there is one, and `first` its first
    lane.
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
        return counted(self.chunk, self.chunks, body, span=body.span)


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
    """Whether no lane touches what another one writes, so that statements may run lane by lane."""
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


@dataclass(frozen=True, slots=True)
class Vector:
    """An access of `width` neighbours in memory for each part of the lanes.

    `base` is the offset of the first element, over the number of the part. The access happens
    under `condition`, alike for all lanes of a part; None: always. `sharing` neighbouring lanes
    share each element, as two do a byte of 4-bit numbers. `hint` is what a call says to the
    cache: see `tile_core.ir.cache_hints`.
    """

    buffer: Buffer
    part: LanePart
    base: Expr
    condition: Expr | None
    span: Span | None
    sharing: int = 1
    hint: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Lanes of one access."""
        return self.part.lanes.count


def widest(
    buffer: Buffer,
    index: Expr,
    conditions: Sequence[Expr],
    lanes: Lanes,
    ctx: SimtContext,
    span: Span | None = None,
    *,
    allowed: Sequence[int] | None = None,
) -> Vector | None:
    """Return the widest legal access; None if each lane must go by itself.

    From lane to lane `index`, the offset in the flat `buffer`, must move by 1, from a multiple
    of the width; each of `conditions`, under which the access happens, must be alike for all
    lanes of a part. There are instructions for the widths `allowed`, if not for all up to the
    machine's widest.
    """
    if isinstance(buffer.storage.origin, Expr):
        return None  # nothing is known of an address that the program was given
    most = max(1, ctx.machine.vector_bytes * 8 // buffer.dtype.bits)
    for width in widths(lanes.count, most):
        if allowed is not None and width not in allowed:
            continue
        piece = part(lanes, width, ctx)
        step = within(index, lanes, piece)
        if step is None or step.factor != 1 or piece.lanes.env.multiple_of(step.base) % width:
            continue
        inner = [substitute(c, {lanes.var: piece.lane}) for c in conditions]
        if not all(is_steady(c, piece.lanes) for c in inner):
            continue
        condition = all_of([at_first(c, lanes, piece) for c in conditions])
        hint = ctx.cache_hint(buffer)
        return Vector(buffer, piece, step.base, condition, span, hint=hint)
    return None


def widest_shared(
    buffer: Buffer,
    index: Expr,
    conditions: Sequence[Expr],
    lanes: Lanes,
    ctx: SimtContext,
    span: Span | None = None,
) -> Vector | None:
    """Return the widest access of elements that two lanes each share; None if there is none.

    Before   A[(tid*8 + v) // 2] for 8 lanes v
    After    load<4>(a, A + tid*4), of which lane v has a[v // 2]
    """
    if lanes.count % 2 or lanes.count < 4:
        return None
    pair = part(lanes, 2, ctx)
    step = within(index, lanes, pair)
    inner = [substitute(c, {lanes.var: pair.lane}) for c in conditions]
    if step is None or step.factor != 0 or not all(is_steady(c, pair.lanes) for c in inner):
        return None
    if pair.chunk is None:  # a single pair
        return None
    pairs = Lanes(pair.chunk, pair.chunks, pair.lanes.env)
    firsts = [at_first(c, lanes, pair) for c in conditions]
    found = widest(buffer, step.base, firsts, pairs, ctx, span)
    return None if found is None else replace(found, sharing=2)


@dataclass(frozen=True, slots=True)
class Registers:
    """Where a vector has its elements in registers: lane ``k`` at ``base + k``."""

    buffer: Buffer
    base: Expr

    def at(self, lane: Expr) -> Expr:
        """Return the offset of a lane."""
        return binary(BinaryOp.ADD, self.base, lane)


def load_vector(vector: Vector, into: Registers, otherwise: Expr | None = None) -> Stmt:
    """Return the loads of all parts, with `otherwise` in registers where there is no access."""
    here = into.at(vector.part.first)
    call = device(
        "load",
        vector.width,
        *vector.hint,
        AddressOf(into.buffer, (here,), "w"),
        AddressOf(vector.buffer, (vector.base,), "r"),
    )
    body: Stmt = Evaluate(call, span=vector.span)
    if vector.condition is not None:
        fill = None if otherwise is None else _filled(vector, into, otherwise)
        body = If(vector.condition, body, fill, span=vector.span)
    return vector.part.each(body)


def _filled(vector: Vector, into: Registers, value: Expr) -> Stmt:
    store = Store(into.buffer, (into.at(vector.part.lane),), value, span=vector.span)
    return counted(vector.part.lanes.var, vector.width, store, span=vector.span)


def store_vector(vector: Vector, source: Registers, function: str = "store") -> Stmt:
    """Return the stores, or atomic updates, of all parts."""
    here = source.at(vector.part.first)
    access = "w" if function == "store" else "rw"
    call = device(
        function,
        vector.width,
        *(vector.hint if function == "store" else ()),
        AddressOf(vector.buffer, (vector.base,), access),
        AddressOf(source.buffer, (here,), "r"),
    )
    body: Stmt = Evaluate(call, span=vector.span)
    if vector.condition is not None:
        body = If(vector.condition, body, span=vector.span)
    return vector.part.each(body)
