"""TL1202: an array is written to in a function in which arrays are values."""

from __future__ import annotations

import pytest

from support.captured_arrays import refusal, told
from tile_core.errors import ImmutableArray

CASES = {
    "x.shape = (6, 4)": (
        "the shape of an array is assigned to: arrays are values here",
        "x.reshape(...) returns another array",
    ),
    "x.dtype = 'int32'": (
        "the dtype of an array is assigned to: arrays are values here",
        "x.astype(...) returns another array",
    ),
    "del x[0]": (
        "an element of an array is deleted: arrays are values here",
        "np.delete, or np.concatenate, makes a new array",
    ),
    **{
        line: (
            "[...] = writes into the argument x: arrays are values here",
            "assign to a copy: y = x.copy()",
        )
        for line in (
            "x[0] = 1",
            "x[x > 0] = 0",
            "z = x.T; z[1:, 2] = 0",
            "x[0][1] = 2",
            "x.fill(0)",
            "x.sort()",
            "np.copyto(x, y)",
        )
    },
    **{
        f"np.{name}.at({x}, 0, 1)": (
            f"np.{name}.at writes into the argument x: arrays are values here",
            "write into a copy: y = x.copy()",
        )
        for name, x in {"add": "x", "maximum": "x.T[1:]"}.items()
    },
    "np.put(x, 0, 1)": (
        "np.put writes into the argument x: arrays are values here",
        "write into a copy: y = x.copy()",
    ),
    **{
        line: (
            f"np.{name} is to write into `out`: arrays are values here",
            f"use what it returns: y = np.{name}(...); or give what the function has made",
        )
        for line, name in {
            "np.exp(x, out=x)": "exp",
            "return np.sum(x, axis=0, out=x[0])": "sum",
            "np.frexp(x, out=(x * 1, x * 1))": "frexp",
            "np.add(x, x, x)": "add",
        }.items()
    },
    **{
        line: (
            f"{sign}= writes into the argument x: arrays are values here",
            f"make a new array: y = x {sign} ...",
        )
        for line, sign in {
            "x += 1": "+",
            "x *= y.T": "*",
            "x @= y": "@",
            "x >>= 1": ">>",
            "z = x.T; z -= 1": "-",
            "z = np.reshape(x[1:], -1); z **= 2": "**",
            "for row in x: row /= 2": "/",
        }.items()
    },
    "np.fill_diagonal(x, 0)": (
        "np.fill_diagonal writes into the argument x: arrays are values here",
        "write into a copy: y = x.copy()",
    ),
    **{
        line: (
            f"{name} writes into an array: arrays are values here",
            "np.where or np.concatenate make a new array",
        )
        for line, name in {
            "x.partition(2)": "partition",
        }.items()
    },
}


@pytest.mark.parametrize("line", CASES)
def test_message(program, line):
    message, hint = CASES[line]
    assert refusal(program, line, ImmutableArray) == told("TL1202", line, message, hint)
