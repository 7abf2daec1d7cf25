"""Transformations on expressions and tile operators: parts, numbers or less in their place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from typing import Any

from tile_api.reducing.kernel_edits import edited, number, own_nodes, statements
from tile_core.ir.buffer import Region, Scope
from tile_core.ir.expr import Const, Expr
from tile_core.ir.node import Node
from tile_core.ir.stmt import For, Kernel, Launch, Leaf, Parallel, Pipelined
from tile_core.ops.copy import Fill
from tile_core.ops.operator import TileOperator


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
            if isinstance(node, Region) and not all(
                isinstance(start, int) and start == 0 for start in node.starts
            ):
                first = replace(node, starts=(0,) * len(node.starts))
                yield edited(kernel, {}, {stmt: {node: first}})


def fill_instead(kernel: Kernel) -> Iterator[Kernel]:
    """Fill what an operator writes with zeros, so that what follows has something to read.

    Before::

        gemm(a=a, b=b, c=c, transpose_a=false, transpose_b=false, clear=true, ...)

    After::

        fill(dst=c, value=0.0)
    """
    for stmt in statements(kernel):
        if not isinstance(stmt, TileOperator):
            continue
        fills = []
        for region in stmt.writes():
            zero = number(0, Const(0, region.buffer.dtype))
            if zero is not None and region.buffer.scope not in (Scope.REDUCER, Scope.BARRIER):
                fills.append(Fill(region, zero, span=stmt.span))
        if len(fills) == 1:
            yield edited(kernel, {stmt: fills})


def plain_operators(kernel: Kernel) -> Iterator[Kernel]:
    """Take hints and options of operators away: all of one at once, then one by one.

    Before::

        copy(src=A[0:64], dst=a[0:64], coalesced_width=4, disable_bulk=true)

    After::

        copy(src=A[0:64], dst=a[0:64])
    """
    for stmt in statements(kernel):
        if not isinstance(stmt, Leaf):
            continue
        said = _said(stmt)
        if len(said) > 1:
            yield edited(kernel, {stmt: (replace(stmt, **said),)})
        for name, default in said.items():
            yield edited(kernel, {stmt: (replace(stmt, **{name: default}),)})


def _said(stmt: Leaf) -> dict[str, Any]:
    """Return the defaults of the fields that hold something else."""
    return {
        f.name: f.default
        for f in fields(stmt)
        if f.name != "span"
        and f.default is not MISSING
        and not isinstance(getattr(stmt, f.name), Node)
        and getattr(stmt, f.name) != f.default
    }
