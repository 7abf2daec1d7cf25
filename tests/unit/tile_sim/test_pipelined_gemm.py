"""A matrix product as GPUs like it: asynchronous copies, swizzled tiles, matrix instructions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tile_sim import checking, last_report
from tile_sim.sources import SourceKernel

TEXT = (Path(__file__).parent / "kernels" / "gemm_f16.cu").read_text()


def _run(text: str, m: int, n: int, k: int) -> None:
    """Run the product on whole numbers, for which it is exact."""
    rng = np.random.default_rng(0)
    A = rng.integers(-3, 4, (m, k)).astype(np.float16)
    B = rng.integers(-3, 4, (k, n)).astype(np.float16)
    C = np.full((m, n), np.nan, np.float32)
    kernel = SourceKernel(text, "gemm", block=256, shared_bytes=49152)
    kernel((-(-n // 128), -(-m // 128)), A=A, B=B, C=C, M=m, N=n, K=k)
    np.testing.assert_array_equal(C, A.astype(np.float32) @ B.astype(np.float32))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("arrives", ["late", "early", "random"])
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:11"])
def test_whatever_runs_first_and_whenever_copies_arrive(arrives: str, schedule: str) -> None:
    with checking("all", schedule=schedule, async_mode=arrives):
        _run(TEXT, 136, 120, 72)


def test_several_host_threads_share_the_blocks() -> None:
    with checking("all", threads=3):
        _run(TEXT, 256, 384, 96)


def test_counters_see_the_swizzle() -> None:
    """Without it eight rows of a matrix lie in two, or in one, of the groups of banks."""
    with checking("counters"):
        _run(TEXT, 128, 128, 64)
        assert last_report().conflicts == 0
        assert last_report().extra_sectors == 0
        _run("#define PLAIN_LAYOUT\n" + TEXT, 128, 128, 64)
        rows = [row for row in last_report().rows if row.transactions > row.ideal_transactions]
    assert [row.transactions // row.ideal_transactions for row in rows] == [4, 8]
