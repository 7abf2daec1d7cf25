"""The matrix instructions that kernels may name are those that the compiler takes."""

from __future__ import annotations

import pytest

from support.cuda_header import printed
from support.toolchain import nvrtc_for
from tile_core.codegen.types import cpp_type
from tile_core.dtypes import dtype_of
from tile_core.machine import MmaInstruction
from tile_cuda.atoms import all_atoms
from tile_cuda.compile_errors import parse_complaints
from tile_cuda.compiler import header_texts
from tile_cuda.machine import ARCHITECTURES, machine

ALL = frozenset(p for arch in ARCHITECTURES for p in machine(arch).mma_instructions)


def refused_lines(products: list[MmaInstruction], arch: str) -> set[int]:
    """Return the places in `products` of those that the compiler does not take."""
    compiler = nvrtc_for(arch)
    lines = []
    for p in products:
        a, b, c = (f"tile::frag<{cpp_type(dtype_of(t))}, 32> {n};" for n, t in
                   (("a", p.a), ("b", p.b), ("c", p.c)))  # fmt: skip
        lines.append(f"{{ {a} {b} {c} tile::mma_{p.shape}(c + 0, a + 0, b + 0); }}")
    options = (
        f"--gpu-architecture={arch.replace('sm', 'compute')}",
        *("--std=c++17", "-G", "--diag-suppress=177,549,550"),
        f"-I{compiler.toolkit.include}",
    )
    text = printed("\n".join(lines)).text
    first = text.split("\n").index(lines[0]) + 1
    output = compiler.compile(text, "kernel.cu", options, header_texts())
    complaints = parse_complaints(output.log)
    assert output.is_accepted is (not complaints), output.log
    return {complaint.line - first for complaint in complaints}


@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_89", "sm_90a"])
def test_the_compiler_takes_what_is_listed_and_nothing_else(arch):
    products = sorted((p for p in ALL if p.a != "tfloat32"), key=str)  # in C++ they are floats
    missing = {k for k, p in enumerate(products) if p not in machine(arch).mma_instructions}
    assert refused_lines(products, arch) == missing
    assert (arch in ("sm_89", "sm_90a")) is (not missing)


def test_all_that_matrix_products_choose_can_be_named():
    for atom in all_atoms():
        shape = atom.function.removeprefix("mma_").split("_")[0]
        a, b, c = (str(t).replace("int4", "int8") for t in (atom.a_dtype, atom.b_dtype,
                                                            atom.c_dtype))  # fmt: skip
        assert MmaInstruction(shape, a, b, c) in ALL, atom.name


def test_how_a_product_is_called():
    product = MmaInstruction("m16n8k16", "float16", "float16", "float32")
    assert str(product) == "m16n8k16 of float16 and float16 onto float32"
