"""Errors of every tile package: the root of all, those of launches and bundles, and places.

A code means the same wherever it appears: what can also go wrong while a kernel is compiled
has the code, and the page, that the compiler gives it (`tile_core.errors`).
"""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Span:
    """Where something was written: lines count from 1, columns from 0, end excluded."""

    file: str
    line: int
    col: int
    end_col: int

    @classmethod
    def of(cls, node: ast.expr | ast.stmt, *, file: str, first_line: int = 1) -> Span:
        """Convert an `ast` position, whose columns count UTF-8 bytes, to characters."""
        line = first_line + node.lineno - 1
        raw = linecache.getline(file, line).encode()
        one_line = node.end_lineno == node.lineno and node.end_col_offset is not None
        end = node.end_col_offset if one_line else len(raw.rstrip())
        start_chars = len(raw[: node.col_offset].decode(errors="ignore"))
        end_chars = len(raw[:end].decode(errors="ignore"))
        return cls(file, line, start_chars, end_chars)

    def render(self, label: str = "") -> str:
        """Show the line with carets under it; `linecache` also knows notebook cells."""
        text = linecache.getline(self.file, self.line).rstrip("\n")
        number = str(self.line)
        blank = " " * len(number)
        carets = " " * self.col + "^" * max(1, self.end_col - self.col)
        return "\n".join(
            [
                f"{blank}--> {self.file}:{self.line}:{self.col + 1}",
                f"{blank} |",
                f"{number} | {text}",
                f"{blank} | {carets} {label}".rstrip(),
            ]
        )


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence that belongs to an error, with its own place where it has one."""

    text: str
    span: Span | None = None


class TileError(Exception):
    """Root of every error raised on purpose. Subclasses fix `code`; instances fill the rest.

    Parameters
    ----------
    message
        What is wrong, in one sentence, naming the offending things.
    span
        The user's line that is wrong.
    notes
        Further places and reasons: declarations, first decisions, rejected rules.
    hint
        Something the user can type.
    subject
        What an error of a launch is about: ``("parameter", name)``, ``("step", number)``,
        ``("failure", number)``, or nothing. Who knows where these were written fills in the place.
    """

    code: ClassVar[str] = "TL0000"

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        notes: tuple[Note, ...] = (),
        hint: str | None = None,
        subject: tuple[str, str | int] | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.span, self.notes, self.hint = message, span, notes, hint
        self.subject = subject

    def __str__(self) -> str:
        parts = [f"[{self.code}] {self.message}"]
        if self.span is not None:
            parts.append(self.span.render())
        for note in self.notes:
            parts.append(f"note: {note.text}")
            if note.span is not None:
                parts.append(note.span.render())
        if self.hint is not None:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def at(self, span: Span | None) -> TileError:
        """Return this error with `span` filled in, if it had none yet."""
        if self.span is None:
            self.span = span
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by parts: errors cross process borders while kernels are tuned."""
        return _rebuild, (type(self), self.message, self.span, self.notes, self.hint)


def _rebuild(
    cls: type[TileError], message: str, span: Span | None, notes: tuple[Note, ...], hint: str | None
) -> TileError:
    return cls(message, span=span, notes=notes, hint=hint)


class TileWarning(UserWarning):
    """A kernel that works, but not as well as its author may think."""


class MissingFeature(TileError, RuntimeError):
    """A kernel was compiled for instructions this machine does not have."""

    code = "TL4004"


class LaunchError(TileError, ValueError):
    """An argument at call time is not what the kernel was compiled for, or a driver refused."""

    code = "TL6001"


class ArgumentCountError(LaunchError, TypeError):
    """A kernel was called with too few or too many arguments."""

    code = "TL6002"


class ArgumentTypeError(LaunchError, TypeError):
    """An argument is of the wrong kind: a number for a tensor, or the reverse."""

    code = "TL6003"


class ArgumentShapeError(LaunchError, RuntimeError):
    """The rank or a dimension of an argument is wrong."""

    code = "TL6004"


class ArgumentDtypeError(LaunchError, RuntimeError):
    """The element type of an argument is wrong."""

    code = "TL6005"


class ArgumentLayoutError(LaunchError, RuntimeError):
    """Strides, offset, device or address of an argument are wrong."""

    code = "TL6006"


class EmptyGridError(LaunchError):
    """A launch dimension is zero or negative."""

    code = "TL6007"


class AssumptionError(LaunchError, RuntimeError):
    """A condition stated with `T.assume` or `assert` is false for these arguments."""

    code = "TL6008"


class DeviceAssertError(TileError, RuntimeError):
    """A `T.device_assert` inside a kernel failed."""

    code = "TL6009"


class ContractViolation(LaunchError, RuntimeError):
    """A dimension has a value that its contract (`T.dynamic(…, multiple_of=…)`) excludes."""

    code = "TL6010"


class RankError(TileError, RuntimeError):
    """The ranks of a group cannot share memory; root of what goes wrong between ranks.

    When one rank fails, every rank of its group raises an error.
    """

    code = "TL6101"


class RankLost(RankError):
    """The process of a rank ended, or an exception ended its part, while others waited for it."""

    code = "TL6102"


class RankTimeout(RankError, TimeoutError):
    """A rank waited in vain: for another one to come, or for a signal."""

    code = "TL6103"


class RankMismatch(RankError, ValueError):
    """The ranks of a group do not do the same: other shapes, other kernels, another order."""

    code = "TL6104"


class InvalidBundle(TileError, ValueError):
    """A file is no bundle of kernels, or it is damaged."""

    code = "TL8001"


class NewerBundle(TileError, ValueError):
    """A bundle was written in a form that this version does not know."""

    code = "TL8002"


class NoVariant(TileError):
    """A bundle holds no code for the machine at hand."""

    code = "TL8003"
