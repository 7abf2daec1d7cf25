"""Accumulators of loops: which threads keep a part of which of their elements."""

from __future__ import annotations

import numpy as np

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Kernel, Parallel
from tile_core.layout import Fragment
from tile_core.layout.formulas import as_index, axis_of, coordinate
from tile_core.layout.loop_layout import LoopLayout
from tile_core.layout.loop_layout_inverse import loop_over
from tile_core.layout.preimages import pushed_forward
from tile_core.ops.reducer import ReducerUpdate
from tile_core.passes.inference.inference_state import Layouts


def narrow_reducers(kernel: Kernel, state: Layouts) -> None:
    """Let each thread keep what its own iterations add to, once all loops have a layout.

    Before   acc[j], 32 registers in each of 128 threads;  parallel i, j: acc[j] += x[i, j]
    After    acc[j], one register in the 4 threads whose iterations have that j

    All updates of a reducer must be in parallel loops that share it out alike, at indices
    that are the loops' variables or constants. Every thread has a copy of all other reducers.
    """
    spread: dict[Buffer, list[Fragment | None]] = {}
    inside: set[ReducerUpdate] = set()
    for node in state.found.nests:
        if isinstance(node, Parallel):
            loop = state.loop_of(node)
            for update in nodes_of(node.body, ReducerUpdate):
                spread.setdefault(update.reducer, []).append(_holders(update, node, loop))
                inside.add(update)
    other = {n.reducer for n in nodes_of(kernel, ReducerUpdate) if n not in inside}
    for reducer, found in spread.items():
        first = found[0]
        if first is None or reducer in other or reducer.storage is not reducer:
            continue
        old = state.known.get(reducer)
        if not isinstance(old, Fragment) or first.slots >= old.slots:
            continue
        if all(f is not None and f.same_function(first) for f in found):
            state.known[reducer] = first


def _holders(update: ReducerUpdate, node: Parallel, loop: LoopLayout | None) -> Fragment | None:
    """Return who updates each element, one replica for each thread that does; None if unknown."""
    shape = update.reducer.static_shape
    if loop is None or loop.searched or shape is None or len(shape) != len(update.indices):
        return None
    kept = [_index(index, node) for index in update.indices]
    axes = [axis_of(k) for k in kept if isinstance(k, Var)]
    if len(set(axes)) < len(axes):
        return None
    for index, extent in zip(kept, shape, strict=True):
        if (
            index is None
            or (loop.extents[axis_of(index)] if isinstance(index, Var) else 1) != extent
        ):
            return None
    try:
        found = pushed_forward(loop.fragment, [k for k in kept if k is not None], shape)
    except LayoutError:
        return None
    return found if _is_sound(found) else None


def _index(index: Expr, loop: Parallel) -> Expr | None:
    if any(index is var for var in loop.vars):
        return coordinate(next(k for k, var in enumerate(loop.vars) if var is index))
    return as_index(0) if static_value(index) == 0 else None


def _is_sound(fragment: Fragment) -> bool:
    """Whether each part counts once, and the first replica, which takes the start, is found.

    The replicas of an element must be in different threads, and a formula must tell which one a
    thread has.
    """
    if loop_over(fragment).searched:
        return False
    owners = np.sort(fragment.thread_table(), axis=-1)
    return not (np.diff(owners, axis=-1) == 0).any()
