"""Random programs of threads: shared memory, barriers, arrays of a thread, divergence, shuffles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from fuzz.elements import ELEMENTS
from fuzz.expressions import Source
from fuzz.operations import apply, cast, clamp, const, load, name
from fuzz.program import (
    Atomic,
    Copy,
    Expr,
    Fill,
    If,
    Launch,
    Loop,
    Parallel,
    Program,
    Region,
    Scalar,
    SetVar,
    Stmt,
    Store,
    Sync,
    Tensor,
    Tile,
)
from fuzz.scene import LIMITS, Scene

THREADS = (32, 32, 64, 64, 96, 128, 256)
TYPES = ("int32", "int32", "float32", "float16", "int64", "int8", "bfloat16")
BOUND = 64
"""Values that are kept between statements are at most this large."""


def program(rng: Random, *, small: bool = False) -> Program:
    """Return a random program of threads, perhaps a small one."""
    scene = Scene(rng, small)
    if rng.random() < 0.5:
        scene.scalars.append(Scalar("n", "int32", rng.choice(LIMITS)))
    launches = tuple(
        _Writer(scene, rng).launch() for _ in range(1 if small else rng.choice((1, 1, 2)))
    )
    return Program(
        tuple(scene.tensors.values()), tuple(scene.scalars), launches, rng.randrange(1 << 16)
    )


@dataclass
class _Writer:
    scene: Scene
    rng: Random
    threads: int = 0
    blocks: int = 1
    tiles: list[Tile] = field(default_factory=list)
    names: list[Expr] = field(default_factory=list)
    defined: list[Tile] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    """Shared tiles written, and read, since the last barrier."""
    counts: list[Tile] = field(default_factory=list)
    """Shared tiles to which nothing else stores."""
    syncs: bool = True
    """Whether barriers are written; the compiler inserts them otherwise."""
    alike: bool = True
    """Whether all threads run the statement that is written: barriers may stand there."""

    def launch(self) -> Launch:
        rng = self.rng
        self.syncs = rng.random() < 0.5
        self.threads, self.blocks = rng.choice(THREADS), rng.choice((1, 1, 2, 3))
        self.names = [name("bx", 0, self.blocks - 1), self.tx]
        self.names += [name(s.name, -(1 << 31), (1 << 31) - 1) for s in self.scene.scalars]
        for _ in range(rng.randrange(1, 3)):
            self.new("shared", (self.threads,) if rng.random() < 0.7 else (3, self.threads))
        body = self.variable() + self.put_shared()
        for _ in range(rng.randrange(1, 4) if self.scene.small else rng.randrange(2, 7)):
            body += self.step(0)
        body += self.finish()
        return Launch(
            (const(self.blocks),), self.threads, (*self.tiles, *self.counts), tuple(body), True
        )

    @property
    def tx(self) -> Expr:
        return name("tx", 0, self.threads - 1)

    @property
    def place(self) -> Expr:
        """Where this thread's element is in a tensor with one for each."""
        if self.blocks == 1:
            return self.tx
        return apply("add", apply("mul", self.names[0], const(self.threads)), self.tx)

    def new(self, scope: str, shape: tuple[int, ...], dtype: str | None = None) -> Tile:
        letter = {"shared": "s", "local": "c", "var": "v"}[scope]
        start = self.rng.choice((0, 2)) if scope == "var" else None
        kind = dtype or self.rng.choice(TYPES)
        made = Tile(self.scene.fresh(letter), kind, shape, scope, start)
        self.tiles.append(made)
        return made

    def input(self) -> Tensor:
        usable = [t for t in self.scene.tensors.values() if t.name[0] == "A" and not t.output]
        if usable and self.rng.random() < 0.6:
            return self.rng.choice(usable)
        extent = max(1, self.threads * self.blocks - self.rng.choice((0, 0, 5, 31)))
        return self.scene.tensor("A", self.rng.choice(TYPES), (extent,), (-4, 4), False)

    # -- expressions ------------------------------------------------------------------------

    def source(self) -> Source:
        leaves: list[Callable[[], Expr]] = [lambda: self.rng.choice(self.names)] * 2
        leaves.append(self.from_tensor)
        for t in self.defined:
            if t.scope == "shared" and t.name not in self.written:
                leaves += [lambda t=t: self.from_shared(t)] * 2
            elif t.scope == "local":
                leaves.append(
                    lambda t=t: load(t.name, t.dtype, (-BOUND, BOUND), const(self.rng.randrange(4)))
                )
        return Source(self.rng, leaves)

    def from_tensor(self) -> Expr:
        t = self.input()
        place = self.place
        shift = self.rng.choice((0, 0, 1, 7, -2))
        if shift and place.high + shift >= 0:
            place = apply("add", place, const(shift))
        return load(t.name, t.dtype, (t.low, t.high), place)

    def from_shared(self, t: Tile) -> Expr:
        self.reads.add(t.name)
        return load(t.name, t.dtype, (-BOUND, BOUND), *self.index(t))

    def index(self, t: Tile, *, own: bool = False) -> tuple[Expr, ...]:
        """Return the index of an element; `own` is another one for each thread."""
        n, rng = self.threads, self.rng
        forms = [
            self.tx,
            apply("sub", const(n - 1), self.tx),
            apply("mod", apply("add", self.tx, const(rng.randrange(1, n))), const(n)),
        ]
        if n & (n - 1) == 0:
            forms.append(apply("xor", self.tx, const(rng.choice((1, 2, 16)))))
        if not own:
            forms.append(const(rng.randrange(n)))
            forms.append(apply("mod", self.rng.choice(self.names[:3]), const(n)))
            forms = [f for f in forms if f.kind != "mod" or f.args[0].dtype == "int32"]
        last = rng.choice(forms)
        if not own and last.kind == "xor":
            last = forms[-1]
        return (const(rng.randrange(3)), last) if len(t.shape) == 2 else (last,)

    def value(self, dtype: str, depth: int = 2) -> Expr:
        return clamp(self.source().value(dtype, depth), -BOUND, BOUND)

    def uniform(self) -> Source:
        names = [n for n in self.names if n.data in ("bx", "n") or str(n.data).startswith("l")]
        return Source(self.rng, [lambda: self.rng.choice(names)])

    # -- statements -------------------------------------------------------------------------

    def step(self, depth: int) -> list[Stmt]:
        kinds: list[Callable[[], list[Stmt]]] = [self.variable, self.put_local, self.again]
        if self.alike:
            kinds += [self.put_shared, self.put_shared, self.shuffle, self.count]
            if depth == 0:
                kinds += [self.ranges]
        if depth < 2:
            kinds += [lambda: self.branch(depth), lambda: self.loop(depth)]
        return self.rng.choice(kinds)()

    def variable(self) -> list[Stmt]:
        if not self.alike:
            return self.again()
        dtype = self.rng.choice(("int32", "float32"))
        value = self.value(dtype)
        v = self.new("var", (), dtype)
        self.names.append(name(v.name, -BOUND, BOUND, dtype))
        return [SetVar(v.name, value)]

    def again(self) -> list[Stmt]:
        usable = [n for n in self.names if str(n.data).startswith("v")]
        if not usable:
            return []
        v = self.rng.choice(usable)
        return [SetVar(v.data, self.value(v.dtype))]

    def put_local(self) -> list[Stmt]:
        usable = [t for t in self.defined if t.scope == "local"]
        if usable and (not self.alike or self.rng.random() < 0.6):
            t = self.rng.choice(usable)
            at = const(self.rng.randrange(4))
            return [Store(t.name, (at,), self.value(t.dtype))]
        if not self.alike:
            return []
        turn = self.scene.fresh("l")
        index = name(turn, 0, 3)
        t = self.new("local", (4,))
        value = self.value(t.dtype)
        self.defined.append(t)
        return [Loop(turn, self.rng.choice(("serial", "unroll")), const(4),
                     (Store(t.name, (index,), value),))]  # fmt: skip

    def sync(self) -> list[Stmt]:
        self.written.clear()
        self.reads.clear()
        return [Sync()] if self.syncs else []

    def put_shared(self) -> list[Stmt]:
        t = self.rng.choice([t for t in self.tiles if t.scope == "shared"])
        body = self.sync() if t.name in self.written | self.reads else []
        value = self.value(t.dtype)
        if t.name in self.reads:
            # The value reads the tile: it is computed before anything is stored.
            v = self.new("var", (), t.dtype)
            body += [SetVar(v.name, value), *self.sync()]
            value = name(v.name, -BOUND, BOUND, t.dtype)
        *lead, last = self.index(t, own=True)
        if lead:
            body += [Store(t.name, (const(n), last), value) for n in range(3)]
        else:
            body.append(Store(t.name, (last,), value))
        self.written.add(t.name)
        if t not in self.defined:
            self.defined.append(t)
            # All elements have a value now: reads are of the whole tile.
            body += self.sync()
        elif self.rng.random() < 0.5:
            body += self.sync()
        return body

    def shuffle(self) -> list[Stmt]:
        """Take another lane's value; lanes beyond 32 have a partner among their own 32."""
        v = self.new("var", (), self.rng.choice(("int32", "float32")))
        value = self.value(v.dtype)
        taken = Expr("shuffle", v.dtype, -BOUND, BOUND, (value,), self.rng.choice((1, 2, 8, 16)))
        self.names.append(name(v.name, -BOUND, BOUND, v.dtype))
        return [SetVar(v.name, taken)]

    def count(self) -> list[Stmt]:
        """Add up in shared memory, or in a tensor, with atomic operations."""
        op = self.rng.choice(("add", "max", "min"))
        if self.rng.random() < 0.5:
            dtype = self.rng.choice(("int32", "float32"))
            t = self.scene.tensor("G", dtype, (self.threads,), (-4, 4), False)
            value = self.value(dtype)
            at = apply("mod", self.source().value("int32", 1), const(self.threads))
            if at.args[0].kind == "const":
                at = self.tx
            return [Atomic(op, t.name, (at,), value)]
        s = Tile(self.scene.fresh("s"), "int32", (self.threads,), "shared")
        self.counts.append(s)
        v = self.new("var", (), "int32")
        value = self.value("int32")
        at = apply("mod", self.source().value("int32", 1), const(self.threads))
        if at.args[0].kind == "const":
            at = self.tx
        body = [
            Store(s.name, (self.tx,), const(0)),
            *self.sync(),
            Atomic(op, s.name, (at,), value),
            *self.sync(),
            SetVar(
                v.name, clamp(load(s.name, "int32", (-(1 << 20), 1 << 20), self.tx), -BOUND, BOUND)
            ),
        ]
        self.names.append(name(v.name, -BOUND, BOUND))
        return body

    def ranges(self) -> list[Stmt]:
        """Let ranges of whole warps work on tiles of their own, or all threads on one."""
        first = self.on_tile()
        if self.threads % 128 or self.rng.random() < 0.3:
            return first
        condition = apply("lt", self.tx, const(64 * self.rng.randrange(1, self.threads // 64)))
        other = tuple(self.on_tile()) if self.rng.random() < 0.5 else ()
        return [If(condition, tuple(first), other)]

    def on_tile(self) -> list[Stmt]:
        """Return tile operators on a new tile."""
        rng = self.rng
        usable = [t for t in self.scene.tensors.values() if t.name[0] == "A" and not t.output]
        t = rng.choice([t for t in usable if ELEMENTS[t.dtype].bits > 8] or [self.wide()])
        s = self.new("shared", (self.threads,), t.dtype)
        i = name("i", 0, self.threads - 1)
        index = Source(rng, [lambda: i, lambda: load(s.name, s.dtype, (-BOUND, BOUND), i)])
        start = (
            apply("mul", self.names[0], const(rng.choice((1, 8)))) if self.blocks > 1 else const(0)
        )
        body: list[Stmt] = [Copy(Region(t.name, (start,)), Region(s.name))]
        if rng.random() < 0.3:
            body = [Fill(s.name, rng.choice((0, 3)))]
        for _ in range(rng.randrange(3)):
            value = clamp(index.value(s.dtype, 2), -BOUND, BOUND)
            loop = (("i", self.threads),)
            body.append(Parallel(loop, (Store(s.name, (i,), value),)))
        self.defined.append(s)
        return body

    def wide(self) -> Tensor:
        return self.scene.tensor("A", "float32", (self.threads,), (-4, 4), False)

    def branch(self, depth: int) -> list[Stmt]:
        before = self.names[:], self.defined[:], self.alike
        uniform = self.rng.random() < 0.3
        condition = (self.uniform() if uniform else self.source()).condition(1)
        self.alike = False
        then = [s for _ in range(self.rng.randrange(1, 3)) for s in self.step(depth + 1)]
        other = self.step(depth + 1) if self.rng.random() < 0.4 else []
        self.names, self.defined, self.alike = before
        return [If(condition, tuple(then), tuple(other))] if then else []

    def loop(self, depth: int) -> list[Stmt]:
        before = self.names[:], self.defined[:], self.alike
        turn = self.scene.fresh("l")
        kind = self.rng.choice(("serial", "serial", "unroll", "while"))
        count = const(self.rng.randrange(4))
        if kind != "unroll" and self.rng.random() < 0.5:
            # Threads go round as often as they like, where none waits for another one.
            some = self.source().value("int32", 1)
            if some.kind not in ("const",):
                count, self.alike = apply("mod", some, const(4)), False
        if kind == "while":
            self.tiles.append(Tile(turn, "int32", (), "var", 0))
        self.names.append(name(turn, 0, 3))
        body = self.sync() if self.alike else []
        for _ in range(self.rng.randrange(1, 4)):
            body += self.step(depth + 1)
        body += self.sync() if self.alike else []
        self.names, self.defined, self.alike = before
        return [Loop(turn, kind, count, tuple(body))]

    def finish(self) -> list[Stmt]:
        """Store what variables, arrays and tiles hold."""
        body: list[Stmt] = self.sync()
        values = [n for n in self.names if str(n.data).startswith("v")][-3:]
        for t in self.defined:
            if t.scope == "shared":
                values.append(self.from_shared(t))
            else:
                values.append(load(t.name, t.dtype, (-BOUND, BOUND), const(self.rng.randrange(4))))
        for value in values:
            dtype = self.rng.choice((value.dtype, "float32", "int32", "int4"))
            if dtype == "int4":
                value = clamp(value, -8, 7)
            extent = max(1, self.threads * self.blocks - self.rng.choice((0, 0, 3)))
            t = self.scene.tensor("R", dtype, (extent,), (-BOUND, BOUND), True)
            body.append(Store(t.name, (self.place,), cast(value, dtype)))
        return body
