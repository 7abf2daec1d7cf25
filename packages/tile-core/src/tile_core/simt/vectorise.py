"""Loops over neighbours as the widest accesses, and copies, that are certainly legal."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.build_expr import binary, const, truth
from tile_core.ir.device import device
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import AddressOf, BinaryOp, Call, Const, Expr, Load, Select, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import Node, contains, has_more_nodes, substitute
from tile_core.ir.stmt import Alloc, Evaluate, For, If, Let, LoopKind, Seq, Stmt, Store
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import counted
from tile_core.simt.lane_strides import Lanes, is_steady
from tile_core.simt.vector_access import MEMORY, LanePart, independent, part, widest, widths
from tile_core.simt.vector_group import vectorised_group


def vectorise(loop: For, ctx: SimtContext) -> Stmt:
    """Return a ``VECTORIZED`` loop of one thread with vector accesses of memory.

    Before   for v in vectorised(8): B[tid*8 + v] = cast(A[tid*8 + v], float32) * 2
    After    load<8>(a, A + tid*8);  for v in unrolled(8): b[v] = cast(a[v], float32) * 2
             store<4>(B + tid*8, b);  store<4>(B + (tid*8 + 4), b + 4)

    Each access is decided alone: neighbours in memory, aligned to their size, and under a
    condition that is the same for all of its lanes. It takes as many lanes at once as all
    that allows, down to one; accesses in lanes of their own stay where they were. What cannot
    be taken apart, such as a sequential loop inside, is written out lane by lane.
    """
    first, stop, step = (static_value(e) for e in (loop.start, loop.stop, loop.step))
    scalar = replace(loop, kind=LoopKind.UNROLL)
    if first is None or stop is None or step != 1:
        return replace(loop, kind=LoopKind.SERIAL)
    count = max(0, stop - first)
    body = loop.body
    if first:
        body = substitute(body, {loop.var: binary(BinaryOp.ADD, loop.var, first)})
    statements = _statements(body)
    if count < 2 or statements is None:
        return scalar
    statements = _without_names(statements)
    lanes = Lanes(loop.var, count, ctx.env.with_loop(loop.var, 0, count))
    if not independent(statements, lanes, registers=False):
        return scalar
    groups = _groups(statements, lanes, ctx)
    parts: list[Stmt] = []
    if len(groups) > 1:
        if not independent(statements, lanes, registers=True):
            return scalar
        made = _Kept(loop.var, count, ctx)
        groups = _groups([made.kept(s) for s in statements], lanes, ctx)
        parts += made.allocs
    for group in groups:
        parts += _group(group, lanes, ctx)
    return parts[0] if len(parts) == 1 else Seq(tuple(parts), span=loop.span)


def _statements(body: Stmt) -> list[Stmt] | None:
    """Return the statements of a body; None if one is more than an element-wise one."""
    found: list[Stmt] = []
    for stmt in body.body if isinstance(body, Seq) else (body,):
        if isinstance(stmt, Seq):
            inner = _statements(stmt)
            if inner is None:
                return None
            found += inner
        elif _is_simple(stmt):
            found.append(stmt)
        else:
            return None
    return found


def _is_simple(stmt: Stmt) -> bool:
    match stmt:
        case Store() | Let():
            return True
        case Evaluate(value=value):
            return isinstance(value, Call) and value.function.startswith("atomic_")
        case If(then=then, otherwise=otherwise):
            return _statements(then) is not None and (
                otherwise is None or _statements(otherwise) is not None
            )
    return False


MOST_REPEATED = 64
"""Nodes of what is written wherever its name stands: longer, and text would grow by powers."""


def _without_names(statements: Sequence[Stmt]) -> list[Stmt]:
    """Put what names of plain, short arithmetic stand for in their place."""
    meaning: dict[Node, Node] = {}
    result: list[Stmt] = []
    for stmt in statements:
        stmt = substitute(stmt, meaning) if meaning else stmt
        if isinstance(stmt, Let) and _is_written_again(stmt.value):
            meaning[stmt.var] = stmt.value
        else:
            result.append(stmt)
    return result


def _is_written_again(value: Expr) -> bool:
    return not (contains(value, Load, Call) or has_more_nodes(value, MOST_REPEATED))


class _Kept:
    """Turns names into register arrays with one element per lane."""

    def __init__(self, lane: Var, count: int, ctx: SimtContext) -> None:
        self.lane, self.count, self.ctx = lane, count, ctx
        self.meaning: dict[Node, Node] = {}
        self.allocs: list[Alloc] = []

    def kept(self, stmt: Stmt) -> Stmt:
        """Return `stmt` with names read from, or kept in, arrays."""
        stmt = substitute(stmt, self.meaning) if self.meaning else stmt
        if not isinstance(stmt, Let):
            return stmt
        array = self.ctx.registers(stmt.var.name, self.count, stmt.value.dtype)
        self.allocs.append(Alloc(array))
        self.meaning[stmt.var] = Load(array, (self.lane,))
        return Store(array, (self.lane,), stmt.value, span=stmt.span)


def _groups(statements: Sequence[Stmt], lanes: Lanes, ctx: SimtContext) -> list[list[Stmt]]:
    """Cut where memory is touched that an earlier statement wrote, and around steady branches.

    Within a group all loads of memory may go first and all stores last.
    """
    groups: list[list[Stmt]] = [[]]
    written: set[Buffer] = set()
    for stmt in statements:
        alone = isinstance(stmt, If) and _steady_part(stmt, lanes, ctx) is not None
        touched = {a.buffer.storage for a in accesses(stmt)}
        if groups[-1] and (alone or touched & written):
            groups.append([])
            written = set()
        groups[-1].append(stmt)
        written |= {
            a.buffer.storage
            for a in accesses(stmt)
            if a.mode is not Mode.READ and a.buffer.scope in MEMORY
        }
        if alone:
            groups.append([])
            written = set()
    return [g for g in groups if g]


def _steady_part(stmt: If, lanes: Lanes, ctx: SimtContext) -> LanePart | None:
    """Return the largest parts of the lanes that certainly take one branch together."""
    whole = part(lanes, lanes.count, ctx)
    if lanes.var not in free_variables(stmt.cond):
        return whole
    if contains(stmt.cond, Load, Call):
        return None
    for width in (lanes.count, *widths(lanes.count, lanes.count // 2)):
        piece = whole if width == lanes.count else part(lanes, width, ctx)
        if is_steady(substitute(stmt.cond, {lanes.var: piece.lane}), piece.lanes):
            return piece
    return None


def _group(group: list[Stmt], lanes: Lanes, ctx: SimtContext) -> list[Stmt]:
    match group:
        case [If() as branch]:
            piece = _steady_part(branch, lanes, ctx)
            if piece is not None:
                return [piece.each(_branch(branch, lanes, piece, ctx))]
    return vectorised_group(group, lanes, ctx)


def _branch(stmt: If, lanes: Lanes, piece: LanePart, ctx: SimtContext) -> Stmt:
    """Return a branch that all lanes of a part take together, with vectors in both sides."""
    cond = substitute(stmt.cond, {lanes.var: piece.first})

    def side(body: Stmt, *, holds: bool) -> Stmt:
        inner = Var(ctx.names.fresh(lanes.var.name), lanes.var.dtype)
        at = binary(BinaryOp.ADD, piece.first, inner)
        body = substitute(body, {lanes.var: at})
        loop = counted(inner, piece.lanes.count, body, LoopKind.VECTORIZED, stmt.span)
        return vectorise(loop, ctx.knowing(piece.lanes.env.assuming(cond, holds=holds)))

    otherwise = None if stmt.otherwise is None else side(stmt.otherwise, holds=False)
    return If(cond, side(stmt.then, holds=True), otherwise, span=stmt.span)


CHUNKS = (16, 8, 4)
"""Bytes that one asynchronous copy moves."""

FEATURE = "async_copy"
"""The feature of machines that have such copies."""


def async_lanes(loop: For, ctx: SimtContext) -> Stmt:
    """Return a loop over neighbours as asynchronous copies, or else as `vectorise` does."""
    stop = loop.stop
    moved = _moved(loop.body)
    if moved is None or not isinstance(stop, Const) or not ctx.machine.has(FEATURE):
        return vectorise(loop, ctx)
    around, store, load, inside = moved
    lanes = Lanes(loop.var, int(stop.value), ctx.env.with_loop(loop.var, 0, int(stop.value)))
    for nbytes in CHUNKS:
        made = _chunks(nbytes, store, load, inside, around, lanes, ctx)
        if made is not None:
            return made
    return vectorise(loop, ctx)


def _moved(body: Stmt) -> tuple[list[Expr], Store, Load, Expr | None] | None:
    """Return conditions, store, load and predicate of a body that moves one element."""
    around: list[Expr] = []
    while True:
        match body:
            case Seq(body=(only,)):
                body = only
            case If(cond=cond, then=then, otherwise=None):
                around.append(cond)
                body = then
            case _:
                break
    if not isinstance(body, Store) or body.buffer.scope is not Scope.SHARED:
        return None
    inside: Expr | None = None
    value = body.value
    while isinstance(value, Select) and isinstance(value.otherwise, Const):
        if not _is_zero(value.otherwise):
            return None
        cond = truth(value.cond)
        inside = cond if inside is None else binary(BinaryOp.AND, inside, cond)
        value = value.then
    if not isinstance(value, Load) or value.buffer.scope is not Scope.GLOBAL:
        return None
    return (around, body, value, inside) if value.buffer.dtype == body.buffer.dtype else None


def _is_zero(value: Const) -> bool:
    return str(value.value) in ("0", "0.0", "False")  # not -0.0, which has a bit set


def _chunks(
    nbytes: int,
    store: Store,
    load: Load,
    inside: Expr | None,
    around: list[Expr],
    lanes: Lanes,
    ctx: SimtContext,
) -> Stmt | None:
    """Return copies of `nbytes` each, or None if some could not be one."""
    width, rest = divmod(nbytes * 8, load.buffer.dtype.bits)
    if rest or width == 0 or lanes.count % width:
        return None
    conditions = [*around, *([] if inside is None else [inside])]
    for access in (load, store) if width > 1 else ():
        if widest(access.buffer, access.indices[0], (), lanes, ctx, allowed=(width,)) is None:
            return None
    piece = part(lanes, width, ctx)
    lane, first = piece.lane, piece.first
    if not all(is_steady(substitute(c, {lanes.var: lane}), piece.lanes) for c in conditions):
        return None
    predicate = const(True) if inside is None else truth(substitute(inside, {lanes.var: first}))
    here: dict[Node, Node] = {lanes.var: first}
    place = substitute(load.indices[0], here)
    if inside is not None and contains(place, Load):
        place = Select(predicate, place, const(0, place.dtype))  # a table may end where tiles do
    call = device(
        "async_copy",
        nbytes,
        *ctx.cache_hint(load.buffer),
        AddressOf(store.buffer, (substitute(store.indices[0], here),), "w"),
        AddressOf(load.buffer, (place,), "r"),
        predicate,
    )
    made: Stmt = Evaluate(call, span=store.span)
    for condition in reversed(around):
        made = If(substitute(condition, here), made, span=store.span)
    return piece.each(made)
