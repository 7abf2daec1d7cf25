"""Statements as C++: loops, branches, declarations, and the user's lines beside them."""

from textwrap import dedent

import pytest

from support.device_programs import (
    TID,
    at,
    do,
    flat,
    load,
    loop,
    place,
    printed,
    registers,
    scalar,
    store,
    variable,
)
from tile_core.dtypes import dtype_of
from tile_core.errors import InternalError
from tile_core.ir.buffer import Scope
from tile_core.ir.build_expr import as_expr, binary, const
from tile_core.ir.expr import BinaryOp, Call
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Check,
    CheckKind,
    Continue,
    Evaluate,
    For,
    If,
    Let,
    LoopKind,
    Parallel,
    Seq,
    While,
)

N = scalar("n")
I, J = scalar("i"), scalar("j")
A = flat("A", 64, "float32")
R = registers("R", 8)
V = variable("v")


def less(a, b):
    return binary(BinaryOp.LT, a, b)


def expect(text: str, *body, params=(A,)) -> None:
    assert printed(*body, params=params) == dedent(text).strip("\n")


def test_unrolled_loop_over_registers():
    expect(
        """
        tile::frag<float, 8> R;
        TILE_UNROLL
        for (int i = 0; i < 8; ++i) {
          R[i] = 0.0f;
        }
        """,
        Alloc(R),
        loop(I, 8, store(R, I, 0.0), kind=LoopKind.UNROLL),
    )


def test_run_time_and_long_loops_stay_loops():
    expect(
        """
        TILE_NO_UNROLL
        for (int i = 0; i < n; ++i) {
          A[i] = 0.0f;
        }
        TILE_NO_UNROLL
        for (int i = 0; i < 64; ++i) {
          A[i] = 1.0f;
        }
        for (int i = 0; i < 4; ++i) {
          A[i] = 2.0f;
        }
        """,
        loop(I, N, store(A, I, 0.0)),
        loop(I, 64, store(A, I, 1.0)),
        loop(I, 4, store(A, I, 2.0)),
        params=(A, N),
    )


def test_a_long_loop_that_picks_registers_is_unrolled():
    big = registers("big", 64)
    expect(
        """
        tile::frag<float, 64> big;
        TILE_UNROLL
        for (int i = 0; i < 64; ++i) {
          big[i] = 0.0f;
        }
        """,
        Alloc(big),
        loop(I, 64, store(big, I, 0.0)),
    )


@pytest.mark.parametrize(
    ("start", "stop", "step", "head"),
    [
        (0, 8, 2, "int i = 0; i < 8; i += 2"),
        (7, -1, -1, "int i = 7; i > -1; i -= 1"),
        (0, N + 1, 1, "int i = 0; i < n + 1; ++i"),
        (0, N, J, "int i = 0; j > 0 ? i < n : i > n; i += j"),
    ],
)
def test_heads_of_loops(start, stop, step, head):
    body = For(I, as_expr(start), as_expr(stop), as_expr(step), store(A, I, 0.0))
    assert f"for ({head}) {{" in printed(body, params=(A, N, J))


def test_the_end_of_a_loop_is_read_once():
    ends = flat("ends", 4, "int32")
    expect(
        """
        const int i_stop = ends[0];
        TILE_NO_UNROLL
        for (int i = 0; i < i_stop; ++i) {
          A[i] = 0.0f;
        }
        """,
        loop(I, load(ends), store(A, I, 0.0)),
        params=(A, ends),
    )


def test_branches():
    expect(
        """
        const int tid = threadIdx.x;
        if (tid < 4) {
          A[tid] = 0.0f;
        } else if (tid < 8) {
          A[tid] = 1.0f;
        } else {
          A[tid] = 2.0f;
        }
        """,
        If(
            less(TID, 4),
            store(A, TID, 0.0),
            If(less(TID, 8), store(A, TID, 1.0), store(A, TID, 2.0)),
        ),
    )


def test_what_is_compared_is_stored_unseen():
    x = load(A, TID)
    expect(
        """
        const int tid = threadIdx.x;
        if (A[tid] < 0.0f) {
          A[tid] = tile::opaque(0.0f);
        } else if (tid < 4) {
          A[tid + 1] = tile::opaque(A[tid]);
        } else {
          A[tid] = 1.0f;
        }
        """,
        If(
            binary(BinaryOp.LT, x, 0.0),
            store(A, TID, 0.0),
            If(less(TID, 4), store(A, TID + 1, x), store(A, TID, 1.0)),
        ),
    )


def test_while_break_continue_and_variables():
    expect(
        """
        int v = 0;
        while (v < 10) {
          v = v + 1;
          if (v == 3) {
            continue;
          }
          break;
        }
        """,
        Alloc(V),
        store(V, 0, 0),
        While(
            less(load(V), 10),
            Seq(
                (
                    store(V, 0, load(V) + 1),
                    If(binary(BinaryOp.EQ, load(V), 3), Continue()),
                    Break(),
                )
            ),
        ),
    )


def test_variables_without_a_first_value():
    expect(
        """
        int v;
        A[0] = 0.0f;
        v = v + 1;
        """,
        Alloc(V),
        store(A, 0, 0.0),
        store(V, 0, load(V) + 1),
    )
    unset = (Alloc(V), store(V, 0, load(V) + 1))
    assert printed(*unset).startswith("int v;\nv = v + 1;")


def test_names_for_values():
    half = scalar("half", "float16")
    expect(
        """
        const int tid = threadIdx.x;
        const int i = tid * 4;
        const half_t half_1 = tile::cast<half_t>(1.0f);
        A[i % 3] = tile::cast<float>(half_1);
        """,
        Let(I, TID * 4),
        Let(half, const(1.0, dtype_of("float16"))),
        store(A, I % 3, half.astype("float32")),
    )


def test_blocks_that_come_twice_have_scopes_of_their_own():
    inner = Seq((Alloc(R), Let(I, TID + 1), store(R, 0, 0.0)))
    expect(
        """
        const int tid = threadIdx.x;
        tile::frag<float, 8> R;
        const int i = tid + 1;
        R[0] = 0.0f;
        {
          tile::frag<float, 8> R;
          const int i = tid + 1;
          R[0] = 0.0f;
        }
        """,
        inner,
        inner,
    )


def test_checks():
    expect(
        """
        // n < 8 holds: a small n
        tile::assert_that(n < 8, "n is \\"small\\"");
        """,
        Check(less(N, 8), "a small\nn", CheckKind.ASSUME),
        Check(less(N, 8), 'n is "small"', CheckKind.ASSERT),
        params=(A, N),
    )


def test_the_first_line_of_each_of_the_users_lines_says_which():
    body = (
        do("async_copy_commit", line=40),
        do("async_copy_wait", 0, line=40),
        loop(I, 4, store(A, I, 0.0, span=place(42)), span=place(41)),
        do("sync", line=41),
        do("sync"),
    )
    expect(
        """
        tile::cp_async_commit();  // kernel.py:40
        tile::cp_async_wait<0>();
        for (int i = 0; i < 4; ++i) {  // kernel.py:41
          A[i] = 0.0f;  // kernel.py:42
        }
        tile::sync();  // kernel.py:41
        tile::sync();
        """,
        *body,
    )


def test_views_are_named_after_their_storage():
    words = registers("R_words", 4, "uint32")
    words = type(words)("R_words", (4,), dtype_of("uint32"), Scope.LOCAL, origin=R)
    A_words = flat("A_words", 16, "uint32", origin=A)
    expect(
        """
        auto A_words = tile::view<const tile::u32>(A);
        tile::frag<float, 8> R;
        auto R_words = tile::view<tile::u32>(R);
        R_words[0] = A_words[1];
        """,
        Alloc(R),
        store(words, 0, load(A_words, 1)),
    )


def test_registers_handed_to_functions():
    expect(
        """
        const int tid = threadIdx.x;
        tile::frag<float, 8> R;
        tile::load<4>(R + 4, A + (tid * 4));
        """,
        Alloc(R),
        do("load", 4, at(R, 4, "w"), at(A, TID * 4)),
    )


def test_tile_statements_are_refused():
    loops = Parallel((I,), (as_expr(4),), store(A, I, 0.0))
    with pytest.raises(InternalError, match="Parallel is not printed"):
        printed(loops, params=(A,))
    unknown = Evaluate(Call("device:nothing", (), dtype_of("int32")))
    with pytest.raises(InternalError, match="no function 'nothing'"):
        printed(unknown)
