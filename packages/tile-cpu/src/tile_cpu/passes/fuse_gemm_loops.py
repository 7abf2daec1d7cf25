"""Turn loops of ``copy A; copy B; gemm`` into blocked products without staging tiles."""

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
from tile_cpu.passes.merge_gemm_blocks import MAX_WIDTH


def fuse_gemm_loops(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with staged matrix products computed straight from global memory.

    Before   fill C = 0;  for k: copy A[m, k] -> As; copy B[k, n] -> Bs; gemm As, Bs, C;
             copy C -> D[m, n]
    After    blocked_gemm A, B -> D

    A loop of several products, each with sums of its own, becomes as many blocked products: tiles
    that they share save nothing where each reads its operands from caches, while side by side
    their sums and tiles drive each other out of them. Products of so few rows that none packs
    what it reads stay together: they wait for that alone.

    The fill and the last copy are absorbed only if nothing stands between them and the loop
    and nobody else looks at C; otherwise the sums start from, and end in, the tile C.
    Conservative: a loop that does anything else, a staged tile used elsewhere, a source written
    by the kernel, or differing bounds leave the loop as it is. Returns the same object when
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
    for at, stmt in enumerate(seq.body):
        if isinstance(stmt, (For, Pipelined)):
            before, after = list(seq.body[:at]), list(seq.body[at + 1 :])
            products = [_product(match, before, after, facts) for match in _matches(stmt, facts)]
            if products:
                return _fuse_in_sequence(replace(seq, body=(*before, *products, *after)), facts)
    return seq


def _product(
    match: _Match, before: list[Stmt], after: list[Stmt], facts: KernelUses
) -> BlockedGemm:
    """Return the product of a loop; the fill and the copy that it absorbs leave their lists."""
    gemm, c = match.gemm, match.gemm.c.buffer
    fill = _fill_before(before, c)
    if fill is not None:
        del before[fill]
    dst, dst_rows = whole(c), 0
    position = _store_after(after, c)
    store = None if position is None else after[position]
    if position is not None and isinstance(store, Copy):
        rows = _final_store_rows(store, match, fill is not None, facts)
        if rows is not None:
            dst, dst_rows = store.dst, rows
            del after[position]
    return BlockedGemm(
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


def _fill_before(before: list[Stmt], c: Buffer) -> int | None:
    """Return the position of ``fill C = 0`` that nothing separates from the loop in effect."""
    for position in range(len(before) - 1, -1, -1):
        stmt = before[position]
        if isinstance(stmt, Fill) and stmt.dst.buffer is c and stmt.dst.is_whole:
            return position if is_zero(stmt) else None
        if any(access.buffer.storage is c for access in accesses(stmt)):
            return None
    return None


def _store_after(after: list[Stmt], c: Buffer) -> int | None:
    """Return the position of the copy out of C, if only copies that touch others come before."""
    others: set[Buffer] = set()
    for position, stmt in enumerate(after):
        if not isinstance(stmt, Copy):
            return None
        if stmt.src.buffer is c:
            return position if stmt.dst.buffer.storage not in others else None
        others |= {access.buffer.storage for access in accesses(stmt)}
        if c in others:
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


def _matches(loop: For | Pipelined, facts: KernelUses) -> list[_Match]:
    """Return what the loop multiplies, product by product; nothing if it does anything else."""
    if static_value(loop.step) != 1 or static_value(loop.start) != 0:
        return []
    parts = _loop_parts(loop.body)
    if len(parts) > 1 and any(map(_waits_for_b, parts)):
        return []
    found = [_match(parts, gemm, loop, facts) for gemm in parts]
    matches = [match for match in found if match is not None]
    return matches if len(matches) == len(found) else []


def _waits_for_b(gemm: Gemm) -> bool:
    """Whether the tile has so few rows that what it reads of B is used where it lies."""
    return not gemm.transpose_b and gemm.mnk[0] <= max(MAX_WIDTH)


def _match(
    parts: dict[Gemm, tuple[Copy, Copy]], gemm: Gemm, loop: For | Pipelined, facts: KernelUses
) -> _Match | None:
    """Return one product of the loop, or None if it is not a plain staged one."""
    if not gemm.c.is_whole or gemm.c.buffer.rank != 2:
        return None
    if not isinstance(gemm.clear, Const) or gemm.clear.value:
        return None
    first, second = parts[gemm]
    if first is second:
        return None
    if not all(facts.is_private(copy.dst.buffer, {copy, *parts}) for copy in (first, second)):
        return None
    a = _streamed(first, gemm.a, loop.var, 0 if gemm.transpose_a else 1, facts)
    b = _streamed(second, gemm.b, loop.var, 1 if gemm.transpose_b else 0, facts)
    if a is None or b is None:
        return None
    k = _depth(a, b, gemm, loop.stop)
    return None if k is None else _Match(gemm, a, b, k)


def _loop_parts(body: Stmt) -> dict[Gemm, tuple[Copy, Copy]]:
    """Return the products of a loop and the copies that fill their operands.

    Empty if there is anything else: a copy that no product needs or that comes after one that does,
    a tile filled twice, sums of two products in one tile.
    """
    staged: dict[Buffer, Copy] = {}
    parts: dict[Gemm, tuple[Copy, Copy]] = {}
    for stmt in flattened(body):
        if isinstance(stmt, Copy) and stmt.dst.buffer not in staged:
            staged[stmt.dst.buffer] = stmt
        elif isinstance(stmt, Gemm) and {stmt.a.buffer, stmt.b.buffer} <= set(staged):
            parts[stmt] = staged[stmt.a.buffer], staged[stmt.b.buffer]
        else:
            return {}
    sums = {gemm.c.buffer.storage for gemm in parts}
    needed = {copy for copies in parts.values() for copy in copies}
    is_plain = len(sums) == len(parts) and needed == set(staged.values())
    return parts if is_plain and not sums & set(staged) else {}


def _streamed(
    copy: Copy, operand: Region, k: Var, k_axis: int, facts: KernelUses
) -> _Operand | None:
    """Return the global matrix that feeds `operand`, if k steps along it tile by tile."""
    source = staged_matrix(copy, facts)
    if source is None or not operand.is_whole:
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
