"""Results of a kernel: stored as they are computed, or by way of a tile."""

from __future__ import annotations

from collections.abc import Sequence

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, walk
from tile_api.arrays.planning.matrix_vector import ONE
from tile_api.arrays.planning.plan import Plan
from tile_api.arrays.printing.tiles import Tiles


class Results:
    """Writes what stores the outputs of a plan.

    Attributes
    ----------
    ordered
        The outputs; those that lie along the stream are stored last.
    """

    def __init__(self, plan: Plan, tiles: Tiles) -> None:
        self.plan = plan
        self.tiles = tiles
        self.ordered = sorted(plan.finals, key=self.is_along)

    def is_along(self, o: Output) -> bool:
        """Tell whether an output lies along the stream."""
        return any(i.op == "index" and i.value[0] == self.plan.stream for i in o.indices)

    def dims(self, o: Output) -> tuple[str, ...]:
        """Return the variables of a block of an output."""
        found = tuple(i.value[0] for i in o.indices if i.op == "index")
        row = (ONE,) if ONE in o.element.free and ONE not in found else ()
        return tuple(v for v in (*row, *found) if v not in self.plan.points)

    def name(self, o: Output) -> str:
        """Return what an output is called in the shape in which it is stored."""
        return next((v.name for v in self.plan.task.views if v.tensor == o.name), o.name)

    def store(self, o: Output) -> None:
        """Compute a block of an output, and store it."""
        tiles = self.tiles
        dims, x = self.dims(o), self._unrounded(o)
        view = self.name(o)
        if x.op == "state" and tiles.held[x][1] == dims:
            buffer = tiles.held[x][0]
        else:
            later = [y.element for y in self.ordered[self.ordered.index(o) + 1 :]]
            tiles.hoist(x, dims)
            tiles.prepare(x)
            if self._goes_straight(x, dims, later):
                where = ", ".join(map(tiles.text, o.indices)) or "0"
                parts, text = tiles.in_parts(x)
                tiles.parallel(dims, *parts, f"{view}[{where}] = {text}")
                return
            mine = self._own_accumulator(x, dims, later)
            if mine is None:
                buffer = tiles.computed(x, dims, "result", later)[0]
            else:
                buffer = tiles.held[mine][0]
                parts, text = tiles.in_parts(x)
                tiles.parallel(dims, *parts, f"{tiles.text(mine)} = {text}")
                del tiles.held[mine]
        if dims[:1] == (ONE,) and self.plan.axes[ONE].size > 1:  # all rows are that one
            where = ", ".join(map(tiles.text, o.indices)) or "0"
            first = f"if {self.plan.axes[ONE].loop} < 1:"
            stored = f"    {view}[{where}] = {buffer}[{tiles.text.loops(dims)}]"
            tiles.parallel(dims, first, stored)
            return
        tiles.put(f"T.copy({buffer}, {tiles.region(view, o.indices)})")

    def _unrounded(self, o: Output) -> Expr:
        """Return what an output's elements are before they are rounded to its type, as stores do.

        What is rounded stays so if it has a tile, or others read it.
        """
        x = o.element
        later = [y.element for y in self.ordered[self.ordered.index(o) + 1 :]]
        is_needed = x in self.tiles.held or any(x in walk(y) for y in later)
        return x.args[0] if x.op == "round" and x.value == str(o.dtype) and not is_needed else x

    def _goes_straight(self, x: Expr, dims: tuple[str, ...], later: Sequence[Expr]) -> bool:
        """Tell whether elements of a result are stored as they are computed, without a tile.

        Not if others read them. Sums of products lie in registers as matrix instructions leave
        them: GPUs store them by way of shared memory, as a copy does. Of rows' values alone the
        result's own tile says which thread has which element.
        """
        read, held = {n for y in later for n in walk(y)}, self.tiles.held
        if x in read or x in held or ONE in dims or x.dtype.packing > 1:
            return False
        sums = {c.state.mine for c in self.plan.carried if c.column}
        tiles = {n for n in walk(x) if n in held and held[n][1]}
        return not tiles & sums and (not tiles or any(held[n][1] == dims for n in tiles))

    def _own_accumulator(
        self, x: Expr, dims: tuple[str, ...], later: Sequence[Expr]
    ) -> Expr | None:
        """Return an accumulator of the result's shape that nothing reads afterwards."""
        read = {n for y in later for n in walk(y)}
        for n in walk(x):
            is_free = n.op == "state" and n not in read and n.dtype == x.dtype
            if is_free and self.tiles.held.get(n, ("", ()))[1] == dims:
                return n
        return None
