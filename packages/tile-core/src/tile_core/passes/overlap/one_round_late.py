"""A product that starts one round late, so that other work of a round runs beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tile_core.ir.arith import as_expr, binary
from tile_core.ir.expr import BinaryOp, Expr, Var
from tile_core.ir.stmt import For, If, Let, Seq, Stmt
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.group_order import GroupOrder, Step
from tile_core.ops.mbarrier import BarrierWait
from tile_core.passes.overlap.body import (
    Body,
    conflict,
    if_any_round,
    is_release,
    registers_of,
    touched,
    turns_of,
)
from tile_core.passes.pipelines.instances import Versions, instance


@dataclass(frozen=True, slots=True)
class _Parts:
    """The statements of a round.

    Parameters
    ----------
    ahead
        What leads to the early products, and these.
    awaited
        Those waits of `ahead` that another round can make beforehand.
    returned
        Releases of what the early products read.
    beside
        What does not touch the registers of the late product.
    behind
        What does, and what depends on that.
    late
        The late product, with the wait for its tiles in front.
    given_back
        Releases of what the late product reads.
    """

    ahead: tuple[Stmt, ...]
    awaited: tuple[BarrierWait, ...]
    returned: tuple[Stmt, ...]
    beside: tuple[Stmt, ...]
    behind: tuple[Stmt, ...]
    late: tuple[Stmt, ...]
    given_back: tuple[Stmt, ...]


def started_late(loop: For, body: Body, *, in_turns: bool = False) -> Stmt | None:
    """Return the loop with its last product one round late; None if that cannot be.

    Before   for k:  gemm Q, K_s -> S;  softmax of S, m;  acc *= r;  P = S;  gemm P, V_s -> acc
    After    round 0 without the last product
             for k from 1:
               gemm Q, K_s -> S (left under way);  gemm P, V_s -> acc (of the round before)
               wait_products 1;  softmax of S, m
               wait for the tiles of the next round;  wait_products 0;  acc *= r;  P = S
             gemm P, V_s -> acc

    The order of all statements that touch the same registers is kept. The wait for a barrier
    between the work that runs beside a product and the wait for the product ends a basic
    block: without it the assembler moves the wait in front of that work.

    Parameters
    ----------
    in_turns
        Whether two halves of the threads start their products in turns: while one computes
        beside its products, those of the other have the matrix units to themselves.
    """
    parts = _parts(body)
    if parts is None:
        return None
    start, stop = as_expr(loop.start), as_expr(loop.stop)
    in_first = {loop.var: start}
    first = [
        *_copied(parts.ahead, in_first),
        WaitProducts(0),
        *_copied((*parts.returned, *parts.beside, *parts.behind), in_first),
        *_early_waits(parts, start + 1, stop, {loop.var: start + 1}),
        *_turn(Step.OFFER, binary(BinaryOp.LT, start + 1, stop), in_turns),
    ]
    late = _copied(parts.late, {loop.var: loop.var - 1})
    steady = [
        *(s for s in late if not isinstance(s, Gemm)),
        *_turn(Step.TAKE, None, in_turns),
        *(s for s in parts.ahead if s not in parts.awaited),
        *(s for s in late if isinstance(s, Gemm)),
        *_turn(Step.GIVE, binary(BinaryOp.LT, loop.var + 1, stop), in_turns),
        WaitProducts(1),
        *parts.returned,
        *parts.beside,
        *_early_waits(parts, loop.var + 1, stop, {loop.var: loop.var + 1}),
        WaitProducts(0),
        *parts.given_back,
        *parts.behind,
    ]
    rest = replace(loop, start=binary(BinaryOp.ADD, start, 1), body=Seq(tuple(steady)))
    last = [
        *_copied(parts.late, {loop.var: stop - 1}),
        WaitProducts(0),
        *_copied(parts.given_back, {}),
    ]
    made = Seq((*first, rest, *last))
    return Seq((*body.outside, if_any_round(loop, made)))


def _turn(step: Step, goes_on: Expr | None, in_turns: bool) -> tuple[Stmt, ...]:
    return (GroupOrder(step, goes_on),) if in_turns else ()


def _copied(stmts: Iterable[Stmt], values: Mapping[Var, Expr]) -> list[Stmt]:
    """Return new statements in which variables have other values."""
    return [instance(stmt, values, Versions(), as_expr(0)) for stmt in stmts]


def _early_waits(
    parts: _Parts, following: Expr, stop: Expr, values: Mapping[Var, Expr]
) -> list[Stmt]:
    """Return the waits for the tiles of round `following`, if there is such a round."""
    waits = _copied(parts.awaited, values)
    return [If(binary(BinaryOp.LT, following, stop), Seq(tuple(waits)))] if waits else []


def _parts(body: Body) -> _Parts | None:
    """Return the parts of a round, None if its last product cannot start later."""
    if len(body.products) < 2:
        return None
    last, early = body.products[-1], body.products[-2]
    product = body.items[last]
    assert isinstance(product, Gemm)
    registers = registers_of(product)
    ahead = _ahead(body, early)
    if any(touched(s) & registers for s in ahead):
        return None
    waits = [s for s in body.items[early + 1 : last] if isinstance(s, BarrierWait)]
    middle = [s for s in body.items[early + 1 : last] if not _is_signal(s)]
    returned = tuple(s for s in body.items[early + 1 : last] if is_release(s))
    tail = body.items[last + 1 :]
    if not all(map(is_release, tail)) or any(isinstance(s, Let) for s in (*ahead, *middle)):
        return None
    behind: list[Stmt] = []
    for stmt in middle:
        if touched(stmt) & registers or any(conflict(stmt, s) for s in behind):
            behind.append(stmt)
    beside = [s for s in middle if s not in behind]
    if not beside or not behind:
        return None
    product = replace(product, wg_wait=-1)
    turned = set().union(*map(turns_of, returned))
    awaited = tuple(s for s in ahead if isinstance(s, BarrierWait) and turns_of(s) <= turned)
    return _Parts(
        tuple(ahead), awaited, returned, tuple(beside), tuple(behind), (*waits, product),
        tuple(tail),
    )  # fmt: skip


def _ahead(body: Body, early: int) -> list[Stmt]:
    """Return the statements up to the last early product, all products left under way."""
    return [
        replace(s, wg_wait=-1) if isinstance(s, Gemm) and k in body.products else s
        for k, s in enumerate(body.items[: early + 1])
    ]


def _is_signal(stmt: Stmt) -> bool:
    return isinstance(stmt, BarrierWait) or is_release(stmt)
