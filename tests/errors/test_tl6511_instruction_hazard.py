"""TL6511: machine instructions that are too close to each other."""

from __future__ import annotations

import pytest

from tile_core.errors import InstructionHazard
from tile_sim.gfx9 import Code


def test_message() -> None:
    with pytest.raises(InstructionHazard) as caught:
        Code.of("f:\n  s_mov_b32 m0, s8\n  buffer_load_dword v0, s[4:7], 0 offen lds\n")
    assert (
        str(caught.value)
        == """\
[TL6511] line 3: buffer_load_dword v0, s[4:7], 0 offen lds: a load into shared memory reads M0 \
behind a scalar write, which takes 1 wait states, and 0 have passed
note: since line 2: s_mov_b32 m0, s8
hint: other instructions or an s_nop must stand between the two"""
    )
