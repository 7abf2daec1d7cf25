"""Truth values of comparisons with NaN: none is the negation of another comparison."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np

import tile_api as tile

COMPARISONS = ("<", "<=", "==", "!=")
OPERATORS = ("and", "or", "==", "!=", "<", "<=", ">", ">=", "^", "&", "|")
FORMS = [
    f"(x[i] {one} y[i]) {op} {negation}(y[i] {other} x[i])"
    for one, op, other in itertools.product(COMPARISONS, OPERATORS, ("<", "<="))
    for negation in ("not " * (op in ("and", "or")), "")[: 1 + (op in ("and", "or"))]
]

KERNEL = """
import tile_api as tile
import tile_api.language as T


@tile.jit(out_idx=[-1])
def truths():
    @T.prim_func
    def main(
        a: T.Tensor((9,), "float32"),
        b: T.Tensor((9,), "float32"),
        out: T.Tensor(({count}, 9), "int32"),
    ):
        with T.Kernel(1, threads=32):
            x = T.alloc_fragment((9,), "float32")
            y = T.alloc_fragment((9,), "float32")
            T.copy(a, x)
            T.copy(b, y)
            for i in T.Parallel(9):
{stores}

    return main
"""


def test_each_operator_on_each_comparison(tmp_path: Path) -> None:
    stores = "\n".join(
        f"                out[{n}, i] = T.if_then_else({form}, 1, 0)"
        for n, form in enumerate(FORMS)
    )
    path = tmp_path / "truths.py"
    path.write_text(KERNEL.format(count=len(FORMS), stores=stores))
    spec = importlib.util.spec_from_file_location("truths", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    left = np.array([0, 1, 2, np.nan, np.nan, 5, -1, 0, -np.inf], "float32")
    right = np.array([0, 2, 1, np.nan, 3, np.nan, -1, -0.0, np.inf], "float32")

    kernel = tile.compile(module.truths.get_tir(), out_idx=[-1], target="cpu")
    found = kernel(left, right)

    for form, got in zip(FORMS, found, strict=True):
        wanted = [int(eval(form, {"x": left, "y": right, "i": i})) for i in range(9)]
        assert got.tolist() == wanted, form
