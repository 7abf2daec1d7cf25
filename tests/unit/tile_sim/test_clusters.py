"""Blocks that run together: barriers, ranks, each other's memory, copies into it."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.errors import (
    BarrierMisuse,
    DataRace,
    Deadlock,
    InternalError,
    MissingWait,
    OutOfBounds,
    TileError,
)
from tile_sim import checking
from tile_sim.sources import SourceKernel
from tile_sim.tensor_maps import Boxes

SCHEDULES = ["forward", "reverse", "random:1", "random:2"]
MODES = ["late", "early", "random"]


def kernel(body: str, *, cluster: str = "4, 1, 1", threads: int = 64) -> SourceKernel:
    text = f"""#include "tile.h"
TILE_KERNEL({threads}, 1) TILE_CLUSTER({cluster}) void together(tile::gptr<const int> A, tile::gptr<int> O) {{
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
  const int rank = tile::cluster_rank();
  tile::sptr<int> s = tile::smem<int>(0, 64);
  tile::sptr<tile::u64> bar = tile::smem<tile::u64>(256, 2);
{body}
}}
TILE_EXPORT(together)
"""  # noqa: E501
    return SourceKernel(text, "together", block=threads, shared_bytes=272)


def run(body: str, grid=(8,), **options) -> np.ndarray:
    O = np.full(512, -1, np.int32)
    kernel(body, **options)(grid, A=np.arange(512, dtype=np.int32), O=O)
    return O


def test_ranks_count_along_x_first():
    body = "  if (tid == 0) O[(blockIdx.z * 2 + blockIdx.y) * 4 + bx] = rank;"
    out = run(body, (4, 2, 2), cluster="2, 2, 1")
    np.testing.assert_array_equal(out[:16], [0, 1, 0, 1, 2, 3, 2, 3] * 2)


def test_grids_are_made_of_whole_clusters():
    with pytest.raises(InternalError, match="no multiple of its clusters"):
        run("", (6,))
    with pytest.raises(InternalError, match="more than 16 blocks"):
        run("", (32,), cluster="32, 1, 1")


ROTATE = """
  s[tid] = bx * 64 + tid;
  tile::cluster_sync();
  O[bx * 64 + tid] = tile::remote(s + tid, (rank + 1) % 4)[0];
  tile::cluster_sync();"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_memory_of_other_blocks_is_read(schedule, threads):
    with checking("all", schedule=schedule, threads=threads):
        out = run(ROTATE).reshape(2, 4, 64)
        np.testing.assert_array_equal(out, np.roll(np.arange(512).reshape(2, 4, 64), -1, axis=1))
        other = ROTATE.replace(
            "remote(s + tid, (rank + 1) % 4)[0]",
            "at<int>(tile::remote(s + 0, (rank + 1) % 4))[tid]",
        )
        assert other != ROTATE
        np.testing.assert_array_equal(run(other).reshape(2, 4, 64), out)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_memory_of_other_blocks_is_written_and_updated(schedule):
    body = """
  s[tid] = 0;
  tile::cluster_sync();
  tile::atomic_add(tile::remote(s + 5, 0), 1);
  if (tid == 0) {
    tile::remote(s + 8, 3 - rank)[rank] = 100 + rank;
  }
  tile::cluster_arrive();
  tile::cluster_wait();
  if (tid < 16) {
    O[bx * 16 + tid] = s[tid];
  }"""
    with checking("all", schedule=schedule):
        out = run(body)[:64].reshape(4, 16)
    assert out[0, 5] == 256
    np.testing.assert_array_equal(out[[3, 2, 1, 0], [8, 9, 10, 11]], [100, 101, 102, 103])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ("tid;\n  tile::cluster_sync();", "tid;", (BarrierMisuse, DataRace, TileError)),
        (
            "tid;\n  tile::cluster_sync();",
            "tid;\n  tile::cluster_arrive_relaxed();  tile::cluster_wait();",
            (BarrierMisuse, DataRace),
        ),
        ("[0];\n  tile::cluster_sync();", "[0];", BarrierMisuse),
        ("s[tid] = bx", "tile::sync();  s[tid] = bx", None),
    ],
    ids=["no barrier first", "a barrier that orders nothing", "no barrier last", "right"],
)  # fmt: skip
def test_blocks_meet_before_and_after(before, after, error, schedule):
    assert before in ROTATE
    with checking("race", schedule=schedule):
        if error is None:
            run(ROTATE.replace(before, after))
        else:
            with pytest.raises(error):
                run(ROTATE.replace(before, after))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_blocks_that_arrive_without_releasing_have_begun(schedule):
    body = """
  tile::cluster_arrive_relaxed();
  tile::cluster_wait();
  tile::remote(s + tid, (rank + 1) % 4)[0] = bx * 64 + tid;
  tile::cluster_sync();
  O[bx * 64 + tid] = s[tid];"""
    with checking("all", schedule=schedule):
        out = run(body).reshape(2, 4, 64)
    np.testing.assert_array_equal(out, np.roll(np.arange(512).reshape(2, 4, 64), 1, axis=1))


def test_a_barrier_of_the_block_is_none_of_the_cluster():
    body = ROTATE.replace(
        "tile::cluster_sync();\n  O", "tile::cluster_sync();  s[tid] = 7;  tile::sync();\n  O"
    )
    with checking("race"), pytest.raises(DataRace) as caught:
        run(body)
    assert "of block" in str(caught.value)


SEND = """
  if (tid == 0) {
    tile::mbarrier_init(bar + 0, 1);
    tile::mbarrier_init(bar + 1, 4);
    tile::fence_mbarrier_init();
  }
  s[tid] = bx * 64 + tid;
  tile::fence_proxy_async();
  tile::cluster_sync();
  if (tid == 0) {
    tile::mbarrier_arrive_expect_tx(bar + 0, 128);
    tile::bulk_copy_remote(s + 32, (rank + 1) % 4, s + 0, 128, bar + 0);
    for (int other = 0; other < 4; ++other) {
      tile::mbarrier_arrive_remote(bar + 1, other);
    }
  }
  tile::mbarrier_wait(bar + 0, 0);
  tile::mbarrier_wait(bar + 1, 0);
  O[bx * 64 + tid] = s[tid];
  tile::cluster_sync();"""


@pytest.mark.parametrize("async_mode", MODES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_blocks_send_to_each_other(schedule, async_mode):
    with checking("all", schedule=schedule, async_mode=async_mode):
        out = run(SEND).reshape(2, 4, 64)
    sent = np.arange(512).reshape(2, 4, 64)
    np.testing.assert_array_equal(out[..., :32], sent[..., :32])
    np.testing.assert_array_equal(out[..., 32:], np.roll(sent[..., :32], 1, axis=1))


@pytest.mark.parametrize(
    ("before", "after", "error", "message"),
    [
        ("  tile::mbarrier_wait(bar + 0, 0);", "", (MissingWait, DataRace), "the copy"),
        ("  tile::fence_proxy_async();", "", TileError, "without fence_proxy_async"),
        ("expect_tx(bar + 0, 128)", "expect_tx(bar + 0, 256)", Deadlock, "lacks 0 of 1 .* and 128"),
        ("(rank + 1) % 4, s", "rank + 1, s", InternalError, "block 4 of a cluster of 4"),
        ("s + 32, (rank", "s + 36, (rank", OutOfBounds, "outside"),
        ("bar + 1, 4)", "bar + 1, 5)", Deadlock, r"bar\[1\]: phase 0 \(parity 0\) lacks 1 of 5"),
    ],
)  # fmt: skip
def test_what_goes_wrong_with_sending(before, after, error, message):
    assert before in SEND
    with checking("all"), pytest.raises(error, match=message):
        run(SEND.replace(before, after))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  tile::cluster_arrive();  tile::cluster_arrive();", "a second time without waiting"),
        ("  tile::cluster_wait();", "without having arrived"),
    ],
)
def test_misuse_of_the_barrier(body, message):
    with pytest.raises(BarrierMisuse, match=message):
        run(body)


def test_threads_that_have_exited_are_not_waited_for():
    body = """
  if (rank == 2) return;
  tile::cluster_arrive();
  if (rank == 1 && tid < 30) return;
  tile::cluster_wait();
  O[bx * 64 + tid] = 1;"""
    for schedule in SCHEDULES:
        with checking("all", schedule=schedule):
            out = run(body).reshape(2, 4, 64)
        np.testing.assert_array_equal((out == 1).sum(axis=(0, 2)), [128, 68, 0, 128])


def test_who_waits_for_the_cluster():
    with pytest.raises(Deadlock) as caught:
        run("  if (rank == 1 && tid < 40) tile::bar_sync(1, 64);\n  tile::cluster_sync();", (4,))
    text = str(caught.value)
    there = "wait at the cluster's barrier (216 threads have arrived)"
    assert f"block 0 of the cluster: threads 0-63 {there}" in text
    assert "block 1 of the cluster: threads 0-39 wait at barrier 1 (40 of 64 threads" in text
    assert f"block 1 of the cluster: threads 40-63 {there}" in text


def test_boxes_for_several_blocks():
    text = """#include "tile.h"
TILE_KERNEL(32, 1) TILE_CLUSTER(4, 1, 1) void share(TILE_TENSOR_MAP(A), tile::gptr<float> O) {
  const int tid = threadIdx.x;
  const int rank = tile::cluster_rank();
  tile::sptr<float> s = tile::smem<float>(0, 32);
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(128, 1);
  if (tid == 0) {
    s[31] = 5.0f;
    tile::fence_proxy_async();
    tile::mbarrier_init(full + 0, 1);
    tile::fence_mbarrier_init();
  }
  tile::cluster_sync();
  if (tid == 0 && rank != 2) {
    tile::mbarrier_arrive_expect_tx(full + 0, 128);
  }
  if (tid == 0 && rank == 1) {
    tile::tma_load_multicast<1>(s + 0, A, full + 0, 11, 32);
  }
  if (rank != 2) {
    tile::mbarrier_wait(full + 0, 0);
    O[rank * 32 + tid] = s[tid];
  }
  tile::cluster_sync();
}
TILE_EXPORT(share)
"""
    share = SourceKernel(text, "share", block=32, shared_bytes=136)
    A = np.arange(64, dtype=np.float32)
    for schedule in SCHEDULES:
        for mode in MODES:
            O = np.full((4, 32), -1, np.float32)
            with checking("all", schedule=schedule, async_mode=mode):
                share(4, A=Boxes(A, (32,)), O=O)
            np.testing.assert_array_equal(O[[0, 1, 3]], [A[32:]] * 3)
            assert (O[2] == -1).all()
