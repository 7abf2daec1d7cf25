"""Kernels printed as programs of one thread, and what becomes of these."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from tile_api.frontend.function import PrimFunc
from tile_api.tiers import source_of
from tile_core.compilation.options import BuildOptions
from tile_core.compilation.results import Lowered
from tile_core.driver import lower


def program_in(file: Path) -> PrimFunc:
    """Import a printed program, and return the kernel in it."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (found,) = (thing for thing in vars(module).values() if isinstance(thing, PrimFunc))
    return found


def written(kernel: Any, folder: Path) -> PrimFunc:
    """Return a compiled kernel as a program of one thread, read from a file."""
    file = folder / "program.py"
    file.write_text(kernel.source(tier="expert"))
    return program_in(file)


def lowered_again(lowered: Lowered, folder: Path, name: str) -> Lowered:
    """Return what the driver makes of a kernel's program of one thread."""
    file = folder / f"{name}.py"
    file.write_text(source_of(lowered, "expert"))
    kernel = program_in(file).kernel
    told = kernel.options
    options = BuildOptions(tuple(sorted(told.pass_configs)), told.compile_flags)
    return lower(kernel, lowered.target, lowered.host, options)
