"""Memory of the emulated device: aligned copies of the arguments between red zones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tile_core.errors import LaunchError, OutOfBounds
from tile_core.ir.buffer import Buffer

ALIGNMENT = 256
"""Bytes; what allocations of a GPU are aligned to. Host tensors are aligned to less, which
would split requests over more sectors than on the device, or refuse vector accesses."""

RED_ZONE = 256
"""Bytes in front of and behind each allocation that a kernel must leave alone."""

_RED, _UNDEFINED = 0xA5, 0xFF

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, slots=True)
class DeviceTensor:
    """Where a tensor lies on the emulated device, from its first element to its last one.

    The address is 0 for a tensor that is not there.
    """

    address: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Block:
    """One allocation: `raw` with red zones, and who lies in it."""

    raw: Array
    start: int
    bytes: int
    names: tuple[str, ...]

    @property
    def address(self) -> int:
        """Address of the first byte between the red zones."""
        return int(self.raw.ctypes.data) + self.start


@dataclass(slots=True)
class DeviceMemory:
    """The tensors of one call, as the emulated device holds them.

    Tensors that share memory on the host share it on the device, too, with the same distances.
    """

    places: dict[Buffer, DeviceTensor] = field(default_factory=dict)
    _blocks: list[_Block] = field(default_factory=list)
    _copies: list[tuple[str, Array, Array]] = field(default_factory=list)

    def add_tensors(self, params: Sequence[Buffer], arrays: Sequence[Array | None]) -> None:
        """Allocate memory for checked arguments, and copy their elements there.

        Arrays have any strides; they are None for tensors that are never touched.
        """
        present = [(p, a) for p, a in zip(params, arrays, strict=True) if a is not None]
        self.places |= {
            p: DeviceTensor(0, 0) for p, a in zip(params, arrays, strict=True) if a is None
        }
        for low, high, members in _shared_spans(present):
            block = self._allocate(high - low, tuple(p.name for p, _ in members))
            for param, array in members:
                offset = _address(array) - low
                copy: Array = np.ndarray(
                    array.shape, array.dtype, block.raw, block.start + offset, array.strides
                )
                copy[...] = array
                self._copies.append((param.name, array, copy))
                size = _span(array)[1] - _address(array)
                self.places[param] = DeviceTensor(block.address + offset, size)

    def add_workspace(self, buffer: Buffer, size: int) -> None:
        """Allocate `size` bytes with undefined contents."""
        block = self._allocate(size, (buffer.name,))
        self.places[buffer] = DeviceTensor(block.address, size)

    def check_red_zones(self) -> None:
        """Raise `OutOfBounds` if something was written beside a tensor: which, and how far away."""
        for block in self._blocks:
            end = block.start + block.bytes
            before, after = block.raw[: block.start], block.raw[end:]
            wrong_before, wrong_after = (np.flatnonzero(z != _RED) for z in (before, after))
            if wrong_before.size or wrong_after.size:
                where = (
                    f"{block.start - wrong_before[-1]} bytes in front of"
                    if wrong_before.size
                    else f"{wrong_after[0] + 1} bytes behind the end of"
                )
                raise OutOfBounds(
                    f"the kernel wrote {where} {' and '.join(map(repr, block.names))}",
                    hint="turn the checks on to see the line: TILE_CHECK=all",
                )

    def copy_back(self) -> None:
        """Bring what the kernel changed back into the arguments."""
        for name, array, copy in self._copies:
            if np.array_equal(_bits(array), _bits(copy)):
                continue
            if not array.flags.writeable:
                raise LaunchError(
                    f"the kernel writes {name!r}, whose memory is read-only",
                    hint="pass a copy that may be written",
                )
            array[...] = copy

    def _allocate(self, size: int, names: tuple[str, ...]) -> _Block:
        raw = np.full(RED_ZONE + ALIGNMENT + size + RED_ZONE, _RED, np.uint8)
        start = RED_ZONE + -(int(raw.ctypes.data) + RED_ZONE) % ALIGNMENT
        raw[start : start + size] = _UNDEFINED
        block = _Block(raw, start, size, names)
        self._blocks.append(block)
        return block


def _shared_spans(
    pairs: Sequence[tuple[Buffer, Array]],
) -> list[tuple[int, int, list[tuple[Buffer, Array]]]]:
    """Return disjoint spans of host memory, and the tensors that lie in each."""
    spans: list[tuple[int, int, list[tuple[Buffer, Array]]]] = []
    for param, array in sorted(pairs, key=lambda pair: _span(pair[1])):
        low, high = _span(array)
        if spans and low < spans[-1][1]:
            start, end, members = spans[-1]
            spans[-1] = (start, max(end, high), [*members, (param, array)])
        else:
            spans.append((low, high, [(param, array)]))
    return spans


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _span(array: Array) -> tuple[int, int]:
    """Return the first byte of the elements and the one behind the last, by address."""
    address = _address(array)
    if array.size == 0:
        return address, address
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low = address + sum(s for s in steps if s < 0)
    return low, address + sum(s for s in steps if s > 0) + array.itemsize


def _bits(array: Array) -> Array:
    """Return the elements as integers, among which equal means the same bits."""
    return array.view(f"u{array.itemsize}")


@dataclass(frozen=True, slots=True)
class PackedNibbles:
    """A NumPy array of four-bit elements, and its elements two to a byte, low nibble first."""

    array: np.ndarray[Any, Any]
    bytes: np.ndarray[Any, Any]

    @classmethod
    def needs(cls, param: Buffer, array: np.ndarray[Any, Any]) -> bool:
        """Whether `array` has to be packed for the parameter."""
        return param.dtype.packing > 1 and array.dtype not in (np.dtype("i1"), np.dtype("u1"))

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> PackedNibbles:
        """Pack the elements of `array`, whose last extent is even."""
        nibbles = np.ascontiguousarray(array).view(np.uint8) & 15
        return cls(array, nibbles[..., 0::2] | (nibbles[..., 1::2] << 4))

    def unpack(self) -> None:
        """Bring the elements back into the array."""
        both = np.stack([self.bytes & 15, self.bytes >> 4], axis=-1).reshape(self.array.shape)
        if self.array.dtype.name == "int4":
            both = (both.astype(np.int8) ^ 8) - 8
            self.array[...] = both.astype(self.array.dtype)
        elif self.array.dtype.name == "uint4":
            self.array[...] = both.astype(self.array.dtype)
        else:
            self.array[...] = both.view(self.array.dtype)
