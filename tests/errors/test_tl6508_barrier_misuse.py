"""TL6508: a copy brings more bytes than its barrier waits for."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from tile_core.errors import BarrierMisuse
from tile_sim import checking
from tile_sim.sources import SourceKernel
from tile_sim.tensor_maps import Boxes

TEXT = """\
#include "tile.h"
TILE_KERNEL(32, 1) void row(TILE_TENSOR_MAP(A)) {
  tile::sptr<float> s = tile::smem<float>(0, 64);
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(256, 2);
  if (tile::elect()) {
    tile::mbarrier_init(full + 1, 1);
    tile::fence_mbarrier_init();
    tile::mbarrier_arrive_expect_tx(full + 1, 128);
    tile::tma_load<1>(s + 0, A, full + 1, 0);
    tile::mbarrier_wait(full + 1, 0);
  }
}
TILE_EXPORT(row)
"""


def test_message(monkeypatch):
    entry = (len(TEXT), None, TEXT.splitlines(True), "row.cu")
    monkeypatch.setitem(linecache.cache, "row.cu", entry)
    run = SourceKernel(TEXT, "row", block=32, shared_bytes=272, file="row.cu")
    with checking("all", schedule="forward"), pytest.raises(BarrierMisuse) as caught:
        run(1, A=Boxes(np.ones(64, np.float32), (64,)))
    assert (
        str(caught.value)
        == """\
[TL6508] 128 bytes more than phase 0 of the mbarrier full[1] expects have been copied to it, \
the last at row.cu:9
 --> row.cu:9:5
  |
9 |     tile::tma_load<1>(s + 0, A, full + 1, 0);
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
note: full is declared here
 --> row.cu:4:25
  |
4 |   tile::sptr<tile::u64> full = tile::smem<tile::u64>(256, 2);
  |                         ^^^^
hint: count what arrives in each phase: threads, and bytes of copies"""
    )
