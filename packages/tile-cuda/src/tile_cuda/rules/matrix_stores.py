"""Copies from accumulators of matrix instructions into shared memory, by ``stmatrix``."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import cast
from tile_core.ir.expr import Expr, Load
from tile_core.ir.stmt import Alloc, Stmt, Store
from tile_core.machine import SimtMachine
from tile_core.ops.copy import Copy
from tile_core.ops.rule import Rule
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, seq, unrolled
from tile_core.simt.rules.copy import infer_copy, lower_copy
from tile_core.simt.subbyte_access import storage_dtype
from tile_core.target import Target
from tile_cuda.rules.matrix_copy import matrices_of, row_addresses
from tile_cuda.rules.matrix_loads import ROW_BITS, keeps_rows

BITS = 16
"""Width of the elements of a matrix."""


def matrix_store_rule(machine: SimtMachine) -> Rule[Copy]:
    """Return the rule for copies that may become ``stmatrix``.

    Which they do is known when layouts are; the others are copied as on every machine.
    """

    def rejects(op: Copy, target: Target) -> str | None:
        return rejects_matrix_store(op, machine)

    return Rule(
        name="cuda.copy.stmatrix",
        op=Copy,
        lower=lower_matrix_store,
        infer_layout=infer_copy,
        rejects=rejects,
        priority=10,
    )


def rejects_matrix_store(op: Copy, machine: SimtMachine) -> str | None:
    """Return why a copy can never be made of ``stmatrix``, None if it depends on layouts."""
    source, target = op.src.buffer, op.dst.buffer
    if not machine.has("store_matrix"):
        return f"{machine.name} cannot store matrices to shared memory"
    if (source.scope, target.scope) != (Scope.FRAGMENT, Scope.SHARED):
        return "matrices are stored from fragments to shared memory"
    if target.dtype.bits != BITS:
        return f"matrices are stored as elements of {BITS} bits, not of {target.dtype.bits}"
    if source.dtype.bits not in (16, 32):
        return f"elements of {source.dtype.bits} bits are not converted in pairs"
    extents = op.dst.static_extents
    if op.is_async or op.prefer_instruction is not None or op.loop_layout is not None:
        return "the copy asks for another instruction or order"
    if source.rank != 2 or not op.src.is_whole or extents is None or op.dst.is_element:
        return "matrices are all of a fragment of two dimensions"
    if extents[-2:] != op.src.static_extents or any(e != 1 for e in extents[:-2]):
        return "matrices are rows and columns of the target's last two dimensions"
    return None


def lower_matrix_store(op: Copy, ctx: SimtContext) -> Stmt:
    """Return the copy as one warp runs it.

    Before   copy C_local, C_shared  (the accumulator of a matrix instruction, rounded to 16 bits)
    After    for g: C_words[s] = cast(C_local[g * 8 + s]);
             stmatrix_x4(C_shared + row that this lane addresses, C_words)
    """
    fragment = ctx.fragment_of(op.src.buffer)
    matrices = matrices_of(fragment, BITS, ctx.threads) if fragment.replication == 1 else None
    if matrices is None or not keeps_rows(op.dst, ctx, ROW_BITS // BITS):
        return lower_copy(op, ctx)
    width = next(w for w in (4, 2, 1) if matrices.count % w == 0)
    setup, address = row_addresses(op.dst, matrices, width, ctx)
    values = _values(op, width * matrices.word, ctx)
    name = f"store_matrix_x{width}" + ("_trans" if matrices.is_transposed else "")

    def one(group: Expr) -> Stmt:
        words, first, before = values(group)
        target = replace(address(group), access="w")
        return seq(before, do(name, target, at(words, first, "r")))

    return seq(setup, unrolled(ctx, "x", matrices.count // width, one))


def _values(
    op: Copy, count: int, ctx: SimtContext
) -> Callable[[Expr], tuple[Buffer, Expr | int, Stmt]]:
    """Return registers with the `count` elements of a group, where, and what fills them."""
    source, dtype = ctx.places.flat(op.src.buffer), storage_dtype(op.dst.buffer.dtype, Scope.SHARED)
    if source.dtype == dtype:
        return lambda group: (source, group * count, seq())

    def converted(group: Expr) -> tuple[Buffer, Expr | int, Stmt]:
        words = ctx.registers(f"{op.dst.buffer.name}_words", count, str(dtype))

        def one(slot: Expr) -> Stmt:
            return Store(words, (slot,), cast(Load(source, (group * count + slot,)), dtype))

        return words, 0, seq(Alloc(words), unrolled(ctx, "s", count, one))

    return converted
