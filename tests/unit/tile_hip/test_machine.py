"""AMD architectures: what the table promises, and its features against the assembler."""

from __future__ import annotations

import re

import pytest

from support.toolchain import clang_for
from tile_core.errors import TargetError
from tile_core.simt.resources import Resources
from tile_core.toolchains.subprocesses import run_program
from tile_hip.machine import ARCHITECTURES, machine


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_row(arch):
    found = machine(arch)
    assert (found.name, found.family, found.warp_size) == (arch, "hip", 64)
    assert found.registers == 512
    assert found.multiprocessor.shared_bytes == found.shared_bytes
    assert found.multiprocessor.threads == 4 * 8 * 64
    assert {"mfma_f16", "mfma_bf16", "mfma_f32", "mfma_f64", "counted_load"} <= found.features
    assert not found.features & {"async_copy", "mbarrier", "copy_engine", "load_matrix"}


def test_generations_differ():
    only = {
        "mfma_i8": {"gfx90a"},
        "mfma_xf32": {"gfx942"},
        "mfma_fp8_fnuz": {"gfx942"},
        "mfma_i8_wide": {"gfx942", "gfx950"},
        "atomic_bf16x2": {"gfx942", "gfx950"},
        "counted_load_16": {"gfx950"},
    }
    for feature, archs in only.items():
        assert {arch for arch in ARCHITECTURES if machine(arch).has(feature)} == archs
    assert machine("gfx950").shared_bytes == 160 * 1024


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gfx940", "did you mean 'hip:gfx950' or 'hip:gfx942' or 'hip:gfx90a'?"),
        ("mi300x", "use one of gfx90a, gfx942, gfx950"),
    ],
)
def test_an_unknown_architecture(name, told):
    with pytest.raises(TargetError) as caught:
        machine(name)
    assert caught.value.message == f"no AMD architecture that is known here is called {name!r}"
    assert caught.value.hint == told


@pytest.mark.parametrize(
    ("arch", "registers", "threads", "shared", "blocks", "limit"),
    [
        ("gfx90a", 64, 256, 0, 8, "threads"),  # 8 waves of each SIMD
        ("gfx90a", 65, 256, 0, 7, "registers"),  # in eights: 512 // 72
        ("gfx942", 128, 256, 0, 4, "registers"),
        ("gfx942", 129, 256, 0, 3, "registers"),
        ("gfx942", 264, 256, 0, 1, "registers"),  # products and sums of a large tile
        ("gfx942", 512, 256, 0, 1, "registers"),
        ("gfx942", 512, 512, 0, 0, "registers"),  # cannot run at all
        ("gfx942", 32, 256, 32 * 1024, 2, "shared memory"),
        ("gfx942", 32, 256, 21900, 2, "shared memory"),  # in units of 512 bytes
        ("gfx950", 32, 256, 64 * 1024, 2, "shared memory"),
        ("gfx90a", 32, 64, 0, 32, "threads"),
        ("gfx90a", 32, 100, 0, 16, "threads"),  # two waves
    ],
)
def test_occupancy(arch, registers, threads, shared, blocks, limit):
    """Waves as LLVM's ``GCNSubtarget`` counts them."""
    needs = Resources(name="k", registers=registers)
    found = needs.occupancy(machine(arch), threads, shared)
    assert (found.blocks, found.limit) == (blocks, limit)
    assert found.warps == blocks * -(-threads // 64)
    assert found.most_warps == 32


A16, A4, V2, V4 = "a[0:15]", "a[0:3]", "v[2:3]", "v[2:5]"
INSTRUCTIONS = {
    "mfma_f32": f"v_mfma_f32_32x32x2f32 {A16}, v2, v4, {A16}",
    "mfma_f16": f"v_mfma_f32_32x32x8f16 {A16}, {V2}, {V2}, {A16}",
    "mfma_bf16": f"v_mfma_f32_32x32x8bf16_1k {A16}, {V2}, {V2}, {A16}",
    "mfma_f64": f"v_mfma_f64_16x16x4f64 a[0:7], {V2}, {V2}, a[0:7]",
    "mfma_i8": f"v_mfma_i32_32x32x8i8 {A16}, v2, v3, {A16}",
    "mfma_i8_wide": f"v_mfma_i32_32x32x16_i8 {A16}, {V2}, {V2}, {A16}",
    "mfma_i8_wide2": f"v_mfma_i32_32x32x32_i8 {A16}, {V4}, {V4}, {A16}",
    "mfma_xf32": f"v_mfma_f32_32x32x4_xf32 {A16}, {V2}, {V2}, {A16}",
    "mfma_f16_wide": f"v_mfma_f32_32x32x16_f16 {A16}, {V4}, {V4}, {A16}",
    "mfma_bf16_wide": f"v_mfma_f32_32x32x16_bf16 {A16}, {V4}, {V4}, {A16}",
    "barriers_in_memory": "ds_add_rtn_u32 v1, v2, v3",  # and s_sleep
    "counted_load": "buffer_load_dword v1, s[8:11], 0 offen lds",
    "counted_load_16": "buffer_load_dwordx4 v1, s[8:11], 0 offen lds",
    "atomic_f32": "global_atomic_add_f32 v[0:1], v2, off",
    "atomic_f64": "global_atomic_add_f64 v[0:1], v[2:3], off",
    "atomic_f16x2": "global_atomic_pk_add_f16 v[0:1], v2, off",
    "atomic_bf16x2": "global_atomic_pk_add_bf16 v[0:1], v2, off",
    "f16_arithmetic": "v_pk_fma_f16 v0, v1, v2, v3",
    "dot4": "v_dot4_i32_i8 v0, v1, v2, v3",
    "bf16_convert": "v_cvt_pk_bf16_f32 v0, v1, v2",
    "fast_float64": f"v_fma_f64 {V2}, {V2}, {V2}, {V2}",
}
"""One instruction of each feature."""

BYTES = {
    "mfma_fp8": f"v_mfma_f32_32x32x16_fp8_fp8 {A16}, {V2}, {V2}, {A16}",
    "fp8_convert": "v_cvt_pk_f32_fp8 v[0:1], v2",
}
"""Instructions of two features: of the floats of one generation, and of those of the next."""


def test_every_feature_has_an_instruction():
    named = frozenset().union(*(row.features for row in ARCHITECTURES.values()))
    fnuz = {name.replace("fp8", "fp8_fnuz") for name in BYTES}
    assert named == {*INSTRUCTIONS, *BYTES, *fnuz}


def refused(instructions, arch, tmp_path):
    """Return the numbers of the instructions that the assembler does not take."""
    clang = clang_for(arch)
    text = tmp_path / "some.s"
    text.write_text("\n".join(instructions) + "\n")
    options = ("-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c", "some.s")
    done = run_program((*clang.command, *options, "-o", "some.o"), tmp_path)
    lines = re.findall(r"^some\.s:(\d+):\d+: error", done.stderr, re.MULTILINE)
    return {int(line) - 1 for line in lines}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_features_are_those_of_the_assembler(arch, tmp_path):
    """What the table promises assembles; what it denies is refused."""
    features = {name.replace("_fnuz", "") for name in machine(arch).features}
    instructions = INSTRUCTIONS | BYTES
    missing = {at for at, name in enumerate(instructions) if name not in features}
    assert refused(instructions.values(), arch, tmp_path) == missing
