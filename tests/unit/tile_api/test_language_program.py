"""Annotations, explicit threads, extern functions, printing and checks."""

from __future__ import annotations

import pytest

import tile_api.language as T
from support.trace import emitted, trace
from tile_core.errors import (
    FrontendTypeError,
    FrontendValueError,
    ScopeMismatch,
    TraceAssertionError,
    UnsupportedOnTarget,
)
from tile_core.ir.node import walk
from tile_core.ir.stmt import AnnotateLayout
from tile_core.passes.refuse_gpu_only import refuse_gpu_only
from tile_core.target import Target

ABS = {"A": "float32[8, 8]", "S": "shared float16[8, 64]", "F": "fragment float32[8, 8]"}


def on(function, **kwargs):
    """Return what `function(A, S, F)` emits: a tensor, a shared tile, a fragment."""
    return emitted(function, **kwargs, **ABS)


# Annotations --------------------------------------------------------------------------------


def layouts_of(function):
    kernel = trace(function, **ABS)
    return [node.layout for node in walk(kernel) if isinstance(node, AnnotateLayout)]


def test_annotated_layouts():
    def f(A, S, F):
        T.annotate_layout(
            {
                S: T.Layout((8, 64), lambda i, j: [i, j ^ (i % 8)]),
                F: T.Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2)),
            }
        )

    layouts = layouts_of(f)
    assert layouts[0](3, 5) == (3, 6)
    assert layouts[1].forward_thread(1, 3) == 5
    (padded,) = layouts_of(lambda A, S, F: T.annotate_layout({S: lambda i, j: i * 72 + j}))
    assert padded(2, 1) == (145,)
    (swizzled,) = layouts_of(lambda A, S, F: T.annotate_layout({S: T.make_swizzled_layout(S)}))
    assert swizzled.is_bijective()


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (lambda i, j: [i, 0 * j], FrontendValueError, "'S' is not injective"),
        (lambda i, j: [i - 1, j], FrontendValueError, "the layout of 'S'"),
        ("row", FrontendTypeError, "is not a layout for 'S'"),
    ],
)
def test_annotated_layouts_refuse(spec, error, message):
    with pytest.raises(error, match=message):
        on(lambda A, S, F: T.annotate_layout({S: spec}))


def test_layouts_must_fit_their_buffers():
    with pytest.raises(FrontendValueError, match=r"has the shape \(4, 4\), the buffer \(8, 64\)"):
        on(lambda A, S, F: T.annotate_layout({S: T.Layout((4, 4), lambda i, j: [i, j])}))
    with pytest.raises(FrontendTypeError, match=r"the fragment 'F' needs a T\.Fragment"):
        on(lambda A, S, F: T.annotate_layout({F: lambda i, j: [i, j]}))
    with pytest.raises(FrontendTypeError, match="takes a dictionary from buffers"):
        on(lambda A, S, F: T.annotate_layout([S]))


def test_named_layouts():
    def f(A, S, F):
        assert T.make_full_bank_swizzled_layout(S).is_bijective()
        assert T.make_half_bank_swizzled_layout(S).is_bijective()
        assert T.make_quarter_bank_swizzled_layout(S[0:8, :]).is_bijective()
        assert T.make_linear_layout(S)(1, 2) == (1, 2)
        assert T.make_fully_replicated_layout_fragment(F, 32).replication == 32
        assert T.make_gemm_fragment_8x8().forward_index(2, 3) == (1,)
        assert T.make_gemm_fragment_8x8_transposed().forward_thread(2, 3) == 13

    on(f)


def test_swizzle_and_hints():
    assert on(lambda A, S, F: T.use_swizzle(10)) == ['hint swizzle [10, "row"]']
    assert on(lambda A, S, F: T.use_swizzle(4, "column", True)) == ['hint swizzle [4, "column"]']
    assert on(lambda A, S, F: T.use_swizzle(4, enable=False)) == []
    assert on(lambda A, S, F: T.annotate_restrict_buffers(A)) == ['hint may_alias ["A"]']
    assert on(lambda A, S, F: T.annotate_l2_hit_ratio({A: 0.5})) == [
        'hint l2_hit_ratio ["A", "0.5"]'
    ]
    assert on(lambda A, S, F: T.annotate_min_blocks_per_sm(2)) == ["hint min_blocks_per_sm [2]"]
    assert on(lambda A, S, F: T.set_max_nreg(240, 1)) == ['hint max_registers [240, "inc"]']
    assert on(lambda A, S, F: T.dec_max_nreg(24)) == ['hint max_registers [24, "dec"]']
    assert on(lambda A, S, F: T.disable_warp_group_reg_alloc()) == ['hint max_registers ["fixed"]']


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda A, S: T.use_swizzle(4, order="diagonal"), FrontendValueError, "order of blocks"),
        (lambda A, S: T.use_swizzle(0), FrontendValueError, "panel_size must be at least 1"),
        (lambda A, S: T.annotate_safe_value({S: 1}), ScopeMismatch, "only global tensors have"),
        (lambda A, S: T.annotate_l2_hit_ratio({A: 2}), FrontendValueError, "between 0 and 1"),
        (lambda A, S: T.inc_max_nreg(25), FrontendValueError, "multiple of 8 between 24 and 240"),
        (lambda A, S: T.annotate_compile_flags(3), FrontendTypeError, "a string or a list"),
        (lambda A, S: T.annotate_pass_configs("x"), FrontendTypeError, "are a dictionary"),
        (lambda A, S: T.func_attr(3), FrontendTypeError, "attributes are a dictionary"),
        (lambda A, S: T.sblock_attr(3), FrontendTypeError, "attributes are a dictionary"),
    ],
)
def test_annotations_refuse(call, error, message):
    with pytest.raises(error, match=message):
        on(lambda A, S, F: call(A, S))


def test_safe_values():
    assert on(lambda A, S, F: T.annotate_safe_value({A: -1})) == ["safe_value A = -1.0"]


def test_wishes_about_the_kernel():
    def f(A):
        T.annotate_compile_flags("-O2")
        T.annotate_compile_flags(["-g"])
        T.annotate_pass_configs({"tl.enable_fast_math": True})
        T.import_source("int f(void);")
        T.import_source("int f(void);")
        T.func_attr({"tir.noalias": True})
        T.sblock_attr({"x": 1})

    kernel = trace(f, A="float32[4]")
    assert kernel.options.compile_flags == ("-O2", "-g")
    assert kernel.options.pass_configs == (("tl.enable_fast_math", True),)
    assert kernel.sources == ("int f(void);",)


# Threads ------------------------------------------------------------------------------------


def test_barriers():
    assert emitted(lambda: T.sync_threads()) == ["@barrier()"]
    assert emitted(lambda: T.sync_threads(1, 64)) == ["@barrier(number=1, count=64)"]
    assert emitted(lambda: T.named_barrier_arrive(1, 64)) == [
        "@barrier(number=1, count=64, arrives_only=true)"
    ]
    assert emitted(lambda: T.sync_warp(0xFF)) == ['@barrier(scope="warp")']
    assert emitted(lambda: T.sync_grid()) == ['@barrier(scope="grid")']
    assert emitted(lambda: T.tvm_storage_sync("shared")) == ["@barrier()"]
    with pytest.raises(FrontendValueError, match="no barrier for memory 'local'"):
        emitted(lambda: T.tvm_storage_sync("local"))


def stored(build, threads=128, dtype="int32"):
    """Return the expression stored to an element."""

    def f(A):
        A[0] = build(A[1])

    return emitted(f, threads=threads, A=f"{dtype}[4]")[0].removeprefix("A[0] = ")


def test_exchanges_in_a_warp():
    assert stored(lambda x: T.shfl_xor(x, 1)) == "shfl_xor(A[1], 1, 32)"
    assert stored(lambda x: T.shfl_down(x, 1, 16)) == "shfl_down(A[1], 1, 16)"
    assert stored(lambda x: T.shfl_up(x, 1)) == "shfl_up(A[1], 1, 32)"
    assert stored(lambda x: T.shfl_sync(x, 3)) == "shfl_sync(A[1], 3, 32)"
    assert stored(lambda x: T.tvm_warp_shuffle(-1, x, 3, 8, 32)) == "shfl_sync(A[1], 3, 8)"
    assert stored(lambda x: T.tvm_warp_shuffle_up(-1, x, 3, 8, 32)) == "shfl_up(A[1], 3, 8)"
    assert stored(lambda x: T.tvm_warp_shuffle_down(-1, x, 3, 8, 32)) == "shfl_down(A[1], 3, 8)"
    with pytest.raises(FrontendValueError, match="power of two up to 64, got 12"):
        stored(lambda x: T.shfl_xor(x, 1, 12))


def test_votes():
    for name in ("any_sync", "all_sync"):
        assert stored(lambda x: getattr(T, name)(x > 0)) == f"{name}(A[1] > 0)"
        assert stored(lambda x: getattr(T, name)(0xFFFFFFFF, x > 0)) == f"{name}(A[1] > 0)"
    assert "ballot_sync(A[1] > 0)" in stored(lambda x: T.ballot(x > 0))
    assert "ballot_sync(A[1] > 0)" in stored(lambda x: T.ballot_sync(x > 0, 0xFFFFFFFF))
    assert "activemask()" in stored(lambda x: T.activemask())
    assert "match_any_sync(A[1])" in stored(lambda x: T.match_any_sync(x))
    assert "match_all_sync(A[1])" in stored(lambda x: T.match_all_sync(-1, x))
    for name in ("syncthreads_count", "syncthreads_and", "syncthreads_or"):
        assert stored(lambda x: getattr(T, name)(x)) == f"{name}(A[1] != 0)"


def test_who_am_i():
    assert stored(lambda x: T.get_lane_idx()) == "tx % 32"
    assert stored(lambda x: T.get_warp_idx(), threads=(16, 8)) == "(ty * 16 + tx) // 32"
    assert stored(lambda x: T.get_warp_idx_sync()) == "tx // 32"
    assert stored(lambda x: T.get_warp_group_idx()) == "tx // 128"
    assert stored(lambda x: T.shuffle_elect(64), dtype="bool") == "tx % 64 == 0"
    assert stored(lambda x: T.shuffle_elect(), dtype="bool") == "tx == 0"


def test_reduction_across_threads():
    def f(A):
        with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0):
            tx = T.get_thread_binding(0)
            T.tvm_thread_allreduce(T.uint32(1), A[tx], True, A[0], tx, dtype="handle")

    assert emitted(f, threads=(4, 2), A="float32[4]") == [
        "alloc allreduce: shared float32[8]",
        "allreduce[ty * 4 + tx] = A[tx]",
        "@barrier()",
        "A[0] = 0.0",
        "for r0: int32 in range(0, 4, 1) serial:",
        "  A[0] = A[0] + allreduce[ty * 4 + r0]",
        "@barrier()",
    ]


def test_reduction_across_threads_refuses():
    with pytest.raises(FrontendTypeError, match="does not know how to combine"):
        emitted(lambda A: T.tvm_thread_allreduce(1, A[0], True, A[0], 0), A="float32[4]")
    with pytest.raises(FrontendTypeError, match="a function of two values and a list"):
        T.comm_reducer(lambda x, y: x, [])


# Externs, printing, checks ------------------------------------------------------------------


def test_extern_calls():
    def f(A, S, F):
        T.evaluate(T.call_extern("handle", "f", A, A[1, 2], S[0:8, 4:8], "text", 3, 2.5))
        A[0, 0] = T.call_pure_extern("float32", "g", A[0, 1])

    assert on(f) == [
        'eval extern[handle] f(&rw A[0, 0], A[1, 2], &rw S[0, 4], "text", 3, 2.5)',
        "A[0, 0] = extern[float32] g(A[0, 1])",
    ]
    with pytest.raises(FrontendValueError, match="is not the name of a C function"):
        on(lambda A, S, F: T.call_extern("f", "not a name", A))


def test_intrinsics_by_name():
    assert stored(lambda x: T.call_intrin("float32", "tir.exp", x), dtype="float32") == "exp(A[1])"
    with pytest.raises(UnsupportedOnTarget, match=r"there is no intrinsic 'tir\.nonsense'"):
        stored(lambda x: T.call_intrin("float32", "tir.nonsense", x))


def test_print():
    assert on(lambda A, S, F: T.print(F, msg="tile")) == [
        '@print(message="tile", source=F[0:8, 0:8])'
    ]
    assert on(lambda A, S, F: T.print(A[0, 1] + 1)) == [
        '@print(message="", values=[A[0, 1] + 1.0])'
    ]
    assert on(lambda A, S, F: T.print(msg="here")) == ['@print(message="here")']
    assert on(lambda A, S, F: T.print("here")) == ['@print(message="here")']
    with pytest.raises(FrontendTypeError, match=r"the message of T\.print is a string"):
        on(lambda A, S, F: T.print(F, 3))


@pytest.mark.parametrize("value", [0, 2.5, True, None])
def test_numbers_and_nothing_have_no_effect(value):
    assert on(lambda A, S, F: T.evaluate(value)) == []


def test_print_in_a_parallel_loop():
    @T.prim_func
    def f(A: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                T.print(A[i], "value")

    assert "printf(" in f.script()


def test_checks():
    assert emitted(lambda n: T.device_assert(n > 0, "positive"), n="int32") == [
        'assert n > 0, "positive"'
    ]
    assert emitted(lambda n: T.assume(n % 8 == 0), n="int32") == ['assume n % 8 == 0, "n % 8 == 0"']
    assert emitted(lambda n: T.assume(True), n="int32") == ["pass"]
    with pytest.raises(TraceAssertionError, match="too small"):
        emitted(lambda n: T.device_assert(1 > 2, "too small"), n="int32")


# GPU instructions ---------------------------------------------------------------------------


def test_gpu_instructions_take_tiles_barriers_and_settings():
    def f(A, S, F):
        bar = T.alloc_barrier([128, 128])
        T.mbarrier_wait_parity(bar[1], 0)
        T.barrier_arrive(bar[0])
        T.tma_gather4(A[0:8, 0:8], F, 0, 1, barrier=bar[0], swizzle=32)

    assert on(f)[-3:] == [
        "eval mbarrier_wait_parity(&rw barrier[1], 0)",
        "eval mbarrier_arrive(&rw barrier[0])",
        '@gpu(name="tma_gather4", regions=[A[0:8, 0:8], F[0:8, 0:8], barrier[0]], '
        'values=[0, 1], settings=["swizzle=32"])',
    ]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda A, S: T.tma_store_arrive(), "tma_store_arrive"),
        (lambda A, S: T.fence_proxy_async(), "fence_proxy_async"),
        (lambda A, S: T.cast(A[0, 0], "bfloat16", round="rs", rbits=1), "cast_rs"),
    ],
)
def test_other_machines_refuse_them_by_name(call, name):
    def f(A, S, F):
        value = call(A, S)
        if value is not None:
            A[0, 0] = value

    kernel = trace(f, **ABS)
    with pytest.raises(UnsupportedOnTarget) as caught:
        refuse_gpu_only(kernel, Target("cpu"))
    assert caught.value.message == f"T.{name} is an instruction of GPUs; cpu does not have it"


def test_other_machines_accept_everything_else():
    kernel = trace(lambda A, S, F: T.clear(F), **ABS)
    assert refuse_gpu_only(kernel, Target("cpu")) is kernel
