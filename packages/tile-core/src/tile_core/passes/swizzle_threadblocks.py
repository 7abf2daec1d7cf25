"""Another order of the blocks of a grid, so that blocks that run together share what they read."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.errors import InternalError
from tile_core.ir.build_expr import as_expr, binary, minimum, select
from tile_core.ir.expr import BinaryOp, Expr, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Check, CheckKind, Hint, Kernel, Launch, Let, Seq, Stmt
from tile_core.ir.visitor import map_launches
from tile_core.records import replace

HINT = "swizzle"
"""The name of the hint that `T.use_swizzle` leaves in a launch."""


def swizzle_threadblocks(kernel: Kernel) -> Kernel:
    """Return `kernel` with the blocks of hinted launches in panels.

    Before   launch bx, by in (8, 6): hint swizzle 2, row;  …
    After    launch px, py in (8, 6): number = py * 8 + px;  bx, by = its place in panels;  …

    Machines start blocks in the order of their numbers. Numbered row by row, those that run
    together share rows of one operand only; in panels of a few rows, gone through column by
    column and back and forth, they share rows and columns. Every block is still run once:
    results do not change. Launches of one dimension, or in clusters, stay as they are.
    """
    return map_launches(kernel, _swizzled)


def _swizzled(launch: Launch) -> Launch:
    hint = next((n for n in nodes_of(launch.body, Hint) if n.name == HINT), None)
    if hint is None or len(launch.grid) < 2 or any(n > 1 for n in launch.cluster):
        return launch
    size, order = hint.values[0], hint.values[1]
    if not isinstance(size, int):  # T.use_swizzle takes a number
        raise InternalError(f"panels of {size!r} blocks", span=hint.span)
    x, y = launch.block_vars[:2]
    started = tuple(Var(f"start_{v.name}", v.dtype) for v in (x, y))
    width, height = launch.grid[:2]
    number = Var("number", x.dtype)
    if order == "column":
        row, column, extra = place_in_panels(number, height, width, size, turns=True)
    else:
        column, row, extra = place_in_panels(number, width, height, size, turns=order == "row")
    made: list[Stmt] = [
        Let(number, binary(BinaryOp.ADD, started[1] * width, started[0])),
        *extra,
        Let(x, column),
        Let(y, row),
        *(_assume(v, n) for v, n in ((x, width), (y, height))),
    ]
    body = Seq((*(replace(stmt, span=hint.span) for stmt in made), launch.body))
    return replace(launch, block_vars=(*started, *launch.block_vars[2:]), body=body)


def place_in_panels(
    number: Expr, along: Expr, across: Expr, size: int, *, turns: bool
) -> tuple[Expr, Expr, Sequence[Let]]:
    """Return where block `number` lies: its place along the panels, and across them.

    Panels are `size` wide (the last one narrower where `across` is not a multiple) and
    `along` long; blocks in one are numbered across it first. Every other panel is gone
    through backwards if `turns`. The third value are names that both places are given in terms of.
    """
    panel = Var("panel", number.dtype)
    width = Var("panel_width", number.dtype)
    inside = Var("in_panel", number.dtype)
    names = (
        Let(panel, number // (along * size)),
        Let(width, minimum(as_expr(size, number.dtype), across - panel * size)),
        Let(inside, number % (along * size)),
    )
    forth: Expr = inside // width
    place = select(binary(BinaryOp.EQ, panel % 2, 0), forth, along - 1 - forth) if turns else forth
    return place, panel * size + inside % width, names


def _assume(var: Var, extent: Expr) -> Check:
    """State that a block lies in the grid, which the arithmetic does not show."""
    inside = binary(BinaryOp.AND, var >= 0, var < extent)
    return Check(inside, "a block lies in the grid", CheckKind.ASSUME)
