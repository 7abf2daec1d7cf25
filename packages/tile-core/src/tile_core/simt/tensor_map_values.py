"""Tensor maps of one launch: addresses and sizes, checked against what the copy engine can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tile_core.arith.evaluate import evaluate
from tile_core.errors import ArgumentLayoutError, InternalError, Note
from tile_core.ir.expr import Expr, Var
from tile_core.simt.program import TensorMap
from tile_launch import manifest, tensor_maps
from tile_launch.dtypes import bytes_of
from tile_launch.tensor_maps import GRANULE, MapValues

MAX_RANK, MAX_BOX, MAX_ELEMENT_STRIDE = 5, 256, 8

_WITH_NAN = frozenset({"float16", "bfloat16", "float32", "float64"})
"""What drivers have floating point types for; others move as their bits."""


def numbered(described: TensorMap, number: Callable[[Expr], int]) -> manifest.TensorMap:
    """Return a map as launchers know it, its offset and sizes in numbers; boxes are checked."""
    found = manifest.TensorMap(
        name=described.name,
        tensor=described.tensor.name,
        dtype=str(described.dtype),
        offset=number(described.offset),
        extents=tuple(map(number, described.extents)),
        strides=tuple(map(number, described.strides)),
        box=described.box,
        element_strides=described.element_strides or (1,) * described.rank,
        swizzle=described.swizzle,
        interleave=described.interleave,
        fill=described.fill,
        l2_promotion=described.l2_promotion,
    )
    check_boxes(found)
    return found


def map_values(
    kernel: str, described: TensorMap, address: int, values: Mapping[Var, Any]
) -> MapValues:
    """Return what `described` says for a tensor at `address`.

    Raises
    ------
    ArgumentLayoutError
        If the tensor begins, or its rows follow each other, where no map can describe it.
    """
    told = numbered(described, lambda size: int(evaluate(size, values)))
    try:
        return tensor_maps.map_values(kernel, told, address, {})
    except ArgumentLayoutError as error:
        if (span := described.tensor.span) is not None:
            error.notes = (Note("the tensor is declared here", span),)
        raise


def check_boxes(found: manifest.TensorMap) -> None:
    """Refuse boxes that no copy engine moves: the compiler chose them.

    Notes
    -----
    Source: CUDA Driver API, cuTensorMapEncodeTiled, as of 13.0. Rows may be shorter than the
    swizzle there; compilers need none that are.
    """
    rank = len(found.extents)
    problem = ""
    if not 1 <= rank <= MAX_RANK or not rank == len(found.box) == len(found.element_strides):
        problem = f"{rank} dimensions, and boxes of {len(found.box)}"
    elif len(found.strides) != rank - 1:
        problem = f"{len(found.strides)} strides for {rank} dimensions"
    elif not all(1 <= size <= MAX_BOX for size in found.box):
        problem = f"boxes of {found.box} elements"
    elif not all(1 <= step <= MAX_ELEMENT_STRIDE for step in found.element_strides):
        problem = f"elements {found.element_strides} apart"
    elif found.element_strides[0] != 1 and not found.interleave:
        problem = f"elements of a row {found.element_strides[0]} apart without interleaving"
    elif found.fill == "nan" and found.dtype not in _WITH_NAN:
        problem = f"NaN outside of elements of {found.dtype}"
    elif found.swizzle not in (0, 32, 64, 128) or found.interleave not in (0, 16, 32):
        problem = f"a swizzle of {found.swizzle} and an interleave of {found.interleave} bytes"
    elif (row_bytes := _row_bytes(found)) % GRANULE:
        problem = f"boxes whose rows have {row_bytes} bytes"
    elif found.swizzle and row_bytes != found.swizzle:
        problem = f"rows of {row_bytes} bytes under a swizzle of {found.swizzle}"
    if problem:
        raise InternalError(f"the tensor map {found.name} has {problem}")


def _row_bytes(found: manifest.TensorMap) -> int:
    """Return the bytes of a row of a box in shared memory."""
    return -(-found.box[0] // found.element_strides[0]) * bytes_of(found.dtype)
