"""Pipelines whose copies waves count, on the emulator: any number of rounds, stages and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.counted_kernels import WAIT, integers, poison, product, steady_waits
from tile_core.errors import MissingWait
from tile_sim import checking, last_report
from tile_sim.sources import SourceKernel

ARCHITECTURES = ("gfx90a", "gfx942")
SCHEDULES = ("forward", "random:5")


def compiled(kernel: Any, arch: str) -> Any:
    return tile.compile(kernel, target=f"hip:{arch}@sim")


def steady(kernel: Any) -> list[int]:
    return steady_waits(kernel.get_kernel_source())


def check_product(kernel: Any, m: int, n: int, k: int, dtype: str = "float16") -> None:
    a, b = integers(m, k, dtype=dtype), integers(n, k, dtype=dtype, seed=1)
    for schedule in SCHEDULES:
        c = poison(m, n)
        with checking(schedule=schedule):
            kernel(a, b, c)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_products_of_known_sizes(arch: str, stages: int, rounds: int) -> None:
    kernel = compiled(product(70, 90, rounds * 32, stages), arch)
    if rounds > stages:
        assert steady(kernel) == [16 * max(stages - 2, 1)]
    check_product(kernel, 70, 90, rounds * 32)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_products_of_sizes_that_calls_tell(stages: int) -> None:
    m, n, k = (T.dynamic(name) for name in ("m", "n", "k"))
    kernel = compiled(product(m, n, k * 2, stages), "gfx942")
    assert steady(kernel) == [16 * max(stages - 2, 1)]
    for size in (2, 34, 64, 130):
        check_product(kernel, 65, 3, size)


def test_no_rounds_at_all() -> None:
    m, n, k = (T.dynamic(name) for name in ("m", "n", "k"))
    kernel = compiled(product(m, n, k * 2, 3), "gfx942")
    c = poison(64, 64)
    kernel(np.zeros((64, 0), np.float16), np.zeros((64, 0), np.float16), c)
    assert (c == 0).all()


def test_words_of_one_element() -> None:
    kernel = compiled(product(70, 90, 135, 3, "float32"), "gfx942")
    assert steady(kernel) == [32]
    check_product(kernel, 70, 90, 135, "float32")


def test_elements_of_two_words() -> None:
    @T.prim_func
    def sums(A: T.Tensor((6, 40, 60), "float64"), C: T.Tensor((32, 64), "float64")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 64), "float64")
            total = T.alloc_fragment((32, 64), "float64")
            T.clear(total)
            for k in T.Pipelined(6, num_stages=3):
                T.copy(A[k, 0, 0], S)
                for i, j in T.Parallel(32, 64):
                    total[i, j] = total[i, j] + S[i, j]
            T.copy(total, C)

    kernel = compiled(sums, "gfx90a")
    text = kernel.get_kernel_source()
    assert steady_waits(text) == [32]
    assert text.count("tile::view<const tile::u32>(A)") == 1
    a = integers(6, 40, 60, dtype="float64")
    expected = np.zeros((32, 64))
    expected[:, :60] = a.sum(axis=0)[:32]
    for schedule in SCHEDULES:
        c = np.full((32, 64), np.nan)
        with checking(schedule=schedule):
            kernel(a, c)
        np.testing.assert_array_equal(c, expected)


def test_rows_that_begin_between_words_go_through_registers() -> None:
    kernel = compiled(product(70, 90, 99, 3), "gfx942")
    assert "lds_" not in kernel.get_kernel_source()
    assert any(
        "A_s: neighbours in the tensor are not known to begin at 4 bytes" in remark.message
        for remark in kernel.remarks()
    )
    check_product(kernel, 70, 90, 99)


def test_waves_without_words_in_the_last_round() -> None:
    @T.prim_func
    def sums(A: T.Tensor((8, 40, 32), "float16"), C: T.Tensor((40, 32), "float32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((40, 32), "float16")
            total = T.alloc_fragment((40, 32), "float32")
            T.clear(total)
            for k in T.Pipelined(8, num_stages=3):
                T.copy(A[k, 0, 0], S)
                for i, j in T.Parallel(40, 32):
                    total[i, j] = total[i, j] + S[i, j]
            T.copy(total, C)

    kernel = compiled(sums, "gfx942")
    assert "if (wave < 2)" in kernel.get_kernel_source()
    assert steady(kernel) == [2]  # of two waves 3 are in flight: they wait for one more
    a = integers(8, 40, 32)
    for schedule in SCHEDULES:
        c = poison(40, 32)
        with checking(schedule=schedule):
            kernel(a, c)
        np.testing.assert_array_equal(c, a.astype(np.float32).sum(axis=0))


def test_one_loop_behind_another_and_both_in_one() -> None:
    n, rounds = 3, 5

    @T.prim_func
    def sums(A: T.Tensor((n, rounds * 32, 64), "float16"), C: T.Tensor((n, 2, 32, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 64), "float16")
            total = T.alloc_fragment((32, 64), "float32")
            for tile in T.serial(n):
                T.clear(total)
                for k in T.Pipelined(rounds, num_stages=3):
                    T.copy(A[tile, k * 32, 0], S)
                    for i, j in T.Parallel(32, 64):
                        total[i, j] = total[i, j] + S[i, j]
                T.copy(total, C[tile, 0, 0, 0])
                for k in T.Pipelined(rounds - 3, num_stages=2):
                    T.copy(A[tile, k * 32, 0], S)
                    for i, j in T.Parallel(32, 64):
                        total[i, j] = total[i, j] - S[31 - i, j]
                T.copy(total, C[tile, 1, 0, 0])

    kernel = compiled(sums, "gfx90a")
    assert 0 not in steady(kernel)[:1]
    a = integers(n, rounds * 32, 64)
    parts = a.reshape(n, rounds, 32, 64).astype(np.float32)
    first = parts.sum(axis=1)
    second = first - parts[:, : rounds - 3, ::-1].sum(axis=1)
    for schedule in SCHEDULES:
        c = poison(n, 2, 32, 64)
        with checking(schedule=schedule):
            kernel(a, c)
        np.testing.assert_array_equal(c, np.stack([first, second], axis=1))


@pytest.mark.parametrize("stages", [2, 3])
def test_rounds_that_a_mask_leaves_out(stages: int) -> None:
    rounds = 6

    @T.prim_func
    def masked(
        A: T.Tensor((rounds, 32, 64), "float16"),
        M: T.Tensor((rounds,), "int32"),
        C: T.Tensor((32, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 64), "float16")
            total = T.alloc_fragment((32, 64), "float32")
            T.clear(total)
            for k in T.Pipelined(rounds, num_stages=stages):
                if M[k] > 0:
                    T.copy(A[k, 0, 0], S)
                    for i, j in T.Parallel(32, 64):
                        total[i, j] = total[i, j] + S[i, j]
            T.copy(total, C)

    kernel = compiled(masked, "gfx942")
    text = kernel.get_kernel_source()
    loop = text[text.index("for (int k = ") :]
    assert loop.index("lds_wait") < loop.index("lds_load")  # for all there are: before the next
    a, m = integers(rounds, 32, 64), np.array([1, 0, 1, 1, 0, 0], np.int32)
    expected = a[m > 0].astype(np.float32).sum(axis=0)
    for schedule in SCHEDULES:
        c = poison(32, 64)
        with checking(schedule=schedule):
            kernel(a, m, c)
        np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("place", range(3))
def test_one_copy_more_under_way_is_found(place: int) -> None:
    kernel = compiled(product(64, 64, 160, 3), "gfx942")
    text = kernel.get_kernel_source()
    at = list(WAIT.finditer(text))[place]
    changed = f"{text[: at.start(1)]}{int(at[1]) + 1}{text[at.end(1) :]}"
    arguments = {"A": integers(64, 160), "B": integers(64, 160), "C": poison(64, 64)}
    right = source_kernel(text)
    right((1, 1, 1), **arguments)
    with pytest.raises(MissingWait):
        source_kernel(changed)((1, 1, 1), **arguments)


def source_kernel(text: str) -> SourceKernel:
    return SourceKernel(text, "product", block=128, shared_bytes=65536, warp_size=64)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_users_may_send_all_copies_through_registers(arch: str) -> None:
    wish = {tile.PassConfigKey.HIP_LDS_LOAD: False}
    kernel = tile.compile(product(70, 90, 160, 3), target=f"hip:{arch}@sim", pass_configs=wish)
    text = kernel.get_kernel_source()
    assert "lds_" not in text
    assert "A_s_ahead" in text
    check_product(kernel, 70, 90, 160)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_neither_copies_nor_reads_meet_in_a_bank(arch: str) -> None:
    made = product(128, 128, 128, 3, block=(128, 128, 32), threads=256)
    kernel = compiled(made, arch)
    a, b, c = integers(128, 128), integers(128, 128, seed=1), poison(128, 128)
    with checking("counters"):
        kernel(a, b, c)
    report = last_report()
    assert report.conflicts == 0
    loads = [row for row in report.rows if row.sectors and not row.is_write]
    assert loads
    assert all(row.sectors == row.ideal_sectors for row in loads)
