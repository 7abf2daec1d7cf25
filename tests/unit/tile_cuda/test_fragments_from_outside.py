"""Which thread holds which element, against tables that other code for NVIDIA GPUs works with.

Tables are facts of CUTLASS 4.2.0, in its notation: shapes and strides of a function from a thread
and the number of its register element to a place, column by column (A: row + M * k, B: column
+ N * k, sums: row + M * column). ``cute/atom/mma_traits_sm70.hpp``, ``…_sm75.hpp``,
``…_sm80.hpp``, ``…_sm89.hpp`` and ``…_sm90_gmma.hpp``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pytest

from tile_core.layout import Fragment
from tile_core.simt.atoms import MatrixAtom
from tile_cuda.atoms import all_atoms, atoms_for_nibbles
from tile_cuda.atoms_wgmma import WgmmaInstructions, wgmma_for
from tile_cuda.machine import machine

Modes: TypeAlias = "tuple[tuple[int, ...], tuple[int, ...]]"
Table: TypeAlias = "tuple[Modes, Modes]"
"""Shape and stride of threads, and of a thread's elements."""

WARP = (4, 8)
SUMS_16: Table = ((WARP, (32, 1)), ((2, 2), (16, 8)))
SUMS_8: Table = ((WARP, (16, 1)), ((2,), (8,)))
ONE: Table = ((WARP, (8, 1)), ((1,), (0,)))
ROWS_8_OF_16: Table = ((WARP, (32, 1)), ((4,), (8,)))

NIBBLES: Mapping[str, tuple[Table, Table]] = {
    "sm_80": (
        ((WARP, (128, 1)), ((8, 2, 2), (16, 8, 512))),
        ((WARP, (64, 1)), ((8, 2), (8, 256))),
    ),
    "sm_75": (((WARP, (64, 1)), ((8,), (8,))), ((WARP, (64, 1)), ((8,), (8,)))),
}
"""A and B of the instructions for 4-bit elements, by the first machine that has them."""

TABLES: Mapping[tuple[str, str], tuple[Table, Table, Table]] = {
    ("m16n8k8", "float16"): (SUMS_16, SUMS_8, SUMS_16),
    ("m16n8k16", "float16"): (
        ((WARP, (32, 1)), ((2, 2, 2), (16, 8, 128))),
        ((WARP, (16, 1)), ((2, 2), (8, 64))),
        SUMS_16,
    ),
    ("m16n8k4", "float32"): (((WARP, (16, 1)), ((2,), (8,))), ONE, SUMS_16),
    ("m16n8k8", "float32"): (
        ((WARP, (16, 1)), ((2, 2), (8, 64))),
        ((WARP, (8, 1)), ((2,), (32,))),
        SUMS_16,
    ),
    ("m8n8k4", "float64"): (ONE, ONE, SUMS_8),
    ("m8n8k16", "int8"): (ROWS_8_OF_16, ROWS_8_OF_16, SUMS_8),
    ("m16n8k16", "int8"): (((WARP, (64, 1)), ((4, 2), (16, 8))), ROWS_8_OF_16, SUMS_16),
    ("m16n8k32", "int8"): (
        ((WARP, (64, 1)), ((4, 2, 2), (16, 8, 256))),
        ((WARP, (32, 1)), ((4, 2), (8, 128))),
        SUMS_16,
    ),
    ("m16n8k64", "int4"): (*NIBBLES["sm_80"], SUMS_16),
}
"""A, B and sums of the instructions of warps, by shape and type of the factors."""

SAME = {"bfloat16": "float16", "tfloat32": "float32", "uint8": "int8", "uint4": "int4",
        "float8_e4m3fn": "int8", "float8_e5m2": "int8"}  # fmt: skip


def places(table: Table, threads: int) -> np.ndarray[Any, Any]:
    """Return the places of all elements by thread and element."""
    (thread_shape, thread_strides), (shape, strides) = table
    elements = int(np.prod(shape))
    by_thread = _walk(np.arange(threads), thread_shape, thread_strides)
    return by_thread[:, None] + _walk(np.arange(elements), shape, strides)[None]


def _walk(
    index: np.ndarray[Any, Any], shape: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """Return what shapes and strides make of numbers, whose first digit turns fastest."""
    total = np.zeros_like(index)
    for extent, stride in zip(shape, strides, strict=True):
        total = total + index % extent * stride
        index = index // extent
    return total


def held(fragment: Fragment, *, is_b: bool = False) -> np.ndarray[Any, Any]:
    """Return the same of a fragment of this project, less replicas."""
    rows, columns = np.indices(fragment.shape)
    first, other = (columns, rows) if is_b else (rows, columns)
    extent = fragment.shape[1] if is_b else fragment.shape[0]
    threads, slots = fragment.thread_table()[..., 0], fragment.slot_table().reshape(rows.shape)
    found = np.full((int(threads.max()) + 1, int(slots.max()) + 1), -1)
    found[threads, slots] = first + extent * other
    return found


@pytest.mark.parametrize("atom", [a for a in all_atoms() if a.orders is None], ids=lambda a: a.name)
def test_instructions_of_warps(atom: MatrixAtom) -> None:
    dtype = str(atom.a_dtype)
    a, b, c = TABLES[f"m{atom.m}n{atom.n}k{atom.k}", SAME.get(dtype, dtype)]
    assert np.array_equal(held(atom.a), places(a, 32))
    assert np.array_equal(held(atom.b, is_b=True), places(b, 32))
    assert np.array_equal(held(atom.c), places(c, 32))


@pytest.mark.parametrize("arch", NIBBLES)
def test_two_small_integers_to_a_byte(arch: str) -> None:
    atom = next(
        a for a in atoms_for_nibbles(machine(arch), "int8", "int8", "int32")
        if arch == "sm_80" or a.m == 8
    )  # fmt: skip
    for fragment, table, is_b in (
        (atom.a, NIBBLES[arch][0], False),
        (atom.b, NIBBLES[arch][1], True),
    ):
        extent = fragment.shape[1] if is_b else fragment.shape[0]
        found, known = held(fragment, is_b=is_b), places(table, 32)
        x, byte = found % extent, found // extent
        assert np.array_equal(known[:, ::2], x + extent * (2 * byte))  # the low half first
        assert np.array_equal(known[:, 1::2], x + extent * (2 * byte + 1))


VOLTA_ROW: Table = (((8,), (1,)), ((4,), (8,)))
VOLTA_COLUMN: Table = (((4, 2), (8, 4)), ((4,), (1,)))
VOLTA_SUMS: Mapping[str, Table] = {
    "float16": (((8,), (1,)), ((8,), (8,))),
    "float32": (((2, 2, 2), (1, 16, 4)), ((2, 2, 2), (8, 2, 32))),
}


@pytest.mark.parametrize(
    "atom", [a for a in all_atoms() if a.orders], ids=lambda a: f"{a.function}-{a.c_dtype}"
)
def test_the_first_group_of_threads_of_volta(atom: MatrixAtom) -> None:
    a_order, b_order = atom.orders or ("", "")
    group = [0, 1, 2, 3, 16, 17, 18, 19]

    def in_group(fragment: Fragment, *, is_b: bool = False) -> np.ndarray[Any, Any]:
        """Its rows, and columns of sums, are 0 to 3 and 8 to 11 of all 16."""
        rows, columns = np.indices(fragment.shape)
        threads, slots = fragment.thread_table(), fragment.slot_table().reshape(rows.shape)
        found = np.full((32, int(slots.max()) + 1), -1)
        for copy in range(threads.shape[-1]):
            x, other = (columns, rows) if is_b else (rows, columns)
            other = other if fragment is not atom.c else other % 4 + other // 8 * 4
            found[threads[..., copy], slots] = x % 4 + x // 8 * 4 + 8 * other
        return found[group]

    a_table = VOLTA_ROW if a_order == "row" else VOLTA_COLUMN
    b_table = VOLTA_ROW if b_order == "col" else VOLTA_COLUMN
    assert np.array_equal(in_group(atom.a), places(a_table, 8))
    assert np.array_equal(in_group(atom.b, is_b=True), places(b_table, 8))
    assert np.array_equal(in_group(atom.c), places(VOLTA_SUMS[str(atom.c_dtype)], 8))


GROUP = (4, 8, 4)
FACTORS: Mapping[int, Table] = {
    32: ((GROUP, (64, 1, 16)), ((2, 2), (8, 256))),
    16: ((GROUP, (128, 1, 16)), ((2, 2, 2), (64, 8, 512))),
    8: ((GROUP, (256, 1, 16)), ((4, 2, 2), (64, 8, 1024))),
}
"""The first factor of a warpgroup in registers, by the width of its elements."""


@pytest.mark.parametrize("n", [8, 24, 128, 256])
def test_sums_of_warpgroups(n: int) -> None:
    product = wgmma_for(machine("sm_90a"), "float16", "float16", "float32")
    assert product is not None
    table: Table = ((GROUP, (128, 1, 16)), ((2, 2, n // 8), (64, 8, 512)))
    assert np.array_equal(held(product.atom(n).c), places(table, 128))


@pytest.mark.parametrize(
    ("bits", "types"),
    [
        (32, ("tfloat32", "tfloat32", "float32")),
        (16, ("bfloat16", "bfloat16", "float32")),
        (8, ("float8_e4m3fn", "float8_e5m2", "float32")),
        (8, ("int8", "int8", "int32")),
    ],
)
def test_factors_of_warpgroups_in_registers(bits: int, types: tuple[str, str, str]) -> None:
    assert np.array_equal(held(WgmmaInstructions(*types).atom(8).a), places(FACTORS[bits], 128))
