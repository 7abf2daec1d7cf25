"""Every statement of a traced kernel knows the user's line."""

from __future__ import annotations

import traceback

import pytest

from tile_core.errors import TileError
from tile_core.ir.expr import Load
from tile_core.ir.node import walk
from tile_core.ir.stmt import (
    Alloc,
    For,
    If,
    Launch,
    Leaf,
    Let,
    Parallel,
    Pipelined,
    Seq,
    Store,
)

TEXT = """
@T.macro
def twice(buf, i):
    buf[i] = buf[i] * 2


@T.prim_func
def f(A: T.Tensor((8, 8), "float32"),
      n: T.int32):
    with T.Kernel(8, threads=32) as bx:
        S = T.alloc_shared((8, 8), "float32")
        T.copy(A,
               S)
        for k in T.Pipelined(4, num_stages=2):
            x = S[k, 0] + 1
            if x > n: S[k, 1] = x
        for i, j in T.Parallel(8, 8):
            S[i, j] = 0
        local = T.alloc_local((4,), "float32")
        é = 1; twice(local, é)
"""


@pytest.fixture
def traced(kernel_from):
    return kernel_from(TEXT)


def places(kernel, kind) -> list[tuple[int, str]]:
    """Return line and underlined text of the nodes of a kind, in order."""
    lines = TEXT.splitlines()
    found = [node.span for node in walk(kernel) if isinstance(node, kind)]
    return [(s.line, lines[s.line - 1][s.col : s.end_col]) for s in found]


def test_statements_have_the_line_and_the_extent(traced):
    kernel = traced.kernel
    assert places(kernel, Launch) == [(10, "with T.Kernel(8, threads=32) as bx:")]
    assert places(kernel, Alloc) == [
        (11, 'T.alloc_shared((8, 8), "float32")'),
        (19, 'T.alloc_local((4,), "float32")'),
    ]
    assert places(kernel, Pipelined) == [(14, "for k in T.Pipelined(4, num_stages=2):")]
    assert places(kernel, Let) == [(15, "x = S[k, 0] + 1")]
    assert places(kernel, If) == [(16, "if x > n: S[k, 1] = x")]
    assert places(kernel, Parallel) == [(17, "for i, j in T.Parallel(8, 8):")]
    assert places(kernel, Store) == [(16, "S[k, 1]"), (18, "S[i, j]"), (4, "buf[i]")]


def test_operators_spanning_lines_point_at_their_first(traced):
    assert places(traced.kernel, Leaf) == [(12, "T.copy(A,")]


def test_loads_and_parameters_have_their_own_place(traced):
    assert places(traced.kernel, Load) == [(15, "S[k, 0]"), (4, "buf[i]")]
    a, n = traced.params
    assert (a.span.line, n.span.line) == (8, 9)


def test_no_statement_is_without_a_place(traced):
    kinds = (Launch, Alloc, For, If, Let, Store, Parallel, Pipelined, Leaf, Seq)
    missing = [node for node in walk(traced.kernel) if isinstance(node, kinds) and not node.span]
    assert missing == []


def test_errors_show_the_caret_under_the_user_s_text(kernel_from):
    with pytest.raises(TileError) as caught:
        kernel_from("""
            @T.prim_func
            def f(A: T.Tensor((8, 8), "float32")):
                with T.Kernel(1) as bx:
                    é = 2; A[é] = 1
        """)
    assert str(caught.value).splitlines()[1:5] == [
        f" --> {caught.value.span.file}:5:16",
        "  |",
        "5 |         é = 2; A[é] = 1",
        "  |                ^^^^",
    ]


def test_errors_in_macros_say_where_they_were_expanded(kernel_from):
    with pytest.raises(TileError) as caught:
        kernel_from("""
            @T.macro
            def wrong(buf):
                buf[0, 0] = 1

            @T.prim_func
            def f(A: T.Tensor((8,), "float32")):
                with T.Kernel(1) as bx:
                    wrong(A)
        """)
    assert caught.value.span.line == 4
    assert any(n.span.line == 9 and "while expanding 'wrong'" in n.text for n in caught.value.notes)


def test_python_tracebacks_show_the_user_s_lines(kernel_from):
    with pytest.raises(ZeroDivisionError) as caught:
        kernel_from("""
            @T.prim_func
            def f(A: T.Tensor((8,), "float32")):
                with T.Kernel(1) as bx:
                    for i in range(4):
                        raise ZeroDivisionError("mine")
        """)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.lineno, last.name) == (6, "f")
    assert last.line == 'raise ZeroDivisionError("mine")'


def test_indented_kernels_and_odd_strings_keep_their_columns(kernel_from):
    with pytest.raises(TileError) as caught:
        kernel_from('''
            def make():
                @T.prim_func
                def inner(A: T.Tensor((8,), "float32")):
                    """
            A docstring to the left of the function.
                    """
                    with T.Kernel(1) as bx:
                        A[0, 0] = 1
                return inner
            f = make()
        ''')
    assert (caught.value.span.line, caught.value.span.col) == (9, 12)


def test_the_text_is_read_when_the_function_is_decorated(kernel_from):
    first = kernel_from(TEXT)
    second = kernel_from(TEXT.replace("* 2", "* 3"))
    assert "* 2" in first.script()
    assert "* 3" in second.script()
