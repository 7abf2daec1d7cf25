"""Who touches each buffer of a kernel, and which tensors are matrices as they are."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Extent, Var
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.ranks import rank_parameters
from tile_core.ir.stmt import For, Kernel, Launch, Let, Parallel, Pipelined, Seq
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import pair

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


class KernelUses:
    """What a pass asks about the whole kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.touching: dict[Buffer, dict[Node, None]] = {}  # loads, stores, operators by storage
        self.viewed: set[Buffer] = set()  # storages that are also reached through a view
        for access in accesses(kernel.body):
            storage = access.buffer.storage
            self.touching.setdefault(storage, {})[access.node] = None
            if storage is not access.buffer:
                self.viewed.add(storage)
        self.natural: set[Var] = {*symbols_of(kernel), *(rank_parameters(kernel) or ())}
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
        return not any(
            access.buffer.storage is buffer and access.mode is not Mode.READ
            for node in self.touching[buffer]
            for access in accesses(node)
        )


def rewrite_sequences(kernel: Kernel, change: Callable[[Seq, KernelUses], Seq]) -> Kernel:
    """Return `kernel` with its sequences changed; the same object if none of them is."""
    facts = KernelUses(kernel)
    return rewrite(kernel, lambda node: change(node, facts) if isinstance(node, Seq) else node)


def rows_and_columns(
    tile_axes: tuple[int | None, ...], axes: tuple[int | None, ...]
) -> tuple[int, int] | None:
    """Return the dimensions of a tensor that rows and columns of a whole tile run along.

    Both axes are those of a `Pairing`. None if there are no such dimensions, or columns do not run
    along the last. A single row moves along none: it lies in the one before its columns.
    """
    last = len(axes) - 1
    if tile_axes == (None, 0) and axes[last] == 0 and last > 0:
        return last - 1, last
    if tile_axes != (0, 1) or axes[last] != 1 or 0 not in axes:
        return None
    return axes.index(0), last


def has_contiguous_rows(buffer: Buffer) -> bool:
    """Tell whether neighbours along the last dimension are neighbours in memory."""
    return buffer.strides is None or static_value(buffer.strides[-1]) == 1


def staged_matrix(copy: Copy, facts: KernelUses) -> tuple[Region, int] | None:
    """Return the global region that fills a whole tile as it is, and the dimension of its rows.

    None if there is none, or the kernel writes its tensor.
    """
    tile, source = copy.dst.buffer, copy.src.buffer
    shape = tile.static_shape
    if shape is None or len(shape) != 2 or not copy.dst.is_whole:
        return None
    is_plain = source.scope.is_global and source.dtype.packing == 1 and source.origin is None
    is_number = source.dtype == tile.dtype and not tile.dtype.is_bool
    if not (is_plain and is_number and has_contiguous_rows(source)):
        return None
    if not facts.is_read_only(source) or not all(map(facts.is_nonnegative, copy.src.starts)):
        return None
    pairing = pair(copy.src, copy.dst)
    found = rows_and_columns(pairing.dst_axes, pairing.src_axes)
    if found is None:
        return None
    rows, columns = found
    extents = [1] * source.rank
    extents[rows], extents[columns] = shape
    return Region(source, copy.src.starts, tuple(extents), span=copy.src.span), rows
