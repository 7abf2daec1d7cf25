"""Products of two iterations at a time, on two versions of what the threads themselves touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Expr
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import Alloc, AnnotateLayout, For, If, OnThreads, Seq, Stmt
from tile_core.ops.control import Barrier
from tile_core.ops.gemm import WaitProducts
from tile_core.ops.mbarrier import BarrierWait
from tile_core.passes.overlap.gemm_dependence_slices import DependenceSlices, Fills, parts_of
from tile_core.passes.overlap.gemm_loop_body import GemmLoopBody, if_any_iteration, touched
from tile_core.passes.pipelines.stage_instances import Versions, instance
from tile_core.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Registers of a thread, and bytes of a block, that are free; None for always enough."""

    registers: int | None = None
    shared_bytes: int | None = None

    def holds(self, tiles: Iterable[Buffer], threads: int) -> bool:
        """Whether there is room for one more of each of `tiles` that `threads` threads share."""
        taken = Counter[Scope]()
        for tile in tiles:
            taken[tile.scope] += tile.nbytes or 0
        return (
            self.registers is None or taken[Scope.FRAGMENT] // 4 // threads <= self.registers
        ) and (self.shared_bytes is None or taken[Scope.SHARED] <= self.shared_bytes)


def alternating(
    loop: For, body: GemmLoopBody, fills: Fills, around: OnThreads, room: FreeMemory
) -> Stmt | None:
    """Return the loop with its MMAs in flight across rounds; None if that cannot be.

    Operands that every iteration makes anew, in registers or in shared memory, get two versions, in
    turns:

    Before   for k:  W = dequantised W_s[slot];  gemm W, A_s[slot] -> sums;  arrive empty[slot]
    After    for k, two by two:
               W = …;    gemm W, A_s[slot] -> sums (left in flight)
               wait_products 1;  if k > 0: arrive empty[freed]
               W_2 = …;  gemm W_2, A_s[slot] -> sums (left in flight)
               wait_products 1;  arrive empty[freed]
             wait_products 0;  arrive empty[freed];  the last iteration of an odd number

    So do accumulators that every iteration begins anew; what uses them runs beside the next
    iteration's MMA:

    Before   for k:  gemm A_s[slot], B_s[slot] -> part;  total += part * S
    After    gemm -> part;  wait_products 0
             for k from 1, two by two:
               gemm -> part_2 (left in flight);  total += part * S;    wait_products 0
               gemm -> part (left in flight);    total += part_2 * S;  wait_products 0
             the last iterations, without new MMAs

    Accumulators that threads read are in flight within an iteration alone: where they are so from
    one iteration of a loop to the next, the assembler lets MMAs run one by one. The threads
    `around` run the loop; second versions may take the `room`.
    """
    parts = parts_of(body, fills)
    if parts is None or not (parts.versioned or parts.behind):
        return None
    elsewhere = touched(substitute(around.body, {loop: Seq(())}))
    if elsewhere & set(parts.versioned) or static_value(loop.step) != 1:
        return None
    if not room.holds(parts.versioned, around.count):
        return None
    rounds = _Iterations(loop, parts, {v: replace(v, name=f"{v.name}_2") for v in parts.versioned})
    begin = [s for release in parts.late for s in release.begin()]
    layouts = [
        AnnotateLayout(rounds.second[n.buffer], n.layout, span=n.span)
        for n in nodes_of(around.body, AnnotateLayout)
        if n.buffer in rounds.second
    ]
    allocations = [Alloc(b) for b in rounds.second.values()]
    made = rounds.overlapping_next() if parts.behind else rounds.alternating()
    return Seq((*allocations, *layouts, *body.outside, *begin, *made))


@dataclass(frozen=True, slots=True)
class _Iterations:
    """Writes iterations of a loop out.

    Every other iteration uses the `second` version of each versioned tile.
    """

    loop: For
    parts: DependenceSlices
    second: Mapping[Buffer, Buffer]

    @property
    def start(self) -> Expr:
        """The first iteration."""
        return as_expr(self.loop.start)

    @property
    def last(self) -> Expr:
        """The last iteration, if there is any."""
        return as_expr(self.loop.stop) - 1

    def alternating(self) -> list[Stmt]:
        """Return the loop where nothing but releases waits for the MMAs.

        The last iteration of an odd number begins when all is over: the assembler follows registers
        that MMAs read round a loop, not out of it.
        """
        count = as_expr(self.loop.stop) - self.start
        var = self.loop.var
        later = binary(BinaryOp.GT, var, self.start)
        both = [
            *self._begun(var, 0),
            If(later, Seq(self._releases())),
            *self._begun(var + 1, 1),
            *self._releases(),
        ]
        return [
            self._two_by_two(self.start, count, both),
            WaitProducts(0),
            _if(binary(BinaryOp.GT, count, 1), self._releases()),
            _if(binary(BinaryOp.EQ, count % 2, 1), [*self._ahead(self.last, 0), *self._ended()]),
        ]

    def overlapping_next(self) -> list[Stmt]:
        """Return the loop where `behind` runs beside the next iteration's MMAs."""
        first, var = self.start + 1, self.loop.var
        count = as_expr(self.loop.stop) - first
        both = [*self._beside(var, 1), *self._beside(var + 1, 0)]
        odd = [*self._beside(self.last, 1), *self._behind(self.last, 1)]
        made = [
            *self._ahead(self.start, 0),
            *self._ended(),
            self._two_by_two(first, count, both),
            _if(binary(BinaryOp.EQ, count % 2, 1), odd, self._behind(self.last, 0)),
        ]
        return [if_any_iteration(self.loop, Seq(tuple(made)))]

    def _beside(self, k: Expr, version: int) -> list[Stmt]:
        """Return the products of iteration `k` with what is behind those of the iteration before.

        The wait for tiles of the next iteration ends a basic block: without it the assembler moves
        the wait for the MMAs in front of the work beside them.
        """
        following = self._waits(k + 1, version)
        return [
            *self._ahead(k, version),
            *self._behind(k - 1, 1 - version),
            *([If(binary(BinaryOp.LT, k, self.last), Seq(tuple(following)))] if following else []),
            *self._ended(),
        ]

    def _two_by_two(self, start: Expr, count: Expr, body: Sequence[Stmt]) -> Stmt:
        stop = start + (count - count % 2)
        step = as_expr(2, self.loop.var.dtype)
        return replace(self.loop, start=start, stop=stop, step=step, body=Seq(tuple(body)))

    def _begun(self, k: Expr, version: int) -> list[Stmt]:
        """Return the products of iteration `k`, and the wait for those of the iteration before.

        Where these read a tile that all threads write next, all wait for the products of all.
        """
        together = any(tile.scope is Scope.SHARED for tile in self.parts.versioned)
        wait = WaitProducts(self.parts.products)
        return [*self._ahead(k, version), wait, *((Barrier(),) if together else ())]

    def _ended(self) -> list[Stmt]:
        """Return the wait for MMAs, and the releases of what they read."""
        return [WaitProducts(0), *self._releases()]

    def _waits(self, k: Expr, version: int) -> list[Stmt]:
        """Return the waits for the tiles of the products of iteration `k`."""
        waits = (s for s in self.parts.ahead if isinstance(s, BarrierWait))
        return self._round(waits, k, version)

    def _ahead(self, k: Expr, version: int) -> list[Stmt]:
        return self._round(self.parts.ahead, k, version)

    def _behind(self, k: Expr, version: int) -> list[Stmt]:
        return self._round(self.parts.behind, k, version)

    def _round(self, stmts: Iterable[Stmt], k: Expr, version: int) -> list[Stmt]:
        """Return new statements for iteration `k`."""
        body: Stmt = Seq(tuple(stmts))
        if version:
            named: dict[Node, Node] = dict(self.second.items())
            body = substitute(body, named)
        made = instance(body, {self.loop.var: k}, Versions(), as_expr(0))
        assert isinstance(made, Seq)
        return list(made.body)

    def _releases(self) -> tuple[Stmt, ...]:
        return tuple(s for release in self.parts.late for s in release.statements())


def _if(cond: Expr, then: Sequence[Stmt], otherwise: Sequence[Stmt] = ()) -> Stmt:
    """Return a branch, or the one that is certainly taken."""
    yes, no = Seq(tuple(then)), Seq(tuple(otherwise))
    known = static_value(cond)
    if known is not None:
        return yes if known else no
    return If(cond, yes, no if otherwise else None)
