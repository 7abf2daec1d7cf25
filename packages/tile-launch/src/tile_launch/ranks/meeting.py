"""Ranks that wait for each other, and find out when one of them never comes.

Each rank has a page that all map. It counts there how often it has arrived, says what it is about
to do, and why it gave up if it did. A rank that waits looks from time to time whether the others
still live, and whether one has given up: then it gives up, too, for the same reason.
"""

from __future__ import annotations

import os
import select
import struct
import weakref
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from time import monotonic

from tile_launch.errors import (
    Note,
    RankError,
    RankLost,
    RankMismatch,
    RankTimeout,
    TileError,
)
from tile_launch.ranks import futex
from tile_launch.ranks.rendezvous import Peer
from tile_launch.ranks.segments import Mapping

PAGE = 4096
_ARRIVED, _FAILED, _ROOMS = 0, 64, (1024, 2560)  # places in the page
_ROOM = 1536
_TEXT = struct.Struct("<QI")  # before a text: a number that goes with it, and its length
_SLICE = 0.02
"""Seconds of sleep before a rank that waits looks at the others."""

_HALF = 2**31
_KINDS: dict[str, type[RankError]] = {
    kind.code: kind for kind in (RankError, RankLost, RankTimeout, RankMismatch)
}


class Meeting:
    """The page of each rank, and the processes behind them.

    Parameters
    ----------
    pages
        Mapped pages, that of each rank at its place.
    rank
        Whose this is.
    peers
        The processes of all ranks.
    timeout
        Seconds after which a rank waits no more.
    looks
        How often it looks before it sleeps.
    """

    def __init__(
        self, pages: Mapping, rank: int, peers: Sequence[Peer], timeout: float, looks: int
    ) -> None:
        self.rank, self.size, self.timeout, self.looks = rank, len(peers), timeout, looks
        self.failure: RankError | None = None
        self._pages, self._arrivals, self._lock = pages, 0, Lock()
        self._watched = _watched(peers)
        weakref.finalize(self, _close, list(self._watched)).atexit = False

    def meet(self, what: str, number: int = 0) -> list[int]:
        """Wait until all ranks have come to do `what`; return the `number` of each.

        Raises
        ------
        RankMismatch
            If a rank has come to do something else.
        RankError
            If a rank does not come.
        """
        room = _ROOMS[self._arrivals % 2]  # nobody is two meetings ahead of another
        told = what.encode()[: _ROOM - _TEXT.size]
        self._tell(room, number, told)
        self.arrive()
        found = [self._told(rank, room) for rank in range(self.size)]
        for rank, (_, text) in enumerate(found):
            if text != told:
                raise self.give_up(
                    RankMismatch(
                        f"rank {rank} wants: {text.decode(errors='replace')}",
                        notes=(Note(f"rank {self.rank} wants: {what}"),),
                        hint="all ranks of a group make the same tensors and launch the same "
                        "kernels on them, in one order",
                    )
                )
        stopped = self._given_up(what)  # perhaps before this rank came
        if stopped is not None:
            raise self.give_up(stopped)
        return [number for number, _ in found]

    def arrive(self, timeout: float | None = None) -> None:
        """Wait until all ranks have arrived as often as this one, at most `timeout` seconds.

        Raises
        ------
        RankError
            If a rank does not come.
        """
        if self.failure is not None:
            raise self.failure
        self._arrivals = (self._arrivals + 1) % (2 * _HALF)
        futex.add(self._pages.at(self.rank) + _ARRIVED, 1)
        for rank in range(self.size):
            if rank != self.rank:
                what = f"rank {rank} to come"
                self.wait(self._pages.at(rank) + _ARRIVED, self._arrivals, what, timeout)

    def wait(self, address: int, wanted: int, what: str, timeout: float | None = None) -> None:
        """Wait until the counter at `address` has come to `wanted`; `what` says that in words.

        Raises
        ------
        RankError
            If it never will.
        """
        for _ in range(self.looks):
            if _has_come(futex.load(address), wanted):
                return
        patience = self.timeout if timeout is None else timeout
        end = monotonic() + patience
        while not _has_come(seen := futex.load(address), wanted):
            left = end - monotonic()
            if futex.wait(address, seen, max(min(left, _SLICE), 0)):
                continue
            lost = self.lost(what)
            if lost is None and left <= 0:
                lost = RankTimeout(
                    f"rank {self.rank} has waited {patience:g} s for {what}",
                    hint="see what that rank does instead, or wait longer: "
                    "tile.ranks.join(group, timeout=seconds)",
                )
            if lost is not None and not _has_come(futex.load(address), wanted):
                raise self.give_up(lost)

    def give_up(self, error: RankError) -> RankError:
        """Tell the other ranks of an error; return it, or the one that came before."""
        with self._lock:
            if self.failure is None:
                self.failure = error
                told = f"{error.code}{error.message}"
                for note in error.notes:
                    told += f"\n{note.text}"
                self._tell(_FAILED, 0, told.encode()[: _ROOMS[0] - _FAILED - _TEXT.size])
                futex.add(self._pages.at(self.rank) + _FAILED, 1)  # makes it valid
            return self.failure

    def end_for(self, reason: BaseException) -> None:
        """Tell the other ranks that this one ends, where it has not given up before."""
        told = reason.message if isinstance(reason, TileError) else str(reason)
        kind = type(reason).__name__
        self.give_up(RankLost(f"rank {self.rank} stopped: {kind}{': ' if told else ''}{told}"))

    def _given_up(self, what: str) -> RankError | None:
        """Return why another rank gave up, if one has."""
        for rank in range(self.size):
            number, text = self._told(rank, _FAILED)
            if rank != self.rank and number:
                code, (message, *notes) = text[:6].decode(), text[6:].decode().split("\n")
                return _KINDS[code](
                    message,
                    notes=(*map(Note, notes), Note(f"rank {self.rank} waited for {what}")),
                )
        return None

    def lost(self, what: str) -> RankError | None:
        """Return why what this rank waited for never comes: another one gave up, or has ended."""
        stopped = self._given_up(what)
        if stopped is not None:
            return stopped
        looking = select.poll()
        for descriptor in self._watched:
            looking.register(descriptor, select.POLLIN)
        for descriptor, _ in looking.poll(0):
            rank, process = self._watched[descriptor]
            return RankLost(
                f"rank {rank} is lost: process {process} has ended",
                notes=(Note(f"rank {self.rank} waited for {what}"),),
                hint="see what that process wrote last; start all ranks again",
            )
        return None

    def _tell(self, place: int, number: int, text: bytes) -> None:
        address = self._pages.at(self.rank) + place
        self._pages.write(address + _TEXT.size, text)
        self._pages.write(address, _TEXT.pack(number, len(text)))

    def _told(self, rank: int, place: int) -> tuple[int, bytes]:
        address = self._pages.at(rank) + place
        number, length = _TEXT.unpack(self._pages.read(address, _TEXT.size))
        return number, self._pages.read(address + _TEXT.size, min(length, _ROOM))


def _has_come(seen: int, wanted: int) -> bool:
    """Whether a counter of 32 bits, which wraps around, is not before `wanted`."""
    return (seen - wanted) % (2 * _HALF) < _HALF


def _watched(peers: Sequence[Peer]) -> dict[int, tuple[int, int]]:
    """Return what tells when processes end, with the rank and number of each."""
    found: dict[int, tuple[int, int]] = {}
    for rank, process in enumerate(peer.process for peer in peers):
        if process == os.getpid():
            continue
        try:
            found[os.pidfd_open(process)] = (rank, process)
        except OSError as error:
            _close(list(found))
            raise RankError(
                f"process {process} of rank {rank} cannot be watched: {error.strerror}",
                hint="run the ranks in one container (one name space of processes)",
            ) from None
    return found


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)
