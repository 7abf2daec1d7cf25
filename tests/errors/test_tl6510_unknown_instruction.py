"""TL6510: an instruction that the interpreter of machine code does not know."""

from __future__ import annotations

import pytest

from tile_core.errors import UnknownInstruction
from tile_sim.gfx9 import Code

MESSAGES = {
    "v_warp_b32 v0, v1": "line 2: v_warp_b32 v0, v1: the instruction v_warp_b32 is unknown",
    "v_add_u32_e32 v0, v1": "line 2: v_add_u32_e32 v0, v1: it has 2 operands in place of 3",
    "v_add_u32_e32 v0, v1, r2": "line 2: v_add_u32_e32 v0, v1, r2: the operand r2 is unknown",
    "v_mov_b32_e32 v0, v1 twice:1": (
        "line 2: v_mov_b32_e32 v0, v1 twice:1: the modifier twice is unknown here"
    ),
    "v_mfma_f32_32x32x8_f16 v[0:3], v[4:5], v[6:7], v[0:3]": (
        "line 2: v_mfma_f32_32x32x8_f16 v[0:3], v[4:5], v[6:7], v[0:3]: it has (4, 2, 2) "
        "registers in place of (16, 2, 2)"
    ),
    "v_mov_b64_e32 v[0:1], v[3:4]": (
        "line 2: v_mov_b64_e32 v[0:1], v[3:4]: the registers v[3:4] begin at a number that they "
        "may not"
    ),
    "v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, v[4:7]": (
        "line 2: v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, v[4:7]: its addend and its result lie in "
        "registers of two kinds"
    ),
    "s_branch .nowhere": "line 2: s_branch .nowhere: the label .nowhere is unknown",
}


@pytest.mark.parametrize("text", MESSAGES)
def test_message(text: str) -> None:
    with pytest.raises(UnknownInstruction) as caught:
        Code.of(f"f:\n  {text}\n")
    assert str(caught.value) == f"[TL6510] {MESSAGES[text]}"
