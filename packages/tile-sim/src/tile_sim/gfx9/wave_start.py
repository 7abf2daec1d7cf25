"""How a wave begins: the registers that a machine fills, and the segment of arguments."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_core.errors import ArgumentCountError, ArgumentDtypeError
from tile_sim.gfx9.arrays import LANES, Array, bits_of
from tile_sim.gfx9.metadata import Argument, KernelInfo
from tile_sim.gfx9.wave import Wave

_USER_PARTS = (
    ("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2),
    ("kernarg_segment_ptr", 2), ("dispatch_id", 2), ("flat_scratch_init", 2),
    ("private_segment_size", 1),
)  # fmt: skip
_WIDER = 128
"""Loads of arguments may be rounded up beyond the end of the segment."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The size of a launch: workgroups of the grid, lanes of a workgroup, in x, y, z."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def threads(self) -> int:
        """Return how many lanes of a workgroup are on."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def waves(self) -> int:
        """Return how many waves a workgroup has."""
        return -(-self.threads // LANES)


def is_pointer(argument: Argument) -> bool:
    """Say whether an argument is the address of a buffer."""
    return argument.kind in {"global_buffer", "dynamic_shared_pointer"}


def visible(info: KernelInfo) -> list[Argument]:
    """Return the arguments that a caller passes."""
    return [a for a in info.arguments if not a.kind.startswith("hidden_")]


def segment(
    info: KernelInfo, arguments: Sequence[Any], addresses: Sequence[int], geometry: Geometry,
    shared_bytes: int,
) -> Array:  # fmt: skip
    """Return the bytes of all arguments, hidden ones among them."""
    size = info.numbers.get("kernarg_segment_size", 0)
    raw = bytearray(-(-size // 16) * 16 + _WIDER)
    places = iter(addresses)
    for argument, value in zip(visible(info), arguments, strict=True):
        if is_pointer(argument):
            data = struct.pack("<Q", 0 if value is None else next(places))
        else:
            data = _bytes_of(value, argument)
        raw[argument.offset : argument.offset + argument.size] = data
    for argument in info.arguments:
        if argument.kind.startswith("hidden_"):
            number = _hidden(argument.kind.removeprefix("hidden_"), geometry, shared_bytes)
            end = argument.offset + argument.size
            raw[argument.offset : end] = number.to_bytes(argument.size, "little")
    return np.frombuffer(bytes(raw), np.uint8)


def check_count(info: KernelInfo, arguments: Sequence[Any]) -> None:
    """Raise `ArgumentCountError` unless there is one value for each argument."""
    expected = len(visible(info))
    if len(arguments) != expected:
        raise ArgumentCountError(
            f"{info.name} has {expected} arguments, and {len(arguments)} were given"
        )


def _bytes_of(value: Any, argument: Argument) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        data = bytes(value)
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        data = np.asarray(value).tobytes()
    elif isinstance(value, int):
        data = (value % (1 << 8 * argument.size)).to_bytes(argument.size, "little")
    else:
        data = struct.pack({2: "<e", 4: "<f", 8: "<d"}[argument.size], value)
    if len(data) != argument.size:
        raise ArgumentDtypeError(
            f"the argument at byte {argument.offset} has {argument.size} bytes, not {len(data)}"
        )
    return data


def _hidden(kind: str, geometry: Geometry, shared_bytes: int) -> int:
    """Return what the launch passes on its own: sizes in each direction, zeros otherwise."""
    name, _, axis = kind.rpartition("_")
    position = "xyz".find(axis)
    if name == "block_count":
        return geometry.grid[position]
    if name == "group_size":
        return geometry.block[position]
    if kind == "grid_dims":
        return max(1 + i for i in range(3) if i == 0 or geometry.grid[i] > 1)
    return shared_bytes if kind == "dynamic_lds_size" else 0


def dispatch_packet(geometry: Geometry) -> Array:
    """Return the packet that started the kernel: 64 bytes, of which sizes are filled in."""
    raw = bytearray(64)
    struct.pack_into("<HHH", raw, 4, *geometry.block)
    lanes = [g * b for g, b in zip(geometry.grid, geometry.block, strict=True)]
    struct.pack_into("<III", raw, 12, *lanes)
    return np.frombuffer(bytes(raw), np.uint8)


def begin(
    wave: Wave,
    descriptor: Mapping[str, int],
    geometry: Geometry,
    position: tuple[int, int, int],
    pointers: Mapping[str, int],
) -> None:
    """Fill the registers of a wave as the machine does."""
    number = 0
    for part, count in _USER_PARTS:
        if descriptor.get(f"user_sgpr_{part}", 0):
            address = pointers.get(part, 0)
            for word in range(count):
                wave.scalars[number + word] = address >> 32 * word & 0xFFFFFFFF
            number += count
    number = descriptor.get("user_sgpr_count", number)
    for axis, place in zip("xyz", position, strict=True):
        if descriptor.get(f"system_sgpr_workgroup_id_{axis}", int(axis == "x")):
            wave.scalars[number] = place
            number += 1
    # What is left tells waves apart in one block of scratch memory; here each has its own.
    number += descriptor.get("system_sgpr_workgroup_info", 0)
    wave.scalars[number] = 0
    thread = wave.index * LANES + np.arange(LANES)
    x, y = thread % geometry.block[0], thread // geometry.block[0] % geometry.block[1]
    z = thread // (geometry.block[0] * geometry.block[1])
    depth = descriptor.get("system_vgpr_workitem_id", 0)
    packed = x | (y << 10 if depth > 0 else 0) | (z << 20 if depth > 1 else 0)
    wave.rows[0][...] = packed.astype(np.uint32)
    wave.set_exec(bits_of(thread < geometry.threads))
