"""Operators without data flow: barriers of blocks, clusters and grids, turns, breakpoints."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Seq, Stmt
from tile_core.ops.operator import ControlOperator
from tile_core.records import dataclass

GROUP = 128
"""Threads of a group that takes turns with another one."""


@dataclass(frozen=True, slots=True, eq=False)
class Barrier(ControlOperator):
    """Wait until all threads of the block (or `count` of them, on barrier `number`) arrive.

    Memory written before is visible to those threads after.

    Parameters
    ----------
    scope
        "block", "warp" or "grid".
    arrivals
        The word of global memory in which blocks of a grid that run at a time count arrivals;
        None where nothing says yet how they meet.
    """

    mnemonic: ClassVar[str] = "barrier"
    spellings: ClassVar[tuple[str, ...]] = ("sync_threads", "sync_warp", "sync_grid")
    scope: str = "block"
    number: Expr | None = None
    count: Expr | None = None
    arrives_only: bool = False
    arrivals: Region | None = None

    def serial_form(self) -> Stmt:
        """Return nothing: one thread waits for nobody."""
        return Seq(())


@dataclass(frozen=True, slots=True, eq=False)
class ClusterSync(ControlOperator):
    """Wait until all threads of all blocks of the cluster arrive.

    What they wrote to shared memory before is visible to all of them after.
    """

    mnemonic: ClassVar[str] = "cluster_sync"


class PingPongStep(Enum):
    """What a group does about the turn."""

    OFFER = "offer"  # the second group lets the first one begin
    TAKE = "take"  # wait until the other group has given the turn away
    GIVE = "give"  # give the turn to the other group


@dataclass(frozen=True, slots=True, eq=False)
class PingPongOrder(ControlOperator):
    """Let the two halves of the running threads take turns, the first one first.

    Between `TAKE` and `GIVE` of one half the other waits at its own `TAKE`. `OFFER` stands once
    in front. Results do not change: only when each half does its work.

    Parameters
    ----------
    goes_on
        Whether another turn follows. The second half keeps the last one: nobody would take it.
    """

    mnemonic: ClassVar[str] = "ping_pong"
    step: PingPongStep
    goes_on: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Breakpoint(ControlOperator):
    """Open a debugger in the interpreter; every other backend goes on as if it were not there.

    Parameters
    ----------
    names, values
        What the user can see at this point: names, and the expression or buffer each stands
        for. They do not count as reads, so looking changes nothing.
    """

    mnemonic: ClassVar[str] = "breakpoint"
    names: tuple[str, ...] = ()
    values: tuple[Buffer | Expr, ...] = ()

    def serial_form(self) -> Stmt:
        """Return nothing: only the interpreter stops."""
        return Seq(())
