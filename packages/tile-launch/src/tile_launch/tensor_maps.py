"""Tensor maps of launches: encoded by the driver once for each tensor, then found again."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from tile_launch.dtypes import bits_of, bytes_of
from tile_launch.errors import ArgumentLayoutError, InvalidBundle
from tile_launch.expressions import value_of
from tile_launch.manifest import TensorMap

MAP_BYTES, MAP_ALIGNMENT = 128, 128
"""Size and alignment of ``CUtensorMap`` in CUDA 13; drivers before it ask for 64."""

MOST_ROWS = 128
"""Sets of tensors whose maps are kept, for each launch and each thread that launches."""

MAX_EXTENT, MAX_STRIDE = 1 << 31, 1 << 40
"""Elements that coordinates of 32 bits count, of which drivers allow twice as many; bytes."""

Key: TypeAlias = "tuple[int, ...]"
"""Where tensors begin, and the variables in their extents: what maps follow from."""

GRANULE = 16
"""Bytes that addresses, strides and rows of boxes are multiples of."""

_CODES = {
    "uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5,
    "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9, "tfloat32": 11,
}  # fmt: skip
_BITS = {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_INTERLEAVES = {0: 0, 16: 1, 32: 2}
_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}
_FILLS = {"zero": 0, "nan": 1}


class EncodingDriver(Protocol):
    """The part of a driver that maps need."""

    @property
    def library(self) -> Any:
        """The library of the driver."""

    def check(self, code: int, what: str) -> None:
        """Raise if the driver refused."""


class MapTable:
    """What the driver reads at a launch, for each set of tensors that was passed lately.

    A row points to the slots of the parameters and to the maps of these tensors:
    ``table.rows.get(key) or table.add(key, maps)`` points to it. Sets that were passed first are
    dropped first; maps live as long as a row points to them.

    Examples
    --------
    ``table.rows.get(key) or table.add(key, maps)`` points to a row.
    """

    __slots__ = ("_kept", "_maps", "_slots", "rows")

    def __init__(self, slots: Sequence[int]) -> None:
        self._slots = slots
        self._maps: dict[tuple[int, Key], _Map] = {}
        self._kept: dict[Key, tuple[Any, list[_Map]]] = {}
        self.rows: dict[Key, ctypes.c_void_p] = {}

    def add(
        self, key: Key, maps: Mapping[int, tuple[Key, Callable[[int], None]]]
    ) -> ctypes.c_void_p:
        """Return a pointer to a new row.

        Maps are by the position of their parameter: what each follows from, and what writes it to
        an address.
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
        _put(self.rows, key, ctypes.c_void_p(ctypes.addressof(row)), MOST_ROWS)
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


@dataclass(frozen=True, slots=True)
class MapValues:
    """A `TensorMap` with the values of one launch; dimensions are innermost first.

    The address is that of the element at coordinates 0; strides are bytes, of each dimension but
    the innermost.
    """

    described: TensorMap
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]

    def __str__(self) -> str:
        extents, box = (" x ".join(map(str, s)) for s in (self.extents, self.described.box))
        strides = ", ".join(map(str, self.strides)) or "no"
        return (
            f"a map of {extents} elements of {self.described.dtype} at {self.address:#x} with "
            f"rows {strides} bytes apart, in boxes of {box} swizzled by "
            f"{self.described.swizzle} bytes"
        )


def map_values(
    kernel: str, described: TensorMap, address: int, values: Mapping[str, Any]
) -> MapValues:
    """Return what `described` says for a tensor at `address`.

    The map's offset is added to the address of the first element of the tensor.
    """
    offset = int(value_of(described.offset, values)) * bytes_of(described.dtype)
    found = MapValues(
        described,
        address + offset,
        tuple(int(value_of(e, values)) for e in described.extents),
        tuple(int(value_of(s, values)) for s in described.strides),
    )
    if lack := unreachable(found.address, found.extents, found.strides, described.interleave):
        problem, hint = lack
        raise ArgumentLayoutError(
            f"{kernel}.{described.tensor}: copies of boxes need {problem}",
            hint=hint,
            subject=("parameter", described.tensor),
        )
    return found


def unreachable(
    address: int, extents: Sequence[int], strides: Sequence[int], interleave: int
) -> tuple[str, str] | None:
    """Return what keeps a copy engine from a tensor, and what helps; None if nothing does.

    The numbers are those of `MapValues`, and how many bytes elements are interleaved by.
    """
    granule = 32 if interleave == 32 else GRANULE
    if address % granule:
        return (
            f"an address that is a multiple of {granule} bytes, got one that lies "
            f"{address % granule} behind",
            "pass x.clone() or numpy.copy(x): views may begin anywhere, tensors of their own are "
            "aligned",
        )
    for stride in strides:
        if stride % granule or stride < 0:
            return (
                f"rows that are multiples of {granule} bytes apart, got {stride} bytes",
                "pass a tensor of its own that is dense and whose rows are multiples of "
                f"{granule} bytes",
            )
        if stride >= MAX_STRIDE:
            return (
                f"rows that are less than 2^40 bytes apart, got {stride} bytes",
                "pass a tensor of its own that is dense, or copy with T.copy(..., "
                "disable_tma=True)",
            )
    for extent in extents:
        if not 0 <= extent <= MAX_EXTENT:
            return (
                f"extents of at most 2^31 elements, got {extent}",
                "pass parts of the tensor one by one, or copy with T.copy(..., disable_tma=True)",
            )
    return None


def encode_map(driver: EncodingDriver, kernel: str, values: MapValues, place: int) -> None:
    """Let the driver write a tensor map to the address `place`.

    A tensor without elements is described as one of a single element, since the driver knows no
    empty ones; kernels copy no box that begins outside of all elements.
    """
    told = values.described
    rank, is_empty = len(values.extents), 0 in values.extents
    extents = (ctypes.c_uint64 * rank)(*((1,) * rank if is_empty else values.extents))
    apart = (GRANULE,) * (rank - 1) if is_empty else values.strides
    strides = (ctypes.c_uint64 * max(1, rank - 1))(*apart)
    box = (ctypes.c_uint32 * rank)(*told.box)
    steps = (ctypes.c_uint32 * rank)(*told.element_strides)
    code = driver.library.cuTensorMapEncodeTiled(
        place, element_code(told.dtype), rank, values.address or GRANULE, extents, strides,
        box, steps, _mode(_INTERLEAVES, told.interleave), _mode(_SWIZZLES, told.swizzle),
        _mode(_PROMOTIONS, told.l2_promotion), _mode(_FILLS, told.fill),
    )  # fmt: skip
    driver.check(code, f"{kernel}.{told.name}, {values}")


def _mode(codes: Mapping[Any, int], value: object) -> int:
    """Return the driver's number for a mode of maps."""
    code = codes.get(value)
    if code is None:
        raise InvalidBundle(f"no tensor map has the mode {value!r}")
    return code


def element_code(dtype: str) -> int:
    """Return the ``CUtensorMapDataType`` of an element type; what has none moves as its bits."""
    code = _CODES.get(dtype)
    if code is None:
        code = _CODES.get(_BITS.get(bits_of(dtype), ""))
    if code is None:
        raise InvalidBundle(f"a tensor map of {dtype}")
    return code
