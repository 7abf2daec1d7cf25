"""Transformations on expressions: parts of them take their place, or numbers do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_api.reducing.kernel_edits import edited, number, own_nodes, statements
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Const, Expr
from tile_core.ir.node import Node
from tile_core.ir.stmt import For, Kernel, Launch, Parallel, Pipelined


def simpler_expressions(kernel: Kernel) -> Iterator[Kernel]:
    """Put 0, 1 or an operand of the same type in the place of an expression, outer ones first.

    Before::

        B[i] = exp2(A[i] * 1.44) + C[bx * 64 + i]

    After, step by step::

        B[i] = A[i]
    """
    for stmt in statements(kernel):
        for node in own_nodes(stmt):
            if isinstance(node, Expr):
                for simple in _simpler(node):
                    if _counts(stmt, node) and isinstance(simple, Const) and simple.value < 1:
                        continue  # a loop of no iterations is no simpler one
                    yield edited(kernel, {}, {stmt: {node: simple}})


def _counts(stmt: Node, node: Node) -> bool:
    """Whether an expression tells how often something runs."""
    match stmt:
        case Launch(grid=counts) | Parallel(extents=counts):
            return any(node is count for count in counts)
        case For(stop=stop) | Pipelined(stop=stop):
            return node is stop
    return False


def _simpler(expr: Expr) -> Iterator[Expr]:
    for value in (0, 1):
        constant = number(value, expr)
        if constant is not None:
            yield constant
    if isinstance(expr, Const):
        if not expr.dtype.is_float and not expr.dtype.is_bool and abs(int(expr.value)) > 2:
            yield Const(int(expr.value) // 2, expr.dtype)
        return
    for child in expr.children():
        if isinstance(child, Expr) and child.dtype == expr.dtype:
            yield child


def first_regions(kernel: Kernel) -> Iterator[Kernel]:
    """Let a region begin where its buffer does.

    Before::

        copy(src=A[by * 64:64, k * 32:32], dst=a[0:64, 0:32])

    After::

        copy(src=A[0:64, 0:32], dst=a[0:64, 0:32])
    """
    for stmt in statements(kernel):
        for node in own_nodes(stmt):
            if isinstance(node, Region) and not _is_first(node):
                first = replace(node, starts=(0,) * len(node.starts))
                changed: dict[Node, Node] = {node: first}
                yield edited(kernel, {}, {stmt: changed})


def _is_first(region: Region) -> bool:
    return all(isinstance(start, int) and start == 0 for start in region.starts)
