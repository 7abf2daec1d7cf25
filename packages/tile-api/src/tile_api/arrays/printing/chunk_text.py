"""The text of a kernel that takes the steps of a recurrence in chunks, by products of tiles."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from tile_api.arrays.equations.expressions import Expr, extents_of, index
from tile_api.arrays.equations.recurrence import SPAN
from tile_api.arrays.equations.substitution import substituted
from tile_api.arrays.planning.affine import Chunked, Declined, Read, Value, chunked
from tile_api.arrays.planning.plan import Axis, Blocks, Plan, with_grid
from tile_api.arrays.planning.recurrence_plan import (
    is_apart,
    roots_of,
    span_axis,
    step_of,
    stepped_plan,
)
from tile_api.arrays.planning.tasks import Task
from tile_api.arrays.printing.kernel_text import KernelText, Tensor
from tile_api.arrays.printing.prefix_text import prefix, prefix_plan, with_prefix
from tile_api.arrays.printing.recurrence_text import SteppedWriter
from tile_api.arrays.printing.sorting_text import SortingWriter

_ROWS = "policy=T.GemmWarpPolicy.FullRow"


def chunked_plan(task: Task, blocks: Blocks, form: Chunked) -> Plan:
    """Return a kernel in which each block goes through chunks of the steps."""
    recurrence = task.recurrence
    assert recurrence is not None
    of = recurrence.of
    extents = extents_of([*roots_of(task), *(i for o in task.outputs for i in o.indices)])
    extents |= {name: n for variables in of.carried for name, n in variables if name}
    size = 16
    while size < min(of.extent, blocks.stream, 16 if form.is_diagonal else 64):
        size *= 2
    step, earlier = of.variable, _earlier(of.variable)
    start = f"{step_of(of)} * BM"
    axes = {
        step: Axis(step, of.extent, size, "BM", start, "i"),
        earlier: Axis(earlier, of.extent, size, "BM", start, "j"),
    }
    letters = iter("defgh")
    indices: list[tuple[str, str]] = []
    n = extents[form.column]
    has_all = all(form.column in {x.value[0] for x in o.indices if x.op == "index"}
                  for o in task.outputs)  # fmt: skip
    loop = next(letters)
    if n <= blocks.columns or not has_all:
        axes[form.column] = Axis(form.column, n, n, str(n), "0", loop)
    else:
        axes[form.column] = Axis(form.column, n, blocks.columns, "BC", "by * BC", loop)
        indices.append(("by", f"T.ceildiv({n}, BC)"))
    for name in dict.fromkeys(value.summed for value in form.values):
        axes[name] = Axis(
            name, extents[name], extents[name], str(extents[name]), "0", next(letters)
        )
    order = [i.value[0] for o in task.outputs for i in o.indices if i.op == "index"]
    axes |= span_axis(of, step_of(of) if size == SPAN else f"{step_of(of)} * BM // {SPAN}")
    grid = tuple(
        sorted(
            (v for v in extents if v not in axes and is_apart(v, task, recurrence)), key=order.index
        )
    )
    axes |= {v: Axis(v, extents[v], 1, "1", f"g{k}", "") for k, v in enumerate(grid)}
    values = len(form.values)
    note = (
        f"carried: {values} value{'s' * (values > 1)}, {of.extent} steps in chunks of {size}: "
        "products of tiles, masked and decayed"
    )
    columns = (form.column, *dict.fromkeys(value.summed for value in form.values))
    points = (*grid, *of.span.free)
    plan = Plan(task, blocks, (), task.outputs, step, columns, points, axes, notes=(note,))
    return with_grid(plan, indices, [extents[v] for v in grid])


def _earlier(step: str) -> str:
    """Return the variable of the steps of a chunk up to another one."""
    return f"{step}'"


def recurring_plan(task: Task, blocks: Blocks) -> Plan:
    """Return the kernel of a recurrence: by tiles of its steps, where that is possible."""
    if task.recurrence is not None and task.recurrence.of.sorted_by is not None:
        return stepped_plan(task, blocks)
    with suppress(Declined):
        prefix(task)
        return prefix_plan(task, blocks)
    try:
        return chunked_plan(task, blocks, chunked(task))
    except Declined as reason:
        return stepped_plan(task, blocks, str(reason))


def recurring(name: str, plan: Plan, tensors: Mapping[str, Tensor]) -> KernelText:
    """Return the kernel of a plan; `tensors` are those that exist before it."""
    recurrence = plan.task.recurrence
    if recurrence is not None and recurrence.of.sorted_by is not None:
        return SortingWriter(name, plan, tensors).kernel()
    if plan.step in plan.columns:
        return with_prefix(name, plan, tensors)
    if plan.row != plan.step:
        return SteppedWriter(name, plan, tensors).kernel()
    form = chunked(plan.task)
    writer = _DiagonalWriter if form.is_diagonal else _ChunkWriter
    return writer(name, plan, tensors, form).kernel()


def _is_in_order(x: Expr, dims: tuple[str, ...]) -> bool:
    """Tell whether the dimensions of a box are those of a tile, in their order."""
    return tuple(i.value[0] for i in x.args if i.op == "index" and i.value[0] in dims) == dims


class _ChunkWriter(SteppedWriter):
    def __init__(self, name: str, plan: Plan, tensors: Mapping[str, Tensor], form: Chunked) -> None:
        self.form = form
        super().__init__(name, plan, tensors)
        self.dtype = str(self.recurrence.steps[0].dtype)
        self.step, self.earlier = self.of.variable, _earlier(self.of.variable)
        self.is_ragged = bool(self.of.extent % plan.axes[self.step].size)
        self.decays = self.since = ""
        self.decays_before = self.since_before = ""
        self.first, self.last = "0", "BM - 1"
        if self.of.is_backward:
            self.first, self.last = self.last, self.first
        self.made: dict[tuple[Expr, tuple[str, ...]], str] = {}
        self.weights: dict[tuple[str, str, str], str] = {}

    def kernel(self) -> KernelText:
        """Write everything."""
        tiles, form, of = self.tiles, self.form, self.of
        for name, text in self.plan.combined:
            tiles.prologue.append(f"            {name} = {text}")
        for value in form.values:
            dims = self._dims_of(value)
            buffer = tiles.allocate("carried", dims, dtype=self.dtype)
            self.text.buffers[of.after, value.carry] = buffer
            self._put(buffer, self.recurrence.starts[value.carry], dims)
        self._loop(f"T.ceildiv({of.extent}, BM)")
        self._decays()
        for node, read in form.reads.items():
            tiles.held[node] = self._read(read)
        along = [o for o in self.plan.finals if of.step in o.indices]
        for o in along:
            self._result(o)
        for value in form.values:
            self._carry_on(value)
        self._spans(f"{step_of(of)} * BM" if self.plan.axes[self.step].size < SPAN else "", "BM")
        tiles.depth -= 1
        for node in form.reads:
            del tiles.held[node]
        for o in self.plan.finals:
            if o not in along and not self._is_of_spans(o):
                self._result(o)
        return self._function()

    def _dims_of(self, value: Value) -> tuple[str, ...]:
        return (value.summed,) if value.column is None else (value.summed, value.column)

    def _tile(self, k: int) -> tuple[str, ...]:
        return self._dims_of(self.form.values[k])

    def _steps(self) -> None:
        """Begin the loop over the steps of a chunk."""
        self.tiles.put(f"for {'ro' if self.of.is_backward else 'r'} in T.serial(BM):")
        self.tiles.depth += 1
        if self.of.is_backward:
            self.tiles.put("r = BM - 1 - ro")

    # -- a chunk -----------------------------------------------------------------------------

    def _decays(self) -> None:
        """Write the products of decays after each step up to each other one, and since the start.

        Products, not differences of sums of logarithms: decays may be 0, negative or anything.
        """
        tiles, decay = self.tiles, self.form.decay
        if decay is None:
            return
        step = tiles.allocate("decay", (self.step,), "shared", self.dtype)
        self._put(step, decay, (self.step,), "1.0")
        run = tiles.allocate("run", (self.earlier,), dtype=self.dtype)
        self.decays = tiles.allocate("decays", (self.step, self.earlier), "shared", self.dtype)
        self.since, first = tiles.allocate("since", (self.step,), "shared", self.dtype), self.first
        tiles.put(f"T.fill({run}, 0.0)")
        if any(node.is_earlier for node in self.form.reads.values()):
            both = (self.step, self.earlier)
            self.decays_before = tiles.allocate("decays_before", both, "shared", self.dtype)
            self.since_before = tiles.allocate("since_before", both[:1], "shared", self.dtype)
        self._steps()
        if self.decays_before:
            tiles.parallel((self.earlier,), f"{self.decays_before}[r, j] = {run}[j]")
        tiles.parallel(
            (self.earlier,),
            f"{run}[j] = T.if_then_else(j == r, 1.0, {run}[j] * {step}[r])",
            f"{self.decays}[r, j] = {run}[j]",
        )
        tiles.depth -= 1
        tiles.parallel(
            (self.step,), f"{self.since}[i] = {self.decays}[i, {first}] * {step}[{first}]"
        )

        if self.decays_before:
            text = f"{self.decays_before}[i, {first}] * {step}[{first}]"
            text = f"T.if_then_else(i == {first}, 1.0, {text})"
            tiles.parallel((self.step,), f"{self.since_before}[i] = {text}")

    def _put(self, buffer: str, x: Expr, dims: tuple[str, ...], beyond: str | None = None) -> None:
        """Write the elements of `x` to a tile; `beyond` the last step they are something else."""
        self.tiles.hoist(x, dims)
        at = self.text.loops(dims)
        parts, text = self.tiles.in_parts(x)
        if beyond is not None and self.is_ragged:
            along = self.step if self.step in dims else self.earlier
            text = f"T.if_then_else({self.text.at(along)} < {self.of.extent}, {text}, {beyond})"
        self.tiles.parallel(dims, *parts, f"{buffer}[{at}] = {text}")

    def _shared(self, x: Expr, dims: tuple[str, ...], base: str, beyond: str) -> str:
        """Return a tile of shared memory with the elements of `x`."""
        key = (x, dims)
        if key not in self.made:
            if dims[0] == self.earlier:
                x = substituted(x, {self.step: index(self.earlier, self.of.extent)})
            name = self.tiles.allocate(base, dims, "shared", self.dtype)
            if self.tiles.is_box(x) and self.tiles.dims(x) == dims and _is_in_order(x, dims):
                self.tiles.put(f"T.copy({self.tiles.region(x.value, x.args)}, {name})")
            else:
                self._put(name, x, dims, beyond)
            self.made[key] = name
        return self.made[key]

    def _left(self, value: Value) -> str:
        return self._shared(value.left, (self.earlier, value.summed), "left", "0.0")

    def _right(self, value: Value) -> str:
        dims = (self.earlier,) if value.column is None else (self.earlier, value.column)
        return self._shared(value.right, dims, "right", "0.0")

    def _up_to(self, node: Read) -> str:
        """Return how the steps that give what a step reads compare with it."""
        return ("<>"[self.of.is_backward]) + "=" * (not node.is_earlier)

    def _read(self, node: Read) -> tuple[str, tuple[str, ...]]:
        """Write what a sum reads after each step of a chunk."""
        value = node.value
        tiles, carried = self.tiles, self.text.buffers[self.of.after, value.carry]
        query = self._shared(node.by, (self.step, value.summed), "query", "0.0")
        weights = self._weights(query, self._left(value), self._up_to(node))
        d = self.plan.axes[value.summed].loop
        dims = (self.step,) if value.column is None else (self.step, value.column)
        read = tiles.allocate("read", dims, dtype=self.dtype)
        since = self.since_before if node.is_earlier else self.since
        since = f" * {since}[i]" * bool(since)
        if value.column is None:
            part = tiles.allocate("part", (self.step, value.summed), dtype=self.dtype)
            before = tiles.allocate("before", dims, dtype=self.dtype)
            tiles.parallel(
                (self.step, value.summed),
                f"{part}[i, {d}] = {self._asked(query)}[i, {d}] * {carried}[{d}]",
            )
            tiles.put(f"T.reduce_sum({part}, {before}, dim=1)")
            if value.right.op != "const" or value.right.value != 1:
                both = (self.step, self.earlier)
                own = tiles.allocate("weighted", both, dtype=self.dtype)
                tiles.parallel(both, f"{own}[i, j] = {weights}[i, j] * {self._right(value)}[j]")
                weights = own
            tiles.put(f"T.reduce_sum({weights}, {read}, dim=1)")
            tiles.parallel(dims, f"{read}[i] = {read}[i] + {before}[i]{since}")
            return read, dims
        before = tiles.allocate("before", self._dims_of(value), "shared", self.dtype)
        tiles.put(f"T.copy({carried}, {before})")
        tiles.put(f"T.gemm({self._asked(query)}, {before}, {read}, clear_accum=True, {_ROWS})")
        if since:
            at = self.text.loops(dims)
            tiles.parallel(dims, f"{read}[{at}] = {read}[{at}]{since}")
        tiles.put(f"T.gemm({weights}, {self._right(value)}, {read}, {_ROWS})")
        return read, dims

    def _asked(self, query: str) -> str:
        """Return the factor by which what was carried into the chunk is read."""
        return query

    def _kept(self, left: str) -> str:
        """Return the factor of what is carried on to the next chunk."""
        return left

    def _all_of(self, value: Value) -> str:
        """Return the decay of a whole chunk, as a factor in a text; empty without one."""
        return f" * {self.since}[{self.last}]" * bool(self.since)

    def _weights(self, query: str, left: str, up_to: str) -> str:
        """Return the tile of the products of two factors, for steps and those up to each."""
        tiles, key = self.tiles, (query, left, up_to)
        if key not in self.weights:
            both = (self.step, self.earlier)
            name = self.weights[key] = tiles.allocate("weights", both, dtype=self.dtype)
            flags = f"transpose_B=True, clear_accum=True, {_ROWS}"
            tiles.put(f"T.gemm({query}, {left}, {name}, {flags})")
            decays = self.decays if "=" in up_to else self.decays_before
            decayed = f"{name}[i, j]" + f" * {decays}[i, j]" * bool(decays)
            tiles.parallel(both, f"{name}[i, j] = T.if_then_else(j {up_to} i, {decayed}, 0.0)")
        return self.weights[key]

    def _carry_on(self, value: Value) -> None:
        """Write what is carried into the next chunk."""
        tiles, carried = self.tiles, self.text.buffers[self.of.after, value.carry]
        left = self._kept(self._left(value))
        is_one = value.right.op == "const" and value.right.value == 1
        right = "" if is_one else self._right(value)
        dims = self._dims_of(value)
        at, d = self.text.loops(dims), self.plan.axes[value.summed].loop
        until = f" * {self.decays}[{self.last}, j]" * bool(self.decays)
        all_of = self._all_of(value)
        if value.column is None:
            part = tiles.allocate("part", (self.earlier, value.summed), dtype=self.dtype)
            added = tiles.allocate("added", dims, dtype=self.dtype)
            tiles.parallel(
                (self.earlier, value.summed),
                f"{part}[j, {d}] = {left}[j, {d}]" + f" * {right}[j]" * (not is_one) + until,
            )
            tiles.put(f"T.reduce_sum({part}, {added}, dim=0)")
            tiles.parallel(dims, f"{carried}[{at}] = {carried}[{at}]{all_of} + {added}[{at}]")
            return
        if all_of:
            tiles.parallel(dims, f"{carried}[{at}] = {carried}[{at}]{all_of}")
        if until:
            own = (self.earlier, value.column)
            now = f"{right}[{self.text.loops(own)}]"
            kept = tiles.allocate("kept", own, "shared", self.dtype)
            tiles.parallel(own, f"{kept}[{self.text.loops(own)}] = {now}{until}")
            right = kept
        tiles.put(f"T.gemm({left}, {right}, {carried}, transpose_A=True)")


class _DiagonalWriter(_ChunkWriter):
    """Each element that is summed has a decay of its own."""

    def __init__(self, name: str, plan: Plan, tensors: Mapping[str, Tensor], form: Chunked) -> None:
        super().__init__(name, plan, tensors, form)
        self.scaled: dict[str, str] = {}
        self.lasting = ""

    def _decays(self) -> None:
        """Write weights step by step: decays are multiplied, then summed with both factors."""
        tiles, form = self.tiles, self.form
        assert form.decay is not None
        (summed,) = {value.summed for value in form.values}
        e = self.plan.axes[summed].loop
        own, all_own = (self.earlier, summed), (self.step, summed)
        decay = tiles.allocate("decay", all_own, "shared", self.dtype)
        self._put(decay, form.decay, all_own, "1.0")
        queries = [
            (self._shared(n.by, all_own, "query", "0.0"), self._left(n.value), self._up_to(n))
            for n in form.reads.values()
        ]
        run, since = (tiles.allocate("run", own, dtype=self.dtype),
                      tiles.allocate("since", (summed,), dtype=self.dtype))  # fmt: skip
        self.lasting = tiles.allocate("lasting", all_own, "shared", self.dtype)
        part = tiles.allocate("part", own, dtype=self.dtype)
        row = tiles.allocate("row", (self.earlier,), dtype=self.dtype)
        for key in dict.fromkeys(queries):
            both = (self.step, self.earlier)
            self.weights[key] = tiles.allocate("weights", both, "shared", self.dtype)
        tiles.put(f"T.fill({run}, 0.0)")
        tiles.put(f"T.fill({since}, 1.0)")
        self._steps()
        tiles.parallel(
            own, f"{run}[j, {e}] = T.if_then_else(j == r, 1.0, {run}[j, {e}] * {decay}[r, {e}])"
        )
        tiles.parallel(
            (summed,),
            f"{since}[{e}] = {since}[{e}] * {decay}[r, {e}]",
            f"{self.lasting}[r, {e}] = {since}[{e}]",
        )
        for (query, left, up_to), weights in self.weights.items():
            text = f"{query}[r, {e}] * {left}[j, {e}] * {run}[j, {e}]"
            tiles.parallel(own, f"{part}[j, {e}] = {text}")
            tiles.put(f"T.reduce_sum({part}, {row}, dim=1)")
            text = f"T.if_then_else(j {up_to} r, {row}[j], 0.0)"
            tiles.parallel((self.earlier,), f"{weights}[r, j] = {text}")
        tiles.depth -= 1
        for query in dict.fromkeys(query for query, *_ in queries):
            asked = self.scaled[query] = tiles.allocate("asked", all_own, "shared", self.dtype)
            text = f"{query}[i, {e}] * {self.lasting}[i, {e}]"
            tiles.parallel(all_own, f"{asked}[i, {e}] = {text}")
        for left in dict.fromkeys(left for _, left, _ in queries):
            kept = self.scaled[left] = tiles.allocate("kept", own, "shared", self.dtype)
            tiles.parallel(own, f"{kept}[j, {e}] = {left}[j, {e}] * {run}[j, {e}]")

    def _asked(self, query: str) -> str:
        return self.scaled[query]

    def _kept(self, left: str) -> str:
        return self.scaled[left]

    def _all_of(self, value: Value) -> str:
        return f" * {self.lasting}[{self.last}, {self.plan.axes[value.summed].loop}]"
