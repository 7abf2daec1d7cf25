"""TL6509: an engine reads what threads have written without a fence."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from tile_core.errors import MissingFence
from tile_sim import checking
from tile_sim.sources import SourceKernel
from tile_sim.tensor_maps import Boxes

TEXT = """\
#include "tile.h"
TILE_KERNEL(32, 1) void row(TILE_TENSOR_MAP(A)) {
  const int tid = threadIdx.x;
  tile::sptr<float> s = tile::smem<float>(0, 32);
  s[tid] = float(tid);
  tile::sync();
  if (tile::elect()) {
    tile::tma_store<1>(A, s + 0, 0);
    tile::tma_store_commit();
    tile::tma_store_wait_read<0>();
  }
}
TILE_EXPORT(row)
"""


def test_message(monkeypatch):
    entry = (len(TEXT), None, TEXT.splitlines(True), "row.cu")
    monkeypatch.setitem(linecache.cache, "row.cu", entry)
    run = SourceKernel(TEXT, "row", block=32, shared_bytes=128, file="row.cu")
    with checking("all", schedule="forward"), pytest.raises(MissingFence) as caught:
        run(1, A=Boxes(np.zeros(32, np.float32), (32,)))
    assert (
        str(caught.value)
        == """\
[TL6509] the store of thread 0 of block (0) reads element 0 of s, which thread 0 wrote without \
fence_proxy_async behind it
 --> row.cu:8:5
  |
8 |     tile::tma_store<1>(A, s + 0, 0);
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
note: it is written here
 --> row.cu:5:3
  |
5 |   s[tid] = float(tid);
  |   ^^^^^^^^^^^^^^^^^^^^
note: s is declared here
 --> row.cu:4:21
  |
4 |   tile::sptr<float> s = tile::smem<float>(0, 32);
  |                     ^
note: this happened 32 times
hint: put a fence between accesses of threads and of the async proxy"""
    )
