"""Machine code of kernels that matter: nothing spilled, and loops as short as written by hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import pytest

import tile_api as tile
from support import gpu_kernels
from support.machine_loops import opcode_counts
from support.toolchain import need_disassembler, nvrtc_for

KERNELS: dict[str, Callable[[], Any]] = {
    "gemm": lambda: gpu_kernels.gemm(1024, 1024, 1024),
    "gemm_int4": lambda: gpu_kernels.gemm_int4(1024, 1024, 1024),
    "attention": lambda: gpu_kernels.attention(1024, 8, 64, causal=False),
    "attention_causal": lambda: gpu_kernels.attention(1024, 8, 64, causal=True),
    "softmax": lambda: gpu_kernels.softmax(62, 512),
    "layer_norm": lambda: gpu_kernels.layer_norm(60, 256),
    "split_k": lambda: gpu_kernels.split_k(128, 128, 512),
    "sums_by_threads": lambda: gpu_kernels.sums_by_threads(8, 1000),
    "products_by_instructions": lambda: gpu_kernels.products_by_instructions(48, 40, 64),
}
GENERATIONS = ("sm_70", "sm_75", "sm_80", "sm_89")
COMPILED = [(name, arch) for name in KERNELS for arch in GENERATIONS] + [("attention", "sm_86")]
"""sm_86 gets the texts of sm_80."""
FROM_SM_80 = {"products_by_instructions"}


@lru_cache
def compiled(name: str, arch: str) -> Any:
    """Return the kernel for `arch`; skip where its compiler is not installed."""
    nvrtc_for(arch)
    return tile.compile(KERNELS[name](), target=f"cuda:{arch}")


@pytest.mark.in_turn(12)
@pytest.mark.parametrize(("name", "arch"), COMPILED)
def test_nothing_is_spilled(name: str, arch: str) -> None:
    if name in FROM_SM_80 and arch < "sm_80":
        pytest.skip("names instructions of sm_80")
    (needs,) = compiled(name, arch).resources.values()
    assert (needs.spill_stores, needs.spill_loads, needs.stack_bytes) == (0, 0, 0)
    assert needs.registers <= 255


Loop = Counter[str]


def loops(code: str) -> Iterator[Loop]:
    """Yield the instructions between each branch backwards and its target."""
    lines = [
        (int(m[1], 16), re.sub(r"^@!?U?P\w+ ", "", m[2]))
        for m in re.finditer(r"/\*([0-9a-f]{4,5})\*/\s+(.*?);", code)
    ]
    for at, text in lines:
        target = re.match(r"BRA\b.*0x([0-9a-f]+)", text)
        if target and (first := int(target[1], 16)) < at:
            yield Counter(t.split()[0] for a, t in lines if first <= a <= at)


def machine_code(name: str, arch: str = "sm_80") -> str:
    """Return the text of the machine code; skip where there is no disassembler."""
    kernel = compiled(name, arch)
    need_disassembler()
    return str(kernel.sass)


def main_loop(name: str, arch: str = "sm_80") -> Loop:
    """Return the one loop that multiplies."""
    (found,) = (loop for loop in loops(machine_code(name, arch)) if number(loop, "HMMA"))
    return found


def whole(name: str) -> Loop:
    """Return all instructions of the kernel."""
    return Counter(opcode_counts(machine_code(name)))


def number(loop: Loop, *opcodes: str) -> int:
    """Return how many instructions have one of the names, whatever their modifiers."""
    return sum(n for name, n in loop.items() if name.split(".")[0] in opcodes)


HAND_WRITTEN_GEMM = {
    "HMMA": 64, "LDSM": 16, "LDGSTS": 8, "DEPBAR": 1, "LDGDEPBAR": 1, "BAR": 1, "all": 152,
}  # fmt: skip
"""The loop of a kernel in CUDA C++ and inline PTX for the same tile (float16, 128x128x32, four
warps, three stages, swizzled by exclusive or), compiled by NVRTC 13.0 for sm_80."""


def test_the_loop_of_gemm_is_that_of_a_hand_written_kernel() -> None:
    loop = main_loop("gemm")
    for opcode, wanted in HAND_WRITTEN_GEMM.items():
        if opcode != "all":
            assert number(loop, opcode) == wanted, loop
    assert sum(loop.values()) <= 1.1 * HAND_WRITTEN_GEMM["all"], loop
    assert {name for name in loop if name.startswith(("LDSM", "HMMA"))} == {
        "LDSM.16.M88.4", "LDSM.16.MT88.4", "HMMA.16816.F32",
    }  # fmt: skip
    assert {name for name in loop if name.startswith("LDGSTS")} == {"LDGSTS.E.BYPASS.LTC128B.128"}


def test_before_asynchronous_copies_the_next_tiles_come_into_registers() -> None:
    """They are stored, loaded and multiplied in this order, with one barrier for two versions."""
    loop = main_loop("gemm", "sm_75")
    assert number(loop, "HMMA") == 128  # 64 x 64 x 32 a warp by 16 x 8 x 8
    assert (number(loop, "LDG"), number(loop, "STS"), number(loop, "LDSM")) == (8, 8, 16)
    assert number(loop, "BAR") == 1
    assert number(loop, "LDL", "STL") == 0
    opcodes = [opcode.split(".")[0] for opcode in loop]
    assert opcodes.index("STS") < opcodes.index("LDG") < opcodes.index("HMMA")


HAND_WRITTEN_CUBIN = {
    "HMMA": 64, "LDSM": 16, "LDGSTS": 24, "DEPBAR": 2, "LDGDEPBAR": 3, "BAR": 3,
    "F2FP": 64, "STS": 64, "LDS": 19, "STG": 16, "all": 611,
}  # fmt: skip
"""All instructions of that kernel but NOP, its sizes fixed at 1024 and its blocks in rows: two
stages filled ahead, one loop over all rounds whose copies stand behind a branch, and rows of the
result put together in shared memory."""


def test_gemm_is_no_longer_than_a_hand_written_kernel() -> None:
    """The product is in the machine code once, not again for each of the last rounds."""
    code = whole("gemm")
    for opcode, wanted in HAND_WRITTEN_CUBIN.items():
        if opcode != "all":
            assert abs(number(code, opcode) - wanted) <= 0.1 * wanted, (opcode, code)
    assert sum(code.values()) - code["NOP"] <= 1.1 * HAND_WRITTEN_CUBIN["all"], code


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", ["gemm", "gemm_int4", "attention", "attention_causal"])
def test_products_and_copies_ahead_are_in_the_machine_code_once(name: str) -> None:
    loop, code = main_loop(name), whole(name)
    assert number(code, "HMMA") == number(loop, "HMMA")
    assert number(code, "LDSM") == number(loop, "LDSM")
    stages = 3 if name == "gemm" else 2
    assert number(code, "LDGSTS") == stages * number(loop, "LDGSTS")
    assert number(code, "LDGDEPBAR") == stages


@pytest.mark.parametrize("name", ["attention", "attention_causal"])
def test_the_loop_of_attention_has_the_instructions_of_its_sums(name: str) -> None:
    """A warp has 16 queries and 64 keys of 64 numbers; a thread has 32 scores of two rows."""
    loop = main_loop(name)
    assert number(loop, "HMMA") == 64  # two products of 16 x 64 x 64 by 16 x 8 x 16
    assert number(loop, "LDSM") == 4 + 16 + 16  # queries again, keys, values: four matrices each
    assert number(loop, "LDGSTS") == 8  # two tiles of 64 x 64 halves, 16 bytes a thread
    assert number(loop, "MUFU") == 32 + 2  # an exp2 for each score, and to rescale two rows
    assert number(loop, "SHFL") == 8  # maximum and sum of two rows among four lanes
    assert number(loop, "LDL", "STL", "STS", "LDG", "STG") == 0


def test_the_loop_of_int4_weights_keeps_its_weights_on_the_chip() -> None:
    loop = main_loop("gemm_int4")
    assert number(loop, "HMMA") == 32  # 32 x 32 x 64 a warp
    assert number(loop, "LDSM") == 16
    assert number(loop, "LDGSTS") == 5  # four for A, one for the codes
    assert number(loop, "STS") == 4  # 32 weights a thread, eight at once
    assert number(loop, "LDG") == 4  # a scale for each eight
    assert number(loop, "STG", "LDL", "STL") == 0
