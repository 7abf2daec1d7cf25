"""Headers that g++ reads once: half of what it takes to compile a small kernel is reading them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from tile_sim.cache import cache_folder, cached
from tile_sim.toolchain import Compiler, run_compiler

KEPT = 6
"""Folders of compiled headers, of some 5 MiB: two for each version of the headers."""


def can_precompile(compiler: Compiler) -> bool:
    """Tell whether the compiler finds a compiled header beside the header's name, as g++ does."""
    return compiler.name.startswith("g++")


def precompile(compiler: Compiler, header: str, flags: Sequence[str], target: Path) -> None:
    """Write the compiled form of `header`, as files that are compiled with `flags` can use it.

    The target is ``<header>.gch``, in a folder that comes before that of the header. A compiler
    that cannot use it goes on to the header itself.

    Raises
    ------
    ToolchainError
        If the compiler does not accept the header.
    """
    arguments = [*flags, "-include", header, "-x", "c++-header", "-o", str(target), "/dev/null"]
    run_compiler(compiler, arguments, what=f"the header {header}")


def precompiled(compiler: Compiler, header: str, flags: Sequence[str], digest: str) -> Path:
    """Return the folder in the cache that holds the compiled form of `header`.

    The digest is of the compiler, the flags and everything that the header includes.

    Raises
    ------
    ToolchainError
        As `precompile`, and if the cache cannot be written.
    """
    folder = cache_folder() / f"headers-{digest}"
    make = partial(precompile, compiler, header, flags)

    def make_and_clean(target: Path) -> None:
        make(target)
        _forget_the_oldest(folder.parent)

    return cached(f"{header}.gch", make_and_clean, folder).parent


def _forget_the_oldest(folder: Path) -> None:
    """Remove what was used longest ago; who compiles with it reads the header itself."""
    ages = []
    for path in folder.glob("headers-*/*.gch"):
        with suppress(FileNotFoundError):  # another process was faster
            ages.append((path.stat().st_mtime_ns, path.parent))
    for _, old in sorted(ages)[: -KEPT + 1]:
        shutil.rmtree(old, ignore_errors=True)
