"""TL1205: the shape of an array would depend on elements."""

from __future__ import annotations

import pytest

from support.captured_arrays import refusal, told
from tile_core.errors import DataDependentShape

AFTER = "is known only when the kernel runs"
KEEPS = "np.where keeps the shape"
CASES = {
    "return x[x > 0]": (f"how many elements a mask chooses {AFTER}", KEEPS),
    "return x[:, x[0] > 0]": (f"how many elements a mask chooses {AFTER}", KEEPS),
    "return np.nonzero(x)": (f"how many elements np.nonzero gives {AFTER}", KEEPS),
    "return x.nonzero()": (f"how many elements nonzero gives {AFTER}", KEEPS),
    "return np.unique(x)": (f"how many elements np.unique gives {AFTER}", KEEPS),
    "return np.argwhere(x > 0)": (f"how many elements np.argwhere gives {AFTER}", KEEPS),
    "return np.compress(x[0] > 0, x)": (f"how many elements np.compress gives {AFTER}", KEEPS),
    "return np.where(x > 0)": (
        f"np.where of a condition alone: how many elements it chooses {AFTER}",
        "np.where(condition, x, y) keeps the shape",
    ),
}


@pytest.mark.parametrize("line", CASES)
def test_message(program, line):
    message, hint = CASES[line]
    assert refusal(program, line, DataDependentShape) == told("TL1205", line, message, hint)
