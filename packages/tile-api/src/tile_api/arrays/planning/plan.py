"""The roles of variables in a kernel, and the sizes of its blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from math import prod

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import (
    Expr,
    const,
    extents_of,
    index,
    rebuild,
    reduce,
    walk,
)
from tile_api.arrays.equations.sizes import Size
from tile_api.arrays.equations.substitution import substituted, unused
from tile_api.arrays.planning.inner_products import along, in_order, reductions_over
from tile_api.arrays.planning.matrix_vector import ONE
from tile_api.arrays.planning.partition import FEW_COLUMNS
from tile_api.arrays.planning.tasks import Task, variables_of
from tile_api.arrays.planning.windows import goes_through_windows
from tile_api.arrays.reductions.algebra import product
from tile_api.arrays.reductions.derive import derived
from tile_api.arrays.reductions.groups import Group, grouped, product_groups
from tile_api.arrays.reductions.state import State
from tile_api.frontend.source import calling_span
from tile_core.errors import FrontendValueError


@dataclass(frozen=True)
class Blocks:
    """Sizes of blocks.

    Parameters
    ----------
    rows, stream, columns
        Elements of a block along each.
    resident
        The most elements of a tile that holds whole rows: longer ones are streamed.
    threads
        Of a block.
    parts
        Blocks that share a stream; another kernel merges what they leave.
    stages
        Steps of a loop of products that have tiles of their own: copies run ahead of products.
    masks_apart
        Whether steps in which masks hold everywhere have a loop of their own.
    least_rows
        Of products within a step: rows that are not there are computed, too, and dropped.

    Examples
    --------
    >>> import numpy as np
    >>> import tile_api as tile
    >>> @tile.function(target="cpu", blocks=tile.Blocks(rows=16))
    ... def squares(x):
    ...     return x * x
    >>> "BM=16" in squares.source(np.ones((64, 64), "float32"))
    True
    """

    rows: int = 64
    stream: int = 64
    columns: int = 64
    resident: int = 16_384
    threads: int = 128
    parts: int = 1
    stages: int = 2
    masks_apart: bool = True
    least_rows: int = 1

    def __post_init__(self) -> None:
        """Refuse sizes that no block has."""
        for f in fields(self):
            size = getattr(self, f.name)
            if not isinstance(size, int) or size < (f.name not in ("resident", "masks_apart")):
                raise FrontendValueError(
                    f"Blocks: {f.name} is {size!r}", span=calling_span(),
                    hint="sizes of blocks are whole numbers of 1 or more",
                )  # fmt: skip


@dataclass(frozen=True)
class Carried:
    """A state with the shape of its accumulator.

    Parameters
    ----------
    column
        The variable of its columns, if it has such.
    groups
        Of a product of tiles: the factors of rows and those of columns.
    """

    state: State
    column: str | None = None
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True)
class Axis:
    """A variable in a kernel.

    Parameters
    ----------
    size
        Elements of a tile along it, as a number.
    text
        The same as it is printed.
    start
        The first index of the block, as it is printed; "0" if the tile is whole.
    loop
        The variable of loops over tiles.
    """

    name: str
    extent: int
    size: int
    text: str
    start: str
    loop: str


PART = "part"
"""The variable of the parts of a stream that several blocks share."""


@dataclass(frozen=True)
class Parts:
    """How blocks share a stream.

    Parameters
    ----------
    count
        Of the parts.
    blocks
        Of the stream that a part has, at most.
    """

    count: int
    blocks: int


@dataclass(frozen=True)
class Plan:
    """How a kernel computes its task.

    Parameters
    ----------
    finals
        The outputs, in terms of states.
    row, columns, stream, grid
        The variables by their roles; `grid` has one value for each block.
    is_resident
        Whether a tile holds the whole stream.
    parts
        How blocks share the stream, if they do.
    """

    task: Task
    blocks: Blocks
    carried: tuple[Carried, ...]
    finals: tuple[Output, ...]
    row: str | None
    columns: tuple[str, ...]
    grid: tuple[str, ...]
    axes: dict[str, Axis] = field(default_factory=dict)
    indices: tuple[tuple[str, str], ...] = ()
    """Names of the block's indices, and how many blocks there are, as they are printed."""
    combined: tuple[tuple[str, str], ...] = ()
    """What the values of `grid` are, where one index of blocks stands for all of them."""
    is_resident: bool = False
    parts: Parts | None = None
    notes: tuple[str, ...] = ()
    """What is to be told of the kernel beside its states."""

    @property
    def step(self) -> str | None:
        """The variable whose values it takes one after the other; it is one of `grid`."""
        return None if self.task.recurrence is None else self.task.recurrence.of.variable

    @property
    def looped(self) -> frozenset[str]:
        """The variables of `grid` whose values each block takes one after the other."""
        scatter = self.task.scatter
        found = {name for name, _ in scatter.over} if scatter is not None else {self.step}
        return frozenset(name for name in found if name is not None)

    @property
    def before(self) -> str:
        """Blocks of the stream before those of this part, as they are printed."""
        return f"{self.axes[PART].start} * {self.parts.blocks}" if self.parts else ""

    @property
    def blocks_of_stream(self) -> str:
        """The block after the last one, as it is printed."""
        assert self.stream is not None
        end, p = self.steps, self.parts
        if p is None:
            return end
        size = self.axes[self.stream].size
        is_even = p.count * p.blocks * size == -(-self.axes[self.stream].extent // size) * size
        mine = f"{self.before} + {p.blocks}"
        if isinstance(p.blocks, Size):
            return f"T.max({self.before}, T.min({mine}, {end}))"
        return mine if is_even else f"T.min({mine}, {end})"

    @property
    def stream(self) -> str | None:
        """The variable that the kernel goes through."""
        return self.task.stream

    @property
    def is_stepped(self) -> bool:
        """Whether the kernel goes through the stream element by element."""
        return self.stream is not None and not self.axes[self.stream].loop

    @property
    def points(self) -> frozenset[str]:
        """The variables that have one value at a time: tiles do not extend along them."""
        return frozenset((*self.grid, self.stream or "") if self.is_stepped else self.grid)

    @property
    def steps(self) -> str:
        """How many blocks of the stream there are, as it is printed."""
        assert self.stream is not None
        extent = self.axes[self.stream].extent
        return str(extent) if self.is_stepped else f"T.ceildiv({extent}, BN)"

    @property
    def states(self) -> list[State]:
        """All states, in their order."""
        return [c.state for c in self.carried]


MOST_INDICES = 3
"""Indices of blocks that a kernel has."""


def plans_of(task: Task, blocks: Blocks) -> list[Plan]:
    """Return the kernels of a task: one, if no two of its blocks write the same elements."""
    plan = planned(task, blocks)
    return [plan] if is_disjoint(plan) else [planned(part, blocks) for part in task.split()]


def is_disjoint(plan: Plan) -> bool:
    """Tell whether no two blocks write the same elements."""
    spread = {
        a.name for a in plan.axes.values()
        if a.start != "0" and a.size < a.extent and a.name not in (plan.stream, PART)
    }  # fmt: skip
    return all(spread <= variables_of(output) for output in plan.task.outputs)


def planned(task: Task, blocks: Blocks) -> Plan:
    """Give roles to the variables of a task."""
    elements = [output.element for output in task.outputs]
    extents = extents_of([*elements, *(i for output in task.outputs for i in output.indices)])
    free = [*dict.fromkeys(i.value[0] for o in task.outputs for i in o.indices if i.op == "index")]
    if any(ONE in x.free for x in elements) and ONE not in free:
        free.insert(0, ONE)
    stream = task.stream
    states = derived(reductions_over(elements, stream), stream) if stream is not None else []
    known = {s.node: s.value for s in states}
    finals = tuple(replace(o, element=rebuild(o.element, dict(known))) for o in task.outputs)
    carried, row, columns = _products(states, stream, free, extents)
    if row is None:
        reads = [s.node.free for s in states]
        # What merges parts has them in registers: states of no row are computed for each block.
        shared = set(free).intersection(*([frozenset().union(*reads)] if stream == PART else reads))
        usable = [v for v in free if v != stream and v not in columns and v in shared]
        across = _across(states, stream)
        usable = [v for v in usable if v in across] or usable
        row = usable[-1] if usable else None
    if stream is None and len(free) > 1:
        columns, row = [free[-1]], free[-2]
    if states and not columns:
        columns = own_columns(task, states, free, extents)
    grid = tuple(v for v in free if v not in (row, stream, *columns))
    if _is_over_windows(tuple(states), stream, row):
        grid = grid[::-1]  # blocks whose windows overlap run one after the other
    plan = Plan(task, blocks, tuple(carried), finals, row, tuple(columns), grid)
    plan = _sized(plan, extents)
    mixed = {v for v in _inner(plan) if plan.axes[v].start != "0" or v in grid}
    return planned(_renamed(task, mixed), blocks) if mixed else plan


def resized(plan: Plan, blocks: Blocks, parts: int = 1) -> Plan:
    """Return a plan with other sizes of blocks, of which so many share the stream."""
    extents = {a.name: a.extent for a in plan.axes.values()}
    grid = tuple(v for v in plan.grid if v != PART)
    shared = None
    if parts > 1 and plan.stream is not None:
        whole = -(-extents[plan.stream] // blocks.stream)
        each = -(-whole // parts)
        # A part may be empty where their number does not depend on that of blocks.
        extents[PART] = parts if isinstance(whole, Size) else -(-whole // each)
        grid, shared = (*grid, PART), Parts(extents[PART], each)
    return _sized(replace(plan, blocks=blocks, grid=grid, parts=shared), extents)


def _renamed(task: Task, names: Iterable[str]) -> Task:
    """Return a task whose products contract further variables than those that are blocked."""
    elements = [output.element for output in task.outputs]
    taken = {*extents_of(elements)}
    fresh: dict[str, str] = {}
    for name in sorted(names):
        fresh[name] = unused(name, taken)
        taken.add(fresh[name])

    def contracted(x: Expr) -> Expr:
        kind, name, extent = x.value
        body = rebuild(x.args[0], dict(known))
        other = fresh.get(name, name)
        return reduce(kind, other, extent, substituted(body, {name: index(other, extent)}))

    known: dict[Expr, Expr] = {}
    for x in walk(*elements):
        if x.op == "reduce" and x.value[1] in fresh:
            known[x] = contracted(x)
    return replace(
        task,
        outputs=tuple(replace(o, element=rebuild(o.element, dict(known))) for o in task.outputs),
    )


def own_columns(
    task: Task, states: Sequence[State], free: Sequence[str], extents: Mapping[str, int]
) -> list[str]:
    """Return the variable of a few results for each row, which no reduction has."""
    reduced = frozenset().union(*(s.node.free for s in states))
    own = [v for v in free if v not in reduced and v != task.stream]
    return own if len(own) == 1 and extents[own[0]] <= FEW_COLUMNS else []


def _products(
    states: Sequence[State], stream: str | None, free: Sequence[str], extents: Mapping[str, int]
) -> tuple[list[Carried], str | None, list[str]]:
    """Return states, those that are products of tiles with their groups; the row, the columns."""
    made: list[Carried] = []
    row: str | None = None
    columns: list[str] = []
    for sides in batched(states, stream):
        row, column = sorted((along(g, free, extents, ()) for g in sides), key=free.index)
        return (
            [Carried(s, column if column in s.mine.free else None) for s in states],
            row,
            [column],
        )
    for state in states:
        groups = _two_groups(state, stream)
        if groups is None:
            made.append(Carried(state))
            continue
        (row, first), (column, second) = in_order(groups, free, extents, (row, *columns))
        made.append(Carried(state, column, (first, second)))
        if column not in columns:
            columns.append(column)
    return made, row, columns


def _across(states: Sequence[State], stream: str | None) -> set[str]:
    """Return the variables of products within a step that lie across the stream."""
    inner = [n for s in states for n in walk(s.body) if n.op == "reduce"]
    groups = [g for n in inner for g in grouped(n.args[0], n.value[1])]
    return {v for g in groups if stream not in g.variables for v in g.variables}


def batched(states: Sequence[State], stream: str | None) -> list[list[Group]]:
    """Return the products of tiles within a step of which the stream only counts them."""
    inner = [n for s in states for n in walk(s.body) if n.op == "reduce" and stream in n.free]
    found = [grouped(n.args[0], n.value[1]) for n in inner]
    found = [groups for groups in found if len(groups) == 2]
    return [groups for groups in found if all(stream not in g.variables for g in groups)]


@lru_cache(maxsize=32)
def _is_stepped(states: Sequence[State], stream: str | None, row: str | None) -> bool:
    """Tell whether a stream is gone through element by element: see `Plan.is_stepped`."""
    return bool(batched(states, stream)) or _is_over_windows(states, stream, row)


def _is_over_windows(states: Sequence[State], stream: str | None, row: str | None) -> bool:
    """Tell whether a stream is the elements, or rows, of windows that are no tiles."""
    if row is None or not states or any(s.depends or s.node.value[1] != stream for s in states):
        return False
    return all(goes_through_windows(s.node, s.node.free, (row,)) for s in states)


def _two_groups(state: State, stream: str | None) -> list[Group] | None:
    if state.kind != "sum" or stream is None:
        return None
    return product_groups(state.body, stream)


def _sized(plan: Plan, extents: dict[str, int]) -> Plan:
    blocks, stream = plan.blocks, plan.stream
    axes: dict[str, Axis] = {}
    indices: list[tuple[str, str]] = []
    loops = iter("defgh")

    def add(name: str, size: int, text: str, start: str, loop: str) -> None:
        axes[name] = Axis(name, extents[name], size, text, start, loop)

    products = [c for c in plan.carried if c.column]
    is_stepped = _is_stepped(tuple(plan.states), stream, plan.row)
    inner, rows = _inner(plan), blocks.rows
    # The other factor of a product within a step is as long as the stream.
    factors = max((extents[v] for v in inner), default=1) * extents.get(stream or "", 1)
    is_whole = not products and plan.parts is None and factors <= blocks.resident
    if stream is not None and is_whole and 0 < extents[stream] <= blocks.resident:
        # Fewer rows that stay where they are, rather than more that are read again.
        rows = max(1, min(rows, blocks.resident // extents[stream]))
    least = blocks.least_rows if inner else 1
    if plan.row == ONE:
        rows = least
        add(ONE, rows, "BM", "0", "i")
    elif plan.row is not None:
        rows = max(least, min(rows, extents[plan.row]))
        add(plan.row, rows, "BM", "bx * BM", "i")
        indices.append(("bx", f"T.ceildiv({extents[plan.row]}, BM)"))
    needs_whole = len(plan.carried) > 1 and len(products) < len(plan.carried)
    for c in plan.columns:
        n = extents[c]
        if n <= blocks.columns or ((needs_whole or c in inner) and n <= 256):
            add(c, n, str(n), "0", next(loops))
        else:
            add(c, blocks.columns, "BC", "by * BC", next(loops))
            indices.append(("by", f"T.ceildiv({n}, BC)"))
    is_resident = False
    if stream is not None:
        n = extents[stream]
        rows = rows if plan.row is not None else 1
        is_resident = (n * rows <= blocks.resident and is_whole) or n <= blocks.stream
        is_resident = is_resident and not is_stepped
        if is_stepped:
            add(stream, 1, "1", "ko", "")
        elif is_resident:
            add(stream, n, str(n), "0", "j")
        else:
            add(stream, blocks.stream, "BN", "ko * BN", "j")
    for k, v in enumerate(plan.grid):
        add(v, 1, "1", f"g{k}", "")
    for v in inner:
        if v not in axes:
            add(v, extents[v], str(extents[v]), "0", next(loops))
    plan = replace(plan, axes=axes, is_resident=is_resident)
    return with_grid(plan, indices, [extents[v] for v in plan.grid])


def with_grid(plan: Plan, indices: Sequence[tuple[str, str]], sizes: Sequence[int]) -> Plan:
    """Return a plan with indices of blocks, and with those of a grid: one for all, if many."""
    grid = [(f"g{k}", n) for k, n in enumerate(sizes)]
    if len(indices) + len(grid) <= MOST_INDICES:
        single = ((name, str(n)) for name, n in grid)
        return replace(plan, indices=(*indices, *single), combined=())
    whole = ("bz", str(prod(sizes)))
    return replace(plan, indices=(*indices, whole), combined=_combined(grid))


def _combined(grid: Sequence[tuple[str, int]]) -> tuple[tuple[str, str], ...]:
    """Return each value of a grid in terms of one index of all blocks."""
    made: list[tuple[str, str]] = []
    step = prod(n for _, n in grid)
    for name, n in grid:
        rest = "" if not made else f" % {step}"
        step //= n
        inner = f"bz{rest}" if not rest or step == 1 else f"(bz{rest})"
        made.append((name, inner if step == 1 else f"{inner} // {step}"))
    return tuple(made)


def _inner(plan: Plan) -> Sequence[str]:
    """Return the variables of products within a step."""
    return _contracted(tuple(o.element for o in plan.task.outputs), plan.stream)


@lru_cache(maxsize=32)
def _contracted(elements: Sequence[Expr], stream: str | None) -> Sequence[str]:
    products = (x for x in walk(*elements) if x.op == "reduce" and x.value[1] != stream)
    return [*dict.fromkeys(x.value[1] for x in products)]


def factor(group: Group, like: Expr) -> Expr:
    """Return the product of a group's factors."""
    return product(group.factors, const(1, like.dtype))
