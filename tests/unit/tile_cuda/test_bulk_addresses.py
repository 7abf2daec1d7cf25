"""Copies by the engine from and to addresses that the kernel computes: bytes side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget
from tile_sim import checking

TARGETS = ("interpret", "cpu", "cuda:sm_90a@sim")
TARGET = TARGETS[-1]


def through(shape: tuple[int, int], strides: Any = None, first: int = 0, rows: int = 0) -> Any:
    """Return a kernel that copies by hand from an address in a table to one of an element.

    The last `rows` of the block's part are left out, if any.
    """
    m, n = shape
    moved = m - rows

    @T.prim_func
    def kernel(table: T.Tensor((2,), T.ptr), C: T.Tensor((first + 2 * m * n,), "float16")):
        with T.Kernel(2, threads=64) as bx:
            src = T.make_tensor(table[1], (2 * m, n), "float16", strides=strides)
            dst = T.make_tensor(T.address_of(C[first + bx * (m * n)]), (m, n), "float16")
            S = T.alloc_shared((m, n), "float16")
            full = T.alloc_barrier(64)
            begin = bx * m
            T.tma_copy(src[begin : begin + moved, :], S[0:moved, :], barrier=full)
            T.barrier_arrive(full)
            T.barrier_wait(full, 0)
            T.tma_copy(S[0:moved, :], dst[0:moved, :])
            T.tma_store_wait()

    return kernel


CASES: dict[str, tuple[Any, ...]] = {
    "rows of 24 bytes": ((4, 12),),
    "one row": ((1, 8),),
    "strides written out": ((8, 64), (64, 1)),
    "behind other elements": ((3, 40), None, 8),
    "rows in front": ((7, 16), None, 0, 2),
}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_bytes_are_copied_by_their_addresses(name: str, target: str) -> None:
    kernel, (m, n) = through(*CASES[name]), CASES[name][0]
    _, first, rows = (*CASES[name][1:], *(None, 0, 0)[len(CASES[name]) - 1 :])
    a = np.arange(1, 2 * m * n + 1, dtype=np.float16)
    table = np.array([0, a.ctypes.data], np.uint64)
    c = np.zeros(first + a.size, np.float16)
    with checking("all"):
        tile.compile(kernel, target=target)(table, c)
    expected = a.reshape(2, m, n).copy()
    expected[:, m - rows :] = 0
    np.testing.assert_array_equal(c[first:].reshape(2, m, n), expected)
    assert not c[:first].any()


def source_of(kernel: Any) -> str:
    return str(tile.compile(kernel, target=TARGET).get_kernel_source())


def test_no_map_describes_such_a_tensor() -> None:
    source = source_of(through((8, 64)))
    assert source.count("tile::bulk_load(") == source.count("tile::bulk_store(") == 1
    assert "tile::mbarrier_expect_tx(full, 1024);" in source
    assert "tensor_map" not in source


def test_a_copy_may_ask_for_the_engine() -> None:
    @T.prim_func
    def kernel(table: T.Tensor((1,), T.ptr), C: T.Tensor((64, 8), "float32")):
        with T.Kernel(1, threads=64):
            src = T.make_tensor(table[0], (64, 8), "float32")
            S = T.alloc_shared((64, 8), "float32")
            T.copy(src, S, prefer_instruction="tma")
            T.copy(S, C)

    a, c = np.arange(512, dtype=np.float32).reshape(64, 8), np.zeros((64, 8), np.float32)
    with checking("all"):
        tile.compile(kernel, target=TARGET)(np.array([a.ctypes.data], np.uint64), c)
    np.testing.assert_array_equal(c, a)
    assert "tile::bulk_load(" in source_of(kernel)


REFUSED = {
    "rows apart": (
        ((4, 8), (16, 1)),
        "'src' cannot be copied to 'S' in bulk: elements of 'src' are not known to be contiguous",
    ),
    "8 bytes": (
        ((1, 4),),
        "'src' cannot be copied to 'S' in bulk: its 8 bytes are no multiple of 16",
    ),
    "an odd element": (
        ((4, 8), None, 3),
        "'S' cannot be copied to 'dst' in bulk: it begins at no known multiple of 16 bytes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_stretch_has_a_reason(name: str) -> None:
    case, message = REFUSED[name]
    with pytest.raises(UnsupportedOnTarget) as raised:
        tile.compile(through(*case), target=TARGET)
    assert raised.value.message == message
