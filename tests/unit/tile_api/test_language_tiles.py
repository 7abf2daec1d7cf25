"""Tile operators: copies, products, fills, reductions, scans, reducers."""

from __future__ import annotations

import warnings

import pytest

import tile_api.language as T
from support.trace import emitted
from tile_api.frontend.builder import KernelWarning
from tile_core.errors import (
    FrontendTypeError,
    FrontendValueError,
    GemmShapeMismatch,
    ReducerMisuse,
    ScopeMismatch,
    ShapeMismatch,
)

TILES = {"A": "float16[64, 64]", "S": "shared float16[32, 32]", "F": "fragment float32[32, 32]"}


def on_tiles(function):
    """Return what `function(A, S, F)` emits: a tensor, a shared tile, a fragment."""
    return emitted(function, **TILES)


def test_copy_of_whole_buffers_regions_and_elements():
    assert on_tiles(lambda A, S, F: T.copy(S, F)) == ["@copy(src=S[0:32, 0:32], dst=F[0:32, 0:32])"]
    assert on_tiles(lambda A, S, F: T.copy(A[8:40, 32:], S)) == [
        "@copy(src=A[8:32, 32:32], dst=S[0:32, 0:32])"
    ]
    assert on_tiles(lambda A, S, F: T.copy(A[8, 4], S)) == ["@copy(src=A[8, 4], dst=S[0:32, 0:32])"]


def test_copy_options():
    assert on_tiles(
        lambda A, S, F: T.copy(
            A[0, 0],
            S,
            coalesced_width=8,
            disable_tma=True,
            eviction_policy="evict_first",
            prefer_instruction="cp_async",
        )
    ) == [
        "@copy(src=A[0, 0], dst=S[0:32, 0:32], coalesced_width=8, disable_bulk=true, "
        'eviction_policy="evict_first", prefer_instruction="cp_async")'
    ]
    by_dictionary = on_tiles(
        lambda A, S, F: T.copy(A[0, 0], S, annotations={"coalesced_width": 4, "other": 1})
    )
    assert by_dictionary == ["@copy(src=A[0, 0], dst=S[0:32, 0:32], coalesced_width=4)"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"eviction_policy": "evict_all"}, FrontendValueError, "eviction policy 'evict_all'"),
        ({"prefer_instruction": "dma"}, FrontendValueError, "instruction 'dma' is not known"),
        ({"coalesced_width": 0}, FrontendValueError, "coalesced_width must be at least 1, got 0"),
        ({"coalesced_width": 1.5}, FrontendTypeError, "coalesced_width must be an integer"),
        ({"annotations": 3}, FrontendTypeError, "annotations must be a dictionary"),
    ],
)
def test_copy_refuses_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        on_tiles(lambda A, S, F: T.copy(A[0, 0], S, **options))


def test_copy_refuses_bad_operands():
    with pytest.raises(ShapeMismatch, match="the shapes do not match"):
        on_tiles(lambda A, S, F: T.copy(A, S))
    with pytest.raises(FrontendTypeError, match=r"the source of T\.copy must be a buffer"):
        on_tiles(lambda A, S, F: T.copy(3, S))
    with pytest.raises(FrontendTypeError, match=r"the destination of T\.copy"):
        on_tiles(lambda A, S, F: T.copy(S, "F"))


def test_asynchronous_copy():
    def f(A, S, F):
        T.async_copy(A[0, 0], S)
        T.ptx_wait_group(0)

    assert on_tiles(f) == [
        "@copy(src=A[0, 0], dst=S[0:32, 0:32], is_async=true)",
        "@copy_commit()",
        "@copy_wait()",
    ]
    assert on_tiles(lambda A, S, F: T.ptx_commit_group()) == ["@copy_commit()"]
    with pytest.raises(ScopeMismatch, match="goes from global to shared memory"):
        on_tiles(lambda A, S, F: T.async_copy(S, F))
    with pytest.raises(FrontendValueError, match="must be at least 0, got -1"):
        on_tiles(lambda A, S, F: T.ptx_wait_group(-1))


def test_transpose():
    operands = {"X": "shared int8[4, 8]", "Y": "shared int8[8, 4]"}
    assert emitted(lambda X, Y: T.transpose(X, Y), **operands) == [
        "@transpose(src=X[0:4, 0:8], dst=Y[0:8, 0:4])"
    ]
    with pytest.raises(ShapeMismatch, match="cannot transpose"):
        emitted(lambda X, Y: T.transpose(X, X), **operands)


def test_im2col():
    operands = {"I": "float16[2, 8, 8, 4]", "S": "shared float16[16, 12]"}
    line = (
        "@im2col(image=I, columns=S[0:16, 0:12], nhw_step=bx, c_step=0, kernel=3, stride=1, "
        "dilation=1, pad=1)"
    )
    assert (
        emitted(lambda I, S: T.im2col(I, S, T.get_block_binding(0), 0, 3, 1, 1, 1), **operands)[0]
        == line
    )
    with pytest.warns(KernelWarning, match=r"now called T\.im2col"):
        emitted(lambda I, S: T.c2d_im2col(I, S, 0, 0, 3, 1, 1, 1), **operands)
    with pytest.raises(FrontendValueError, match="stride must be at least 1, got 0"):
        emitted(lambda I, S: T.im2col(I, S, 0, 0, 3, 0, 1, 1), **operands)
    with pytest.raises(ShapeMismatch, match="reads a global NHWC tensor of rank 4"):
        emitted(lambda I, S: T.im2col(S, S, 0, 0, 3, 1, 1, 1), **operands)


def test_fill_and_clear():
    assert on_tiles(lambda A, S, F: T.clear(F)) == ["@fill(dst=F[0:32, 0:32], value=0.0)"]
    assert on_tiles(lambda A, S, F: T.fill(A[1:3, 5], -T.infinity("float16"))) == [
        "@fill(dst=A[1:2, 5:1], value=float16(-inf))"
    ]
    with pytest.raises(FrontendTypeError, match=r"the destination of T\.fill"):
        on_tiles(lambda A, S, F: T.fill(1, 2))


GEMM = {
    "A": "shared float16[32, 16]",
    "B": "shared float16[16, 64]",
    "C": "fragment float32[32, 64]",
    "G": "float16[16, 64]",
}
GEMM_LINE = (
    "@gemm(a=A[0:32, 0:16], b=B[0:16, 0:64], c=C[0:32, 0:64], transpose_a=false, "
    "transpose_b=false, clear={}{})"
)


def gemm(*args, **kwargs):
    """Return what a product of three tiles emits."""

    def f(**tiles):
        T.gemm(*(tiles[a] if isinstance(a, str) else a for a in args), **kwargs)

    return emitted(f, **GEMM)


def test_gemm():
    assert gemm("A", "B", "C") == [GEMM_LINE.format("false", "")]
    assert gemm("A", "B", "C", False, False, 1, True, k_pack=2, wg_wait=-1, annotations={}) == [
        GEMM_LINE.format("true", ", policy=FullRow, k_pack=2, wg_wait=-1")
    ]
    late = emitted(
        lambda A, B, C, G: T.gemm(A, B, C, clear_accum=T.get_thread_binding(0) == 0), **GEMM
    )
    assert late == [GEMM_LINE.format("tx == 0", "")]


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "message"),
    [
        (("B", "A", "C"), {}, GemmShapeMismatch, "T.gemm M shape check failed"),
        (("A", "B", "C", True), {}, GemmShapeMismatch, "T.gemm M shape check failed"),
        (("A", "B", "C"), {"transpose_B": True}, GemmShapeMismatch, "K shape check failed"),
        (("A", "G", "C"), {}, ScopeMismatch, "B of T.gemm must be a shared or fragment tile"),
        (("A", "B", "C"), {"policy": 7}, FrontendValueError, "7 is not a warp policy"),
        (("A", "B", "C", 0.5), {}, FrontendTypeError, "transpose_A of T.gemm must be True"),
        (("A", "B", "C"), {"k_pack": 0}, FrontendValueError, "k_pack must be at least 1"),
        (("A", "B", 3), {}, FrontendTypeError, "C of T.gemm must be a buffer"),
    ],
)
def test_gemm_refuses(args, kwargs, error, message):
    with pytest.raises(error, match=message):
        gemm(*args, **kwargs)


def test_gemm_on_a_barrier_is_for_gpus():
    lines = emitted(lambda A, B, C, G: T.gemm(A, B, C, mbar=T.alloc_barrier(1)), **GEMM)
    assert lines[-1].startswith("@gpu")
    assert 'name="tcgen05_gemm"' in lines[-1]


def test_products_that_are_left_under_way():
    def f(A, B, C, G):
        T.gemm(A, B, C, wg_wait=-1)
        T.wgmma_gemm(A, B, C)
        T.wait_wgmma(1)
        T.wait_wgmma()

    lines = emitted(f, **GEMM)
    assert lines[-4:] == [
        GEMM_LINE.format("false", ", wg_wait=-1"),
        GEMM_LINE.format("false", ', wg_wait=-1, instruction="async_mma"'),
        "@wait_products(pending=1)",
        "@wait_products()",
    ]
    with pytest.raises(GemmShapeMismatch):
        emitted(lambda A, B, C, G: T.wgmma_gemm(B, A, C), **GEMM)
    with pytest.raises(FrontendValueError, match="number of products must be at least 0"):
        emitted(lambda A, B, C, G: T.wait_wgmma(-1), **GEMM)


def test_warp_policy_from_a_partition():
    policy = T.GemmWarpPolicy
    for many in (2, 4):
        assert policy.from_warp_partition(many, 1) is policy.FullRow
        assert policy.from_warp_partition(1, many) is policy.FullCol
        assert policy.from_warp_partition(many, many) is policy.Square
    assert policy.from_warp_partition(1, 1) is policy.Square
    assert [int(p) for p in policy] == [0, 1, 2]


def test_dp4a():
    operands = {"A": "local int8[8]", "B": "local uint8[8]", "C": "local int32[2]"}
    assert emitted(lambda A, B, C: T.dp4a(A[4], B, C[1]), **operands) == [
        "C[1] = dp4a(&r A[4], &r B[0], C[1])"
    ]
    with pytest.raises(FrontendValueError, match="dp4a requires C to be int32, got int8"):
        emitted(lambda A, B, C: T.dp4a(A, B, A), **operands)
    with pytest.raises(FrontendValueError, match="dp4a requires A to be int8 or uint8, got int32"):
        emitted(lambda A, B, C: T.dp4a(C, B, C), **operands)


REDUCE = {
    "F": "fragment float32[8, 16]",
    "R": "fragment float32[8]",
    "K": "fragment float32[8, 1]",
    "I": "shared int32[16]",
    "O": "fragment int32[1]",
}


def reduced(function):
    """Return what a reduction of these tiles emits."""
    return emitted(function, **REDUCE)


@pytest.mark.parametrize("kind", ["sum", "max", "min", "abssum", "absmax"])
def test_reductions_of_floats(kind):
    line = f"@reduce(kind={kind.upper()}, src=F[0:8, 0:16], dst=R[0:8], dim=1)"
    assert reduced(lambda F, R, **_: getattr(T, f"reduce_{kind}")(F, R)) == [line]
    assert reduced(lambda F, R, **_: T.reduce(F, R, kind, -1)) == [line]
    assert reduced(lambda F, R, **_: getattr(T, f"reduce_{kind}")(F, R, dim=1)) == [line]


@pytest.mark.parametrize("kind", ["bitand", "bitor", "bitxor"])
def test_reductions_of_bits(kind):
    assert reduced(lambda I, O, **_: getattr(T, f"reduce_{kind}")(I, O, 0, False)) == [
        f"@reduce(kind={kind.upper()}, src=I[0:16], dst=O[0:1], dim=0, clear=false)"
    ]
    with pytest.raises(FrontendValueError, match="works on integers and bools"):
        reduced(lambda F, R, **_: getattr(T, f"reduce_{kind}")(F, R))


def test_reduction_options():
    assert reduced(lambda F, K, **_: T.reduce_max(F, K, 1, False, 2, True)) == [
        "@reduce(kind=MAX, src=F[0:8, 0:16], dst=K[0:8, 0:1], dim=1, clear=false, "
        "nan_propagate=true)"
    ]
    part = reduced(lambda F, R, **_: T.reduce_sum(F[0:4, :], R[4:8], dim=-1))
    assert part == ["@reduce(kind=SUM, src=F[0:4, 0:16], dst=R[4:4], dim=1)"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda F, R, **_: T.reduce_sum(F, R, dim=2), FrontendValueError, "dim 2 is outside F"),
        (lambda F, R, **_: T.reduce_sum(F, R, dim=-3), FrontendValueError, "dim -3 is outside F"),
        (lambda F, R, **_: T.reduce_sum(F, R, batch=0), FrontendValueError, "batch must be at"),
        (lambda F, R, **_: T.reduce_sum(F, R, dim=0), ShapeMismatch, "along dim 0 does not give"),
        (lambda F, R, **_: T.reduce(F, R, "mean"), FrontendValueError, "reduction 'mean'"),
        (lambda F, R, **_: T.reduce_sum(F, R, clear="no"), FrontendTypeError, "clear of T.reduce"),
        (lambda F, R, **_: T.reduce_sum(F, 1), FrontendTypeError, "destination of T.reduce_sum"),
    ],
)
def test_reductions_refuse(call, error, message):
    with pytest.raises(error, match=message):
        reduced(call)


def test_scans():
    assert reduced(lambda I, **_: T.cumsum(I)) == [
        "@scan(kind=SUM, src=I[0:16], dst=I[0:16], dim=0)"
    ]
    assert reduced(lambda F, **_: T.cummax(F, dim=-1, reverse=True)) == [
        "@scan(kind=MAX, src=F[0:8, 0:16], dst=F[0:8, 0:16], dim=1, reverse=true)"
    ]
    with pytest.raises(FrontendValueError, match=r"T\.cumsum: dim 1 is outside I"):
        reduced(lambda I, **_: T.cumsum(I, dim=1))
    with pytest.raises(ShapeMismatch, match=r"T\.cumsum of F\[8, 16\] does not give R\[8\]"):
        reduced(lambda F, R, **_: T.cumsum(F, R))


def test_quantifiers():
    assert reduced(lambda F, **_: T.all_of(F[2, 4:8])) == [
        "alloc all_of: local.var bool[1]",
        "all_of[0] = true",
        "for i1: int32 in range(0, 4, 1) serial:",
        "  all_of[0] = all_of[0] and F[2, 4 + i1] != 0.0",
        "let all_of_1: bool = all_of[0]",
    ]
    assert "any_of[0] or I[i0] != 0" in reduced(lambda I, **_: T.any_of(I))[3]


def test_warp_reductions():
    for kind in ("sum", "max", "min", "bitand", "bitor"):
        line = emitted(
            lambda A: A.__setitem__(0, getattr(T, f"warp_reduce_{kind}")(A[1])), A="int32[4]"
        )
        assert line == [f"A[0] = warp_reduce_{kind}(A[1])"]


def test_reducers():
    def f(R):
        acc = T.alloc_reducer(8, "float32", "max")
        T.reducer_init(acc, 0)
        for i in T.Parallel(8):
            T.reducer_update(acc[i], R[i])
        T.finalize_reducer(acc, R)

    with warnings.catch_warnings():
        lines = emitted(f, R="fragment float32[8]")
    assert [line.strip() for line in lines if "@" in line] == [
        "@reducer_init(reducer=reducer, kind=MAX, init=0.0)",
        "@reducer_update(reducer=reducer, kind=MAX, indices=[i], value=R[i])",
        "@reducer_finalize(reducer=reducer, kind=MAX, dst=R[0:8])",
    ]


def test_reducers_that_are_fragments_are_finalised_in_place():
    def f(R):
        acc = T.alloc_reducer(8, "float32", "sum", replication="all")
        T.clear(acc)
        T.finalize_reducer(acc)

    lines = emitted(f, R="fragment float32[8]")
    assert not any("reducer_finalize" in line for line in lines)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda acc, old, R: T.reducer_init(R), "needs a reducer, but 'R' is in local.fragment"),
        (lambda acc, old, R: T.reducer_update(R[0], 1), "T.reducer_update needs a reducer"),
        (lambda acc, old, R: T.finalize_reducer(acc), "needs a destination"),
        (lambda acc, old, R: T.finalize_reducer(old, R), "is finalised in place"),
        (lambda acc, old, R: T.finalize_reducer(R), "T.finalize_reducer needs a reducer"),
    ],
)
def test_reducers_refuse(call, message):
    def f(R):
        acc = T.alloc_reducer(8, "float32", "sum")
        call(acc, T.alloc_reducer(8, "float32", "sum", replication="none"), R)

    with pytest.raises(ReducerMisuse, match=message):
        emitted(f, R="fragment float32[8]")


def test_assignments_to_reducers_that_are_fragments_are_updates():
    @T.prim_func
    def f(A: T.Tensor((8, 16), "float16")):
        with T.Kernel(1):
            total = T.alloc_reducer(8, "float32", "sum", replication="all")
            top = T.alloc_reducer(8, "float32", "max", replication="none")
            T.clear(total)
            for i, j in T.Parallel(8, 16):
                total[i] += A[i, j]
                top[i] = T.max(A[i, j], top[i])
                total[i] = total[i] * 2
                top[i] = 0
            for i in T.serial(8):
                total[i] += 1

    lines = [line.strip() for line in f.script().splitlines()]
    assert lines[-6:-2] == [
        "@reducer_update(reducer=total, kind=SUM, indices=[i], value=cast[float32](A[i, j]))",
        "@reducer_update(reducer=top, kind=MAX, indices=[i], value=cast[float32](A[i, j]))",
        "total[i] = total[i] * 2.0",
        "top[i] = 0.0",
    ]
    assert lines[-1] == "total[i_1] = total[i_1] + 1.0"
