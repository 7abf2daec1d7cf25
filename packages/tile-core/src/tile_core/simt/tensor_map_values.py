"""Tensor maps of one launch: their addresses and sizes, checked against what engines can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_core.arith.evaluate import evaluate
from tile_core.dtypes import DType
from tile_core.errors import ArgumentLayoutError, InternalError, Note
from tile_core.ir.expr import Var
from tile_core.records import dataclass
from tile_core.simt.program import TensorMap
from tile_launch.tensor_maps import GRANULE, unreachable

MAX_RANK, MAX_BOX, MAX_ELEMENT_STRIDE = 5, 256, 8

_WITH_NAN = frozenset({"float16", "bfloat16", "float32", "float64"})
"""What drivers have floating point types for; others move as their bits."""


@dataclass(frozen=True, slots=True)
class MapValues:
    """A `TensorMap` with the values of one launch; dimensions are innermost first.

    Parameters
    ----------
    address
        Of the element at coordinates 0.
    extents
        Elements, of each dimension.
    strides
        Bytes, of each dimension but the innermost.
    box, element_strides
        Elements, of each dimension.
    """

    name: str
    dtype: DType
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int
    interleave: int
    fill: str
    l2_promotion: int

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of a box in shared memory."""
        return -(-self.box[0] // self.element_strides[0]) * self.dtype.itemsize


def map_values(
    kernel: str, described: TensorMap, address: int, values: Mapping[Var, Any]
) -> MapValues:
    """Return what `described` says for a tensor at `address`.

    Parameters
    ----------
    kernel
        Its name, for messages.
    address
        Of the first element of the tensor, to which the map's offset is added.
    values
        Of the symbols in its extents and strides.

    Raises
    ------
    ArgumentLayoutError
        If the tensor begins, or its rows follow each other, where no map can describe it.
    """
    rank = described.rank
    offset = int(evaluate(described.offset, values)) * described.dtype.itemsize
    found = MapValues(
        described.name,
        described.dtype,
        address + offset,
        tuple(int(evaluate(e, values)) for e in described.extents),
        tuple(int(evaluate(s, values)) for s in described.strides),
        described.box,
        described.element_strides or (1,) * rank,
        described.swizzle,
        described.interleave,
        described.fill,
        described.l2_promotion,
    )
    check_boxes(found)
    if lack := unreachable(found.address, found.extents, found.strides, found.interleave):
        param, (problem, hint) = described.tensor, lack
        raise ArgumentLayoutError(
            f"{kernel}.{param.name}: copies of boxes need {problem}",
            notes=() if param.span is None else (Note("the tensor is declared here", param.span),),
            hint=hint,
        )
    return found


def check_boxes(found: MapValues) -> None:
    """Refuse boxes that no engine moves: the compiler chose them.

    Raises
    ------
    InternalError
        If the rank, the box, the strides among its elements or the swizzle are not allowed.

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
    elif found.fill == "nan" and str(found.dtype) not in _WITH_NAN:
        problem = f"NaN outside of elements of {found.dtype}"
    elif found.swizzle not in (0, 32, 64, 128) or found.interleave not in (0, 16, 32):
        problem = f"a swizzle of {found.swizzle} and an interleave of {found.interleave} bytes"
    elif found.row_bytes % GRANULE:
        problem = f"boxes whose rows have {found.row_bytes} bytes"
    elif found.swizzle and found.row_bytes != found.swizzle:
        problem = f"rows of {found.row_bytes} bytes under a swizzle of {found.swizzle}"
    if problem:
        raise InternalError(f"the tensor map {found.name} has {problem}")
