"""Barriers of some waves: blocks of AMD GPUs have none, so that they count in shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.hip_executed import executed
from tile_core.errors import OutOfScratch, UnsupportedOnTarget

TARGET = "hip:gfx942@sim"


def reversed_by(number: int | None, count: int | None) -> Any:
    @T.prim_func
    def main(X: T.Tensor((128,), "int32"), Y: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            tile_of = T.alloc_shared((128,), "int32")
            tile_of[tx] = X[tx]
            T.sync_threads(number, count)
            Y[tx] = tile_of[127 - tx]

    return main


@pytest.mark.parametrize(("number", "count"), [(None, None), (3, None), (2, 128)])
def test_a_numbered_barrier_of_all_threads_is_the_barrier(
    number: int | None, count: int | None
) -> None:
    x, y = np.arange(128, dtype=np.int32), np.full(128, -1, np.int32)
    compiled = tile.compile(reversed_by(number, count), target=TARGET)
    compiled(x, y)
    np.testing.assert_array_equal(y, x[::-1])
    assert "bar_sync" not in compiled.get_kernel_source()


@T.prim_func
def groups(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((2, 64, 64), "float32")):
    with T.Kernel(1, threads=256):
        first, second = T.alloc_shared((64, 64), "float32"), T.alloc_shared((64, 64), "float32")
        with T.ws(0):
            T.copy(X, first)
            for i, j in T.Parallel(64, 64):
                Y[0, i, j] = first[j, i]
        with T.ws(1):
            T.copy(X, second)
            for i, j in T.Parallel(64, 64):
                Y[1, i, j] = second[63 - j, i]


@T.prim_func
def rounds(X: T.Tensor((320,), "float32"), Y: T.Tensor((320,), "float32")):
    with T.Kernel(1, threads=320):
        t = T.get_thread_binding()
        s = T.alloc_shared((320,), "float32")
        for k in T.serial(3):
            if t < 128:
                s[t] = X[t] + k
                T.sync_threads(1, 128)
                Y[t] = s[127 - t]
                T.sync_threads(1, 128)
            else:
                s[t] = X[t] - k
                T.sync_threads(2, 192)
                Y[t] = s[447 - t]
                T.sync_threads(2, 192)


@T.prim_func
def one_number_for_all(X: T.Tensor((256,), "float32"), Y: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=256):
        t = T.get_thread_binding()
        s = T.alloc_shared((256,), "float32")
        s[t] = X[t]
        if t < 128:
            T.sync_threads(4, 128)
            Y[t] = s[127 - t]
        T.sync_threads()
        if t >= 64:
            s[t] = Y[t - 64] if t < 192 else 1.0
            T.sync_threads(4, 192)
            Y[t] = s[319 - t]


@T.prim_func
def handed_over(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=128):
        t = T.get_thread_binding()
        s = T.alloc_shared((64,), "float32")
        if t < 64:
            s[t] = X[t] + 1
            T.named_barrier_arrive(1, 128)
        else:
            T.sync_threads(1, 128)
            Y[t - 64] = s[127 - t]


TARGETS = ("interpret", "cpu", "cuda:sm_80@sim", TARGET, "hip:gfx942@isa", "hip:gfx90a@isa")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
def test_groups_of_warps_wait_apart(target: str) -> None:
    x, y = np.arange(4096, dtype=np.float32).reshape(64, 64), np.zeros((2, 64, 64), np.float32)
    tile.compile(groups, target=target)(x, y)
    np.testing.assert_array_equal(y, [x.T, x.T[:, ::-1]])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
def test_barriers_by_hand_in_loops(target: str) -> None:
    x, y = np.arange(320, dtype=np.float32), np.zeros(320, np.float32)
    tile.compile(rounds, target=target)(x, y)
    np.testing.assert_array_equal(y, [*(x[127::-1] + 2), *(x[:127:-1] - 2)])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
def test_a_number_serves_other_waves_later(target: str) -> None:
    x, y = np.arange(256, dtype=np.float32) + 2, np.zeros(256, np.float32)
    tile.compile(one_number_for_all, target=target)(x, y)
    s = np.concatenate([x[:64], x[127::-1], np.ones(64, np.float32)])
    np.testing.assert_array_equal(y, [*x[127:63:-1], *s[:63:-1]])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
def test_some_waves_arrive_and_go_on(target: str) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    tile.compile(handed_over, target=target)(x, y)
    np.testing.assert_array_equal(y, x[::-1] + 1)


def test_counters_are_part_of_what_a_block_needs() -> None:
    """64 KiB of tiles leave no room for them: that is told, with what takes it."""

    @T.prim_func
    def main(X: T.Tensor((128, 128), "float32"), Y: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=256):
            shared = T.alloc_shared((128, 128), "float32")
            with T.ws(0):
                T.copy(X, shared)
                for i, j in T.Parallel(128, 128):
                    Y[i, j] = shared[j, i]

    with pytest.raises(OutOfScratch, match="65664 bytes of shared memory"):
        tile.compile(main, target=TARGET)


def test_parts_of_waves_are_refused() -> None:
    with pytest.raises(UnsupportedOnTarget) as caught:
        tile.compile(reversed_by(1, 32), target=TARGET)
    assert (
        "32 threads cannot wait for each other on gfx942: a barrier counts whole warps of 64"
        in (str(caught.value))
    )


def test_ranges_that_cut_waves_are_refused() -> None:
    @T.prim_func
    def main(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            t = T.get_thread_binding()
            shared = T.alloc_shared((64, 64), "float32")
            if t >= 32 and t < 160:
                T.copy(X, shared)
                for i, j in T.Parallel(64, 64):
                    Y[i, j] = shared[j, i]

    with pytest.raises(UnsupportedOnTarget) as caught:
        tile.compile(main, target=TARGET)
    assert "128 threads from thread 32 on cannot wait for each other: a barrier counts" in (
        str(caught.value)
    )


BODY = """
  tile::sptr<tile::u32> words = tile::smem<tile::u32>(0, 32);
  tile::sptr<float> s = tile::smem<float>(128, 512);
  const int t = threadIdx.x;
  tile::bar_ready(words, 32);
  for (int k = 0; k < 3; ++k) {
    if (t < 64) {  // one wave fills, three empty
      if (k) tile::bar_sync_counted(words, 2, 256);
      for (int i = 0; i < 3; ++i) s[i * 64 + t] = F[i * 64 + t] + (float)k;
      tile::bar_arrive_counted(words, 1, 256);
    } else {
      tile::bar_sync_counted(words, 1, 256);
      F[t + 192 * k + 128] = s[255 - t];
      if (k < 2) tile::bar_arrive_counted(words, 2, 256);
    }
  }
"""


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_waves_meet_in_any_order(arch: str, seed: int | None) -> None:
    f = np.zeros(1024, np.float32)
    f[:192] = np.arange(192)
    executed(arch, BODY, threads=256, shared_bytes=4096, seed=seed, F=f)
    found = f[192 : 192 + 3 * 192].reshape(3, 192)
    np.testing.assert_array_equal(found, [np.arange(192)[::-1] + k for k in range(3)])
