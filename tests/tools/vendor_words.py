"""What only vendors say, and the files of the compiler that have to say it."""

from __future__ import annotations

import re
from pathlib import Path

from tools.import_graph import ROOT

CORE = ROOT / "packages" / "tile-core" / "src" / "tile_core"

WORDS = (
    *("nvidia", "cuda", "ptx", "nvrtc", "nvcc", "cutlass", "hopper", "ampere", "blackwell"),
    *("wgmma", "warpgroup", "tcgen05", "tma", "ldmatrix", "stmatrix", "setmaxnreg"),
    *("amd", "amdgpu", "hip", "rocm", "hiprtc", "cdna", "mfma", "lds", "agprs?", "sgprs?", "vmcnt"),
    *(r"sm_?\d+a?", r"gfx\d+\w?", "cp[._]async"),
)
"""Vendors, their products, and what they alone call an instruction."""

SPEAKS = re.compile(rf"(?<![a-z0-9])({'|'.join(WORDS)})s?(?![a-z0-9])", re.IGNORECASE)
"""One of them, or several of what it names: its plural."""

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


def lines_with_vendors() -> dict[str, list[str]]:
    """Return the lines that name a vendor and need not, by the file of the compiler."""
    files = sorted(p for p in CORE.rglob("*") if p.suffix in (".py", ".h", ".txt"))
    found = {str(p.relative_to(CORE)): words_of(p) for p in files}
    return {name: lines for name, lines in found.items() if lines and name not in ALLOWED}
