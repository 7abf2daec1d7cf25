"""Explicit thread programs: warps in step, barriers, votes, and the ways they go wrong."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import DataRace, Deadlock, Span, UndefinedOperation, UninitialisedRead
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.build_expr import call
from tile_core.ir.expr import Call
from tile_core.ir.node import walk
from tile_core.ops.control import Barrier
from tile_core.testing.build_ir import (
    alloc,
    call_atomic,
    copy,
    evaluate,
    fill,
    fragment,
    kernel,
    load,
    local,
    loop_while,
    parallel,
    reduce,
    region,
    serial,
    shared,
    store,
    tensor,
    value,
    variable,
    when,
)

THREADS = 70  # not a multiple of the warp


def threads(params, body, *args, grid=1, count=THREADS, **options):
    k = kernel(params, grid, body, threads=count, thread_indices=True)
    interpret(k, args, options=InterpretOptions(**options))


def at(node, line):
    """Give a hand-built node a place in a pretended user's file."""
    object.__setattr__(node, "span", Span("user.py", line, 0, 4))
    return node


def test_block_reduction_through_shared_memory():
    a, b = tensor("A", (2, 64), "int32"), tensor("B", (2,), "int32")
    s, stride = shared("s", (64,), "int32"), variable("stride", "int32")

    def body(bx, tx, ty, tz):
        return [
            alloc(s, stride),
            store(s, tx, load(a, bx, tx)),
            Barrier(),
            store(stride, 0, 32),
            loop_while(
                load(stride, 0) > 0,
                [
                    when(
                        tx < load(stride, 0),
                        store(s, tx, load(s, tx) + load(s, tx + load(stride, 0))),
                    ),
                    Barrier(),
                    store(stride, 0, load(stride, 0) // 2),
                ],
            ),
            when(tx.__eq__(0), store(b, bx, load(s, 0))),
        ]

    x, out = np.arange(128, dtype=np.int32).reshape(2, 64), np.zeros(2, np.int32)
    threads([a, b], body, x, out, grid=2, count=64)
    np.testing.assert_array_equal(out, x.sum(1))


@pytest.mark.parametrize("count", [1, 2, 3, 64])
def test_threads_take_ways_of_their_own(count):
    a = tensor("A", (count,), "int32")

    def body(bx, tx, ty, tz):
        return [when((tx % 2).__eq__(0), store(a, tx, 5), store(a, tx, tx * 7))]

    out = np.full(count, -1, np.int32)
    threads([a], body, out, count=count)
    assert out.tolist() == [7 * x if x % 2 else 5 for x in range(count)]


def test_thread_indices_in_three_dimensions():
    a = tensor("A", (2, 3, 4), "int32")

    def body(bx, tx, ty, tz):
        return store(a, (tz, ty, tx), tx + 10 * ty + 100 * tz)

    out = np.zeros((2, 3, 4), np.int32)
    threads([a], body, out, count=(4, 3, 2))
    z, y, x = np.indices((2, 3, 4))
    np.testing.assert_array_equal(out, x + 10 * y + 100 * z)


def test_shuffles_and_votes():
    out = tensor("O", (8, 64), "int32")

    def body(bx, tx, ty, tz):
        results = [
            call("shfl_xor", tx, 1, 32),
            call("shfl_down", tx, 3, 8),
            call("shfl_up", tx, 3, 8),
            call("shfl_sync", tx, 5, 16),
            call("warp_reduce_sum", tx),
            call("any_sync", tx.__eq__(40)),
            call("ballot_sync", tx < 2).astype("int32"),
            call("syncthreads_count", tx % 3).astype("int32"),
        ]
        return [store(out, (k, tx), r) for k, r in enumerate(results)]

    got = np.zeros((8, 64), np.int32)
    threads([out], body, got, count=64)
    t = np.arange(64)
    want = [
        t ^ 1,
        np.where(t % 8 + 3 < 8, t + 3, t),
        np.where(t % 8 >= 3, t - 3, t),
        t // 16 * 16 + 5,
        np.where(t < 32, 496, 496 + 32 * 32),
        (t >= 32) * 1,
        (t < 32) * 3,
        np.full(64, np.count_nonzero(t % 3)),
    ]
    np.testing.assert_array_equal(got, want)


def test_private_memory_and_operators_on_it():
    a, b = tensor("A", (THREADS, 4), "int32"), tensor("B", (THREADS,), "int32")
    mine, total = local("mine", (4,), "int32"), local("total", (1,), "int32")

    def body(bx, tx, ty, tz):
        return [
            alloc(mine, total),
            copy(region(a, (tx, 0), (1, 4)), mine),
            reduce("sum", mine, total, 0),
            store(b, tx, load(total, 0)),
        ]

    x = np.arange(THREADS * 4, dtype=np.int32).reshape(THREADS, 4)
    out = np.zeros(THREADS, np.int32)
    threads([a, b], body, x, out)
    np.testing.assert_array_equal(out, x.sum(1))


def test_tile_operators_and_parallel_loops_among_threads():
    a, b = tensor("A", (THREADS,), "int32"), tensor("B", (THREADS,), "int32")
    s, f, n = (
        shared("s", (THREADS,), "int32"),
        fragment("f", (THREADS,), "int32"),
        variable("n", "int32"),
    )

    def body(bx, tx, ty, tz):
        return [
            alloc(s, f, n),
            store(n, 0, 3),
            copy(a, s),
            store(s, tx, load(s, tx) + tx),  # the copy has finished, and the loop waits
            parallel((THREADS,), lambda i: store(f, i, load(s, THREADS - 1 - i) * load(n, 0))),
            copy(f, b),
        ]

    x, out = np.arange(THREADS, dtype=np.int32), np.zeros(THREADS, np.int32)
    threads([a, b], body, x, out)
    np.testing.assert_array_equal(out, 3 * (2 * x)[::-1])


def test_a_tile_operator_needs_one_operand_for_all_threads():
    a = tensor("A", (8,), "int32")
    s = shared("s", (8,), "int32")

    def body(bx, tx, ty, tz):
        return [alloc(s), fill(s, tx)]

    with pytest.raises(
        UndefinedOperation, match="'tx', used in a tile operation, must be the same"
    ):
        threads([a], body, np.zeros(8, np.int32), count=8)


def test_missing_barrier_is_a_race():
    a = tensor("A", (64,), "int32")
    s = shared("s", (64,), "int32")

    def body(bx, tx, ty, tz):
        return [alloc(s), at(store(s, tx, tx), 3), at(store(a, tx, load(s, 63 - tx)), 4)]

    with pytest.raises(
        DataRace, match=r"thread 32 writes s\[32\], which was read by thread 31"
    ) as caught:
        threads([a], body, np.zeros(64, np.int32), count=64)
    assert (caught.value.span.line, caught.value.notes[0].span.line) == (3, 4)


def test_an_element_that_no_thread_writes_is_uninitialised():
    a, s = tensor("A", (64,), "int32"), shared("s", (64,), "int32")

    def body(bx, tx, ty, tz):
        return [
            alloc(s),
            when(tx < 40, store(s, tx, tx)),
            Barrier(),
            at(store(a, tx, load(s, tx)), 6),
        ]

    with pytest.raises(UninitialisedRead, match=r"s\[40\] is read before") as caught:
        threads([a], body, np.zeros(64, np.int32), count=64)
    assert caught.value.span.line == 6
    mine = local("mine", (2,), "int32")

    def private(bx, tx, ty, tz):
        return [alloc(mine), store(a, tx, load(mine, 1))]

    with pytest.raises(UninitialisedRead, match=r"mine\[1\]"):
        threads([a], private, np.zeros(64, np.int32), count=64)


@pytest.mark.parametrize("shift", [1, 40], ids=["in a warp", "between warps"])
def test_write_after_read_is_a_race(shift):
    a, s = tensor("A", (64,), "int32"), shared("s", (64,), "int32")

    def body(bx, tx, ty, tz):
        return [
            alloc(s),
            fill(s, 0),
            store(a, tx, load(s, (tx + shift) % 64)),
            store(s, tx, 1),
        ]

    with pytest.raises(DataRace, match="was read by"):
        threads([a], body, np.zeros(64, np.int32), count=64)


def test_threads_may_write_one_value_alike_but_not_two():
    a, s = tensor("A", (64,), "int32"), shared("s", (1,), "int32")

    def alike(bx, tx, ty, tz):
        return [alloc(s), store(s, 0, 7), store(a, tx, load(s, 0))]

    out = np.zeros(64, np.int32)
    threads([a], alike, out, count=64)
    assert (out == 7).all()
    for what in (lambda t: t, lambda t: t // 32):

        def body(bx, tx, ty, tz):
            return [alloc(s), store(s, 0, what(tx))]

        with pytest.raises(DataRace, match=r"s\[0\]"):
            threads([a], body, out, count=64)

    def only_one(bx, tx, ty, tz):
        return [
            alloc(s),
            fill(s, 0),
            when(tx < 2, store(s, 0, 7)),
            store(a, tx, load(s, 0)),
        ]

    with pytest.raises(DataRace, match="reads s"):
        threads([a], only_one, out, count=64)


def test_atomics_do_not_race_but_mixing_does():
    a = tensor("A", (1,), "int32")

    def add(bx, tx, ty, tz):
        return evaluate(call_atomic("add", a, (0,), tx))

    out = np.zeros(1, np.int32)
    threads([a], add, out, grid=3)
    assert out[0] == 3 * sum(range(THREADS))

    def mixed(bx, tx, ty, tz):
        return [add(bx, tx, ty, tz), when(tx.__eq__(0), store(a, 0, 1))]

    with pytest.raises(DataRace, match="updated atomically"):
        threads([a], mixed, out)


def test_blocks_race_for_global_memory():
    a, b = tensor("A", (4,), "int32"), tensor("B", (4,), "int32")
    k = kernel([a], 4, lambda bx: at(store(a, 0, bx), 9))
    with pytest.raises(
        DataRace, match=r"block 1 writes A\[0\], which was written by block 0"
    ) as caught:
        interpret(k, [np.zeros(4, np.int32)])
    assert caught.value.span.line == caught.value.notes[0].span.line == 9
    crossing = kernel([a, b], 4, lambda bx: [store(a, bx, bx), store(b, bx, load(a, (bx + 1) % 4))])
    with pytest.raises(DataRace, match="blocks run in any order"):
        interpret(crossing, [np.zeros(4, np.int32)] * 2)
    copying = kernel([a, b], 2, lambda bx: [copy(a, b), store(a, bx, bx)])
    with pytest.raises(DataRace):
        interpret(copying, [np.zeros(4, np.int32), np.zeros(4, np.int32)])


def test_order_of_blocks_without_checks():
    a = tensor("A", (1,), "int32")
    k = kernel([a], 4, lambda bx: store(a, 0, bx))
    for order, last in (("forward", 3), ("reverse", 0)):
        out = np.zeros(1, np.int32)
        interpret(k, [out], options=InterpretOptions(check_races=False, block_order=order))
        assert out[0] == last


def test_barriers_that_not_all_threads_reach():
    a = tensor("A", (64,), "int32")

    def in_a_warp(bx, tx, ty, tz):
        return when(tx < 5, at(Barrier(), 2))

    with pytest.raises(Deadlock, match="27 of the 32 threads of warp 0 do not reach it") as caught:
        threads([a], in_a_warp, np.zeros(64, np.int32), count=64)
    assert caught.value.span.line == 2

    def two_warps(bx, tx, ty, tz):
        return when((tx // 32) % 2 < 1, at(Barrier(), 2))

    with pytest.raises(Deadlock, match="1 of 3 warps have finished"):
        threads([a], two_warps, np.zeros(64, np.int32), count=96)

    def apart(bx, tx, ty, tz):
        return when(tx < 32, at(Barrier(), 2), at(Barrier(), 3))

    with pytest.raises(Deadlock, match="different places") as caught:
        threads([a], apart, np.zeros(64, np.int32), count=64)
    assert {caught.value.span.line, caught.value.notes[0].span.line} == {2, 3}

    def shuffle(bx, tx, ty, tz):
        return when(tx < 5, store(a, tx, call("shfl_xor", tx, 1, 32)))

    with pytest.raises(Deadlock, match="waits for all 32 threads of the warp, and 27"):
        threads([a], shuffle, np.zeros(64, np.int32), count=64)


def test_named_barriers_between_producers_and_consumers():
    a, s = tensor("A", (32,), "int32"), shared("s", (32,), "int32")

    def body(bx, tx, ty, tz):
        return [
            alloc(s),
            when(
                tx < 32,
                [
                    store(s, tx, tx * 5),
                    Barrier(number=value(1), count=value(64), arrives_only=True),
                ],
                [Barrier(number=value(1), count=value(64)), store(a, tx - 32, load(s, 63 - tx))],
            ),
        ]

    out = np.zeros(32, np.int32)
    threads([a], body, out, count=64)
    np.testing.assert_array_equal(out, np.arange(32)[::-1] * 5)


def test_waiting_for_a_flag_of_another_warp_or_block():
    flag, a = tensor("F", (1,), "int32"), tensor("A", (4,), "int32")

    def spin():
        return loop_while(call_atomic("load", flag, (0,)).__eq__(0))

    def warps(bx, tx, ty, tz):
        return when(tx < 32, spin(), evaluate(call_atomic("store", flag, (0,), 1)))

    threads([flag], warps, np.zeros(1, np.int32), count=64)

    def blocks(bx):
        first = bx.__eq__(0)
        return when(first, [spin(), store(a, 0, 5)], evaluate(call_atomic("store", flag, (0,), 1)))

    out = np.zeros(4, np.int32)
    interpret(kernel([flag, a], 3, blocks), [np.zeros(1, np.int32), out])
    assert out[0] == 5
    never = kernel([flag], 2, lambda bx: spin())
    with pytest.raises(Deadlock, match="no thread writes what it waits for"):
        interpret(never, [np.zeros(1, np.int32)])


def test_grid_barriers():
    a, b = tensor("A", (4,), "int32"), tensor("B", (4,), "int32")

    def body(bx):
        return [store(a, bx, bx), Barrier("grid"), store(b, bx, load(a, (bx + 1) % 4))]

    out = np.zeros(4, np.int32)
    interpret(kernel([a, b], 4, body), [np.zeros(4, np.int32), out])
    np.testing.assert_array_equal(out, [1, 2, 3, 0])

    def some(bx):
        return when(bx < 2, Barrier("grid"))

    with pytest.raises(Deadlock, match="other blocks have finished"):
        interpret(kernel([a], 4, some), [np.zeros(4, np.int32)])


def test_random_numbers_depend_on_seed_and_sequence_only():
    a = tensor("A", (THREADS, 3), "float32")

    def body(bx, tx, ty, tz):
        draw = Call("rng_rand_float", (), dtype_of("float32"))
        start = Call("rng_init", (value(9), tx, value(0)), dtype_of("int32"))
        return [evaluate(start), serial(3, lambda s: store(a, (tx, s), draw))]

    first, second = (np.zeros((THREADS, 3), np.float32) for _ in range(2))
    threads([a], body, first)
    threads([a], body, second)
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first)) > 0.98 * first.size
    assert ((first > 0) & (first <= 1)).all()
    assert 0.4 < first.mean() < 0.6
    assert any(isinstance(n, Call) for n in walk(kernel([a], 1, body, thread_indices=True)))


@pytest.mark.parametrize("order", ["acquire", "relaxed"])
def test_data_handed_over_by_a_flag(order):
    flag, data, a = (
        tensor("F", (1,), "int32"),
        tensor("D", (1,), "int32"),
        tensor("A", (1,), "int32"),
    )

    def body(bx):
        arrived = call_atomic("load", flag, (0,), order=order)
        give = [store(data, 0, 42), evaluate(call_atomic("store", flag, (0,), 1, order="release"))]
        take = [loop_while(arrived.__eq__(0)), store(a, 0, load(data, 0))]
        return when(bx < 1, take, give)

    k, out = kernel([flag, data, a], 2, body), np.zeros(1, np.int32)
    args = [np.zeros(1, np.int32), np.zeros(1, np.int32), out]
    if order == "acquire":
        interpret(k, args)
        assert out[0] == 42
    else:
        with pytest.raises(DataRace, match=r"block 0 reads D\[0\], which was written by block 1"):
            interpret(k, args)


def test_barriers_of_one_warp():
    a, s = tensor("A", (64,), "int32"), shared("s", (64,), "int32")

    def body(bx, tx, ty, tz):
        swap = [store(s, tx, tx), Barrier("warp"), store(a, tx, load(s, 31 - tx))]
        return [alloc(s), when(tx < 32, swap)]

    out = np.zeros(64, np.int32)
    threads([a], body, out, count=64)
    np.testing.assert_array_equal(out[:32], np.arange(32)[::-1])
