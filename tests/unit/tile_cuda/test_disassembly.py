"""Machine code as text."""

from __future__ import annotations

import sys

import pytest

from support.cuda_header import compiled
from support.machine_loops import opcode_counts
from support.toolchain import need_disassembler
from tile_core.errors import ToolchainError
from tile_cuda import disassembly
from tile_cuda.disassembly import sass

SASS = """
        /*0000*/                   MOV R1, c[0x0][0x28] ;   /* 0x00000a0000017a02 */
                                                            /* 0x000fe40000000f00 */
        /*0010*/               @P0 BRA 0x60 ;
        /*0020*/              @!P1 HMMA.16816.F32 R4, R4, R10, RZ ;
        /*0030*/            @!UPT UIADD3 URZ, URZ, URZ, URZ ;
        /*0040*/                   HMMA.16816.F32 R8, R4, R12, R8 ;
        /*0050*/                   EXIT ;
"""


def test_opcode_counts():
    assert opcode_counts(SASS) == {
        "MOV": 1, "BRA": 1, "HMMA.16816.F32": 2, "UIADD3": 1, "EXIT": 1,
    }  # fmt: skip


def test_machine_code_of_a_kernel():
    body = """
    tile::frag<half_t, 8> a; tile::frag<half_t, 4> b; tile::frag<float, 4> c;
    tile::load<8>(a, H + (tid * 8));
    tile::load<4>(b, H + (tid * 4));
    tile::load<4>(c, F + (tid * 4));
    tile::mma_m16n8k16(c, a, b);
    tile::store<4>(F + (tid * 4), c);
    """
    cubin = compiled(body, "sm_80").code
    need_disassembler()
    text = sass(cubin)
    counts = opcode_counts(text)
    assert counts["HMMA.16816.F32"] == 1
    assert sum(n for name, n in counts.items() if name.startswith("LDG.E.128")) == 2
    assert not any(name.startswith(("LDL", "STL")) for name in counts)


def test_no_disassembler(monkeypatch):
    monkeypatch.setattr(disassembly, "_tools", lambda command: iter(()))
    with pytest.raises(ToolchainError) as caught:
        sass(b"")
    assert str(caught.value) == (
        "[TL5001] reading machine code needs cuobjdump or nvdisasm, and neither is installed\n"
        "hint: pip install 'tile-api[inspect]'"
    )


def test_disassemblers_of_packages_come_before_those_of_the_machine(monkeypatch, tmp_path):
    folders = [tmp_path / place for place in ("site/nvidia/cuda_nvcc/bin", "home/bin", "path")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "nvdisasm").touch(mode=0o700)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert [*disassembly._tools("nvdisasm")] == [folder / "nvdisasm" for folder in folders]
    assert [*disassembly._tools("cuobjdump")] == []


def test_a_disassembler_that_may_not_be_executed_and_fails(monkeypatch, tmp_path):
    """Files of wheels may lack the right; a copy is made executable."""
    tool = tmp_path / "cuobjdump"
    tool.write_text('#!/bin/sh\necho "cuobjdump fatal : not for $1" >&2\nexit 1\n')
    tool.chmod(0o600)
    tools = {"cuobjdump": [tool]}
    monkeypatch.setattr(disassembly, "_tools", lambda command: iter(tools.get(command, ())))
    with pytest.raises(ToolchainError) as caught:
        sass(b"code")
    assert caught.value.message == (
        "the machine code could not be read:\ncuobjdump: cuobjdump fatal : not for -sass"
    )
