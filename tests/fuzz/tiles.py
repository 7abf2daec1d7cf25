"""Random programs of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from fuzz.elements import ELEMENTS
from fuzz.exclusions import excluded
from fuzz.expressions import Source
from fuzz.operations import apply, cast, clamp, const, load, name
from fuzz.program import (
    BLOCKS,
    Atomic,
    Copy,
    Expr,
    Fill,
    Gemm,
    Hint,
    If,
    Launch,
    Loop,
    Parallel,
    Program,
    Reduce,
    Region,
    Scalar,
    Scan,
    SetVar,
    Stmt,
    Store,
    Tensor,
    Tile,
    Transpose,
)

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 24, 31, 32, 33, 48, 64)
LIMITS = (0, 1, -1, 7, 100, (1 << 31) - 1, -(1 << 31), (1 << 31) - 2, 1 << 30)
TYPES = (
    "float32", "float32", "float16", "float16", "int32", "int32", "bfloat16", "int8", "uint8",
    "int64", "int16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "bool", "float64",
)  # fmt: skip
KINDS = (
    "compute", "load_again", "fill", "branch", "loop", "move", "transpose", "more", "reduce",
    "scan", "product", "atomic", "variable",
)  # fmt: skip
ELEMENTS_OF_TILES = 4096
MOST_ADDED = 4096
INDEX_NAMES = ("i", "j", "k")


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
        known = [s for t in self.tensors.values() for s in t.symbols if s and _of(t, s) == extent]
        return self.rng.choice(known) if known and self.rng.random() < 0.5 else self.fresh("m")


def _of(t: Tensor, symbol: str) -> int:
    return t.shape[t.symbols.index(symbol)]


def program(rng: Random) -> Program:
    """Return a random program of tiles."""
    scene = Scene(rng)
    if rng.random() < 0.5:
        scene.scalars.append(Scalar("n", "int32", rng.choice(LIMITS)))
    if rng.random() < 0.2:
        scene.scalars.append(Scalar("x", "float32", rng.randrange(-4, 5)))
    launches = tuple(
        Writer(scene, rng).whole() if rng.random() < 0.1 else Writer(scene, rng).launch()
        for _ in range(rng.choice((1, 1, 1, 1, 2, 3)))
    )
    return Program(
        tuple(scene.tensors.values()), tuple(scene.scalars), launches, rng.randrange(1 << 16)
    )


@dataclass
class Known:
    """A tile that has values: which axes it has, and between which numbers they are."""

    tile: Tile
    axes: tuple[int, ...]
    low: int
    high: int


@dataclass
class Writer:
    """Writes one launch."""

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

    def launch(self) -> Launch:
        rng = self.rng
        rank = rng.choice((1, 2, 2, 2, 2, 3))
        while True:
            extents = [rng.choice(EXTENTS) for _ in range(rank)]
            if rank == 3:
                extents[0] = rng.choice((1, 2, 3, 4))
            size = 1
            for n in extents:
                size *= n
            if size <= ELEMENTS_OF_TILES // 2:
                break
        counts = [rng.choice((1, 1, 2, 3)) for _ in range(rank)]
        # The last axis is the fastest: bx.
        blocks = [name(BLOCKS[rank - 1 - n], 0, counts[n] - 1) for n in range(rank)]
        self.axes = [Axis(*a) for a in zip(extents, counts, blocks, strict=True)]
        self.names = [
            *blocks,
            *(name(s.name, s.value, s.value, s.dtype) for s in self.scene.scalars),
        ]
        # What the compiler knows nothing about may be anything.
        self.names = [n if n.dtype != "int32" or n.data in BLOCKS else _any(n) for n in self.names]
        if rng.random() < 0.7:
            self.without = {kind for kind in KINDS if rng.random() < 0.6}
        body: list[Stmt] = [self.load_new()]
        for _ in range(rng.randrange(1, 6)):
            body += self.step()
        body += self.finish()
        grid = tuple(self.grid(n) for n in reversed(range(rank)))
        self.scene.written |= self.written
        if rng.random() < 0.15:
            order = rng.choice(("row", "column"))
            body.insert(0, Hint(f"T.use_swizzle({rng.randrange(1, 5)}, order={order!r})"))
        threads = rng.choice((32, 64, 128, 128, 256))
        return Launch(grid, threads, tuple(self.tiles), tuple(body), safe=tuple(self.safe.items()))

    def whole(self) -> Launch:
        """Return a launch of one data-parallel loop over tensors whose extents are symbols."""
        rng = self.rng
        extents = [rng.choice((1, 2, 5, 8, 17, 33)) for _ in range(rng.choice((1, 2, 2, 3)))]
        self.axes = [Axis(n, 1, const(0)) for n in extents]
        self.names = [
            name("bx", 0, 0),
            *map(_any, (name(s.name, 0, 0, s.dtype) for s in self.scene.scalars)),
        ]
        axes = self.all_axes()
        for _ in range(2):
            dtype = rng.choice([t for t in TYPES if ELEMENTS[t].bits > 4])
            self.scene.tensor("A", dtype, tuple(extents), self.bounds(dtype), False)
        with self.nest(axes) as source:
            source.leaves = [*source.leaves, *([lambda: self.direct(axes)] * 3)]
            dtype = rng.choice([t for t in TYPES if ELEMENTS[t].bits > 4])
            value = source.value(dtype)
            r = self.scene.tensor("R", dtype, tuple(extents), (value.low, value.high), True)
            body: tuple[Stmt, ...] = (Store(r.name, self.indices(axes), value),)
            if rng.random() < 0.2:
                body = (If(source.condition(1), body),)
        symbols = {
            s: n
            for t in self.scene.tensors.values()
            for s, n in zip(t.symbols, t.shape, strict=True)
            if s
        }
        shown = [
            rng.choice([s for s, n in symbols.items() if n == extent] or [extent])
            for extent in extents
        ]
        loops = tuple(zip(INDEX_NAMES, shown, strict=False))
        self.scene.written.add(r.name)
        self.written.add(r.name)
        return Launch((const(1),), rng.choice((32, 128)), (), (Parallel(loops, body),))

    def grid(self, axis: int) -> Expr:
        """Return how many blocks an axis has: computed from a symbol if one fits."""
        a = self.axes[axis]
        for t in self.scene.tensors.values():
            for s, n in zip(t.symbols, t.shape, strict=True):
                if s and -(-n // a.extent) == a.blocks and self.rng.random() < 0.7:
                    top = apply("add", name(s, 1, 1 << 20), const(a.extent - 1))
                    return apply("div", top, const(a.extent))
        return const(a.blocks)

    # -- tiles and tensors ------------------------------------------------------------------

    def new_tile(self, axes: tuple[int, ...], dtype: str, scope: str | None = None) -> Tile:
        shape = tuple(self.axes[a].extent for a in axes) or (1,)
        if ELEMENTS[dtype].bits == 4 and shape[-1] % 2:
            dtype = "int8" if dtype == "int4" else "float16"
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
        if loop is not None and rng.random() < 0.7:
            step = apply("mul", loop, const(rng.choice((1, 2, a.extent))))
            place = step if place.kind == "const" else apply("add", place, step)
        shift = rng.choice((0, 0, 0, 1, 3, -1, -5, 8))
        # An index that is negative for certain counts from the end, as Python's do.
        if place.high + shift < 0:
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

    # -- statements -------------------------------------------------------------------------

    def load_new(self) -> Stmt:
        axes = self.all_axes() if self.rng.random() < 0.7 else self.some_axes()
        t = self.input(axes)
        dtype = t.dtype if self.rng.random() < 0.7 else self.rng.choice(TYPES)
        element = ELEMENTS[dtype]
        if t.low < element.low or element.high < t.high or dtype == "bool":
            dtype = t.dtype
        region = self.region(t, axes)
        tile = self.new_tile(axes, dtype)
        safe = self.safe.get(t.name, 0)
        self.know(tile, axes, min(t.low, safe), max(t.high, safe))
        return Copy(region, Region(tile.name))

    def some_axes(self) -> tuple[int, ...]:
        every = self.all_axes()
        chosen = tuple(a for a in every if self.rng.random() < 0.5)
        return chosen or (self.rng.choice(every),)

    def load_again(self) -> list[Stmt]:
        k = self.rng.choice(self.known)
        if not k.axes:
            return []
        t = self.input(k.axes, k.tile.dtype if k.tile.dtype == "bool" else None)
        if min(t.low, 0) < k.low or k.high < max(t.high, 0) or (t.dtype == "bool" != k.tile.dtype):
            return []
        return [Copy(self.region(t, k.axes), Region(k.tile.name))]

    def step(self) -> list[Stmt]:
        kinds: list[Callable[[], list[Stmt]]] = [
            self.compute, self.compute, self.compute, self.load_again, self.fill,
        ]  # fmt: skip
        if self.depth < 2:
            kinds += [self.branch, self.loop, self.loop]
        if self.depth == 0:
            kinds += [
                self.move,
                self.transpose,
                self.more,
                self.reduce,
                self.reduce,
                self.scan,
            ]
            kinds += [self.product, self.product, self.atomic, self.variable]
        left = [kind for kind in kinds if kind.__name__ not in self.without]
        return self.rng.choice(left or kinds)()

    def more(self) -> list[Stmt]:
        return [self.load_new()]

    def move(self) -> list[Stmt]:
        """Copy a tile to another one, or some of its rows."""
        rng = self.rng
        k = rng.choice([k for k in self.known if k.axes] or [self.known[0]])
        others = [
            o
            for o in self.known
            if o.axes == k.axes and o is not k and o.low <= k.low and k.high <= o.high
        ]
        if not k.axes or k.tile.dtype == "bool":
            return []
        others = [o for o in others if o.tile.dtype != "bool"]
        if not others or rng.random() < 0.4:
            tile = self.new_tile(k.axes, k.tile.dtype)
            if tile.dtype != k.tile.dtype:
                return []
            self.know(tile, k.axes, k.low, k.high)
            return [Copy(Region(k.tile.name), Region(tile.name))]
        other = rng.choice(others)
        rows = k.tile.shape[0]
        scopes = {k.tile.scope, other.tile.scope}
        if scopes != {"shared"} or rows < 2 or ELEMENTS[other.tile.dtype].bits == 4:
            return [Copy(Region(k.tile.name), Region(other.tile.name))]
        height = rng.randrange(1, rows)
        extents = (height, *k.tile.shape[1:])
        zeros = (const(0),) * (len(extents) - 1)
        here, there = (
            Region(t.tile.name, (const(rng.randrange(rows - height + 1)), *zeros), extents, True)
            for t in (k, other)
        )
        return [Copy(here, there)]

    def transpose(self) -> list[Stmt]:
        usable = [
            k for k in self.known
            if len(k.axes) == 2 and k.tile.scope == "shared" and ELEMENTS[k.tile.dtype].bits > 4
        ]  # fmt: skip
        if not usable:
            return []
        k = self.rng.choice(usable)
        axes = k.axes[::-1]
        tile = self.new_tile(axes, k.tile.dtype, "shared")
        self.know(tile, axes, k.low, k.high)
        return [Transpose(k.tile.name, tile.name)]

    def fill(self) -> list[Stmt]:
        k = self.rng.choice(self.known)
        if ELEMENTS[k.tile.dtype].bits <= 8:
            return []
        return [Fill(k.tile.name, self.rng.choice([v for v in (0, 1, -3) if v >= k.low]))]

    def variable(self) -> list[Stmt]:
        """Set a variable of the block, that later statements read."""
        v = Tile(self.scene.fresh("v"), "int32", (), "var", self.rng.choice((0, 3)))
        self.tiles.append(v)
        value = clamp(self.uniform().value("int32", 2), -100, 100)
        self.names.append(name(v.name, -100, 100))
        return [SetVar(v.name, value)]

    def uniform(self) -> Source:
        """Return expressions that are the same in all threads of a block."""
        names = [n for n in self.names if n.dtype in ("int32", "float32")]
        leaves = [lambda: self.rng.choice(names)] * 3
        leaves.append(lambda: self.from_tensor(8))
        return Source(self.rng, leaves)

    @contextmanager
    def inside(self, *names: Expr) -> Iterator[None]:
        """Write a body: names and variables of it are not known outside of it."""
        before = list(self.names)
        self.names += names
        self.depth += 1
        yield
        self.depth -= 1
        self.names = before

    def body(self, most: int = 3) -> tuple[Stmt, ...]:
        return tuple(s for _ in range(self.rng.randrange(1, most)) for s in self.step())

    def branch(self) -> list[Stmt]:
        condition = self.uniform().condition(1)
        with self.inside():
            then = self.body()
            otherwise = self.body() if self.rng.random() < 0.4 else ()
        return [If(condition, then, otherwise)] if then else []

    def loop(self) -> list[Stmt]:
        rng = self.rng
        kind = rng.choice(("serial", "serial", "pipelined", "pipelined", "unroll", "while"))
        count = const(rng.randrange(4))
        if kind != "unroll" and rng.random() < 0.3:
            some = apply("mod", self.uniform().value("int32", 1), const(3))
            count = some if some.args[0].kind != "const" else count
        index = self.scene.fresh("l")
        if kind == "while":
            self.tiles.append(Tile(index, "int32", (), "var", 0))
        high = max(0, count.data - 1) if count.kind == "const" else 1
        with self.inside(name(index, 0, high)):
            body = self.body(4)
        return [Loop(index, kind, count, body, rng.randrange(4))] if body else []

    def reduce(self) -> list[Stmt]:
        usable = [k for k in self.known if len(k.axes) > 1 and k.tile.dtype != "bool"]
        if excluded("reductions of short types"):
            usable = [k for k in usable if ELEMENTS[k.tile.dtype].bits > 8]
        if not usable:
            return []
        k = self.rng.choice(usable)
        dim = self.rng.randrange(len(k.axes))
        ops = ["sum", "max", "min", "absmax", "abssum"]
        if not ELEMENTS[k.tile.dtype].is_float:
            ops += ["bitand", "bitor", "bitxor"]
        op = self.rng.choice(ops)
        most = max(abs(k.low), abs(k.high))
        low, high = (-most, most)
        if "sum" in op:
            low, high = (v * self.axes[k.axes[dim]].extent for v in (low, high))
        if "bit" in op:
            low, high = -(1 << most.bit_length()), (1 << most.bit_length()) - 1
        dtype = k.tile.dtype
        element = ELEMENTS[dtype]
        if low - 4 < element.low or element.high < high + 4:
            return []
        axes = tuple(a for n, a in enumerate(k.axes) if n != dim)
        tile = self.new_tile(axes, dtype)
        if tile.dtype != dtype:
            return []
        body: list[Stmt] = []
        clear = "bit" in op or op == "abssum" or self.rng.random() < 0.7
        if not clear:
            body.append(Fill(tile.name, self.rng.choice((0, 2))))
            low, high = low - 2, high + 2
        self.know(tile, axes, low, high)
        shown = dim - len(k.axes) if self.rng.random() < 0.3 else dim
        return [*body, Reduce(op, k.tile.name, tile.name, shown, clear)]

    def scan(self) -> list[Stmt]:
        usable = [k for k in self.known if k.tile.scope == "shared" and len(k.axes) in (1, 2)]
        usable = [k for k in usable if k.tile.dtype in ("int32", "float32")]
        if not usable:
            return []
        k = self.rng.choice(usable)
        dim = self.rng.randrange(len(k.axes))
        extent = self.axes[k.axes[dim]].extent
        low, high = min(k.low * extent, k.low), max(k.high * extent, k.high)
        if low < -(1 << 24) or high > 1 << 24:
            return []
        tile = self.new_tile(k.axes, k.tile.dtype, "shared")
        self.know(tile, k.axes, low, high)
        return [Scan(k.tile.name, tile.name, dim, self.rng.random() < 0.4)]

    def atomic(self) -> list[Stmt]:
        """Add to a tensor, from all blocks."""
        rng = self.rng
        op = rng.choice(("add", "add", "max", "min"))
        dtype = rng.choice(("int32", "float32"))
        shape = self.ragged(self.all_axes())
        t = self.scene.tensor("G", dtype, shape, (-4, 4), False)
        self.written.add(t.name)
        usable = [
            k for k in self.known
            if (k.tile.dtype, k.axes) == (dtype, self.all_axes())
            and max(-k.low, k.high) <= MOST_ADDED
        ]  # fmt: skip
        # It is read by nothing later: its bounds are not known.
        self.scene.tensors[t.name] = replace(t, low=-4, high=4)
        if usable and op == "add" and rng.random() < 0.4:
            starts = tuple(self.axes[a].origin for a in self.all_axes())
            return [Atomic(op, t.name, starts, None, rng.choice(usable).tile.name)]
        with self.nest(self.all_axes()) as source:
            index = list(self.places())
            if rng.random() < 0.5:
                extent = self.axes[-1].extent
                index[-1] = apply("mod", source.value("int32", 1), const(max(1, extent // 2)))
            value = clamp(source.value(dtype, 2), -64, 64)
            body: tuple[Stmt, ...] = (Atomic(op, t.name, tuple(index), value),)
            if rng.random() < 0.3:
                body = (If(source.condition(1), body),)
        return [Parallel(self.loops(self.all_axes()), body)]

    # -- element-wise work --------------------------------------------------------------------

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

    @contextmanager
    def nest(self, axes: tuple[int, ...], target: Tile | None = None) -> Iterator[Source]:
        """Write the body of a data-parallel loop that stores to `target`."""
        before = list(self.names)
        self.names += self.indices(axes)
        leaves: list[Callable[[], Expr]] = []
        for k in self.known:
            if set(k.axes) <= set(axes):
                leaves.append(lambda k=k: self.element(k))
            if k.tile.scope == "shared" and k.axes and k.tile != target:
                leaves.append(lambda k=k: self.elsewhere(k, axes))
        names = [n for n in self.names if n.dtype in ("int32", "float32")]
        leaves.append(lambda: self.rng.choice(names))
        if self.rng.random() < 0.3:
            leaves.append(lambda: self.direct(axes))
        yield Source(self.rng, leaves)
        self.names = before

    def element(self, k: Known) -> Expr:
        index = self.indices(k.axes) or (const(0),)
        return load(k.tile.name, k.tile.dtype, (k.low, k.high), *index)

    def elsewhere(self, k: Known, axes: tuple[int, ...]) -> Expr:
        """Return another element of a shared tile than the one of the iteration."""
        rng, index, guards = self.rng, [], []
        for a in k.axes:
            extent = self.axes[a].extent
            plain = (
                name(INDEX_NAMES[a], 0, extent - 1) if a in axes else const(rng.randrange(extent))
            )
            form = rng.choice(("plain", "plain", "rotated", "reversed", "guarded", "gathered"))
            if form == "rotated" and a in axes:
                moved = apply("add", plain, const(rng.randrange(1, 5)))
                plain = apply("mod", moved, const(extent))
            elif form == "reversed" and a in axes:
                plain = apply("sub", const(extent - 1), plain)
            elif form == "guarded" and a in axes:
                plain = apply("add", plain, const(rng.randrange(min(4, extent))))
                guards.append(apply("lt", plain, const(extent)))
            elif form == "gathered":
                plain = apply("mod", self.from_tensor(8), const(extent))
            index.append(plain)
        found = load(k.tile.name, k.tile.dtype, (k.low, k.high), *index)
        for guard in guards:
            if k.tile.dtype == "bool":
                return self.element(k) if set(k.axes) <= set(axes) else const(1)
            kind = rng.choice(("if_then_else", "ternary"))
            found = apply(kind, guard, found, const(rng.choice((0, 1)), k.tile.dtype))
        return found

    def direct(self, axes: tuple[int, ...]) -> Expr:
        """Return an element of a tensor, which may be outside of it."""
        t = self.input(axes)
        index = []
        for a, i in zip(axes, self.indices(axes), strict=True):
            start = self.start(a)
            index.append(i if start.kind == "const" and start.data == 0 else apply("add", start, i))
        if self.rng.random() < 0.2:
            index[0] = self.from_tensor(t.shape[0])
        safe = self.safe.get(t.name, 0)
        return load(t.name, t.dtype, (min(t.low, safe), max(t.high, safe)), *index)

    def compute(self) -> list[Stmt]:
        rng = self.rng
        if self.depth == 0 and rng.random() < 0.6:
            axes = self.all_axes() if rng.random() < 0.8 else self.some_axes()
            tile = self.new_tile(axes, rng.choice(TYPES))
            with self.nest(axes, tile) as source:
                value = source.value(tile.dtype)
                body = self.stores(source, tile, axes, value, None)
            self.know(tile, axes, value.low, value.high)
            return [Parallel(self.loops(axes), body)]
        usable = [k for k in self.known if k.axes]
        if not usable:
            return []
        k = rng.choice(usable)
        with self.nest(k.axes, k.tile) as source:
            value = source.value(k.tile.dtype)
            body = self.stores(source, k.tile, k.axes, value, k)
        return [Parallel(self.loops(k.axes), body)]

    def stores(
        self, source: Source, tile: Tile, axes: tuple[int, ...], value: Expr, k: Known | None
    ) -> tuple[Stmt, ...]:
        """Return the body of a nest that gives the elements of a tile a value."""
        rng, index = self.rng, self.indices(axes)
        low, high = (k.low, k.high) if k else (value.low, value.high)

        def limited(e: Expr) -> Expr:
            return e if e.dtype == "bool" else clamp(e, low, high)

        one = Store(tile.name, index, limited(value))
        form = rng.randrange(8)
        if form == 0:
            return (If(source.condition(2), (one,), (self.other(source, tile, index, limited),)),)
        if form == 1 and k is not None:
            return (If(source.condition(2), (one,)),)
        if form == 2 and tile.dtype in ("int32", "float32"):
            return self.accumulated(source, tile, index, limited)
        return (one,)

    def other(
        self, source: Source, tile: Tile, index: tuple[Expr, ...], limited: Callable[[Expr], Expr]
    ) -> Store:
        return Store(tile.name, index, limited(source.value(tile.dtype, 1)))

    def accumulated(
        self, source: Source, tile: Tile, index: tuple[Expr, ...], limited: Callable[[Expr], Expr]
    ) -> tuple[Stmt, ...]:
        """Sum up in a variable of the iteration."""
        rng = self.rng
        v = Tile(self.scene.fresh("v"), tile.dtype, (), "var", 0)
        self.tiles.append(v)
        var, turn = name(v.name, -4096, 4096, tile.dtype), self.scene.fresh("l")
        step = clamp(source.value(tile.dtype, 2), -16, 16)
        if rng.random() < 0.5:
            step = apply("add", step, cast(name(turn, 0, 3), tile.dtype))
        count = const(rng.randrange(4))
        if rng.random() < 0.5:
            count = apply("mod", source.leaf("int32"), const(3))
            if count.args[0].kind == "const":
                count = const(2)
        more = SetVar(v.name, clamp(apply("add", var, step), -4096, 4096))
        first = clamp(source.value(tile.dtype, 1), -16, 16)
        return (
            SetVar(v.name, first),
            Loop(turn, "serial", count, (more,)),
            Store(tile.name, index, limited(var)),
        )

    # -- products -------------------------------------------------------------------------------

    def product(self) -> list[Stmt]:
        """Multiply matrices in a loop over their common dimension."""
        rng = self.rng
        if len(self.axes) != 2:
            return []
        kind, sums = rng.choice(
            [("float16", "float32"), ("float16", "float32"), ("bfloat16", "float32"),
             ("int8", "int32"), ("float32", "float32"), ("float8_e4m3fn", "float32")]
        )  # fmt: skip
        depth, steps = rng.choice((16, 16, 32, 32, 8, 64, 5)), rng.randrange(4)
        flips = (rng.random() < 0.4, rng.random() < 0.4)
        rows, columns = self.axes
        total = max(1, depth * steps - rng.choice((0, 0, 3, 8)))
        if excluded("ragged products"):
            total = max(1, depth * steps)
        loop = name(self.scene.fresh("l"), 0, max(steps - 1, 0))
        inner = apply("mul", loop, const(depth))
        body: list[Stmt] = []
        operands = []
        for axis, flip, letter in ((rows, flips[0], 0), (columns, not flips[1], 1)):
            whole = axis.extent * axis.blocks
            outer = whole if excluded("ragged products") else self.ragged((letter,))[0]
            shape = (total, outer) if flip else (outer, total)
            t = self.scene.tensor("A", kind, shape, (-2, 2), False)
            tile = (depth, axis.extent) if flip else (axis.extent, depth)
            made = Tile(self.scene.fresh("s"), kind, tile, "shared")
            self.tiles.append(made)
            start = axis.origin if axis.blocks > 1 else const(0)
            starts = (inner, start) if flip else (start, inner)
            body.append(Copy(Region(t.name, starts), Region(made.name)))
            operands.append(made)
        c = self.new_tile((0, 1), sums, "fragment")
        if rng.random() < 0.2:
            i, j = (name(INDEX_NAMES[n], 0, e - 1) for n, e in enumerate(operands[0].shape))
            element = load(operands[0].name, kind, (-2, 2), i, j)
            doubled = apply("mul", element, const(2, kind)) if ELEMENTS[kind].bits > 8 else element
            loops = tuple(zip(INDEX_NAMES, operands[0].shape, strict=False))
            body.append(Parallel(loops, (Store(operands[0].name, (i, j), doubled),)))
        # The tiles are not read after the loop: it may run no round.
        body.append(Gemm(operands[0].name, operands[1].name, c.name, flips, False))
        most = 8 * depth * max(steps, 1)
        self.know(c, (0, 1), -most, most)
        kinds = ("pipelined", "pipelined", "pipelined", "serial")
        statements: list[Stmt] = [
            Fill(c.name, 0),
            Loop(loop.data, rng.choice(kinds), const(steps), tuple(body), rng.randrange(4)),
        ]
        if rng.random() < 0.3 and self.axes[1].extent % 8 == 0:
            statements += self.second(c)
        return statements

    def second(self, c: Tile) -> list[Stmt]:
        """Multiply a product by another matrix, as attention does."""
        rng, width = self.rng, self.axes[1].extent
        kind, sums = ("int8", "int32") if c.dtype == "int32" else ("float16", "float32")
        p = self.new_tile((0, 1), kind)
        v = Tile(self.scene.fresh("s"), kind, (width, width), "shared")
        self.tiles.append(v)
        out = self.new_tile((0, 1), sums, "fragment")
        t = self.scene.tensor("A", kind, (width, width), (-2, 2), False)
        i, j = self.indices((0, 1))
        element = load(c.name, c.dtype, (-(1 << 20), 1 << 20), i, j)
        value = cast(clamp(element, -8, 8), kind)
        self.know(p, (0, 1), -8, 8)
        self.know(out, (0, 1), -16 * width, 16 * width)
        return [
            Parallel(self.loops((0, 1)), (Store(p.name, (i, j), value),)),
            Copy(Region(t.name, (const(0), const(0))), Region(v.name)),
            Gemm(p.name, v.name, out.name, (False, rng.random() < 0.5), clear=True),
        ]

    # -- the end --------------------------------------------------------------------------------

    def finish(self) -> list[Stmt]:
        """Store tiles to tensors; the last one that was made among them."""
        body: list[Stmt] = []
        chosen = {k.tile.name: k for k in [self.known[-1], *self.rng.sample(self.known, 1)]}
        for k in chosen.values():
            body += self.store(k)
        return body

    def store(self, k: Known) -> list[Stmt]:
        rng = self.rng
        dtype = k.tile.dtype
        if rng.random() < 0.3 and dtype != "bool":
            element = ELEMENTS[wanted := rng.choice(TYPES)]
            if element.low <= k.low and k.high <= element.high and wanted != "bool":
                dtype = wanted
        last = len(self.axes) - 1
        even = last in k.axes and self.axes[last].extent % 2 == 0
        if ELEMENTS[dtype].bits == 4 and not even:
            dtype = "float32"
        whole = self.ragged(self.all_axes())
        shape = tuple(whole[a] if a in k.axes else self.axes[a].blocks for a in self.all_axes())
        direct = (rng.random() < 0.3 and k.axes) or list(k.axes) != sorted(k.axes)
        t = self.scene.tensor("R", dtype, shape, (k.low, k.high), True)
        self.written.add(t.name)
        if direct:
            index = tuple(
                place if a in k.axes else self.axes[a].block
                for a, place in zip(self.all_axes(), self.places(), strict=True)
            )
            value = cast(self.element(k), dtype)
            return [Parallel(self.loops(tuple(sorted(k.axes))), (Store(t.name, index, value),))]
        starts = tuple(
            self.axes[a].origin if a in k.axes else self.axes[a].block for a in self.all_axes()
        )
        missing = [a for a in self.all_axes() if a not in k.axes]
        if not k.axes or (missing == list(range(len(missing))) and rng.random() < 0.5):
            return [Copy(Region(k.tile.name), Region(t.name, starts))]
        extents = tuple(self.axes[a].extent * (a in k.axes) for a in self.all_axes())
        return [Copy(Region(k.tile.name), Region(t.name, starts, extents, sliced=True))]


def _any(n: Expr) -> Expr:
    return name(str(n.data), -(1 << 31), (1 << 31) - 1, n.dtype)
