"""Tensor maps of launches: encoded by the driver once for each tensor, then found again."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable
from typing import Any

from tile_core.dtypes import DType
from tile_core.errors import InternalError
from tile_core.simt.map_values import MapValues
from tile_cuda.driver import Driver

MAP_BYTES, MAP_ALIGNMENT = 128, 64
"""Size and alignment of ``CUtensorMap``."""

MOST_MAPS = 32
"""Maps of one parameter that are kept: one for each tensor that was passed lately."""

_GRANULE = 16
_CODES = {
    "uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5,
    "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9, "tfloat32": 11,
}  # fmt: skip
_BITS = {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_INTERLEAVES = {0: 0, 16: 1, 32: 2}
_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}
_FILLS = {"zero": 0, "nan": 1}


class MapCache:
    """The encoded maps of one parameter of a kernel; those passed longest ago are dropped.

    Examples
    --------
    ``cache.places.get(key) or cache.add(key, encode)`` is the address of a map.
    """

    __slots__ = ("_free", "_memory", "places")

    def __init__(self, count: int = MOST_MAPS) -> None:
        self._memory = ctypes.create_string_buffer(count * MAP_BYTES + MAP_ALIGNMENT)
        start = ctypes.addressof(self._memory) + MAP_ALIGNMENT
        start -= start % MAP_ALIGNMENT
        self._free = [start + k * MAP_BYTES for k in range(count)]
        self.places: dict[Hashable, int] = {}

    def add(self, key: Hashable, encode: Callable[[int], None]) -> int:
        """Return the address of a new map, which `encode` writes there."""
        place = self._free.pop() if self._free else self.places.pop(next(iter(self.places)))
        try:
            encode(place)
        except BaseException:
            self._free.append(place)
            raise
        self.places[key] = place
        return place


def encode_map(driver: Driver, kernel: str, values: MapValues, place: int) -> None:
    """Let the driver write a tensor map to the address `place`.

    A tensor without elements is described as one of a single element, since the driver knows no
    empty ones; kernels copy no box that begins outside of all elements.

    Raises
    ------
    LaunchError
        If the driver refuses, with its words.
    """
    rank, is_empty = len(values.extents), 0 in values.extents
    extents = (ctypes.c_uint64 * rank)(*((1,) * rank if is_empty else values.extents))
    apart = (_GRANULE,) * (rank - 1) if is_empty else values.strides
    strides = (ctypes.c_uint64 * max(1, rank - 1))(*apart)
    box = (ctypes.c_uint32 * rank)(*values.box)
    steps = (ctypes.c_uint32 * rank)(*values.element_strides)
    address = values.address or _GRANULE
    code = driver.library.cuTensorMapEncodeTiled(
        place, element_code(values.dtype), rank, address, extents, strides, box, steps,
        _INTERLEAVES[values.interleave], _SWIZZLES[values.swizzle],
        _PROMOTIONS[values.l2_promotion], _FILLS[values.fill],
    )  # fmt: skip
    driver.check(code, f"{kernel}.{values.name}, {describe(values)}")


def describe(values: MapValues) -> str:
    """Return a map in words, for messages."""
    extents, box = (" x ".join(map(str, sizes)) for sizes in (values.extents, values.box))
    strides = ", ".join(map(str, values.strides)) or "no"
    return (
        f"a map of {extents} elements of {values.dtype} at {values.address:#x} with rows "
        f"{strides} bytes apart, in boxes of {box} swizzled by {values.swizzle} bytes"
    )


def element_code(dtype: DType) -> int:
    """Return the ``CUtensorMapDataType`` of an element type; what has none moves as its bits.

    Raises
    ------
    InternalError
        For elements of less than a byte.
    """
    name: Any = dtype.base
    code = _CODES.get(name)
    if code is None:
        code = _CODES.get(_BITS.get(dtype.bits, ""))
    if code is None:
        raise InternalError(f"a tensor map of {dtype}")
    return code
