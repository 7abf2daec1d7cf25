"""Copies from shared memory into the operands of matrix instructions, by ``ldmatrix``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Region, Scope
from tile_core.ir.expr import AddressOf, Expr
from tile_core.ir.stmt import Stmt
from tile_core.layout import Fragment, Layout
from tile_core.machine import SimtMachine
from tile_core.ops.copy import Copy
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.records import dataclass
from tile_core.simt.atoms import column_pattern, row_pattern
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, seq, unrolled
from tile_core.simt.gemm.shared_layouts import open_operand_layout
from tile_core.simt.induction_strength_reduction import Step, induction_address
from tile_core.simt.rules.copy import lower_copy
from tile_core.simt.subbyte_access import storage_dtype
from tile_core.target import Target
from tile_cuda.rules.matrix_loads import ROW_BITS, keeps_rows


@dataclass(frozen=True, slots=True)
class Matrices:
    """A tile in registers as 8x8 matrices of 16-bit elements, or others of as many bytes.

    `inverse` leads from thread and register slot to the coordinates of an element, and its
    replica. Each warp holds `count` matrices, each thread `word` elements in the 32 bits that
    it has of one: neighbours of a column if it `is_transposed`, else of a row.
    """

    inverse: Layout
    count: int
    word: int
    is_transposed: bool

    def row(self, thread: Any, number: Any) -> tuple[Any, Any]:
        """Return the coordinates of the row that `thread` addresses of a group of matrices.

        Lane ``8 * i + r`` addresses row `r` of matrix ``number + i``: the element that begins
        it is in slot ``r % word`` of lane ``r // word`` if matrices are transposed, else in
        the first slot of lane ``4 * r``.
        """
        lane, first = thread % 32, thread // 32 * 32
        matrix, line = number + lane // 8, lane % 8
        if self.is_transposed:
            holder, slot = first + line // self.word, matrix * self.word + line % self.word
        else:
            holder, slot = first + line * 4, matrix * self.word
        *_, row, column, _ = self.inverse(holder, slot)
        return row, column


@lru_cache(maxsize=64)
def matrices_of(fragment: Fragment, bits: int, threads: int) -> Matrices | None:
    """Return a tile of two dimensions as matrices, None if one of the warps does not hold such.

    All `threads` run the copy: a warp that holds none of a small tile would address rows beside
    it. Elements have 8, 16 or 32 bits; columns are possible for 16 only.
    """
    if fragment.rank != 2 or bits not in (8, 16, 32) or len(fragment.index_shape) != 1:
        return None
    if int(fragment.thread_table().max(initial=-1)) + 1 < threads:
        return None
    word = 32 // bits
    patterns = ((row_pattern(bits), False), (column_pattern(bits), True))
    for pattern, is_transposed in patterns[: 2 if bits == 16 else 1]:
        if _consists_of(fragment, pattern, word):
            try:
                inverse = fragment.as_layout().inverse()
            except LayoutError:
                return None
            return Matrices(inverse, fragment.slots // word, word, is_transposed)
    return None


def _consists_of(fragment: Fragment, pattern: Fragment, word: int) -> bool:
    """Whether every box of the pattern's shape is one matrix of one warp, for each replica."""
    rows, columns = pattern.shape
    if fragment.shape[0] % rows or fragment.shape[1] % columns:
        return False

    def boxes(table: Any) -> Any:  # (box, box, row, column, ...)
        cut = table.reshape(table.shape[0] // rows, rows, -1, columns, *table.shape[2:])
        return np.swapaxes(cut, 1, 2)

    threads, slots = boxes(fragment.thread_table()), boxes(fragment.slot_table())
    first, place = threads[:, :, :1, :1], slots[:, :, :1, :1]
    lanes = pattern.thread_table()[..., 0]
    return bool(
        (first % 32 == 0).all()
        and (threads - first == lanes[..., None]).all()
        and (place % word == 0).all()
        and (slots - place == pattern.slot_table()).all()
    )


def matrix_copy_rule(machine: SimtMachine) -> Rule[Copy]:
    """Return the rule for copies that may become ``ldmatrix``.

    Which they do is known when layouts are; the others are copied as on every machine.
    """

    def rejects(op: Copy, target: Target) -> str | None:
        return rejects_matrices(op, machine)

    return Rule(
        name="cuda.copy.ldmatrix",
        op=Copy,
        lower=lower_matrix_copy,
        infer_layout=infer_matrix_copy,
        rejects=rejects,
        priority=10,
    )


def rejects_matrices(op: Copy, machine: SimtMachine) -> str | None:
    """Return why a copy can never be made of ``ldmatrix``, None if it depends on layouts."""
    source, target = op.src.buffer, op.dst.buffer
    if not machine.has("load_matrix"):
        return f"{machine.name} cannot load matrices from shared memory"
    if (source.scope, target.scope) != (Scope.SHARED, Scope.FRAGMENT):
        return "matrices are loaded from shared memory into fragments"
    if storage_dtype(source.dtype, source.scope) != storage_dtype(target.dtype, target.scope):
        return "matrices are loaded as they are: the copy converts elements"
    extents = op.src.static_extents
    if op.is_async or op.prefer_instruction is not None or op.loop_layout is not None:
        return "the copy asks for another instruction or order"
    if target.rank != 2 or not op.dst.is_whole or extents is None or op.src.is_element:
        return "matrices fill fragments of two dimensions"
    if extents[-2:] != op.dst.static_extents or any(e != 1 for e in extents[:-2]):
        return "matrices are rows and columns of the source's last two dimensions"
    return None


def infer_matrix_copy(op: Copy, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Return a swizzled layout for the source once the fragment is known to be an operand."""
    if level is InferLevel.STRICT:
        return {}
    fragment = ctx.layout_of(op.dst.buffer)
    bits = op.dst.buffer.dtype.bits
    if not isinstance(fragment, Fragment) or matrices_of(fragment, bits, ctx.threads) is None:
        return {}
    return open_operand_layout(op.src.buffer, ctx)


def lower_matrix_copy(op: Copy, ctx: SimtContext) -> Stmt:
    """Return the copy as one warp runs it.

    Before   copy A_shared -> A_local  (the first operand of a matrix instruction)
    After    for g: ldmatrix_x4(A_local + g * 8, A_shared + row that this lane addresses)
    """
    fragment = ctx.fragment_of(op.dst.buffer)
    matrices = matrices_of(fragment, op.dst.buffer.dtype.bits, ctx.threads)
    vector = ROW_BITS // op.dst.buffer.dtype.bits
    if matrices is None or not keeps_rows(op.src, ctx, vector):
        return lower_copy(op, ctx)
    width = next(w for w in (4, 2, 1) if matrices.count % w == 0)
    groups = matrices.count // width
    setup, address = row_addresses(op.src, matrices, width, ctx)
    registers = ctx.places.flat(op.dst.buffer)
    name = f"load_matrix_x{width}" + ("_trans" if matrices.is_transposed else "")

    def one(group: Expr) -> Stmt:
        target = at(registers, group * (width * matrices.word), "w")
        return do(name, target, address(group))

    return seq(setup, unrolled(ctx, "x", groups, one))


def row_addresses(
    region: Region, matrices: Matrices, width: int, ctx: SimtContext
) -> tuple[Stmt, Callable[[Expr], AddressOf]]:
    """Return what runs before, and the address that a thread gives for each `width` matrices.

    Where groups are a walk through a grid, the thread's part of the address is found once.
    """

    def place(thread: Any) -> tuple[Any, Any]:
        return matrices.row(_folded(thread, width), 0)

    steps = _walk(matrices, width, matrices.count // width, ctx.threads)
    if steps is not None:
        inner = steps[1].count
        found = induction_address(ctx, "row", region, place, steps)
        return found.setup, lambda g: found.of(g // inner, g % inner)
    *lead, first, second = region.starts

    def written_out(group: Expr) -> AddressOf:
        row, column = matrices.row(_folded(ctx.thread, width), group * width)
        return ctx.address(region.buffer, *lead, row + first, column + second, access="r")

    return seq([]), written_out


def _folded(thread: Any, width: int) -> Any:
    """Return the thread whose row this one addresses: lanes beyond the matrices repeat."""
    if width == 4:
        return thread
    return thread // 32 * 32 + thread % (8 * width)


def _walk(matrices: Matrices, width: int, groups: int, threads: int) -> tuple[Step, Step] | None:
    """Return the groups as two nested loops with fixed steps, None if they are not."""
    thread = np.arange(threads)[:, None]
    numbers = np.arange(groups)[None, :] * width
    rows, columns = (
        np.broadcast_to(x, (threads, groups)) for x in matrices.row(_folded(thread, width), numbers)
    )
    for inner in (k for k in range(1, groups + 1) if groups % k == 0):
        near, far = min(1, groups - 1), inner if inner < groups else 0
        small = [int(x[0, near] - x[0, 0]) if inner > 1 else 0 for x in (rows, columns)]
        large = [int(x[0, far] - x[0, 0]) for x in (rows, columns)]
        u, v = np.divmod(np.arange(groups), inner)
        if all(
            np.array_equal(x, x[:, :1] + u * big + v * little)
            for x, big, little in zip((rows, columns), large, small, strict=True)
        ):
            return Step(groups // inner, *large), Step(inner, *small)
    return None
