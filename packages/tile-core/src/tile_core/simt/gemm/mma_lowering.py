"""Matrix multiplications by the matrix instructions of warps."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr, cast, const, select
from tile_core.ir.expr import Const, Expr, Load
from tile_core.ir.stmt import Alloc, If, Seq, Stmt, Store
from tile_core.layout import Fragment
from tile_core.layout.mixed_radix import row_major_position
from tile_core.ops.gemm import Gemm, GemmWarpPolicy
from tile_core.records import replace
from tile_core.simt.atoms import MatrixAtom
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, seq, unrolled
from tile_core.simt.gemm.matrix_unit import MatrixUnit, operands
from tile_core.simt.gemm.operand_registers import operand_registers, reads_ahead
from tile_core.simt.gemm.shared_layouts import staged
from tile_core.simt.gemm_warp_partition import WarpTiling, permuted, tiling_of
from tile_core.simt.lower_accesses import lower_expr


def warp_tiling(
    op: Gemm, unit: MatrixUnit, threads: int, known: object = None
) -> WarpTiling | None:
    """Return how the warps of a block share `op`, None if no instruction divides it.

    `known` is how the accumulators are spread, if that is settled: by another MMA, or by the
    user. If any way to share spreads them so, that one is taken.
    """
    warps, rest = divmod(threads, unit.machine.warp_size)
    if rest or not _is_whole_fragment(op.c):
        return None
    atoms = [atom for atom in unit.atoms(op, warps) if _takes(atom, op)]
    tiling = tiling_of(atoms, op.mnk, warps, op.policy)
    if tiling is None or not isinstance(known, Fragment) or _spreads(tiling, op, known):
        return tiling
    for atom in unit.others(op):
        for policy in GemmWarpPolicy if _takes(atom, op) else ():
            tiling = tiling_of((atom,), op.mnk, warps, policy)
            if tiling is not None and _spreads(tiling, op, known):
                return tiling
    return tiling


def _takes(atom: MatrixAtom, op: Gemm) -> bool:
    """Whether the operands of `op` can be operands of an instruction."""
    return (
        _suits(op.a, 0 if op.transpose_a else 1, atom.k)
        and _suits(op.b, 1 if op.transpose_b else 0, atom.k)
        and atom.orders in (None, _orders(op))
    )


def _spreads(tiling: WarpTiling, op: Gemm, known: Fragment) -> bool:
    return _spread(tiling.c_fragment(), op.c, (0, 1)).same_function(known)


def _orders(op: Gemm) -> tuple[str, str]:
    """Return along what elements of A and B are neighbours in memory: what a thread reads at once.

    Operands in registers are held by rows and by columns: along K, as in all other instructions.
    """
    a_by_columns = op.transpose_a and op.a.buffer.scope is not Scope.FRAGMENT
    b_by_rows = not op.transpose_b and op.b.buffer.scope is not Scope.FRAGMENT
    return "col" if a_by_columns else "row", "row" if b_by_rows else "col"


def _is_whole_fragment(region: Region) -> bool:
    """Whether a region is all rows and columns of a fragment."""
    shape, extents = region.buffer.static_shape, region.static_extents
    return (
        region.buffer.scope is Scope.FRAGMENT
        and shape is not None
        and extents is not None
        and shape[-2:] == extents[-2:]
    )


def _suits(region: Region, k_axis: int, atom_k: int) -> bool:
    """Whether an operand, if it is a fragment, can be an operand where it is.

    It consists of whole k-steps, and of all rows or columns.

    `k_axis` says which of the last two dimensions, 0 or 1, is K.
    """
    buffer, shape, extents = region.buffer, region.buffer.static_shape, region.static_extents
    if buffer.scope is not Scope.FRAGMENT:
        return True
    if shape is None or extents is None:
        return False
    first = static_value(region.starts[-2:][k_axis])
    is_whole = extents[-2:][1 - k_axis] == shape[-2:][1 - k_axis]
    return is_whole and shape[-2:][k_axis] % atom_k == 0 and (first or 0) % atom_k == 0


def demanded_fragments(op: Gemm, tiling: WarpTiling) -> dict[Buffer, Fragment]:
    """Return the fragments that the instruction fixes: of C, and of operands in registers.

    A tile that is both operands is spread as the first.
    """
    demands = {op.c.buffer: _spread(tiling.c_fragment(), op.c, (0, 1))}
    for region, fragment in zip((op.a, op.b), operand_fragments(op, tiling), strict=True):
        if fragment is not None:
            demands.setdefault(region.buffer, fragment)
    return demands


def operand_fragments(op: Gemm, tiling: WarpTiling) -> tuple[Fragment | None, Fragment | None]:
    """Return how the operands that are in registers must be spread, None for those in memory."""
    a: Fragment | None = None
    b: Fragment | None = None
    if op.a.buffer.scope is Scope.FRAGMENT:
        order = (1, 0) if op.transpose_a else (0, 1)
        a = _spread(_all_steps(tiling, op.a, order[1]).a_fragment(), op.a, order)
    if op.b.buffer.scope is Scope.FRAGMENT:
        order = (1, 0) if op.transpose_b else (0, 1)
        b = _spread(_all_steps(tiling, op.b, order[0]).b_fragment(), op.b, order)
    return a, b


def _all_steps(tiling: WarpTiling, region: Region, k_axis: int) -> WarpTiling:
    """Return the tiling of all of the operand's buffer, of which the region may be a part."""
    shape = region.buffer.static_shape or ()
    return replace(tiling, steps=shape[-2:][k_axis] // tiling.atom.k)


def _spread(fragment: Fragment, region: Region, order: tuple[int, int]) -> Fragment:
    return permuted(fragment, order, (region.buffer.static_shape or ())[:-2])


def lower_instructions(op: Gemm, tiling: WarpTiling, unit: MatrixUnit, ctx: SimtContext) -> Stmt:
    """Return the MMA as one warp runs it.

    Before   gemm A_shared, B_shared, C_local
    After    for kk: load a_frag, b_frag;  for i, j: mma(C_local + ij, a_frag + i, b_frag + j)

    An operand in registers that somebody else spread over the threads in another way goes
    through shared memory.
    """
    elsewhere = [
        wanted is not None and not ctx.fragment_of(region.buffer).same_function(wanted)
        for region, wanted in zip((op.a, op.b), operand_fragments(op, tiling), strict=True)
    ]
    before, op, after = staged(op, elsewhere[0], elsewhere[1], ctx)
    return seq(before, _products(op, tiling, unit, ctx), after)


def _products(op: Gemm, tiling: WarpTiling, unit: MatrixUnit, ctx: SimtContext) -> Stmt:
    a, b = (operand_registers(operand, unit, ctx) for operand in operands(op, tiling))
    count = tiling.rows * tiling.columns * tiling.atom.c.slots
    own, its_first = ctx.places.flat(op.c.buffer), accumulator_offset(op.c, count)
    if own.dtype == tiling.atom.c_dtype:
        total, first = own, its_first
        begin = cleared(op, lambda i: Store(own, (its_first + i,), zero(own)), count, ctx)
        end: Stmt = Seq(())
    else:
        total, first = ctx.registers("sums", count, str(tiling.atom.c_dtype)), as_expr(0)
        begin, end = _widened(op, own, its_first, total, count, ctx)

    atom = tiling.atom
    scales = unit.scales(op, tiling, ctx)
    slots_of_a, slots_of_b, slots_of_c = (f.slot_table() for f in (atom.a, atom.b, atom.c))

    def product(i: Expr, j: Expr, kk: Expr) -> Stmt:
        accumulators = first + (i * tiling.columns + j) * atom.c.slots
        return seq(
            do(
                atom.function,
                *atom.template,
                at(total, accumulators + int(slots_of_c[row, column])),
                at(a.buffer, a.offset(i, kk) + int(slots_of_a[row, 0]), "r"),
                at(b.buffer, b.offset(j, kk) + int(slots_of_b[0, column]), "r"),
                *(scales.arguments(i, j, kk) if scales is not None else ()),
            )
            for row in range(atom.pieces[0])
            for column in range(atom.pieces[1])
        )

    def products(kk: Expr) -> Stmt:
        return unrolled(
            ctx, "i", tiling.rows,
            lambda i: unrolled(ctx, "j", tiling.columns, lambda j: product(i, j, kk)),
        )  # fmt: skip

    def loads(kk: Expr) -> Stmt:
        return seq(a.load(kk), b.load(kk))

    steps = _steps(tiling.steps, loads, products, unit, ctx)
    given = None if scales is None else scales.setup
    return seq(begin, a.setup, b.setup, given, steps, end)


def _steps(
    count: int,
    loads: Callable[[Expr], Stmt],
    products: Callable[[Expr], Stmt],
    unit: MatrixUnit,
    ctx: SimtContext,
) -> Stmt:
    """Return the steps along K, with reads one step ahead of MMAs where that takes a fence.

    Before   for kk < 4: load kk;  products kk
    After    load 0;  load 1;  fence;  products 0;  load 2;  fence;  products 1;  …;  products 3

    These are written out: registers in turns are indexed by numbers that every compiler sees.
    """
    if unit.fence is None or not reads_ahead(count, unit):
        return unrolled(ctx, "kk", count, lambda kk: seq(loads(kk), products(kk)))
    steps = [as_expr(kk) for kk in range(count)]
    ahead = (seq(loads(after), do(unit.fence), products(kk)) for kk, after in pairwise(steps))
    return seq(loads(steps[0]), *ahead, products(steps[-1]))


def _widened(
    op: Gemm, own: Buffer, first: Expr, accumulators: Buffer, count: int, ctx: SimtContext
) -> tuple[Stmt, Stmt]:
    """Return what brings accumulators into registers of the type they are added up in, and back.

    Before   gemm A_shared, B_shared, C_local  (float16, of a machine that adds up float32)
    After    accumulators[i] = C_local[i];  …;  C_local[i] = accumulators[i]
    """

    def widen(i: Expr) -> Stmt:
        before = cast(Load(own, (first + i,)), accumulators.dtype)
        return Store(
            accumulators, (i,), select(lower_expr(op.clear, ctx), zero(accumulators), before)
        )

    def narrow(i: Expr) -> Stmt:
        return Store(own, (first + i,), cast(Load(accumulators, (i,)), own.dtype))

    begin = seq(Alloc(accumulators), unrolled(ctx, "i", count, widen))
    return begin, unrolled(ctx, "i", count, narrow)


def accumulator_offset(region: Region, count: int) -> Expr:
    """Return the first register of the accumulators that leading indices of C select."""
    shape = region.buffer.static_shape or ()
    return as_expr(row_major_position(region.starts[:-2], shape[:-2]) * count)


def zero(buffer: Buffer) -> Const:
    """Return zero in the element type of `buffer`."""
    return const(0, buffer.dtype)


def cleared(op: Gemm, clear: Callable[[Expr], Stmt], count: int, ctx: SimtContext) -> Stmt:
    """Return what zeroes `count` accumulators where `op` drops previous ones."""
    if isinstance(op.clear, Const):
        return unrolled(ctx, "i", count, clear) if op.clear.value else Seq(())
    return If(lower_expr(op.clear, ctx), unrolled(ctx, "i", count, clear))
