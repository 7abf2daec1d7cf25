"""Variables of shapes and strides: out of one equation as text, out of several by solving."""

from __future__ import annotations

import numpy as np
import pytest

from tile_launch.expressions import Expression
from tile_launch.manifest import Scalar, Tensor
from tile_launch.symbol_solver import solutions, symbol_text
from tile_launch.views import strides_of


def tensor(*shape: Expression, strides: tuple[Expression, ...] | None = None, dtype="float32"):
    return Tensor(name="A", dtype=dtype, shape=shape, strides=strides)


@pytest.mark.parametrize(
    ("param", "array", "value"),
    [
        (tensor(8, "m"), np.zeros((8, 5)), 5),
        (tensor(("*", "m", 4)), np.zeros(20), 5),
        (tensor(("*", 4, "m")), np.zeros(20), 5),
        (tensor(("+", ("*", "m", 4), 3)), np.zeros(23), 5),
        (tensor(("-", "m", 3)), np.zeros(2), 5),
        (tensor(("+", 3, "m")), np.zeros(8), 5),
        (tensor(("int", "m")), np.zeros(5), 5),
        (tensor("m", dtype="int4"), np.zeros(5, np.int8), 10),
        (tensor(2, 3, strides=("m", 1)), np.zeros((2, 5))[:, :3], 5),
        (tensor(2, 6, strides=("m", 1), dtype="uint4"), np.zeros((2, 5), np.uint8)[:, :3], 10),
    ],
)  # fmt: skip
def test_one_equation(param: Tensor, array: np.ndarray, value: int) -> None:
    text = symbol_text([param], ["a"], "m")
    assert text is not None
    assert eval(text, {"a": array, "strides": strides_of}) == value
    assert solutions([param], ["m"], [array]) == [value]


@pytest.mark.parametrize("extent", [("//", "m", 4), ("+", "m", "n"), ("-", 9, "m"), 4])
def test_no_single_equation(extent: Expression) -> None:
    assert symbol_text([tensor(extent)], ["a"], "m") is None


def test_several_equations() -> None:
    params = [
        tensor(("+", ("*", 2, "m"), "n")),
        Scalar(name="k", dtype="int32"),
        tensor(("+", "n", "k")),
    ]
    args = [np.zeros(17), 4, np.zeros(11)]
    assert solutions(params, ["m", "n", "k", "x"], args) == [5, 7, 4, 0]
    assert solutions([params[0]], ["m"], [None]) == [0]
