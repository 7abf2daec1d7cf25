"""Means that move from block to block, while others are computed with them."""

from __future__ import annotations

from dataclasses import replace

from tile_api.arrays.equations.expressions import Expr, make, walk
from tile_api.arrays.planning.plan import Plan
from tile_api.arrays.planning.storage import tile_dtype
from tile_api.arrays.printing.text import ExpressionText
from tile_api.arrays.printing.tiles import Tiles
from tile_api.arrays.reductions.state import State


def begin(plan: Plan, tiles: Tiles, s: State) -> None:
    """Let a mean start from the first element: what differs from there is a small number."""
    if plan.stream is None or any(x.op in ("state", "reduce") for x in walk(s.body)):
        return
    axis = replace(plan.axes[plan.stream], start="0", loop="")
    first = replace(plan, axes={**plan.axes, plan.stream: axis})
    parts, text = ExpressionText(first, tiles.dtypes, {}).in_parts(s.body, tiles.fresh)
    tiles.parallel(tiles.held[s.mine][1], *parts, f"{tiles.text(s.mine)} = {text}")


def base(tiles: Tiles, s: State) -> Expr:
    """Return what is taken from elements before they move a mean: itself, if it is finite."""
    _, dims = tiles.held[s.mine]
    name = tiles.allocate(f"{s.name}_base", dims, dtype=tile_dtype(s.body))
    me = tiles.text(s.mine)
    text = f"T.if_then_else(T.isfinite({me}), {me}, {tiles.text.number(0.0, s.body.dtype)})"
    tiles.parallel(dims, f"{name}[{tiles.text.loops(dims)}] = {text}")
    made = make("state", value=(name, tuple(sorted(s.mine.free))), dtype=s.mine.dtype)
    tiles.held[made] = (name, dims)
    return made


def move(tiles: Tiles, s: State, part: str, met: str) -> None:
    """Move a mean by what is left of it, and by what a block adds to that.

    What is left is what its rounding leaves: it does not add up from block to block.

    Parameters
    ----------
    part
        The sum of what the block's elements differ from the mean.
    met
        How many elements there are with those of the block.
    """
    assert s.left is not None
    me, left = tiles.text(s.mine), tiles.text(s.left)
    none = tiles.text.number(0.0, s.body.dtype)
    tiles.parallel(
        tiles.held[s.mine][1],
        f"{left} += {part}",
        f"moved = {me} + {left} / {met}",
        f"{left} -= (moved - {me}) * {met}",
        f"{left} = T.if_then_else(T.isfinite({left}), {left}, {none})",
        f"{me} = moved",
    )
