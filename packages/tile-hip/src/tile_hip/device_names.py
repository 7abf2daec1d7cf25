"""What the device header for AMD's GPUs calls the functions of `tile_core.ir.device_calls`."""

from __future__ import annotations

from collections.abc import Mapping

_SHAPES = (
    "32x32x2", "32x32x4", "32x32x8", "32x32x16", "32x32x32",
    "16x16x4", "16x16x8", "16x16x16", "16x16x32", "16x16x64",
)  # fmt: skip

DEVICE_NAMES: Mapping[str, str] = {
    "async_copy": "cp_async",
    "async_copy_commit": "cp_async_commit",
    "async_copy_wait": "cp_async_wait",
    "async_copy_mbarrier_arrive": "cp_async_mbarrier_arrive",
    "counted_load": "lds_load",
    "counted_wait": "lds_wait",
    **{f"mma_{shape}": f"mfma_{shape}" for shape in _SHAPES},
}
"""Those that are not called the same. `lds_load` is a buffer load into the LDS, `lds_wait` waits
for a count of them (``s_waitcnt vmcnt``): AMD "CDNA3 Instruction Set Architecture", "Memory Buffer
Instructions" and "S_WAITCNT".
"""
