"""What a thread-level program mentions."""

from __future__ import annotations

from dataclasses import field

from tile_core.ir.buffer import Buffer
from tile_core.ir.effect import Effect
from tile_core.ir.expr import AddressOf, Call, Load, Var
from tile_core.ir.intrinsics import INTRINSICS
from tile_core.ir.node import Node, nodes_of, walk
from tile_core.ir.stmt import Store
from tile_core.records import dataclass


@dataclass(slots=True)
class Usage:
    """Buffers, variables and functions of one body.

    Parameters
    ----------
    buffers
        Every buffer that is touched, in the order of appearance, and what views look at.
    written
        Storages that may be changed.
    variables
        Every scalar mentioned.
    externs
        The user's own C functions that are called.
    """

    buffers: dict[Buffer, None] = field(default_factory=dict)
    written: set[Buffer] = field(default_factory=set)
    variables: set[Var] = field(default_factory=set)
    externs: set[str] = field(default_factory=set)

    def add_buffer(self, buffer: Buffer) -> None:
        """Take in a buffer after what it is a view of."""
        if buffer not in self.buffers:
            if isinstance(buffer.origin, Buffer):
                self.add_buffer(buffer.origin)
            self.buffers[buffer] = None


def usage_of(root: Node) -> Usage:
    """Return what `root` mentions."""
    found = Usage(variables=set(nodes_of(root, Var)))
    for buffer in nodes_of(root, Buffer):
        found.add_buffer(buffer)
    found.written |= {n.buffer.storage for n in nodes_of(root, Store)}
    found.written |= {n.buffer.storage for n in nodes_of(root, AddressOf) if "w" in n.access}
    for call in nodes_of(root, Call):
        _add_call(found, call)
    return found


def _add_call(found: Usage, call: Call) -> None:
    prefix, _, name = call.function.rpartition(":")
    if prefix == "extern":
        found.externs.add(name)
    row = INTRINSICS.get(call.function)
    if row is not None and row.effect & Effect.ATOMIC:
        found.written |= {a.buffer.storage for a in call.args if isinstance(a, AddressOf)}


def reads_registers_by(root: Node, var: Var) -> bool:
    """Whether an element of a register array is picked by a value that depends on `var`."""
    for node in nodes_of(root, Load, Store, AddressOf):
        parts = (part for index in node.indices for part in walk(index))
        if node.buffer.scope.is_thread_private and any(part is var for part in parts):
            return True
    return False
