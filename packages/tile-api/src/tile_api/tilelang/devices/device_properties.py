"""What programs are told about the GPU that is not there."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from tile_api.settings.pretended_gpu import PretendedGpu, parse_gpu
from tile_core.environment import environment
from tile_core.target import Target

_MULTIPROCESSORS = {
    **{"sm_70": 80, "sm_75": 40, "sm_80": 108, "sm_86": 84, "sm_87": 16, "sm_89": 142},
    **{
        "sm_90": 132,
        "sm_100": 148,
        "sm_103": 148,
        "sm_110": 20,
        "sm_120": 170,
        "sm_121": 48,
        "gfx908": 120,
        "gfx90a": 104,
        "gfx942": 304,
        "gfx950": 256,
    },
}
"""Of one GPU for data centres of each architecture."""

_SHARED_KIB = {
    **{"sm_70": 96, "sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_87": 163, "sm_89": 99},
    **{"sm_120": 99, "sm_121": 99, "gfx908": 64, "gfx90a": 64, "gfx942": 64, "gfx950": 160},
}

_THREADS = {
    **{"sm_75": 1024, "sm_86": 1536, "sm_87": 1536, "sm_89": 1536},
    **{"sm_110": 1536, "sm_120": 1536, "sm_121": 1536},
}
"""That a multiprocessor holds, where it is not 2048."""

_MEMORY_GIB = {
    **{"sm_70": 32, "sm_75": 16, "sm_80": 80, "sm_86": 48, "sm_89": 48, "sm_90": 80},
    **{
        "sm_100": 180,
        "sm_103": 270,
        "sm_110": 122,
        "sm_120": 32,
        "sm_121": 119,
        "gfx908": 32,
        "gfx90a": 64,
        "gfx942": 192,
        "gfx950": 288,
    },
}

DATA_CENTRE = "sm_90"
"""What the CPU and the interpreter are told to be: many clients run on nothing older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProperties:
    """What `torch.cuda.get_device_properties` returns."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int
    warp_size: int = 32
    max_threads_per_block: int = 1024
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 48 << 10
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int = 50 << 20
    clock_rate: int = 1_500_000
    memory_clock_rate: int = 2_600_000
    memory_bus_width: int = 5120
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    gcnArchName: str = ""
    uuid: str = ""


def properties_of(target: Target) -> DeviceProperties:
    """Return what a program is told about the GPU that `target` stands in for.

    It has the sizes of one for data centres, unless ``TILE_PRETENDED_GPU`` says otherwise. The
    CPU and the interpreter run programs for `DATA_CENTRE`.
    """
    gpu = pretended_gpu(target)
    arch = gpu.arch
    major, minor = capability_of(arch)
    shared = shared_bytes_of(arch)
    reserved = 1024 if arch.startswith("sm_") and major >= 8 else 0  # of each block
    return DeviceProperties(
        name=f"{arch}, in its place {target}",
        major=major,
        minor=minor,
        multi_processor_count=gpu.multiprocessors or _MULTIPROCESSORS.get(_plain(arch), 132),
        total_memory=(gpu.memory or _MEMORY_GIB.get(_plain(arch), 80)) << 30,
        warp_size=64 if arch.startswith("gfx9") else 32,
        max_threads_per_multi_processor=_THREADS.get(_plain(arch), 2048),
        shared_memory_per_block_optin=shared,
        shared_memory_per_multiprocessor=shared + reserved,
        gcnArchName=arch if arch.startswith("gfx") else "",
    )


def pretended_gpu(target: Target) -> PretendedGpu:
    """Return which GPU programs are told of: the one that was asked for, or that is emulated."""
    asked = parse_gpu(environment().get("TILE_PRETENDED_GPU", ""))
    emulated = target.arch if target.kind in ("cuda", "hip") else ""
    return asked if asked.arch else replace(asked, arch=emulated or DATA_CENTRE)


def capability_of(arch: str) -> tuple[int, int]:
    """Return the compute capability, as torch counts it for GPUs of both makers."""
    digits = arch.removeprefix("sm_").removeprefix("gfx").rstrip("af")
    if arch.startswith("gfx"):
        return 9, {"gfx908": 0, "gfx90a": 0, "gfx942": 4, "gfx950": 5}.get(arch, 4)
    return int(digits[:-1]), int(digits[-1])


def shared_bytes_of(arch: str) -> int:
    """Return the shared memory that one block may ask for; the CPU has enough for any."""
    return _SHARED_KIB.get(_plain(arch), 227) << 10


def _plain(arch: str) -> str:
    """Return the name without the letter that says for which others code is: ``sm_90``."""
    return arch.rstrip("af") if arch.startswith("sm_") else arch


def host_memory() -> tuple[int, int]:
    """Return the bytes of this machine's memory that are free, and all."""
    page = os.sysconf("SC_PAGE_SIZE")
    return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page
