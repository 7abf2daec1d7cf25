"""What is known while a program is written: its parameters, its axes, what is in its tiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from fuzz.elements import ELEMENTS
from fuzz.operations import apply, const, name
from fuzz.program import Expr, Scalar, Tensor, Tile

LIMITS = (0, 1, -1, 7, 100, (1 << 31) - 1, -(1 << 31), (1 << 31) - 2, 1 << 30)
TYPES = (
    "float32", "float32", "float16", "float16", "int32", "int32", "bfloat16", "int8", "uint8",
    "int64", "int16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "bool", "float64",
)  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """A dimension of the launch: how long a tile is, and the block that it belongs to."""

    extent: int
    blocks: int
    block: Expr

    @property
    def origin(self) -> Expr:
        return apply("mul", self.block, const(self.extent))


@dataclass
class Scene:
    """What is known while a program is written: its parameters."""

    rng: Random
    small: bool = False
    """Whether launches have a few statements and short expressions."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    scalars: list[Scalar] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    made: int = 0

    def fresh(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def tensor(
        self, letter: str, dtype: str, shape: tuple[int, ...], bounds: tuple[int, int], output: bool
    ) -> Tensor:
        """Return another tensor; some of its extents are known at run time only."""
        if ELEMENTS[dtype].bits == 4:
            shape = (*shape[:-1], shape[-1] + shape[-1] % 2)
        symbols = [self.symbol(n) if self.rng.random() < 0.25 else None for n in shape]
        if ELEMENTS[dtype].bits == 4:
            symbols[-1] = None
        made = Tensor(self.fresh(letter), dtype, shape, tuple(symbols), *bounds, output)
        self.tensors[made.name] = made
        return made

    def symbol(self, extent: int) -> str:
        """Return a symbol for `extent`, perhaps one that another dimension has, too."""
        known = [
            s for t in self.tensors.values() for s in t.symbols if s and extent_of(t, s) == extent
        ]
        return self.rng.choice(known) if known and self.rng.random() < 0.5 else self.fresh("m")


def extent_of(t: Tensor, symbol: str) -> int:
    return t.shape[t.symbols.index(symbol)]


@dataclass
class Known:
    """A tile that has values: which axes it has, and between which numbers they are."""

    tile: Tile
    axes: tuple[int, ...]
    low: int
    high: int


def anything(n: Expr) -> Expr:
    return name(str(n.data), -(1 << 31), (1 << 31) - 1, n.dtype)
