"""Ranks that are threads of one process: to try kernels, and where threads do not stand in line."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, BrokenBarrierError, Thread
from typing import TypeVar

from tile_launch.errors import RankError, RankLost
from tile_launch.ranks.ranks import Ranks, join

Result = TypeVar("Result")


class ThreadGroup:
    """A member of a group of threads, as `tile_launch.ranks.rendezvous.Group` says."""

    def __init__(self, rank: int, size: int, told: list[bytes], barrier: Barrier) -> None:
        self.rank, self.size, self._told, self._barrier = rank, size, told, barrier

    def all_gather(self, data: bytes) -> list[bytes]:
        """Return what all members pass."""
        self._told[self.rank] = data
        self._barrier.wait()
        return list(self._told)


def in_threads(size: int, main: Callable[[Ranks], Result], timeout: float = 30.0) -> list[Result]:
    """Run `main` on each of `size` ranks, which are threads, and return what it returns.

    Raises
    ------
    RankError
        If `size` is less than 1.
    BaseException
        What the first rank raised that failed: the others raise the same, or `RankLost`.

    Examples
    --------
    >>> def main(ranks):
    ...     x = ranks.zeros(2, "int32")
    ...     x.local[:] = ranks.rank + 1
    ...     ranks.barrier()
    ...     return int(x.everyone.sum())
    >>> in_threads(3, main)
    [12, 12, 12]
    """
    if size < 1:
        raise RankError(f"a group of {size} ranks", hint="a group has one rank or more")
    barrier, told = Barrier(size, timeout=timeout), [b""] * size
    results: list[Result | None] = [None] * size
    errors: list[tuple[bool, int, BaseException]] = []

    def run(rank: int) -> None:
        ranks = None
        try:
            ranks = join(ThreadGroup(rank, size, told, barrier), timeout)
            results[rank] = main(ranks)
        except BaseException as error:
            follows = isinstance(error, RankLost) or isinstance(error.__cause__, BrokenBarrierError)
            errors.append((follows, rank, error))
            barrier.abort()
            if ranks is not None:
                ranks.stop(error)

    threads = [Thread(target=run, args=(rank,), name=f"rank {rank}") for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise min(errors, key=lambda found: found[:2])[2]
    return results  # type: ignore[return-value]  # no error: all have returned
