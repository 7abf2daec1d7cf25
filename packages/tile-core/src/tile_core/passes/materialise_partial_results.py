"""Results in parts of register tiles, by way of tiles of their own."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer, Scope, static_value, whole
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Alloc, Kernel, Seq
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.reduce import Reduce
from tile_core.ops.reducer import ReducerFinalize
from tile_core.records import replace


def materialise_partial_results(kernel: Kernel) -> Kernel:
    """Return `kernel` with reductions and products that write whole register tiles only.

    Before   reduce sum scores, dim=1 -> total[8:16]
    After    reduce sum scores, dim=1 -> total_part;  copy total_part, total[8:16]

    The threads that find a row's result are those that hold the row: a tile of its own lies as
    they do, and the copy brings its elements to who holds them in the other one. Parts whose
    extents are known at run time only stay, and those without elements need no reduction. Sums of
    products may lie in a part that is known.
    """
    return rewrite(kernel, _rule, (Reduce, ReducerFinalize, Gemm))


def _rule(node: Node) -> Node:
    match node:
        case Reduce() | ReducerFinalize():
            there = node.dst
        case Gemm() if any(static_value(start) is None for start in node.c.starts):
            there = node.c
        case _:
            return node
    extents = there.static_extents
    if there.buffer.scope is not Scope.FRAGMENT or there.is_whole or extents is None:
        return node
    if 0 in extents:
        return Seq((), span=node.span)
    name = f"{there.buffer.name}_part"
    own = whole(Buffer(name, extents, there.buffer.dtype, Scope.FRAGMENT, span=node.span))
    made = replace(node, c=own) if isinstance(node, Gemm) else replace(node, dst=own)
    before = (Copy(there, own, span=node.span),) if there in node.reads() else ()
    after = Copy(own, there, span=node.span)
    return Seq((Alloc(own.buffer, span=node.span), *before, made, after), span=node.span)
