"""Kernels on their way to other processes: what they are made of, and how they are made again.

Machine code travels as the cache keeps it and runs where it arrives, without a compiler. What has
no such form, as kernels of emulators and of the interpreter, is compiled again from its tile IR.
"""

from __future__ import annotations

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
    """A kernel without anything of the process that made it.

    Parameters
    ----------
    kernel
        Its tile IR, with its outputs.
    target
        The exact target, as targets are spelt.
    options
        What the user asked for; rules belong to the target and stay behind.
    entry
        Its machine code, as `tile_api.disk_cache.entry.encode` writes it; None if it has to be
        compiled again.
    source
        What it was compiled from: a prim func.
    """

    kernel: Kernel
    target: str
    options: BuildOptions
    entry: bytes | None = field(default=None, repr=False)
    source: object = None


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
