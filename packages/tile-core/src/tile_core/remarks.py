"""What the compiler says about its choices: one channel, as LLVM's optimisation remarks are.

A pass says with `remark` what it did, what it could not do and why, or what it found out. Who
wants to know opens `collected_remarks`; the driver does for every kernel, and keeps what was said
with it. Without anybody who collects, a remark costs a look at an empty tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

from tile_core.records import dataclass
from tile_launch.spans import Note, Span

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


def notes_of(remarks: Iterable[Remark]) -> tuple[Note, ...]:
    """Return what was missed or found out, without what Python's warnings told already."""
    told = (r for r in remarks if r.kind != "passed" and not r.is_warning)
    return tuple(Note(r.message, r.span) for r in told)


_OPEN: ContextVar[tuple[list[Remark], ...]] = ContextVar("tile_remarks", default=())


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
        found.extend(new for new in said if new not in found)
