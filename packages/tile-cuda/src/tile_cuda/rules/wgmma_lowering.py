"""Warpgroup MMAs: instructions that run asynchronously to the threads that start them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.device import device
from tile_core.ir.expr import Call, Const, Expr, Extent
from tile_core.ir.stmt import If, Let, Stmt, Store
from tile_core.layout.mixed_radix import row_major_position
from tile_core.ops.gemm import Gemm
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, seq, unrolled
from tile_core.simt.gemm.mma_lowering import accumulator_offset, zero
from tile_core.simt.lower_accesses import lower_expr
from tile_cuda.atoms_wgmma import ROWS, THREADS
from tile_cuda.rules.wgmma_operands import SharedOperand, part_of
from tile_cuda.rules.wgmma_plan import WarpgroupPlan, operand_part
from tile_cuda.rules.wgmma_waits import waited
from tile_cuda.wgmma_shapes import MOST_STEPS


def lower_warpgroups(op: Gemm, plan: WarpgroupPlan, ctx: SimtContext, origin: Gemm) -> Stmt:
    """Return the MMA as one thread of a warpgroup starts it, and waits for it.

    Before   gemm A_shared, B_shared, C_local
    After    wgmma_pin(C_local);  wgmma_fence
             wgmma_ss<256, …, 4>(C_local, operand(A_shared), operand(B_shared))
             wgmma_commit;  wgmma_wait<0>;  wgmma_pin(C_local)

    A statement takes up to eight steps of K: compilers take time for each, and all accumulators.

    Registers must not be touched while instructions that use them are in flight. The compiler
    does not know: accumulators and operands are pinned in front of the fence, so that all that was
    computed in them is there, and accumulators behind the wait, so that nothing reads them earlier.

    `origin` is the MMA as the kernel has it; `op` may have got an operand of its own.
    """
    total = ctx.places.flat(op.c.buffer)
    accumulators = _accumulators(op, plan)
    parts = ProductParts(op, plan, ctx, total, accumulators)
    is_set = isinstance(op.clear, Const) and bool(op.clear.value)
    body: list[Stmt | None] = [*parts.setup, _cleared(op, total, accumulators, ctx)]
    body += [] if is_set else _pinned(total, accumulators)
    if plan.a is None:
        body += _pinned(ctx.places.flat(op.a.buffer), _held(op, plan))
    body.append(do("async_mma_fence"))
    if is_set:
        body.append(parts.step(as_expr(0), "_set"))
    start = 1 if is_set else 0
    iterations = plan.tiling.steps // parts.at_once
    body.append(unrolled(ctx, "kk", iterations, lambda kk: parts.step(kk, ""), start=start))
    body.append(do("async_mma_commit"))
    if op.wg_wait >= 0:
        body.append(waited(origin, op.wg_wait, ctx))
    return seq(*(part for part in body if part is not None))


@dataclass(frozen=True, slots=True)
class Registers:
    """Registers of each thread, a row of instructions after the other.

    Each of `rows` has `count` registers and begins `apart` behind the one before: more than
    `count` if others are between them.
    """

    first: Expr
    rows: int
    count: int
    apart: int

    def register_runs(self) -> Iterator[tuple[Expr, int]]:
        """Yield where registers that follow each other begin, and how many they are."""
        if self.apart == self.count:
            yield self.first, self.rows * self.count
            return
        for row in range(self.rows):
            yield self.first + row * self.apart, self.count


def _accumulators(op: Gemm, plan: WarpgroupPlan) -> Registers:
    """Return the accumulators of each thread."""
    tiling = plan.tiling
    part = part_of(op.c)
    per_column = Fraction(tiling.atom.c.slots, tiling.atom.n)
    all_columns = part.all // tiling.n_warps if part else tiling.columns * tiling.atom.n
    apart = int(all_columns * per_column)
    first = accumulator_offset(op.c, tiling.rows * apart) + int(
        (part.first if part else 0) * per_column
    )
    return Registers(first, tiling.rows, tiling.columns * tiling.atom.c.slots, apart)


def _held(op: Gemm, plan: WarpgroupPlan) -> Registers:
    """Return the first operand's registers, those of a step of K after the other."""
    tiling = plan.tiling
    slots, part = tiling.atom.a.slots, operand_part(op)
    steps = part.all // tiling.atom.k if part else tiling.steps
    before = part.first // tiling.atom.k if part else 0
    lead = row_major_position(op.a.starts[:-2], (op.a.buffer.static_shape or ())[:-2])
    first = (as_expr(lead) * (tiling.rows * steps) + before) * slots
    return Registers(first, tiling.rows, tiling.steps * slots, steps * slots)


def _pinned(registers: Buffer, held: Registers) -> list[Stmt]:
    """Return what keeps registers where they are."""
    return [
        do("async_mma_pin", count, at(registers, first)) for first, count in held.register_runs()
    ]


def _cleared(op: Gemm, total: Buffer, accumulators: Registers, ctx: SimtContext) -> Stmt | None:
    """Return what zeroes accumulators where values decide whether previous ones are dropped."""
    if isinstance(op.clear, Const):
        return None

    def zeros(first: Expr, count: int) -> Stmt:
        return unrolled(ctx, "i", count, lambda i: Store(total, (first + i,), zero(total)))

    return If(lower_expr(op.clear, ctx), seq(*(zeros(*s) for s in accumulators.register_runs())))


class ProductParts:
    """The instructions of one MMA, given where its operands are."""

    def __init__(
        self,
        op: Gemm,
        plan: WarpgroupPlan,
        ctx: SimtContext,
        total: Buffer,
        accumulators: Registers,
    ) -> None:
        self.op, self.plan, self.ctx, self.total, self.accumulators = (
            op,
            plan,
            ctx,
            total,
            accumulators,
        )
        self.tiling = plan.tiling
        operands = [plan.b] if plan.a is None else [plan.a, plan.b]
        self.at_once = steps_at_once(self.tiling.steps, self.tiling.atom.k, operands)
        self.setup: list[Stmt] = []
        row, column = self._place_in_grid()
        self.b_start = self._start(plan.b, column, self.tiling.columns * self.tiling.atom.n)
        if plan.a is not None:
            self.a_start = self._start(plan.a, row, self.tiling.rows * ROWS)

    def _place_in_grid(self) -> tuple[Expr, Expr]:
        """Return row and column of the warpgroup in the grid of all, as far as they matter."""
        rows, columns = self.tiling.m_warps, self.tiling.n_warps
        zero = as_expr(0)
        if columns == 1:
            return (self._group() if rows > 1 and self.plan.a is not None else zero), zero
        if rows == 1:
            return zero, self._group()
        group = self._group()
        return group % rows, group // rows

    def _group(self) -> Expr:
        """Return the number of the warpgroup, equal in all lanes for the compiler to see.

        Operands are told where they are in registers that the lanes of a warp share.
        """
        name = self.ctx.fresh_var("warpgroup")
        lane, width = as_expr(0), as_expr(self.ctx.machine.warp_size)
        own = self.ctx.thread // THREADS
        self.setup.append(Let(name, Call("shfl_sync", (own, lane, width), own.dtype)))
        return name

    def _start(self, operand: SharedOperand, group: Expr, x_step: int) -> Expr:
        """Return the element of the flat buffer where the part of this warpgroup begins."""
        region, layout = operand.region, self.ctx.layout_of(operand.region.buffer)
        x = self._begin(operand.origin[0])
        per_unit = 128 // operand.tile.bits
        inside = operand.tile.units(x, 0, is_k_last=operand.is_k_last) * per_unit
        step = operand.tile.units(x_step, 0, is_k_last=operand.is_k_last) * per_unit
        lead = tuple(as_expr(s) for s in region.starts[:-2])
        version = as_expr(layout.address(*lead, as_expr(0), as_expr(0)))
        start = version + group * step + inside
        if isinstance(start, Const):
            return start
        name = self.ctx.fresh_var(f"{region.buffer.name}_at", str(start.dtype))
        self.setup.append(Let(name, start))
        return name

    def _begin(self, start: Extent) -> int | Expr:
        """Return where a region begins, as the thread computes it."""
        fixed = static_value(start)
        return lower_expr(as_expr(start), self.ctx) if fixed is None else fixed

    def operand(self, operand: SharedOperand, start: Expr, x: Expr, k: Expr) -> Expr:
        """Return the operand whose first step begins at `x` and `k` of the region."""
        walk = operand.tile.walk(is_k_last=operand.is_k_last)
        address = at(self.ctx.places.flat(operand.region.buffer), start, "r")
        first = self._begin(
            operand.origin[1]
        )  # whether a step begins in a box follows from where it is in all
        units = operand.tile.units(x, k + first, is_k_last=operand.is_k_last)
        moves = moves_between(operand, self.tiling.atom.k, self.at_once)
        chosen = (walk.swizzle, walk.leading, walk.stride, *moves)
        return device("async_mma_operand", *chosen, address, units)

    def step(self, kk: Expr, form: str) -> Stmt:
        """Return the instructions of the `kk`th steps along K that are taken at once."""
        tiling = self.tiling
        return unrolled(
            self.ctx, "i", tiling.rows,
            lambda i: unrolled(self.ctx, "j", tiling.columns, lambda j: self.one(i, j, kk, form)),
        )  # fmt: skip

    def one(self, i: Expr, j: Expr, kk: Expr, form: str) -> Stmt:
        """Return one statement: rows `i`, columns `j`, steps from ``kk * at_once`` on."""
        plan, atom, count = self.plan, self.tiling.atom, self.at_once
        accumulators = self.accumulators.first + (i * self.accumulators.apart + j * atom.c.slots)
        k = kk * (count * atom.k)
        b = self.operand(plan.b, self.b_start, j * atom.n, k)
        turned_b = int(not plan.b.is_k_last)
        steps = (count,) if count > 1 else ()
        if plan.a is None:
            operand = _held(self.op, plan)
            first = operand.first + (i * operand.apart + kk * (count * atom.a.slots))
            held = at(self.ctx.places.flat(self.op.a.buffer), first, "r")
            chosen = (atom.n, turned_b, *steps)
            return do(f"async_mma_rs{form}", *chosen, at(self.total, accumulators), held, b)
        a = self.operand(plan.a, self.a_start, i * ROWS, k)
        chosen = (atom.n, int(not plan.a.is_k_last), turned_b, *steps)
        return do(f"async_mma_ss{form}", *chosen, at(self.total, accumulators), a, b)


def steps_at_once(steps: int, depth: int, operands: Sequence[SharedOperand]) -> int:
    """Return how many of the `steps` of a product one statement takes: a power of two.

    A step multiplies `depth` elements along K; `operands` are those in shared memory, which
    must move alike in all statements.
    """
    count = MOST_STEPS
    while count > 1 and (steps % count or not _are_alike(steps, depth, count, operands)):
        count //= 2
    return count


def moves_between(operand: SharedOperand, depth: int, count: int) -> tuple[int, ...]:
    """Return how an operand moves within the `count` steps of a statement, in units of 16 bytes.

    That is nothing for one step; the way from each step to the next if all are alike; else this
    way, how many steps are side by side, and the way from the first of these to the next such.
    """
    if count == 1:
        return ()
    first = operand.first_steps[0]
    places = [_unit_of(operand, first + depth * step) for step in range(count)]
    near = places[1] - places[0]
    side_by_side = next((k for k, (a, b) in enumerate(pairwise(places), 1) if b - a != near), None)
    if side_by_side is None:
        return (near,)
    return near, side_by_side, places[side_by_side] - places[0]


def _unit_of(operand: SharedOperand, k: int) -> int:
    """Return where an operand's elements from step `k` of its buffer on begin."""
    place: int = operand.tile.units(0, k, is_k_last=operand.is_k_last)
    return place


def _are_alike(steps: int, depth: int, count: int, operands: Sequence[SharedOperand]) -> bool:
    """Whether all statements of `count` steps find their operands by the same moves.

    Wherever in a box an operand begins, if that varies.
    """
    for operand in operands:
        near, *far = moves_between(operand, depth, count)
        side_by_side, jump = far or (count, 0)
        for first in operand.first_steps:
            for step in range(steps):
                place = _unit_of(operand, first + depth * (step - step % count))
                inside = step % count
                place += inside % side_by_side * near + inside // side_by_side * jump
                if place != _unit_of(operand, first + depth * step):
                    return False
    return True
