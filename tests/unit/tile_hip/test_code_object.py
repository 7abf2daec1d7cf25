"""Code objects: what they say of kernels, and where functions are."""

from __future__ import annotations

import struct

import pytest

from support.toolchain import amd_compiler_for
from tile_core.errors import ToolchainError
from tile_core.simt.resources import Resources
from tile_core.toolchains.compiler import Output
from tile_hip.assembly import kernels_of
from tile_hip.code_object import functions_in, resources_in, resources_of, warnings_of

ARCHS = ("gfx90a", "gfx942", "gfx950")
TEXT = """
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(256, 256))) void
KERNEL products(const f16x4* a, f32x16* b, int n) {
  f32x16 sums[16] = {};
  int lane = __builtin_amdgcn_workitem_id_x();
  for (int k = 0; k < n; ++k) {
    f16x4 x = a[k * 64 + lane], y = a[k * 64 + 7 + lane];
#pragma unroll
    for (int i = 0; i < 16; ++i) sums[i] = __builtin_amdgcn_mfma_f32_32x32x8f16(x, y, sums[i], 0, 0, 0);
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) b[i * 64 + lane] = sums[i];
}
KERNEL copied(const float* a, float* b) {
  float own[64];
  int lane = __builtin_amdgcn_workitem_id_x();
  for (int i = 0; i < 64; ++i) own[(int)a[i] & 63] = a[i + lane];
  b[lane] = own[(int)a[lane] & 63];
}
"""  # noqa: E501


def built(arch: str) -> Output:
    output = amd_compiler_for(arch).build(TEXT, arch, ())
    assert output.is_accepted, output.log
    return output


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("arch", ARCHS)
def test_resources(arch):
    found = resources_in(built(arch).code)
    assert list(found) == ["products", "copied"]
    products = found["products"]
    assert 0 < products.matrix_registers <= 256
    assert 256 < products.registers <= 512
    assert (products.stack_bytes, products.spill_stores, products.spill_loads) == (0, 0, 0)
    assert 0 < products.scalar_registers < 102
    assert products.constant_bytes >= 20
    assert warnings_of(products) == ()
    assert found["copied"].stack_bytes >= 256
    assert found["copied"].matrix_registers == 0


@pytest.mark.parametrize("arch", ARCHS)
def test_functions_are_the_instructions_of_the_assembly(arch):
    output = built(arch)
    functions = functions_in(output.code)
    kernels = kernels_of(output.assembly)
    assert set(functions) == set(kernels) == {"products", "copied"}
    for name, (address, code) in functions.items():
        assert address % 256 == 0
        assert 4 * len(kernels[name]) <= len(code) <= 12 * len(kernels[name])
        assert struct.pack("<I", 0xBF810000) in code  # s_endpgm


def test_equal_texts_make_equal_code():
    assert built("gfx942") == built("gfx942")


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x01\x01", b"__CLANG_OFFLOAD_BUNDLE__"])
def test_what_is_no_code_object(data):
    for read in (resources_in, functions_in):
        with pytest.raises(ToolchainError, match="gave no code object"):
            read(data)


def test_spills_and_arrays_in_memory_are_told():
    table = {".name": "k", ".vgpr_count": 256, ".vgpr_spill_count": 5}
    spilled = resources_of(table | {".private_segment_fixed_size": 24})
    assert spilled == Resources(
        name="k", registers=256, stack_bytes=24, spill_stores=20, spill_loads=20
    )
    assert warnings_of(spilled) == (
        "kernel 'k' needs more than its 256 registers per thread: 20 bytes of each go to scratch "
        "memory and back; use smaller tiles or more threads",
    )
    kept = resources_of({".name": "k", ".private_segment_fixed_size": 64})
    assert warnings_of(kept) == (
        "kernel 'k' keeps 64 bytes of each thread in scratch memory: an array is indexed by a "
        "number that is not known when it is compiled",
    )
