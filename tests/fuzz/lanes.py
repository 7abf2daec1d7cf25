"""What the lanes of a block compute, read and write."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fuzz.elements import ELEMENTS
from fuzz.memory import MANY, NOBODY, Invalid, Memory
from fuzz.operations import ALL, LAZY
from fuzz.program import Expr, Region, Store


@dataclass
class Lanes:
    """The state of a block, and the expressions and elements that its lanes touch.

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

    def tile(self, name: str) -> np.ndarray:
        memory = self.buffers[name]
        if not np.all(memory.defined):
            raise Invalid(f"{name} is read before it is written")
        return memory.values

    def write_tile(self, memory: Memory, values: np.ndarray) -> None:
        memory.values[...] = values
        memory.defined[...] = True

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
