"""`tile.scan`: values that are carried from step to step, captured as a recurrence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import NAMES, Array
from tile_api.arrays.capturing.elementwise import lift
from tile_api.arrays.equations.dims import joined
from tile_api.arrays.equations.expressions import (
    Expr,
    Indices,
    computed_in,
    const,
    make,
    walk,
)
from tile_api.arrays.equations.recurrence import (
    DEPTH,
    Recurrence,
    Steps,
    recurrence,
    replaced,
)
from tile_api.arrays.equations.sizes import whole
from tile_api.arrays.equations.substitution import substituted
from tile_api.frontend.source import calling_span
from tile_core.dtypes import DType
from tile_core.errors import ArrayShapeError, FrontendTypeError, UnknownArrayFunction


def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any) -> tuple[Any, Any]:
    """Carry values from step to step.

    Means ``for x in xs: carry, y = f(carry, x)``, from ``carry = init``; the arrays `y` are
    stacked. Within `tile.function` this is one kernel; elsewhere NumPy runs that loop. A step may
    write into what it takes: nothing outside of it changes.

    Parameters
    ----------
    f
        Takes what is carried and an element of `xs`; returns what is carried on, with the same
        shapes and types, and what the step gives: an array, a tuple of arrays, or None.
    init
        An array, a number, or a tuple of these. A number becomes what `f` makes of it.
    xs
        An array, or a tuple of arrays: steps go along their first dimension.

    Returns
    -------
    carry, ys
        What is carried after the last step, and what all steps gave, along a first dimension.

    Raises
    ------
    ArrayShapeError
        If there are no steps to go through, or what is carried changes its shape.
    FrontendTypeError
        If `f` returns no pair, or what is carried changes its type.

    Examples
    --------
    >>> import numpy as np
    >>> scan(lambda h, x: (h / 2 + x, h), 0.0, np.array([4.0, 2.0, 1.0]))
    (np.float64(3.0), array([0., 4., 4.]))
    """
    all_shapes = [tuple(map(whole, getattr(x, "shape", ()))) for x in _parts(xs)]
    if () in all_shapes or len({shape[0] for shape in all_shapes}) != 1:
        shapes = " and ".join(map(str, all_shapes)) or "no arrays"
        raise ArrayShapeError(
            f"tile.scan goes along the first dimension of {shapes}", span=calling_span(),
            hint="give arrays whose first dimension is the steps; np.moveaxis brings it there",
        )  # fmt: skip
    return (_captured if NAMES.get(None) is not None else _run)(f, init, xs)


def _parts(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _like(x: Any, parts: Sequence[Any]) -> Any:
    return tuple(parts) if isinstance(x, tuple) else parts[0]


def _copied(x: Any) -> Any:
    return _like(x, [part.copy() if isinstance(part, np.ndarray) else part for part in _parts(x)])


def _stepped(f: Callable[[Any, Any], Any], carry: Any, x: Any) -> tuple[Any, Any]:
    """Return what a step gives: a pair of what is carried on and of what is stacked."""
    found = f(carry, x)
    if not isinstance(found, tuple) or len(found) != 2:
        raise FrontendTypeError(
            "the function of tile.scan returns no pair", span=calling_span(),
            hint="return what is carried on, and what the step gives: `return h, h`",
        )  # fmt: skip
    carried, y = found
    if len(_parts(carried)) != len(_parts(carry)):
        raise FrontendTypeError(
            f"a step of tile.scan takes {len(_parts(carry))} carried values and returns "
            f"{len(_parts(carried))}",
            span=calling_span(),
            hint="return as many as `init` has",
        )
    return carried, y


def _run(f: Callable[[Any, Any], Any], init: Any, xs: Any) -> tuple[Any, Any]:
    """Go through the steps with NumPy."""
    arrays = _parts(xs)
    steps = arrays[0].shape[0]
    carry, given = init, []
    for t in range(steps):  # what a step writes into is its own
        carry, y = _stepped(f, _copied(carry), _copied(_like(xs, [x[t] for x in arrays])))
        given.append(y)
    if steps:
        made = [
            np.stack(np.broadcast_arrays(*parts))
            for parts in zip(*map(_parts, given), strict=True)
            if y is not None
        ]
    else:  # a step tells shapes and types
        nothing = [np.zeros(x.shape[1:], x.dtype) for x in arrays]
        with np.errstate(all="ignore"):
            after, y = _stepped(f, _copied(init), _like(xs, nothing))
        made = [np.zeros((0, *np.shape(part)), np.asarray(part).dtype) for part in _parts(y)]
        carry = _like(
            init,
            [
                np.broadcast_to(np.asarray(x, np.asarray(like).dtype), np.shape(like))
                for x, like in zip(_parts(init), _parts(after), strict=True)
            ],
        )
    return carry, None if y is None else _like(y, made)


def _captured(f: Callable[[Any, Any], Any], init: Any, xs: Any) -> tuple[Any, Any]:
    """Return arrays without elements."""
    arrays = [lift(x) for x in _parts(xs)]
    size = arrays[0].shape[0]
    for x in arrays[1:]:
        size = joined(size, x.shape[0])
    starts, carried, y, of, steps = _traced(f, init, xs, arrays, whole(size))
    last = const(whole(size) - 1)
    made = Steps(of, starts, steps)

    def final(k: int) -> Callable[[Indices], Expr]:
        return lambda indices: made.value(k, last, indices)

    ends = [
        Array(x.shape, x.dtype, final(k)) if size else _first(lift(start), x)
        for k, (x, start) in enumerate(zip(carried, _parts(init), strict=True))
    ]
    given = [_stacked(lift(part), size, made) for part in _parts(y)] if y is not None else []
    return _like(init, ends), None if y is None else _like(y, given)


def _first(start: Array, like: Array) -> Array:
    """Return where a value starts, as an array of the shape and type that it is carried in."""
    return Array(like.shape, like.dtype, lambda indices: _start(start, like, indices))


def _start(start: Array, like: Array, indices: Indices) -> Expr:
    return start.read_as(like.dtype, indices if start.ndim else ())


def _traced(
    f: Callable[[Any, Any], Any], init: Any, xs: Any, arrays: Sequence[Array], size: int
) -> tuple[tuple[Expr, ...], list[Array], Any, Recurrence, tuple[Expr, ...]]:
    """Return where values start, what they become, and what a step gives.

    Numbers stand for themselves at first, so that they take the types and the shapes of what is
    beside them: of x, and then of one another. At last each value has a type and a shape.
    """
    step = recurrence(size, ()).step
    parts = _parts(init)
    numbers = [isinstance(x, (int, float)) and not isinstance(x, np.generic) for x in parts]
    known: list[Any] = [x if n else lift(x) for x, n in zip(parts, numbers, strict=True)]
    given = _like(xs, [_slice(x, step) for x in arrays])
    token = DEPTH.set(DEPTH.get() + 1)
    depth = DEPTH.get()
    try:
        for _ in range(1 + sum(numbers) if any(numbers) else 0):
            tried, _ = _stepped(f, _like(init, known), given)
            known = [
                after if n else before
                for before, after, n in zip(known, _parts(tried), numbers, strict=True)
            ]
        known = [lift(x) for x in known]
        DEPTH.set(depth - 1)
        of = recurrence(size, [x.shape for x in known])
        DEPTH.set(depth)
        carried = [_carry(of, k, x.shape, x.dtype) for k, x in enumerate(known)]
        serial = Array((), known[0].dtype, lambda _: const(0)).serial
        found, y = _stepped(f, _like(init, carried), given)
    finally:
        DEPTH.reset(token)
    after = [lift(x) for x in _parts(found)]
    for k, (x, mine) in enumerate(zip(after, carried, strict=True)):
        _same(k, mine, x)
    steps = tuple(
        x.read_as(mine.dtype, of.indices(k))
        for k, (x, mine) in enumerate(zip(after, carried, strict=True))
    )
    if any(x.op == "scan" and of.token in x.free for x in walk(*steps)):
        raise nested()
    starts = tuple(
        _start(lift(x), mine, of.indices(k))
        for k, (x, mine) in enumerate(zip(parts, carried, strict=True))
    )
    made = Steps(of, starts, steps)
    for k, x in enumerate(after):
        if x.serial > serial:  # made in this step: what the step gives reads it as it is carried on
            x.stand_for(_carried_on(made, k))
    return starts, carried, y, of, steps


def nested() -> UnknownArrayFunction:
    """Return the error of a recurrence whose steps go through another, over carried values."""
    return UnknownArrayFunction(
        "a running sum or a tile.scan of carried values stands in a step of tile.scan",
        span=calling_span(),
        hint="carry its values along as further values of the outer recurrence",
    )


def _carried_on(made: Steps, k: int) -> Callable[[Indices], Expr]:
    return lambda indices: made.value(k, made.of.step, indices)


def _slice(x: Array, step: Expr) -> Array:
    return Array(x.shape[1:], x.dtype, lambda indices: x.at((step, *indices)))


def _carry(of: Recurrence, k: int, shape: Sequence[int], dtype: DType) -> Array:
    def at(indices: Indices) -> Expr:
        return make("carry", *indices, value=(of.token, k), dtype=computed_in(dtype))

    return Array(shape, dtype, at)


def _same(k: int, before: Array, after: Array) -> None:
    """Refuse a value that changes its shape or its type."""
    one, other = (tuple(map(whole, x.shape)) for x in (before, after))
    if one != other:
        raise ArrayShapeError(
            f"value {k} of tile.scan goes into a step as {one}, and comes out as {other}",
            span=calling_span(),
            hint="start from an array of the shape that the step returns",
        )
    if before.dtype != after.dtype:
        raise FrontendTypeError(
            f"value {k} of tile.scan goes into a step as {before.dtype}, and comes out as "
            f"{after.dtype}",
            span=calling_span(),
            hint=f'start from {after.dtype}, or return it with .astype("{before.dtype}")',
        )
    for size, mine in zip(after.shape, before.shape, strict=True):
        joined(size, mine)


def _stacked(y: Array, size: int, made: Steps) -> Array:
    """Return what all steps give."""
    of = made.of

    def before(x: Expr) -> Expr | None:
        if x.op != "carry" or x.value[0] != of.token:
            return None
        at = tuple(replaced(arg, frozenset({of.token}), before) for arg in x.args)
        return made.value(x.value[1], of.step, at, is_before=True)

    def at(indices: Indices) -> Expr:
        element = replaced(y.at(indices[1:]), frozenset({of.token}), before)
        return substituted(element, {of.variable: indices[0]})

    return Array((size, *y.shape), y.dtype, at)
