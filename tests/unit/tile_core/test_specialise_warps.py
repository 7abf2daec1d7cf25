"""Which launches get threads of their own for copies, and what these and the others run."""

from __future__ import annotations

from typing import Any

import pytest

import tile_api.language as T
from support.remarked import remarked
from support.specialised import done, operators, product, refusal, roles
from tile_core.ir.expr import Load
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Launch, OnThreads
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.copy import Copy
from tile_core.ops.mbarrier import BarrierInit, SetRegisters
from tile_core.passes.register_estimate import blocks_together
from tile_core.passes.specialise_warps import specialise_warps
from tile_cuda.machine import machine


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
        (256, 256, [(24, False), (240, True)]),
        (384, 192, [(32, False), (160, True)]),
        (384, 256, [(32, False), (160, True)]),  # 154 for the sums and what else there is
        (256, 128, [(24, False), (240, True)]),
        (128, 128, [(24, False), (232, True)]),  # two blocks share a multiprocessor
        (64, 64, []),
    ],
)
def test_registers_go_to_those_who_need_them(
    threads: int, columns: int, registers: list[Any]
) -> None:
    """All that whole warp groups hand over fits into the registers of a multiprocessor."""
    stages = 2 if threads == 128 else 4
    made = done(product(threads=threads, columns=columns, stages=stages))
    found = [(s.count, s.is_increase) for s in operators(made.kernel.body, SetRegisters)]
    assert found == registers
    producer, _ = roles(made)
    assert producer.count == (128 if registers else 32)
    if registers:
        assert 128 * registers[0][0] + threads * registers[1][0] <= 65536


def test_blocks_that_run_at_once_are_not_given_up() -> None:
    """With 168 registers for each thread, as much as two blocks have, 128 columns at a time."""
    made = done(product(columns=128, stages=2))
    assert [n.message for n in made.notes] == [
        "registers are not reallocated: 2 blocks run at once if each thread keeps what it begins "
        "with"
    ]
    producer, _ = roles(made)
    assert producer.count == 32
    assert not operators(made.kernel.body, SetRegisters)


def sums_of_tiles(threads: int, *, stages: int = 2, blocks: int | None = None) -> Any:
    """Return sums of tiles of 16 KiB, for so many blocks on a multiprocessor."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 512), "float16"), C: T.Tensor((128, 64), "float16")):
        with T.Kernel(1, threads=threads) as bx:
            if blocks is not None:
                T.annotate_min_blocks_per_sm(blocks)
            A_s = T.alloc_shared((128, 64), "float16")
            total = T.alloc_fragment((128, 64), "float16")
            T.clear(total)
            for k in T.Pipelined(8, num_stages=stages):
                T.copy(A[0, k * 64], A_s)
                for i, j in T.Parallel(128, 64):
                    total[i, j] += A_s[i, j]
            T.copy(total, C)

    return kernel


@pytest.mark.parametrize(
    ("threads", "wish", "registers"),
    [
        (128, {"stages": 8}, (1, [40, 240])),
        (128, {"stages": 6}, (2, [24, 232])),
        (128, {"stages": 4}, (3, [24, 136])),
        (256, {"stages": 6}, (2, [32, 104])),
        (128, {"blocks": 2}, (2, [24, 232])),
        (256, {"blocks": 2}, (2, [32, 104])),
        (256, {"blocks": 16}, (16, [])),
    ],
)
def test_a_block_begins_with_its_share(
    threads: int, wish: dict[str, int], registers: tuple[int, list[int]]
) -> None:
    """As many blocks as there is shared memory for, or as the program wishes."""
    made = done(sums_of_tiles(threads, **wish))
    (launch,) = (n for n in walk(made.kernel.body) if isinstance(n, Launch))
    found = [s.count for s in operators(made.kernel.body, SetRegisters)]
    assert (blocks_together(launch) or 1, found) == registers


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
    made = remarked(specialise_warps, kernel, machine("sm_80"))
    assert made.kernel is kernel
    assert made.notes == ()


def test_loops_that_ask_for_no_overlap_are_left_alone() -> None:
    made = done(product(stages=1))
    assert [note.message for note in made.notes] == [
        "no producer warps: no loop asks for two stages or more"
    ]
    assert not operators(made.kernel.body, OnThreads)


def test_launches_that_fill_no_tiles_have_nothing_to_tell() -> None:
    @T.prim_func
    def add(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as b:
            for i in T.Parallel(128):
                B[b * 128 + i] = A[b * 128 + i] + 1.0

    assert done(add).notes == ()


def test_unknown_row_starts_are_a_reason() -> None:
    assert refusal(product(depth=T.dynamic("n"))) == (
        "no producer warps: 'A_s' cannot be copied in bulk: rows of 'A' are not "
        "known to begin at multiples of 16 bytes"
    )


@pytest.mark.parametrize(
    ("columns", "wishes", "why"),
    [
        (516, {}, "rows of 'A' are not known to begin at multiples of 16 bytes"),
        (512, {"disable_tma": True}, "the program asks for another way"),
    ],
)
def test_what_the_engine_must_leave_is_begun_by_warps(
    columns: int, wishes: dict[str, Any], why: str
) -> None:
    """Odd rows go in pieces of 8 bytes; a wish against the engine is none against warps."""
    made = done(product(depth=columns, **wishes))
    assert [n.message for n in made.notes] == [f"'A_s' is copied by producer warps: {why}"]
    producer, consumer = roles(made)
    assert [c.dst.buffer.name for c in operators(producer, BulkCopy)] == ["B_s"]
    begun = operators(producer, Copy)
    assert {(c.dst.buffer.name, c.is_async) for c in begun} == {("A_s", True)}
    assert len(begun) == 3
    assert [c.dst.buffer.name for c in operators(consumer, Copy)] == ["C"]


def test_rows_of_single_elements_are_a_reason() -> None:
    assert refusal(product(depth=515)) == (
        "no producer warps: 'A_s' cannot be copied in bulk: rows of 'A' are not "
        "known to begin at multiples of 16 bytes"
    )


def test_threads_that_are_named_are_a_reason() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 512), "float16"), C: T.Tensor((128,), "float16")):
        with T.Kernel(1, threads=128) as bx:
            tx = T.get_thread_binding()
            A_s = T.alloc_shared((128, 64), "float16")
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                C[tx] += A_s[tx, 0]

    assert refusal(kernel) == "no producer warps: the program names its threads"


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
        "no producer warps: where copies read depends on 'next_s', which the block computes"
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
        "no producer warps: 'A_s' is read outside of the loop or branch that fills it"
    )


def test_tensors_that_the_kernel_writes_stay() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 512), "float16")):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            for k in T.Pipelined(7, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                T.copy(A_s, A[0, k * 64 + 64])

    assert refusal(kernel) == ("no producer warps: the kernel writes 'A' as well")


def test_versions_that_begin_between_places_of_the_engine_are_a_reason() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 8), "int32"), C: T.Tensor((4, 4), "int32")):
        with T.Kernel(1, threads=32) as bx:
            A_s = T.alloc_shared((4, 4), "int32")
            total = T.alloc_fragment((4, 4), "int32")
            T.clear(total)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[k * 4, 0], A_s)
                for i, j in T.Parallel(4, 4):
                    total[i, j] = total[i, j] * 2 + A_s[i, j]
            T.copy(total, C)

    assert refusal(kernel) == (
        "no producer warps: parts of 64 bytes do not begin at multiples of 128"
    )
