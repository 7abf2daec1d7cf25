"""What boxes, operands of products and stores of matrices cost, line by line."""

from __future__ import annotations

from support import hopper_kernels
from support.emulated import line_of, replacing
from tile_sim import checking, last_report
from tile_sim.abi import Space

GEMM = hopper_kernels.GEMM
BLOCKS, TILES = 4, 7


def _rows(marker):
    line = line_of(GEMM.file, marker)
    return [r for r in last_report().rows if r.span is not None and r.span.line == line]


def test_boxes_are_counted():
    with checking("counters"):
        GEMM.run()
    (copy,) = _rows("copy A")
    assert (copy.space, copy.is_write, copy.requests) == (Space.BOXES, False, BLOCKS * TILES)
    # Both blocks of a column of C read all of A: 200 rows of 448 elements.
    assert copy.bytes == 2 * 200 * 448 * 2
    assert copy.sectors == copy.ideal_sectors == copy.bytes // 32
    (store,) = _rows("store")
    assert (store.space, store.is_write, store.requests) == (Space.BOXES, True, 2 * BLOCKS)
    assert store.bytes == 200 * 120 * 2


def test_operands_under_the_swizzle_have_no_conflicts():
    with checking("counters"):
        GEMM.run()
    (product,) = _rows("multiply")
    assert (product.space, product.requests) == (Space.OPERANDS, BLOCKS * TILES * 4 * 2)
    assert product.bytes == product.requests * (64 + 64) * 32
    assert product.transactions == product.ideal_transactions == product.bytes // 128
    (stage,) = _rows("stage")
    assert (stage.space, stage.is_write, stage.ratio) == (Space.SHARED, True, 1.0)
    assert last_report().conflicts == 0
    assert sum(launch.products for launch in last_report().launches) == product.requests


def test_matrices_stored_without_the_swizzle_conflict():
    change = replacing(
        "stage", "((j * 2 + (tid >> 4 & 1)) ^ (tid & 7))", "(j * 2 + (tid >> 4 & 1))"
    )
    with checking("counters"):
        try:
            GEMM.run(change)
        except AssertionError:  # the boxes are read as if there were a swizzle
            pass
        (stage,) = _rows("stage")
    assert (
        stage.transactions == 8 * stage.ideal_transactions
    )  # eight rows of 128 bytes: all in the same banks
