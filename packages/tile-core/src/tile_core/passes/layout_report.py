"""The layouts of a kernel's tiles, for people to read."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.errors import FrontendValueError, Span
from tile_core.ir.buffer import Buffer
from tile_core.layout import Fragment, Layout, draw, svg
from tile_core.layout.loop_layout import LoopLayout
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Who fixed a layout: an operator, an annotation, or nobody, and where that stands."""

    who: str
    span: Span | None = None

    @property
    def is_annotation(self) -> bool:
        """Whether the user fixed it."""
        return self.who == "T.annotate_layout"

    def __str__(self) -> str:
        return self.who if self.span is None else f"{self.who}, {self.span.file}:{self.span.line}"


@dataclass(frozen=True, slots=True)
class StoredTile:
    """One tile, how it is stored, and who asked for that."""

    buffer: Buffer
    layout: Layout | Fragment
    reason: Reason

    def __str__(self) -> str:
        return f"{self.buffer.name}: {self.buffer.dtype}, {self.layout!r}, by {self.reason}"

    def draw(self, max_rows: int = 32, max_columns: int = 32) -> str:
        """Return a grid of where the elements are; see `tile_core.layout.draw`."""
        return draw(self.layout, max_rows, max_columns)

    def to_svg(self) -> str:
        """Return the picture as an SVG document; see `tile_core.layout.svg`."""
        return svg(self.layout)


@dataclass(frozen=True, slots=True)
class LoopOrder:
    """One parallel loop, and which thread runs each of its iterations."""

    who: str
    span: Span | None
    loop: LoopLayout

    def __str__(self) -> str:
        extents = "x".join(map(str, self.loop.extents)) or "1"
        each = f"{self.loop.rounds} iterations of {self.loop.vector}"
        return f"{Reason(self.who, self.span)}: {extents} in {each}, {self.loop.fragment!r}"

    def draw(self, max_rows: int = 32, max_columns: int = 32) -> str:
        """Return a grid of the threads that run the iterations, and their numbers there."""
        return draw(self.loop.fragment, max_rows, max_columns)

    def to_svg(self) -> str:
        """Return the picture as an SVG document; see `tile_core.layout.svg`."""
        return svg(self.loop.fragment)


@dataclass(frozen=True, slots=True)
class LayoutReport:
    """The tiles of a kernel and who runs its loops; ``str`` gives a line for each.

    Parameters
    ----------
    tiles
        In the order of their allocation.
    loops
        The parallel loops, element-wise operators among them, in the order of the program.
        None where blocks are single threads.
    """

    tiles: tuple[StoredTile, ...]
    loops: tuple[LoopOrder, ...] = ()

    def __iter__(self) -> Iterator[StoredTile]:
        return iter(self.tiles)

    def __len__(self) -> int:
        return len(self.tiles)

    def __getitem__(self, name: str) -> StoredTile:
        """Return the first tile called `name`.

        Raises
        ------
        FrontendValueError
            If there is none.
        """
        for tile in self.tiles:
            if tile.buffer.name == name:
                return tile
        names = ", ".join(tile.buffer.name for tile in self.tiles) or "none"
        raise FrontendValueError(
            f"no tile is called {name!r}", hint=f"after all passes there are: {names}"
        )

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.tiles, *self.loops)))

    def draw(self, max_rows: int = 32, max_columns: int = 32) -> str:
        """Return the line of each tile and loop, and below it where its elements are."""
        items: list[StoredTile | LoopOrder] = [*self.tiles, *self.loops]
        return "\n\n".join(f"{item}\n{item.draw(max_rows, max_columns)}" for item in items)
