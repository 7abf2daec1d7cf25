"""Barriers in explicit programs of threads, for machines that run threads in turn."""

from __future__ import annotations

from tile_core.analysis.uniformity import is_thread_program
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Kernel, Launch
from tile_core.passes.divergent_races import refuse_divergent_races
from tile_core.passes.insert_barriers import insert_barriers


def order_threads(kernel: Kernel) -> Kernel:
    """Return `kernel` with the barriers that its explicit programs of threads lack.

    Before   s[tx] = A[tx];  B[tx] = s[127 - tx]
    After    s[tx] = A[tx];  barrier;  B[tx] = s[127 - tx]

    Returns the same object when there is nothing to do.

    Raises
    ------
    DataRace
        If threads surely race within a branch that not all of them take.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, Launch) and is_thread_program(node):
            return insert_barriers(refuse_divergent_races(node))
        return node

    return rewrite(kernel, rule)
