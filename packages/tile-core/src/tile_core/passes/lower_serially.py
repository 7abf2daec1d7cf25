"""Make a kernel that any backend with loops can run: no operators, no parallel loops."""

from __future__ import annotations

from tile_core.ir.build_expr import const
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import For, Kernel, Leaf, Parallel, Pipelined, Stmt
from tile_core.ops.serial_forms import expand
from tile_core.passes.serialise_threads import serialise_threads
from tile_core.passes.split_grid_barriers import split_grid_barriers
from tile_core.passes.split_vectors import split_vectors


def lower_serially(kernel: Kernel) -> Kernel:
    """Return `kernel` with operators expanded and every loop sequential.

    Before   copy A, T;  parallel i in (64): T[i] = T[i] * 2
    After    for i in range(64): T[i] = A[i];  for i in range(64): T[i] = T[i] * 2

    Threads of explicit thread programs become loops too; what remains in a launch is one
    program per block. Returns the same object when there is nothing to do.

    Raises
    ------
    UnsupportedOnTarget
        If an operator has no serial form, or the threads of a block take different ways
        around a barrier.
    """

    def rule(node: Node) -> Node:
        match node:
            case Parallel():
                return nested_loops(node)
            case Pipelined(var=var, start=start, stop=stop, body=body):
                return For(var, start, stop, const(1, var.dtype), body, span=node.span)
            case Leaf():
                return rewrite(expand(node), rule)
        return node

    return rewrite(serialise_threads(split_vectors(split_grid_barriers(kernel))), rule)


def nested_loops(loop: Parallel) -> Stmt:
    """Return a data-parallel loop as nested sequential ones, outermost first."""
    body = loop.body
    for var, extent in zip(reversed(loop.vars), reversed(loop.extents), strict=True):
        zero, one = const(0, var.dtype), const(1, var.dtype)
        body = For(var, zero, extent, one, body, span=loop.span)
    return body
