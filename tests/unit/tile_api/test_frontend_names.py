"""What names mean in a kernel: bindings, variables, aliases, scopes."""

from __future__ import annotations

import pytest

import tile_api.language as T
from support.printed import body
from tile_api.frontend.builder import KernelWarning
from tile_core.errors import FrontendError, MutationError, ScopeError


def test_a_binding_names_the_value_that_an_expression_has_now():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            x = A[0]
            A[0] = 7
            B[0] = x

    assert body(f) == ["let x: int32 = A[0]", "A[0] = 7", "B[0] = x"]


def test_rebinding_warns_and_makes_a_new_value():
    with pytest.warns(KernelWarning, match="'x' is bound again"):

        @T.prim_func
        def f(A: T.Tensor((8,), "int32")):
            with T.Kernel(1) as bx:
                x = A[0]
                x = x + 1
                A[1] = x

    assert body(f) == ["let x: int32 = A[0]", "let x_1: int32 = x + 1", "A[1] = x_1"]


def test_rebinding_in_a_loop_does_not_accumulate():
    with pytest.warns(KernelWarning, match="T.alloc_var"):

        @T.prim_func
        def f(A: T.Tensor((8,), "int32")):
            with T.Kernel(1) as bx:
                x = A[0]
                for i in range(8):
                    x = x + i
                    A[i] = x

    assert body(f) == [
        "let x: int32 = A[0]",
        "for i: int32 in range(0, 8, 1) serial:",
        "  let x_1: int32 = x + i",
        "  A[i] = x_1",
    ]


def test_python_values_stay_python_values():
    seen = {}

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            j = 0
            k = T.int32(3)
            items = [1, 2]
            text = "s"
            seen.update(j=j, k=k, items=items, text=text)
            A[j + k] = items[1]

    assert (seen["j"], seen["k"], seen["items"], seen["text"]) == (0, 3, [1, 2], "s")
    assert type(seen["k"]) is int
    assert body(f) == ["A[3] = 2"]


def test_before_the_kernel_expressions_stay_usable_in_shapes():
    m = T.dynamic("m")

    @T.prim_func
    def f(A: T.Tensor((m,), "int32")):
        half = m // 2
        work = T.alloc_global((half,), "int32")
        with T.Kernel(half) as bx:
            work[bx] = A[bx]

    assert "alloc work: global int32[m // 2] workspace" in f.script()
    assert "launch bx: int32 in (m // 2)" in f.script()


def test_assigning_a_variable_stores():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            x = T.alloc_var("int32", init=1)
            y = T.alloc_var("float32")
            x = A[0]
            y = x
            x += 2
            b = x
            x = 0
            A[1] = b + x

    assert body(f) == [
        "alloc x: local.var int32[1]",
        "x[0] = 1",
        "alloc y: local.var float32[1]",
        "x[0] = A[0]",
        "y[0] = cast[float32](x[0])",
        "x[0] = x[0] + 2",
        "let b: int32 = x[0]",
        "x[0] = 0",
        "A[1] = b + x[0]",
    ]


def test_a_variable_survives_blocks_that_assign_to_it():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            x = T.alloc_var("int32", init=0)
            for i in T.serial(8):
                if A[i] > 3:
                    x = i
            A[0] = x

    assert body(f)[-1] == "A[0] = x[0]"


def test_assigning_a_new_variable_or_a_buffer_rebinds():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            x = T.alloc_var("int32")
            x = T.alloc_var("float32")
            x = 1.5
            x = T.alloc_local((4,), "int32")
            x[0] = 2

    assert body(f) == [
        "alloc x: local.var int32[1]",
        "alloc x_1: local.var float32[1]",
        "x_1[0] = 1.5",
        "alloc x_2: local int32[4]",
        "x_2[0] = 2",
    ]


def test_buffers_and_regions_have_aliases():
    @T.prim_func
    def f(A: T.Tensor((8, 8), "int32")):
        with T.Kernel(1) as bx:
            b = A
            tile = T.alloc_shared((1, 4), "int32")
            i = T.alloc_var("int32", init=1)
            r = A[i, 0:4]
            i = 2
            T.copy(r, tile)
            b[0, 0] = 1

    assert body(f)[3:] == [
        "let r: int32 = i[0]",
        "i[0] = 2",
        "@copy(src=A[r:1, 0:4], dst=tile[0:1, 0:4])",
        "A[0, 0] = 1",
    ]


def test_a_store_converts_to_the_element_type():
    @T.prim_func
    def f(A: T.Tensor((8,), "float16"), x: T.float32):
        with T.Kernel(1) as bx:
            A[0] = x
            A[1] = 2
            A[2] += x

    assert body(f) == [
        "A[0] = cast[float16](x)",
        "A[1] = float16(2.0)",
        "A[2] = cast[float16](cast[float32](A[2]) + x)",
    ]


def test_swaps_evaluate_all_right_hand_sides_first():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            a = T.alloc_var("int32", init=1)
            b = T.alloc_var("int32", init=2)
            a, b = b, a
            A[0], A[1] = A[1], A[0]

    assert body(f)[4:] == [
        "let a_1: int32 = b[0]",
        "let b_1: int32 = a[0]",
        "a[0] = a_1",
        "b[0] = b_1",
        "let value: int32 = A[1]",
        "let value_1: int32 = A[0]",
        "A[0] = value",
        "A[1] = value_1",
    ]


def test_tuple_targets_nest_and_chains_share_one_value():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            a, (b, c) = 1, (2, A[0])
            p = q = A[1]
            v = w = T.alloc_var("int32")
            v = 5
            first, *rest = [1, 2, 3]
            A[a + b] = c + p + q + w + rest[1]

    assert body(f) == [
        "let c: int32 = A[0]",
        "let p: int32 = A[1]",
        "let q: int32 = A[1]",
        "alloc v: local.var int32[1]",
        "v[0] = 5",
        "A[3] = c + p + q + v[0] + 3",
    ]


def test_lists_of_new_variables_keep_them():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            group, n = [T.alloc_var("int32"), T.alloc_var("int32")], 2
            group[0][0] = 3
            both = chained = (T.alloc_var("int32"), n)
            A[0] = group[0] + both[1]
            if (w := A[1]) > 0:
                A[2] = w

    assert body(f)[-5:] == [
        "alloc var_2: local.var int32[1]",
        "A[0] = var[0] + 2",
        "let w: int32 = A[1]",
        "if w > 0:",
        "  A[2] = w",
    ]


def test_numpy_numbers_are_numbers():
    np = pytest.importorskip("numpy")

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(np.int64(4)) as bx:
            if np.bool_(True):
                A[np.int32(3)] = np.int8(5) + bx
            for i in range(np.int64(2)):
                A[i] = np.float32(2.0)

    assert body(f) == [
        "A[3] = 5 + bx",
        "for i: int32 in range(0, 2, 1) serial:",
        "  A[i] = 2",
    ]


@pytest.mark.parametrize("block", ["if A[0] > 0:", "for i in range(4):", "while A[0] > 0:"])
def test_a_name_is_gone_after_the_block_that_bound_it(block, kernel_from):
    with pytest.raises(ScopeError, match=r"'x' is used outside the (if|for|while) block") as caught:
        kernel_from(f"""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32")):
                with T.Kernel(1) as bx:
                    {block}
                        x = A[1]
                        A[2] = x
                    A[3] = x
        """)
    assert "T.alloc_var" in str(caught.value)
    assert caught.value.span.line == 8


def test_a_name_rebound_in_a_branch_is_ambiguous_afterwards(kernel_from):
    with pytest.raises(ScopeError, match="outside the if block"):
        kernel_from("""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32"), n: T.int32):
                with T.Kernel(1) as bx:
                    x = 1
                    if n > 0:
                        x = 2
                    A[x] = 0
        """)


def test_each_branch_starts_from_the_names_before_the_if():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(1) as bx:
            x = 1
            if n > 0:
                x = 2
                A[x] = 0
            else:
                A[x] = 0

    assert body(f) == ["if n > 0:", "  A[2] = 0", "else:", "  A[1] = 0"]


def test_a_known_branch_binds_names_for_good():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            if len(A.shape) == 1:
                x = 3
            else:
                x = 4
            A[x] = 0

    assert body(f) == ["A[3] = 0"]


def test_block_indices_end_with_the_launch(kernel_from):
    with pytest.raises(ScopeError, match="'bx' is used outside the with block"):
        kernel_from("""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32")):
                with T.Kernel(4) as bx:
                    A[bx] = 0
                with T.Kernel(4) as by:
                    A[bx] = 0
        """)


def test_unbound_and_undefined_names(kernel_from):
    with pytest.raises(ScopeError, match="'x' is used before anything is bound to it"):
        kernel_from("""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32")):
                with T.Kernel(1) as bx:
                    A[x] = 0
                    x = 1
        """)
    with pytest.raises(ScopeError, match="nothing_here") as caught:
        kernel_from("""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32")):
                with T.Kernel(1) as bx:
                    A[0] = nothing_here
        """)
    assert caught.value.span.line == 5


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("A += 1", MutationError, "the whole buffer 'A'"),
        ("A[0:2] = 1", MutationError, "a slice of 'A'"),
        ("A[0:2] += 1", MutationError, "a slice of 'A'"),
        ("A.x = 1", FrontendError, "attribute"),
        ("A, B = A", TypeError, "cannot be unpacked"),
        ("global A2", FrontendError, "`global`"),
        ("x = A + 1", TypeError, "the whole buffer 'A'"),
        ("A[0] = A", TypeError, "the whole buffer 'A'"),
        ("x = A == 1", TypeError, "the whole buffer 'A'"),
        ("x = 1 != A[0:2]", TypeError, "a region of the buffer 'A'"),
        ("n.y, n[0] = 1, 2", FrontendError, "attribute"),
    ],
)
def test_what_cannot_be_assigned(statement, error, text, kernel_from):
    with pytest.raises(error, match=text) as caught:
        kernel_from(f"""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32"), n: T.int32):
                with T.Kernel(1) as bx:
                    {statement}
        """)
    assert caught.value.span.line == 5


def test_independent_mistakes_are_reported_together(kernel_from):
    with pytest.raises(FrontendError) as caught:
        kernel_from("""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32")):
                with T.Kernel(1) as bx:
                    A.x = 1
                    try:
                        A[0] = 1
                    finally:
                        A[0] = 2
                    yield A
        """)
    assert caught.value.span.line == 5
    assert [note.span.line for note in caught.value.notes] == [6, 10]
