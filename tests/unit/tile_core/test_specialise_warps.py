"""Which launches get threads of their own for copies, and what these and the others run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tile_api.language as T
from tile_core.ir.buffer import Scope
from tile_core.ir.effects import storages_written
from tile_core.ir.expr import Load
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Launch, OnThreads
from tile_core.ir.verify import verify
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.cluster import ClusterSync
from tile_core.ops.copy import Copy
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, SetRegisters
from tile_core.passes.specialise_warps import Specialised, specialise_warps
from tile_cuda.machine import machine

HOPPER = machine("sm_90a")


def product(
    *, threads: int = 256, stages: int = 4, depth: Any = 512, columns: int = 256, **wishes: Any
) -> Any:
    """Return a matrix product with tiles of 128 rows and so many columns, 64 steps deep."""
    rows = 384 if threads == 384 else 256
    height = 192 if threads == 384 else 128

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, depth), "float16"),
        B: T.Tensor((depth, 512), "float16"),
        C: T.Tensor((rows, 512), "float16"),
    ):
        with T.Kernel(2, T.ceildiv(rows, height), threads=threads) as (bx, by):
            A_s = T.alloc_shared((height, 64), "float16")
            B_s = T.alloc_shared((64, columns), "float16")
            sums = T.alloc_fragment((height, columns), "float32")
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(depth, 64), num_stages=stages):
                T.copy(A[by * height, k * 64], A_s, **wishes)
                T.copy(B[k * 64, bx * columns], B_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C[by * height, bx * columns])

    return kernel


def done(function: Any) -> Specialised:
    """Return what becomes of a kernel; its invariants hold."""
    made = specialise_warps(function.kernel, HOPPER)
    verify(made.kernel)
    return made


def refusal(function: Any) -> str:
    """Return why a launch stays as it is."""
    made = done(function)
    assert made.kernel is function.kernel
    (note,) = made.notes
    return note.text


def roles(made: Specialised) -> tuple[OnThreads, OnThreads]:
    """Return what producers and what consumers run."""
    launch = next(n for n in walk(made.kernel.body) if isinstance(n, Launch))
    producer, consumer = (s for s in launch.body.body if isinstance(s, OnThreads))  # type: ignore[union-attr]
    return producer, consumer


def operators(stmt: Any, kind: type) -> list[Any]:
    return [n for n in walk(stmt) if isinstance(n, kind)]


def test_a_product_is_split() -> None:
    """Producers copy in bulk and do nothing else; consumers copy nothing in."""
    made = done(product())
    producer, consumer = roles(made)
    assert (producer.first, producer.count) == (256, 128)
    assert (consumer.first, consumer.count) == (0, 256)
    assert [c.dst.buffer.name for c in operators(producer, BulkCopy)] == ["A_s", "B_s"]
    assert not operators(producer, Copy)
    assert [c.dst.buffer.name for c in operators(consumer, Copy)] == ["C"]
    counts = {i.barriers.name: i.counts for i in operators(made.kernel.body, BarrierInit)}
    assert counts == {"A_s_full": (1,) * 4, "A_s_empty": (8,) * 4}


def test_the_producer_reads_as_one_expects() -> None:
    text = print_kernel(done(product()).kernel)
    assert (
        "          for k: int32 in range(0, 8, 1) serial:\n"
        "            @barrier_wait(barrier=A_s_empty[A_s_filled_slot[0]], "
        "parity=A_s_filled_phase[0] ^ 1)\n"
        "            @barrier_arrive(barrier=A_s_full[A_s_filled_slot[0]], nbytes=49152)\n"
    ) in text


@pytest.mark.parametrize(
    ("threads", "columns", "registers"),
    [
        (256, 256, [(40, False), (232, True)]),
        (384, 192, [(32, False), (152, True)]),
        (256, 128, []),  # 128 registers wanted of 170: everybody has them
        (128, 128, []),  # 192 wanted of 255
        (64, 64, []),
    ],
)
def test_registers_go_to_those_who_need_them(
    threads: int, columns: int, registers: list[Any]
) -> None:
    """All that whole warp groups hand over fits into the registers of a multiprocessor."""
    made = done(product(threads=threads, columns=columns))
    found = [(s.count, s.is_increase) for s in operators(made.kernel.body, SetRegisters)]
    assert found == registers
    producer, _ = roles(made)
    assert producer.count == (128 if registers else 32)
    if registers:
        assert 128 * registers[0][0] + threads * registers[1][0] <= 65536


def test_wishes_for_registers_are_followed() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((256, 512), "float16"), C: T.Tensor((256, 256), "float32")):
        with T.Kernel(1, threads=256) as bx:
            T.annotate_producer_reg_dealloc(32)
            T.set_max_nreg(200, True)
            A_s = T.alloc_shared((256, 256), "float16")
            total = T.alloc_fragment((256, 256), "float32")
            T.clear(total)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 256], A_s)
                for i, j in T.Parallel(256, 256):
                    total[i, j] += A_s[i, j]
            T.copy(total, C)

    found = [s.count for s in operators(done(kernel).kernel.body, SetRegisters)]
    assert found == [32, 200]


def test_machines_without_the_engine_are_left_alone() -> None:
    kernel = product().kernel
    made = specialise_warps(kernel, machine("sm_80"))
    assert made.kernel is kernel
    assert made.notes == ()


def test_loops_that_ask_for_no_overlap_are_left_alone() -> None:
    made = done(product(stages=1))
    assert made.notes == ()
    assert not operators(made.kernel.body, OnThreads)


def test_unknown_row_starts_are_a_reason() -> None:
    assert refusal(product(depth=T.dynamic("n"))) == (
        "no threads of their own for copies: 'A_s' cannot be copied in bulk: rows of 'A' are not "
        "known to begin at multiples of 16 bytes"
    )


def test_odd_rows_are_a_reason() -> None:
    assert refusal(product(depth=516)) == (
        "no threads of their own for copies: 'A_s' cannot be copied in bulk: rows of 'A' are not "
        "known to begin at multiples of 16 bytes"
    )


def test_a_wish_against_it_is_a_reason() -> None:
    assert refusal(product(disable_tma=True)) == (
        "no threads of their own for copies: 'A_s' cannot be copied in bulk: the program asks for "
        "another way"
    )


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
    """Scales of rows are 256 bytes beside 16 KiB. No more warps than versions: see `Filler`."""
    made = done(rows_scaled(stages=stages, computed=computed))
    assert made.notes == ()
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
    """An instruction with 128 sums for a thread needs 154 registers; 512 threads have 128 each."""
    assert refusal(product(threads=384)) == (
        "no threads of their own for copies: 512 threads lack registers for products of 256 columns"
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
    assert (producer.first, producer.count) == (128, 32)
    assert "scale_s" in [c.dst.buffer.name for c in operators(consumer, Copy)]
    (note,) = made.notes
    assert note.text == (
        "'scale_s' is copied by those who use it: rows of 3 elements are no multiple of 16 bytes"
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
    producer, _ = roles(specialise_warps(kernel, room))
    assert producer.count == 128
    room = replace(HOPPER, shared_bytes=tiles + 3 * 256 + 1024)
    producer, _ = roles(specialise_warps(kernel, room))
    assert producer.count == 32


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


def test_threads_that_are_named_are_a_reason() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 512), "float16"), C: T.Tensor((128,), "float16")):
        with T.Kernel(1, threads=128) as bx:
            tx = T.get_thread_binding()
            A_s = T.alloc_shared((128, 64), "float16")
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                C[tx] += A_s[tx, 0]

    assert refusal(kernel) == "no threads of their own for copies: the program names its threads"


def test_places_that_the_block_computes_are_a_reason() -> None:
    """What to copy next is only known to those who compute it."""

    @T.prim_func
    def kernel(
        A: T.Tensor((4096, 64), "float16"),
        N: T.Tensor((64,), "int32"),
        C: T.Tensor((128, 64), "float16"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            next_s = T.alloc_shared((64,), "int32")
            total = T.alloc_fragment((128, 64), "float16")
            for i in T.Parallel(64):
                next_s[i] = N[i] * 2
            T.clear(total)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[next_s[k], 0], A_s)
                for i, j in T.Parallel(128, 64):
                    total[i, j] += A_s[i, j]
            T.copy(total, C)

    assert refusal(kernel) == (
        "no threads of their own for copies: where copies read depends on 'next_s', which the "
        "block computes"
    )


def test_places_in_tensors_are_found_by_the_producer() -> None:
    """A table of pages is read by whoever copies."""

    @T.prim_func
    def kernel(
        A: T.Tensor((4096, 64), "float16"),
        pages: T.Tensor((8,), "int32"),
        C: T.Tensor((128, 64), "float16"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            total = T.alloc_fragment((128, 64), "float16")
            T.clear(total)
            for k in T.Pipelined(8, num_stages=2):
                page = pages[k]
                T.copy(A[page * 128, 0], A_s)
                for i, j in T.Parallel(128, 64):
                    total[i, j] += A_s[i, j]
            T.copy(total, C)

    made = done(kernel)
    producer, consumer = roles(made)
    assert len(operators(producer, BulkCopy)) == 1
    loads = [n for n in walk(producer) if isinstance(n, Load)]
    assert "pages" in [n.buffer.name for n in loads]


def test_a_guarded_round_is_guarded_on_both_sides() -> None:
    """Both sides skip the same rounds, so rings stay in step."""

    @T.prim_func
    def kernel(
        A: T.Tensor((1024, 64), "float16"),
        mask: T.Tensor((8,), "int32"),
        C: T.Tensor((128, 64), "float16"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            total = T.alloc_fragment((128, 64), "float16")
            T.clear(total)
            for k in T.Pipelined(8, num_stages=3):
                if mask[k] != 0:
                    T.copy(A[k * 128, 0], A_s)
                    for i, j in T.Parallel(128, 64):
                        total[i, j] += A_s[i, j]
            T.copy(total, C)

    producer, consumer = roles(done(kernel))
    text = print_kernel(done(kernel).kernel)
    assert text.count("mask[k") == 2
    assert len(operators(producer, BulkCopy)) == 1


def test_tiles_that_are_used_after_the_loop_stay() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 512), "float16"), C: T.Tensor((128, 64), "float16")):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                for i, j in T.Parallel(128, 64):
                    C[i, j] += A_s[i, j]
            T.copy(A_s, C)

    assert refusal(kernel) == (
        "no threads of their own for copies: 'A_s' is read outside of the loop or branch that "
        "fills it"
    )


def test_tensors_that_the_kernel_writes_stay() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 512), "float16")):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            for k in T.Pipelined(7, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                T.copy(A_s, A[0, k * 64 + 64])

    assert refusal(kernel) == ("no threads of their own for copies: the kernel writes 'A' as well")


def clustered(cluster: tuple[int, ...], *, rounds_by_column: bool = False) -> Any:
    """Return a matrix product in clusters of blocks."""

    @T.prim_func
    def kernel(
        A: T.Tensor((512, 512), "float16"),
        B: T.Tensor((512, 512), "float16"),
        C: T.Tensor((512, 512), "float16"),
    ):
        with T.Kernel(4, 4, threads=128, cluster_dims=cluster) as (bx, by):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            sums = T.alloc_fragment((128, 128), "float32")
            T.clear(sums)
            for k in T.Pipelined(bx + 1 if rounds_by_column else 8, num_stages=2):
                T.copy(A[by * 128, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C[by * 128, bx * 128])

    return kernel


@pytest.mark.parametrize(
    ("cluster", "shared", "arrivals"),
    [
        ((2, 1, 1), {"A_s": (1, 64, 64)}, 8),
        ((1, 2, 1), {"B_s": (1, 32, 128)}, 8),
        ((4, 1, 1), {"A_s": (1, 32, 64)}, 16),
        ((2, 2, 1), {"A_s": (1, 64, 64), "B_s": (1, 32, 128)}, 16),
    ],
)
def test_blocks_of_a_cluster_copy_a_part_for_all_that_need_it(
    cluster: tuple[int, ...], shared: dict[str, tuple[int, ...]], arrivals: int
) -> None:
    """Blocks beside each other need the same rows of A, those below each other the same of B."""
    made = done(clustered(cluster))
    producer, _ = roles(made)
    parts = {c.dst.buffer.name: c for c in operators(producer, BulkCopy)}
    assert {
        name: c.dst.static_extents for name, c in parts.items() if c.multicast is not None
    } == shared
    (empty,) = [
        i for i in operators(made.kernel.body, BarrierInit) if i.barriers.name == "A_s_empty"
    ]
    assert empty.counts == (arrivals, arrivals)
    assert len(operators(made.kernel.body, ClusterSync)) == 2
    (ahead,) = {a.nbytes for a in operators(producer, BarrierArrive)}
    assert ahead == 2 * (128 * 64 + 64 * 128)  # what all parts bring together


def test_blocks_that_run_other_rounds_share_nothing() -> None:
    made = done(clustered((2, 1, 1), rounds_by_column=True))
    producer, _ = roles(made)
    assert [c.multicast for c in operators(producer, BulkCopy)] == [None, None]
    assert not operators(made.kernel.body, ClusterSync)


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
        "no threads of their own for copies: 'B_s' cannot be copied in bulk: rows of 'B' are not "
        "known to begin at multiples of 16 bytes"
    )
