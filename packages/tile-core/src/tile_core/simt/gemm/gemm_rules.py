"""The two ways to multiply matrices: by instructions of warps, and by ordinary arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tile_core.errors import InternalError, WarpPartitionError
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.stmt import For, Parallel, Stmt
from tile_core.layout import Fragment, Layout, shared_operand
from tile_core.layout.loop_layout import LoopLayout, planned
from tile_core.layout.loop_layout_inverse import loop_over
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.remarks import warn
from tile_core.simt.atoms import MatrixAtom
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import seq
from tile_core.simt.gemm.matrix_unit import MatrixUnit
from tile_core.simt.gemm.mma_lowering import demanded_fragments, lower_instructions, warp_tiling
from tile_core.simt.gemm.register_blocking import block_fragment, block_tiling, lower_blocks
from tile_core.simt.gemm.shared_layouts import open_operand_layout, staged
from tile_core.simt.gemm_warp_partition import partitions
from tile_core.simt.partition import partition
from tile_core.target import Target


def instruction_rule(name: str, unit: MatrixUnit) -> Rule[Gemm]:
    """Return the rule for MMAs by matrix instructions.

    Tiles that the warps of the block cannot share out exactly are multiplied by ordinary
    arithmetic: which of both it is depends on the number of threads only.
    """
    machine = unit.machine

    def rejects(op: Gemm, target: Target) -> str | None:
        a, b, c = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
        if not unit.atoms(op, 1):
            exactly = " without rounding it" if "float32" in (a, b) else ""
            return f"{machine.name} has no instruction that multiplies {a} by {b} into {c}{exactly}"
        return _unreachable(op)

    def infer(op: Gemm, ctx: InferContext, level: InferLevel) -> LayoutMap:
        tiling = warp_tiling(op, unit, ctx.threads, ctx.layout_of(op.c.buffer))
        if tiling is None:
            return fma_layouts(op, ctx, level)
        if level is InferLevel.STRICT:
            demands = demanded_fragments(op, tiling)
            # What somebody has fixed already is moved.
            return {
                b: f for b, f in demands.items() if b is op.c.buffer or ctx.layout_of(b) is None
            }
        layouts: dict[Buffer, Layout | Fragment] = {}
        for operand, is_k_last in _operands(op):
            layouts.update(open_operand_layout(operand, ctx, _layout(unit, is_k_last)))
        return layouts

    def lower(op: Gemm, ctx: SimtContext) -> Any:
        known = ctx.fragment_of(op.c.buffer) if op.c.buffer.scope is Scope.FRAGMENT else None
        tiling = warp_tiling(op, unit, ctx.threads, known)
        if tiling is None:
            tell_of_missing_partition(op, unit, ctx)
            return lower_fma(op, ctx)
        return lower_instructions(op, tiling, unit, ctx)

    return Rule(name=name, op=Gemm, lower=lower, infer_layout=infer, rejects=rejects, priority=20)


def _layout(unit: MatrixUnit, is_k_last: bool) -> Callable[[tuple[int, ...], int], Layout]:
    return lambda shape, bits: unit.operand_layout(shape, bits, is_k_last)


def _operands(op: Gemm) -> tuple[tuple[Buffer, bool], ...]:
    """Return the tiles of both operands, and whether K is their last dimension."""
    return (op.a.buffer, not op.transpose_a), (op.b.buffer, op.transpose_b)


def fma_rule(name: str) -> Rule[Gemm]:
    """Return the rule for MMAs by ordinary arithmetic, of all element types."""

    def rejects(op: Gemm, target: Target) -> str | None:
        if op.nibbles:
            return "the operands' bytes are two elements each"
        return _unreachable(op)

    return Rule(
        name=name, op=Gemm, lower=lower_fma, infer_layout=fma_layouts, rejects=rejects, priority=10
    )


def _unreachable(op: Gemm) -> str | None:
    """Return why threads cannot reach an operand, or must not; None if they can."""
    if op.instruction is not None and not op.scales:
        return f"the program asks for {op.instruction}"
    for name, region in (("A", op.a), ("B", op.b), ("C", op.c)):
        buffer = region.buffer
        if buffer.scope is Scope.GLOBAL:
            return f"{name}, {buffer.name!r}, is a tensor: copy the part needed into a shared tile"
        if buffer.scope not in (Scope.SHARED, Scope.FRAGMENT):
            return (
                f"{name}, {buffer.name!r}, belongs to one thread: use a shared tile or a fragment"
            )
    moves = any(static_value(start) is None for start in op.c.starts[-2:])
    if moves and op.c.buffer.scope is Scope.FRAGMENT:
        return f"C, {op.c.buffer.name!r}, is a part of a fragment whose place varies at run time"
    return None


def fma_layouts(op: Gemm, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Return layouts that suit ordinary arithmetic, where nobody else has a demand."""
    if level is InferLevel.STRICT:
        return {}
    layouts: dict[Buffer, Layout | Fragment] = {}
    for operand, _ in _operands(op):
        layouts.update(open_operand_layout(operand, ctx, shared_operand))
    buffer = op.c.buffer
    whole = op.c.is_whole and buffer.rank == 2
    if buffer.scope is Scope.FRAGMENT and whole and ctx.layout_of(buffer) is None:
        layouts[buffer] = block_fragment(block_tiling(op, ctx.threads))
    return layouts


def tell_of_missing_partition(op: Gemm, unit: MatrixUnit, ctx: SimtContext) -> None:
    """Warn, or refuse, where only the number of warps keeps `op` from matrix instructions.

    Nothing is said of tiles that have fewer atoms than the block has warps: there is little
    to gain.
    """
    warps, rest = divmod(ctx.threads, ctx.machine.warp_size)
    atom = _fitting_atom(op, unit, warps)
    if atom is None or op.c.buffer.scope is not Scope.FRAGMENT:
        return
    m, n, _ = op.mnk
    rows, columns = m // atom.m, n // atom.n
    if not rest and any(partitions(rows, columns, warps)):
        return
    who = f"{warps} warps" if not rest else f"{ctx.threads} threads, which are no whole warps,"
    why = (
        f"{who} cannot partition a matrix product of {m} x {n} with policy {op.policy.name}: it "
        f"has "
        f"{rows} x {columns} pieces of {atom.m} x {atom.n}, and no grid of warps divides them"
    )
    hint = _hint(op, atom, ctx)
    share = block_tiling(op, ctx.threads).share
    accumulators = math.prod(share) * max(32, op.c.buffer.dtype.bits) // 32
    if accumulators > ctx.machine.registers:
        raise WarpPartitionError(
            f"{why}; without matrix instructions one thread has {accumulators} "
            f"accumulator registers, and {ctx.machine.registers} at most",
            span=op.span,
            hint=hint,
        )
    if rows * columns >= max(1, warps):
        warn(
            f"{why}; it is computed without matrix instructions ({hint})",
            op.span,
            pass_name="select_rule",
        )


def _fitting_atom(op: Gemm, unit: MatrixUnit, warps: int) -> MatrixAtom | None:
    """Return the instruction that divides the MMA into most pieces."""
    m, n, k = op.mnk
    fitting = [a for a in unit.atoms(op, warps) if not (m % a.m or n % a.n or k % a.k)]
    return min(fitting, key=lambda atom: atom.m * atom.n, default=None)


def _hint(op: Gemm, atom: MatrixAtom, ctx: SimtContext) -> str:
    """Name the numbers of threads nearest to the present one that share the MMA."""
    size = ctx.machine.warp_size
    rows, columns = op.mnk[0] // atom.m, op.mnk[1] // atom.n
    words = atom.c.slots * max(32, atom.c_dtype.bits) // 32
    counts = [
        w
        for w in range(1, ctx.machine.max_threads // size + 1)
        if any(partitions(rows, columns, w))
        and rows * columns // w * words <= ctx.machine.registers
    ]
    near = sorted(sorted(counts, key=lambda w: abs(w * size - ctx.threads))[:3])
    if not near:
        return "use a smaller tile, or one with more divisors"
    threads = " or ".join(str(w * size) for w in near)
    return f"use threads={threads}, or a tile with more divisors"


def lower_fma(op: Gemm, ctx: SimtContext) -> Stmt:
    """Return the product as each thread computes its elements of C.

    Operands in registers go through shared memory, because each element is needed by threads
    that do not hold it. Where C is spread in rectangles, a thread multiplies a column of A by
    a row of B at a time; else element by element.
    """
    in_registers = [r.buffer.scope is Scope.FRAGMENT for r in (op.a, op.b)]
    before, op, after = staged(op, in_registers[0], in_registers[1], ctx)
    tiling = block_tiling(op, ctx.threads)
    if not op.scales and _is_spread_in(op.c, block_fragment(tiling), ctx):
        return seq(before, lower_blocks(op, tiling, ctx), after)
    return seq(before, _by_elements(op, ctx), after)


def _is_spread_in(region: Region, fragment: Fragment, ctx: SimtContext) -> bool:
    """Whether `region` is a whole tile that threads hold as `fragment` says."""
    buffer = region.buffer
    if buffer.scope is not Scope.FRAGMENT or buffer.rank != 2 or not region.is_whole:
        return False
    return ctx.fragment_of(buffer).same_function(fragment)


def _by_elements(op: Gemm, ctx: SimtContext) -> Stmt:
    """Let each thread sum up the elements of C that it holds, one after the other."""
    rows = op.serial_form()
    if not isinstance(rows, For) or not isinstance(rows.body, For):
        raise InternalError("a serial product is not a nest of loops", span=op.span)
    columns = rows.body
    nest = Parallel((rows.var, columns.var), (rows.stop, columns.stop), columns.body, span=op.span)
    return partition(nest, _elements_of(op.c, ctx), ctx)


def _elements_of(region: Region, ctx: SimtContext) -> LoopLayout:
    """Return which thread computes each element of the last two dimensions of `region`."""
    extents = (region.static_extents or ())[-2:]
    if region.buffer.scope is not Scope.FRAGMENT:
        return planned(extents, ctx.threads)
    fragment = ctx.fragment_of(region.buffer)
    if region.is_whole and region.buffer.rank == 2:
        return loop_over(fragment)
    zeros = (0,) * (region.buffer.rank - 2)
    first, second = (static_value(start) or 0 for start in region.starts[-2:])

    def place(i: Any, j: Any) -> tuple[Any, ...]:
        return (*zeros, i + first, j + second)

    part = Fragment(
        extents,
        forward_thread_fn=lambda i, j, rep=0: fragment.forward_thread(*place(i, j), rep=rep),
        replicate=fragment.replication,
        forward_index_fn=lambda i, j: fragment.forward_index(*place(i, j)),
        threads=fragment.thread_extent,
    )
    return loop_over(part)
