"""Calls of kernels that run on every rank of a group."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

from tile_api.launching import Launcher
from tile_core.errors import ArgumentTypeError
from tile_core.ir.printer import print_kernel
from tile_core.ir.ranks import rank_parameters
from tile_core.ir.stmt import Kernel
from tile_launch.ranks.symmetric import Signals, SymmetricTensor


class RankLauncher(Launcher):
    """Calls one rank's part of a kernel, when all ranks have come to call theirs.

    The group is that of the symmetric tensors and signals among the arguments; which rank this is,
    and how many there are, is filled in. Arguments that belong to no group are passed as they are.
    """

    @property
    def input_names(self) -> list[str]:
        """Names of the arguments of a call, in order, without those that are filled in."""
        return super().input_names[:-2]

    def __call__(self, *args: Any) -> Any:
        """Meet the other ranks, check, run, and wait until all of them are done."""
        shared = [a for a in args if isinstance(a, (SymmetricTensor, Signals))]
        if not shared:
            return super().__call__(*args)
        ranks = shared[0].ranks
        for one in shared:
            if one.ranks is not ranks:
                raise ArgumentTypeError(
                    f"{self.kernel.name}: its arguments belong to two groups of ranks",
                    hint="make all of them from what one call of tile.ranks.join returned",
                )
        plain = [a.everyone if isinstance(a, (SymmetricTensor, Signals)) else a for a in args]
        what = f"kernel {self._told} on {', '.join(one.told for one in shared)}"
        with ranks.launch(what, [one for one in shared if isinstance(one, Signals)]):
            return super().__call__(*plain, ranks.rank, ranks.size)

    @cached_property
    def _told(self) -> str:
        """The kernel as ranks compare it: its name, and a digest of its program."""
        digest = hashlib.sha256(print_kernel(self.kernel).encode()).hexdigest()
        return f"{self.kernel.name} ({digest[:12]})"


def launcher_of(kernel: Kernel, executable: Callable[..., None], device: str) -> Launcher:
    """Return what calls a kernel, which runs on every rank of a group or does not."""
    kind = Launcher if rank_parameters(kernel) is None else RankLauncher
    return kind(kernel, executable, device)
