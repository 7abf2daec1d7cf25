"""What reports need to know of a launch to speak of it in the user's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tile_core.errors import Span
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import nodes_of
from tile_core.layout import Layout

if TYPE_CHECKING:
    from tile_core.ir.stmt import Kernel
    from tile_core.passes.infer_layouts import Layouts
    from tile_core.simt.program import DeviceFunction


BARRIER_BYTES = 8
"""Of a barrier in shared memory."""

_REGISTERS = re.compile(r"tile::frag<[\w:]+, (\d+)> (\w+)")


@dataclass(frozen=True, slots=True)
class TileDebugInfo:
    """A buffer in shared memory, at its place in the block's arena.

    The layout, if it is known, is from the user's coordinates to places. If it is versioned, the
    first coordinate numbers the versions that a pipeline made of the user's tile.
    """

    name: str
    start: int
    bytes: int
    itemsize: int
    span: Span | None = None
    layout: Layout | None = None
    is_versioned: bool = False

    def element(self, offset: int) -> str:
        """Return how the user writes the element `offset` bytes from the start.

        Without a layout, and for places between elements, it is counted in memory.
        """
        number = offset // self.itemsize
        coords = None if self.layout is None else _coordinates(self.layout, number)
        if coords is None:
            return f"element {number} of {self.name}"
        version = ""
        if self.is_versioned:
            version = f" (version {coords[0]} of the pipeline)"
            coords = coords[1:]
        return f"{self.name}[{', '.join(map(str, coords))}]{version}"


def _coordinates(layout: Layout, place: int) -> tuple[int, ...] | None:
    """Return the coordinates that lie at a place, or None if none do."""
    grid = np.indices(layout.shape)
    found = np.argwhere(np.broadcast_to(layout.address(*grid) == place, layout.shape))
    return tuple(int(x) for x in found[0]) if len(found) else None


def tiles_of(
    function: DeviceFunction, layouts: Layouts | None, kernel: Kernel
) -> tuple[TileDebugInfo, ...]:
    """Return the buffers in shared memory of a launch, with the layouts of their tiles.

    The kernel is as the user wrote it: its tiles tell which dimensions are the user's.
    """
    written = {(b.name, b.span): b.rank for b in nodes_of(kernel, Buffer)}
    known = {} if layouts is None else {(b.name, b.span): b for b in layouts.known}
    tiles = []
    for flat, start in function.shared.items():
        key = (flat.name, flat.span)
        tile = known.get(key)
        found = None if tile is None or layouts is None else layouts.known[tile]
        is_its = isinstance(found, Layout) and (found.cosize,) == flat.static_shape
        layout = found if isinstance(found, Layout) and is_its else None
        is_versioned = layout is not None and layout.rank == written.get(key, layout.rank) + 1
        size = flat.nbytes or 0
        tiles.append(
            TileDebugInfo(
                flat.name, start, size, flat.dtype.itemsize, flat.span, layout, is_versioned
            )
        )
    return tuple(tiles)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in global memory; strides are in elements."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class LaunchDebugInfo:
    """The places and names of one launch, and its emitted source.

    `lines` tell where the user wrote what a line of that does. The places of tiles may overlap, for
    lifetimes do not. `rank` are the dimensions of the grid.
    """

    lines: Mapping[int, Span]
    tiles: tuple[TileDebugInfo, ...] = ()
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    rank: int = 1
    text: tuple[str, ...] = ()

    def span(self, line: int) -> Span | None:
        """Return the user's line behind a line of the emitted source, or None.

        A line that has none of its own belongs to the closest one above it.
        """
        return next((self.lines[n] for n in range(line, 0, -1) if n in self.lines), None)

    def in_users_words(self, text: str) -> str:
        """Return `text` with the lines of the user, and with the names of barriers in memory."""

        def line(match: re.Match[str]) -> str:
            span = self.span(int(match[1]))
            return match[0] if span is None else f"{Path(span.file).name}:{span.line}"

        def barrier(match: re.Match[str]) -> str:
            at = int(match[1])
            for tile in self.tiles:
                if tile.itemsize == BARRIER_BYTES and tile.start <= at < tile.start + tile.bytes:
                    return f"the mbarrier {tile.name}[{(at - tile.start) // BARRIER_BYTES}]"
            return match[0]

        named = re.sub(r"\bthe mbarrier at byte (\d+)", barrier, text)
        return re.sub(r"\bline (\d+)\b", line, named)

    def block(self, index: Sequence[int]) -> str:
        """Return a block's name, with as many coordinates as the grid has dimensions."""
        return f"block ({', '.join(map(str, index[: self.rank]))})"

    def tile(self, start: int, size: int, offset: int, line: int) -> TileDebugInfo | None:
        """Return the buffer of shared memory that an access is about, or None.

        An access belongs to the logical buffer at `start`, or to all of the block's memory if that
        is not known; then the place decides, `offset` bytes on, and among tiles that take turns in
        one place the one that the line names.
        """
        exact = [t for t in self.tiles if (t.start, t.bytes) == (start, size)]
        at = start + offset
        found = exact or [t for t in self.tiles if t.start <= at < t.start + t.bytes]
        words = set(re.findall(r"\w+", self.text[line - 1])) if line <= len(self.text) else set()
        return next((t for t in found if t.name in words), found[0] if found else None)

    def registers(self, count: int, line: int) -> str:
        """Return the name of the array of registers that a line reads, if it is one.

        Where it reads several, those that the same line of the user made are left out. The array
        has `count` registers, or 0 if that is not known.
        """
        text = self.text[line - 1] if line <= len(self.text) else ""
        declared: dict[str, Span | None] = {
            name: self.lines.get(number)
            for number, declaration in enumerate(self.text, 1)
            for size, name in _REGISTERS.findall(declaration)
            if count in (0, int(size))
        }
        users = {name for name, span in declared.items() if span not in (None, self.span(line))}
        for part in (text, text.partition(" = ")[2]):
            for names in (declared.keys(), users):
                found = names & set(re.findall(r"\w+", part))
                if len(found) == 1:
                    return found.pop()
        return "a tile in registers"

    def element(self, tensor: Tensor, offset: int) -> str:
        """Return how the user writes the element of a tensor, `offset` bytes from its start.

        An element behind the end of a row is the first of the next row; one behind the end of
        the tensor has a first index that is too large.
        """
        rest = offset // tensor.itemsize
        order = sorted(range(len(tensor.shape)), key=lambda axis: -tensor.strides[axis])
        index = [0] * len(tensor.shape)
        for axis in order:
            if tensor.strides[axis]:
                index[axis], rest = divmod(rest, tensor.strides[axis])
        return f"{tensor.name}[{', '.join(map(str, index))}]"
