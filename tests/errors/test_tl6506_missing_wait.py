"""TL6506: reading what an asynchronous copy has not brought yet."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from tile_core.errors import MissingWait
from tile_sim import checking
from tile_sim.sources import SourceKernel

TEXT = """\
#include "tile.h"
TILE_KERNEL(32, 1) void early(tile::gptr<const float> A, tile::gptr<float> B) {
  const int tid = threadIdx.x;
  tile::sptr<float> s = tile::smem<float>(0, 32);
  tile::cp_async<4>(s + tid, A + tid, true);
  tile::cp_async_commit();
  B[tid] = s[tid];
}
TILE_EXPORT(early)
"""


def test_message(monkeypatch):
    entry = (len(TEXT), None, TEXT.splitlines(True), "early.cu")
    monkeypatch.setitem(linecache.cache, "early.cu", entry)
    run = SourceKernel(TEXT, "early", block=32, shared_bytes=128, file="early.cu")
    with checking("all"), pytest.raises(MissingWait) as caught:
        run(1, A=np.ones(32, np.float32), B=np.zeros(32, np.float32))
    assert (
        str(caught.value)
        == """\
[TL6506] thread 0 of block (0) reads element 0 of s, whose asynchronous copy was not waited for
 --> early.cu:7:3
  |
7 |   B[tid] = s[tid];
  |   ^^^^^^^^^^^^^^^^
note: the copy starts here
 --> early.cu:5:3
  |
5 |   tile::cp_async<4>(s + tid, A + tid, true);
  |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
note: s is declared here
 --> early.cu:4:21
  |
4 |   tile::sptr<float> s = tile::smem<float>(0, 32);
  |                     ^
note: this happened 32 times, in block (0) to threads 0-31
hint: wait for the copy first: T.ptx_wait_group(0), then T.sync_threads()"""
    )
