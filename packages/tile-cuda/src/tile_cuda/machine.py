"""NVIDIA architectures: what each offers, as data. Passes ask for features, never for versions.

Features were taken from the assembler: an architecture has one if the instruction is real there.
Instructions that assemble but expand to slow sequences (``mma.m8n8k4`` after Turing, 4-bit integer
and warp-level fp8 products on Hopper) are not features. Sizes: CUDA C++ Programming Guide,
"Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from tile_core.machine import AsyncMma, Multiprocessor, SimtMachine
from tile_core.simt.architectures import row_called
from tile_core.simt.division_strength_reduction import FEATURE
from tile_cuda.device_names import DEVICE_NAMES
from tile_cuda.ptx_mma import mma_instructions_of

_KIB = 1024

_VOLTA = frozenset(
    {
        "mma_m8n8k4",  # four 8x8x4 products of quarter warps
        "dp4a",
        "f16_arithmetic",
        "atomic_f16",
        "atomic_f16x2",
        "atomic_f64",
        "match_sync",
        "nanosleep",
    }
)
_TURING = _VOLTA | {
    "mma_m16n8k8_f16",
    "mma_int8_m8n8k16",
    "mma_int4_m8n8k32",
    "load_matrix",
    "movmatrix",
    "tanh_approx",
    "ex2_f16x2",
}
_AMPERE = (_TURING - {"mma_m8n8k4"}) | {
    "mma_m16n8k16",
    "mma_bf16",
    "mma_tf32",
    "mma_f64",
    "mma_int8_m16n8k32",
    "mma_int4",
    "cache_hint",
    "async_copy",
    "mbarrier",
    "bf16_arithmetic",
    "max_nan",
    "redux",
}
_FAST_FLOAT64 = frozenset({FEATURE})  # half as many float64 units as of float32
_ADA = _AMPERE | {"mma_fp8", "fp8_convert"}
_HOPPER = (_ADA - {"mma_int4", "mma_int4_m8n8k32", "mma_fp8"}) | {
    "atomic_bf16",
    "atomic_bf16x2",
    "atomic_f32x2",
    "atomic_f32x4",
    "clusters",
    "dependent_launch",
    "elect",
    "transaction_barriers",
    "mma_f64_m16n8",
    "store_matrix",
    "copy_engine",
}
_HOPPER_ONLY = _HOPPER | {"register_reallocation", "async_mma"} | _FAST_FLOAT64

_WGMMA = AsyncMma(rows=64, step_bits=256, warps=4)
"""PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """One row of the table: what lowering sees, and what limits occupancy."""

    simt: SimtMachine
    multiprocessor: Multiprocessor


def _row(
    name: str, features: frozenset[str], block_kib: int, threads: int, blocks: int, all_kib: int
) -> Architecture:
    # From Ampere on a block costs one kilobyte more than it asks for.
    shares = Multiprocessor(threads, blocks, all_kib * _KIB, (all_kib - block_kib) * _KIB)
    return Architecture(
        SimtMachine(
            name=name,
            family="cuda",
            shared_bytes=block_kib * _KIB,
            features=features,
            mma_instructions=mma_instructions_of(features),
            async_mma=_WGMMA if "async_mma" in features else None,
            multiprocessor=shares,
            device_names=DEVICE_NAMES,
        ),
        shares,
    )


ARCHITECTURES = MappingProxyType(
    {
        row.simt.name: row
        for row in (
            #    name       features   KiB per block, threads, blocks, KiB in all
            _row("sm_70", _VOLTA | _FAST_FLOAT64, 96, 2048, 32, 96),
            _row("sm_75", _TURING, 64, 1024, 16, 64),
            _row("sm_80", _AMPERE | _FAST_FLOAT64, 163, 2048, 32, 164),
            _row("sm_86", _AMPERE, 99, 1536, 16, 100),
            _row("sm_87", _AMPERE, 163, 1536, 16, 164),
            _row("sm_89", _ADA, 99, 1536, 24, 100),
            _row("sm_90", _HOPPER | _FAST_FLOAT64, 227, 2048, 32, 228),
            _row("sm_90a", _HOPPER_ONLY, 227, 2048, 32, 228),
        )
    }
)
"""By name, oldest first."""


def architecture(arch: str) -> Architecture:
    """Return the row called `arch`, such as ``"sm_80"``.

    Raises
    ------
    TargetError
        If there is no such row; the hint names the nearest ones.
    """
    return row_called(arch, ARCHITECTURES, "cuda", f"no NVIDIA architecture is called {arch!r}")


def machine(arch: str) -> SimtMachine:
    """Return what lowering must know of the architecture `arch`, such as ``"sm_80"``.

    Raises
    ------
    TargetError
        If there is no such architecture; the hint names the nearest ones.
    """
    return architecture(arch).simt
