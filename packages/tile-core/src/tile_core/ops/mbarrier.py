"""Barriers in shared memory that count arrivals and bytes, as ranges of threads use them."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import FrontendValueError
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Expr
from tile_core.ops.operator import ControlOperator
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class BarrierInit(ControlOperator):
    """Make the barriers of `barriers` usable: entry `i` completes after ``counts[i]`` arrivals.

    The threads of the block may use them after the next barrier of all.
    """

    mnemonic: ClassVar[str] = "barrier_init"
    spellings: ClassVar[tuple[str, ...]] = ("alloc_barrier",)
    barriers: Buffer
    counts: tuple[int, ...]

    def verify(self) -> None:
        """Check that there is one positive count for each barrier."""
        if self.barriers.static_shape != (len(self.counts),) or min(self.counts, default=0) < 1:
            raise FrontendValueError(
                f"{self.barriers.name!r} needs a positive count of arrivals for each barrier, "
                f"got {list(self.counts)}",
                hint="write T.alloc_barrier([128] * stages)",
            )


@dataclass(frozen=True, slots=True, eq=False)
class BarrierArrive(ControlOperator):
    """Arrive at a barrier: once for each warp that runs this, with its accesses so far.

    Parameters
    ----------
    barrier
        One element of a buffer of barriers.
    nbytes
        Bytes that asynchronous copies will bring before the phase can complete. A positive
        number lets the first thread alone arrive, whatever the number of warps.
    ranks
        Blocks of the cluster whose barrier at the same place is meant; empty for the own one.
    """

    mnemonic: ClassVar[str] = "barrier_arrive"
    barrier: Region
    nbytes: int = 0
    ranks: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BarrierWait(ControlOperator):
    """Wait until the phase of `parity` of a barrier has completed.

    Phases are numbered from 0; a fresh barrier counts as if phase 1 had completed before. What
    arrived with that phase, the bytes of asynchronous copies too, is visible afterwards.
    """

    mnemonic: ClassVar[str] = "barrier_wait"
    barrier: Region
    parity: Expr


@dataclass(frozen=True, slots=True, eq=False)
class SetRegisters(ControlOperator):
    """Give each thread of the running warp groups `count` registers, more or fewer than before.

    Whole groups of four warps run this. A hint: machines that cannot do it ignore it.
    """

    mnemonic: ClassVar[str] = "set_registers"
    spellings: ClassVar[tuple[str, ...]] = ("set_max_nreg",)
    count: int
    is_increase: bool

    def verify(self) -> None:
        """Check the range that the instruction takes."""
        if self.count % 8 or not 24 <= self.count <= 240:
            raise FrontendValueError(
                f"a thread cannot have {self.count} registers",
                hint="use a multiple of 8 from 24 to 240",
            )
