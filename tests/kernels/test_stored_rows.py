"""How results of products reach tensors: whole sectors, 16 bytes a thread, no bank asked twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.dtypes import dtype_of
from tile_sim import checking, last_report
from tile_sim.abi import Space
from tile_sim.call_report import Row, SimReport

TARGET = "cuda:sm_80@sim"
STORE = "T.copy(sums, C["
SOURCE = Path(__file__).read_text().splitlines()
WARP_OF_16_BYTES = 32 * 16


def product(
    shape: tuple[int, int, int],
    block: tuple[int, int, int],
    out: str,
    factor: str = "float16",
    total: str = "float32",
) -> Any:
    """Return ``C = A @ B^T`` in tiles of `block`, with elements of type `out`."""
    m, n, k = shape
    rows, columns, depth = block

    @T.prim_func
    def product_of_rows(
        A: T.Tensor((m, k), factor), B: T.Tensor((n, k), factor), C: T.Tensor((m, n), out)
    ):
        with T.Kernel(T.ceildiv(n, columns), T.ceildiv(m, rows), threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), factor)
            b = T.alloc_shared((columns, depth), factor)
            sums = T.alloc_fragment((rows, columns), total)
            T.clear(sums)
            for ko in T.Pipelined(T.ceildiv(k, depth), num_stages=2):
                T.copy(A[by * rows, ko * depth], a)
                T.copy(B[bx * columns, ko * depth], b)
                T.gemm(a, b, sums, transpose_B=True)
            T.copy(sums, C[by * rows, bx * columns])

    return product_of_rows


def stored(
    shape: tuple[int, int, int],
    block: tuple[int, int, int],
    out: str,
    configs: Mapping[Any, Any] | None = None,
    **types: str,
) -> tuple[SimReport, Any]:
    """Multiply with all checks, compare with NumPy, and return what it cost and the kernel."""
    program = product(shape, block, out, **types)
    kernel = tile.compile(program, target=TARGET, pass_configs=configs)
    m, n, k = shape
    rng = np.random.default_rng(0)
    factor = dtype_of(types.get("factor", "float16")).numpy()
    a, b = (rng.integers(-2, 3, (extent, k)).astype(factor) for extent in (m, n))
    c = np.full((m, n), 99, dtype_of(out).numpy())
    with checking("all,counters"):
        kernel(a, b, c)
    expected = a.astype(np.int32) @ b.astype(np.int32).T
    np.testing.assert_array_equal(c.astype(np.int32), expected)
    report = last_report()
    assert report is not None
    return report, kernel


def rows(report: SimReport, space: Space, *, is_write: bool) -> Iterator[Row]:
    """Yield what the line that stores the result costs in one memory; there is at least one."""
    found = [
        row
        for row in report.rows
        if row.span is not None and STORE in SOURCE[row.span.line - 1]
        and row.space is space and row.is_write is is_write
    ]  # fmt: skip
    assert found
    yield from found


def check_whole_rows(report: SimReport, pair: int) -> None:
    """Check that all is as wide as it can be; pairs of `pair` bytes go into shared memory."""
    assert report.conflicts == 0, str(report)
    for row in rows(report, Space.GLOBAL, is_write=True):
        assert row.bytes == row.requests * WARP_OF_16_BYTES, str(report)
        assert row.sectors == row.ideal_sectors, str(report)
    for row in rows(report, Space.SHARED, is_write=False):
        assert row.bytes == row.requests * WARP_OF_16_BYTES, str(report)
        assert row.transactions == row.ideal_transactions, str(report)
    for row in rows(report, Space.SHARED, is_write=True):
        assert row.bytes == row.requests * 32 * pair, str(report)
        assert row.transactions == row.ideal_transactions, str(report)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    ("columns", "out"),
    [(16, "float16"), (32, "bfloat16"), (64, "float16"), (80, "bfloat16"), (96, "float16"),
     (112, "bfloat16"), (256, "float16")],
)  # fmt: skip
def test_rows_of_any_length_are_stored_whole(columns: int, out: str) -> None:
    report, _ = stored((64, 2 * columns, 64), (64, columns, 32), out)
    check_whole_rows(report, pair=4)


def test_bytes_are_stored_whole() -> None:
    """Pairs of bytes are all that the threads of a product have side by side."""
    report, _ = stored((128, 128, 32), (64, 64, 32), "int8", factor="int8", total="int32")
    check_whole_rows(report, pair=2)


def test_words_fill_sectors_from_where_they_are() -> None:
    report, kernel = stored((64, 128, 64), (64, 64, 32), "float32")
    for row in rows(report, Space.GLOBAL, is_write=True):
        assert row.bytes == row.requests * 32 * 8
        assert row.sectors == row.ideal_sectors
    assert "sums_rows" not in kernel.get_kernel_source()


def test_what_is_outside_stays_as_it_is() -> None:
    """Rows of 200 halves end in the middle of a tile, between two vectors."""
    report, _ = stored((100, 200, 72), (64, 64, 32), "float16")
    assert report.conflicts == 0, str(report)
    for row in rows(report, Space.GLOBAL, is_write=True):
        assert row.bytes == 100 * 200 * 2
        assert row.sectors <= 1.2 * row.ideal_sectors, str(report)


def test_rows_that_are_no_vectors_are_stored_element_by_element() -> None:
    """Neighbouring threads store neighbours: fewer sectors than from the threads of a product."""
    costs = []
    for is_closed in (False, True):
        configs = {tile.PassConfigKey.TL_DISABLE_STORE_STAGING: is_closed}
        report, _ = stored((65, 77, 33), (64, 64, 32), "float16", configs)
        (row,) = rows(report, Space.GLOBAL, is_write=True)
        assert row.bytes == 65 * 77 * 2
        costs.append(row.sectors)
    assert costs[0] <= 0.4 * costs[1]


@T.prim_func
def two_results(
    A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"),
    C: T.Tensor((2, 64, 64), "float16"), D: T.Tensor((64, 64), "bfloat16"),
):  # fmt: skip
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        sums = T.alloc_fragment((64, 64), "float32")
        positive = T.alloc_fragment((64, 64), "float16")
        T.copy(A, a)
        T.copy(B, b)
        for turn in T.serial(2):
            T.gemm(a, b, sums, clear_accum=True)
            for i, j in T.Parallel(64, 64):
                positive[i, j] = T.max(sums[i, j], 0) + turn
            T.copy(positive, C[turn, :, :])
        T.copy(sums, D)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_89"])
def test_results_of_a_loop_and_behind_it(arch: str) -> None:
    kernel = tile.compile(two_results, target=f"cuda:{arch}@sim")
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-2, 3, (64, 64)).astype(np.float16) for _ in range(2))
    c, d = np.full((2, 64, 64), np.nan, np.float16), np.zeros((64, 64), ml_dtypes.bfloat16)
    for schedule in ("forward", "random:1"):
        with checking(schedule=schedule):
            kernel(a, b, c, d)
        expected = a.astype(np.float32) @ b.astype(np.float32)
        np.testing.assert_array_equal(d, expected.astype(ml_dtypes.bfloat16))
        np.testing.assert_array_equal(c, np.stack([np.maximum(expected, 0) + t for t in (0, 1)]))
    source = kernel.get_kernel_source()
    assert "sums_rows" in source
    # In the loop the factors stay alive: with 24 KiB two blocks fit the 64 of a Turing machine.
    assert ("positive_rows" in source) is (arch != "sm_75")
    told = "\n".join(remark.message for remark in kernel.remarks())
    assert (
        "'positive' is stored from registers: with its rows in shared memory the block would need "
        "24576 bytes instead of 16384, and 2 of them could run at once instead of 4" in told
    ) is (arch == "sm_75")


@T.prim_func
def staged_by_hand(
    A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"),
    C: T.Tensor((64, 64), "float16"),
):  # fmt: skip
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_shared((64, 64), "float16")
        sums = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(sums)
        T.gemm(a, b, sums)
        T.copy(sums, c)
        T.copy(c, C)


def test_tiles_for_the_same_purpose_get_the_same_layout() -> None:
    kernel = tile.compile(staged_by_hand, target=TARGET)
    a, b = np.eye(64, dtype=np.float16), np.arange(64 * 64).reshape(64, 64) % 97
    c = np.full((64, 64), np.nan, np.float16)
    with checking("all,counters"):
        kernel(a, b.astype(np.float16), c)
    np.testing.assert_array_equal(c, b)
    report = last_report()
    assert report is not None
    assert report.conflicts == 0, str(report)
    assert "sums_rows" not in kernel.get_kernel_source()


def test_the_way_through_shared_memory_can_be_closed() -> None:
    program = product((64, 64, 64), (64, 64, 32), "float16")
    configs = {tile.PassConfigKey.TL_DISABLE_STORE_STAGING: True}
    source = tile.compile(program, target=TARGET, pass_configs=configs).get_kernel_source()
    assert "sums_rows" not in source
    assert "tile::store<2>(C + " in source


@T.prim_func
def crowded(
    A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 128), "float16"),
    C: T.Tensor((128, 128), "float16"), D: T.Tensor((128, 128), "float32"),
):  # fmt: skip
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((128, 128), "float16")
        b = T.alloc_shared((128, 128), "float16")
        more = T.alloc_shared((128, 128), "float32")
        sums = T.alloc_fragment((128, 128), "float32")
        by_columns = T.alloc_fragment((128, 128), "float16")
        T.annotate_layout({by_columns: T.Fragment((128, 128), lambda i, j: (j, i))})
        T.copy(A, a)
        T.copy(B, b)
        T.copy(D, more)
        T.gemm(a, b, sums, clear_accum=True)
        T.copy(sums, C)
        T.copy(sums, by_columns)
        for i, j in T.Parallel(128, 128):
            by_columns[i, j] += more[i, j]
        T.copy(by_columns, D)
        T.gemm(a, b, sums)
        T.copy(sums, D)


def test_what_threads_exchange_comes_first() -> None:
    """Tiles of 128 KiB and 32 for results fit into 163; with 34 for an exchange they do not."""
    kernel = tile.compile(crowded, target=TARGET)
    assert "sums_rows" not in kernel.get_kernel_source()
    assert kernel.remarks("missed", "stage_epilogues")[-1].message == (
        "results are stored from registers: what threads exchange does not fit into shared "
        "memory beside the rows"
    )
