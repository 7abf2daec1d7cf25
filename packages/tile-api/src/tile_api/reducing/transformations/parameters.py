"""Transformations on parameters, whole tensors and tiles, symbolic dimensions and options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tile_api.reducing.kernel_edits import edited, number, own_nodes, statements, touched
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import Broadcast, Const, Expr, Extent, Load, Var
from tile_core.ir.node import Node, rewrite, substitute, walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import Alloc, Kernel, KernelOptions, Stmt

SIZES = (1, 16, 64, 128, 1024)
"""What is tried for a symbolic dimension."""


def drop_parameters(kernel: Kernel) -> Iterator[Kernel]:
    """Take away tensors and scalars that nothing mentions.

    Before::

        kernel main(A: global float32[64], B: global float32[64]):
          launch ...:
            fill(dst=A[0:64], value=0.0)

    After::

        kernel main(A: global float32[64]):
    """
    inside = set(walk(kernel.body))
    for param in kernel.params[::-1]:
        if param not in inside:
            yield without_parameter(kernel, param)


def known_sizes(kernel: Kernel) -> Iterator[Kernel]:
    """Put numbers in the place of symbolic dimensions and scalar parameters.

    Before::

        kernel main[n: int32](A: global float32[n], s: float32):

    After::

        kernel main(A: global float32[16]):
    """
    for symbol in symbols_of(kernel):
        for size in SIZES:
            yield _substituted(kernel, symbol, Const(size, symbol.dtype))
    for param in kernel.params:
        if isinstance(param, Var):
            for value in (1, 0, 16):
                constant = number(value, param)
                if constant is not None:
                    yield _substituted(without_parameter(kernel, param), param, constant)


def _substituted(kernel: Kernel, var: Var, constant: Const) -> Kernel:
    """Return `kernel` with a number for a variable; extents become plain integers."""

    def of(extents: tuple[Extent, ...]) -> tuple[Extent, ...]:
        return tuple(_plain(e) for e in extents)

    def rule(node: Node) -> Node:
        if isinstance(node, Buffer):
            shape, strides = of(node.shape), node.strides and of(node.strides)
            if any(a is not b for a, b in zip(shape, node.shape, strict=True)) or strides:
                return replace(node, shape=shape, strides=strides)
        return node

    return rewrite(substitute(kernel, {var: constant}), rule)


def _plain(extent: Extent) -> Extent:
    if isinstance(extent, int):
        return extent
    known = static_value(extent)
    return extent if known is None else known


def drop_hints(kernel: Kernel) -> Iterator[Kernel]:
    """Take away outputs, C sources, pass configurations and compiler flags.

    Before::

        kernel main(A: global float32[64]) -> [0]:
          option tl.disable_tma = true

    After::

        kernel main(A: global float32[64]):
    """
    if kernel.outputs or kernel.sources or kernel.options != KernelOptions():
        yield replace(kernel, outputs=(), sources=(), options=KernelOptions())
    for k in range(len(kernel.outputs)):
        yield replace(kernel, outputs=kernel.outputs[:k] + kernel.outputs[k + 1 :])
    for k in range(len(kernel.sources)):
        yield replace(kernel, sources=kernel.sources[:k] + kernel.sources[k + 1 :])
    options = kernel.options
    for k in range(len(options.pass_configs)):
        left = options.pass_configs[:k] + options.pass_configs[k + 1 :]
        yield replace(kernel, options=replace(options, pass_configs=left))
    for k in range(len(options.compile_flags)):
        flags = options.compile_flags[:k] + options.compile_flags[k + 1 :]
        yield replace(kernel, options=replace(options, compile_flags=flags))


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
