"""TL1203: a function, a method or a keyword of NumPy that cannot be captured."""

from __future__ import annotations

import pytest

from support.captured_arrays import refusal, told
from tile_core.errors import UnknownArrayFunction

OUTSIDE = "write it with functions that can, or call it outside"
PAGE = "NumPy's page of it says which it takes"
FOURIER = (
    "it gives complex numbers; arrays are real: turns = 2 * np.pi * np.outer(k, n) / size, and "
    "np.cos(turns) @ x and -np.sin(turns) @ x are its parts"
)
CASES = {
    "return np.fft.rfft(x)": ("np.fft.rfft cannot be captured", FOURIER),
    "return np.lexsort(x)": ("np.lexsort cannot be captured", OUTSIDE),
    "return np.arctan2.accumulate(x)": ("np.arctan2.accumulate cannot be captured", OUTSIDE),
    "return np.nanpercentile(x, 3)": ("np.nanpercentile cannot be captured", OUTSIDE),
    "return x.softmax()": ("arrays have no 'softmax' here", "tile.nn.softmax(x)"),
    "return x.unsqueeze(0)": ("arrays have no 'unsqueeze' here", "np.expand_dims(x, axis)"),
    "return x.strides": ("arrays have no 'strides' here", "write it with functions of NumPy"),
    "return np.linalg.eigvals(x)": (
        "np.linalg.eigvals cannot be captured",
        "np.linalg.eigvalsh(x), if the matrix is symmetric",
    ),
    "return np.frompyfunc(abs, 1, 1)(x)": ("abs (vectorized) cannot be captured", OUTSIDE),
    "return x + None": (
        "elements of object stand in the function",
        "truth values, integers and floats can be captured",
    ),
    "return np.moveaxis(x, [0, 1], 0)": (
        "np.moveaxis: zip() argument 2 is longer than argument 1", PAGE,
    ),
    "return x[4:0:0]": ("x[...]: slice step cannot be zero", PAGE),
    "return np.arange(0, 5, 0)": ("np.arange: division by zero", PAGE),
    "return x.max(initial='a')": ("np.max: could not convert string to float: 'a'", PAGE),
    "return np.einsum('i1', x)": (
        "np.einsum of 'i1'", "letters, commas, ... and one ->, as in 'ij,jk->ik'",
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
