"""What reports need to know of a launch to speak of it in the user's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tile_core.errors import Span


@dataclass(frozen=True, slots=True)
class Tile:
    """A buffer in shared memory.

    Parameters
    ----------
    start, bytes
        Its place in the block's arena.
    itemsize
        Bytes of an element.
    span
        Where the user declared it.
    """

    name: str
    start: int
    bytes: int
    itemsize: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in global memory.

    Parameters
    ----------
    shape, strides
        In elements.
    itemsize
        Bytes of an element.
    """

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """The places and names of one launch.

    Parameters
    ----------
    lines
        Where the user wrote what a line of the emitted source does.
    tiles
        Buffers in shared memory; their places may overlap, for lifetimes do not.
    tensors
        By name.
    rank
        Dimensions of the grid.
    text
        The lines of the emitted source.
    """

    lines: Mapping[int, Span]
    tiles: tuple[Tile, ...] = ()
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    rank: int = 1
    text: tuple[str, ...] = ()

    def span(self, line: int) -> Span | None:
        """Return the user's line behind a line of the emitted source, or None.

        A line that has none of its own belongs to the closest one above it.
        """
        return next((self.lines[n] for n in range(line, 0, -1) if n in self.lines), None)

    def in_users_lines(self, text: str) -> str:
        """Return `text` with lines of the emitted source replaced by those of the user."""

        def told(match: re.Match[str]) -> str:
            span = self.span(int(match[1]))
            return match[0] if span is None else f"{Path(span.file).name}:{span.line}"

        return re.sub(r"\bline (\d+)\b", told, text)

    def block(self, index: Sequence[int]) -> str:
        """Return a block's name, with as many coordinates as the grid has dimensions."""
        return f"block ({', '.join(map(str, index[: self.rank]))})"

    def tile(self, start: int, size: int, offset: int, line: int) -> Tile | None:
        """Return the buffer of shared memory that an access is about, or None.

        Parameters
        ----------
        start, size
            The logical buffer that the access belongs to, or all of the block's memory if that
            is not known; then the place decides, and among tiles that take turns in one place
            the one that the line names.
        offset
            From `start` on.
        """
        exact = [t for t in self.tiles if (t.start, t.bytes) == (start, size)]
        at = start + offset
        found = exact or [t for t in self.tiles if t.start <= at < t.start + t.bytes]
        words = set(re.findall(r"\w+", self.text[line - 1])) if line <= len(self.text) else set()
        return next((t for t in found if t.name in words), found[0] if found else None)

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
