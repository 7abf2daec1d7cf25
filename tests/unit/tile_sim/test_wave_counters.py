"""What accesses of waves cost: 64 lanes, the banks of LDS, requests of 64 bytes."""

from __future__ import annotations

import numpy as np
import pytest

from support.emulated import line_of, replacing
from support.wave_kernels import GEMM, gemm
from tile_sim import checking, last_report
from tile_sim.abi import Space
from tile_sim.call_report import Row
from tile_sim.sources import SourceKernel


def _rows(marker: str) -> dict[tuple[Space, bool], Row]:
    line = line_of("wave_gemm.cu", marker)
    rows = (row for row in last_report().rows if row.span is not None and row.span.line == line)
    return {(row.space, row.is_write): row for row in rows}


def test_a_swizzled_product_has_no_conflicts() -> None:
    """A wave reads 16 bytes a lane: eight transactions of 32 banks, with two rows in each."""
    with checking("counters"):
        report = gemm(128, 128, 64).run()
    assert report.conflicts == 0
    load = _rows("load A")[Space.SHARED, False]
    # 2 rounds, 2 steps, 2 blocks of 32 rows, 4 waves.
    assert load.requests == 2 * 2 * 2 * 4
    assert load.transactions == load.ideal_transactions == 8 * load.requests
    copy = _rows("copy A")
    # 2 rounds, 8 copies, 4 waves: 256 bytes each, of four rows.
    written, read = copy[Space.SHARED, True], copy[Space.GLOBAL, False]
    assert written.requests == read.requests == 2 * 8 * 4
    assert written.transactions == written.ideal_transactions == 2 * written.requests
    assert read.sectors == read.ideal_sectors == 4 * read.requests
    # Two lanes have 32 bytes of a row of sums side by side: half a sector.
    assert _rows("store")[Space.GLOBAL, True].ratio == 2


def test_rows_without_a_swizzle_conflict() -> None:
    """Eight lanes read eight rows of 64 bytes at one column: four of them in the same banks."""

    def plain(text: str) -> str:
        return text.replace(" ^ ((row >> 1) & 3)", "").replace(
            " ^ ((a_row >> 1) & 3)", ""
        ).replace(" ^ ((b_row >> 1) & 3)", "")  # fmt: skip

    with checking("all,counters"):
        GEMM.run(plain)
    load = _rows("load A")[Space.SHARED, False]
    assert load.transactions == 4 * load.ideal_transactions


def test_a_swizzle_of_stored_rows_alone_is_wrong() -> None:
    with checking("all"), pytest.raises(AssertionError, match="Arrays are not equal"):
        GEMM.run(replacing("load A", "a_chunk * 8", "(a_chunk ^ (a_row >> 1 & 3)) * 8"))


_READS = """#include "tile.h"
TILE_KERNEL(64, 1) void reads(tile::gptr<const float> A, tile::gptr<float> B) {
  const int tid = threadIdx.x;
  tile::sptr<float> s = tile::smem<float>(0, 4096);
  tile::frag<float, 4> r;
  for (int i = 0; i < 64; ++i) {
    s[i * 64 + tid] = 0.0f;
  }
  tile::sync();
  tile::load<WIDTH>(r + 0, s + (PLACE));  // shared
  tile::load<WIDTH>(r + 0, A + (PLACE));  // global
  B[tid] = r[0];
}
TILE_EXPORT(reads)
"""

CASES = [
    # width, place, banks, transactions, ideal, sectors, ideal
    (1, "tid", 32, 2, 2, 4, 4),
    (1, "tid", 64, 2, 2, 4, 4),
    (2, "tid * 2", 32, 4, 4, 8, 8),
    (4, "tid * 4", 32, 8, 8, 16, 16),
    (4, "tid * 4", 64, 8, 8, 16, 16),
    (1, "tid * 2", 32, 4, 2, 8, 4),  # every other bank
    (1, "tid * 32", 32, 64, 2, 64, 4),  # one bank
    (1, "tid * 32", 64, 32, 2, 64, 4),  # two of 64
    (1, "tid * 2", 64, 2, 2, 8, 4),
    (1, "tid ^ 32", 32, 2, 2, 4, 4),
    (1, "tid % 32", 32, 2, 2, 2, 2),  # halves read the same, each in its turn
    (1, "0", 32, 2, 2, 1, 1),
    (1, "tid + 8", 32, 2, 2, 5, 4),  # half a sector at each end
]


@pytest.mark.parametrize(
    ("width", "place", "banks", "transactions", "ideal", "moved", "least"), CASES
)
def test_turns_and_sectors_of_one_wave(
    width: int, place: str, banks: int, transactions: int, ideal: int, moved: int, least: int
) -> None:
    text = _READS.replace("WIDTH", str(width)).replace("PLACE", place)
    options = {"block": 64, "shared_bytes": 16384, "warp_size": 64, "banks": banks}
    kernel = SourceKernel(text, "reads", **options)
    with checking("counters"):
        kernel(1, A=np.zeros(4096, np.float32), B=np.zeros(64, np.float32))
    found = {}
    for row in last_report().rows:
        assert row.span is not None
        source = text.splitlines()[row.span.line - 1]
        if "tile::load" in source:
            found[row.space] = row
    assert (found[Space.SHARED].transactions, found[Space.SHARED].ideal_transactions) == (
        transactions,
        ideal,
    )
    assert (found[Space.GLOBAL].sectors, found[Space.GLOBAL].ideal_sectors) == (moved, least)
