"""Second operands of products stored as panels: who demands it, and how copies get there."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tile_core.arith.in_range import prove_in_range
from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.build_expr import as_expr
from tile_core.layout import Layout, packed_panels
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.parallel_form import parallel_nest
from tile_core.ops.region_pairing import pair
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap
from tile_core.ops.serial_forms import expand
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.matrices import element_name, exists, matrix_of, valid_extent
from tile_cpu.lowering.storage import allocate_buffer
from tile_cpu.machine import machine
from tile_cpu.ops import StreamedGemm
from tile_cpu.passes.stream_gemm_operands import reads_only_as_b
from tile_cpu.tir.build import seq
from tile_cpu.tir.nodes import Stmt

_CONVERTED_WHILE_PACKED = frozenset({"float32", "float16", "bfloat16"})


def infer_gemm(op: Gemm, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Demand panels for a second operand in scratch that whole copies write and products read.

    Such a copy interleaves or transposes in registers on its way, once, and no product has
    to do it again. Tiles stay in rows

    * if the product is made of plain multiply-adds and the operand is not transposed: it
      reads rows as they are, and writing panels is up to a tenth slower than writing rows;
    * if something writes single elements or parts: its vectors would be scattered, while the
      product packs rows with whole vectors;
    * if anything else reads them, if products cut them differently, or if their element type
      is not what the instruction multiplies.

    The first operand is read one row at a time, a few rows side by side, and nothing is
    demanded of it: padding its rows makes no difference that can be measured.
    """
    if level is not InferLevel.STRICT or ctx.layout_of(op.b.buffer) is not None:
        return {}
    layout = _common_panels(op, ctx)
    return {} if layout is None else {op.b.buffer: layout}


def _common_panels(op: Gemm, ctx: InferContext) -> Layout | None:
    """Return the panels in which all users of the second operand of `op` agree to keep it."""
    tile, cpu = op.b.buffer, machine(ctx.target.arch)
    wanted = _panels(op, cpu)
    if wanted is None or ctx.is_viewed(tile):
        return None
    copies = 0
    for user in ctx.users_of(tile):
        if isinstance(user, Gemm):
            if not reads_only_as_b(user, tile) or _panels(user, cpu) != wanted:
                return None
        elif isinstance(user, Copy) and _fills(user, tile):
            copies += 1
        else:
            return None
    return wanted if copies else None


def _panels(op: Gemm, cpu: CpuMachine) -> Layout | None:
    """Return the panels that the product reads, None if its operand does not suit them."""
    tile, shape = op.b.buffer, op.b.buffer.static_shape
    is_tile = tile.scope in (Scope.SHARED, Scope.FRAGMENT) and tile.origin is None
    if not is_tile or shape is None or len(shape) != 2 or tile.strides or not op.b.is_whole:
        return None
    spec = tile_spec(op, cpu)
    kernel, (_, n, k) = spec.kernel, extents_of(op)
    if kernel.flip_b or kernel.b_dtype != element_name(op.b):
        return None
    if kernel.group == 1 and not op.transpose_b:
        return None
    depth = kernel.chunk if op.transpose_b else kernel.group
    width = spec.panel_width if kernel.group == 1 else math.lcm(spec.panel_width, kernel.chunk)
    if k % depth or n % width:
        return None
    return packed_panels(shape, spec.panel_width, kernel.group, 0 if op.transpose_b else 1)


def _fills(op: Copy, tile: Buffer) -> bool:
    return op.dst.buffer is tile and op.dst.is_whole and op.src.buffer.storage is not tile


def tile_spec(op: Gemm | StreamedGemm, cpu: CpuMachine) -> Any:
    """Return how the product of two tiles is multiplied.

    Few rows times what would be transposed on its way from memory are dot products along its rows.
    """
    from tile_cpu.gemm.instruction_kernel import choose_kernel
    from tile_cpu.gemm.macrokernel import plan_gemm
    from tile_cpu.gemm.operands import GemmSpec
    from tile_cpu.gemm.register_tile_shape import GemmForm, choose_tile

    m, n, _ = extents_of(op)
    types = element_name(op.a), element_name(op.b), element_name(op.c)
    if isinstance(op, StreamedGemm) and op.transpose_b and not op.transpose_a:
        spec = plan_gemm(cpu, *types, m, n, transposed_b=True)
        if spec.form is GemmForm.DOT_ROWS:
            return spec
    kernel = choose_kernel(cpu, *types)
    return GemmSpec(cpu, kernel, choose_tile(cpu, kernel, m, n))


def extents_of(op: Gemm | StreamedGemm) -> tuple[int, int, int]:
    """Return M, N and K."""
    a, c = op.a.static_extents, op.c.static_extents
    if a is None or c is None:
        raise InternalError("a product has run-time extents", span=op.span)
    return c[-2], c[-1], a[-2] if op.transpose_a else a[-1]


def panels_of(ctx: Context, tile: Buffer, spec: Any, k: int) -> Any:
    """Return a tile of panels as an operand."""
    from tile_cpu.gemm.operands import TilePanels

    return TilePanels(ctx.place(tile).flat, spec.tile.nv, -(-k // spec.kernel.group))


def is_packing(op: Copy, ctx: Context) -> bool:
    """Whether a copy writes a tile of panels."""
    tile = op.dst.buffer
    if tile not in ctx.settings.layouts:
        return False
    is_read = any(isinstance(user, Gemm) for user in ctx.settings.users.get(tile, ()))
    return is_read and ctx.place(tile).layout is not None


def lower_packing_copy(op: Copy, ctx: Context) -> Stmt:
    """Return the copy of a whole tile into panels.

    From where the elements lie, if they surely exist, in rows; otherwise through rows.
    Whole groups are transposed, so that there elements must have their type already.
    """
    from tile_cpu.gemm.packing import emit_pack_b

    tile = op.dst.buffer
    reader = next(user for user in ctx.settings.users[tile] if isinstance(user, Gemm))
    spec, (_, n, k) = tile_spec(reader, ctx.machine), extents_of(reader)
    panels = panels_of(ctx, tile, spec, k)
    converts = spec.kernel.group == 1 or not reader.transpose_b
    with ctx.statement() as before:
        source, staged = _source_rows(op, ctx, converts=converts), seq()
        if source is None:
            rows = Buffer(f"{tile.name}_rows", tile.shape, tile.dtype, Scope.SHARED)
            ctx.run(seq(allocate_buffer(ctx, rows)))
            staged = ctx.lower_stmt(parallel_nest(expand(replace(op, dst=whole(rows)))))
            source = matrix_of(ctx, whole(rows), 0)
        packed = emit_pack_b(spec, source, panels, k, n, transposed=reader.transpose_b)
    return seq(before, staged, packed)


def _source_rows(op: Copy, ctx: Context, *, converts: bool) -> Any:
    """Return what is copied as a matrix, None if it is none, or some of it may not exist."""
    source, tile = op.src, op.dst.buffer
    place = ctx.place(source.buffer)
    is_by_rows = place.layout is None and place.packing == 1
    types = {element_name(source), element_name(op.dst)}
    if not is_by_rows or (len(types) > 1 and not (converts and types <= _CONVERTED_WHILE_PACKED)):
        return None
    if place.strides[-1] != 1 or not _is_certain(source, ctx):
        return None
    pairing, last = pair(source, op.dst), source.buffer.rank - 1
    moving = [(k, axis) for k, axis in enumerate(pairing.src_axes) if axis is not None]
    rows = [k for k, axis in moving if axis == 0]
    if pairing.dst_axes != (0, 1) or len(rows) != 1 or (last, 1) not in moving:
        return None
    if source.is_element or len(moving) != 2 or not _has_shape(source, rows[0], tile):
        return None
    return matrix_of(ctx, source, rows[0])


def _has_shape(source: Region, rows: int, tile: Buffer) -> bool:
    found = source.static_extents
    return found is not None and (found[rows], found[-1]) == tile.static_shape


def _is_certain(source: Region, ctx: Context) -> bool:
    """Whether every element of `source` exists."""
    buffer = source.buffer
    if not buffer.scope.is_global:
        return exists(ctx, source, 0) is None
    if source.static_extents is None or source.is_element:
        return False
    for start, extent in zip(source.starts, buffer.shape, strict=True):
        if not prove_in_range(as_expr(start), extent, ctx.env):
            return False
    return all(valid_extent(ctx, source, axis) is None for axis in range(buffer.rank))
