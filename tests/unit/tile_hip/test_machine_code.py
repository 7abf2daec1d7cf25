"""Compiling printed kernels with each clang: code, the user's lines, and what goes wrong."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

import tile_api as tile
import tile_api.language as T
from support.scale_kernel import TEXT, scale_source
from support.toolchain import amd_compiler_for, installed_clangs
from tile_core.codegen import PrintedSource
from tile_core.errors import Span, TileWarning, ToolchainError, UnsupportedOnTarget
from tile_hip.assembly import kernels_of
from tile_hip.clang import Clang
from tile_hip.compile_errors import parse_complaints
from tile_hip.machine_code import compile_source

CLANGS = installed_clangs() or [pytest.param(None, marks=pytest.mark.skip("needs a clang"))]


@pytest.fixture(params=CLANGS, ids=lambda clang: getattr(clang, "name", "none").replace(" ", "_"))
def clang(request, monkeypatch) -> Clang:
    """Each installed clang, wished for."""
    monkeypatch.setattr("tile_hip.machine_code.wanted_compiler", lambda arch, wish: request.param)
    return request.param


@pytest.fixture
def source() -> PrintedSource:
    return scale_source()


def refused(source: PrintedSource, *flags: str) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        compile_source(source, "gfx942", flags)
    return caught.value


def test_machine_code_and_what_was_said_of_it(clang, source):
    found = compile_source(source, "gfx942")
    assert found.code.startswith(b"\x7fELF")
    assert 'amdgcn_target "amdgcn-amd-amdhsa--gfx942"' in found.assembly
    assert found.compiler == clang.name
    assert list(found.resources) == list(kernels_of(found.assembly)) == ["scale"]
    assert 0 < found.resources["scale"].registers < 32
    assert found.resources["scale"].stack_bytes == 0


def test_the_line_of_the_user_is_refused(clang, source):
    text = TEXT.replace("twice(A[tid])", "nowhere(A[tid])")
    error = refused(replace(source, text=text))
    marks = error.message.rsplit(" ", 1)[1]
    assert marks.rstrip("~") == "^"  # newer ones underline the whole name
    assert error.span == Span("program.py", 5, 19, 58)
    assert error.message == (
        f"{clang.name} does not accept the kernel's C++ for gfx942:\n"
        "program.py:5: error: use of undeclared identifier 'nowhere'\n"
        "  A[tid] = nowhere(A[tid]);\n"
        f"           {marks}"
    )
    assert error.hint == "bring the function along: T.import_source('__device__ ...')"


def test_c_text_of_the_user_is_refused(clang, source):
    error = refused(replace(source, text=TEXT.replace("2.0f * x", "2.0f * y")))
    assert error.span is None
    assert error.message == (
        f"{clang.name} does not accept the kernel's C++ for gfx942:\n"
        "import_source:2: error: use of undeclared identifier 'y'\n"
        "  return 2.0f * y;\n"
        "                ^"
    )
    assert error.hint == "lines are counted from the first of the text given to T.import_source"


def test_an_error_inside_the_device_header_counts_for_the_line_that_used_it(clang, source):
    line = "tile::frag<half_t, 8> a; tile::ldmatrix_x4(a, A);"
    error = refused(replace(source, text=TEXT.replace("A[tid] = twice(A[tid]);", line)))
    assert error.span == Span("program.py", 5, 19, 58)
    assert error.message.splitlines()[1].startswith("program.py:5: error: ")


def test_an_error_at_a_line_that_the_printer_added(clang, source):
    error = refused(replace(source, text=TEXT.replace("const int tid", "const int* tid")))
    assert error.span == source.lines[8]  # the closest line above that came from the user
    assert error.message.splitlines()[1].startswith("kernel.hip:9: error: ")


def test_many_errors_are_cut(clang, source):
    text = TEXT.replace("A[tid] = twice(A[tid]);", " ".join(f"A[{i}] = f{i}();" for i in range(9)))
    message = refused(replace(source, text=text)).message
    assert message.count("error: use of undeclared") == 5
    assert message.endswith("\nand 4 more")


def test_an_unknown_flag(clang, source):
    assert str(refused(source, "--no-such-flag")) == (
        f"[TL5001] {clang.name}: unknown argument: '--no-such-flag'\n"
        "hint: compile_flags go to clang"
    )


def test_an_instruction_that_the_assembler_refuses(clang, source):
    text = TEXT.replace("return 2.0f * x;", 'asm volatile("v_nothing_b32"); return x;')
    error = refused(replace(source, text=text))
    assert error.message.startswith(f"{clang.name} failed to assemble for gfx942:\nkernel.s:")
    assert error.hint == "the assembler refuses an instruction: look for asm() in T.import_source"


def test_flags_reach_the_compiler(clang, source):
    text = TEXT.replace("2.0f * x", "SCALE * x")
    found = compile_source(replace(source, text=text), "gfx942", ["-DSCALE=3.0f", "-lineinfo"])
    assert "0x40400000" in found.assembly


def test_arrays_in_scratch_memory_are_told_at_the_line_of_the_kernel(clang, source):
    indexed = """
  float own[40];
  for (int i = 0; i < 40; ++i) own[int(A[i]) % 40] = A[i + tid];
  A[tid] = own[int(A[tid]) % 40];
"""
    heavy = replace(source, text=TEXT.replace("  A[tid] = twice(A[tid]);\n", indexed))
    with pytest.warns(TileWarning, match=r"kernel 'scale' keeps \d+ bytes of each thread") as told:
        compile_source(heavy, "gfx942")
    assert (told[0].filename, told[0].lineno) == ("program.py", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_source(heavy, "gfx942", warn=False)


@T.prim_func
def doubled(A: T.Tensor((256,), "float32")):
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            A[bx * 128 + i] = A[bx * 128 + i] * 2


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_what_users_see(arch):
    amd_compiler_for(arch)
    kernel = tile.compile(doubled, target=f"hip:{arch}")
    assert f"// doubled for {arch}\nTILE_KERNEL(128, " in kernel.get_kernel_source()
    assert "global_store_dword" in kernel.asm
    (needs,) = kernel.resources.values()
    assert (needs.name, needs.stack_bytes, needs.spill_stores) == ("doubled", 0, 0)
    assert needs.resident.fraction == 1.0
    assert needs.resident.blocks == 16
    for missing in ("ptx", "sass"):
        with pytest.raises(UnsupportedOnTarget, match=f"kernels for hip:{arch} have no {missing}"):
            getattr(kernel, missing)


@pytest.mark.parametrize("clang", installed_clangs(), ids=lambda c: c.name.replace(" ", "_"))
def test_a_kernel_names_its_compiler(clang, monkeypatch):
    if clang.kind == "zig":
        wish = {tile.PassConfigKey.HIP_COMPILER: "zig"}
    else:
        wish = {tile.PassConfigKey.HIP_COMPILER: clang.command[0]}
    kernel = tile.compile(doubled, target="hip:gfx942", pass_configs=wish)
    assert kernel.artifact.compiled.compiler == clang.name
    monkeypatch.setenv("TILE_HIP_COMPILER", next(iter(wish.values())))
    assert tile.compile(doubled, target="hip:gfx942").artifact.compiled.compiler == clang.name


LOG = """\
In file included from kernel.hip:1:
/include/tile_hip/matrix.h:7:17: error: static assertion failed: needs more
    7 |   static_assert(no, "needs more");
      |                 ^~
program.py:5:10: note: in instantiation of function template specialization 'tile::f' requested here
    5 |   tile::f(a);
      |         ^
/include/tile_hip/matrix.h:8:17: error: and another
    8 |   other();
      |   ^
program.py:9:1: warning: unused variable 'x' [-Wunused]
    9 | int x;
      | ^
kernel.hip:3:4: fatal error: too bad
x y z;
   ^
2 errors generated when compiling for gfx942.
"""


def test_complaints():
    first, second, third = parse_complaints(LOG)
    assert (first.text, first.file, first.line) == (
        "static assertion failed: needs more", "program.py", 5
    )  # fmt: skip
    assert (second.text, second.file, second.line) == ("and another", "program.py", 5)
    assert (third.text, third.file, third.line) == ("too bad", "kernel.hip", 3)
    assert third.lines == ("x y z;", "   ^")  # as LLVM 15 prints it
    assert parse_complaints("clang: error: unknown argument: '-x'") == ()
