"""The program nvcc instead of NVRTC: the same machine code, the same errors at the same lines."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import tile_api as tile
import tile_api.language as T
from support.machine_loops import opcode_counts
from support.scale_kernel import TEXT, scale_source
from support.toolchain import need_disassembler, nvrtc_for
from tile_core.codegen import PrintedSource
from tile_core.errors import Span, ToolchainError
from tile_cuda.compilers import wanted_compiler
from tile_cuda.disassembly import sass
from tile_cuda.machine_code import compile_source
from tile_cuda.nvcc import Nvcc, nvcc_at, nvcc_flags, nvccs

HINT = "lines are counted from the first of the text given to T.import_source"


@pytest.fixture
def source() -> PrintedSource:
    return scale_source()


@pytest.fixture
def nvcc() -> Nvcc:
    found = [nvcc for nvcc in nvccs() if nvcc.supports("sm_80")]
    if not found or shutil.which("gcc") is None:
        pytest.skip("needs nvcc, and the host's compiler beside it")
    return found[0]


def refused(source: PrintedSource, *flags: str, compiler: str = "nvcc") -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        compile_source(source, "sm_80", flags, compiler=compiler)
    return caught.value


def test_machine_code_and_what_was_said_of_it(nvcc, source):
    found = compile_source(source, "sm_80", compiler="nvcc")
    assert found.code[:4] == b"\x7fELF"
    assert ".visible .entry scale(" in found.assembly
    assert ".target sm_80" in found.assembly
    assert "program.py" in found.assembly  # profilers see the lines of the user
    assert found.compiler == nvcc.name
    assert list(found.resources) == ["scale"]
    assert 0 < found.resources["scale"].registers < 32


def test_nvrtc_of_the_same_version_makes_the_same_instructions(nvcc, source):
    need_disassembler()
    if nvrtc_for("sm_80").name.split()[1] != nvcc.name.split()[1]:
        pytest.skip("needs NVRTC of nvcc's version")
    other = compile_source(source, "sm_80", compiler="nvrtc")
    own = compile_source(source, "sm_80", compiler="nvcc")
    assert opcode_counts(sass(own.code)) == opcode_counts(sass(other.code))
    assert own.resources == other.resources


def test_an_error_at_a_line_of_the_kernel(nvcc, source):
    text = TEXT.replace("A[tid] = twice(", "A[tid] = thrice(")
    assert str(refused(replace(source, text=text))) == (
        f"[TL5001] {nvcc.name} does not accept the kernel's C++ for sm_80:\n"
        'program.py:5: error: identifier "thrice" is undefined\n'
        "    A[tid] = thrice(A[tid]);\n"
        "             ^\n"
        " --> program.py:5:20\n"
        "  |\n"
        '5 |             A[i] = T.call_extern("float32", "twice", A[i])\n'
        "  |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "hint: bring the function along: T.import_source('__device__ ...')"
    )


def test_an_error_of_the_hosts_preprocessor(nvcc, source):
    text = TEXT.replace("  return 2.0f * x;", '#include "nowhere.h"')
    error = refused(replace(source, text=text))
    assert error.message.splitlines()[:2] == [
        f"{nvcc.name} does not accept the kernel's C++ for sm_80:",
        "import_source:2: error: nowhere.h: No such file or directory",
    ]
    assert error.hint == HINT


def test_functions_of_the_host(nvcc, source):
    error = refused(replace(source, text=TEXT.replace("__device__ float", "float")))
    assert error.span == Span("program.py", 5, 19, 58)
    assert error.hint == (
        "nvcc wants __device__ before functions given to T.import_source; NVRTC does not"
    )


def test_an_unknown_flag(nvcc, source):
    assert str(refused(source, "--no-such-flag")) == (
        f"[TL5001] {nvcc.name}: Unknown option '--no-such-flag'\nhint: compile_flags go to nvcc"
    )


def test_an_instruction_that_the_assembler_refuses(nvcc, source):
    text = TEXT.replace("return 2.0f * x;", 'asm("mma.nothing;"); return x;')
    error = refused(replace(source, text=text))
    assert error.message.startswith(f"{nvcc.name} failed for sm_80:\nptxas kernel.ptx, line ")
    assert error.hint == "the assembler refuses an instruction: look for asm() in T.import_source"


def test_flags():
    flags = ["-O3", "--use_fast_math", "-default-device", "--expt-relaxed-constexpr"]
    assert nvcc_flags(flags) == [
        "--ptxas-options=-O3", "--use_fast_math", "--expt-relaxed-constexpr",
    ]  # fmt: skip


def test_without_nvrtc_it_is_nvcc(nvcc, source, monkeypatch):
    monkeypatch.delenv("TILE_CUDA_COMPILER", raising=False)
    monkeypatch.setattr("tile_cuda.nvrtc_library.toolkits", tuple)
    assert compile_source(source, "sm_80").compiler == nvcc.name


def test_a_kernel_names_its_compiler(nvcc, monkeypatch):
    @T.prim_func
    def doubled(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                A[i] = A[i] * 2

    wish = {tile.PassConfigKey.CUDA_COMPILER: "nvcc"}
    kernel = tile.compile(doubled, target="cuda:sm_80", pass_configs=wish)
    assert kernel.artifact.compiled.compiler == nvcc.name
    monkeypatch.setenv("TILE_CUDA_COMPILER", str(nvcc.path))
    kernel = tile.compile(doubled, target="cuda:sm_80")
    assert kernel.artifact.compiled.compiler == nvcc.name


def stub(folder: Path, version: str, codes: str) -> Path:
    """Return a program that answers as an nvcc of `version` for the architectures `codes`."""
    path = folder / "bin" / "nvcc"
    path.parent.mkdir(parents=True)
    path.write_text(
        f'#!/bin/sh\ncase "$1" in --version) echo "Cuda compilation tools, release {version},";;\n'
        f"*) echo {codes};; esac\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """An environment without any compiler."""
    for name in ("TILE_CUDA_COMPILER", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr("tile_cuda.nvrtc_library.toolkits", tuple)


def test_where_nvcc_is_looked_for(empty, monkeypatch, tmp_path):
    home = stub(tmp_path / "home", "12.4", "sm_70 sm_80")
    path = stub(tmp_path / "path", "13.0", "sm_80 sm_90")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", str(path.parent) + os.pathsep + "/bin")
    assert [(n.path, n.name) for n in nvccs()] == [(home, "nvcc 12.4"), (path, "nvcc 13.0")]
    assert wanted_compiler("sm_70").name == "nvcc 12.4"
    assert wanted_compiler("sm_90a").name == "nvcc 13.0"
    assert wanted_compiler("sm_80", str(path)).name == "nvcc 13.0"
    monkeypatch.setenv("TILE_CUDA_COMPILER", str(path))
    assert wanted_compiler("sm_80").name == "nvcc 13.0"
    assert wanted_compiler("sm_80", "nvcc").name == "nvcc 12.4"


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (
            "clang",
            "[TL5001] the compiler of CUDA is to be 'clang', which is none\n"
            "hint: set TILE_CUDA_COMPILER to nvrtc, to nvcc, or to the path of an nvcc",
        ),
        (
            "nvcc",
            "[TL5001] nvcc is requested, and there is none in CUDA_HOME, CUDA_PATH or PATH"
            " (sm_80)\n"
            "hint: install a CUDA toolkit, or unset TILE_CUDA_COMPILER: NVRTC needs none",
        ),
        (
            "nvrtc",
            "[TL5001] CUDA's run-time compiler (NVRTC) is not installed; it is needed for sm_80\n"
            "hint: pip install 'tile-api[cuda]'",
        ),
        (
            "/no/such/nvcc",
            "[TL5001] /no/such/nvcc cannot be run: No such file or directory",
        ),
        (
            "/bin/true",
            "[TL5001] /bin/true is no nvcc: it does not tell its version and its architectures\n"
            "hint: point TILE_CUDA_COMPILER, or CUDA_HOME, to a CUDA toolkit from 11 on",
        ),
    ],
)
def test_wishes_that_cannot_be_met(empty, monkeypatch, wish, told):
    monkeypatch.setenv("TILE_CUDA_COMPILER", wish)
    with pytest.raises(ToolchainError) as caught:
        wanted_compiler("sm_80")
    assert str(caught.value) == told


def test_an_nvcc_that_is_too_new(empty, tmp_path):
    path = stub(tmp_path / "new", "13.0", "sm_80")
    with pytest.raises(ToolchainError) as caught:
        wanted_compiler("sm_70", str(path))
    assert str(caught.value) == (
        "[TL5001] no installed compiler of CUDA makes code for sm_70\n"
        "note: nvcc 13.0 does not know sm_70\n"
        "hint: pip install 'tile-api[cuda12]'"
    )


def test_it_is_asked_once(tmp_path):
    path = stub(tmp_path, "13.0", "sm_80")
    first = nvcc_at(path)
    path.unlink()
    assert nvcc_at(path) is first
    assert re.fullmatch(r"nvcc \d+\.\d+", first.name)
