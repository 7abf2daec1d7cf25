"""Products of an iteration that are waited for where somebody needs them."""

from __future__ import annotations

from dataclasses import field

from tile_core.ir.node import contains
from tile_core.ir.stmt import For, If, Leaf, Let, Parallel, Seq, Stmt, Store
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.mbarrier import BarrierArrive, BarrierWait
from tile_core.passes.overlap.gemm_dependence_slices import CircularUses, Fills
from tile_core.passes.overlap.gemm_loop_body import (
    GemmLoopBody,
    conflict,
    is_release,
    touched,
    written,
)
from tile_core.records import dataclass, replace


def sink_waits(loop: For, body: GemmLoopBody, fills: Fills) -> Stmt | None:
    """Return the loop with its MMAs in flight until they are needed; None if all are at once.

    Before   for k:  gemm K, Q_s -> S;  gemm V, dO_s -> P;  S = exp(S);  P *= S
    After    for k:  gemm K, Q_s -> S (left in flight);  gemm V, dO_s -> P (so too)
                     wait_products 1;  S = exp(S);  wait_products 0;  P *= S

    No MMA outlives its iteration. Somebody needs an MMA if he touches its accumulators or changes
    its operands. Tiles that MMAs read are released once these are done; all other
    statements keep their order. MMAs that add to the same accumulators are done in their order,
    without a wait.
    """
    iteration = _Iteration(body, CircularUses(body, fills))
    for k, item in enumerate(body.items):
        iteration.add(k, item)
    iteration.wait_for(len(iteration.running))
    if not iteration.gains:
        return None
    return Seq((*body.outside, replace(loop, body=Seq(tuple(iteration.made)))))


@dataclass(slots=True)
class _Iteration:
    """A round as it is written anew.

    `made` are its statements so far, `running` the positions of MMAs that may be in flight, in
    their order, and `held` those of releases that wait for some of these. It `gains` if anything
    stands between an MMA and the wait for it.
    """

    body: GemmLoopBody
    uses: CircularUses
    made: list[Stmt] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    gains: bool = False

    def add(self, k: int, item: Stmt) -> None:
        """Append a statement, behind the wait for MMAs that it needs."""
        if is_release(item):
            self.held.append(k)
            self.release()
            return
        needed = [n for n, at in enumerate(self.running) if _needs(self.body, k, at)]
        if needed:
            last = needed[-1]
            self.gains = self.gains or k > self.running[last] + 1
            self.wait_for(last + 1)
        if isinstance(item, Gemm) and k in self.body.products:
            self.made.append(replace(item, wg_wait=-1))
            self.running.append(k)
        else:
            self.made.append(item)

    def wait_for(self, count: int) -> None:
        """Append the wait for the oldest MMAs, and what follows from it."""
        if count:
            self.made.append(WaitProducts(len(self.running) - count))
            self.running = self.running[count:]
        self.release()

    def release(self) -> None:
        """Append the releases of tiles that no MMA reads any more."""
        running = set(self.running)
        for k in list(self.held):
            release = self.body.items[k]
            assert is_release(release)
            if not running & self.uses.readers(release):
                self.made.append(release)
                self.held.remove(k)


def _needs(body: GemmLoopBody, k: int, at: int) -> bool:
    """Whether statement `k` must find MMA `at` done."""
    item, product = body.items[k], body.items[at]
    assert isinstance(product, Gemm)
    if isinstance(item, BarrierWait):
        return False
    if isinstance(item, Gemm) and k in body.products and item.c.buffer is product.c.buffer:
        sums = {product.c.buffer.storage}
        return bool(written(item) & (touched(product) - sums) or sums & _factors(item))
    return not _is_known(item) or conflict(item, product)


def _factors(product: Gemm) -> set[object]:
    return {product.a.buffer.storage, product.b.buffer.storage}


def _is_known(stmt: Stmt) -> bool:
    """Whether all that a statement does is what it reads and writes."""
    if contains(stmt, BarrierWait, BarrierArrive):
        return False
    return isinstance(stmt, (Leaf, Parallel, Store, Let, If, For, Seq))
