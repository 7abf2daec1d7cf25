"""Loops of register tiles over one block: the whole of a tile-level matrix product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tile_core.tir.build import i32, loop, seq
from tile_core.tir.nodes import Select, Stmt
from tile_cpu.gemm.microkernel import emit_edge_tile, emit_tile, group_count
from tile_cpu.gemm.operands import Extent, Finish, GemmSpec, OperandA, OperandB, Start
from tile_cpu.gemm.prefetch import Prefetch
from tile_cpu.gemm.shape import row_segments
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
        What to fetch meanwhile: `spread` over the whole register tiles.
    before_panel
        Called with the index of a panel of B; returns what makes it ready.

    Notes
    -----
    Panels of B outside, rows of A inside: one panel stays in the first-level cache while A
    streams past it. Register tiles that exist entirely run unguarded; the ragged rim runs
    one vector wide with masked stores, and reads nothing outside the operands.
    """
    groups = group_count(spec.kernel, extent.depth)
    if extent.m_valid is None and extent.n_valid is None:
        return _whole(spec, a, b, extent, groups, start, finish, prefetch, before_panel)
    return _ragged(spec, a, b, extent, groups, start, finish, prefetch, before_panel)


def _whole(
    spec: GemmSpec,
    a: OperandA,
    b: OperandB,
    extent: Extent,
    groups: Any,
    start: Start,
    finish: Finish,
    prefetch: Prefetch | None,
    before_panel: BeforePanel | None,
) -> Stmt:
    kernel, nv = spec.kernel, spec.tile.nv
    segments = row_segments(extent.m, spec.tile.mr)
    per_panel = sum(segment.count for segment in segments)
    panels, rest = divmod(extent.n, spec.panel_width)

    def rows(vector: Any, width: int, tail: int | None, panel: Any) -> Stmt:
        done, statements = 0, [before_panel(panel) if before_panel else None]
        for segment in segments:

            def one(
                ip: Any, size: int = segment.size, first: int = segment.start, before: int = done
            ) -> Stmt:
                return seq(
                    prefetch(panel, before + ip, per_panel, max(1, panels)) if prefetch else None,
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
    prefetch: Prefetch | None,
    before_panel: BeforePanel | None,
) -> Stmt:
    kernel, (mr, nv) = spec.kernel, (spec.tile.mr, spec.tile.nv)
    rows = extent.m if extent.m_valid is None else extent.m_valid
    columns = extent.n if extent.n_valid is None else extent.n_valid
    whole_rows, bind_rows = opaque("whole_rows", floor_div(rows, mr))
    whole_panels, bind_panels = opaque("whole_panels", floor_div(columns, spec.panel_width))
    per_panel = max(1, extent.m // mr)
    all_panels = max(1, extent.n // spec.panel_width)

    def inside(jp: Any, ip: Any) -> Stmt:
        return seq(
            prefetch(jp, ip, per_panel, all_panels) if prefetch else None,
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

    def rim(jp: Any, ip: Any) -> Stmt:
        def tile(v: Any) -> Stmt:
            return emit_edge_tile(
                kernel,
                a,
                b,
                row=ip * mr,
                mr=mr,
                row_limit=rows,
                vector=jp * nv + v,
                column_limit=columns,
                groups=groups,
                start=start,
                finish=finish,
            )

        return loop(minimum(ceil_div(columns, kernel.lanes) - jp * nv, nv), tile, name="v")

    def panel(jp: Any) -> Stmt:
        inner, bind_inner = opaque("inner", Select(as_expr(jp) < whole_panels, whole_rows, i32(0)))
        return seq(
            before_panel(jp) if before_panel else None,
            bind_inner,
            loop(inner, lambda ip: inside(jp, ip), name="ip"),
            loop(ceil_div(rows, mr) - inner, lambda ip: rim(jp, inner + ip), name="ip"),
        )

    panels = ceil_div(columns, spec.panel_width)
    return seq(bind_rows, bind_panels, loop(panels, panel, name="jp"))
