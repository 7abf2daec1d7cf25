"""Steps that no recurrence has, and running sums that cannot be captured: what is told."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import ArrayShapeError, FrontendTypeError, UnknownArrayFunction


def refusal(program, line, error) -> str:
    """Return the text of the error that a line of a function of two matrices gets."""
    names = program(f"""
        def f(x, y):
            {line}
    """, np=np, tile=tile)  # fmt: skip
    with pytest.raises(error) as caught:
        tile.Function(names["f"]).source(np.zeros((4, 6), "float32"), np.zeros((6, 4), "float32"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "error", "code", "message", "hint"),
    [
        (
            "tile.scan(lambda h, x: (h, x), 0.0, (x, y))", ArrayShapeError, "TL1204",
            "tile.scan goes along the first dimension of (4, 6) and (6, 4)",
            "give arrays whose first dimension is the steps; np.moveaxis brings it there",
        ),
        (
            "tile.scan(lambda h, x: h + x, 0.0, x)", FrontendTypeError, "TL1003",
            "the function of tile.scan returns no pair",
            "return what is carried on, and what the step gives: `return h, h`",
        ),
        (
            "tile.scan(lambda h, x: ((h[0], h[1], x), x), (0.0, 0.0), x)", FrontendTypeError,
            "TL1003", "a step of tile.scan takes 2 carried values and returns 3",
            "return as many as `init` has",
        ),
        (
            "tile.scan(lambda h, x: (h.sum() + x, x), y[0], x)", ArrayShapeError, "TL1204",
            "value 0 of tile.scan goes into a step as (4,), and comes out as (6,)",
            "start from an array of the shape that the step returns",
        ),
        (
            "tile.scan(lambda h, x: (h + x.astype('float64'), x), x[0], x)", FrontendTypeError,
            "TL1003", "value 0 of tile.scan goes into a step as float32, and comes out as float64",
            'start from float64, or return it with .astype("float32")',
        ),
        (
            "return tile.scan(lambda h, x: (np.cumsum(h) + x, h), x[0], x)", UnknownArrayFunction,
            "TL1203",
            "a running sum or a tile.scan of carried values stands in a step of tile.scan",
            "carry its values along as further values of the outer recurrence",
        ),
        (
            "np.cumulative_sum(x)", ArrayShapeError, "TL1204",
            "np.cumulative_sum of 2 dimensions without an axis", "say `axis`",
        ),
        (
            "np.cumsum(x, order=1)", UnknownArrayFunction, "TL1203",
            "np.cumsum has no keyword 'order' here", "leave it out",
        ),
        (
            "np.subtract.accumulate(x)", UnknownArrayFunction, "TL1203",
            "np.subtract.accumulate cannot be captured",
            "write it with functions that can, or call it outside",
        ),
    ],
)  # fmt: skip
def test_what_recurrences_refuse(program, line, error, code, message, hint):
    told = [f"[{code}] {message}", " --> program.py:2:5", "  |", f"2 |     {line}"]
    told += [f"  |     {'^' * len(line)}", f"hint: {hint}"]
    assert refusal(program, line, error) == "\n".join(told)
