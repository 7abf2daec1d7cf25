"""A compiler that crashes over a legal kernel is asked once more, to optimise less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tile_core.codegen.complaints import line_of_kernel
from tile_core.codegen.source import PrintedSource
from tile_core.errors import ToolchainCrash, ToolchainError
from tile_core.remarks import warn

Built = TypeVar("Built")


def built_despite_crash(
    build: Callable[[Sequence[str]], Built],
    source: PrintedSource,
    flags: Sequence[str],
    slower: str,
) -> Built:
    """Return what a compiler makes of `source`: with `flags`, or after a crash with one more.

    Optimisers crash where the front end has seen nothing wrong. That of NVIDIA's assembler does,
    for one, over a loop that never ends behind another loop, as in::

        for i in T.Parallel(n): ...
        while n > 0: ...  # n is never changed; with n = 0 the program is fine

    Parameters
    ----------
    build
        Compiles with the flags it is given.
    source
        Gives the line at which the user is told that the kernel is slower than it could be.
    slower
        The flag that turns most of the optimisation off.

    Raises
    ------
    ToolchainCrash
        If it crashes again.
    """
    try:
        return build(flags)
    except ToolchainCrash as crash:
        try:
            built = build((*flags, slower))
        except ToolchainError:
            raise crash from None
        told = crash.message.splitlines()[0].rstrip(":")
        line = line_of_kernel(source, next(iter(source.entry_points), ""))
        warn(
            f"{told}; compiled with {slower}, the kernel is slow",
            source.span_at(line),
            pass_name="compile_source",
        )
        return built
