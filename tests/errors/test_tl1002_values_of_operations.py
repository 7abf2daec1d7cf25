"""TL1002: values that operations on numbers and tiles do not accept."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import FrontendValueError

MISTAKES = [
    Mistake(
        "division by a constant zero",
        """
        A[0, 0] = T.float32(n // 0)
        """,
        """
        [TL1002] '//' divides an integer by zero
         --> program.py:6:9
          |
        6 |         A[0, 0] = T.float32(n // 0)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: the divisor is known while the kernel is traced: change what it is made of
        """,
    ),
    Mistake(
        "remainder by a constant zero",
        """
        A[0, 0] = T.float32(n % (4 - 4))
        """,
        """
        [TL1002] '%' divides an integer by zero
         --> program.py:6:9
          |
        6 |         A[0, 0] = T.float32(n % (4 - 4))
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: the divisor is known while the kernel is traced: change what it is made of
        """,
    ),
    Mistake(
        "an overlong shift",
        """
        A[0, 0] = T.float32(n << 40)
        """,
        """
        [TL1002] a shift of int32 by 40 is outside 0..31
         --> program.py:6:9
          |
        6 |         A[0, 0] = T.float32(n << 40)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: widen the value first, as in T.int64(x), or use // and *
        """,
    ),
    Mistake(
        "a division in Python",
        """
        A[0, 0] = 1.0 / 0.0
        """,
        """
        [TL1002] float division by zero
         --> program.py:6:9
          |
        6 |         A[0, 0] = 1.0 / 0.0
          |         ^^^^^^^^^^^^^^^^^^^
        hint: this is computed by Python while the kernel is traced: change its operands
        """,
    ),
    Mistake(
        "an unknown key in Python",
        """
        tiles = {"BM": 16}
        A[tiles["BK"], 0] = 1.0
        """,
        """
        [TL1002] there is no key 'BK'
         --> program.py:7:9
          |
        7 |         A[tiles["BK"], 0] = 1.0
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        hint: this is computed by Python while the kernel is traced: change its operands
        """,
    ),
    Mistake(
        "a reduced dimension that does not exist",
        """
        row = T.alloc_fragment((16,), "float32")
        T.reduce_sum(F, row, dim=2)
        """,
        """
        [TL1002] T.reduce_sum: dim 2 is outside F[16, 16]
         --> program.py:7:9
          |
        7 |         T.reduce_sum(F, row, dim=2)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use a dim between -2 and 1
        """,
    ),
    Mistake(
        "a bitwise reduction of floats",
        """
        row = T.alloc_fragment((16,), "float32")
        T.reduce_bitand(F, row, dim=1)
        """,
        """
        [TL1002] T.reduce_bitand works on integers and bools, got float32 to float32
         --> program.py:7:9
          |
        7 |         T.reduce_bitand(F, row, dim=1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: reduce the bits: view the tile as integers with T.view(tile, dtype='int32')
        """,
    ),
    Mistake(
        "no batches",
        """
        row = T.alloc_fragment((16,), "float32")
        T.reduce_sum(F, row, dim=1, batch=0)
        """,
        """
        [TL1002] batch must be at least 1, got 0
         --> program.py:7:9
          |
        7 |         T.reduce_sum(F, row, dim=1, batch=0)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass 1 or more
        """,
    ),
    Mistake(
        "an unknown reduction",
        """
        row = T.alloc_fragment((16,), "float32")
        T.reduce(F, row, "median", 1, True)
        """,
        """
        [TL1002] reduction 'median' is not known
         --> program.py:7:9
          |
        7 |         T.reduce(F, row, "median", 1, True)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of 'sum', 'max', 'min', 'abssum', 'absmax', 'bitand', 'bitor', 'bitxor'
        """,
    ),
    Mistake(
        "scanning a dimension that does not exist",
        """
        T.cumsum(S, dim=2)
        """,
        """
        [TL1002] T.cumsum: dim 2 is outside S[16, 16]
         --> program.py:6:9
          |
        6 |         T.cumsum(S, dim=2)
          |         ^^^^^^^^^^^^^^^^^^
        hint: use a dim between -2 and 1
        """,
    ),
    Mistake(
        "an unknown warp policy",
        """
        T.gemm(S, S, F, policy="square")
        """,
        """
        [TL1002] 'square' is not a warp policy
         --> program.py:6:9
          |
        6 |         T.gemm(S, S, F, policy="square")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.GemmWarpPolicy.Square, FullRow or FullCol
        """,
    ),
    Mistake(
        "an unknown eviction policy",
        """
        T.copy(A, S, eviction_policy="never")
        """,
        """
        [TL1002] eviction policy 'never' is not known
         --> program.py:6:9
          |
        6 |         T.copy(A, S, eviction_policy="never")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of 'evict_normal', 'evict_first', 'evict_last'
        """,
    ),
    Mistake(
        "an unknown order of memory accesses",
        """
        T.atomic_add(A[0, 0], 1.0, memory_order="strong")
        """,
        """
        [TL1002] memory order 'strong' is not known
         --> program.py:6:9
          |
        6 |         T.atomic_add(A[0, 0], 1.0, memory_order="strong")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of 'relaxed', 'consume', 'acquire', 'release', 'acq_rel', 'seq_cst'
        """,
    ),
    Mistake(
        "an order that loads cannot have",
        """
        x = T.atomic_load(A[0, 0], memory_order="release")
        """,
        """
        [TL1002] memory order 'release' is not known
         --> program.py:6:13
          |
        6 |         x = T.atomic_load(A[0, 0], memory_order="release")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of 'relaxed', 'consume', 'acquire', 'seq_cst'
        """,
    ),
    Mistake(
        "an unknown rounding mode",
        """
        A[0, 0] = T.ieee_add(A[0, 0], 1.0, rounding_mode="up")
        """,
        """
        [TL1002] rounding mode 'up' is not known
         --> program.py:6:19
          |
        6 |         A[0, 0] = T.ieee_add(A[0, 0], 1.0, rounding_mode="up")
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of 'rn', 'rz', 'ru', 'rd'
        """,
    ),
    Mistake(
        "a rounding mode that 16 bits do not have",
        """
        A[0, 0] = T.ieee_add(T.float16(A[0, 0]), T.float16(1.0), "rz")
        """,
        """
        [TL1002] T.ieee_add of float16 rounds to nearest ('rn') only, not 'rz'
         --> program.py:6:19
          |
        6 |         A[0, 0] = T.ieee_add(T.float16(A[0, 0]), T.float16(1.0), "rz")
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: convert the operands to float32, or leave the rounding mode out
        """,
    ),
    Mistake(
        "random bits without random rounding",
        """
        A[0, 0] = T.cast(A[0, 0], "float8_e4m3fn", round="rs")
        """,
        """
        [TL1002] stochastic rounding and random bits go together
         --> program.py:6:19
          |
        6 |         A[0, 0] = T.cast(A[0, 0], "float8_e4m3fn", round="rs")
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass both round='rs' and rbits=..., or neither
        """,
    ),
    Mistake(
        "an unknown order of blocks",
        """
        T.use_swizzle(4, order="diagonal")
        """,
        """
        [TL1002] order of blocks 'diagonal' is not known
         --> program.py:6:9
          |
        6 |         T.use_swizzle(4, order="diagonal")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of 'row', 'column', 'mlx'
        """,
    ),
    Mistake(
        "a panel without blocks",
        """
        T.use_swizzle(0)
        """,
        """
        [TL1002] panel_size must be at least 1, got 0
         --> program.py:6:9
          |
        6 |         T.use_swizzle(0)
          |         ^^^^^^^^^^^^^^^^
        hint: pass 1 or more
        """,
    ),
    Mistake(
        "a layout that loses elements",
        """
        T.annotate_layout({S: T.Layout((16, 16), lambda i, j: (i, 0))})
        """,
        """
        [TL1002] the layout of 'S' is not injective: it puts two elements at one place
         --> program.py:6:9
          |
        6 |         T.annotate_layout({S: T.Layout((16, 16), lambda i, j: (i, 0))})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: every element needs an address of its own; padding between rows is fine
        """,
    ),
    Mistake(
        "a layout of another shape",
        """
        T.annotate_layout({S: T.Layout((8, 16), lambda i, j: (i, j))})
        """,
        """
        [TL1002] the layout of 'S' has the shape (8, 16), the buffer (16, 16)
         --> program.py:6:9
          |
        6 |         T.annotate_layout({S: T.Layout((8, 16), lambda i, j: (i, j))})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: make the layout for (16, 16)
        """,
    ),
    Mistake(
        "dp4a of floats",
        """
        T.dp4a(S, S, F)
        """,
        """
        [TL1002] dp4a requires A to be int8 or uint8, got float32
         --> program.py:6:9
          |
        6 |         T.dp4a(S, S, F)
          |         ^^^^^^^^^^^^^^^
        hint: convert it first, or use T.gemm
        """,
    ),
    Mistake(
        "a shuffle of an odd width",
        """
        tx = T.get_thread_binding(0)
        x = T.shfl_xor(tx, 1, 33)
        """,
        """
        [TL1002] the width of a shuffle is a power of two up to 64, got 33
         --> program.py:7:13
          |
        7 |         x = T.shfl_xor(tx, 1, 33)
          |             ^^^^^^^^^^^^^^^^^^^^^
        hint: use 32, or leave it out
        """,
    ),
    Mistake(
        "a thread axis that does not exist",
        """
        tx = T.get_thread_binding(5)
        """,
        """
        [TL1002] the block of threads has dimensions 0 to 2, got 5
         --> program.py:6:14
          |
        6 |         tx = T.get_thread_binding(5)
          |              ^^^^^^^^^^^^^^^^^^^^^^^
        hint: dimension 0 is x, the fastest
        """,
    ),
    Mistake(
        "a barrier that waits for nobody",
        """
        ready = T.alloc_barrier(0)
        """,
        """
        [TL1002] the arrival count of a barrier must be a positive integer, got 0
         --> program.py:6:17
          |
        6 |         ready = T.alloc_barrier(0)
          |                 ^^^^^^^^^^^^^^^^^^
        hint: write T.alloc_barrier(128), or T.alloc_barrier([128] * stages)
        """,
    ),
    Mistake(
        "an unknown operation of a reducer",
        """
        total = T.alloc_reducer((16,), "float32", op="mul")
        """,
        """
        [TL1002] a reducer cannot compute 'mul'
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="mul")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of sum, max, min, bitand, bitor, bitxor
        """,
    ),
    Mistake(
        "two extents to be found out",
        """
        flat = T.reshape(S, (-1, -1))
        """,
        """
        [TL1002] -1 may stand for one extent of a shape that is otherwise known at compile time
         --> program.py:6:16
          |
        6 |         flat = T.reshape(S, (-1, -1))
          |                ^^^^^^^^^^^^^^^^^^^^^^
        hint: give all other extents as Python ints
        """,
    ),
    Mistake(
        "strides of a view",
        """
        turned = T.view(S, (16, 16), strides=(1, 16))
        """,
        """
        [TL1002] the strides given to T.view are not those of row-major order
         --> program.py:6:18
          |
        6 |         turned = T.view(S, (16, 16), strides=(1, 16))
          |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: leave them out; T.make_tensor takes an address and any strides
        """,
    ),
    Mistake(
        "a name that C does not have",
        """
        T.call_extern("handle", "run it()", n)
        """,
        """
        [TL1002] 'run it()' is not the name of a C function
         --> program.py:6:9
          |
        6 |         T.call_extern("handle", "run it()", n)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write T.call_extern("float32", "name", x, y): the dtype comes first
        """,
    ),
    Mistake(
        "a vector without lanes",
        """
        A[0, T.Ramp(0, 1, 0)] = 1.0
        """,
        """
        [TL1002] the number of lanes must be at least 1, got 0
         --> program.py:6:14
          |
        6 |         A[0, T.Ramp(0, 1, 0)] = 1.0
          |              ^^^^^^^^^^^^^^^
        hint: pass 1 or more
        """,
    ),
    Mistake(
        "a persistent loop over no blocks",
        """
        for i, j in T.Persistent([4, 4], 0, bx):
            A[i, j] = 1.0
        """,
        """
        [TL1002] the wave_size of T.Persistent must be at least 1, got 0
         --> program.py:6:21
          |
        6 |         for i, j in T.Persistent([4, 4], 0, bx):
          |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give the number of blocks that were launched
        """,
    ),
    Mistake(
        "registers of a warp group",
        """
        T.set_max_nreg(25, 1)
        """,
        """
        [TL1002] 25 registers: the number must be a multiple of 8 between 24 and 240
         --> program.py:6:9
          |
        6 |         T.set_max_nreg(25, 1)
          |         ^^^^^^^^^^^^^^^^^^^^^
        hint: round it to a multiple of 8
        """,
    ),
    Mistake(
        "an expression too deep",
        """
        import functools
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = functools.reduce(lambda x, y: T.if_then_else(y > 0, x, y), [A[1]] * 2000)
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL1002] an expression of the kernel 'kernel' is nested too deeply
         --> program.py:3:1
          |
        3 | def kernel(A: T.Tensor((16,), "float32")):
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give parts of it names: x = ...; y = x + ...
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is FrontendValueError
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
