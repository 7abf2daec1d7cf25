"""Tiles of 4-bit integers that matrix instructions take as they lie in memory, two to a byte."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tile_core.arith.constraints import ConstraintSet
from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import Binary, BinaryOp, Const, Extent
from tile_core.ir.node import Node, nodes_of, rewrite, walk
from tile_core.ir.stmt import Alloc, AnnotateSafeValue, Kernel, Launch
from tile_core.machine import SimtMachine
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.simt.gemm.mma_lowering import warp_tiling
from tile_core.target import Target
from tile_cuda.machine import machine as machine_of
from tile_cuda.plugin import BACKEND
from tile_cuda.rules.mma_unit import mma_unit

_BYTES = {
    "int4": dtype_of("int8"),
    "uint4": dtype_of("uint8"),
    "float4_e2m1fn": dtype_of("uint8"),
}

Choice: TypeAlias = Callable[[Gemm, Gemm, int], Gemm | None]
"""Given a product, the one of bytes and how many threads share it: that one, if it can be had."""


def pack_int4_operands_for(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with tiles of 4-bit operands as the machine of a target takes them.

    See `pack_int4_operands`.
    """
    return pack_int4_operands(kernel, machine_of(BACKEND.exact(target).arch))


def pack_int4_operands(kernel: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with tiles of 4-bit operands as bytes of two elements each.

    Before   copy A: int4[M, K], A_s: int4[64, 128];  gemm A_s, B_s
    After    copy A: int8[M, K/2], A_s: int8[64, 64];  gemm A_s, B_s, nibbles

    Such a tile is filled from a tensor of its element type and is an operand, both of which
    touch whole bytes only, with K along its rows; nothing else may look at it. Instructions
    of the machine must divide the products. Other tiles have a byte for each element.
    """

    def chosen(op: Gemm, made: Gemm, threads: int) -> Gemm | None:
        unit = mma_unit(machine)
        return None if op.scales or warp_tiling(made, unit, threads) is None else made

    return pack_operands(kernel, chosen)


def pack_operands(kernel: Kernel, chosen: Choice) -> Kernel:
    """Return `kernel` with tiles of 4-bit operands as bytes, where their products are chosen."""

    def rule(node: Node) -> Node:
        return _packed(node, chosen) if isinstance(node, Launch) else node

    if not any(_is_packable(n.a.buffer) for n in nodes_of(kernel, Gemm)):
        return kernel
    if any(_is_packable(n.buffer) for n in nodes_of(kernel, AnnotateSafeValue)):
        return kernel  # what is outside of a tensor is then no byte of zeros
    return rewrite(kernel, rule)


def _is_packable(buffer: Buffer) -> bool:
    """Whether a buffer could be bytes: rows of a whole number of them, with no gaps."""
    last = static_value(buffer.shape[-1])
    return (
        str(buffer.dtype) in _BYTES
        and buffer.strides is None
        and buffer.origin is None
        and last is not None
        and last % 2 == 0
    )


@dataclass(frozen=True, slots=True)
class _Uses:
    """The operators of a launch that may work on bytes.

    `made` is what each of them then would be, `touched` the tiles that they and their regions
    touch.
    """

    made: dict[Node, Node]
    touched: dict[Node, tuple[Buffer, ...]]


def _packed(launch: Launch, chosen: Choice) -> Launch:
    allocated = [n.buffer for n in nodes_of(launch.body, Alloc)]
    tiles = {b for b in allocated if b.scope is Scope.SHARED and _is_packable(b)}
    if not tiles:
        return launch
    as_bytes = _Bytes({})
    uses = _uses(launch, chosen, as_bytes)
    while True:
        good = {part for part, own in uses.touched.items() if tiles.issuperset(own)}
        kept = tiles - set(_touched_otherwise(launch, good))
        if kept == tiles:
            break
        tiles = kept
    if not tiles:
        return launch
    made: dict[Node, Node] = {op: uses.made[op] for op in good & uses.made.keys()}

    def rule(node: Node) -> Node:
        if isinstance(node, Alloc) and node.buffer in tiles:
            return replace(node, buffer=as_bytes.of(node.buffer))
        return made.get(node, node)

    return replace(launch, body=rewrite(launch.body, rule))


def _touched_otherwise(launch: Launch, good: set[Node]) -> Iterator[Buffer]:
    """Yield the storages that something else than allocations and operators of `good` touches."""
    for node in walk(launch.body):
        if isinstance(node, Alloc) or node in good:
            continue
        for child in node.children():
            if isinstance(child, Buffer):
                yield child.storage


class _Bytes:
    """Buffers as bytes; each is made once."""

    def __init__(self, made: dict[Buffer, Buffer]) -> None:
        self.made = made

    def of(self, buffer: Buffer) -> Buffer:
        """Return the buffer of bytes: a view of a tensor, a tile of its own."""
        if buffer not in self.made:
            *lead, last = buffer.shape
            dtype: DType = _BYTES[str(buffer.dtype)]
            origin = buffer if buffer.scope is Scope.GLOBAL else None
            shape = (*lead, (static_value(last) or 0) // 2)
            self.made[buffer] = replace(buffer, shape=shape, dtype=dtype, origin=origin)
        return self.made[buffer]

    def region(self, region: Region) -> Region | None:
        """Return the bytes of `region`, None if it does not consist of whole ones."""
        *starts, start = region.starts
        *extents, extent = region.extents
        width = static_value(extent)
        if (
            not _is_packable(region.buffer)
            or width is None
            or ConstraintSet().multiple_of(start) % 2
        ):
            return None
        if region.is_element:
            halves = 1
        elif width % 2 == 0:
            halves = width // 2
        else:
            return None
        return replace(
            region,
            buffer=self.of(region.buffer),
            starts=(*starts, _half(start)),
            extents=(*extents, halves),
        )


def _half(value: Extent) -> Extent:
    """Return half of an even number."""
    known = static_value(value)
    if known is not None:
        return known // 2
    match value:
        case Binary(op=BinaryOp.MUL, a=a, b=Const(value=int(n))) if n % 2 == 0:
            return binary(BinaryOp.MUL, a, n // 2)
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB as op, a=a, b=b) if all(
            ConstraintSet().multiple_of(x) % 2 == 0 for x in (a, b)
        ):
            return binary(op, as_expr(_half(a)), as_expr(_half(b)))
    return binary(BinaryOp.FLOORDIV, value, 2)


def _uses(launch: Launch, chosen: Choice, as_bytes: _Bytes) -> _Uses:
    uses = _Uses({}, {})
    for node in nodes_of(launch.body, Copy, Gemm):
        match node:
            case Copy(src=src, dst=dst):
                made: Node | None = _copy(node, as_bytes)
                regions: Sequence[Region] = (src, dst)
            case Gemm(a=a, b=b):
                made = _product(node, as_bytes, chosen, math.prod(launch.threads))
                regions = (a, b)
        if made is not None:
            own = tuple(r.buffer for r in regions if r.buffer.scope is Scope.SHARED)
            for part in (node, *regions):
                uses.touched[part] = own
            uses.made[node] = made
    return uses


def _copy(op: Copy, as_bytes: _Bytes) -> Copy | None:
    """Return the copy of a tensor's bytes into a tile, if it is one."""
    scopes = (op.src.buffer.scope, op.dst.buffer.scope)
    same = op.src.buffer.dtype == op.dst.buffer.dtype and op.loop_layout is None
    if not same or scopes != (Scope.GLOBAL, Scope.SHARED):
        return None
    src, dst = as_bytes.region(op.src), as_bytes.region(op.dst)
    return None if src is None or dst is None else replace(op, src=src, dst=dst)


def _product(op: Gemm, as_bytes: _Bytes, chosen: Choice, threads: int) -> Gemm | None:
    """Return the product of bytes, if the machine has an instruction that divides it."""
    made = _of_bytes(op, as_bytes)
    return None if made is None else chosen(op, made, threads)


def product_of_bytes(op: Gemm) -> Gemm | None:
    """Return `op` with tiles of bytes of its own, as it would be if nothing else used its tiles."""
    return _of_bytes(op, _Bytes({}))


def _of_bytes(op: Gemm, as_bytes: _Bytes) -> Gemm | None:
    along_k = not op.transpose_a and op.transpose_b
    if not along_k or any(r.buffer.scope is not Scope.SHARED for r in (op.a, op.b)):
        return None
    a, b = as_bytes.region(op.a), as_bytes.region(op.b)
    if a is None or b is None:
        return None
    return replace(op, a=a, b=b, nibbles=True)
