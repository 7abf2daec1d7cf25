"""Products whose sums are in tensor memory: how one thread starts them, and others wait."""

from __future__ import annotations

import math
from typing import Any

from tile_core.analysis.gemms_in_flight import products_before
from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.device import device
from tile_core.ir.expr import Binary, BinaryOp, Call, Const, Expr, Load
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import If, Let, Stmt, Store
from tile_core.layout import Fragment, Layout, boxed_operand
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.remarks import remark
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, seq, unrolled
from tile_core.simt.gemm_warp_partition import WarpTiling
from tile_core.simt.lower_accesses import lower_expr
from tile_core.target import Target
from tile_cuda.atoms_wgmma import WgmmaInstructions, all_wgmma
from tile_cuda.block_pairs import MeetPair
from tile_cuda.rules.gemm_wgmma import lower_by_warps, other_rule
from tile_cuda.rules.wgmma_lowering import ProductParts, Registers
from tile_cuda.rules.wgmma_operands import LayoutOf, settled_layouts, shared_operand
from tile_cuda.rules.wgmma_plan import WarpgroupPlan
from tile_cuda.tensor_memory import (
    GROUP,
    HALF,
    LANES,
    SCALE_COLUMNS,
    SCALE_WORD,
    FreeTensorMemory,
    LoadSums,
    StoreSums,
    TensorMemory,
    columns_of,
    groups_of_step,
    refusal,
    scale_blocks,
    scale_words,
    step_of,
)

WARP = 32


def tensor_memory_rules(machine: SimtMachine, *others: Rule[Gemm]) -> tuple[Rule[Any], ...]:
    """Return the rules of products with sums in tensor memory, and of what brings these there.

    `others` are the rules, in order of preference, for products whose sums are elsewhere.
    """

    def rejects(op: Gemm, target: Target) -> str | None:
        return refusal(op, machine)

    def infer(op: Gemm, ctx: InferContext, level: InferLevel) -> LayoutMap:
        if not any(isinstance(user, LoadSums) for user in ctx.users_of(op.c.buffer)):
            return other_rule(op, ctx.target, others).infer_layout(op, ctx, level)
        if level is not InferLevel.STRICT:
            return {}
        wanted: dict[Buffer, Layout | Fragment] = {op.c.buffer: rows_of(op.c.buffer, ctx.threads)}
        plan = _plan(op, ctx.layout_of)
        if plan.a is None:
            wanted[op.a.buffer] = rows_of(op.a.buffer, ctx.threads)
        for operand in (plan.a, plan.b):
            if operand is None or ctx.layout_of(operand.region.buffer) is not None:
                continue
            buffer, tile = operand.region.buffer, operand.tile
            wanted[buffer] = boxed_operand(buffer.static_shape or (), tile.bits, tile.span)
        wanted.update((s.buffer, scale_layout(s.buffer.static_shape or ())) for s in op.scales)
        return wanted

    def lower(op: Gemm, ctx: SimtContext) -> Stmt:
        memory = memory_of(ctx, op.c.buffer)
        if memory is None:
            told = "this product has its sums in registers"
            remark("missed", "select_rule", told, op.span)
            return lower_by_warps(op, others, ctx)
        return _lowered(op, memory, ctx)

    return (
        Rule(
            name="cuda.gemm.tcgen05", op=Gemm, lower=lower, infer_layout=infer, rejects=rejects,
            priority=30, is_asynchronous=True,
        ),
        Rule(name="cuda.tensor_memory", op=TensorMemory, lower=_take),
        Rule(name="cuda.free_tensor_memory", op=FreeTensorMemory, lower=_give),
        Rule(name="cuda.load_sums", op=LoadSums, lower=_load),
        Rule(name="cuda.store_sums", op=StoreSums, lower=_store),
        Rule(name="cuda.wait_products", op=WaitProducts, lower=_wait),
        Rule(name="cuda.meet_pair", op=MeetPair, lower=_meet),
    )  # fmt: skip


def memory_of(ctx: SimtContext, fragment: Buffer) -> TensorMemory | None:
    """Return what the launch has in tensor memory, if a fragment is among it."""
    found = nodes_of(ctx.launch.body, TensorMemory)
    return next((memory for memory in found if fragment in memory.held), None)


def rows_of(buffer: Buffer, threads: int) -> Fragment:
    """Return how sums are spread: a row for each thread of a group, columns for its registers.

    Several blocks of 128 rows are one behind the other, the halves of 64 rows one below the other;
    groups of threads share all columns.
    """
    rows, columns = buffer.static_shape or (0, 0)
    own = rows * columns // threads

    def place(i: Any, j: Any) -> tuple[Any, Any]:
        row, column = i % LANES, i // LANES * columns + j
        if rows == HALF:
            row, column = i + j // (columns // 2) * HALF, j % (columns // 2)
        return row + column // own * GROUP, column % own

    return Fragment(buffer.static_shape or (), place)


def scale_layout(shape: tuple[int, ...]) -> Layout:
    """Return where scales lie in shared memory: those of 128 rows, four of each, are 512 bytes.

    Of these, 16 are those of the rows r, r + 32, r + 64 and r + 96. PTX ISA, "Scale factor layout".
    """
    rows, columns = shape[-2:]

    def place(*coords: Any) -> tuple[Any, ...]:
        *lead, i, j = coords
        block = i // LANES * (columns // SCALE_WORD) + j // SCALE_WORD
        inside = i % 32 * 16 + i % LANES // 32 * SCALE_WORD + j % SCALE_WORD
        return (*lead, block * (LANES * SCALE_WORD) + inside)

    return Layout(shape, place, (*shape[:-2], rows * columns))


def _plan(op: Gemm, layout_of: LayoutOf) -> WarpgroupPlan:
    """Return a product as one thread starts it, by blocks of 128 rows."""
    is_held = op.a.buffer.scope is Scope.FRAGMENT
    a = None if is_held else shared_operand(op.a, not op.transpose_a, layout_of)
    b = shared_operand(op.b, op.transpose_b, layout_of)
    types = tuple(str(region.buffer.dtype) for region in (op.a, op.b, op.c))
    pairs = WgmmaInstructions("uint8", "uint8", "float32")  # of 4-bit floats
    product = next(p for p in (*all_wgmma(), pairs) if (p.a, p.b, p.c) == types)
    m, n, k = op.mnk
    if a is not None:
        a.require_starts(LANES if m > LANES else 0, product.k)
    b.require_starts(0, product.k)
    tiling = WarpTiling(product.atom(n), 1, 1, max(m // LANES, 1), 1, k // product.k)
    return WarpgroupPlan(tiling, a, b)


class _Products(ProductParts):
    """The instructions of a product, each of 128 rows, or of all 64."""

    def __init__(
        self, op: Gemm, plan: WarpgroupPlan, memory: TensorMemory, ctx: SimtContext
    ) -> None:
        nothing = Registers(as_expr(0), 0, 0, 0)
        super().__init__(op, plan, ctx, ctx.places.flat(op.c.buffer), nothing)
        self.memory = memory
        if op.scales:
            self.at_once = math.gcd(self.at_once, SCALE_WORD // groups_of_step(op))

    def one(self, i: Expr, j: Expr, kk: Expr, form: str) -> Stmt:
        """Return one statement: the `i`th rows, steps from ``kk * at_once`` on."""
        plan, atom, count = self.plan, self.tiling.atom, self.at_once
        k = kk * (count * atom.k)
        column = i * atom.n + self.memory.first_column(self.op.c.buffer)
        b = self.operand(plan.b, self.b_start, as_expr(0), k)
        base = _value(self.memory.base, self.ctx)
        if plan.a is None:
            factor = self.op.a.buffer
            width = (factor.static_shape or ())[-1]
            first = self.memory.first_column(factor)
            there = (i * width + k) * factor.dtype.bits // 32 + first
            turned = int(not plan.b.is_k_last)
            return do(f"accumulators_mma_ts{form}", atom.n, turned, count, base, column, there, b)
        a = self.operand(plan.a, self.a_start, i * LANES, k)
        rows = min(self.op.mnk[0], LANES)
        chosen = (rows, atom.n, int(not plan.a.is_k_last), int(not plan.b.is_k_last), count)
        if self.op.is_first is not None:
            return do(f"accumulators_mma_pair{form}", *chosen[1:], base, column, a, b)
        if self.op.scales:
            copies, scales = self._scales(i, kk, base)
            each = (groups_of_step(self.op),) if self.op.nibbles else ()
            told = (*chosen, *each, base, column, a, b, *scales)
            product = do(f"accumulators_mma_scaled{form}", *told)
            return seq(*copies, product)
        return do(f"accumulators_mma{form}", *chosen, base, column, a, b)

    def _scales(self, i: Expr, kk: Expr, base: Expr) -> tuple[list[Stmt], tuple[Expr, ...]]:
        """Return copies of the scales of some steps to tensor memory, and what tells of them.

        These are the columns for both operands, and the first scale of a row that counts. Words of
        a round have columns of their own: a copy does not wait for the product before.
        """
        op, each = self.op, groups_of_step(self.op)
        first = as_expr(0) if op.first_k is None else lower_expr(op.first_k, self.ctx)
        inside = kk * (self.at_once * each)
        group = first // (step_of(op) // each) + inside
        turn = inside // SCALE_WORD % scale_words(op)
        column = turn * (SCALE_COLUMNS * scale_blocks(op)) + self.memory.first_of_scales
        blocks = [i, *map(as_expr, range(self.op.mnk[1] // LANES))]
        copies: list[Stmt] = []
        for k, (scales, block) in enumerate(zip(self._sources(), blocks, strict=True)):
            *lead, row, at_first = map(as_expr, scales.starts)
            word = at_first + group // SCALE_WORD * SCALE_WORD
            source = self.ctx.address(scales.buffer, *lead, row + block * LANES, word, access="r")
            copies.append(do("accumulators_scales", base, column + k * SCALE_COLUMNS, source))
        return copies, (column, column + SCALE_COLUMNS, group % SCALE_WORD)

    def _sources(self) -> list[Region]:
        """Return whose scales each four columns have."""
        a, b = self.op.scales
        return [a, *([b] * (self.op.mnk[1] // LANES))]


def _lowered(op: Gemm, memory: TensorMemory, ctx: SimtContext) -> Stmt:
    """Return the product: one thread starts it, all count it, and wait.

    After    if (warp == 0 && elect()):  accumulators_after
               accumulators_mma<M, N, …>(base, column, operand(A_s), operand(B_s))
               accumulators_arrive(products + issued % 4)
             issued = issued + 1;  wait
    """
    parts = _Products(op, _plan(op, settled_layouts(ctx)), memory, ctx)
    iterations = parts.tiling.steps // parts.at_once
    is_set = isinstance(op.clear, Const) and bool(op.clear.value)
    start = int(is_set)
    issued = _value(memory.issued, ctx)
    warp = ctx.fresh_var("warp_number")  # equal in all lanes for the compiler to see
    own = Call("shfl_sync", (ctx.thread // WARP, as_expr(0), as_expr(WARP)), ctx.thread.dtype)
    elected = device("elect")
    mine = Binary(BinaryOp.AND, binary(BinaryOp.EQ, warp, 0), elected, elected.dtype)
    arrive = "accumulators_arrive"
    if op.is_first is not None:
        mine = Binary(BinaryOp.AND, lower_expr(op.is_first, ctx), mine, elected.dtype)
        arrive = "accumulators_arrive_pair"
    started = seq(
        do("accumulators_after"),
        parts.step(as_expr(0), "_set") if is_set else None,
        unrolled(ctx, "kk", iterations, lambda kk: parts.step(kk, ""), start=start),
        do(arrive, _barrier(memory, issued, ctx)),
    )
    return seq(
        *parts.setup,
        Let(warp, own),
        If(mine, started, span=op.span),
        Store(ctx.places.flat(memory.issued), (as_expr(0),), issued + 1),
        waited(op, op.wg_wait, ctx) if op.wg_wait >= 0 else None,
    )


def waited(op: WaitProducts | Gemm, pending: int, ctx: SimtContext) -> Stmt:
    """Return a wait until at most the latest `pending` products are under way.

    Those that warps have computed are over. One product that is done tells of all before it.
    """
    memory = next(iter(nodes_of(ctx.launch.body, TensorMemory)), None)
    if memory is None:
        return seq()
    begun = [*products_before(ctx.launch.body, op), *([op] if isinstance(op, Gemm) else [])]
    latest = list(dict.fromkeys(reversed(begun)))[:pending]
    over = [gemm for gemm in latest if gemm.c.buffer not in memory.held]
    pending = min(pending - len(over), memory.in_flight - 2)
    issued = _value(memory.issued, ctx)
    number = issued - (pending + 1)
    parity = number // memory.in_flight % 2
    wait = do("mbarrier_wait", _barrier(memory, number, ctx), parity)
    return If(binary(BinaryOp.GT, issued, pending), wait)


def _wait(op: WaitProducts, ctx: SimtContext) -> Stmt:
    return waited(op, op.pending, ctx)


def _take(op: TensorMemory, ctx: SimtContext) -> Stmt:
    """Let the first warp take columns, and all threads know where these are."""
    first = binary(BinaryOp.LT, ctx.thread, WARP)
    place = ctx.address(op.place, 0)
    name = f"accumulators_alloc{'_pair' if op.of_pair else ''}"
    return seq(
        If(first, do(name, op.columns, place)),
        do("accumulators_before"),
        do("sync"),
        do("accumulators_after"),
        Store(ctx.places.flat(op.base), (as_expr(0),), device("accumulators_base", place)),
    )


def _give(op: FreeTensorMemory, ctx: SimtContext) -> Stmt:
    first = binary(BinaryOp.LT, ctx.thread, WARP)
    name = f"accumulators_free{'_pair' if op.of_pair else ''}"
    freed = do(name, op.columns, _value(op.base, ctx))
    return If(first, seq(do("accumulators_after"), freed))


def _load(op: LoadSums, ctx: SimtContext) -> Stmt:
    return _moved("accumulators_load", op.sums, ctx)


def _store(op: StoreSums, ctx: SimtContext) -> Stmt:
    return _moved("accumulators_store", op.sums, ctx)


def _moved(function: str, sums: Region, ctx: SimtContext) -> Stmt:
    """Return the move of a thread's part between registers and tensor memory."""
    buffer = sums.buffer
    memory = memory_of(ctx, buffer)
    if memory is None:
        raise InternalError(f"{buffer.name!r} is not in tensor memory", span=sums.span)
    own = columns_of(buffer) * GROUP // ctx.threads
    column: Expr = as_expr(memory.first_column(buffer))
    if ctx.threads > GROUP:
        column = ctx.thread // GROUP * own + column
    registers = at(ctx.places.flat(buffer), 0)
    return seq(
        do("accumulators_after"),
        do(function, own, registers, _value(memory.base, ctx), column),
        do("accumulators_before"),
    )


def _meet(op: MeetPair, ctx: SimtContext) -> Stmt:
    """Return how the first block of a pair waits until warps of the second have come so far.

    After    if first:  mbarrier_wait_cluster(ready, met % 2)
             else:  one lane of each warp:  accumulators_tell_first(ready)
             met = met + 1
    """
    bar, met = ctx.address(op.barrier, 0), _value(op.met, ctx)
    arrival = If(binary(BinaryOp.EQ, ctx.lane, 0), do("accumulators_tell_first", bar))
    told = seq(do("sync_warp"), arrival)
    return seq(
        If(lower_expr(op.is_first, ctx), do("mbarrier_wait_cluster", bar, met % 2), told),
        Store(ctx.places.flat(op.met), (as_expr(0),), met + 1),
    )


def _value(variable: Buffer, ctx: SimtContext) -> Expr:
    return Load(ctx.places.flat(variable), (as_expr(0),))


def _barrier(memory: TensorMemory, number: Expr, ctx: SimtContext) -> Expr:
    return ctx.address(memory.barriers, number % memory.in_flight)
