"""What the emulator's counters see of kernels for sm_80: no bank waits, no sector is wasted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support import gpu_kernels
from tile_sim import checking, last_report
from tile_sim.abi import Space
from tile_sim.call_report import Row, SimReport

TARGET = "cuda:sm_80@sim"
SOURCE = Path(gpu_kernels.__file__).read_text().splitlines()
WARP_OF_16_BYTES = 32 * 16


def whole(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


def counted(
    program: Any, *arguments: np.ndarray, target: str = TARGET
) -> tuple[np.ndarray, SimReport]:
    """Run a kernel with all checks; its output is poisoned and has the shape of its parameter."""
    kernel = tile.compile(program, target=target)
    shape = tuple(int(extent) for extent in program.kernel.params[-1].shape)
    output = np.full(shape, np.nan, np.float16)
    with checking("all,counters"):
        kernel(*arguments, output)
    report = last_report()
    assert report is not None
    return output, report


def multiplied(k: int, **options: Any) -> SimReport:
    """Return what a product of (256, k) and (k, 128) costs."""
    a, b = whole(256, k, seed=0), whole(k, 128, seed=1)
    c, report = counted(gpu_kernels.gemm(256, 128, k, **options), a, b)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    return report


def attended(*, causal: bool, target: str = TARGET) -> SimReport:
    """Return what two blocks of queries of two heads cost."""
    shape = (128, 2, 64)
    q, k, v = (whole(*shape, seed=seed) for seed in range(3))
    o, report = counted(gpu_kernels.attention(*shape, causal=causal), q, k, v, target=target)
    x, y, z = (t.astype(np.float32).transpose(1, 0, 2) for t in (q, k, v))
    scores = x @ y.transpose(0, 2, 1) / 8
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (weights / weights.sum(-1, keepdims=True)) @ z
    np.testing.assert_allclose(o.transpose(1, 0, 2), expected, rtol=2e-3, atol=2e-3)
    return report


def rows(report: SimReport, words: str, space: Space) -> Iterator[Row]:
    """Yield what the lines that contain `words` cost in one memory; there is at least one."""
    found = [
        row
        for row in report.rows
        if row.span is not None and words in SOURCE[row.span.line - 1] and row.space is space
    ]
    assert found
    yield from found


REPORTS = {
    "gemm": lambda: multiplied(160),
    "attention": lambda: attended(causal=False),
    "causal attention": lambda: attended(causal=True),
}


@cache
def report_of(name: str) -> SimReport:
    """Return what one of the kernels costs; it runs once."""
    return REPORTS[name]()


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", REPORTS)
def test_tiles_come_in_wide_and_whole_and_no_bank_is_asked_twice(name: str) -> None:
    report = report_of(name)
    assert report.conflicts == 0, str(report)
    for row in rows(report, "_shared)", Space.GLOBAL):
        assert not row.is_write
        assert row.bytes == row.requests * WARP_OF_16_BYTES, str(report)
        assert row.sectors == row.ideal_sectors, str(report)
    for row in rows(report, "_shared)", Space.SHARED):
        assert row.is_write
        assert row.bytes == row.requests * WARP_OF_16_BYTES, str(report)
        assert row.transactions == row.ideal_transactions == 4 * row.requests, str(report)
    for row in rows(report, "T.gemm(", Space.SHARED):  # ldmatrix.x4: 16 bytes a lane
        assert not row.is_write
        assert row.bytes == row.requests * WARP_OF_16_BYTES, str(report)
        assert row.transactions == row.ideal_transactions == 4 * row.requests, str(report)


@pytest.mark.parametrize("arch", ["sm_70", "sm_75"])
def test_tiles_come_in_wide_through_registers(arch: str) -> None:
    a, b = whole(256, 160, seed=0), whole(160, 128, seed=1)
    target = f"cuda:{arch}@sim"
    c, report = counted(gpu_kernels.gemm(256, 128, 160), a, b, target=target)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    for row in rows(report, "_shared)", Space.GLOBAL):
        assert not row.is_write
        assert row.bytes == row.requests * WARP_OF_16_BYTES, str(report)
        assert row.sectors == row.ideal_sectors, str(report)
    for row in rows(report, "_shared)", Space.SHARED):
        assert row.is_write
        assert row.bytes == row.requests * WARP_OF_16_BYTES, str(report)
        assert row.transactions == row.ideal_transactions, str(report)
    for row in rows(report, "T.gemm(", Space.SHARED):
        # Volta's threads read four halves for each instruction, whichever way B is stored.
        assert row.bytes == row.requests * (32 * 8 if arch == "sm_70" else WARP_OF_16_BYTES)
        assert row.transactions == row.ideal_transactions, str(report)


@pytest.mark.parametrize("name", REPORTS)
def test_results_leave_in_whole_rows(name: str) -> None:
    """Pairs of halves go into shared memory, 16 bytes a thread from there to the tensor."""
    report = report_of(name)
    line = "T.copy(C_local, C[" if name == "gemm" else "T.copy(acc, O["
    for row in rows(report, line, Space.GLOBAL):
        assert row.is_write
        assert row.bytes == row.requests * WARP_OF_16_BYTES, str(report)
        assert row.sectors == row.ideal_sectors, str(report)
    for row in rows(report, line, Space.SHARED):
        assert row.bytes == row.requests * 32 * (4 if row.is_write else 16), str(report)
        assert row.transactions == row.ideal_transactions, str(report)


def test_gemm_moves_no_byte_twice() -> None:
    report = multiplied(160)
    (a,) = rows(report, "T.copy(A[", Space.GLOBAL)
    (b,) = rows(report, "T.copy(B[", Space.GLOBAL)
    # Two blocks, five steps of 128 x 32 and 32 x 128 halves.
    assert (a.bytes, b.bytes) == (2 * 5 * 8192, 2 * 5 * 8192)
    (read,) = rows(report, "T.gemm(", Space.SHARED)
    # Each of four warps multiplies 64 x 64: it reads 64 x 32 of A and 32 x 64 of B.
    assert read.bytes == 2 * 5 * 4 * (64 * 32 + 32 * 64) * 2


def test_rows_in_order_are_counted_as_conflicts() -> None:
    """Eight rows of A that lie 64 bytes apart begin in two banks: four transactions each."""

    def in_order(a: Any, b: Any) -> dict[Any, Any]:
        return {tile: T.Layout(tile.shape, lambda i, j, n=tile.shape[1]: i * n + j)
                for tile in (a, b)}  # fmt: skip

    report = multiplied(96, layouts=in_order)
    (read,) = rows(report, "T.gemm(", Space.SHARED)
    # Half of the matrices are of A, with rows of 64 bytes; half of B, with rows of 256 bytes.
    assert read.transactions == read.ideal_transactions // 2 * 4 + read.ideal_transactions // 2 * 8
    assert report.conflicts == read.transactions - read.ideal_transactions
    for row in rows(report, "_shared)", Space.GLOBAL):
        assert row.sectors == row.ideal_sectors


def test_int4_codes_and_weights_are_moved_in_vectors() -> None:
    rng = np.random.default_rng(3)
    a, codes = whole(64, 128, seed=0), rng.integers(0, 256, (64, 64)).astype(np.uint8)
    scales = rng.choice(np.array([0.5, 1, 2], np.float16), (64, 4))
    c, report = counted(gpu_kernels.gemm_int4(64, 64, 128), a, codes, scales)
    numbers = np.stack([codes & 15, codes >> 4], -1).reshape(64, 128).astype(np.float32) - 8
    weights = numbers * scales.astype(np.float32).repeat(32, 1)
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ weights.T).astype(np.float16))
    (fetched,) = rows(report, "T.copy(codes[", Space.GLOBAL)
    (read,) = rows(report, "T.copy(codes_shared", Space.SHARED)
    (written,) = rows(report, "T.copy(W_local", Space.SHARED)
    assert fetched.bytes == fetched.requests * WARP_OF_16_BYTES
    assert read.bytes == read.requests * 32 * 4
    assert written.bytes == written.requests * WARP_OF_16_BYTES
    assert read.transactions == read.ideal_transactions
    assert written.transactions == written.ideal_transactions


def test_registers_of_one_product_reach_those_of_the_next_in_vectors() -> None:
    """Volta's sums and factors lie in different threads: they meet in padded shared memory."""
    report = attended(causal=True, target="cuda:sm_70@sim")
    write, read = sorted(
        rows(report, "T.copy(scores, weights)", Space.SHARED), key=lambda row: not row.is_write
    )
    assert write.bytes == write.requests * 32 * 4
    assert read.bytes == read.requests * WARP_OF_16_BYTES
    assert read.transactions == read.ideal_transactions, str(report)
    assert write.transactions <= 2 * write.ideal_transactions, str(report)
    for row in rows(report, "T.gemm(", Space.SHARED):
        assert row.transactions == row.ideal_transactions, str(report)
