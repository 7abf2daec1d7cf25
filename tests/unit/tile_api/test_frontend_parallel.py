"""How element-wise loops may index fragments and thread-private arrays."""

from __future__ import annotations

import pytest

from tile_core.errors import ParallelBodyError

TEXT = """
@T.prim_func
def f(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), n: T.int32):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        d = T.alloc_fragment((64, 64), "float32")
        m = T.alloc_fragment((64,), "float32")
        one = T.alloc_fragment((1,), "float32")
        own = T.alloc_local((64,), "float32")
        T.gemm(a, b, c)
        for i, j in T.Parallel(64, 64):
            {}
"""
BODY_LINE = 14


@pytest.mark.parametrize(
    "statement",
    [
        "d[i, j] = d[i, j] * m[i]",
        "d[i, j] = a[i, j + 1 - 1] + a[j, i] + a[3, 4]",
        "d[i, j] = one[0] + d[i, j]",
        "x = j // 2; d[i, x] = d[i, j // 2] + 1",
        "own[0] = m[i]; own[1] = own[0]; d[i, j] = own[1]",
        "for k in T.serial(4): d[i, j] += a[i, k]",
        "for k in T.serial(4): m[i] += d[i, k]",
    ],
)
def test_accepted(statement, kernel_from):
    kernel_from(TEXT.format(statement))


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("d[i, j] = d[j, i]", "'d' is accessed with different indices"),
        ("m[i] = m[j]", "'m' is accessed with different indices"),
        ("x = j + 1; d[i, j] = d[i, x]", "'d' is accessed with different indices"),
        ("one[0] = m[3]", "the constant index 3 into the fragment 'm'"),
        ("own[i] = 1", "each thread has its own array 'own'"),
        ("x = i + 1; own[x] = 1", "each thread has its own array 'own'"),
        ("for k in T.serial(64): m[i] += c[i, k]", "the fragment 'c' of a matrix product"),
        ("if m[j] > 0: d[i, j] = m[i]", "'m' is accessed with different indices"),
    ],
)
def test_refused(statement, text, kernel_from):
    with pytest.raises(ParallelBodyError, match=text) as caught:
        kernel_from(TEXT.format(statement))
    assert caught.value.span.line == BODY_LINE
    assert caught.value.hint
    assert any("is declared here" in note.text for note in caught.value.notes)
