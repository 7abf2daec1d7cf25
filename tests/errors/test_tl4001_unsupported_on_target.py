# ruff: noqa: E501 - messages are compared as they are printed
"""TL4001: the target has no way to run an operator or intrinsic; notes say why."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import UnsupportedOnTarget

MISTAKES = [
    Mistake(
        "an instruction of GPUs",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16, 16), "float16")):
            with T.Kernel(2, cluster_dims=2):
                tile_ = T.alloc_shared((16, 16), "float16")
                T.copy_cluster(tile_, tile_, dst_block=1)
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL4001] T.copy_cluster is an instruction of GPUs; cpu does not have it
         --> program.py:5:9
          |
        5 |         T.copy_cluster(tile_, tile_, dst_block=1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use the portable operators (T.copy, T.gemm, T.sync_threads), or compile for a GPU
        """,
        whole=True,
    ),
    Mistake(
        "an engine of GPUs asked for by name",
        """
        @T.prim_func
        def kernel(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
            with T.Kernel(1):
                T.atomic_add(B, A, use_tma=True)
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL4001] no rule lowers 'atomic' on cpu
         --> program.py:4:9
          |
        4 |         T.atomic_add(B, A, use_tma=True)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: cpu.serial: use_tma asks for the tensor memory accelerator of a GPU
        hint: change the operands as the notes ask, or compile for another target
        """,
        whole=True,
    ),
    Mistake(
        "a barrier of another block",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(2, threads=128, cluster_dims=2):
                ready = T.alloc_cluster_barrier(128)
                T.mbarrier_arrive(ready, 1)
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL4001] T.mbarrier_arrive is an instruction of GPUs; cpu does not have it
         --> program.py:5:9
          |
        5 |         T.mbarrier_arrive(ready, 1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use the portable operators (T.copy, T.gemm, T.sync_threads), or compile for a GPU
        """,
        whole=True,
    ),
    Mistake(
        "threads that part before they meet",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=32):
                if T.get_thread_binding(0) < 16:
                    T.sync_threads()
                A[T.get_thread_binding(0)] = 1.0
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL4001] threads of a block take different ways around something they must do together
         --> program.py:5:13
          |
        5 |             T.sync_threads()
          |             ^^^^^^^^^^^^^^^^
        note: the threads meet here
         --> program.py:5:13
          |
        5 |             T.sync_threads()
          |             ^^^^^^^^^^^^^^^^
        hint: make the condition the same for all threads, or run the kernel in the reference interpreter (TILE_INTERPRET=1) or in an emulator of GPUs (@sim)
        """,
        whole=True,
    ),
    Mistake(
        "memory of other machines",
        """
        described = T.alloc_descriptor("wgmma", "uint64")
        """,
        """
        [TL4001] T.alloc_descriptor describes memory or registers that only recent NVIDIA GPUs have
         --> program.py:6:21
          |
        6 |         described = T.alloc_descriptor("wgmma", "uint64")
          |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.alloc_shared and T.alloc_fragment
        """,
    ),
    Mistake(
        "roles of warps",
        """
        T.annotate_ws_schedule(n)
        """,
        """
        [TL4001] T.annotate_ws_schedule schedules the warps of a GPU by role
         --> program.py:6:9
          |
        6 |         T.annotate_ws_schedule(n)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.ws for the groups of a block, or T.Pipelined, which overlaps copies with work
        """,
    ),
    Mistake(
        "calling Python's runtime",
        """
        T.call_packed("print", n)
        """,
        """
        [TL4001] T.call_packed builds host code, which this compiler writes itself
         --> program.py:6:9
          |
        6 |         T.call_packed("print", n)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.call_extern to call a C function
        """,
    ),
    Mistake(
        "an intrinsic of another compiler",
        """
        A[0, 0] = T.call_intrin("float32", "tir.teleport", n)
        """,
        """
        [TL4001] there is no intrinsic 'tir.teleport'
         --> program.py:6:19
          |
        6 |         A[0, 0] = T.call_intrin("float32", "tir.teleport", n)
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: call a C function with T.call_extern, or use the function of T of that name
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is UnsupportedOnTarget
    assert str(error) == mistake.expected
