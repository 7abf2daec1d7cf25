"""Reasons for lanes to pause: what they wait for, and where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tile_core.errors import Deadlock
from tile_core.interp.execution_state import Lanes
from tile_core.interp.values import Array
from tile_core.ir.expr import Call, Expr
from tile_core.ir.node import Node
from tile_core.ir.stmt import Stmt, While
from tile_core.ops.control import Barrier
from tile_core.ops.signals import Signal, WaitSignal


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """Threads have arrived at a barrier of their block, or where all of it must come."""

    node: Barrier | Signal | WaitSignal
    lanes: Lanes
    threads: int
    # number, needed: of a named barrier that `needed` threads release (None: all of the block).
    number: int | None
    needed: int | None

    @classmethod
    def at(cls, node: Barrier, lanes: Lanes, evaluate: Callable[[Expr, Lanes], Array]) -> Wait:
        """Return the arrival of the active lanes.

        Raises `Deadlock` if only some threads of a warp reach a barrier that all of them must
        reach.
        """

        def value(expr: Expr | None) -> int | None:
            if expr is None:
                return None
            return int(lanes.agreed(evaluate(expr, lanes), "a barrier's operand", node.span))

        arrived = int(lanes.active.sum()) * lanes.weight
        number = value(node.number)
        if number is None:
            require_all(node, "this barrier", lanes)
        return cls(node, lanes, arrived, number, value(node.count))


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """A warp has reached a tile operator or data-parallel loop that the block runs together."""

    node: Stmt
    lanes: Lanes

    def __post_init__(self) -> None:
        require_all(self.node, "this tile operation", self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Vote:
    """A warp has reached an expression that combines a value of all threads of the block."""

    node: Call
    values: Array
    lanes: Lanes

    def __post_init__(self) -> None:
        require_all(self.node, f"T.{self.node.function}", self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class GridWait:
    """A block waits for all blocks of the grid."""

    node: Barrier


@dataclass(frozen=True, slots=True, eq=False)
class YieldPoint:
    """A `while` loop has made an iteration: others may run before the next."""

    node: While


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """Threads wait for others to arrive at a barrier in memory, or in the cluster."""

    node: Stmt
    lanes: Lanes
    is_over: Callable[[], bool]  # whether they need to wait no longer
    lacks: Callable[[], str]  # what is missing, in words

    @property
    def threads(self) -> int:
        """How many threads wait."""
        return int(self.lanes.active.sum()) * self.lanes.weight


Event: TypeAlias = "Wait | Collective | Vote | GridWait | YieldPoint | Pending"


def require_all(node: Node, what: str, lanes: Lanes) -> None:
    """Raise `Deadlock` unless every thread of the warp that belongs to the range is active."""
    if lanes.mask is None or lanes.mask.all():
        return
    expected = lanes.among(lanes.team)
    missing = int((expected & ~lanes.mask).sum())
    if not missing:
        return
    raise Deadlock(
        f"{what} waits for all threads of the block, but {missing} of the {int(expected.sum())} "
        f"threads of warp {lanes.warp} do not reach it",
        span=node.span or lanes.span,
        hint="move it out of the branch that only some threads take",
    )
