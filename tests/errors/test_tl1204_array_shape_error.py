"""TL1204: shapes, axes or indices of arrays that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from support.captured_arrays import X, Y, refusal, told
from tile_api.arrays.capturing.capture import captured
from tile_api.arrays.equations.equations import Parameter
from tile_core.dtypes import dtype_of
from tile_core.errors import ArrayShapeError

EQUAL = "sizes are equal, or one of them is 1"
BLOCK = ("np.block: lists are nested to different depths, or empty", None)
CASES = {
    "return x + y": (f"np.add: shapes {X} and {Y} do not fit: x0=4 and y0=6", EQUAL, "xy"),
    "return np.where(x > 0, x, y)": (
        f"np.where: shapes {X} and {X} and {Y} do not fit: x0=4 and y0=6", EQUAL, "xy",
    ),
    "return x @ x": (
        f"np.matmul: shapes {X} and {X} do not fit: 6 columns, 4 rows",
        "np.swapaxes(y, -1, -2) exchanges rows and columns", "x",
    ),
    "return x @ 2.0": ("np.matmul: an operand without dimensions", "multiply with *"),
    "return np.einsum('ij,jk', x, x)": (
        f"np.einsum: shapes {X} and {X} do not fit: x1=6 and x0=4", None, "x",
    ),
    "return np.einsum('i,jk', x, x)": ("np.einsum: 'i' for an array of 2 dimensions", None),
    "return np.concatenate([x, y])": (
        f"np.concatenate: shapes {X} and {Y} differ beside axis 0", None, "xy",
    ),
    "return np.concatenate([x, x[0]])": (
        f"np.concatenate: shapes {X} and (x1=6,) differ beside axis 0", None, "x",
    ),
    "return np.block([[x], x])": BLOCK,
    "return np.block([x, [x]])": BLOCK,
    "return np.block([[x], []])": BLOCK,
    "return x.reshape(5, 5)": (
        f"np.reshape: shapes {X} and (5, 5) have 24 and 25 elements", None, "x",
    ),
    "return np.broadcast_to(x, (3, 6))": (
        f"np.broadcast_to: shapes {X} and (3, 6) do not fit: x0=4 and 3", EQUAL, "x",
    ),
    "return np.squeeze(x, 0)": ("np.squeeze: axis 0 has 4 elements", None),
    "return np.transpose(x, (0, 0))": (
        "np.transpose: axes (0, 0) do not name each of 2 dimensions once", None,
    ),
    "return x.sum(2)": ("axis 2 of an array of 2 dimensions", "axes go from -2 to 1"),
    "return x.sum((0, -2))": ("an axis stands twice in (0, -2)", None),
    "return x[:0].max()": ("np.max of no elements: the array has shape (0, x1=6)", None),
    "return x.max(where=x > 0)": (
        "np.max of chosen elements, of which there may be none", "say `initial`",
    ),
    "return np.split(x, 3)": (
        "np.split: 4 elements in 3 parts", "np.array_split makes parts of several sizes",
    ),
    "return x.sum(axis='a')": ("an axis of type str", "axes are whole numbers from -2 to 1"),
    "return x.argmax(axis=(0, 1))": (
        "an axis of type tuple", "axes are whole numbers from -2 to 1",
    ),
    "return x.reshape(2.5, 4)": ("(2.5, 4) is no shape", "shapes are whole numbers"),
    "return np.zeros((2, -3))": ("a dimension of -3 elements", None),
    "return np.eye(2.5)": ("a dimension of 2.5 elements", None),
    "return x[[0, 9]]": ("index 9 of a dimension of 4", None),
    "return np.take(x, [2, -7], axis=1)": ("index -7 of a dimension of 6", None),
    "return x[4]": ("index 4 of a dimension of 4", None),
    "return x[0, 0, 0]": ("3 indices for an array of 2 dimensions", None),
    "return x[1.5]": (
        "an index of type float", "a number, a slice, None, ... or an array of integers",
    ),
    "return x[True]": ("an index that is a truth value", "None adds a dimension"),
    "return x[x]": ("indices of float32", None),
    "return x[..., 0, ...]": ("... stands twice in brackets", None),
    "return len(x[0, 0])": ("an array of no dimensions has no length", None),
    "return np.repeat(x, -1)": ("np.repeat by -1", None),
}  # fmt: skip


@pytest.mark.parametrize("line", CASES)
def test_message(program, line):
    assert refusal(program, line, ArrayShapeError) == told("TL1204", line, *CASES[line])


def test_the_lines_of_both_arrays(program):
    text = """
        def f(x, w):
            h = x[:, 1:]
            g = w * 2
            return h + g
    """
    parameters = [Parameter(n, (4, 6), dtype_of("float32"), (n, "d")) for n in ("x", "w")]
    with pytest.raises(ArrayShapeError) as caught:
        captured(program(text, np=np)["f"], parameters, {})
    assert str(caught.value) == (
        "[TL1204] np.add: shapes (x=4, 5) and (w=4, d=6) do not fit: 5 and d=6\n"
        " --> program.py:4:5\n  |\n4 |     return h + g\n  |     ^^^^^^^^^^^^\n"
        "note: shape (x=4, 5) is made here\n"
        " --> program.py:2:5\n  |\n2 |     h = x[:, 1:]\n  |     ^^^^^^^^^^^^\n"
        "note: shape (w=4, d=6) is made here\n"
        " --> program.py:3:5\n  |\n3 |     g = w * 2\n  |     ^^^^^^^^^\n"
        "hint: sizes are equal, or one of them is 1"
    )
