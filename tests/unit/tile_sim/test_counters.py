"""What accesses cost, line by line."""

from __future__ import annotations

import pytest

from support import emulated
from support.emulated import line_of
from tile_sim import checking, last_report
from tile_sim.abi import Space


def unswizzled(text: str) -> str:
    return text.replace(" ^ (row & 7)", "").replace(" ^ (a_row & 7)", "").replace(
        " ^ (b_row & 7)", ""
    )  # fmt: skip


def rows(report, marker):
    line = line_of("gemm.cu", marker)
    return [row for row in report.rows if row.span is not None and row.span.line == line]


@pytest.mark.parametrize("schedule", ["forward", "random:3"])
def test_a_swizzled_product_has_no_conflicts(schedule):
    with checking("counters", schedule=schedule):
        report = emulated.GEMM.run()
    assert report.conflicts == 0
    assert report.extra_sectors == 0
    (load,) = rows(report, "load A")
    # 6 blocks, 3 rounds, 4 steps, 2 warps; each loads four matrices of 128 bytes.
    assert (load.space, load.is_write, load.requests) == (Space.SHARED, False, 6 * 3 * 4 * 2)
    assert (load.transactions, load.ideal_transactions, load.ratio) == (
        4 * load.requests,
        4 * load.requests,
        1,
    )


def test_rows_without_a_swizzle_conflict():
    with checking("all,counters"):
        report = emulated.GEMM.run(unswizzled)
    (load,) = rows(report, "load A")
    assert (
        load.transactions == 8 * load.ideal_transactions
    )  # eight rows of 128 bytes: all in the same banks
    assert report.conflicts >= 7 * load.ideal_transactions


def test_sectors_of_rows_that_are_read_whole_and_in_part():
    with checking("counters"):
        report = emulated.EXCHANGE.run()
    (read,) = [row for row in report.rows if row.space is Space.GLOBAL and not row.is_write]
    assert (read.bytes, read.sectors, read.ratio) == (200 * 4, 25, 1.0)


def test_the_table():
    with checking("counters"):
        emulated.GEMM.run()
    head, *lines = str(last_report()).splitlines()[1:]
    assert head.split() == [
        "line", "memory", "access", "requests", "bytes", "cost", "ideal", "ratio", "source"
    ]  # fmt: skip
    (load,) = [line for line in lines if line.endswith("// load A")]
    assert load.split()[:9] == [
        f"gemm.cu:{line_of('gemm.cu', 'load A')}", "shared", "read", "144", "73728", "576",
        "transactions", "576", "1.00",
    ]  # fmt: skip


def test_without_counters_there_are_no_rows():
    with checking("all"):
        report = emulated.GEMM.run()
    assert report.rows == ()
    assert "TILE_CHECK=all,counters" in str(report)
