# ruff: noqa: E501 - messages are compared as they are printed
"""TL1003: options that do not exist, with the nearest that does."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import FrontendTypeError

KERNEL = """
@T.prim_func
def kernel(A: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        A[0] = 1.0
"""
ALL = (
    "it has out_idx, execution_backend, target, target_host, verbose, pass_configs, "
    "compile_flags, host"
)


def mistake(name: str, line: str, message: str, hint: str, before: str = KERNEL) -> Mistake:
    """Return a program whose line 5, or first, is wrong."""
    number = before.strip().count("\n") + 2 if before else 1
    first = line.split("\n")[0]
    place = f" --> program.py:{number}:1\n  |\n{number} | {first}\n  | {'^' * len(first)}"
    return Mistake(name, before + line, f"[TL1003] {message}\n{place}\nhint: {hint}", whole=True)


MISTAKES = [
    Mistake(
        "arrays for a function of NumPy",
        """
        @tile.jit
        def add(a, b):
            return a + b
        add(np.ones(4), np.ones(4))
        """,
        """
        [TL1003] add was called with an array for 'a', and declares no tensors: @tile.jit does not translate array code
         --> program.py:4:1
          |
        4 | add(np.ones(4), np.ones(4))
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: begin it with M, N = T.const("M, N") and a: T.Tensor((M, N), "float32"), write the loops under `with T.Kernel(...)`, and return what T.empty made; or return a @T.prim_func, and call the kernel: f(sizes)(arrays)
        """,
        whole=True,
    ),
    mistake(
        "a letter is missing",
        'tile.compile(kernel, target="cpu", pass_config={})',
        "tile.compile has no option 'pass_config'",
        "did you mean pass_configs=...?",
    ),
    mistake(
        "nothing like it",
        'tile.compile(kernel, target="cpu", foo=1)',
        "tile.compile has no option 'foo'",
        ALL,
    ),
    mistake(
        "lowering",
        'tile.lower(kernel, taget="cpu")',
        "tile.lower has no option 'taget'",
        "did you mean target=...?",
    ),
    mistake(
        "many kernels",
        'tile.par_compile([kernel], target="cpu", optimise=3)',
        "tile.par_compile has no option 'optimise'",
        ALL.replace("it has out_idx", "it has funcs, out_idx").replace(
            ", host", ", num_workers, ignore_error, executor, host"
        ),
    ),
    mistake(
        "a decorator",
        "@tile.jit(outidx=[-1])\ndef make(n):\n    return n",
        "tile.jit has no option 'outidx'",
        "did you mean out_idx=...?",
        "",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    error = mistake.error()
    assert type(error) is FrontendTypeError
    assert isinstance(error, TypeError)
    assert str(error) == mistake.expected
