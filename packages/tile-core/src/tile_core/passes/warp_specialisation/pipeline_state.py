"""Where a range of threads is in a circular buffer: a slot, and a phase."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Expr, Load
from tile_core.ir.stmt import Alloc, If, Seq, Stmt, Store
from tile_core.passes.pipelines.stage_instances import Versions
from tile_core.passes.warp_specialisation.circular_buffers import CircularBuffer
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class PipelineState:
    """The running state of the circular buffers of one sequence, in variables of each thread.

    The scalars are the version (`slot`), and the parity of the `phase` of its barriers.
    """

    slot: Buffer
    phase: Buffer
    count: int

    @property
    def version(self) -> Expr:
        """The version of this state."""
        return scalar_value(self.slot) if self.count > 1 else as_expr(0)

    @property
    def parity(self) -> Expr:
        """The phase that its barriers complete when the tiles are filled."""
        return scalar_value(self.phase)

    def begin(self) -> tuple[Stmt, ...]:
        """Return the statements before the first iteration."""
        made: list[Stmt] = []
        for scalar in (self.slot, self.phase)[self.count == 1 :]:
            made += [Alloc(scalar), set_scalar(scalar, as_expr(0))]
        return tuple(made)

    def advance(self) -> Stmt:
        """Return the statement between two iterations.

        After    if slot == 3: slot = 0; phase = phase ^ 1   else: slot = slot + 1
        """
        flip = set_scalar(self.phase, binary(BinaryOp.BITXOR, self.parity, 1))
        if self.count == 1:
            return flip
        last = binary(BinaryOp.EQ, self.version, self.count - 1)
        wrapped = Seq((set_scalar(self.slot, as_expr(0)), flip))
        return If(last, wrapped, set_scalar(self.slot, self.version + 1))


def new_pipeline_state(name: str, count: int) -> PipelineState:
    """Return new variables for the state of circular buffers with `count` versions."""
    int32 = dtype_of("int32")
    slot = Buffer(f"{name}_slot", (1,), int32, Scope.VAR)
    return PipelineState(slot, Buffer(f"{name}_phase", (1,), int32, Scope.VAR), count)


def scalar_value(scalar: Buffer) -> Expr:
    """Return what a scalar holds."""
    return Load(scalar, (as_expr(0),))


def set_scalar(scalar: Buffer, value: Expr) -> Stmt:
    """Return the statement that changes a scalar."""
    return Store(scalar, (as_expr(0),), value)


@dataclass(frozen=True, slots=True)
class Slots(Versions):
    """Versions of tiles that are chosen by the state's own slot."""

    def index(self, buffer: Buffer, state: Expr) -> Expr:
        """Return the slot."""
        return state


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """The barriers of one circular buffer, an element of each for every version.

    `full` completes when the tiles are filled, `empty` when all warps of the consumers have read
    them.
    """

    circular: CircularBuffer
    full: Buffer
    empty: Buffer

    def filled(self, state: PipelineState) -> Region:
        """Return the barrier that tells consumers."""
        return _one(self.full, state)

    def freed(self, state: PipelineState) -> Region:
        """Return the barrier that tells the producer."""
        return _one(self.empty, state)


def signals_of(circular_buffers: Sequence[CircularBuffer]) -> tuple[Signals, ...]:
    """Return new barriers for each circular buffer, named after its first tile."""
    made = []
    for circular in circular_buffers:
        name = circular.tiles[0].name
        full, empty = (
            Buffer(f"{name}_{word}", (circular.count,), dtype_of("uint64"), Scope.BARRIER)
            for word in ("full", "empty")
        )
        made.append(Signals(circular, full, empty))
    return tuple(made)


def _one(barriers: Buffer, state: PipelineState) -> Region:
    return Region(barriers, (state.version,), (1,), is_element=True)
