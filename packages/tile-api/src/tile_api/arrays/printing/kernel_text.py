"""The text of a kernel: sweeps over the stream, steps of states, stores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tile_api.arrays.equations.evaluate import once_begun
from tile_api.arrays.equations.expressions import Expr, const, make, subtract, walk
from tile_api.arrays.equations.numerics import is_fast
from tile_api.arrays.equations.sizes import LEAST, Size, ValueNeeded, names_in
from tile_api.arrays.planning.bounds import bounds_of, without_masks
from tile_api.arrays.planning.finite_extrema import (
    infinite_of,
    is_finite_extremum,
    with_infinities,
    with_infinities_met,
)
from tile_api.arrays.planning.not_numbers import looks_for_nan
from tile_api.arrays.planning.plan import Carried, Plan, factor
from tile_api.arrays.planning.storage import state_dtype, tile_dtype
from tile_api.arrays.planning.tile_folds import is_fold
from tile_api.arrays.planning.window_runs import along_rows
from tile_api.arrays.printing import running_means
from tile_api.arrays.printing.results import Results
from tile_api.arrays.printing.text import ExpressionText
from tile_api.arrays.printing.tiles import Tiles, narrowed, operand_dtypes
from tile_api.arrays.reductions.state import (
    COUNT,
    Correction,
    State,
    has_left,
    identity_of,
    is_running,
)
from tile_core.dtypes import DType


@dataclass(frozen=True)
class Tensor:
    """A parameter of a kernel."""

    name: str
    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True)
class KernelText:
    """A kernel as text.

    Parameters
    ----------
    inputs, outputs
        The names of the tensors that it takes and makes.
    symbols
        The sizes that it knows when it is called.
    """

    name: str
    text: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    symbols: tuple[str, ...] = ()


def distinct(kernels: Iterable[KernelText]) -> list[KernelText]:
    """Return each kernel once, as it is where it runs first."""
    made: dict[str, KernelText] = {}
    for kernel in kernels:
        made.setdefault(kernel.name, kernel)
    return [*made.values()]


_FAST = "tile.PassConfigKey.TL_ENABLE_FAST_MATH"


def written(name: str, plan: Plan, tensors: Mapping[str, Tensor]) -> KernelText:
    """Return the kernel of a plan; `tensors` are those that exist before it."""
    return Writer(name, plan, tensors).kernel()


class Writer:
    """Writes a kernel: the tiles, the loops, the function around them."""

    def __init__(self, name: str, plan: Plan, tensors: Mapping[str, Tensor]) -> None:
        self.name = name
        self.plan = plan = with_infinities_met(plan)
        self.grows = False  # whether blocks take the longer the farther back they are
        outputs = plan.finals
        made = {o.name: Tensor(o.name, o.shape or (1,), o.dtype) for o in outputs}
        self.tensors = {**tensors, **made}
        names = {*self.tensors, "T", "tile", "bx", "by", "bz", "ko", "BM", "BN", "BC", "threads"}
        names |= {"first", "last", "wholly", "rest", "place", *"ijdefgh", *plan.grid, name}
        self.symbols = frozenset().union(*(names_in(n) for t in tensors.values() for n in t.shape))
        names |= (
            {*self.symbols}
            | {index for index, _ in plan.indices}
            | {v.name for v in plan.task.views}
        )
        dtypes = {n: t.dtype for n, t in self.tensors.items()}
        views = [v for v in plan.task.views if v.tensor in dtypes]
        dtypes |= {v.name: dtypes[v.tensor] for v in views}
        shapes = {n: t.shape for n, t in self.tensors.items()} | {v.name: v.shape for v in views}
        self.tiles = Tiles(plan, dtypes, shapes, names)
        self.results = Results(plan, self.tiles)

    # -- sweeps ------------------------------------------------------------------------------

    def kernel(self) -> KernelText:
        """Write everything."""
        plan, tiles = self.plan, self.tiles
        for name, text in plan.combined:
            tiles.prologue.append(f"            {name} = {text}")
        for c in plan.carried:
            self._accumulator(c)
        for sweep in sorted({s.sweep for s in plan.states}):
            self._sweep([c for c in plan.carried if c.state.sweep == sweep])
        along = [o for o in self.results.ordered if self.results.is_along(o)]
        for o in self.results.ordered:
            if o not in along:
                self.results.store(o)
        if along and plan.is_resident:
            for o in along:
                self.results.store(o)
        elif along:
            assert plan.stream is not None
            for o in along:
                tiles.hoist(o.element, self.results.dims(o))
            with tiles.loop("0", plan.steps):
                for o in along:
                    self.results.store(o)
        return self._function()

    def _accumulator(self, c: Carried) -> None:
        plan, tiles, s = self.plan, self.tiles, c.state
        dims = tuple(v for v in (plan.row, c.column) if v is not None and v in s.mine.free)
        buffer = tiles.allocate("acc" if c.column else s.name, dims, dtype=state_dtype(s))
        tiles.held[s.mine] = (buffer, dims)
        if not plan.is_resident or c.column or s.kind == "prod":
            tiles.put(f"T.fill({buffer}, {self._identity(s)})")
        if has_left(s, plan.states) and not plan.is_resident and not plan.is_stepped:
            assert s.left is not None
            left = tiles.allocate(f"{s.name}_left", dims, dtype=state_dtype(s))
            tiles.held[s.left] = (left, dims)
            tiles.put(f"T.fill({left}, 0.0)")
            running_means.begin(plan, tiles, s)

    def _is_running(self, s: State) -> bool:
        """Tell whether a mean moves from block to block, since others read it.

        What nobody reads meanwhile is a sum that is divided in the end.
        """
        return not self.plan.is_resident and is_running(s, self.plan.states)

    def _identity(self, s: State) -> str:
        """Return where an accumulator starts, as text.

        An extremum starts from infinity, unless differences of its values are computed.
        """
        infinite = self._infinity(s)
        if infinite is None or is_finite_extremum(s, self.plan.states):
            dtype = state_dtype(s)
            return self.tiles.text.number(identity_of(s.kind, dtype), dtype)
        return infinite

    def _finish(self, s: State) -> None:
        """Make a sum a mean, and an extremum of nothing but infinities infinite."""
        tiles, plan = self.tiles, self.plan
        if s.kind == "mean" and not self._is_running(s):
            tiles.parallel(tiles.held[s.mine][1], f"{tiles.text(s.mine)} /= {self._extent()}")
        infinite = self._infinity(s)
        dtype = state_dtype(s)
        finite = self.tiles.text.number(identity_of(s.kind, dtype), dtype)
        later = [x.body for x in plan.states if x.sweep > s.sweep]
        results = [*(o.element for o in plan.finals), *later]
        is_whole = plan.is_resident or plan.parts is not None
        if is_whole or infinite is None or not is_finite_extremum(s, plan.states):
            return
        values = {x.mine: x.mine for x in plan.states}
        for mine, made in with_infinities(s, plan.states, results, values).items():
            tiles.parallel(tiles.held[mine][1], f"{tiles.text(mine)} = {tiles.text(made)}")
        if s.mine not in set(walk(*results)):
            return
        me = tiles.text(s.mine)
        text = f"{me} = T.if_then_else({me} == {finite}, {infinite}, {me})"
        tiles.parallel(tiles.held[s.mine][1], text)

    def _extent(self) -> str:
        """Return how many elements the stream has; a part of it, which counts itself."""
        plan = self.plan
        extent = plan.axes[plan.stream or ""].extent
        if plan.parts is None:
            return str(extent)
        each = plan.parts.blocks * plan.axes[plan.stream or ""].size
        mine = f"T.min({each}, {extent} - {plan.before} * BN)"
        return f"T.max(1, {mine})" if isinstance(extent, Size) else mine

    def _infinity(self, s: State) -> str | None:
        """Return the text of what an extremum of floats is of no elements."""
        dtype = state_dtype(s)
        if s.kind not in ("max", "min") or not dtype.is_float:
            return None
        return self.tiles.text.number(infinite_of(s), dtype)

    def _sweep(self, carried: Sequence[Carried]) -> None:
        if self.plan.is_resident:
            self._step(carried)
            return
        bounds = bounds_of(self.plan, [c.state for c in carried])
        self.grows |= bounds.grows
        for name, text in bounds.variables:
            self.tiles.put(f"{name} = {text}")
        for stretch in bounds.stretches:
            with self.tiles.loop(stretch.first, stretch.last, stretch):
                self._step([without_masks(c, stretch) for c in carried])
        for c in carried:
            self._finish(c.state)

    # -- a step ------------------------------------------------------------------------------

    def _step(self, carried: Sequence[Carried]) -> None:
        """Write what happens with a block of the stream."""
        plan, tiles = self.plan, self.tiles
        before: dict[Expr, Expr] = {}
        scales: dict[Expr, Expr] = {}
        for k, c in enumerate(carried):
            rest = carried[k + 1 :]
            later = [x.state.body for x in rest]
            if plan.is_resident:
                later += [o.element for o in plan.finals]
                later += [x.body for x in plan.states if x.sweep > c.state.sweep]
            if not plan.is_resident and any(
                x.state.correct and c.state.mine in x.state.depends for x in rest
            ):
                before[c.state.mine] = self._old(c.state.mine)
                if c.state.left is not None:
                    left = c.state.left
                    is_kept = left in tiles.held
                    before[left] = self._old(left) if is_kept else const(0.0, left.dtype)
            correction = self._correction(c.state, before, scales)
            if c.groups:
                self._product(c, correction, later)
            elif plan.is_stepped:
                self._step_of_one(c, correction, later, before)
            else:
                self._fold(c.state, correction, later, before)

    def _old(self, mine: Expr) -> Expr:
        """Return what stands for an accumulator as it was before the step."""
        held, dims = self.tiles.held[mine]
        name = self.tiles.allocate(f"{held}_before", dims, dtype=tile_dtype(mine))
        old = make("state", value=(name, tuple(sorted(mine.free))), dtype=mine.dtype)
        self.tiles.held[old] = (name, dims)
        return old

    def _correction(
        self, s: State, before: Mapping[Expr, Expr], scales: dict[Expr, Expr]
    ) -> Correction:
        """Return how the accumulator is corrected; its factor is computed once for all."""
        if s.correct is None or self.plan.is_resident:
            return Correction()
        found = s.correct(before, {d: d for d in s.depends})
        if found.scale is None:
            return found
        if found.scale not in scales:
            tiles, scale = self.tiles, found.scale
            dims = tiles.dims(scale)
            name = tiles.allocate("rescale", dims, dtype=scale.dtype)
            text = tiles.text(self._once_begun(scale, s, before))
            tiles.parallel(dims, f"{name}[{tiles.text.loops(dims)}] = {text}")
            known = make("state", value=(name, tuple(sorted(scale.free))), dtype=scale.dtype)
            tiles.held[known] = (name, dims)
            scales[scale] = known
        return Correction(scale=scales[found.scale])

    def _once_begun(self, scale: Expr, s: State, before: Mapping[Expr, Expr]) -> Expr:
        """Return the factor of an accumulator, which is 1 where it has met nothing yet."""
        starts = {
            before[x.mine]: const(identity_of(x.kind, state_dtype(x)), x.mine.dtype)
            for x in self.plan.states
            if x.mine in s.depends
        }
        return once_begun(scale, starts)

    def _product(self, c: Carried, correction: Correction, later: Sequence[Expr]) -> None:
        """Write a product of tiles into an accumulator."""
        tiles, s, stream = self.tiles, c.state, self.plan.stream
        buffer, dims = tiles.held[s.mine]
        left, right = narrowed([factor(group, s.body) for group in c.groups])
        if correction.scale is not None:
            tiles.parallel(dims, f"{tiles.text(s.mine)} *= {tiles.text(correction.scale)}")
        types = operand_dtypes((left, right), tiles.dtypes)
        mask = self._mask("0.0" if left.dtype.is_float else "0")
        if tiles.is_box(left):
            a, a_dims = tiles.operand(left, types[0])
        else:
            lying = along_rows(left, tiles.dims(left))
            a, a_dims = tiles.computed(left, lying, "weights", later, mask=mask, dtype=types[0])
        if tiles.is_box(right):
            b, b_dims = tiles.operand(right, types[1])
        else:  # what is computed beyond the end may be infinite, and zero times that is no number
            lying = along_rows(right, tiles.dims(right))
            b, b_dims = tiles.computed(right, lying, "factor", (), mask=mask, dtype=types[1])
        flags = ", transpose_A=True" * (a_dims[0] == stream)
        flags += ", transpose_B=True" * (b_dims[1] == stream)
        mixed = any(not x.column for x in self.plan.carried)
        policy = ", policy=T.GemmWarpPolicy.FullRow" if mixed else ""
        tiles.put(f"T.gemm({a}, {b}, {buffer}{flags}{policy})")

    def _mask(self, identity: str) -> str | None:
        """Return what elements beyond the end of the stream are, if there are such."""
        plan = self.plan
        if plan.is_resident or plan.stream is None:
            return None
        axis = plan.axes[plan.stream]
        return identity if axis.extent % axis.size else None

    def _fold(
        self, s: State, correction: Correction, later: Sequence[Expr], before: Mapping[Expr, Expr]
    ) -> None:
        """Write a reduction of a tile into an accumulator."""
        tiles, plan = self.tiles, self.plan
        assert plan.stream is not None
        buffer, dims = tiles.held[s.mine]
        # A mean moves by the mean of what is left of it: a sum of all would be rounded.
        moves = self._is_running(s) and s.correct is None
        body = subtract(s.body, running_means.base(tiles, s)) if moves else s.body
        wanted: tuple[str, ...] = (plan.stream,)
        if plan.row is not None and plan.row in s.mine.free:
            wanted = (plan.row, plan.stream)
            if tiles.has_columns(body, *wanted):
                wanted = (plan.stream, plan.row)
        mask = self._mask(self._identity(s))
        if s.kind in ("sum", "mean") and not moves and tiles.ends_in(mask, s.body, plan.stream):
            mask = None  # copies have zeros there
        if s.kind == "prod":
            self._multiply(s, mask)
            return
        if plan.is_resident or any(is_fold(n) for n in walk(body)):
            tiles.hoist(body, wanted)
        tile, tile_dims = tiles.computed(body, wanted, "x", later, mask=mask)
        for now in (s.mine, s.left):
            if now is not None and now in before:
                tiles.put(f"T.copy({tiles.held[now][0]}, {tiles.held[before[now]][0]})")
        axis, me = tile_dims.index(plan.stream), tiles.text(s.mine)
        kind = "sum" if s.kind == "mean" else s.kind
        nan = ""
        if looks_for_nan(s, plan.states, [o.element for o in plan.finals]):
            nan = ", nan_propagate=True"
        if plan.is_resident:
            tiles.put(f"T.reduce_{kind}({tile}, {buffer}, dim={axis}{nan})")
            if s.kind == "mean":
                tiles.parallel(dims, f"{me} /= {plan.axes[plan.stream].extent}")
            return
        if correction.value is not None:
            tiles.parallel(dims, f"{me} = {tiles.text(correction.value)}")
        is_added = kind == "sum" and correction.scale is None and not self._is_running(s)
        if kind in ("max", "min") or is_added:
            tiles.put(f"T.reduce_{kind}({tile}, {buffer}, dim={axis}, clear=False{nan})")
            return
        part = tiles.allocate(f"{s.name}_part", dims, dtype=state_dtype(s))
        tiles.put(f"T.reduce_{kind}({tile}, {part}, dim={axis})")
        part = f"{part}[{tiles.text.loops(dims)}]"
        scale = None if correction.scale is None else tiles.text(correction.scale)
        if moves:
            tiles.held.pop(body, None)
            running_means.move(tiles, s, part, self._met())
        elif self._is_running(s):
            scaled = f"{me} * {scale}" if scale is not None else me
            old = f"{scaled} * {tiles.text(COUNT)}"
            tiles.parallel(dims, f"{me} = ({old} + {part}) / {self._met()}")
        else:
            tiles.parallel(dims, f"{me} = {me} * {scale} + {part}")

    def _step_of_one(
        self, c: Carried, correction: Correction, later: Sequence[Expr], before: Mapping[Expr, Expr]
    ) -> None:
        """Write what one element of the stream adds to an accumulator of rows and columns."""
        tiles, s = self.tiles, c.state
        buffer, dims = tiles.held[s.mine]
        if s.mine in before:
            tiles.put(f"T.copy({buffer}, {tiles.held[before[s.mine]][0]})")
        tiles.prepare(s.body)
        me, (parts, new) = tiles.text(s.mine), tiles.in_parts(s.body)
        new = f"({new})" if s.body.op == "add" else new  # the sum does not wait for the one before
        if self._is_running(s):  # what is infinite is not taken from another infinity
            apart = f"T.if_then_else(T.isfinite({me}), {new} - {me}, {new})"
            new = f"{apart} / {self._met()}"
        old = me if correction.value is None else tiles.text(correction.value)
        if correction.scale is not None:
            old = f"{old} * {tiles.text(correction.scale)}"
        nan = ", nan_propagate=True" * s.body.dtype.is_float
        text = {"max": f"T.max({old}, {new}{nan})", "min": f"T.min({old}, {new}{nan})",
                "prod": f"{old} * ({new})"}.get(s.kind, f"{old} + {new}")  # fmt: skip
        tiles.parallel(dims, *parts, f"{me} = {text}")

    def _multiply(self, s: State, mask: str | None) -> None:
        """Write a product of elements, one after the other: there is no operator for it."""
        tiles, plan = self.tiles, self.plan
        assert plan.stream is not None
        _, dims = tiles.held[s.mine]
        axis = plan.axes[plan.stream]
        carried = {state.mine: tiles.held[state.mine] for state in plan.states}
        parts, text = ExpressionText(plan, tiles.dtypes, carried).in_parts(s.body, tiles.fresh, 2)
        if mask is not None:
            text = f"T.if_then_else({tiles.text.at(plan.stream)} < {axis.extent}, {text}, {mask})"
        me = tiles.text(s.mine)
        tiles.parallel(
            dims,
            f"for {axis.loop} in T.serial({axis.text}):",
            *(f"    {line}" for line in (*parts, f"{me} = {me} * {text}")),
        )

    def _met(self) -> str:
        """Return how many elements of the stream were met after the step."""
        assert self.plan.stream is not None
        if self.plan.is_stepped:
            return "(ko + 1)"
        axis = self.plan.axes[self.plan.stream]
        is_ragged = axis.extent % axis.size
        met = f"T.min(ko * BN + BN, {axis.extent})" if is_ragged else "(ko * BN + BN)"
        return f"({met} - {self.plan.before} * BN)" if self.plan.parts else met

    def _function(self) -> KernelText:
        plan, tiles = self.plan, self.tiles
        read = {
            n.value
            for x in (*(o.element for o in plan.finals), *(s.body for s in plan.states))
            for n in walk(x, *plan.task.carried)
            if n.op == "load"
        }
        outputs = [o.name for o in plan.finals]
        views = [v for v in plan.task.views if v.name in read or v.tensor in outputs]
        read |= {v.tensor for v in views}
        inputs = [n for n in self.tensors if n in read and n not in outputs]
        parameters = "".join(
            f'\n        {t.name}: T.Tensor({t.shape or (1,)}, "{t.dtype}"),'
            for t in map(self.tensors.__getitem__, (*inputs, *outputs))
        )
        sizes = self._sizes()
        told = (*(f"{s.name}: {s.kind}, {s.rule}" for s in plan.states), *plan.notes)
        notes = "".join(f"\n        # {note}" for note in told)
        indices = dict(plan.indices)
        if self.grows:  # those that take longest come first, not last and alone
            tiles.allocations.insert(0, f"bx = {indices['bx']} - 1 - place")
        names = ", ".join("place" if self.grows and n == "bx" else n for n in indices) or "bx"
        counts = ", ".join(count for _, count in plan.indices) or "1"
        block = f"({names})" if len(plan.indices) > 1 else names
        shown = [f"{v.name} = T.reshape({v.tensor}, {v.shape})" for v in views]
        allocations = "".join(f"\n            {line}" for line in (*shown, *tiles.allocations))
        body = "\n".join((*tiles.prologue, *tiles.lines))
        symbols = self._used(inputs, f"{parameters}{counts}{allocations}{body}")
        declared = ", ".join(symbols)
        if symbols:
            declared = f'    {declared} = T.dynamic("{declared}", min={LEAST})\n'
        configs = f", pass_configs={{{_FAST}: True}}" * is_fast()
        text = (
            f"@tile.jit(out_idx={[k - len(outputs) for k in range(len(outputs))]}{configs})\n"
            f'def {self.name}({sizes}):\n    """Compute {", ".join(outputs)}."""\n{declared}\n'
            f"    @T.prim_func\n    def main({parameters}\n    ):"
            f"{notes}\n"
            f"        with T.Kernel({counts}, threads=threads) as {block}:{allocations}\n{body}\n\n"
            "    return main\n"
        )
        return KernelText(self.name, text, tuple(inputs), tuple(outputs), symbols)

    def _used(self, inputs: Sequence[str], text: str) -> tuple[str, ...]:
        """Return the symbols in a text.

        Raises
        ------
        ValueNeeded
            If no argument tells what one is.
        """
        words = {*re.findall(r"[^\W\d]\w*", text)}
        used = sorted(self.symbols & words)
        told = {str(n) for name in inputs for n in self.tensors[name].shape}
        unknown = frozenset(used) - told
        if unknown:
            raise ValueNeeded(unknown, "no array that a kernel reads tells it")
        return tuple(used)

    def _sizes(self) -> str:
        plan = self.plan
        made = [("BM", plan.row, plan.blocks.rows), ("BN", plan.stream, plan.blocks.stream)]
        found = [
            f"{name}={plan.axes[v].size}"
            for name, v, _ in made
            if v is not None and plan.axes[v].text == name
        ]
        if any(plan.axes[v].text == "BC" for v in plan.columns):
            found.append(f"BC={plan.blocks.columns}")
        return ", ".join((*found, f"threads={plan.blocks.threads}"))
