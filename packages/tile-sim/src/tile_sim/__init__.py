"""Emulator of GPU kernels: the emitted source runs on the CPU, one fiber per thread, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_sim.settings import SimSettings, checking

if TYPE_CHECKING:
    from tile_sim.call_report import SimReport

__author__ = "The tile authors"
__version__ = "0.1.0"
__all__ = ["SimSettings", "checking", "last_report"]


def last_report() -> SimReport | None:
    """Return what the last emulated call of this thread did; None before the first.

    ``print(last_report())`` shows what each line costs, if ``counters`` were on.
    """
    from tile_sim.call_report import last_report

    return last_report()
