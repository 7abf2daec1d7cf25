# ruff: noqa: E501 - messages are compared as they are printed
"""What is refused on the way from tiles to threads: code, line, reason and hint."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake

MISTAKES = [
    Mistake(
        "a barrier of the grid in a loop of clusters",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128,), "float32"), n: T.int32):
            with T.Kernel(2, threads=32, cluster_dims=(2, 1, 1)):
                t = T.get_thread_binding(0)
                for k in T.serial(n):
                    A[t] = k
                    T.sync_grid()
        tile.compile(kernel, target="cuda:sm_90a@sim")
        """,
        """
        [TL4001] a barrier of the whole grid stands in a loop or branch of blocks that form clusters
         --> program.py:7:13
          |
        7 |             T.sync_grid()
          |             ^^^^^^^^^^^^^
        hint: leave cluster_dims out, or put the barrier at the top level of the kernel
        """,
        whole=True,
    ),
    Mistake(
        "a barrier of the grid for some threads alone",
        """
        @T.prim_func
        def kernel(A: T.Tensor((256,), "float32")):
            with T.Kernel(1, threads=256):
                with T.ws(0):
                    T.sync_grid()
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL4001] a barrier of the whole grid stands where not all threads of a block run
         --> program.py:5:13
          |
        5 |             T.sync_grid()
          |             ^^^^^^^^^^^^^
        hint: put the barrier where every thread of every block reaches it
        """,
        whole=True,
    ),
    Mistake(
        "a barrier in memory behind a barrier of the grid",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=32):
                ready = T.alloc_barrier(32)
                T.barrier_arrive(ready)
                T.sync_grid()
                T.barrier_wait(ready, 0)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL4001] 'ready' is kept across a barrier of the whole grid, and blocks that run one after another cannot do that
         --> program.py:7:9
          |
        7 |         T.barrier_wait(ready, 0)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        note: it is made here
         --> program.py:4:17
          |
        4 |         ready = T.alloc_barrier(32)
          |                 ^^^^^^^^^^^^^^^^^^^
        hint: put the barrier at the top level of the kernel, and what must outlive it into T.alloc_global or a tensor
        """,
        whole=True,
    ),
    Mistake(
        "a data-parallel loop over what each thread has",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=32):
                t = T.get_thread_binding(0)
                r = T.alloc_local((4,), "float32")
                r[0] = t
                for i in T.Parallel(128):
                    A[i] = r[0]
                T.sync_threads()
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL4001] a data-parallel loop uses 'r', of which each thread has its own
         --> program.py:7:9
          |
        7 |         for i in T.Parallel(128):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: index the threads yourself, or run it with TILE_INTERPRET=1
        """,
        whole=True,
    ),
    Mistake(
        "a data-parallel loop over the number of the thread",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=32):
                t = T.get_thread_binding(0)
                for i in T.Parallel(128):
                    A[i] = t // 32
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL4001] a data-parallel loop uses 'tx', which differs between threads
         --> program.py:5:9
          |
        5 |         for i in T.Parallel(128):
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: index the threads yourself, or run it with TILE_INTERPRET=1
        """,
        whole=True,
    ),
    Mistake(
        "a reduction of part of a register tile",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128, 64), "float32"), n: T.int32):
            with T.Kernel(1, threads=128):
                f = T.alloc_fragment((128, 64), "float32")
                g = T.alloc_fragment((128, 64), "float32")
                r = T.alloc_fragment((128,), "float32")
                s = T.alloc_shared((128, 64), "float32")
                T.copy(A, f)
                T.reduce_sum(f[:, 0:n], r, dim=1)
                T.copy(f, A)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL2001] a reduction of registers needs extents known at compile time
         --> program.py:9:9
          |
        9 |         T.reduce_sum(f[:, 0:n], r, dim=1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: reduce a tile of fixed extents
        """,
        whole=True,
    ),
    Mistake(
        "a scan of part of a register tile",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128, 64), "float32"), n: T.int32):
            with T.Kernel(1, threads=128):
                f = T.alloc_fragment((128, 64), "float32")
                g = T.alloc_fragment((128, 64), "float32")
                r = T.alloc_fragment((128,), "float32")
                s = T.alloc_shared((128, 64), "float32")
                T.copy(A, f)
                T.cumsum(f[:, 0:n], g[:, 0:n], dim=1)
                T.copy(f, A)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL2001] a scan needs extents known at compile time
         --> program.py:9:9
          |
        9 |         T.cumsum(f[:, 0:n], g[:, 0:n], dim=1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: scan a tile of fixed extents, and carry the last element over
        """,
        whole=True,
    ),
    Mistake(
        "part of a register tile into one spread differently",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128, 64), "float32"), n: T.int32):
            with T.Kernel(1, threads=128):
                f = T.alloc_fragment((128, 64), "float32")
                g = T.alloc_fragment((128, 64), "float32")
                r = T.alloc_fragment((128,), "float32")
                s = T.alloc_shared((128, 64), "float32")
                T.copy(A, f)
                T.annotate_layout({f: T.Fragment((128, 64), forward_thread_fn=lambda i, j: i, forward_index_fn=lambda i, j: j), g: T.Fragment((128, 64), forward_thread_fn=lambda i, j: j % 64 * 2 + i % 2, forward_index_fn=lambda i, j: i // 2)})
                T.copy(f[0:n, :], g[0:n, :])
                T.copy(g, A)
                T.copy(f, A)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL2001] a copy between register tiles that are spread differently needs extents known at compile time
          --> program.py:10:9
           |
        10 |         T.copy(f[0:n, :], g[0:n, :])
           |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy whole tiles
        """,
        whole=True,
    ),
    Mistake(
        "part of a register tile for each thread",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128, 64), "float32"), n: T.int32):
            with T.Kernel(1, threads=128):
                f = T.alloc_fragment((128, 64), "float32")
                g = T.alloc_fragment((128, 64), "float32")
                r = T.alloc_fragment((128,), "float32")
                s = T.alloc_shared((128, 64), "float32")
                T.copy(A, f)
                x = T.alloc_local((128, 64), "float32")
                T.copy(f[0:n, :], x[0:n, :])
                A[0, 0] = x[0, 1]
                T.copy(f, A)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL2001] a copy of the register tile 'f' needs extents known at compile time
          --> program.py:10:9
           |
        10 |         T.copy(f[0:n, :], x[0:n, :])
           |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy whole tiles
        """,
        whole=True,
    ),
    Mistake(
        "part of a register tile from each thread",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128, 64), "float32"), n: T.int32):
            with T.Kernel(1, threads=128):
                f = T.alloc_fragment((128, 64), "float32")
                g = T.alloc_fragment((128, 64), "float32")
                r = T.alloc_fragment((128,), "float32")
                s = T.alloc_shared((128, 64), "float32")
                T.copy(A, f)
                x = T.alloc_local((128, 64), "float32")
                T.copy(x[0:n, :], f[0:n, :])
                A[0, 0] = x[0, 1]
                T.copy(f, A)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL2001] a copy of the register tile 'f' needs extents known at compile time
          --> program.py:10:9
           |
        10 |         T.copy(x[0:n, :], f[0:n, :])
           |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy whole tiles
        """,
        whole=True,
    ),
    Mistake(
        "part of a register tile into halves of bytes",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128, 64), "int4"), n: T.int32):
            with T.Kernel(1, threads=128):
                f = T.alloc_fragment((128, 64), "int4")
                T.clear(f)
                T.copy(f[0:n, :], A[0:n, :])
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL2001] a copy of the register tile 'f' needs extents known at compile time
         --> program.py:6:9
          |
        6 |         T.copy(f[0:n, :], A[0:n, :])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy whole tiles
        """,
        whole=True,
    ),
    Mistake(
        "a conversion by asynchronous instructions",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128, 64), "float32"), B: T.Tensor((128, 64), "float16")):
            with T.Kernel(1, threads=128):
                s = T.alloc_shared((128, 64), "float16")
                T.copy(A, s, prefer_instruction="cp_async")
                T.copy(s, B)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL4001] this copy cannot use asynchronous instructions of sm_80
         --> program.py:5:9
          |
        5 |         T.copy(A, s, prefer_instruction="cp_async")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: they move 4, 8 or 16 aligned neighbours in bytes from a tensor to a shared tile, unchanged; leave prefer_instruction out
        """,
        whole=True,
    ),
    Mistake(
        "floats of 6 bits as bytes",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128, 64), "float6_e2m3fn")):
            with T.Kernel(1, threads=128):
                f = T.alloc_fragment((128, 64), "float6_e2m3fn")
                T.copy(A, f)
                v = T.view(f, (128, 48), "int8")
                for i, j in T.Parallel(128, 48):
                    v[i, j] = 1
                T.copy(f, A)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL4001] the float6_e2m3fn elements of 'f' cannot be seen as int8: a tile gives each of them a byte of its own
         --> program.py:6:13
          |
        6 |         v = T.view(f, (128, 48), "int8")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: f is declared here
         --> program.py:4:13
          |
        4 |         f = T.alloc_fragment((128, 64), "float6_e2m3fn")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: allocate the tile as int8 and view it as float6_e2m3fn
        """,
        whole=True,
    ),
    Mistake(
        "a view that tears elements apart",
        """
        @T.prim_func
        def kernel(A: T.Tensor((128, 64), "float16")):
            with T.Kernel(1, threads=128):
                f = T.alloc_fragment((128, 64), "float16")
                T.annotate_layout({f: T.Fragment((128, 64), forward_thread_fn=lambda i, j: j % 2 * 64 + i % 64, forward_index_fn=lambda i, j: i // 64 * 32 + j // 2)})
                T.copy(A, f)
                v = T.view(f, (128, 32), "float32")
                for i, j in T.Parallel(128, 32):
                    v[i, j] = v[i, j] + 1
                T.copy(f, A)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL3002] 'f' cannot be stored as T.annotate_layout demands: a view of it is in the way
         --> program.py:5:9
          |
        5 |         T.annotate_layout({f: T.Fragment((128, 64), forward_thread_fn=lambda i, j: j % 2 * 64 + i % 64, forward_index_fn=lambda i, j: i // 64 * 32 + j // 2)})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: T.annotate_layout wants Fragment((128, 64), lambda i, j: (j % 2 * 64 + i % 64, i // 64 * 32 + j // 2))
        note: seen through the view: 2 neighbouring elements are not side by side in the registers of one thread
        hint: copy it into a second buffer instead of viewing it in another shape or type
        """,
        whole=True,
    ),
    Mistake(
        "a condition of four elements",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=1):
                if A[T.Ramp(0, 1, 4)] > 0:
                    B[0] = 1
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL1003] a vector of 4 values is used as the condition of `if`
         --> program.py:4:9
          |
        4 |         if A[T.Ramp(0, 1, 4)] > 0:
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: test one element, or choose in each lane: T.if_then_else(cond, a, b)
        """,
        whole=True,
    ),
    Mistake(
        "an argument of four elements",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=1):
                A[0] = T.call_extern("float32", "f", A[T.Ramp(0, 1, 4)])
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL4001] a vector of 4 elements stands where one element is meant
         --> program.py:4:46
          |
        4 |         A[0] = T.call_extern("float32", "f", A[T.Ramp(0, 1, 4)])
          |                                              ^^^^^^^^^^^^^^^^^^
        hint: write a loop over the elements, or take one: T.extract_lane(vector, 0)
        """,
        whole=True,
    ),
    Mistake(
        "an address of four elements",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=1):
                T.call_extern("void", "f", T.address_of(A[T.Ramp(0, 1, 4)]))
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL4001] a vector of 4 elements stands where one element is meant
         --> program.py:4:51
          |
        4 |         T.call_extern("void", "f", T.address_of(A[T.Ramp(0, 1, 4)]))
          |                                                   ^^^^^^^^^^^^^^^
        hint: write a loop over the elements, or take one: T.extract_lane(vector, 0)
        """,
        whole=True,
    ),
    Mistake(
        "lanes of 6 bits as bytes",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float6_e2m3fn"), B: T.Tensor((16,), "int8")):
            with T.Kernel(1, threads=1):
                B[T.Ramp(0, 1, 3)] = T.reinterpret(A[T.Ramp(0, 1, 4)], "int8x3")
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL4001] lanes of 6 bits cannot be read as lanes of 8
         --> program.py:4:30
          |
        4 |         B[T.Ramp(0, 1, 3)] = T.reinterpret(A[T.Ramp(0, 1, 4)], "int8x3")
          |                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write a loop over the elements
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected
