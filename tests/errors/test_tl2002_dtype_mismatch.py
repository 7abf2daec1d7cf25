# ruff: noqa: E501 - messages are compared as they are printed
"""TL2002: operand element types do not fit together."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import DtypeMismatch

MISTAKES = [
    Mistake(
        "scales of float32",
        """
        n = T.alloc_shared((16, 64), "float8_e4m3fn")
        s = T.alloc_shared((16, 4), "float32")
        T.gemm_blockscaled(n, n, F, s, s, False, True, k_start=0, sf_a_granularity_k=16, sf_b_granularity_k=32)
        """,
        """
        [TL2002] SFA of T.gemm_blockscaled has elements of float32
         --> program.py:8:9
          |
        8 |         T.gemm_blockscaled(n, n, F, s, s, False, True, k_start=0, sf_a_granularity_k=16, sf_b_granularity_k=32)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: s is declared here
         --> program.py:7:13
          |
        7 |         s = T.alloc_shared((16, 4), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: it may have float8_e8m0fnu or float8_e4m3fn
        """,
    ),
    Mistake(
        "a reducer started with a value of another dtype",
        """
        total = T.alloc_reducer((16,), "float32", op="sum")
        T.reducer_init(total, T.float16(1.0))
        """,
        """
        [TL2002] the start value is float16, which does not match reducer 'total' of float32
         --> program.py:7:9
          |
        7 |         T.reducer_init(total, T.float16(1.0))
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: total is declared here
         --> program.py:6:17
          |
        6 |         total = T.alloc_reducer((16,), "float32", op="sum")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: convert it: T.cast(value, 'float32')
        """,
    ),
    Mistake(
        "a reciprocal root of 64 bits",
        """
        A[0, 0] = T.ieee_frsqrt(T.float64(A[0, 0]))
        """,
        """
        [TL2002] T.ieee_frsqrt is not supported for float64
         --> program.py:6:19
          |
        6 |         A[0, 0] = T.ieee_frsqrt(T.float64(A[0, 0]))
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.rsqrt(x)
        """,
    ),
    Mistake(
        "dividing integers",
        """
        A[0, 0] = n / 2
        """,
        """
        [TL2002] true division of integers (int32) has no meaning in a kernel
         --> program.py:6:9
          |
        6 |         A[0, 0] = n / 2
          |         ^^^^^^^^^^^^^^^
        hint: use // for floor division, or convert an operand: T.float32(a) / b
        """,
    ),
    Mistake(
        "bits of a float",
        """
        A[0, 0] = A[0, 0] & 1
        """,
        """
        [TL2002] '&' works on integers, got float32
         --> program.py:6:9
          |
        6 |         A[0, 0] = A[0, 0] & 1
          |         ^^^^^^^^^^^^^^^^^^^^^
        hint: use T.reinterpret(x, 'int32') to reach the bits of a float
        """,
    ),
    Mistake(
        "shifting a float",
        """
        A[0, 0] = A[0, 0] << 1
        """,
        """
        [TL2002] '<<' works on integers, got float32
         --> program.py:6:9
          |
        6 |         A[0, 0] = A[0, 0] << 1
          |         ^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.reinterpret(x, 'int32') to reach the bits of a float
        """,
    ),
    Mistake(
        "complementing a float",
        """
        A[0, 0] = ~A[0, 0]
        """,
        """
        [TL2002] '~' works on integers, got float32
         --> program.py:6:9
          |
        6 |         A[0, 0] = ~A[0, 0]
          |         ^^^^^^^^^^^^^^^^^^
        hint: use T.reinterpret(x, 'int32') to reach the bits of a float
        """,
    ),
    Mistake(
        "counting the bits of a float",
        """
        A[0, 0] = T.popcount(A[0, 0])
        """,
        """
        [TL2002] T.popcount takes integers, got float32
         --> program.py:6:19
          |
        6 |         A[0, 0] = T.popcount(A[0, 0])
          |                   ^^^^^^^^^^^^^^^^^^^
        hint: convert the value: T.cast(x, 'int32'), or T.reinterpret(x, 'int32') for its bits
        """,
    ),
    Mistake(
        "a matrix product of floats with integers",
        """
        bytes_ = T.alloc_shared((16, 16), "int8")
        T.gemm(S, bytes_, F)
        """,
        """
        [TL2002] T.gemm cannot accumulate float32 x int8 in float32
         --> program.py:7:9
          |
        7 |         T.gemm(S, bytes_, F)
          |         ^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: bytes_ is declared here
         --> program.py:6:18
          |
        6 |         bytes_ = T.alloc_shared((16, 16), "int8")
          |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy one operand into a tile of the other's element type first
        """,
    ),
    Mistake(
        "floats added up in integers",
        """
        sums = T.alloc_fragment((16, 16), "int32")
        T.gemm(S, S, sums)
        """,
        """
        [TL2002] T.gemm cannot accumulate float32 x float32 in int32
         --> program.py:7:9
          |
        7 |         T.gemm(S, S, sums)
          |         ^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: sums is declared here
         --> program.py:6:16
          |
        6 |         sums = T.alloc_fragment((16, 16), "int32")
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: accumulate floats in a float32 tile
        """,
    ),
    Mistake(
        "an atomic addition of narrow floats",
        """
        narrow = T.alloc_shared((16,), "float8_e4m3fn")
        T.atomic_add(narrow[0], 1.0)
        """,
        """
        [TL2002] there is no atomic add on float8_e4m3fn
         --> program.py:7:9
          |
        7 |         T.atomic_add(narrow[0], 1.0)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use float32, float64, float16, bfloat16, or a 32- or 64-bit integer
        """,
    ),
    Mistake(
        "an atomic addition of bytes",
        """
        bytes_ = T.alloc_shared((16,), "int8")
        T.atomic_add(bytes_[0], 1)
        """,
        """
        [TL2002] there is no atomic add on int8
         --> program.py:7:9
          |
        7 |         T.atomic_add(bytes_[0], 1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use float32, float64, float16, bfloat16, or a 32- or 64-bit integer
        """,
    ),
    Mistake(
        "an atomic or of floats",
        """
        T.atomic_or(A[0, 0], 1)
        """,
        """
        [TL2002] there is no atomic or on float32
         --> program.py:6:9
          |
        6 |         T.atomic_or(A[0, 0], 1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        hint: use a 32- or 64-bit integer
        """,
    ),
    Mistake(
        "reading bits as another width",
        """
        A[0, 0] = T.reinterpret(n, "float16")
        """,
        """
        [TL2002] the 32 bits of int32 cannot be read as the 16 bits of float16
         --> program.py:6:19
          |
        6 |         A[0, 0] = T.reinterpret(n, "float16")
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: convert the value with T.cast, or choose a type of the same width
        """,
    ),
    Mistake(
        "a matrix product of truth values",
        """
        flags = T.alloc_shared((16, 16), "bool")
        T.gemm(flags, flags, F)
        """,
        """
        [TL2002] T.gemm multiplies numbers, got bool x bool in float32
         --> program.py:7:9
          |
        7 |         T.gemm(flags, flags, F)
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        note: flags is declared here
         --> program.py:6:17
          |
        6 |         flags = T.alloc_shared((16, 16), "bool")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: F is declared here
         --> program.py:5:13
          |
        5 |         F = T.alloc_fragment((16, 16), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy the truth values into int8 tiles first
        """,
    ),
    Mistake(
        "an address as a number",
        """
        A[0, 0] = A.data
        """,
        """
        [TL2002] a value of dtype handle cannot be converted to float32
         --> program.py:6:9
          |
        6 |         A[0, 0] = A.data
          |         ^^^^^^^
        hint: read what lies at an address with T.make_tensor(address, shape, dtype)
        """,
    ),
    Mistake(
        "a number as an address",
        """
        x = T.cast(n, "handle")
        """,
        """
        [TL2002] a value of dtype int32 cannot be converted to handle
         --> program.py:6:13
          |
        6 |         x = T.cast(n, "handle")
          |             ^^^^^^^^^^^^^^^^^^^
        hint: read what lies at an address with T.make_tensor(address, shape, dtype)
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is DtypeMismatch
    assert isinstance(error, TypeError)
    assert str(error) == mistake.expected
