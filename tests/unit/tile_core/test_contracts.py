"""Contracts on dimensions: what they say, their text, and what analyses make of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.arith.bounds import Bounds
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.in_range import prove_in_range
from tile_core.arith.interval import Interval
from tile_core.arith.interval_analysis import interval
from tile_core.dtypes import dtype_of
from tile_core.errors import ContractViolation, VerifyError
from tile_core.interp.launch import interpret
from tile_core.ir.build_expr import ceildiv
from tile_core.ir.expr import Binary, BinaryOp, Var
from tile_core.ir.host_data import HostNames, conditions_of
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel, symbols_of
from tile_core.ir.structural_equality import structurally_equal
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS
from tile_launch.contract import Contract

I32 = dtype_of("int32")
KERNEL = """\
kernel scale[m: int32 min 1 max 4096 multiple_of 128, n: int64 multiple_of 8, k: int32](\
A: global float32[m, n, k], s: int32 max 7):
  launch bx: int32 in (m) threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
    A[bx, 0, 0] = 1.0
"""


def parsed(text: str = KERNEL):
    return parse_kernel(text, OPERATORS, str)


def test_text_round_trip():
    kernel = parsed()
    verify(kernel)
    assert print_kernel(kernel) == KERNEL
    m, n, k = symbols_of(kernel)
    assert m.contract == Contract(1, 4096, 128)
    assert n.contract == Contract(multiple_of=8)
    assert k.contract is None
    assert kernel.params[1].contract == Contract(high=7)
    assert structurally_equal(kernel, parsed())
    assert not structurally_equal(kernel, parsed(KERNEL.replace("4096", "8192")))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("max 4096", "max 100", "no int32 has 1 <= m <= 100, m % 128 == 0"),
        ("max 7", "max 4294967296", "no int32 has s <= 4294967296"),
        ("multiple_of 8", "multiple_of 0", "no int64 has "),
    ],
)
def test_verifier_refuses_what_nothing_fulfils(before, after, told):
    if after == "multiple_of 0":  # as a broken pass might make it: the text has no such thing
        kernel = parsed()
        object.__setattr__(symbols_of(kernel)[1], "contract", Contract(multiple_of=-8))
    else:
        kernel = parsed(KERNEL.replace(before, after))
    with pytest.raises(VerifyError, match=told):
        verify(kernel)


def test_verifier_refuses_contracts_of_loop_indices():
    kernel = parsed()
    object.__setattr__(kernel.body.block_vars[0], "contract", Contract(1))
    with pytest.raises(VerifyError, match="'bx' has a contract, and is no symbol or parameter"):
        verify(kernel)


@given(st.integers(0, 40), st.none() | st.integers(0, 60), st.integers(1, 9), st.integers(0, 99))
def test_what_is_broken_is_what_the_range_and_the_number_exclude(low, high, multiple_of, value):
    contract = Contract(low, high, multiple_of)
    fits = low <= value <= (99 if high is None else high) and value % multiple_of == 0
    assert (contract.broken_by(value) is None) == fits
    assert not fits or contract.smallest <= value
    assert not fits or contract.largest is None or value <= contract.largest
    fitting = [x for x in range(200) if contract.broken_by(x) is None]
    assert contract.is_satisfiable == bool(fitting)
    if fitting:
        assert contract.smallest == fitting[0]


@pytest.mark.parametrize(
    ("contract", "told"),
    [
        (Contract(1, 4096, 128), "1 <= m <= 4096, m % 128 == 0"),
        (Contract(0, 8), "m <= 8"),
        (Contract(3), "m >= 3"),
        (Contract(multiple_of=16), "m % 16 == 0"),
    ],
)
def test_how_a_contract_reads(contract, told):
    assert contract.told("m") == told


def test_ranges_know_contracts_without_being_told():
    m = Var("m", I32, Contract(1, 1000, 128))
    env = ConstraintSet()
    assert env.bounds(m) == Interval(128, 896)  # the multiples in the range
    assert env.multiple_of(m * 3 + 64) == 64
    assert interval(m + 1, {}) == Interval(129, 897)
    assert Bounds().of(m) == (128, 896)
    assert env.proves(Binary(BinaryOp.LT, m, m + 1, dtype_of("bool")))


@pytest.mark.parametrize(("multiple_of", "proven"), [(128, True), (256, True), (64, False)])
def test_tiles_are_whole_where_they_divide_the_extent(multiple_of, proven):
    m, bx, i = Var("m", I32, Contract(multiple_of=multiple_of)), Var("bx", I32), Var("i", I32)
    env = ConstraintSet().with_symbol(m).with_loop(bx, 0, ceildiv(m, 128)).with_loop(i, 0, 128)
    assert prove_in_range(bx * 128 + i, m, env) is proven


def test_symbols_met_twice_stay_older_than_what_builds_on_them():
    m = Var("m", I32, Contract(multiple_of=128))
    bx, i = Var("bx", I32), Var("i", I32)
    env = ConstraintSet().with_symbol(m).with_symbol(m).with_symbol(m)
    env = env.with_loop(bx, 0, ceildiv(m, 128)).with_symbol(m).with_loop(i, 0, 128)
    assert prove_in_range(bx * 128 + i, m, env)


def test_data_for_hosts():
    found = conditions_of(parsed(), HostNames())
    contracts = [condition for condition, _ in found if condition.kind == "contract"]
    assert [c.message for c in contracts] == [
        "1 <= m <= 4096, m % 128 == 0",
        "n % 8 == 0",
        "s <= 7",
    ]
    assert contracts[0].value == (
        "and",
        ("and", (">=", "m", 1), ("<=", "m", 4096)),
        ("==", ("%", "m", 128), 0),
    )


def test_interpreter_checks():
    import numpy as np

    kernel = parsed()
    interpret(kernel, [np.zeros((128, 8, 1), np.float32), 7])
    with pytest.raises(ContractViolation, match="m is 100, which is not a multiple of 128"):
        interpret(kernel, [np.zeros((100, 8, 1), np.float32), 7])
    with pytest.raises(ContractViolation, match="s is 8, which is more than 7"):
        interpret(kernel, [np.zeros((128, 8, 1), np.float32), 8])


def test_tiles_of_tiles():
    t, bx, i = (Var(name, I32) for name in ("t", "bx", "i"))
    m = Var("m", I32, Contract(multiple_of=512))
    env = ConstraintSet().with_symbol(m).with_grid([bx], [16])
    env = env.with_loop(t, 0, ceildiv(ceildiv(m, 32), 16)).with_loop(i, 0, 32)
    assert prove_in_range((t * 16 + bx) * 32 + i, m, env)


def test_grids_are_not_empty():
    m, bx, i = Var("m", I32, Contract(multiple_of=64)), Var("bx", I32), Var("i", I32)
    env = ConstraintSet().with_symbol(m).with_loop(i, 0, 64)
    assert not prove_in_range(i, m, env)
    assert prove_in_range(i, m, env.with_grid([bx], [ceildiv(m, 64)]))
    assert env.with_grid([bx], [ceildiv(m, 64)]).bounds(m) == Interval(64, None)
    assert not prove_in_range(i, m, env.with_grid([bx], [ceildiv(m, 64) + 1]))


def test_stated_bounds_are_bounds():
    n, bx, i = Var("n", I32), Var("bx", I32), Var("i", I32)
    stated = ConstraintSet().with_symbol(n).assuming(n <= 1024).assuming(n % 128 == 0)
    env = stated.with_grid([bx], [ceildiv(n, 128)]).with_loop(i, 0, 128)
    assert prove_in_range(bx * 128 + i, 1024, env)
    assert not prove_in_range(bx * 128 + i, 1023, env)
    assert env.bounds(n) == Interval(128, 1024)
    assert stated.assuming(n < 5, holds=False).bounds(n) == Interval(5, 1024)


@given(
    st.integers(0, 30),
    st.none() | st.integers(0, 60),
    st.sampled_from([1, 2, 3, 4, 6, 8, 12]),
    st.sampled_from([2, 3, 4, 8]),
    st.sampled_from([2, 3, 4, 8]),
    st.integers(-3, 3),
    st.integers(-2, 6),
)
def test_what_is_proven_holds(low, high, multiple_of, step, width, shift, more):
    m, bx, i = Var("m", I32, Contract(low, high, multiple_of)), Var("bx", I32), Var("i", I32)
    blocks = (m + more) // step
    env = ConstraintSet().with_symbol(m).with_grid([bx], [blocks]).with_loop(i, 0, width)
    if not prove_in_range(bx * step + i + shift, m, env):
        return
    for size in (x for x in range(80) if m.contract.broken_by(x) is None):
        for block in range((size + more) // step):
            assert 0 <= block * step + shift
            assert block * step + width - 1 + shift < size


@given(
    st.sampled_from([2, 4, 8]),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([1, 2, 4, 8, 16, 64]),
    st.integers(1, 70),
)
def test_what_is_proven_of_tiles_of_tiles_holds(inner, outer, multiple_of, size):
    m = Var("m", I32, Contract(multiple_of=multiple_of))
    t, bx, i = (Var(name, I32) for name in ("t", "bx", "i"))
    env = ConstraintSet().with_symbol(m).with_grid([bx], [outer])
    env = env.with_loop(t, 0, ceildiv(ceildiv(m, inner), outer)).with_loop(i, 0, inner)
    proven = prove_in_range((t * outer + bx) * inner + i, m, env)
    assert proven == (multiple_of % (inner * outer) == 0)
    assert not proven or size * multiple_of % (inner * outer) == 0
