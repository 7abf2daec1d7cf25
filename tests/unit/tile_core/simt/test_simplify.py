"""What simplified programs look like: short, and without what never happens."""

from textwrap import dedent

import pytest

from support.device_programs import (
    BX,
    TID,
    at,
    do,
    flat,
    function,
    load,
    loop,
    printed,
    registers,
    scalar,
    store,
)
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.interval import Interval
from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import as_expr, binary, call, cast, maximum, minimum
from tile_core.ir.expr import BinaryOp, StringConst, Var
from tile_core.ir.node import walk
from tile_core.ir.printer import print_expr_text
from tile_core.ir.stmt import Alloc, Break, For, If, Let, Seq, Stmt, Store
from tile_core.simt.simplify import simplify_indices

T, V, K, N = (scalar(name) for name in "tvkn")
A, S = flat("A", 64, "float32"), flat("S", 64, "float32")
KNOWN = {
    T: Interval(0, 127), V: Interval(0, 7), K: Interval(0, None), BX: Interval(0, 63),
    N: Interval(0, None),
}  # fmt: skip
E = T * 8 + V


def wide(value):
    return cast(value, "int64")


def short(index, known=KNOWN) -> str:
    (result,) = simplify_indices(store(A, index, 0.0), known).indices
    return print_expr_text(result)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (E // 32, "t // 4"),
        (E % 32, "t % 4 * 8 + v"),
        (E // 32 * 32 + E % 32, "t * 8 + v"),
        (E // 32 * 40 + E % 32, "t // 4 * 40 + t % 4 * 8 + v"),
        ((E // 64 % 8 ^ E // 8 % 8) * 8 + E % 8, "(t // 8 % 8 ^ t % 8) * 8 + v"),
        ((T % 8 * 8 + V) ^ (T // 8 % 8 * 8), "(t % 8 ^ t // 8 % 8) * 8 + v"),
        ((T * 8) ^ V, "t * 8 + v"),
        ((T * 8) | V, "t * 8 + v"),
        ((T ^ V) ^ V, "t"),
        (E & 7, "v"),
        (E >> 3, "t"),
        ((V + 1) * 4 - 4, "v * 4"),
        (T - T, "0"),
        (minimum(T, 200) + maximum(V, 9), "t + 9"),
        (minimum(T, 100), "min(t, 100)"),
        (binary(BinaryOp.TRUNCDIV, E, 8), "t"),
        (5 - V, "5 - v"),
        (N * 4 // 4, "n"),
        ((K * 3 + 1) // 3, "k"),
        (T // 4 // 8, "t // 32"),
        (T % 64 // 8, "t // 8 % 8"),
    ],
)
def test_index_expressions(index, text):
    assert short(index) == text


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (wide(BX * 128 + E // 32) * 1024 + wide(E % 32),
         "bx * 131072 + t // 4 * 1024 + t % 4 * 8 + v"),
        (wide(K * 128 + E // 32) * 1024 + wide(V),
         "cast[int64](k * 128 + t // 4) * int64(1024) + cast[int64](v)"),
        (wide(K) * wide(N) + wide(V), "cast[int64](k) * cast[int64](n) + cast[int64](v)"),
        (wide(T) * wide(V), "t * v"),
    ],
)  # fmt: skip
def test_wide_arithmetic_is_left_where_it_is_needed(index, text):
    assert short(index) == text


def test_sums_that_might_overflow_stay_as_they_are():
    """Any distribution of a difference of large numbers could leave the range in between."""
    x, y = scalar("x"), scalar("y")
    assert short((x - y) * 4 + y * 4) == "(x - y) * 4 + y * 4"
    assert short((x + 1) * 4 // 4) == "(x + 1) * 4 // 4"


def test_nothing_that_acts_is_dropped_or_doubled():
    counter = flat("counter", 1, "int32")
    drawn = call("atomic_add", at(counter), 1, StringConst("relaxed"))
    for index in (drawn - drawn, drawn % 1 + drawn * 0, minimum(drawn, 2**31 - 1)):
        result = simplify_indices(store(A, index, 0.0), KNOWN)
        assert print_expr_text(result.indices[0]) == print_expr_text(index)


def run(*body: Stmt, known=KNOWN) -> str:
    return printed(simplify_indices(Seq(body), known), params=(A, S))


def expect(text: str, *body: Stmt) -> None:
    assert run(*body) == dedent(text).strip("\n")


def test_guards_that_always_hold_disappear():
    expect(
        "A[t] = 0.0f;",
        If(binary(BinaryOp.LT, E, 1024), store(A, E // 8, 0.0)),
        If(binary(BinaryOp.LT, V, 0), store(A, 0, 1.0)),
    )


def test_a_guard_tells_the_range_inside():
    expect(
        """
        if (t < 32) {
          A[1] = 0.0f;
        } else {
          A[t >> 5] = 0.0f;
        }
        """,
        If(
            binary(BinaryOp.LT, T, 32),
            store(A, T // 32 + 1, 0.0),
            store(A, maximum(T // 32, 1), 0.0),
        ),
    )


def test_comparisons_lose_what_is_on_both_sides():
    condition = binary(BinaryOp.LT, BX * 128 + T + V, BX * 128 + 64)
    assert run(If(condition, store(A, T, 0.0))).startswith("if (t + v < 64) {")


def test_loops_of_one_round_are_no_loops():
    i, j = scalar("i"), scalar("j")
    expect(
        """
        A[t + 3] = 0.0f;
        for (int j = 0; j < 1; ++j) {
          break;
        }
        """,
        For(i, as_expr(3), as_expr(4), as_expr(1), store(A, T + i, 0.0)),
        loop(j, 1, Break()),
        loop(j, 0, store(A, 0, 0.0)),
    )


def test_loop_indices_have_ranges_and_steps():
    i = scalar("i")
    expect(
        """
        for (int i = 0; i < 32; i += 8) {
          A[i + v] = S[i >> 3];
        }
        """,
        For(
            i, as_expr(0), as_expr(32), as_expr(8), store(A, (i + V) % 32, load(S, (i + V) // 8)),
        ),
    )  # fmt: skip


def test_names_have_the_range_of_their_value():
    row, seven = scalar("row"), scalar("seven")
    expect(
        """
        const int row = (t >> 2) * 8;
        A[row] = S[7];
        """,
        Let(row, E // 32 * 8),
        Let(seven, V * 0 + 7),
        store(A, (row + V) // 8 * 8, load(S, seven)),
    )


def test_one_index_with_two_ranges():
    """A lowered statement may stand in two loops over the same variable."""
    i = scalar("i")
    body = store(A, i // 8, 0.0)
    expect(
        """
        for (int i = 0; i < 8; ++i) {
          A[0] = 0.0f;
        }
        for (int i = 0; i < 16; ++i) {
          A[i >> 3] = 0.0f;
        }
        """,
        loop(i, 8, body),
        loop(i, 16, body),
    )


def test_values_are_simplified_too():
    r = registers("r", 4)
    expect(
        """
        tile::frag<float, 4> r;
        r[3] = tile::exp2(A[t] * 2.0f);
        tile::cp_async<16>(A, S, true);
        """,
        Alloc(r),
        store(r, T // 128 + 3, call("exp2", load(A, E // 8) * 2.0)),
        do(
            "async_copy",
            16,
            at(A, V // 8, "w"),
            at(S, V // 8),
            binary(BinaryOp.LT, E, 1024),
        ),
    )


def test_functions_know_their_launch():
    index = (BX * 128 + TID) // 512
    f = simplify_indices(function((A,), store(A, index, 0.0)))
    (stored,) = f.launch.body.body
    assert print_expr_text(stored.indices[0]) == "0"
    f = simplify_indices(function((A,), store(A, index, 0.0), grid=(5,)))
    (stored,) = f.launch.body.body
    assert print_expr_text(stored.indices[0]) == "bx // 4"


def test_ranges_may_come_from_an_environment():
    env = ConstraintSet().with_loop(T, 0, 128).with_loop(V, 0, 8)
    assert short(E // 32, env) == "t // 4"
    m = Var("m", dtype_of("int32"))
    assert short((m * 8 + V) // 8, env.with_symbol(m)) == "m"


def test_what_is_short_already_is_not_changed():
    index = T * 8 + V
    result = simplify_indices(store(A, index, 0.0), KNOWN)
    assert print_expr_text(result.indices[0]) == print_expr_text(index)


def test_names_given_anew_inside_of_a_sequence_are_known_behind_it():
    """Both parts of a loop that was split give the same names, to other values."""
    x = scalar("x")

    def part(value):
        return Seq((Seq((Let(x, value),)), store(A, x // 8, 0.0)))

    found = simplify_indices(Seq((part(V), part(T), part(as_expr(16)))), KNOWN)
    stored = [n for n in walk(found) if isinstance(n, Store)]
    assert [print_expr_text(n.indices[0]) for n in stored] == ["0", "x // 8", "2"]
