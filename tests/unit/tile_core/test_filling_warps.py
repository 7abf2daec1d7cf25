"""Tiles that the engine cannot fill are filled by warps beside it, or by those who use them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tile_api.language as T
from support.remarked import remarked
from support.specialised import HOPPER, done, operators, product, refusal, roles
from tile_core.ir.buffer import Scope
from tile_core.ir.effects import storages_written
from tile_core.ir.stmt import OnThreads
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.copy import Copy
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, SetRegisters
from tile_core.passes.specialise_warps import specialise_warps


def rows_scaled(rows: int = 128, *, stages: int = 2, width: int = 1, computed: bool = False) -> Any:
    """Return sums of tiles of 128 rows, each times scales that no engine can copy."""

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, 512), "float16"),
        scales: T.Tensor((rows, 8 * width + 1), "float16"),
        factor: T.Tensor((8,), "float16"),
        C: T.Tensor((rows, 64), "float16"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((rows, 64), "float16")
            scale_s = T.alloc_shared((rows, width), "float16")
            total = T.alloc_fragment((rows, 64), "float16")
            T.clear(total)
            for k in T.Pipelined(8, num_stages=stages):
                T.copy(A[0, k * 64], A_s)
                if computed:
                    for i, j in T.Parallel(rows, width):
                        scale_s[i, j] = scales[i, k * width + j] * factor[k]
                else:
                    T.copy(scales[0:rows, k * width : (k + 1) * width], scale_s)
                for i, j in T.Parallel(rows, 64):
                    total[i, j] += A_s[i, j] * scale_s[i, j % width]
            T.copy(total, C)

    return kernel


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(("stages", "warps"), [(2, 2), (3, 3), (5, 3)])
def test_warps_take_turns_to_fill_what_the_engine_cannot(
    stages: int, warps: int, computed: bool
) -> None:
    """Scales of rows are 256 bytes beside 16 KiB. No more warps than versions: see `CopyWarps`."""
    made = done(rows_scaled(stages=stages, computed=computed))
    why = "'scale_s' is copied by producer warps: rows of the tile are not rows of the tensor"
    assert [note.message for note in made.notes] == ([] if computed else [why])
    producer, consumer = roles(made)
    assert (producer.first, producer.count) == (128, 128)
    ranges = [s for s in operators(producer, OnThreads) if s is not producer]
    expected = [(0, 1), *((32 * k, 32) for k in range(1, warps + 1))]
    assert [(s.first, s.count) for s in ranges] == expected
    assert [c.dst.buffer.name for c in operators(ranges[0], BulkCopy)] == ["A_s"]
    for warp in ranges[1:]:
        assert {b.name for b in storages_written(warp) if b.scope is Scope.SHARED} == {"scale_s"}
        (arrive,) = operators(warp, BarrierArrive)
        assert (arrive.barrier.buffer.name, arrive.nbytes) == ("scale_s_full", 0)
    assert {b.name for b in storages_written(consumer)}.isdisjoint({"A_s", "scale_s"})
    counts = {i.barriers.name: i.counts for i in operators(made.kernel.body, BarrierInit)}
    assert counts["scale_s_full"] == (1,) * stages
    assert counts["scale_s_empty"] == (4,) * stages


def test_products_that_no_register_is_left_for_are_a_reason() -> None:
    """128 sums of a thread need 154 registers; of 640 threads, none has them."""
    assert refusal(product(threads=512, columns=512)) == (
        "no producer warps: 640 threads lack registers for MMAs of 512 columns"
    )


@pytest.mark.parametrize(("threads", "columns"), [(256, 256), (384, 192)])
def test_warps_that_fill_tiles_have_registers_for_it(threads: int, columns: int) -> None:
    """Producers that only start copies give more away, where there are three groups."""
    height = threads // 2

    @T.prim_func
    def kernel(
        A: T.Tensor((height, 512), "float16"),
        B: T.Tensor((512, columns), "float16"),
        scales: T.Tensor((height, 9), "float32"),
        C: T.Tensor((height, columns), "float16"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            A_s = T.alloc_shared((height, 64), "float16")
            B_s = T.alloc_shared((64, columns), "float16")
            scale_s = T.alloc_shared((height,), "float32")
            sums = T.alloc_fragment((height, columns), "float32")
            T.clear(sums)
            for k in T.Pipelined(8, num_stages=3):
                T.copy(A[0, k * 64], A_s)
                T.copy(B[k * 64, 0], B_s)
                for i in T.Parallel(height):
                    scale_s[i] = scales[i, k]
                T.gemm(A_s, B_s, sums)
                for i, j in T.Parallel(height, columns):
                    sums[i, j] *= scale_s[i]
            T.copy(sums, C)

    few, many = (s.count for s in operators(done(kernel).kernel.body, SetRegisters))
    assert few == 40
    assert 128 * few + threads * many <= 65536


def test_what_is_too_much_for_warps_stays_with_the_consumers() -> None:
    """More than 256 elements a round: a warp has no registers for so many loads."""
    made = done(rows_scaled(width=3))
    producer, consumer = roles(made)
    assert producer.first == 128
    assert len(operators(producer, OnThreads)) == 1 + 1  # itself, and the engine's
    assert "scale_s" in [c.dst.buffer.name for c in operators(consumer, Copy)]
    copied, kept = made.notes
    assert kept.message.startswith("registers are not reallocated: ")
    assert copied.message == (
        "'scale_s' is copied by the threads that use it: rows of 3 elements are no multiple of 16 "
        "bytes"
    )


def test_many_small_tiles_stay_with_the_consumers() -> None:
    """A quarter of what the engine brings is the most that warps bring beside it."""
    producer, _ = roles(done(rows_scaled(8, width=16, computed=True)))
    assert producer.count == 128
    producer, consumer = roles(done(rows_scaled(8, width=17, computed=True)))
    assert producer.count == 32
    assert "scale_s" in {b.name for b in storages_written(consumer)}


def test_warps_fill_nothing_where_shared_memory_is_short() -> None:
    """Versions for them must not be what is too much."""
    kernel = rows_scaled(stages=4, computed=True).kernel
    tiles = 4 * 128 * 64 * 2
    room = replace(HOPPER, shared_bytes=tiles + 4 * 256 + 1024)
    producer, _ = roles(remarked(specialise_warps, kernel, room))
    assert len(operators(producer, OnThreads)) == 1 + 1 + 3
    room = replace(HOPPER, shared_bytes=tiles + 3 * 256 + 1024)
    producer, _ = roles(remarked(specialise_warps, kernel, room))
    assert len(operators(producer, OnThreads)) == 1 + 1


def test_scales_that_depend_on_what_the_block_computes_stay_with_the_consumers() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((128, 512), "float16"),
        scales: T.Tensor((128, 9), "float16"),
        C: T.Tensor((128, 64), "float16"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            scale_s = T.alloc_shared((128,), "float16")
            found = T.alloc_var("float16")
            total = T.alloc_fragment((128, 64), "float16")
            T.clear(total)
            found = C[0, 0]
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                for i in T.Parallel(128):
                    scale_s[i] = scales[i, k] * found
                for i, j in T.Parallel(128, 64):
                    total[i, j] += A_s[i, j] * scale_s[i]
            T.copy(total, C)

    producer, consumer = roles(done(kernel))
    assert producer.count == 32
    assert "scale_s" in {b.name for b in storages_written(consumer)}


def test_copies_that_would_be_too_much_for_warps_keep_their_reason() -> None:
    """Each tile is small; all of them together are half of what is copied."""

    @T.prim_func
    def kernel(
        A: T.Tensor((8, 512), "float16"),
        B: T.Tensor((8, 515), "float16"),
        C: T.Tensor((8, 32), "float16"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((8, 32), "float16")
            B_s = T.alloc_shared((8, 32), "float16")
            total = T.alloc_fragment((8, 32), "float16")
            T.clear(total)
            for k in T.Pipelined(16, num_stages=2):
                T.copy(A[0, k * 32], A_s)
                T.copy(B[0, k * 32], B_s)
                for i, j in T.Parallel(8, 32):
                    total[i, j] += A_s[i, j] * B_s[i, j]
            T.copy(total, C)

    assert refusal(kernel) == (
        "no producer warps: 'B_s' cannot be copied in bulk: rows of 'B' are not "
        "known to begin at multiples of 16 bytes"
    )
