"""Kernels, and functions that make them, on their way to other processes.

Machine code travels as the cache keeps it and runs where it arrives, without a compiler. What has
no such form, as kernels of emulators and of the interpreter, is compiled again from its tile IR.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tile_core.compilation.options import BuildOptions
from tile_core.errors import TileError
from tile_core.ir.stmt import Kernel
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_api.disk_cache.entry import Entry
    from tile_api.disk_cache.entry_codec import Build
    from tile_api.keys import CompileKey
    from tile_core.compilation.results import Lowered


@dataclass(frozen=True, slots=True)
class PickledKernel:
    """A kernel without anything of the process that made it."""

    kernel: Kernel  # with its outputs
    target: str  # exact, as targets are spelt
    options: BuildOptions  # of the user: rules belong to the target and stay behind
    entry: bytes | None = field(default=None, repr=False)
    source: object = None  # a prim func


def packed(built: Build, key: CompileKey | None, source: object = None) -> PickledKernel:
    """Return a compiled kernel as it travels; without a key it is compiled again."""
    from tile_api.disk_cache.entry import encode

    entry = None if key is None else _entry_of(built, str(key))
    data = None if entry is None else encode(entry)
    options = built.options.as_asked()
    return PickledKernel(built.kernel, str(built.target), options, data, source)


def _entry_of(built: Any, key: str) -> Entry | None:
    """Return the machine code of a kernel; None where it is none, or a tool to link it lacks."""
    from tile_api.disk_cache.entry_codec import CachedBuild, can_be_kept, entry_of

    if isinstance(built, CachedBuild):
        return built.entry
    if can_be_kept(built.kernel, built.target, built.backend, built.options):
        with suppress(TileError):
            return entry_of(built, key)
    return None


def packed_lowered(lowered: Lowered) -> PickledKernel:
    """Return a kernel that was only lowered as it travels."""
    return PickledKernel(lowered.kernel, str(lowered.target), lowered.options.as_asked())


def reduced(thing: object, function: Callable[..., Any], *parts: Any) -> str | tuple[Any, ...]:
    """Return what `pickle` asks of what decorates `function`.

    Where the module of the function has `thing` under the function's name, that is all. Elsewhere
    it is made again of `parts`, which only pickles that take functions by value can write.
    """
    name = getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is thing else (type(thing), parts)
