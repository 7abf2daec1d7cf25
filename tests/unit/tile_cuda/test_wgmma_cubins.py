"""Products of warpgroups as machine code: as many instructions as one would write, none alone."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from support.machine_loops import loops
from support.products import Product, lowered
from support.toolchain import need_disassembler, nvrtc_for
from tile_core.codegen import PrintedSource, print_program
from tile_core.ir.build_expr import cast
from tile_core.ir.stmt import Kernel
from tile_core.testing import build_ir as ir
from tile_cuda.compile_errors import warnings_of
from tile_cuda.disassembly import sass
from tile_cuda.machine_code import Compiled, compile_source

HALF = Product("sm_90a", 128, 128, 128)
ALONG_K = replace(HALF, transposes=(False, True))
BYTES = replace(ALONG_K, factor="int8", total="int32", k=256)
EIGHT = replace(ALONG_K, factor="float8_e4m3fn", k=256)

# Each with the instruction it becomes, and how many of them all steps need.
PRODUCTS: list[tuple[Product, str, int]] = [
    (HALF, "HGMMA", 16),
    (ALONG_K, "HGMMA", 16),
    (replace(HALF, transposes=(True, False)), "HGMMA", 16),
    (replace(HALF, transposes=(True, True), factor="bfloat16"), "HGMMA", 16),
    (replace(HALF, total="float16"), "HGMMA", 16),
    (replace(HALF, scopes=("fragment", "shared")), "HGMMA", 16),
    (replace(HALF, m=256, n=128, threads=512), "HGMMA", 8),
    (replace(HALF, m=64, n=256, threads=256), "HGMMA", 8),
    (replace(HALF, m=64, n=320, clear=True), "HGMMA", 16),
    (replace(HALF, m=192, n=96, threads=384), "HGMMA", 8),
    (replace(ALONG_K, m=64, n=24), "HGMMA", 8),
    (replace(ALONG_K, factor="tfloat32"), "HGMMA", 32),
    (BYTES, "IGMMA", 16),
    (replace(BYTES, factor="uint8", second="int8", n=72), "IGMMA", 48),
    (EIGHT, "QGMMA", 16),
    (replace(EIGHT, second="float8_e5m2", scopes=("fragment", "shared")), "QGMMA", 16),
]


def compiled(source: PrintedSource) -> Compiled:
    nvrtc_for("sm_90a")
    return compile_source(source, "sm_90a", warn=False)


def check(made: Compiled) -> None:
    """Refuse spills, and products that the assembler runs one after the other."""
    for needs in made.resources.values():
        assert warnings_of(needs) == ()
        assert (needs.spill_stores, needs.spill_loads, needs.stack_bytes) == (0, 0, 0)
        assert needs.remarks == ()
    assert "(C75" not in made.log


def opcodes(made: Compiled) -> Counter[str]:
    need_disassembler()
    lines = re.findall(r"/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_]+)", sass(made.code))
    return Counter(lines)


@pytest.mark.in_turn(12)
@pytest.mark.parametrize(
    ("product", "instruction", "count"), PRODUCTS, ids=[str(p) for p, _, _ in PRODUCTS]
)
def test_every_step_is_one_instruction(product: Product, instruction: str, count: int) -> None:
    made = compiled(product.printed())
    check(made)
    assert opcodes(made)[instruction] == count


def test_operands_of_warpgroups_are_found_by_uniform_registers() -> None:
    made = compiled(replace(HALF, n=256, threads=256).printed())
    found = opcodes(made)
    assert found["HGMMA"] == 8
    assert found["R2UR"] <= 2  # where the tile begins, not where each step does


def test_the_loop_is_as_short_as_a_hand_written_one() -> None:
    product = replace(HALF, n=256, k=512, steps=8, threads=256)
    made = compiled(product.printed())
    check(made)
    need_disassembler()
    # Waits that take long stand behind all else, and jump back over it.
    around = [found for found in loops(sass(made.code)) if found["HGMMA"]]
    body = min(around, key=lambda found: sum(found.values()))
    # A wait for the tiles, four products of 64 x 256 x 16, a wait, and the release of a slot.
    assert body["HGMMA"] == 4
    assert sum(body.values()) <= 1.1 * 60


def weights(n: int = 128, m: int = 64, k: int = 128) -> Kernel:
    """Return ``C = W @ X.T`` with two weights in each byte, unpacked into registers."""
    x, w = ir.tensor("X", (m, k), "float16"), ir.tensor("W", (n, k // 2), "uint8")
    c, acc = ir.tensor("C", (n, m)), ir.fragment("C_local", (n, m))
    x_tile, w_tile = ir.shared("X_s", (m, k), "float16"), ir.shared("W_s", (n, k // 2), "uint8")
    wide = ir.fragment("W_half", (n, k), "float16")

    def unpack(i: Any, j: Any) -> Any:
        byte = cast(ir.load(w_tile, i, j // 2), "int32")
        return ir.store(wide, (i, j), cast(((byte >> (j % 2 * 4)) & 15) - 8, "float16"))

    body = [
        *(ir.alloc(x_tile, w_tile, wide, acc), ir.copy(x, x_tile), ir.copy(w, w_tile)),
        ir.parallel((n, k), unpack),
        *(ir.gemm(wide, x_tile, acc, transpose_b=True, clear=True), ir.copy(acc, c)),
    ]
    return ir.kernel([x, w, c], 1, lambda bx: body, threads=128)


def test_weights_are_multiplied_from_the_registers_they_are_unpacked_to() -> None:
    source = print_program(lowered(weights(), "sm_90a"))
    assert "W_half[" in source.text
    assert "wgmma_rs_set<64, 0, 8>(C_local + (i_1 * 32), W_half + " in source.text
    assert source.text.count("tile::smem<") == 2  # they are in no tile of their own
    made = compiled(source)
    check(made)
    assert opcodes(made)["HGMMA"] == 16


def two_products() -> Kernel:
    """Return ``(A @ B.T) @ D``: the sums of the first, rounded, are a factor of the second."""
    shapes = {"A": (64, 64), "B": (128, 64), "D": (128, 64)}
    tensors = [ir.tensor(name, shape, "float16") for name, shape in shapes.items()]
    tiles = [ir.shared(f"{name}_s", shape, "float16") for name, shape in shapes.items()]
    first, second = ir.fragment("first", (64, 128)), ir.fragment("second", (64, 64))
    rounded, c = ir.fragment("rounded", (64, 128), "float16"), ir.tensor("C", (64, 64))
    body = [
        *(ir.alloc(*tiles, first, rounded, second), *map(ir.copy, tensors, tiles)),
        ir.gemm(tiles[0], tiles[1], first, transpose_b=True, clear=True),
        *(ir.copy(first, rounded), ir.gemm(rounded, tiles[2], second, clear=True)),
        ir.copy(second, c),
    ]
    return ir.kernel([*tensors, c], 1, lambda bx: body, threads=128)


def test_rounded_sums_stay_in_their_registers() -> None:
    source = print_program(lowered(two_products(), "sm_90a"))
    assert "rounded[s] = tile::cast<half_t>(first[s]);" in source.text
    made = compiled(source)
    check(made)
    found = opcodes(made)
    assert (found["HGMMA"], found["SHFL"], found["LDSM"]) == (4 + 8, 0, 0)
