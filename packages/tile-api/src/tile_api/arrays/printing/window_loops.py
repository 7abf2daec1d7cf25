"""Loops over tiles of windows that go along rows: no index in them is a quotient or remainder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    const,
    index,
    integer_part,
    multiply,
    rebuild,
    walk,
)
from tile_api.arrays.planning.plan import Axis
from tile_api.arrays.planning.window_runs import row_length


@contextmanager
def along_rows(
    x: Expr, dims: tuple[str, ...], axes: dict[str, Axis]
) -> Iterator[tuple[Expr, Mapping[str, tuple[str, ...]]]]:
    """Let `axes` have those of rows and their elements for dimensions of whole rows meanwhile.

    Yield `x` in their terms, and the axes that loops go along in place of a dimension.
    """
    kept, made = {**axes}, dict[str, tuple[str, ...]]()
    letters = iter(letter for letter in "defgh" if letter not in {a.loop for a in kept.values()})
    for v in dims:
        found = _in_rows(x, axes[v], letters)
        if found is not None:
            x, (whole, *parts) = found
            axes.update((a.name, a) for a in (whole, *parts))
            made[v] = tuple(a.name for a in parts if a.loop)
    try:
        yield x, made
    finally:
        axes.clear()
        axes.update(kept)


def _in_rows(x: Expr, axis: Axis, loops: Iterator[str]) -> tuple[Expr, list[Axis]] | None:
    """Return an expression in terms of rows along an axis and of the elements of these.

    With the axis itself, those of its rows and of the elements. None if its tiles are not of whole
    rows.
    """
    length = row_length([x], axis.name)
    if length == 1 or axis.size % length:
        return None
    inner, count, first = next(loops), axis.size // length, axis.start.split(" * ")[0]
    size = str(count) if axis.text.isdigit() else f"{axis.text} // {length}"
    outer = next(loops) if count > 1 else ""
    start = "0" if first == "0" else f"{first} * ({size})" if count > 1 else first
    row = replace(
        axis, name=f"{axis.name}//", extent=axis.extent // length, size=count, text=size,
        start=start, loop=outer,
    )  # fmt: skip
    element = replace(
        axis, name=f"{axis.name}%", extent=length, size=length, text=str(length), start="0",
        loop=inner,
    )  # fmt: skip
    whole = replace(axis, loop=f"{outer} * {length} + {inner}" if outer else inner)
    of, of_row, within = (index(a.name, a.extent) for a in (axis, row, element))
    known = {of: add(multiply(const(length), of_row), within)}
    for part in walk(x):
        if part.op in ("floordiv", "mod") and part.args[0] is of:
            times, left = divmod(part.args[1].value, length)
            if not left:
                digit = integer_part(part.op, of_row, const(times))
                is_quotient = part.op == "floordiv"
                known[part] = digit if is_quotient else add(multiply(const(length), digit), within)
    return rebuild(x, known), [whole, row, element]
