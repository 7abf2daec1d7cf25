"""Random products of matrices."""

from __future__ import annotations

from fuzz.elements import ELEMENTS
from fuzz.exclusions import excluded
from fuzz.operations import apply, cast, clamp, const, load, name
from fuzz.places import INDEX_NAMES, Places
from fuzz.program import Copy, Fill, Gemm, Loop, Parallel, Region, Stmt, Store, Tile


class Products(Places):
    """Writes products in loops over their common dimension."""

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
            statements += self.second(c, kind, depth)
        return statements

    def second(self, c: Tile, before: str, depth: int) -> list[Stmt]:
        """Multiply a product by another matrix, as attention does.

        Where only one of the two has matrix instructions, their accumulators lie in registers
        differently and no loop may touch both: the first is not used any more then.
        """
        rng, width = self.rng, self.axes[1].extent
        kind, sums = ("int8", "int32") if c.dtype == "int32" else ("float16", "float32")
        if before != kind or depth % 32 or width % 32:
            self.known[:] = [k for k in self.known if k.tile.name != c.name]
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
