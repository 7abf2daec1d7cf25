"""Calls of kernels that run on every rank of a group."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from functools import cached_property
from typing import Any

from tile_launch.checked_calls import CheckedCalls
from tile_launch.errors import ArgumentTypeError
from tile_launch.ranks.symmetric import Signals, SymmetricTensor


class RankCalls(CheckedCalls):
    """Calls one rank's part of a kernel, when all ranks have come to call theirs.

    The group is that of the symmetric tensors and signals among the arguments; which rank this is,
    and how many there are, is filled in. Arguments that belong to no group are passed as they are.
    """

    @property
    @abstractmethod
    def program(self) -> bytes:
        """What all ranks must have the same of."""

    def __call__(self, *args: Any) -> Any:
        """Meet the other ranks, check, run, and wait until all of them are done."""
        shared = [a for a in args if isinstance(a, (SymmetricTensor, Signals))]
        if not shared:
            return super().__call__(*args)
        ranks = shared[0].ranks
        for one in shared:
            if one.ranks is not ranks:
                raise ArgumentTypeError(
                    f"{self._manifest.kernel}: its arguments belong to two groups of ranks",
                    hint="make all of them from what one call of tile.ranks.join returned",
                )
        plain = [a.everyone if isinstance(a, (SymmetricTensor, Signals)) else a for a in args]
        what = f"kernel {self._told} on {', '.join(one.told for one in shared)}"
        with ranks.launch(what, [one for one in shared if isinstance(one, Signals)]):
            return super().__call__(*plain, ranks.rank, ranks.size)

    @cached_property
    def _told(self) -> str:
        """The kernel as ranks compare it: its name, and a digest of its program."""
        return f"{self._manifest.kernel} ({hashlib.sha256(self.program).hexdigest()[:12]})"


class LoadedRankCalls(RankCalls):
    """Calls of a kernel out of a bundle."""

    code = b""

    @property
    def program(self) -> bytes:
        """Return the machine code."""
        return self.code
