"""Which compiler translates a kernel: hiprtc, hipcc, clang, zig's clang, or whom the user names.

`COMPILER_VARIABLE` is read whenever a kernel is compiled, and the pass configuration
``hip.compiler`` says the same for one kernel:

==================  ===========================================================================
``hiprtc``          the run-time compiler of ROCm
``hipcc``           the hipcc of ``ROCM_PATH``, of ``/opt/rocm``, or in ``PATH``
``clang``           the clang of ROCm, else the newest one in ``PATH``
``zig``             the clang inside the Python package ``ziglang``
``/path/to/clang``  that one, or a hipcc
empty               the first of these that knows the architecture; hiprtc from ROCm 6 on only
==================  ===========================================================================
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from tile_core.environment import environment
from tile_core.errors import Note, ToolchainError
from tile_core.toolchains.compiler import Compiler
from tile_hip.clang import Clang, clang_at
from tile_hip.hiprtc import load
from tile_hip.hiprtc_library import libraries

COMPILER_VARIABLE = "TILE_HIP_COMPILER"
"""The environment variable with which a user requests a compiler."""

Candidate: TypeAlias = Callable[[], Compiler]
"""A compiler that has been found, and is asked what it is only when its turn comes."""

_OLDEST, _NEWEST = 17, 30  # clangs by the numbers in their names


def wanted_compiler(arch: str, requested: str = "") -> Compiler:
    """Return the compiler that translates kernels for `arch`.

    Raises
    ------
    ToolchainError
        If there is none, or the one requested does not know `arch`.
    """
    requested = requested or environment().get(COMPILER_VARIABLE, "")
    if os.sep in requested:
        known: Iterator[Candidate] = iter((_clang_of(requested),))
    elif requested and requested not in _KINDS:
        raise ToolchainError(
            f"the compiler of HIP is to be {requested!r}, which is none",
            hint=f"set {COMPILER_VARIABLE} to {', '.join(_KINDS)}, or to the path of a clang",
        )
    else:
        kinds = (_KINDS[requested],) if requested else (_recent_hiprtcs, *_PROGRAMS.values())
        known = (candidate for kind in kinds for candidate in kind())
    tried: list[str] = []
    for candidate in known:
        try:
            compiler = candidate()
        except ToolchainError as broken:
            if os.sep in requested:
                raise
            tried.append(broken.message)  # another one may do
            continue
        if compiler.supports(arch):
            return compiler
        tried.append(why_not(compiler, arch))
    raise _no_compiler(arch, requested, tried)


def hiprtcs() -> Iterator[Candidate]:
    """Yield every hiprtc there is."""
    yield from (partial(load, found) for found in libraries())


def _recent_hiprtcs() -> Iterator[Candidate]:
    yield from (partial(load, found) for found in libraries() if found.is_recent)


def hipccs() -> Iterator[Candidate]:
    """Yield the hipcc of ``ROCM_PATH``, of ``/opt/rocm``, and the one in ``PATH``."""
    named = (shutil.which("hipcc", path=str(root / "bin")) for root in _rocm_roots())
    for found in (*named, shutil.which("hipcc")):
        if found is not None:
            yield partial(clang_at, "hipcc", (found,), ())


def clangs() -> Iterator[Candidate]:
    """Yield the clang of ROCm, then those in ``PATH``, the newest first."""
    for root in _rocm_roots():
        if found := shutil.which("clang", path=str(root / "llvm" / "bin")):
            yield partial(clang_at, "clang", (found,), ())
    names = (*(f"clang-{number}" for number in range(_NEWEST, _OLDEST - 1, -1)), "clang")
    for name in names:
        if found := shutil.which(name):
            yield partial(clang_at, "clang", (found,), ())


def zigs() -> Iterator[Candidate]:
    """Yield the clang inside the package ``ziglang``, which brings its linker."""
    found = importlib.util.find_spec("ziglang")
    for folder in found.submodule_search_locations or () if found else ():
        program = shutil.which("zig", path=folder)
        if program is not None:
            yield partial(clang_at, "zig", (program, "clang"), (program, "ld.lld"))


_PROGRAMS: MappingProxyType[str, Callable[[], Iterator[Candidate]]] = MappingProxyType(
    {"hipcc": hipccs, "clang": clangs, "zig": zigs}
)
_KINDS: MappingProxyType[str, Callable[[], Iterator[Candidate]]] = MappingProxyType(
    {"hiprtc": hiprtcs, **_PROGRAMS}
)
"""By what the user calls them, in the order in which they are tried."""


def _rocm_roots() -> tuple[Path, ...]:
    named = os.environ.get("ROCM_PATH")
    return (*((Path(named),) if named else ()), Path("/opt/rocm"))


def _clang_of(path: str) -> Candidate:
    return partial(clang_at, "hipcc" if "hipcc" in Path(path).name else "clang", (path,), ())


def _no_compiler(arch: str, requested: str, tried: list[str]) -> ToolchainError:
    """Return the error that nothing compiles for `arch`, with what would."""
    if requested and tried:
        message = f"{requested} is requested, which makes no code for {arch}"
    elif requested:
        message = f"{requested} is requested, and there is none; {arch} needs a compiler"
    else:
        message = f"no compiler that is installed makes code for {arch}"
    return ToolchainError(message, notes=tuple(map(Note, tried)), hint=install_hint(arch))


def why_not(compiler: Compiler, arch: str) -> str:
    """Return why a compiler cannot serve `arch`, in words."""
    if isinstance(compiler, Clang) and arch in compiler.processors and not compiler.linker:
        return f"{compiler.name} has no linker beside it: it needs ld.lld"
    return f"{compiler.name} does not know {arch}"


def install_hint(arch: str) -> str:
    """Return how to come by a compiler for `arch`."""
    if arch in _NEWER_THAN_DEBIAN:
        return "pip install 'tile-hip[zig]', or install ROCm"
    return "pip install 'tile-hip[zig]', or apt install clang-19 lld-19, or install ROCm"


_NEWER_THAN_DEBIAN = frozenset({"gfx950"})
