"""What a kernel moves and computes, in closed form, and how long that takes at least."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

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
    """Return the machine of a target, or None if nothing is known of it.

    Raises
    ------
    TargetError, BackendNotFound
        If there is no such target.
    """
    target = replace(parse_target_spec(spec), executor="")
    backend, exact = (host or default_host()).resolve(target)
    if backend.peaks is None:
        return None
    # The processor at hand by its row of the table: nothing is measured now.
    is_here = exact.arch in ("", "native", "host")
    try:
        peaks = backend.peaks(exact, "host" if is_here else "")
    except TileError:
        return None
    if exact.kind in GPUS:
        return Machine(exact, peaks, rows=16, step_us=0.5, thread_bytes=1024, run=64, busy_rows=64)
    return Machine(exact, peaks, rows=1, step_us=0.03, thread_bytes=2048, run=256, busy_rows=1)


def is_serial(spec: object, host: PluginHost | None = None) -> bool:
    """Tell whether one thread of a target runs a block.

    Raises
    ------
    TargetError, BackendNotFound
        If there is no such target.
    """
    _, exact = (host or default_host()).resolve(parse_target_spec(spec))
    return exact.kind not in GPUS


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

    nodes = _nodes(*_roots(plan))
    memory, cache, shortest = 0.0, 0.0, math.inf
    loads = {n: sweeps for n, sweeps in nodes.loads.items() if n.value in dtypes}
    for n, each_time in loads.items():
        sweeps = 1 if plan.is_resident else max(1, each_time)
        once, all_together, side_by_side = moved(n, n.value, n.args)
        shortest = min(shortest, side_by_side)
        memory, cache = memory + once, cache + all_together * sweeps
    for o in plan.finals:
        nbytes = math.prod(o.shape) * o.dtype.bits / 8
        memory, cache = memory + nbytes, cache + nbytes
    products, operations = _work(plan, machine)
    read = [dtypes[n.value] for n in loads if n in nodes.folded]
    widest = max((d for d in read if d.is_float), key=lambda d: d.bits, default="float32")
    kept = 4.0 * math.fsum(_size(plan, c.state.mine.free) for c in plan.carried if c.column)
    kept += 4.0 * math.fsum(_size(plan, names) for names in nodes.multiplied)
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


@dataclass(frozen=True)
class _Nodes:
    """What the expressions of a plan are made of: the same whatever its blocks are.

    Parameters
    ----------
    loads
        With how often a kernel goes through the elements of each.
    folded
        Those that states fold.
    multiplied
        The variables of products within steps.
    tiles
        The variables of loads and products.
    """

    loads: Mapping[Expr, int]
    folded: frozenset[Expr]
    multiplied: frozenset[frozenset[str]]
    tiles: frozenset[frozenset[str]]


def _roots(plan: Plan) -> tuple[tuple[tuple[Expr, int], ...], tuple[tuple[Expr, bool], ...]]:
    """Return what states fold, with its sweep, and results, with whether they are a stream."""
    along = plan.stream or ""
    finals = ((o.element, any(along in i.free for i in o.indices)) for o in plan.finals)
    return tuple((s.body, s.sweep) for s in plan.states), tuple(finals)


@lru_cache(maxsize=32)
def _nodes(folds: Sequence[tuple[Expr, int]], finals: Sequence[tuple[Expr, bool]]) -> _Nodes:
    within = [({*walk(body)}, sweep) for body, sweep in folds]
    last = [{*walk(x)} for x, is_along in finals if is_along]
    folded = frozenset[Expr]().union(*(nodes for nodes, _ in within))
    found = {n for n in (*folded, *walk(*(x for x, _ in finals))) if n.op in ("load", "reduce")}
    return _Nodes(
        {
            n: len({k for nodes, k in within if n in nodes}) + any(n in nodes for nodes in last)
            for n in found
            if n.op == "load"
        },
        folded,
        frozenset(n.free for n in folded if n.op == "reduce"),
        frozenset(n.free for n in found),
    )


Work = tuple[str, frozenset[str], str]
"""A kind of operation, the variables that it has, and what it contracts."""


@lru_cache(maxsize=32)
def _counted(
    roots: Sequence[tuple[Expr, bool, int]], again: str, axes: Collection[str]
) -> Mapping[Work, int]:
    """Return how many operations there are of each kind, along which variables.

    Parameters
    ----------
    roots
        With whether their multiplications are no part of products, and their sweeps.
    again
        A variable of tiles that are computed again when they are read again; "" if none are.
    """
    inner = {n.args[0] for n in walk(*(x for x, _, _ in roots)) if _is_product(n, axes)}
    seen: set[tuple[Expr, int]] = set()
    found: Counter[Work] = Counter()
    for root, is_apart, sweep in roots:
        for n in walk(root):
            key = n, sweep if again in n.free else 0
            if key in seen or n.op in ("load", "const", "index", "state", "spread"):
                continue
            seen.add(key)
            if _is_product(n, axes):
                found["reduce", n.free, n.value[1]] += 1
            elif n.op != "multiply" or (is_apart and n not in inner):
                found["function" if n.op in FUNCTIONS else "", n.free, ""] += 1
    return found


def _is_product(n: Expr, axes: Collection[str]) -> bool:
    return n.op == "reduce" and n.value[1] in axes


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
    last = 1 + max((s.sweep for s in plan.states), default=0)
    columns = {c.state.mine: c.column for c in plan.carried}
    for s in plan.states:
        if columns[s.mine] is not None and plan.stream is not None:
            names = {v for v in plan.axes if v in s.body.free} | {plan.stream}
            products += 2 * math.prod(_padded(plan, v, machine.rows) for v in names)
    folds = ((s.body, columns[s.mine] is None, s.sweep) for s in plan.states)
    roots = (*folds, *((o.element, True, last) for o in plan.finals))
    again = "" if plan.is_resident or plan.stream is None else plan.stream
    for (kind, free, along), count in _counted(roots, again, frozenset(plan.axes)).items():
        names = {v for v in plan.axes if v in free}
        if kind == "reduce":
            padded = (_padded(plan, v, machine.rows) for v in names | {along})
            products += 2 * math.prod(padded) * _again(plan, free) * count
        else:
            weight = count * (FUNCTION_OPERATIONS if kind == "function" else 1)
            work = math.prod(_padded(plan, v, 1) for v in names)
            operations += weight * work * _again(plan, free)
    return products * idle, operations + 2 * sum(
        math.prod(_padded(plan, v, 1) for v in plan.axes if v in s.body.free)
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
    wide = {names - points for names in _nodes(*_roots(plan)).tiles}
    wide |= {s.mine.free - points for s in plan.states}
    wide |= {s.body.free - points for s in plan.states if s.kind != "sum" or len(s.body.free) < 3}
    sizes = (math.prod(plan.axes[v].size for v in names if v in plan.axes) for names in wide)
    return 4.0 * math.fsum(sizes)
