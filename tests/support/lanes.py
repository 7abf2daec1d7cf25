"""Small assemblies around a few instructions: what they take from memory and bring back there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tile_core.errors import UnknownInstruction
from tile_sim import gfx9

INPUTS = 4
_DESCRIPTOR = """
  .amdhsa_kernel f
    .amdhsa_group_segment_fixed_size {shared}
    .amdhsa_private_segment_fixed_size {private}
    .amdhsa_user_sgpr_count 2
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_system_sgpr_workgroup_id_y 0
    .amdhsa_system_vgpr_workitem_id 0
  .end_amdhsa_kernel
  .amdgpu_metadata
---
amdhsa.kernels:
  - .args:
{arguments}
    .kernarg_segment_size: {size}
    .name:           f
    .symbol:         f.kd
...
  .end_amdgpu_metadata
"""
_ARGUMENT = """      - .offset:         {offset}
        .size:           8
        .value_kind:     global_buffer"""


def assembly(
    body: str, *, buffers: int = 2, shared: int = 0, private: int = 0, arch: str = "gfx942"
) -> str:
    """Return a kernel ``f`` of some instructions; s[0:1] points to its buffers, s2 is its group."""
    arguments = "\n".join(_ARGUMENT.format(offset=8 * i) for i in range(buffers))
    tail = _DESCRIPTOR.format(shared=shared, private=private, arguments=arguments, size=8 * buffers)
    return f'  .amdgcn_target "amdgcn-amd-amdhsa--{arch}"\nf:\n{body}\n  s_endpgm\n{tail}'


LOADS = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32_e32 v0, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v1, v0, s[4:5]
  global_load_dword v2, v0, s[4:5] offset:256
  global_load_dword v3, v0, s[4:5] offset:512
  global_load_dword v4, v0, s[4:5] offset:768
  s_waitcnt vmcnt(0)
  v_mov_b32_e32 v20, v1
  v_mov_b32_e32 v21, v2
  v_mov_b32_e32 v22, v3
  v_mov_b32_e32 v23, v4
"""
"""Bring four words into v1 to v4 of each lane, and v[20:23]; v0 is the lane's byte offset."""


def stores(count: int) -> str:
    """Return the stores of v10 and what follows it."""
    lines = ["  s_nop 7"]
    for i in range(count):
        lines.append(f"  global_store_dword v0, v{10 + i}, s[6:7] offset:{256 * i}")
    return "\n".join(lines)


def on_lanes(
    body: str,
    *inputs: Any,
    outputs: int = 1,
    shared: int = 0,
    private: int = 0,
    arch: str = "gfx942",
    seed: int | None = None,
) -> Any:
    """Run instructions on one wave, and return v10 and what follows as ``(outputs, 64)``.

    Parameters
    ----------
    inputs
        Up to four: what v1 to v4, and v[20:23], hold, for each lane or for all of them, as
        32-bit words.
    """
    given = np.zeros((INPUTS, 64), np.uint32)
    for row, value in enumerate(inputs):
        given[row] = np.asarray(value).view(np.uint32) if np.ndim(value) else word(value)
    found = np.full((outputs, 64), 0xDEADBEEF, np.uint32)
    text = assembly(
        LOADS + body + "\n" + stores(outputs), shared=shared, private=private, arch=arch
    )
    gfx9.run(text, "f", grid=1, block=64, arguments=[given, found], seed=seed)
    return found


def with_any_modifier(texts: Iterable[str]) -> list[str]:
    """Return which instructions of some texts are decoded with a modifier that nothing has."""
    found = []
    for line in dict.fromkeys(line.strip() for text in texts for line in text.split("\n")):
        with suppress(UnknownInstruction):
            gfx9.Code.of(f"f:\n  {line} twice:1\n")
            found.append(line)
    return found


def word(value: int | float) -> int:
    """Return the bits of a number: a float in single precision, or a whole number."""
    if isinstance(value, float):
        return int(np.float32(value).view(np.uint32))
    return value % (1 << 32)


def half(*values: float) -> int:
    """Return one or two halves in a word, the first in the lower part."""
    bits = [int(np.float16(v).view(np.uint16)) for v in values]
    return sum(b << 16 * i for i, b in enumerate(bits))


def run_group(
    body: str,
    arguments: Sequence[Any],
    *,
    block: int = 128,
    grid: int = 1,
    shared: int = 0,
    arch: str = "gfx942",
    seed: int | None = None,
) -> gfx9.WaveReport:
    """Run a kernel of some instructions on workgroups of several waves."""
    text = assembly(body, buffers=len(arguments), shared=shared, arch=arch)
    return gfx9.run(text, "f", grid=grid, block=block, arguments=arguments, seed=seed)
