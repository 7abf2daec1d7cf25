"""Whether the warpgroups of a block can share a matrix multiplication, and how."""

from __future__ import annotations

import math

from tile_core.ir.buffer import Region, Scope
from tile_core.layout import Fragment, Layout
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm, GemmWarpPolicy
from tile_core.passes.register_estimate import threads_together
from tile_core.records import dataclass, replace
from tile_core.remarks import NotApplicable
from tile_core.simt.context import SimtContext
from tile_core.simt.gemm_warp_partition import WarpTiling, permuted
from tile_cuda.atoms import ROUNDS_FLOAT32
from tile_cuda.atoms_wgmma import ROWS, THREADS, WgmmaInstructions, wgmma_for
from tile_cuda.rules.wgmma_operands import (
    COLUMNS,
    LayoutOf,
    Part,
    SharedOperand,
    part_of,
    settled_layouts,
    shared_operand,
)


@dataclass(frozen=True, slots=True)
class WarpgroupPlan:
    """An MMA as the warpgroups of a block share it.

    `tiling` has the instruction, and the grid of warpgroups in place of warps; `a` is None if
    the first operand is in registers.
    """

    tiling: WarpTiling
    a: SharedOperand | None
    b: SharedOperand


def refusal(op: Gemm, machine: SimtMachine) -> str | None:
    """Return why no warpgroups of `machine` can compute `op`, None if it depends on the block."""
    a, b, c = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
    product = wgmma_for(machine, a, b, c)
    if product is None:
        return f"{machine.name} has no warpgroup MMA of {a} by {b} into {c}"
    m, n, k = op.mnk
    if m % ROWS:
        return f"M is {m}, no multiple of {ROWS}, the rows of a warpgroup MMA"
    if product.columns(n) is None:
        return f"N is {n}, no multiple of 8"
    if k % product.k:
        return f"K is {k}, no multiple of {product.k}, one step of {a}"
    if op.b.buffer.scope is not Scope.SHARED:
        return f"B, {op.b.buffer.name!r}, is not in shared memory, where warpgroups read it"
    if op.a.buffer.scope not in (Scope.SHARED, Scope.FRAGMENT):
        return f"A, {op.a.buffer.name!r}, is neither in shared memory nor a fragment"
    return (
        _accumulator_refusal(op.c) or _transpose_refusal(op, product) or _part_refusal(op, product)
    )


def _accumulator_refusal(region: Region) -> str | None:
    if region.buffer.scope is not Scope.FRAGMENT:
        return f"C, {region.buffer.name!r}, is no fragment"
    part = part_of(region)
    if part is None or not part.is_made_of(COLUMNS):
        return f"C is a part of {region.buffer.name!r} that is no columns in multiples of {COLUMNS}"
    return None


def _transpose_refusal(op: Gemm, product: WgmmaInstructions) -> str | None:
    """Return which operand is MN-major although the instructions cannot transpose it, or None."""
    if product.transposes:
        return None
    for name, region, turned in (("A", op.a, op.transpose_a), ("B", op.b, not op.transpose_b)):
        if turned and region.buffer.scope is Scope.SHARED:
            dtype = region.buffer.dtype
            return (
                f"rows of {name}, {region.buffer.name!r}, are not along K, and warpgroup MMAs "
                f"transpose only elements of 16 bits, not {dtype}"
            )
    return None


def _part_refusal(op: Gemm, product: WgmmaInstructions) -> str | None:
    if op.a.buffer.scope is Scope.SHARED:
        return None
    part = operand_part(op)
    if part is None or not part.is_made_of(product.k):
        return f"A is a part of the fragment {op.a.buffer.name!r} that is no whole steps of K"
    return None


def operand_part(op: Gemm) -> Part | None:
    """Return which part of its fragment the first operand is along K."""
    return part_of(op.a, along=-2 if op.transpose_a else -1)


def warpgroup_plan(
    op: Gemm,
    machine: SimtMachine,
    threads: int,
    layout_of: LayoutOf,
    block_threads: int | None = None,
) -> WarpgroupPlan:
    """Return how `threads` threads share `op`.

    Parameters
    ----------
    block_threads
        Those that share registers, if there are others: all of them have equally many when a
        block begins, and the assembler holds instructions to that number.
    layout_of
        What is known of the tiles in shared memory; those of which nothing is get the layout
        of `boxed_operand`. If it is known how the accumulators are spread, as for another MMA, a
        grid that spreads them so is preferred.

    Raises
    ------
    NotApplicable
        Why they cannot.
    """
    why = refusal(op, machine)
    product = wgmma_for(machine, *(str(r.buffer.dtype) for r in (op.a, op.b, op.c)))
    if why is not None or product is None:
        raise NotApplicable(why or "there is no such instruction")
    if threads % THREADS:
        raise NotApplicable(f"{threads} threads are no whole warpgroups of {THREADS}")
    a = None
    if op.a.buffer.scope is Scope.SHARED:
        a = shared_operand(op.a, not op.transpose_a, layout_of)
    b = shared_operand(op.b, op.transpose_b, layout_of)
    registers = registers_of(machine, block_threads or threads)
    held = layout_of(op.c.buffer)
    return _shared_out(op, product, threads // THREADS, registers, a, b, held)


def settled_plan(op: Gemm, machine: SimtMachine, ctx: SimtContext) -> WarpgroupPlan:
    """Return how warpgroups share `op`, now that layouts are settled: see `warpgroup_plan`."""
    threads = threads_together(ctx.launch)
    return warpgroup_plan(op, machine, ctx.threads, settled_layouts(ctx), threads)


def accumulator_fragment(op: Gemm, plan: WarpgroupPlan) -> Fragment:
    """Return how the accumulators of an MMA lie in registers, and all that they are a part of."""
    *lead, _, columns = op.c.buffer.static_shape or ()
    tiling = replace(plan.tiling, columns=columns // plan.tiling.n_warps // plan.tiling.atom.n)
    return permuted(tiling.c_fragment(), (0, 1), tuple(lead))


def is_spread(held: Fragment, wanted: Fragment) -> bool:
    """Whether a tile lies in registers as it is wanted."""
    return held == wanted or held.same_function(wanted)


def spreads_as(op: Gemm, plan: WarpgroupPlan, held: Layout | Fragment | None) -> bool:
    """Whether accumulators are held already as a plan spreads them, or not at all."""
    return not isinstance(held, Fragment) or is_spread(held, accumulator_fragment(op, plan))


def is_shared_out(op: Gemm, ctx: SimtContext) -> bool:
    """Whether warpgroups compute an MMA, now that layouts are known."""
    if not ctx.rule_of(op).is_asynchronous:
        return False
    # The rule was chosen, so if the operands are float32, they may be rounded.
    machine = replace(ctx.machine, features=ctx.machine.features | {ROUNDS_FLOAT32})
    try:
        plan = settled_plan(op, machine, ctx)
    except NotApplicable:
        return False
    return is_spread(ctx.fragment_of(op.c.buffer), accumulator_fragment(op, plan))


def registers_of(machine: SimtMachine, threads: int) -> int:
    """Return how many registers each of `threads` threads can have."""
    shared = machine.multiprocessor
    return min(machine.registers, shared.registers // threads if shared else machine.registers)


def _shared_out(
    op: Gemm,
    product: WgmmaInstructions,
    groups: int,
    registers: int,
    a: SharedOperand | None,
    b: SharedOperand,
    held: Layout | Fragment | None,
) -> WarpgroupPlan:
    m, n, _ = op.mnk
    plans: list[WarpgroupPlan] = []
    refusals: list[NotApplicable] = []
    for grid in grids(op, groups):
        try:
            plan = on_grid(op, product, grid, registers, a, b)
        except NotApplicable as why:
            refusals.append(why)
        else:
            plans += [] if plan is None else [plan]
    fitting = [plan for plan in plans if spreads_as(op, plan, held)]
    if plans and not fitting and m * n != math.prod((op.c.buffer.static_shape or ())[-2:]):
        raise NotApplicable(f"{op.c.buffer.name!r}, of which C is a part, is spread differently")
    if plans:
        return (fitting or plans)[0]
    if refusals:
        raise refusals[0]
    raise NotApplicable(
        f"{groups} warpgroups cannot share {m} x {n} accumulators: each would need the same "
        f"number of blocks of {ROWS} rows, and columns in a multiple of 8"
    )


def on_grid(
    op: Gemm,
    product: WgmmaInstructions,
    grid: tuple[int, int],
    registers: int,
    a: SharedOperand | None,
    b: SharedOperand,
) -> WarpgroupPlan | None:
    """Return how so many warpgroups along M and along N share `op`; None if columns are too few.

    Raises
    ------
    NotApplicable
        If the place or the part of an operand is in the way.
    """
    m, n, k = op.mnk
    m_groups, n_groups = grid
    own = n // n_groups
    part = part_of(op.c) or Part(0, n, n)
    if n_groups > 1 and not part.is_whole:
        raise NotApplicable(
            f"C is a part of {op.c.buffer.name!r}, whose columns several warpgroups would have"
        )
    alike = math.gcd(own, part.all)  # instructions divide the fragment as they divide its part
    columns = product.columns(alike, 8 if b.is_k_last else b.tile.span_elements, registers)
    if columns is None:
        return None
    apart = own if n_groups > 1 else columns if own > columns else 0
    b.require_starts(apart, product.k)
    if a is not None:
        a.require_starts(ROWS, product.k)
    atom = product.atom(columns)
    rows = m // ROWS // m_groups
    return WarpgroupPlan(
        WarpTiling(atom, m_groups, n_groups, rows, own // columns, k // product.k), a, b
    )


def grids(op: Gemm, groups: int) -> tuple[tuple[int, int], ...]:
    """Return numbers of warpgroups along M and along N, the preferred ones first.

    Along M each operand is read fewest times: B by every group, in one wide instruction.
    """
    rows, columns = op.mnk[0] // ROWS, op.mnk[1]
    found = [
        (m, groups // m)
        for m in range(1, groups + 1)
        if groups % m == 0 and rows % m == 0 and columns % (groups // m) == 0
    ]
    return tuple(found if op.policy is GemmWarpPolicy.FullCol else reversed(found))
