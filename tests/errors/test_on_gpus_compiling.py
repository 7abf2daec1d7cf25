# ruff: noqa: E501 - messages are compared as they are printed
"""What NVIDIA GPUs cannot run, or NVRTC cannot compile: code, line, reason and hint."""

from __future__ import annotations

import re

import pytest

from support.mistakes import Mistake
from support.toolchain import nvrtc_for
from tile_core.errors import ToolchainError
from tile_cuda import compilers, nvrtc_library

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
        tile.compile(kernel, target="cuda:sm_80")
        """,
        """
        [TL4001] a block of 2048 threads is more than sm_80 runs: 1024
         --> program.py:3:5
          |
        3 |     with T.Kernel(1, threads=2048):
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: ask for threads=1024 or fewer
        """,
        whole=True,
    ),
    Mistake(
        "a block that is too deep",
        """
        @T.prim_func
        def kernel(A: T.Tensor((4096,), "float32")):
            with T.Kernel(1, threads=(4, 1, 128)):
                for i in T.Parallel(4096):
                    A[i] = 0
        tile.compile(kernel, target="cuda:sm_80")
        """,
        """
        [TL4001] a block of 128 threads along z is more than sm_80 runs: 64
         --> program.py:3:5
          |
        3 |     with T.Kernel(1, threads=(4, 1, 128)):
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: let the first number of threads=(x, y, z) be the largest
        """,
        whole=True,
    ),
    Mistake(
        "a grid that is too wide",
        """
        @T.prim_func
        def kernel(A: T.Tensor((4096,), "float32")):
            with T.Kernel(1, 70000, threads=128):
                for i in T.Parallel(4096):
                    A[i] = 0
        tile.compile(kernel, target="cuda:sm_80@sim")(np.zeros(4096, "float32"))
        """,
        """
        [TL4001] 70000 blocks along y are more than sm_80 runs: 65535
         --> program.py:3:5
          |
        3 |     with T.Kernel(1, 70000, threads=128):
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give the longest extent first: T.Kernel(long, short)
        """,
        whole=True,
    ),
    Mistake(
        "an instruction of later architectures",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16, 16), "float16"), B: T.Tensor((256,), "float16")):
            with T.Kernel(1, threads=32):
                lane = T.get_thread_binding(0)
                a = T.alloc_shared((16, 16), "float16")
                r = T.alloc_local((8,), "float16")
                T.copy(A, a)
                T.ptx_ldmatrix(False, 4, ".b16", r, 0, a, lane % 16 * 16 + lane // 16 * 8)
                for i in T.unroll(8):
                    B[lane * 8 + i] = r[i]
        tile.compile(kernel, target="cuda:sm_70")
        """,
        """
        [TL4001] T.ptx_ldmatrix is not an instruction of sm_70
         --> program.py:8:9
          |
        8 |         T.ptx_ldmatrix(False, 4, ".b16", r, 0, a, lane % 16 * 16 + lane // 16 * 8)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.copy and T.gemm, which choose the instructions of each machine
        """,
        whole=True,
    ),
    Mistake(
        "a product of later architectures",
        """
        @T.prim_func
        def kernel(C: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=32):
                lane = T.get_thread_binding(0)
                a = T.alloc_local((8,), "float16")
                b = T.alloc_local((4,), "float16")
                c = T.alloc_local((4,), "float32")
                T.clear(a)
                T.clear(b)
                T.clear(c)
                T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", a, 0, b, 0, c, 0, False)
                C[lane] = c[0]
        tile.compile(kernel, target="cuda:sm_75@sim")
        """,
        """
        [TL4001] T.ptx_mma m16n8k16 of float16 and float16 onto float32 is not an instruction of sm_75
          --> program.py:11:9
           |
        11 |         T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", a, 0, b, 0, c, 0, False)
           |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: it has m16n8k8 of float16 and float16 onto float32; m8n8k4 of float16 and float16 onto float32; m16n8k8 of float16 and float16 onto float16
        """,
        whole=True,
    ),
    Mistake(
        "tiles larger than shared memory",
        """
        @T.prim_func
        def kernel(A: T.Tensor((256, 256), "float32")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((256, 256), "float32")
                T.clear(a)
                T.copy(a, A)
        tile.compile(kernel, target="cuda:sm_75")
        """,
        """
        [TL4005] a block needs 262144 bytes of shared memory, and sm_75 gives it 65536
         --> program.py:3:5
          |
        3 |     with T.Kernel(1, threads=128):
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: a[256, 256] of float32 takes 262144 bytes
         --> program.py:4:13
          |
        4 |         a = T.alloc_shared((256, 256), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use smaller tiles or a narrower element type
        """,
        whole=True,
    ),
    Mistake(
        "warps that cannot share a product",
        """
        @T.prim_func
        def kernel(A: T.Tensor((272, 16), "float16"), B: T.Tensor((16, 272), "float16")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((272, 16), "float16")
                b = T.alloc_shared((16, 272), "float16")
                c = T.alloc_fragment((272, 272), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.gemm(a, b, c, clear_accum=True)
        tile.compile(kernel, target="cuda:sm_80")
        """,
        """
        [TL4007] 4 warps cannot partition a matrix product of 272 x 272 with policy Square: it has 17 x 34 pieces of 16 x 8, and no grid of warps divides them; without matrix instructions one thread has 578 accumulator registers, and 255 at most
         --> program.py:9:9
          |
        9 |         T.gemm(a, b, c, clear_accum=True)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use threads=544, or a tile with more divisors
        """,
        whole=True,
    ),
    Mistake(
        "factors that no machine multiplies",
        """
        @T.prim_func
        def kernel(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((64, 64), "float16")
                b = T.alloc_shared((64, 64), "int8")
                c = T.alloc_fragment((64, 64), "float32")
                T.copy(A, a)
                T.clear(b)
                T.gemm(a, b, c, clear_accum=True)
                T.copy(c, C)
        tile.compile(kernel, target="cuda:sm_80")
        """,
        """
        [TL2002] T.gemm cannot accumulate float16 x int8 in float32
         --> program.py:9:9
          |
        9 |         T.gemm(a, b, c, clear_accum=True)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: a is declared here
         --> program.py:4:13
          |
        4 |         a = T.alloc_shared((64, 64), "float16")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: b is declared here
         --> program.py:5:13
          |
        5 |         b = T.alloc_shared((64, 64), "int8")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: c is declared here
         --> program.py:6:13
          |
        6 |         c = T.alloc_fragment((64, 64), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy one operand into a tile of the other's element type first
        """,
        whole=True,
    ),
    Mistake(
        "an architecture that does not exist",
        COPY + """tile.compile(kernel, target="cuda:sm_81")""",
        """
        [TL4003] no NVIDIA architecture is called 'sm_81'
         --> program.py:7:1
          |
        7 | tile.compile(kernel, target="cuda:sm_81")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean 'cuda:sm_89' or 'cuda:sm_87' or 'cuda:sm_86'?
        """,
        whole=True,
    ),
    Mistake(
        "an architecture that is too old",
        COPY + """tile.compile(kernel, target="cuda:sm_60@sim")""",
        """
        [TL4003] no NVIDIA architecture is called 'sm_60'
         --> program.py:7:1
          |
        7 | tile.compile(kernel, target="cuda:sm_60@sim")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean 'cuda:sm_90' or 'cuda:sm_86' or 'cuda:sm_80'?
        """,
        whole=True,
    ),
    Mistake(
        "the name of a generation",
        COPY + """tile.compile(kernel, target="cuda:ampere")""",
        """
        [TL4003] no NVIDIA architecture is called 'ampere'
         --> program.py:7:1
          |
        7 | tile.compile(kernel, target="cuda:ampere")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of sm_70, sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, sm_100f, sm_100a, sm_103a, sm_110a, sm_120f, sm_120a, sm_121a
        """,
        whole=True,
    ),
]

COMPILED = [
    Mistake(
        "a tensor of the host",
        COPY
        + """tile.compile(kernel, target="cuda:sm_80")(np.zeros((64, 64), "float16"), np.zeros((64, 64), "float16"))""",
        """
        [TL6006] kernel.A.device: the kernel runs on cuda, the tensor is on cpu
        note: the parameter is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: move the tensor to cuda, or compile for the machine it is on
        """,
        whole=True,
    ),
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
        tile.compile(kernel, target="cuda:sm_80")
        ''',
        """
        [TL5001] NVRTC x.y does not accept the kernel's C++ for sm_80:
        import_source:2: error: identifier "y" is undefined
            return y + x;
                   ^
          --> program.py:10:1
           |
        10 | tile.compile(kernel, target="cuda:sm_80")
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: lines are counted from the first of the text given to T.import_source
        """,
        whole=True,
    ),
    Mistake(
        "a function that nobody brought",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "int32")):
            with T.Kernel(1, threads=16):
                tx = T.get_thread_binding(0)
                A[tx] = T.call_extern("int32", "nowhere", A[tx])
        tile.compile(kernel, target="cuda:sm_80")
        """,
        """
        [TL5001] NVRTC x.y does not accept the kernel's C++ for sm_80:
        program.py:5: error: identifier "nowhere" is undefined
            A[tx] = nowhere(int(A[tx]));  // program.py:5
                    ^
         --> program.py:5:9
          |
        5 |         A[tx] = T.call_extern("int32", "nowhere", A[tx])
          |         ^^^^^
        hint: bring the function along: T.import_source('__device__ ...')
        """,
        whole=True,
    ),
    Mistake(
        "a flag that NVRTC does not know",
        COPY + """tile.compile(kernel, target="cuda:sm_80", compile_flags=["--no-such-flag"])""",
        """
        [TL5001] NVRTC x.y: unrecognized option --no-such-flag found
         --> program.py:7:1
          |
        7 | tile.compile(kernel, target="cuda:sm_80", compile_flags=["--no-such-flag"])
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: compile_flags go to NVRTC; it has the options of nvcc that concern code for GPUs
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected


@pytest.mark.parametrize("mistake", COMPILED, ids=str)
def test_message_where_there_is_a_compiler(mistake: Mistake) -> None:
    nvrtc_for("sm_80")
    message = re.sub(r"NVRTC [0-9]+[.][0-9]+", "NVRTC x.y", str(mistake.error()))
    assert message == mistake.expected


NO_COMPILER = """\
[TL5001] CUDA's run-time compiler (NVRTC) is not installed; it is needed for sm_80
 --> program.py:7:1
  |
7 | tile.compile(kernel, target="cuda:sm_80")
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: pip install 'tile-api[cuda]'"""


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc_library, "toolkits", tuple)
    monkeypatch.setattr(compilers, "nvccs", tuple)
    text = COPY.replace("128", "96") + 'tile.compile(kernel, target="cuda:sm_80")'
    error = Mistake("", text, "", whole=True).error()
    assert type(error) is ToolchainError
    assert str(error) == NO_COMPILER
