"""Indices that occur again get a name, once, where all uses see it."""

from textwrap import dedent

from support.device_programs import at, do, flat, load, loop, printed, registers, scalar, store
from tile_core.ir.build_expr import binary, cast, select
from tile_core.ir.expr import BinaryOp
from tile_core.ir.stmt import If, Let, Seq
from tile_core.simt.common_subexpressions import eliminate_common_subexpressions

T, I, J, N = (scalar(name) for name in "tijn")
A, B, C = (flat(name, 64, "float32") for name in "ABC")
R = registers("R", 8)


def long():
    return T * 128 + I


def less(a, b):
    return binary(BinaryOp.LT, a, b)


def expect(text: str, *body) -> None:
    named = eliminate_common_subexpressions(Seq(body))
    assert printed(named, params=(A, B, C)) == dedent(text).strip("\n")


def test_a_guarded_addition():
    expect(
        """
        const int at = t * 128 + i;
        if (at < n) {
          C[at] = A[at] + B[at];
        }
        """,
        If(less(long(), N), store(C, long(), load(A, long()) + load(B, long()))),
    )


def test_one_buffer_gives_the_name():
    expect(
        """
        const int A_at = t * 128 + i;
        A[A_at] = A[A_at] + 1.0f;
        """,
        store(A, long(), load(A, long()) + 1.0),
    )


def test_names_stand_in_the_innermost_block():
    body = store(C, long() + J, load(A, long() + J))
    expect(
        """
        for (int j = 0; j < 4; ++j) {
          const int at = t * 128 + i + j;
          C[at] = A[at];
        }
        """,
        loop(J, 4, body),
    )


def test_loops_over_one_index_name_it_each():
    body = store(C, long() + J, load(A, long() + J))
    text = printed(
        eliminate_common_subexpressions(Seq((loop(J, 4, body), loop(J, 4, body)))), params=(A, C)
    )
    assert text.count("const int at") == 2


def test_parts_of_named_indices_are_named_first():
    expect(
        """
        const int B_at = t * 128 + i;
        const int at = B_at + 4;
        tile::load<4>(A + at, B + B_at);
        tile::load<4>(C + at, B + B_at);
        """,
        do("load", 4, at(A, long() + 4, "w"), at(B, long())),
        do("load", 4, at(C, long() + 4, "w"), at(B, long())),
    )


def test_a_row_in_an_offset_of_64_bits():
    expect(
        """
        const int at = t * 128 + i;
        tile::cp_async<16>(A, B + (tile::cast<tile::i64>(at) * 512 + j), at < n);
        """,
        do("async_copy", 16, at(A, 0, "w"), at(B, cast(long(), "int64") * 512 + cast(J, "int64")),
           less(long(), N)),
    )  # fmt: skip


def unchanged(*body) -> None:
    stmt = Seq(body)
    assert printed(eliminate_common_subexpressions(stmt)) == printed(stmt)


def test_what_keeps_its_own_text():
    short = T + I
    unchanged(store(A, short, load(B, short)))  # no longer than a name
    unchanged(store(R, long(), load(R, long())))  # register indices are constants in the end
    unchanged(store(A, long(), load(B, T * 64 + I)))  # each once
    counts = flat("counts", 4, "int32")
    changing = load(counts) * 128 + I
    unchanged(store(A, changing, load(B, changing)))  # memory may change


def test_nothing_is_computed_that_was_not_before():
    """Both uses are behind conditions: naming the index in front would compute it always."""
    unchanged(
        If(less(I, 4), store(A, long(), 0.0), store(B, long(), 0.0)),
    )
    unchanged(
        store(C, 0, select(less(I, 4), load(A, long()), 0.0)),
        If(less(I, 4), store(A, long(), 0.0)),
    )


def test_names_of_the_program_come_first():
    row = scalar("row")
    index = row * 128 + I
    expect(
        """
        const int row = t + 1;
        const int at = row * 128 + i;
        C[at] = A[at];
        """,
        Let(row, T + 1),
        store(C, index, load(A, index)),
    )
