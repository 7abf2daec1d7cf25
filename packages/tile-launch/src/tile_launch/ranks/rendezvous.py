"""How the ranks of a group find each other, once; afterwards they talk through memory."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from tile_launch.errors import RankError, RankMismatch

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_FORM = 1  # of what ranks tell each other, and of the memory that they share


class Group(Protocol):
    """What has to be known of a group of processes, or of threads, to share memory in it.

    ``tile.ranks.join`` takes one of torch's, or any object like this: of mpi4py's communicators,
    ``all_gather`` is ``allgather``.
    """

    @property
    def rank(self) -> int:
        """Which of the members this is, from 0."""

    @property
    def size(self) -> int:
        """How many members there are."""

    def all_gather(self, data: bytes) -> list[bytes]:
        """Return what each member passes, in order of ranks; all members call it, and wait."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A rank as the others know it: its process, and the descriptor of its first segment."""

    process: int
    descriptor: int
    machine: str
    form: int = _FORM


def this_machine() -> str:
    """Return what tells the running system from all others."""
    return _BOOT.read_text().strip() if _BOOT.exists() else os.uname().nodename


def peers_of(group: Group, descriptor: int) -> list[Peer]:
    """Tell the group of a descriptor, and return those of all ranks.

    Raises
    ------
    RankError
        If the group does not answer, or its members are on several machines.
    RankMismatch
        If other versions of this package are among them.
    """
    own = Peer(os.getpid(), descriptor, this_machine())
    try:
        told = group.all_gather(json.dumps(asdict(own)).encode())
    except Exception as error:
        raise RankError(
            f"rank {group.rank} of {group.size} could not find the others: {error}",
            hint="all ranks of the group have to call tile.ranks.join, in the same order",
        ) from error
    peers = [Peer(**json.loads(one)) for one in told]
    for rank, peer in enumerate(peers):
        if peer.form != own.form:
            raise RankMismatch(
                f"rank {rank} shares memory in form {peer.form}, rank {group.rank} in form "
                f"{own.form}",
                hint="install the same version of tile-launch for all ranks",
            )
        if peer.machine != own.machine:
            raise RankError(
                f"ranks {group.rank} and {rank} run on different machines: they share no memory",
                hint="join one group for each machine, and let its ranks share memory",
            )
    return peers
