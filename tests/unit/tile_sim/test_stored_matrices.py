"""Matrices of 8 x 8 elements of 16 bits from registers to shared memory.

Source: PTX ISA, "stmatrix": lane 8i + r gives the address of row r of matrix i; of each matrix,
lane l holds the elements 2l and 2l + 1 counted along rows, or along columns (``.trans``).
"""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.errors import Deadlock, MisalignedAccess
from tile_sim import checking
from tile_sim.sources import SourceKernel


def kernel(count: int, suffix: str, row: str = "rows[tid]", lanes: int = 32) -> SourceKernel:
    text = f"""#include "tile.h"
TILE_KERNEL(32, 1) void matrices(tile::gptr<const tile::u16> V, tile::gptr<const int> R, tile::gptr<tile::u16> O) {{
  const int tid = threadIdx.x;
  tile::sptr<tile::u16> s = tile::smem<tile::u16>(0, 512);
  tile::frag<tile::u16, {2 * count}> r;
  tile::frag<int, 32> rows;
  for (int i = 0; i < 32; ++i) {{
    rows[i] = R[i];
  }}
  for (int i = 0; i < {2 * count}; ++i) {{
    r[i] = V[tid * {2 * count} + i];
  }}
  for (int i = tid; i < 512; i += 32) {{
    s[i] = tile::u16(0);
  }}
  tile::sync_warp();
  if (tid < {lanes}) {{
    tile::stmatrix_x{count}{suffix}(s + int({row}), r + 0);
  }}
  tile::sync_warp();
  for (int i = tid; i < 512; i += 32) {{
    O[i] = s[i];
  }}
}}
TILE_EXPORT(matrices)
"""  # noqa: E501
    return SourceKernel(text, "matrices", block=32, shared_bytes=1024)


def arguments(count: int) -> dict[str, np.ndarray]:
    """Return values, a place for each row in no particular order, and the output."""
    rng = np.random.default_rng(count)
    return {
        "V": rng.integers(1, 60000, (32, 2 * count)).astype(np.uint16),
        "R": (rng.permutation(64)[:32] * 8).astype(np.int32),
        "O": np.zeros(512, np.uint16),
    }


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", ["forward", "random:2"])
@pytest.mark.parametrize("suffix", ["", "_trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_element_has_its_place(count, suffix, schedule):
    given = arguments(count)
    expected = np.zeros(512, np.uint16)
    for matrix in range(count):
        for lane in range(32):
            for e in range(2):
                major, minor = divmod(2 * lane + e, 8)
                row, column = (minor, major) if suffix else (major, minor)
                place = given["R"][8 * matrix + row] + column
                expected[place] = given["V"][lane, 2 * matrix + e]
    with checking("all", schedule=schedule):
        kernel(count, suffix)(1, **given)
    np.testing.assert_array_equal(given["O"], expected)


def test_rows_are_aligned_and_all_lanes_take_part():
    with pytest.raises(MisalignedAccess, match="no multiple of"):
        kernel(1, "", "rows[tid] + 4")(1, **arguments(1))
    with pytest.raises(Deadlock, match="stmatrix"):
        kernel(1, "", lanes=31)(1, **arguments(1))
