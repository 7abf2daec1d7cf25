"""Annotations and hints: what they may change is speed, never results."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, drawn, poisoned
from tile_core.errors import TileError, UnsupportedOnTarget

LAYOUTS = {
    "a function": lambda i, j: [i, j ^ (i % 8)],
    "one address": lambda i, j: i * 16 + j,
    "padding": lambda i, j: i * 20 + j,
    "transposed": lambda i, j: [j, i],
    "a layout": T.Layout((16, 16), lambda i, j: i * 16 + (j + i) % 16),
}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_shared_memory(run, name):
    @T.prim_func
    def main(
        A: T.Tensor((16, 16), "float32"),
        B: T.Tensor((16, 16), "float32"),
        C: T.Tensor((256,), "float32"),
    ):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16, 16), "float32")
            R = T.alloc_shared((16, 16), "float32")
            acc = T.alloc_fragment((16, 16), "float32")
            T.annotate_layout({S: LAYOUTS[name], R: LAYOUTS[name]})
            T.copy(A, S)
            for i, j in T.Parallel(16, 16):
                R[j, i] = S[i, j] + 1
            T.gemm(S, R, acc, clear_accum=True)
            T.copy(acc, B)
            V = T.view(R, (256,))
            T.copy(V, C)

    a = drawn(16, 16)
    b, c = poisoned(16, 16, dtype="float32"), poisoned(256, dtype="float32")
    run(main, a, b, c)
    assert np.array_equal(b, a @ (a.T + 1))
    assert np.array_equal(c, (a.T + 1).ravel())


def test_layouts_of_fragments(run):
    @T.prim_func
    def main(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            F = T.alloc_fragment((8, 8), "float32")
            R = T.alloc_fragment((8,), "float32")
            T.annotate_layout(
                {F: T.Fragment((8, 8), forward_fn=lambda i, j: (i * 4 + j // 2, j % 2))}
            )
            T.copy(A, F)
            T.reduce_sum(F, R, dim=1)
            T.copy(R, B)

    a, b = drawn(8, 8), poisoned(8, dtype="float32")
    run(main, a, b)
    assert np.array_equal(b, a.sum(1))


@pytest.mark.parametrize("kind", ["not injective", "no fragment", "no layout", "not a dictionary"])
def test_refused_layouts(kind):
    errors = {"not injective": ValueError}
    with pytest.raises(errors.get(kind, TileError), match="S" if kind == "not injective" else None):

        @T.prim_func
        def main(A: T.Tensor((8, 8), "float32")):
            with T.Kernel(1, threads=32):
                S = T.alloc_shared((8, 8), "float32")
                F = T.alloc_fragment((8, 8), "float32")
                if kind == "not injective":
                    T.annotate_layout({S: lambda i, j: i + j})
                elif kind == "no fragment":
                    T.annotate_layout({F: lambda i, j: [i, j]})
                elif kind == "no layout":
                    T.annotate_layout({S: 3})
                else:
                    T.annotate_layout(S)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("order", "enable"), [("row", True), ("column", True), ("mlx", True), ("row", False)]
)
def test_swizzled_blocks_give_the_same_result(run, order, enable):
    @T.prim_func
    def main(A: T.Tensor((6, 5), "int32")):
        with T.Kernel(5, 6, threads=32) as (bx, by):
            T.use_swizzle(3, order=order, enable=enable)
            T.atomic_add(A[by, bx], by * 10 + bx)

    a = np.zeros((6, 5), np.int32)
    run(main, a)
    i, j = np.indices((6, 5))
    assert np.array_equal(a, (i * 10 + j) * 32)


def test_swizzle_of_an_unknown_order():
    with pytest.raises(ValueError, match="diagonal"):

        @T.prim_func
        def main(A: T.Tensor((1,), "int32")):
            with T.Kernel(1):
                T.use_swizzle(3, order="diagonal")


HINTS = {
    "panel size": lambda A: T.use_swizzle(panel_size=10),
    "restrict": lambda A: T.annotate_restrict_buffers(A),
    "l2": lambda A: T.annotate_l2_hit_ratio({A: 0.5}),
    "blocks": lambda A: T.annotate_min_blocks_per_sm(2),
    "producer": lambda A: T.annotate_producer_reg_dealloc(24),
    "consumer": lambda A: T.annotate_consumer_reg_alloc(240),
    "no registers": lambda A: T.disable_warp_group_reg_alloc(),
    "no maximum": lambda A: T.no_set_max_nreg(),
}


@pytest.mark.parametrize("name", HINTS)
def test_hints_for_gpus_change_nothing(run, name):
    hint = HINTS[name]

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            hint(A)
            for i in T.Parallel(4):
                B[bx * 4 + i] = A[bx * 4 + i] + 1

    b = poisoned(8)
    run(main, counted(8), b)
    assert b.tolist() == list(range(1, 9))


def test_raw_attributes_change_nothing(run):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            with T.attr(0, "pragma_unroll", 4):
                for i in T.serial(8):
                    A[i] = i

    a = poisoned(8)
    run(main, a)
    assert a.tolist() == list(range(8))


def test_aliasing_parameters(run):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            T.annotate_restrict_buffers(A, B)
            for i in T.serial(8):
                A[0] = A[0] + 1
                B[i] = A[0]

    whole = counted(8)
    run(main, whole, whole)
    assert whole.tolist() == [8, 2, 3, 4, 5, 6, 7, 8]


def test_safe_values_are_converted_and_checked(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int8"), B: T.Tensor((6,), "float32"), v: T.int32):
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: v + 1})
            for i in T.Parallel(6):
                B[i] = A[i + 2]

    b = poisoned(6, dtype="float32")
    run(main, counted(4, dtype="int8"), b, 41)
    assert b.tolist() == [2, 3, 42, 42, 42, 42]
    with pytest.raises(TileError):

        @T.prim_func
        def wrong(A: T.Tensor((4,), "int8")):
            with T.Kernel(1, threads=32):
                S = T.alloc_shared((4,), "int8")
                T.annotate_safe_value({S: 1})


def test_changing_the_number_of_registers_is_for_gpus(run):
    @T.prim_func
    def main(A: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            T.set_max_nreg(24, 0)
            A[0] = 1

    a = poisoned(1)
    try:
        run(main, a)
    except UnsupportedOnTarget:
        assert a.tolist() == [77]
    else:
        assert a.tolist() == [1]
