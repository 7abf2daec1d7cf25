"""Elements moved as they are: copies between tiles and tensors, transposed ones, fills."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import ScopeMismatch, ShapeMismatch
from tile_core.ir.buffer import Region, Scope, static_value
from tile_core.ir.expr import Expr, Var
from tile_core.ir.stmt import Stmt
from tile_core.ops.loop_builders import load, nest, store
from tile_core.ops.operator import Execution, TileOperator
from tile_core.ops.operator_work import OperatorWork
from tile_core.ops.region_pairing import boxes, describe, pair
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Copy(TileOperator):
    """Copy every element of `src` to the matching coordinate of `dst`, converting the dtype.

    Parameters
    ----------
    src, dst : Region, any dtype and scope
        Matched by `tile_core.ops.region_pairing.pair`.
    coalesced_width, disable_bulk, eviction_policy, prefer_instruction, loop_layout
        Performance hints; `prefer_instruction` must be honoured or refused.
    is_async
        The copy may still be in flight afterwards, until the program waits for it.

    Raises
    ------
    ShapeMismatch
        If the shapes do not match.

    Notes
    -----
    Elements outside a global source give its safe value; elements outside a global
    destination are skipped. Synchronous unless `is_async`: later operators see the data.
    """

    mnemonic: ClassVar[str] = "copy"
    spellings: ClassVar[tuple[str, ...]] = ("copy", "async_copy")
    execution: ClassVar[Execution] = Execution.ELEMENT_WISE
    src: Region
    dst: Region
    coalesced_width: int | None = None
    disable_bulk: bool = False
    eviction_policy: str | None = None
    prefer_instruction: str | None = None
    loop_layout: object | None = None
    is_async: bool = False

    def reads(self) -> tuple[Region, ...]:
        """Return the source."""
        return (self.src,)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    @property
    def moving_part(self) -> Region | None:
        """The part of a register tile that begins at a place known at run time only.

        None unless each thread has the other side for itself: all threads may then need elements
        of all others, which go through shared memory.
        """
        src, dst = boxes(self.src, self.dst)
        for held, other in ((src, dst), (dst, src)):
            is_private = held.buffer.scope.is_spread and other.buffer.scope.is_thread_private
            moves = any(static_value(start) is None for start in held.starts)
            if is_private and moves and held.static_extents is not None:
                return held
        return None

    def work(self) -> OperatorWork:
        """Return the boxes on both sides."""
        src, dst = boxes(self.src, self.dst)
        return OperatorWork(touched=((src,), (dst,)))

    def verify(self) -> None:
        """Check that the shapes match and that an asynchronous copy goes global to shared."""
        pair(self.src, self.dst)
        scopes = (self.src.buffer.scope, self.dst.buffer.scope)
        if self.is_async and scopes != (Scope.GLOBAL, Scope.SHARED):
            raise ScopeMismatch(
                f"an asynchronous copy goes from global to shared memory, not from "
                f"{scopes[0].value} to {scopes[1].value}",
                hint="use T.copy",
            )

    def serial_form(self) -> Stmt:
        """Return loops over the pairing's iteration space, one converted element at a time."""
        pairing = pair(self.src, self.dst)

        def body(at: tuple[Var, ...]) -> Stmt:
            return store(self.dst, pairing.dst_axes, at, load(self.src, pairing.src_axes, at))

        return nest(pairing.extents, body)


@dataclass(frozen=True, slots=True, eq=False)
class Fill(TileOperator):
    """Set every element of `dst` to `value`, which has the buffer's dtype.

    The region may be in any scope and its bounds may be known only at run time. Elements
    outside a global buffer are skipped.
    """

    mnemonic: ClassVar[str] = "fill"
    spellings: ClassVar[tuple[str, ...]] = ("fill", "clear")
    execution: ClassVar[Execution] = Execution.ELEMENT_WISE
    dst: Region
    value: Expr

    def reads(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Return the region filled."""
        return (self.dst,)

    def serial_form(self) -> Stmt:
        """Return loops that store the value to each element of the region."""
        axes = tuple(range(len(self.dst.extents)))
        return nest(self.dst.extents, lambda at: store(self.dst, axes, at, self.value))


@dataclass(frozen=True, slots=True, eq=False)
class Transpose(TileOperator):
    """``dst[..., j, i] = src[..., i, j]`` on the last two dimensions."""

    mnemonic: ClassVar[str] = "transpose"
    spellings: ClassVar[tuple[str, ...]] = ("transpose",)
    execution: ClassVar[Execution] = Execution.ELEMENT_WISE
    src: Region
    dst: Region

    def reads(self) -> tuple[Region, ...]:
        """Return the source."""
        return (self.src,)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    def verify(self) -> None:
        """Check that the last two extents are swapped and the others equal."""
        a, b = self.src.static_extents, self.dst.static_extents
        if a is None or b is None or len(a) < 2 or (*a[:-2], a[-1], a[-2]) != b:
            raise ShapeMismatch(
                f"cannot transpose {describe(self.src)} into {describe(self.dst)}",
                hint="swap the last two extents of the destination",
            )

    def serial_form(self) -> Stmt:
        """Return loops over the source that store with the last two indices swapped."""
        rank = len(self.src.extents)
        src_axes = tuple(range(rank))
        dst_axes = (*range(rank - 2), rank - 1, rank - 2)
        return nest(
            self.src.extents, lambda at: store(self.dst, dst_axes, at, load(self.src, src_axes, at))
        )
