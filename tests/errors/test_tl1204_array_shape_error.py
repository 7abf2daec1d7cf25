"""TL1204: shapes, axes or indices of arrays that do not fit."""

from __future__ import annotations

import pytest

from support.captured_arrays import refusal, told
from tile_core.errors import ArrayShapeError

EQUAL = "sizes are equal, or one of them is 1"
CASES = {
    "return x + y": ("np.add: shapes (4, 6) and (6, 4) do not fit: 4 and 6", EQUAL),
    "return np.where(x > 0, x, y)": (
        "np.where: shapes (4, 6) and (4, 6) and (6, 4) do not fit: 4 and 6", EQUAL,
    ),
    "return x @ x": (
        "np.matmul: shapes (4, 6) and (4, 6) do not fit: 6 columns, 4 rows",
        "np.swapaxes(y, -1, -2) exchanges rows and columns",
    ),
    "return x @ 2.0": ("np.matmul: an operand without dimensions", "multiply with *"),
    "return np.einsum('ij,jk', x, x)": (
        "np.einsum: shapes (4, 6) and (4, 6) do not fit: 6 and 4", None,
    ),
    "return np.einsum('i,jk', x, x)": ("np.einsum: 'i' for an array of 2 dimensions", None),
    "return np.concatenate([x, y])": (
        "np.concatenate: shapes (4, 6) and (6, 4) differ beside axis 0", None,
    ),
    "return np.concatenate([x, x[0]])": (
        "np.concatenate: shapes (4, 6) and (6,) differ beside axis 0", None,
    ),
    "return x.reshape(5, 5)": ("np.reshape: (4, 6) has 24 elements, (5, 5) has 25", None),
    "return np.broadcast_to(x, (3, 6))": (
        "np.broadcast_to: shapes (4, 6) and (3, 6) do not fit: 4 and 3", EQUAL,
    ),
    "return np.squeeze(x, 0)": ("np.squeeze: axis 0 has 4 elements", None),
    "return np.transpose(x, (0, 0))": (
        "np.transpose: axes (0, 0) do not name each of 2 dimensions once", None,
    ),
    "return x.sum(2)": ("axis 2 of an array of 2 dimensions", "axes go from -2 to 1"),
    "return x.sum((0, -2))": ("an axis stands twice in (0, -2)", None),
    "return x[:0].max()": ("np.max of no elements: the array has shape (0, 6)", None),
    "return x.max(where=x > 0)": (
        "np.max of chosen elements, of which there may be none", "say `initial`",
    ),
    "return np.split(x, 3)": (
        "np.split: 4 elements in 3 parts", "np.array_split makes parts of several sizes",
    ),
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
    message, hint = CASES[line]
    assert refusal(program, line, ArrayShapeError) == told("TL1204", line, message, hint)
