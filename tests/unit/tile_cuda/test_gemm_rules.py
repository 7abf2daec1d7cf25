"""Which rule multiplies, what it says when it does not, and which layouts it asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.products import Product, lowered
from tile_core.codegen import print_program
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.node import walk
from tile_core.layout import Fragment, Layout, Swizzle, shared_operand, swizzled
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import select
from tile_core.simt.program import DeviceProgram
from tile_core.target import Target
from tile_core.testing import build_ir as ir
from tile_cuda.machine import machine
from tile_cuda.rules import all_rules
from tile_cuda.rules.gemm import gemm_rules, tf32_rules
from tile_cuda.rules.mma_unit import operand_layout, read_by_elements

HALF = Product("sm_80", 64, 64, 64)


def places(program: DeviceProgram) -> dict[str, Layout | Fragment]:
    return {tile.buffer.name: tile.layout for tile in program.layouts.report().tiles}


def rule_for(product: Product, *, tf32: bool = False) -> str:
    (op,) = (n for n in walk(product.kernel()) if isinstance(n, Gemm))
    rules = gemm_rules(machine(product.arch))
    if tf32:
        rules = (*rules, *tf32_rules(machine(product.arch)))
    return select(op, Target("cuda", product.arch), rules).name


@pytest.mark.parametrize(
    ("arch", "factor", "total", "name"),
    [
        ("sm_80", "float16", "float32", "cuda.gemm.mma"),
        ("sm_80", "int4", "int32", "cuda.gemm.mma"),
        ("sm_80", "float32", "float32", "cuda.gemm.fma"),
        ("sm_80", "tfloat32", "float32", "cuda.gemm.mma"),
        ("sm_75", "tfloat32", "float32", "cuda.gemm.fma"),
        ("sm_75", "bfloat16", "float32", "cuda.gemm.fma"),
        ("sm_70", "int8", "int32", "cuda.gemm.fma"),
        ("sm_70", "float16", "float16", "cuda.gemm.mma"),
        ("sm_90", "float8_e4m3fn", "float32", "cuda.gemm.mma"),
        ("sm_90a", "float8_e4m3fn", "float32", "cuda.gemm.mma"),
        ("sm_90a", "float16", "float32", "cuda.gemm.wgmma"),
        ("sm_90a", "float16", "float16", "cuda.gemm.wgmma"),
    ],
)
def test_the_rule_that_multiplies(arch: str, factor: str, total: str, name: str) -> None:
    assert rule_for(replace(HALF, arch=arch, factor=factor, total=total)) == name


def test_float32_is_rounded_only_where_that_is_allowed() -> None:
    product = replace(HALF, factor="float32")
    assert "mma" not in product.printed().text
    assert rule_for(product) == "cuda.gemm.fma"
    assert rule_for(product, tf32=True) == "cuda.gemm.mma_tf32"
    assert rule_for(HALF, tf32=True) == "cuda.gemm.mma"
    assert rule_for(replace(product, arch="sm_75"), tf32=True) == "cuda.gemm.fma"
    assert rule_for(replace(product, arch="sm_90a"), tf32=True) == "cuda.gemm.mma_tf32"
    along_k = replace(product, arch="sm_90a", transposes=(False, True))
    assert rule_for(along_k, tf32=True) == "cuda.gemm.wgmma_tf32"
    assert rule_for(along_k) == "cuda.gemm.fma"


def test_refusals_say_what_is_in_the_way() -> None:
    a, b = ir.tensor("A", (16, 16), "float16"), ir.shared("B", (16, 16), "float16")
    mine, c = ir.local("mine", (16, 16), "float16"), ir.fragment("C", (16, 16))
    rules = all_rules(machine("sm_80"))
    with pytest.raises(UnsupportedOnTarget) as caught:
        select(ir.gemm(a, b, c), Target("cuda", "sm_80"), rules)
    texts = [note.text for note in caught.value.notes]
    assert texts == [
        f"cuda.gemm.{way}: A, 'A', is a tensor: copy the part needed into a shared tile"
        for way in ("mma", "fma")
    ]
    with pytest.raises(UnsupportedOnTarget) as caught:
        select(ir.gemm(b, mine, c), Target("cuda", "sm_80"), rules)
    assert "B, 'mine', belongs to one thread" in caught.value.notes[0].text


def test_factors_in_shared_memory_are_swizzled() -> None:
    found = places(replace(HALF, transposes=(False, True)).program())
    for name in ("A_shared", "B_shared"):
        layout = found[name]
        assert isinstance(layout, Layout)
        assert layout.same_function(swizzled((64, 64), 16, Swizzle.FULL))
    assert isinstance(found["C_local"], Fragment)


def test_factors_that_pass_through_registers_are_swizzled_too() -> None:
    program = replace(HALF, scopes=("fragment", "shared")).program()
    layout = places(program)["A_shared"]
    assert isinstance(layout, Layout)
    assert layout.same_function(swizzled((64, 64), 16, Swizzle.FULL))
    assert "ldmatrix_x4(A_local" in replace(HALF, scopes=("fragment", "shared")).printed().text


def test_versions_of_a_pipeline_are_swizzled_alike() -> None:
    found = places(replace(HALF, k=256, steps=4).program())
    (layout,) = (x for name, x in found.items() if name.startswith("A_shared"))
    assert isinstance(layout, Layout)
    assert len(layout.shape) == 3
    assert layout.same_function(swizzled(layout.shape, 16, Swizzle.FULL))


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (ir.tensor("t", (16, 16), "float16"), ir.fragment("f", (16, 16), "float16"), "from shared"),
        (ir.shared("s", (16, 16), "float16"), ir.fragment("f", (16, 16)), "converts elements"),
        (ir.shared("s", (256,), "float16"), ir.fragment("f", (256,), "float16"), "two dimensions"),
    ],
)
def test_copies_that_cannot_load_matrices_say_why(
    source: Buffer, target: Buffer, words: str
) -> None:
    op = ir.copy(source, target)
    (rule,) = (r for r in gemm_rules(machine("sm_80")) if r.op is Copy)
    assert words in str(rule.rejects(op, Target("cuda", "sm_80")))
    assert select(op, Target("cuda", "sm_80"), all_rules(machine("sm_80"))).name != rule.name
    (old,) = (r for r in gemm_rules(machine("sm_70")) if r.op is Copy)
    assert "sm_70 cannot load matrices" in str(old.rejects(op, Target("cuda", "sm_70")))


def test_plain_tiles_are_copied_as_everywhere() -> None:
    a, c = ir.tensor("A", (32, 32), "float16"), ir.tensor("C", (32, 32), "float16")
    tile, held = ir.shared("tile", (32, 32), "float16"), ir.fragment("held", (32, 32), "float16")
    assert tile.scope is Scope.SHARED
    kernel = ir.kernel(
        [a, c], 1,
        lambda bx: [ir.alloc(tile, held), ir.copy(a, tile), ir.copy(tile, held), ir.copy(held, c)],
        threads=32,
    )  # fmt: skip
    assert "ldmatrix" not in print_program(lowered(kernel, "sm_80")).text


@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("shape", [(16, 128), (64, 64), (3, 32, 16), (8, 96), (4, 48)])
def test_layouts_read_by_elements_lose_none(bits: int, shape: tuple[int, ...]) -> None:
    layout = read_by_elements(shape, bits)
    if layout is None:
        assert shape[-1] * bits < 512 or shape[-1] * bits % 256
        return
    assert layout.is_bijective()
    assert layout.vector_width(-1, 128 // bits) == 128 // bits  # copies of 16 bytes stay whole


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("is_k_last", [False, True])
def test_what_ldmatrix_cannot_turn_is_read_by_elements(bits: int, is_k_last: bool) -> None:
    """It turns matrices of 16-bit elements, and moves whole words of others where K is last."""
    shape = (64, 128)
    is_moved = bits == 16 or (is_k_last and bits < 64)
    expected = shared_operand(shape, bits) if is_moved else read_by_elements(shape, bits)
    assert operand_layout(shape, bits, is_k_last) == expected
    assert bits == 16 or shared_operand(shape, bits) != read_by_elements(shape, bits)


def test_rows_too_short_or_too_few_are_left_to_others() -> None:
    assert read_by_elements((6, 64), 32) is None
    assert read_by_elements((8, 8), 32) is None
    assert read_by_elements((32, 8), 8) is None
    assert read_by_elements((32, 6), 32) is None
    assert read_by_elements((64,), 32) is None
    assert read_by_elements((64, 64), 16) is None
