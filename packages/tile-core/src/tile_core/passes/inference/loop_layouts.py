"""What parallel loops contribute to inference, and how their iterations are run in the end."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.errors import InternalError, TileError
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.expr import Expr
from tile_core.layout import Fragment
from tile_core.layout.formulas import as_index, coordinate
from tile_core.layout.loop_layout import LoopLayout, planned
from tile_core.ops.copy import Copy
from tile_core.ops.rule import InferLevel
from tile_core.passes.inference.choose_loop_layout import Candidate, Chooser, covers_tile
from tile_core.passes.inference.conflicts import unsuited
from tile_core.passes.inference.inferred_layouts import SettledLayouts
from tile_core.passes.inference.parallel_nests import Nest
from tile_core.passes.inference.vector_widths import widest
from tile_core.passes.layout_report import Reason


def is_exchange(nest: Nest) -> bool:
    """Whether a loop copies one register tile to another, which memory can help with."""
    op = nest.node
    return (
        isinstance(op, Copy)
        and op.src.buffer.scope is Scope.FRAGMENT
        and op.dst.buffer.scope is Scope.FRAGMENT
    )


def chooser_of(layouts: SettledLayouts) -> Chooser:
    """Return what chooses among ways to run a loop, given the layouts known now."""
    bits = 8 * (16 if layouts.machine is None else layouts.machine.vector_bytes)

    def held_as(buffer: Buffer) -> Fragment | None:
        place = layouts.layout_of(buffer)
        return place if isinstance(place, Fragment) else None

    def width(nest: Nest) -> int:
        tiles = tuple(layouts.layout_of(b) for b, _ in nest.memory if not b.scope.is_global)
        key = ("width", nest, tiles)
        return layouts.algebra.once(key, lambda: widest(nest, layouts.layout_of, bits))

    return Chooser(layouts.algebra, held_as, width)


def learn_loop(layouts: SettledLayouts, nest: Nest, level: InferLevel) -> list[Buffer]:
    """Ask a loop what it says about its tiles; return the storages that it settled.

    A loop says nothing of its own before everybody with stricter demands was heard, unless
    the user fixed its iterations; below that, one tile that is known tells about the others.
    """
    waits = level is InferLevel.STRICT or (layouts.patient and is_exchange(nest))
    if waits and nest.loop.loop_layout is None:
        return []
    chooser = chooser_of(layouts)
    free = level is InferLevel.FREE or not layouts.is_open(nest.node)
    choice = chooser.choose(nest, free=free)
    if choice is None:
        source = next(chooser.candidates(nest, free=False), None)
        return [] if source is None else _widen(layouts, nest, chooser, source)
    reason = Reason(nest.who, nest.node.span)
    partial = {
        t.buffer for t in nest.touches if level is not InferLevel.FREE and not covers_tile(t, nest)
    }
    return [
        buffer.storage
        for buffer, held in choice.implied.items()
        if buffer not in partial and layouts.settle(buffer, held, reason)
    ]


def _widen(layouts: SettledLayouts, nest: Nest, chooser: Chooser, base: Candidate) -> list[Buffer]:
    """Give tiles that do not suit the loop to more threads, where that is allowed."""
    if layouts.exchanges and is_exchange(nest):
        return []
    wider: dict[Buffer, Fragment] = {}
    for touch in nest.touches:
        held = chooser.held_as(touch.buffer)
        if held is None or chooser.misfit(base.run, held, touch) is None:
            continue
        more = chooser.needed(nest, base.run, touch)
        if not more.covers(held):
            more = layouts.algebra.everyone(held.shape, nest.threads)
        stuck = touch.buffer.storage in layouts.firm or more == held
        if stuck or chooser.misfit(base.run, more, touch) is not None:
            if is_exchange(nest):
                return []
            raise _unsuited(layouts, nest, chooser, base)
        wider[touch.buffer] = more
    reason = Reason(nest.who, nest.node.span)
    return [b.storage for b, more in wider.items() if layouts.settle(b, more, reason)]


def bound(layouts: SettledLayouts, nest: Nest) -> LoopLayout | None:
    """Return how the threads run a loop whose tiles all have a layout.

    None for a copy between register tiles that no thread can do alone. It is a `LayoutConflict` if
    no way to run the loop suits all of its tiles.
    """
    chooser = chooser_of(layouts)
    width = chooser.width(nest)
    if not nest.touches and nest.loop.loop_layout is None:
        return planned(nest.extents, nest.threads, width)
    choice = chooser.choose(nest, free=True)
    if choice is None:
        if is_exchange(nest):
            return None
        raise _unsuited(layouts, nest, chooser, next(chooser.candidates(nest, free=True)))
    run, source = choice.candidate.run, choice.candidate.source
    loop = layouts.algebra.inverse(run, width)
    if loop.searched and source is not None and not source.serial:
        held = chooser.held_as(source.buffer)
        through = (
            None if held is None else layouts.algebra.through(held, run, source.indices, width)
        )
        return through or loop
    return loop


def loop_of_region(
    layouts: SettledLayouts, region: Region, extents: tuple[int, ...], threads: int, vector: int = 1
) -> LoopLayout:
    """Return the loop over `extents` in which the holders of a region run its elements.

    The place of the `region`, a part of a register tile, is known; extents of 1 may lack in
    `extents`. A thread runs at most `vector` neighbours along the innermost extent at once.
    """
    held = chooser_of(layouts).held_as(region.buffer)
    indices = _offsets(region, extents)
    if held is None or indices is None:
        raise InternalError(f"no layout of a part of {region.buffer.name!r}", span=region.span)
    run = layouts.algebra.pull(held, indices, extents)
    if run is None:
        return planned(extents, threads)
    loop = layouts.algebra.inverse(run, vector)
    through = layouts.algebra.through(held, run, indices, vector) if loop.searched else None
    return through or loop


def _offsets(region: Region, extents: Sequence[int]) -> list[Expr] | None:
    """Return the index map from a box of `extents` into the tile."""
    axis = 0
    found: list[Expr] = []
    for start, extent in zip(region.starts, region.extents, strict=True):
        first, room = static_value(start), static_value(extent)
        if first is None:
            return None
        if room == 1 and (axis >= len(extents) or extents[axis] != 1):
            found.append(as_index(first))
            continue
        found.append(coordinate(axis) + first)
        axis += 1
    return found if axis == len(extents) else None


def _unsuited(layouts: SettledLayouts, nest: Nest, chooser: Chooser, base: Candidate) -> TileError:
    for touch in nest.touches:
        held = chooser.held_as(touch.buffer)
        misfit = None if held is None else chooser.misfit(base.run, held, touch)
        if held is None or misfit is None:
            continue
        other = None if base.source is None else base.source.buffer
        source = None
        if other is not None and other.storage is not touch.buffer.storage:
            source = (other, layouts.reasons[other.storage])
        return unsuited(nest, touch, held, misfit, layouts.reasons[touch.buffer.storage], source)
    return InternalError("a loop that suits its tiles was refused", span=nest.node.span)
