"""What AMD GPUs cannot run, or clang cannot compile: code, line, reason and hint."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from support.toolchain import amd_compiler_for
from tile_core.errors import ToolchainError
from tile_hip import compilers

COPY = """
@T.prim_func
def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128):
        a = T.alloc_fragment((64, 64), "float16")
        T.copy(A, a)
        T.copy(a, B)
"""

MISTAKES = [
    Mistake(
        "more threads than a block has",
        """
        @T.prim_func
        def kernel(A: T.Tensor((4096,), "float32")):
            with T.Kernel(1, threads=2048):
                for i in T.Parallel(4096):
                    A[i] = 0
        tile.compile(kernel, target="hip:gfx942")
        """,
        """
        [TL4001] a block of 2048 threads is more than gfx942 runs: 1024
         --> program.py:3:5
          |
        3 |     with T.Kernel(1, threads=2048):
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: ask for threads=1024 or fewer
        """,
        whole=True,
    ),
    Mistake(
        "an instruction of another maker",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16, 16), "float16"), B: T.Tensor((256,), "float16")):
            with T.Kernel(1, threads=64):
                lane = T.get_thread_binding(0)
                a = T.alloc_shared((16, 16), "float16")
                r = T.alloc_local((8,), "float16")
                T.copy(A, a)
                T.ptx_ldmatrix(False, 4, ".b16", r, 0, a, lane % 16 * 16 + lane // 16 % 2 * 8)
                for i in T.unroll(8):
                    B[lane % 32 * 8 + i] = r[i]
        tile.compile(kernel, target="hip:gfx90a")
        """,
        """
        [TL4001] T.ptx_ldmatrix is not an instruction of gfx90a
         --> program.py:8:9
          |
        8 |         T.ptx_ldmatrix(False, 4, ".b16", r, 0, a, lane % 16 * 16 + lane // 16 % 2 * 8)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.copy and T.gemm, which choose the instructions of each machine
        """,
        whole=True,
    ),
    Mistake(
        "tiles larger than shared memory",
        """
        @T.prim_func
        def kernel(A: T.Tensor((256, 128), "float32")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((256, 128), "float32")
                T.clear(a)
                T.copy(a, A)
        tile.compile(kernel, target="hip:gfx90a")
        """,
        """
        [TL4005] a block needs 131072 bytes of shared memory, and gfx90a gives it 65536
         --> program.py:3:5
          |
        3 |     with T.Kernel(1, threads=128):
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: a[256, 128] of float32 takes 131072 bytes
         --> program.py:4:13
          |
        4 |         a = T.alloc_shared((256, 128), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use smaller tiles or a narrower element type
        """,
        whole=True,
    ),
    Mistake(
        "an architecture that does not exist",
        COPY + """tile.compile(kernel, target="hip:gfx941")""",
        """
        [TL4003] no AMD architecture that is known here is called 'gfx941'
         --> program.py:7:1
          |
        7 | tile.compile(kernel, target="hip:gfx941")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean 'hip:gfx942'?
        """,
        whole=True,
    ),
    Mistake(
        "the name of a product",
        COPY + """tile.compile(kernel, target="hip:mi300x@sim")""",
        """
        [TL4003] no AMD architecture that is known here is called 'mi300x'
         --> program.py:7:1
          |
        7 | tile.compile(kernel, target="hip:mi300x@sim")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of gfx90a, gfx942, gfx950
        """,
        whole=True,
    ),
]

COMPILED = [
    Mistake(
        "a mistake in the user's C text",
        '''
        @T.prim_func
        def kernel(A: T.Tensor((16,), "int32")):
            with T.Kernel(1, threads=16):
                tx = T.get_thread_binding(0)
                T.import_source("""
        __device__ int twice(int x) {
          return y + x;
        }""")
                A[tx] = T.call_extern("int32", "twice", A[tx])
        tile.compile(kernel, target="hip:gfx942")
        ''',
        """
        [TL5001] clang x.y does not accept the kernel's C++ for gfx942:
        import_source:2: error: use of undeclared identifier 'y'
          return y + x;
                 ^
          --> program.py:10:1
           |
        10 | tile.compile(kernel, target="hip:gfx942")
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: lines are counted from the first of the text given to T.import_source
        """,
        whole=True,
    ),
    Mistake(
        "a flag that clang does not know",
        COPY + """tile.compile(kernel, target="hip:gfx942", compile_flags=["--no-such-flag"])""",
        """
        [TL5001] clang x.y: unknown argument: '--no-such-flag'
         --> program.py:7:1
          |
        7 | tile.compile(kernel, target="hip:gfx942", compile_flags=["--no-such-flag"])
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: compile_flags go to clang
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected


@pytest.mark.parametrize("mistake", COMPILED, ids=str)
def test_message_where_there_is_a_compiler(mistake: Mistake) -> None:
    name = amd_compiler_for("gfx942").name
    assert str(mistake.error()).replace(name, "clang x.y") == mistake.expected


NO_COMPILER = """\
[TL5001] no compiler that is installed makes code for gfx942
 --> program.py:7:1
  |
7 | tile.compile(kernel, target="hip:gfx942")
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: pip install 'tile-hip[zig]', or apt install clang-19 lld-19, or install ROCm"""


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.delenv("TILE_HIP_COMPILER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for places in ("libraries", "_rocm_roots", "zigs"):
        monkeypatch.setattr(compilers, places, tuple)
    monkeypatch.setattr(compilers, "_PROGRAMS", {})
    text = COPY.replace("128", "96") + 'tile.compile(kernel, target="hip:gfx942")'
    error = Mistake("", text, "", whole=True).error()
    assert type(error) is ToolchainError
    assert str(error) == NO_COMPILER
