"""Shapes that do not fit, told with the names of dimensions and the lines of both arrays."""

from __future__ import annotations

from collections.abc import Sequence

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.equations.dims import told
from tile_api.frontend.source import calling_span
from tile_core.errors import ArrayShapeError, Note


def misfit(
    what: str, shapes: Sequence[Sequence[int]], why: str, *, arrays: Sequence[Array] = (),
    hint: str | None = None,
) -> ArrayShapeError:  # fmt: skip
    """Return the error of an operation on arrays that do not fit.

    Parameters
    ----------
    what
        The operation.
    why
        What is said of the shapes.
    arrays
        Whose lines are named.
    """
    span = calling_span()
    notes = []
    for x in arrays:
        made = x.made_at()
        if made is not None and made != span:
            shape = told(x.shape)
            notes.append(
                Note(
                    f"{x.name} has shape {shape}" if x.name else f"shape {shape} is made here", made
                )
            )
    return ArrayShapeError(
        f"{what}: shapes {' and '.join(map(told, shapes))} {why}",
        span=span, notes=tuple(dict.fromkeys(notes)), hint=hint,
    )  # fmt: skip
