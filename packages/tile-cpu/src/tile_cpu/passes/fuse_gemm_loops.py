"""Turn the loop ``copy A; copy B; gemm`` into one blocked product without staging tiles."""

from __future__ import annotations

from dataclasses import replace

from tile_core.arith.affine import linear_in, same_extent
from tile_core.ir.buffer import Buffer, Region, static_value, whole
from tile_core.ir.build_expr import as_expr, binary, cast, maximum, minimum
from tile_core.ir.effects import accesses
from tile_core.ir.expr import BinaryOp, Const, Expr, Extent, Var
from tile_core.ir.stmt import For, Kernel, Pipelined, Seq, Stmt, flattened
from tile_core.ops.copy import Copy, Fill
from tile_core.ops.gemm import Gemm
from tile_core.ops.region_pairing import pair
from tile_core.records import dataclass
from tile_core.target import Target
from tile_cpu.ops import BlockedGemm
from tile_cpu.passes.buffer_uses import (
    KernelUses,
    has_contiguous_rows,
    rewrite_sequences,
    rows_and_columns,
    staged_matrix,
)
from tile_cpu.passes.fold_fills import is_zero


def fuse_gemm_loops(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with staged matrix products computed straight from global memory.

    Before   fill C = 0;  for k: copy A[m, k] -> As; copy B[k, n] -> Bs; gemm As, Bs, C;
             copy C -> D[m, n]
    After    blocked_gemm A, B -> D

    The fill and the last copy are absorbed only if they stand next to the loop and nobody
    else looks at C; otherwise the sums start from, and end in, the tile C. Conservative: a
    loop that does anything else, a staged tile used elsewhere, a source written by the
    kernel, or differing bounds leave the loop as it is. Returns the same object when
    nothing fits.
    """
    return rewrite_sequences(kernel, _fuse_in_sequence)


@dataclass(frozen=True, slots=True)
class _Operand:
    """A global matrix: its region at the first step, and the dimension its rows run along."""

    region: Region
    rows: int

    @property
    def columns(self) -> int:
        """The dimension the columns run along: always the last."""
        return self.region.buffer.rank - 1


@dataclass(frozen=True, slots=True)
class _Match:
    """A loop that fits: its gemm and what feeds it."""

    gemm: Gemm
    a: _Operand
    b: _Operand
    k: Expr

    @property
    def m_dimension(self) -> int:
        """The dimension of A that counts rows of the product."""
        return self.a.columns if self.gemm.transpose_a else self.a.rows

    @property
    def n_dimension(self) -> int:
        """The dimension of B that counts columns of the product."""
        return self.b.rows if self.gemm.transpose_b else self.b.columns


def _fuse_in_sequence(seq: Seq, facts: KernelUses) -> Seq:
    body = list(seq.body)
    for at, stmt in enumerate(body):
        if isinstance(stmt, (For, Pipelined)):
            match = _match_loop(stmt, facts)
            if match is not None:
                _replace_loop(body, at, match, facts)
                return _fuse_in_sequence(replace(seq, body=tuple(body)), facts)
    return seq


def _replace_loop(body: list[Stmt], at: int, match: _Match, facts: KernelUses) -> None:
    """Put a `BlockedGemm` in place of the loop, absorbing a fill before and a copy after."""
    gemm, c = match.gemm, match.gemm.c.buffer
    fill = _fill_before(body, at, c)
    dst, dst_rows, absorbed = whole(c), 0, None
    store = body[at + 1] if at + 1 < len(body) else None
    if isinstance(store, Copy):
        rows = _final_store_rows(store, match, fill is not None, facts)
        if rows is not None:
            dst, dst_rows, absorbed = store.dst, rows, at + 1
    body[at] = BlockedGemm(
        match.a.region,
        match.b.region,
        dst,
        c.dtype,
        match.k,
        match.a.rows,
        match.b.rows,
        dst_rows,
        gemm.transpose_a,
        gemm.transpose_b,
        c if fill is None else None,
        span=gemm.span,
    )
    for position in sorted((p for p in (fill, absorbed) if p is not None), reverse=True):
        del body[position]


def _fill_before(body: list[Stmt], at: int, c: Buffer) -> int | None:
    """Return the position of ``fill C = 0`` that nothing separates from the loop in effect."""
    for position in range(at - 1, -1, -1):
        stmt = body[position]
        if isinstance(stmt, Fill) and stmt.dst.buffer is c and stmt.dst.is_whole:
            return position if is_zero(stmt) else None
        if any(access.buffer.storage is c for access in accesses(stmt)):
            return None
    return None


def _final_store_rows(store: Copy, match: _Match, is_filled: bool, facts: KernelUses) -> int | None:
    """Return the dimension of the destination that rows of C run along.

    None if `store` does not move all of C to global memory, or C is needed otherwise.
    """
    c, dst = match.gemm.c.buffer, store.dst
    if store.src.buffer is not c or not store.src.is_whole or not dst.buffer.scope.is_global:
        return None
    others = [n for n in facts.touching[c] if n is not match.gemm and n is not store]
    if c in facts.viewed or len(others) > 1 or not all(isinstance(n, Fill) for n in others):
        return None
    pairing = pair(store.src, dst)
    found = rows_and_columns(pairing.src_axes, pairing.dst_axes)
    if not all(facts.is_nonnegative(start) for start in dst.starts):
        return None
    if found is None or not is_filled or not has_contiguous_rows(dst.buffer):
        return None
    if dst.buffer.dtype.packing > 1 or isinstance(dst.buffer.origin, Buffer):
        return None
    rows, columns = found
    same_rows = _same_bound(match.a.region, match.m_dimension, dst, rows)
    same_columns = _same_bound(match.b.region, match.n_dimension, dst, columns)
    return rows if same_rows and same_columns else None


def _same_bound(one: Region, i: int, other: Region, j: int) -> bool:
    """Whether the tile's valid part along dimension i of one and j of the other agrees.

    Two symbols may be different numbers, though one expression could stand for the other.
    """
    same_start = same_extent(one.starts[i], other.starts[j])
    return same_start and same_extent(one.buffer.shape[i], other.buffer.shape[j])


def _match_loop(loop: For | Pipelined, facts: KernelUses) -> _Match | None:
    """Return what the loop multiplies, or None if it is not a plain staged product."""
    if static_value(loop.step) != 1 or static_value(loop.start) != 0:
        return None
    copies, gemm = _loop_parts(loop.body)
    if gemm is None or len(copies) != 2 or not gemm.c.is_whole or gemm.c.buffer.rank != 2:
        return None
    if not isinstance(gemm.clear, Const) or gemm.clear.value:
        return None
    staged = {copy.dst.buffer: copy for copy in copies}
    first, second = staged.get(gemm.a.buffer), staged.get(gemm.b.buffer)
    if first is None or second is None or first is second:
        return None
    a = _streamed(first, gemm.a, loop.var, gemm, 0 if gemm.transpose_a else 1, facts)
    b = _streamed(second, gemm.b, loop.var, gemm, 1 if gemm.transpose_b else 0, facts)
    if a is None or b is None:
        return None
    k = _depth(a, b, gemm, loop.stop)
    return None if k is None else _Match(gemm, a, b, k)


def _loop_parts(body: Stmt) -> tuple[list[Copy], Gemm | None]:
    copies: list[Copy] = []
    gemm: Gemm | None = None
    for stmt in flattened(body):
        if isinstance(stmt, Copy) and gemm is None:
            copies.append(stmt)
        elif isinstance(stmt, Gemm) and gemm is None:
            gemm = stmt
        else:
            return [], None
    return copies, gemm


def _streamed(
    copy: Copy, operand: Region, k: Var, gemm: Gemm, k_axis: int, facts: KernelUses
) -> _Operand | None:
    """Return the global matrix that feeds `operand`, if k steps along it tile by tile."""
    source = staged_matrix(copy, facts)
    if source is None or not operand.is_whole:
        return None
    if not facts.is_private(copy.dst.buffer, {copy, gemm}):
        return None
    region, rows = source
    along = rows if k_axis == 0 else region.buffer.rank - 1
    starts: list[Extent] = []
    for dimension, start in enumerate(region.starts):
        found = linear_in(start, k)
        if found is None or found[0] != (region.extents[along] if dimension == along else 0):
            return None
        starts.append(found[1])
    return _Operand(replace(region, starts=tuple(starts)), rows)


def _depth(a: _Operand, b: _Operand, gemm: Gemm, stop: Expr) -> Expr | None:
    """Return how many columns of A there are to multiply: the loop's, inside the tensors."""
    i = a.rows if gemm.transpose_a else a.columns
    j = b.columns if gemm.transpose_b else b.rows
    if not _same_bound(a.region, i, b.region, j):
        return None
    reach = binary(BinaryOp.MUL, stop, gemm.mnk[2])
    room = binary(BinaryOp.SUB, as_expr(a.region.buffer.shape[i]), a.region.starts[i])
    depth = maximum(minimum(reach, room), 0)
    return cast(depth, "int32")
