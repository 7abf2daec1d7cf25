"""Calls of this process's kernels that run on every rank of a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_api.launching import Launcher
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_launch.kernel import FILLED_IN
from tile_launch.rank_calls import RankCalls
from tile_launch.ranks.symmetric import Signals, SymmetricTensor

HOST = "cpu"
"""The kind of targets whose kernels share memory with those of other processes."""


class RankLauncher(RankCalls, Launcher):
    """Calls one rank's part of a kernel, when all ranks have come to call theirs."""

    def __init__(
        self, kernel: Kernel, executable: Callable[..., Any], device: str, target: str
    ) -> None:
        super().__init__(kernel, executable, device)
        self.target = target

    def __call__(self, *args: Any) -> Any:
        """Run on a rank, as `RankCalls` does, what was compiled for this processor."""
        shares = any(isinstance(a, (SymmetricTensor, Signals)) for a in args)
        if shares and (self.target.partition(":")[0] != HOST or "@" in self.target):
            raise UnsupportedOnTarget(
                f"{self.kernel.name}: ranks that share memory run kernels for {HOST!r}, and this "
                f"one is for {self.target!r}",
                hint="compile it for them, or run all ranks in one process: "
                "tile.compile(tile.ranks_as_blocks(kernel), target='interpret')",
            )
        return super().__call__(*args)

    @property
    def input_names(self) -> list[str]:
        """Names of the arguments of a call, in order, without those that are filled in."""
        return super().input_names[: -len(FILLED_IN)]

    @property
    def program(self) -> bytes:
        """Return the kernel's text."""
        return print_kernel(self.kernel).encode()
