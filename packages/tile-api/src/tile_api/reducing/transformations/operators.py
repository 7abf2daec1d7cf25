"""Transformations on tile operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from typing import Any

from tile_api.reducing.kernel_edits import edited, number, statements
from tile_core.ir.buffer import Scope
from tile_core.ir.expr import Const
from tile_core.ir.node import Node
from tile_core.ir.stmt import Kernel, Leaf
from tile_core.ops.copy import Fill
from tile_core.ops.operator import TileOperator


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
