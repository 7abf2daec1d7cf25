"""What kernels of `tile_nn` refuse, with the whole text."""

from __future__ import annotations

import numpy as np
import pytest

import tile_nn
from tile_core.errors import TileError

X = np.ones((4, 6), "float32")


def told(program, text: str) -> str:
    """Return the error of the last line of a program, without its place."""
    with pytest.raises(TileError) as caught:
        program(text, tile_nn=tile_nn, np=np, X=X)
    lines = str(caught.value).splitlines()
    last = text.rstrip().splitlines()[-1].strip()
    assert lines[2:5:2] == ["  |", f"  | {'^' * len(last)}"]
    assert lines[3].endswith(f" | {last}")
    return "\n".join(lines[:1] + lines[5:])


REFUSED = {
    "tile_nn.rms_norm(X.astype(int))": """\
[TL1003] tile_nn.rms_norm: x has elements of int64
hint: cast it to float16, bfloat16, float32 or float64""",
    "tile_nn.rms_norm(X, 2.0)": """\
[TL1003] tile_nn.rms_norm: weight is a float, and no array
hint: pass an array of float16, bfloat16, float32 or float64""",
    "tile_nn.rms_norm(X, np.ones(5, 'float32'))": """\
[TL1204] tile_nn.rms_norm: weight has shape (5,)
hint: its shape is (d,), here (6,)""",
    "tile_nn.rms_norm(X, residual=X[1:])": """\
[TL1204] tile_nn.rms_norm: residual has shape (3, 6)
hint: its shape is that of x, here (4, 6)""",
    "tile_nn.rms_norm(np.ones(()))": """\
[TL1204] tile_nn.rms_norm: x has 0 dimensions
hint: it is (..., d)""",
    "tile_nn.rms_norm(X, casting_mode='none')": """\
[TL1002] tile_nn.rms_norm: casting_mode is 'none'
hint: it is one of 'llama', 'gemma'""",
    "tile_nn.swiglu(X, X[:, 1:])": """\
[TL1204] tile_nn.swiglu: up has shape (4, 5)
hint: its shape is that of gate, here (4, 6)""",
    "tile_nn.silu_and_mul(X[:, 1:])": """\
[TL1204] tile_nn.silu_and_mul: rows of x have 5 elements
hint: an even number of them: two halves""",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(program, text):
    assert told(program, text) == REFUSED[text]
