"""Tensor maps as the runtime takes them, and for kernels that are written by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_core.errors import InternalError
from tile_core.simt.tensor_map_values import check_boxes
from tile_launch.dtypes import bytes_of
from tile_launch.manifest import TensorMap
from tile_launch.tensor_maps import MapValues
from tile_sim.abi import MAX_RANK, TYPES, CBuffer, CTensorMap
from tile_sim.memory import DeviceTensor

_MAP = re.compile(r"\bTILE_TENSOR_MAP\((\w+)\)")
_WRITTEN = re.compile(r"\btma_(?:store|reduce_\w+)<[^>]*>\((\w+)")


def written_maps(text: str) -> frozenset[str]:
    """Return the names of the maps that a source stores through.

    Examples
    --------
    >>> text = "tile::tma_store<2>(C, s, 0, 8); tile::tma_load<1>(s, A, full, 0)"
    >>> sorted(written_maps(text))
    ['C']
    """
    return frozenset(_WRITTEN.findall(text))


def map_names(text: str, kernel: str) -> tuple[str, ...]:
    """Return the names that a printed kernel gives to its tensor maps, in order.

    Examples
    --------
    >>> map_names("void f(TILE_TENSOR_MAP(A_map), int M, TILE_TENSOR_MAP(B_map)) {", "f")
    ('A_map', 'B_map')
    """
    _, _, rest = text.partition(f"void {kernel}(")
    return tuple(_MAP.findall(rest.partition("{")[0]))


def c_tensor_map(
    found: MapValues, tensor: str, place: DeviceTensor, *, is_written: bool
) -> CTensorMap:
    """Return the record of a map; reports call its tensor, which lies at `place`, `tensor`."""
    told = found.described
    if told.interleave:
        raise InternalError(f"the map {told.name} is interleaved, which is not emulated")
    size = bytes_of(told.dtype)
    return CTensorMap(
        buffer=CBuffer(place.address, place.bytes, tensor.encode(), None),
        data=found.address,
        rank=len(found.extents),
        type=TYPES.index(told.dtype if told.dtype in TYPES else f"uint{8 * size}"),
        element_bytes=size,
        swizzle=told.swizzle,
        fills_nan=told.fill == "nan",
        is_written=is_written,
        extents=_padded(found.extents, 1),
        strides=_padded((size, *found.strides), 0),
        box=_padded(told.box, 1),
        element_strides=_padded(told.element_strides, 1),
    )


def _padded(numbers: Sequence[int], fill: int) -> tuple[int, ...]:
    return (*numbers, *(fill,) * (MAX_RANK - len(numbers)))


@dataclass(frozen=True, slots=True)
class Boxes:
    """An array as an argument of a kernel written by hand that takes a tensor map of it.

    Parameters
    ----------
    array
        Its innermost dimension is dense.
    box
        Elements that a copy moves, innermost dimension first.
    swizzle
        Bytes of a row whose chunks change places: 0, 32, 64 or 128.
    fill
        What elements outside read as: ``"zero"`` or ``"nan"``.
    element_strides
        Every how many elements belong to a box, innermost first; empty for all.
    """

    array: np.ndarray[Any, Any]
    box: tuple[int, ...]
    swizzle: int = 0
    fill: str = "zero"
    element_strides: tuple[int, ...] = ()

    def values(self, name: str, address: int) -> MapValues:
        """Return what the map says if the array lies at `address`.

        Raises
        ------
        InternalError
            If no engine moves such boxes.
        """
        extents, strides = self.array.shape[::-1], self.array.strides[-2::-1]
        steps = self.element_strides or (1,) * len(self.box)
        told = TensorMap(
            name=name, tensor=name, dtype=self.array.dtype.name, offset=0, extents=extents,
            strides=strides, box=self.box, element_strides=steps, swizzle=self.swizzle,
            fill=self.fill, l2_promotion=0,
        )  # fmt: skip
        check_boxes(told)
        return MapValues(told, address, extents, strides)
