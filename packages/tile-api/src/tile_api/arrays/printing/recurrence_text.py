"""The text of a kernel that takes the steps of a recurrence one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, walk
from tile_api.arrays.equations.recurrence import SPAN, Steps
from tile_api.arrays.planning.carried_variables import carried_in
from tile_api.arrays.planning.plan import Plan
from tile_api.arrays.planning.recurrence_plan import (
    are_as_carried,
    is_as_carried,
    roots_of,
    step_of,
    tile_of,
)
from tile_api.arrays.printing.kernel_text import KernelText, Tensor, Writer
from tile_api.arrays.printing.text import ExpressionText, Tile, nan_propagated
from tile_api.arrays.reductions.state import identity_of

_FOLDED = {"sum": "{} + {}", "prod": "{} * {}", "mean": "{} + {}", "max": "T.max({}, {}{})",
           "min": "T.min({}, {}{})"}  # fmt: skip


class _CarriedText(ExpressionText):
    """Prints carried values as elements of the tiles that hold them."""

    def __init__(self, known: ExpressionText, recurrence: Steps) -> None:
        super().__init__(known.plan, known.dtypes, known.tiles)
        self.recurrence = recurrence
        self.buffers: dict[tuple[str, int], str] = {}
        self.tiles_of: dict[int, tuple[str, ...]] = {}
        self.part: tuple[str, ...] = ()
        """The first index of tiles that have several parts."""

    def _text(self, x: Expr) -> tuple[str, int]:
        return (self._carried(x), 3) if x.op == "carry" else super()._text(x)

    def _carried(self, x: Expr) -> str:
        names = [name for name, _ in self.recurrence.of.carried[x.value[1]]]
        known = dict(zip(names, x.args, strict=True))
        at = [
            self.loops((name,)) if name == self.plan.row else self(known[name])
            for name in self.tiles_of[x.value[1]]
        ]
        return f"{self.buffers[x.value]}[{', '.join((*self.part, *at)) or '0'}]"


class SteppedWriter(Writer):
    """Writes a kernel of a recurrence."""

    def __init__(self, name: str, plan: Plan, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(name, plan, tensors)
        assert plan.task.recurrence is not None
        self.recurrence = plan.task.recurrence
        self.of = self.recurrence.of
        self.text = _CarriedText(self.tiles.text, self.recurrence)
        self.tiles.text = self.text
        self.tiles.reuses = False
        self.count = range(len(self.of.carried))
        self.text.tiles_of = {k: self._tile(k) for k in self.count}
        self.tiles.looped |= {self.of.variable, *self.of.span.free}

    def kernel(self) -> KernelText:
        """Write everything."""
        tiles, of = self.tiles, self.of
        for name, text in self.plan.combined:
            tiles.prologue.append(f"            {name} = {text}")
        self._allocate()
        for k in self.count:
            self._put(self.text.buffers[of.token, k], self.recurrence.starts[k], self._tile(k))
        along = [o for o in self.plan.finals if of.step in o.indices]
        kept = {**tiles.held}
        self._loop(str(of.extent))
        for k in self.count:
            self._put(self.text.buffers[of.after, k], self.recurrence.steps[k], self._tile(k))
        for o in along:
            self._result(o)
        for k in self.count:
            before, after = (self.text.buffers[token, k] for token in (of.token, of.after))
            if before != after:
                tiles.put(f"T.copy({after}, {before})")
        self._spans(step_of(of), "1")
        tiles.depth -= 1
        for x in [*tiles.held]:
            if x not in kept:
                del tiles.held[x]
        for o in self.plan.finals:
            if o not in along and not self._is_of_spans(o):
                self._result(o)
        return self._function()

    def _is_of_spans(self, o: Output) -> bool:
        return self.of.is_by_spans(o.indices)

    def _spans(self, first: str, count: str) -> None:
        """Write what is carried after the last step of a span.

        Parameters
        ----------
        first, count
            Of the steps of a block; empty if each block is a span.
        """
        outputs = [o for o in self.plan.finals if self._is_of_spans(o)]
        if outputs and first:
            is_last = f"({first} + {count}) % {SPAN} == 0 or {first} + {count} >= {self.of.extent}"
            if self.of.is_backward:
                is_last = f"{first} % {SPAN} == 0"
            self.tiles.put(f"if {is_last}:")
            self.tiles.depth += 1
        for o in outputs:
            self._result(o)
        if outputs and first:
            self.tiles.depth -= 1

    def _loop(self, count: str) -> None:
        """Begin the loop over blocks of steps."""
        self.tiles.put(f"for ko in T.serial({count}):")
        self.tiles.depth += 1
        if self.of.is_backward:
            self.tiles.put(f"{step_of(self.of)} = {count} - 1 - ko")

    def _tile(self, k: int) -> tuple[str, ...]:
        """Return the variables of the tile of a carried value."""
        return tile_of(self.plan, k)

    def _allocate(self) -> None:
        """Allocate tiles for values before a step and after it: one, where none reads both.

        What is read at other elements than those that a thread computes is shared.
        """
        of, roots = self.of, roots_of(self.plan.task)
        for k in self.count:
            step = self.recurrence.steps[k]
            mine = {x for x in carried_in(roots) if x.value[1] == k}
            before = {x for x in mine if x.value[0] == of.token}
            others = {x for root in roots if root is not step for x in carried_in([root])}
            is_in_place = not before & others and all(map(self._is_own, before))
            for token in [of.after] if is_in_place else [of.token, of.after]:
                read = mine if is_in_place else {x for x in mine if x.value[0] == token}
                is_own = all(map(self._is_own, read)) and not self._is_gone_through(k)
                base = "carried_on" if token == of.after and not is_in_place else "carried"
                scope = "fragment" if is_own else "shared"
                name = self.tiles.allocate(base, self._tile(k), scope, step.dtype)
                self.text.buffers[token, k] = name
            self.text.buffers.setdefault((of.token, k), self.text.buffers[of.after, k])

    def _is_own(self, x: Expr) -> bool:
        return is_as_carried(x, self.recurrence)

    def _is_gone_through(self, k: int) -> bool:
        """Tell whether a loop of each thread reads the value: a product of elements does."""
        return any(
            x.op == "reduce" and not self._is_tile(x) and any(
                n.value[1] == k for n in carried_in(x.args)
            )
            for x in walk(*roots_of(self.plan.task))
        )  # fmt: skip

    # -- expressions -------------------------------------------------------------------------

    def _put(self, buffer: str, x: Expr, dims: tuple[str, ...], part: str = "") -> None:
        """Write the elements of `x` to a tile, or to a part of one."""
        self._reductions(x)
        self.tiles.hoist(x, dims)
        parts, text = self.tiles.in_parts(x)
        at = f"{part}, {self.text.loops(dims)}" if part else self.text.loops(dims)
        self.tiles.parallel(dims, *parts, f"{buffer}[{at}] = {text}")

    def _result(self, o: Output) -> None:
        dims = self.results.dims(o)
        x = o.element
        self._reductions(x)
        if x.op == "carry" and self._is_own(x) and dims == self.text.tiles_of[x.value[1]]:
            buffer = self.text.buffers[x.value]
        elif x in self.tiles.held and self.tiles.held[x][1] == dims:
            buffer = self.tiles.held[x][0]
        else:
            buffer = self.tiles.allocate("result", dims, dtype=x.dtype)
            self._put(buffer, x, dims)
        self.tiles.put(f"T.copy({buffer}, {self.tiles.region(self.results.name(o), o.indices)})")

    def _reductions(self, x: Expr) -> None:
        """Compute the reductions in `x`, the inner ones first."""
        for node in walk(x):
            if node.op == "reduce" and node not in self.tiles.held:
                self.tiles.held[node] = self._reduced(node)

    def _is_tile(self, node: Expr) -> bool:
        """Tell whether a reduction goes over a dimension of a tile of what is carried."""
        kind, variable, _ = node.value
        is_column = kind != "prod" and variable in self.plan.columns
        return is_column and are_as_carried(node.args, self.recurrence)

    def _reduced(self, node: Expr) -> Tile:
        """Write a reduction to a tile of its own."""
        tiles = self.tiles
        dims, body = tiles.dims(node), node.args[0]
        kind, variable, extent = node.value
        nan = nan_propagated(kind, node.dtype)
        if self._is_tile(node):
            wanted = tiles.dims(body)
            wanted = wanted if variable in wanted else (*wanted, variable)
            part = tiles.allocate("part", wanted, dtype=node.dtype)
            self._put(part, body, wanted)
            name = tiles.allocate("folded", dims, dtype=node.dtype)
            known = "sum" if kind == "mean" else kind
            over = f"dim={wanted.index(variable)}{nan}"
            tiles.put(f"T.reduce_{known}({part}, {name}, {over})")
        else:
            name = tiles.allocate("folded", dims, dtype=node.dtype)
            axis = self.plan.axes[variable]
            me = f"{name}[{self.text.loops(dims)}]"
            start = identity_of(kind, node.dtype, is_infinite=True)
            parts, text = self.text.in_parts(body, tiles.fresh, 2)
            folded = _FOLDED[kind].format(me, text, nan)
            tiles.parallel(
                dims,
                f"{me} = {self.text.number(start, node.dtype)}",
                f"for {axis.loop} in T.serial({axis.extent}):",
                *(f"    {line}" for line in (*parts, f"{me} = {folded}")),
            )
        if kind == "mean":
            tiles.parallel(dims, f"{name}[{self.text.loops(dims)}] /= {extent}")
        return name, dims
