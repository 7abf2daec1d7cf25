"""The layouts found so far, why they are so, and how another one is settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Expr
from tile_core.ir.node import Node
from tile_core.layout import Fragment, Layout, Swizzle, swizzled
from tile_core.layout.loop_layout import LoopLayout
from tile_core.ops.operator import TileOperator
from tile_core.ops.rule import Rule
from tile_core.passes.inference.conflicts import disagreement, torn
from tile_core.passes.inference.layout_queries import Algebra
from tile_core.passes.inference.parallel_nests import LoopNests
from tile_core.passes.inference.view_layouts import Place, seen_as
from tile_core.passes.layout_report import Reason
from tile_core.records import dataclass, replace
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.ops.rule import ThreadMachine


@dataclass(slots=True)
class SettledLayouts:
    """The layout of each storage, why it is so, and the rule chosen for each operator.

    Views have the layout of their storage, seen in their own shape. A layout that a view of
    another element type cannot have, because the parts of its elements would be torn apart,
    is a conflict; row-major is one that all views can have. Each storage has the nodes that access
    it in `touching`, in program order, and its `views`. The `machine` has many threads, None where
    a block is one thread: then no tile is spread over threads, and the parallel loops `found` are
    not looked at. What is `known` is a `Layout` for a tile in memory, a `Fragment` for one in
    registers; a layout demanded strictly, or by the user, is `firm` and stays as it is. While
    `patient`, copies between register tiles say nothing yet: those alone can have both sides spread
    differently, so all others come first. With `exchanges` they move elements rather than give them
    to more threads. The operator whose rule asks is run by `threads`, and `block_threads` share
    registers: see `asked_by`.
    """

    target: Target
    rules: Mapping[TileOperator, Rule[Any]]
    touching: Mapping[Buffer, tuple[Node, ...]]
    views: Mapping[Buffer, tuple[Buffer, ...]]
    machine: ThreadMachine | None = None
    found: LoopNests = field(default_factory=lambda: LoopNests({}, {}, {}))
    known: dict[Buffer, Place] = field(default_factory=dict)
    reasons: dict[Buffer, Reason] = field(default_factory=dict)
    firm: set[Buffer] = field(default_factory=set)
    patient: bool = False
    exchanges: bool = False
    loops: dict[Node, LoopLayout | None] = field(default_factory=dict)
    algebra: Algebra = field(default_factory=Algebra)
    seen: dict[tuple[Buffer, Place], Place] = field(default_factory=dict)
    threads: int = 1
    block_threads: int = 1

    def asked_by(self, op: TileOperator) -> Self:
        """Return the layouts as the rule of one operator may look at them."""
        block_threads = self.found.blocks.get(op, 1)
        return replace(self, threads=self.threads_of(op), block_threads=block_threads)

    def rule_of(self, op: TileOperator) -> Rule[Any]:
        """Return the one rule chosen for `op`."""
        return self.rules[op]

    def users_of(self, buffer: Buffer) -> tuple[Node, ...]:
        """Return what accesses the storage of `buffer`: loads, stores, addresses, operators."""
        return self.touching.get(buffer.storage, ())

    def threads_of(self, op: TileOperator) -> int:
        """Return how many threads run `op` together; one where blocks are one thread."""
        return self.found.threads.get(op, 1)

    def multiple_at(self, op: TileOperator, value: Expr) -> int:
        """Return the largest number known to divide `value` where `op` stands; 0 if it is 0."""
        return self.found.known.get(op, ConstraintSet()).multiple_of(value)

    def is_viewed(self, buffer: Buffer) -> bool:
        """Whether the storage of `buffer` is seen in another shape or element type."""
        return bool(self.views_of(buffer))

    def views_of(self, buffer: Buffer) -> tuple[Buffer, ...]:
        """Return what sees the storage of `buffer` in another shape or element type."""
        return self.views.get(buffer.storage, ())

    def layout_of(self, buffer: Buffer) -> Place | None:
        """Return the layout already fixed for the storage of `buffer`, in its shape."""
        layout = self.known.get(buffer.storage)
        if layout is None or buffer.storage is buffer:
            return layout
        if buffer.static_shape is None:
            return None
        key = (buffer, layout)
        if key not in self.seen:
            self.seen[key] = seen_as(layout, buffer.storage, buffer)
        return self.seen[key]

    def settle(self, buffer: Buffer, place: Place, reason: Reason, *, firm: bool = False) -> bool:
        """Fix a layout; whether that is news.

        A tile in registers may come to be held by more threads than it was before, unless its
        layout is firm. It is a `LayoutConflict` if another one was fixed before, or a view cannot
        have it: the error names both places and the first element that would lie in two.
        """
        storage = buffer.storage
        try:
            wanted = place if storage is buffer else seen_as(place, buffer, storage)
            for view in self.views.get(storage, ()):
                seen_as(wanted, storage, view)
        except LayoutError as why:
            raise torn(storage, place, reason, why) from why
        old = self.known.get(storage)
        if old is None:
            return self._fix(storage, wanted, reason, firm)
        if isinstance(old, Layout) and isinstance(wanted, Layout):
            return self._settle_memory(storage, old, wanted, reason, firm)
        if isinstance(old, Fragment) and isinstance(wanted, Fragment):
            return self._settle_registers(storage, old, wanted, reason, firm)
        raise disagreement(storage, old, wanted, self.reasons[storage], reason)

    def _fix(self, storage: Buffer, place: Place, reason: Reason, firm: bool) -> bool:
        self.known[storage], self.reasons[storage] = place, reason
        if firm:
            self.firm.add(storage)
        return True

    def _settle_memory(
        self, storage: Buffer, old: Layout, wanted: Layout, reason: Reason, firm: bool
    ) -> bool:
        if old.shape == wanted.shape and old.first_difference(wanted) is None:
            if wanted.cosize > old.cosize:  # the same, with room at the end that somebody needs
                self.known[storage] = wanted
            return False
        if self.machine is not None and storage not in self.firm:
            return self._fix(storage, wanted, reason, firm)
        merged = (
            None if self.machine is None or self.reasons[storage].is_annotation
            else merged_swizzle(old, wanted, storage.dtype.bits)
        )  # fmt: skip
        if merged is None:
            raise disagreement(storage, old, wanted, self.reasons[storage], reason)
        return merged is not old and self._fix(storage, merged, reason, firm)

    def _settle_registers(
        self, storage: Buffer, old: Fragment, wanted: Fragment, reason: Reason, firm: bool
    ) -> bool:
        if old == wanted or (old.shape == wanted.shape and old.same_function(wanted)):
            if firm:
                self.firm.add(storage)
            return False
        if storage in self.firm:
            if not firm and old.covers(wanted):
                return False
        elif wanted.covers(old):
            return self._fix(storage, wanted, reason, firm)
        elif not firm and old.covers(wanted):
            return False
        raise disagreement(storage, old, wanted, self.reasons[storage], reason)

    def is_open(self, node: Node) -> bool:
        """Whether a register tile that `node` touches has no layout yet."""
        nest = self.found.nests.get(node)
        if nest is not None:
            return any(t.storage not in self.known for t in nest.tiles)
        return isinstance(node, TileOperator) and any(
            b.scope is Scope.FRAGMENT and b.storage not in self.known for b in node.buffers()
        )


def merged_swizzle(one: Layout, other: Layout, bits: int) -> Layout | None:
    """Return the narrower of two swizzled layouts of a tile; None if one is something else.

    Swizzles keep 16 bytes together: whoever reads chunks of that size can read any of them,
    with at most a few more turns of the memory.
    """
    first, second = _swizzle_of(one, bits), _swizzle_of(other, bits)
    if one.shape != other.shape or first is None or second is None:
        return None
    return one if first.value <= second.value else other


def _swizzle_of(layout: Layout, bits: int) -> Swizzle | None:
    for swizzle in Swizzle:
        try:
            if swizzled(layout.shape, bits, swizzle).first_difference(layout) is None:
                return swizzle
        except LayoutError:
            continue
    return None
