"""Sums where a factor hangs over its tensor are sums of zeros, whatever becomes of the loop."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from support.guarded import check_guarded
from tile_core.plugins.host import PluginHost
from tile_core.testing.conformance.gemm_tails import Overhang
from tile_core.testing.oracle import INTERPRETER, runner

TYPES = [
    ("float32", "float32"),
    ("float16", "float16"),
    ("bfloat16", "float32"),
    ("int8", "int32"),
]
MORE_TYPES = [
    ("float64", "float64"),
    ("float8_e4m3fn", "float32"),
    ("uint8", "int32"),
    ("int16", "int64"),
]
TRANSPOSES = list(itertools.product((False, True), (False, True)))
STATIC_AND_DYNAMIC = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def _check(overhang: Overhang) -> None:
    check_guarded(overhang.case(), "cpu")


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("dtypes", TYPES, ids="-".join)
@pytest.mark.parametrize(("first", "second"), TRANSPOSES, ids=["NN", "NT", "TN", "TT"])
@STATIC_AND_DYNAMIC
def test_every_type(dtypes: tuple[str, str], first: bool, second: bool, dynamic: bool) -> None:
    offset = 3 if first is second else 0
    overhang = Overhang(*dtypes, first, second, dynamic, offset=offset)
    _check(overhang)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("dtypes", MORE_TYPES, ids="-".join)
def test_more_types(dtypes: tuple[str, str]) -> None:
    _check(Overhang(*dtypes, offset=3))
    _check(Overhang(*dtypes, True, True, dynamic=True))


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("rows", [1, 3, 8, 16])
@pytest.mark.parametrize("second", [False, True], ids=["N", "T"])
@STATIC_AND_DYNAMIC
def test_few_rows(rows: int, second: bool, dynamic: bool) -> None:
    """Those that read the second factor in place, or as dot products along its rows."""
    sizes = {"extents": (rows + 1, 33, 40), "block": (rows, 32, 16), "blocks": (3, 2)}
    overhang = Overhang(transpose_b=second, dynamic=dynamic, **sizes)
    _check(overhang)


@pytest.mark.in_turn(7)
@pytest.mark.parametrize(
    ("extents", "blocks"),
    [
        ((19, 64, 32), (2, 2)),  # rows of A
        ((32, 33, 32), (2, 2)),  # columns of B
        ((32, 64, 20), (2, 2)),  # neither, only k
        ((32, 64, 32), (3, 3)),  # whole blocks of both
    ],
    ids=["first", "second", "k", "blocks"],
)
@STATIC_AND_DYNAMIC
def test_one_side(extents: tuple, blocks: tuple, dynamic: bool) -> None:
    overhang = Overhang(dynamic=dynamic, extents=extents, blocks=blocks)
    _check(overhang)
    _check(replace(overhang, transpose_b=True))


@pytest.mark.in_turn(5)
@pytest.mark.parametrize(("first", "second"), TRANSPOSES, ids=["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("rows", [2, 16])
@pytest.mark.parametrize("doubled", [False, True], ids=["fused", "streamed"])
def test_batches_outside(first: bool, second: bool, rows: int, doubled: bool) -> None:
    """A dimension that is neither rows nor columns may end as well."""
    sizes = {"extents": (rows + 1, 33, 20), "block": (rows, 32, 16), "blocks": (2, 2)}
    overhang = Overhang("float32", "float32", first, second, not doubled, **sizes)
    _check(replace(overhang, batches=3, doubled=doubled))


def test_the_interpreter_agrees(host: PluginHost) -> None:
    for overhang in (Overhang(offset=3), Overhang(batches=3), Overhang(dynamic=True, doubled=True)):
        overhang.case().check(runner(INTERPRETER, host))
