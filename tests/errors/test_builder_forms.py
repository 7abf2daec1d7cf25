"""Frames as statements, and axes of blocks and threads, in the wrong place."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake

MISTAKES = [
    Mistake(
        "a side without a branch",
        """
        with T.Then():
            A[0, 0] = 1.0
        """,
        """
        [TL1006] T.Then does not stand directly in a T.If
         --> program.py:6:9
          |
        6 |         with T.Then():
          |         ^^^^^^^^^^^^^^
        hint: write `with T.If(condition):` around it
        """,
    ),
    Mistake(
        "a side in a loop of a branch",
        """
        with T.If(n > 0):
            for i in T.serial(4):
                with T.Else():
                    A[i, 0] = 1.0
        """,
        """
        [TL1006] T.Else does not stand directly in a T.If
         --> program.py:8:17
          |
        8 |                 with T.Else():
          |                 ^^^^^^^^^^^^^^
        hint: write `with T.If(condition):` around it
        """,
    ),
    Mistake(
        "a branch without its first side",
        """
        with T.If(n > 0), T.Else():
            A[0, 0] = 1.0
        """,
        """
        [TL1006] T.If has no T.Then
         --> program.py:6:9
          |
        6 |         with T.If(n > 0), T.Else():
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write `with T.If(condition), T.Then():`, or use the statement `if`
        """,
    ),
    Mistake(
        "a side twice",
        """
        with T.If(n > 0):
            with T.Then():
                A[0, 0] = 1.0
            with T.Then():
                A[0, 1] = 1.0
        """,
        """
        [TL1006] this T.If has a T.Then already
         --> program.py:9:13
          |
        9 |             with T.Then():
          |             ^^^^^^^^^^^^^^
        hint: write all statements of one side in one block
        """,
    ),
    Mistake(
        "a statement beside the sides",
        """
        with T.If(n > 0):
            A[0, 0] = 1.0
            with T.Then():
                A[0, 1] = 1.0
        """,
        """
        [TL1006] a statement in T.If stands outside of T.Then and T.Else
         --> program.py:7:13
          |
        7 |             A[0, 0] = 1.0
          |             ^^^^^^^
        hint: write `with T.Then():` around it, or use the statement `if`
        """,
    ),
    Mistake(
        "a branch on a buffer",
        """
        with T.If(A), T.Then():
            A[0, 0] = 1.0
        """,
        """
        [TL1003] the buffer 'A' is used as the condition of T.If
         --> program.py:6:9
          |
        6 |         with T.If(A), T.Then():
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        hint: compare an element, as in `A[0] != 0`, or test `A is not None`
        """,
    ),
    Mistake(
        "a frame of a loop without end",
        """
        with T.While(True):
            A[0, 0] = 1.0
        """,
        """
        [TL1006] the condition of this `while` is always true, so the loop would never end
         --> program.py:6:9
          |
        6 |         with T.While(True):
          |         ^^^^^^^^^^^^^^^^^^^
        hint: test a run-time value, such as an alloc_var that the body changes
        """,
    ),
    Mistake(
        "what a block reads, outside of a block",
        """
        T.reads(A[0, 0:16])
        A[0, 0] = 1.0
        """,
        """
        [TL1006] T.reads stands outside of a T.sblock
         --> program.py:6:9
          |
        6 |         T.reads(A[0, 0:16])
          |         ^^^^^^^^^^^^^^^^^^^
        hint: write `with T.sblock("name"):` around it, or leave it out
        """,
    ),
    Mistake(
        "a block that reads a number",
        """
        with T.sblock("row"):
            T.reads(A[0, 0] + 1.0)
            A[0, 0] = 1.0
        """,
        """
        [TL1003] T.reads names a buffer, a region or an element
         --> program.py:7:13
          |
        7 |             T.reads(A[0, 0] + 1.0)
          |             ^^^^^^^^^^^^^^^^^^^^^^
        hint: write T.reads(A[0:16, k])
        """,
    ),
    Mistake(
        "an axis outside of a block",
        """
        i = T.axis.spatial(4, bx)
        """,
        """
        [TL1006] T.axis.spatial stands outside of a T.sblock
         --> program.py:6:13
          |
        6 |         i = T.axis.spatial(4, bx)
          |             ^^^^^^^^^^^^^^^^^^^^^
        hint: write `with T.sblock("name"):` around it, or leave it out
        """,
    ),
    Mistake(
        "kinds of axes that are not there",
        """
        for i in T.serial(4):
            with T.sblock("row"):
                v = T.axis.remap("SR", [i])
        """,
        """
        [TL1002] T.axis.remap has the kinds 'SR' for 1 loop indices
         --> program.py:8:21
          |
        8 |                 v = T.axis.remap("SR", [i])
          |                     ^^^^^^^^^^^^^^^^^^^^^^^
        hint: write an S or an R for each, as in T.axis.remap("SR", [i, k])
        """,
    ),
    Mistake(
        "an axis of no loop",
        """
        with T.sblock("row"):
            v = T.axis.remap("S", [n + 1])
        """,
        """
        [TL1003] T.axis.remap needs the indices of the loops around
         --> program.py:7:17
          |
        7 |             v = T.axis.remap("S", [n + 1])
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.axis.spatial(extent, value) for other values
        """,
    ),
    Mistake(
        "an index of threads without an axis",
        """
        for tx in T.thread_binding(0, 128):
            A[0, tx] = 1.0
        """,
        """
        [TL1003] T.thread_binding needs the name of an axis
         --> program.py:6:19
          |
        6 |         for tx in T.thread_binding(0, 128):
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write T.thread_binding(0, 128, thread="threadIdx.x")
        """,
    ),
    Mistake(
        "an index of threads along no axis",
        """
        for tx in T.thread_binding(0, 128, thread="vthread"):
            A[0, tx] = 1.0
        """,
        """
        [TL1002] 'vthread' is not an axis of threads or blocks
         --> program.py:6:19
          |
        6 |         for tx in T.thread_binding(0, 128, thread="vthread"):
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z
        """,
    ),
    Mistake(
        "an index of other threads than there are",
        """
        tx = T.thread_binding(0, 64, thread="threadIdx.x")
        """,
        """
        [TL1002] the launch has 128 threads along threadIdx.x, not 64
         --> program.py:6:14
          |
        6 |         tx = T.thread_binding(0, 64, thread="threadIdx.x")
          |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give as many as T.Kernel starts: all threads run the body
        """,
    ),
    Mistake(
        "an index of blocks whose number is not known",
        """
        b = T.thread_binding(0, n, thread="blockIdx.x")
        """,
        """
        [TL1002] the launch has 4 blocks along blockIdx.x
         --> program.py:6:13
          |
        6 |         b = T.thread_binding(0, n, thread="blockIdx.x")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give as many as T.Kernel starts: all blocks run the body
        """,
    ),
    Mistake(
        "a value for what is no name",
        """
        T.let(A, 2)
        """,
        """
        [TL1003] T.let names a value, and <global buffer A: float32[16, 16]> is no name
         --> program.py:6:9
          |
        6 |         T.let(A, 2)
          |         ^^^^^^^^^^^
        hint: write `v = T.int32()` before it, or assign the value: v = value
        """,
    ),
    Mistake(
        "a name that gets no value",
        """
        x = T.int32()
        F[0, 0] = x
        """,
        """
        [TL1007] no argument determines the symbol 'value'
         --> program.py:7:9
          |
        7 |         F[0, 0] = x
          |         ^^^^^^^
        note: value is made here
         --> program.py:6:13
          |
        6 |         x = T.int32()
          |             ^^^^^^^^^
        hint: use it as a dimension of a tensor parameter, or declare value: T.int32
        """,
    ),
    Mistake(
        "a name in place of a type",
        """
        x = T.alloc_local((4,), T.int32())
        """,
        """
        [TL1003] the dtype given to T.alloc_local is not an element type: it is a value of int32
         --> program.py:6:13
          |
        6 |         x = T.alloc_local((4,), T.int32())
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass the type: T.int32, not T.int32()
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected
