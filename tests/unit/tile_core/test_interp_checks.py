"""What the interpreter finds wrong with tile programs, and debugging in it."""

from __future__ import annotations

import contextlib
import sys

import ml_dtypes
import numpy as np
import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import (
    ArgumentCountError,
    ArgumentDtypeError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    DataRace,
    OutOfBounds,
    Span,
    UninitialisedRead,
    UnsupportedOnTarget,
)
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.build_expr import const
from tile_core.ir.expr import AddressOf, Call
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.structural_equality import structurally_equal
from tile_core.ir.verify import verify
from tile_core.ops.control import Breakpoint
from tile_core.ops.operator_table import OPERATORS
from tile_core.ops.printing import Print
from tile_core.testing.build_ir import (
    alloc,
    copy,
    evaluate,
    fill,
    fragment,
    gemm,
    kernel,
    load,
    local,
    parallel,
    reduce,
    region,
    serial,
    shared,
    store,
    symbol,
    tensor,
    value,
    variable,
    view,
)

A = tensor("A", (8,), "int32")
B = tensor("B", (8,), "int32")


def zeros():
    return np.zeros(8, np.int32)


def at(node, line):
    object.__setattr__(node, "span", Span("user.py", line, 0, 4))
    return node


def run(body, params=(A,), args=None, grid=1, **options):
    k = kernel(list(params), grid, body)
    interpret(k, args or [zeros() for _ in params], options=InterpretOptions(**options))


@pytest.mark.parametrize("make", [shared, fragment, local])
def test_out_of_bounds_in_scratch(make):
    t = make("t", (4, 4), "int32")
    with pytest.raises(OutOfBounds, match=r"t\[1, 5\] is outside t\[4, 4\]") as caught:
        run(lambda bx: [alloc(t), at(store(t, (1, load(A, 0) + 5), 0), 12)])
    assert caught.value.span.line == 12
    with pytest.raises(OutOfBounds, match=r"t\[-1, 0\]"):
        run(lambda bx: [alloc(t), parallel((4,), lambda i: store(A, i, load(t, i - 1, 0)))])
    with pytest.raises(OutOfBounds, match="index 4 leaves dimension 1 of t"):
        run(lambda bx: [alloc(t), fill(region(t, (0, bx + 1), (4, 4)), 0)])


def test_uninitialised_reads():
    t, f = shared("t", (4,), "int32"), fragment("f", (4,), "int32")
    with pytest.raises(UninitialisedRead, match=r"t\[2\] is read before") as caught:
        run(
            lambda bx: [
                alloc(t),
                store(t, 0, 1),
                store(t, 1, 1),
                at(parallel((4,), lambda i: at(store(A, i, load(t, i)), 7)), 6),
            ]
        )
    assert caught.value.span.line == 7
    with pytest.raises(UninitialisedRead, match=r"f\[0\]"):
        run(lambda bx: [alloc(f), reduce("sum", f, region(A, (0,), (1,)), 0)])
    run(lambda bx: [alloc(t, f), store(t, 0, 1), copy(t, f), store(A, 0, load(f, 0))])
    with pytest.raises(UninitialisedRead, match=r"f\[1\]"):
        run(lambda bx: [alloc(t, f), store(t, 0, 1), copy(t, f), store(A, 0, load(f, 1))])
    with pytest.raises(UninitialisedRead, match=r"t\[1\]"):
        run(lambda bx: [alloc(t), store(t, 0, 1), copy(t, region(A, (0,), (4,)))])
    run(lambda bx: [alloc(t), copy(t, region(A, (0,), (4,)))], check_uninitialised=False)


def test_each_round_of_a_loop_allocates_anew():
    v = variable("v", "int32")

    def body(bx):
        return serial(
            2,
            lambda s: [
                alloc(v),
                store(v, 0, s),
                store(A, s, load(v, 0)),
            ],
        )

    run(body)
    t = shared("t", (2,), "int32")

    def late(bx):
        return serial(2, lambda s: [alloc(t), store(t, s, 1), store(A, s, load(t, 0))])

    with pytest.raises(UninitialisedRead, match=r"t\[0\]"):
        run(late)


def test_uninitialised_accumulator_and_output():
    a, c = shared("a", (2, 2), "int32"), fragment("c", (2, 2), "int32")
    with pytest.raises(UninitialisedRead, match=r"c\[0, 0\]"):
        run(lambda bx: [alloc(a, c), fill(a, 1), gemm(a, a, c)])
    k = kernel([A], 1, lambda bx: store(A, 0, load(A, 1)), outputs=(0,))
    with pytest.raises(UninitialisedRead, match=r"A\[1\]"):
        interpret(k, [zeros()])
    interpret(k, [zeros()], options=InterpretOptions(outputs_undefined=False))


def test_half_of_a_view_is_not_the_whole():
    t = shared("t", (2,), "int32")
    halves = view(t, (4,), "int16")

    def body(bx):
        return [
            alloc(t),
            store(halves, 0, 1),
            store(halves, 1, 0),
            store(halves, 2, 5),
            store(A, 0, load(t, 0)),
            store(A, 1, load(t, 1)),
        ]

    with pytest.raises(UninitialisedRead, match=r"t\[1\]"):
        run(body)


def test_iterations_race():
    t = shared("t", (8,), "int32")
    with pytest.raises(
        DataRace, match=r"iterations 0 and 7 write different values to A\[0\]"
    ) as caught:
        run(lambda bx: at(parallel((8,), lambda i: at(store(A, 0, i), 5)), 4))
    assert caught.value.span.line == 5

    def shifted(bx):
        return [
            alloc(t),
            fill(t, 0),
            parallel((7,), lambda i: at(store(t, i, load(t, i + 1) + 1), 3)),
        ]

    with pytest.raises(DataRace, match=r"iteration 1 writes t\[1\], which was read by iteration 0"):
        run(shifted)
    with pytest.raises(
        DataRace, match=r"iteration 0 reads t\[7\], which was written by iteration 7"
    ):
        run(
            lambda bx: [
                alloc(t),
                fill(t, 0),
                parallel((8,), lambda i: [store(t, i, 1), store(A, i, load(t, (i + 7) % 8))]),
            ]
        )

    def accumulate(bx):
        return parallel((4, 2), lambda i, j: store(A, i, load(A, i) + j))

    with pytest.raises(DataRace):
        run(accumulate)
    run(lambda bx: parallel((4, 2), lambda i, j: store(A, i, i)))


def test_private_variables_of_iterations():
    v = variable("v", "int32")
    out = zeros()
    run(
        lambda bx: [
            alloc(v),
            parallel((8,), lambda i: [store(v, 0, i * 2), store(A, i, load(v, 0))]),
        ],
        args=[out],
    )
    np.testing.assert_array_equal(out, 2 * np.arange(8))
    with pytest.raises(UninitialisedRead, match=r"v\[0\]"):
        run(
            lambda bx: [alloc(v), parallel((8,), lambda i: store(v, 0, i)), store(A, 0, load(v, 0))]
        )
    run(
        lambda bx: [alloc(v), parallel((8,), lambda i: store(v, 0, 4)), store(A, 0, load(v, 0))],
        args=[out],
    )
    assert out[0] == 4


def test_neighbouring_nibbles_are_no_race():
    n = tensor("N", (8,), "int4")
    out = np.zeros(4, np.uint8)
    run(lambda bx: parallel((8,), lambda i: store(n, i, i.astype("int4"))), (n,), [out])
    np.testing.assert_array_equal(out, [0x10, 0x32, 0x54, 0x76])
    run(lambda bx: store(n, bx, bx.astype("int4")), (n,), [out], grid=8, block_order="random")


def test_arguments_are_checked():
    m = symbol("m")
    a, b, f = tensor("a", (m, 4)), tensor("b", (m,)), tensor("f", (2, 2), "int4")
    k = kernel([a, b], 1, lambda bx: fill(b, 0))
    good = np.zeros((3, 4), np.float32), np.zeros(3, np.float32)
    interpret(k, good)
    cases = [
        (good[:1], ArgumentCountError, "takes 2 arguments, got 1"),
        ((good[0], 3.0), ArgumentTypeError, "'b' is a tensor, got float"),
        ((good[0], good[0]), ArgumentShapeError, "'b' has 1 dimensions, got 2"),
        (
            (good[0], np.zeros(4, np.float32)),
            ArgumentShapeError,
            "dimension 0 of argument 'b' is 3",
        ),
        ((good[0], np.zeros(3)), ArgumentDtypeError, "'b' is float32, got float64"),
        ((np.zeros((3, 8), np.float32)[:, ::2], good[1]), ArgumentLayoutError, "stride 1"),
        ((np.zeros((4, 3), np.float32).T, good[1]), ArgumentLayoutError, "stride 1"),
    ]
    for args, error, words in cases:
        with pytest.raises(error, match=words):
            interpret(k, args)
    with pytest.raises(ArgumentDtypeError, match="two to a byte"):
        interpret(kernel([f], 1, lambda bx: []), [np.zeros((2, 1), np.float32)])
    e = kernel([tensor("e", (2,), "float8_e4m3")], 1, lambda bx: [])
    for name in ("float8_e4m3fn", "float8_e4m3fnuz"):
        interpret(e, [np.zeros(2, getattr(ml_dtypes, name))])
    for name in ("float8_e4m3", "float8_e4m3b11fnuz", "float8_e5m2"):
        with pytest.raises(ArgumentDtypeError, match=rf"is float8_e4m3fn, got {name}\n"):
            interpret(e, [np.zeros(2, getattr(ml_dtypes, name))])
    n = symbol("n")
    with pytest.raises(ArgumentTypeError, match="'n' is a int32, got float"):
        interpret(kernel([n], 1, lambda bx: []), [1.5])


NAMES = ("bool", "int8", "uint8", "int16", "float16", "bfloat16", "int32", "float32", "float64",
         "float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float6_e3m2fn")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_another_type_are_refused(name):
    """Those of as many bytes, too: bytes alone stand for what NumPy has no type for."""
    k = kernel([Buffer("B", (2,), dtype_of(name), Scope.GLOBAL)], 1, lambda bx: [])
    taken = set()
    for given in NAMES:
        with contextlib.suppress(ArgumentDtypeError):
            interpret(k, [np.zeros(2, dtype_of(given).numpy())])
            taken.add(given)
    others = {"int8", "uint8"} if name == "bool" else set()
    others |= {"uint8"} if name.startswith(("float8_", "float6_")) else set()
    assert taken - {name} == others


def test_pointers():
    p = symbol("p", "handle")
    n = symbol("n")
    typed = Buffer("t", (n,), dtype_of("float32"), Scope.GLOBAL, origin=p)
    k = kernel(
        [p, n], 1, lambda bx: parallel((n,), lambda i: store(typed, i, load(typed, i) * 2.0))
    )
    x = np.arange(5, dtype=np.float32)
    interpret(k, [x, 4])
    np.testing.assert_array_equal(x, [0, 2, 4, 6, 4])
    table = tensor("P", (2,), "handle")
    chosen = Buffer(
        "c", (3,), dtype_of("int32"), Scope.GLOBAL, origin=load(table, symbol("u") * 0 + 1)
    )
    arrays = [np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32) + 10]

    def body(bx):
        picked = Buffer("c", (3,), dtype_of("int32"), Scope.GLOBAL, origin=load(table, bx))
        return serial(3, lambda s: store(picked, s, load(picked, s) + 1))

    interpret(kernel([table], 2, body), [np.array([a.ctypes.data for a in arrays])])
    np.testing.assert_array_equal(arrays, [[1, 2, 3], [11, 12, 13]])


def test_extern_functions():
    def call(bx):
        return evaluate(
            Call("extern:twice", (AddressOf(A, (value(2),), "rw"), value(3)), dtype_of("handle"))
        )

    with pytest.raises(UnsupportedOnTarget, match="cannot call the C function 'twice'"):
        run(call)

    def twice(where, count):
        where[:count] *= 2

    x = np.arange(8, dtype=np.int32)
    run(call, args=[x], externs={"twice": twice})
    np.testing.assert_array_equal(x, [0, 1, 4, 6, 8, 5, 6, 7])


def test_printing(capsys):
    tile = shared("t", (2,), "int32")
    printf = Call("printf", (_text("v=%d\n"), value(3)), dtype_of("int32"))
    run(
        lambda bx: [
            alloc(tile),
            fill(tile, 5),
            Print("m", whole(tile)),
            Print("x", None, (bx + 4,)),
            evaluate(printf),
        ]
    )
    assert capsys.readouterr().out == "m: t[0] = 5\nm: t[1] = 5\nx: 4\nv=3\n"


def _text(text):
    from tile_core.ir.expr import StringConst

    return StringConst(text)


def test_breakpoint_shows_values(monkeypatch):
    seen = []
    tile, v = shared("t", (2,), "float32"), variable("v", "int32")
    stop = Breakpoint(
        ("t", "v", "n", "bx"),
        (tile, v, const(7), symbol("unused") * 0 + 3),
        span=Span("user.py", 41, 0, 4),
    )

    def body(bx):
        return [alloc(tile, v), fill(tile, 1.5), store(v, 0, 9), stop]

    run(body, debugger=lambda names, span: seen.append((names, span.line)))
    ((names, line),) = seen
    np.testing.assert_array_equal(names["t"], [1.5, 1.5])
    assert (names["v"], names["n"], names["bx"], line) == (9, 7, 3, 41)


def test_breakpoint_opens_the_users_frame(monkeypatch):
    frames = []

    def hook():
        frame = sys._getframe(1)
        frames.append((frame.f_code.co_filename, frame.f_lineno, dict(frame.f_locals)))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    run(lambda bx: Breakpoint(("n",), (const(7),), span=Span("user.py", 41, 0, 4)))
    assert frames == [("user.py", 40, {"n": 7})]


def test_breakpoints_print_parse_and_stand_in_parallel_loops():
    tile, seen = shared("t", (2,), "int32"), []

    def body(bx):
        stop = lambda i: Breakpoint(("i", "t"), (i, tile))  # noqa: E731
        return [alloc(tile), fill(tile, 3), parallel((2,), lambda i: [stop(i), store(A, i, 1)])]

    k = kernel([A], 1, body)
    verify(k)
    assert structurally_equal(parse_kernel(print_kernel(k), OPERATORS, str), k)
    interpret(k, [zeros()], options=InterpretOptions(debugger=lambda names, _: seen.append(names)))
    np.testing.assert_array_equal(seen[0]["i"], [0, 1])
    np.testing.assert_array_equal(seen[0]["t"], [3, 3])
