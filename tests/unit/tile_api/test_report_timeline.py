"""Pictures of pipelines: what they show is what the program does."""

from __future__ import annotations

from itertools import pairwise

import pytest

import tile_api.language as T
from support.pipelined_kernels import by_hand, gemm_of, in_step, picture
from tile_api.report.timeline.simulation_state import Meeting, PhaseBarrier


def rounds_of(found, activity, kind):
    """Return begin, end and lane of each round."""
    return {
        bar.number: (bar.start, bar.end, found.lanes[bar.lane].name)
        for bar in found.bars
        if bar.activity == activity and found.lanes[bar.lane].kind == kind
    }


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_each_round_is_copied_before_it_is_used_and_its_tile_is_free_by_then(target):
    found = picture(gemm_of(8, 3), target)
    copies, uses = rounds_of(found, "transfer", "tile"), rounds_of(found, "use", "tile")
    assert sorted(copies) == sorted(uses) == list(range(8))
    for k in range(8):
        assert copies[k][2] == uses[k][2] == f"A_tile, B_tile [{k % 3}]"
        assert copies[k][1] <= uses[k][0]
        if k >= 3:
            assert uses[k - 3][1] <= copies[k][0]
    overlapping = [k for k in range(2, 8) if copies[k][0] < uses[k - 1][1]]
    assert overlapping == list(range(2, 8))
    assert found.notes == ()


def test_producers_have_a_lane_of_their_own():
    found = picture(gemm_of(6, 2), "cuda:sm_90a")
    names = [lane.name for lane in found.lanes]
    assert names[:3] == [
        "consumer: threads 0 to 127",
        "MMAs",
        "producer: threads 128 to 255",
    ]
    begun = [found.lanes[b.lane].name for b in found.bars if "bulk_copy" in b.text and b.lane < 3]
    assert set(begun[:-1]) == {"producer: threads 128 to 255"}
    products = rounds_of(found, "product", "unit")
    assert all(products[k][1] <= products[k + 1][0] for k in range(5))


def test_arrivals_by_hand_let_the_other_role_go_on():
    found = picture(by_hand(6, 2), "cuda:sm_90a")
    copies, uses = rounds_of(found, "transfer", "tile"), rounds_of(found, "use", "tile")
    assert sorted(copies) == sorted(uses) == list(range(6))
    assert all(copies[k][1] <= uses[k][0] for k in range(6))
    assert all(uses[k][1] <= copies[k + 2][0] for k in range(4))


def test_roles_meet_at_barriers_with_numbers():
    found = picture(in_step(4), "cuda:sm_90a")
    copies, uses = (
        sorted((b.start, b.end) for b in found.bars if b.activity == activity)
        for activity in ("transfer", "use")
    )
    for k in range(3):
        assert copies[k][1] <= uses[k][0] < uses[k][1] <= copies[k + 1][0]


@pytest.mark.parametrize("program", [in_step(4), by_hand(6, 2)], ids=["in step", "by hand"])
def test_threads_do_one_thing_at_a_time(program):
    """A role of threads begins once their last one is over."""
    found = picture(program, "cuda:sm_90a")
    for number, lane in enumerate(found.lanes):
        if lane.kind == "threads":
            bars = sorted((b.start, b.end) for b in found.bars if b.lane == number)
            assert len(bars) > 1
            assert all(one[1] <= other[0] for one, other in pairwise(bars))


def test_without_asynchronous_copies_loads_into_registers_run_ahead():
    found = picture(gemm_of(6, 2), "cuda:sm_75")
    loads, products = rounds_of(found, "transfer", "tile"), rounds_of(found, "product", "threads")
    assert sorted(products) == list(range(6))
    assert all(loads[k + 1][0] < products[k][1] for k in range(1, 5))


def test_sizes_that_are_not_known_are_told():
    found = picture(gemm_of(0, 3, symbolic=True), "cuda:sm_80")
    assert found.notes == ("Sizes that are not known are taken to be K = 512.",)
    assert sorted(rounds_of(found, "transfer", "tile")) == list(range(16))


def test_nothing_is_drawn_where_nothing_runs_ahead():
    assert picture(gemm_of(1, 0), "cuda:sm_80") is None


def test_phases_complete_once_all_arrived_and_all_bytes_landed():
    barrier = PhaseBarrier(2)
    assert (barrier.passed(1), barrier.passed(0)) == (0.0, None)  # as if phase 1 was before
    barrier.arrive(1.0, 1, 64)
    barrier.arrive(2.0)
    assert barrier.passed(0) is None
    barrier.land(5.0, 64)
    assert (barrier.passed(0), barrier.passed(1)) == (5.0, None)


def test_meetings_are_over_once_as_many_threads_came():
    meeting = Meeting()
    first = meeting.arrive(1.0, 128, 256)
    assert meeting.over(first) is None
    assert meeting.arrive(4.0, 128, 256) == first
    assert meeting.over(first) == 4.0
    assert meeting.arrive(5.0, 128, 256) == first + 1


def test_the_block_with_more_to_do_is_drawn():
    @T.prim_func
    def triangular(A: T.Tensor((512, 512), "float16"), C: T.Tensor((512, 64), "float16")):
        with T.Kernel(8, threads=128) as by:
            tile = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((64, 64), "float32")
            T.clear(sums)
            for k in T.Pipelined(by + 1, num_stages=2):
                T.copy(A[by * 64, k * 64], tile)
                T.gemm(tile, tile, sums)
            T.copy(sums, C[by * 64, 0])

    found = picture(triangular, "cuda:sm_80")
    assert found.notes == ("Block (7) is drawn; the first one has less to do.",)
    assert sorted(rounds_of(found, "product", "threads")) == list(range(8))
