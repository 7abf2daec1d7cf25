"""TL5002: a compiler crashed over a kernel, or did not come to an end."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tile_api as tile
from tile_core.errors import TileWarning, ToolchainCrash
from tile_core.toolchains import subprocesses

PROGRAM = """
@T.prim_func
def kernel(A: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        A[0] = 1.0
"""
NVCC = """#!/bin/sh
case "$*" in
  *--version*) echo "Cuda compilation tools, release 13.0," ;;
  *--list-gpu-code*) echo sm_80 ;;
  *{well}*) cp "$0" out.cubin; cp "$0" kernel.ptx ;;
  *) {badly} ;;
esac
"""
CLANG = """#!/bin/sh
case "$*" in
  *--version*) echo "clang version 19.1.7" ;;
  *--print-supported-cpus*) echo "  gfx942" ;;
  *) kill -SEGV $$ ;;
esac
"""
CXX = """#!/bin/sh
[ "$1" = --version ] && exec g++ "$@" || kill -SEGV $$
"""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], str]:
    """Return what writes a program that stands for a compiler."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def write(name: str, script: str) -> str:
        path = tmp_path / "bin" / name
        path.write_text(script)
        path.chmod(0o755)
        return str(path)

    return write


def raised(kernel: Any, target: str) -> ToolchainCrash:
    with pytest.raises(ToolchainCrash) as caught:
        tile.compile(kernel, target=target)
    return caught.value


@pytest.mark.parametrize(
    ("badly", "what"),
    [
        ("kill -SEGV $$", "nvcc crashed (SIGSEGV)"),
        ("echo \"'cicc' died due to signal 11\" >&2; exit 139", "nvcc crashed (status 139):"),
        ("exec sleep 60", "nvcc did not come to an end within 1 s"),
    ],
)
def test_the_kernel_and_its_text_are_kept(fake, program, monkeypatch, badly, what) -> None:
    monkeypatch.setattr(subprocesses, "TIME_LIMIT", 1)
    monkeypatch.setenv("TILE_CUDA_COMPILER", fake("nvcc", NVCC.format(well="never", badly=badly)))
    error = raised(program(PROGRAM)["kernel"], "cuda:sm_80")
    assert error.code == "TL5002"
    assert error.message.splitlines()[0] == what
    assert error.span.line == 2
    assert "`tile reduce FILE:NAME`" in error.hint
    (folder,) = (Path(m[1]) for n in error.notes if (m := re.search(r"are in (.*)", n.text)))
    assert (folder / "kernel.tile").read_text().startswith("kernel kernel(")
    assert "TILE_KERNEL(" in (folder / "source.txt").read_text()
    assert what in (folder / "error.txt").read_text()


def test_less_optimisation_may_do(fake, program, monkeypatch) -> None:
    nvcc = fake("nvcc", NVCC.format(well="--ptxas-options=-O0", badly="kill -SEGV $$"))
    monkeypatch.setenv("TILE_CUDA_COMPILER", nvcc)
    told = r"nvcc crashed \(SIGSEGV\); compiled with -O0, the kernel is slow"
    with pytest.warns(TileWarning, match=told):
        assert (
            tile.compile(program(PROGRAM)["kernel"], target="cuda:sm_80").ptx
            == Path(nvcc).read_text()
        )


def test_clang(fake, program, monkeypatch) -> None:
    fake("ld.lld", CLANG)
    clang = fake("clang", CLANG)
    monkeypatch.setenv("PATH", str(Path(clang).parent) + ":/bin:/usr/bin")
    monkeypatch.setenv("TILE_HIP_COMPILER", clang)
    assert raised(program(PROGRAM)["kernel"], "hip:gfx942").message == "clang crashed (SIGSEGV)"


def test_the_compiler_of_the_emulator(fake, program, monkeypatch) -> None:
    monkeypatch.setenv("CXX", fake("c++", CXX))
    assert raised(program(PROGRAM)["kernel"], "cuda:sm_80@sim").message == "c++ crashed (SIGSEGV)"
