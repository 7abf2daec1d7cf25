"""Compiling printed kernels: machine code, the user's lines, and what goes wrong."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import tile_cuda.toolkit
from support.cuda_header import compiled
from support.scale_kernel import TEXT, scale_source
from support.toolchain import nvrtc_for
from tile_core.codegen import PrintedSource
from tile_core.errors import Span, TileWarning, ToolchainError
from tile_cuda.compile_errors import parse_complaints
from tile_cuda.compiler import header_texts
from tile_cuda.machine_code import compile_source
from tile_cuda.nvrtc_library import compiler_for, load, nvrtc_flags
from tile_cuda.toolkit import Toolkit, extra_of, toolkits


@pytest.fixture
def source() -> PrintedSource:
    return scale_source()


@pytest.fixture
def nvrtc(monkeypatch):
    monkeypatch.delenv("TILE_CUDA_COMPILER", raising=False)
    return nvrtc_for("sm_80")


def test_machine_code_and_what_was_said_of_it(nvrtc, source):
    found = compile_source(source, "sm_80")
    assert found.code[:4] == b"\x7fELF"
    assert ".visible .entry scale(" in found.assembly
    assert ".target sm_80" in found.assembly
    assert found.compiler == nvrtc.name
    assert list(found.resources) == ["scale"]
    assert 0 < found.resources["scale"].registers < 32
    assert found.resources["scale"].spill_stores == 0


def test_profilers_see_the_lines_of_the_user(nvrtc, source):
    ptx = compile_source(source, "sm_80").assembly
    assert 'program.py"' in ptx
    assert b"program.py" in compile_source(source, "sm_80").code


def refused(source: PrintedSource, arch: str = "sm_80", *flags: str) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        compile_source(source, arch, flags)
    return caught.value


def test_an_error_at_a_line_of_the_kernel(nvrtc, source):
    text = TEXT.replace("A[tid] = twice(", "A[tid] = thrice(")
    error = refused(replace(source, text=text))
    assert str(error) == (
        f"[TL5001] {nvrtc.name} does not accept the kernel's C++ for sm_80:\n"
        'program.py:5: error: identifier "thrice" is undefined\n'
        "    A[tid] = thrice(A[tid]);\n"
        "             ^\n"
        " --> program.py:5:20\n"
        "  |\n"
        '5 |             A[i] = T.call_extern("float32", "twice", A[i])\n'
        "  |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "hint: bring the function along: T.import_source('__device__ ...')"
    )


def test_an_error_in_the_c_text_of_the_user(nvrtc, source):
    error = refused(replace(source, text=TEXT.replace("2.0f * x", "2.0f * y")))
    assert str(error) == (
        f"[TL5001] {nvrtc.name} does not accept the kernel's C++ for sm_80:\n"
        'import_source:2: error: identifier "y" is undefined\n'
        "    return 2.0f * y;\n"
        "                  ^\n"
        "hint: lines are counted from the first of the text given to T.import_source"
    )


def test_an_error_inside_the_device_header_counts_for_the_line_that_used_it(nvrtc, source):
    line = "tile::frag<half_t, 8> a; tile::ldmatrix_x4(a, A);"
    compiler_for("sm_70")
    error = refused(replace(source, text=TEXT.replace("A[tid] = twice(A[tid]);", line)), "sm_70")
    assert error.span == Span("program.py", 5, 19, 58)
    assert error.message == (
        "NVRTC 12.9 does not accept the kernel's C++ for sm_70:\n"
        'program.py:5: error: static assertion failed with "tile::ldmatrix needs sm_75 or newer"'
    )


def test_an_error_at_a_line_that_the_printer_added(nvrtc, source):
    error = refused(replace(source, text=TEXT.replace("const int tid", "const int* tid")))
    assert error.span == source.lines[8]  # the closest line above that came from the user
    assert error.message.splitlines()[1].startswith("kernel.cu:9: error: ")


def test_many_errors_are_cut(nvrtc, source):
    text = TEXT.replace("A[tid] = twice(A[tid]);", " ".join(f"A[{i}] = f{i}();" for i in range(9)))
    message = refused(replace(source, text=text)).message
    assert message.count("error: identifier") == 5
    assert message.endswith("\nand 4 more")


def test_an_unknown_flag(nvrtc, source):
    assert str(refused(source, "sm_80", "--no-such-flag")) == (
        f"[TL5001] {nvrtc.name}: unrecognized option --no-such-flag found\n"
        "hint: compile_flags go to NVRTC; it has the options of nvcc that concern code for GPUs"
    )


def test_an_instruction_that_the_assembler_refuses(nvrtc, source):
    text = TEXT.replace("return 2.0f * x;", 'asm("mma.nothing;"); return x;')
    error = refused(replace(source, text=text))
    assert error.message.startswith(f"{nvrtc.name} failed for sm_80:\nptxas")
    assert error.hint == "the assembler refuses an instruction: look for asm() in T.import_source"


def test_flags_of_nvcc():
    flags = ["-O3", "--use_fast_math", "-DX=1", "--expt-relaxed-constexpr"]
    assert nvrtc_flags(flags) == ["--ptxas-options=-O3", "--use_fast_math", "-DX=1"]


def test_flags_reach_the_compiler(nvrtc):
    body = "F[0] = tile::log(float(F[1]) * SCALE);"
    plain = compiled(body, "sm_80", "-DSCALE=3.0f").assembly
    fast = compiled(body, "sm_80", "-DSCALE=3.0f", "--use_fast_math", "-O3").assembly
    assert "lg2.approx.ftz.f32" in fast
    assert "lg2.approx" not in plain


def test_spills_are_told_at_the_line_of_the_kernel(nvrtc, source):
    spilling = """
  tile::frag<float, 300> c;
  for (int r = 0; r < 9; ++r) {
    TILE_UNROLL
    for (int i = 0; i < 300; ++i) c[i] = A[i * 128 + r];
    tile::sync();
    TILE_UNROLL
    for (int i = 0; i < 300; ++i) A[i * 64 + r * tid] = c[i] * c[(i + 17) % 300];
  }
"""
    heavy = replace(source, text=TEXT.replace("  A[tid] = twice(A[tid]);\n", spilling))
    with pytest.warns(TileWarning, match=r"kernel 'scale' needs more than its 255 registers") as w:
        compile_source(heavy, "sm_80")
    assert (w[0].filename, w[0].lineno) == ("program.py", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_source(heavy, "sm_80", warn=False)


def test_volta_has_a_compiler_of_its_own(source):
    try:
        volta, hopper = compiler_for("sm_70"), compiler_for("sm_90a")
    except ToolchainError as missing:
        pytest.skip(missing.message)
    assert volta.version[0] == 12
    for arch, compiler in (("sm_90a", hopper), ("sm_70", volta), ("sm_90a", hopper)):
        assert compile_source(source, arch).compiler == compiler.name


@pytest.mark.parametrize(("arch", "extra"), [("sm_80", "cuda"), ("sm_70", "cuda12")])
def test_no_compiler(monkeypatch, source, arch, extra):
    monkeypatch.setattr("tile_cuda.nvrtc_library.toolkits", tuple)
    monkeypatch.setattr("tile_cuda.compilers.nvccs", tuple)
    assert str(refused(source, arch)) == (
        f"[TL5001] CUDA's run-time compiler (NVRTC) is not installed; it is needed for {arch}\n"
        f"hint: pip install 'tile-api[{extra}]'"
    )


def test_a_compiler_that_is_too_new(monkeypatch, nvrtc, source):
    monkeypatch.setattr("tile_cuda.nvrtc_library.toolkits", lambda: (nvrtc.toolkit,))
    monkeypatch.setattr("tile_cuda.compilers.nvccs", tuple)
    assert str(refused(source, "sm_70")) == (
        "[TL5001] no installed compiler of CUDA makes code for sm_70\n"
        f"note: {nvrtc.name} does not know sm_70\n"
        "hint: pip install 'tile-api[cuda12]'"
    )


def test_a_library_that_cannot_be_loaded(tmp_path):
    broken = tmp_path / "libnvrtc.so.13"
    broken.write_bytes(b"nothing")
    with pytest.raises(ToolchainError, match=r"libnvrtc\.so\.13 cannot be loaded: "):
        load(Toolkit(broken, tmp_path))


def test_where_compilers_are_looked_for(monkeypatch, tmp_path):
    def install(*parts: str, header: str = "include") -> Path:
        library = tmp_path.joinpath(*parts)
        library.parent.mkdir(parents=True)
        library.write_bytes(b"")
        folder = library.parent.parent / header
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cuda_fp16.h").write_text("")
        return library

    new = install("site", "nvidia", "cu13", "lib", "libnvrtc.so.13")
    old = install("site", "nvidia", "cuda_nvrtc", "lib", "libnvrtc.so.12",
                  header="../cuda_runtime/include")  # fmt: skip
    home = install("home", "lib64", "libnvrtc.so.12")
    (tmp_path / "bare" / "lib64").mkdir(parents=True)
    (tmp_path / "bare" / "lib64" / "libnvrtc.so.12").write_bytes(b"")  # without headers
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "bare"))
    monkeypatch.setattr(tile_cuda.toolkit, "_pathfinder", lambda: iter(()))
    found = [t.library for t in toolkits() if str(t.library).startswith(str(tmp_path))]
    assert found == [new, old, home]


def test_which_package_brings_a_compiler():
    assert [extra_of(arch) for arch in ("sm_70", "sm_75", "sm_90a")] == ["cuda12", "cuda", "cuda"]


def test_the_header_is_handed_over_whole():
    texts = header_texts()
    assert {"tile.h", "tile_cuda.h", "tile_cuda/types.h", "tile_cuda/mma_float.h"} <= set(texts)
    included = [
        line.split('"')[1] for text in texts.values() for line in text.splitlines()
        if line.startswith('#include "tile_cuda')
    ]  # fmt: skip
    assert set(included) <= set(texts)


def test_complaints_without_a_place_are_no_complaints():
    assert parse_complaints("nvrtc: error: invalid value for --gpu-architecture (-arch)") == ()
