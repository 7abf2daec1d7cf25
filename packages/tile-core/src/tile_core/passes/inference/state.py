"""The layouts found so far, why they are so, and the rule chosen for each operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import LayoutError, Note
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.expr import Expr
from tile_core.ir.node import Node
from tile_core.layout import Fragment, Layout
from tile_core.layout.loop import LoopLayout
from tile_core.ops.operator import InferContext, InferLevel, TileOperator
from tile_core.ops.rule import Rule
from tile_core.passes.inference.algebra import Algebra
from tile_core.passes.inference.conflicts import disagreement, torn
from tile_core.passes.inference.loops import bound, learn_loop, loop_of_region
from tile_core.passes.inference.merging import merged_swizzle
from tile_core.passes.inference.nests import Found
from tile_core.passes.inference.views import Place, seen_as
from tile_core.passes.layout_report import LayoutReport, LoopOrder, Reason, StoredTile
from tile_core.records import dataclass
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.ops.operator import ThreadMachine

NOBODY = Reason("nobody")


@dataclass(slots=True)
class Layouts:
    """The layout of each storage, why it is so, and the rule chosen for each operator.

    Views have the layout of their storage, seen in their own shape. A layout that a view of
    another element type cannot have, because the parts of its elements would be torn apart,
    is a conflict; row-major is one that all views can have.

    Parameters
    ----------
    touching
        For each storage, the nodes that access it, in program order.
    views
        For each storage, its views.
    machine
        A machine of many threads, None where a block is one thread: then no tile is spread
        over threads, and loops are not looked at.
    found
        The parallel loops of the kernel.
    known
        A `Layout` for each tile in memory, a `Fragment` for each tile in registers.
    firm
        Storages whose layout was demanded strictly, or by the user: it stays as it is.
    patient
        Whether copies between register tiles say nothing yet: those alone can have both sides
        spread differently, so all others come first.
    exchanges
        Whether copies between register tiles move elements rather than give them to more threads.
    notes
        What else people should know of the tiles.
    """

    target: Target
    rules: Mapping[TileOperator, Rule[Any]]
    touching: Mapping[Buffer, tuple[Node, ...]]
    views: Mapping[Buffer, tuple[Buffer, ...]]
    machine: ThreadMachine | None = None
    found: Found = field(default_factory=lambda: Found({}, {}, {}))
    known: dict[Buffer, Place] = field(default_factory=dict)
    reasons: dict[Buffer, Reason] = field(default_factory=dict)
    firm: set[Buffer] = field(default_factory=set)
    patient: bool = False
    exchanges: bool = False
    notes: tuple[Note, ...] = ()
    loops: dict[Node, LoopLayout | None] = field(default_factory=dict)
    algebra: Algebra = field(default_factory=Algebra)
    seen: dict[tuple[Buffer, Place], Place] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """One: where blocks have more threads a `Question` is asked in place of this."""
        return 1

    @property
    def block_threads(self) -> int:
        """One, as `threads`."""
        return 1

    # What rules and lowering ask -----------------------------------------------------------

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

    def loop_of(self, node: Node) -> LoopLayout | None:
        """Return who runs the iterations of a `Parallel` or an element-wise operator.

        None if its extents are known at run time only and it touches no registers, or if
        the threads must exchange elements: see `is_exchanged`.

        Raises
        ------
        LayoutConflict
            If the layouts of its tiles do not suit each other.
        """
        if node not in self.loops:
            nest = self.found.nests.get(node)
            if nest is None:
                return None
            self.loops[node] = bound(self, nest)
        return self.loops[node]

    def is_exchanged(self, op: Node) -> bool:
        """Whether `op` copies a register tile to one whose elements other threads hold.

        No thread can do that alone: the elements go through shared memory.
        """
        return op in self.found.nests and self.loop_of(op) is None

    def loop_of_region(
        self, region: Region, extents: tuple[int, ...], threads: int, vector: int = 1
    ) -> LoopLayout:
        """Return the loop in which the holders of a part of a register tile run its elements."""
        return loop_of_region(self, region, extents, threads, vector)

    def report(self) -> LayoutReport:
        """Return the layouts of tiles in the order of allocation, and the loops, for reading.

        Scalars and barriers have no layout to speak of.
        """
        tiles = tuple(
            StoredTile(buffer, place, self.reasons.get(buffer, NOBODY))
            for buffer, place in self.known.items()
            if buffer.scope not in (Scope.VAR, Scope.BARRIER)
        )
        orders = tuple(
            LoopOrder(nest.who, nest.node.span, loop)
            for node, nest in self.found.nests.items()
            if (loop := self.loop_of(node)) is not None
        )
        return LayoutReport(tiles, orders, self.notes)

    # Learning ------------------------------------------------------------------------------

    def learn(self, node: Node, level: InferLevel) -> list[Buffer]:
        """Ask an operator or a loop once; return the storages it settled, in a stable order."""
        news: list[Buffer] = []
        if isinstance(node, TileOperator) and self._may_tell(node, level):
            news += self._learn_from_rule(node, level)
        nest = self.found.nests.get(node)
        if nest is not None and nest.touches:
            news += learn_loop(self, nest, level)
        return news

    def _may_tell(self, op: TileOperator, level: InferLevel) -> bool:
        """Whether there is something to ask `op`: among threads, who knows all tiles is done."""
        if self.machine is None or level is InferLevel.STRICT:
            return op in self.rules
        return op in self.rules and any(
            b.storage not in self.known
            for b in op.buffers()
            if b.scope is Scope.SHARED or b.scope.is_spread
        )

    def _learn_from_rule(self, op: TileOperator, level: InferLevel) -> list[Buffer]:
        context: InferContext = self
        if self.machine is not None:
            context = Question(
                self, self.threads_of(op), self.machine, self.found.blocks.get(op, 1)
            )
        demands = self.rules[op].infer_layout(op, context, level)
        reason = Reason(op.mnemonic, op.span)
        firm = level is InferLevel.STRICT and self.machine is not None
        return [
            buffer.storage
            for buffer, place in demands.items()
            if self.settle(buffer, place, reason, firm=firm)
        ]

    def settle(self, buffer: Buffer, place: Place, reason: Reason, *, firm: bool = False) -> bool:
        """Fix a layout; whether that is news.

        A tile in registers may come to be held by more threads than it was before, unless its
        layout is firm.

        Raises
        ------
        LayoutConflict
            If another one was fixed before, or a view cannot have it: the error names both
            places and the first element that would lie in two.
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


@dataclass(frozen=True, slots=True)
class Question:
    """What the rule of one operator may look at, on a machine of many threads."""

    layouts: Layouts
    threads: int
    machine: ThreadMachine | None
    block_threads: int

    @property
    def target(self) -> Target:
        """The machine compiled for."""
        return self.layouts.target

    def layout_of(self, buffer: Buffer) -> Place | None:
        """Return the layout already fixed for the storage of `buffer`, if any."""
        return self.layouts.layout_of(buffer)

    def users_of(self, buffer: Buffer) -> tuple[Node, ...]:
        """Return what accesses the storage of `buffer`: loads, stores, addresses, operators."""
        return self.layouts.users_of(buffer)

    def threads_of(self, op: TileOperator) -> int:
        """Return how many threads run `op` together."""
        return self.layouts.threads_of(op)

    def multiple_at(self, op: TileOperator, value: Expr) -> int:
        """Return the largest number known to divide `value` where `op` stands; 0 if it is 0."""
        return self.layouts.multiple_at(op, value)

    def is_viewed(self, buffer: Buffer) -> bool:
        """Whether the storage of `buffer` is seen in another shape or element type."""
        return self.layouts.is_viewed(buffer)

    def views_of(self, buffer: Buffer) -> tuple[Buffer, ...]:
        """Return what sees the storage of `buffer` in another shape or element type."""
        return self.layouts.views_of(buffer)

    def rule_of(self, op: TileOperator) -> Rule[Any]:
        """Return the one rule chosen for `op`."""
        return self.layouts.rule_of(op)
