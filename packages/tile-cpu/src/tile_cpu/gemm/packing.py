"""Copies into the forms the kernel reads: panels of B, rows or columns of A."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.dtypes import dtype_of
from tile_core.records import dataclass
from tile_cpu.gemm.instruction_kernel import SIGN_BITS, MicroKernel
from tile_cpu.gemm.operands import GemmSpec, OperandA, PackedB, TilePanels
from tile_cpu.gemm.transpose import transpose
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.tir.build import (
    Temporaries,
    allocate,
    dtype_of_expr,
    i32,
    loop,
    scratch,
    seq,
    shuffle,
    splat,
    vload,
    vstore,
)
from tile_cpu.tir.nodes import BufferLoad, BufferStore, IfThenElse, PrimExpr, Select, Stmt, tirx
from tile_cpu.vectors import Matrix, as_expr, ceil_div, floor_mod, opaque

Put = Callable[[Any, Any, PrimExpr], Stmt]  # (group row q, vector of columns, value)
_Extent = tuple[int, Any]  # of a region, and how much of it exists; None means all


def emit_pack_b(
    spec: GemmSpec,
    source: Matrix,
    packed: PackedB | TilePanels,
    k: int,
    n: int,
    *,
    transposed: bool = False,
    k_valid: Any = None,
    n_valid: Any = None,
) -> Stmt:
    """Copy ``(k, n)`` elements of B, ``(n, k)`` if `transposed`, into panels of the kernel's type.

    There is room for `k` x `n`, from `packed_b`; a tile of panels has no room for more, so that
    both must be whole vectors there. `k_valid` and `n_valid` tell how much of the region exists,
    0 <= valid <= extent; None means all. What does not exist is not touched, and is zero along k up
    to a whole group. Columns that do not exist are zero up to a whole vector.
    """
    kernel = spec.kernel

    def put(q: Any, vector: Any, value: PrimExpr) -> Stmt:
        if kernel.flip_b:
            value = tirx.bitwise_xor(value, splat(SIGN_BITS, kernel.lanes))
        return packed.store(kernel, q, vector, value)

    body = _pack_columns if transposed else _pack_rows
    return body(kernel, source, put, kernel.b_dtype, (k, k_valid), (n, n_valid))


def emit_copy_rows(
    spec: GemmSpec,
    source: Matrix,
    target: OperandA,
    m: int,
    k: int,
    *,
    transposed: bool = False,
    m_valid: Any = None,
    k_valid: Any = None,
) -> Stmt:
    """Copy ``(i, k)`` elements of A, ``(k, i)`` if `transposed`, into the form the kernel reads.

    There is room from `copied_a`, whose `k_major` must equal `transposed`. Extents are as in
    `emit_pack_b`. Rows that do not exist are left alone; along k there are zeros up to a whole
    vector.
    """
    kernel = spec.kernel
    if transposed:
        matrix, lanes = target.matrix, kernel.lanes
        dtype = kernel.group_dtype if kernel.group > 1 else kernel.a_dtype
        width = target.strip or lanes

        def put(q: Any, vector: Any, value: PrimExpr) -> Stmt:
            bits, parts = reinterpret(value, dtype, lanes), range(0, lanes, width)
            if width == lanes:
                return matrix.store(q, vector * lanes, bits, lanes)
            pieces = [shuffle([bits], list(range(at, at + width))) for at in parts]
            stores = zip(parts, pieces, strict=True)
            return seq([matrix.store(q, vector * lanes + at, x, width) for at, x in stores])

        return _pack_rows(kernel, source, put, kernel.a_dtype, (k, k_valid), (m, m_valid))
    rows, columns = m if m_valid is None else m_valid, k if k_valid is None else k_valid
    return _copy_rows(kernel, source, target.matrix, rows, columns)


def _copy_rows(
    kernel: MicroKernel, source: Matrix, target: Matrix, rows: Any, columns: Any
) -> Stmt:
    chunk = kernel.chunk

    def copy(masked: bool) -> Stmt:
        def one(i: Any, c: Any) -> Stmt:
            count = columns - c * chunk if masked else None
            value = source.load_as(kernel.a_dtype, i, c * chunk, chunk, count)
            return target.store(i, c * chunk, value, chunk)

        return loop(rows, lambda i: loop(ceil_div(columns, chunk), lambda c: one(i, c), name="c"))

    if isinstance(columns, int):
        return copy(columns % chunk != 0)
    return IfThenElse(tirx.EQ(floor_mod(columns, chunk), i32(0)), copy(False), copy(True))


def _pack_rows(
    kernel: MicroKernel,
    source: Matrix,
    put: Put,
    dtype: str,
    along_k: _Extent,
    along_n: _Extent,
) -> Stmt:
    """Interleave `group` rows of a ``(k, n)`` source."""
    group, chunk = kernel.group, kernel.chunk
    region = _region((*along_k, group), (*along_n, chunk))
    depth = region.depth

    def copy(whole: bool | PrimExpr, width: Any) -> Stmt:
        def load(q: Any, c: Any, x: Any, edge: bool) -> PrimExpr:
            count = width - c * chunk if edge else None
            if edge and group > 1:
                present = as_expr(q * group + x) < as_expr(depth)
                count = Select(present, as_expr(count), i32(0))
            value = source.load_as(dtype, q * group + x, c * chunk, chunk, count)
            return reinterpret(value, f"uint{32 // group}", chunk) if group > 1 else value

        def one(q: Any, c: Any) -> Stmt:
            keep = Temporaries()
            rows = _loaded(keep, whole, group, lambda x, edge: load(q, c, x, edge))
            vectors = _interleave(keep, kernel, rows)
            puts = [put(q, c * group + w, value) for w, value in enumerate(vectors)]
            return seq(keep.statements, puts)

        return loop(
            ceil_div(depth, group),
            lambda q: loop(ceil_div(width, chunk), lambda c: one(q, c), name="c"),
            name="q",
        )

    if isinstance(region.whole, bool) or group > 1:
        return seq(region.statements, copy(region.whole, region.width))
    # Rows of known length are loops written out: many are read at a time, before any has come.
    either = IfThenElse(region.whole, copy(True, along_n[0]), copy(False, region.width))
    return seq(region.statements, either)


def _pack_columns(
    kernel: MicroKernel,
    source: Matrix,
    put: Put,
    dtype: str,
    along_k: _Extent,
    along_n: _Extent,
) -> Stmt:
    """Transpose squares of a ``(n, k)`` source in registers."""
    lanes, chunk = kernel.lanes, kernel.chunk
    bits = 64 if kernel.accumulator in ("float64", "int64", "uint64") else 32
    region = _region((*along_k, chunk), (*along_n, lanes))
    depth, width = region.depth, region.width

    def load(j: Any, c: Any, r: Any, edge: bool) -> PrimExpr:
        count = None
        if edge:
            present = as_expr(j * lanes + r) < as_expr(width)
            count = Select(present, as_expr(depth - c * chunk), i32(0))
        value = source.load_as(dtype, j * lanes + r, c * chunk, chunk, count)
        return reinterpret(value, kernel.group_dtype, lanes)

    def one(j: Any, c: Any) -> Stmt:
        keep = Temporaries()
        rows = _loaded(keep, region.whole, lanes, lambda r, edge: load(j, c, r, edge))
        turned = transpose(keep, rows, bits)
        puts = [put(c * lanes + r, j, value) for r, value in enumerate(turned)]
        return seq(keep.statements, puts)

    body = loop(
        ceil_div(width, lanes),
        lambda j: loop(ceil_div(depth, chunk), lambda c: one(j, c), name="c"),
        name="j",
    )
    return seq(region.statements, body)


@dataclass(frozen=True, slots=True)
class _Copied:
    """How much is copied, and whether it consists of whole vectors: known now, or an expression."""

    depth: Any
    width: Any
    whole: bool | PrimExpr
    statements: list[Stmt]  # run before the copy


def _region(depth: tuple[int, Any, int], width: tuple[int, Any, int]) -> _Copied:
    """Return what is copied; `depth` and `width` are the extent, what exists, and the unit.

    A whole region may be less deep than the extent, so that the steps of a loop along a k
    of unknown length all are, but the last.
    """
    (k, k_valid, k_unit), (n, n_valid, n_unit) = depth, width
    tests = []
    if k_valid is not None and k_unit > 1:
        tests.append(tirx.EQ(floor_mod(k_valid, k_unit), i32(0)))
    if n_valid is not None:
        tests.append(tirx.EQ(as_expr(n_valid), i32(n)))
    deep, wide = k if k_valid is None else k_valid, n if n_valid is None else n_valid
    if (k_valid is None and k % k_unit) or n % n_unit:
        return _Copied(deep, wide, False, [])
    if not tests:
        return _Copied(deep, n, True, [])
    test = tests[0] if len(tests) == 1 else tirx.And(tests[0], tests[1])
    flag, statements = opaque("whole", Select(test, i32(1), i32(0)))
    return _Copied(deep, wide, flag > 0, statements)


def _loaded(
    keep: Temporaries,
    whole: bool | PrimExpr,
    count: int,
    load: Callable[[Any, bool], PrimExpr],
) -> list[PrimExpr]:
    """Return `count` vectors, loaded unguarded where `whole` holds, and masked elsewhere.

    ``load(row, masked)`` gives one of them. Masked loads go through memory one by one, which
    is little code, and what follows is emitted once for both.
    """
    if whole is True:
        return [keep(load(r, False)) for r in range(count)]
    if count == 1 and whole is False:
        return [keep(load(0, True))]
    first = load(0, True)
    kind = dtype_of_expr(first)
    lanes = dtype_of(kind).lanes
    square = scratch([count, lanes], str(dtype_of(kind).base), "square")
    fill = loop(count, lambda r: vstore(square, [r, i32(0)], load(r, True), lanes), name="r")
    kept = [vload(square, [i32(r), i32(0)], lanes) for r in range(count)]
    keep.statements.append(allocate(square, on_stack=True))
    if whole is False:
        keep.statements.append(fill)
        return [keep(value) for value in kept]
    cells = [scratch([1], kind, "row") for _ in range(count)]

    def into(values: list[PrimExpr]) -> list[Stmt]:
        pairs = zip(cells, values, strict=True)
        return [BufferStore(cell, value, [i32(0)]) for cell, value in pairs]

    plain = [load(r, False) for r in range(count)]
    keep.statements += [allocate(cell, on_stack=True) for cell in cells]
    keep.statements.append(IfThenElse(whole, seq(into(plain)), seq(fill, into(kept))))
    return [BufferLoad(cell, [i32(0)]) for cell in cells]


def _interleave(keep: Temporaries, kernel: MicroKernel, rows: list[PrimExpr]) -> list[PrimExpr]:
    """Return `group` vectors of groups made of `group` rows of ``lanes * group`` elements."""
    if kernel.group == 1:
        return rows
    bits, vectors = 32 // kernel.group, [[row] for row in rows]
    count = kernel.chunk
    while len(vectors) > 1:  # zip neighbours: pairs, then pairs of pairs
        merged = []
        for left, right in zip(vectors[::2], vectors[1::2], strict=True):
            halves = []
            for a, b in zip(left, right, strict=True):
                a, b = (reinterpret(v, f"uint{bits}", count) for v in (a, b))
                for h in (0, 1):
                    lanes = range(h * count // 2, (h + 1) * count // 2)
                    picked = shuffle([a, b], [x for lane in lanes for x in (lane, count + lane)])
                    halves.append(keep(reinterpret(picked, f"uint{2 * bits}", count // 2)))
            merged.append(halves)
        vectors, bits, count = merged, 2 * bits, count // 2
    return [reinterpret(v, "int32", kernel.lanes) for v in vectors[0]]
