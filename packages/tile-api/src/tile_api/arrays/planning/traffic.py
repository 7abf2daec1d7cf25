"""What a kernel moves and computes, in closed form, and how long that takes at least."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, walk
from tile_api.arrays.equations.sizes import usual
from tile_api.arrays.planning.plan import PART, Plan
from tile_core.cost.roofline import FUNCTION_OPERATIONS, Peaks
from tile_core.dtypes import DType
from tile_core.errors import TileError
from tile_core.plugins.host import PluginHost, default_host
from tile_core.target import GPUS, Target, parse_target_spec

LINE = 64
"""Bytes that memory delivers together."""

REGISTERS = 1 << 18
"""Bytes of registers of a GPU's multiprocessor."""

FUNCTIONS = frozenset(("exp", "log", "tanh", "sin", "cos", "erf", "pow", "sqrt", "reciprocal"))


@dataclass(frozen=True)
class Machine:
    """What kernels are planned for.

    Parameters
    ----------
    rows
        Rows of a product that an instruction takes: blocks have no fewer.
    step_us
        Until a step of a loop has what it loads.
    thread_bytes
        Of accumulators that a thread keeps, or half of its tiles where no product is.
    run
        Bytes side by side that are read about as fast as any: shorter ones are no candidates.
    busy_rows
        Rows of a block that keep the units for products busy.
    """

    target: Target
    peaks: Peaks
    rows: int
    step_us: float
    thread_bytes: float
    run: int
    busy_rows: int


def machine_of(spec: object, host: PluginHost | None = None) -> Machine | None:
    """Return the machine of a target, or None if nothing is known of it."""
    try:
        target = replace(parse_target_spec(spec), executor="")
        backend, exact = (host or default_host()).resolve(target)
        if backend.peaks is None:
            return None
        # The processor at hand by its row of the table: nothing is measured now.
        is_here = exact.arch in ("", "native", "host")
        peaks = backend.peaks(exact, "host" if is_here else "")
    except TileError:
        return None
    if exact.kind in GPUS:
        return Machine(exact, peaks, rows=16, step_us=0.5, thread_bytes=1024, run=64, busy_rows=64)
    return Machine(exact, peaks, rows=1, step_us=0.03, thread_bytes=2048, run=256, busy_rows=1)


@dataclass(frozen=True)
class Traffic:
    """What a kernel moves and computes.

    Parameters
    ----------
    blocks, steps
        Blocks of the grid, and steps of the loop in each.
    memory, cache
        Bytes of tensors, each counted once; and once for each block that reads or writes them.
    products
        Multiplications and additions of products of tiles; they count more in blocks that leave
        the units for products idle.
    dtype
        Of their factors.
    run
        Bytes side by side that a box has, of whatever box has fewest.
    operations
        Others, functions among them by what they take.
    accumulators, tiles
        Bytes of those of a block, and of all its tiles.
    """

    blocks: int
    steps: int
    memory: float
    cache: float
    products: float
    operations: float
    accumulators: float
    tiles: float
    dtype: str = "float32"
    run: float = math.inf

    def milliseconds(self, machine: Machine) -> float:
        """Return the least time, by whatever is busy longest, and the launch."""
        peaks = machine.peaks
        rounds = math.ceil(self.blocks / peaks.units)
        idle = rounds * peaks.units / self.blocks
        rates = peaks.products
        product_rate = rates.get(self.dtype, rates.get("float32", peaks.tflops))
        work = self.products / product_rate / 1e9 + self.operations / peaks.tflops / 1e9
        busy = max(
            self.memory / peaks.memory_gbps / 1e6 * max(1.0, idle / 2),
            self.cache / (peaks.cache_gbps or peaks.memory_gbps) / 1e6 * idle,
            work * idle,
        )
        together = min(rounds, self._together()) if machine.rows > 1 else 1
        waits = rounds * self.steps * machine.step_us / together / 1e3
        return busy + waits + peaks.launch_us / 1e3

    def _together(self) -> float:
        """Return how many blocks may share a GPU's unit, and wait for memory together."""
        return 2 if self.products else min(16, max(1, REGISTERS / max(1, self.tiles)))


def traffic_of(plan: Plan, dtypes: Mapping[str, DType], machine: Machine) -> Traffic:
    """Return what a kernel moves and computes; `dtypes` are those of the tensors that it reads."""
    plan = _usual(plan)
    axes, stream = plan.axes, plan.stream
    parts = plan.parts.count if plan.parts else 1
    blocks = blocks_of(plan)
    length = math.ceil(axes[stream].extent / parts) if stream is not None else 1
    along = 1 if stream is None or plan.is_resident else math.ceil(length / axes[stream].size)

    def size(v: str, whole: bool = True) -> int:
        return length if v == stream and whole else axes[v].size

    def moved(n: Expr, name: str, indices: Iterable[Expr]) -> tuple[float, float, float]:
        """Return the bytes of a tensor that blocks need, those of all blocks, those in a run."""
        nbytes = dtypes[name].bits / 8
        names = [v for v in axes if v in n.free]
        *_, last = indices or (n,)
        run = math.prod(size(v, False) for v in last.free if v in axes)
        wasted = max(1.0, LINE / (run * nbytes))
        each = math.prod(size(v) for v in names if v not in plan.grid)
        whole = math.prod(axes[v].extent for v in names) * nbytes
        is_cut = any(size(v, False) < axes[v].extent for v in last.free if v in axes)
        is_cut = is_cut and len(n.free - plan.points) > 1
        return whole, each * blocks * nbytes * wasted, run * nbytes if is_cut else math.inf

    bodies = [s.body for s in plan.states]
    roots = [*bodies, *(o.element for o in plan.finals)]
    memory, cache, shortest = 0.0, 0.0, math.inf
    for n in {n for n in walk(*roots) if n.op == "load" and n.value in dtypes}:
        sweeps = 1 if plan.is_resident else max(1, _sweeps(plan, n))
        once, all_together, side_by_side = moved(n, n.value, n.args)
        shortest = min(shortest, side_by_side)
        memory, cache = memory + once, cache + all_together * sweeps
    for o in plan.finals:
        nbytes = math.prod(o.shape) * o.dtype.bits / 8
        memory, cache = memory + nbytes, cache + nbytes
    products, operations = _work(plan, machine)
    read = [dtypes[n.value] for n in walk(*bodies) if n.op == "load" and n.value in dtypes]
    widest = max((d for d in read if d.is_float), key=lambda d: d.bits, default="float32")
    kept = 4.0 * math.fsum(_size(plan, c.state.mine.free) for c in plan.carried if c.column)
    inner = {n.free for n in walk(*bodies) if n.op == "reduce"}
    kept += 4.0 * math.fsum(_size(plan, names) for names in inner)
    return Traffic(
        blocks,
        along,
        memory,
        cache,
        products,
        operations,
        kept,
        _tiles(plan),
        str(widest),
        shortest,
    )


def _usual(plan: Plan) -> Plan:
    """Return a plan whose sizes are numbers, for those that are symbols their usual ones."""
    axes = {v: replace(a, extent=usual(a.extent)) for v, a in plan.axes.items()}
    finals = (replace(o, shape=tuple(map(usual, o.shape))) for o in plan.finals)
    parts = plan.parts and replace(plan.parts, blocks=usual(plan.parts.blocks))
    return replace(plan, axes=axes, finals=tuple(finals), parts=parts)


def _size(plan: Plan, names: Iterable[str]) -> int:
    """Return the elements of a tile along variables."""
    return math.prod(plan.axes[v].size for v in names if v in plan.axes)


def blocks_of(plan: Plan) -> int:
    """Return how many blocks a kernel has."""
    tiles = (v for v in (plan.row, *plan.columns) if v is not None)
    axes = (plan.axes[v] for v in (*plan.grid, *tiles))
    return math.prod(-(-usual(a.extent) // a.size) for a in axes)


def _sweeps(plan: Plan, load: Expr) -> int:
    """Return how often a kernel goes through the elements of a tensor."""
    found = {s.sweep for s in plan.states if load in set(walk(s.body))}
    along = any(load in set(walk(o.element)) and _is_along(plan, o) for o in plan.finals)
    return len(found) + along


def _is_along(plan: Plan, o: Output) -> bool:
    return plan.stream is not None and any(plan.stream in i.free for i in o.indices)


def _padded(plan: Plan, v: str, least: int) -> float:
    axis = plan.axes[v]
    size = max(axis.size, least if v in (plan.row, *plan.columns) else 1)
    return -(-axis.extent // size) * size


def _work(plan: Plan, machine: Machine) -> tuple[float, float]:
    """Return the operations of products of tiles, and all others."""
    products = operations = 0.0
    busy = plan.axes[plan.row].size if plan.row is not None else 1
    if all(c.column for c in plan.carried):  # warps divide columns, too
        busy = busy * max((plan.axes[v].size for v in plan.columns), default=1) // 64
    idle = max(1.0, machine.busy_rows / max(1, busy))
    roots = [*(s.body for s in plan.states), *(o.element for o in plan.finals)]
    inner = {n.args[0] for n in walk(*roots) if n.op == "reduce" and n.value[1] in plan.axes}
    seen: set[tuple[Expr, int]] = set()
    columns = {c.state.mine: c.column for c in plan.carried}
    last = 1 + max((s.sweep for s in plan.states), default=0)
    for root, of, sweep in [
        *((s.body, columns[s.mine], s.sweep) for s in plan.states),
        *((o.element, None, last) for o in plan.finals),
    ]:
        if of is not None and plan.stream is not None:
            names = {v for v in plan.axes if v in root.free} | {plan.stream}
            products += 2 * math.prod(_padded(plan, v, machine.rows) for v in names)
        for n in walk(root):
            # Tiles of a stream that is not resident are computed again when it is read again.
            key = n, sweep if plan.stream in n.free and not plan.is_resident else 0
            if key in seen or n.op in ("load", "const", "index", "state", "spread"):
                continue
            seen.add(key)
            names = {v for v in plan.axes if v in n.free}
            if n.op == "reduce" and n.value[1] in plan.axes:
                names |= {n.value[1]}
                padded = (_padded(plan, v, machine.rows) for v in names)
                products += 2 * math.prod(padded) * _again(plan, n.free)
            elif n.op != "multiply" or (of is None and n not in inner):
                weight = FUNCTION_OPERATIONS if n.op in FUNCTIONS else 1
                work = math.prod(plan.axes[v].extent for v in names)
                operations += weight * work * _again(plan, n.free)
    return products * idle, operations + 2 * sum(
        math.prod(plan.axes[v].extent for v in plan.axes if v in s.body.free)
        * _again(plan, s.body.free)
        for s in plan.states
        if columns[s.mine] is None
    )


def _again(plan: Plan, names: Collection[str]) -> int:
    """Return how many blocks compute the same elements along variables."""
    blocked = (v for v in (plan.row, *plan.columns, *plan.grid) if v not in (None, PART))
    axes = (plan.axes[v] for v in blocked if v not in names)
    return math.prod(-(-a.extent // a.size) for a in axes)


def _tiles(plan: Plan) -> float:
    """Return the bytes of the tiles of a block: of loads, accumulators, and one of the stream."""
    points = plan.points
    roots = [*(s.body for s in plan.states), *(o.element for o in plan.finals)]
    wide = {n.free - points for n in walk(*roots) if n.op in ("load", "reduce")}
    wide |= {s.mine.free - points for s in plan.states}
    wide |= {s.body.free - points for s in plan.states if s.kind != "sum" or len(s.body.free) < 3}
    sizes = (math.prod(plan.axes[v].size for v in names if v in plan.axes) for names in wide)
    return 4.0 * math.fsum(sizes)
