"""Program styles: prim_func, lazy and eager jit, outputs, symbols."""

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import counted, poisoned
from tile_api.frontend.builder import KernelWarning
from tile_core.errors import TileError


def test_prim_func_takes_tensors_scalars_and_pointers(run):
    @T.prim_func
    def named(
        A: T.Tensor((7,), "float32"),
        n: T.int32,
        s: T.float32,
        flag: T.bool(),
        B: T.Tensor((7,), "float32"),
        p: T.ptr("float32"),
    ):
        with T.Kernel(1, threads=32):
            C = T.make_tensor(p, (7,), "float32")
            for i in T.Parallel(7):
                if i < n:
                    B[i] = A[i] * s
                    C[i] = A[i] + s
                elif flag:
                    B[i] = -1.0

    a, b, c = counted(7, dtype="float32"), poisoned(7, dtype="float32"), np.zeros(7, "float32")
    run(named, a, 3, 0.5, True, b, c)
    assert b.tolist() == [0.0, 0.5, 1.0, -1.0, -1.0, -1.0, -1.0]
    assert c.tolist() == [0.5, 1.5, 2.5, 0.0, 0.0, 0.0, 0.0]
    assert named.kernel.name == "named"


def test_an_annotation_that_is_a_function_is_called(run):
    def vector():
        return T.Tensor((3,), "int32")

    @T.prim_func
    def main(A: vector):
        with T.Kernel(1):
            for i in T.serial(3):
                A[i] = i

    a = poisoned(3)
    run(main, a)
    assert a.tolist() == [0, 1, 2]


def test_parameters_that_are_refused():
    with pytest.raises(TileError):

        @T.prim_func
        def positional(A: T.Tensor((3,), "int32"), /):
            pass

    with pytest.raises(TileError):

        @T.prim_func
        def bare(A):
            pass


def test_lazy_jit_compiles_once_per_arguments(run):
    @tile.jit(out_idx=[-1], target=run.target)
    def scale(n, factor=2, dims=()):
        @T.prim_func
        def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
            with T.Kernel(1):
                for i in T.Parallel(n):
                    B[i] = A[i] * factor

        return main

    assert scale(5)(counted(5)).tolist() == [0, 2, 4, 6, 8]
    assert scale(5) is scale(5)
    assert scale(5, dims=[1, [2]]) is scale(5, dims=[1, [2]])
    assert scale.mode == "lazy"
    assert scale(5, factor=3)(counted(5)).tolist() == [0, 3, 6, 9, 12]
    assert [
        k(counted(n)).tolist()[-1]
        for n, k in zip((2, 3), scale.par_compile([(2,), (3,)]), strict=True)
    ] == [
        2,
        4,
    ]
    assert "main" in scale.get_kernel_source(5)
    assert tuple(scale.get_tir(4).params[0].shape) == (4,)
    with pytest.raises(TypeError):
        scale(5, factor=bytearray(b"x"))


def test_jit_bare(run, monkeypatch):
    monkeypatch.setenv("TILE_TARGET", run.target)

    @tile.jit
    def main(n: int):
        @T.prim_func
        def f(A: T.Tensor((n,), "int32")):
            with T.Kernel(1):
                T.fill(A, 4)

        return f

    a = poisoned(3)
    main(3)(a)
    assert a.tolist() == [4, 4, 4]


EAGER_TENSORS = {
    "call": lambda M, N: T.Tensor((M, N), "int32"),
    "brackets": lambda M, N: T.Tensor[[M, N], T.int32],
    "tuple": lambda M, N: T.Tensor[(M, N), "int32"],
}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("spelling", EAGER_TENSORS)
@pytest.mark.parametrize("names", ["M, N", "M N"])
def test_eager_jit_declares_tensors_in_its_body(run, spelling, names):
    declare = EAGER_TENSORS[spelling]

    @tile.jit(target=run.target)
    def add(A, B, block: int = 4):
        M, N = T.const(names)
        A: declare(M, N)
        B: declare(M, N)
        C = T.empty((M, N), "int32")
        D = T.empty(M, dtype="int32")
        with T.Kernel(T.ceildiv(M, block), threads=32) as bx:
            for i, j in T.Parallel(block, N):
                C[bx * block + i, j] = A[bx * block + i, j] + B[bx * block + i, j]
            for i in T.Parallel(block):
                D[bx * block + i] = A[bx * block + i, 0]
        return C, D

    for shape in ((7, 3), (1, 1), (8, 2)):
        a = counted(*shape)
        c, d = add(a, a)
        assert np.array_equal(c, 2 * a)
        assert np.array_equal(d, a[:, 0])
    assert add.mode == "eager"
    c, d = add.compile(M=2, N=5, block=2)(counted(2, 5), counted(2, 5))
    assert np.array_equal(c, 2 * counted(2, 5))


@pytest.mark.in_turn(2)
def test_eager_jit_with_tensors_in_the_signature_and_strides(run):
    @tile.jit(target=run.target)
    def shift(A: T.Tensor((6,), "int32"), by=1):
        out = T.empty([6], T.int32)
        with T.Kernel(1):
            for i in T.Parallel(6):
                out[i] = A[i] + by
        return out

    assert shift(counted(6), by=3).tolist() == [3, 4, 5, 6, 7, 8]

    @tile.jit(target=run.target)
    def gather(A):
        N = T.const("N")
        s = T.const("s", dtype="int32")
        A: T.StridedTensor((N,), (s,), "int32")
        out = T.empty((N,), "int32")
        with T.Kernel(1):
            for i in T.Parallel(N):
                out[i] = A[i] + s
        return out

    assert gather(counted(12)[::3]).tolist() == [3, 6, 9, 12]


def test_what_eager_jit_refuses(run):
    @tile.jit(out_idx=[0], target=run.target)
    def with_out_idx(A):
        N = T.const("N")
        A: T.Tensor((N,), "int32")
        with T.Kernel(1):
            A[0] = 1

    with pytest.raises(ValueError, match="out_idx"):
        with_out_idx(counted(3))

    @tile.jit(target=run.target)
    def unreturned(A):
        N = T.const("N")
        A: T.Tensor((N,), "int32")
        B = T.empty((N,), "int32")
        with T.Kernel(1):
            B[0] = A[0]

    with pytest.raises(RuntimeError):
        unreturned(counted(3))

    @tile.jit(target=run.target)
    def indirect(A):
        N = T.const("N")
        A: T.Tensor((N * 2,), "int32")
        with T.Kernel(1):
            A[0] = 1

    with pytest.raises(RuntimeError):
        indirect(counted(4))
    with pytest.raises(TileError):
        T.const("M")


def test_empty_in_prim_func(run):
    @T.prim_func
    def main(A: T.Tensor((3,), "int32")):
        B = T.empty((3,), "int32")
        C = T.empty(3, 2, dtype="float32")
        with T.Kernel(1):
            for i in T.Parallel(3):
                B[i] = A[i] + 1
            T.fill(C, 2)
        return B, C

    b, c = run(main, counted(3))
    assert b.tolist() == [1, 2, 3]
    assert c.tolist() == [[2.0, 2.0]] * 3
    with pytest.raises(ValueError, match="out_idx"):
        tile.compile(main, out_idx=[0], target=run.target)


def test_dynamic_sizes_in_shapes_strides_grid_and_bounds(run):
    m, n = T.dynamic("m, n")
    s = T.dynamic("s", dtype="int64")

    @T.prim_func
    def main(
        A: T.StridedTensor((m, n), (s, 1), "int32"),
        B: T.Tensor((m, n), "int32"),
        C: T.Tensor((m + n,), "int32"),
    ):
        with T.Kernel(T.ceildiv(m, 4), threads=32) as bx:
            for i, j in T.Parallel(4, n):
                B[bx * 4 + i, j] = A[bx * 4 + i, j] + m
            if bx == 0:
                for k in T.serial(m + n):
                    C[k] = k - n

    kernel = tile.compile(main, target=run.target)
    for rows, cols in ((1, 1), (7, 3), (8, 5), (13, 2)):
        a = counted(rows, cols + 2)[:, :cols]
        b, c = poisoned(rows, cols), poisoned(rows + cols)
        kernel(a, b, c)
        assert np.array_equal(b, a + rows)
        assert np.array_equal(c, np.arange(rows + cols) - cols)
    with pytest.raises(TileError, match="shape"):
        kernel(counted(2, 2), poisoned(2, 2), poisoned(5))


def test_a_size_is_solved_for_or_taken_from_a_scalar(run):
    m, k = T.dynamic("m k")

    @T.prim_func
    def solved(A: T.Tensor((m * 2 + 1,), "int32")):
        with T.Kernel(m):
            pass
        with T.Kernel(1):
            T.fill(A, m)

    a = poisoned(7)
    run(solved, a)
    assert a.tolist() == [3] * 7

    n = T.dynamic("n")

    @T.prim_func
    def scalar(A: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(n, threads=32) as bx:
            A[bx] = n

    a = poisoned(8)
    run(scalar, a, 5)
    assert a.tolist() == [5] * 5 + [77] * 3


def test_symbolic_is_an_old_name_of_dynamic(run):
    with pytest.warns(KernelWarning, match="T.dynamic"):
        n = T.symbolic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(n):
                A[i] = i

    a = poisoned(5)
    run(main, a)
    assert a.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("out_idx", [1, -1, [1], [0, 1], [1, 0], [-2, -1]])
def test_out_idx(run, out_idx):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32"), C: T.Tensor((n,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                A[i] = i
                B[i] = 2 * i + n
            T.fill(C, 1)

    @T.prim_func
    def doubled(C: T.Tensor((n,), "int32"), D: T.Tensor((n * 2,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(n * 2):
                D[i] = C[i // 2]

    if out_idx in (-1, [-2, -1]):
        d = run(doubled, counted(3), out_idx=[-1])
        assert d.tolist() == [0, 0, 1, 1, 2, 2]
        return
    a = poisoned(4)
    found = run(main, *([] if out_idx in ([0, 1], [1, 0]) else [a]), poisoned(6), out_idx=out_idx)
    expected = {0: [0, 1, 2, 3], 1: [6, 8, 10, 12]}
    if isinstance(found, (list, tuple)):
        assert [x.tolist() for x in found] == [expected[i] for i in out_idx]
    else:
        assert found.tolist() == expected[1]


def test_no_output_is_none(run):
    @T.prim_func
    def main(A: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            A[0] = 1

    assert run(main, poisoned(1)) is None


def test_par_compile_and_lower(run):
    def fill(k):
        @T.prim_func
        def main(A: T.Tensor((2,), "int32")):
            with T.Kernel(1):
                T.fill(A, k)

        return main

    kernels = tile.par_compile([fill(k) for k in range(3)], target=run.target, num_workers=2)
    for k, kernel in enumerate(kernels):
        a = poisoned(2)
        kernel(a)
        assert a.tolist() == [k, k]
    lowered = tile.lower(fill(1), target=run.target)
    assert "main" in lowered.kernel_source
    assert len(lowered.params) == 1


def test_annotations_of_a_function(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        T.func_attr({"tir.noalias": True})
        T.annotate_pass_configs({"tl.disable_tma_lower": True})
        T.annotate_compile_flags("-O2")
        with T.Kernel(1):
            T.fill(A, 3)

    a = poisoned(4)
    run(main, a, pass_configs={"tl.disable_warp_specialized": True}, compile_flags=["-g"])
    assert a.tolist() == [3] * 4


def test_exported_types(run):
    v = T.Var("v", "int32")
    assert isinstance(v, T.PrimExpr)

    @T.prim_func
    def main(A: T.Tensor((v,), "int32")):
        with T.Kernel(1):
            T.fill(A, v)

    assert isinstance(main, T.PrimFunc)
    assert isinstance(tile.jit(lambda: main), T.JITFunc)
    a = poisoned(3)
    run(main, a)
    assert a.tolist() == [3, 3, 3]
