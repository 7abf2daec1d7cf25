"""What a statement reads, writes and waits for: the one table of effects.

Synchronisation, pipelining and the checks ask here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum

from tile_core.ir import gpu_intrinsics
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import AddressOf, Call, Load
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, analysis, nodes_of
from tile_core.ir.stmt import Evaluate, Launch, Leaf, Parallel, Store
from tile_core.records import dataclass


class Mode(Enum):
    """How a buffer is touched."""

    READ = "read"
    WRITE = "write"
    ATOMIC = "atomic"


@dataclass(frozen=True, slots=True)
class Access:
    """One touch of a buffer, with the node that does it.

    `region` is None where a single element is addressed by the node's own indices.
    """

    buffer: Buffer
    mode: Mode
    node: Node
    region: Region | None = None


@analysis
def accesses(root: Node) -> tuple[Access, ...]:
    """Return every access below `root`, in program order within each statement."""
    return tuple(_accesses(root))


def _accesses(root: Node) -> Iterator[Access]:
    atomic: set[Node] = set()
    read: set[Node] = set()
    for node in nodes_of(root, Store, Load, Call, AddressOf, Leaf):
        match node:
            case Store(buffer=buffer):
                yield Access(buffer, Mode.WRITE, node)
            case Load(buffer=buffer):
                yield Access(buffer, Mode.READ, node)
            case Call(function=function, args=args) if effect_of(function) & Effect.ATOMIC:
                atomic |= {a for a in args if isinstance(a, AddressOf)}
            case Call(function=gpu_intrinsics.LOAD_MATRIX, args=args):
                addresses = (a for a in args if isinstance(a, AddressOf))
                read |= {a for a in addresses if not a.buffer.scope.is_thread_private}
            case AddressOf(buffer=buffer) if node in read:
                yield Access(buffer, Mode.READ, node)
            case AddressOf(buffer=buffer):
                yield from _addressed(node, buffer, node in atomic)
            case Leaf():
                yield from (Access(r.buffer, Mode.READ, node, r) for r in node.reads())
                yield from (Access(r.buffer, Mode.WRITE, node, r) for r in node.writes())


def _addressed(node: AddressOf, buffer: Buffer, is_atomic: bool) -> Iterator[Access]:
    if is_atomic:
        yield Access(buffer, Mode.ATOMIC, node)
        return
    if "r" in node.access:
        yield Access(buffer, Mode.READ, node)
    if "w" in node.access:
        yield Access(buffer, Mode.WRITE, node)


def storages_accessed(root: Node) -> dict[Buffer, None]:
    """Return the storages `root` may read or change, as an ordered set; views are their base."""
    return {a.buffer.storage: None for a in accesses(root)}


def storages_read(root: Node) -> dict[Buffer, None]:
    """Return the storages `root` may read, as an ordered set; views count as their base."""
    return {a.buffer.storage: None for a in accesses(root) if a.mode is not Mode.WRITE}


def storages_written(root: Node) -> dict[Buffer, None]:
    """Return the storages `root` may change, as an ordered set; views count as their base."""
    return {a.buffer.storage: None for a in accesses(root) if a.mode is not Mode.READ}


@analysis
def effects_of(root: Node) -> Effect:
    """Return the union of the effects of all intrinsics called below `root`."""
    total = Effect.NONE
    for function in {node.function for node in nodes_of(root, Call)}:
        total |= effect_of(function)
    return total


def counts_threads(launch: Launch) -> bool:
    """Whether a statement outside of data-parallel loops and operators counts who runs it.

    An atomic addition does, and so does whatever returns the previous value: each thread of the
    block runs them. Loads, and stores, maxima and the like whose value nobody asks for leave
    the same behind however many threads run them.
    """
    return math.prod(launch.threads) > 1 and _counts(launch.body)


def _counts(node: Node) -> bool:
    if not effects_of(node) & Effect.ATOMIC:
        return False
    match node:
        case Parallel() | Leaf() | Buffer():
            return False
        case Evaluate(value=Call(function=function)) if function in _LEAVE_THE_SAME:
            return False
        case Call(function=function) if effect_of(function) & Effect.ATOMIC:
            return function != "atomic_load"
    return any(_counts(child) for child in node.children())


_LEAVE_THE_SAME = frozenset({"atomic_store", "atomic_max", "atomic_min", "atomic_and", "atomic_or"})
