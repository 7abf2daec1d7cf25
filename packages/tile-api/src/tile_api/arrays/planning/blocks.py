"""Sizes of blocks: few that fit, chosen by what they move, ranked by the model of the machine."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tile_api.arrays.equations.expressions import walk
from tile_api.arrays.equations.sizes import ValueNeeded, usual
from tile_api.arrays.planning.plan import Blocks, Plan, is_disjoint, resized
from tile_api.arrays.planning.row_reduction_blocks import blocks_of_row_reduction
from tile_api.arrays.planning.split import can_split
from tile_api.arrays.planning.traffic import Machine, Traffic, blocks_of, traffic_of
from tile_api.arrays.planning.window_runs import row_length, windows_in
from tile_core.dtypes import DType
from tile_core.errors import OutOfScratch, TileError

MOST_RANKED, FEWEST_RANKED = 8, 3
"""Candidates of all kernels of a function that the model of a processor is asked about, a twentieth
of a second each; and those of one kernel, however many there are."""

WORTHWHILE_MS = 0.02
"""Kernels that take less by what they move have blocks as they come."""

CLEARLY = 0.97
"""A candidate is faster if it takes so much of another's time: models err."""

HOPELESS = 2.0
"""Candidates that take so much of the least time by traffic: the model is not asked about them."""

CLEARLY_LESS = 0.75
"""Of the tiles of what does not fit: the next candidate has fewer."""

WARNED = 1.1
"""What kernels take in comparisons which passes warn of: they are not what they could be."""

NEARLY = 1.15
"""Kernels that are compiled serve other sizes if they take no more of the time of the fastest."""

STAGES = 4
"""Of short steps of products on GPUs, where they fit: two long ones leave copies less time."""

SURE_TO_FIT = 96 << 10
"""Bytes of tiles that any machine has room for: blocks of more are not taken unasked."""

FEW_ROWS = 16
"""Rows of a product that leave its other factor nothing but to pass by."""

PAGE = 4096
"""Bytes side by side in rows whose columns are combined: those of each row begin elsewhere."""

VECTOR = 16
"""Elements that blocks are made of where there are no rows of windows."""

MOST_IN_ROW = 256
"""Elements of a row of windows of which blocks are made: of longer ones they are parts."""

MOST_NEAR = 16_384
"""Sums that stay in a near cache while rows of the other factor pass, each as long as it may be."""

Price = Callable[[Sequence[Plan]], float]
"""Milliseconds that the model of the machine expects of kernels, before streams are shared; a
`TileError` if it refuses."""


@dataclass(frozen=True)
class Choice:
    """The blocks of a kernel.

    Parameters
    ----------
    milliseconds
        What is expected: by the model of the machine if `is_ranked`, else by traffic alone.
    looked_at
        How many candidates there were.
    note
        Why a candidate was refused, if one was.
    measured
        The machine on which the time was measured, if it was.
    candidates
        All that the model was asked about, the best first.
    """

    plan: Plan
    traffic: Traffic
    milliseconds: float
    is_ranked: bool = False
    looked_at: int = 1
    note: str = ""
    measured: str = ""
    candidates: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Given:
    """What is known of blocks before some are chosen.

    Parameters
    ----------
    refused
        They did not compile.
    known
        Kernels with them are compiled.
    """

    refused: Collection[Blocks] = ()
    known: Collection[Blocks] = ()


def first_blocks(machine: Machine) -> Blocks:
    """Return the blocks that kernels have before others are looked at.

    On GPUs warps that copy for the others fill the tiles of one loop, and rows that stay are in
    registers, 64 of each thread: more rows of odd lengths would share threads.
    """
    return Blocks() if machine.rows == 1 else Blocks(masks_apart=False, resident=8192)


def chosen(
    plan: Plan,
    dtypes: Mapping[str, DType],
    machine: Machine,
    price: Price,
    asked: int,
    given: Given | None = None,
) -> Choice:
    """Return a plan with the blocks that are expected to be fastest.

    Parameters
    ----------
    asked
        How many candidates the model is asked about.
    given
        What is known of blocks.
    """
    given = given or Given()
    ordered, note = ordered_by_traffic(plan, dtypes, machine, given.refused)
    known = _known(ordered, given, dtypes, machine)
    if known and known[0].milliseconds <= NEARLY * min(c.milliseconds for c in ordered):
        return known[0]
    if len(ordered) == 1:
        return ordered[0]
    return _Ranking(ordered, price, note, asked).best(machine, known)


def least(plan: Plan, dtypes: Mapping[str, DType], machine: Machine) -> float:
    """Return the milliseconds that a kernel takes by what it moves, with whatever blocks."""
    return min(c.milliseconds for c in ordered_by_traffic(plan, dtypes, machine, ())[0])


def worthwhile(machine: Machine) -> float:
    """Return the milliseconds that kernels take of which it is worthwhile to think."""
    return max(WORTHWHILE_MS, 4 * machine.peaks.launch_us / 1e3)


def ordered_by_traffic(
    plan: Plan, dtypes: Mapping[str, DType], machine: Machine, refused: Collection[Blocks]
) -> tuple[list[Choice], str]:
    """Return blocks as they come, then others from the fastest on; and what is to be told.

    There is one if others are not worth a look.
    """
    plan = _with_whole_rows(_with_whole_instructions(plan, dtypes, machine), machine)
    first = Choice(plan, *_by_traffic(plan, dtypes, machine))
    is_small = first.milliseconds < worthwhile(machine) and first.traffic.tiles <= SURE_TO_FIT
    is_small = is_small and not (_is_across(plan, machine) and first.traffic.run < PAGE)
    if not plan.task.is_streamed or (is_small and plan.blocks not in refused):
        return [first], ""
    slim = _few_rows(plan, machine)
    if slim is not None and slim not in refused:
        other = resized(plan, slim)
        return [Choice(other, *_by_traffic(other, dtypes, machine))], ""
    long = blocks_of_row_reduction(plan, dtypes, machine)
    if long is not None and long not in refused:
        other = resized(plan, long)
        parts = _parts(other, machine) if blocks_of(other) < machine.peaks.units else []
        other = resized(plan, replace(long, parts=parts[0])) if parts and can_split(plan) else other
        return [Choice(other, *_by_traffic(other, dtypes, machine))], ""
    found, seen = {_shape(plan): first}, {_shape(plan)}
    for blocks in candidates(plan, machine):
        other = resized(plan, blocks)
        shape = _shape(other)
        if blocks in refused or shape in seen or not is_disjoint(other):
            continue
        seen.add(shape)
        choice = Choice(other, *_by_traffic(other, dtypes, machine))
        if _fits(choice, machine):
            found[shape] = choice
    longest = max(c.traffic.run for c in found.values())
    run = min(PAGE if _is_across(plan, machine) else machine.run, longest)
    found = {k: c for k, c in found.items() if c.traffic.run >= run}
    others = sorted(found.values(), key=lambda c: (_reads_again(c, machine), c.milliseconds))
    others = [c for c in others if c.plan.blocks not in refused] or [first]
    most = HOPELESS * min(c.milliseconds for c in others)
    others = [*others[:2], *(c for c in others[2:] if c.milliseconds <= most)]
    first = first if first in others else others[0]
    note = f"{len(refused)} did not compile" if refused else ""
    return [first, *(c for c in others if c is not first)], note


def _known(
    ordered: Sequence[Choice], given: Given, dtypes: Mapping[str, DType], machine: Machine
) -> list[Choice]:
    """Return what kernels that are compiled take, the fastest first: those that are candidates.

    Where there is one, as blocks come, others are whose boxes have no fewer elements side by side.
    """
    first = ordered[0]
    shapes = {_shape(c.plan) for c in ordered}
    is_open = len(ordered) == 1 and first.plan.blocks != _few_rows(first.plan, machine)
    found = []
    for blocks in given.known if first.plan.task.is_streamed else ():
        plan = resized(first.plan, blocks)
        choice = Choice(plan, *_by_traffic(plan, dtypes, machine))
        is_wide = choice.traffic.run >= min(machine.run, first.traffic.run)
        is_fit = is_open and is_wide and blocks.parts == 1
        is_fit = is_fit and is_disjoint(plan) and _fits(choice, machine)
        if is_fit or _shape(plan) in shapes:
            found.append(choice)
    return sorted(found, key=lambda c: c.milliseconds)


def _with_whole_instructions(plan: Plan, dtypes: Mapping[str, DType], machine: Machine) -> Plan:
    """Return a plan with as many rows of products as a matrix instruction of the machine takes.

    What reads short elements within a step only: others may be multiplied without one.
    """
    loads = (n for s in plan.states for n in walk(s.body) if n.op == "load")
    floats = [dtypes[n.value] for n in loads if n.value in dtypes and dtypes[n.value].is_float]
    if not floats or any(dtype.bits > 16 for dtype in floats):
        return plan
    return resized(plan, replace(plan.blocks, least_rows=machine.rows))


def _with_whole_rows(plan: Plan, machine: Machine) -> Plan:
    """Return a plan of blocks that are whole rows of windows, for a processor."""
    blocks, (columns, stream) = plan.blocks, _rows_of_windows(plan, machine)
    whole = replace(blocks, columns=columns(blocks.columns), stream=stream(blocks.stream))
    return plan if whole == blocks else resized(plan, whole)


def _rows_of_windows(plan: Plan, machine: Machine) -> list[Callable[[int], int]]:
    """Return what makes sizes of blocks of columns, and of the stream, suit windows.

    They are whole rows, and no block is cut at the end if there is such a size.
    """
    bodies = [s.body for s in plan.states]
    if machine.rows > 1 or not windows_in(bodies):
        return [int, int]
    names = (next(iter(plan.columns), None), plan.stream)
    lengths = [1 if name is None else row_length(bodies, name) for name in names]
    extents = [1 if name is None else usual(plan.axes[name].extent) for name in names]
    return [partial(_fitting, *pair) for pair in zip(lengths, extents, strict=True)]


def _fitting(length: int, extent: int, size: int) -> int:
    """Return a size near another one: of whole rows, and one that divides the extent if any does.

    Where rows are too short or too long to be counted, of whole vectors.
    """
    unit = length if 1 < length <= MOST_IN_ROW else VECTOR
    most = max(1, size // unit) * unit
    even = (n for n in range(most, size // 2, -unit) if extent % n == 0)
    return next(even, size if unit == VECTOR else most)


def _is_across(plan: Plan, machine: Machine) -> bool:
    """Tell whether a processor folds over rows of which each block has a part."""
    if machine.rows > 1 or plan.stream is None or plan.row is None or plan.columns:
        return False
    bodies = (s.body for s in plan.states)
    lasts = [n.args[-1].free for n in walk(*bodies) if n.op == "load" and plan.stream in n.free]
    return bool(lasts) and all(plan.row in last and plan.stream not in last for last in lasts)


def _fits(choice: Choice, machine: Machine) -> bool:
    """Tell whether threads have room for a candidate's tiles: those of GPUs in registers."""
    traffic, most = choice.traffic, machine.thread_bytes * choice.plan.blocks.threads
    if traffic.products:
        return traffic.accumulators <= most
    return traffic.tiles <= (most if machine.rows > 1 else 2 * most)


def _reads_again(choice: Choice, machine: Machine) -> bool:
    """Tell whether a GPU's blocks go through rows more than once: caches hold those of few."""
    plan = choice.plan
    is_fold = bool(plan.carried) and not choice.traffic.products
    return machine.rows > 1 and is_fold and not plan.is_resident


def _is_wide(choice: Choice, machine: Machine) -> bool:
    """Tell whether a GPU's threads would have nothing but accumulators: it takes more threads."""
    most = machine.thread_bytes * choice.plan.blocks.threads
    return machine.rows > 1 and bool(choice.traffic.products) and (
        choice.traffic.accumulators > most / 2
    )  # fmt: skip


def _few_rows(plan: Plan, machine: Machine) -> Blocks | None:
    """Return blocks of a product of few rows on a processor, None for what is none.

    All of the second factor passes by once, which the model takes for faster than it is: steps are
    short and wide, so that it is read in order.
    """
    is_product = bool(plan.carried) and all(c.column for c in plan.carried)
    is_slim = plan.row is not None and usual(plan.axes[plan.row].extent) <= FEW_ROWS
    if machine.rows > 1 or not is_product or not is_slim or len(plan.columns) != 1:
        return None
    if windows_in(s.body for s in plan.states):  # what is read several times is gathered once
        return None
    assert plan.row is not None
    extent, units = usual(plan.axes[plan.columns[0]].extent), machine.peaks.units
    near = MOST_NEAR // max(4, usual(plan.axes[plan.row].extent))
    columns = min(near, extent // units) // 64 * 64
    return Blocks(FEW_ROWS, 8, columns) if columns >= 64 else None


class _Ranking:
    """Asks the model of the machine about candidates."""

    def __init__(self, ordered: Sequence[Choice], price: Price, note: str, asked: int) -> None:
        self.ordered, self.price, self.note, self.left = ordered, price, note, asked
        self.most = math.inf  # bytes of tiles that may fit after what was refused
        self.found: Choice | None = None
        self.asked: list[Choice] = []

    def best(self, machine: Machine, known: Sequence[Choice]) -> Choice:
        """Return the best of the first, which came without a choice, and of those after it.

        One of those that are known will do if it is nearly as fast.
        """
        first, *others = self.ordered
        for choice in known[:FEWEST_RANKED]:
            self._ask(choice)
        compiled = self.found
        self._ask(first)
        threads, twice = first.plan.blocks.threads, 2 * first.plan.blocks.threads
        for k, choice in enumerate(others):
            is_wide = _is_wide(choice, machine)
            if not is_wide:
                self._ask(_with(choice, threads))
            is_more = is_wide or (k == 0 and machine.rows > 1)
            if is_more and self._ask(_with(choice, twice)):
                threads = twice
        asked = tuple(sorted(self.asked, key=lambda c: c.milliseconds))
        best = self.found or first
        if compiled is not None and compiled.milliseconds <= NEARLY * best.milliseconds:
            best = compiled
        return replace(best, looked_at=len(self.ordered), note=self.note, candidates=asked)

    def _ask(self, choice: Choice) -> bool:
        """Tell whether a candidate is the best so far."""
        if choice.traffic.tiles >= self.most or not self.left:
            return False
        self.left -= 1
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                told = self.price([choice.plan])
        except ValueNeeded:
            return False
        except TileError as error:
            blocks = choice.plan.blocks
            if isinstance(error, OutOfScratch) and blocks.stages > 2:
                fewer = resized(choice.plan, replace(blocks, stages=blocks.stages - 1))
                return self._ask(replace(choice, plan=fewer))
            self.note = self.note or str(error.args[0]).splitlines()[0]
            if isinstance(error, OutOfScratch):
                self.most = CLEARLY_LESS * choice.traffic.tiles
            return False
        told *= WARNED if caught else 1
        choice = replace(choice, milliseconds=told, is_ranked=True)
        self.asked.append(choice)
        is_better = self.found is None or told < CLEARLY * self.found.milliseconds
        if is_better:
            self.found = choice
        return is_better


def _with(choice: Choice, threads: int) -> Choice:
    blocks = replace(choice.plan.blocks, threads=threads)
    return replace(choice, plan=resized(choice.plan, blocks))


def candidates(plan: Plan, machine: Machine) -> Iterator[Blocks]:
    """Yield sizes that suit the roles of a plan, aligned with the machine's instructions."""
    inner = any(n.op == "reduce" for s in plan.states for n in walk(s.body))
    products = inner or any(c.column for c in plan.carried)
    # Products alone: what is done between two products of attention hides its copies.
    is_staged = machine.rows > 1 and not inner and products
    extent = usual(plan.axes[plan.row].extent) if plan.row is not None else 1
    rows = [r for r in ((16, 32, 64, 128, 256) if products else (1, 2, 4, 8, 16, 32, 64, 256))]
    rows = [r for r in rows if r < 2 * extent] or rows[:1]
    columns: tuple[int, ...] = (64, 128, 256) if plan.columns else (64,)
    if plan.stream is None and plan.columns:
        columns = (64, 256, 1024, 4096)
    streams: tuple[int, ...] = (64,)
    residents: tuple[int, ...] = (16_384,)
    if _is_across(plan, machine):
        rows = [*rows, *(r for r in (1024, 2048) if r * machine.peaks.units <= extent)]
    if plan.stream is not None:
        streams = (64, 256, 512, 2048, 8192) if machine.rows > 1 else (64, 256, 512, 2048)
        if _is_across(plan, machine):
            streams = (8, 64, 256)
        if products:
            streams = (32, 64, 128) if machine.rows > 1 else (32, 64, 128, 256)
        if is_staged:
            streams = (32, 64)
        residents = (0,) if products else (0, 4096, 16_384, 65_536)
    is_decoding = can_split(plan) and not plan.is_stepped
    of_columns, of_stream = _rows_of_windows(plan, machine)
    columns = tuple(dict.fromkeys(map(of_columns, columns)))
    streams = tuple(dict.fromkeys(map(of_stream, streams)))
    small = resized(plan, replace(plan.blocks, rows=min(rows), stream=64, columns=64, resident=0))
    is_decoding = is_decoding and blocks_of(small) < machine.peaks.units
    for r, c, t, n in itertools.product(rows, columns, streams, residents):
        blocks = replace(plan.blocks, rows=r, stream=t, columns=c, resident=n)
        if is_staged:
            blocks = replace(blocks, stages=STAGES)
        yield blocks
        for parts in _parts(resized(plan, blocks), machine) if is_decoding else ():
            yield replace(blocks, resident=0, parts=parts)


def _parts(plan: Plan, machine: Machine) -> list[int]:
    """Return by how many blocks a stream may be shared: so many that none is idle."""
    assert plan.stream is not None
    axis = plan.axes[plan.stream]
    most = -(-usual(axis.extent) // plan.blocks.stream) // 2
    waits = machine.rows > 1 and not any(c.column for c in plan.carried)
    waves = (1, 2, 4, 8) if waits else (1, 2)  # what only reads shares a GPU's units
    found = {min(n * machine.peaks.units // blocks_of(plan), most) for n in waves}
    return sorted(parts for parts in found if parts > 1)


def _by_traffic(plan: Plan, dtypes: Mapping[str, DType], machine: Machine) -> tuple[Traffic, float]:
    """Return what kernels move, and how long that takes: of the first that shares a stream."""
    parts = plan.blocks.parts
    if parts == 1 or plan.parts is not None:
        found = traffic_of(plan, dtypes, machine)
        return found, found.milliseconds(machine)
    first = resized(plan, plan.blocks, parts)
    count = first.parts.count if first.parts else 1
    states = sum(_size(first, s.mine.free) for s in first.states) * 4.0 * count
    found = traffic_of(first, dtypes, machine)
    whole = replace(found, memory=found.memory + 2 * states, cache=found.cache + 2 * states)
    return whole, whole.milliseconds(machine) + machine.peaks.launch_us / 1e3


def _size(plan: Plan, names: Collection[str]) -> int:
    made = 1
    for v in names:
        made *= usual(plan.axes[v].extent) if v in plan.axes else 1
    return made


def _shape(plan: Plan) -> object:
    """Return what makes plans of other blocks the same kernel, for a number of threads."""
    sizes = tuple((a.name, a.size) for a in plan.axes.values())
    return sizes, plan.is_resident, plan.blocks.parts
