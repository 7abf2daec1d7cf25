"""Where buffers live: parameters, workspaces, scratch of a block, and views of all of them."""

from __future__ import annotations

import math
from typing import Any

from tile_core.errors import InternalError, Note, OutOfScratch
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.stmt import Alloc, Kernel, Launch
from tile_cpu.lowering.buffer_addresses import FlatBuffer, extents, index_type, laid_out, row_major
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.types import memory_type
from tile_cpu.tir.build import allocate, i64
from tile_cpu.tir.nodes import (
    AllocBuffer,
    Bind,
    DeclBuffer,
    PointerType,
    PrimExpr,
    PrimType,
    TirBuffer,
    Var,
    tirx,
)
from tile_cpu.tir.nodes import Stmt as TirStmt

STACK_BYTES = 256
"""Scratch up to this size is a stack variable: cheap, and a register where LLVM can."""

SCRATCH_LIMIT_BYTES = 1 << 30
"""Every thread has the tiles of its block at once; offsets inside them are 32 bits wide."""

_ALIGNMENT = 64
_UNBOUNDED = 2**31 - 1


def require_scratch(kernel: Kernel) -> None:
    """Check that the tiles of a block fit the memory that a thread gets.

    Raises
    ------
    OutOfScratch
        If the tiles of one launch take more than `SCRATCH_LIMIT_BYTES`; the notes name the largest.
    """
    for launch in nodes_of(kernel.body, Launch):
        _require(launch)


def _require(launch: Launch) -> None:
    found = [node.buffer for node in nodes_of(launch.body, Alloc)]
    # Elements known only at run time count as one.
    tiles = [
        (math.prod(tile.static_shape or (1,)) * tile.dtype.bytes, tile)
        for tile in found
        if not tile.scope.is_global
    ]
    total = sum(size for size, _ in tiles)
    if total <= SCRATCH_LIMIT_BYTES:
        return
    largest = sorted(tiles, key=lambda tile: -tile[0])[:3]
    raise OutOfScratch(
        f"the tiles of one block take {_spelt(total)}, and a block on the CPU has "
        f"{_spelt(SCRATCH_LIMIT_BYTES)}",
        span=largest[0][1].span or launch.span,
        notes=tuple(Note(f"{b.name} takes {_spelt(size)}", b.span) for size, b in largest),
        hint="choose smaller tiles and loop over them, or a narrower element type; T.alloc_global "
        "makes a workspace of any size",
    )


def _spelt(size: int) -> str:
    for unit, width in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << width:
            return f"{size / (1 << width):.1f} {unit}".replace(".0 ", " ")
    return f"{size} bytes"


def retyped_storages(root: Node) -> frozenset[Buffer]:
    """Return the storages under `root` that some view reads as another element type."""
    return frozenset(
        node.storage
        for node in nodes_of(root, Buffer)
        if isinstance(node.origin, Buffer) and node.storage.dtype.base != node.dtype.base
    )


def pointer_to(memory: str) -> Any:
    """Return TVM's type of an address of elements of the TIR type `memory`."""
    return PointerType(PrimType(memory))


def at_address(ctx: Context, address: PrimExpr, memory: str, name: str) -> TirBuffer:
    """Declare a flat buffer of unknown size at an address.

    The address is named first: TVM takes buffers behind named pointers to overlap, as
    several element types of one storage do.
    """
    pointer = Var(f"{name}_at", pointer_to(memory))
    flat = tirx.decl_buffer(
        [_UNBOUNDED], memory, name, layout=None, data_alignment=_element_bytes(memory)
    )
    ctx.run(Bind(pointer, tirx.reinterpret(pointer_to(memory), address)))
    ctx.run(DeclBuffer(flat, data=pointer))
    return flat


def _element_bytes(memory: str) -> int:
    return max(1, int("".join(c for c in memory if c.isdigit()) or 8) // 8)


def packing_of(ctx: Context, buffer: Buffer) -> int:
    """Return how many elements of `buffer` share a stored byte."""
    packed = buffer.scope.is_global or buffer.storage in ctx.settings.retyped
    return buffer.dtype.packing if packed else 1


def declare_parameter(ctx: Context, buffer: Buffer, pointer: PrimExpr) -> None:
    """Place a tensor parameter at the address it was called with."""
    memory = memory_type(buffer.dtype)
    flat = at_address(ctx, pointer, memory, buffer.name)
    ctx.pointers[buffer] = pointer
    ctx.places[buffer] = _contiguous(ctx, buffer, flat)


def _contiguous(ctx: Context, buffer: Buffer, flat: TirBuffer) -> FlatBuffer:
    kind = index_type(buffer)
    shape = extents(buffer.shape, lambda e: ctx.index(e, kind))
    strides = row_major(shape)
    if buffer.strides is not None:
        strides = extents(buffer.strides, lambda e: ctx.index(e, kind))
    return FlatBuffer(flat, buffer.dtype, strides, kind, packing_of(ctx, buffer))


def allocate_buffer(ctx: Context, buffer: Buffer) -> list[TirStmt]:
    """Place `buffer` in storage of its own and return the statements that make it.

    Scratch of static size is allocated where the block begins, not in the loop it stands
    in, and reused by every iteration.
    """
    memory = memory_type(buffer.dtype)
    shape = buffer.static_shape
    if shape is None:
        return _allocate_dynamic(ctx, buffer, memory)
    layout = ctx.settings.layouts.get(buffer)
    elements = math.prod(shape) if layout is None else layout.cosize
    units = -(-elements // packing_of(ctx, buffer))
    size = max(1, units) * _element_bytes(memory)
    on_stack = size <= STACK_BYTES and not buffer.scope.is_global
    room = ctx.block_entry
    if buffer in ctx.settings.retyped:
        raw = tirx.decl_buffer(
            [-(-size // _ALIGNMENT) * _ALIGNMENT], "uint8", f"{buffer.name}_bytes", layout=None,
            data_alignment=_ALIGNMENT,
        )  # fmt: skip
        room.append(allocate(raw))
        with ctx.statement() as statements:
            address = tirx.buffer_data(raw)
            flat = at_address(ctx, address, memory, buffer.name)
        room.extend(statements)
        ctx.pointers[buffer] = address
    else:
        count = max(1, units)
        flat = tirx.decl_buffer(
            [count], memory, buffer.name, layout=None, data_alignment=_ALIGNMENT
        )
        room.append(allocate(flat, on_stack=on_stack))
    place = _contiguous(ctx, buffer, flat)
    ctx.places[buffer] = place if layout is None else laid_out(place, layout)
    return []


def _allocate_dynamic(ctx: Context, buffer: Buffer, memory: str) -> list[TirStmt]:
    with ctx.statement() as statements:
        count: Any = i64(1)
        for extent in extents(buffer.shape, lambda e: ctx.index(e, "int64")):
            count = count * (i64(extent) if isinstance(extent, int) else extent)
        size = tirx.Max(count, i64(1))
        flat = tirx.decl_buffer([size], memory, buffer.name, layout=None, data_alignment=_ALIGNMENT)
        ctx.run(AllocBuffer(flat))
        ctx.places[buffer] = _contiguous(ctx, buffer, flat)
        ctx.pointers[buffer] = tirx.buffer_data(flat)
    return statements


def place_of(ctx: Context, buffer: Buffer) -> FlatBuffer:
    """Return where `buffer` lies; a view is placed, for the current scope, on first use."""
    if buffer in ctx.places:
        return ctx.places[buffer]
    origin = buffer.origin
    if isinstance(origin, Expr):
        memory = memory_type(buffer.dtype)
        flat = at_address(ctx, ctx.value(origin), memory, buffer.name)
        return _contiguous(ctx, buffer, flat)
    if origin is None:
        raise InternalError(f"buffer {buffer.name!r} is used before it is allocated")
    return _view(ctx, buffer, buffer.storage)


def _view(ctx: Context, buffer: Buffer, storage: Buffer) -> FlatBuffer:
    base = place_of(ctx, storage)
    if storage.dtype.base == buffer.dtype.base:
        return _contiguous(ctx, buffer, base.flat)
    pointer = ctx.pointers.get(storage)
    if pointer is None:
        raise InternalError(f"storage {storage.name!r} of view {buffer.name!r} has no address")
    flat = at_address(ctx, pointer, memory_type(buffer.dtype), buffer.name)
    return _contiguous(ctx, buffer, flat)
