"""A record of the guards that a lowering keeps; nothing is kept unless somebody asks.

Backends call `note_guard` where they cannot prove that an access stays inside of its tensor, and
`located` around what they lower, so that the record knows the user's line and the loops there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from enum import Enum

from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr, Extent
from tile_core.ir.stmt import For, Pipelined, Stmt, While
from tile_core.records import dataclass, replace
from tile_launch.errors import Span


class Often(Enum):
    """How often a guard is looked at, the most frequent first."""

    EACH_ITERATION = "each iteration"
    ONCE = "once"
    AT_THE_EDGE = "at the edge"


@dataclass(frozen=True, slots=True, eq=False)
class RegisteredGuard:
    """An access that may leave its tensor along one axis, and so runs under a condition.

    What could not be proven is ``0 <= index`` with `from_below`, else ``index < extent``; `env` is
    what is known there. `loops` are the names of the sequential loops around the user's statement
    at `span`, outermost first.
    """

    tensor: Buffer
    axis: int
    index: Expr
    extent: Extent
    from_below: bool
    env: ConstraintSet
    span: Span | None
    loops: tuple[str, ...] = ()
    often: Often = Often.ONCE

    @property
    def key(self) -> tuple[object, ...]:
        """What tells guards apart: the line, the tensor, the axis and its end."""
        place = None if self.span is None else (self.span.file, self.span.line)
        return place, self.tensor.name, self.axis, self.from_below


@dataclass(slots=True)
class GuardRegistry:
    """The guards of one lowering.

    The program has those `kept` in the end; later passes may remove some of those still `open`, of
    the launch that is being lowered.
    """

    kept: dict[tuple[object, ...], RegisteredGuard] = field(default_factory=dict)
    open: dict[tuple[object, ...], RegisteredGuard] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    edges: int = 0

    def settle(self, survives: dict[tuple[object, ...], Often] | None = None) -> None:
        """Keep the open guards: all of them, or those that survived the passes after them."""
        for key, guard in self.open.items():
            if survives is None:
                self._add(self.kept, guard)
            elif key in survives:
                often = max(guard.often, survives[key], key=_ORDER.index)
                self._add(self.kept, replace(guard, often=often))
        self.open.clear()

    def add(self, guard: RegisteredGuard) -> None:
        """Note a guard; of equal ones the one that runs more often stays."""
        self._add(self.open, guard)

    def _add(
        self, where: dict[tuple[object, ...], RegisteredGuard], guard: RegisteredGuard
    ) -> None:
        known = where.get(guard.key)
        if known is None or _ORDER.index(guard.often) < _ORDER.index(known.often):
            where[guard.key] = guard


_ORDER = (Often.EACH_ITERATION, Often.ONCE, Often.AT_THE_EDGE)
_OPEN: ContextVar[GuardRegistry | None] = ContextVar("tile_guard_ledger", default=None)


def open_registry() -> GuardRegistry | None:
    """Return the record that is being written in this context, if any is."""
    return _OPEN.get()


@contextmanager
def registered_guards() -> Iterator[GuardRegistry]:
    """Record the guards of what is lowered in this context."""
    registry = GuardRegistry()
    token = _OPEN.set(registry)
    try:
        yield registry
    finally:
        _OPEN.reset(token)


@contextmanager
def located(registry: GuardRegistry, stmt: Stmt) -> Iterator[None]:
    """Note which statement is lowered in this context."""
    spans, loops = len(registry.spans), len(registry.loops)
    if stmt.span is not None:
        registry.spans.append(stmt.span)
    if isinstance(stmt, (For, Pipelined)):
        registry.loops.append(stmt.var.name)
    elif isinstance(stmt, While):
        registry.loops.append("while")
    try:
        yield
    finally:
        del registry.spans[spans:], registry.loops[loops:]


@contextmanager
def at_the_edge() -> Iterator[None]:
    """Note that what is lowered in this context runs only where a tile leaves its tensor."""
    registry = _OPEN.get()
    if registry is None:
        yield
        return
    registry.edges += 1
    try:
        yield
    finally:
        registry.edges -= 1


def note_guard(
    buffer: Buffer, axis: int, index: Expr, env: ConstraintSet, *, from_below: bool = False
) -> None:
    """Note that an access of `buffer` is guarded along `axis`."""
    registry = _OPEN.get()
    if registry is None:
        return
    span = registry.spans[-1] if registry.spans else index.span
    often = Often.EACH_ITERATION if registry.loops else Often.ONCE
    often = Often.AT_THE_EDGE if registry.edges else often
    extent = buffer.shape[axis]
    registry.add(
        RegisteredGuard(
            buffer, axis, index, extent, from_below, env, span, tuple(registry.loops), often
        )
    )
