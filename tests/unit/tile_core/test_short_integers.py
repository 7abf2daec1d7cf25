"""Shifts by amounts that a short integer can hold, and what C computes in int all the same."""

from __future__ import annotations

import itertools

import pytest

from tile_core.arith.evaluate import evaluate
from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import binary, cast, const, maximum, minimum, select
from tile_core.ir.expr import BinaryOp, Expr, Var
from tile_core.ir.short_integers import is_short, may_leave
from tile_launch.contract import Contract

INT = dtype_of("int32")
X, Y = (Var(name, INT, contract=Contract(0, 5)) for name in "xy")
FREE = Var("free", INT)
SIGNED = Var("signed", INT, contract=Contract(-1, 5))

AMOUNTS: dict[str, Expr] = {
    "constant": const(5),
    "variable": X,
    "remainder": FREE % 6,
    "masked": FREE & 5,
    "masked by another": X & FREE,
    "sum": X + Y,
    "product": X * Y,
    "quotient": X // 2,
    "moved back": X >> 1,
    "smaller": minimum(X, 3),
    "larger": maximum(X, 7),
    "converted": cast(X, "int64"),
    "chosen": select(binary(BinaryOp.LT, FREE, 0), X, const(9)),
}
MOST = {
    **dict.fromkeys(("constant", "variable", "remainder", "masked", "masked by another"), 5),
    **{"sum": 10, "product": 25, "quotient": 5, "moved back": 5, "smaller": 3, "larger": 7},
    **{"converted": 5, "chosen": 9},
}


@pytest.mark.parametrize("name", AMOUNTS)
def test_amounts_have_a_bound_that_they_keep(name: str) -> None:
    """A type that is wider than the bound is never left, and narrower ones may be."""
    amount, most = AMOUNTS[name], MOST[name]
    for dtype in map(dtype_of, ("int4", "int8", "uint8", "int16", "uint16")):
        assert may_leave(amount, dtype) is (most >= dtype.bits), dtype
    for x, y, free in itertools.product(range(6), range(6), (-7, 0, 3, 11)):
        value = evaluate(amount, {X: x, Y: y, FREE: free})
        assert value is not None
        assert 0 <= value <= most


@pytest.mark.parametrize(
    "amount",
    [FREE, SIGNED, X + FREE, FREE + X, FREE * 2, X - Y, FREE & SIGNED, cast(SIGNED, "int64"),
     select(binary(BinaryOp.LT, X, 2), FREE, X), select(binary(BinaryOp.LT, X, 2), X, FREE),
     const(-1), X | Y],
)  # fmt: skip
def test_amounts_without_a_bound_may_leave_any_short_type(amount: Expr) -> None:
    assert may_leave(amount, dtype_of("int16"))
    assert not may_leave(amount, INT)


def test_a_sum_that_leaves_its_own_type_has_no_bound() -> None:
    byte = Var("byte", dtype_of("int8"), contract=Contract(0, 100))
    assert not may_leave(byte % 8 + byte % 8, dtype_of("int16"))
    assert may_leave((byte + byte) // 128, dtype_of("int16"))


def test_short_types() -> None:
    names = ("int4", "uint8", "int16", "int32", "uint64", "float16")
    assert [name for name in names if is_short(dtype_of(name))] == ["int4", "uint8", "int16"]
