"""How much there is to a kernel: what a reduction makes smaller with every step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import TypeAlias

from tile_api.reducing.kernel_edits import own_nodes, statements
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Const
from tile_core.ir.node import Node, walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import For, Kernel, Launch, Leaf, LoopKind, Parallel, Pipelined

Weight: TypeAlias = "tuple[int, ...]"

PLAIN = frozenset({"float32", "int32", "bool"})
"""Element types that no kernel is simpler without."""


def weight(kernel: Kernel) -> Weight:
    """Return numbers to compare in order; steps of a reduction make them smaller.

    Statements; what is declared beside them; tensors and tiles of element types other than
    float32, int32 and bool; hints; nodes; the digits of all sizes and numbers.
    """
    listed = statements(kernel)
    buffers = {n for n in walk(kernel) if isinstance(n, Buffer)}
    declared = len(kernel.params) + len(symbols_of(kernel)) + len(kernel.outputs)
    options = kernel.options
    extra = len(kernel.sources) + len(options.pass_configs) + len(options.compile_flags)
    odd = sum(b.dtype.base not in PLAIN for b in buffers)
    nodes = sum(1 for stmt in listed for _ in own_nodes(stmt))
    hints = sum(_hints(stmt) for stmt in listed)
    sizes = sum(_digits(buffers_and_more(listed, buffers)))
    return (len(listed), declared + extra, odd, hints, nodes, sizes)


def buffers_and_more(listed: Iterable[Node], buffers: Iterable[Buffer]) -> list[Node]:
    """Return all nodes that numbers stand in: buffers, statements and their own parts."""
    return [*buffers, *listed, *(node for stmt in listed for node in own_nodes(stmt))]


def _hints(stmt: Node) -> int:
    """Count what a statement says beyond what it must."""
    match stmt:
        case Leaf():
            return sum(
                f.default is not MISSING and getattr(stmt, f.name) != f.default
                for f in fields(stmt)
                if f.name != "span" and not isinstance(getattr(stmt, f.name), Node)
            )
        case Pipelined():
            return 1 + bool(stmt.num_stages) + bool(stmt.order) + bool(stmt.stage)
        case Parallel():
            return (stmt.coalesced_width is not None) + (stmt.loop_layout is not None)
        case For():
            return int(stmt.kind is not LoopKind.SERIAL)
        case Launch():
            return int(bool(stmt.cluster))
    return 0


def _digits(nodes: Iterable[Node]) -> Iterable[int]:
    for node in nodes:
        match node:
            case Buffer(shape=shape):
                yield sum(e.bit_length() for e in shape if isinstance(e, int))
            case Region(starts=starts, extents=extents):
                yield sum(e.bit_length() for e in (*starts, *extents) if isinstance(e, int))
            case Launch(threads=threads):
                yield sum(n.bit_length() for n in threads)
            case Const(value=value):
                yield _of_number(value)


def _of_number(value: int | float) -> int:
    if isinstance(value, float):
        return int(value == 1.0) if value in (0.0, 1.0) else 2
    return 2 * abs(int(value)).bit_length() - int(value == 1) + int(value < 0)
