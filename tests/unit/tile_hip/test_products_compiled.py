"""What compilers make of products: the loop's instructions, counted, and all of them, executed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.products import Product
from support.toolchain import amd_compiler_for
from tile_core.plugins.host import installed_plugins
from tile_core.testing.conformance.case import logical
from tile_core.testing.oracle import runner
from tile_hip.assembly import AssemblyCode, counts_of, kernels_of
from tile_hip.machine_code import compile_source

LARGE = Product("gfx942", 128, 128, 512, threads=256, transposes=(False, True), steps=16)
SMALL = Product("gfx942", 64, 64, 64, steps=2)
ONE_BYTE = replace(SMALL, factor="int8", total="int32", k=128)


def code_of(product: Product) -> AssemblyCode:
    """Return the instructions of a product's kernel."""
    amd_compiler_for(product.arch)
    compiled = compile_source(product.printed(), product.arch, (), warn=False)
    (code,) = kernels_of(compiled.assembly).values()
    (needs,) = compiled.resources.values()
    assert counts_of(code).scratch == 0
    assert needs.spill_stores == needs.spill_loads == 0
    return code


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_the_loop_of_a_product(arch: str) -> None:
    code = code_of(replace(LARGE, arch=arch))
    loop = code.main_loop()
    found = counts_of(loop)
    assert found.matrix_products == 128 * 128 * 32 // (4 * 32 * 32 * 8)  # of four waves
    assert found.wide_lds_reads == 2 * 64 * 32 * 2 // (64 * 16)  # each factor's bytes, once
    assert loop.count("ds_read") == found.wide_lds_reads
    assert found.lds_loads == (128 + 128) * 32 * 2 // (256 * 4)
    assert found.full_waits == 0
    assert code.count("v_accvgpr") == 0
    assert code.count("global_store_dwordx4") == 16  # the sums, four at a time


def test_what_lies_across_is_read_by_two_columns() -> None:
    loop = code_of(replace(LARGE, transposes=(False, False))).main_loop()
    assert counts_of(loop).matrix_products == 16
    single = loop.count("ds_read_b32")
    double = loop.count("ds_read2_b32") + loop.count("ds_read2st64_b32")
    assert single + 2 * double == 64 * 32 * 2 // (64 * 4)
    assert loop.count("ds_read_u16") == 0


def test_large_sums_have_registers_of_their_own_and_stay_there() -> None:
    code = code_of(replace(LARGE, m=256, n=256))
    loop = code.main_loop()
    assert counts_of(loop).matrix_products == 64
    writes, reads = (code.count(f"v_accvgpr_{way}") for way in ("write", "read"))
    if amd_compiler_for("gfx942").name.startswith("zig"):  # LLVM 22 keeps a few addresses there
        assert loop.count("v_accvgpr") == 5
        assert writes + code.count("v_accvgpr_mov") <= 256
        assert reads == 9
    else:
        assert loop.count("v_accvgpr") == 0
        assert (writes, reads) == (256, 0)  # the zeros; stores take sums from where they are


@pytest.mark.in_turn(5)
@pytest.mark.parametrize(
    "product",
    [
        SMALL,
        replace(SMALL, transposes=(True, False)),
        replace(SMALL, transposes=(False, True), scopes=("fragment", "shared")),
        ONE_BYTE,
        replace(ONE_BYTE, arch="gfx90a", transposes=(True, True)),
        replace(SMALL, factor="float64", total="float64", k=32),
        replace(SMALL, factor="float8_e4m3fnuz"),
        replace(SMALL, arch="gfx90a", factor="bfloat16", total="bfloat16"),
    ],
    ids=str,
)
def test_products_as_they_are_compiled(product: Product) -> None:
    amd_compiler_for(product.arch)
    a, b, c = product.arguments()
    runner(f"hip:{product.arch}@isa", installed_plugins())(product.kernel(), [a, b, c])
    got = logical(c, product.total, (product.m, product.n))
    np.testing.assert_array_equal(got.astype(np.float64), product.expected(a, b))
