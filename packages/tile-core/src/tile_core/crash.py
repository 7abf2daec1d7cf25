"""What happens when the compiler itself fails: one coded error, and a folder with the facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tile_core.errors import (
    FrontendValueError,
    InternalError,
    Note,
    TileError,
    ToolchainCrash,
    ToolchainError,
)
from tile_core.ir.expr import Call
from tile_core.ir.node import nodes_of
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.target import Target


@contextmanager
def guarded(
    kernel: Kernel,
    target: Target,
    phase: str,
    flags: Sequence[str] = (),
    source: Callable[[], str] = str,
) -> Iterator[None]:
    """Turn whatever goes wrong in a phase, and is no `TileError`, into an `InternalError`.

    So is what a compiler does not accept, if all of its text is ours. The message names a folder
    with the kernel and the traceback, after a compiler's crash too. Warnings made errors stay such.
    `flags` are those of the user; `source` returns the toolchain's input, kept with the kernel.

    Raises
    ------
    InternalError
        With the original error as its cause.
    ToolchainCrash
        As it was raised, with the place of the kernel and the folder.
    """
    try:
        yield
    except InternalError as error:
        error.at(kernel.span)
        if not error.notes:
            error.notes = (_dumped(kernel, target, phase, error, source),)
            error.hint = error.hint or _REPORT
        raise
    except ToolchainCrash as error:
        error.at(kernel.span)
        error.notes += (_dumped(kernel, target, phase, error, source),)
        error.hint = _REPORT
        raise
    except ToolchainError as error:
        if not error.refuses_text or flags or _brings_text(kernel):
            raise
        raise InternalError(
            f"the compiler failed to {phase} the kernel {kernel.name!r} for {target}: "
            f"{error.message}",
            span=error.span or kernel.span,
            notes=(_dumped(kernel, target, phase, error, source),),
            hint=_REPORT,
        ) from error
    except (TileError, RecursionError, Warning):
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise InternalError(
            f"the compiler failed to {phase} the kernel {kernel.name!r} for {target}: "
            f"{type(error).__name__}: {lines[-1] if lines else 'without a message'}",
            span=kernel.span,
            notes=(_dumped(kernel, target, phase, error, source),),
            hint=_REPORT,
        ) from error


def _brings_text(kernel: Kernel) -> bool:
    """Whether a kernel has C text of the user, or calls functions of C by name."""
    return bool(kernel.sources) or any(
        node.function.startswith("extern:") for node in nodes_of(kernel.body, Call)
    )


@contextmanager
def shallow(kernel: Kernel) -> Iterator[None]:
    """Explain what happens to expressions nested deeper than Python follows, as a `TileError`."""
    try:
        yield
    except RecursionError:
        raise FrontendValueError(
            f"an expression of the kernel {kernel.name!r} is nested too deeply",
            span=kernel.span,
            hint="give parts of it names: x = ...; y = x + ...",
        ) from None


_REPORT = "report it, made small by `tile reduce FILE:NAME`; meanwhile another tile shape may do"


def _dumped(
    kernel: Kernel, target: Target, phase: str, error: Exception, source: Callable[[], str]
) -> Note:
    from tempfile import mkdtemp  # most compilations do not fail
    from traceback import format_exception

    folder = Path(mkdtemp(prefix=f"tile-{kernel.name}-"))
    trace = "".join(format_exception(error))
    (folder / "error.txt").write_text(f"target {target}, phase {phase}\n\n{trace}")
    (folder / "kernel.tile").write_text(print_kernel(kernel))
    with suppress(Exception):  # printing may be what failed
        if text := source():
            (folder / "source.txt").write_text(text)
    return Note(f"the kernel and the traceback are in {folder}")
