"""Matrix instructions: every element of A, B, C and D is put in its place by a plain formula."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from support.assembler import complaints
from support.lanes import assembly
from tile_core.dtypes import dtype_of
from tile_sim import gfx9

BF16 = ml_dtypes.bfloat16
E4, E5 = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz

# Machine, mnemonic, rows and columns, depth, blocks, types of A and B.
FORMS = [
    ("gfx90a", "v_mfma_f32_32x32x8f16", 32, 8, 1, np.float16, np.float16),
    ("gfx90a", "v_mfma_f32_16x16x16f16", 16, 16, 1, np.float16, np.float16),
    ("gfx942", "v_mfma_f32_32x32x8_f16", 32, 8, 1, np.float16, np.float16),
    ("gfx942", "v_mfma_f32_16x16x16_f16", 16, 16, 1, np.float16, np.float16),
    ("gfx90a", "v_mfma_f32_32x32x8bf16_1k", 32, 8, 1, BF16, BF16),
    ("gfx90a", "v_mfma_f32_16x16x16bf16_1k", 16, 16, 1, BF16, BF16),
    ("gfx942", "v_mfma_f32_32x32x8_bf16", 32, 8, 1, BF16, BF16),
    ("gfx942", "v_mfma_f32_16x16x16_bf16", 16, 16, 1, BF16, BF16),
    ("gfx90a", "v_mfma_f32_32x32x4bf16", 32, 4, 1, BF16, BF16),
    ("gfx90a", "v_mfma_f32_16x16x8bf16", 16, 8, 1, BF16, BF16),
    ("gfx90a", "v_mfma_i32_32x32x8i8", 32, 8, 1, np.int8, np.int8),
    ("gfx90a", "v_mfma_i32_16x16x16i8", 16, 16, 1, np.int8, np.int8),
    ("gfx942", "v_mfma_i32_32x32x16_i8", 32, 16, 1, np.int8, np.int8),
    ("gfx942", "v_mfma_i32_16x16x32_i8", 16, 32, 1, np.int8, np.int8),
    ("gfx942", "v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 1, E4, E4),
    ("gfx942", "v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 1, E4, E5),
    ("gfx942", "v_mfma_f32_32x32x16_bf8_fp8", 32, 16, 1, E5, E4),
    ("gfx942", "v_mfma_f32_16x16x32_bf8_bf8", 16, 32, 1, E5, E5),
    ("gfx942", "v_mfma_f32_32x32x4_xf32", 32, 4, 1, np.float32, np.float32),
    ("gfx942", "v_mfma_f32_16x16x8_xf32", 16, 8, 1, np.float32, np.float32),
    ("gfx90a", "v_mfma_f32_32x32x2f32", 32, 2, 1, np.float32, np.float32),
    ("gfx942", "v_mfma_f32_16x16x4_f32", 16, 4, 1, np.float32, np.float32),
    ("gfx90a", "v_mfma_f32_32x32x1f32", 32, 1, 2, np.float32, np.float32),
    ("gfx942", "v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, np.float32, np.float32),
    ("gfx942", "v_mfma_f32_32x32x4_2b_f16", 32, 4, 2, np.float16, np.float16),
    ("gfx90a", "v_mfma_f32_4x4x4f16", 4, 4, 16, np.float16, np.float16),
    ("gfx90a", "v_mfma_f64_16x16x4f64", 16, 4, 1, np.float64, np.float64),
    ("gfx942", "v_mfma_f64_16x16x4_f64", 16, 4, 1, np.float64, np.float64),
    ("gfx950", "v_mfma_f32_32x32x16_f16", 32, 16, 1, np.float16, np.float16),
    ("gfx950", "v_mfma_f32_16x16x32_bf16", 16, 32, 1, BF16, BF16),
    ("gfx950", "v_mfma_i32_32x32x32_i8", 32, 32, 1, np.int8, np.int8),
    ("gfx950", "v_mfma_f32_16x16x32_fp8_fp8", 16, 32, 1,
     ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
]  # fmt: skip


def in_lanes(matrix: np.ndarray, size: int, blocks: int) -> np.ndarray:
    """Return the registers of A, or of B by columns: ``(registers, 64)`` words.

    `matrix` is ``(blocks, rows, depth)``.
    """
    depth = matrix.shape[2]
    held = size * depth * blocks // 64
    lanes = np.zeros((64, held), matrix.dtype)
    for lane in range(64):
        for element in range(held):
            if matrix.dtype == np.float64:
                block, row, k = 0, lane % 16, lane // 16
            else:
                per_block = 64 // blocks
                block, inside = lane // per_block, lane % per_block
                row, k = inside % size, held * (inside // size) + element
            lanes[lane, element] = matrix[block, row, k]
    raw = np.ascontiguousarray(lanes).view(np.uint8)
    return np.ascontiguousarray(raw.view(np.uint32).T)


def place_of(block: int, row: int, column: int, size: int) -> tuple[int, int]:
    """Return the register and the lane of an element of D."""
    if size == 32:
        return 16 * block + 4 * (row // 8) + row % 4, 32 * (row // 4 % 2) + column
    if size == 16:
        return 4 * block + row % 4, 16 * (row // 4) + column
    return row, 4 * block + column


def program(arch: str, name: str, inputs: int, outputs: int) -> str:
    """Return a kernel that multiplies what lies in its buffers."""
    lines = [
        "s_load_dwordx8 s[4:11], s[0:1], 0x0",
        "v_lshlrev_b32_e32 v0, 2, v0",
        "s_waitcnt lgkmcnt(0)",
    ]
    for i in range(inputs):
        lines.append(f"global_load_dword v{2 + i}, v0, s[4:5] offset:{256 * i}")
        lines.append(f"global_load_dword v{10 + i}, v0, s[6:7] offset:{256 * i}")
    for i in range(outputs):
        lines.append(f"v_add_u32_e32 v1, {256 * i:#x}, v0")
        lines.append(f"global_load_dword a{i}, v1, s[8:9]")
    d, a, b = f"a[0:{outputs - 1}]", f"v[2:{1 + inputs}]", f"v[10:{9 + inputs}]"
    if inputs == 1:
        a, b = "v2", "v10"
    lines += ["s_waitcnt vmcnt(0)", f"{name} {d}, {a}, {b}, {d}", "s_nop 7", "s_nop 7", "s_nop 7"]
    for i in range(outputs):
        lines.append(f"v_add_u32_e32 v1, {256 * i:#x}, v0")
        lines.append(f"global_store_dword v1, a{i}, s[10:11]")
    return assembly("\n".join(lines), buffers=4, arch=arch)


def small(rng: np.random.Generator, shape: tuple, dtype: type) -> np.ndarray:
    return rng.integers(-4, 5, shape).astype(np.float32).astype(dtype)


@pytest.mark.parametrize(
    ("arch", "name", "size", "depth", "blocks", "left", "right"),
    FORMS,
    ids=[f"{form[0]}-{form[1]}" for form in FORMS],
)
def test_forms(
    arch: str, name: str, size: int, depth: int, blocks: int, left: type, right: type
) -> None:
    rng = np.random.default_rng(size * depth)
    a = small(rng, (blocks, size, depth), left)
    b = small(rng, (blocks, size, depth), right)  # by columns
    is_double = left is np.float64
    kind = np.float64 if is_double else np.int32 if left is np.int8 else np.float32
    c = small(rng, (blocks, size, size), np.float32).astype(kind)
    registers = size * size * blocks // 64
    before, after = np.zeros((registers, 64), kind), np.zeros((registers, 64), kind)
    wide = np.int64 if left is np.int8 else np.float64
    product = np.einsum("bik,bjk->bij", a.astype(wide), b.astype(wide)) + c.astype(wide)
    for block in range(blocks):
        for row in range(size):
            for column in range(size):
                register, lane = place_of(block, row, column, size)
                if is_double:
                    register, lane = row // 4, 16 * (row % 4) + column
                before[register, lane] = c[block, row, column]
                after[register, lane] = product[block, row, column]
    words = registers * (2 if is_double else 1)
    raw_before = before
    if is_double:
        halves = np.ascontiguousarray(before).view(np.uint32).reshape(registers, 64, 2)
        raw_before = np.ascontiguousarray(halves.transpose(0, 2, 1))
    found = np.zeros((words, 64), np.uint32)
    given = in_lanes(a, size, blocks), in_lanes(b, size, blocks)
    text = program(arch, name, len(given[0]), words)
    gfx9.run(text, "f", grid=1, block=64, arguments=[*given, raw_before, found])
    if is_double:
        pairs = found.reshape(registers, 2, 64).transpose(0, 2, 1)
        found = np.ascontiguousarray(pairs).view(np.float64).reshape(registers, 64)
    np.testing.assert_array_equal(found.view(kind), after)


def test_factors_of_xf32_are_rounded_to_the_nearest_and_ties_to_even() -> None:
    size, depth = 16, 8
    numbers = 1 + np.arange(size, dtype=np.float32) * 2.0**-12  # a quarter of what xf32 tells apart
    a, b = np.zeros((2, 1, size, depth), np.float32)
    a[0, :, 0], b[0, :, 0] = numbers, 1
    before, found = np.zeros((2, size * size // 64, 64), np.float32)
    given = in_lanes(a, size, 1), in_lanes(b, size, 1)
    text = program("gfx942", "v_mfma_f32_16x16x8_xf32", len(given[0]), len(found))
    gfx9.run(text, "f", grid=1, block=64, arguments=[*given, before, found])
    rounded = np.rint(numbers.astype(np.float64) * 2**10) / 2**10  # NumPy's ties are even, too
    for row, number in enumerate(rounded):
        assert {found[place_of(0, row, column, size)] for column in range(size)} == {number}


@pytest.mark.parametrize(
    ("arch", "name", "dtype"),
    [
        ("gfx942", "fp8", "float8_e4m3fnuz"),
        ("gfx942", "bf8", "float8_e5m2fnuz"),
        ("gfx950", "fp8", "float8_e4m3fn"),
        ("gfx950", "bf8", "float8_e5m2"),
    ],
)
def test_bytes_stand_for_the_numbers_of_their_format(arch: str, name: str, dtype: str) -> None:
    from tile_sim.gfx9.fp8 import encode, format_of, values

    form, known = format_of(name, arch), dtype_of(dtype).numpy()
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(values(form), codes.view(known).astype(np.float32))
    rng = np.random.default_rng(3)
    finite = values(form)[np.isfinite(values(form))]
    numbers = np.concatenate(
        [finite, rng.uniform(-1, 1, 2000) * finite.max(), (finite[1:] + finite[:-1]) / 2]
    ).astype(np.float32)
    expected = numbers.astype(known)
    inside = ~np.isnan(expected.astype(np.float32)) & np.isfinite(expected.astype(np.float32))
    found = encode(numbers, form).astype(np.uint8)
    np.testing.assert_array_equal(found[inside], expected.view(np.uint8)[inside])


@pytest.mark.parametrize("machine", ["gfx90a", "gfx942"])
def test_assemblers_accept_the_forms(machine: str) -> None:
    texts = []
    for arch, name, size, depth, blocks, left, _ in FORMS:
        held = max(1, size * depth * blocks // 64 * np.dtype(left).itemsize // 4)
        held = 2 if left is np.float64 else held
        results = size * size * blocks // 64 * (2 if left is np.float64 else 1)
        factors = f"v[2:{1 + held}], v[10:{9 + held}]" if held > 1 else "v2, v10"
        if arch == machine:
            texts.append(f"{name} a[0:{results - 1}], {factors}, a[0:{results - 1}]")
    assert len(texts) > 8
    assert complaints(machine, texts) == []
