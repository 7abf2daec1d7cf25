"""Masked loads stay masked in machine code: nothing is read beside a tensor."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tile_api as tile
import tile_api.language as T
from tile_cpu.llvm.kernel_text import keep_masked_loads
from tile_cpu.machine import MACHINES

WITH_MASKS = sorted(name for name, row in MACHINES.items() if row.has("avx512f"))


def guarded_reads() -> Any:
    """Threads of which two read A; LLVM makes that masked loads under a masked operation."""

    @T.prim_func
    def main(A: T.Tensor((2,), "int32"), B: T.Tensor((258,), "int32")):
        with T.Kernel(3, threads=256) as bx:
            v = T.alloc_var("int32", 2)
            t = T.get_thread_binding()
            v = A[bx + t] ^ T.if_then_else(T.cast(t, "float32") == 0.0, 1, 3)
            B[bx + t] = v

    return main


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("machine", WITH_MASKS)
def test_every_masked_load_is_an_instruction_with_a_mask(machine: str) -> None:
    kernel = tile.compile(guarded_reads(), target=f"cpu:{machine}")
    loads = len(re.findall(r"= (?:tail )?call .*@llvm\.masked\.load\.", kernel.get_kernel_source()))
    masked = re.findall(r"\tv?mov\w+\s[^\n]*\), %[xyz]mm\d+ \{%k\d\} \{z\}", kernel.asm)
    assert loads > 0
    assert len(masked) == loads


@pytest.mark.parametrize(
    ("kind", "registers"),
    [
        ("<8 x i8>", ["i64"]),
        ("<4 x i32>", ["<4 x i32>"]),
        ("<8 x float>", ["<8 x i32>"]),
        ("<32 x half>", ["<16 x i32>"]),
        ("<16 x i64>", ["<16 x i32>"] * 2),
        ("<32 x double>", ["<16 x i32>"] * 4),
        ("<3 x float>", []),
    ],
)
@pytest.mark.parametrize("name", ["%v", "%12", '%"a b"'])
def test_loads_pass_through_registers(kind: str, registers: list[str], name: str) -> None:
    line = f"  {name} = tail call {kind} @llvm.masked.load.x.p0(ptr %p, <1 x i1> %m), !dbg !1"
    text = keep_masked_loads(f"{line}\n  ret void\n")
    assert re.findall(r'call (\S+|<.*?>) asm "", "=[rv],0"', text) == registers
    assert text.count(f" {name} = ") == 1
    assert text.endswith("\n  ret void\n")
    if not registers:
        assert text.startswith(line)


def test_two_loads_have_different_names() -> None:
    line = "  %{} = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %p, <4 x i1> %m)\n"
    text = keep_masked_loads(line.format("a") + line.format("b"))
    defined = re.findall(r"^  (%[\w.]+) = ", text, re.MULTILINE)
    assert len(defined) == len(set(defined)) == 8


def test_names_are_none_of_a_buffer() -> None:
    line = "  %kept0 = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %p, <4 x i1> %m)\n"
    assert keep_masked_loads(line).count("%kept0 ") == 1
