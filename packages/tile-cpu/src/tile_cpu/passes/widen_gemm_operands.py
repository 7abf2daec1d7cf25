"""Give products operands that the CPU multiplies: widen four- and six-bit elements first."""

from __future__ import annotations

from dataclasses import replace

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Alloc, Kernel, Seq, Stmt
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.target import Target


def widen_gemm_operands(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with narrow operands of products converted to wider tiles before.

    Before   gemm A: float4_e2m1fn, B: int4, C
    After    copy A -> Aw: bfloat16;  copy B -> Bw: int8;  gemm Aw, Bw, C

    Every value of the narrow type is a value of the wide one, so results do not change.
    Returns the same object when there is nothing to widen.
    """

    def rule(node: Node) -> Node:
        return _widened(node) if isinstance(node, Gemm) else node

    return rewrite(kernel, rule)


def wide_type(dtype: DType) -> DType | None:
    """Return the type that `dtype` is widened to, or None if it is multiplied as it is."""
    if dtype.bits == 4 and dtype.is_int:
        return dtype_of("int8" if dtype.base == "int4" else "uint8")
    if dtype.is_bool:
        return dtype_of("uint8")
    return dtype_of("bfloat16") if dtype.is_narrow_float else None


def _widened(gemm: Gemm) -> Node:
    before: list[Stmt] = []
    a, b = (_operand(region, gemm, before) for region in (gemm.a, gemm.b))
    if not before:
        return gemm
    return Seq((*before, replace(gemm, a=a, b=b)), span=gemm.span)


def _operand(region: Region, gemm: Gemm, before: list[Stmt]) -> Region:
    wide = wide_type(region.buffer.dtype)
    extents = region.static_extents
    if wide is None or extents is None:
        return region
    tile = Buffer(
        f"{region.buffer.name}_wide", extents[-2:], wide, Scope.FRAGMENT, span=region.buffer.span
    )
    matrix = whole(tile)
    before += [Alloc(tile, span=gemm.span), Copy(region, matrix, span=gemm.span)]
    return matrix
