"""Parallel loops over register tiles that operators demand to be spread differently."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tile_core.ir.buffer import Buffer, Scope, static_value, whole
from tile_core.ir.node import Node, contains, nodes_of, rewrite, substitute
from tile_core.ir.stmt import Alloc, For, If, Kernel, Parallel, Seq, Stmt, Store, While
from tile_core.ops.copy import Copy
from tile_core.ops.reducer import ReducerUpdate
from tile_core.ops.rule import Rule, ThreadMachine
from tile_core.passes.infer_layouts import strict_layouts
from tile_core.passes.inference.choose_loop_layout import Chooser, LoopLayoutChoice, covers_tile
from tile_core.passes.inference.inference_state import Layouts
from tile_core.passes.inference.loop_layouts import chooser_of, is_exchange
from tile_core.passes.inference.parallel_nests import Nest
from tile_core.passes.layout_report import Reason
from tile_core.target import Target


def separate_loops(
    kernel: Kernel, target: Target, rules: Sequence[Rule[Any]], machine: ThreadMachine
) -> Kernel:
    """Return `kernel` with copies around loops that no thread can run on the tiles as they are.

    Before   gemm Q, K, scores;  parallel: weights = cast(scores);  gemm weights, V, acc
             (the accumulator of the first MMA, an operand of the second, held by others)
    After    gemm Q, K, scores;  parallel: weights_own = cast(scores)
             copy weights_own, weights;  gemm weights, V, acc

    Such a kernel has no layouts. The loop follows the tiles that it is cheapest to follow; it
    accesses copies of the others, which lie as it runs: the copies exchange elements among the
    threads. Tiles without demands follow the first loop, in program order, that covers them.
    Loops and tiles that the user spread stay as they are.

    Raises
    ------
    LayoutConflict
        If two operators demand one tile differently.
    """
    layouts = strict_layouts(kernel, target, rules, machine)
    apart: dict[Node, Node] = {}
    for node, nest in layouts.found.nests.items():
        if is_exchange(nest) or nest.loop.loop_layout is not None:
            continue
        chooser = chooser_of(layouts)
        choice = chooser.choose(nest, free=False)
        if choice is not None:
            _follow(layouts, nest, choice)
        elif chooser.choose(nest, free=True) is None:
            torn = _torn(layouts, nest, chooser)
            if torn:
                apart[node] = _with_copies(nest, torn)
    return rewrite(kernel, lambda node: apart.get(node, node)) if apart else kernel


def _follow(layouts: Layouts, nest: Nest, choice: LoopLayoutChoice) -> None:
    """Spread tiles that nobody demands as the loop that covers them first needs them."""
    whole_ones = {t.buffer for t in nest.touches if covers_tile(t, nest)}
    for buffer, held in choice.implied.items():
        if buffer in whole_ones:
            layouts.settle(buffer, held, Reason(nest.who, nest.node.span))


def _torn(layouts: Layouts, nest: Nest, chooser: Chooser) -> tuple[Buffer, ...]:
    """Return the tiles that the loop must have copies of: those with the fewest bits to move."""
    best: tuple[Buffer, ...] = ()
    fewest = math.inf
    for candidate in chooser.candidates(nest, free=False):
        torn: dict[Buffer, None] = {}
        for touch in nest.touches:
            held = chooser.held_as(touch.buffer)
            if held is not None and chooser.misfit(candidate.run, held, touch) is not None:
                torn[touch.buffer] = None
        bits = sum(_bits_moved(nest, buffer) for buffer in torn)
        if bits < fewest and all(_can_be_apart(layouts, nest, buffer) for buffer in torn):
            best, fewest = tuple(torn), bits
    return best


def _can_be_apart(layouts: Layouts, nest: Nest, buffer: Buffer) -> bool:
    """Whether the loop may access a copy of a tile: neither annotated nor its own reducer."""
    same = {t.buffer for t in nest.touches if t.buffer.storage is buffer.storage}
    reason = layouts.reasons.get(buffer.storage)
    is_annotated = reason is not None and reason.is_annotation
    is_summed = any(n.reducer is buffer for n in nodes_of(nest.loop, ReducerUpdate))
    return len(same) == 1 and not is_annotated and not is_summed


def _bits_moved(nest: Nest, buffer: Buffer) -> int:
    times = _is_changed(nest, buffer) + _has_old_contents(nest, buffer)
    return times * math.prod(buffer.static_shape or ()) * buffer.dtype.bits


def _is_changed(nest: Nest, buffer: Buffer) -> bool:
    return any(t.writes for t in nest.touches if t.buffer is buffer)


def _has_old_contents(nest: Nest, buffer: Buffer) -> bool:
    """Whether elements of a tile count that were there before the loop."""
    stores = [n for n in nodes_of(nest.loop, Store) if n.buffer is buffer]
    if len(stores) < sum(t.buffer is buffer for t in nest.touches):
        return True
    if contains(nest.loop.body, If, For, While, Parallel):
        return True
    extents = tuple(static_value(extent) for extent in nest.loop.extents)
    return buffer.static_shape != extents or not any(
        all(index is var for index, var in zip(s.indices, nest.loop.vars, strict=True))
        for s in stores
    )


def _with_copies(nest: Nest, torn: Sequence[Buffer]) -> Seq:
    """Return the loop on copies of `torn`, what fills them and what brings results back."""
    span = nest.node.span
    before: list[Stmt] = []
    after: list[Stmt] = []
    names: dict[Node, Node] = {}
    for buffer in torn:
        own = Buffer(f"{buffer.name}_own", buffer.shape, buffer.dtype, Scope.FRAGMENT, span=span)
        names[buffer] = own
        before.append(Alloc(own, span=span))
        if _has_old_contents(nest, buffer):
            before.append(Copy(whole(buffer), whole(own), span=span))
        if _is_changed(nest, buffer):
            after.append(Copy(whole(own), whole(buffer), span=span))
    return Seq((*before, substitute(nest.node, names), *after), span=span)
