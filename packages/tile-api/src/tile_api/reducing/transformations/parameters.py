"""Transformations on parameters, symbolic dimensions, outputs and options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_api.reducing.kernel_edits import number
from tile_api.reducing.transformations.buffers import without_parameter
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import Const, Extent, Var
from tile_core.ir.node import Node, rewrite, substitute, walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import Kernel, KernelOptions

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
