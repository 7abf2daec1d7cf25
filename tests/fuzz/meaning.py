"""What a program computes, in NumPy, and whether it means something at all.

All iterations of a data-parallel loop, or all threads, run in step on arrays with one entry for
each. Statements that all threads run are ordered, as if barriers stood between them; elements
remember who touched them since: a program whose result depends on another order, or that reads
what nothing wrote, is `Invalid`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from fuzz.elements import ELEMENTS
from fuzz.operations import ALL, LAZY
from fuzz.program import (
    BLOCKS,
    Atomic,
    Copy,
    Expr,
    Fill,
    Gemm,
    Hint,
    If,
    Launch,
    Loop,
    Parallel,
    Program,
    Reduce,
    Region,
    Scan,
    SetVar,
    Stmt,
    Store,
    Sync,
    Transpose,
)

TILES = (Copy, Parallel, Fill, Reduce, Scan, Gemm, Transpose)
NOBODY, MANY = -1, -2
MOST_STEPS = 4000


class Invalid(Exception):
    """The program means nothing: its result is not defined."""


@dataclass
class Memory:
    """A buffer: its values, which of them are defined, and who wrote and read each."""

    dtype: str
    values: np.ndarray
    defined: np.ndarray
    is_global: bool = False
    safe: int = 0
    writer: np.ndarray = field(init=False)
    reader: np.ndarray = field(init=False)
    adder: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget who touched what: a barrier."""
        self.writer = np.full(self.values.shape, NOBODY, np.int64)
        self.reader = self.writer.copy()
        self.adder = np.zeros(self.values.shape, np.int64)


def scratch(dtype: str, shape: tuple[int, ...]) -> Memory:
    kind = np.float64 if ELEMENTS[dtype].is_float else np.int64
    return Memory(dtype, np.zeros(shape, kind), np.zeros(shape, bool))


@dataclass
class Block:
    """The state of a block.

    `lanes` are the numbers of the iterations or threads that run in step (one, outside of
    them), and `active` says which of them take part.
    """

    buffers: dict[str, Memory]
    names: dict[str, np.ndarray]
    number: int
    lanes: np.ndarray = field(default_factory=lambda: np.zeros((), np.int64))
    active: np.ndarray = field(default_factory=lambda: np.ones((), bool))
    private: dict[str, str] = field(default_factory=dict)
    threads: bool = False
    apart: int = 0
    """Statements around this one that threads run apart: nothing orders those in them."""
    steps: int = 0

    def who(self, memory: Memory) -> np.ndarray:
        """Return who touches an element: a lane here, or a lane of a block in tensors."""
        return self.lanes + (self.number << 32 if memory.is_global else 0)

    # -- expressions ----------------------------------------------------------------------

    def value(self, e: Expr, active: np.ndarray | None = None) -> np.ndarray:
        """Return the values of an expression in all lanes."""
        active = self.active if active is None else active
        element = ELEMENTS[e.dtype]
        if e.kind == "const":
            return element.settle(np.asarray(e.data))
        if e.kind == "name":
            if e.data not in self.names:
                raise Invalid(f"{e.data} has no value")
            return self.names[e.data]
        if e.kind == "load":
            return self.load(e, active)
        if e.kind == "shuffle":
            if not np.all(active):
                raise Invalid("a shuffle that some lanes miss")
            return np.broadcast_to(self.value(e.args[0]), self.lanes.shape)[self.lanes ^ e.data]
        if e.kind in LAZY:
            chosen = self.value(e.args[0], active) != 0
            first = self.value(e.args[1], active & chosen)
            return np.where(chosen, first, self.value(e.args[2], active & ~chosen))
        args = [np.asarray(self.value(a, active)) for a in e.args]
        if e.kind in ("div", "mod"):
            if np.any((args[1] == 0) & active):
                raise Invalid("a division by zero")
            args[1] = np.where(args[1] == 0, 1, args[1])
        with np.errstate(over="ignore"):
            found = element.settle(np.asarray(ALL[e.kind].compute(*args)))
        self.check_bounds(e, found, active)
        return found

    def check_bounds(self, e: Expr, found: np.ndarray, active: np.ndarray) -> None:
        """Values beyond the bounds of an expression are a mistake of ours."""
        found, active = np.broadcast_arrays(found, active)
        here = found[active]
        if here.size and not (e.low <= here.min() and here.max() <= e.high):
            raise Invalid(f"{e.kind} gives {here.min()}…{here.max()}, not {e.low}…{e.high}")

    def indices(
        self, memory: Memory, index: tuple[Expr, ...], active: np.ndarray
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Return indices that are inside of the buffer, and for which lanes they were."""
        places = np.broadcast_arrays(*(self.value(i, active) for i in index), active)[:-1]
        inside = np.ones(places[0].shape, bool)
        for place, extent in zip(places, memory.values.shape, strict=True):
            inside &= (place >= 0) & (place < extent)
        if not memory.is_global and np.any(active & ~inside):
            raise Invalid("an index is outside of its tile")
        return tuple(np.where(inside, place, 0) for place in places), inside

    def load(self, e: Expr, active: np.ndarray) -> np.ndarray:
        memory = self.buffers[e.data]
        if 0 in memory.values.shape:
            return np.full(np.shape(self.lanes), memory.safe)
        if e.data in self.private:
            return self.load_private(e, memory, active)
        places, inside = self.indices(memory, e.args, active)
        touched = np.broadcast_to(inside & active, places[0].shape)
        if np.any(touched & ~memory.defined[places]):
            raise Invalid(f"{e.data} is read before it is written")
        self.note_reads(memory, places, touched)
        found = np.where(inside, memory.values[places], memory.safe)
        self.check_bounds(e, found, active)
        return found

    def load_private(self, e: Expr, memory: Memory, active: np.ndarray) -> np.ndarray:
        place = np.broadcast_to(self.value(e.args[0], active), self.lanes.shape)
        if np.any(active & ((place < 0) | (place >= memory.values.shape[1]))):
            raise Invalid("an index is outside of its array")
        place = np.clip(place, 0, memory.values.shape[1] - 1)
        if np.any(active & ~memory.defined[self.lanes, place]):
            raise Invalid(f"{e.data} is read before it is written")
        return memory.values[self.lanes, place]

    def note_reads(
        self, memory: Memory, places: tuple[np.ndarray, ...], touched: np.ndarray
    ) -> None:
        who = np.broadcast_to(self.who(memory), touched.shape)[touched]
        at = tuple(p[touched] for p in places)
        writer = memory.writer[at]
        if np.any((writer != NOBODY) & (writer != who)) or np.any(memory.adder[at]):
            raise Invalid("what another one writes is read")
        before = memory.reader[at]
        memory.reader[at] = np.where((before == NOBODY) | (before == who), who, MANY)
        # Two that read one element in the same step: the second one saw what was before both.
        last = memory.reader[at]
        many = at if last.size == 0 else tuple(a[(last != who)] for a in at)
        memory.reader[many] = MANY

    # -- statements -----------------------------------------------------------------------

    def run(self, body: tuple[Stmt, ...]) -> None:
        for s in body:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Invalid("it takes too long")
            self.step(s)
            if not self.apart and (self.threads or not self.lanes.shape):
                self.barrier()

    def step(self, s: Stmt) -> None:
        if self.threads and isinstance(s, TILES):
            self.together(s)
            return
        match s:
            case Copy():
                self.copy(s)
            case Parallel():
                self.parallel(s)
            case Store():
                self.store(s)
            case SetVar():
                self.set_name(s.name, self.value(s.value))
            case If():
                self.branch(s)
            case Loop():
                self.loop(s)
            case Fill():
                memory = self.buffers[s.buffer]
                self.write_tile(memory, ELEMENTS[memory.dtype].settle(np.asarray(s.value)))
            case Reduce():
                self.reduce(s)
            case Scan():
                values = np.flip(self.tile(s.source), s.dim) if s.reverse else self.tile(s.source)
                sums = np.cumsum(values, s.dim)
                memory = self.buffers[s.target]
                sums = np.flip(sums, s.dim) if s.reverse else sums
                self.write_tile(memory, ELEMENTS[memory.dtype].settle(sums))
            case Gemm():
                a, b = self.tile(s.a), self.tile(s.b)
                product = (a.T if s.transpose[0] else a) @ (b.T if s.transpose[1] else b)
                memory = self.buffers[s.c]
                start = 0 if s.clear else self.tile(s.c)
                self.write_tile(memory, ELEMENTS[memory.dtype].settle(start + product))
            case Atomic():
                self.atomic(s)
            case Transpose():
                self.write_tile(self.buffers[s.target], self.tile(s.source).T)
            case Hint():
                pass
            case Sync():
                if not np.all(self.active):
                    raise Invalid("a barrier that some threads miss")
                self.barrier()

    def barrier(self) -> None:
        for memory in self.buffers.values():
            if not memory.is_global:
                memory.forget()

    def together(self, s: Stmt) -> None:
        """Run a statement on tiles that all threads here run together."""
        state = self.lanes, self.active, self.apart
        names = dict(self.names)
        self.lanes, self.active, self.apart = np.zeros((), np.int64), np.ones((), bool), 0
        self.threads = False
        self.step(s)
        self.barrier()
        self.threads = True
        self.names = names
        self.lanes, self.active, self.apart = state

    def set_name(self, name: str, value: np.ndarray) -> None:
        value = np.broadcast_to(value, self.lanes.shape)
        if np.all(self.active):
            self.names[name] = value
        elif name not in self.names:
            raise Invalid(f"{name} has a value in some lanes only")
        else:
            self.names[name] = np.where(self.active, value, self.names[name])

    def branch(self, s: If) -> None:
        some = self.value(s.condition)
        condition = np.broadcast_to(some != 0, self.lanes.shape)
        outer = self.active
        self.apart += some.ndim > 0
        for body, active in ((s.then, outer & condition), (s.otherwise, outer & ~condition)):
            if np.any(active):
                self.active = active
                self.run(body)
        self.apart -= some.ndim > 0
        self.active = outer

    def loop(self, s: Loop) -> None:
        count = np.asarray(self.value(s.count))
        outer, apart = self.active, count.ndim > 0
        self.apart += apart
        count = np.broadcast_to(count, self.lanes.shape)
        for n in range(int(max(0, np.max(count)))):
            self.active = outer & (n < count)
            if not np.any(self.active):
                break
            self.names[s.index] = np.asarray(n)
            self.run(s.body)
        self.names.pop(s.index, None)
        self.apart -= apart
        self.active = outer

    def parallel(self, s: Parallel) -> None:
        if self.lanes.shape:
            raise Invalid("a data-parallel loop in another one")
        shape = tuple(int(self.names[n]) if isinstance(n, str) else n for _, n in s.axes)
        before = dict(self.names)
        for (name, _), place in zip(s.axes, np.indices(shape), strict=True):
            self.names[name] = place.ravel()
        self.lanes = np.arange(int(np.prod(shape)))
        self.active = np.ones(self.lanes.shape, bool)
        self.apart += 1
        if self.lanes.size:
            self.run(s.body)
        self.apart -= 1
        self.lanes, self.active = np.zeros((), np.int64), np.ones((), bool)
        # What iterations left in variables is not the same in all threads.
        kept = {n: v for n, v in self.names.items() if n in before and not np.shape(v)}
        self.names = kept

    def store(self, s: Store) -> None:
        memory = self.buffers[s.buffer]
        value = np.broadcast_to(self.value(s.value), self.lanes.shape)
        if s.buffer in self.private:
            place = np.broadcast_to(self.value(s.index[0]), self.lanes.shape)
            if np.any(self.active & ((place < 0) | (place >= memory.values.shape[1]))):
                raise Invalid("an index is outside of its array")
            at = (self.lanes[self.active], place[self.active])
            memory.values[at], memory.defined[at] = value[self.active], True
            return
        if 0 in memory.values.shape:
            return
        places, inside = self.indices(memory, s.index, self.active)
        touched = np.broadcast_to(inside & self.active, self.lanes.shape)
        at = tuple(np.broadcast_to(p, self.lanes.shape)[touched] for p in places)
        self.note_writes(memory, at, self.who(memory)[touched])
        memory.values[at] = value[touched]
        memory.defined[at] = True

    def note_writes(self, memory: Memory, at: tuple[np.ndarray, ...], who: np.ndarray) -> None:
        flat = np.ravel_multi_index(at, memory.values.shape)
        if np.unique(flat).size != flat.size:
            raise Invalid("two write one element")
        for before in (memory.writer[at], memory.reader[at]):
            if np.any((before != NOBODY) & (before != who)):
                raise Invalid("what another one touches is written")
        if np.any(memory.adder[at]):
            raise Invalid("what others add to is written")
        memory.writer[at] = who

    def atomic(self, s: Atomic) -> None:
        memory = self.buffers[s.buffer]
        if s.tile is not None:
            tile = self.tile(s.tile)
            offsets = np.indices(tile.shape).reshape(tile.ndim, -1)
            starts = [self.value(i) for i in s.index]
            lead = len(starts) - tile.ndim
            places = [np.full(tile.size, v) for v in starts[:lead]]
            places += [v + o for v, o in zip(starts[lead:], offsets, strict=True)]
            value, active = tile.ravel(), np.ones(tile.size, bool)
        else:
            places = np.broadcast_arrays(
                *(self.value(i) for i in s.index), self.lanes
            )[:-1]  # fmt: skip
            value = np.broadcast_to(self.value(s.value), self.lanes.shape)
            active = self.active
        inside = active.copy()
        for place, extent in zip(places, memory.values.shape, strict=True):
            inside = inside & (place >= 0) & (place < extent)
        if not memory.is_global and np.any(active & ~inside):
            raise Invalid("an index is outside of its tile")
        at = tuple(p[inside] for p in places)
        code = 1 + ("add", "max", "min").index(s.op)
        if np.any(memory.writer[at] != NOBODY) or np.any(memory.reader[at] != NOBODY):
            raise Invalid("an atomic operation beside others")
        if np.any((memory.adder[at] != 0) & (memory.adder[at] != code)):
            raise Invalid("atomic operations of two kinds")
        if not np.all(memory.defined[at]):
            raise Invalid("an atomic operation on what nothing wrote")
        memory.adder[at] = code
        function = {"add": np.add, "max": np.maximum, "min": np.minimum}[s.op]
        function.at(memory.values, at, value[inside])
        memory.values[...] = ELEMENTS[memory.dtype].settle(memory.values)

    # -- tiles ----------------------------------------------------------------------------

    def tile(self, name: str) -> np.ndarray:
        memory = self.buffers[name]
        if not np.all(memory.defined):
            raise Invalid(f"{name} is read before it is written")
        return memory.values

    def write_tile(self, memory: Memory, values: np.ndarray) -> None:
        memory.values[...] = values
        memory.defined[...] = True

    def reduce(self, s: Reduce) -> None:
        values, memory = self.tile(s.source), self.buffers[s.target]
        functions = {"sum": np.sum, "max": np.max, "min": np.min}
        function = functions.get(s.op.replace("abs", ""))
        if s.op.startswith("bit"):
            kinds = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}
            found = kinds[s.op].reduce(values, axis=s.dim)
        else:
            found = function(np.abs(values) if "abs" in s.op else values, axis=s.dim)
        if not s.clear:
            old = self.tile(s.target)
            found = {"sum": np.add, "max": np.maximum, "min": np.minimum}[s.op.replace("abs", "")](
                old, found
            )
        self.write_tile(memory, ELEMENTS[memory.dtype].settle(found))

    def copy(self, s: Copy) -> None:
        source, target = self.buffers[s.source.buffer], self.buffers[s.target.buffer]
        shape = s.target.extents or s.source.extents
        if not shape:
            shape = (source if not s.source.starts else target).values.shape
        shape = tuple(n for n in shape if n)
        at, inside = self.box(source, s.source, shape)
        to, there = self.box(target, s.target, shape)
        if np.any(inside & there & ~source.defined[at]):
            raise Invalid("what nothing wrote is copied")
        if source.is_global:
            self.note_reads(source, at, inside & there)
        values = ELEMENTS[target.dtype].settle(np.where(inside, source.values[at], source.safe))
        reached = tuple(p[there] for p in to)
        if target.is_global:
            who = np.full(int(there.sum()), self.number << 32)
            self.note_writes(target, reached, who)
        target.values[reached] = values[there]
        target.defined[reached] = True

    def box(
        self, memory: Memory, region: Region, shape: tuple[int, ...]
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Return the places of a box in a buffer, and which of them are inside."""
        rank = memory.values.ndim
        starts = [int(self.value(i)) for i in region.starts] or [0] * rank
        single = [n == 0 for n in region.extents] or [n < rank - len(shape) for n in range(rank)]
        offsets = iter(np.indices(shape))
        zero = np.zeros(shape, np.int64)
        places = [
            zero + start if one else start + next(offsets)
            for start, one in zip(starts, single, strict=True)
        ]
        inside = np.ones(shape, bool)
        for place, extent in zip(places, memory.values.shape, strict=True):
            inside &= (place >= 0) & (place < extent)
        if not memory.is_global and not inside.all():
            raise Invalid("a region outside of its tile")
        if 0 in memory.values.shape:
            raise Invalid("a region of nothing")
        return tuple(np.where(inside, p, 0) for p in places), inside


def expected(program: Program, given: list[np.ndarray]) -> list[np.ndarray]:
    """Return what the tensors hold after the program, as memory holds it.

    Raises
    ------
    Invalid
        If the program has no meaning.
    """
    tensors = {}
    for t, array in zip(program.tensors, given, strict=True):
        values = ELEMENTS[t.dtype].unpack(array)
        tensors[t.name] = Memory(t.dtype, values, np.full(values.shape, not t.output), True)
    names = {s: np.asarray(n) for s, n in program.symbols.items()}
    names |= {s.name: ELEMENTS[s.dtype].settle(np.asarray(s.value)) for s in program.scalars}
    for launch in program.launches:
        for name, memory in tensors.items():
            memory.forget()
            memory.safe = dict(launch.safe).get(name, 0)
        run_launch(launch, tensors, names)
    return [
        np.where(
            stored_places(t.dtype, tensors[t.name].defined),
            ELEMENTS[t.dtype].pack(tensors[t.name].values),
            array,
        )
        for t, array in zip(program.tensors, given, strict=True)
    ]


def stored_places(dtype: str, defined: np.ndarray) -> np.ndarray:
    if ELEMENTS[dtype].bits != 4:
        return defined
    if np.any(defined[..., 0::2] != defined[..., 1::2]):
        raise Invalid("half a byte is written")
    return defined[..., 0::2]


def run_launch(launch: Launch, tensors: dict[str, Memory], names: dict[str, np.ndarray]) -> None:
    start = Block(dict(tensors), dict(names), 0)
    grid = [int(start.value(e)) for e in launch.grid]
    if 0 in grid:
        raise Invalid("no blocks")
    ranges = [range(n) for n in reversed(grid)]
    for number, at in enumerate(itertools.product(*ranges)):
        buffers, private = dict(tensors), {}
        block = Block(buffers, dict(names), number, threads=launch.threads_named)
        block.names |= dict(zip(BLOCKS, map(np.asarray, reversed(at)), strict=False))
        if launch.threads_named:
            block.lanes = np.arange(launch.threads)
            block.active = np.ones(launch.threads, bool)
            block.names["tx"] = block.lanes
        for tile in launch.tiles:
            if tile.scope == "var":
                if tile.start is not None:
                    block.set_name(tile.name, np.asarray(tile.start))
            elif tile.scope == "local":
                buffers[tile.name] = scratch(tile.dtype, (launch.threads, *tile.shape))
                private[tile.name] = tile.name
            else:
                buffers[tile.name] = scratch(tile.dtype, tile.shape)
        block.private = private
        block.run(launch.body)
