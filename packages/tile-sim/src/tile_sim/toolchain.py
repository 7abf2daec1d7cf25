"""The host's C++ compiler: found, asked to make shared libraries, and told by its version."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tile_core.errors import ToolchainError
from tile_core.pass_manager.instrumentation import timed
from tile_core.toolchains.subprocesses import run_program

_NAMES = ("g++", "clang++")
_X86_64_V3 = frozenset({"avx2", "bmi2", "f16c", "fma", "movbe"})
_DIALECT = (
    "-std=c++17",
    "-fPIC",
    "-fwrapv",
    "-fno-strict-aliasing",
    # Each product is rounded before it is added, on every machine alike.
    "-ffp-contract=off",
    "-Wno-psabi",
    "-Wno-unknown-pragmas",
)


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: a path, and arguments that always come first; and what messages call it."""

    command: tuple[str, ...]
    name: str

    @property
    def identity(self) -> str:
        """Text that changes when the compiler is replaced by another version."""
        path = Path(self.command[0]).resolve()
        facts = path.stat()
        return f"{' '.join(self.command)} {path} {facts.st_size} {facts.st_mtime_ns}"


def find_compiler(environment: Mapping[str, str] | None = None) -> Compiler:
    """Return the C++ compiler: ``$CXX``, else g++, clang++, or the one in ``ziglang``."""
    env = os.environ if environment is None else environment
    path = env.get("PATH", os.defpath)
    if chosen := env.get("CXX", "").split():
        found = shutil.which(chosen[0], path=path)
        if found is None:
            raise ToolchainError(
                f"CXX names the compiler {chosen[0]!r}, which does not exist",
                hint="unset CXX, or point it at a C++ compiler",
            )
        return Compiler((found, *chosen[1:]), Path(found).name)
    for name in _NAMES:
        if found := shutil.which(name, path=path):
            return Compiler((found,), name)
    if importlib.util.find_spec("ziglang") is not None:
        return Compiler((sys.executable, "-m", "ziglang", "c++"), "zig")
    raise ToolchainError(
        "the emulator compiles kernels for this machine, and there is no C++ compiler",
        hint="install g++ or clang++, point CXX at a compiler, or pip install ziglang",
    )


def machine_flags(cpuinfo: str | None = None) -> tuple[str, ...]:
    """Return the flags for the machine at hand: fused products and half floats if it has them."""
    if platform.machine() != "x86_64":
        return ()
    if cpuinfo is None:
        cpuinfo = _cpuinfo()
    line = next((row for row in cpuinfo.splitlines() if row.startswith("flags")), "")
    return ("-march=x86-64-v3",) if set(line.split()) >= _X86_64_V3 else ()


@cache  # each kernel asks for the flags, several times
def _cpuinfo() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text() if path.exists() else ""


def run_compiler(
    compiler: Compiler, arguments: Sequence[str], *, what: str, hint: str = "", folder: str = "."
) -> None:
    """Start the compiler with the flags of every file of the emulator, then `arguments`.

    Messages tell `what` it compiles, and the hint, or else the command.

    Raises
    ------
    ToolchainError
        If the compiler refuses or cannot be started; its messages are attached.
    ToolchainCrash
        If it crashes, or does not come to an end.
    """
    command = [*compiler.command, *dialect(), *arguments]
    with timed(compiler.name, "tool", what=what):
        done = run_program(command, folder, "point CXX at a C++ compiler that works")
    if done.returncode:
        told = done.stderr.strip() or f"it ended with status {done.returncode}"
        raise ToolchainError(
            f"{compiler.name} does not accept {what}:\n{told}",
            hint=hint or f"the command was {' '.join(command)}",
        ).of_text()


def dialect() -> tuple[str, ...]:
    """Return the flags that every file of the emulator is compiled with."""
    return (*_DIALECT, *machine_flags())


def toolchain() -> Mapping[str, str]:
    """Return the compiler and the flags of every file; nothing is started."""
    try:
        compiler = find_compiler().identity
    except ToolchainError:
        compiler = "none"
    return {"c++-compiler": compiler, "dialect": " ".join(dialect())}
