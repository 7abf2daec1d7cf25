"""Process groups of torch, as ranks that share memory find each other through them."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from tile_core.errors import RankError


class TorchGroup:
    """A process group, None for the default one: see `tile_launch.ranks.rendezvous.Group`."""

    def __init__(self, group: Any) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise RankError(
                "torch.distributed has no process group",
                hint="call torch.distributed.init_process_group('gloo') first, and run the program "
                "by torchrun",
            )
        self._group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise RankError(
                "this process is no member of the group",
                hint="let only the members call tile.ranks.join",
            )

    def all_gather(self, data: bytes) -> list[bytes]:
        """Return what all members pass."""
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, data, group=self._group)
        return found
