"""The driver that checks what it is told, compiled against NVIDIA's header."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).with_name("strict_driver.c")


class NoHeader(Exception):
    """There is no C compiler, or no ``cuda.h``, here."""


def header_folders() -> list[Path]:
    """Return where ``cuda.h`` is, the latest version first: toolkits, NVIDIA's Python packages."""
    found = {folder.resolve() for folder in _folders() if (folder / "cuda.h").exists()}
    return sorted((f for f in found if _version(f)), key=lambda f: (-_version(f), f))


def _folders() -> Iterator[Path]:
    if home := os.environ.get("CUDA_HOME"):
        yield Path(home, "include")
    yield from Path("/usr/local").glob("cuda*/include")
    found = importlib.util.find_spec("nvidia")
    for place in (found.submodule_search_locations or ()) if found else ():
        yield from Path(place).glob("*/include")


def _version(folder: Path) -> int:
    """Return the version that a header states, such as 13000; 0 if it is another file."""
    match = re.search(r"#define CUDA_VERSION (\d+)", (folder / "cuda.h").read_text())
    return int(match[1]) if match else 0


def c_compiler() -> str:
    """Return a C compiler.

    Raises
    ------
    NoHeader
        If there is none.
    """
    found = shutil.which("gcc") or shutil.which("clang")
    if found is None:
        raise NoHeader("needs a C compiler")
    return found


def build_strict_driver(folder: Path, headers: Path | None = None) -> Path:
    """Return the library, compiled in `folder`, with the latest header unless `headers` says so.

    Raises
    ------
    NoHeader
        If it cannot be compiled here.
    """
    known = [headers] if headers else header_folders()
    if not known:
        raise NoHeader("needs cuda.h: pip install nvidia-cuda-runtime, or set CUDA_HOME")
    library = folder / "libcuda.so.1"
    command = [c_compiler(), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command += ["-isystem", str(known[0]), "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True)
    return library
