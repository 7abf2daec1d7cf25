"""What decides the machine code of a kernel for a GPU beside its backend, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tile_core.errors import TileError
from tile_core.target import Target


def toolchain_of(
    target: Target, arch_here: Callable[[], str], compiler_for: Callable[[str], str]
) -> Mapping[str, str]:
    """Return the architecture meant and the compiler that serves it.

    Where there is no compiler, or no GPU where the target names none, the text says ``none``:
    to compile is then the error, to ask is not.

    Parameters
    ----------
    arch_here
        Returns the architecture of the GPU at hand, asked only where the target names none.
    compiler_for
        Returns which compiler translates kernels for an architecture.
    """
    arch = target.arch or _or_none(arch_here)
    return {"architecture": arch, "compiler": _or_none(partial(compiler_for, arch))}


def _or_none(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except TileError:
        return "none"
