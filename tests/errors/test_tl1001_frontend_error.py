# ruff: noqa: E501 - messages are compared as they are printed
"""TL1001: a Python construct that has no meaning inside a kernel."""

from __future__ import annotations

import pytest

import tile_api.language as T
from support.mistakes import Mistake
from tile_core.errors import FrontendError

MISTAKES = [
    Mistake(
        "else after a loop",
        """
        for i in range(4):
            A[i, 0] = 1.0
        else:
            A[0, 0] = 2.0
        """,
        """
        [TL1001] `else` after a loop is not supported
         --> program.py:9:13
          |
        9 |             A[0, 0] = 2.0
          |             ^^^^^^^^^^^^^
        hint: set an alloc_var before `break` and test it after the loop
        """,
    ),
    Mistake(
        "try",
        """
        try:
            A[0, 0] = 1.0
        except ValueError:
            pass
        """,
        """
        [TL1001] `try` has no meaning in a kernel
         --> program.py:6:9
          |
        6 |         try:
          |         ^^^^
        hint: test conditions with `if`
        """,
    ),
    Mistake(
        "match",
        """
        match n:
            case 1:
                A[0, 0] = 1.0
        """,
        """
        [TL1001] `match` is not supported in a kernel
         --> program.py:6:9
          |
        6 |         match n:
          |         ^^^^^^^^
        hint: write `if` and `elif`
        """,
    ),
    Mistake(
        "yield",
        """
        yield 1
        """,
        """
        [TL1001] `yield` has no meaning in a kernel
         --> program.py:6:9
          |
        6 |         yield 1
          |         ^^^^^^^
        hint: write to an output tensor
        """,
    ),
    Mistake(
        "global",
        """
        global total
        total = 1
        """,
        """
        [TL1001] `global` is not possible in a kernel
         --> program.py:6:9
          |
        6 |         global total
          |         ^^^^^^^^^^^^
        hint: write to an output tensor
        """,
    ),
    Mistake(
        "deleting an element",
        """
        del A[0, 0]
        """,
        """
        [TL1001] only names can be deleted in a kernel
         --> program.py:6:13
          |
        6 |         del A[0, 0]
          |             ^^^^^^^
        hint: leave it out
        """,
    ),
    Mistake(
        "assigning to an attribute",
        """
        S.name = "tile"
        """,
        """
        [TL1001] an attribute cannot be assigned to in a kernel
         --> program.py:6:9
          |
        6 |         S.name = "tile"
          |         ^^^^^^
        hint: use a name, an alloc_var or a buffer element; stateful helper objects are made with @T.meta_class and T.inline
        """,
    ),
    Mistake(
        "two constructs at once",
        """
        try:
            A[0, 0] = 1.0
        finally:
            pass
        global total
        """,
        """
        [TL1001] `try` has no meaning in a kernel
         --> program.py:6:9
          |
        6 |         try:
          |         ^^^^
        note: also: `global` is not possible in a kernel
          --> program.py:10:9
           |
        10 |         global total
           |         ^^^^^^^^^^^^
        hint: test conditions with `if`
        """,
    ),
    Mistake(
        "async def",
        """
        @T.prim_func
        async def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1001] 'kernel' is not defined by a plain `def`
         --> program.py:2:1
          |
        2 | async def kernel(A: T.Tensor((16,), "float32")):
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: lambdas and `async def` cannot be kernels
        """,
        whole=True,
    ),
    Mistake(
        "a lambda",
        """
        kernel = T.prim_func(lambda A: None)
        """,
        """
        [TL1001] '<lambda>' is not defined by a plain `def`
         --> program.py:1:1
          |
        1 | kernel = T.prim_func(lambda A: None)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: lambdas and `async def` cannot be kernels
        """,
        whole=True,
    ),
    Mistake(
        "a lambda in the header of a loop",
        """
        for f in (lambda A: None, lambda B: None):
            kernel = T.prim_func(f)
        """,
        """
        [TL1001] '<lambda>' is not defined by a plain `def`
         --> program.py:1:1
          |
        1 | for f in (lambda A: None, lambda B: None):
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: lambdas and `async def` cannot be kernels
        """,
        whole=True,
    ),
    Mistake(
        "a lambda in the header of a function",
        """
        def f(made=lambda A: None):
            return T.prim_func(made)

        f()
        """,
        """
        [TL1001] '<lambda>' is not defined by a plain `def`
         --> program.py:1:1
          |
        1 | def f(made=lambda A: None):
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: lambdas and `async def` cannot be kernels
        """,
        whole=True,
    ),
    Mistake(
        "not a function",
        """
        kernel = T.prim_func(3)
        """,
        """
        [TL1001] int 3 is not a plain Python function
         --> program.py:1:1
          |
        1 | kernel = T.prim_func(3)
          | ^^^^^^^^^^^^^^^^^^^^^^^
        hint: decorate a function defined with `def`
        """,
        whole=True,
    ),
    Mistake(
        "an annotation that cannot be evaluated",
        """
        @T.prim_func
        def kernel(A: "Matrix"):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1001] the annotation of parameter 'A' of 'kernel' cannot be evaluated: name 'Matrix' is not defined
         --> program.py:2:12
          |
        2 | def kernel(A: "Matrix"):
          |            ^^^^^^^^^^^
        hint: annotate with names that are visible where the function is defined
        """,
        whole=True,
    ),
    Mistake(
        "source that is nowhere",
        r"""
        names = {"T": T}
        exec("def kernel(A: T.int32):\n    pass\n", names)
        kernel = T.prim_func(names["kernel"])
        """,
        """
        [TL1001] the source text of 'kernel' cannot be found (looked for '<string>')
         --> program.py:3:1
          |
        3 | kernel = T.prim_func(names["kernel"])
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: define it in a file or a notebook cell, or register the text in linecache
        """,
        whole=True,
    ),
    Mistake(
        "a decorator between",
        """
        import functools
        def logged(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args)
            return wrapper
        @T.prim_func
        @logged
        def kernel(A: T.Tensor((4,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        """,
        """
        [TL1001] a decorator wrapped 'kernel': a kernel is traced from its text, and would leave out what 'logged.<locals>.wrapper' does
         --> program.py:7:1
          |
        7 | @T.prim_func
          | ^^^^^^^^^^^^
        hint: remove the decorator between, or call what it does in the kernel as a T.macro
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is FrontendError
    assert str(error) == mistake.expected


def test_a_file_that_was_edited(tmp_path):
    path = tmp_path / "program.py"
    text = 'def kernel(A: T.Tensor((4,), "float32")):\n    with T.Kernel(1):\n        A[0] = 1.0\n'
    path.write_text(text)
    names = {"T": T}
    exec(compile(text, str(path), "exec"), names)
    path.write_text(text.replace("1.0", "2.0"))
    with pytest.raises(FrontendError) as caught:
        T.prim_func(names["kernel"])
    place = caught.value.span
    assert place is not None
    assert place.file == __file__
    assert str(caught.value).replace(str(path), "program.py").splitlines()[0] == (
        "[TL1001] the text of 'kernel' was edited after it was imported: program.py says something else now"
    )
    assert str(caught.value).splitlines()[-1] == (
        "hint: import it again: importlib.reload(module), or start the program again"
    )
