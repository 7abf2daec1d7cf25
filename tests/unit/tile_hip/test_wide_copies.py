"""Copies of lanes that are far from each other: wherever in memory the tensor lies."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from support.toolchain import amd_compiler_for
from tile_sim.gfx9 import arena, run

TEXT = """\
#include "tile.h"
TILE_KERNEL(64, 1) void wide(tile::gptr<const int> A, tile::gptr<int> C, int n) {
  const int tid = threadIdx.x;
  tile::sptr<int> S = tile::smem<int>(0, 64);
  tile::lds_load<4>(S, A + 1, tile::i64(tid) * n - 1, tid != 7 && tid < 60);
  tile::lds_wait<0>();
  tile::sync();
  C[tid] = S[tid];
}
TILE_EXPORT(wide)
"""
COUNT = 64 * 50


@cache
def assembly(arch: str) -> str:
    made = amd_compiler_for(arch).build(TEXT, arch, ())
    assert made.is_accepted, made.log
    return made.assembly


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_lanes_on_both_sides_of_a_boundary(monkeypatch: pytest.MonkeyPatch, arch: str) -> None:
    boundary, rounds = 0x7000_8000_0000, set[int]()
    for before in range(0, 1 << 15, 3 << 10):  # so far in front of it memory begins
        monkeypatch.setattr(arena, "BASE", boundary - before)
        a, c = np.arange(1, COUNT + 1, dtype=np.int32), np.full(64, -1, np.int32)
        arguments = [a, c, COUNT // 64]
        report = run(
            assembly(arch), "wide", grid=1, block=64, arguments=arguments, shared_bytes=256
        )
        expected = a[:: COUNT // 64].copy()
        expected[[7, *range(60, 64)]] = 0
        np.testing.assert_array_equal(c, expected)
        copies = (n for name, n in report.counts.items() if name.startswith("buffer_load"))
        rounds.add(sum(copies))
    assert rounds == {1, 2}
