"""Fills, reductions, scans and reducers."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, drawn, dtype_named, poisoned
from tile_core.errors import TileError

SCOPES = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}


@T.macro
def filled(A, alloc, k):
    S = A if alloc is None else alloc(A.shape, A.dtype)
    T.fill(S, 3)
    T.clear(S[1:3, :])
    T.fill(S[3, 2:k], 1)
    if alloc is not None:
        T.copy(S, A)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", "float8_e5m2"])
def test_fill_and_clear(run, dtype):
    """In global memory, and in tiles of each scope."""
    tensor = T.Tensor((5, 7), dtype)

    @T.prim_func
    def main(A: tensor, B: tensor, C: tensor, D: tensor, k: T.int32):
        with T.Kernel(1, threads=32):
            [filled(*pair, k) for pair in zip((A, B, C, D), (None, *SCOPES.values()), strict=True)]

    found = [poisoned(5, 7, dtype=dtype) for _ in range(4)]
    run(main, *found, 6)
    expected = np.full((5, 7), 3)
    expected[1:3], expected[3, 2:6] = 0, 1
    for a, scope in zip(found, ("global", *SCOPES), strict=True):
        assert np.array_equal(a, expected.astype(a.dtype)), scope


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_fill_with_infinity(run, dtype):
    @T.prim_func
    def main(A: T.Tensor((3,), dtype)):
        with T.Kernel(1, threads=32):
            F = T.alloc_fragment((3,), dtype)
            T.fill(F, -T.infinity(dtype))
            T.copy(F, A)

    a = poisoned(3, dtype=dtype)
    run(main, a)
    assert (a == -np.inf).all()


KINDS = {
    "sum": lambda a, d: a.sum(d),
    "max": lambda a, d: a.max(d),
    "min": lambda a, d: a.min(d),
    "absmax": lambda a, d: abs(a).max(d),
    "abssum": lambda a, d: abs(a).sum(d),
    "bitand": lambda a, d: np.bitwise_and.reduce(a, d),
    "bitor": lambda a, d: np.bitwise_or.reduce(a, d),
    "bitxor": lambda a, d: np.bitwise_xor.reduce(a, d),
}


def reducer(
    kind, shape, dim, dtype, *, src="fragment", dst="fragment", keep=False, out=None, **options
):
    rank = len(shape)
    rest = [e for k, e in enumerate(shape) if k != dim % rank or keep] or [1]
    if keep:
        rest[dim % rank] = 1
    out = out or dtype

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(rest, out)):
        with T.Kernel(1, threads=32):
            S = SCOPES[src](shape, dtype)
            R = SCOPES[dst](rest, out)
            T.copy(A, S)
            T.copy(B, R)
            getattr(T, f"reduce_{kind}")(S, R, dim=dim, **options)
            T.copy(R, B)

    return main, tuple(rest)


def reducers(kinds, shape, dim, dtype):
    """Return a kernel that makes several reductions, and the shape of each result."""
    rest = tuple(e for k, e in enumerate(shape) if k != dim % len(shape)) or (1,)

    def each(S, R, B):
        for k, kind in enumerate(kinds):
            getattr(T, f"reduce_{kind}")(S, R, dim=dim)
            T.copy(R, B[k, ...])

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor((len(kinds), *rest), dtype)):
        with T.Kernel(1, threads=32):
            S = T.alloc_fragment(shape, dtype)
            R = T.alloc_fragment(rest, dtype)
            T.copy(A, S)
            each(S, R, B)

    return main, rest


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((7,), 0),
        ((1,), -1),
        ((7, 13), 0),
        ((7, 13), 1),
        ((7, 13), -1),
        ((3, 1, 5), 1),
        ((3, 4, 5), -3),
        ((64, 33), 1),
    ],
)
def test_reductions_along_any_dimension(run, shape, dim):
    main, rest = reducers(KINDS, shape, dim, "int32")
    a, b = drawn(*shape, low=-100, high=100, dtype="int32"), poisoned(len(KINDS), *rest)
    run(main, a, b)
    for row, kind in zip(b, KINDS, strict=True):
        assert np.array_equal(row, np.asarray(KINDS[kind](a, dim)).reshape(rest)), kind


@pytest.mark.in_turn(5)
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int64"]
)
def test_reductions_of_every_type(run, dtype):
    kinds = ["sum", "max", "min", "absmax", "abssum"]
    main, rest = reducers(kinds, (9, 5), 1, dtype)
    a = drawn(9, 5, low=0 if dtype == "uint8" else -4, high=5, dtype=dtype)
    b = poisoned(5, 9, dtype=dtype)
    run(main, a, b)
    for row, kind in zip(b, kinds, strict=True):
        assert np.array_equal(row.astype("float64"), KINDS[kind](a.astype("float64"), 1)), kind


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("src", SCOPES)
@pytest.mark.parametrize("dst", SCOPES)
def test_reductions_between_scopes(run, src, dst):
    keep = (src, dst) in [("shared", "fragment"), ("fragment", "shared"), ("local", "local")]
    for kept in (keep, not keep) if src == dst else (keep,):
        main, rest = reducer("sum", (6, 7), 1, "float32", src=src, dst=dst, keep=kept)
        a, b = drawn(6, 7), poisoned(*rest, dtype="float32")
        run(main, a, b)
        assert np.array_equal(b, a.sum(1).reshape(rest))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", ["sum", "max", "min", "absmax", "bitand", "bitor", "bitxor"])
def test_without_clearing_the_old_value_counts_once(run, kind):
    main, rest = reducer(kind, (5, 6), 1, "int32", clear=False)
    a, old = drawn(5, 6, dtype="int32"), np.array([-20, 0, 3, 20, 1], np.int32)
    b = old.copy()
    run(main, a, b)
    if kind == "sum":
        expected = old + a.sum(1)
    elif kind == "absmax":
        expected = np.maximum(old, abs(a).max(1))
    else:
        expected = KINDS[kind](np.column_stack([a, old]), 1)
    assert np.array_equal(b, expected)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("dtype", "out"),
    [("float16", "float32"), ("int8", "int32"), ("float32", "float64"), ("int32", "float32")],
)
def test_reductions_into_another_type(run, dtype, out):
    main, rest = reducer("sum", (4, 300), 1, dtype, out=out)
    a, b = drawn(4, 300, low=0, high=100, dtype=dtype), poisoned(4, dtype=out)
    run(main, a, b)
    assert np.array_equal(b, a.astype("float64").sum(1))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", ["max", "min", "absmax"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("propagate", [False, True])
def test_nan(run, kind, dtype, propagate):
    if propagate and dtype == "float32":
        pytest.skip("only for 16-bit floats")
    main, rest = reducer(kind, (3, 4), 1, dtype, nan_propagate=propagate)
    a = np.array([[1, np.nan, -3, 2], [np.nan] * 3 + [1], [4, 3, 2, 1]]).astype(dtype_named(dtype))
    b = poisoned(3, dtype=dtype)
    run(main, a, b)
    full = {"max": [2, 1, 4], "min": [-3, 1, 1], "absmax": [3, 1, 4]}[kind]
    expected = [np.nan, np.nan, full[2]] if propagate else full
    assert np.array_equal(b.astype("float32"), expected, equal_nan=True)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", ["bitand", "bitor", "bitxor"])
def test_bits_of_bools(run, kind):
    main, rest = reducer(kind, (4, 3), 1, "bool")
    a = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 0], [1, 0, 0]], bool)
    b = poisoned(4, dtype="bool")
    run(main, a, b)
    assert np.array_equal(b, KINDS[kind](a, 1))


def test_the_generic_form_and_batches(run):
    @T.prim_func
    def main(A: T.Tensor((4, 6), "float32"), B: T.Tensor((2, 4), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_fragment((4, 6), "float32")
            R = T.alloc_fragment((4,), "float32")
            T.copy(A, S)
            T.reduce(S, R, "max", 1, True)
            T.copy(R, B[0, :])
            T.reduce_sum(S, R, dim=1, batch=1)
            T.copy(R, B[1, :])

    a, b = drawn(4, 6), poisoned(2, 4, dtype="float32")
    run(main, a, b)
    assert np.array_equal(b, [a.max(1), a.sum(1)])


def test_regions_and_variables(run):
    @T.prim_func
    def main(A: T.Tensor((4, 6), "int32"), B: T.Tensor((4,), "int32"), C: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4, 6), "int32")
            R = T.alloc_fragment((4,), "int32")
            T.copy(A, S)
            T.reduce_sum(S[:, 1:4], R, dim=1)
            T.copy(R, B)
            L = T.alloc_local((3,), "int32")
            v = T.alloc_var("int32")
            for i in T.serial(3):
                L[i] = A[0, i] + 1
            T.reduce_max(L, v, dim=0)
            C[0] = v

    a, b, c = counted(4, 6), poisoned(4), poisoned(1)
    run(main, a, b, c)
    assert np.array_equal(b, a[:, 1:4].sum(1))
    assert c.tolist() == [3]


@pytest.mark.parametrize(
    "kind", ["wrong shape", "no such dimension", "batch of zero", "bits of floats"]
)
def test_refused_reductions(kind):
    with pytest.raises(ValueError, match="reduce") as caught:

        @T.prim_func
        def main(A: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=32):
                S = T.alloc_fragment((4, 6), "float32")
                R = T.alloc_fragment((4,), "float32")
                if kind == "wrong shape":
                    T.reduce_sum(S, R, dim=0)
                elif kind == "no such dimension":
                    T.reduce_sum(S, R, dim=2)
                elif kind == "batch of zero":
                    T.reduce_sum(S, R, dim=1, batch=0)
                else:
                    T.reduce_bitand(S, R, dim=1)

    assert isinstance(caught.value, TileError)


SCANS = {"cumsum": np.cumsum, "cummax": np.maximum.accumulate}


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("scope", ["shared", "fragment"])
@pytest.mark.parametrize(
    ("shape", "dim"), [((1,), 0), ((13,), 0), ((5, 7), 0), ((5, 7), 1), ((5, 7), -1)]
)
def test_scans(run, name, scope, shape, dim):
    """Forwards and backwards, into another tile and in place."""
    scan, alloc = getattr(T, name), SCOPES[scope]

    @T.macro
    def scanned(A, apart, in_place, reverse):
        S = alloc(shape, "int32")
        R = alloc(shape, "int32")
        T.copy(A, S)
        scan(S, R, dim=dim, reverse=reverse)
        T.copy(R, apart)
        scan(S, dim=dim, reverse=reverse)
        T.copy(S, in_place)

    @T.prim_func
    def main(
        A: T.Tensor(shape, "int32"),
        B: T.Tensor(shape, "int32"),
        C: T.Tensor(shape, "int32"),
        B_reversed: T.Tensor(shape, "int32"),
        C_reversed: T.Tensor(shape, "int32"),
    ):
        with T.Kernel(1, threads=32):
            scanned(A, B, C, False)
            scanned(A, B_reversed, C_reversed, True)

    a, found = drawn(*shape, dtype="int32"), [poisoned(*shape) for _ in range(4)]
    run(main, a, *found)
    forwards = SCANS[name](a, dim)
    backwards = np.flip(SCANS[name](np.flip(a, dim), dim), dim)
    for b, wanted in zip(found, (forwards, forwards, backwards, backwards), strict=True):
        assert np.array_equal(b, wanted)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("src", SCOPES)
@pytest.mark.parametrize("dst", SCOPES)
def test_scans_between_scopes(run, src, dst):
    @T.prim_func
    def main(A: T.Tensor((3, 40), "int32"), B: T.Tensor((3, 40), "int32")):
        with T.Kernel(1, threads=64):
            S = SCOPES[src]((3, 40), "int32")
            R = SCOPES[dst]((3, 40), "int32")
            T.copy(A, S)
            T.cumsum(S, R, dim=1)
            T.copy(R, B)

    a, b = drawn(3, 40, dtype="int32"), poisoned(3, 40)
    run(main, a, b)
    assert np.array_equal(b, a.cumsum(1))


def test_each_thread_reduces_and_scans_its_own_array(run):
    @T.prim_func
    def main(
        A: T.Tensor((32, 7), "int32"), B: T.Tensor((32, 7), "int32"), C: T.Tensor((32,), "int32")
    ):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            own = T.alloc_local((7,), "int32")
            total = T.alloc_local((1,), "int32")
            for i in T.serial(7):
                own[i] = A[tx, i]
            T.reduce_sum(own, total, dim=0)
            T.cumsum(own, dim=0)
            for i in T.serial(7):
                B[tx, i] = own[i]
            C[tx] = total[0]

    a, b, c = drawn(32, 7, dtype="int32"), poisoned(32, 7), poisoned(32)
    run(main, a, b, c)
    assert np.array_equal(b, a.cumsum(1))
    assert np.array_equal(c, a.sum(1))


def test_scans_of_regions_and_views(run):
    @T.prim_func
    def main(A: T.Tensor((4, 6), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4, 6), "int32")
            T.copy(A, S)
            T.cumsum(S[1, 2:6], dim=1)
            V = T.view(S, (24,))
            T.cumsum(V[18:24], reverse=True)
            T.copy(S, A)

    a = counted(4, 6)
    expected = a.copy()
    expected[1, 2:] = a[1, 2:].cumsum()
    expected[3] = a[3, ::-1].cumsum()[::-1]
    run(main, a)
    assert np.array_equal(a, expected)


@pytest.mark.parametrize("kind", ["dimension", "shape"])
def test_refused_scans(kind):
    with pytest.raises(ValueError, match="cumsum"):

        @T.prim_func
        def main(A: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=32):
                S = T.alloc_shared((4, 6), "float32")
                R = T.alloc_shared((4, 5), "float32")
                if kind == "shape":
                    T.cumsum(S, R)
                else:
                    T.cumsum(S, dim=2)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", ["sum", "max", "min", "bitand", "bitor"])
def test_reductions_over_a_warp(run, kind):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[tx] = getattr(T, f"warp_reduce_{kind}")(A[tx])

    a, b = drawn(64, low=-1000, high=1000, dtype="int32"), poisoned(64)
    run(main, a, b)
    assert np.array_equal(b, np.repeat(KINDS[kind](a.reshape(2, 32), 1), 32))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("scope", ["shared", "local"])
def test_any_and_all(run, scope):
    @T.prim_func
    def main(A: T.Tensor((4, 3), "bool"), B: T.Tensor((4, 2), "int32"), C: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            S = SCOPES[scope]((4, 3), "bool")
            for i, j in T.grid(4, 3):
                S[i, j] = A[i, j]
            T.clear(B)
            for i in T.serial(4):
                if T.any_of(S[i, :]):
                    B[i, 0] = 1
                if T.all_of(S[i, 0:3]):
                    B[i, 1] = 1
            V = SCOPES[scope]((3,), "bool")
            for j in T.serial(3):
                V[j] = A[3, j]
            C[0] = T.if_then_else(T.any_of(V), 5, 6)

    a, b, c = (
        np.array([[0, 0, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1]], bool),
        poisoned(4, 2),
        poisoned(1),
    )
    run(main, a, b, c)
    assert np.array_equal(b, np.column_stack([a.any(1), a.all(1)]))
    assert c.tolist() == [5]


def test_allreduce_across_threads(run):
    @T.prim_func
    def main(A: T.Tensor((4, 32), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=(32, 4)):
            tk = T.get_thread_binding(0)
            tn = T.get_thread_binding(1)
            accum = T.alloc_local((1,), "float32")
            reduced = T.alloc_local((1,), "float32")
            accum[0] = A[tn, tk]
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.cast(0, "float32")]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(
                    T.tvm_thread_allreduce(
                        T.uint32(1), accum[0], True, reduced[0], tk, dtype="handle"
                    )
                )
            if tk == 0:
                B[tn] = reduced[0]

    a, b = drawn(4, 32), poisoned(4, dtype="float32")
    run(main, a, b)
    assert np.array_equal(b, a.sum(1))
