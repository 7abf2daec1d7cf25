"""Tensors and counters that every rank of a group has, as users hold them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tile_launch.errors import RankError
from tile_launch.ranks.segments import Mapping
from tile_launch.ranks.signal_header import LINE


class SymmetricTensor:
    """A tensor of which each rank has its own copy, in memory that all can read and write.

    Pass it to kernels where they declare ``T.Symmetric``. `tile_launch.ranks.ranks.Ranks` makes
    them.

    Attributes
    ----------
    ranks
        The `tile_launch.ranks.ranks.Ranks` of this rank.
    shape, dtype
        Of one copy.
    everyone
        The copies of all ranks, as an array (ranks, ...).
    """

    def __init__(self, ranks: Any, serial: int, everyone: Any) -> None:
        self.ranks, self.everyone = ranks, everyone
        self.shape: tuple[int, ...] = everyone.shape[1:]
        self.dtype = everyone.dtype.name
        self.told = f"{self.dtype} {list(self.shape)} #{serial}"

    @property
    def local(self) -> Any:
        """The copy of this rank: an array of NumPy; ``torch.from_numpy`` shares its memory."""
        return self.everyone[self.ranks.rank]

    def at(self, rank: int) -> Any:
        """Return the copy of a rank: its memory, not a copy of it."""
        return self.everyone[rank]

    def __reduce__(self) -> Any:
        """Refuse to travel: a copy elsewhere would be no rank's."""
        raise _no_copies("a symmetric tensor")

    def __repr__(self) -> str:
        return f"<symmetric tensor {self.told} of {self.ranks!r}>"


class Signals:
    """Counters that kernels of other ranks raise and those of this rank wait for.

    Pass it to kernels where they declare ``T.Signals``. Each launch finds them at zero.

    Attributes
    ----------
    ranks
        The `tile_launch.ranks.ranks.Ranks` of this rank.
    everyone
        The counters of all ranks, as an array (ranks, count).
    """

    def __init__(self, ranks: Any, serial: int, everyone: Any, called: Any) -> None:
        self.ranks, self.everyone, self._called = ranks, everyone, called
        self.told = f"signals {everyone.shape[1]} #{serial}"

    def __len__(self) -> int:
        return int(self.everyone.shape[1])

    @property
    def local(self) -> Any:
        """The counters of this rank."""
        return self.everyone[self.ranks.rank]

    def __reduce__(self) -> Any:
        """Refuse to travel: a copy elsewhere would be no rank's."""
        raise _no_copies("signals")

    def __repr__(self) -> str:
        return f"<{self.told} of {self.ranks!r}>"


def _no_copies(what: str) -> RankError:
    return RankError(
        f"{what} cannot be copied, nor sent to another process",
        hint="let each rank make its own, ranks.zeros(...); of a tensor, copy x.local",
    )


class _Memory:
    """Tells NumPy of an array in mapped segments, and keeps them mapped while that lives."""

    def __init__(self, segments: Mapping, offset: int, shape: tuple[int, int], step: int) -> None:
        self.segments = segments
        self.__array_interface__ = {
            "version": 3,
            "data": (segments.base + offset, False),
            "shape": shape,
            "strides": (segments.size, step),
            "typestr": "|u1" if step == 1 else "<u4",
        }


def tensor_in(segments: Mapping, ranks: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array (ranks, ...) at the start of each of the segments."""
    size = prod(shape) * dtype.itemsize
    flat = np.asarray(_Memory(segments, 0, (ranks, size), 1)).view(dtype)
    strides = np.empty(shape, dtype).strides
    return np.lib.stride_tricks.as_strided(flat, (ranks, *shape), (segments.size, *strides))


def signals_in(segments: Mapping, ranks: int, count: int) -> Any:
    """Return an array (ranks, count) of counters, each on a line of its own, after the first."""
    return np.asarray(_Memory(segments, LINE, (ranks, count), LINE))
