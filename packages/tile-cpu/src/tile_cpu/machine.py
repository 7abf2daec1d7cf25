"""The x86 machines we compile for: one row of facts each, and which one this process runs on."""

from __future__ import annotations

import platform
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tile_core.errors import MissingFeature, TargetError
from tile_core.records import dataclass

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

# /proc/cpuinfo and LLVM spell some features differently.
_KERNEL_SPELLING = {
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
_LLVM_SPELLING = {"sse4_2": "sse4.2", "bmi1": "bmi"}
_VECTOR_512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})


@dataclass(frozen=True, slots=True)
class CpuMachine:
    """What code generation needs to know about an x86 processor.

    Parameters
    ----------
    packs_in_kernel
        Whether panels of second factors are best written by the kernel that multiplies them
        with its first rows, whose multiplications then hide loads and stores; measured, machine
        by machine. Elsewhere a pass of its own writes them before.
    dot_row_bytes
        Of rows of a transposed second factor that several passes read, one after the other, a
        pass takes so many bytes at a time, which stay in the first-level cache for the others;
        measured, machine by machine. 0 for whole rows.
    streams_unaided
        Whether a second factor that one row is multiplied with comes fastest if nothing of it is
        fetched ahead: loads run ahead far enough, and the hardware follows them; measured,
        machine by machine.
    """

    name: str  # what users write after ``cpu:``
    cpu: str  # LLVM's name for it (-mcpu)
    features: frozenset[str]  # instruction sets that generated code may use, in LLVM's spelling
    l1_bytes: int  # data cache of one core
    l2_bytes: int
    disabled: tuple[str, ...] = ()  # features of `cpu` it lacks: virtual machines mask some
    l3_bytes: int = 32 << 20  # last-level cache that one core reaches
    packs_in_kernel: bool = False
    dot_row_bytes: int = 0
    streams_unaided: bool = False

    @property
    def vector_bytes(self) -> int:
        """Bytes of the widest vector register: 64, 32 or 16."""
        if self.features >= _VECTOR_512:
            return 64
        return 32 if "avx2" in self.features else 16

    @property
    def vector_registers(self) -> int:
        """Number of architectural vector registers."""
        return 32 if self.vector_bytes == 64 else 16

    def lanes(self, bits: int) -> int:
        """Return how many elements of `bits` bits fill one vector register."""
        return self.vector_bytes * 8 // bits

    def has(self, *features: str) -> bool:
        """Tell whether every one of `features` may be used."""
        return self.features.issuperset(features)

    def llvm_target(self) -> dict[str, object]:
        """Return TVM's description of this machine."""
        spec: dict[str, object] = {"kind": "llvm", "mcpu": self.cpu}
        if self.disabled:
            spec["mattr"] = [f"-{_LLVM_SPELLING.get(f, f)}" for f in self.disabled]
        return spec


def _row(name: str, features: frozenset[str], l1_kib: int, l2_kib: int) -> CpuMachine:
    return CpuMachine(name, name, features, l1_kib * 1024, l2_kib * 1024)


MACHINES: dict[str, CpuMachine] = {
    row.name: row
    for row in (
        _row("x86-64-v2", _V2, 32, 256),
        _row("x86-64-v3", _V3, 32, 256),
        _row("x86-64-v4", _V4, 32, 1024),
        _row("haswell", _V3, 32, 256),
        _row("broadwell", _V3, 32, 256),
        _row("skylake", _V3, 32, 256),
        _row("alderlake", _ALDERLAKE, 48, 1280),
        _row("skylake-avx512", _V4, 32, 1024),
        _row("cascadelake", _V4 | {"avx512vnni"}, 32, 1024),
        _row("cooperlake", _V4 | {"avx512vnni", "avx512bf16"}, 32, 1024),
        _row("icelake-server", _ICELAKE, 48, 1280),
        _row("sapphirerapids", _SAPPHIRE, 48, 2048),
        _row("znver2", _V3, 32, 512),
        _row("znver3", _V3, 32, 512),
        _row("znver4", _ZNVER4, 32, 1024),
        replace(
            _row("znver5", _ZNVER4 | {"avxvnni"}, 48, 1024),
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


def machine(name: str) -> CpuMachine:
    """Return the machine called `name`; empty, ``native`` or ``host`` mean this one.

    Raises
    ------
    TargetError
        If there is no such row.
    """
    if name in ("", "native", "host"):
        return host_machine()
    if name not in MACHINES:
        raise TargetError(
            f"no x86 machine is called {name!r}",
            hint="use one of " + ", ".join(sorted(MACHINES)) + ", or 'cpu' for this machine",
        )
    return MACHINES[name]


def match_host(vendor: str, family: int, model: int, features: frozenset[str]) -> CpuMachine:
    """Return the row for a processor, less the instruction sets it does not show.

    The model decides how LLVM schedules code and what it would like to use; what a
    hypervisor masks is switched off again. An unknown model gets the best generic level.
    """
    known = (row for v, f, models, row in _MODELS if (v, f) == (vendor, family) and model in models)
    row = MACHINES[next(known, "") or generic_level(features, "x86-64-v2")]
    lacking = tuple(sorted(row.features - features))
    return replace(row, features=row.features & features, disabled=lacking) if lacking else row


def generic_level(features: frozenset[str], lowest: str) -> str:
    """Return the best generic level of x86-64 whose `features` are all there, or else `lowest`."""
    levels = ("x86-64-v4", "x86-64-v3", "x86-64-v2")
    return next((name for name in levels if MACHINES[name].features <= features), lowest)


@lru_cache(maxsize=1)
def host_machine() -> CpuMachine:
    """Return the machine this process runs on.

    Reads ``/proc/cpuinfo``. Where there is none the answer is the generic ``x86-64-v3``.

    Raises
    ------
    TargetError
        If the processor is not an x86-64.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise TargetError(
            f"the CPU backend runs on x86-64, this machine is {platform.machine()}",
            hint="use target 'interpret', the reference interpreter",
        )
    source = Path("/proc/cpuinfo")
    if not source.exists():
        return MACHINES["x86-64-v3"]
    found = parse_cpuinfo(source.read_text(errors="replace"))
    return replace(found, l3_bytes=_last_level_bytes() or found.l3_bytes)


def _last_level_bytes() -> int | None:
    """Return the size of the first processor's last-level cache, None if it is not told."""
    source = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    try:
        text = source.read_text().strip()
    except OSError:
        return None
    return int(text[:-1]) * 1024 if text.endswith("K") and text[:-1].isdigit() else None


def parse_cpuinfo(text: str) -> CpuMachine:
    """Return the machine described by the first processor in a ``/proc/cpuinfo`` text."""
    facts: dict[str, str] = {}
    for line in text.split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        facts[key.strip()] = value.strip()
    flags = facts.get("flags", "").split()
    features = frozenset(_KERNEL_SPELLING.get(flag, flag) for flag in flags)
    family, model = (int(facts.get(key, "0") or 0) for key in ("cpu family", "model"))
    return match_host(facts.get("vendor_id", ""), family, model, features)


def names_of_linux(features: frozenset[str]) -> list[str]:
    """Return instruction sets as ``/proc/cpuinfo`` calls them, sorted."""
    spelling = {ours: theirs for theirs, ours in _KERNEL_SPELLING.items()}
    return sorted(spelling.get(feature, feature) for feature in features)


def missing_features(wanted: CpuMachine, host: CpuMachine | None = None) -> tuple[str, ...]:
    """Return the features code for `wanted` may use and `host` lacks, sorted."""
    have = (host or host_machine()).features
    return tuple(sorted(wanted.features - have))


def require_runnable(wanted: CpuMachine, host: CpuMachine | None = None) -> None:
    """Refuse to run code compiled for `wanted` here if it could hit an unknown instruction.

    Raises
    ------
    MissingFeature
        Naming the features this machine lacks.
    """
    lacking = missing_features(wanted, host)
    if lacking:
        here = (host or host_machine()).name
        raise MissingFeature(
            f"code for {wanted.name!r} cannot run on this machine ({here}): "
            f"it lacks {', '.join(lacking)}",
            hint="compile for target 'cpu'; the assembly of a foreign target can still be read",
        )
