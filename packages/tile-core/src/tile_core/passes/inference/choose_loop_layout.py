"""Which thread runs each iteration of a loop, and what follows for the tiles it touches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tile_core.ir.buffer import Buffer
from tile_core.layout import Fragment
from tile_core.layout.formula_bounds import reach
from tile_core.layout.formulas import inputs_of
from tile_core.layout.loop_layout import planned
from tile_core.passes.inference.layout_queries import Algebra, Misfit
from tile_core.passes.inference.parallel_nests import Nest, RegisterAccess
from tile_core.records import dataclass

HeldAs = Callable[[Buffer], "Fragment | None"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to run a loop, and the tile it follows from, if one."""

    run: Fragment
    source: RegisterAccess | None = None


@dataclass(frozen=True, slots=True)
class LoopLayoutChoice:
    """A way to run a loop that suits every tile known.

    Who must hold the tiles that were open is `implied`, in the shapes of the buffers accessed.
    """

    candidate: Candidate
    implied: dict[Buffer, Fragment]


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses for one kernel.

    `held_as` tells who holds a tile, in the shape of the buffer asked for, None while it is open;
    `width` the lanes that the accesses of a loop can take.
    """

    algebra: Algebra
    held_as: HeldAs
    width: Callable[[Nest], int]

    def choose(self, nest: Nest, *, free: bool) -> LoopLayoutChoice | None:
        """Return the best way to run `nest`; None if no way suits the tiles known.

        The loop may be spread as it likes if it is `free`. If not, a known tile must say how: one
        that is written, or one that each element has a single holder of.
        """
        best: LoopLayoutChoice | None = None
        for candidate in self.candidates(nest, free=free):
            if best is not None and candidate.run.replication >= best.candidate.run.replication:
                continue
            implied = self.implied(nest, candidate.run)
            if implied is not None:
                best = LoopLayoutChoice(candidate, implied)
                if candidate.run.replication == 1:
                    break
        return best

    def candidates(self, nest: Nest, *, free: bool) -> Iterator[Candidate]:
        """Yield ways to run `nest`, the preferred first."""
        hint = nest.loop.loop_layout
        if isinstance(hint, Fragment) and hint.shape == nest.extents:
            yield Candidate(hint)
            return
        known = [(t, f) for t in nest.touches if (f := self.held_as(t.buffer)) is not None]
        written = [(t, f) for t, f in known if t.writes]
        read = sorted(
            ((t, f) for t, f in known if not t.writes),
            key=lambda pair: (pair[1].replication, -_coordinates(pair[0], nest)),
        )
        for touch, held in written + read:
            if not (free or touch.writes or held.replication == 1):
                continue
            run = self.algebra.pull(held, touch.indices, nest.extents)
            if run is not None and run.thread_extent <= nest.threads:
                yield Candidate(run, touch)
        if free:
            for touch, held in read:
                if 1 < held.replication < nest.threads and not touch.serial:
                    width = self.width(nest)
                    run = self.algebra.share_out(held, touch.indices, nest.extents, width)
                    if run is not None and run.thread_extent <= nest.threads:
                        yield Candidate(run, touch)
            yield from self.open_candidates(nest)

    def open_candidates(self, nest: Nest) -> Iterator[Candidate]:
        """Yield ways to run `nest` that no tile determines."""
        width = self.width(nest)
        if not any(t.writes for t in nest.touches):
            loop = planned(nest.extents, nest.threads, width)
            self.algebra.made.setdefault(loop.fragment, loop)
            yield Candidate(loop.fragment)
        yield Candidate(self.algebra.plan(nest.extents, nest.threads, width).fragment)
        yield Candidate(self.algebra.everyone(nest.extents, nest.threads))

    def implied(self, nest: Nest, run: Fragment) -> dict[Buffer, Fragment] | None:
        """Return who must hold the open tiles if `run` runs `nest`; None if it cannot."""
        found: dict[Buffer, Fragment] = {}
        for touch in nest.touches:
            held = self.held_as(touch.buffer) or found.get(touch.buffer)
            if held is None:
                held = self.needed(nest, run, touch)
                found[touch.buffer] = held
            if self.misfit(run, held, touch) is not None:
                return None
        return found

    def needed(self, nest: Nest, run: Fragment, touch: RegisterAccess) -> Fragment:
        """Return who must hold the tile of `touch` if `run` runs `nest`.

        A tile of one element, and one whose holders follow no pattern, is in every thread.
        """
        shape = touch.buffer.static_shape or ()
        made = self.algebra.push(run, touch.indices, shape, touch.serial)
        if made is None or made.size == 1:
            return self.algebra.everyone(shape, nest.threads)
        if made.replication > 1 and self.algebra.inverse(made, 1).searched:
            return self.algebra.everyone(shape, nest.threads)
        return made

    def misfit(self, run: Fragment, held: Fragment, touch: RegisterAccess) -> Misfit | None:
        """Return why a loop cannot touch a tile; None if it can."""
        return self.algebra.misfit(run, held, touch.indices, touch.serial, writes=touch.writes)


def _coordinates(touch: RegisterAccess, nest: Nest) -> int:
    """Return how many of the loop's variables the access moves with."""
    used = frozenset(axis for e in touch.indices for axis in inputs_of(e))
    return len(used & frozenset(range(len(nest.extents))))


def covers_tile(touch: RegisterAccess, nest: Nest) -> bool:
    """Whether the loop touches every element of the tile, as far as indices are plain."""
    domain = (*nest.extents, *touch.serial)
    shape = touch.buffer.static_shape or ()
    for index, extent in zip(touch.indices, shape, strict=True):
        bounds = reach(index, domain)
        if bounds.lo > 0 or bounds.hi < extent - 1:
            return False
    return True
