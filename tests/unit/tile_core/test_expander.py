"""Sums of indices are written only where no part of them can overflow: exactly there."""

from __future__ import annotations

from itertools import product

import pytest

from tile_core.arith.affine import Atom, Linear
from tile_core.arith.expander import MayOverflow, fits, is_safe, within, write
from tile_core.dtypes import DType, dtype_of
from tile_core.ir.expr import Var

INT8, INT32 = dtype_of("int8"), dtype_of("int32")
RANGES = ((0, 1), (0, 63), (0, 64), (-64, 0), (-65, 63), (-128, 127), (1, 1), (-1, -1))
FACTORS = (-128, -2, -1, 1, 2, 127, 128)
CONSTANTS = (-129, -128, -127, -1, 0, 1, 63, 64, 127, 128)


def atom(number: int, low: int, high: int, dtype: DType = INT8) -> Atom:
    var = Var(f"v{number}", dtype)
    return Atom(var, var, number, low, high)


def is_within(dtype: DType, *values: int) -> bool:
    bits = dtype.bits - 1
    return all(-(1 << bits) <= value < 1 << bits for value in values)


def overflows(value: Linear, dtype: DType) -> bool:
    """Whether a number on the way is out of range: each product, each sum, from the left.

    What is added comes before what is subtracted, large steps first.
    """
    ordered = sorted(value.terms, key=lambda t: (t[1] < 0, -abs(t[1]), t[0].number))
    for at in product(*({a.low, a.high} for a, _ in ordered)):
        total = 0
        for (_, factor), x in zip(ordered, at, strict=True):
            total += factor * x
            if not is_within(dtype, factor * x, total):
                return True
        if not is_within(dtype, total + value.constant):
            return True
    return False


def asked() -> list[Linear]:
    found = []
    for (r, f), c in product(product(RANGES, FACTORS), CONSTANTS):
        found.append(Linear(((atom(0, *r), f),), c))
        for q, g in product(RANGES[::2], FACTORS[1:5]):
            found.append(Linear(((atom(0, *r), f), (atom(1, *q), g)), c))
    return found


def test_a_sum_is_safe_exactly_if_no_part_overflows() -> None:
    """But for what is known of the value: sums of what is not negative end where they are largest.

    A number that the type does not hold cannot be written, a single atom always.
    """
    decided = {True: 0, False: 0}
    for value in asked():
        factors = [f for _, f in value.terms]
        is_held = is_within(INT8, abs(value.constant), *map(abs, factors))
        natural = value.constant >= 0 and all(f > 0 and a.low >= 0 for a, f in value.terms)
        alone = value.constant == 0 and factors == [1]
        wanted = is_held and (natural or alone or not overflows(value, INT8))
        assert is_safe(value, INT8) is wanted, str(value)
        decided[wanted] += 1
    assert min(decided.values()) > 100


@pytest.mark.parametrize("constant", [*CONSTANTS])
def test_numbers(constant: int) -> None:
    value = Linear((), constant)
    assert is_safe(value, INT8) is fits(value, INT8) is is_within(INT8, constant)
    assert within((constant, constant), INT8) is is_within(INT8, constant)


def test_bounds_of_a_sum_decide_whether_it_fits() -> None:
    for value in asked():
        ends = [
            sum(f * x for (_, f), x in zip(value.terms, at, strict=True)) + value.constant
            for at in product(*((a.low, a.high) for a, _ in value.terms))
        ]
        assert value.bounds == (min(ends), max(ends))
        assert fits(value, INT8) is is_within(INT8, *ends)


def test_what_may_overflow_is_not_written() -> None:
    most = (1 << 31) - 1
    fits_whole = Linear(((atom(0, 0, 1, INT32), 1), (atom(1, -1, 0, INT32), 1)), 5)
    assert write(fits_whole, INT32) is not None
    with pytest.raises(MayOverflow):
        write(Linear(((atom(0, 0, 1, INT32), 1), (atom(1, -1, most, INT32), 1)), 0), INT32)
