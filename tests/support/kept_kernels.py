"""Kernels that come back, in other orders of threads or with other numbers: compiled once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.compilation.results import Built
from tile_core.driver import build
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import installed_plugins

MOST = 64
_KEPT: dict[tuple[str, str], Built] = {}


def run(kernel: Kernel, target: str, arguments: Sequence[Any]) -> None:
    """Run a kernel on a target; see `built`."""
    built(kernel, target).executable(*arguments)


def built(kernel: Kernel, target: str) -> Built:
    """Return a kernel compiled for a target, now unless one of the same text has been of late.

    It is for tests that leave the compiler as it is; what `checking` and the variables of the
    emulator say counts when a kernel runs.
    """
    key = (print_kernel(kernel), target)
    if key not in _KEPT:
        while len(_KEPT) >= MOST:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[key] = build(kernel, target, installed_plugins())
    return _KEPT[key]
