"""Compiled code that takes notes, for tests of callers in C."""

from __future__ import annotations

import ctypes
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tile_launch.native.c_structures import ArgumentKind, Interface, Source, Width
from tile_launch.native.caller import Parameter, Slot, Start
from tile_launch.native.library import c_compiler, is_supported, ready_library

TENSOR = Parameter(ArgumentKind.TENSOR)


def library_in(folder: Path) -> Any:
    """Return the library, compiled in `folder`."""
    if not is_supported() or shutil.which(c_compiler()[0]) is None:
        pytest.skip("needs CPython and a C compiler")
    found = ready_library(folder, c_compiler())
    assert found is not None
    return found


@dataclass
class Code:
    """Compiled code that notes the 64 bits of each argument, and returns a number."""

    slots: tuple[Slot, ...]
    returns: int = 0
    calls: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
        self.entry = kind(self._run)

    def _run(self, row: Any) -> int:
        places = [row[k] for k in range(len(self.slots))]
        self.calls.append(tuple(ctypes.c_int64.from_address(place).value for place in places))
        return self.returns

    def start(self, **changes: Any) -> Start:
        function = ctypes.cast(self.entry, ctypes.c_void_p).value
        told = {"failed": refuse, "keep": (self,)} | changes
        return Start(Interface.ROW, function or 0, 0, self.slots, **told)


def refuse(kind: int, number: int) -> None:
    raise ArithmeticError(kind, number)


def addresses(*positions: int) -> tuple[Slot, ...]:
    return tuple(Slot(Source.ADDRESS, position, Width.POINTER) for position in positions)
