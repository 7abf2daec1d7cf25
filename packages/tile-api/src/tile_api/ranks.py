"""Kernels across ranks: processes of one machine, or threads, that share memory.

Each rank joins its group, and makes tensors of which all ranks have a copy. Kernels with parameters
of ``T.Symmetric`` and ``T.Signals`` read and write the copies of other ranks, and wait for them.

Examples
--------
>>> import tile_api as tile
>>> def main(ranks):
...     x = ranks.zeros((2, 4), "float32")
...     x.local[:] = ranks.rank
...     ranks.barrier()
...     return float(x.at(1).sum())
>>> tile.ranks.in_threads(2, main)
[8.0, 8.0]
"""

from __future__ import annotations

from typing import Any

from tile_launch.ranks import ranks as _ranks
from tile_launch.ranks.ranks import Ranks
from tile_launch.ranks.symmetric import Signals, SymmetricTensor
from tile_launch.ranks.threads import in_threads

__all__ = ["Ranks", "Signals", "SymmetricTensor", "in_threads", "join"]


def join(group: Any = None, *, timeout: float = 30.0) -> Ranks:
    """Return the ranks of a group, all on one machine; every member calls this.

    Parameters
    ----------
    group
        A process group of ``torch.distributed``, None for its default one; or an object with
        ``rank``, ``size`` and ``all_gather(data)``, which returns the bytes that each member
        passes, as `tile_launch.ranks.rendezvous.Group` says.
    timeout
        Seconds that a rank waits for another one to come, or for a signal.

    Raises
    ------
    RankError
        If the members cannot share memory, or one of them does not come.
    """
    if not hasattr(group, "all_gather"):
        from tile_api.integrations.torch_process_groups import TorchGroup

        group = TorchGroup(group)
    return _ranks.join(group, timeout)
