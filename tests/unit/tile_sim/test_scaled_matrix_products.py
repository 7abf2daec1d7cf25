"""Products of a warp with scales for groups along K, lane by lane as the PTX manual has them.

PTX ISA, "Block scaling for mma.sync": which lanes give scales of which rows and columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile_core.errors import Deadlock, InternalError, UndefinedOperation, UninitialisedRead
from tile_sim.sources import SourceKernel
from unit.tile_sim.test_matrix_products import CPP, FORMS, _dealt, _nibbles

E8M0, E4M3 = "float8_e8m0fnu", "float8_e4m3fn"
WORDS = {E8M0: "tile::e8m0", E4M3: "tile::e4m3"}


@dataclass(frozen=True)
class Scaled:
    """A product: types of the operands and of scales, and which bytes of which lanes have these."""

    a: str
    b: str
    scales: str
    groups: int
    selected: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def form(self) -> str:
        """The shape, and how operands lie."""
        return "m16n8k64 of 4 bits" if "float4" in self.a else "m16n8k32 of 8 bits"


NVFP4 = Scaled("float4_e2m1fn", "float4_e2m1fn", E4M3, 4)
MXFP4 = Scaled("float4_e2m1fn", "float4_e2m1fn", E8M0, 2)
MXFP8 = Scaled("float8_e4m3fn", "float8_e4m3fn", E8M0, 1)
CASES = [
    *(replace(MXFP8, selected=(k, k % 2, 3 - k, k)) for k in range(4)),
    *(replace(MXFP8, a=a, b=b) for a in ("float8_e4m3fn", "float8_e5m2")
      for b in ("float8_e4m3fn", "float8_e5m2")),
    *(replace(MXFP4, selected=(k // 2 * 2, k % 2, 2 - k // 2 * 2, k)) for k in range(4)),
    *(replace(NVFP4, selected=(0, k % 2, 0, k)) for k in range(4)),
]  # fmt: skip


def source(case: Scaled, call: str, count: int) -> str:
    """Return a kernel in which lanes read `count` scales of each operand, and multiply."""
    types = ("tile::u8",) * 2 if "float4" in case.a else (CPP[case.a], CPP[case.b])
    rows = (("a", types[0], 16, "A"), ("b", types[1], 8, "B"), ("d", "float", 4, "D"))
    rows += (("p", WORDS[case.scales], count, "P"), ("q", WORDS[case.scales], count, "Q"))
    loads = "".join(
        f"""
  tile::frag<{t}, {max(n, 4)}> {x};
  for (int i = 0; i < {n}; ++i) {x}[i] = {y}[tid * {n} + i];"""
        for x, t, n, y in rows
    )
    scale = WORDS[case.scales]
    return f"""#include "tile.h"
TILE_KERNEL(32, 1) void product(tile::gptr<const {types[0]}> A, tile::gptr<const {types[1]}> B,
                                tile::gptr<const {scale}> P, tile::gptr<const {scale}> Q,
                                tile::gptr<float> D) {{
  const int tid = threadIdx.x;{loads}
  {call}
  for (int i = 0; i < 4; ++i) D[tid * 4 + i] = d[i];
}}
TILE_EXPORT(product)
"""


def call_of(case: Scaled, selected: tuple[object, ...]) -> str:
    shape = case.form.split()[0]
    return (
        f"tile::mma_scaled_{shape}(d, a + 0, b + 0, p + 0, q + 0, {', '.join(map(str, selected))});"
    )


def operands(case: Scaled, count: int = 4) -> tuple[dict[str, Any], np.ndarray]:
    """Return arguments, and the sums; scales that no lane shall read are NaN or large."""
    form, rng = FORMS[case.form], np.random.default_rng(5)
    a_byte, a_lane, b_byte, b_lane = case.selected
    few = [0.25, 0.5, 1, 2, 4] if case.scales == E8M0 else [0.25, 0.75, 1, 1.5, 3.5]
    numbers, factors, words = [], [], []
    for kind, rows, byte in ((case.a, 16, a_byte), (case.b, 8, b_byte)):
        x = (rng.integers(-4, 5, (rows, form.k)) / 2).astype(getattr(ml_dtypes, kind))
        s = rng.choice(few, (rows, case.groups)).astype(getattr(ml_dtypes, case.scales))
        word = np.full((32, 4), 240, np.float32).astype(s.dtype)
        for lane in range(32):
            g, of_four = lane >> 2, lane % 4
            row = {2 * a_lane: g, 2 * a_lane + 1: g + 8} if rows == 16 else {b_lane: g}
            if of_four in row:
                word[lane, byte : byte + case.groups] = s[row[of_four]]
        wide = x.astype(np.float64) * s.astype(np.float64).repeat(form.k // case.groups, axis=1)
        numbers, factors, words = [*numbers, x], [*factors, wide], [*words, word]
    sums = rng.integers(-4, 5, (16, 8)).astype(np.float32)
    packed = _nibbles if "float4" in case.a else lambda lanes: lanes
    views = [x.view(np.uint8) for x in numbers]
    dealt = [
        packed(_dealt(views[0], form.a, form.counts[0])),
        packed(_dealt(views[1].T, form.b, form.counts[1])),
    ]
    if "float4" not in case.a:
        dealt = [x.view(n.dtype) for x, n in zip(dealt, numbers, strict=True)]
    arguments = {
        "A": dealt[0], "B": dealt[1], "P": words[0][:, :count].copy(),
        "Q": words[1][:, :count].copy(), "D": _dealt(sums, form.d, 4),
    }  # fmt: skip
    return arguments, _dealt(sums + factors[0] @ factors[1].T, form.d, 4)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_groups_are_scaled(case: Scaled) -> None:
    arguments, expected = operands(case)
    SourceKernel(source(case, call_of(case, case.selected), 4), "product", block=32)(1, **arguments)
    np.testing.assert_array_equal(arguments["D"], expected.astype(np.float32))


@pytest.mark.parametrize(
    ("case", "moved"),
    [(case, k) for case in (MXFP8, MXFP4) for k in range(4)] + [(NVFP4, 1), (NVFP4, 3)],
    ids=str,
)
def test_another_selector_gives_other_sums(case: Scaled, moved: int) -> None:
    arguments, expected = operands(case)
    other = list(case.selected)
    other[moved] += case.groups if moved % 2 == 0 else 1
    SourceKernel(source(case, call_of(case, tuple(other)), 4), "product", block=32)(1, **arguments)
    assert not np.array_equal(arguments["D"], expected.astype(np.float32))


@pytest.mark.parametrize(
    ("case", "selected", "error", "words"),
    [
        (MXFP8, (4, 0, 0, 0), InternalError, "scales from byte 4"),
        (MXFP4, (1, 0, 0, 0), InternalError, "scales from byte 1"),
        (NVFP4, (0, 0, 2, 0), InternalError, "scales from byte 2"),
        (MXFP8, (0, 2, 0, 0), InternalError, "scales of lanes 2 and 0"),
        (MXFP8, (0, 0, 0, 4), InternalError, "scales of lanes 0 and 4"),
        (MXFP8, (0, "tid / 16", 0, 0), InternalError, "different products"),
        (MXFP8, (1, 0, 0, 0), UninitialisedRead, "nothing has written"),
    ],
    ids=lambda x: "" if isinstance(x, Scaled) else str(x),
)
def test_wrong_selectors_are_found(
    case: Scaled, selected: tuple[object, ...], error: type[Exception], words: str
) -> None:
    count = case.groups  # lanes know no more scales than that
    arguments, _ = operands(case, count)
    kernel = SourceKernel(source(case, call_of(case, selected), count), "product", block=32)
    with pytest.raises(error, match=words):
        kernel(1, **arguments)


def test_scales_have_no_sign() -> None:
    arguments, _ = operands(NVFP4)
    arguments["Q"][5] = -arguments["Q"][5]
    arguments["Q"][4] = -arguments["Q"][4]
    kernel = SourceKernel(source(NVFP4, call_of(NVFP4, (0, 0, 0, 0)), 4), "product", block=32)
    with pytest.raises(UndefinedOperation, match="a scale is negative"):
        kernel(1, **arguments)


def test_lanes_that_stay_away_are_found() -> None:
    arguments, _ = operands(MXFP8)
    call = f"if (tid != 7) {call_of(MXFP8, (0, 0, 0, 0))}"
    with pytest.raises(Deadlock):
        SourceKernel(source(MXFP8, call, 4), "product", block=32)(1, **arguments)
