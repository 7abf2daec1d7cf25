"""Operators without data flow: barriers of a block, breakpoints."""

from __future__ import annotations

from typing import ClassVar

from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Seq, Stmt
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Barrier(TileOperator):
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

    def reads(self) -> tuple[Region, ...]:
        """Nothing by itself; it orders what others read."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()

    def serial_form(self) -> Stmt:
        """Return nothing: one thread waits for nobody."""
        return Seq(())


@dataclass(frozen=True, slots=True, eq=False)
class Breakpoint(TileOperator):
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

    def reads(self) -> tuple[Region, ...]:
        """Nothing that an optimisation would have to keep."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()

    def serial_form(self) -> Stmt:
        """Return nothing: only the interpreter stops."""
        return Seq(())
