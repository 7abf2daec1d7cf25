"""Contracts on dimensions: what they say, their text, and what analyses make of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.dtypes import dtype_of
from tile_core.errors import ContractViolation, VerifyError
from tile_core.interp.launch import interpret
from tile_core.ir.arith import ceildiv
from tile_core.ir.contract import Contract
from tile_core.ir.equal import structurally_equal
from tile_core.ir.expr import Binary, BinaryOp, Var
from tile_core.ir.host_data import HostNames, conditions_data
from tile_core.ir.interval import Interval, interval
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel, symbols_of
from tile_core.ir.verify import verify
from tile_core.ops.table import OPERATORS
from tile_core.passes.ranges import Env, prove_in_range
from tile_core.simt.bounds import Bounds

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
    env = Env()
    assert env.bounds(m) == Interval(128, 896)  # the multiples in the range
    assert env.multiple_of(m * 3 + 64) == 64
    assert interval(m + 1, {}) == Interval(129, 897)
    assert Bounds().of(m) == (128, 896)
    assert env.proves(Binary(BinaryOp.LT, m, m + 1, dtype_of("bool")))


@pytest.mark.parametrize(("multiple_of", "proven"), [(128, True), (256, True), (64, False)])
def test_tiles_are_whole_where_they_divide_the_extent(multiple_of, proven):
    m, bx, i = Var("m", I32, Contract(multiple_of=multiple_of)), Var("bx", I32), Var("i", I32)
    env = Env().with_symbol(m).with_loop(bx, 0, ceildiv(m, 128)).with_loop(i, 0, 128)
    assert prove_in_range(bx * 128 + i, m, env) is proven


def test_symbols_met_twice_stay_older_than_what_builds_on_them():
    m = Var("m", I32, Contract(multiple_of=128))
    bx, i = Var("bx", I32), Var("i", I32)
    env = Env().with_symbol(m).with_symbol(m).with_symbol(m)
    env = env.with_loop(bx, 0, ceildiv(m, 128)).with_symbol(m).with_loop(i, 0, 128)
    assert prove_in_range(bx * 128 + i, m, env)


def test_data_for_hosts():
    found = conditions_data(parsed(), HostNames())
    contracts = [c for c in found if c["kind"] == "contract"]
    assert [c["message"] for c in contracts] == [
        "1 <= m <= 4096, m % 128 == 0",
        "n % 8 == 0",
        "s <= 7",
    ]
    assert contracts[0]["value"] == [
        "and",
        ["and", [">=", "m", 1], ["<=", "m", 4096]],
        ["==", ["%", "m", 128], 0],
    ]


def test_interpreter_checks():
    import numpy as np

    kernel = parsed()
    interpret(kernel, [np.zeros((128, 8, 1), np.float32), 7])
    with pytest.raises(ContractViolation, match="m is 100, which is not a multiple of 128"):
        interpret(kernel, [np.zeros((100, 8, 1), np.float32), 7])
    with pytest.raises(ContractViolation, match="s is 8, which is more than 7"):
        interpret(kernel, [np.zeros((128, 8, 1), np.float32), 8])
