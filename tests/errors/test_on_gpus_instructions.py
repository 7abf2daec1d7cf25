"""Instructions named in a kernel, in forms that are not offered: code, line, reason and hint."""

from __future__ import annotations

import textwrap

import pytest

from support.mistakes import Mistake

HEAD = """
@T.prim_func
def kernel(A: T.Tensor((512,), "float16"), C: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=32):
        lane = T.get_thread_binding(0)
        s = T.alloc_shared((512,), "float16")
        r = T.alloc_local((8,), "float16")
        c = T.alloc_local((4,), "float32")
        e = T.alloc_local((16,), "float8_e4m3fn")
        T.clear(r)
        T.clear(c)
"""


def mistake(name: str, line: str, message: str, target: str = "cuda:sm_80@sim") -> Mistake:
    """Return a kernel whose line 11 is wrong."""
    program = (
        f'{HEAD}        {line}\n        C[lane] = c[0]\ntile.compile(kernel, target="{target}")'
    )
    place = f"""
  --> program.py:11:9
   |
11 |         {line}
   |         {"^" * len(line)}
"""
    first, hint = textwrap.dedent(message).strip().split("\n")
    return Mistake(name, program, first + place + hint, whole=True)


MISTAKES = [
    mistake(
        "an instruction of Hopper",
        "T.tma_load(s, A)",
        """
        [TL4001] T.tma_load is not an instruction of sm_80
        hint: use T.copy and T.gemm, which choose the instructions of each machine
        """,
    ),
    mistake(
        "a product of no known shape",
        'T.ptx_mma("m16n8k12", "row", "col", "fp16", "fp16", "fp32", r, 0, r, 0, c, 0, False)',
        """
        [TL4001] T.ptx_mma does not know the shape 'm16n8k12'
        hint: use one of m8n8k4, m8n8k16, m8n8k32, m16n8k4, m16n8k8, m16n8k16, m16n8k32, m16n8k64
        """,
    ),
    mistake(
        "factors the other way round",
        'T.ptx_mma("m16n8k16", "col", "row", "fp16", "fp16", "fp32", r, 0, r, 0, c, 0, False)',
        """
        [TL4001] T.ptx_mma multiplies a row-major A by a column-major B, not ['col', 'row']
        hint: pass "row", "col", and load B transposed
        """,
    ),
    mistake(
        "a product without sums",
        'T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", r, 0, r, 0, False)',
        """
        [TL1002] T.ptx_mma needs 3 addresses, got 2
        hint: pass buffers, or T.access_ptr of an element
        """,
    ),
    mistake(
        "a product of mixed factors",
        'T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp32", "fp32", r, 0, c, 0, c, 0, False)',
        """
        [TL4001] T.ptx_mma m16n8k16 of float16 and float32 onto float32 is not an instruction of sm_80
        hint: it has m16n8k16 of float16 and float16 onto float32; m16n8k4 of float32 and float32 onto float32; m16n8k8 of float16 and float16 onto float32
        """,  # noqa: E501
    ),
    mistake(
        "a product of other elements than it says",
        'T.ptx_mma("m16n8k16", "row", "col", "bf16", "fp16", "fp32", r, 0, r, 0, c, 0, False)',
        """
        [TL2002] T.ptx_mma is told that A is bf16, and the registers 'r' hold float16
        hint: name the element type of the registers, or load others
        """,
    ),
    mistake(
        "matrices of bytes",
        'T.ptx_ldmatrix(False, 4, ".b8", r, 0, s, lane * 8)',
        """
        [TL4001] T.ptx_ldmatrix loads matrices of 16-bit elements, not .b8
        hint: pass ".b16": a row of 16 bytes may hold other elements too
        """,
    ),
    mistake(
        "a product of later architectures",
        'T.ptx_mma("m16n8k32", "row", "col", "e4m3", "e4m3", "fp32", e, 0, e, 0, c, 0, False)',
        """
        [TL4001] T.ptx_mma m16n8k32 of float8_e4m3fn and float8_e4m3fn onto float32 is not an instruction of sm_80
        hint: it has m16n8k16 of bfloat16 and bfloat16 onto float32; m16n8k16 of float16 and float16 onto float32; m16n8k4 of float32 and float32 onto float32
        """,  # noqa: E501
    ),
    mistake(
        "a product of shared memory",
        'T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", s, 0, r, 0, c, 0, False)',
        """
        [TL2005] T.ptx_mma wants registers here, and 's' is in shared memory
        hint: load the elements into an array of the thread: T.alloc_local
        """,
    ),
    mistake(
        "matrices of global memory",
        'T.ptx_ldmatrix(False, 4, ".b16", r, 0, A, lane * 8)',
        """
        [TL2005] T.ptx_ldmatrix wants a shared tile here, and 'A' is in global memory
        hint: copy the elements into a tile of T.alloc_shared
        """,
    ),
    mistake(
        "an asynchronous copy between tiles",
        "T.ptx_cp_async(T.access_ptr(s[lane * 8], 'w'), T.access_ptr(s[256], 'r'), 8)",
        """
        [TL2005] T.ptx_cp_async wants a tensor here, and 's' is in shared memory
        hint: pass a parameter of the kernel, or T.access_ptr of its element
        """,
    ),
    mistake(
        "three matrices",
        'T.ptx_ldmatrix(False, 3, ".b16", r, 0, s, lane * 8)',
        """
        [TL1002] T.ptx_ldmatrix loads 1, 2 or 4 matrices
        hint: write T.ptx_ldmatrix(False, 4, ".b16", regs.data, 0, tile.data, offset)
        """,
    ),
    mistake(
        "matrices from nowhere",
        'T.ptx_ldmatrix(False, 4, ".b16", r, 0)',
        """
        [TL1002] T.ptx_ldmatrix needs 2 addresses, got 1
        hint: pass buffers, or T.access_ptr of an element
        """,
    ),
    mistake(
        "an asynchronous copy of two bytes",
        "T.ptx_cp_async(T.access_ptr(s[lane], 'w'), T.access_ptr(A[lane], 'r'), 1)",
        """
        [TL1002] T.ptx_cp_async copies 4, 8 or 16 bytes, not 1 elements of float16
        hint: write T.ptx_cp_async(T.access_ptr(S[i], 'w'), T.access_ptr(A[j], 'r'), 8)
        """,
    ),
    mistake(
        "an asynchronous copy of three bytes, by offsets",
        "T.ptx_cp_async('float16', s.data, lane, A.data, lane, 3)",
        """
        [TL1002] T.ptx_cp_async copies 4, 8 or 16 bytes, not 3
        hint: write T.ptx_cp_async(T.access_ptr(S[i], 'w'), T.access_ptr(A[j], 'r'), 8)
        """,
    ),
    mistake(
        "a product of sparse tiles",
        "T.wgmma_gemm_sp(s, e, s, c)",
        """
        [TL4001] T.wgmma_gemm_sp is an instruction that is not offered on cuda:sm_80@sim
        hint: use the portable operators: T.copy, and T.gemm of dense tiles
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected


def test_the_type_of_the_sum_may_lead() -> None:
    """As in other dialects, which name it a second time behind the layouts."""
    line = (
        'T.ptx_mma("float32", "m16n8k16", "row", "col", "fp16", "bf16", "fp32", r, 0, r, 0, c, 0)'
    )
    message = str(Mistake("", mistake("", line, "x\ny").program, "", whole=True).error())
    assert message.startswith("[TL2002] T.ptx_mma is told that B is bf16, and the registers 'r'")
