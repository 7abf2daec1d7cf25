"""Barriers in shared memory: phases, who learns what, and what reports say of them."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.errors import BarrierMisuse, DataRace, Deadlock, InternalError, MissingFence
from tile_sim import checking
from tile_sim.sources import SourceKernel

HEAD = """#include "tile.h"
TILE_KERNEL(64, 1) void barriers(tile::gptr<const int> A, tile::gptr<int> O) {
  const int tid = threadIdx.x;
  tile::sptr<int> s = tile::smem<int>(0, 64);
  tile::sptr<tile::u64> bar = tile::smem<tile::u64>(256, 4);
  if (tid == 0) {
    tile::mbarrier_init(bar + 0, 32);
    tile::mbarrier_init(bar + 1, 64);
    tile::fence_mbarrier_init();
  }
  tile::sync();
"""
SCHEDULES = ["forward", "reverse", "random:1", "random:2"]


def run(body: str, *, head: str = HEAD) -> np.ndarray:
    text = f"{head}{body}}}\nTILE_EXPORT(barriers)\n"
    kernel = SourceKernel(text, "barriers", block=64, shared_bytes=288)
    O = np.full(64, -1, np.int32)
    kernel(1, A=np.arange(64, dtype=np.int32), O=O)
    return O


HAND_OVER = """
  for (int i = 0; i < 5; ++i) {
    if (tid < 32) {
      if (i > 0) {
        tile::mbarrier_wait(bar + 1, (i - 1) & 1);  // the slot is free again
      }
      s[tid] = i * 100 + tid;
      tile::mbarrier_arrive(bar + 0);
      tile::mbarrier_arrive(bar + 1);
    } else {
      tile::mbarrier_wait(bar + 0, i & 1);  // the slot is full
      O[tid] = s[63 - tid];
      tile::mbarrier_arrive(bar + 1);
    }
  }
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_phases_order_what_threads_do(schedule):
    with checking("all", schedule=schedule):
        out = run(HAND_OVER)
    np.testing.assert_array_equal(out[32:], 400 + 31 - np.arange(32))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("line", ["the slot is full", "the slot is free again"])
def test_without_a_wait_there_is_a_race(schedule, line):
    body = "\n".join("" if line in text else text for text in HAND_OVER.splitlines())
    with checking("race", schedule=schedule), pytest.raises((DataRace, BarrierMisuse, Deadlock)):
        run(body)


def test_who_arrives_learns_nothing():
    """Only those that wait know what the others did."""
    body = """
  s[tid] = tid;
  if (tid < 32) {
    tile::mbarrier_arrive(bar + 0);
  }
  if (tid == 40) {
    tile::mbarrier_wait(bar + 0, 0);
    O[0] = s[5];
  }
  if (tid == 41) {
    O[1] = s[6];
  }
"""
    with checking("race"), pytest.raises(DataRace, match=r"(41 .* reads|6 .* writes) element 6"):
        run(body)


@pytest.mark.parametrize("async_mode", ["late", "early", "random"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_of_threads_arrive(schedule, async_mode):
    body = """
  if (tid < 32) {
    tile::cp_async<4>(s + tid, A + tid);
    tile::cp_async<4>(s + (tid + 32), A + (tid + 32));
    tile::cp_async_mbarrier_arrive(bar + 0);
  } else {
    tile::mbarrier_wait(bar + 0, 0);
    O[tid] = s[tid] + s[tid - 32];
  }
"""
    with checking("all", schedule=schedule, async_mode=async_mode):
        out = run(body)
        np.testing.assert_array_equal(out[32:], 32 + 2 * np.arange(32))
        waits = body.replace(
            "  } else {", "    tile::cp_async_commit();  tile::cp_async_wait<0>();\n  } else {"
        )
        np.testing.assert_array_equal(run(waits)[32:], out[32:])


@pytest.mark.parametrize("seed", range(6))
def test_copies_of_one_thread_for_two_barriers(seed):
    """Each barrier tells of its own copies, whichever of them the engine has heard of first."""
    body = """
  if (tid < 32) {
    tile::cp_async<4>(s + tid, A + tid);
    tile::cp_async_mbarrier_arrive(bar + 0);
    tile::cp_async<4>(s + (tid + 32), A + (tid + 32));
    tile::cp_async_mbarrier_arrive(bar + 2);
  } else {
    tile::mbarrier_wait(bar + 0, 0);
    O[tid] = s[tid - 32];
    tile::mbarrier_wait(bar + 2, 0);
    O[tid] = O[tid] + s[tid];
  }
"""
    head = HEAD.replace(
        "    tile::fence", "    tile::mbarrier_init(bar + 2, 32);\n    tile::fence", 1
    )
    with checking("all", schedule=f"random:{seed}", async_mode="random"):
        np.testing.assert_array_equal(run(body, head=head)[32:], 32 + 2 * np.arange(32))


STORED_BY_THE_ENGINE = """
  if (tid < 32) {
    tile::cp_async<4>(s + tid, A + tid);
    [the writer]
  } else {
    tile::mbarrier_arrive(bar + 1);
  }
  if (tid == 40) {
    tile::mbarrier_wait(bar + 0, 0);
    [the reader]
    tile::bulk_store(O, s, 128);
    tile::tma_store_commit();
    tile::tma_store_wait<0>();
  }
"""
BY_ITSELF, FENCE = "tile::cp_async_mbarrier_arrive(bar + 0);", "tile::fence_proxy_async();"
OVER = "tile::cp_async_commit();  tile::cp_async_wait<0>();"


def stored_by_the_engine(writer, reader="", *, schedule, async_mode):
    body = STORED_BY_THE_ENGINE.replace("[the writer]", writer).replace("[the reader]", reader)
    with checking("all", schedule=schedule, async_mode=async_mode):
        return run(body)[:32]


@pytest.mark.parametrize("async_mode", ["late", "random"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("writer", "reader"),
    [(OVER + FENCE + "tile::mbarrier_arrive(bar + 0);", ""), (BY_ITSELF, FENCE)],
    ids=["behind the copies", "behind the barrier"],
)
def test_engines_see_copies_of_threads_through_a_fence(writer, reader, schedule, async_mode):
    found = stored_by_the_engine(writer, reader, schedule=schedule, async_mode=async_mode)
    np.testing.assert_array_equal(found, np.arange(32))


@pytest.mark.parametrize("async_mode", ["late", "early", "random"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (OVER + "tile::mbarrier_arrive(bar + 0);", ""),
        (FENCE + BY_ITSELF, ""),
        (BY_ITSELF + FENCE + "tile::mbarrier_arrive(bar + 1);", "tile::mbarrier_wait(bar + 1, 0);"),
    ],
    ids=["none", "before they arrive", "before their end"],
)
def test_a_fence_must_come_behind_the_end_of_copies(writer, reader, schedule, async_mode):
    """A thread that goes on while its copies are in flight does not know when they are over."""
    with pytest.raises(MissingFence, match="without fence_proxy_async behind it"):
        stored_by_the_engine(writer, reader, schedule=schedule, async_mode=async_mode)


def test_one_arrival_too_many():
    body = """
  if (tid == 3) {
    tile::mbarrier_expect_tx(bar + 0, 64);
  }
  tile::sync();
  tile::mbarrier_arrive(bar + 0);
"""
    with pytest.raises(
        BarrierMisuse, match=r"one arrival too many: phase 0 of the mbarrier bar\[0\]"
    ):
        run(body)


def test_a_deadlock_shows_every_barrier():
    body = """
  if (tid == 0) {
    tile::mbarrier_expect_tx(bar + 1, 4096);
  }
  if (tid < 24) {
    tile::mbarrier_arrive(bar + 0);
  }
  if (tid < 48) {
    tile::mbarrier_wait(bar + 0, 0);
  } else {
    tile::sync();
  }
"""
    with pytest.raises(Deadlock) as caught:
        run(body)
    text = str(caught.value)
    assert (
        "threads 0-47 wait at the mbarrier bar[0]: phase 0 (parity 0) lacks 8 of 32 arrivals"
        in text
    )
    assert "threads 48-63 wait at barrier 0 (16 of 64 threads have arrived)" in text
    assert (
        "nobody waits at the mbarrier bar[1]: phase 0 (parity 0) lacks 64 of 64 arrivals and 4096 "
        "bytes" in text
    )
    assert "let each phase get as many arrivals and bytes as it waits for" in text


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("  tile::mbarrier_arrive(bar + 2);", BarrierMisuse, r"nothing has set up .* bar\[2\]"),
        ("  tile::view<int>(bar)[tid % 8] = 1;", BarrierMisuse, "where there is an mbarrier"),
        ("  if (tid == 9) tile::mbarrier_init(bar + 0, 1);", BarrierMisuse, "a second time"),
        ("  if (tid == 9) tile::mbarrier_init(bar + 2, 0);", InternalError, "0 arrivals"),
        ("  tile::mbarrier_wait(bar + 0, 2);", InternalError, "parity 2"),
        ("  if (tid == 9) tile::mbarrier_expect_tx(bar + 0, 1 << 20);", InternalError, "counts to"),
    ],
)  # fmt: skip
def test_misuse(body, error, message):
    with pytest.raises(error, match=message):
        run(body + "\n")


def test_a_lane_acts_for_its_warp():
    for schedule in SCHEDULES:
        with checking("all", schedule=schedule):
            out = run("  if (tile::elect()) {\n    O[tid / 32] = tid % 32;\n  }\n")
        assert (out[:2] >= 0).all()
        assert (out[2:] == -1).all()


def test_a_lane_is_elected_by_the_whole_warp():
    with pytest.raises(Deadlock):
        run("  if (tid != 5 && tile::elect()) {\n    O[0] = 1;\n  }\n")


@pytest.mark.parametrize("where", ["writer", "reader", "nobody", "before"])
def test_a_fence_on_either_side_of_the_barrier_will_do(where):
    """A remote copy is the simplest engine that reads what threads wrote."""
    fence = "  tile::fence_proxy_async();\n"
    body = (
        (fence if where == "before" else "")
        + "  s[tid] = tid;\n"
        + (fence if where == "writer" else "")
        + "  tile::sync();\n  if (tid == 40) {\n"
        + (fence if where == "reader" else "")
        + "    tile::bulk_store(O + 0, s + 0, 256);\n    tile::tma_store_commit();\n"
        + "    tile::tma_store_wait<0>();\n  }\n"
    )
    with checking("all"):
        if where in ("writer", "reader"):
            np.testing.assert_array_equal(run(body), np.arange(64))
        else:
            with pytest.raises(MissingFence, match="wrote without fence_proxy_async behind it"):
                run(body)


def test_registers_of_warpgroups():
    text = """#include "tile.h"
TILE_KERNEL(256, 1) void registers(tile::gptr<int> O) {{
  const int tid = threadIdx.x;
  if (tid < 128) {{
    {}
  }} else {{
    {}
  }}
  O[tid] = 1;
}}
TILE_EXPORT(registers)
"""

    def try_out(first: str, second: str) -> None:
        kernel = SourceKernel(text.format(first, second), "registers", block=256)
        kernel(1, O=np.zeros(256, np.int32))

    try_out("tile::registers_decrease<40>();", "tile::registers_increase<240>();")
    with pytest.raises(InternalError, match="multiple of 8 from 24 to 240"):
        try_out("tile::registers_decrease<42>();", "")
    with pytest.raises(InternalError, match="multiple of 8 from 24 to 240"):
        try_out("tile::registers_decrease<16>();", "")
    with pytest.raises(Deadlock, match="120 of the 128 threads of a warpgroup"):
        try_out("if (tid < 120) tile::registers_decrease<40>();", "")


@pytest.mark.parametrize(
    ("blocks", "few", "many", "sum_of_all"),
    [(1, 24, 240, 504), (1, 40, 240, 520), (2, 24, 104, 232), (2, 40, 104, 248), (3, 24, 72, 168)],
)
def test_registers_that_a_block_does_not_begin_with(
    blocks: int, few: int, many: int, sum_of_all: int
) -> None:
    """Threads of a block begin with a share of what all blocks of a multiprocessor have."""
    text = f"""#include "tile.h"
TILE_KERNEL(384, {blocks}) void registers(tile::gptr<int> O) {{
  if (threadIdx.x >= 256) {{
    tile::registers_decrease<{few}>();
  }} else {{
    tile::registers_increase<{many}>();
  }}
}}
TILE_EXPORT(registers)
"""
    kernel = SourceKernel(text, "registers", block=384)
    pool = 3 * (65536 // (384 * blocks) // 8 * 8)
    if sum_of_all <= pool:
        kernel(1, O=np.zeros(1, np.int32))
        return
    with pytest.raises(Deadlock, match=rf"{sum_of_all} registers .* of the {pool} .* forever"):
        kernel(1, O=np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("decrease<96>", "fewer from 80 registers of each thread to 96"),
        ("increase<96>(); tile::sync(); tile::registers_increase<88>", "more from 96 .* to 88"),
    ],
)
def test_changes_of_registers_that_change_nothing(change: str, why: str) -> None:
    text = f"""#include "tile.h"
TILE_KERNEL(256, 3) void registers(tile::gptr<int> O) {{
  if (threadIdx.x >= 128) tile::registers_decrease<24>();
  if (threadIdx.x < 128) tile::registers_{change.replace("sync()", "bar_sync(1, 128)")}();
}}
TILE_EXPORT(registers)
"""
    with pytest.raises(InternalError, match=why):
        SourceKernel(text, "registers", block=256)(1, O=np.zeros(1, np.int32))


def test_dependent_grids():
    assert (run("  tile::grid_wait();\n  tile::grid_launch();\n  O[tid] = tid;\n") >= 0).all()
    with pytest.raises(BarrierMisuse, match="waits for earlier grids a second time"):
        run("  tile::grid_wait();\n  tile::grid_wait();\n")


REFILLED = """
  if (tid == 0) {
    tile::mbarrier_arrive_expect_tx(bar + 0, 128);
    tile::bulk_load(s, A, 128, bar + 0);
  }
  tile::mbarrier_wait(bar + 0, 0);
  [the first access]
  [the reader]
  tile::sync();
  if (tid == 0) {
    [the one that copies]
    tile::mbarrier_arrive_expect_tx(bar + 0, 128);
    tile::bulk_load(s, A + 32, 128, bar + 0);
  }
  tile::mbarrier_wait(bar + 0, 1);
  O[tid] = s[tid & 31];
"""


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("where", ["the reader", "the one that copies", "nobody"])
@pytest.mark.parametrize(
    ("access", "did"), [("O[tid] = s[tid & 31];", "read"), ("s[tid & 31] = 5;", "wrote")]
)
def test_a_copy_overtakes_what_is_not_fenced(access, did, where, schedule):
    body = REFILLED.replace("[the first access]", access).replace(f"[{where}]", FENCE)
    for place in ("[the reader]", "[the one that copies]"):
        body = body.replace(place, "")
    head = HEAD.replace("bar + 0, 32", "bar + 0, 1")
    with checking("all", schedule=schedule):
        if where == "nobody":
            with pytest.raises(MissingFence, match=f"overwrites .*, which thread .* {did} without"):
                run(body, head=head)
        else:
            np.testing.assert_array_equal(run(body, head=head), 32 + np.arange(64) % 32)
