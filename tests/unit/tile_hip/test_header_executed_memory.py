"""Products, atomics and counted copies of the device header, as the compiler made them."""

from __future__ import annotations

import numpy as np
import pytest

from support.hip_executed import THREADS, executed
from tile_hip.machine import machine

ARCHITECTURES = ("gfx90a", "gfx942", "gfx950")
WAVE = 64

SHAPES = {  # element type, feature, k of one instruction for D = 32 and D = 16
    ("half_t", "mfma_f16"): (8, 16), ("bfloat16_t", "mfma_bf16"): (8, 16),
    ("float", "mfma_f32"): (2, 4), ("tile::i8", "mfma_i8"): (8, 16),
    ("tile::i8", "mfma_i8_wide"): (16, 32), ("tile::i8", "mfma_i8_wide2"): (32, 64),
    ("float", "mfma_xf32"): (4, 8), ("half_t", "mfma_f16_wide"): (16, 32),
    ("bfloat16_t", "mfma_bf16_wide"): (16, 32), ("tile::e4m3_fnuz", "mfma_fp8_fnuz"): (16, 32),
    ("tile::e5m2", "mfma_fp8"): (16, 32),
}  # fmt: skip
NAMES = {"half_t": "H", "bfloat16_t": "B", "float": "F", "tile::i8": "S8",
         "tile::e4m3_fnuz": "N4", "tile::e5m2": "E5"}  # fmt: skip


def encoded(values: np.ndarray, kind: str) -> np.ndarray:
    """Return small integers as elements of a type."""
    if kind == "bfloat16_t":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if kind in ("tile::e4m3_fnuz", "tile::e5m2"):
        import ml_dtypes

        name = "float8_e4m3fnuz" if kind == "tile::e4m3_fnuz" else "float8_e5m2"
        return values.astype(getattr(ml_dtypes, name)).view(np.uint8)
    return values.astype({"half_t": np.float16, "float": np.float32, "tile::i8": np.int8}[kind])


CASES = [
    (arch, kind, feature, k, rows)
    for arch in ARCHITECTURES
    for (kind, feature), depths in SHAPES.items()
    for k, rows in zip(depths, (32, 16), strict=True)
    if machine(arch).has(feature)
]


@pytest.mark.in_turn(6)
@pytest.mark.parametrize(("arch", "kind", "feature", "k", "rows"), CASES)
def test_products_of_waves(arch, kind, feature, k, rows):
    pack, groups = 2, WAVE // rows
    depth, each = pack * k, pack * k // groups  # of all instructions; of one lane
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-3, 4, (rows, depth)) for _ in range(2))
    sums = rng.integers(-9, 10, (rows, rows))
    registers = rows * rows // WAVE
    lane, r, e = np.arange(WAVE)[:, None], np.arange(registers), np.arange(each)
    column = 8 * (r // 4) + 4 * (lane // 32) + r % 4 if rows == 32 else 4 * (lane // 16) + r
    at = (lane % rows, column)
    fragments = [x[lane % rows, each * (lane // rows) + e] for x in (a, b)]
    is_integer = kind == "tile::i8"
    total = "I" if is_integer else "D"
    factors = encoded(np.stack(fragments), kind)
    found = sums[at].astype(np.int32 if is_integer else np.float64)
    sum_type = "int" if is_integer else "float"
    p = NAMES[kind]
    body = f"""
      tile::frag<{kind}, {each}> a, b;
      tile::frag<{sum_type}, {registers}> c;
      TILE_UNROLL
      for (int i = 0; i < {each}; ++i) {{
        a[i] = {p}[tid * {each} + i];
        b[i] = {p}[{WAVE * each} + tid * {each} + i];
      }}
      TILE_UNROLL
      for (int i = 0; i < {registers}; ++i) c[i] = {total}[tid * {registers} + i];
      tile::mfma_{rows}x{rows}x{k}<{pack}>(c, a, b);
      TILE_UNROLL
      for (int i = 0; i < {registers}; ++i) {total}[tid * {registers} + i] = c[i];
    """
    arrays = {p: factors.reshape(-1), total: found}
    executed(arch, body, threads=WAVE, **arrays)
    np.testing.assert_array_equal(found, (sums + a @ b.T)[at])


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_products_of_float64(arch):
    rng = np.random.default_rng(1)
    a, b = rng.integers(-9, 10, (16, 4)), rng.integers(-9, 10, (16, 4))
    lane, r = np.arange(WAVE)[:, None], np.arange(4)
    at = (lane % 16, 4 * r + lane // 16)
    d = np.concatenate([
        a[lane % 16, lane // 16].ravel(), b[lane % 16, lane // 16].ravel(), np.zeros(256),
    ]).astype(np.float64)  # fmt: skip
    body = """
      tile::frag<double, 1> a, b;
      tile::frag<double, 4> c;
      a[0] = D[tid];
      b[0] = D[64 + tid];
      TILE_UNROLL
      for (int i = 0; i < 4; ++i) c[i] = 1.0;
      tile::mfma_16x16x4<1>(c, a, b);
      TILE_UNROLL
      for (int i = 0; i < 4; ++i) D[128 + tid * 4 + i] = c[i];
    """
    executed(arch, body, threads=WAVE, D=d)
    np.testing.assert_array_equal(d[128:].reshape(WAVE, 4), (1 + a @ b.T)[at])


ADDED = {"F": ("float", np.float32), "D": ("double", np.float64), "H": ("half_t", np.float16),
         "I": ("int", np.int32), "L": ("tile::i64", np.int64), "S8": ("tile::i8", np.int8),
         "U16": ("tile::u16", np.uint16)}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", ADDED)
def test_additions_of_many_threads_are_all_there(arch, name):
    """Neighbouring elements, so that parts of words are at stake; old values are all different."""
    kind, dtype = ADDED[name]
    memory, old = np.zeros(4, dtype), np.zeros(THREADS, np.int32)
    copies = np.zeros(4 + THREADS, np.float32)
    body = f"""
      tile::sptr<{kind}> S = tile::smem<{kind}>(0, 4);
      if (tid < 4) S[tid] = tile::cast<{kind}>(0.0f);
      tile::sync();
      const int seen = tile::cast<int>(tile::atomic_add({name} + (tid % 3), {kind}(1)));
      F2[4 + tid] = tile::cast<float>(tile::atomic_add(S + (tid % 3), {kind}(1)));
      tile::sync();
      I2[tid] = seen;
      if (tid < 4) F2[tid] = tile::cast<float>(S[tid]);
    """.replace("F2", "D" if name != "D" else "F").replace("I2", "U")
    arrays = {name: memory, "U": old, "D" if name != "D" else "F": copies}
    if name != "D":
        arrays["D"] = copies = copies.astype(np.float64)
    executed(arch, body, shared_bytes=64, seed=3, **arrays)
    counts = np.bincount(np.arange(THREADS) % 3, minlength=4)
    np.testing.assert_array_equal(memory, counts)
    np.testing.assert_array_equal(copies[:4], counts)
    for column in range(3):
        for seen in (old, copies[4:]):
            np.testing.assert_array_equal(np.sort(seen[column::3]), np.arange(counts[column]))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_pairs_of_sixteen_bits_are_added_at_once(arch):
    h, b = np.zeros(4, np.float16), np.zeros(4, np.uint16)
    body = """
      tile::sptr<half_t> S = tile::smem<half_t>(0, 4);
      tile::sptr<bfloat16_t> T = tile::smem<bfloat16_t>(8, 4);
      if (tid < 4) S[tid] = tile::cast<half_t>(0.0f);
      if (tid < 4) T[tid] = tile::cast<bfloat16_t>(0.0f);
      tile::sync();
      tile::frag<half_t, 2> x;
      tile::frag<bfloat16_t, 2> y;
      TILE_UNROLL
      for (int i = 0; i < 2; ++i) {
        x[i] = tile::cast<half_t>(i + 1);
        y[i] = tile::cast<bfloat16_t>(i - 2);
      }
      tile::atomic_add<2>(H + 2, x);
      tile::atomic_add<2>(B + 2, y);
      tile::atomic_add<2>(S + (0), x);
      tile::atomic_add<2>(T + (0), y);
      tile::sync();
      if (tid < 2) H[tid] = S[tid];
      if (tid < 2) B[tid] = T[tid];
    """
    executed(arch, body, shared_bytes=16, H=h, B=b)
    np.testing.assert_array_equal(h, [128, 256, 128, 256])
    values = (b.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(values, [-256, -128, -256, -128])


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_largest_smallest_and_bits(arch):
    rng = np.random.default_rng(7)
    x = rng.integers(-100, 100, THREADS).astype(np.int32)
    f = (x / 4).astype(np.float32)
    f[3] = np.nan
    i, u = np.array([-1000, 1000, 0, 77], np.int32), np.array([0, 2**32 - 1, 0], np.uint32)
    ends = np.array([-np.inf, np.inf], np.float32)
    body = """
      const int x = S16[tid];
      const float y = F[tid];
      tile::atomic_max(I + (0), x);
      tile::atomic_min(I + (1), x);
      tile::atomic_exchange(I + (2), x);
      tile::atomic_or(U + (0), tile::u32(x));
      tile::atomic_and(U + (1), tile::u32(x));
      tile::atomic_xor(U + (2), tile::u32(x));
      tile::atomic_max(F + (128), y);
      tile::atomic_min(F + (129), y);
      if (tid == 5) tile::atomic_store(I + (3), tile::atomic_load(I + (3)) + 1);
    """
    whole = np.concatenate([f, ends])
    executed(arch, body, S16=x.astype(np.int16), F=whole, I=i, U=u)
    assert i[0] == x.max()
    assert i[1] == x.min()
    assert i[2] in x
    assert i[3] == 78
    unsigned = x.view(np.uint32)
    folded = [op.reduce(unsigned) for op in (np.bitwise_or, np.bitwise_and, np.bitwise_xor)]
    assert list(u) == folded
    assert list(whole[THREADS:]) == [np.nanmax(f), np.nanmin(f)]


LOADS = [(arch, 4) for arch in ARCHITECTURES] + [("gfx950", 16)]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("arch", "size"), LOADS)
def test_copies_straight_to_shared_memory(arch, size, wide):
    """Each lane reads where it likes; zeros where it may not."""
    count = size // 2
    h = np.arange(4096, dtype=np.uint16).view(np.float16)
    found = np.full(THREADS * count, 0xFFFF, np.uint16)
    index = f"(tid * 7 % 128) * {count} + n"
    index = f"tile::i64({index})" if wide else index
    body = f"""
      tile::sptr<half_t> S = tile::smem<half_t>(256, {THREADS * count});
      const int wave = tile::uniform(tid >> 6);
      tile::lds_load<{size}>(S + (wave * {WAVE * count}), H, {index}, tid % 5 != 2);
      tile::lds_wait<0>();
      tile::sync();
      const int mine = tid * {count};
      for (int i = 0; i < {count}; ++i) U16[mine + i] = tile::view<tile::u16>(S)[mine + i];
    """
    executed(arch, body, 64, shared_bytes=256 + 2 * THREADS * count, H=h, U16=found)
    tid = np.arange(THREADS)
    first = (tid * 7 % 128) * count + 64
    expected = first[:, None] + np.arange(count)
    expected[tid % 5 == 2] = 0
    np.testing.assert_array_equal(found.reshape(THREADS, count), expected)
