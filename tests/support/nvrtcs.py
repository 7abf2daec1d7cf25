"""Each installed NVRTC that knows sm_90a, and what its code looks like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from support.cuda_header import printed
from support.machine_loops import opcode_counts
from support.toolchain import need_disassembler
from tile_cuda.disassembly import sass
from tile_cuda.nvrtc_library import installed
from tile_cuda.wgmma_shapes import shape_flags

_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?);", re.MULTILINE)
_BRANCH = re.compile(r"\bBRA\S* .*?0x([0-9a-f]+)")


@dataclass(frozen=True)
class Named:
    """An NVRTC under its name."""

    nvrtc: object

    def __str__(self) -> str:
        return self.nvrtc.name.replace(" ", "_")


NVRTCS = [Named(n) for n in installed() if n.supports("sm_90a")] or [
    pytest.param(None, marks=pytest.mark.skip("no NVRTC compiles for sm_90a"))
]


@dataclass(frozen=True)
class MachineCode:
    """What the assembler made of one kernel, and what it said."""

    text: str
    counts: Mapping[str, int]
    log: str
    ptx: str

    @property
    def spills(self) -> int:
        lines = [line for line in self.log.splitlines() if "spill stores" in line]
        return sum(" 0 bytes spill stores, 0 bytes spill" not in line for line in lines)

    def loop_with(self, opcode: str) -> int:
        """Instructions of the innermost loop that contains one that begins with `opcode`."""
        lines = [(int(m[1], 16), m[2]) for m in _INSTRUCTION.finditer(self.text)]
        wanted = [at for at, line in lines if opcode in line]
        backwards = [
            (int(m[1], 16), at) for at, line in lines if (m := _BRANCH.search(line)) is not None
        ]
        loops = [(a, b) for a, b in backwards if a < b and any(a <= at <= b for at in wanted)]
        start, end = min(loops, key=lambda ends: ends[1] - ends[0])
        return sum(start <= at <= end for at, _ in lines)


def machine_code(body: str, named: Named, arch: str = "sm_90a", *flags: str) -> MachineCode:
    """Compile the body of a kernel of 128 threads."""
    return machine_code_of(printed(body).text, named, arch, *flags)


def machine_code_of(text: str, named: Named, arch: str = "sm_90a", *flags: str) -> MachineCode:
    """Compile whole kernels."""
    need_disassembler()
    output = named.nvrtc.build(text, arch, (*shape_flags(text), *flags))
    assert output.is_accepted, output.log
    code = sass(output.code)
    return MachineCode(code, opcode_counts(code), output.log, output.assembly)
