"""Products of matrices of which every second element in a group is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.values import as_region
from tile_api.language.matmul import _check_hints, _check_scope, _flag, _matrix, _product
from tile_api.language.operands import Annotations, emit, here
from tile_core.errors import DtypeMismatch, GemmShapeMismatch, Note
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.stmt import Alloc
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.ops.region_pairing import describe

__all__ = ["gemm_sp"]


def gemm_sp(
    A_sparse: Any,
    E: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_E: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy | int = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    wg_wait: int = 0,
    annotations: Annotations = None,
) -> None:
    """Multiply a tile without its zeros and add the product: ``C += op(A) @ op(B)``.

    Of each group of 4 neighbours along K, 2 are kept; of elements of 32 bits, 1 of 2. The tile is
    written out into a shared tile with its zeros, which `T.gemm` multiplies: the result is that of
    sparse matrix instructions, not their speed.

    Parameters
    ----------
    A_sparse : [..., M, K / 2], or [..., K / 2, M] if `transpose_A`; shared, fragment or local
        The elements kept.
    E : [..., M, K / f], or [..., K / f, M] if `transpose_E`; integers
        Where they belong: 4 bits for each group, the first group in the lowest. Bits 0 and 1 are
        the place of the first element kept, bits 2 and 3 that of the second. Of elements of 32
        bits, bit 1 is the place. `f` elements of a dense row are described by one of `E`.
    B, C, policy, clear_accum, wg_wait, annotations
        As those of `T.gemm`.

    Raises
    ------
    GemmShapeMismatch
        If M, N or K of the operands disagree.
    DtypeMismatch
        If `E` has no integers, or elements of A are neither 8, 16 nor 32 bits wide.
    ScopeMismatch
        If an operand is in global memory.
    """
    from tile_core.ops.sparse_tiles import with_zeros

    kept, meta = _tile(A_sparse, "A_sparse"), _tile(E, "E")
    is_turned = _flag(transpose_A, "transpose_A of T.gemm_sp")
    meta_turned = _flag(transpose_E, "transpose_E of T.gemm_sp")
    _check_dtypes(kept, meta)
    rows, half = _turned(kept, is_turned)
    _check_shapes(kept, meta, _turned(meta, meta_turned), (rows, 2 * half))
    shape = (2 * half, rows) if is_turned else (rows, 2 * half)
    name = current().fresh(f"{kept.buffer.name}_dense")
    dense = Buffer(name, shape, kept.buffer.dtype, Scope.SHARED, span=here())
    op = _product("T.gemm_sp", whole(dense), B, C, is_turned, transpose_B, policy, clear_accum, 1)
    _check_hints(wg_wait, annotations)
    kept, meta = _in_memory(kept), _in_memory(meta)
    emit(Alloc(dense, span=here()))
    emit(
        with_zeros(
            kept, meta, dense, transposed=is_turned, transposed_meta=meta_turned, span=here()
        )
    )
    emit(replace(op, wg_wait=wg_wait))


def _tile(value: Any, which: str) -> Region:
    region = as_region(value, f"{which} of T.gemm_sp")
    _check_scope(region, f"{which} of T.gemm_sp")
    return region


def _in_memory(region: Region) -> Region:
    """Return the region where every thread can read it: a shared copy of one in registers."""
    if region.buffer.scope is not Scope.FRAGMENT:
        return region
    extents = region.static_extents or ()
    name = current().fresh(f"{region.buffer.name}_shared")
    copy = whole(Buffer(name, extents, region.buffer.dtype, Scope.SHARED, span=here()))
    emit(Alloc(copy.buffer, span=here()))
    emit(Copy(region, copy))
    return copy


def _turned(region: Region, is_turned: bool) -> tuple[int, int]:
    rows, columns = _matrix(region, "T.gemm_sp")
    return (columns, rows) if is_turned else (rows, columns)


def _check_dtypes(kept: Region, meta: Region) -> None:
    if not meta.buffer.dtype.is_int:
        raise DtypeMismatch(
            f"the metadata of T.gemm_sp are integers, not {meta.buffer.dtype}",
            hint="compress into int16 or int32: T.alloc_shared(shape, 'int16')",
        )
    if kept.buffer.dtype.bits not in (8, 16, 32):
        told = f"T.gemm_sp takes elements of 8, 16 or 32 bits, not {kept.buffer.dtype}"
        raise DtypeMismatch(told, hint="write the dense tile out, and use T.gemm")


def _check_shapes(
    kept: Region, meta: Region, found: tuple[int, int], dense: tuple[int, int]
) -> None:
    """Refuse metadata that do not tell of each group of the dense tile, of rows and columns."""
    from tile_core.ops.sparse_tiles import described_by

    each = described_by(meta.buffer.dtype, kept.buffer.dtype)
    if found[0] == dense[0] and found[1] * each == dense[1]:
        return
    raise GemmShapeMismatch(
        f"the metadata of T.gemm_sp describe {found[0]} rows of {found[1] * each} elements, and "
        f"{describe(kept)} is {dense[0]} rows of {dense[1]}",
        notes=(
            Note(f"an element of {meta.buffer.dtype} describes {each} of {kept.buffer.dtype}"),
            Note(f"{meta.buffer.name} is declared here", meta.buffer.span),
        ),
        hint="set transpose_A or transpose_E, or change the shape of a tile",
    )
