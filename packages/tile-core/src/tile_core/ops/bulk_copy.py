"""Copies of whole boxes between tensors and shared tiles, by the copy engine, asynchronously."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import DtypeMismatch, FrontendValueError, ScopeMismatch
from tile_core.ir.buffer import Region, Scope
from tile_core.ir.expr import Expr
from tile_core.ir.gpu_intrinsics import SPELLINGS, STORE_WAIT
from tile_core.ops.operator import ControlOperator, TileOperator
from tile_core.ops.region_pairing import pair
from tile_core.records import dataclass

REDUCTIONS = ("add", "min", "max")


@dataclass(frozen=True, slots=True, eq=False)
class BulkCopy(TileOperator):
    """Start a copy of every element of `src` to the matching coordinate of `dst`.

    Parameters
    ----------
    src, dst : Region, one global and one shared, of one dtype
        Matched by `tile_core.ops.region_pairing.pair`.
    barrier : one element of a buffer of barriers, for copies into shared memory
        Counts the bytes that arrive. They are there, and visible, once its phase is complete.
    expects
        The copy also tells the barrier how many bytes to expect, without arriving.
    multicast
        Blocks of the cluster, a bit each, that get the data at the same place. With `expects`
        all of them run this copy, and the first of them fetches for all; blocks that the mask
        leaves out fetch for themselves.
    reduce
        How elements of a tensor change: "add", "min" or "max" instead of being replaced.
    eviction_policy
        A cache hint: one of `tile_core.ir.cache_hints.POLICIES`.
    is_1d
        Both sides are bytes side by side, all of them inside of the tensor: the copy engine needs
        no map of it. The tile's rows follow each other in memory.
    tells_first
        The barrier is that of the first block of a pair: of the even one of each two of a cluster.

    Raises
    ------
    ShapeMismatch
        If the shapes do not match.
    ScopeMismatch
        If the copy is not between global and shared memory.

    Notes
    -----
    Elements outside a global source give zero; elements outside a global destination are
    skipped. A copy out of shared memory is complete, and its source may be written again,
    after the thread that started it has waited for it: `BulkWait`.
    """

    mnemonic: ClassVar[str] = "bulk_copy"
    spellings: ClassVar[tuple[str, ...]] = ("tma_copy",)
    src: Region
    dst: Region
    barrier: Region | None = None
    expects: bool = False
    multicast: Expr | None = None
    reduce: str | None = None
    eviction_policy: str | None = None
    is_1d: bool = False
    tells_first: bool = False

    @property
    def is_load(self) -> bool:
        """Whether it fills a shared tile."""
        return self.dst.buffer.scope is Scope.SHARED

    @property
    def tensor(self) -> Region:
        """The side in global memory."""
        return self.src if self.is_load else self.dst

    @property
    def tile(self) -> Region:
        """The side in shared memory."""
        return self.dst if self.is_load else self.src

    def reads(self) -> tuple[Region, ...]:
        """Return the source, and the destination of a reduction."""
        return (self.src,) if self.reduce is None else (self.src, self.dst)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    def verify(self) -> None:
        """Check shapes, scopes, element types, the barrier and the reduction."""
        pair(self.src, self.dst)
        src, dst = self.src.buffer, self.dst.buffer
        if {src.scope, dst.scope} != {Scope.GLOBAL, Scope.SHARED}:
            raise ScopeMismatch(
                f"a bulk copy goes between global and shared memory, not from {src.scope.value} "
                f"to {dst.scope.value}",
                hint="use T.copy",
            )
        if src.dtype != dst.dtype:
            raise DtypeMismatch(
                f"a bulk copy does not convert: {src.dtype} to {dst.dtype}",
                hint="give both the same element type, or use T.copy",
            )
        if self.is_load == (self.barrier is None):
            raise FrontendValueError(
                "a bulk copy into shared memory needs a barrier that counts its bytes"
                if self.is_load
                else "a bulk copy into a tensor completes without a barrier",
                hint=f"write T.{SPELLINGS[BulkCopy.mnemonic]}(A[...], A_shared, barrier=bar)"
                if self.is_load
                else f"leave barrier= out, and wait with T.{STORE_WAIT}()",
            )
        if self.reduce is not None and (self.is_load or self.reduce not in REDUCTIONS):
            raise FrontendValueError(
                f"a bulk copy cannot reduce by {self.reduce!r} here",
                hint=f"reduce into a tensor, with one of {', '.join(REDUCTIONS)}",
            )


@dataclass(frozen=True, slots=True, eq=False)
class BulkWait(ControlOperator):
    """Close the group of copies into tensors that the first thread started, and wait for groups.

    Parameters
    ----------
    pending
        How many of the latest groups may still be in flight.
    is_read_enough
        Wait until the shared tiles have been read; the tensors may be written later.
    """

    mnemonic: ClassVar[str] = "bulk_wait"
    pending: int = 0
    is_read_enough: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class FenceAsync(ControlOperator):
    """Let the async proxy see what the threads wrote to shared memory, once a barrier follows.

    The async proxy (bulk copies, MMAs that read shared memory) accesses memory apart
    from the threads' own loads and stores. Machines without them do nothing.
    """

    mnemonic: ClassVar[str] = "fence_async"
