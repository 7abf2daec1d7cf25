"""Waits and barriers: data arrives as late as it may, and waves must meet in between."""

from __future__ import annotations

import re

import numpy as np
import pytest

from support.lanes import on_lanes, run_group
from tile_core.errors import DataRace, MissingWait, OutOfBounds

LANE = np.arange(64, dtype=np.uint32)


def test_reading_too_early() -> None:
    body = "global_load_dword v5, v0, s[4:5]\n v_mov_b32_e32 v10, v5"
    with pytest.raises(MissingWait) as caught:
        on_lanes(body)
    assert "v_mov_b32_e32 v10, v5: v5 is touched before it has arrived" in str(caught.value)
    assert "global_load_dword v5, v0, s[4:5]" in caught.value.notes[0].text


@pytest.mark.parametrize(
    "body",
    [
        "global_load_dword v5, v0, s[4:5]\n v_mov_b32_e32 v5, 0",
        "s_load_dword s10, s[0:1], 0x0\n s_mov_b32 s10, 0",
        "s_load_dword s10, s[0:1], 0x0\n v_mov_b32_e32 v5, s10",
        "s_load_dwordx2 vcc, s[0:1], 0x0\n s_cbranch_vccz .L1\n.L1:",
        "ds_read_b32 v5, v0\n ds_read_b32 v5, v0",
        "global_load_dword v5, v0, s[4:5]\n ds_read_b32 v5, v0",
        "ds_read_b32 v5, v0\n ds_write_b32 v0, v5",
        "global_load_dwordx2 v[6:7], v0, s[4:5]\n v_mfma_f32_16x16x4_f32 a[0:3], v7, v2, 0",
        "ds_bpermute_b32 v5, v0, v1\n v_mov_b32_e32 v6, v5",
        "global_load_short_d16 v5, v0, s[4:5]\n global_load_short_d16_hi v5, v0, s[4:5]",
    ],
)  # fmt: skip
def test_touching_too_early(body: str) -> None:
    with pytest.raises(MissingWait, match="before it has arrived"):
        on_lanes(body, shared=256)


def test_counters_count_from_the_newest() -> None:
    body = """
      global_load_dword v5, v0, s[4:5]
      global_load_dword v6, v0, s[4:5] offset:256
      global_load_dword v7, v0, s[4:5] offset:512
      s_waitcnt vmcnt({n})
      v_add_u32_e32 v10, v5, v6
      s_waitcnt vmcnt(0)
    """
    assert set(on_lanes(body.format(n=1), 1, 2, 3)[0].tolist()) == {3}
    with pytest.raises(MissingWait, match="v6 is touched"):
        on_lanes(body.format(n=2), 1, 2, 3)


def test_stores_count_too() -> None:
    body = """
      global_load_dword v5, v0, s[4:5]
      global_store_dword v0, v1, s[6:7]
      s_waitcnt vmcnt(1)
      v_mov_b32_e32 v10, v5
    """
    assert set(on_lanes(body, 4)[0].tolist()) == {4}
    with pytest.raises(MissingWait):
        on_lanes(body.replace("vmcnt(1)", "vmcnt(2)"), 4)


@pytest.mark.parametrize(
    "other", ["ds_write_b32 v1, v1", "ds_add_u32 v1, v1", "ds_add_rtn_u32 v6, v1, v1"]
)
def test_all_of_shared_memory_counts(other: str) -> None:
    body = f"""
      v_mov_b32_e32 v1, 0
      ds_read_b32 v5, v1 offset:64
      {other}
      s_waitcnt lgkmcnt(1)
      v_mov_b32_e32 v10, v5
      s_waitcnt lgkmcnt(0)
    """
    on_lanes(body, shared=128)
    with pytest.raises(MissingWait, match="v5 is touched"):
        on_lanes(body.replace("lgkmcnt(1)", "lgkmcnt(2)"), shared=128)


def test_scalar_loads_come_in_any_order() -> None:
    body = """
      s_load_dword s10, s[4:5], 0x0
      s_load_dword s11, s[4:5], 0x100
      s_waitcnt lgkmcnt({n})
      v_mov_b32_e32 v10, s10
      s_waitcnt lgkmcnt(0)
    """
    assert set(on_lanes(body.format(n=0), 4)[0].tolist()) == {4}
    with pytest.raises(MissingWait, match="s10 is touched"):
        on_lanes(body.format(n=1), 4)


def test_waits_as_numbers() -> None:
    body = "global_load_dword v5, v0, s[4:5]\n s_waitcnt {n:#x}\n v_mov_b32_e32 v10, v5"
    assert set(on_lanes(body.format(n=0xF70), 4)[0].tolist()) == {4}
    with pytest.raises(MissingWait):
        on_lanes(body.format(n=0xC07F), 4)  # lgkmcnt(0)


def test_flat_loads_need_both_counters() -> None:
    body = """
      v_mov_b32_e32 v2, s4
      v_mov_b32_e32 v3, s5
      flat_load_dword v10, v[2:3]
      s_waitcnt {counters}
      v_add_u32_e32 v10, 1, v10
      s_waitcnt vmcnt(0) lgkmcnt(0)
    """
    assert set(on_lanes(body.format(counters="vmcnt(0) lgkmcnt(0)"), 4)[0].tolist()) == {5}
    for counters in ("vmcnt(0)", "lgkmcnt(0)"):
        with pytest.raises(MissingWait):
            on_lanes(body.format(counters=counters), 4)


SWAP = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  v_xor_b32_e32 v2, 0x100, v1
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v3, s[4:5]
"""
"""Two waves give their numbers to each other."""


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_waves_that_meet(seed: int | None) -> None:
    found = np.zeros(128, np.uint32)
    run_group(SWAP, [found], shared=512, seed=seed)
    assert found.tolist() == (np.arange(128) ^ 64).tolist()


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_waves_that_do_not_meet(seed: int | None) -> None:
    with pytest.raises(DataRace, match=r"wave . (reads|writes) byte .* which wave . has touched"):
        run_group(SWAP.replace("s_barrier", ""), [np.zeros(128, np.uint32)], shared=512, seed=seed)


@pytest.mark.parametrize("seed", [None, 1])
def test_a_store_may_still_be_under_way_behind_a_barrier(seed: int | None) -> None:
    text = SWAP.replace("  s_waitcnt lgkmcnt(0)\n  s_barrier", "  s_barrier")
    text = text.replace("s_load_dwordx2 s[4:5], s[0:1], 0x0", "s_mov_b64 s[4:5], s[0:1]")
    text = re.sub("global_store.*", "", text)
    with pytest.raises(DataRace):
        run_group(text, [np.zeros(128, np.uint32)], shared=512, seed=seed)


def test_a_load_may_still_be_under_way_behind_a_barrier() -> None:
    text = """
      v_lshlrev_b32_e32 v1, 2, v0
      v_xor_b32_e32 v2, 0x100, v1
      ds_write_b32 v1, v0
      s_waitcnt lgkmcnt(0)
      s_barrier
      ds_read_b32 v3, v2
      {wait}
      s_barrier
      ds_write_b32 v1, v1
      s_waitcnt lgkmcnt(0)
    """
    run_group(text.format(wait="s_waitcnt lgkmcnt(0)"), [np.zeros(1)], shared=512)
    with pytest.raises(DataRace):
        run_group(text.format(wait=""), [np.zeros(1)], shared=512)


def test_places_narrower_than_words_are_told_apart() -> None:
    body = """
      v_lshrrev_b32_e32 v1, 6, v0
      v_and_b32_e32 v2, 63, v0
      v_lshl_or_b32 v1, v2, 1, v1
      ds_write_b8 v1, v0
      s_waitcnt lgkmcnt(0)
    """
    run_group(body, [np.zeros(1)], shared=128)
    with pytest.raises(DataRace):
        run_group(body.replace("ds_write_b8", "ds_write_b16"), [np.zeros(1)], shared=130)


def test_atomics_do_not_race_with_each_other() -> None:
    body = """
      v_mov_b32_e32 v1, 0
      ds_add_u32 v1, v0
      {more}
      s_waitcnt lgkmcnt(0)
    """
    run_group(body.format(more=""), [np.zeros(1)], shared=16)
    with pytest.raises(DataRace, match="an atomic operation"):
        run_group(body.format(more="ds_read_b32 v2, v1"), [np.zeros(1)], shared=16)


DMA = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshrrev_b32_e32 v1, 6, v0
  v_lshlrev_b32_e32 v2, 2, v0
  v_readfirstlane_b32 s12, v1
  s_lshl_b32 s12, s12, 8
  s_mov_b32 m0, s12
  s_movk_i32 s10, 400
  s_mov_b32 s11, 0x27000
  s_waitcnt lgkmcnt(0)
  s_mov_b64 s[8:9], s[4:5]
  buffer_load_dword v2, s[8:11], 0 offen lds
  s_waitcnt vmcnt(0)
  s_barrier
  v_xor_b32_e32 v3, 0x100, v2
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v4, s[6:7]
"""
"""Two waves load 400 bytes into shared memory, and each reads what the other one has loaded."""


@pytest.mark.parametrize("seed", [None, 3])
def test_loads_into_shared_memory(seed: int | None) -> None:
    numbers, found = np.arange(1, 129, dtype=np.uint32), np.zeros(128, np.uint32)
    run_group(DMA, [numbers, found], shared=512, seed=seed)
    inside = np.where(np.arange(128) < 100, numbers, 0)
    assert found.tolist() == inside[np.arange(128) ^ 64].tolist()


def test_loads_into_shared_memory_without_a_descriptor() -> None:
    text = DMA.replace(
        "buffer_load_dword v2, s[8:11], 0 offen lds", "global_load_lds_dword v2, s[8:9]"
    )
    numbers, found = np.arange(1, 129, dtype=np.uint32), np.zeros(128, np.uint32)
    run_group(text, [numbers, found], shared=512)
    assert found.tolist() == numbers[np.arange(128) ^ 64].tolist()


def test_loads_into_shared_memory_that_are_not_waited_for() -> None:
    arguments = [np.zeros(128, np.uint32), np.zeros(128, np.uint32)]
    text = DMA.replace("s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(1)")
    with pytest.raises(MissingWait, match="accessed while a load into it is in flight"):
        run_group(text, arguments, shared=512)


def test_loads_into_shared_memory_race_with_readers() -> None:
    arguments = [np.zeros(128, np.uint32), np.zeros(128, np.uint32)]
    with pytest.raises((DataRace, MissingWait)):
        run_group(DMA.replace("s_barrier", ""), arguments, shared=512)


def test_loads_into_shared_memory_stay_inside() -> None:
    arguments = [np.zeros(128, np.uint32), np.zeros(128, np.uint32)]
    with pytest.raises(OutOfBounds, match="64 lanes from byte 256 on leave the 508 bytes"):
        run_group(DMA, arguments, shared=508)


def test_waves_that_met_see_what_they_have_stored() -> None:
    """One cache serves the waves of a workgroup, in order; others may run much later."""
    text = """
      s_load_dwordx2 s[4:5], s[0:1], 0x0
      v_lshlrev_b32_e32 v1, 2, v0
      v_xor_b32_e32 v2, 0x100, v1
      s_waitcnt lgkmcnt(0)
      global_store_dword v1, v0, s[4:5]
      {meet}
      global_load_dword v3, v2, s[4:5]
      s_waitcnt vmcnt(0)
      global_store_dword v1, v3, s[4:5] offset:512
    """
    found = np.full(256, 77, np.uint32)
    run_group(text.format(meet="s_barrier"), [found])
    assert found[128:].tolist() == (np.arange(128) ^ 64).tolist()
    found = np.full(256, 77, np.uint32)
    run_group(text.format(meet=""), [found])
    assert found[128:192].tolist() == [77] * 64
