"""Random statements on whole tiles: copies, fills, transposes, reductions, scans."""

from __future__ import annotations

from fuzz.elements import ELEMENTS
from fuzz.exclusions import excluded
from fuzz.operations import cast, const
from fuzz.places import Places
from fuzz.program import Copy, Fill, Parallel, Reduce, Region, Scan, Stmt, Store, Transpose
from fuzz.scene import TYPES, Known


class Moves(Places):
    """Writes what fills a tile from tensors or other tiles, and stores it."""

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

    def more(self) -> list[Stmt]:
        return [self.load_new()]

    def load_again(self) -> list[Stmt]:
        k = self.rng.choice(self.known)
        if not k.axes:
            return []
        t = self.input(k.axes, k.tile.dtype if k.tile.dtype == "bool" else None)
        if min(t.low, 0) < k.low or k.high < max(t.high, 0) or (t.dtype == "bool" != k.tile.dtype):
            return []
        return [Copy(self.region(t, k.axes), Region(k.tile.name))]

    def move(self) -> list[Stmt]:
        """Copy a tile to another one, or a part of it."""
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
        if rows < 2:
            return [Copy(Region(k.tile.name), Region(other.tile.name))]
        extents = [rng.randrange(1, rows), *k.tile.shape[1:]]
        if rng.random() < 0.3:
            extents = [rng.choice((1, n)) for n in k.tile.shape]
        here, there = (
            Region(
                t.tile.name,
                tuple(
                    const(rng.randrange(n - m + 1))
                    for n, m in zip(t.tile.shape, extents, strict=True)
                ),
                tuple(extents),
                True,
            )
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
        if ELEMENTS[k.tile.dtype].bits == 8:
            return []
        return [Fill(k.tile.name, self.rng.choice([v for v in (0, 1, -3) if v >= k.low]))]

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
