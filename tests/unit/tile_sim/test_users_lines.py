"""Kernels in Python on emulated GPUs: right results, and mistakes told in the user's words."""

from __future__ import annotations

import linecache
import re
import textwrap

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import (
    DataRace,
    Deadlock,
    DeviceAssertError,
    MissingWait,
    OutOfBounds,
    TileError,
    ToolchainError,
    UninitialisedRead,
)
from tile_sim import checking, last_report

FILE = "user.py"


def kernel_of(text: str, target: str = "cuda:sm_80@sim"):
    """Compile the kernel ``k`` that `text` defines; its first line is line 1 of user.py."""
    text = textwrap.dedent(text).lstrip("\n")
    linecache.cache[FILE] = (len(text), None, text.splitlines(True), FILE)
    scope = {"T": T}
    exec(compile(text, FILE, "exec", dont_inherit=True), scope)
    return tile.compile(scope["k"], target=target)


GEMM = """
@T.prim_func
def k(A: T.Tensor((96, 64), "float16"), B: T.Tensor((64, 96), "float16"), C: T.Tensor((96, 96), "float32")):
    with T.Kernel(3, 3, threads=64) as (bx, by):
        As = T.alloc_shared((32, 32), "float16")
        Bs = T.alloc_shared((32, 32), "float16")
        Cl = T.alloc_fragment((32, 32), "float32")
        T.clear(Cl)
        for i in T.Pipelined(2, num_stages=2):
            T.copy(A[by * 32, i * 32], As)
            T.copy(B[i * 32, bx * 32], Bs)
            T.gemm(As, Bs, Cl)
        T.copy(Cl, C[by * 32, bx * 32])
"""  # noqa: E501


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:4"])
@pytest.mark.parametrize(
    "machine",
    [*(f"cuda:{arch}" for arch in ("sm_70", "sm_75", "sm_80", "sm_89")),
     *(f"hip:{arch}" for arch in ("gfx90a", "gfx942", "gfx950"))],
)  # fmt: skip
def test_a_product(machine, schedule):
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (96, 64)).astype(np.float16)
    b = rng.integers(-4, 5, (64, 96)).astype(np.float16)
    c = np.full((96, 96), np.nan, np.float32)
    with checking("all,counters", schedule=schedule):
        kernel_of(GEMM, f"{machine}@sim")(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    report = last_report()
    assert report is not None
    assert report.conflicts == 0
    assert {row.place for row in report.rows} == {f"user.py:{n}" for n in (9, 10, 11, 12)}


MISTAKES = {
    "copy not waited for": (
        """
        @T.prim_func
        def k(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
            with T.Kernel(1, threads=64):
                s = T.alloc_shared((16, 64), "float32")
                T.async_copy(A, s)
                T.copy(s, B)
        """,
        MissingWait, 6,
        "thread 0 of block (0) reads s[0, 0], whose asynchronous copy was not waited for",
    ),
    "tile not written": (
        """
        @T.prim_func
        def k(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
            with T.Kernel(1, threads=64):
                s = T.alloc_shared((16, 64), "float32")
                T.copy(s, B)
        """,
        UninitialisedRead, 5,
        "thread 0 of block (0) reads s[0, 0], which nothing has written",
    ),
    "accumulator not cleared": (
        GEMM.replace("T.clear(Cl)", "pass"),
        UninitialisedRead, 11,
        "thread 0 of block (0, 0) reads register 0 of Cl, which nothing has written",
    ),
    "behind the end of a tile": (
        """
        @T.prim_func
        def k(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
            with T.Kernel(1, threads=64) as bx:
                s = T.alloc_shared((64,), "float32")
                T.copy(A[0, 0:64], s)
                t = T.get_thread_binding()
                B[0, t] = s[t + T.cast(A[1, 0], "int32") * 64]
        """,
        OutOfBounds, 7,
        "thread 0 of block (0) reads element 127 of s, which is outside of its 64 elements",
    ),
    "blocks that write one row": (
        """
        @T.prim_func
        def k(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
            with T.Kernel(2, threads=64) as bx:
                t = T.get_thread_binding()
                B[3, t] = bx
        """,
        DataRace, 5,
        "thread 0 of block (1) writes B[3, 0], which thread 0 of block (0) wrote without "
        "synchronisation",
    ),
    "two barriers for one": (
        """
        @T.prim_func
        def k(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
            with T.Kernel(1, threads=64):
                t = T.get_thread_binding()
                if t < 32:
                    T.sync_threads()
                else:
                    T.sync_threads()
                B[0, t] = 1.0
        """,
        Deadlock, 8,
        "threads of one block wait at different barrier statements: thread 32 here, thread 0 at "
        "user.py:6",
    ),
    "assertion": (
        """
        @T.prim_func
        def k(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
            with T.Kernel(1, threads=64):
                t = T.get_thread_binding()
                T.device_assert(A[0, t] > 2, "elements are large")
        """,
        DeviceAssertError, 5,
        "device assertion failed: elements are large",
    ),
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake(name, target):
    text, error, line, message = MISTAKES[name]
    run = kernel_of(text, target)
    shapes = [(96, 64), (64, 96), (96, 96)] if "gemm" in text else [(16, 64)] * 2
    dtypes = ["float16", "float16", "float32"] if "gemm" in text else ["float32"] * 2
    args = [np.ones(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    with checking("all", threads=1), pytest.raises(TileError) as caught:
        run(*args)
    assert type(caught.value) is error, str(caught.value)
    assert (caught.value.span.file, caught.value.span.line) == (FILE, line)
    # Which thread is first, and its element, is the schedule's matter.
    assert anywhere(caught.value.message) == anywhere(message)


def anywhere(message):
    return re.sub(r"\bs\[\d+, \d+\]", "s[0, 0]", re.sub(r"^thread \d+", "thread 0", message))


C_TEXT = """
@T.prim_func
def k(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=32):
        T.import_source("__device__ __forceinline__ float half_of(float x) {\\n  return x / 2; }")
        for i in T.Parallel(64):
            A[i] = T.call_extern("float32", "half_of", A[i])
"""


def test_c_text_of_the_user():
    a = np.arange(64, dtype=np.float32)
    kernel_of(C_TEXT)(a)
    np.testing.assert_array_equal(a, np.arange(64) / 2)


def test_a_mistake_in_c_text():
    with pytest.raises(ToolchainError) as caught:
        kernel_of(C_TEXT.replace("return x", "return y"))
    first, *words = caught.value.message.splitlines()
    assert first.endswith("does not accept the source of the kernel 'k':")
    assert any(re.match(r"<source 1>:2:\d+: error: .*y", word) for word in words)
