"""Products of narrow floats whose groups along K share a scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_api.frontend.values import as_region, as_value
from tile_api.language.matmul import _check_hints, _check_scope, _flag, _matrix, _product
from tile_api.language.operands import Annotations, count, emit
from tile_core.errors import DtypeMismatch, GemmShapeMismatch, Note
from tile_core.ir.buffer import Region, static_value
from tile_core.ir.expr import Expr
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.region_pairing import describe

__all__ = ["gemm_blockscaled"]

_FACTORS = (
    *("float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float6_e3m2fn"),
    *("float4_e2m1fn", "float4_e2m1_unpacked"),
)
_SCALES = ("float8_e8m0fnu", "float8_e4m3fn")


def gemm_blockscaled(
    A: Any,
    B: Any,
    C: Any,
    SFA: Any,
    SFB: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy | int = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    *,
    k_start: Any,
    sf_a_granularity_k: int,
    sf_b_granularity_k: int,
    mbar: Any = None,
    use_2cta: bool = False,
    sf_layout: Any = None,
    annotations: Annotations = None,
) -> None:
    """Multiply tiles whose groups along K have scales: ``C += (op(A) * SFA) @ (op(B) * SFB)``.

    MXFP8 and MXFP4 have a power of two (``float8_e8m0fnu``) for 32 elements, NVFP4 a
    ``float8_e4m3fn`` for 16, which is not negative. Machines with block-scaled matrix
    instructions use them. On others scaled elements are written out, and `T.gemm` multiplies
    them: they are exact in bfloat16 as long as they are in its range.

    Parameters
    ----------
    A, B, C, policy, clear_accum, annotations
        As those of `T.gemm`; A and B have 8-, 6- or 4-bit floats.
    SFA : [..., M, groups]; SFB : [..., N, groups]
        The scales, a row for each row of A and each column of B.
    k_start
        Where in K the tiles begin, 0 if scales are those of this step; may be an expression.
    sf_a_granularity_k, sf_b_granularity_k
        How many share a scale: that of element `k` is number ``(k_start + k) // granularity``.
    mbar, use_2cta, sf_layout
        As programs for Blackwell GPUs pass: no target offers that product by name.

    Raises
    ------
    GemmShapeMismatch
        If M, N or K of the operands disagree, or scales are too few.
    DtypeMismatch
        If a factor has other elements, or scales neither of the two types.
    ScopeMismatch
        If an operand is in global memory.
    """
    _check_hints(0, annotations)
    if mbar is not None or use_2cta or sf_layout is not None:
        regions = (as_region(x, "an operand of T.gemm_blockscaled") for x in (A, B, C, SFA, SFB))
        emit(GpuOperator("tcgen05_gemm_blockscaled", tuple(regions)))
        return
    turned_a = _flag(transpose_A, "transpose_A of T.gemm_blockscaled")
    turned_b = _flag(transpose_B, "transpose_B of T.gemm_blockscaled")
    first = as_value(k_start)
    a, group_a = _scales_of(A, SFA, "A", turned_a, first, sf_a_granularity_k)
    b, group_b = _scales_of(B, SFB, "B", not turned_b, first, sf_b_granularity_k)
    op = _product("T.gemm_blockscaled", A, B, C, turned_a, turned_b, policy, clear_accum, 1)
    emit(replace(op, scale_a=a, scale_b=b, group_a=group_a, group_b=group_b, first_k=first))


def _scales_of(
    tile: Any, scales: Any, which: str, turned: bool, first: Expr, group: Any
) -> tuple[Region, int]:
    """Return the scales of an operand, checked against it, and how many elements share one."""
    each = count(group, f"sf_{which.lower()}_granularity_k")
    narrow = as_region(tile, f"{which} of T.gemm_blockscaled")
    factors = as_region(scales, f"SF{which} of T.gemm_blockscaled")
    for region, name in ((narrow, which), (factors, f"SF{which}")):
        _check_scope(region, f"{name} of T.gemm_blockscaled")
    _check_dtypes(narrow, factors, which)
    extents = _matrix(narrow, "T.gemm_blockscaled")
    rows, depth = (extents[1], extents[0]) if turned else extents
    _check_scales(narrow, factors, rows, depth, first, each)
    return factors, each


def _check_dtypes(narrow: Region, factors: Region, which: str) -> None:
    for region, allowed, name in (
        (narrow, _FACTORS, which),
        (factors, _SCALES, f"SF{which}"),
    ):
        dtype = region.buffer.dtype
        if dtype not in allowed:
            raise DtypeMismatch(
                f"{name} of T.gemm_blockscaled has elements of {dtype}",
                notes=(Note(f"{region.buffer.name} is declared here", region.buffer.span),),
                hint=f"it may have {', '.join(allowed[:-1])} or {allowed[-1]}",
            )


def _check_scales(
    narrow: Region, factors: Region, rows: int, depth: int, first: Expr, each: int
) -> None:
    """Refuse scales that are not one for each group of each row."""
    found = _matrix(factors, "T.gemm_blockscaled")
    begin = static_value(first)
    needed = -(-depth // each) if begin is None else (begin + depth - 1) // each + 1
    if found[0] == rows and found[1] >= needed:
        return
    raise GemmShapeMismatch(
        f"{describe(factors)} has {found[0]} rows of {found[1]} scales, and {describe(narrow)} "
        f"needs {rows} rows of {needed}",
        notes=(Note(f"{factors.buffer.name} is declared here", factors.buffer.span),),
        hint=f"give each {each} neighbours along K of each row a scale",
    )
