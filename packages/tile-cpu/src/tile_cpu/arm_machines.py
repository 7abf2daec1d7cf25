"""The ARM processors we compile for, and which of them ``/proc/cpuinfo`` or macOS describes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace

from tile_cpu.cpu_machine import CpuMachine, Isa, row

_V8 = frozenset({"neon"})
_V8_2 = _V8 | {"lse", "rdm", "fullfp16", "dotprod"}
_V8_6 = _V8_2 | {"fp16fml", "i8mm", "bf16"}
_MACOS = "arm64-apple-macosx14.0.0"

LINUX_SPELLING = {
    "asimd": "neon",
    "atomics": "lse",
    "asimdrdm": "rdm",
    "asimdhp": "fullfp16",
    "asimddp": "dotprod",
    "asimdfhm": "fp16fml",
}
"""Features that ``/proc/cpuinfo`` and LLVM spell differently: the former's, the latter's."""


def _arm(
    name: str, features: frozenset[str], l1: tuple[int, int], l2: tuple[int, int]
) -> CpuMachine:
    return row(name, features, l1, l2, Isa.AARCH64)


def _apple(name: str, features: frozenset[str]) -> CpuMachine:
    # Four fast cores share 12 MiB or more of second-level cache: a core's share.
    return replace(_arm(name, features, (128, 8), (3072, 12)), system=_MACOS)


ARM_MACHINES: dict[str, CpuMachine] = {
    known.name: known
    for known in (
        replace(_arm("aarch64", _V8, (32, 4), (512, 8)), cpu="generic"),
        _arm("cortex-a72", _V8, (32, 2), (512, 16)),
        _arm("neoverse-n1", _V8_2, (64, 4), (1024, 8)),
        _arm("neoverse-n2", _V8_6 | {"sve", "sve2"}, (64, 4), (1024, 8)),
        _arm("neoverse-v1", _V8_6 | {"sve"}, (64, 4), (1024, 8)),
        _arm("neoverse-v2", _V8_6 | {"sve", "sve2"}, (64, 4), (1024, 8)),
        _apple("apple-m1", _V8_2 | {"fp16fml"}),
        _apple("apple-m2", _V8_6),
        _apple("apple-m3", _V8_6),
        _apple("apple-m4", _V8_6),
    )
}

# (implementer, part) of the main identification register, MIDR_EL1, as in /proc/cpuinfo -> row.
_PARTS = {
    (0x41, 0xD08): "cortex-a72",
    (0x41, 0xD0C): "neoverse-n1",
    (0x41, 0xD40): "neoverse-v1",
    (0x41, 0xD49): "neoverse-n2",
    (0x41, 0xD4F): "neoverse-v2",
    **dict.fromkeys(((0x61, part) for part in range(0x22, 0x2A)), "apple-m1"),
    **dict.fromkeys(((0x61, part) for part in range(0x32, 0x3A)), "apple-m2"),
    **dict.fromkeys(((0x61, part) for part in range(0x42, 0x4A)), "apple-m3"),
}


def match_arm(implementer: int, part: int, features: frozenset[str]) -> CpuMachine:
    """Return the row for a processor, less the instruction sets it does not show.

    An unknown part gets the features of the newest row of which it lacks none.
    """
    name = _PARTS.get((implementer, part)) or _generic(features)
    found = replace(ARM_MACHINES[name], system="")  # it is here, whatever it runs
    lacking = tuple(sorted(found.features - features))
    if not lacking:
        return found
    return replace(found, features=found.features & features, disabled=lacking)


def _generic(features: frozenset[str]) -> str:
    newest = ("neoverse-v2", "neoverse-v1", "apple-m2", "neoverse-n1")
    return next((name for name in newest if ARM_MACHINES[name].features <= features), "aarch64")


def described_arm(facts: Mapping[str, str]) -> CpuMachine:
    """Return the machine that the first paragraph of ``/proc/cpuinfo`` describes.

    Programs of Linux for AArch64 may use NEON anywhere, told or not.
    """
    implementer, part = (int(facts.get(key, "0"), 0) for key in ("CPU implementer", "CPU part"))
    told = (LINUX_SPELLING.get(name, name) for name in facts.get("Features", "").split())
    return match_arm(implementer, part, _V8.union(told))


def apple_machine(brand: str) -> CpuMachine:
    """Return the row for what macOS calls the processor, ``Apple M2 Pro``; a later one's newest.

    Examples
    --------
    >>> apple_machine("Apple M2 Pro").name, apple_machine("Apple M9").name
    ('apple-m2', 'apple-m4')
    """
    known = sorted(name for name in ARM_MACHINES if name.startswith("apple-"))
    digits = "".join(c for c in brand.partition(" M")[2] if c.isdigit())
    name = f"apple-m{digits}" if digits else known[0]
    return replace(ARM_MACHINES[name if name in known else known[-1]], system="")


def macos_brand() -> str:
    """Return what macOS calls the processor; empty where it does not tell."""
    text, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    asked = ctypes.CDLL(None).sysctlbyname(
        b"machdep.cpu.brand_string", text, ctypes.byref(size), None, 0
    )
    return "" if asked else text.value.decode(errors="replace")
