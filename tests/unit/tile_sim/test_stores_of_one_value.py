"""Stores without order: interpreter and emulator have one rule, that of docs/errors/TL6503.md."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import DataRace

TARGETS = ("interpret", "cuda:sm_80@sim")


@T.prim_func
def one_statement(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        A[0] = 5.0
        B[t] = A[0]


@T.prim_func
def one_statement_in_shared_memory(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        s = T.alloc_shared((4,), "float32")
        s[t % 2] = 5.0
        B[t] = s[t % 2]


@T.prim_func
def one_statement_of_many_blocks(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(63, threads=64) as bx:
        A[0] = 5.0
        B[bx + 1] = A[0]


@T.prim_func
def one_statement_in_rounds(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=64):
        t = T.get_thread_binding()
        for k in T.serial(6):
            A[(k + t) % 3] = 1.0


@T.prim_func
def one_copy(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(4, threads=32):
        s = T.alloc_shared((63,), "float32")
        T.fill(s, 2.0)
        T.copy(s, A[0:63])


@T.prim_func
def two_statements(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        if t == 0:
            A[0] = 5.0
        if t == 40:
            A[0] = 5.0


@T.prim_func
def two_statements_in_shared_memory(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        s = T.alloc_shared((4,), "float32")
        if t < 40:
            s[0] = 5.0
        if t >= 40:
            s[0] = 5.0
        T.sync_threads()
        B[t] = s[0]


@T.prim_func
def two_statements_of_blocks(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(4, threads=32) as bx:
        if bx == 0:
            A[0] = 5.0
        else:
            A[0] = 5.0


@T.prim_func
def two_statements_of_iterations(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i // 2] = 1.0
            A[63 - i] = 1.0


@T.prim_func
def what_was_there_again(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        if t == 3:
            A[0] = 1.0
            A[0] = 2.0
        if t == 40:
            A[0] = 2.0


@T.prim_func
def other_values(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        A[t // 2] = T.cast(t, "float32")


@T.prim_func
def after_a_joint_store(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        A[0] = 5.0
        if t == 0:
            A[0] = 6.0


@T.prim_func
def a_reader_beside(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        if t < 40:
            A[0] = 5.0
        B[t] = A[0]


NO_BARRIERS = {tile.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True}


def run(kernel: Callable[..., None], target: str) -> list[np.ndarray]:
    arrays = [np.zeros(64, np.float32) for _ in range(2)]
    tile.compile(kernel, target=target, pass_configs=NO_BARRIERS)(*arrays)
    return arrays


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "kernel",
    [
        one_statement,
        one_statement_in_shared_memory,
        one_statement_of_many_blocks,
        one_statement_in_rounds,
        one_copy,
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_one_statement_stores_one_value(kernel, target):
    for found, expected in zip(run(kernel, target), run(kernel, "cpu"), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "kernel",
    [
        two_statements,
        two_statements_in_shared_memory,
        two_statements_of_blocks,
        two_statements_of_iterations,
        what_was_there_again,
        other_values,
        after_a_joint_store,
        a_reader_beside,
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_all_else_races(kernel, target):
    with pytest.raises(DataRace):
        run(kernel, target)
