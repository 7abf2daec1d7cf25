"""What does not fit the annotations of a function of arrays: as objects, and as strings."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import (
    ArgumentDtypeError,
    ArgumentShapeError,
    ArgumentTypeError,
    FrontendError,
    FrontendTypeError,
    SignatureError,
)


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.zeros(shape, dtype)


PROGRAM = """
    {}
    def f(x: tile.Array["n d", "float32"], w: tile.Array["d 8"]) -> tile.Array["n d"]:
        return x @ w
"""
FIRST, SECOND, RESULT = (slice(6, 37), slice(39, 59), slice(0, None))
MESSAGES = [
    ((zeros(3), zeros(4, 8)), ArgumentShapeError,
     "[TL6004] f: x has shape (3,), and is annotated 'n d'", [("x", FIRST)], None),
    ((zeros(3, 4), zeros(4, 9)), ArgumentShapeError,
     "[TL6004] f: w has shape (4, 9), and is annotated 'd 8': dimension 1 is 9, not 8",
     [("w", SECOND)], None),
    ((zeros(3, 4), zeros(5, 8)), ArgumentShapeError,
     "[TL6004] f: d is 4 in x, and 5 in w, which has shape (5, 8)",
     [("x", FIRST), ("w", SECOND)], None),
    ((zeros(3, 4, dtype="float16"), zeros(4, 8)), ArgumentDtypeError,
     "[TL6005] f: x has elements of float16, and is annotated with float32", [("x", FIRST)],
     'x.astype("float32")'),
    ((3.0, zeros(4, 8)), ArgumentTypeError,
     "[TL6003] f: x is a float, and annotated as an array", [("x", FIRST)],
     "pass an array; annotate with `| None` what may be missing"),
    ((zeros(3, 4), zeros(4, 8)), ArgumentShapeError,
     "[TL6004] f: d is 4 in x, and 8 in the result, which has shape (3, 8)",
     [("x", FIRST), ("return", RESULT)], None),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "error", "message", "places", "hint"), MESSAGES)
@pytest.mark.parametrize("first", ["from __future__ import annotations", "import math"])
def test_message(program, first, arguments, error, message, places, hint) -> None:
    f = tile.Function(program(PROGRAM.format(first), tile=tile)["f"])
    with pytest.raises(error) as caught:
        f(*arguments)
    line = PROGRAM.splitlines()[2][4:]
    text = message
    for name, part in places:
        start, stop, _ = part.indices(len(line))
        text += f"\nnote: the annotation of {name}\n --> program.py:2:{start + 1}\n  |\n"
        text += f"2 | {line}\n  | {' ' * start}{'^' * (stop - start)}"
    caught.value.span = None  # this line
    assert str(caught.value) == text + (f"\nhint: {hint}" if hint else "")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [('tile.Array["n-1"]', SignatureError, "no dimensions: 'n-1' in"),
     ('tile.Array["... n ..."]', SignatureError, "no dimensions: '...' in"),
     ("tile.Array[None]", SignatureError, r"no dimensions: tile.Array\[None\]"),
     ('tile.Array["n", "float32", 3]', SignatureError, "no dimensions: tile.Array"),
     ('tile.Array["n", "floaty"]', FrontendTypeError, "'floaty' is not an element type"),
     ('tile.Aray["n"]', FrontendError, "tile_api has no 'tile.Aray'"),
     ('tiles.Array["n"]', SignatureError, "names that are not known here"),
     ('tile.Array["n"] | int', FrontendError, "unsupported operand")],
)  # fmt: skip
def test_annotations_that_say_nothing(program, text, error, message) -> None:
    names = program("def f(x: T): return x\n", T=text, tile=tile)
    names["f"].__annotations__["x"] = text
    with pytest.raises(error, match=message):
        tile.Function(names["f"])
