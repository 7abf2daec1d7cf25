"""Kernels with one mistake in what they say to Hopper."""

from __future__ import annotations

import textwrap

from support.mistakes import Mistake

HEAD = """
@T.prim_func
def kernel(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16"), n: T.int32):
    with T.Kernel(2, threads=256{more}) as bx:
        S = T.alloc_shared((64, 64), "float16")
        full = T.alloc_barrier([128] * 2)
"""
CALL = '(*[np.zeros((64, 64), "float16")] * 2, 1)'


def mistake(
    name: str, body: str, message: str, target: str = "cuda:sm_90a@sim", more: str = ""
) -> Mistake:
    """Return a kernel whose line 6 and those behind it are `body`."""
    inside = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    last = f'tile.compile(kernel, target="{target}")' + CALL * (target in ("interpret", "cpu"))
    program = f"{HEAD.replace('{more}', more)}{inside}\n{last}"
    return Mistake(name, program, message, whole=True)
