"""The program nvcc of a CUDA toolkit: the same text as for NVRTC, compiled by another process."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tile_core.codegen.source import INCLUDE_DIRECTORY
from tile_core.errors import ToolchainError
from tile_core.toolchains.compiler import Output, identity_of
from tile_core.toolchains.subprocesses import run_program
from tile_cuda.compile_errors import NAME
from tile_cuda.compiler import COMMON_OPTIONS, HEADERS, compiles, of_assembler

_VERSION = re.compile(r"release (\d+)\.(\d+)")
_NVRTC_ONLY = frozenset({"-default-device", "--device-as-default-execution-space"})


@dataclass(frozen=True, slots=True)
class Nvcc:
    """One nvcc. It needs a C++ compiler of the host beside it, to preprocess."""

    path: Path
    version: tuple[int, int]
    architectures: frozenset[str]

    @property
    def name(self) -> str:
        """Name and version."""
        return f"nvcc {self.version[0]}.{self.version[1]}"

    @property
    def identity(self) -> str:
        """Name and version, and which file it is."""
        return identity_of(self.name, self.path)

    def supports(self, arch: str) -> bool:
        """Tell whether it compiles for `arch`; ``sm_90a`` goes with ``sm_90``."""
        return compiles(arch, self.architectures, self.version)

    def build(self, text: str, arch: str, flags: Sequence[str]) -> Output:
        """Compile one translation unit in a folder of its own."""
        with tempfile.TemporaryDirectory(prefix="tile_nvcc_") as name:
            folder = Path(name)
            (folder / NAME).write_text(text)
            options = (
                *(f"-arch={arch}", "-cubin", "--keep", f"--keep-dir={folder}"),
                *COMMON_OPTIONS,
                *(f"-I{path}" for path in (HEADERS, INCLUDE_DIRECTORY)),
                *nvcc_flags(flags),
            )
            done = run_program((str(self.path), *options, NAME, "-o", "out.cubin"), folder)
            log = (done.stdout + done.stderr).replace(f"{folder}{os.sep}", "")
            if done.returncode:
                return Output(b"", "", log, False)
            ptx = (folder / NAME).with_suffix(".ptx").read_text(errors="replace")
            return Output((folder / "out.cubin").read_bytes(), ptx, log, True)


def nvcc_flags(flags: Sequence[str]) -> list[str]:
    """Return flags as nvcc spells them; those that only NVRTC knows are dropped.

    Examples
    --------
    >>> nvcc_flags(["-O3", "-default-device", "-DX=1"])
    ['--ptxas-options=-O3', '-DX=1']
    """
    return [of_assembler(flag) for flag in flags if flag not in _NVRTC_ONLY]


def nvccs() -> Iterator[Nvcc]:
    """Yield the nvcc of ``CUDA_HOME``, of ``CUDA_PATH``, and the one in ``PATH``."""
    roots = (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    named = (shutil.which("nvcc", path=os.path.join(root, "bin")) for root in roots if root)
    for found in (*named, shutil.which("nvcc")):
        if found is not None:
            yield nvcc_at(Path(found))


@cache
def nvcc_at(path: Path) -> Nvcc:
    """Ask the nvcc at `path` what it is; a process asks each of them once.

    Raises
    ------
    ToolchainError
        If it cannot be run, or is no nvcc.
    """
    version = _VERSION.search(run_program((str(path), "--version")).stdout)
    codes = run_program((str(path), "--list-gpu-code")).stdout.split()
    if version is None or not codes:
        raise ToolchainError(
            f"{path} is no nvcc: it does not tell its version and its architectures",
            hint="point TILE_CUDA_COMPILER, or CUDA_HOME, to a CUDA toolkit from 11 on",
        )
    return Nvcc(path, (int(version[1]), int(version[2])), frozenset(codes))
