"""Every product of a warpgroup, with operands placed element by element as the PTX manual has them.

Source: PTX ISA, "Asynchronous warpgroup level matrix instructions": register fragments, and the
canonical layouts of operands in shared memory for each swizzle.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tile_core.errors import InternalError, TileError
from tile_sim import checking
from tile_sim.sources import SourceKernel

CPP = {
    "float16": "half_t", "bfloat16": "bfloat16_t", "float32": "float", "int8": "tile::i8",
    "uint8": "tile::u8", "int32": "int", "float8_e4m3fn": "tile::e4m3",
    "float8_e5m2": "tile::e5m2",
}  # fmt: skip
ROWS, K_BYTES = 64, 32


def dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


@dataclass(frozen=True)
class Placing:
    """How an operand lies in shared memory; `leading` and `stride` are in bytes."""

    swizzle: int
    leading: int
    stride: int
    is_along_k: bool = True

    def offset(self, row: int, k: int, size: int) -> int:
        """Return the byte of the element in row (of M or N) `row` and of k `k`."""
        line, byte = (row, k * size) if self.is_along_k else (k, row * size)
        group, inside = divmod(line, 8)
        chunk, rest = divmod(byte, 16)
        if self.swizzle == 0:
            # Blocks of 8 lines of 16 bytes, one behind the other.
            along, across = self.leading, self.stride
            if not self.is_along_k:
                along, across = across, along
            return group * across + chunk * along + inside * 16 + rest
        in_row = self.swizzle // 16
        pattern = {128: inside, 64: inside // 2, 32: inside // 4}[self.swizzle]
        section, chunk = divmod(chunk, in_row)
        place = group * self.stride + inside * self.swizzle + (chunk ^ pattern) * 16 + rest
        return place if self.is_along_k else place + section * self.leading


def image(matrix: np.ndarray, placing: Placing) -> np.ndarray:
    """Return the bytes of shared memory that hold `matrix`, of rows by k."""
    size = matrix.itemsize
    raw = np.full(65536, 0xFF, np.uint8)
    for (row, k), value in np.ndenumerate(matrix):
        at = placing.offset(row, k, size)
        raw[at : at + size] = np.frombuffer(value.tobytes(), np.uint8)
    return raw


def a_register(size: int, lane: int, i: int) -> tuple[int, int]:
    """Return row and k of element `i` of the registers of a lane that holds A."""
    g, t = lane // 4, lane % 4
    if size == 2:
        return g + (8 if i in (2, 3, 6, 7) else 0), 2 * t + i % 2 + (8 if i >= 4 else 0)
    if size == 4:
        return g + (8 if i in (1, 3) else 0), t + (4 if i >= 2 else 0)
    return g + (8 if i // 4 in (1, 3) else 0), 4 * t + i % 4 + (16 if i >= 8 else 0)


def sums_by_thread(matrix: np.ndarray) -> np.ndarray:
    """Return the sums as the threads' registers hold them."""
    n = matrix.shape[1]
    out = np.empty((128, n // 2), matrix.dtype)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for j in range(n // 8):
            for h in range(2):
                for e in range(2):
                    row = 16 * warp + lane // 4 + 8 * h
                    out[thread, 4 * j + 2 * h + e] = matrix[row, 8 * j + lane % 4 * 2 + e]
    return out


def descriptor(place: Placing) -> str:
    """Return the function that describes an operand in shared memory."""
    return f"tile::wgmma_operand<{place.swizzle}, {place.leading}, {place.stride}>"


def first_factor(A: np.ndarray, place: Placing | None) -> tuple[np.ndarray, str, str]:
    """Return the bytes that are loaded, the form of the product, and the operand."""
    if place is not None:
        return image(A, place), "ss", f"{descriptor(place)}(a + 0, 0)"
    each = 16 // A.itemsize
    raw = np.empty((128, each), A.dtype)
    for thread in range(128):
        for i in range(each):
            row, at = a_register(A.itemsize, thread % 32, i)
            raw[thread, i] = A[thread // 32 * 16 + row, at]
    return raw.view(np.uint8).ravel(), "rs", "ra + 0"


def run_product(
    d: str, a: str, b: str, n: int, place_a: Placing | None, place_b: Placing, *, sets: bool = False
) -> None:
    """Multiply whole numbers, A from registers if it has no place, and compare every sum."""
    k = K_BYTES // dtype(a).itemsize
    rng = np.random.default_rng(n)
    low = 0 if "uint8" in (a, b) else -3
    A, B = rng.integers(low, 4, (ROWS, k)), rng.integers(low, 4, (n, k))
    C = rng.integers(-50, 50, (ROWS, n)).astype(dtype(d))
    a_size = dtype(a).itemsize
    given, form, first = first_factor(A.astype(dtype(a)), place_a)
    majors = [int(not p.is_along_k) for p in (place_a, place_b) if p is not None]
    call = (
        f"tile::wgmma_{form}{'_set' if sets else ''}<{', '.join(map(str, (n, *majors)))}>"
        f"(d + 0, {first}, {descriptor(place_b)}(b + 0, 0));"
    )
    text = f"""#include "tile.h"
TILE_KERNEL(128, 1) void product(tile::gptr<const tile::u8> A, tile::gptr<const tile::u8> B, tile::gptr<{CPP[d]}> C) {{
  const int tid = threadIdx.x;
  tile::sptr<{CPP[a]}> a = tile::smem<{CPP[a]}>(0, {65536 // a_size});
  tile::sptr<{CPP[b]}> b = tile::smem<{CPP[b]}>(65536, {65536 // dtype(b).itemsize});
  tile::frag<{CPP[a]}, {16 // a_size}> ra;
  tile::frag<tile::u8, 16> bytes;
  if ({int(place_a is None)}) {{
    tile::load<16>(tile::view<tile::u8>(ra), A + tid * 16);
  }} else {{
    for (int i = tid; i < 4096; i += 128) {{
      tile::load<16>(bytes, A + i * 16);
      tile::store<16>(tile::view<tile::u8>(a) + i * 16, bytes);
    }}
  }}
  for (int i = tid; i < 4096; i += 128) {{
    tile::load<16>(bytes, B + i * 16);
    tile::store<16>(tile::view<tile::u8>(b) + i * 16, bytes);
  }}
  tile::fence_proxy_async();
  tile::sync();
  tile::frag<{CPP[d]}, {n // 2}> d;
  for (int i = 0; i < {n // 2}; ++i) {{
    d[i] = C[tid * {n // 2} + i];
  }}
  tile::wgmma_fence();
  {call}
  tile::wgmma_commit();
  tile::wgmma_wait<0>();
  for (int i = 0; i < {n // 2}; ++i) {{
    C[tid * {n // 2} + i] = d[i];
  }}
}}
TILE_EXPORT(product)
"""  # noqa: E501
    sums = sums_by_thread(C)
    kernel = SourceKernel(text, "product", block=128, shared_bytes=131072)
    with checking("all"):
        kernel(1, A=given, B=image(B.astype(dtype(b)), place_b), C=sums)
    wanted = A @ B.T + (0 if sets else C.astype(np.int64))
    np.testing.assert_array_equal(sums, sums_by_thread(wanted.astype(dtype(d))))


def placings(swizzle: int, is_along_k: bool) -> Placing:
    """Return a way to lie without gaps in one direction and with gaps in the other."""
    if swizzle == 0:
        return Placing(0, 128, 384, is_along_k) if is_along_k else Placing(0, 4224, 128, False)
    if is_along_k:
        return Placing(swizzle, 16, 8 * swizzle, True)
    return Placing(swizzle, 4096, 16 * swizzle, False)


TYPES = [
    ("float32", "float16", "float16"), ("float16", "float16", "float16"),
    ("float32", "bfloat16", "bfloat16"), ("float32", "float32", "float32"),
    ("float32", "float8_e4m3fn", "float8_e4m3fn"), ("float16", "float8_e5m2", "float8_e4m3fn"),
    ("float32", "float8_e4m3fn", "float8_e5m2"), ("float32", "float8_e5m2", "float8_e5m2"),
    ("int32", "int8", "int8"), ("int32", "int8", "uint8"), ("int32", "uint8", "int8"),
    ("int32", "uint8", "uint8"),
]  # fmt: skip


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("types", TYPES, ids=lambda t: "-".join(t))
def test_operands_along_k(types, swizzle):
    place = placings(swizzle, True)
    run_product(*types, 32, place, place)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("types", TYPES, ids=lambda t: "-".join(t))
def test_a_in_registers(types):
    run_product(*types, 16, None, placings(128, True), sets=True)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize(("a_along", "b_along"), [(True, False), (False, True), (False, False)])
def test_operands_along_m_and_n(swizzle, a_along, b_along):
    a, b = placings(swizzle, a_along), placings(swizzle, b_along)
    run_product("float32", "float16", "float16", 128, a, b)


@pytest.mark.parametrize("n", [8, 24, 136, 256])
def test_numbers_of_columns(n):
    run_product("float32", "bfloat16", "bfloat16", n, placings(128, True), placings(64, True))
    run_product(
        "int32", "int8", "int8", 8 if n == 136 else n, placings(0, True), placings(32, True)
    )


def test_a_from_registers_and_b_along_n():
    run_product("float16", "float16", "float16", 64, None, placings(128, False))


@pytest.mark.parametrize(
    "types", [("float16", "bfloat16", "bfloat16"), ("float32", "float16", "bfloat16"),
              ("int32", "float16", "float16"), ("float32", "int8", "int8")],
)  # fmt: skip
def test_products_that_do_not_exist(types):
    with pytest.raises(InternalError, match="no wgmma of such element types"):
        run_product(*types, 16, placings(128, True), placings(128, True))


def test_products_of_too_few_threads():
    text = """#include "tile.h"
TILE_KERNEL(96, 1) void product() {
  tile::sptr<half_t> a = tile::smem<half_t>(0, 4096);
  tile::frag<float, 4> d;
  tile::wgmma_fence();
  tile::wgmma_ss_set<8, 0, 0>(d + 0, tile::wgmma_operand<128, 16, 1024>(a + 0, 0), tile::wgmma_operand<128, 16, 1024>(a + 0, 0));
}
TILE_EXPORT(product)
"""  # noqa: E501
    kernel = SourceKernel(text, "product", block=96, shared_bytes=8192)
    with pytest.raises(TileError, match="does not have 128 threads"):
        kernel(1)
