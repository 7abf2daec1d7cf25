"""What a program computes, in NumPy, and whether it means something at all.

All iterations of a data-parallel loop, or all threads, run in step on arrays with one entry for
each. Statements that all threads run are ordered, as if barriers stood between them; elements
remember who touched them since: a program whose result depends on another order, or that reads
what nothing wrote, is `Invalid`.
"""

from __future__ import annotations

import itertools

import numpy as np

from fuzz.elements import ELEMENTS, Element
from fuzz.lanes import Lanes
from fuzz.memory import NOBODY, Invalid, Memory, scratch
from fuzz.program import (
    BLOCKS,
    Accumulate,
    Atomic,
    Copy,
    Fill,
    Gemm,
    Hint,
    If,
    Launch,
    Loop,
    Parallel,
    Program,
    Reduce,
    Scan,
    SetVar,
    Stmt,
    Store,
    Sync,
    Transpose,
)

TILES = (Copy, Parallel, Fill, Reduce, Scan, Gemm, Transpose, Accumulate)
MOST_STEPS = 4000


class Block(Lanes):
    """Runs the statements of a block."""

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
            case Accumulate():
                self.accumulate(s)
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
        """Run a loop; a while loop asks for its count again before each turn, others once."""
        count = np.asarray(self.value(s.count))
        outer, apart = self.active, count.ndim > 0
        self.apart += apart
        for turn in itertools.count():
            if turn and s.kind == "while":
                count = np.asarray(self.value(s.count))
            # Who left the loop stays out, whatever the count becomes.
            self.active = self.active & np.broadcast_to(turn < count, self.lanes.shape)
            if not np.any(self.active):
                break
            self.names[s.index] = np.asarray(turn)
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

    def accumulate(self, s: Accumulate) -> None:
        parts, target = self.buffers[s.reducer], self.buffers[s.target]
        self.write_tile(parts, ELEMENTS[parts.dtype].settle(np.asarray(s.start)))
        op = {"sum": "add"}.get(s.op, s.op)
        update: Stmt = Atomic(op, s.reducer, s.index, s.value)
        if s.condition is not None:
            update = If(s.condition, (update,))
        self.parallel(Parallel(s.axes, (update,)))
        self.barrier()
        self.write_tile(target, ELEMENTS[target.dtype].settle(parts.values))

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
    pairs = zip(program.tensors, given, strict=True)
    return [_in_memory(ELEMENTS[t.dtype], tensors[t.name], array) for t, array in pairs]


def _in_memory(element: Element, memory: Memory, before: np.ndarray) -> np.ndarray:
    """Return a tensor as memory holds it; of two elements in a byte each may be written alone."""
    if element.bits == 4:
        return element.pack(np.where(memory.defined, memory.values, element.unpack(before)))
    return np.where(memory.defined, element.pack(memory.values), before)


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
