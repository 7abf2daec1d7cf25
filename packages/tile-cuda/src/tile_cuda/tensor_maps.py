"""Tensor maps of launches: encoded by the driver once for each tensor, then found again."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

from tile_core.dtypes import DType
from tile_core.errors import InternalError
from tile_core.simt.map_values import MapValues
from tile_cuda.driver import Driver

MAP_BYTES, MAP_ALIGNMENT = 128, 64
"""Size and alignment of ``CUtensorMap``."""

MOST_ROWS = 128
"""Sets of tensors whose maps are kept, for each launch and each thread that launches."""

Key: TypeAlias = "tuple[int, ...]"
"""Where tensors begin, and the symbols in their extents: what maps follow from."""

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


class MapTable:
    """What the driver reads at a launch, for each set of tensors that was passed lately.

    A row points to the slots of the parameters and to the maps of these tensors. Sets that
    were passed first are dropped first; maps live as long as a row points to them.

    Parameters
    ----------
    slots
        Addresses of the parameters; of maps, anything.

    Examples
    --------
    ``table.rows.get(key) or table.add(key, maps)`` is the address of a row.
    """

    __slots__ = ("_kept", "_maps", "_slots", "rows")

    def __init__(self, slots: Sequence[int]) -> None:
        self._slots = slots
        self._maps: dict[tuple[int, Key], _Map] = {}
        self._kept: dict[Key, tuple[Any, list[_Map]]] = {}
        self.rows: dict[Key, int] = {}

    def add(self, key: Key, maps: Mapping[int, tuple[Key, Callable[[int], None]]]) -> int:
        """Return the address of a new row.

        Parameters
        ----------
        maps
            For each parameter that is a map, by its position: what the map follows from, and
            what writes it to an address.
        """
        row = (ctypes.c_void_p * len(self._slots))(*self._slots)
        found = []
        for position, (own, write) in maps.items():
            known = self._maps.get((position, own))
            if known is None:
                known = _Map()
                write(known.address)
                _put(self._maps, (position, own), known, MOST_ROWS * len(maps))
            row[position] = known.address
            found.append(known)
        _put(self._kept, key, (row, found), MOST_ROWS)
        _put(self.rows, key, ctypes.addressof(row), MOST_ROWS)
        return self.rows[key]


class _Map:
    """Memory of one encoded map."""

    __slots__ = ("_memory", "address")

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(MAP_BYTES + MAP_ALIGNMENT)
        start = ctypes.addressof(self._memory)
        self.address = start + -start % MAP_ALIGNMENT


def _put(table: dict[Any, Any], key: Hashable, value: object, most: int) -> None:
    """Add to a table of bounded size; what was added first goes first."""
    if len(table) >= most:
        del table[next(iter(table))]
    table[key] = value


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
