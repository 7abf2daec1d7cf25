"""Ranks that are processes, each started afresh: they find each other through a folder."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import tile_api as tile
from tile_launch.errors import TileError
from tile_launch.ranks.ranks import Ranks, join

PATIENCE = 60
"""Seconds after which a test says that its ranks hang."""


class FolderGroup:
    """A group whose members write files."""

    def __init__(self, folder: str, rank: int, size: int) -> None:
        self.folder, self.rank, self.size = Path(folder), rank, size

    def all_gather(self, data: bytes) -> list[bytes]:
        made = self.folder / f"{self.rank}.part"
        made.write_bytes(data)
        made.rename(self.folder / str(self.rank))
        places = [self.folder / str(rank) for rank in range(self.size)]
        end = time.monotonic() + PATIENCE
        while not all(place.exists() for place in places):
            if time.monotonic() > end:
                raise TimeoutError("a member did not come")
            time.sleep(0.001)
        return [place.read_bytes() for place in places]


def run_in_processes(
    folder: Path,
    size: int,
    main: Callable[..., Any],
    *args: Any,
    timeout: float = 20.0,
    by_torch: bool = False,
) -> list[Any]:
    """Run ``main(ranks, *args)`` on each rank; return what it returns, the text of what it raises.

    That of a process that ended without a word is its exit code. The group is one of torch's, with
    gloo, if it is to be `by_torch`.
    """
    joined = join_torch if by_torch else join_folder
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(size)]
    processes = [
        context.Process(
            target=_run,
            args=(joined, (str(folder), rank, size, timeout), main, args, pipes[rank][1]),
        )
        for rank in range(size)
    ]
    for process, (_, sender) in zip(processes, pipes, strict=True):
        process.start()
        sender.close()
    results = []
    for process, (receiver, _) in zip(processes, pipes, strict=True):
        assert receiver.poll(PATIENCE), "a rank hangs"
        try:
            results.append(receiver.recv())
        except EOFError:
            process.join(PATIENCE)
            results.append(process.exitcode)
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode is not None, "a rank does not end"
    return results


def join_folder(folder: str, rank: int, size: int, timeout: float) -> Ranks:
    """Join a group whose members find each other through a folder."""
    return join(FolderGroup(folder, rank, size), timeout)


def join_torch(folder: str, rank: int, size: int, timeout: float) -> Ranks:
    """Join torch's default group of processes."""
    import torch.distributed as dist

    place, limit = f"file://{folder}/store", timedelta(seconds=PATIENCE)
    dist.init_process_group("gloo", place, rank=rank, world_size=size, timeout=limit)
    return tile.ranks.join(timeout=timeout)


def _run(
    joined: Callable[..., Ranks], place: tuple[Any, ...], main: Any, args: Any, sender: Any
) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        found = main(joined(*place), *args)
    except TileError as error:
        found = str(error)
    sender.send(found)
    sender.close()
