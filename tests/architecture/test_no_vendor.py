"""The compiler speaks of what machines can do; whose instruction that is, backends know."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "packages" / "tile-core" / "src" / "tile_core"

WORDS = (
    *("nvidia", "cuda", "ptx", "nvrtc", "nvcc", "cutlass", "hopper", "ampere", "blackwell"),
    *("wgmma", "warpgroup", "tcgen05", "tma", "ldmatrix", "stmatrix", "setmaxnreg"),
    *("amd", "amdgpu", "hip", "rocm", "hiprtc", "cdna", "mfma", "lds", "agprs?", "sgprs?", "vmcnt"),
    *(r"sm_?\d+a?", r"gfx\d+\w?", "cp[._]async"),
)
"""Vendors, their products, and what they alone call an instruction."""

SPEAKS = re.compile(rf"(?<![a-z0-9])({'|'.join(WORDS)})(?![a-z0-9])", re.IGNORECASE)

MANUALS = re.compile(
    r"PTX ISA|CUDA (Driver API|C\+\+ Best Practices Guide)|NVIDIA CUTLASS documentation"
    r'|AMD "CDNA3 Instruction Set Architecture"|"User Guide for AMDGPU|"cp(\.reduce)?\.async\.bulk'
)
"""What comments may cite where they say why a number is what it is."""

NAMES_IN_PROGRAMS = "spellings: ClassVar"
"""How an operator says what TileLang's programs call it: those names are not ours to choose."""

ALLOWED = {
    "codegen/include/tile.h": "includes the header of the backend that the compiler belongs to",
    "companions.py": "the packages of the project by name",
    "plugins/host.py": "the packages of the project by name",
    "ir/gpu_intrinsics.py": "the one table of names that TileLang's programs write",
    "simt/explicit_instructions.py": "instructions that programs name: for the backends to take",
    "simt/explicit_mma.py": "instructions that programs name: for the backends to take",
    "simt/barrier_calls.py": "instructions that programs name: for the backends to take",
    "target.py": "how targets are spelt",
}
"""Files that have to name a vendor, and why."""


def words_of(path: Path) -> list[str]:
    """Return the lines of a file that name a vendor, with their numbers."""
    lines = enumerate(path.read_text().splitlines(), start=1)
    return [
        f"{number}: {line.strip()}"
        for number, line in lines
        if SPEAKS.search(MANUALS.sub("", line)) and NAMES_IN_PROGRAMS not in line
    ]


def files() -> list[Path]:
    return sorted(p for p in CORE.rglob("*") if p.suffix in (".py", ".h", ".txt"))


def test_the_compiler_names_no_vendor() -> None:
    found = {str(p.relative_to(CORE)): words_of(p) for p in files()}
    assert {name: lines for name, lines in found.items() if lines and name not in ALLOWED} == {}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_is_needed(name: str) -> None:
    assert words_of(CORE / name)


@pytest.mark.parametrize(
    "line",
    ["if machine.has('tma'):", "_lower_wgmma(op)", "PTX ISA", "sm_90a", "ptx_cp_async", "TMA_BOX"],
)
def test_a_vendor_is_found(line: str) -> None:
    assert SPEAKS.search(line)


@pytest.mark.parametrize(
    "line", ["contextmanager", "SimtMachine", "a ship", "small", "AnyLayoutMap"]
)
def test_other_words_are_not(line: str) -> None:
    assert not SPEAKS.search(line)
