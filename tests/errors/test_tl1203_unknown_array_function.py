"""TL1203: a function, a method or a keyword of NumPy that cannot be captured."""

from __future__ import annotations

import pytest

from support.captured_arrays import refusal, told
from tile_core.errors import UnknownArrayFunction

OUTSIDE = "write it with functions that can, or call it outside"
CASES = {
    "return np.linalg.inv(x)": ("np.linalg.inv cannot be captured", OUTSIDE),
    "return np.sort(x)": ("np.sort cannot be captured", OUTSIDE),
    "return np.add.accumulate(x)": ("np.add.accumulate cannot be captured", OUTSIDE),
    "return np.nancumsum(x)": ("np.nancumsum cannot be captured", "np.nansum can"),
    "return x.softmax()": (
        "arrays have no 'softmax' here", "see the list of NumPy's functions that are known",
    ),
    "return x.transposed()": ("arrays have no 'transposed' here", "there is 'transpose'"),
    "return np.sum(x, keepdim=True)": (
        "np.sum has no keyword 'keepdim' here", "there is 'keepdims'",
    ),
    "return x.sum(keepdim=True)": ("np.sum has no keyword 'keepdim' here", "there is 'keepdims'"),
    "return x.reshape(6, 4, order='F')": ("np.reshape has no keyword 'order' here", "leave it out"),
    "return np.zeros(3, order='F')": ("np.zeros has no keyword 'order' here", "leave it out"),
    "return np.exp(x, where=x > 0)": ("np.exp has no keyword 'where' here", "leave it out"),
    "return np.exp(x, dtype='float64')": ("np.exp has no keyword 'dtype' here", "leave it out"),
    "return x & x": (
        "np.bitwise_and takes no elements of float32, float32", "cast with astype",
    ),
    "return x + 1j": (
        "elements of complex128 stand in the function",
        "truth values, integers and floats can be captured",
    ),
    "return (x > 0).astype('int8') + 300": (
        "np.add: the number 300 is no int8", "cast the array with astype",
    ),
    "return x.astype(int) ** -1": (
        "np.power: an integer to a negative power", "cast the array to floats with astype",
    ),
    "return x * np.array([1, 5, 2, 7, 3, 9])": (
        "a table of 6 numbers stands in the function",
        "make it a parameter of the function, or build it with np.arange and np.where",
    ),
    "return np.pad(x, 1, mode='mean')": (
        "np.pad has no mode 'mean' here",
        "there are 'constant', 'edge', 'wrap', 'reflect', 'symmetric'",
    ),
    "return np.einsum(x, [0, 1])": ("np.einsum without letters", None),
}  # fmt: skip


@pytest.mark.parametrize("line", CASES)
def test_message(program, line):
    message, hint = CASES[line]
    assert refusal(program, line, UnknownArrayFunction) == told("TL1203", line, message, hint)
