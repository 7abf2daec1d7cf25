"""Loops of register tiles over one block: the whole of a tile-level matrix product."""

from __future__ import annotations

from typing import Any

from tile_core.tir.build import bind, i32, loop, seq
from tile_core.tir.nodes import PrimExpr, Select, Stmt
from tile_cpu.gemm.microkernel import emit_edge_tile, emit_tile, group_count
from tile_cpu.gemm.operands import Extent, Finish, GemmSpec, OperandA, OperandB, Start
from tile_cpu.gemm.prefetch import Region, emit_prefetch
from tile_cpu.gemm.shape import row_segments
from tile_cpu.vectors import as_expr, ceil_div, floor_div


def emit_tile_gemm(
    spec: GemmSpec,
    a: OperandA,
    b: OperandB,
    extent: Extent,
    *,
    start: Start = None,
    finish: Finish,
    prefetch: tuple[Region, ...] = (),
) -> Stmt:
    """Return ``finish(start + A B)`` for one block whose operands are ready.

    Parameters
    ----------
    spec
        From `plan_gemm`, or made by hand.
    a, b
        Operands in the forms the kernel reads; k starts at 0 in both.
    extent
        Size of the block. With `m_valid` or `n_valid` only the existing part is computed.
    start
        What accumulators start from: None for zero, a `ValueAt`, or a `Choice`.
    finish
        Where results go: a `StoreAt` or a `Choice`. Called once for each vector.
    prefetch
        Memory that will be read soon; its lines are spread over the whole register tiles.

    Notes
    -----
    Panels of B outside, rows of A inside: one panel stays in the first-level cache while A
    streams past it. Register tiles that exist entirely run unguarded; the ragged rim runs
    one vector wide with masked stores, and reads nothing outside the operands.
    """
    groups = group_count(spec.kernel, extent.depth)
    if extent.m_valid is None and extent.n_valid is None:
        return _whole(spec, a, b, extent, groups, start, finish, prefetch)
    return _ragged(spec, a, b, extent, groups, start, finish, prefetch)


def _whole(
    spec: GemmSpec,
    a: OperandA,
    b: OperandB,
    extent: Extent,
    groups: Any,
    start: Start,
    finish: Finish,
    prefetch: tuple[Region, ...],
) -> Stmt:
    kernel, nv = spec.kernel, spec.tile.nv
    segments = row_segments(extent.m, spec.tile.mr)
    per_panel = sum(segment.count for segment in segments)
    panels, rest = divmod(extent.n, spec.panel_width)
    tiles = max(1, panels) * per_panel

    def rows(vector: Any, width: int, tail: int | None, panel: Any) -> Stmt:
        done, statements = 0, []
        for segment in segments:

            def one(
                ip: Any, size: int = segment.size, first: int = segment.start, before: int = done
            ) -> Stmt:
                return seq(
                    emit_prefetch(prefetch, panel * per_panel + before + ip, tiles),
                    emit_tile(
                        kernel,
                        a,
                        b,
                        rows=(ip * size + first, size),
                        vectors=(vector, width),
                        groups=groups,
                        start=start,
                        finish=finish,
                        tail=tail,
                    ),
                )

            statements.append(loop(segment.count, one, name="ip"))
            done += segment.count
        return seq(statements)

    statements = []
    if panels:
        statements.append(loop(panels, lambda jp: rows(jp * nv, nv, None, jp), name="jp"))
    if rest:
        width = ceil_div(rest, kernel.lanes)
        tail = rest - (width - 1) * kernel.lanes
        whole = None if tail == kernel.lanes else tail
        statements.append(rows(i32(panels * nv), width, whole, i32(panels)))
    return seq(statements)


def _ragged(
    spec: GemmSpec,
    a: OperandA,
    b: OperandB,
    extent: Extent,
    groups: Any,
    start: Start,
    finish: Finish,
    prefetch: tuple[Region, ...],
) -> Stmt:
    kernel, (mr, nv) = spec.kernel, (spec.tile.mr, spec.tile.nv)
    rows = extent.m if extent.m_valid is None else extent.m_valid
    columns = extent.n if extent.n_valid is None else extent.n_valid
    whole_rows, bind_rows = _named("whole_rows", floor_div(rows, mr))
    whole_panels, bind_panels = _named("whole_panels", floor_div(columns, spec.panel_width))
    per_panel = extent.m // mr
    tiles = max(1, per_panel * (extent.n // spec.panel_width))

    def inside(jp: Any, ip: Any) -> Stmt:
        return seq(
            emit_prefetch(prefetch, jp * per_panel + ip, tiles),
            emit_tile(
                kernel,
                a,
                b,
                rows=(ip * mr, mr),
                vectors=(jp * nv, nv),
                groups=groups,
                start=start,
                finish=finish,
            ),
        )

    def rim(ip: Any) -> Stmt:
        skipped = Select(as_expr(ip) < whole_rows, whole_panels * nv, i32(0))
        first, bind_first = bind("first", skipped)

        def tile(j: Any) -> Stmt:
            return emit_edge_tile(
                kernel,
                a,
                b,
                row=ip * mr,
                mr=mr,
                row_limit=rows,
                vector=first + j,
                column_limit=columns,
                groups=groups,
                start=start,
                finish=finish,
            )

        return seq(bind_first, loop(ceil_div(columns, kernel.lanes) - first, tile, name="j"))

    return seq(
        bind_rows,
        bind_panels,
        loop(
            whole_panels,
            lambda jp: loop(whole_rows, lambda ip: inside(jp, ip), name="ip"),
            name="jp",
        ),
        loop(ceil_div(rows, mr), rim, name="ip"),
    )


def _named(name: str, value: Any) -> tuple[PrimExpr, Stmt]:
    return bind(name, as_expr(value))
