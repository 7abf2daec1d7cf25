"""What the consumers run: the block's program, with waits in the place of the copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import nodes_of, walk
from tile_core.ir.stmt import Alloc, AnnotateLayout, For, Pipelined, Seq, Stmt
from tile_core.ir.visitor import bound_variables, map_statements
from tile_core.ops.copy import Copy
from tile_core.ops.mbarrier import BarrierArrive, BarrierWait
from tile_core.passes.pipelines.stage_instances import Versions, instance
from tile_core.passes.warp_specialisation.cluster_multicast import Sharing, ranks_of
from tile_core.passes.warp_specialisation.pipeline_state import (
    PipelineState,
    Signals,
    new_pipeline_state,
)
from tile_core.records import dataclass, replace


@dataclass(slots=True)
class Consumer:
    """Makes the consumers' program out of that of the block.

    Before   for k < n:  copy A[k], A_s;  gemm A_s, …
    After    for k < n:  barrier_wait full[slot], phase;  gemm A_s[slot], …
                         barrier_arrive empty[slot];  next slot

    Each circular buffer has a state of its own: statements of different circular buffers can be
    moved apart. There are `signals` of each circular buffer; tiles have a dimension for their
    `versions`. All blocks that share copies are told what is free.
    """

    signals: Sequence[Signals]
    versions: Versions
    shared: Mapping[Copy, Sharing] = field(default_factory=dict)
    states: dict[Signals, PipelineState] = field(default_factory=dict)

    def program(self, body: Stmt) -> Stmt:
        """Return what of `body` the consumers run; their variables are allocated in front."""
        made = self._rebuilt(body)
        begin = [s for state in self.states.values() for s in state.begin()]
        return Seq((*begin, made))

    def _rebuilt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Seq():
                return self._seq(stmt)
            case Pipelined(body=body):
                if not self._holds_circular_buffer(body):
                    return stmt
                inner = self._rebuilt(body)
                return For(stmt.var, stmt.start, stmt.stop, stmt.step, inner, span=stmt.span)
        return map_statements(stmt, self._rebuilt)

    def _holds_circular_buffer(self, stmt: Stmt) -> bool:
        homes = {s.circular.home for s in self.signals}
        return any(node in homes for node in walk(stmt))

    def _seq(self, stmt: Seq) -> Stmt:
        mine = [s for s in self.signals if s.circular.home is stmt]
        copies = {copy for s in mine for copy in s.circular.copies}
        made: list[Stmt] = []
        for position, item in enumerate(stmt.body):
            if item in copies or self._is_allocation(item):
                continue
            made += [self._wait(s) for s in mine if s.circular.first == position]
            made.append(self._on_version(self._rebuilt(item), mine))
            for signals in (s for s in mine if s.circular.last == position):
                made.append(Seq((self._free(signals), self._state(signals).advance())))
        return Seq(tuple(made), span=stmt.span)

    def _on_version(self, stmt: Stmt, mine: Iterable[Signals]) -> Stmt:
        """Let a statement work on this iteration's version of the tiles."""
        for signals in mine:
            tiles = signals.circular.tiles
            here = {b: v for b, v in self.versions.tiles.items() if b.storage in tiles}
            if here and _uses(stmt, here):
                mapped = replace(self.versions, tiles=here)
                stmt = instance(stmt, _kept(stmt), mapped, self._state(signals).version)
        return stmt

    def _is_allocation(self, stmt: Stmt) -> bool:
        """Whether a statement allocates a buffer's tile, or lays it out: done for all threads."""
        tiles = {tile for s in self.signals for tile in s.circular.tiles}
        return isinstance(stmt, (Alloc, AnnotateLayout)) and stmt.buffer.storage in tiles

    def _state(self, signals: Signals) -> PipelineState:
        if signals not in self.states:
            circular = signals.circular
            self.states[signals] = new_pipeline_state(circular.tiles[0].name, circular.count)
        return self.states[signals]

    def _wait(self, signals: Signals) -> Stmt:
        state = self._state(signals)
        span = signals.circular.copies[0].span
        return BarrierWait(signals.filled(state), state.parity, span=span)

    def _free(self, signals: Signals) -> Stmt:
        span = signals.circular.copies[0].span
        ranks = ranks_of(signals.circular, self.shared)
        return BarrierArrive(signals.freed(self._state(signals)), ranks=ranks, span=span)


def _uses(stmt: Stmt, tiles: Iterable[Buffer]) -> bool:
    wanted = set(tiles)
    return any(n in wanted for n in nodes_of(stmt, Buffer))


def _kept(stmt: Stmt) -> dict[Var, Expr]:
    """Return the variables that a statement binds, each as itself: it occurs only once."""
    return {var: var for var in bound_variables(stmt)}
