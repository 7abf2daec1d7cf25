"""What control flow means in a kernel: branches, loops, logic, asserts, returns."""

from __future__ import annotations

import pytest

import tile_api.language as T
from support.printed import body
from tile_api.frontend.builder import KernelWarning
from tile_core.errors import (
    ControlFlowError,
    FrontendTypeError,
    FrontendValueError,
    OutputError,
    ReturnInControlFlow,
    ScopeError,
    TraceAssertionError,
)


def test_run_time_conditions_trace_both_sides():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(8) as bx:
            if A[bx] > 1:
                A[bx] = 1
            elif A[bx] == 0:
                A[bx] = 2
            else:
                A[bx] = 3

    assert body(f) == [
        "if A[bx] > 1:",
        "  A[bx] = 1",
        "else:",
        "  if A[bx] == 0:",
        "    A[bx] = 2",
        "  else:",
        "    A[bx] = 3",
    ]


def test_known_conditions_trace_one_side():
    flag = None

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(8) as bx:
            if flag is not None:
                A[bx] = undefined  # noqa: F821
            if 3 > 2:
                A[bx] = 1
            if T.bool(True):
                A[bx] = 2

    assert body(f) == ["A[bx] = 1", "A[bx] = 2"]


def test_conditions_that_are_python_objects_warn():
    with pytest.warns(KernelWarning, match="Python list"):

        @T.prim_func
        def f(A: T.Tensor((8,), "int32")):
            with T.Kernel(8) as bx:
                if [1]:
                    A[bx] = 1

    assert body(f) == ["A[bx] = 1"]


def test_logic_short_circuits():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(8) as bx:
            if n > 0 and A[n] > 0 and not (n == 3 or A[n - 1] == 1):
                A[0] = 1
            if 0 <= n < 8:
                A[n] = 2
            if True and n > 1:
                A[1] = 0
            if False and undefined:  # noqa: F821
                A[1] = 0

    assert body(f) == [
        "if n > 0 and A[n] > 0 and not (n == 3 or A[n - 1] == 1):",
        "  A[0] = 1",
        "if 0 <= n and n < 8:",
        "  A[n] = 2",
        "if n > 1:",
        "  A[1] = 0",
    ]


def test_python_operands_follow_python():
    seen = []

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            seen.append(
                [None or 5, 0 and 1, 1 and "x", not [], 1 < 2 < 3, 3 in [3, 4], 1 if 0 else 2]
            )

    assert seen == [[5, 0, "x", True, True, True, 2]]


def test_conditional_expressions_do_not_evaluate_the_other_side():
    @T.prim_func
    def f(A: T.Tensor((8,), "float32"), n: T.int32):
        with T.Kernel(1) as bx:
            A[0] = A[n] if n < 8 else 0
            x = T.alloc_var("int32", init=1)
            y = x if n > 0 else 2

    assert body(f) == [
        "A[0] = (n < 8 ? A[n] : 0.0)",
        "alloc x: local.var int32[1]",
        "x[0] = 1",
        "let y: int32 = (n > 0 ? x[0] : 2)",
    ]


def test_range_is_a_run_time_loop():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(1) as bx:
            for i in range(n):
                A[i] = i
            for i in range(8, 0, -2):
                A[i - 1] = i
            for i in T.unroll(4):
                A[i] = i
            for i in T.vectorized(1, 4):
                A[i] = i

    assert body(f) == [
        "for i: int32 in range(0, n, 1) serial:",
        "  A[i] = i",
        "for i_1: int32 in range(8, 0, -2) serial:",
        "  A[i_1 - 1] = i_1",
        "for i_2: int32 in range(0, 4, 1) unroll:",
        "  A[i_2] = i_2",
        "for i_3: int32 in range(1, 4, 1) vectorized:",
        "  A[i_3] = i_3",
    ]


def test_explicit_unrolling_writes_the_rounds_out():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            for i in T.unroll(3, explicit=True):
                if i > 0:
                    A[i * 2] = i
            for i in T.unroll(2, explicit=True):
                x = A[i]
                A[i] = x + 1

    assert body(f) == [
        "A[2] = 1",
        "A[4] = 2",
        "block:",
        "  let x: int32 = A[0]",
        "  A[0] = x + 1",
        "block:",
        "  let x_1: int32 = A[1]",
        "  A[1] = x_1 + 1",
    ]


def test_while():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            i = T.alloc_var("int32", init=0)
            while i < 8 and A[i] > 0:
                i += 1
                if i == 5:
                    continue
                if i == 6:
                    break

    assert body(f)[2:] == [
        "while i[0] < 8 and A[i[0]] > 0:",
        "  i[0] = i[0] + 1",
        "  if i[0] == 5:",
        "    continue",
        "  if i[0] == 6:",
        "    break",
    ]


def test_endless_and_dead_while(kernel_from):
    text = """
        @T.prim_func
        def f(A: T.Tensor((8,), "int32")):
            with T.Kernel(1) as bx:
                while {}:
                    A[0] = 1
    """
    with pytest.raises(ControlFlowError, match="always true"):
        kernel_from(text.format("True"))
    with pytest.warns(KernelWarning, match="always false"):
        assert body(kernel_from(text.format("False"))) == ["pass"]
    with pytest.warns(KernelWarning, match="it never ends"):
        kernel_from(text.format("bx < 3"))


def test_statements_after_break_are_dropped():
    with pytest.warns(KernelWarning, match="after 'break' are never executed"):

        @T.prim_func
        def f(A: T.Tensor((8,), "int32")):
            with T.Kernel(1) as bx:
                for i in range(8):
                    A[i] = 1
                    break
                    A[i] = 2

    assert body(f)[1:] == ["  A[i] = 1", "  break"]

    with pytest.warns(KernelWarning, match="after 'continue' are never executed"):

        @T.prim_func
        def g(A: T.Tensor((8,), "int32")):
            with T.Kernel(1) as bx:
                for i in range(8):
                    if True:
                        continue
                    A[i] = 2

    assert body(g)[1:] == ["  continue"]


@pytest.mark.parametrize("loop", ["T.Parallel(8)", "T.Pipelined(8)", "T.vectorized(8)"])
def test_break_only_leaves_sequential_loops(loop, kernel_from):
    with pytest.raises(ControlFlowError, match="`break` is not possible"):
        kernel_from(f"""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32")):
                with T.Kernel(1) as bx:
                    for i in {loop}:
                        break
        """)


def test_asserts():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(1) as bx:
            assert n > 0, f"n must be positive {1 + 1}"
            assert True

    assert body(f) == ['assert n > 0, "n must be positive 2"']
    with pytest.raises(TraceAssertionError, match="wrong size"):

        @T.prim_func
        def g(A: T.Tensor((8,), "int32")):
            with T.Kernel(1) as bx:
                assert A.shape[0] == 9, "wrong size"


def test_expression_statements():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        """A docstring."""
        with T.Kernel(1) as bx:
            "text"
            3
            A[0] + 1
            ...

    assert body(f) == ["pass"]


def test_a_loop_without_a_body_warns():
    with pytest.warns(KernelWarning, match=r"this loop has no body: write `for i in \.\.\.:`"):

        @T.prim_func
        def f(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                T.serial(4)


@pytest.mark.parametrize("known", [True, False])
def test_not_of_what_is_known(known):
    @T.prim_func
    def f(A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            if not T.bool(known):
                A[0] = 1
            else:
                A[0] = 2

    assert body(f)[-1].strip() == f"A[0] = {2 if known else 1}"


def test_block_indices_unpack_in_every_spelling():
    @T.prim_func
    def f(A: T.Tensor((8, 8), "int32")):
        with T.Kernel(8) as (i,):
            A[i, 0] = 0
        with T.Kernel(8) as [i]:
            A[i, 0] = 0
        with T.Kernel(8, 4, threads=(16, 2)) as (i, j):
            A[i, j] = 0
        with T.Kernel(threads=32):
            A[0, 0] = T.get_thread_binding(0)

    heads = [line.strip() for line in f.script().splitlines() if "launch" in line]
    assert [h[: h.index(" threads")] for h in heads] == [
        "launch i: int32 in (8)",
        "launch i_1: int32 in (8)",
        "launch i_2: int32, j: int32 in (8, 4)",
        "launch bx: int32 in (1)",
    ]
    assert heads[2].endswith("in (16, 2, 1):")


def test_a_launch_without_with_reaches_to_the_end_of_its_block():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        i = T.Kernel(8, threads=32)
        if A[i] > 0:
            A[i] = 1
        A[i] = 2

    @T.prim_func
    def g(A: T.Tensor((8,), "int32")):
        T.Kernel(8)
        A[0] = T.get_block_binding(0)

    assert body(f) == ["if A[i] > 0:", "  A[i] = 1", "A[i] = 2"]
    assert body(g) == ["A[0] = bx"]


def test_empty_kernels():
    @T.prim_func
    def nothing(A: T.Tensor((8,), "int32")):
        pass

    @T.prim_func
    def no_body(A: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            pass

    assert nothing.script().splitlines()[1:] == ["  pass"]
    assert body(no_body) == ["pass"]


def test_outputs_are_parameters_that_the_runtime_allocates():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        C = T.empty((8,), "int32")
        D = T.empty(4, 2, dtype="float16")
        with T.Kernel(8) as bx:
            C[bx] = A[bx]
            D[0, 0] = 1
        return D, C

    assert [p.name for p in f.params] == ["A", "D", "C"]
    assert f.kernel.outputs == (1, 2)
    assert f.params[1].shape == (4, 2)


def test_returns_that_are_refused(kernel_from):
    text = """
        @T.prim_func
        def f(A: T.Tensor((8,), "int32"), n: T.int32):
            C = T.empty((8,), "int32")
            with T.Kernel(1) as bx:
                C[0] = 1
                {}
            return C
    """
    with pytest.raises(OutputError, match=r"T\.empty"):
        kernel_from(text.format("pass").replace("return C", "return A"))
    with pytest.raises(RuntimeError, match=r"'C' is declared with T\.empty but not returned"):
        kernel_from(text.format("pass").replace("return C", "pass"))
    inside = "if n > 0:\n                    return C"
    with pytest.raises(ReturnInControlFlow, match="run-time 'if'"):
        kernel_from(text.format(inside))


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("for i in [1, 2]: pass", FrontendTypeError, "cannot run over a list"),
        ("for i in A: pass", FrontendTypeError, "cannot run over"),
        ("if A: pass", FrontendTypeError, "the buffer 'A' is used as the condition"),
        ("x = 1 if A else 2", FrontendTypeError, "condition of a conditional expression"),
        ("x = A if n > 0 else A2", FrontendTypeError, "cannot choose between"),
        ("x = n and A", FrontendTypeError, "condition of `and`"),
        ("len(A)", FrontendTypeError, "len"),
        ("enumerate(A)", FrontendTypeError, "enumerate"),
        ("zip(A, A)", FrontendTypeError, "zip"),
        ("x = [i for i in range(n)]", FrontendTypeError, "range"),
        ("x = [i for i in T.serial(4)]", FrontendTypeError, "a comprehension runs while"),
        ("x = max(n, 1)", FrontendTypeError, "max"),
        ("x = n ** 2", FrontendTypeError, r"\*\*"),
        ("x = int(n)", FrontendTypeError, "int"),
        ("T.copy(A)", FrontendTypeError, "dst"),
        ("for i in T.serial(1, 5, 0): pass", FrontendValueError, "step of a loop"),
        ("for i in T.serial(2.5): pass", FrontendTypeError, "must be integers"),
        ("for i in T.Parallel(): pass", FrontendValueError, "at least one extent"),
        ("for i in T.Pipelined(4, num_stages=-1): pass", FrontendValueError, "num_stages"),
        ("for i in T.Pipelined(4, num_stages=2, order=[0], stage=[0]): pass", FrontendValueError,
         "exclude each other"),
        ("for A.x in T.serial(4): pass", Exception, "a loop index must be a plain name"),
        ("with T.Kernel(1): pass", ControlFlowError, "cannot be nested"),
        ("for i in range(3): pass\n    else: pass", Exception, "`else` after a loop"),
        ("C = T.empty((4,))", ScopeError, "must stand before"),
        ("match n:\n        case 1: pass", Exception, "`match`"),
    ],
)  # fmt: skip
def test_refused_with_the_line(statement, error, text, kernel_from):
    source = (
        "\n@T.prim_func\n"
        'def f(A: T.Tensor((8,), "int32"), A2: T.Tensor((8,), "int32"), n: T.int32):\n'
        "  with T.Kernel(1) as bx:\n"
        f"    {statement}\n"
    )
    with pytest.raises(error, match=text) as caught:
        kernel_from(source)
    assert caught.value.code.startswith("TL1")
    assert caught.value.span.line in (5, 6)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("threads", "text"), [("0", "threads must be positive"), ("-1", "threads must be positive"),
                          ("(1, 2, 3, 4)", "1 to 3"), ("2.5", "compile-time integers")]
)  # fmt: skip
def test_threads_are_checked(threads, text, kernel_from):
    with pytest.raises((FrontendValueError, FrontendTypeError), match=text):
        kernel_from(f"""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32")):
                with T.Kernel(1, threads={threads}) as bx:
                    A[0] = 1
        """)


def test_launches_need_a_traced_body():
    with pytest.raises(ScopeError, match="only be used inside a kernel"):
        T.Kernel(1)


def test_tile_operators_stand_in_the_launch_where_there_is_one(kernel_from):
    with pytest.raises(ScopeError, match=r"must be inside `with T\.Kernel"):
        kernel_from("""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
                T.copy(A, B)
                with T.Kernel(1):
                    T.clear(A)
        """)
