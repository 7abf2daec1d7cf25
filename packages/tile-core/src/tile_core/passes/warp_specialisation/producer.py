"""What the producer runs: the copies into circular buffers, and loops and branches around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.effects import storages_written
from tile_core.ir.expr import BinaryOp, Call, Expr, Load, Var
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import (
    Alloc,
    Check,
    For,
    If,
    Launch,
    Let,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.copy import Copy
from tile_core.ops.mbarrier import BarrierArrive, BarrierWait
from tile_core.passes.pipelines.stage_instances import Versions, instance
from tile_core.passes.warp_specialisation.cluster_multicast import Sharing
from tile_core.passes.warp_specialisation.pipeline_state import (
    PipelineState,
    Signals,
    new_pipeline_state,
)
from tile_core.passes.warp_specialisation.replicated_scalars import without_unused
from tile_core.records import dataclass, replace
from tile_core.remarks import NotApplicable


@dataclass(slots=True)
class Producer:
    """Makes the producer's program out of that of the block.

    Before   for k < n:  copy A[k], A_s;  gemm A_s, …
    After    for k < n:  barrier_wait empty[slot], phase ^ 1;  barrier_arrive full[slot], bytes
                         bulk_copy A[k], A_s[slot], full[slot];  next slot

    There are `signals` of each circular buffer; tiles have a dimension for their `versions`. The
    `scalars` give for each variable of the program that the producer can compute its own one.
    Blocks of a cluster have copies that are `shared`.
    """

    signals: Sequence[Signals]
    versions: Versions
    scalars: Mapping[Buffer, Buffer] = field(default_factory=dict)
    shared: Mapping[Copy, Sharing] = field(default_factory=dict)
    states: dict[Seq, PipelineState] = field(default_factory=dict)
    names: dict[Var, Expr] = field(default_factory=dict)

    def program(self, body: Stmt) -> Stmt:
        """Return what of `body` the producer runs."""
        made = self._slice(body) or Seq(())
        made = without_unused(made, set(self.scalars.values())) or Seq(())
        begin = [s for state in self.states.values() for s in state.begin()]
        return Seq((*begin, made))

    def _slice(self, stmt: Stmt) -> Stmt | None:
        match stmt:
            case Seq():
                return self._seq(stmt)
            case For() | Pipelined():
                return self._loop(stmt)
            case If(cond=cond, then=then, otherwise=otherwise):
                yes = self._slice(then)
                no = None if otherwise is None else self._slice(otherwise)
                if yes is None and no is None:
                    return None
                return If(self._expr(cond), yes or Seq(()), no, span=stmt.span)
            case While(cond=cond, body=inside):
                part = self._slice(inside)
                return None if part is None else While(self._expr(cond), part, span=stmt.span)
            case Check():
                return replace(stmt, cond=self._expr(stmt.cond))
            case Alloc(buffer=buffer) if buffer in self.scalars:
                return Alloc(self.scalars[buffer], span=stmt.span)
            case Store(buffer=buffer, value=value) if buffer in self.scalars:
                mine = self.scalars[buffer]
                return Store(mine, stmt.indices, self._expr(value), span=stmt.span)
        return None

    def _seq(self, stmt: Seq) -> Stmt | None:
        mine = [s for s in self.signals if s.circular.home is stmt]
        starts = {copy: s for s in mine for copy in s.circular.copies}
        made: list[Stmt] = []
        issued: set[Stmt] = set()
        for item in stmt.body:
            if isinstance(item, Let):
                made.append(self._let(item))
            elif isinstance(item, (Copy, Parallel)) and item in starts:
                made += self.filled(item, starts[item], issued)
                issued.add(item)
            else:
                part = self._slice(item)
                made += [] if part is None else [part]
        states = dict.fromkeys(map(self._state, mine))
        made += [s for state in states for s in self.advanced(state)]
        made = _without_unused_names(made)
        works = any(not isinstance(s, (Let, Check)) for s in made)  # more than names and facts
        return Seq(tuple(made), span=stmt.span) if works else None

    def filled(self, item: Copy | Parallel, signals: Signals, issued: set[Stmt]) -> list[Stmt]:
        """Return what a copy becomes, given those of this iteration that come before it."""
        first = not any(copy in issued for copy in signals.circular.copies)
        nbytes = signals.circular.nbytes
        begin = [self.free(signals), self.told(signals, nbytes)] if first else []
        return [*begin, self._copy(item, signals)]

    def advanced(self, state: PipelineState) -> list[Stmt]:
        """Return what goes on to the next iteration."""
        return [state.advance()]

    def _state(self, signals: Signals) -> PipelineState:
        circular = signals.circular
        known = self.states.get(circular.home)
        if known is None:
            known = new_pipeline_state(f"{circular.tiles[0].name}_filled", circular.count)
            self.states[circular.home] = known
        return known

    def _loop(self, stmt: For | Pipelined) -> Stmt | None:
        start, stop = self._expr(as_expr(stmt.start)), self._expr(as_expr(stmt.stop))
        step = self._expr(stmt.step)
        var = replace(stmt.var)
        self.names[stmt.var] = var
        body = self._slice(stmt.body)
        return None if body is None else For(var, start, stop, step, body, span=stmt.span)

    def _let(self, stmt: Let) -> Let:
        value = self._expr(stmt.value)
        var = replace(stmt.var)
        self.names[stmt.var] = var
        return Let(var, value, span=stmt.span)

    def _expr(self, value: Expr) -> Expr:
        used = self._replaced()
        return substitute(value, used) if used else value

    def _replaced(self) -> dict[Node, Node]:
        found: dict[Node, Node] = {}
        found.update(self.names.items())
        found.update(self.scalars.items())
        return found

    def free(self, signals: Signals) -> Stmt:
        """Return the wait for the tiles to have been read."""
        state, span = self._state(signals), signals.circular.copies[0].span
        other = binary(BinaryOp.BITXOR, state.parity, 1)
        return BarrierWait(signals.freed(state), other, span=span)

    def told(self, signals: Signals, nbytes: int) -> Stmt:
        """Return the arrival at the barrier that tells consumers, which `nbytes` come to."""
        state, span = self._state(signals), signals.circular.copies[0].span
        return BarrierArrive(signals.filled(state), nbytes, span=span)

    def here(self, copy: Stmt, signals: Signals) -> Stmt:
        """Return a copy of this iteration, into its version."""
        mine = substitute(copy, self._replaced()) if self.scalars else copy
        return instance(mine, self.names, self.versions, self._state(signals).version)

    def _copy(self, copy: Copy | Parallel, signals: Signals) -> Stmt:
        state = self._state(signals)
        mine: Stmt = copy
        mask = None
        if isinstance(copy, Copy) and copy in self.shared:
            sharing = self.shared[copy]
            src, dst = sharing.own(copy)
            mine, mask = replace(copy, src=src, dst=dst), self._expr(sharing.mask)
        here = self.here(mine, signals)
        if not isinstance(here, Copy) or not isinstance(copy, Copy):
            return here
        return BulkCopy(
            here.src, here.dst, signals.filled(state), multicast=mask,
            eviction_policy=copy.eviction_policy, is_1d=copy in signals.circular.contiguous,
            span=copy.span,
        )  # fmt: skip


def require_independence(program: Stmt, launch: Launch) -> None:
    """Refuse a `program` that the producer cannot run concurrently with the rest.

    It must not need what the consumers compute: only tensors that the launch does not write,
    its own pipeline states, and numbers.
    """
    written = storages_written(launch.body)
    own = {n.buffer for n in nodes_of(program, Alloc)}
    for node in nodes_of(program, Load, Call):
        if isinstance(node, Load) and node.buffer not in own:
            storage = node.buffer.storage
            if storage.scope is not Scope.GLOBAL:
                raise NotApplicable(
                    f"where copies read depends on {storage.name!r}, which the block computes"
                )
            if storage in written:
                raise NotApplicable(
                    f"where copies read depends on {storage.name!r}, which the kernel writes"
                )
        if isinstance(node, Call) and effect_of(node.function) & ~Effect.READS:
            raise NotApplicable(f"where copies read depends on a call of {node.function}")


def _without_unused_names(stmts: list[Stmt]) -> list[Stmt]:
    """Leave out names that nothing behind them uses."""
    kept: list[Stmt] = []
    used: set[Node] = set()
    for stmt in reversed(stmts):
        if isinstance(stmt, Let) and stmt.var not in used:
            continue
        if isinstance(stmt, Check) and not used:
            continue
        kept.append(stmt)
        used |= {*nodes_of(stmt, Var)}
    return kept[::-1]
