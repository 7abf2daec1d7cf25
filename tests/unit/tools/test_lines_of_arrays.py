"""The lines of random functions of whole arrays: every name is drawn, and NumPy takes each line."""

from __future__ import annotations

import itertools
import re
import warnings

import ml_dtypes
import numpy as np

from fuzz.arrays import operations
from fuzz.arrays.generate import REFUSALS
from tile_api.arrays.capturing import accumulations, creation, linear_algebra, numpy_names
from tile_api.arrays.capturing.ufuncs import UFUNCS

LINES = [
    line
    for name, table in vars(operations).items()
    if name.isupper() and isinstance(table, tuple)
    for lines in table
    for line in ([lines] if isinstance(lines, str) else lines)
]
SHAPES = ((3,), (4,), (2, 3), (3, 4), (4, 4), (2, 4, 4), (2, 4, 3), (4, 4, 2))


def test_every_name_is_drawn() -> None:
    names = {*numpy_names.FUNCTIONS, *UFUNCS, *creation.CREATED}
    names |= {*numpy_names._UFUNC_PROGRAMS}
    names |= {f"linalg.{name}" for name in linear_algebra.LINALG}
    names |= {f"{name}.reduce" for name in numpy_names._REDUCED}
    names |= {f"{name}.accumulate" for name in accumulations.ACCUMULATED}
    names |= {f".{name}" for name in numpy_names._METHODS}
    drawn = {
        name.removeprefix("lib.stride_tricks.")
        for line in LINES
        for name in re.findall(r"np\.([\w.]+)|(?:\}|\bu)(\.\w+)\(", line)
        for name in name
    }
    assert sorted(names - drawn) == sorted(operations.EXCLUDED)


def test_numpy_takes_every_line() -> None:
    made = [(np.arange(np.prod(s)) % 3).reshape(s) for s in SHAPES]
    kinds = [np.dtype(name) for name in ("float32", "int64", "bool")]
    arrays = [x.astype(kind) for kind in kinds for x in made]
    refused = [line for line in dict.fromkeys(LINES) if not takes(line, arrays)]
    assert refused == []


def takes(line: str, arrays: list[np.ndarray]) -> bool:
    text = line.replace("AXIS", "-1").replace("KEPT", "True")
    count = 1 + max(map(int, re.findall(r"\{(\d)\}", text)), default=0)
    code = compile(text.format("x", "y", "z"), "line", "eval")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in itertools.product(arrays, repeat=min(count, 2)):
            x, y = given[0], given[-1]
            try:
                eval(code, {"np": np, "x": x, "y": y, "z": y, "ml_dtypes": ml_dtypes})
            except REFUSALS:
                continue
            return True
    return False
