"""TL6507: a vector at an address that is no multiple of its size."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from tile_core.errors import MisalignedAccess
from tile_sim import checking
from tile_sim.sources import SourceKernel

TEXT = """\
#include "tile.h"
TILE_KERNEL(32, 1) void skewed(tile::gptr<const float> A, tile::gptr<float> B) {
  const int tid = threadIdx.x;
  tile::frag<float, 4> v;
  tile::load<4>(v + 0, A + (tid * 4));
  tile::store<4>(B + (tid * 4 + 1), v + 0);
}
TILE_EXPORT(skewed)
"""


def test_message(monkeypatch):
    entry = (len(TEXT), None, TEXT.splitlines(True), "skewed.cu")
    monkeypatch.setitem(linecache.cache, "skewed.cu", entry)
    run = SourceKernel(TEXT, "skewed", block=32, file="skewed.cu")
    with checking("all"), pytest.raises(MisalignedAccess) as caught:
        run(1, A=np.ones((16, 8), np.float32), B=np.zeros((16, 16), np.float32))
    assert (
        str(caught.value)
        == """\
[TL6507] thread 0 of block (0) writes 16 bytes at B[0, 1], which is no multiple of as many bytes
 --> skewed.cu:6:3
  |
6 |   tile::store<4>(B + (tid * 4 + 1), v + 0);
  |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: let vectors start at multiples of their length, or use shorter ones"""
    )
