"""Which rules and loops of a kernel say something about layouts, and what they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.node import Node
from tile_core.layout.loop_layout import LoopLayout
from tile_core.ops.operator import TileOperator
from tile_core.ops.rule import InferLevel
from tile_core.passes.inference.inferred_layouts import SettledLayouts
from tile_core.passes.inference.loop_layouts import bound, learn_loop, loop_of_region
from tile_core.passes.layout_report import LayoutReport, LoopOrder, Reason, StoredTile
from tile_core.records import dataclass

if TYPE_CHECKING:
    pass

NOBODY = Reason("nobody")


@dataclass(slots=True)
class Layouts(SettledLayouts):
    """What operators and loops have said about layouts, and what they are asked."""

    def loop_of(self, node: Node) -> LoopLayout | None:
        """Return who runs the iterations of a `Parallel` or an element-wise operator.

        None if its extents are known at run time only and it touches no registers, or if
        the threads must exchange elements: see `is_exchanged`.
        It is a `LayoutConflict` if the layouts of its tiles do not suit each other.
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
        return LayoutReport(tiles, orders)

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
        demands = self.rules[op].infer_layout(op, self.asked_by(op), level)
        reason = Reason(op.mnemonic, op.span)
        firm = level is InferLevel.STRICT and self.machine is not None
        return [
            buffer.storage
            for buffer, place in demands.items()
            if self.settle(buffer, place, reason, firm=firm)
        ]
