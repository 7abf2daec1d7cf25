"""Loops of register tiles over one block: the whole of a tile-level matrix product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from tile_cpu.gemm.microkernel import RegisterTiledGemm, emit_edge_tile, emit_tile
from tile_cpu.gemm.operands import Extent, Finish, GemmSpec, OperandA, OperandB, PackingB, Start
from tile_cpu.gemm.prefetch import Prefetch
from tile_cpu.gemm.register_tile_shape import Segment, row_segments
from tile_cpu.tir.build import i32, loop, seq
from tile_cpu.tir.nodes import Select, Stmt
from tile_cpu.vectors import as_expr, ceil_div, floor_div, minimum, opaque

BeforePanel: TypeAlias = Callable[[Any], Stmt]


def emit_tile_gemm(
    spec: GemmSpec,
    a: OperandA,
    b: OperandB,
    extent: Extent,
    *,
    start: Start = None,
    finish: Finish,
    prefetch: Prefetch | None = None,
    before_panel: BeforePanel | None = None,
    packing: PackingB | None = None,
) -> Stmt:
    """Return ``finish(start + A B)`` for one block whose operands are ready; k starts at 0 in both.

    Parameters
    ----------
    start
        What accumulators start from; None for zero.
    finish
        Where results go. Called once for each vector.
    prefetch
        What to fetch meanwhile: `spread` over the whole register tiles.
    before_panel
        Called with the index of a panel of B; returns what makes it ready.
    packing
        What the first register tile of each panel reads instead of `b`, and makes ready by
        that for the others; only for blocks that exist entirely.

    Notes
    -----
    Panels of B outside, rows of A inside: one panel stays in the first-level cache while A
    streams past it. Register tiles that exist entirely run unguarded; the ragged rim runs
    one vector wide with masked stores, and reads nothing outside the operands.
    """
    groups = ceil_div(extent.depth, spec.kernel.group)
    product = RegisterTiledGemm(spec.kernel, a, b, groups, start, finish)
    ready = before_panel or (lambda panel: seq())
    ahead = prefetch or (lambda panel, tile, per_panel, panels: [])
    if extent.m_valid is None and extent.n_valid is None:
        first = product if packing is None else replace(product, b=packing)
        return _whole(spec, (first, product), extent, ahead, ready)
    return _ragged(spec, product, extent, ahead, ready)


def _whole(
    spec: GemmSpec,
    products: tuple[RegisterTiledGemm, RegisterTiledGemm],
    extent: Extent,
    ahead: Prefetch,
    ready: BeforePanel,
) -> Stmt:
    """Return the loops over whole tiles: `products` are of each panel's first one and others."""
    kernel, nv, (first, others) = spec.kernel, spec.tile.nv, products
    segments = row_segments(extent.m, spec.tile.mr)
    per_panel = sum(segment.count for segment in segments)
    panels, rest = divmod(extent.n, spec.panel_width)

    def some(segment: Segment, before: int, vectors: tuple[Any, int], tail: int | None) -> Stmt:
        def one(ip: Any, product: RegisterTiledGemm = others) -> Stmt:
            rows = (ip * segment.size + segment.start, segment.size)
            fetch = ahead(floor_div(vectors[0], nv), before + ip, per_panel, max(1, panels))
            return seq(fetch, emit_tile(product, rows=rows, vectors=vectors, tail=tail))

        if before or first is others:
            return loop(segment.count, one, name="ip")
        rest = loop(segment.count - 1, lambda ip: one(ip + 1), name="ip")
        return seq(one(i32(0), first), rest if segment.count > 1 else None)

    def panel(jp: Any, width: int, tail: int | None) -> Stmt:
        done, statements = 0, [ready(jp)]
        for segment in segments:
            statements.append(some(segment, done, (jp * nv, width), tail))
            done += segment.count
        return seq(statements)

    statements = []
    if panels:
        statements.append(loop(panels, lambda jp: panel(jp, nv, None), name="jp"))
    if rest:
        width = ceil_div(rest, kernel.lanes)
        tail = rest - (width - 1) * kernel.lanes
        statements.append(panel(i32(panels), width, None if tail == kernel.lanes else tail))
    return seq(statements)


def _ragged(
    spec: GemmSpec, product: RegisterTiledGemm, extent: Extent, ahead: Prefetch, ready: BeforePanel
) -> Stmt:
    kernel, (mr, nv) = spec.kernel, (spec.tile.mr, spec.tile.nv)
    rows = extent.m if extent.m_valid is None else extent.m_valid
    columns = extent.n if extent.n_valid is None else extent.n_valid
    whole_rows, name_rows = opaque("whole_rows", floor_div(rows, mr))
    whole_panels, name_panels = opaque("whole_panels", floor_div(columns, spec.panel_width))
    per_panel = max(1, extent.m // mr)
    all_panels = max(1, extent.n // spec.panel_width)

    def inside(jp: Any, ip: Any) -> Stmt:
        tile = emit_tile(product, rows=(ip * mr, mr), vectors=(jp * nv, nv))
        return seq(ahead(jp, ip, per_panel, all_panels), tile)

    def rim(jp: Any, ip: Any) -> Stmt:
        def tile(v: Any) -> Stmt:
            return emit_edge_tile(
                product, row=ip * mr, mr=mr, vector=jp * nv + v, limits=(rows, columns)
            )

        return loop(minimum(ceil_div(columns, kernel.lanes) - jp * nv, nv), tile, name="v")

    def panel(jp: Any) -> Stmt:
        inner, name_inner = opaque("inner", Select(as_expr(jp) < whole_panels, whole_rows, i32(0)))
        return seq(
            ready(jp),
            name_inner,
            loop(inner, lambda ip: inside(jp, ip), name="ip"),
            loop(ceil_div(rows, mr) - inner, lambda ip: rim(jp, inner + ip), name="ip"),
        )

    panels = ceil_div(columns, spec.panel_width)
    return seq(name_rows, name_panels, loop(panels, panel, name="jp"))
