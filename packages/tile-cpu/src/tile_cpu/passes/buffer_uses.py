"""Who touches each buffer of a kernel, as statements in program order."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Extent, Var
from tile_core.ir.node import Node, walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import For, Kernel, Launch, Let, Parallel, Pipelined

# Operations whose result is not negative if neither operand is.
_MONOTONE = frozenset(
    {
        BinaryOp.ADD,
        BinaryOp.MUL,
        BinaryOp.FLOORDIV,
        BinaryOp.FLOORMOD,
        BinaryOp.MIN,
        BinaryOp.MAX,
    }
)


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


class KernelUses:
    """What a pass asks about the whole kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.touching = touching_nodes(kernel)
        self.viewed = viewed_storages(kernel)
        self.natural: set[Var] = set(symbols_of(kernel))
        for node in walk(kernel):
            self._learn(node)

    def _learn(self, node: Node) -> None:
        match node:
            case Launch():
                self.natural |= {*node.block_vars, *node.thread_vars}
            case Parallel():
                self.natural |= set(node.vars)
            case For() | Pipelined():
                if (static_value(node.step) or -1) > 0 and self.is_nonnegative(node.start):
                    self.natural.add(node.var)
            case Let(var=var, value=value):
                if self.is_nonnegative(value):
                    self.natural.add(var)

    def is_nonnegative(self, index: Extent) -> bool:
        """Whether `index` is certainly at least 0, judged by its form alone."""
        if isinstance(index, int):
            return index >= 0
        match index:
            case Const(value=value):
                return value >= 0
            case Var():
                return index in self.natural
            case Binary(op=op, a=a, b=b) if op in _MONOTONE:
                return self.is_nonnegative(a) and self.is_nonnegative(b)
            case Cast(value=value, dtype=dtype):
                return dtype.is_int and self.is_nonnegative(value)
        return False

    def is_private(self, buffer: Buffer, nodes: set[Node]) -> bool:
        """Whether only `nodes` touch `buffer`, and under its own name."""
        return buffer not in self.viewed and set(self.touching[buffer]) <= nodes

    def is_read_only(self, buffer: Buffer) -> bool:
        """Whether the kernel never writes `buffer`."""
        return not any(_writes(node, buffer) for node in self.touching[buffer])


def _writes(node: Node, buffer: Buffer) -> bool:
    return any(a.buffer.storage is buffer and a.mode is not Mode.READ for a in accesses(node))
