"""Grids whose blocks all run at a time, and meet at barriers in the memory of the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tile_core.dtypes import dtype_of
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.build_expr import const
from tile_core.ir.expr import Var
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Alloc, For, Kernel, Launch, Pipelined, Stmt, Store
from tile_core.ops.control import Barrier
from tile_core.ops.signals import WaitSignal
from tile_core.passes.kernel_fission import holds_barrier, spans_grid
from tile_core.passes.split_grid_barriers import split_grid_barriers
from tile_core.records import replace


def lower_grid_barriers(kernel: Kernel) -> Kernel:
    """Return `kernel` with each grid that has barriers of its own as launches of a GPU.

    Barriers between which a block runs straight on split the launch, as on other machines: then
    the grid may be larger than what runs at a time. Around those in loops and branches the launch
    stays one, and is *cooperative*: its blocks count their arrivals in a word of memory.

    Before   launch (4): for k in (0, n, 1): { A[bx] += k;  barrier(scope="grid") }
    After    alloc grid_arrivals;  launch (1): grid_arrivals[0] = 0
             launch (4): for k in (0, n, 1):
               A[bx] += k;  barrier(scope="grid", arrivals=grid_arrivals)

    Returns the same object when no barrier spans the grid.

    Raises
    ------
    UnsupportedOnTarget
        If blocks of such a grid form clusters, or what `split_grid_barriers` raises.
    """
    return split_grid_barriers(kernel, around=_cooperative)


def is_cooperative(root: Node) -> bool:
    """Whether blocks of a launch wait for each other while they run."""
    meets = any(n.arrivals is not None for n in nodes_of(root, Barrier))
    return meets or bool(nodes_of(root, WaitSignal))


def _cooperative(launch: Launch) -> Sequence[Stmt]:
    if math.prod(launch.cluster) > 1:
        barrier = next(filter(spans_grid, nodes_of(launch.body, Barrier)))
        raise UnsupportedOnTarget(
            "a barrier of the whole grid stands in a loop or branch of blocks that form clusters",
            span=barrier.span,
            hint="leave cluster_dims out, or put the barrier at the top level of the kernel",
        )
    arrivals = Buffer(
        "grid_arrivals", (1,), dtype_of("uint32"), Scope.GLOBAL, workspace=True, span=launch.span
    )

    def rule(node: Node) -> Node:
        if isinstance(node, Barrier) and spans_grid(node):
            return replace(node, arrivals=whole(arrivals))
        if isinstance(node, Pipelined) and holds_barrier(node):
            step = const(1, node.var.dtype)
            return For(node.var, node.start, node.stop, step, node.body, span=node.span)
        return node

    return [Alloc(arrivals, span=launch.span), _cleared(arrivals, launch), rewrite(launch, rule)]


def _cleared(arrivals: Buffer, launch: Launch) -> Launch:
    """Return the launch, in front, of one thread that sets the count to zero."""
    block = Var("bx", launch.thread_vars[0].dtype)
    x, y, z = (Var(name, v.dtype) for name, v in zip("xyz", launch.thread_vars, strict=True))
    zero = Store(arrivals, (const(0),), const(0, arrivals.dtype), span=launch.span)
    return Launch((block,), (const(1),), (x, y, z), (1, 1, 1), zero, span=launch.span)
