"""Indices of blocks along dimensions of the grid that have one block."""

from __future__ import annotations

from dataclasses import replace

from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import const
from tile_core.ir.node import Node, substitute
from tile_core.ir.stmt import Kernel, Launch, Stmt
from tile_core.ir.visitor import map_launches
from tile_core.target import Target


def fold_single_blocks(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with 0 for the index of a block that is alone along its dimension.

    Before   launch (bx in 1, by in 96): A[by, bx * 56 + i] = choose(bx * 56 + i < 3, 0, B[i])
    After    launch (bx in 1, by in 96): A[by, 0 * 56 + i] = choose(0 * 56 + i < 3, 0, B[i])

    Whoever looks for stretches of a loop in which a condition is settled finds them then. Returns
    the same object when there are no such blocks.
    """

    def folded(launch: Launch) -> Stmt:
        alone: dict[Node, Node] = {
            var: const(0, var.dtype)
            for var, count in zip(launch.block_vars, launch.grid, strict=True)
            if static_value(count) == 1
        }
        return replace(launch, body=substitute(launch.body, alone)) if alone else launch

    return map_launches(kernel, folded)
