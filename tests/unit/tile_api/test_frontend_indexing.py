"""Indices, slices and regions of buffers."""

from __future__ import annotations

import pytest

import tile_api.language as T
from tile_api.frontend.builder import KernelWarning
from tile_core.errors import IndexMismatch
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Load


def first_store(kernel) -> str:
    """Return the last printed statement of a kernel."""
    return kernel.script().splitlines()[-1].strip()


def test_elements_are_loads_and_slices_are_regions():
    seen = {}

    @T.prim_func
    def f(A: T.Tensor((8, 16), "float32"), n: T.int32):
        with T.Kernel(4) as bx:
            seen.update(
                element=A[bx, 3],
                row=A[bx, :],
                part=A[bx * 2 : bx * 2 + 2, n:],
                rest=A[..., 3],
                tuple=A[(1, 2)],
            )

    assert isinstance(seen["element"], Load)
    assert isinstance(seen["tuple"], Load)
    assert isinstance(seen["row"], Region)
    assert seen["row"].extents == (1, 16)
    assert seen["part"].extents[0] == 2
    assert seen["rest"].extents == (8, 1)
    assert not seen["row"].is_element


def test_provably_negative_indices_count_from_the_end():
    m = T.dynamic("m")

    @T.prim_func
    def f(A: T.Tensor((8, m), "int32"), n: T.int32):
        with T.Kernel(4) as bx:
            for i in range(4):
                A[-1, -i - 1] = A[-bx - 1, n - 10]

    assert first_store(f) == "A[7, -i - 1 + m] = A[-bx - 1 + 8, n - 10]"


def test_negative_slices_count_from_the_end():
    seen = {}

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(4) as bx:
            seen.update(tail=A[-3:], head=A[:-1])

    assert (seen["tail"].starts, seen["tail"].extents) == ((5,), (3,))
    assert (seen["head"].starts, seen["head"].extents) == ((0,), (7,))


def test_lengths_of_slices_are_static_where_the_bounds_move_together():
    seen = {}

    @T.prim_func
    def f(A: T.Tensor((64, 64), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(4) as bx:
            v = T.alloc_var("int32", init=0)
            seen["region"] = A[v : v + 8, B[bx] * 4 + 2 : (B[bx] + 1) * 4 + 2]

    assert seen["region"].static_extents == (8, 4)


def test_slices_of_global_tensors_may_reach_past_the_end():
    seen = {}

    @T.prim_func
    def f(A: T.Tensor((60,), "int32")):
        with T.Kernel(1) as bx:
            seen["region"] = A[0:64]

    assert seen["region"].extents == (64,)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ("A[0]", "has 2 dimensions and needs 2 indices, got 1"),
        ("A[0][1]", "has 2 dimensions and needs 2 indices, got 1"),
        ("A[0, 1, 2]", "got 3"),
        ("A[0.5, 1]", "index 0 of 'A' must be an integer, got float 0.5"),
        ("A[x, 1]", "got a value of dtype float32"),
        ("A[0, None]", "must be an integer"),
        ("A[0:8:2, 1]", "cannot have a step"),
        ("A[5:2, 0]", "ends 3 before it starts"),
        ("A[..., ..., 0]", "only one"),
        ("S[16, 0]", "16 is outside dimension 0 of 'S', which has 16 elements"),
        ("S[-17, 0]", "outside dimension 0"),
        ("S[0:17, 0]", "0:17 is outside dimension 0"),
        ("S[bx + 16, 0]", "this index is outside dimension 0"),
    ],
)
def test_refused_indices(index, text, kernel_from):
    with pytest.raises(IndexMismatch, match=text) as caught:
        kernel_from(f"""
            @T.prim_func
            def f(A: T.Tensor((8, 8), "int32"), x: T.float32):
                with T.Kernel(4) as bx:
                    S = T.alloc_shared((16, 4), "int32")
                    y = {index}
        """)
    assert caught.value.span.line == 6
    column = 12 + 0
    assert caught.value.span.col == column


@pytest.mark.parametrize("index", [8, 9, -9])
def test_a_constant_index_outside_a_tensor_is_a_warning(index, kernel_from):
    with pytest.warns(KernelWarning, match="is always outside dimension 0 of 'A', which has 8"):
        kernel_from(f"""
            @T.prim_func
            def f(A: T.Tensor((8, 8), "int32")):
                with T.Kernel(4) as bx:
                    A[0, bx] = A[{index}, bx]
        """)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("index", ["7", "-8", "7:9", "8:10", "bx + 8"])
def test_what_guards_are_for_is_no_warning(index, kernel_from):
    kernel_from(f"""
        @T.prim_func
        def f(A: T.Tensor((8, 8), "int32")):
            with T.Kernel(4) as bx:
                y = A[{index}, 0]
    """)


def test_the_message_of_a_wrong_rank(kernel_from):
    with pytest.raises(IndexMismatch) as caught:
        kernel_from("""
            @T.prim_func
            def f(A: T.Tensor((8, 8), "int32")):
                with T.Kernel(4) as bx:
                    A[bx, 0] = A[bx] + 1
        """)
    text = str(caught.value)
    assert text.splitlines()[0] == ("[TL2003] 'A' has 2 dimensions and needs 2 indices, got 1")
    assert "5 |         A[bx, 0] = A[bx] + 1\n  |                    ^^^^^" in text
    assert "note: A is declared here" in text
    assert text.splitlines()[-1] == (
        "hint: write A[i, j] for an element; use `:` for a whole dimension"
    )


def test_attributes_of_buffers():
    seen = {}

    @T.prim_func
    def f(A: T.Tensor((8, 4), "float16"), B: T.StridedTensor((8, 4), (16, 1), "float32")):
        with T.Kernel(1) as bx:
            S = T.alloc_fragment((8,), A.dtype)
            seen.update(A=A, B=B, S=S)

    assert (seen["A"].shape, seen["A"].dtype, seen["A"].strides) == ((8, 4), "float16", (4, 1))
    assert seen["A"].scope() == "global"
    assert seen["A"].name == "A"
    assert seen["B"].strides == (16, 1)
    assert (seen["S"].scope(), seen["S"].dtype) == ("local.fragment", "float16")
