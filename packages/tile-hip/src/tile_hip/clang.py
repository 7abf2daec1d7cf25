"""Clang, under each of its names: text to assembly, assembly to object, object to code object.

No ROCm is needed: the device header stands on the compiler's builtins alone. The steps are apart
so that the assembly is always kept, and is exactly what the code object was made from.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from subprocess import CompletedProcess
from threading import Lock

from tile_core.codegen.source import C_HEADERS, INCLUDE_DIRECTORY
from tile_core.errors import ToolchainError
from tile_core.toolchains.compiler import Output, identity_of
from tile_core.toolchains.subprocesses import run_program
from tile_hip.compiler import COMMON_OPTIONS, HEADERS, NAME, clang_flags

INCLUSION = '#include "tile.h"\n'
"""How a printed kernel begins."""

_made: dict[tuple[str, ...], tuple[str, ...] | None] = {}
"""By command and options: options that name the compiled form; None until it is needed again."""

_lock = Lock()


def precompiled_header(command: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """Return options that name the device header in compiled form, for one text with `options`.

    The first text with them reads the header itself: what comes once is read once. So do all where
    clang has something to say of the header, or cannot compile it alone.
    """
    key = (*command, *options)
    with _lock:
        if key not in _made:
            _made[key] = None
            return ()
        found = _made[key]
        if found is None:
            found = _made[key] = _compiled(key)
        return found


def _compiled(command: Sequence[str]) -> tuple[str, ...]:
    """Compile the header; return the options that name the result, none if it is no use."""
    folder = Path(tempfile.mkdtemp(prefix="tile_headers_"))
    atexit.register(_remove, folder, os.getpid())
    (folder / NAME).write_text(INCLUSION)
    made = str(folder / "tile.pch")
    to_file = ("-Xclang", "-emit-pch", "-fsyntax-only", "-Xclang", "-o", "-Xclang", made)
    try:
        done = run_program((*command, *to_file, NAME), folder)
    except ToolchainError:
        return ()
    if done.returncode or done.stdout or done.stderr:
        return ()
    return ("-Xclang", "-include-pch", "-Xclang", made)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


TRIPLE = "amdgcn-amd-amdhsa"
_VERSION = re.compile(r"clang version (\d+(?:\.\d+)*)")
_DIRECTORY = re.compile(r"^InstalledDir: (.+)$", re.MULTILINE)
_BARE = (
    *("-x", "hip", "--cuda-device-only"),
    *("-nogpuinc", "-nogpulib"),  # neither headers nor libraries of ROCm
    *("-fuse-cuid=none", "-Xclang", "-cuid="),  # the same text, the same code
)


@dataclass(frozen=True, slots=True)
class Clang:
    """One clang with an AMD backend, and the linker beside it.

    It is called ``"clang"``, ``"hipcc"`` or ``"zig"``; `command` and `linker` are programs with
    a subcommand if they have one, `linker` is empty if there is none.
    """

    kind: str
    command: tuple[str, ...]
    linker: tuple[str, ...]
    version: str
    processors: frozenset[str]

    @property
    def name(self) -> str:
        """Name and version."""
        return f"{self.kind} {self.version}"

    @property
    def identity(self) -> str:
        """Name and version, and which file it is."""
        return identity_of(self.name, self.command[0])

    def supports(self, arch: str) -> bool:
        """Tell whether it compiles for `arch`, and links."""
        return arch in self.processors and bool(self.linker)

    def build(self, text: str, arch: str, flags: Sequence[str]) -> Output:
        """Compile one translation unit in a folder of its own."""
        with tempfile.TemporaryDirectory(prefix="tile_hip_") as name:
            folder = Path(name)
            (folder / NAME).write_text(text)
            logs: list[str] = []
            first = partial(self._to_assembly, text, options_of(arch, flags), folder)
            steps = (
                (*self.command, *_assembly_options(arch), "-c", "kernel.s", "-o", "kernel.o"),
                (*self.linker, "-shared", "kernel.o", "-o", "kernel.hsaco"),
            )
            for step in (first, *(partial(run_program, command, folder) for command in steps)):
                done = step()
                logs.append((done.stdout + done.stderr).replace(f"{folder}/", ""))
                if done.returncode:
                    return Output(b"", "", "".join(logs), False)
            assembly = (folder / "kernel.s").read_text()
            return Output((folder / "kernel.hsaco").read_bytes(), assembly, "".join(logs), True)

    def _to_assembly(
        self, text: str, options: Sequence[str], folder: Path
    ) -> CompletedProcess[str]:
        """Compile the text in `folder`; what is refused with a compiled header is told without."""
        command = (*self.command, *options, "-S", NAME, "-o", "kernel.s")
        if text.startswith(INCLUSION):
            header = precompiled_header(self.command, options)
            done = run_program((*command, *header), folder)
            if not header or not done.returncode:
                return done
        return run_program(command, folder)


def options_of(arch: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Return what clang is told before the names of files."""
    return (
        *_BARE,
        f"--offload-arch={arch}",
        *COMMON_OPTIONS,
        *(f"-I{path}" for path in (HEADERS, INCLUDE_DIRECTORY, C_HEADERS)),
        *clang_flags(flags),
    )


def _assembly_options(arch: str) -> tuple[str, ...]:
    return ("-x", "assembler", f"--target={TRIPLE}", f"-mcpu={arch}")


@cache
def clang_at(kind: str, command: tuple[str, ...], linker: tuple[str, ...]) -> Clang:
    """Ask a clang what it is; a process asks each of them once.

    `linker` is that of the same package; empty to look for one beside the compiler, then in
    ``PATH``.

    Raises
    ------
    ToolchainError
        If it cannot be run, or is no clang.
    """
    told = run_program((*command, "--version")).stdout
    version = _VERSION.search(told)
    if version is None:
        raise ToolchainError(
            f"{' '.join(command)} is no clang: it does not tell its version",
            hint="point TILE_HIP_COMPILER to a clang from 17 on, or to a hipcc",
        )
    known = run_program((*command, f"--target={TRIPLE}", "-nogpulib", "--print-supported-cpus"))
    processors = frozenset(re.findall(r"^\s+(gfx\w+)$", known.stdout + known.stderr, re.MULTILINE))
    if not linker:
        directory = _DIRECTORY.search(told)
        linker = _linker_beside(Path(directory[1]) if directory else None, version[1])
    return Clang(kind, command, linker, version[1], processors)


def _linker_beside(directory: Path | None, version: str) -> tuple[str, ...]:
    """Return the linker of the same installation, else one in ``PATH``."""
    major = version.split(".")[0]
    places = (str(directory), None) if directory else (None,)
    for place in places:
        for name in ("ld.lld", f"ld.lld-{major}"):
            if found := shutil.which(name, path=place):
                return (found,)
    return ()
