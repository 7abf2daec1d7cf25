"""What the compiler says about its choices: one channel, as LLVM's optimisation remarks are.

A pass says with `remark` what it did, what it could not do and why, or what it found out. Who
wants to know opens `collected_remarks`; the driver does for every kernel, and keeps what was said
with it. Without anybody who collects, a remark costs a look at an empty tuple. What the user should
hear of without asking is a warning of Python, too: see `warn`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

from tile_core.records import dataclass
from tile_launch.errors import Span, TileWarning

RemarkKind: TypeAlias = Literal["passed", "missed", "analysis"]
"""Something was done, something could not be done, something is the case."""

KINDS: tuple[RemarkKind, ...] = ("passed", "missed", "analysis")


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that a pass says about one place of a program.

    Parameters
    ----------
    kind
        Out of `KINDS`.
    pass_name
        Who says it: the name of a pass, as ``TILE_LOGS=passes`` has it.
    message
        A sentence, without place and without full stop.
    span
        The user's line that it is about; None if it is about the whole kernel.
    is_warning
        Whether it was told as a warning of Python, too.
    """

    kind: RemarkKind
    pass_name: str
    message: str
    span: Span | None = None
    is_warning: bool = False

    def __str__(self) -> str:
        place = "" if self.span is None else f"{self.span.file}:{self.span.line}: "
        return f"{place}{self.kind}: {self.message} [{self.pass_name}]"


class NotApplicable(Exception):
    """A transformation does not apply here: who tries it says why, or tries another.

    The `reason` continues a sentence; `span` is the line in the way, None if it is what was tried.
    """

    def __init__(self, reason: str, span: Span | None = None) -> None:
        super().__init__(reason)
        self.reason, self.span = reason, span


_OPEN: ContextVar[tuple[list[Remark], ...]] = ContextVar("tile_remarks", default=())
_WARNED: ContextVar[set[tuple[str, str, int]] | None] = ContextVar("tile_warned", default=None)


def remark(
    kind: RemarkKind,
    pass_name: str,
    message: str,
    span: Span | None = None,
    *,
    is_warning: bool = False,
) -> None:
    """Say something; the same, at the same place, is kept once."""
    if collecting := _OPEN.get():
        _keep([Remark(kind, pass_name, message, span, is_warning)], collecting)


def warn(
    message: str, span: Span | None, category: type[TileWarning] = TileWarning, *, pass_name: str
) -> None:
    """Warn at the user's line, unless the same was said of it: see `warning_once`.

    It is a remark, too: a chance that `pass_name` missed.
    """
    remark("missed", pass_name, message, span, is_warning=True)
    told = _WARNED.get()
    if told is not None:
        key = (message, "", 0) if span is None else (message, span.file, span.line)
        if key in told:
            return
        told.add(key)
    if span is None:
        warnings.warn(message, category, stacklevel=3)
    else:
        warnings.warn_explicit(message, category, span.file, span.line)


@contextmanager
def warning_once() -> Iterator[None]:
    """Give each warning once per line of the user, within one compilation.

    Passes copy statements: the first and last iterations of a pipelined loop are copies of its
    body, and a kernel that does not fit is lowered again. What is true of one copy is true of all.
    """
    token = _WARNED.set(set())
    try:
        yield
    finally:
        _WARNED.reset(token)


@contextmanager
def collected_remarks() -> Iterator[list[Remark]]:
    """Collect what this context says; collections may be open within others.

    Examples
    --------
    >>> with collected_remarks() as found:
    ...     remark("missed", "vectorise", "accesses are 2 bytes wide: rows are not aligned")
    >>> print(*found)
    missed: accesses are 2 bytes wide: rows are not aligned [vectorise]
    """
    found: list[Remark] = []
    token = _OPEN.set((*_OPEN.get(), found))
    try:
        yield found
    finally:
        _OPEN.reset(token)


@contextmanager
def tentative_remarks() -> Iterator[None]:
    """Forget what the block says if it fails: something else will be tried."""
    around = _OPEN.get()
    said: list[Remark] = []
    token = _OPEN.set((said,) if around else ())
    try:
        yield
    except Exception:
        said.clear()
        raise
    finally:
        _OPEN.reset(token)
        _keep(said, around)


def _keep(said: list[Remark], collections: tuple[list[Remark], ...]) -> None:
    for found in collections:
        known = set(found)
        found.extend(new for new in dict.fromkeys(said) if new not in known)
