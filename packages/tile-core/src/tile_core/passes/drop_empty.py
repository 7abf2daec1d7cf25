"""Loops and operators over no elements."""

from __future__ import annotations

from tile_core.ir.buffer import static_value
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Kernel, Parallel, Seq
from tile_core.ops.operator import TileOperator
from tile_core.ops.parallel_form import as_parallel, is_element_wise


def drop_empty(kernel: Kernel) -> Kernel:
    """Return `kernel` without data-parallel loops and element-wise operators over no elements.

    Before   copy A[4:+0, 0:+8], S[4:+0, 0:+8];  parallel i, j in (0, 8): S[i, j] = 7
    After    (nothing)

    Slices that are empty at compile time are legal and have no elements, as in Python; there is
    nothing to lay out or to share among threads. Returns the same object if there are none.
    """

    def rule(node: Node) -> Node:
        return Seq((), span=node.span) if _is_empty(node) else node

    return rewrite(kernel, rule)


def _is_empty(node: Node) -> bool:
    if isinstance(node, TileOperator) and is_element_wise(node):
        regions = (*node.reads(), *node.writes())
        if not any(static_value(e) == 0 for region in regions for e in region.extents):
            return False
        node = as_parallel(node)
    return isinstance(node, Parallel) and any(static_value(e) == 0 for e in node.extents)
