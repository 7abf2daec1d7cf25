"""Transformations on element types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_api.reducing.kernel_size import PLAIN
from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Cast, Expr, Load
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.stmt import Kernel, Store
from tile_core.ops.copy import Fill
from tile_core.ops.reducer import ReducerUpdate


def plain_dtypes(kernel: Kernel) -> Iterator[Kernel]:
    """Give tensors and tiles the element types float32 and int32: all of one type, then each.

    Before::

        alloc a: shared bfloat16[64]
        B[i] = a[i] * bfloat16(2.0)

    After::

        alloc a: shared float32[64]
        B[i] = cast[bfloat16](a[i]) * bfloat16(2.0)
    """
    odd = [b for b in dict.fromkeys(_buffers(kernel)) if _is_odd(b.dtype)]
    for dtype in sorted({str(b.dtype) for b in odd}):
        together = {b for b in odd if b.dtype == dtype}
        if len(together) > 1:
            yield _retyped(kernel, together)
    for buffer in odd:
        yield _retyped(kernel, {buffer})


def _buffers(kernel: Kernel) -> list[Buffer]:
    return [n for n in walk(kernel) if isinstance(n, Buffer) and n.origin is None]


def _is_odd(dtype: DType) -> bool:
    return dtype.base not in PLAIN and (dtype.is_float or dtype.is_int)


def _retyped(kernel: Kernel, chosen: set[Buffer]) -> Kernel:
    """Return `kernel` with the plain type for some buffers; values are converted around them."""
    new: dict[Node, Buffer] = {
        b: replace(b, dtype=dtype_of("float32" if b.dtype.is_float else "int32")) for b in chosen
    }
    made = {buffer: old.dtype for old, buffer in new.items() if isinstance(old, Buffer)}

    def rule(node: Node) -> Node:
        if node in new:
            return new[node]
        match node:
            case Load(buffer=buffer) if buffer in made:
                return Cast(made[buffer].with_lanes(node.dtype.lanes), node)
            case Store(buffer=buffer, value=value) | ReducerUpdate(reducer=buffer, value=value):
                if buffer in made:
                    return replace(node, value=_as(value, buffer.dtype))
            case Fill(dst=dst, value=value) if dst.buffer in made:
                return replace(node, value=_as(value, dst.buffer.dtype))
        return node

    return rewrite(kernel, rule)


def _as(value: Expr, dtype: DType) -> Expr:
    wanted = dtype.with_lanes(value.dtype.lanes)
    if isinstance(value, Cast) and value.value.dtype == wanted:
        return value.value
    return Cast(wanted, value)
