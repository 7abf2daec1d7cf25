"""Scalar instructions, comparisons, branches and lanes that scalars choose."""

from __future__ import annotations

import numpy as np
import pytest

from support.assembler import complaints
from support.lanes import assembly, on_lanes, run_group, with_any_modifier, word
from tile_core.errors import Deadlock
from tile_sim.gfx9 import Code, launch
from tile_sim.gfx9 import scalar as tables

# Text, then what s10 holds behind it; SCC is moved there where the text ends with `scc`.
SCALARS = [
    ("s_mov_b32 s10, 0x1234", 0x1234),
    ("s_movk_i32 s10, 0xfff0", -16),
    ("s_movk_i32 s10, 5\n s_addk_i32 s10, 0xfffe", 3),
    ("s_movk_i32 s10, 5\n s_mulk_i32 s10, 0xfffe", -10),
    ("s_add_u32 s10, -1, 2\n s_addc_u32 s10, 0, 0", 1),
    ("s_sub_u32 s10, 1, 2\n s_subb_u32 s10, 5, 0", 4),
    ("s_add_i32 s11, 0x7fffffff, 1\n scc", 1),
    ("s_add_i32 s11, -1, 1\n scc", 0),
    ("s_sub_i32 s11, 0x80000000, 1\n scc", 1),
    ("s_mul_i32 s10, 0x10001, 0x10001", 0x20001),
    ("s_mul_hi_u32 s10, 0x80000000, 6", 3),
    ("s_mul_hi_i32 s10, -2, 3", -1),
    ("s_min_i32 s10, -1, 1", -1),
    ("s_max_u32 s10, -1, 1\n scc", 1),
    ("s_lshl_b32 s10, 3, 33", 6),
    ("s_lshr_b32 s10, -1, 28", 15),
    ("s_ashr_i32 s10, -256, 4", -16),
    ("s_lshl2_add_u32 s10, 3, 1", 13),
    ("s_movk_i32 s11, 0x2bcd\n s_bfe_u32 s10, s11, 0x40008", 0xB),
    ("s_movk_i32 s11, 0x2bcd\n s_bfe_i32 s10, s11, 0x40008", -5),
    ("s_bfm_b32 s10, 4, 8", 0xF00),
    ("s_and_b32 s10, 12, 10\n scc", 1),
    ("s_and_b32 s10, 12, 3\n scc", 0),
    ("s_andn2_b32 s10, 12, 10", 4),
    ("s_orn2_b32 s10, 12, 10", -3),
    ("s_nand_b32 s10, 12, 10", ~8),
    ("s_nor_b32 s10, 12, 10", ~14),
    ("s_xnor_b32 s10, 12, 10", ~6),
    ("s_not_b32 s10, 5", ~5),
    ("s_brev_b32 s10, 1", 0x80000000),
    ("s_abs_i32 s10, -7", 7),
    ("s_absdiff_i32 s10, 3, 10", 7),
    ("s_sext_i32_i8 s10, 0x80", -128),
    ("s_sext_i32_i16 s10, 0x18000", -32768),
    ("s_ff1_i32_b32 s10, 0x50", 4),
    ("s_ff1_i32_b32 s10, 0", -1),
    ("s_flbit_i32_b32 s10, 0x10000", 15),
    ("s_flbit_i32 s10, -16", 28),
    ("s_bcnt1_i32_b32 s10, 0xf1", 5),
    ("s_bcnt0_i32_b32 s10, 0xf1", 27),
    ("s_mov_b32 s10, 5\n s_bitset1_b32 s10, 3", 13),
    ("s_mov_b32 s10, 13\n s_bitset0_b32 s10, 3", 5),
    ("s_mov_b32 s11, 0x11111234\n s_pack_ll_b32_b16 s10, s11, 0x22225678", 0x56781234),
    ("s_mov_b32 s11, 0x11111234\n s_pack_lh_b32_b16 s10, s11, 0x22225678", 0x22221234),
    ("s_cmp_lt_i32 -1, 1\n s_cselect_b32 s10, 3, 4", 3),
    ("s_cmp_lt_u32 -1, 1\n s_cselect_b32 s10, 3, 4", 4),
    ("s_mov_b32 s10, -5\n s_cmpk_gt_i32 s10, 0xfffa\n scc", 1),
    ("s_mov_b32 s10, 0xffff\n s_cmpk_eq_u32 s10, 0xffff\n scc", 1),
    ("s_bitcmp1_b32 4, 2\n scc", 1),
    ("s_bitcmp0_b32 4, 2\n scc", 0),
    ("s_mov_b32 s10, 1\n s_cmp_eq_u32 0, 0\n s_cmov_b32 s10, 2", 2),
    ("s_mov_b32 s10, 1\n s_cmp_eq_u32 0, 1\n s_cmov_b32 s10, 2", 1),
    ("s_mov_b64 s[12:13], -1\n s_lshr_b64 s[10:11], s[12:13], 60", 15),
    ("s_mov_b64 s[12:13], 0x80000000\n s_lshl_b64 s[10:11], s[12:13], 1\n s_mov_b32 s10, s11", 1),
    ("s_mov_b64 s[12:13], -1\n s_bfe_u64 s[10:11], s[12:13], 0x40010", 15),
    ("s_mov_b64 s[12:13], -1\n s_bfe_i64 s[10:11], s[12:13], 0x40010", -1),
    ("s_bfm_b64 s[10:11], 4, 36\n s_mov_b32 s10, s11", 0xF0),
    ("s_mov_b64 s[12:13], 1\n s_brev_b64 s[10:11], s[12:13]\n s_mov_b32 s10, s11", 1 << 31),
    ("s_bfm_b64 s[12:13], 1, 40\n s_ff1_i32_b64 s10, s[12:13]", 40),
    ("s_bfm_b64 s[12:13], 1, 40\n s_flbit_i32_b64 s10, s[12:13]", 23),
    ("s_bfm_b64 s[12:13], 1, 40\n s_flbit_i32_i64 s10, s[12:13]", 23),
    ("s_mov_b64 s[12:13], 5\n s_bcnt0_i32_b64 s10, s[12:13]", 62),
    ("s_mov_b64 s[12:13], 5\n s_not_b64 s[10:11], s[12:13]\n s_mov_b32 s10, s11", -1),
    ("s_mov_b64 s[10:11], 0\n s_bitset1_b64 s[10:11], 33\n s_mov_b32 s10, s11", 2),
    ("s_mov_b64 s[10:11], -1\n s_bitset0_b64 s[10:11], 33\n s_mov_b32 s10, s11", -3),
    ("s_mov_b64 s[12:13], -2\n s_ashr_i64 s[10:11], s[12:13], 40", -1),
    ("s_mov_b64 s[12:13], 12\n s_andn2_b64 s[10:11], s[12:13], 10", 4),
    ("s_mov_b64 s[12:13], 12\n s_nor_b64 s[10:11], s[12:13], 10\n s_mov_b32 s10, s11", -1),
    ("s_cmp_eq_u32 0, 1\n s_cselect_b64 s[10:11], 3, -4\n s_mov_b32 s10, s11", -1),
    ("s_wqm_b32 s10, 0x120", 0xFF0),
    ("s_or_b32 s10, 12, 10", 14),
    ("s_xor_b32 s10, 12, 10", 6),
    ("s_mov_b64 s[12:13], 12\n s_and_b64 s[10:11], s[12:13], 10", 8),
    ("s_mov_b64 s[12:13], 12\n s_or_b64 s[10:11], s[12:13], 10", 14),
    ("s_mov_b64 s[12:13], 12\n s_xor_b64 s[10:11], s[12:13], 10", 6),
    ("s_mov_b64 s[12:13], 12\n s_orn2_b64 s[10:11], s[12:13], 10", -3),
    ("s_mov_b64 s[12:13], 12\n s_nand_b64 s[10:11], s[12:13], 10", ~8),
    ("s_mov_b64 s[12:13], 12\n s_xnor_b64 s[10:11], s[12:13], 10", ~6),
    ("s_mov_b64 s[12:13], 0x120\n s_wqm_b64 s[10:11], s[12:13]", 0xFF0),
    ("s_mov_b64 s[10:11], 1\n s_cmp_eq_u32 0, 0\n s_cmov_b64 s[10:11], 2", 2),
    ("s_mov_b64 flat_scratch, -2\n s_mov_b32 s10, flat_scratch_lo", -2),
    ("s_mov_b64 flat_scratch, -2\n s_mov_b32 s10, flat_scratch_hi", -1),
    ("s_min_u32 s10, -1, 1", 1),
    ("s_max_i32 s10, -1, 1", 1),
    ("s_lshl1_add_u32 s10, 3, 1", 7),
    ("s_lshl3_add_u32 s10, 3, 1", 25),
    ("s_lshl4_add_u32 s10, 3, 1", 49),
    ("s_mov_b32 s11, 0x11111234\n s_pack_hh_b32_b16 s10, s11, 0x22225678", 0x22221111),
    ("s_mov_b64 s[12:13], -1\n s_bcnt1_i32_b64 s10, s[12:13]", 64),
    ("s_mov_b64 s[12:13], 0\n s_cmp_eq_u64 s[12:13], 0\n scc", 1),
    ("s_mov_b32 s10, 7\n s_branch .L1\n s_mov_b32 s10, 8\n.L1:", 7),
    ("s_cmp_eq_u32 0, 0\n s_mov_b32 s10, 7\n s_cbranch_scc1 .L1\n s_mov_b32 s10, 8\n.L1:", 7),
    ("s_mov_b64 vcc, 0\n s_mov_b32 s10, 7\n s_cbranch_vccz .L1\n s_mov_b32 s10, 8\n.L1:", 7),
    ("s_mov_b32 s10, 0\n.L1: s_add_i32 s10, s10, 1\n s_cmp_lt_i32 s10, 9\n s_cbranch_scc1 .L1", 9),
]
SAVED = """s_mov_b64 exec, 12
 s_mov_b64 s[12:13], 10
 s_{}_saveexec_b64 s[8:9], s[12:13]
 s_mov_b32 s10, exec_lo
 s_mov_b64 exec, -1"""
SCALARS += [
    (SAVED.format(name), expected)
    for name, expected in (
        ("and", 8), ("or", 14), ("xor", 6), ("andn2", 2), ("orn2", -5), ("nand", ~8), ("nor", ~14),
        ("xnor", ~6), ("andn1", 4), ("orn1", -3),
    )
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SCALARS)
def test_scalars(text: str, expected: int) -> None:
    if text.endswith("scc"):
        text = text.removesuffix("scc") + "s_cselect_b32 s10, 1, 0"
    found = on_lanes(text + "\n v_mov_b32_e32 v10, s10")[0]
    assert set(found.tolist()) == {word(expected)}


def test_exec_is_saved_and_brought_back() -> None:
    body = """
      v_mov_b32_e32 v10, 1
      v_cmp_gt_i32_e32 vcc, 8, v1
      s_and_saveexec_b64 s[8:9], vcc
      s_cbranch_execz .L1
      v_mov_b32_e32 v10, 2
      s_xor_b64 exec, exec, s[8:9]
      v_mov_b32_e32 v10, 3
    .L1:
      s_or_b64 exec, exec, s[8:9]
      v_add_u32_e32 v10, 10, v10
    """
    assert on_lanes(body, np.arange(64, dtype=np.int32))[0].tolist() == [12] * 8 + [13] * 56


COMPARISONS = [
    ("v_cmp_lt_i32_e64 s[10:11], v1, 0", lambda x: x < 0),
    ("v_cmp_lt_u32_e64 s[10:11], v1, 3", lambda x: (x >= 0) & (x < 3)),
    ("v_cmp_ne_u32_e64 s[10:11], v1, 5", lambda x: x != 5),
    ("v_cmp_ge_i16_e64 s[10:11], v1, -4", lambda x: x >= -4),
    ("v_cmp_eq_u16_e64 s[10:11], v1, 6", lambda x: x == 6),
    ("v_cmp_le_i32_sdwa s[10:11], sext(v1), v2 src0_sel:WORD_0 src1_sel:DWORD", lambda x: x <= 0),
]


@pytest.mark.parametrize(("text", "expected"), COMPARISONS)
def test_comparisons_of_integers(text: str, expected) -> None:
    body = text + "\n s_nop 1\n v_cndmask_b32_e64 v10, 0, 1, s[10:11]"
    numbers = np.arange(-32, 32, dtype=np.int32)
    assert (on_lanes(body, numbers, 0)[0] == expected(numbers)).all()


FLOAT_COMPARISONS = {
    "lt": [0, 1, 0, 0], "eq": [1, 0, 0, 0], "le": [1, 1, 0, 0], "gt": [0, 0, 1, 0],
    "lg": [0, 1, 1, 0], "ge": [1, 0, 1, 0], "o": [1, 1, 1, 0], "u": [0, 0, 0, 1],
    "nge": [0, 1, 0, 1], "nlg": [1, 0, 0, 1], "ngt": [1, 1, 0, 1], "nle": [0, 0, 1, 1],
    "neq": [0, 1, 1, 1], "nlt": [1, 0, 1, 1],
}  # fmt: skip


@pytest.mark.parametrize("relation", FLOAT_COMPARISONS)
def test_comparisons_of_floats(relation: str) -> None:
    body = f"v_cmp_{relation}_f32_e32 vcc, v1, v2\n s_nop 1\n v_cndmask_b32_e32 v10, v3, v4, vcc"
    left = np.tile(np.array([1, 1, 2, np.nan], np.float32), 16)
    right = np.tile(np.array([1, 2, 1, 1], np.float32), 16)
    assert on_lanes(body, left, right, 0, 1)[0].tolist() == FLOAT_COMPARISONS[relation] * 16


def test_classes_of_floats() -> None:
    kinds = [np.nan, -np.inf, -1.0, -1e-40, -0.0, 0.0, 1e-40, 1.0, np.inf, 2.0]
    numbers = np.resize(np.array(kinds, np.float32), 64)
    body = "v_cmp_class_f32_e64 s[10:11], v1, v2\n s_nop 1\n v_cndmask_b32_e64 v10, 0, 1, s[10:11]"
    for bit, position in enumerate([0, 1, 2, 3, 4, 5, 6, 7, 8], 1):
        found = on_lanes(body, numbers, 1 << bit)[0][:9]
        assert found.tolist() == [int(i == position) for i in range(9)]


def test_a_comparison_can_turn_lanes_off() -> None:
    body = """
      v_mov_b32_e32 v10, 0
      v_cmpx_eq_u32_e64 s[10:11], 7, v1
      v_mov_b32_e32 v10, 1
      s_mov_b64 exec, -1
    """
    assert on_lanes(body, np.arange(64, dtype=np.uint32))[0].tolist() == [0] * 7 + [1] + [0] * 56


def test_lanes_that_scalars_choose() -> None:
    body = """
      s_mov_b64 exec, 0xf0
      v_readfirstlane_b32 s10, v1
      s_mov_b64 exec, -1
      v_readlane_b32 s11, v1, 63
      s_mov_b32 s12, 9
      v_mov_b32_e32 v10, s10
      v_mov_b32_e32 v11, s11
      v_mov_b32_e32 v12, 0
      v_writelane_b32 v12, s12, 3
      v_mbcnt_lo_u32_b32 v13, -1, 0
      v_mbcnt_hi_u32_b32 v13, -1, v13
    """
    found = on_lanes(body, np.arange(100, 164, dtype=np.uint32), outputs=4)
    assert set(found[0].tolist()) == {104}
    assert set(found[1].tolist()) == {163}
    assert found[2].tolist() == [0] * 3 + [9] + [0] * 60
    assert found[3].tolist() == list(range(64))


MOVES = {
    "quad_perm:[1,0,3,2]": lambda lane: lane ^ 1,
    "row_shl:1": lambda lane: lane + 1 if lane % 16 < 15 else None,
    "row_shr:2": lambda lane: lane - 2 if lane % 16 >= 2 else None,
    "row_ror:4": lambda lane: lane // 16 * 16 + (lane - 4) % 16,
    "row_mirror": lambda lane: lane ^ 15,
    "row_half_mirror": lambda lane: lane ^ 7,
    "row_bcast:15": lambda lane: lane // 16 * 16 - 1 if lane >= 16 else None,
    "row_bcast:31": lambda lane: 31 if lane >= 32 else None,
    "row_newbcast:5": lambda lane: lane // 16 * 16 + 5,
    "wave_shr:1": lambda lane: lane - 1 if lane else None,
}


@pytest.mark.parametrize("control", MOVES)
def test_lanes_that_move(control: str) -> None:
    numbers = np.arange(100, 164, dtype=np.uint32)
    sources = [MOVES[control](lane) for lane in range(64)]
    keep = "v_mov_b32_e32 v10, 7\n s_nop 1\n v_mov_b32_dpp v10, v1 " + control
    found = on_lanes(keep + " row_mask:0xf bank_mask:0xf", numbers)[0]
    assert found.tolist() == [7 if s is None else 100 + s for s in sources]
    found = on_lanes(keep + " row_mask:0xa bank_mask:0x3 bound_ctrl:0", numbers)[0]
    on = [lane // 16 in {1, 3} and lane % 16 < 8 for lane in range(64)]
    expected = [0 if s is None else 100 + s for s in sources]
    assert found.tolist() == [e if o else 7 for e, o in zip(expected, on, strict=True)]


def test_sums_along_rows_by_moving_lanes() -> None:
    body = """
      v_mov_b32_e32 v10, v1
      s_nop 1
      v_add_u32_dpp v10, v10, v10 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0
    """
    numbers = np.arange(64, dtype=np.uint32)
    found = on_lanes(body, numbers)[0]
    assert found.tolist() == [lane + (lane - 1 if lane % 16 else 0) for lane in range(64)]


def test_a_loop_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "MOST_INSTRUCTIONS", 1000)
    with pytest.raises(Deadlock, match="has run 1000 instructions without an end"):
        run_group(".L1:\n s_branch .L1", [np.zeros(1, np.uint32)])


def test_buffers_have_zeros_behind_their_end() -> None:
    body = """
      s_load_dwordx4 s[4:7], s[0:1], 0x0
      s_waitcnt lgkmcnt(0)
      s_mov_b32 s10, 12
      s_buffer_load_dwordx4 s[12:15], s[8:11], 0x4
      s_waitcnt lgkmcnt(0)
    """
    words = [5, 6, 7, 8]
    body = body.replace("s_mov", "s_mov_b64 s[8:9], s[4:5]\n s_mov", 1)
    for position in range(4):
        body += f"""
          v_mov_b32_e32 v1, {4 * position}
          v_mov_b32_e32 v2, s{12 + position}
          global_store_dword v1, v2, s[6:7]
        """
    found = np.full(4, 9, np.uint32)
    run_group(body, [np.array(words, np.uint32), found])
    assert found.tolist() == [6, 7, 0, 0]


def test_data_of_the_program_lies_in_memory() -> None:
    text = assembly(
        """
      s_load_dwordx2 s[4:5], s[0:1], 0x0
      s_getpc_b64 s[8:9]
      s_add_u32 s8, s8, table@rel32@lo+4
      s_addc_u32 s9, s9, table@rel32@hi+12
      s_load_dword s10, s[8:9], 0x4
      v_mov_b32_e32 v1, 0
      s_waitcnt lgkmcnt(0)
      v_mov_b32_e32 v2, s10
      global_store_dword v1, v2, s[4:5]
    """,
        buffers=1,
    )
    text += "\n.section .rodata\ntable:\n .long 5\n .long 0xabcd\n"
    found = np.zeros(1, np.uint32)
    from tile_sim import gfx9

    gfx9.run(Code.of(text), "f", grid=1, block=64, arguments=[found])
    assert found[0] == 0xABCD


def test_modifiers_that_are_unknown_are_refused() -> None:
    assert with_any_modifier(text for text, *_ in [*SCALARS, *COMPARISONS]) == []


def test_every_instruction_has_an_example() -> None:
    words = {*" ".join(text for text, _ in SCALARS).split()}
    assert {*tables.SCALARS, *(f"s_{name}_saveexec_b64" for name in tables.MASKS)} <= words


def test_assemblers_accept_the_texts() -> None:
    texts = [text.removesuffix("scc") for text, _ in SCALARS]
    moves = [f"v_mov_b32_dpp v10, v1 {control}" for control in MOVES]
    assert complaints("gfx90a", [*texts, *(text for text, _ in COMPARISONS), *moves]) == []
