"""Every matrix product of a warp, with operands placed lane by lane as the PTX manual has them.

The positions are written out from the manual's tables ("Matrix fragments for mma.m16n8k16" and
so on), not derived from one rule as in the emulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tile_sim.sources import SourceKernel

Place = Callable[[int, int], tuple[int, int]]
"""From a lane and the number of one of its elements to the element's row and column."""

CPP = {
    "float16": "half_t", "bfloat16": "bfloat16_t", "float32": "float", "float64": "double",
    "int8": "tile::i8", "uint8": "tile::u8", "int32": "int",
    "float8_e4m3fn": "tile::e4m3", "float8_e5m2": "tile::e5m2",
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One shape for one width of elements: where the manual puts them, and how many."""

    m: int
    k: int
    a: Place
    b: Place
    d: Place
    counts: tuple[int, int, int]


def _g(lane: int) -> int:
    return lane >> 2


def _t(lane: int) -> int:
    return lane % 4


def _d16(lane: int, i: int) -> tuple[int, int]:
    return (_g(lane) if i < 2 else _g(lane) + 8), _t(lane) * 2 + (i & 1)


def _d8(lane: int, i: int) -> tuple[int, int]:
    return _g(lane), _t(lane) * 2 + i


FORMS = {
    "m16n8k16 of 16 bits": Form(
        16, 16,
        lambda n, i: (_g(n) if i in (0, 1, 4, 5) else _g(n) + 8,
                      _t(n) * 2 + (i & 1) + (0 if i < 4 else 8)),
        lambda n, i: (_t(n) * 2 + (i & 1) + (0 if i < 2 else 8), _g(n)), _d16, (8, 4, 4),
    ),
    "m16n8k8 of 16 bits": Form(
        16, 8,
        lambda n, i: (_g(n) if i in (0, 1) else _g(n) + 8, _t(n) * 2 + (i & 1)),
        lambda n, i: (_t(n) * 2 + i, _g(n)), _d16, (4, 2, 4),
    ),
    "m16n8k8 of 32 bits": Form(
        16, 8,
        lambda n, i: (_g(n) if i in (0, 2) else _g(n) + 8, _t(n) if i in (0, 1) else _t(n) + 4),
        lambda n, i: (_t(n) + 4 * i, _g(n)), _d16, (4, 2, 4),
    ),
    "m16n8k4 of 32 bits": Form(
        16, 4,
        lambda n, i: (_g(n) if i == 0 else _g(n) + 8, _t(n)),
        lambda n, i: (_t(n), _g(n)), _d16, (2, 1, 4),
    ),
    "m16n8k32 of 8 bits": Form(
        16, 32,
        lambda n, i: (_g(n) if i < 4 or 8 <= i < 12 else _g(n) + 8,
                      _t(n) * 4 + (i & 3) + (0 if i < 8 else 16)),
        lambda n, i: (_t(n) * 4 + (i & 3) + (0 if i < 4 else 16), _g(n)), _d16, (16, 8, 4),
    ),
    "m16n8k16 of 8 bits": Form(
        16, 16,
        lambda n, i: (_g(n) if i < 4 else _g(n) + 8, _t(n) * 4 + (i & 3)),
        lambda n, i: (_t(n) * 4 + i, _g(n)), _d16, (8, 4, 4),
    ),
    "m8n8k16 of 8 bits": Form(
        8, 16,
        lambda n, i: (_g(n), _t(n) * 4 + i), lambda n, i: (_t(n) * 4 + i, _g(n)), _d8, (4, 4, 2),
    ),
    "m16n8k64 of 4 bits": Form(
        16, 64,
        lambda n, i: (_g(n) if i < 8 or 16 <= i < 24 else _g(n) + 8,
                      _t(n) * 8 + (i & 7) + (0 if i < 16 else 32)),
        lambda n, i: (_t(n) * 8 + (i & 7) + (0 if i < 8 else 32), _g(n)), _d16, (32, 16, 4),
    ),
    "m8n8k32 of 4 bits": Form(
        8, 32,
        lambda n, i: (_g(n), _t(n) * 8 + i), lambda n, i: (_t(n) * 8 + i, _g(n)), _d8, (8, 8, 2),
    ),
    "m8n8k4 of 64 bits": Form(
        8, 4,
        lambda n, i: (n >> 2, n % 4), lambda n, i: (n % 4, n >> 2), _d8, (1, 1, 2),
    ),
}  # fmt: skip

CASES = [
    ("m16n8k16 of 16 bits", "float16", "float16", "float32"),
    ("m16n8k16 of 16 bits", "float16", "float16", "float16"),
    ("m16n8k16 of 16 bits", "bfloat16", "bfloat16", "float32"),
    ("m16n8k8 of 16 bits", "float16", "float16", "float32"),
    ("m16n8k8 of 16 bits", "float16", "float16", "float16"),
    ("m16n8k8 of 16 bits", "bfloat16", "bfloat16", "float32"),
    ("m16n8k8 of 32 bits", "float32", "float32", "float32"),
    ("m16n8k4 of 32 bits", "float32", "float32", "float32"),
    *(
        (form, a, b, "int32")
        for form in ("m16n8k32 of 8 bits", "m16n8k16 of 8 bits", "m8n8k16 of 8 bits")
        for a in ("int8", "uint8")
        for b in ("int8", "uint8")
    ),
    *(
        (form, a, b, d)
        for form in ("m16n8k32 of 8 bits", "m16n8k16 of 8 bits")
        for a in ("float8_e4m3fn", "float8_e5m2")
        for b in ("float8_e4m3fn", "float8_e5m2")
        for d in ("float32", "float16")
    ),
    ("m16n8k64 of 4 bits", "int8", "int8", "int32"),
    ("m16n8k64 of 4 bits", "uint8", "int8", "int32"),
    ("m16n8k64 of 4 bits", "uint8", "uint8", "int32"),
    ("m8n8k32 of 4 bits", "int8", "uint8", "int32"),
    ("m8n8k32 of 4 bits", "uint8", "int8", "int32"),
    ("m8n8k4 of 64 bits", "float64", "float64", "float64"),
]


def _numbers(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    low = 0 if dtype.startswith("u") else -4
    return rng.integers(low, 5, shape).astype(np.dtype(dtype))


def _dealt(matrix: np.ndarray, place: Place, count: int) -> np.ndarray:
    """Return what each of 32 lanes holds: lanes x elements."""
    return np.array(
        [[matrix[place(lane, i)] for i in range(count)] for lane in range(32)], matrix.dtype
    )


def _nibbles(lanes: np.ndarray) -> np.ndarray:
    """Return pairs of 4-bit numbers in bytes, the first in the low half."""
    low, high = lanes[:, 0::2].astype(np.uint8) & 15, lanes[:, 1::2].astype(np.uint8) & 15
    return (low | high << 4).view(lanes.dtype)


def _source(shape: str, types: tuple[str, str, str], counts: tuple[int, int, int]) -> str:
    a, b, d = (CPP[t] for t in types)
    loads = "".join(
        f"""
  tile::frag<{t}, {n}> {x};
  for (int i = 0; i < {n}; ++i) {{
    {x}[i] = {x.upper()}[tid * {n} + i];
  }}"""
        for x, t, n in zip("abd", (a, b, d), counts, strict=True)
    )
    return f"""#include "tile.h"
TILE_KERNEL(32, 1) void product(tile::gptr<const {a}> A, tile::gptr<const {b}> B,
                                tile::gptr<{d}> D) {{
  const int tid = threadIdx.x;{loads}
  tile::mma_{shape}(d, a + 0, b + 0);
  for (int i = 0; i < {counts[2]}; ++i) {{
    D[tid * {counts[2]} + i] = d[i];
  }}
}}
TILE_EXPORT(product)
"""


@pytest.mark.in_turn(6)
@pytest.mark.parametrize(("name", "a", "b", "d"), CASES)
def test_a_product_adds_to_the_sums(name: str, a: str, b: str, d: str) -> None:
    form, rng = FORMS[name], np.random.default_rng(3)
    left = _numbers(rng, (form.m, form.k), a)
    right = _numbers(rng, (form.k, 8), b)
    sums = _numbers(rng, (form.m, 8), d)
    wide = np.int64 if d == "int32" else np.float64
    expected = sums.astype(wide) + left.astype(wide) @ right.astype(wide)

    packed = _nibbles if "of 4 bits" in name else lambda lanes: lanes
    counts = form.counts
    arguments = {
        "A": packed(_dealt(left, form.a, counts[0])),
        "B": packed(_dealt(right, form.b, counts[1])),
        "D": _dealt(sums, form.d, counts[2]),
    }
    lanes = tuple(x.shape[1] for x in arguments.values())
    kernel = SourceKernel(_source(name.split()[0], (a, b, d), lanes), "product", block=32)
    kernel(1, **arguments)
    np.testing.assert_array_equal(
        arguments["D"].astype(wide), _dealt(expected, form.d, counts[2]).astype(wide)
    )


def _quad_lane(quad: int, member: int, upper: bool) -> int:
    return 4 * quad + member + (16 if upper else 0)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("orders", ["", "_row_row", "_col_col", "_col_row"])
@pytest.mark.parametrize("d", ["float32", "float16"])
def test_quad_pairs_compute_four_products(d: str, orders: str) -> None:
    """Volta's m8n8k4: lanes 4q to 4q+3 and 16 more have one product.

    PTX ISA, "mma.m8n8k4": a lane has k = 0-3 of one row of A, and of one column of B; stored the
    other way round, it has four rows, or columns, of one k: the upper lanes the last four.
    """
    a_order, b_order = (orders or "_row_col").split("_")[1:]
    rng = np.random.default_rng(4)
    left, right = _numbers(rng, (4, 8 * 4), "float16"), _numbers(rng, (4, 4 * 8), "float16")
    left, right = left.reshape(4, 8, 4), right.reshape(4, 4, 8)
    sums = _numbers(rng, (4, 64), d).reshape(4, 8, 8)
    expected = sums.astype(np.float64) + left.astype(np.float64) @ right.astype(np.float64)
    arguments = {
        "A": np.zeros((32, 4), np.float16),
        "B": np.zeros((32, 4), np.float16),
        "D": np.zeros((32, 8), d),
    }
    result = np.zeros((32, 8), d)
    for quad in range(4):
        for member in range(4):
            for upper in (False, True):
                lane = _quad_lane(quad, member, upper)
                row = member + (4 if upper else 0)
                four = slice(4, 8) if upper else slice(4)
                a_lane = left[quad, row] if a_order == "row" else left[quad, four, member]
                b_lane = right[quad, :, row] if b_order == "col" else right[quad, member, four]
                arguments["A"][lane], arguments["B"][lane] = a_lane, b_lane
                for i in range(8):
                    at = (row, i)
                    if d == "float32":
                        x = (lane & 1) + (i & 2)
                        at = (x + (4 if upper else 0), (i & 4) + (lane & 2) + (i & 1))
                    arguments["D"][lane, i] = sums[quad][at]
                    result[lane, i] = expected[quad][at]
    kernel = SourceKernel(
        _source(f"m8n8k4{orders}", ("float16", "float16", d), (4, 4, 8)), "product", block=32
    )
    kernel(1, **arguments)
    np.testing.assert_array_equal(arguments["D"], result)


def test_float32_operands_are_rounded_to_ten_bits() -> None:
    """Nearest, ties away from zero, as cvt.rna.tf32 does."""
    ones = np.ones((32, 1), np.float32)
    step = np.float32(2.0**-10)
    values = np.array([1 + step / 2, -1 - step / 2, 1 + step / 4, 1 + step * 3 / 4], np.float32)
    arguments = {
        "A": np.repeat(values, 8)[:, None] * np.ones((1, 2), np.float32) * np.array([1, 0]),
        "B": ones * (np.arange(32)[:, None] % 4 == 0),
        "D": np.zeros((32, 4), np.float32),
    }
    arguments = {name: array.astype(np.float32) for name, array in arguments.items()}
    # Row g of A is (values of lanes 4g to 4g+3); only k = 0 counts.
    kernel = SourceKernel(_source("m16n8k4", ("float32",) * 3, (2, 1, 4)), "product", block=32)
    kernel(1, **arguments)
    rounded = np.repeat(np.array([1 + step, -1 - step, 1, 1 + step], np.float32), 8)
    np.testing.assert_array_equal(arguments["D"][:, 0], rounded)


def test_a_product_that_no_machine_has_is_refused() -> None:
    text = _source("m16n8k16", ("float64", "float64", "float64"), (8, 4, 4))
    kernel = SourceKernel(text, "product", block=32)
    arrays = {name: np.zeros((32, n)) for name, n in zip("ABD", (8, 4, 4), strict=True)}
    with pytest.raises(Exception, match="no mma m16n8k16 of such element types"):
        kernel(1, **arrays)


def test_types_of_eight_bits_have_numbers_of_their_own() -> None:
    """Guards the reference: both types hold every number that the products use."""
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        np.testing.assert_array_equal(np.arange(-4, 5).astype(dtype).astype(int), np.arange(-4, 5))
