"""Where NVRTC and the headers of CUDA are: packages from PyPI, conda, or a toolkit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tile_core.errors import Note, ToolchainError
from tile_core.toolchains.compiler import Compiler

PATTERN = "libnvrtc.so.*"
_HEADER = "cuda_fp16.h"


@dataclass(frozen=True, slots=True)
class Toolkit:
    """One compiler and the headers it belongs with."""

    library: Path
    include: Path

    @property
    def builtins(self) -> tuple[Path, ...]:
        """Return the library of built-in functions that NVRTC opens when it compiles."""
        found = sorted(self.library.parent.glob("libnvrtc-builtins.so.*"))
        return tuple(path for path in found if ".alt." not in path.name)


def toolkits() -> tuple[Toolkit, ...]:
    """Return every NVRTC that comes with its headers, in the order in which they are tried.

    Packages in this Python's path come first, those of the newest CUDA before others; then
    ``CUDA_HOME`` and ``CUDA_PATH``, ``/usr/local/cuda``, and what cuda-pathfinder knows.
    """
    found: dict[Path, Toolkit] = {}
    for library, include in (*_packages(), *_installations(), *_pathfinder()):
        if (include / _HEADER).is_file() and library.is_file():
            found.setdefault(library.resolve(), Toolkit(library, include))
    return tuple(found.values())


def _packages() -> Iterator[tuple[Path, Path]]:
    """Yield NVIDIA's wheels: ``nvidia/cu13`` holds everything, those of CUDA 12 one folder each."""
    roots = [Path(entry, "nvidia") for entry in sys.path]
    for root in roots:
        for library in _libraries(root.glob("cu[0-9]*/lib")):
            yield library, library.parent.parent / "include"
    for root in roots:
        for library in _libraries([root / "cuda_nvrtc" / "lib"]):
            yield library, root / "cuda_runtime" / "include"


def _installations() -> Iterator[tuple[Path, Path]]:
    named = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    for root in (Path(name) for name in named if name):
        for library in _libraries([root / "lib64", root / "lib"]):
            yield library, root / "include"


def _pathfinder() -> Iterator[tuple[Path, Path]]:
    """Yield what NVIDIA's own finder knows, such as conda's packages; it is optional."""
    try:
        from cuda import pathfinder
    except ImportError:
        return
    try:
        library = Path(pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path)
        include = pathfinder.find_nvidia_header_directory("cudart")
    except (RuntimeError, OSError, AttributeError):  # nothing found, or an older finder
        return
    if include is not None:
        yield library, Path(include)


def _libraries(folders: Iterator[Path] | list[Path]) -> list[Path]:
    """Return the libraries in `folders`, the newest folder first."""
    found = [path for folder in folders for path in folder.glob(PATTERN)]
    return sorted(found, key=lambda path: (_number(path.parent.parent.name), path.name))[::-1]


def _number(text: str) -> int:
    digits = "".join(c for c in text if c.isdigit())
    return int(digits or 0)


def no_compiler(arch: str, tried: tuple[str, ...] = ()) -> ToolchainError:
    """Return the error that no NVRTC can compile for `arch`.

    Those `tried`, such as ``"NVRTC 13.0"``, know other architectures only.
    """
    if not tried:
        return ToolchainError(
            f"CUDA's run-time compiler (NVRTC) is not installed; it is needed for {arch}",
            hint=f"pip install 'tile-api[{extra_of(arch)}]'",
        )
    return ToolchainError(
        f"no installed compiler of CUDA makes code for {arch}",
        notes=(*(Note(f"{name} does not know {arch}") for name in tried), *_since(arch)),
        hint=f"pip install 'tile-api[{extra_of(arch)}]'",
    )


_SINCE = {
    **dict.fromkeys(("sm_100a", "sm_120a"), "12.8"),
    **dict.fromkeys(("sm_100f", "sm_103a", "sm_120f", "sm_121a"), "12.9"),
    "sm_110a": "13.0",
}
"""The first CUDA that knows an architecture, of those that are newer than a usual compiler."""


def _since(arch: str) -> Iterator[Note]:
    if arch in _SINCE:
        yield Note(f"{arch} came with CUDA {_SINCE[arch]}")


C = TypeVar("C", bound=Compiler)


def first_for(arch: str, compilers: Iterable[C]) -> C:
    """Return the first of `compilers` that compiles for `arch`; the hint of the error names one."""
    tried = []
    for compiler in compilers:
        if compiler.supports(arch):
            return compiler
        tried.append(compiler.name)
    raise no_compiler(arch, tuple(tried))


_LAST_IN_CUDA_12 = frozenset({"sm_70"})


def extra_of(arch: str) -> str:
    """Return the extra of the package that brings a compiler for `arch`."""
    return "cuda12" if arch in _LAST_IN_CUDA_12 else "cuda"
