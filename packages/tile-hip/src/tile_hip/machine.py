"""AMD architectures: what each offers, as data. Passes ask for features, never for versions.

Sizes and instructions: AMD "CDNA2", "CDNA3" and "CDNA4 Instruction Set Architecture"; LLVM, "User
Guide for AMDGPU Backend". A matrix instruction is a feature only where it is selected as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tile_core.machine import Multiprocessor, SimtMachine
from tile_core.simt.architectures import row_called
from tile_core.simt.division_strength_reduction import FEATURE
from tile_core.simt.software_barriers import FEATURE as BARRIERS_IN_MEMORY

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
"""What the device header calls functions of `tile_core.ir.device_calls`, if not the same.

`lds_load` is a buffer load into the LDS, `lds_wait` waits for a count of them (``s_waitcnt
vmcnt``): AMD "CDNA3 Instruction Set Architecture", "Memory Buffer Instructions" and "S_WAITCNT".
"""


_KIB = 1024
_WAVE = 64
_SIMDS = 4
_WAVES_OF_SIMD = 8
_REGISTERS_OF_LANE = 512
_REGISTER_UNIT = 8  # of a lane
_BARRIERS = 16  # that programs may number; the first is that of the hardware

_CDNA2 = frozenset(
    {
        "mfma_f32",
        "mfma_f16",
        "mfma_bf16",
        "mfma_f64",
        "mfma_i8",  # four operands of a product in a lane
        "counted_load",  # from tensors to the block's memory, 4 bytes a lane
        "atomic_f32",
        "atomic_f64",
        "atomic_f16x2",
        "f16_arithmetic",
        FEATURE,  # as many float64 units as of float32
        BARRIERS_IN_MEMORY,  # the block has one of its own
        "dot4",
    }
)
_CDNA3 = (_CDNA2 - {"mfma_i8"}) | {
    "mfma_i8_wide",  # eight operands in a lane
    "mfma_fp8_fnuz",
    "mfma_xf32",
    "atomic_bf16x2",
    "fp8_fnuz_convert",
}
_CDNA4 = (_CDNA3 - {"mfma_fp8_fnuz", "mfma_xf32", "fp8_fnuz_convert"}) | {
    "mfma_f16_wide",
    "mfma_bf16_wide",
    "mfma_i8_wide2",  # sixteen
    "mfma_fp8",
    "fp8_convert",
    "counted_load_16",  # 16 bytes a lane
    "bf16_convert",
}


def _row(name: str, features: frozenset[str], shared_kib: int, banks: int) -> SimtMachine:
    compute_unit = Multiprocessor(
        threads=_SIMDS * _WAVES_OF_SIMD * _WAVE,
        blocks=_SIMDS * _WAVES_OF_SIMD,
        shared_bytes=shared_kib * _KIB,
        registers=_SIMDS * _REGISTERS_OF_LANE * _WAVE,
        register_unit=_REGISTER_UNIT * _WAVE,
    )
    return SimtMachine(
        name=name,
        family="hip",
        shared_bytes=shared_kib * _KIB,
        features=features,
        warp_size=_WAVE,
        registers=_REGISTERS_OF_LANE,
        plain_registers=_REGISTERS_OF_LANE // 2,
        banks=banks,
        barriers=_BARRIERS,
        max_block=(1024, 1024, 1024),
        multiprocessor=compute_unit,
        device_names=DEVICE_NAMES,
    )


ARCHITECTURES = MappingProxyType(
    {
        row.name: row
        for row in (
            #    name      features  KiB of LDS, its banks
            _row("gfx90a", _CDNA2, 64, 32),
            _row("gfx942", _CDNA3, 64, 32),
            _row("gfx950", _CDNA4, 160, 64),
        )
    }
)
"""By name, oldest first."""


def machine(arch: str) -> SimtMachine:
    """Return what lowering must know of the architecture `arch`, such as ``"gfx942"``.

    Raises
    ------
    TargetError
        If there is no such architecture; the hint names the nearest ones.
    """
    return row_called(
        arch, ARCHITECTURES, "hip", f"no AMD architecture that is known here is called {arch!r}"
    )
