"""The x86 processors we compile for, and which of them ``/proc/cpuinfo`` describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tile_cpu.cpu_machine import CpuMachine, row

_V2 = frozenset({"sse4_2", "popcnt"})
_V3 = _V2 | {"avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_ICELAKE = _V4 | {
    "avx512vnni",
    "avx512vbmi",
    "avx512vbmi2",
    "avx512bitalg",
    "avx512vpopcntdq",
    "avx512ifma",
    "gfni",
}
_ZNVER4 = _ICELAKE | {"avx512bf16"}
_SAPPHIRE = _ICELAKE | {
    "avx512bf16",
    "avx512fp16",
    "avxvnni",
    "amx-tile",
    "amx-int8",
    "amx-bf16",
}
_ALDERLAKE = _V3 | {"avxvnni", "gfni"}

LINUX_SPELLING = {
    "avx512_vnni": "avx512vnni",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512_bitalg": "avx512bitalg",
    "avx512_vpopcntdq": "avx512vpopcntdq",
    "avx512_bf16": "avx512bf16",
    "avx512_fp16": "avx512fp16",
    "avx_vnni": "avxvnni",
    "amx_tile": "amx-tile",
    "amx_int8": "amx-int8",
    "amx_bf16": "amx-bf16",
}
"""Features that ``/proc/cpuinfo`` and LLVM spell differently: the former's, the latter's."""

X86_MACHINES: dict[str, CpuMachine] = {
    known.name: known
    for known in (
        row("x86-64-v2", _V2, (32, 8), (256, 8)),
        row("x86-64-v3", _V3, (32, 8), (256, 8)),
        row("x86-64-v4", _V4, (32, 8), (1024, 16)),
        row("haswell", _V3, (32, 8), (256, 8)),
        row("broadwell", _V3, (32, 8), (256, 8)),
        row("skylake", _V3, (32, 8), (256, 4)),
        row("alderlake", _ALDERLAKE, (48, 12), (1280, 10)),
        row("skylake-avx512", _V4, (32, 8), (1024, 16)),
        row("cascadelake", _V4 | {"avx512vnni"}, (32, 8), (1024, 16)),
        row("cooperlake", _V4 | {"avx512vnni", "avx512bf16"}, (32, 8), (1024, 16)),
        row("icelake-server", _ICELAKE, (48, 12), (1280, 20)),
        row("sapphirerapids", _SAPPHIRE, (48, 12), (2048, 16)),
        row("znver2", _V3, (32, 8), (512, 8)),
        replace(row("znver3", _V3, (32, 8), (512, 8)), streams_unaided=True),
        row("znver4", _ZNVER4, (32, 8), (1024, 8)),
        replace(
            row("znver5", _ZNVER4 | {"avxvnni"}, (48, 12), (1024, 16)),
            packs_in_kernel=True,
            dot_row_bytes=2048,
            streams_unaided=True,
        ),
    )
}

# (vendor, family, models) as in /proc/cpuinfo -> row. First match wins.
_AMD, _INTEL = "AuthenticAMD", "GenuineIntel"
_MODELS: tuple[tuple[str, int, range | tuple[int, ...], str], ...] = (
    (_AMD, 26, range(256), "znver5"),
    (_AMD, 25, (*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0)), "znver4"),
    (_AMD, 25, range(256), "znver3"),
    (_AMD, 23, range(256), "znver2"),
    (_INTEL, 6, (143, 207, 173, 174), "sapphirerapids"),
    (_INTEL, 6, (106, 108), "icelake-server"),
    (_INTEL, 6, (85,), "cooperlake"),
    (_INTEL, 6, (151, 154, 183, 186, 190, 191), "alderlake"),
    (_INTEL, 6, (78, 94, 142, 158, 165, 166), "skylake"),
    (_INTEL, 6, (61, 71, 79, 86), "broadwell"),
    (_INTEL, 6, (60, 63, 69, 70), "haswell"),
)


def match_host(vendor: str, family: int, model: int, features: frozenset[str]) -> CpuMachine:
    """Return the row for a processor, less the instruction sets it does not show.

    The model decides how LLVM schedules code and what it would like to use; what a
    hypervisor masks is switched off again. An unknown model gets the best generic level.
    """
    known = (
        name for v, f, models, name in _MODELS if (v, f) == (vendor, family) and model in models
    )
    found = X86_MACHINES[next(known, "") or generic_level(features, "x86-64-v2")]
    lacking = tuple(sorted(found.features - features))
    if not lacking:
        return found
    return replace(found, features=found.features & features, disabled=lacking)


def generic_level(features: frozenset[str], lowest: str) -> str:
    """Return the best generic level of x86-64 whose `features` are all there, or else `lowest`."""
    levels = ("x86-64-v4", "x86-64-v3", "x86-64-v2")
    return next((name for name in levels if X86_MACHINES[name].features <= features), lowest)


def described_x86(facts: Mapping[str, str]) -> CpuMachine:
    """Return the machine that the first paragraph of ``/proc/cpuinfo`` describes."""
    names = facts.get("flags", "").split()
    features = frozenset(LINUX_SPELLING.get(name, name) for name in names)
    family, model = (int(facts.get(key, "0") or 0) for key in ("cpu family", "model"))
    return match_host(facts.get("vendor_id", ""), family, model, features)
