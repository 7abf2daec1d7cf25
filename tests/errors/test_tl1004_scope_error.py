# ruff: noqa: E501 - messages are compared as they are printed
"""TL1004: a name is used outside the block that bound it, or outside a kernel."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ScopeError

MISTAKES = [
    Mistake(
        "a name bound in a branch",
        """
        if n > 0:
            x = 1.0
        A[0, 0] = x
        """,
        """
        [TL1004] 'x' is used outside the if block that bound it
         --> program.py:8:9
          |
        8 |         A[0, 0] = x
          |         ^^^^^^^^^^^
        note: x is bound here
         --> program.py:7:13
          |
        7 |             x = 1.0
          |             ^^^^^^^
        hint: declare `x = T.alloc_var(dtype)` before the block; assigning to it inside then stores, and the value can be read afterwards
        """,
    ),
    Mistake(
        "a name bound in a loop",
        """
        for i in range(4):
            last = i * 2
        A[last, 0] = 1.0
        """,
        """
        [TL1004] 'last' is used outside the for block that bound it
         --> program.py:8:9
          |
        8 |         A[last, 0] = 1.0
          |         ^^^^^^^^^^^^^^^^
        note: last is bound here
         --> program.py:7:13
          |
        7 |             last = i * 2
          |             ^^^^^^^^^^^^
        hint: declare `last = T.alloc_var(dtype)` before the block; assigning to it inside then stores, and the value can be read afterwards
        """,
    ),
    Mistake(
        "a name bound in a while loop",
        """
        i = T.alloc_var("int32")
        while i < n:
            last = i * 2
            i += 1
        A[last, 0] = 1.0
        """,
        """
        [TL1004] 'last' is used outside the while block that bound it
          --> program.py:10:9
           |
        10 |         A[last, 0] = 1.0
           |         ^^^^^^^^^^^^^^^^
        note: last is bound here
         --> program.py:8:13
          |
        8 |             last = i * 2
          |             ^^^^^^^^^^^^
        hint: declare `last = T.alloc_var(dtype)` before the block; assigning to it inside then stores, and the value can be read afterwards
        """,
    ),
    Mistake(
        "a loop index after the loop",
        """
        for i in range(4):
            A[i, 0] = 1.0
        A[i, 0] = 2.0
        """,
        """
        [TL1004] 'i' is used outside the for block that bound it
         --> program.py:8:9
          |
        8 |         A[i, 0] = 2.0
          |         ^^^^^^^^^^^^^
        note: i is bound here
         --> program.py:6:9
          |
        6 |         for i in range(4):
          |         ^^^^^^^^^^^^^^^^^^
        hint: declare `i = T.alloc_var(dtype)` before the block; assigning to it inside then stores, and the value can be read afterwards
        """,
    ),
    Mistake(
        "a name used before it is bound",
        """
        A[0, 0] = later
        later = 1.0
        """,
        """
        [TL1004] 'later' is used before anything is bound to it
         --> program.py:6:9
          |
        6 |         A[0, 0] = later
          |         ^^^^^^^^^^^^^^^
        hint: assign to later first, on every path that leads here
        """,
    ),
    Mistake(
        "a name that does not exist",
        """
        A[0, 0] = scale
        """,
        """
        [TL1004] name 'scale' is not defined
         --> program.py:6:9
          |
        6 |         A[0, 0] = scale
          |         ^^^^^^^^^^^^^^^
        hint: define the name before the kernel that uses it
        """,
    ),
    Mistake(
        "a tile of another launch",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                tile_ = T.alloc_shared((16,), "float32")
            with T.Kernel(1):
                T.copy(tile_, A)
        """,
        """
        [TL1004] 'tile_' is used outside the with block that bound it
         --> program.py:6:9
          |
        6 |         T.copy(tile_, A)
          |         ^^^^^^^^^^^^^^^^
        note: tile_ is bound here
         --> program.py:4:9
          |
        4 |         tile_ = T.alloc_shared((16,), "float32")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: allocate the tile in the block that uses it; T.alloc_global outlives a launch
        """,
        whole=True,
    ),
    Mistake(
        "a tile outside the launch",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            tile_ = T.alloc_shared((16,), "float32")
            with T.Kernel(1):
                T.copy(A, tile_)
        """,
        """
        [TL1004] T.alloc_shared can only be used inside `with T.Kernel(...)`
         --> program.py:3:13
          |
        3 |     tile_ = T.alloc_shared((16,), "float32")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: allocate in the body of the launch; T.empty and T.alloc_global work outside
        """,
        whole=True,
    ),
    Mistake(
        "an operator outside the launch",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                pass
            T.copy(A, B)
        """,
        """
        [TL1004] the tile operator 'copy' must be inside `with T.Kernel(...)`
         --> program.py:5:5
          |
        5 |     T.copy(A, B)
          |     ^^^^^^^^^^^^
        hint: move it into the body of a `with T.Kernel(...) as ...:`
        """,
        whole=True,
    ),
    Mistake(
        "a launch outside a kernel",
        """
        with T.Kernel(1) as bx:
            pass
        """,
        """
        [TL1004] this can only be used inside a kernel
         --> program.py:1:1
          |
        1 | with T.Kernel(1) as bx:
          | ^^^^^^^^^^^^^^^^^^^^^^^
        hint: call it in the body of a function decorated with @T.prim_func, @T.macro or @tile.jit
        """,
        whole=True,
    ),
    Mistake(
        "a tile outside a kernel",
        """
        tile_ = T.alloc_shared((16,), "float32")
        """,
        """
        [TL1004] this can only be used inside a kernel
         --> program.py:1:1
          |
        1 | tile_ = T.alloc_shared((16,), "float32")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: call it in the body of a function decorated with @T.prim_func, @T.macro or @tile.jit
        """,
        whole=True,
    ),
    Mistake(
        "a macro outside a kernel",
        """
        @T.macro
        def clear(buffer):
            T.clear(buffer)
        clear([0.0])
        """,
        """
        [TL1004] the macro 'clear' can only be called inside a kernel
         --> program.py:4:1
          |
        4 | clear([0.0])
          | ^^^^^^^^^^^^
        hint: call it in the body of a @T.prim_func or an eager @tile.jit function
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ScopeError
    assert isinstance(error, RuntimeError)
    assert str(error) == mistake.expected
