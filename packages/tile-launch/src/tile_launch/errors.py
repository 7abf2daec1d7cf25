"""Errors of launches and of bundles: each has a code, a reason and a way out.

A code means the same wherever it appears: what can also go wrong while a kernel is compiled
has the code, and the page, that the compiler gives it.
"""

from __future__ import annotations

from typing import ClassVar


class TileRuntimeError(Exception):
    """Root of every error raised here on purpose.

    Parameters
    ----------
    message
        What is wrong, in one sentence, naming the offending things.
    hint
        Something the user can type.
    subject
        What the error is about: ``("parameter", name)``, ``("step", number)``, or nothing.
        Who knows where these were written can point at the place.
    """

    code: ClassVar[str] = "TL0000"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        subject: tuple[str, str | int] | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.hint, self.subject = message, hint, subject

    def __str__(self) -> str:
        hint = "" if self.hint is None else f"\nhint: {self.hint}"
        return f"[{self.code}] {self.message}{hint}"


class MissingFeature(TileRuntimeError):
    """The machine at hand lacks a device, a driver or instructions."""

    code = "TL4004"


class LaunchError(TileRuntimeError, ValueError):
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
    """Strides, device or address of an argument are wrong."""

    code = "TL6006"


class EmptyGridError(LaunchError):
    """A launch dimension is zero or negative."""

    code = "TL6007"


class AssumptionError(LaunchError, RuntimeError):
    """A condition that the kernel states is false for these arguments."""

    code = "TL6008"


class DeviceAssertError(TileRuntimeError, RuntimeError):
    """An assertion inside a kernel failed."""

    code = "TL6009"


class ContractViolation(LaunchError, RuntimeError):
    """A dimension has a value that its contract excludes."""

    code = "TL6010"


class InvalidBundle(TileRuntimeError, ValueError):
    """A file is no bundle of kernels, or it is damaged."""

    code = "TL8001"


class NewerBundle(TileRuntimeError, ValueError):
    """A bundle was written in a form that this version does not know."""

    code = "TL8002"


class NoVariant(TileRuntimeError):
    """A bundle holds no code for the machine at hand."""

    code = "TL8003"
