"""What producer warps run that fill the tiles which the copy engine cannot."""

from __future__ import annotations

from dataclasses import field

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp
from tile_core.ir.stmt import Alloc, If, Parallel, Seq, Stmt
from tile_core.ops.async_copy import CopyArrive, CopyCommit, CopyWait
from tile_core.ops.copy import Copy
from tile_core.passes.warp_specialisation.pipeline_state import (
    PipelineState,
    Signals,
    scalar_value,
    set_scalar,
)
from tile_core.passes.warp_specialisation.producer import Producer
from tile_core.records import dataclass, replace


@dataclass(slots=True)
class CopyWarps(Producer):
    """Makes the program of one of several warps that take iterations in turn.

    Before   for k < n:  parallel i: S_s[i] = SA[i, k] * SB[k];  gemm A_s, …
    After    for k < n:  if mine == 1:  barrier_wait empty[slot], phase ^ 1
                                        parallel i: S_s[slot, i] = SA[i, k] * SB[k]
                                        barrier_arrive full[slot]
                         next slot;  mine = (mine + 1) % 3

    A warp waits for what it loads. While it does, the others are at the next iterations. Copies
    that it only issues arrive at the barrier by themselves, once for each lane, and it goes on:

    After    …  parallel i async: S_s[slot, i] = S[i, k]
                copy_arrive full[slot];  barrier_arrive full[slot]

    The arrival of the warp itself tells of what it stored by hand. If the async proxy reads the
    tile, the warp waits for its copies as for loads: a fence must come between their end and the
    barrier. That costs nothing as long as the other warps are ahead, and leaves no register
    occupied.

    There are no more warps than versions: whoever filled an iteration then knows that the next one
    of his comes less than twice the circular buffer's depth later, which is as far as parities tell
    phases apart. The warp `number` of so many fills this iteration, and from then on every one
    after as many others.
    """

    number: int = 0
    of: int = 1
    counters: dict[PipelineState, Buffer] = field(default_factory=dict)

    def program(self, body: Stmt) -> Stmt:
        """Return what of `body` the warp runs."""
        made = Producer.program(self, body)
        begin: list[Stmt] = []
        for counter in self.counters.values():
            begin += [Alloc(counter), set_scalar(counter, as_expr(0))]
        return Seq((*begin, made))

    def filled(self, item: Copy | Parallel, signals: Signals, issued: set[Stmt]) -> list[Stmt]:
        """Return what fills a buffer's tiles in the place of the last of its statements."""
        copies = signals.circular.copies
        if any(copy not in issued for copy in copies if copy is not item):
            return []
        counter = self._counter(self._state(signals))
        fill = (self._fill_of(copy, signals) for copy in copies)
        whole = Seq((self.free(signals), *fill, *self._behind(signals), self.told(signals, 0)))
        is_mine = binary(BinaryOp.EQ, scalar_value(counter), self.number)
        return [If(is_mine, whole, span=item.span)]

    def advanced(self, state: PipelineState) -> list[Stmt]:
        """Return what goes on to the next iteration, which another warp fills."""
        counter = self._counter(state)
        here = scalar_value(counter)
        is_last = binary(BinaryOp.EQ, here, self.of - 1)
        following = If(is_last, set_scalar(counter, as_expr(0)), set_scalar(counter, here + 1))
        return [state.advance(), following]

    def _fill_of(self, copy: Copy | Parallel, signals: Signals) -> Stmt:
        made = self.here(copy, signals)
        if copy in signals.circular.issued and isinstance(made, (Copy, Parallel)):
            return replace(made, is_async=True)
        return made

    def _behind(self, signals: Signals) -> tuple[Stmt, ...]:
        """Return what follows the fills of an iteration, before the warp tells they are done."""
        circular = signals.circular
        span = circular.copies[0].span
        if circular.arrives_by_itself:
            return (CopyArrive(signals.filled(self._state(signals)), span=span),)
        return (CopyCommit(span=span), CopyWait(0, span=span)) if circular.issued else ()

    def _counter(self, state: PipelineState) -> Buffer:
        if state not in self.counters:
            name = f"{state.slot.name.removesuffix('_slot')}_by"
            self.counters[state] = Buffer(name, (1,), dtype_of("int32"), Scope.VAR)
        return self.counters[state]
