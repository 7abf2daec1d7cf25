"""An MMA that starts one iteration late, so that other work of an iteration runs beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Expr, Load, Var
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import For, If, Let, Seq, Stmt
from tile_core.ops.control import PingPongOrder, PingPongStep
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.mbarrier import BarrierWait
from tile_core.passes.overlap.gemm_loop_body import (
    GemmLoopBody,
    Late,
    conflict,
    delayed_release,
    if_any_iteration,
    is_release,
    turns_of,
)
from tile_core.passes.pipelines.stage_instances import Versions, instance
from tile_core.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class _Parts:
    """The statements of an iteration.

    `ahead` leads to the early MMAs, and these; another iteration can make the `awaited` waits among
    them beforehand; `returned` releases what the early MMAs read. `beside` has nothing to do with
    the late MMA: its accumulators and the tiles it reads, in registers or in shared memory, are
    left alone. `behind` changes these, or depends on that. `late` is the late MMA, the wait for its
    tiles in front; `late_releases` release what it reads; `begin` stands before the loop for these.
    """

    ahead: tuple[Stmt, ...]
    awaited: tuple[BarrierWait, ...]
    returned: tuple[Stmt, ...]
    beside: tuple[Stmt, ...]
    behind: tuple[Stmt, ...]
    late: tuple[Stmt, ...]
    late_releases: tuple[Stmt, ...]
    begin: tuple[Stmt, ...] = ()


def skew_iterations(
    loop: For, body: GemmLoopBody, filled: Sequence[Buffer] = (), *, ping_pong: bool = False
) -> Stmt | None:
    """Return the loop with its last MMA one iteration late; None if that cannot be.

    Before   for k:  gemm Q, K_s -> S;  softmax of S, m;  acc *= r;  P = S;  gemm P, V_s -> acc
    After    round 0 without the last product
             for k from 1:
               gemm Q, K_s -> S (left in flight);  gemm P, V_s -> acc (of the iteration before)
               wait_products 1;  softmax of S, m
               wait for the tiles of the next iteration;  wait_products 0;  acc *= r;  P = S
             gemm P, V_s -> acc

    The order of all statements that touch the same registers is kept. The wait for a barrier
    between the work that runs beside an MMA and the wait for the MMA ends a basic
    block: without it the assembler moves the wait in front of that work. The barriers of tiles are
    `filled` by others in that order. With `ping_pong`, two halves of the threads start their MMAs
    in turns: while one computes beside its MMAs, those of the other have the matrix units to
    themselves.
    """
    parts = _parts(body, filled)
    if parts is None:
        return None
    start, stop = as_expr(loop.start), as_expr(loop.stop)
    in_first = {loop.var: start}
    first = [
        *_copied(parts.ahead, in_first),
        WaitProducts(0),
        *_copied((*parts.returned, *parts.beside, *parts.behind), in_first),
        *_early_waits(parts, start + 1, stop, {loop.var: start + 1}),
        *_ping_pong(PingPongStep.OFFER, binary(BinaryOp.LT, start + 1, stop), ping_pong),
    ]
    late = _copied(parts.late, {loop.var: loop.var - 1})
    steady = [
        *(s for s in late if not isinstance(s, Gemm)),
        *_ping_pong(PingPongStep.TAKE, None, ping_pong),
        *(s for s in parts.ahead if s not in parts.awaited),
        *(s for s in late if isinstance(s, Gemm)),
        *_ping_pong(PingPongStep.GIVE, binary(BinaryOp.LT, loop.var + 1, stop), ping_pong),
        WaitProducts(1),
        *parts.returned,
        *parts.beside,
        *_early_waits(parts, loop.var + 1, stop, {loop.var: loop.var + 1}),
        WaitProducts(0),
        *parts.late_releases,
        *parts.behind,
    ]
    rest = replace(loop, start=binary(BinaryOp.ADD, start, 1), body=Seq(tuple(steady)))
    last = [
        *_copied(parts.late, {loop.var: stop - 1}),
        WaitProducts(0),
        *_copied(parts.late_releases, {}),
    ]
    made = Seq((*first, rest, *last))
    return Seq((*body.outside, *parts.begin, if_any_iteration(loop, made)))


def _ping_pong(step: PingPongStep, goes_on: Expr | None, ping_pong: bool) -> tuple[Stmt, ...]:
    return (PingPongOrder(step, goes_on),) if ping_pong else ()


def _copied(stmts: Iterable[Stmt], values: Mapping[Var, Expr]) -> list[Stmt]:
    """Return new statements in which variables have other values."""
    return [instance(stmt, values, Versions(), as_expr(0)) for stmt in stmts]


def _early_waits(
    parts: _Parts, following: Expr, stop: Expr, values: Mapping[Var, Expr]
) -> list[Stmt]:
    """Return the waits for the tiles of iteration `following`, if there is such an iteration."""
    waits = _copied(parts.awaited, values)
    return [If(binary(BinaryOp.LT, following, stop), Seq(tuple(waits)))] if waits else []


def _parts(body: GemmLoopBody, filled: Sequence[Buffer]) -> _Parts | None:
    """Return the parts of an iteration, None if its last MMA cannot start later."""
    if len(body.products) < 2:
        return None
    last, early = body.products[-1], body.products[-2]
    product = body.items[last]
    assert isinstance(product, Gemm)
    ahead = _ahead(body, early)
    if any(conflict(s, product) for s in ahead):
        return None
    waits = [s for s in body.items[early + 1 : last] if isinstance(s, BarrierWait)]
    returned: tuple[Stmt, ...] = tuple(s for s in body.items[early + 1 : last] if is_release(s))
    middle = [s for s in body.items[early + 1 : last] if s not in (*waits, *returned)]
    tail = body.items[last + 1 :]
    if not all(map(is_release, tail)) or any(isinstance(s, Let) for s in (*ahead, *middle)):
        return None
    behind: list[Stmt] = []
    for stmt in middle:
        if any(conflict(stmt, s) for s in (product, *behind)):
            behind.append(stmt)
    beside = [s for s in middle if s not in behind]
    if not beside or not behind:
        return None
    lag = _lag(ahead, replace(product, wg_wait=-1), tail)
    returned = (*returned, *lag.turned)
    awaited = _awaited(ahead, returned, _held(body, tail), filled)
    return _Parts(
        tuple(ahead), awaited, returned, tuple(beside), tuple(behind), (*waits, lag.product),
        lag.late_releases, lag.begin,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Lag:
    """A late MMA and its releases, an iteration behind circular buffers of early MMAs.

    `turned` takes these circular buffers to their next turn, once the early MMAs have begun.
    """

    product: Stmt
    late_releases: tuple[Stmt, ...]
    turned: tuple[Stmt, ...]
    begin: tuple[Stmt, ...]


def _lag(ahead: Iterable[Stmt], product: Stmt, releases: Iterable[Stmt]) -> _Lag:
    """Return the late MMA with turns of its own, where the early ones use its circular buffer.

    Before   gemm Q, T_s[slot] -> S;  …;  gemm P, T_s[slot] -> acc;  arrive empty[slot];  next slot
    After    gemm Q, T_s[slot] -> S;  gemm P, T_s[freed] -> acc (of the iteration before);  next
    slot
             …;  arrive empty[freed];  next freed
    """
    ahead_turns = set().union(*map(turns_of, ahead))
    late_releases: list[Stmt] = []
    turned: list[Stmt] = []
    begin: list[Stmt] = []
    for release in releases:
        if not is_release(release) or not turns_of(release) & ahead_turns:
            late_releases.append(release)
            continue
        late = delayed_release(release)
        late_releases += late.statements()
        turned += release.body[1:]
        begin += late.begin()
        product = _on_released_version(product, late)
    return _Lag(product, tuple(late_releases), tuple(turned), tuple(begin))


def _on_released_version(product: Stmt, late: Late) -> Stmt:
    """Return the MMA on the version that is released next."""
    turn, slot = late.first, late.slot
    if slot is None or not isinstance(turn, Load):
        return product
    now = turn.buffer

    def rule(node: Node) -> Node:
        here = isinstance(node, Load) and node.buffer is now
        return Load(slot, (as_expr(0),)) if here else node

    return rewrite(product, rule)


def _held(body: GemmLoopBody, late: Iterable[Stmt]) -> list[Buffer]:
    """Return the barriers of tiles that are released by `late`, with too few versions.

    Beside the late product of an iteration, that iteration's tiles and those of the iteration in
    which it starts are in use: the next ones can be on their way if there is a third version.
    """
    turned = set().union(*map(turns_of, late))
    waits = (s for s in body.items if isinstance(s, BarrierWait) and turns_of(s) <= turned)
    return [w.barrier.buffer for w in waits if (w.barrier.buffer.static_shape or (0,))[0] < 3]


def _awaited(
    ahead: Iterable[Stmt],
    returned: Iterable[Stmt],
    held: Iterable[Buffer],
    filled: Sequence[Buffer],
) -> tuple[BarrierWait, ...]:
    """Return the waits for tiles that are released early and can be filled early.

    Who fills them does so in one order: it may wait for tiles in use at what stands before.
    """
    turned = set().union(*map(turns_of, returned))
    waits = (s for s in ahead if isinstance(s, BarrierWait) and turns_of(s) <= turned)
    first = min((k for k, barriers in enumerate(filled) if barriers in held), default=len(filled))
    return tuple(w for w in waits if w.barrier.buffer not in filled[first:])


def _ahead(body: GemmLoopBody, early: int) -> list[Stmt]:
    """Return the statements up to the last early MMA, all MMAs left in flight."""
    return [
        replace(s, wg_wait=-1) if isinstance(s, Gemm) and k in body.products else s
        for k, s in enumerate(body.items[: early + 1])
    ]
