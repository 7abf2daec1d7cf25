"""Kernels that would take the process with them, hang, or drown it in findings."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.errors import Deadlock, InternalError, TileError
from tile_sim import checking, last_report
from tile_sim.sources import SourceKernel


def _kernel(body: str, *, threads: int = 64, shared_bytes: int = 1024) -> SourceKernel:
    text = f"""#include "tile.h"
TILE_KERNEL({threads}, 1) void fault(tile::gptr<int> O) {{
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
{body}
}}
TILE_EXPORT(fault)
"""
    return SourceKernel(text, "fault", block=threads, shared_bytes=shared_bytes)


def _run(body: str, blocks: int = 1, **options: int) -> np.ndarray:
    output = np.full(4096, 5, np.int32)
    _kernel(body, **options)(blocks, O=output)
    return output


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  tile::raw(O)[1ll << 40] = 1;", "where there is no memory"),
        ("  O[tid] = 5 / (tid - 7);", r"TL6505\] an integer is divided by zero"),
        ("  tile::at<int>(tile::u64(64))[tid] = 1;", "where there is no memory"),
    ],
)
def test_a_wild_access_ends_the_block_only(body: str, message: str) -> None:
    with pytest.raises(TileError, match=message):
        _run(body, 3)
    assert (_run("  O[tid] = tid;")[:64] == np.arange(64)).all()


def test_a_full_stack_ends_the_block() -> None:
    """Thread by thread: pages below a stack belong to nobody."""
    body = """
  struct Deep {
    static int sum(int n, volatile int* above) {
      volatile int here[64];
      here[n % 64] = n + above[0];
      return n == 0 ? here[0] : sum(n - 1, here) + here[n % 64];
    }
  };
  volatile int first[1] = {0};
  O[tid] = Deep::sum(tid == 17 ? 100000 : 3, first);"""
    with pytest.raises(TileError, match="stack of 262144 bytes is full"):
        _run(body)


def test_a_frame_that_no_stack_holds_ends_the_block() -> None:
    """Of many pages, the farthest may be written first: it is in another thread's stack."""
    body = """
  volatile int here[1 << 17];
  here[(1 << 17) - 1 - tid] = tid;
  here[tid] = 1;
  O[tid] = here[(1 << 17) - 1 - tid] + here[tid];"""
    with pytest.raises(TileError, match="stack of 262144 bytes is full"):
        _run(body)


def test_frames_of_many_unrolled_statements_have_room() -> None:
    """Some 70 KiB are what a hundred sums in registers take, if nothing is optimised away."""
    body = """
  volatile int here[40000];
  here[39999 - tid] = tid;
  here[tid] = 1;
  O[tid] = here[39999 - tid] + here[tid];"""
    assert (_run(body)[:64] == np.arange(64) + 1).all()


def test_a_deadlock_tells_who_waits_where() -> None:
    body = """  if (tid == 3) {
    tile::bar_sync(1, 32);
  } else if (tid < 40) {
    O[tid] = tile::shfl_xor(tid, 1);
  } else {
    tile::sync();
  }"""
    with pytest.raises(Deadlock) as caught:
        _run(body)
    text = str(caught.value)
    assert "threads 40-63 wait at barrier 0 (24 of 64 threads have arrived)" in text
    assert "threads 0-2 4-39 wait in a shuffle for other lanes of their warps" in text
    assert "threads 3 wait at barrier 1 (1 of 32 threads have arrived)" in text


def test_a_kernel_that_polls_for_ever_is_given_up() -> None:
    with checking(time_limit=0.1), pytest.raises(Deadlock, match="still runs after 100 ms"):
        _run("  while (tile::atomic_load(O + 0) != 6) { }")


def test_a_flood_of_findings_ends() -> None:
    """Ten million findings say no more than the first hundred thousand."""
    with pytest.raises(TileError):
        _run("  for (int i = 0; i < 160000; ++i) { O[0] = tid; tile::shfl_xor(tid, 1); }")
    (finding,) = last_report().findings
    assert 100_000 < finding.count < 1_000_000


def test_barriers_that_no_block_has() -> None:
    for call in ("bar_sync(16, 64)", "bar_sync(1, 33)", "bar_arrive(1, 96)", "bar_sync(-1, 64)"):
        with pytest.raises(InternalError, match="barrier"):
            _run(f"  tile::{call};")


def test_shared_memory_that_the_launch_does_not_have() -> None:
    with pytest.raises(InternalError, match="launched with 256 bytes"):
        _run("  tile::sptr<int> s = tile::smem<int>(128, 64);\n  s[tid] = 1;", shared_bytes=256)


def test_threads_may_exit_at_any_time() -> None:
    body = """  tile::sptr<int> s = tile::smem<int>(0, 64);
  s[tid] = tid;
  if (tid >= 40) return;
  tile::sync();
  if (tid >= 16) return;
  tile::sync();
  O[tid] = s[63 - tid];"""
    for schedule in ("forward", "reverse", "random:9"):
        with checking("all", schedule=schedule):
            np.testing.assert_array_equal(_run(body)[:16], 63 - np.arange(16))


@pytest.mark.parametrize("threads", [1, 31, 33, 100, 1024])
def test_blocks_of_any_size(threads: int) -> None:
    body = """  tile::sptr<int> s = tile::smem<int>(0, 1024);
  s[tid] = tid;
  tile::sync();
  O[bx * 1024 + tid] = s[blockDim.x - 1 - tid] + tile::any(tid == 0);"""
    output = _run(body, 2, threads=threads, shared_bytes=4096)
    first = (np.arange(threads) < 32).astype(int)
    np.testing.assert_array_equal(output[:threads], np.arange(threads)[::-1] + first)
