"""Products of narrow floats whose groups along K share a scale."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.values import as_region, as_value
from tile_api.language.matmul import _check_hints, _check_scope, _flag, _matrix, _product
from tile_api.language.operands import Annotations, count, emit, here
from tile_core.dtypes import dtype_of
from tile_core.errors import DtypeMismatch, GemmShapeMismatch, Note
from tile_core.ir.buffer import Buffer, Region, Scope, static_value, whole
from tile_core.ir.build_expr import cast
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Alloc
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.loop_builders import load, matrix_axes, nest, store
from tile_core.ops.parallel_form import parallel_nest
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
    ``float8_e4m3fn`` for 16. Scaled elements are written out, and `T.gemm` multiplies them: they
    are exact in bfloat16 as long as they are in its range. The result is that of block-scaled
    matrix instructions, not their speed.

    Parameters
    ----------
    A, B, C, policy, clear_accum, annotations
        As those of `T.gemm`; A and B have 8-, 6- or 4-bit floats.
    SFA : [..., M, groups]; SFB : [..., N, groups]
        The scales, a row for each row of A and each column of B.
    k_start
        Where in K the tiles begin: element `k` has the scale ``(k_start + k) // granularity``.
        Nothing, if tiles of scales are those of this step; may be an expression.
    sf_a_granularity_k, sf_b_granularity_k
        How many neighbours along K share a scale.
    mbar, use_2cta, sf_layout
        Make it the asynchronous product of recent NVIDIA GPUs, which no other machine has.

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
    a = _scaled(A, SFA, "A", turned_a, first, sf_a_granularity_k, Scope.FRAGMENT)
    b = _scaled(B, SFB, "B", not turned_b, first, sf_b_granularity_k, Scope.SHARED)
    emit(_product("T.gemm_blockscaled", a, b, C, False, True, policy, clear_accum, 1))


def _scaled(
    tile: Any, scales: Any, which: str, turned: bool, first: Expr, group: Any, scope: Scope
) -> Region:
    """Return a tile of bfloat16, with K along its rows, that is filled with scaled elements."""
    narrow = as_region(tile, f"{which} of T.gemm_blockscaled")
    factors = as_region(scales, f"SF{which} of T.gemm_blockscaled")
    for region, name in ((narrow, which), (factors, f"SF{which}")):
        _check_scope(region, f"{name} of T.gemm_blockscaled")
    _check_dtypes(narrow, factors, which)
    extents = _matrix(narrow, "T.gemm_blockscaled")
    rows, depth = (extents[1], extents[0]) if turned else extents
    each = count(group, f"sf_{which.lower()}_granularity_k")
    _check_scales(narrow, factors, rows, depth, first, each)
    name = current().fresh(f"{narrow.buffer.name}_scaled")
    wide = Buffer(name, (rows, depth), dtype_of("bfloat16"), scope, span=here())

    def element(at: tuple[Any, ...]) -> Any:
        i, k = at
        value = load(narrow, matrix_axes(narrow), (k, i) if turned else (i, k))
        scale = load(factors, matrix_axes(factors), (i, (first + k) // each))
        product = cast(value, dtype_of("float32")) * cast(scale, dtype_of("float32"))
        return store(whole(wide), (0, 1), at, product)

    emit(Alloc(wide, span=here()))
    emit(parallel_nest(nest((rows, depth), element)))
    return whole(wide)


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
