"""Remove allocations of tiles that no statement touches any more."""

from __future__ import annotations

from dataclasses import replace

from tile_core.ir.effects import accesses
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Alloc, AnnotateLayout, AnnotateSafeValue, Kernel, Seq
from tile_core.target import Target


def eliminate_dead_tiles(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` without allocations of buffers that nobody reads or writes.

    Before   alloc A; alloc B; fill B
    After    alloc B; fill B

    Annotations of a dropped buffer go with it. Returns the same object when every buffer
    is used.
    """
    used = {access.buffer.storage for access in accesses(kernel.body)}

    def is_dead(stmt: Node) -> bool:
        if not isinstance(stmt, (Alloc, AnnotateLayout, AnnotateSafeValue)):
            return False
        return stmt.buffer.storage not in used and not stmt.buffer.scope.is_global

    def rule(node: Node) -> Node:
        if isinstance(node, Seq) and any(is_dead(stmt) for stmt in node.body):
            return replace(node, body=tuple(s for s in node.body if not is_dead(s)))
        return node

    return rewrite(kernel, rule)
