"""A data-parallel loop as the program of one of the threads that share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Scope, static_value
from tile_core.ir.build_expr import all_of, as_expr, binary, cast, ceildiv, const
from tile_core.ir.expr import AddressOf, BinaryOp, Call, Expr, Extent, Load, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, nodes_of, rewrite, substitute, walk
from tile_core.ir.stmt import Evaluate, For, If, Let, LoopKind, Parallel, Stmt, Store
from tile_core.layout.loop_layout import LoopLayout
from tile_core.passes.lower_serially import nested_loops
from tile_core.records import dataclass, replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import counted
from tile_core.simt.lane_strides import Lanes
from tile_core.simt.register_loops import register_loop
from tile_core.simt.subbyte_access import storage_dtype
from tile_core.simt.subbyte_store_pairing import Runs, in_pairs, runs_of
from tile_core.simt.vectorise import vectorise

MOST_UNROLLED = 16
"""Rounds that are written out where registers do not ask for it."""


@dataclass(frozen=True, slots=True)
class Share:
    """The iterations of one thread: ``for round: for lane: if owned: body at coords``.

    Parameters
    ----------
    round, lane
        Loop variables, and how far they count.
    coords
        The point of the nest, one expression per dimension, of thread, round and lane.
    owned
        Under which conditions there is such an iteration, outermost first.
    speaks
        Whether this thread is the one of several at that point whose effects count; None:
        it is alone.
    env
        What is known inside of both loops.
    """

    round: Var
    rounds: Expr
    lane: Var
    lanes: int
    coords: tuple[Expr, ...]
    owned: tuple[Expr, ...]
    speaks: Expr | None
    env: ConstraintSet

    def runs(self, body: Stmt, points: dict[Node, Node]) -> Runs:
        """Return what is known about the neighbours in the body of the loop."""
        conditions = [c for c in self.owned if not self.env.proves(c)]
        if self.speaks is not None:
            conditions.append(self.speaks)
        return runs_of(body, Lanes(self.lane, self.lanes, self.env), points, conditions)


def partition(
    loop: Parallel,
    layout: LoopLayout | None,
    ctx: SimtContext,
    finish: Callable[[For, SimtContext], Stmt] = vectorise,
) -> Stmt:
    """Return what each thread does of `loop`.

    Before   parallel i, j in (64, 32): B[by*64 + i, j] = A[by*64 + i, j]
    After    for r in unrolled(4): for v in vectorised(4):  i, j of r*512 + tid*4 + v
                 if by*64 + i < M: B[...] = A[by*64 + i < M ? ... : 0]

    `layout` is None where extents are known at run time only: then iterations go round the
    threads in row-major order. `finish` makes statements of the loop over the lanes of one
    round.

    Notes
    -----
    Guards are decided on the indices of the tile, where most is known; threads and rounds
    take the place of the loop's variables afterwards. Where several threads run one
    iteration, all of them write registers and one of them everything else.
    """
    if layout is not None and (made := register_loop(loop, layout.extents, ctx)) is not None:
        return made
    body = _sequential(loop.body)
    inner = ctx.env
    for var, extent in zip(loop.vars, loop.extents, strict=True):
        inner = inner.with_loop(var, 0, extent)
    if layout is None:
        share = _dynamic(loop, body, ctx)
    else:
        share = _share(loop, in_pairs(loop, layout, ctx.threads), ctx)
    points: dict[Node, Node] = dict(zip(loop.vars, share.coords, strict=True))
    lowered = ctx.lower(
        body, replace(ctx, env=inner, by_thread=True, runs=share.runs(body, points))
    )
    return _loops(substitute(_once(lowered, share.speaks), points), share, loop, ctx, finish)


def _sequential(body: Stmt) -> Stmt:
    """Let the thread of an iteration run all of a parallel loop inside of it."""
    return rewrite(body, lambda n: nested_loops(n) if isinstance(n, Parallel) else n)


def _share(loop: Parallel, layout: LoopLayout, ctx: SimtContext) -> Share:
    turn, lane = ctx.fresh_var("r"), ctx.fresh_var("v")
    env = ctx.env.with_loop(turn, 0, layout.rounds).with_loop(lane, 0, layout.vector)
    coords = tuple(as_expr(x) for x in layout.coords_at(ctx.thread, turn, lane))
    owned: list[Expr] = []
    if layout.searched:
        owned.append(_is_owner(layout, coords, ctx.thread))
    elif layout.threads < ctx.threads:
        owned.append(binary(BinaryOp.LT, ctx.thread, layout.threads))
    for coord, room, extent in zip(coords, layout.extents, loop.extents, strict=True):
        if layout.ragged:
            owned.append(binary(BinaryOp.GE, coord, 0))
            owned.append(binary(BinaryOp.LT, coord, room))
        if static_value(extent) != room:
            owned.append(binary(BinaryOp.LT, coord, extent))
    coords = tuple(cast(x, v.dtype) for x, v in zip(coords, loop.vars, strict=True))
    speaks: Expr | None = None
    if layout.is_replicated:
        first = layout.fragment.forward_thread(*coords) if layout.searched else None
        speaks = (
            binary(BinaryOp.EQ, as_expr(layout.replica_at(ctx.thread, turn, lane)), 0)
            if first is None
            else binary(BinaryOp.EQ, ctx.thread, as_expr(first))
        )
    return Share(turn, const(layout.rounds), lane, layout.vector, coords, tuple(owned), speaks, env)


def _is_owner(layout: LoopLayout, coords: Sequence[Expr], thread: Expr) -> Expr:
    copies = range(layout.fragment.replication)
    owners = [as_expr(layout.fragment.forward_thread(*coords, rep=r)) for r in copies]
    found = binary(BinaryOp.EQ, thread, owners[0])
    for owner in owners[1:]:
        found = binary(BinaryOp.OR, found, binary(BinaryOp.EQ, thread, owner))
    return found


def _dynamic(loop: Parallel, body: Stmt, ctx: SimtContext) -> Share:
    """Deal out iterations whose number is known at run time: row-major, round the threads."""
    turn, lane = ctx.fresh_var("r"), ctx.fresh_var("v")
    dtype = next((v.dtype for v in loop.vars if v.dtype.bits > 32), loop.vars[0].dtype)
    turn = replace(turn, dtype=dtype)
    total: Extent = 1
    for extent in loop.extents:
        total = extent * total
    total = as_expr(total)
    width = _widest(loop, body, ctx)
    rounds = ceildiv(total, ctx.threads * width)
    env = ctx.env.with_loop(turn, 0, rounds).with_loop(lane, 0, width)
    flat = (turn * ctx.threads + ctx.thread) * width + lane
    coords: list[Expr] = []
    rest: Expr = flat
    for var, extent in reversed(tuple(zip(loop.vars, loop.extents, strict=True))[1:]):
        coords.insert(0, cast(rest % extent, var.dtype))
        rest = rest // extent
    coords.insert(0, cast(rest, loop.vars[0].dtype))
    owned = (binary(BinaryOp.LT, flat, total),)
    return Share(turn, rounds, lane, width, tuple(coords), owned, None, env)


def _widest(loop: Parallel, body: Stmt, ctx: SimtContext) -> int:
    """Return how many neighbours along the innermost extent one access could take."""
    touched = {n.buffer for n in nodes_of(body, Load, Store, AddressOf)}
    memory = [b for b in touched if b.scope in _OUTSIDE]
    sizes = [storage_dtype(b.dtype, b.scope).bits // 8 for b in memory]
    width = 1
    if not sizes:
        return width
    multiple = ctx.env.multiple_of(loop.extents[-1])
    while width * 2 * min(sizes) <= ctx.machine.vector_bytes and multiple % (width * 2) == 0:
        width *= 2
    return width


_OUTSIDE = (Scope.SHARED, Scope.GLOBAL)
_REGISTERS = (Scope.LOCAL, Scope.REDUCER)


def _once(stmt: Stmt, speaks: Expr | None) -> Stmt:
    """Let only the speaking thread do what all others would repeat."""
    if speaks is None:
        return stmt
    leaves = [
        n
        for n in walk(stmt)
        if isinstance(n, (Store, Evaluate)) or (isinstance(n, Let) and _is_outside(n))
    ]
    if leaves and all(_is_outside(leaf) for leaf in leaves):
        return If(speaks, stmt, span=stmt.span)
    for leaf in leaves:
        if isinstance(leaf, Let):
            raise UnsupportedOnTarget(
                f"{leaf.var.name!r} is the result of something that happens once, in a loop of "
                "which several threads run each iteration",
                span=leaf.span,
                hint="write a T.alloc_shared tile instead of a T.alloc_fragment in this loop",
            )

    def visit(node: Node) -> Node:
        if isinstance(node, (Store, Evaluate)) and _is_outside(node):
            return If(speaks, node, span=node.span)
        return node

    return rewrite(stmt, visit)


def _is_outside(stmt: Node) -> bool:
    """Whether doing it twice is too much: memory, and totals that all threads add up."""
    if isinstance(stmt, Store) and stmt.buffer.scope in (*_OUTSIDE, Scope.REDUCER):
        return True
    return any(_is_noticed(node) for node in nodes_of(stmt, Call))


def _is_noticed(call: Call) -> bool:
    effect = effect_of(call.function)
    if effect & (Effect.ATOMIC | Effect.OUTPUT | Effect.STATE):
        return True
    addresses = [a for a in call.args if isinstance(a, AddressOf)]
    written = any("w" in a.access and a.buffer.scope in _OUTSIDE for a in addresses)
    return bool(effect & Effect.WRITES) and (written or not addresses)


def _loops(
    body: Stmt,
    share: Share,
    loop: Parallel,
    ctx: SimtContext,
    finish: Callable[[For, SimtContext], Stmt],
) -> Stmt:
    """Wrap the lanes, the rounds and the conditions around the body, each as far out as it can."""
    open_conditions = [c for c in share.owned if not share.env.proves(c)]

    def guarded(stmt: Stmt, *inside: Var) -> Stmt:
        """Put the conditions that mention all of `inside`, and no deeper variable, around."""
        here = [c for c in open_conditions if all(v in free_variables(c) for v in inside)]
        open_conditions[:] = [c for c in open_conditions if all(c is not h for h in here)]
        known = all_of(here)
        return stmt if known is None else If(known, stmt, span=loop.span)

    body = guarded(unrolled(body), share.lane)
    lanes = counted(share.lane, share.lanes, body, LoopKind.VECTORIZED, loop.span)
    body = single(finish(lanes, ctx.knowing(share.env)))
    body = guarded(body, share.round)
    count = static_value(share.rounds)
    if count == 1:
        body = substitute(body, {share.round: const(0, share.round.dtype)})
    else:
        written_out = count is not None and (count <= MOST_UNROLLED or _picks(body, share.round))
        kind = LoopKind.UNROLL if written_out else LoopKind.SERIAL
        body = counted(share.round, cast(share.rounds, share.round.dtype), body, kind, loop.span)
    return guarded(body)


def _picks(body: Stmt, var: Var) -> bool:
    """Whether `var` says which register of an array is meant."""
    return any(
        var in free_variables(index)
        for node in nodes_of(body, Load, Store, AddressOf)
        if node.buffer.scope in _REGISTERS
        for index in node.indices
    )


def unrolled(body: Stmt) -> Stmt:
    """Write out the sequential loops whose variable picks registers."""

    def visit(node: Node) -> Node:
        match node:
            case For(kind=LoopKind.SERIAL, start=start, stop=stop) if (
                static_value(start) is not None
                and static_value(stop) is not None
                and _picks(node.body, node.var)
            ):
                return replace(node, kind=LoopKind.UNROLL)
        return node

    return rewrite(body, visit, (For,))


def single(stmt: Stmt) -> Stmt:
    """Return what a loop of one round does, without the loop."""
    match stmt:
        case For(var=var, start=start, stop=stop, body=body) if (
            static_value(start) == 0 and static_value(stop) == 1
        ):
            return substitute(body, {var: start})
    return stmt
