"""The ranks of a group, as one of them sees them: tensors, signals, launches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf, prod
from threading import RLock
from typing import Any

import numpy as np

from tile_launch.cpu_quota import cpu_quota
from tile_launch.dtypes import bits_of
from tile_launch.errors import ArgumentDtypeError, ArgumentShapeError, RankError, TileError
from tile_launch.outputs import numpy_type
from tile_launch.ranks import futex
from tile_launch.ranks.meeting import PAGE, Meeting
from tile_launch.ranks.rendezvous import Group, Peer, peers_of
from tile_launch.ranks.segments import Mapping, shared_by_all
from tile_launch.ranks.signal_header import LINE, SLEEPERS, write_header
from tile_launch.ranks.symmetric import Signals, SymmetricTensor, signals_in, tensor_in

_LOOKS = 1000
"""How often to look before one sleeps, which takes some microseconds; each rank has a core."""


class Ranks:
    """The ranks of a group on one machine; `join` makes it.

    All ranks make the same tensors and launch the same kernels on them, in one order: this is
    compared. A launch begins when all ranks have come to it, and returns when all are done with it.

    Attributes
    ----------
    rank, size
        Which this is, and how many there are.
    """

    def __init__(self, peers: Sequence[Peer], rank: int, pages: Mapping, timeout: float) -> None:
        self.rank, self.size = rank, len(peers)
        self._peers, self._process, self._lock = peers, os.getpid(), RLock()
        alone = sum(peer.process == os.getpid() for peer in peers) == 1  # else they share a lock
        looks = _LOOKS if alone and self.size <= _cores() else 0
        self._meeting = Meeting(pages, rank, peers, timeout, looks)
        self._made = 0
        self._stopped: BaseException | None = None

    @property
    def timeout(self) -> float:
        """Seconds that a rank waits for another one, or for a signal."""
        return self._meeting.timeout

    def zeros(self, shape: int | Sequence[int], dtype: Any = "float32") -> SymmetricTensor:
        """Return a new tensor of zeros, of which each rank has a copy; all ranks call this.

        NumPy holds element types that it lacks as those of `ml_dtypes`, if that is installed, else
        as unsigned integers of the same size.

        Raises
        ------
        ArgumentDtypeError
            If there is no such element type.
        ArgumentShapeError
            If a dimension is negative.
        RankMismatch
            If another rank wants another one.
        RankError
            If another rank does not come.
        """
        extents = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
        _require_extents(extents)
        kind = numpy_type(_named(dtype))
        what = f"a tensor of {kind.name} {list(extents)}"
        segments = self._new(prod(extents) * kind.itemsize, what)
        return SymmetricTensor(self, self._made, tensor_in(segments, self.size, extents, kind))

    def signals(self, count: int) -> Signals:
        """Return `count` new counters for each rank; all ranks call this.

        Raises
        ------
        ArgumentShapeError
            If `count` is negative.
        RankMismatch
            If another rank wants another number of them.
        RankError
            If another rank does not come.
        """
        _require_extents((count,))
        segments = self._new(LINE * (count + 1), f"{count} signals")
        everyone, header = signals_in(segments, self.size, count), self._header(segments)
        return Signals(self, self._made, everyone, header)

    def barrier(self) -> None:
        """Wait until all ranks have called this.

        Raises
        ------
        RankError
            If another rank does not.
        """
        with self._used():
            self._meeting.meet("a barrier")

    @contextmanager
    def launch(self, what: str, signals: Sequence[Signals]) -> Iterator[None]:
        """Meet the other ranks before a block, in which a kernel runs, and after it.

        `what` tells the kernel and its arguments, which are the same on all ranks; signals are
        those among them.

        Raises
        ------
        RankError
            If a rank launches something else, or fails: what stopped the first of them.
        """
        with self._used():
            self._meeting.meet(what)
            self._stopped = None
            try:
                yield
                # What the others do now has an end: where they wait, they do not wait for ever.
                self._meeting.arrive(timeout=inf)
            except BaseException as error:
                if isinstance(self._stopped, TileError):
                    raise self._stopped.at(getattr(error, "span", None)) from None
                if self._stopped is not None:
                    raise self._stopped from None
                self._meeting.end_for(error)
                raise
            for one in signals:
                one.local[:] = 0  # nobody raises them before all have met again

    def stop(self, reason: BaseException) -> None:
        """Tell the other ranks that this one does not go on: they raise `RankLost`."""
        self._meeting.end_for(reason)

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Refuse a fork, which would count as its parent; one thread at a time goes on."""
        if os.getpid() != self._process:
            raise RankError(
                f"rank {self.rank} is process {self._process}, and this is a fork of it",
                hint="start processes by the method 'spawn', and let each join the group",
            )
        with self._lock:
            yield

    def _new(self, size: int, what: str) -> Mapping:
        def exchange(descriptor: int) -> list[tuple[int, int]]:
            told = self._meeting.meet(what, descriptor)
            return [(peer.process, one) for peer, one in zip(self._peers, told, strict=True)]

        with self._used():
            self._made += 1
            try:
                with shared_by_all(size, exchange) as segments:
                    self._meeting.arrive()
                    return segments
            except RankError as error:  # such as that a process is not there any more
                raise self._meeting.give_up(self._meeting.lost(what) or error) from None
            except BaseException as error:
                self._meeting.end_for(error)
                raise

    def _header(self, segments: Mapping) -> Any:
        """Write what compiled code calls where it waits, and return it: it lives with signals."""
        start = segments.at(self.rank)

        def wait(counter: int, wanted: int) -> int:
            what = f"signal {(counter - start) // LINE - 1} to come to {wanted}"
            try:
                futex.add(counter + SLEEPERS, 1)
                try:
                    self._meeting.wait(counter, wanted, what)
                finally:
                    futex.add(counter + SLEEPERS, -1)
            except BaseException as error:  # an interrupt, too: C cannot be left by an exception
                self._meeting.end_for(error)
                self._stopped = self._stopped or error
                return 1
            return 0

        return write_header(start, wait, futex.wake, self._meeting.looks)

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}>"


def join(group: Group, timeout: float = 30.0) -> Ranks:
    """Return the ranks of a group; all members call this, once for each `Ranks` they want.

    Parameters
    ----------
    group
        What tells the members of each other.
    timeout
        Seconds that a rank waits for another one, or for a signal.

    Raises
    ------
    RankError
        If the members cannot share memory.
    RankError
        If a member does not come.
    """
    futex.require_futexes()
    peers: list[Peer] = []

    def exchange(descriptor: int) -> list[tuple[int, int]]:
        peers.extend(peers_of(group, descriptor))
        return [(peer.process, peer.descriptor) for peer in peers]

    with shared_by_all(PAGE, exchange) as pages:
        ranks = Ranks(peers, group.rank, pages, timeout)
        ranks.barrier()
        return ranks


def _named(dtype: Any) -> str:
    """Return the name of an element type: of NumPy, of torch, or its name."""
    name = np.dtype(dtype).name if isinstance(dtype, type) else str(dtype)
    name = name.removeprefix("torch.")
    if not bits_of(name):
        raise ArgumentDtypeError(
            f"no element type is called {name!r}", hint="use one such as 'float32' or 'bfloat16'"
        )
    return name


def _cores() -> int:
    return min(len(os.sched_getaffinity(0)), cpu_quota() or os.cpu_count() or 1)


def _require_extents(extents: Sequence[int]) -> None:
    if any(extent < 0 for extent in extents):
        raise ArgumentShapeError(
            f"the shape {list(extents)} has a negative dimension",
            hint="dimensions are whole numbers, 0 or more",
        )
