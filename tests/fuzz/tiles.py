"""Random programs of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from fuzz.elements import ELEMENTS
from fuzz.expressions import Source
from fuzz.moves import Moves
from fuzz.nests import Nests
from fuzz.operations import apply, clamp, const, name
from fuzz.places import INDEX_NAMES
from fuzz.products import Products
from fuzz.program import (
    BLOCKS,
    Expr,
    Hint,
    If,
    Launch,
    Loop,
    Parallel,
    Program,
    Scalar,
    SetVar,
    Stmt,
    Store,
    Tile,
)
from fuzz.scene import LIMITS, TYPES, Axis, Scene, anything

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 24, 31, 32, 33, 48, 64)
KINDS = (
    "compute", "load_again", "fill", "branch", "loop", "move", "transpose", "more", "reduce",
    "scan", "product", "atomic", "variable", "accumulate",
)  # fmt: skip
ELEMENTS_OF_TILES = 4096


def program(rng: Random, *, small: bool = False) -> Program:
    """Return a random program of tiles, perhaps a small one."""
    scene = Scene(rng, small)
    if rng.random() < 0.5:
        scene.scalars.append(Scalar("n", "int32", rng.choice(LIMITS)))
    if rng.random() < 0.2:
        scene.scalars.append(Scalar("x", "float32", rng.randrange(-4, 5)))
    launches = tuple(
        Writer(scene, rng).whole() if rng.random() < 0.1 else Writer(scene, rng).launch()
        for _ in range(1 if small and rng.random() < 0.9 else rng.choice((1, 1, 1, 1, 2, 3)))
    )
    return Program(
        tuple(scene.tensors.values()), tuple(scene.scalars), launches, rng.randrange(1 << 16)
    )


class Writer(Nests, Moves, Products):
    """Writes one launch."""

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
        self.names = [
            n if n.dtype != "int32" or n.data in BLOCKS else anything(n) for n in self.names
        ]
        if rng.random() < 0.7:
            self.without = {kind for kind in KINDS if rng.random() < 0.6}
        body: list[Stmt] = [self.load_new()]
        for _ in range(rng.randrange(1, 3 if self.scene.small else 6)):
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
            *map(anything, (name(s.name, 0, 0, s.dtype) for s in self.scene.scalars)),
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

    def step(self) -> list[Stmt]:
        kinds: list[Callable[[], list[Stmt]]] = [
            self.compute, self.compute, self.compute, self.load_again, self.fill,
            self.accumulate,
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
