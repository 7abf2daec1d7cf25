"""The state of a run: the machine, a block of the grid, and the lanes that run together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tile_core.errors import InternalError, Note, Span, TileError, UndefinedOperation
from tile_core.interp.clocks import Clocks
from tile_core.interp.mbarriers import PendingCopy, Signal
from tile_core.interp.memory import ElementAddresses, Storage, at_address, row_major, scratch
from tile_core.interp.statement_facts import StatementFacts, facts_of
from tile_core.interp.values import Array, constant, element_bits
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Expr, Extent, Var
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.stmt import Launch

Debugger: TypeAlias = "Callable[[dict[str, Any], Span | None], None]"
"""What a breakpoint opens instead of `sys.breakpointhook`: it shows the user's names at a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterpretOptions:
    """How a kernel is interpreted.

    Parameters
    ----------
    block_order
        Blocks of a grid run in any order: "forward", "reverse" or "random" expose kernels
        whose result depends on it.
    seed
        Of the random order.
    check_races, check_uninitialised
        Report unsynchronised sharing, and reads of elements that nothing has written.
    resident
        How many blocks of each rank run at a time, those in front of the grid first; 0: all. What
        waits for a block that cannot begin is a deadlock.
    outputs_undefined
        Treat the parameters in `Kernel.outputs` as undefined until written.
    spin_limit
        Rounds of waiting without any progress after which threads count as deadlocked.
    externs
        Python functions that stand in for extern C functions, by name. Addresses arrive as
        arrays that begin at the element pointed to, scalars as Python numbers.
    debugger
        What `breakpoint()` in a kernel opens; None means `sys.breakpointhook`.
    late_copies
        Let asynchronous copies arrive as late as they may: their tile is undefined until the
        program waits for them, and a source that changes meanwhile is a race.
    """

    block_order: str = "forward"
    seed: int = 0
    resident: int = 0
    check_races: bool = True
    check_uninitialised: bool = True
    outputs_undefined: bool = True
    spin_limit: int = 1000
    externs: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    debugger: Debugger | None = None
    late_copies: bool = False


class InterpreterState:
    """Everything that outlives a block: global memory, symbols, counters."""

    def __init__(
        self,
        options: InterpretOptions,
        evaluate: Callable[[Expr, Lanes], Array],
        launcher: Callable[[Launch, Lanes], None],
    ) -> None:
        self.options, self.evaluate, self.launcher = options, evaluate, launcher
        self.memory: dict[Buffer, Storage] = {}  # of each parameter and workspace
        self.symbols: dict[Var, Array] = {}  # scalar parameters, symbolic dimensions; shape (1,)
        self.granules: dict[Buffer, int] = {}  # bits of the smallest element of any view
        self.constants: dict[Const, Array] = {}
        self.contended: set[Buffer] = set()
        self.clocks: Clocks | None = None  # of the blocks of all ranks
        self.epoch = 0  # numbers stretches of time without synchronisation; never reused
        self.stores = 0  # changes of memory: without any, waiting threads make no progress
        self._facts: dict[Node, StatementFacts] = {}

    def facts(self, stmt: Node) -> StatementFacts:
        """Return the facts about a statement, found once."""
        known = self._facts.get(stmt)
        if known is None:
            known = self._facts[stmt] = facts_of(stmt)
        return known

    def next_epoch(self) -> int:
        """Return a number for the time from now to the next synchronisation."""
        self.epoch += 1
        return self.epoch

    def constant(self, node: Const) -> Array:
        """Return the value of a constant, computed once."""
        known = self.constants.get(node)
        if known is None:
            known = self.constants[node] = constant(node.value, node.dtype)
        return known

    def storage_at(self, address: int, name: str, nbytes: int, granule: int) -> tuple[Storage, int]:
        """Return the memory at an address and the distance from its start, in bytes."""
        for storage in self.memory.values():
            start = storage.raw.ctypes.data
            if start <= address < start + len(storage.raw):
                return storage, address - start
        return at_address(name, address, nbytes, granule), 0


@dataclass(slots=True, eq=False)
class Cluster:
    """Blocks that run at the same time."""

    # size, threads: how many blocks there are, and the threads of each.
    size: int
    threads: int
    blocks: dict[int, BlockState] = field(default_factory=dict)  # those that have begun, by rank
    # phase, arrived: how often all threads have met, and how many have arrived since.
    phase: int = 0
    arrived: int = 0

    def arrive(self, times: int, next_epoch: Callable[[], int]) -> int:
        """Count arrivals; return the phase that they belong to."""
        mine = self.phase
        self.arrived += times
        if self.arrived >= self.size * self.threads:
            self.phase, self.arrived = self.phase + 1, 0
            epoch = next_epoch()
            for block in self.blocks.values():
                block.epoch = block.thread_epoch = epoch
            clocks = next(iter(self.blocks.values())).machine.clocks
            if clocks is not None:
                clocks.meet([block.number for block in self.blocks.values()])
        return mine


@dataclass(slots=True, eq=False)
class BlockState:
    """One block of the grid: its scratch memory and its place among the others.

    `pending` is an error that stands unless a worse one is found before its threads meet.
    `signals` are its barriers in shared memory, by buffer and number; `rank` is its number in
    its cluster.
    """

    machine: InterpreterState
    number: int
    epoch: int
    threads: int = 1
    memory: dict[Buffer, Storage] = field(default_factory=dict)
    places: dict[Buffer, ElementAddresses] = field(default_factory=dict)
    thread_epoch: int = 0
    pending: TileError | None = None
    flight: PendingCopy = field(default_factory=PendingCopy)
    signals: dict[tuple[Buffer, int], Signal] = field(default_factory=dict)
    cluster: Cluster | None = None
    rank: int = 0

    @property
    def party(self) -> Array:
        """The block as a party to races between blocks."""
        return np.array([self.number], np.int32)


@dataclass(slots=True, eq=False)
class ConcurrentLanes:
    """Lanes that run concurrently, and the memory they could race for.

    `kind` is "iterations" or "threads"; `party` numbers the lanes; `storages` limits which
    memory is watched (None: all that threads share).
    """

    kind: str
    party: Array
    epoch: Callable[[], int]
    storages: frozenset[Buffer] | None


class Loop:
    """A loop that runs: which lanes left it for good."""

    def __init__(self, lanes: Lanes) -> None:
        self.left: Array = np.zeros(lanes.count, np.bool_)


class Lanes:
    """Lanes that execute one statement at a time together, each with its own values.

    Values have a leading axis of extent `count`, or 1 where all lanes agree. At least one lane is
    active whenever something runs. Private memory that is not found here is that of the `outer`
    lanes, which this group was made from.
    """

    def __init__(self, block: BlockState | None, machine: InterpreterState, count: int = 1) -> None:
        self.block = block
        self.machine = machine
        self.count = count
        self.mask: Array | None = None  # bool[count]: which lanes are active; None if all are
        self.env: dict[Var, Array] = dict(machine.symbols)
        self.private: dict[Buffer, Storage] = {}  # memory of which each lane has a copy
        self.outer: Lanes | None = None
        self.own_places: dict[Buffer, ElementAddresses] = {}
        self.safe: dict[Buffer, Array] = {}
        self.rivals: ConcurrentLanes | None = None
        self.lane_of_copy: Array | None = None  # int64[count]; None: each has its own number's
        self.votes: dict[Node, Array] = {}
        self.random: dict[str, Array] = {}
        # Of a program of explicit threads, or of a part of a block whose threads go apart.
        self.warp: int | None = None
        # First and count of the threads that run this together, if others do something else.
        self.team: tuple[int, int] | None = None
        self.first = 0  # the first thread of the block that the lanes stand for
        self.weight = 1  # how many threads each lane stands for
        self.is_part = False  # one lane for some of the threads of a program of tiles
        self.cluster_phase = 0
        self.loops: list[Loop] = []
        self.allocated: dict[Buffer, int] = {}
        self.span: Span | None = None

    @property
    def active(self) -> Array:
        """The mask, written out."""
        return np.ones(self.count, np.bool_) if self.mask is None else self.mask

    def among(self, team: tuple[int, int] | None) -> Array:
        """Return which lanes are threads of a range, given by its first and count; None: all."""
        if team is None:
            return np.ones(self.count, np.bool_)
        numbers = np.arange(self.first, self.first + self.count)
        return (numbers >= team[0]) & (numbers < team[0] + team[1])

    @contextmanager
    def only(self, mask: Array) -> Iterator[None]:
        """Restrict the active lanes to `mask` for a while; at least one must remain."""
        before, self.mask = self.mask, mask
        try:
            yield
        finally:
            self.mask = before

    def where(self, condition: Array) -> Array:
        """Return which active lanes have `condition`, a bool per lane."""
        condition = np.broadcast_to(condition, (self.count,))
        return condition if self.mask is None else self.mask & condition

    # Memory ----------------------------------------------------------------------------------

    def storage(self, root: Buffer) -> tuple[Storage, int | Array]:
        """Return the storage of `root` and where each lane's copy begins, in bytes."""
        private = self.private.get(root)
        if private is not None:
            return private, self._copy_starts(private)
        if self.outer is not None and root.scope.is_thread_private:
            return self.outer.storage(root)
        shared = self.machine.memory.get(root)
        if shared is None and self.block is not None:
            shared = self.block.memory.get(root)
        if shared is None:
            raise InternalError(f"buffer {root.name!r} has no storage", span=root.span)
        return shared, 0

    def _copy_starts(self, storage: Storage) -> int | Array:
        if self.lane_of_copy is not None:
            return self.lane_of_copy * storage.copy_bytes
        if self.count == 1:
            return 0
        return np.arange(self.count, dtype=np.int64) * storage.copy_bytes

    def place(self, buffer: Buffer) -> ElementAddresses:
        """Return where the elements of `buffer` are, for these lanes."""
        private = buffer.storage.scope.is_thread_private
        cache = self.own_places if private or self.block is None else self.block.places
        known = cache.get(buffer)
        if known is None:
            known = self._find(buffer)
            if not isinstance(buffer.storage.origin, Expr) and self._is_constant(buffer):
                cache[buffer] = known
        return known

    def _is_constant(self, buffer: Buffer) -> bool:
        extents = (*buffer.shape, *(buffer.strides or ()))
        used = {v for e in extents if isinstance(e, Expr) for v in nodes_of(e, Var)}
        return used <= self.machine.symbols.keys()

    def _find(self, buffer: Buffer) -> ElementAddresses:
        shape = tuple(self.extent(e) for e in buffer.shape)
        strides = row_major(shape)
        if buffer.strides is not None:
            strides = tuple(self.extent(e) for e in buffer.strides)
        root = buffer.storage
        bits = element_bits(buffer.dtype)
        if isinstance(root.origin, Expr):
            reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
            granule = self.machine.granules.get(root, bits)
            address = self.address(root.origin)
            storage, start = self.machine.storage_at(
                address, root.name, -(-reach * bits // 8), granule
            )
            base: int | Array = start * 8 // bits
        else:
            storage, start_bytes = self.storage(root)
            base = start_bytes * 8 // bits
        return ElementAddresses(storage, buffer.dtype, shape, strides, base, buffer.scope.is_global)

    def extent(self, extent: Extent) -> int:
        """Return the value of an extent that all active lanes agree on."""
        if isinstance(extent, int):
            return extent
        values = self.machine.evaluate(extent, self)
        return int(self.agreed(values, "an extent", extent.span))

    def address(self, pointer: Expr) -> int:
        """Return the address that all active lanes agree on."""
        return int(self.agreed(self.machine.evaluate(pointer, self), "an address", pointer.span))

    def agreed(self, values: Array, what: str, span: Span | None, hint: str | None = None) -> Any:
        """Return the one value that all active lanes have.

        Raises `UndefinedOperation` if lanes differ.
        """
        active = values if len(values) == 1 or self.mask is None else values[self.mask]
        if len(active) > 1 and (active != active[0]).any():
            raise UndefinedOperation(
                f"{what} must be the same for all threads, and is {active[0]} and "
                f"{active[np.argmax(active != active[0])]}",
                span=span or self.span,
                hint=hint,
            )
        return active[0]

    def allocate(self, buffer: Buffer) -> None:
        """Give `buffer` memory of its own with undefined contents."""
        if buffer.scope.is_thread_private:
            self.private[buffer] = self.scratch(buffer, self.count if self.count > 1 else 1)
            self.own_places.clear()
            return
        owner = self.machine.memory
        if buffer.scope is not Scope.GLOBAL and self.block is not None:
            owner = self.block.memory
        turn = self.allocated[buffer] = self.allocated.get(buffer, 0) + 1
        known = owner.get(buffer)
        if known is None:
            owner[buffer] = self.scratch(buffer, 0)
            owner[buffer].generation = turn
        elif turn > known.generation and not buffer.scope.is_global:
            known.generation = turn
            known.forget()

    def scratch(self, buffer: Buffer, copies: int = 0) -> Storage:
        """Return new memory with undefined contents: of the block, or `copies` of a lane's."""
        shape = tuple(self.extent(e) for e in buffer.shape)
        elements = math.prod(shape)
        if buffer.strides is not None:
            strides = [self.extent(e) for e in buffer.strides]
            elements = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        granule = self.machine.granules.get(buffer, element_bits(buffer.dtype))
        storage = scratch(
            buffer.name, elements, buffer.dtype, granule,
            copies=copies, is_global=buffer.scope.is_global,
        )  # fmt: skip
        storage.contended = buffer in self.machine.contended
        return storage


def declared(buffer: Buffer) -> tuple[Note, ...]:
    """Return the note that says where `buffer` comes from, if that is known."""
    if buffer.span is None:
        return ()
    return (Note(f"{buffer.name} is declared here", buffer.span),)
