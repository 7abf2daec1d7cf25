"""Distances between instructions, one pair at a time: enough of them, and one too few."""

from __future__ import annotations

import pytest

from support.assembler import complaints
from tile_core.errors import InstructionHazard
from tile_sim.gfx9 import Code

MFMA_90A = "v_mfma_f32_32x32x8f16 a[0:15], v[0:1], v[2:3], a[0:15]"
MFMA_942 = "v_mfma_f32_32x32x8_f16 v[4:19], v[0:1], v[2:3], v[4:19]"
SMALL_942 = "v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]"
FLOAT_942 = "v_mfma_f32_32x32x2_f32 v[4:19], v0, v2, v[4:19]"
DOUBLE_90A = "v_mfma_f64_16x16x4f64 v[4:11], v[0:1], v[2:3], v[4:11]"
SMALL_DOUBLE_90A = "v_mfma_f64_4x4x4f64 v[4:5], v[0:1], v[2:3], v[4:5]"
DOT = "v_dot2_f32_f16 v4, v0, v1, v2"

# Machine, first and second instruction, wait states that must lie between them.
PAIRS = [
    ("gfx942", "s_mov_b32 m0, s8", "buffer_load_dword v0, s[4:7], 0 offen lds", 1),
    ("gfx90a", "s_add_u32 m0, s8, 4", "buffer_load_dword v0, s[4:7], 0 offen lds", 1),
    ("gfx90a", "v_readfirstlane_b32 s8, v0", "global_load_dword v1, v0, s[8:9]", 5),
    ("gfx942", "v_readfirstlane_b32 s8, v0", "buffer_load_dword v1, v0, s[4:7], s8 offen", 5),
    ("gfx90a", "v_cmp_eq_u32_e32 vcc, 0, v0", "v_cndmask_b32_e32 v1, v2, v3, vcc", 0),
    ("gfx942", "v_cmp_eq_u32_e32 vcc, 0, v0", "v_cndmask_b32_e32 v1, v2, v3, vcc", 2),
    ("gfx942", "v_cmp_eq_u32_e64 s[8:9], 0, v0", "s_and_b64 s[8:9], s[8:9], exec", 0),
    ("gfx90a", "v_readfirstlane_b32 s8, v0", "v_readlane_b32 s9, v1, s8", 4),
    ("gfx90a", "v_mov_b32_e32 v1, 0", "v_mov_b32_dpp v2, v1 row_shr:1", 2),
    ("gfx90a", "v_cmpx_eq_u32_e64 s[8:9], 0, v0", "v_mov_b32_dpp v2, v1 row_shr:1", 5),
    ("gfx90a", "v_div_scale_f32 v1, vcc, v2, v3, v2", "v_div_fmas_f32 v4, v5, v6, v7", 4),
    ("gfx942", "v_rcp_f32_e32 v1, v2", "v_mul_f32_e32 v3, v1, v1", 1),
    ("gfx90a", "v_rcp_f32_e32 v1, v2", "v_mul_f32_e32 v3, v1, v1", 0),
    ("gfx942", "v_exp_f32_e32 v1, v2", "v_rcp_f32_e32 v3, v1", 0),
    ("gfx942", "v_mov_b32_e32 v1, 0", "v_readfirstlane_b32 s8, v1", 1),
    ("gfx942", "v_mov_b32_sdwa v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD",
     "v_mov_b32_e32 v3, v1", 1),
    ("gfx90a", "v_mov_b32_e32 v0, 0", MFMA_90A, 2),
    ("gfx90a", MFMA_90A, "v_accvgpr_read_b32 v4, a3", 19),
    ("gfx90a", MFMA_90A, "global_store_dword v4, a3, s[4:5]", 19),
    ("gfx90a", MFMA_90A, "v_accvgpr_write_b32 a3, v4", 19),
    ("gfx90a", MFMA_90A, MFMA_90A, 0),
    ("gfx90a", MFMA_90A, "v_mfma_f32_32x32x8f16 a[16:31], a[0:1], v[2:3], a[16:31]", 19),
    ("gfx90a", MFMA_90A, "v_mfma_f32_16x16x16f16 a[0:3], v[0:1], v[2:3], a[0:3]", 16),
    ("gfx942", MFMA_942, "v_mul_f32_e32 v20, v19, v19", 11),
    ("gfx942", MFMA_942, "ds_write_b32 v20, v4", 11),
    ("gfx942", SMALL_942, "v_mul_f32_e32 v20, v4, v4", 7),
    ("gfx942", FLOAT_942, "v_mul_f32_e32 v20, v4, v4", 18),
    ("gfx942", SMALL_942, "v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[2:3], v[8:11]", 7),
    ("gfx942", MFMA_942, "v_mov_b32_e32 v5, 0", 11),
    ("gfx942", "v_mfma_f32_32x32x8_f16 v[20:35], v[0:1], v[2:3], v[4:19]",
     "v_mov_b32_e32 v5, 0", 7),
    ("gfx942", "v_mfma_f32_16x16x4_f32 v[20:23], v0, v2, v[4:7]", "v_mov_b32_e32 v5, 0", 0),
    ("gfx90a", DOUBLE_90A, "v_add_f64 v[20:21], v[4:5], v[4:5]", 11),
    ("gfx90a", DOUBLE_90A, "global_store_dwordx2 v20, v[4:5], s[4:5]", 18),
    ("gfx90a", DOUBLE_90A, SMALL_DOUBLE_90A, 9),
    ("gfx90a", SMALL_DOUBLE_90A, SMALL_DOUBLE_90A, 4),
    ("gfx90a", SMALL_DOUBLE_90A, DOUBLE_90A, 4),
    ("gfx90a", DOT, "v_add_f32_e32 v5, v4, v4", 3),
    ("gfx90a", DOT, "v_dot2_f32_f16 v4, v0, v1, v4", 0),
    ("gfx90a", DOT, "v_dot2_f32_f16 v5, v4, v1, v2", 3),
    ("gfx942", "global_store_dwordx4 v0, v[4:7], s[4:5]", "v_mov_b32_e32 v6, 0", 1),
    ("gfx942", "global_store_dwordx2 v0, v[4:5], s[4:5]", "v_mov_b32_e32 v5, 0", 0),
]  # fmt: skip


def check(arch: str, body: str) -> None:
    Code.of(f'  .amdgcn_target "amdgcn-amd-amdhsa--{arch}"\nf:\n{body}\n  s_endpgm\n')


def nops(count: int) -> str:
    """Return instructions that count as many wait states: eight at most each."""
    parts = [min(8, count - done) for done in range(0, count, 8)]
    return "".join(f"  s_nop {part - 1}\n" for part in parts)


@pytest.mark.parametrize(("arch", "first", "second", "need"), PAIRS)
def test_distances(arch: str, first: str, second: str, need: int) -> None:
    check(arch, f"  {first}\n{nops(need)}  {second}")
    if need:
        with pytest.raises(InstructionHazard, match=f"takes {need} wait states, and {need - 1}"):
            check(arch, f"  {first}\n{nops(need - 1)}  {second}")


def test_the_way_over_a_branch() -> None:
    body = """
  v_readfirstlane_b32 s8, v0
  s_cbranch_scc1 .L1
  s_nop 4
  s_branch .L2
.L1:
  s_nop {n}
.L2:
  global_load_dword v1, v0, s[8:9]
"""
    check("gfx90a", body.format(n=3))
    with pytest.raises(InstructionHazard, match="takes 5 wait states, and 4"):
        check("gfx90a", body.format(n=2))


def test_the_way_back_to_the_head_of_a_loop() -> None:
    body = """
.L1:
  v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf
  v_mov_b32_e32 v1, 0
  s_cbranch_scc1 .L1
"""
    with pytest.raises(InstructionHazard, match="lanes move that a vector instruction wrote"):
        check("gfx90a", body)


def test_nothing_is_asked_behind_the_end() -> None:
    check("gfx90a", "  v_readfirstlane_b32 s8, v0\n s_endpgm\n global_load_dword v1, v0, s[8:9]")


def test_what_was_written_anew_is_no_hazard() -> None:
    body = "  v_readfirstlane_b32 s8, v0\n  {second}\n  global_load_dword v1, v0, s[8:9]"
    check("gfx90a", body.format(second="s_lshl_b64 s[8:9], s[8:9], 4"))
    with pytest.raises(InstructionHazard):
        check("gfx90a", body.format(second="s_mov_b32 s9, 0"))


@pytest.mark.parametrize("machine", ["gfx90a", "gfx942"])
def test_assemblers_accept_the_texts(machine: str) -> None:
    texts = [text for arch, *pair, _ in PAIRS for text in pair if arch == machine]
    assert complaints(machine, texts) == []
