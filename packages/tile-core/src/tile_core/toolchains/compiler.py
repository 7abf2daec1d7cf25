"""What compilers of device programs have in common: programs, and libraries that compile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Output:
    """What one compilation gave.

    Parameters
    ----------
    code
        Machine code, as the driver loads it; empty if the text was refused.
    assembly
        The instructions that it was made from, or that were read back from it.
    log
        Errors, warnings, and what the assembler reports.
    """

    code: bytes
    assembly: str
    log: str
    is_accepted: bool


class Compiler(Protocol):
    """One installed compiler."""

    @property
    def name(self) -> str:
        """Name and version, such as ``"clang 19.1.7"``."""
        ...

    @property
    def identity(self) -> str:
        """Name and version, and which file it is: another one may make other code."""
        ...

    def supports(self, arch: str) -> bool:
        """Tell whether it compiles for `arch`."""
        ...

    def build(self, text: str, arch: str, flags: Sequence[str]) -> Output:
        """Compile the text of kernels with the flags of every kernel, then the user's."""
        ...


def identity_of(name: str, file: str | Path) -> str:
    """Return the name of a compiler and the size of its file, which tells builds apart."""
    return f"{name} {Path(file).resolve().stat().st_size}"
