"""Random data-parallel loops: what they compute, store, and add to tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from fuzz.expressions import Source
from fuzz.operations import apply, cast, clamp, const, load, name
from fuzz.places import INDEX_NAMES, Places
from fuzz.program import Accumulate, Atomic, Expr, If, Loop, Parallel, SetVar, Stmt, Store, Tile
from fuzz.scene import TYPES, Known

MOST_ADDED = 4096


class Nests(Places):
    """Writes element-wise work."""

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
        yield Source(self.rng, leaves, 2 if self.scene.small else 3)
        self.names = before

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
        given = [n for n in self.names if n.data == "n"]
        if given and self.rng.random() < 0.2:
            # Sums with a number at the limits of its type wrap.
            at = self.rng.randrange(len(index))
            far = apply(self.rng.choice(("max", "min")), self.rng.choice(given), const(0))
            index[at] = apply("add", apply("add", far, const(self.rng.randrange(9))), index[at])
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

    def accumulate(self) -> list[Stmt]:
        """Reduce what the iterations of a nest compute, whoever runs them.

        In loops and branches the results go on to a tile that has elements already.
        """
        rng = self.rng
        usable = [k for k in self.known if k.tile.dtype in ("int32", "float32")]
        if self.depth and not usable:
            return []
        into = rng.choice(usable) if self.depth else None
        dtype = rng.choice([k.tile.dtype for k in usable] or ["int32", "float32"])
        axes = self.all_axes() if rng.random() < 0.7 else self.some_axes()
        kept = tuple(a for a in axes if rng.random() < 0.5)
        if into:
            dtype, kept = into.tile.dtype, into.axes
            axes = tuple(sorted({*axes, *kept}))
        made, most = self.accumulation(dtype, axes, kept)
        if into is None:
            self.know(self.tiles[-1], kept, -most, most)
            return [made]
        index = self.indices(kept)
        found = load(made.target, dtype, (-most, most), *(index or (const(0),)))
        kind = rng.choice(("add", "max", "min"))
        value = clamp(apply(kind, found, self.element(into)), into.low, into.high)
        one = Store(into.tile.name, index or (const(0),), value)
        return [made, Parallel(self.loops(kept) or ((INDEX_NAMES[0], 1),), (one,))]

    def accumulation(
        self, dtype: str, axes: tuple[int, ...], kept: tuple[int, ...]
    ) -> tuple[Accumulate, int]:
        """Return a reduction over `axes` less those `kept`, and how large its results are.

        Its target is the last tile that was made.
        """
        rng = self.rng
        op = rng.choice(("sum", "sum", "max", "min"))
        shape = tuple(self.axes[a].extent for a in kept) or (1,)
        parts = Tile(self.scene.fresh("q"), dtype, shape, f"reducer_{op}")
        self.tiles.append(parts)
        target = self.new_tile(kept, dtype, "fragment")
        with self.nest(axes) as source:
            held = [k for k in self.known if set(k.axes) <= set(axes) and k.tile.dtype == dtype]
            value = self.element(rng.choice(held)) if held and rng.random() < 0.7 else None
            value = clamp(value or source.value(dtype, 2), -16, 16)
            condition = source.condition(1) if rng.random() < 0.3 else None
        start = rng.choice((0, 0, -2, 5))
        count = 1
        for a in axes:
            count *= self.axes[a].extent
        index = self.indices(kept) or (const(0),)
        made = Accumulate(
            op, parts.name, target.name, start, self.loops(axes), index, value, condition
        )
        return made, 16 * (count if op == "sum" else 1) + 5
