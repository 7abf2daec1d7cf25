"""Which fills of tiles threads can issue asynchronously, and how many bytes at a time."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.arith.affine import linear_in
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.expr import Const, Expr, Extent, Load, Select, Var
from tile_core.ir.gpu_intrinsics import PREFER_ASYNC_COPY
from tile_core.ir.node import walk
from tile_core.ir.stmt import Parallel, Seq, Stmt, Store
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import pair
from tile_core.passes.pipelines.asynchronous_copies import divides, may_be_asynchronous, strides_of

PIECES = (16, 8, 4)
"""Bytes that one asynchronous copy of a thread moves."""


def piece_of(
    fill: Copy | Parallel, env: ConstraintSet, safe_values: Mapping[Buffer, Expr]
) -> int | None:
    """Return the bytes of the pieces in which threads can issue `fill`, None if they cannot.

    Then no register holds an element on its way. Layouts are not chosen yet: this looks at the
    tensor and the shape of the tile. Whoever begins what turns out to need registers all the
    same must have nothing to fear from it. `env` is what is known of numbers within the loops
    around it; the `safe_values` are what loads outside of tensors give, where the program says so:
    pieces give zero.
    """
    found = _of_copy(fill, env) if isinstance(fill, Copy) else _of_loop(fill, env)
    if found is None:
        return None
    tensor, nbytes = found
    outside = safe_values.get(tensor)
    return nbytes if outside is None or static_value(outside) == 0 else None


def _of_copy(copy: Copy, env: ConstraintSet) -> tuple[Buffer, int] | None:
    source, target = copy.src.buffer, copy.dst.buffer
    if source.dtype != target.dtype or copy.loop_layout is not None:
        return None
    if copy.prefer_instruction not in (None, PREFER_ASYNC_COPY):
        return None
    pairing = pair(copy.src, copy.dst)
    moving = [axis for axis in pairing.src_axes if axis is not None]
    if not moving:
        return None
    is_row = bool(pairing.dst_axes) and pairing.dst_axes[-1] == moving[-1]
    for nbytes in _sizes(source):
        width = nbytes * 8 // source.dtype.bits
        fits = width == 1 or (is_row and divides(width, (pairing.extents[moving[-1]],), env))
        if fits and may_be_asynchronous(copy, env, nbytes * 8):
            return source, nbytes
    return None


def _of_loop(loop: Parallel, env: ConstraintSet) -> tuple[Buffer, int] | None:
    """Return the same for a loop that gathers: it only moves elements of one tensor.

    Such as   parallel i, j: K_s[i, j] = K[table[i // 16], i % 16, j]
    """
    store, last = _only_store(loop.body), loop.vars[-1] if loop.vars else None
    load = None if store is None else _moved(store)
    if store is None or load is None or last is None or loop.loop_layout is not None:
        return None
    *before, index = load.indices
    parts = linear_in(index, last)
    is_row = (
        store.indices[-1] is last
        and parts is not None
        and parts[0] == 1
        and not _depends((*before, *store.indices[:-1], *_conditions(store)), last)
    )
    for nbytes in _sizes(load.buffer):
        width = nbytes * 8 // load.buffer.dtype.bits
        fits = is_row and parts is not None and _aligned(load, parts[1], width, env)
        if width == 1 or (fits and divides(width, (loop.extents[-1],), env)):
            return load.buffer, nbytes
    return None


def _sizes(tensor: Buffer) -> list[int]:
    """Return the sizes of pieces that hold whole elements, the largest first."""
    bits = tensor.dtype.bits
    return [nbytes for nbytes in PIECES if bits >= 8 and nbytes * 8 % bits == 0]


def _only_store(body: Stmt) -> Store | None:
    while isinstance(body, Seq) and len(body.body) == 1:
        (body,) = body.body
    return body if isinstance(body, Store) else None


def _moved(store: Store) -> Load | None:
    """Return the element of a tensor that a store moves as it is, or zero in its place."""
    value = store.value
    if isinstance(value, Select) and isinstance(value.otherwise, Const):
        if str(value.otherwise.value) not in ("0", "0.0", "False"):
            return None
        value = value.then
    if not isinstance(value, Load) or value.buffer.scope is not Scope.GLOBAL:
        return None
    return value if value.buffer.dtype == store.buffer.dtype else None


def _conditions(store: Store) -> tuple[Expr, ...]:
    return (store.value.cond,) if isinstance(store.value, Select) else ()


def _depends(values: tuple[Expr, ...], var: Var) -> bool:
    return any(node is var for value in values for node in walk(value))


def _aligned(load: Load, rest: Extent, width: int, env: ConstraintSet) -> bool:
    """Whether every `width` neighbours begin at a multiple of as many, all in or all out."""
    *steps, one = strides_of(load.buffer)
    if static_value(one) != 1 or not divides(width, (load.buffer.shape[-1],), env):
        return False
    return divides(width, (rest,), env) and all(divides(width, (step,), env) for step in steps)
