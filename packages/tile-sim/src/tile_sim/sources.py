"""Kernels written by hand in the form of the printer, run on the emulator."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from tile_core.dtypes import dtype_of
from tile_core.errors import Span
from tile_core.ir.buffer import Buffer, Scope
from tile_sim.abi import CBuffer
from tile_sim.build import kernel_library
from tile_sim.call_report import SimReport, remember, rows_of
from tile_sim.finding_errors import error_of
from tile_sim.launch_debug_info import LaunchDebugInfo, Tensor, TileDebugInfo
from tile_sim.library import Geometry, KernelLibrary
from tile_sim.memory import DeviceMemory, DeviceTensor
from tile_sim.settings import current_settings
from tile_sim.tensor_maps import Boxes, c_tensor_map, written_maps

_TILE = re.compile(
    r"tile::sptr<(?P<type>[\w:]+)>\s+(?P<name>\w+)\s*=\s*tile::smem<[\w:]+>"
    r"\((?P<start>\d+),\s*(?P<count>\d+)\)"
)
_WIDTHS = {
    "bool": 1, "char": 1, "tile::i8": 1, "tile::u8": 1, "tile::e4m3": 1, "tile::e5m2": 1,
    "tile::e4m3_fnuz": 1, "tile::e5m2_fnuz": 1,
    "half_t": 2, "bfloat16_t": 2, "tile::i16": 2, "tile::u16": 2,
    "tile::i64": 8, "tile::u64": 8, "double": 8,
}  # fmt: skip


class SourceKernel:
    """A kernel in C++, in the form that `tile_core.codegen` prints.

    Reports name lines of `text` as lines of `file`, tiles of shared memory as they are declared
    (``tile::sptr<float> s = tile::smem<float>(0, 256);``), and tensors as arguments are named.

    Parameters
    ----------
    text
        Includes ``tile.h`` and exports the kernel: ``TILE_EXPORT(name)``.
    name
        Which of its kernels to run.
    block
        Threads of a block: x, y, z.
    shared_bytes
        Shared memory of a block.
    warp_size
        32, or 64 as on AMD's machines.
    banks
        Of shared memory, for the counters.
    file
        What reports call the text.

    Raises
    ------
    ToolchainError
        If there is no C++ compiler, or it does not accept the text.
    """

    def __init__(
        self,
        text: str,
        name: str,
        *,
        block: tuple[int, ...] | int,
        shared_bytes: int = 0,
        warp_size: int = 32,
        banks: int = 32,
        file: str = "kernel.cu",
    ) -> None:
        self.name, self.block, self.shared_bytes = name, _three(block), shared_bytes
        self.warp_size, self.banks = warp_size, banks
        self.lines, self.tiles = _lines(text, file), _tiles(text, file)
        self.text, self.cluster = tuple(text.splitlines()), _cluster(text, name)
        self.resident = _resident(text, name)
        self._library = KernelLibrary.load(kernel_library(text, name, warp_size=warp_size))

    def __call__(self, grid: tuple[int, ...] | int, **arguments: Any) -> SimReport:
        """Run a grid on NumPy arrays and numbers, given by name in the order of the parameters.

        A tensor map is given as `tile_sim.tensor_maps.Boxes` of its array.

        Numbers need a type of NumPy's, such as ``np.int32(5)``; a Python int is an int32, a
        float a float32.

        Raises
        ------
        TileError
            What the checks found first.
        """
        settings = current_settings()
        report = SimReport(self.name, settings)
        memory, arrays = DeviceMemory(), dict[Buffer, Any]()
        for name, value in arguments.items():
            array = value.array if isinstance(value, Boxes) else value
            if isinstance(array, np.ndarray) and array.ndim:
                dtype = dtype_of(array.dtype.name)
                arrays[Buffer(name, array.shape, dtype, Scope.GLOBAL)] = array
        memory.add_tensors([*arrays], [*arrays.values()])
        places = {buffer.name: memory.places[buffer] for buffer in arrays}
        values = [self._argument(name, value, places) for name, value in arguments.items()]
        sizes = Geometry(
            _three(grid), self.block, self.shared_bytes, self.warp_size, self.cluster, self.banks,
            self.resident,
        )  # fmt: skip
        outcome = self._library.launch(self.name, values, sizes, settings)
        rank = 1 if isinstance(grid, int) else len(grid)
        info = LaunchDebugInfo(self.lines, self.tiles, _tensors(arrays), rank, self.text)
        rows = rows_of(outcome.counts, info)
        report = report.with_launch(rows, outcome.findings, outcome.statistics)
        remember(report)
        sys.stdout.write(outcome.output)
        if outcome.findings:
            raise error_of(outcome.findings, info)
        memory.check_red_zones()
        memory.copy_back()
        return report

    def _argument(self, name: str, value: Any, places: Mapping[str, DeviceTensor]) -> Any:
        if name not in places:
            return _number(value)
        place = places[name]
        if isinstance(value, Boxes):
            found = value.values(name, place.address)
            is_written = name in written_maps("\n".join(self.text))
            return c_tensor_map(found, name, place, is_written=is_written)
        return CBuffer(place.address, place.bytes, name.encode(), None)


def _three(extents: tuple[int, ...] | int) -> tuple[int, int, int]:
    x, y, z = (*((extents,) if isinstance(extents, int) else extents), 1, 1)[:3]
    return x, y, z


def _lines(text: str, file: str) -> dict[int, Span]:
    """Return the place of each line, without the blanks in front."""
    return {
        number: Span(file, number, len(line) - len(line.lstrip()), len(line.rstrip()))
        for number, line in enumerate(text.splitlines(), 1)
    }


def _cluster(text: str, name: str) -> tuple[int, int, int]:
    """Return the extents that the kernel says it needs: ``TILE_CLUSTER(2, 1, 1) void name(``."""
    found = re.search(rf"TILE_CLUSTER\((\d+), (\d+), (\d+)\)\s+void\s+{name}\b", text)
    return (1, 1, 1) if found is None else (int(found[1]), int(found[2]), int(found[3]))


def _resident(text: str, name: str) -> int:
    """Return how many blocks are to share a multiprocessor: ``TILE_KERNEL(384, 2) void name(``."""
    found = re.search(rf"TILE_KERNEL\(\d+, (\d+)\)[^;{{}}]*\bvoid\s+{name}\b", text)
    return 1 if found is None else int(found[1])


def _tiles(text: str, file: str) -> tuple[TileDebugInfo, ...]:
    """Return the buffers of shared memory that `text` declares."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in _TILE.finditer(line):
            width = _WIDTHS.get(match["type"], 4)
            span = Span(file, number, match.start("name"), match.end("name"))
            size = int(match["count"]) * width
            found.append(TileDebugInfo(match["name"], int(match["start"]), size, width, span))
    return tuple(found)


def _tensors(arrays: dict[Buffer, Any]) -> dict[str, Tensor]:
    return {
        b.name: Tensor(
            b.name, a.shape, tuple(s // a.itemsize for s in a.strides), a.itemsize
        )
        for b, a in arrays.items()
    }  # fmt: skip


def _number(value: Any) -> Any:
    if not isinstance(value, np.generic):
        value = np.float32(value) if isinstance(value, float) else np.int32(value)
    return (ctypes.c_ubyte * value.nbytes).from_buffer_copy(value.tobytes())
