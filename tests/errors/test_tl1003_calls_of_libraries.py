"""TL1003: functions and containers of Python that need a value now get one of run time."""

from __future__ import annotations

import linecache
import warnings

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.mistakes import Mistake
from tile_core.errors import FrontendTypeError, TileError

MISTAKES = [
    Mistake(
        "a function of NumPy",
        """
        A[0, 0] = np.exp(A[0, 0])
        """,
        """
        [TL1003] numpy.exp() computes now and cannot take a run-time value
         --> program.py:6:19
          |
        6 |         A[0, 0] = np.exp(A[0, 0])
          |                   ^^^^^^^^^^^^^^^
        hint: use T.exp
        """,
    ),
    Mistake(
        "a function of NumPy that fails inside of NumPy",
        """
        A[0, 0] = np.mean(A)
        """,
        """
        [TL1003] numpy.mean() computes now and cannot take a run-time value
         --> program.py:6:19
          |
        6 |         A[0, 0] = np.mean(A)
          |                   ^^^^^^^^^^
        hint: use a function of the language, such as T.exp(x)
        """,
    ),
    Mistake(
        "a number of NumPy",
        """
        A[0, 0] = np.float32(A[0, 0])
        """,
        """
        [TL1003] numpy.float32() computes now and cannot take a run-time value
         --> program.py:6:19
          |
        6 |         A[0, 0] = np.float32(A[0, 0])
          |                   ^^^^^^^^^^^^^^^^^^^
        hint: use T.float32
        """,
    ),
    Mistake(
        "a run-time value in a text",
        """
        T.print(msg=f"{A[0, 0]:.3f}")
        """,
        """
        [TL1003] a run-time value has no digits while the kernel is traced
         --> program.py:6:9
          |
        6 |         T.print(msg=f"{A[0, 0]:.3f}")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: print it with T.print(x, msg=...)
        """,
    ),
    Mistake(
        "a run-time index of a list",
        """
        A[0, 0] = [1.0, 2.0][n]
        """,
        """
        [TL1003] list indices must be integers or slices, not a run-time value
         --> program.py:6:9
          |
        6 |         A[0, 0] = [1.0, 2.0][n]
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        hint: a run-time value indexes tensors only: give the numbers to the kernel as a parameter
        """,
    ),
    Mistake(
        "a run-time index of an array",
        """
        A[0, 0] = np.ones(4)[n]
        """,
        """
        [TL1003] an array of Python has no run-time index
         --> program.py:6:9
          |
        6 |         A[0, 0] = np.ones(4)[n]
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        hint: a run-time value indexes tensors only: give the numbers to the kernel as a parameter
        """,
    ),
    Mistake(
        "a lambda without an argument",
        """
        A[0, 0] = (lambda x, y: x + y)(A[0, 0])
        """,
        """
        [TL1003] <lambda>() missing 1 required positional argument: 'y'
         --> program.py:6:19
          |
        6 |         A[0, 0] = (lambda x, y: x + y)(A[0, 0])
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: call it as <lambda>(x, y)
        """,
    ),
    Mistake(
        "a class of expressions without an argument",
        """
        A[0, 0] = T.Select(n > 0, 2.0)
        """,
        """
        [TL1003] T.Select() missing 1 required positional argument: 'false_value'
         --> program.py:6:19
          |
        6 |         A[0, 0] = T.Select(n > 0, 2.0)
          |                   ^^^^^^^^^^^^^^^^^^^^
        hint: call it as T.Select(condition, true_value, false_value, span=...)
        """,
    ),
    Mistake(
        "nothing where a name of the language wants a number",
        """
        A[0, 0] = T.FloatImm("float32", None)
        """,
        """
        [TL1003] T.FloatImm: float() argument must be a string or a real number, not 'NoneType'
         --> program.py:6:19
          |
        6 |         A[0, 0] = T.FloatImm("float32", None)
          |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: call it as T.FloatImm(dtype, value, span=...)
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is FrontendTypeError
    assert str(error) == mistake.expected


def test_arrays_can_be_indexed_while_tracing():
    """What is computed now, from numbers that are there now, stays Python's."""
    table = np.arange(4.0)

    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            A[0] = table[2] + np.exp(0.0)

    a = np.zeros(4, np.float32)
    tile.compile(kernel, target="interpret")(a)
    assert a[0] == 3


ARGUMENTS = ("", "A", "A[0], None, 'x'", "*range(15), nobody=3")
NAMES = sorted(n for n in T.__all__ if n[:2] != "__" and n != "Any" and callable(getattr(T, n)))


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_no_name_of_the_language_lets_an_error_of_python_through(arguments):
    """Whatever a program gives to whatever name: it works, or the error has a code."""
    through = []
    for name in NAMES:
        text = (
            "@T.prim_func\n"
            'def kernel(A: T.Tensor((64,), "float32")):\n'
            "    with T.Kernel(1) as bx:\n"
            f"        T.{name}({arguments})\n"
        )
        file = f"{name}.py"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(text, file, "exec", dont_inherit=True), {"T": T})
        except TileError as error:
            if error.code == "TL9001":
                through.append(f"T.{name}: {error}")
        except Exception as error:
            through.append(f"T.{name}: {error!r}")
        finally:
            del linecache.cache[file]
    assert not through
