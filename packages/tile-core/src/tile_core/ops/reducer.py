"""Accumulators that iterations of data-parallel loops share."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import ScopeMismatch, ShapeMismatch
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.build_expr import cast, const
from tile_core.ir.expr import Expr, Load
from tile_core.ir.stmt import Leaf, Stmt, Store
from tile_core.ops.loop_builders import accumulator, load, nest, seq, store
from tile_core.ops.operator import Execution, TileOperator
from tile_core.ops.operator_work import OperatorWork
from tile_core.ops.reduce import ReduceKind, combine, equal_extents
from tile_core.ops.region_pairing import describe
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class ReducerInit(TileOperator):
    """Open an epoch of `reducer` (scope `local.reducer`), with a start value or the identity."""

    mnemonic: ClassVar[str] = "reducer_init"
    spellings: ClassVar[tuple[str, ...]] = ("alloc_reducer", "reducer_init")
    execution: ClassVar[Execution] = Execution.COLLECTIVE
    reducer: Buffer
    kind: ReduceKind
    init: Expr | None = None

    def reads(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Return the accumulator."""
        return (whole(self.reducer),)

    def verify(self) -> None:
        """Check the scope and the element type."""
        if self.reducer.scope is not Scope.REDUCER:
            raise ScopeMismatch(
                f"{self.reducer.name!r} is not a reducer",
                hint="allocate it with T.alloc_reducer(shape, dtype, op)",
            )  # fmt: skip

    def serial_form(self) -> Stmt:
        """Return loops that set the accumulator to its start value, else to the identity."""
        dtype = self.reducer.dtype
        identity = const(self.kind.identity(dtype), dtype)
        value = identity if self.init is None else cast(self.init, dtype)
        return nest(self.reducer.shape, lambda at: Store(self.reducer, at, value))


@dataclass(frozen=True, slots=True, eq=False)
class ReducerUpdate(Leaf):
    """Combine `value` into ``reducer[indices]``, once per logical iteration. Element-wise."""

    mnemonic: ClassVar[str] = "reducer_update"
    spellings: ClassVar[tuple[str, ...]] = ("reducer_update",)
    reducer: Buffer
    kind: ReduceKind
    indices: tuple[Expr, ...]
    value: Expr
    nan_propagate: bool = False  # as `Reduce` has it

    def reads(self) -> tuple[Region, ...]:
        """Return the element updated."""
        return self.writes()

    def writes(self) -> tuple[Region, ...]:
        """Return the element updated."""
        ones = (1,) * len(self.indices)
        return (Region(self.reducer, self.indices, ones, is_element=True),)

    def serial_form(self) -> Store:
        """Return the combination of one value into one element."""
        wide = accumulator("wide", self.reducer.dtype).dtype
        old = cast(Load(self.reducer, self.indices), wide)
        value = cast(self.value, wide)
        new = combine(self.kind, old, value, nan_propagate=self.nan_propagate)
        return Store(self.reducer, self.indices, cast(new, self.reducer.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class ReducerFinalize(TileOperator):
    """Close the epoch: write the accumulated values to `dst`."""

    mnemonic: ClassVar[str] = "reducer_finalize"
    spellings: ClassVar[tuple[str, ...]] = ("finalize_reducer",)
    execution: ClassVar[Execution] = Execution.COLLECTIVE
    reducer: Buffer
    kind: ReduceKind
    dst: Region
    nan_propagate: bool = False

    def reads(self) -> tuple[Region, ...]:
        """Return the accumulator."""
        return (whole(self.reducer),)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    def work(self) -> OperatorWork:
        """Return an operation for each element."""
        return OperatorWork(elements=self.dst.extents, operations=1)

    def verify(self) -> None:
        """Check that the destination has the reducer's shape."""
        if not equal_extents(self.dst.extents, list(self.reducer.shape)):
            raise ShapeMismatch(
                f"T.finalize_reducer of {self.reducer.name}{list(self.reducer.shape)} does not "
                f"give {describe(self.dst)}",
                hint="give the destination the shape of the reducer",
            )

    def serial_form(self) -> Stmt:
        """Return the copy of the accumulator to the destination; nothing if it is in place."""
        if self.reducer is self.dst.buffer:
            return seq()
        source = whole(self.reducer)
        axes = tuple(range(self.reducer.rank))
        return nest(
            self.reducer.shape, lambda at: store(self.dst, axes, at, load(source, axes, at))
        )
