"""Who touches each buffer of a kernel, as statements in program order."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.node import Node
from tile_core.ir.stmt import Kernel


def touching_nodes(kernel: Kernel) -> dict[Buffer, dict[Node, None]]:
    """Return, for each storage, the nodes that access it: loads, stores, operators."""
    found: dict[Buffer, dict[Node, None]] = {}
    for access in accesses(kernel.body):
        found.setdefault(access.buffer.storage, {})[access.node] = None
    return found


def viewed_storages(kernel: Kernel) -> set[Buffer]:
    """Return the storages that are also reached through a view."""
    return {
        access.buffer.storage
        for access in accesses(kernel.body)
        if access.buffer.storage is not access.buffer
    }


class Facts:
    """What a pass asks about the whole kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.touching = touching_nodes(kernel)
        self.viewed = viewed_storages(kernel)

    def is_private(self, buffer: Buffer, nodes: set[Node]) -> bool:
        """Whether only `nodes` touch `buffer`, and under its own name."""
        return buffer not in self.viewed and set(self.touching[buffer]) <= nodes

    def is_read_only(self, buffer: Buffer) -> bool:
        """Whether the kernel never writes `buffer`."""
        return not any(_writes(node, buffer) for node in self.touching[buffer])


def _writes(node: Node, buffer: Buffer) -> bool:
    return any(a.buffer.storage is buffer and a.mode is not Mode.READ for a in accesses(node))
