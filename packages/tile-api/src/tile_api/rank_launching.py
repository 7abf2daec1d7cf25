"""Calls of this process's kernels that run on every rank of a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_api.launching import Launcher
from tile_core.ir.printer import print_kernel
from tile_core.ir.ranks import rank_parameters
from tile_core.ir.stmt import Kernel
from tile_launch.rank_calls import FILLED_IN, RankCalls


class RankLauncher(RankCalls, Launcher):
    """Calls one rank's part of a kernel, when all ranks have come to call theirs."""

    @property
    def input_names(self) -> list[str]:
        """Names of the arguments of a call, in order, without those that are filled in."""
        return super().input_names[: -len(FILLED_IN)]

    @property
    def program(self) -> bytes:
        """Return the kernel's text."""
        return print_kernel(self.kernel).encode()


def launcher_of(kernel: Kernel, executable: Callable[..., Any], device: str) -> Launcher:
    """Return what calls a kernel, which runs on every rank of a group or does not."""
    kind = Launcher if rank_parameters(kernel) is None else RankLauncher
    return kind(kernel, executable, device)
