"""Transformations on whole tensors and tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tile_api.reducing.kernel_edits import edited, number, own_nodes, statements, touched
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Broadcast, Const, Expr, Load
from tile_core.ir.node import Node, substitute
from tile_core.ir.stmt import Alloc, Kernel, Stmt


def drop_buffers(kernel: Kernel) -> Iterator[Kernel]:
    """Take a tensor or tile out with every statement on it; what is loaded of it becomes 0.

    Before::

        alloc b: shared float32[64]
        copy(src=B[0:64], dst=b[0:64])
        C[i] = a[i] + b[i]

    After, without ``b``::

        C[i] = a[i] + 0.0
    """
    listed = statements(kernel)
    found: dict[Buffer, None] = {}
    for stmt in listed:
        tiles, loads = touched(stmt)
        found |= tiles | loads
    for buffer in [*found][::-1]:
        yield _without(kernel, listed, buffer)


def _without(kernel: Kernel, listed: Sequence[Stmt], buffer: Buffer) -> Kernel:
    gone: dict[Node, Sequence[Stmt]] = {}
    zeros: dict[Node, dict[Node, Node]] = {}
    for stmt in listed:
        tiles, loads = touched(stmt)
        if buffer in tiles:
            gone[stmt] = ()
        elif buffer in loads:
            zeros[stmt] = _zeros(stmt, buffer)
    return without_parameter(edited(kernel, gone, zeros), buffer)


def _zeros(stmt: Stmt, buffer: Buffer) -> dict[Node, Node]:
    found: dict[Node, Node] = {}
    for node in own_nodes(stmt):
        if isinstance(node, Load) and node.buffer.storage is buffer:
            zero = _zero(node)
            if zero is not None:
                found[node] = zero
    return found


def _zero(load: Load) -> Expr | None:
    zero = number(0, Const(0, load.dtype.scalar))
    return zero if zero is None or load.dtype.lanes == 1 else Broadcast(zero, load.dtype.lanes)


def without_parameter(kernel: Kernel, gone: Node) -> Kernel:
    """Return `kernel` without a parameter, if it is one; positions of outputs move up."""
    if not any(param is gone for param in kernel.params):
        return kernel
    at = next(i for i, param in enumerate(kernel.params) if param is gone)
    outputs = tuple(o - (o > at) for o in kernel.outputs if o != at)
    return replace(kernel, params=kernel.params[:at] + kernel.params[at + 1 :], outputs=outputs)


def share_buffers(kernel: Kernel) -> Iterator[Kernel]:
    """Put one tensor or tile in the place of another that is like it.

    Before::

        alloc a: shared float32[16]
        alloc b: shared float32[16]
        fill(dst=a, value=0.0)
        copy(src=a, dst=b)

    After::

        alloc a: shared float32[16]
        fill(dst=a, value=0.0)
        copy(src=a, dst=a)
    """
    allocs = {s.buffer: s for s in statements(kernel) if isinstance(s, Alloc)}
    params = [p for p in kernel.params if isinstance(p, Buffer)]
    known = [*params, *allocs]
    for at, gone in reversed([*enumerate(known)]):
        for kept in known[:at]:
            if _alike(kept, gone):
                changes: dict[Node, Sequence[Stmt]] = {allocs[gone]: ()} if gone in allocs else {}
                left = without_parameter(edited(kernel, changes), gone)
                yield substitute(left, {gone: kept})


def _alike(kept: Buffer, gone: Buffer) -> bool:
    shapes = kept.static_shape, gone.static_shape
    return (
        shapes[0] is not None
        and shapes[0] == shapes[1]
        and kept.dtype == gone.dtype
        and kept.scope.is_global >= gone.scope.is_global
        and kept.strides is None
        and gone.strides is None
    )
