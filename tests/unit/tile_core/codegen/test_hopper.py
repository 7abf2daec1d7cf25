"""Kernels with tensor maps, clusters and asynchronous products as C++."""

from dataclasses import replace
from textwrap import dedent

from support.device_programs import (
    TID,
    at,
    do,
    flat,
    function,
    load,
    place,
    program,
    registers,
    scalar,
    shared,
    variable,
)
from tile_core.codegen import print_program
from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import as_expr
from tile_core.ir.device import device
from tile_core.ir.device_calls import ASYNC_CALLS, DEVICE_CALLS
from tile_core.ir.effects import effects_of
from tile_core.ir.expr import Var
from tile_core.ir.intrinsics import Effect
from tile_core.ir.stmt import Alloc
from tile_core.simt.program import TensorMap

M, K = scalar("M"), scalar("K")
A = flat("A", 0, "float16")
A_MAP = Var("A_map", dtype_of("handle"))
OF_A = TensorMap(
    "A_map", A, dtype_of("float16"), as_expr(0), (K, M), (K * 2,), (64, 128), swizzle=128
)


def product():
    """One copy and one product of a program that nobody would run."""
    tile, bars = shared("A_shared", 8192, "float16"), shared("full", 4, "uint64")
    C, stage = registers("C_local", 64), variable("stage")
    operand = device("async_mma_operand", 128, 16, 1024, at(tile, 0), load(stage) * 1024 + 2)
    body = (
        Alloc(C), Alloc(stage),
        do("mbarrier_arrive_expect_tx", at(bars, load(stage), "rw"), 16384, line=11),
        do("tensor_load", 2, at(tile, 0, "w"), A_MAP, at(bars, load(stage), "rw"), 64, TID,
           line=11),
        do("mbarrier_wait", at(bars, 2, "rw"), 1, line=12),
        do("async_mma_ss", 128, 0, 1, at(C, 0, "rw"), operand, operand, line=12),
        do("async_mma_wait", 0, line=12),
    )  # fmt: skip
    whole = function((A_MAP, K), *body, name="f", tiles={bars: 0, tile: 1024}, span=place(9))
    return replace(whole, arguments=(OF_A, K))


def test_a_copy_and_a_product():
    text = print_program(program(product())).text
    assert text.split("\n", 3)[3] == dedent(
        """\
        TILE_KERNEL(128, 1) void f(TILE_TENSOR_MAP(A_map), int K) {
          const int tid = threadIdx.x;
          tile::sptr<tile::u64> full = tile::smem<tile::u64>(0, 4);
          tile::sptr<half_t> A_shared = tile::smem<half_t>(1024, 8192);
          tile::frag<float, 64> C_local;
          int stage;
          tile::mbarrier_arrive_expect_tx(full + stage, 16384);  // kernel.py:11
          tile::tma_load<2>(A_shared, A_map, full + stage, 64, tid);
          tile::mbarrier_wait(full + 2, 1);  // kernel.py:12
          tile::wgmma_ss<128, 0, 1>(C_local, tile::wgmma_operand<128, 16, 1024>(A_shared, stage * 1024 + 2), tile::wgmma_operand<128, 16, 1024>(A_shared, stage * 1024 + 2));
          tile::wgmma_wait<0>();
        }
        TILE_EXPORT(f)
        """  # noqa: E501
    )


def test_a_cluster_has_three_extents():
    one = product()
    launch = replace(one.launch, cluster=(2,))
    text = print_program(program(replace(one, launch=launch))).text
    assert "TILE_KERNEL(128, 1) TILE_CLUSTER(2, 1, 1) void f(TILE_TENSOR_MAP(A_map)" in text


def test_nothing_moves_across_asynchronous_work():
    starts_or_awaits = (
        *("mbarrier", "tensor", "bulk", "fence", "async_mma", "async_copy"),
        *("grid_wait", "cluster_wait"),
    )
    for call in ASYNC_CALLS:
        assert DEVICE_CALLS[call.name] is call
        if call.name.startswith(starts_or_awaits) and call.name != "async_mma_operand":
            assert call.effect & Effect.STATE, call.name
    assert effects_of(product().launch.body) & Effect.WARP
