"""Positions of a row's elements in ascending order: a recurrence whose steps sort them.

Elements are integers there. Those of up to 32 bits stand with their positions in one, so that equal
ones keep their order, and a step is a minimum and a maximum. That the steps sort is told with them:
a kernel may come to the same by other ways, as `tile_api.arrays.planning.sorts` chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import INDEX, Expr, const, make
from tile_api.arrays.equations.recurrence import Steps, recurrence
from tile_api.arrays.equations.sorting_network import sorting_steps, steps_of_network
from tile_core.dtypes import dtype_of

POSITION_BITS = 32
"""Of an element with its position in one integer."""


def positions(x: Array) -> Callable[[Sequence[Expr], Expr], Expr]:
    """Return where the element of a row is that comes at a place; rows are the last dimension.

    Equal elements keep their order, and what is no number is last.
    """
    size = int(x.shape[-1])
    is_apart = x.dtype.bits > POSITION_BITS
    # Steps go through many short rows side by side.
    of = recurrence(steps_of_network(size), [[size, *x.shape[:-1]]] * (1 + is_apart))
    place, *row = of.indices(0)
    element = x.at((*row, place))
    key, bits = _key(element), max(8, element.dtype.bits)
    if is_apart:
        starts: tuple[Expr, ...] = key, place
        of = replace(of, sorted_by=(0, bits))
    else:
        starts = (make("bitor", make("shl", key, const(POSITION_BITS)), place),)
        of = replace(of, sorted_by=(POSITION_BITS, bits))
    made = Steps(of, starts, sorting_steps(of))

    def read(row: Sequence[Expr], at: Expr) -> Expr:
        last = made.value(int(is_apart), const(of.last), (at, *row))
        position = make("bitand", last, const((1 << POSITION_BITS) - 1))
        return make("minimum", position, const(size - 1))  # as it is, which is seen so

    return read


def _key(x: Expr) -> Expr:
    """Return an integer that is as much less than another one as `x` is less than it.

    It has as many bits as `x`, the last one its sign.
    """
    if not x.dtype.is_float:
        key = eq.cast(x, INDEX)
        if not x.dtype.startswith("uint"):
            return key
        half = 1 << x.dtype.bits - 1
        return make("bitxor" if x.dtype.bits == INDEX.bits else "add", key, const(-half))
    most = (1 << x.dtype.bits - 1) - 1
    kind = dtype_of(f"int{x.dtype.bits}")
    bits = make("bits", eq.where(make("eq", x, const(0.0, x.dtype)), const(0.0, x.dtype), x),
                dtype=kind)  # fmt: skip
    ordered = eq.where(make("lt", bits, const(0, kind)), make("bitxor", bits, const(most, kind)),
                       bits)  # fmt: skip
    return eq.cast(eq.where(make("eq", x, x), ordered, const(most, kind)), INDEX)
