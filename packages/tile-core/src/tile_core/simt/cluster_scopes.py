"""Arrivals at barriers of other blocks: whether they tell of more than that memory is free."""

from __future__ import annotations

from tile_core.ir.device_calls import PREFIX
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import Call
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import Launch, Stmt
from tile_core.ops.remote_copy import RemoteCopy
from tile_core.records import replace

_ARRIVE, _WAIT = f"{PREFIX}mbarrier_arrive_remote", f"{PREFIX}mbarrier_wait"
_FREE, _WAIT_CLUSTER = f"{PREFIX}mbarrier_free_remote", f"{PREFIX}mbarrier_wait_cluster"


def set_cluster_scopes(body: Stmt, launch: Launch) -> Stmt:
    """Return `body`, lowered from `launch`, with arrivals at other blocks as they must be.

    Before   mbarrier_wait(full, …);  …  mbarrier_arrive_remote(empty, rank)
    After    mbarrier_wait(full, …);  …  mbarrier_free_remote(empty, rank)
    or       mbarrier_wait_cluster(full, …);  …  mbarrier_arrive_remote(empty, rank)

    A thread that tells those of another block what it wrote waits until all of it has reached
    global memory, and they forget what they have cached: as long as several iterations of a
    product. Where blocks read nothing that others write, an arrival only tells that a tile was
    read, and the copy engine may fill it again. Source: PTX ISA, "mbarrier.arrive", default scope.
    """
    if not any(node.function == _ARRIVE for node in nodes_of(body, Call)):
        return body
    if tells_other_blocks(launch):
        return _renamed(body, _WAIT, _WAIT_CLUSTER)
    return _renamed(body, _ARRIVE, _FREE)


def tells_other_blocks(launch: Launch) -> bool:
    """Whether threads may read what those of another block of the cluster wrote.

    They may where one and the same tensor is written and read, where tiles are copied to other
    blocks by threads, and in code that is not known.
    """
    if any(n.barrier is None for n in nodes_of(launch.body, RemoteCopy)):
        return True
    if any(n.function.startswith("extern:") for n in nodes_of(launch.body, Call)):
        return True
    touched = [a for a in accesses(launch.body) if a.buffer.storage.scope.is_global]
    read = {a.buffer.storage for a in touched if a.mode is Mode.READ}
    return any(a.mode is not Mode.READ and a.buffer.storage in read for a in touched)


def _renamed(body: Stmt, old: str, new: str) -> Stmt:
    changed: dict[Node, Node] = {
        node: replace(node, function=new) for node in nodes_of(body, Call) if node.function == old
    }
    return substitute(body, changed)
