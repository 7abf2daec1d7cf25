"""The tiles and tensors of a launch that is written, and where its blocks are in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from fuzz.elements import ELEMENTS
from fuzz.operations import apply, const, load, name
from fuzz.program import Expr, Region, Tensor, Tile
from fuzz.scene import TYPES, Axis, Known, Scene

INDEX_NAMES = ("i", "j", "k")


@dataclass
class Places:
    """A launch as far as it is written: its axes, tiles, and the names that a place knows."""

    scene: Scene
    rng: Random
    axes: list[Axis] = field(default_factory=list)
    tiles: list[Tile] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    names: list[Expr] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    safe: dict[str, int] = field(default_factory=dict)
    without: set[str] = field(default_factory=set)
    """Kinds of statements that this launch does without: others come together more often."""
    depth: int = 0

    def new_tile(self, axes: tuple[int, ...], dtype: str, scope: str | None = None) -> Tile:
        shape = tuple(self.axes[a].extent for a in axes) or (1,)
        scope = scope or self.rng.choice(("shared", "fragment"))
        made = Tile(self.scene.fresh("s" if scope == "shared" else "f"), dtype, shape, scope)
        self.tiles.append(made)
        return made

    def know(self, tile: Tile, axes: tuple[int, ...], low: int, high: int) -> Known:
        """Note that a tile has values; what is written later is limited to these bounds."""
        element = ELEMENTS[tile.dtype]
        made = Known(tile, axes, max(element.low, min(low, -4)), min(element.high, max(high, 4)))
        self.known.append(made)
        return made

    def all_axes(self) -> tuple[int, ...]:
        return tuple(range(len(self.axes)))

    def some_axes(self) -> tuple[int, ...]:
        every = self.all_axes()
        chosen = tuple(a for a in every if self.rng.random() < 0.5)
        return chosen or (self.rng.choice(every),)

    def input(self, axes: tuple[int, ...], dtype: str | None = None) -> Tensor:
        """Return a tensor to load from: a new one, or one that an earlier launch wrote."""
        rank = len(axes)
        usable = [
            t for t in self.scene.tensors.values()
            if len(t.shape) == rank and not t.output and t.name not in self.written
            and not t.name.startswith("G")
            and dtype in (None, t.dtype)
        ]  # fmt: skip
        if usable and self.rng.random() < 0.5:
            return self.rng.choice(usable)
        kind = dtype or self.rng.choice(TYPES)
        made = self.scene.tensor("A", kind, self.ragged(axes), self.bounds(kind), False)
        if self.rng.random() < 0.1 and kind != "bool":
            self.safe[made.name] = self.rng.choice([v for v in (-1, 1, 3) if v >= made.low])
        return made

    def ragged(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """Return extents of a tensor over which tiles hang, or not."""
        rng, shape = self.rng, []
        for a in axes:
            whole = self.axes[a].extent * self.axes[a].blocks
            cut = rng.choice((0, 0, rng.randrange(self.axes[a].extent), -rng.randrange(1, 6)))
            shape.append(max(1, whole - cut))
        return tuple(shape)

    def bounds(self, dtype: str) -> tuple[int, int]:
        element = ELEMENTS[dtype]
        if element.wraps and self.rng.random() < 0.15:
            return element.low, element.high
        return max(element.low, -4), min(element.high, 4)

    def start(self, axis: int, loop: Expr | None = None) -> Expr:
        """Return where the region of this block begins along an axis, more or less."""
        a, rng = self.axes[axis], self.rng
        place = a.origin if a.blocks > 1 else const(0)
        most = place.high  # the loop may have one iteration for all that the language knows
        if loop is not None and rng.random() < 0.7:
            step = apply("mul", loop, const(rng.choice((1, 2, a.extent))))
            place = step if place.kind == "const" else apply("add", place, step)
        shift = rng.choice((0, 0, 0, 1, 3, -1, -5, 8))
        # An index that is negative for certain counts from the end, as Python's do.
        if most + shift < 0:
            shift = -shift
        if place.kind == "const":
            return const(place.data + shift)
        return apply("add", place, const(shift)) if shift else place

    def region(self, t: Tensor, axes: tuple[int, ...]) -> Region:
        loops = [n for n in self.names if str(n.data).startswith("l")]
        loop = self.rng.choice(loops) if loops else None
        starts = [self.start(a, loop) for a in axes]
        if self.rng.random() < 0.15:
            starts[0] = self.from_tensor(t.shape[0])
        if self.rng.random() < 0.3:
            return Region(t.name, tuple(starts), tuple(self.axes[a].extent for a in axes), True)
        return Region(t.name, tuple(starts))

    def from_tensor(self, extent: int) -> Expr:
        """Return an index out of a tensor of indices; some are outside."""
        found = [
            t for t in self.scene.tensors.values()
            if t.name.startswith("I") and t.high <= extent + 2 and t.name not in self.written
        ]  # fmt: skip
        if not found or self.rng.random() < 0.3:
            found = [self.scene.tensor("I", "int32", (8,), (-2, extent + 2), False)]
        t = self.rng.choice(found)
        at = self.rng.choice(
            [n for n in self.names if n.dtype == "int32" and 0 <= n.low and n.high < 8]
        )
        return load(t.name, "int32", (min(t.low, 0), t.high), at)

    def loops(self, axes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
        return tuple((INDEX_NAMES[a], self.axes[a].extent) for a in axes)

    def indices(self, axes: tuple[int, ...]) -> tuple[Expr, ...]:
        return tuple(name(INDEX_NAMES[a], 0, self.axes[a].extent - 1) for a in axes)

    def places(self) -> tuple[Expr, ...]:
        """Return where an element of the nest is in a tensor of the output's form."""
        return tuple(
            apply("add", self.axes[a].origin, i) if self.axes[a].blocks > 1 else i
            for a, i in zip(self.all_axes(), self.indices(self.all_axes()), strict=True)
        )

    def element(self, k: Known) -> Expr:
        index = self.indices(k.axes) or (const(0),)
        return load(k.tile.name, k.tile.dtype, (k.low, k.high), *index)
