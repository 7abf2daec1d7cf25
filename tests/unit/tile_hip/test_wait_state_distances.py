"""Loads that the device header writes out stand far enough behind what they read."""

from __future__ import annotations

import pytest

from support.hip_header import assembly, printed
from tile_hip.assembly import kernels_of
from tile_hip.machine_code import compile_source
from tile_hip.wait_state_distances import WIDER, near_buffers, needs_wider

LOAD = "buffer_load_dword v1, s[4:7], 0 offen lds"


def text_of(*instructions: str) -> str:
    lines = (f"\t{line}" if not line.endswith(":") else line for line in instructions)
    return "\n".join(("\t.type\tk,@function", "k:", *lines, "\ts_endpgm", ".Lfunc_end0:"))


@pytest.mark.parametrize(
    ("instructions", "is_near"),
    [
        (("v_readlane_b32 s5, v40, 3", "s_mov_b32 m0, s9", "s_nop 0", LOAD), True),
        (("v_readlane_b32 s5, v40, 3", "s_mov_b32 m0, s9", "s_nop 3", LOAD), False),
        (("v_readlane_b32 s8, v40, 3", "s_mov_b32 m0, s9", "s_nop 0", LOAD), False),
        (("v_cmp_gt_i32_e64 s[6:7], v1, v2", "s_nop 0", LOAD), True),
        (("v_add_co_u32_e64 v1, s[4:5], v2, v3", LOAD), True),
        (("v_add_co_u32_e64 v1, vcc, v2, v3", LOAD), False),
        (("s_mov_b32 s5, s9", LOAD), False),
        (("v_readfirstlane_b32 s5, v1", "v_mov_b32 v2, v3", "v_mov_b32 v2, v3", "s_nop 1", LOAD),
         True),
        (("v_readfirstlane_b32 s5, v1", "s_nop 4", LOAD), False),
        # Around the loop, and not past a jump.
        ((".LBB0_1:", "s_nop 0", LOAD, "v_readlane_b32 s4, v9, 0", "s_cbranch_scc1 .LBB0_1"), True),
        (("v_readlane_b32 s4, v9, 0", "s_branch .LBB0_2", "s_nop 0", LOAD, ".LBB0_2:"), False),
    ],
)  # fmt: skip
def test_loads_right_behind_vector_instructions(instructions, is_near):
    text = text_of(*instructions)
    assert needs_wider(text) is is_near
    at = [i for i, each in enumerate(kernels_of(text)["k"]) if each.is_lds_load]
    assert near_buffers(kernels_of(text)["k"]) == (tuple(at) if is_near else ())


BODY = """
  const tile::u64 base = (tile::u64(tile::uniform(I[0])) << 32) | tile::u32(tile::uniform(I[tid]));
  tile::lds_load<4>(tile::smem<half_t>(0, 256), tile::at<half_t>(base), tid * 2, true);
  tile::lds_wait<0>();
  tile::sync();
  H[tid] = tile::smem<half_t>(0, 256)[tid];
"""


def test_kernels_with_such_loads_are_compiled_with_wider_distances():
    assert needs_wider(assembly("gfx942", BODY))
    assert not needs_wider(assembly("gfx942", BODY, flags=(WIDER,)))
    assert not needs_wider(compile_source(printed(BODY), "gfx942").assembly)
